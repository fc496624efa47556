//! `step_started` and `reply_rejected`: the turns of the model.

use serde::{Deserialize, Serialize};

use super::Usage;

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
