//! `intent` and `result`: a tool is called, and comes back.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::event::Arguments;
use crate::text::Text;

/// `result`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CallResult {
    /// Number of the intent that it answers, from 1.
    pub of: u64,
    /// How the call came to its end.
    pub end: CallEnd,
    /// 0 fine; 1 the tool says it failed; -1 anything else.
    pub exit_code: i64,
    /// The text of its content blocks, joined by newlines.
    #[serde(default)]
    pub text: Text,
    /// What went wrong.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub error: String,
    /// Its typed result; shared, as it may be as large as the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<Arc<Value>>,
    /// The content blocks that are not text: kind, type, size, address.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<Value>,
    /// What is wrong with it although it is taken: the model is told behind the text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub remark: String,
    /// True when the call did not go out at all: nothing can have come of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unsent: bool,
}

/// How a call came to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CallEnd {
    /// The tool did it.
    #[default]
    Ok,
    /// The tool ran and says it failed.
    Error,
    /// The server answered with a protocol error, or with something that is no result.
    Protocol,
    /// No answer in time: the effect is unknown.
    Timeout,
    /// The server died: the effect is unknown.
    Died,
    /// We gave it up: the effect is unknown.
    Cancelled,
}

impl CallEnd {
    /// True when nobody knows whether a call that ended so took effect.
    pub fn leaves_doubt(self) -> bool {
        matches!(self, CallEnd::Timeout | CallEnd::Died | CallEnd::Cancelled)
    }
}

/// `intent`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Intent {
    /// The tool's full name.
    pub tool: String,
    /// The namespace of its server.
    pub server: String,
    /// The arguments.
    pub arguments: Arguments,
    /// SHA-256 over tool, definition digest and canonical arguments, newline between.
    pub digest: String,
    /// The idempotency key: SHA-256 from run id, epoch and ordinal.
    pub key: String,
    /// Digest of the tool's definition.
    pub definition: String,
    /// True when the call may be made again after a crash.
    pub idempotent: bool,
}
