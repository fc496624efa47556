//! `tool_call`, `tool_result` and `gate_requested`: the calls of tools.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Usage;
use crate::text::Text;

/// The arguments of a tool call, as the model gave them.
pub type Arguments = Map<String, Value>;

/// `tool_call`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolCall {
    /// The step.
    pub index: u64,
    /// The tool, `<namespace>.<tool>`.
    pub tool: String,
    /// The arguments, verbatim from the model.
    pub arguments: Arguments,
    /// Position among the calls of a native reply that are not the answer; absent for 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<u64>,
    /// What the reply cost; on its first record only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The branch this record belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
}

/// `tool_result`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolResult {
    /// The step.
    pub index: u64,
    /// The tool.
    pub tool: String,
    /// The arguments, as in `tool_call`.
    pub arguments: Arguments,
    /// True when `exit_code` is 0.
    pub ok: bool,
    /// 0 fine; 1 the tool says it failed; -1 it could not be called, or came to no end.
    pub exit_code: i64,
    /// The whole output, verbatim.
    pub output: Text,
    /// What went wrong.
    pub error: String,
    /// Where the result is kept: `r1`, `r2`, …
    pub handle: String,
    /// True when the model was shown less than the whole.
    pub truncated: bool,
    /// As in `tool_call`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<u64>,
    /// The branch this record belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
}

/// `gate_requested`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GateRequested {
    /// The step.
    pub index: u64,
    /// The tool.
    pub tool: String,
    /// The proposed arguments, verbatim.
    pub arguments: Arguments,
    /// Why it waits.
    pub reason: String,
    /// The approval to decide; absent when none could be recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_id: Option<String>,
    /// `reconcile` when the call was made and nobody knows whether it took effect; absent when it was not made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The branch this record belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
}
