//! Where a run stands between two inputs.

use std::sync::Arc;

use mission_contract::event::Outcome;
use mission_contract::log::{Decision, Intent};

use crate::engine::reading::Proposed;
use crate::engine::signal::Signal;
use crate::policy::Judgement;

/// See the module's doc.
#[derive(Debug)]
pub(super) enum Phase {
    Fresh,
    /// `announced`: `mission_started` went out already, and a server that is needed was away.
    Opened {
        announced: bool,
    },
    Listening,
    /// At the boundary of a step: only while an input is applied, and where a stretch ended.
    Between,
    Asking {
        ordinal: u64,
    },
    /// A reviewer is asked how the run gets on.
    Reviewing {
        ordinal: u64,
        signal: Signal,
    },
    Calling {
        ordinal: u64,
        call: Box<Pending>,
    },
    /// A call waits for a person.
    Gated(Box<Gated>),
    /// A later stretch has begun where the one before stood, and waits for the servers' lists.
    Resuming(Box<Phase>),
    Ended {
        outcome: Outcome,
        /// Where it stood: a later stretch begins there.
        at: Box<Phase>,
    },
}

impl Phase {
    /// `mission_started` has not gone out yet.
    pub(super) fn is_unannounced(&self) -> bool {
        match self {
            Phase::Fresh => true,
            Phase::Opened { announced } => !announced,
            Phase::Resuming(at) => at.is_unannounced(),
            _ => false,
        }
    }

    pub(super) fn words(&self) -> &'static str {
        match self {
            Phase::Fresh => "not open yet",
            Phase::Opened { .. } => "not started yet",
            Phase::Listening => "waiting for the servers' lists",
            Phase::Between => "between two steps",
            Phase::Asking { .. } => "waiting for the model",
            Phase::Reviewing { .. } => "waiting for a review",
            Phase::Calling { .. } => "waiting for a tool",
            Phase::Gated(_) => "waiting for a person",
            Phase::Resuming(_) => "being resumed",
            Phase::Ended { .. } => "over",
        }
    }
}

/// A call that was decided upon.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    pub(super) proposed: Proposed,
    pub(super) canonical: Arc<str>,
    pub(super) intent: Intent,
    /// What was decided about it.
    pub(super) judged: Judgement,
    /// The approval by which it is made, and who gave it.
    pub(super) decided_by: Option<(String, String)>,
    /// The server's own name for the tool.
    pub(super) name: String,
    /// The stream has its `tool_call`.
    pub(super) is_announced: bool,
    /// Its intent stands in the log: from then on nobody knows whether it was made, until its result is there.
    pub(super) is_intended: bool,
}

impl Pending {
    pub(super) fn new(proposed: Proposed, canonical: Arc<str>, intent: Intent, name: String) -> Self {
        let judged = Judgement::default();
        Self { proposed, canonical, intent, judged, decided_by: None, name, is_announced: false, is_intended: false }
    }
}

/// A call that waits for a person.
#[derive(Debug)]
pub(super) struct Gated {
    pub(super) call: Pending,
    /// The approval that decides it.
    pub(super) approval_id: String,
    pub(super) about: About,
    pub(super) decision: Option<Decision>,
    /// Its `gate_requested` was lost with the process that had decided upon it.
    pub(super) is_untold: bool,
}

/// What a person is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum About {
    /// Whether the call may be made.
    Gate,
    /// Nothing: it was approved before the run began, and is being spent.
    Claim,
    /// What became of it.
    Doubt,
}
