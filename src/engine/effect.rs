//! What the engine wants done. The driver does it, in this order, and nothing else.

use mission_contract::audit::Verdict;
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
    /// Write down what becomes of a call. One that is about to go out ([`Audited::is_outgoing`]) is dispatched by the next effect, and not
    /// before this is written: where it cannot be, it is not dispatched at all.
    Audit(Box<Audited>),
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

/// What an audit file says of a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Audited {
    /// The tool's full name; as the model spelt it where there is none.
    pub tool: String,
    /// What it was to do, where its scopes depend on that.
    pub action: Option<String>,
    /// The scopes that the call needs.
    pub scopes: Vec<String>,
    /// The rule that decided.
    pub rule: String,
    /// What became of it so far.
    pub verdict: Verdict,
    /// Why it is refused.
    pub reason: Option<String>,
    /// The step in which it was proposed.
    pub step: u64,
    /// The key of one that goes out.
    pub key: Option<String>,
    /// The approval that decided, and who gave it.
    pub approval: Option<(String, String)>,
    /// SHA-256 of the canonical arguments.
    pub arguments_digest: String,
    /// What came of one that the engine answered itself.
    pub made: Option<Made>,
}

impl Audited {
    /// It is about to be dispatched.
    pub fn is_outgoing(&self) -> bool {
        self.key.is_some()
    }
}

/// What came of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// As in its `tool_result`.
    pub exit_code: i64,
    /// Bytes of its text.
    pub bytes: u64,
    /// SHA-256 of its text.
    pub digest: String,
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
