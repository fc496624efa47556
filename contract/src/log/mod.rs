//! The lines of a run's journal: inputs (what happened) and outputs (what the engine derived from it).
//!
//! One line is one JSON object, keys in this order: `seq`, `group`, `at`, `ms`, `branch?`, `prev`, exactly one kind, `sum`.
//! `sum` is the SHA-256 of the line's bytes before `,"sum"`; `prev` is the `sum` of the line before, 64 zeros at first.

mod asking;
mod calling;
mod catalogue;
mod opening;
mod outside;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

pub use crate::line::{ChainVerifier, Line, LineProblem, LineWriter, PutBackProblem, parse_line, put_back};

pub use asking::{Ask, Message, Purpose, Reply, ReplyCall, ReplyEnd, Role};
pub use calling::{CallEnd, CallResult, Intent};
pub use catalogue::{Catalogue, Era, ServerCondition, ServerState, ToolDefinition};
pub use opening::{Capabilities, ConstraintKind, Leg, Open, Writer};
pub use outside::{Closed, Control, ControlSource, Decision, Observed, Timer};

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
