//! `ask` and `reply`: the model is asked, and says something.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::event::Usage;
use crate::text::Text;

/// `reply`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reply {
    /// Number of the ask that it answers, from 1.
    pub of: u64,
    /// How it came to its end.
    pub end: ReplyEnd,
    /// What it says.
    #[serde(default)]
    pub text: Text,
    /// The calls in it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ReplyCall>,
    /// What the provider wants to see again with this reply, verbatim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opaque: Option<Value>,
    /// The provider's word for why it stopped: `stop`, `length`, `tool_calls`, …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish: Option<String>,
    /// What it cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// How much of the answer had been shown as fragments, in characters.
    #[serde(default)]
    pub shown: u64,
    /// Why it failed or was cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// How a reply came to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ReplyEnd {
    /// All of it is here.
    #[default]
    Whole,
    /// The connection broke after some of it.
    Cut,
    /// There is none.
    Failed,
    /// We aborted it.
    Interrupted,
}

/// A call in a reply, as the model made it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReplyCall {
    /// The provider's id; empty when it gave none.
    #[serde(default)]
    pub id: String,
    /// The function's name as the model spelt it.
    pub name: String,
    /// The arguments: the raw text, which may be no JSON.
    pub arguments: String,
    /// What the provider wants to see again with this call, verbatim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opaque: Option<Value>,
}

/// `ask`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ask {
    /// What it is for.
    pub purpose: Purpose,
    /// Number of messages kept from the front of the ask before of the same purpose; absent when all of them are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keeps: Option<u64>,
    /// The messages that follow those.
    pub adds: Vec<Message>,
    /// SHA-256 over the whole request.
    pub digest: String,
}

/// What an ask is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// The next step of the mission.
    #[default]
    Step,
    /// A review of how the run gets on.
    Review,
}

/// Who speaks in a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// We set the frame.
    #[default]
    System,
    /// The person, or we on their behalf.
    User,
    /// The model.
    Assistant,
    /// A tool, or we in its place.
    Tool,
}

/// One message of a conversation, provider-neutral.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub content: Text,
    /// The calls that the model made, as they are echoed to it: names as functions are called on the wire.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ReplyCall>,
    /// The call that a tool message answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    /// What the provider wants to see again with this message, verbatim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opaque: Option<Value>,
}
