//! The records of the event stream: one JSON object a line, `event` first, `branch` last.
//!
//! Fields are serialised in the order in which they are declared. A consumer drops unknown events and unknown fields.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::text::Text;

/// The arguments of a tool call, as the model gave them.
pub type Arguments = Map<String, Value>;

/// One record of the stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// First record of a run; never repeated on a resume.
    MissionStarted(MissionStarted),
    /// Before the model is asked.
    StepStarted(StepStarted),
    /// A reply of the model that could not be carried out.
    ReplyRejected(ReplyRejected),
    /// Before a tool is called.
    ToolCall(ToolCall),
    /// How that call came back.
    ToolResult(ToolResult),
    /// A call that waits for a person.
    GateRequested(GateRequested),
    /// A provisional fragment of the answer; neither journaled nor replayed.
    AnswerDelta(AnswerDelta),
    /// What the grounding of an answer found.
    Grounding(Grounding),
    /// The answer.
    Answer(Answer),
    /// Last record of a process; exactly one.
    MissionFinished(MissionFinished),
    /// A model that makes the run wait.
    ModelState(ModelState),
    /// Something an operator should see (ours).
    Notice(Notice),
    /// The answer to a line of the control channel (ours, behind `--control-acks`).
    ControlAck(ControlAck),
    /// A sign of life (ours, behind `--tick`).
    Tick(Tick),
}

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

/// `step_started`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StepStarted {
    /// Number of the model turn, from 0, continuing across a resume.
    pub index: u64,
    /// Only on the first step after a resume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed: Option<Resumed>,
    /// The whole offered set, only on a step where it changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catalogue: Option<Vec<String>>,
    /// User turns put in front of the model before this step.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub injected: Vec<String>,
    /// The supervisor's review that just happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review: Option<Review>,
    /// How the conversation was shortened for this step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compacted: Option<Compacted>,
    /// The plan, on the first step after it was drawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Vec<PlanStep>>,
    /// Files handed in and out, on the first step of a campaign's step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifacts: Option<Artifacts>,
    /// The branch this record belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
}

/// Where a resumed stretch took over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Resumed {
    /// Sequence number of the last line that the stretch before had written.
    pub from_seq: u64,
    /// Number of steps taken over.
    pub steps_replayed: u64,
}

/// A supervisor's review.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Review {
    /// The pattern that called for it.
    pub signal: String,
    /// `progressing`, `nudge`, `stuck` or `replan`.
    pub verdict: String,
    /// Reviews that remain.
    pub reviews_left: u64,
    /// What the reviewer wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// How a conversation was shortened. Token figures are estimates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Compacted {
    /// Turns removed.
    pub dropped_turns: u64,
    /// Messages removed.
    pub dropped_messages: u64,
    /// Characters removed.
    pub freed_chars: u64,
    /// Tokens before.
    pub tokens_before: u64,
    /// Tokens after.
    pub tokens_after: u64,
    /// Tokens that the model takes.
    pub limit_tokens: u64,
    /// Where that figure comes from.
    pub profile: String,
    /// Tool results removed.
    pub dropped_results: u64,
}

/// One step of a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PlanStep {
    /// Its name.
    pub id: String,
    /// What it is to reach.
    pub goal: String,
    /// The kind of tools that it may use.
    pub rung: String,
}

/// Files of a campaign's step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Artifacts {
    /// What arrived.
    #[serde(rename = "in")]
    pub inputs: Vec<String>,
    /// What it declares to hand on.
    #[serde(rename = "out")]
    pub outputs: Vec<String>,
}

/// `reply_rejected`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReplyRejected {
    /// The step.
    pub index: u64,
    /// The correction that the model was given.
    pub problem: String,
    /// The tool's name, when one was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// What the reply cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The branch this record belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
}

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
    /// The branch this record belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
}

/// `answer_delta`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AnswerDelta {
    /// The step.
    pub index: u64,
    /// Number of the fragment within the model call, from 0.
    pub part: u64,
    /// At most 64 characters, or up to and with a newline.
    pub text: String,
    /// The branch this record belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
}

/// `grounding`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Grounding {
    /// True when any check is configured.
    pub ran: bool,
    /// True when every configured check is satisfied.
    pub grounded: bool,
    /// True when it is grounded and something was considered.
    pub verified: bool,
    /// Repair turns so far.
    pub repairs: u64,
    /// True on an interim record: a repair turn follows.
    pub repairing: bool,
    /// The caveat appended to the answer.
    pub caveat: String,
    /// Claims without support.
    pub unsupported: Vec<String>,
    /// Checks that considered nothing.
    pub silent: Vec<String>,
    /// Checks below their minimum.
    pub uncited: Vec<String>,
    /// One row a check.
    pub checks: Vec<GroundingCheck>,
    /// The branch this record belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
}

