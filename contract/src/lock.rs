//! `mission.lock`: the tools of a skill as they were when somebody looked at them.

use serde::{Deserialize, Serialize};

use crate::digest::{self, Digest};
use crate::event::SkillRef;
use crate::log::ToolDefinition;

/// The version of the form.
pub const LOCK_FORMAT: u64 = 1;

/// What a `mission.lock` holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Lock {
    /// The version of this form: 1.
    pub format: u64,
    /// The skill, and the digest of its manifest.
    pub skill: SkillRef,
    /// The servers that offer the tools, by name.
    pub servers: Vec<PinnedServer>,
    /// The tools that the skill allowed, in its order.
    pub tools: Vec<PinnedTool>,
    /// SHA-256 of the set: a line for each tool, its name, a blank and its digest, in the order of the names.
    pub set: Digest,
}

/// A server as it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PinnedServer {
    /// The namespace of its tools.
    pub name: String,
    /// Its own name and version, as it said; absent when it said nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub implementation: Option<String>,
}

/// A tool as it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PinnedTool {
    /// Its full name.
    pub name: String,
    /// SHA-256 of its whole definition, as approvals and the log have it.
    pub digest: Digest,
    /// SHA-256 of its description.
    pub description: Digest,
    /// SHA-256 of the canonical schema of its arguments.
    pub input_schema: Digest,
    /// SHA-256 of the canonical schema of its result; of `null` where it has none.
    pub output_schema: Digest,
    /// SHA-256 of its canonical annotations; of `null` where it has none.
    pub annotations: Digest,
}

impl PinnedTool {
    /// A tool as it is.
    pub fn of(definition: &ToolDefinition) -> Self {
        Self {
            name: definition.full_name(),
            digest: digest::definition_digest(definition),
            description: digest::sha256_hex(definition.description.as_bytes()),
            input_schema: digest::value_digest(Some(&definition.input_schema)),
            output_schema: digest::value_digest(definition.output_schema.as_ref()),
            annotations: digest::value_digest(definition.annotations.as_ref()),
        }
    }
}

/// The digest of a set of tools, whatever its order.
pub fn set_digest(tools: &[PinnedTool]) -> Digest {
    let mut lines: Vec<String> = tools.iter().map(|tool| format!("{} {}\n", tool.name, tool.digest)).collect();
    lines.sort();
    digest::sha256_hex(lines.concat().as_bytes())
}
