//! The lines of a run's journal: inputs (what happened) and outputs (what the engine derived from it).
//!
//! One line is one JSON object, keys in this order: `seq`, `group`, `at`, `ms`, `branch?`, `prev`, exactly one kind, `sum`.
//! `sum` is the SHA-256 of the line's bytes before `,"sum"`; `prev` is the `sum` of the line before, 64 zeros at first.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::event::{Arguments, Usage};
use crate::spec::Spec;
use crate::text::Text;

pub use crate::line::{ChainVerifier, Line, LineProblem, LineWriter, PutBackProblem, parse_line, put_back};

/// The kinds of line: exactly one stands in a line, under its name.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Entry {
    /// Input: what was asked. First line of a log.
    Open(Box<Open>),
    /// Input: a process took over. First line of every later stretch.
    Writer(Writer),
    /// Input: the model that answers from here on.
    Leg(Leg),
    /// Input: the tool servers and their tools.
    Catalogue(Catalogue),
    /// Input: what the model said.
    Reply(Reply),
    /// Input: how a call came back.
    Result(CallResult),
    /// Input: a word from outside.
    Control(Control),
    /// Input: a person's answer.
    Decision(Decision),
    /// Input: a timer that the engine armed has run out.
    Timer(Timer),
    /// Input: something the driver saw and the stream must tell.
    Observed(Observed),
    /// Input: the run is over without the engine having ended it.
    Closed(Closed),
    /// Output: the model is asked.
    Ask(Ask),
    /// Output: a call is about to be made.
    Intent(Intent),
    /// Output: a record of the event stream, redacted, as it goes out.
    Record(Box<RawValue>),
}

impl Entry {
    /// The name that it stands under in a line.
    pub fn kind(&self) -> &'static str {
        match self {
            Entry::Open(_) => "open",
            Entry::Writer(_) => "writer",
            Entry::Leg(_) => "leg",
            Entry::Catalogue(_) => "catalogue",
            Entry::Reply(_) => "reply",
            Entry::Result(_) => "result",
            Entry::Control(_) => "control",
            Entry::Decision(_) => "decision",
            Entry::Timer(_) => "timer",
            Entry::Observed(_) => "observed",
            Entry::Closed(_) => "closed",
            Entry::Ask(_) => "ask",
            Entry::Intent(_) => "intent",
            Entry::Record(_) => "record",
        }
    }
}

/// `open`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Open {
    /// [`crate::LOG_FORMAT`].
    pub format: u32,
    /// Behaviour flags: rules of decision that came after the first format. Never reused.
    pub behaviours: Vec<u32>,
    /// Version of the program.
    pub build: String,
    /// The run.
    pub run_id: String,
    /// What was asked.
    pub spec: Spec,
}

/// `writer`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Writer {
    /// Number of the stretch, from 1 (the stretch that `open` began).
    pub epoch: u64,
    /// Process id.
    pub pid: u32,
    /// Host name.
    pub host: String,
    /// Version of the program.
    pub build: String,
    /// What the command line changed: name → new value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub changed: BTreeMap<String, Value>,
}

/// `leg`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Leg {
    /// The provider.
    pub provider: String,
    /// The model.
    pub model: String,
    /// Context window in tokens, when known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// What its server can do.
    pub capabilities: Capabilities,
}

/// What a model's server can do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Capabilities {
    /// Streams its replies.
    pub stream: bool,
    /// Takes function declarations.
    pub tools: bool,
    /// Makes several calls in one reply.
    pub parallel_calls: bool,
    /// Takes `tool_choice: required`; even then it may not honour it.
    pub required_choice: bool,
    /// How a reply can be held to a shape.
    pub constraint: ConstraintKind,
}

/// How a reply can be held to a shape.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ConstraintKind {
    /// Not at all.
    #[default]
    None,
    /// To one JSON object of any shape.
    JsonObject,
    /// To a JSON Schema.
    JsonSchema,
}

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
    /// `<server>.<name>`: how the stream, the log and the model's catalogue call it.
    pub fn full_name(&self) -> String {
        format!("{}.{}", self.server, self.name)
    }
}

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
    /// Its typed result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<Value>,
    /// The content blocks that are not text: kind, type, size, address.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<Value>,
    /// What is wrong with it although it is taken: the model is told behind the text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub remark: String,
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

/// `control`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Control {
    /// `inject`, `cancel`, `cancel_step`, `gate_decision` or `steer`.
    pub word: String,
    /// Where it came from.
    pub source: ControlSource,
    /// The name of the signal, when one it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// Its text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The line's own id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

/// Where a word came from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ControlSource {
    /// The control channel.
    #[default]
    Channel,
    /// A signal.
    Signal,
    /// The reader of the event stream went away.
    ReaderGone,
}

/// `decision`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Decision {
    /// The approval.
    pub approval_id: String,
    /// `approve`, `refuse`, `done`, `retry` or `abandon`.
    pub answer: String,
    /// Who decided.
    pub by: String,
    /// In their words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// What they filled in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Value>,
}

/// `timer`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Timer {
    /// Which one.
    pub name: String,
}

/// `observed`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Observed {
    /// A notice code.
    pub what: String,
    /// In words.
    pub detail: String,
    /// The tool server it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Number of the ask or intent it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<u64>,
}

/// `closed`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Closed {
    /// Who closed it: `driver` (it failed), or the run id of the closer of an orphan.
    pub by: String,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
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