/// One row of `grounding.checks`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GroundingCheck {
    /// Its name.
    pub check: String,
    /// Whether this run configures it.
    pub configured: bool,
    /// Whether it is satisfied.
    pub grounded: bool,
    /// `unconfigured`, `unsupported`, `nothing_considered`, `supported`; a critic's `pass`, `fail`, `skipped`.
    pub verdict: String,
    /// Number of claims considered.
    pub considered: u64,
    /// Number of claims required.
    pub minimum: u64,
    /// Claims without support.
    pub unsupported: Vec<String>,
    /// In words.
    pub detail: String,
    /// True when it never changes the outcome.
    pub advisory: bool,
}

/// `answer`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Answer {
    /// The text, with its caveat when there is one.
    pub text: String,
    /// `answered` or `answered_with_caveat`.
    pub outcome: Outcome,
    /// What the reply that wrote it cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The answer as data, where a schema asked for it (ours).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<Value>,
    /// The branch this record belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It answered.
    Answered,
    /// It answered; not all of it is grounded.
    AnsweredWithCaveat,
    /// A call waits for a person.
    AwaitingApproval,
    /// A limit was reached.
    BudgetExhausted,
    /// It ended before an answer.
    #[default]
    Incomplete,
}

/// `mission_finished`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MissionFinished {
    /// How it ended.
    pub outcome: Outcome,
    /// Steps recorded, those before a resume included.
    pub steps: u64,
    /// Ceiling on model turns; 0 is none.
    pub max_steps: u64,
    /// Which limit was reached; only with `budget_exhausted`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<BudgetSpent>,
    /// `cancelled` or `stuck`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What all replies cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<UsageTotal>,
    /// Seconds since the run began, three decimals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elapsed_s: Option<f64>,
    /// `sum` of the log's line before this one (ours).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_head: Option<String>,
    /// The branch this record belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
}

/// Which limit was reached.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BudgetSpent {
    /// `steps`, `seconds`, `tokens`, `bytes`; `cost` only with `--max-cost`.
    pub which: String,
    /// The limit.
    pub limit: serde_json::Number,
    /// What was spent.
    pub spent: serde_json::Number,
}

/// `model_state`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ModelState {
    /// The step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<u64>,
    /// `cold`, `asking`, `queued`, `loading`, `loaded`, `failed` or `absent`.
    pub state: String,
    /// The provider.
    pub provider: String,
    /// The model.
    pub model: String,
    /// In words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Seconds since the request went out, three decimals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_s: Option<f64>,
    /// Seconds that the server asked us to wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_s: Option<f64>,
    /// The branch this record belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
}

/// `notice` (ours).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Notice {
    /// What kind of thing happened: a word of [`crate::vocabulary::NOTICE_CODES`].
    pub code: String,
    /// In words.
    pub detail: String,
    /// The tool server it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The tool it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The step it happened in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<u64>,
    /// The branch this record belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
}

/// `control_ack` (ours).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ControlAck {
    /// The `id` of the line, when it had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Its word.
    pub word: String,
    /// What became of it.
    pub disposition: String,
    /// The branch this record belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
}

/// `tick` (ours).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Tick {
    /// What the run is doing.
    pub state: String,
    /// What it waits for.
    pub waiting_on: String,
    /// Seconds in that state, three decimals.
    pub since_s: f64,
    /// The branch this record belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
}

/// What one reply of a model cost, as its server reported it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Usage {
    /// Tokens of the request.
    pub prompt_tokens: u64,
    /// Tokens of the reply.
    pub completion_tokens: u64,
    /// Their sum, unless the server states another.
    pub total_tokens: u64,
    /// What else the server reported, verbatim.
    #[serde(flatten)]
    pub extras: BTreeMap<String, Value>,
}

/// What all replies of a run cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UsageTotal {
    /// Tokens of the requests.
    pub prompt_tokens: u64,
    /// Tokens of the replies.
    pub completion_tokens: u64,
    /// All tokens.
    pub total_tokens: u64,
    /// Number of replies that reported.
    pub calls: u64,
    /// What they cost; only where a price is configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}

/// An amount of money.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cost {
    /// Six decimals.
    pub amount: f64,
    /// ISO 4217 code.
    pub currency: String,
}
