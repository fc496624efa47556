//! `catalogue`: the tool servers and their tools.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// `catalogue`: whole once, then what was added, changed and removed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Catalogue {
    /// The servers as they are now.
    pub servers: Vec<ServerState>,
    /// Tools that are there, or joined since.
    pub tools: Vec<ToolDefinition>,
    /// Tools whose definition is another than before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<ToolDefinition>,
    /// Full names of tools that left.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub removed: Vec<String>,
}

/// A tool server as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ServerState {
    /// The namespace of its tools.
    pub name: String,
    /// `stdio` or `http`.
    pub transport: String,
    /// Whether it can be called.
    pub state: ServerCondition,
    /// Which era of the protocol it speaks; absent when it never answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub era: Option<Era>,
    /// The protocol version agreed upon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Its own name and version, as it says: for display only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub implementation: Option<String>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// True when the run goes on without it.
    #[serde(default)]
    pub optional: bool,
}

/// Whether a server can be called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ServerCondition {
    /// It can.
    #[default]
    Ready,
    /// It did not come up, or is gone.
    Failed,
}

/// The two eras of the Model Context Protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Era {
    /// `initialize` first; revisions 2024-11-05 to 2025-11-25.
    Handshake,
    /// Metadata on each request; revision 2026-07-28 and later.
    Stateless,
}

/// A tool as its server defines it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolDefinition {
    /// The namespace.
    pub server: String,
    /// The server's own name for it. Its full name is `<server>.<name>`.
    pub name: String,
    /// The server's description.
    #[serde(default)]
    pub description: String,
    /// The JSON Schema of its arguments.
    pub input_schema: Value,
    /// The JSON Schema of its typed result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// The server's hints; they never loosen anything by themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Value>,
}

impl ToolDefinition {
    /// `<server>.<name>`: how the stream, the log and the model's catalogue call it. A tool of no server (a harness's own, in a
    /// foreign recording) goes by its name alone.
    pub fn full_name(&self) -> String {
        if self.server.is_empty() { self.name.clone() } else { format!("{}.{}", self.server, self.name) }
    }
}
