//! `answer_delta`, `grounding`, `answer` and `mission_finished`: what a run ends with.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Usage, UsageTotal};

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

impl Outcome {
    /// Its word on the wire.
    pub fn word(self) -> &'static str {
        match self {
            Outcome::Answered => "answered",
            Outcome::AnsweredWithCaveat => "answered_with_caveat",
            Outcome::AwaitingApproval => "awaiting_approval",
            Outcome::BudgetExhausted => "budget_exhausted",
            Outcome::Incomplete => "incomplete",
        }
    }
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
