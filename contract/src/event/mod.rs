//! The records of the event stream: one JSON object a line, `event` first, `branch` last.
//!
//! Fields are serialised in the order in which they are declared. A consumer drops unknown events and unknown fields.

mod call;
mod closing;
mod opening;
mod sign;
mod step;
mod usage;

use serde::{Deserialize, Serialize};

pub use call::{Arguments, GateRequested, ToolCall, ToolResult};
pub use closing::{Answer, AnswerDelta, BudgetSpent, Grounding, GroundingCheck, MissionFinished, Outcome};
pub use opening::{MissionStarted, ServerRef, SkillRef};
pub use sign::{ControlAck, ModelState, Notice, Tick};
pub use step::{Artifacts, Compacted, PlanStep, ReplyRejected, Resumed, Review, StepStarted};
pub use usage::{Cost, Usage, UsageTotal};

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
