//! `mission_started`: what a run begins with.

use serde::{Deserialize, Serialize};

/// `mission_started`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MissionStarted {
    /// Version of the stream: [`crate::SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The objective, verbatim.
    pub objective: String,
    /// Names of the offered tools in their order; `mission_result` last.
    pub catalogue: Vec<String>,
    /// Those of the catalogue that need a person's approval.
    pub gated: Vec<String>,
    /// Ceiling on model turns; 0 is none.
    pub max_steps: u64,
    /// Number of earlier turns that the conversation was seeded with.
    pub history: u64,
    /// `bwrap` or `none`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
    /// Path of the audit file; null when auditing is off.
    #[serde(default)]
    pub audit_ref: Option<String>,
    /// Absent when nothing is recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// `native`; absent for `json`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// The profile that grants scopes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Scopes granted on top of the profile, sorted; absent when none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub granted: Vec<String>,
    /// Version of the program (ours).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The limits of this run (ours).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<crate::spec::Limits>,
    /// The skill that closes the set of tools (ours).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill: Option<SkillRef>,
    /// The tool servers and the era each speaks (ours).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<ServerRef>,
    /// What this run's sandbox enforces, layer by layer (ours).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sandbox_layers: Vec<String>,
    /// True when a control channel is open (ours).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<bool>,
    /// SHA-256 of the policy file that narrows what may be called (ours).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// The branch this record belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
}

/// A skill by name and content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SkillRef {
    /// Its name.
    pub name: String,
    /// SHA-256 of its manifest's bytes, in hex.
    pub digest: String,
}

/// A tool server as the opening record shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ServerRef {
    /// The namespace of its tools.
    pub name: String,
    /// `stdio` or `http`.
    pub transport: String,
    /// `ready` or `failed`.
    pub state: String,
    /// `handshake` or `stateless`; absent when it never answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub era: Option<String>,
    /// The protocol version agreed upon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Number of tools that it lists.
    pub tools: u64,
}
