//! What the engine wants done. The driver does it, in this order, and nothing else.

use mission_contract::event::{Event, Outcome};
use mission_contract::log::{Ask, Intent};

use super::request::ToolDispatch;

/// One thing to do.
#[derive(Debug)]
pub enum Effect {
    /// Journal a record and give it to the sinks once it is durable.
    Emit {
        /// The record, not redacted.
        event: Box<Event>,
        /// The `result` line whose text the record repeats.
        repeats: Option<u64>,
    },
    /// Journal the ask and ask the model what [`super::run::Run::request`] says; a `reply` follows.
    Ask {
        /// The line.
        ask: Box<Ask>,
        /// The step it is for.
        index: u64,
    },
    /// Give up the ask in flight; its `reply` follows at once.
    AbortAsk,
    /// Give up the ask in flight; its `reply` follows at once, and the run goes on.
    CutAsk,
    /// Journal the intent, wait until it is durable, make the call; a `result` follows.
    Dispatch {
        /// The line.
        intent: Box<Intent>,
        /// The call.
        dispatch: Box<ToolDispatch>,
    },
    /// Give up the call in flight; its `result` follows at once.
    CancelCall,
    /// Note, for whoever decides, that a call waits for a person. It may be noted already.
    OpenGate(Box<GateRequest>),
    /// Wait for the decision, no longer than so many milliseconds, and spend it: a `decision` follows, or a `timer` named
    /// [`super::run::GATE_TIMER`].
    AwaitDecision {
        /// The approval.
        approval_id: String,
        /// The key of the call that spends it.
        key: String,
        /// The digest of that call: no approval of another one will do.
        digest: String,
        /// How long.
        milliseconds: u64,
    },
    /// Tell when the run's work time comes to so many milliseconds: a `timer` of this name follows. Nothing is told where there is none.
    Arm {
        /// The timer.
        name: &'static str,
        /// When.
        at: Option<u64>,
    },
    /// Wait for no decision any more.
    LeaveGate,
    /// Spend an approval that was given before the run: a `decision` follows at once.
    Claim {
        /// The approval.
        approval_id: String,
        /// The key of the call that spends it.
        key: String,
        /// The digest of that call: no approval of another one will do.
        digest: String,
    },
    /// List every server again; a `catalogue` follows, empty when nothing changed.
    ListAgain,
    /// The run is over; `mission_finished` has been emitted.
    Finish(Ending),
}

/// A call that waits for a person.
#[derive(Clone, Debug, PartialEq)]
pub struct GateRequest {
    /// The approval that decides it.
    pub approval_id: String,
    /// The step in which it was proposed.
    pub index: u64,
    /// The call.
    pub intent: Intent,
    /// True when it was made, and the question is what became of it; false when it may be made.
    pub is_doubt: bool,
    /// Why it waits, a sentence.
    pub reason: String,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// The outcome.
    pub outcome: Outcome,
    /// What failed (a server, the model, the driver), as a sentence: the exit code says so too.
    pub failure: Option<String>,
    /// The signal that ended it.
    pub signal: Option<String>,
}
