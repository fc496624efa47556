//! A recorded run in memory: what was asked, what came in and when, and what came out.

use std::collections::BTreeMap;

use mission_contract::LOG_FORMAT;
use mission_contract::canonical;
use mission_contract::event::Arguments;
use mission_contract::log::{Ask, CallResult, Entry, Intent, Line, Open, Purpose, Reply};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::fields::{Part, part};
use crate::engine::behaviours;

/// Why a recording cannot be replayed: what, where, and the fix.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    /// Its files cannot be read to their end, or do not make a run.
    #[error("{0}")]
    Unreadable(String),
    /// A file of it has something wrong in a line.
    #[error("line {line} of {file}: {problem}")]
    Line {
        /// The file.
        file: String,
        /// The line, from 1.
        line: u64,
        /// What is wrong there.
        problem: String,
    },
    /// It needs what this build does not have.
    #[error("{name} cannot be replayed by this build: {problem}")]
    Unsupported {
        /// The recording.
        name: String,
        /// What it needs.
        problem: String,
    },
}

/// Who recorded a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// `mission`: its log.
    Mission,
    /// The harness that it replaces. Its texts are others, and are not compared.
    Seed2,
}

impl Source {
    /// Its word.
    pub fn name(self) -> &'static str {
        match self {
            Source::Mission => "mission",
            Source::Seed2 => "seed2",
        }
    }
}

/// A recorded run.
#[derive(Debug)]
pub struct Recording {
    /// As it was named.
    pub name: String,
    /// Who recorded it.
    pub source: Source,
    /// What was asked.
    pub open: Open,
    /// Whether it ended: a run that was killed has no ending.
    pub is_finished: bool,
    /// What came from outside the turns, `open` first.
    pub(super) outside: Vec<Outside>,
    /// What each ask of a purpose was answered with; nothing where no answer came any more.
    pub(super) replies: BTreeMap<Purpose, Vec<Option<Heard<Reply>>>>,
    /// What each call was answered with; the same.
    pub(super) results: BTreeMap<CallName, Vec<Option<Heard<CallResult>>>>,
    /// What came out, step by step.
    pub(super) groups: Vec<Group>,
}

/// An input that is no reply and no result, and after how many of those it came.
#[derive(Debug)]
pub(super) struct Outside {
    /// Intents before it.
    pub(super) intents: u64,
    pub(super) replies: u64,
    pub(super) results: u64,
    /// Ends of stretches, and calls that wait for a person, that were told before it.
    pub(super) told: u64,
    pub(super) seq: u64,
    pub(super) ms: u64,
    pub(super) entry: Entry,
}

/// A reply or a result, and where it stands.
#[derive(Debug)]
pub(super) struct Heard<T> {
    pub(super) seq: u64,
    pub(super) ms: u64,
    pub(super) what: T,
}

/// What tells one call from another: the tool's full name and the canonical arguments.
pub(super) type CallName = (String, String);

/// The name of a call.
pub(super) fn call_name(tool: &str, arguments: &Arguments) -> CallName {
    (tool.to_owned(), canonical::of_value(&Value::Object(arguments.clone())))
}

/// What came out between two `step_started`, by kind: what is told is compared apart from what is decided.
#[derive(Debug, Default)]
pub(super) struct Group {
    pub(super) step: Option<u64>,
    pub(super) decisions: Vec<Told>,
    pub(super) told: Vec<Told>,
    pub(super) asks: Vec<(u64, Ask)>,
    pub(super) intents: Vec<(u64, Intent)>,
}

/// A record, and where it stands.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) seq: u64,
    pub(super) record: Box<RawValue>,
}

impl Told {
    /// Its fields.
    pub(super) fn fields(&self) -> Map<String, Value> {
        serde_json::from_str(self.record.get()).unwrap_or_default()
    }
}

impl Recording {
    /// Takes up the lines of one of our logs, as its reader yields them.
    ///
    /// # Errors
    /// When the log cannot be read to its end, is none, or was written by a build that decides by rules unknown here.
    pub fn from_log<E: std::fmt::Display>(
        name: &str,
        lines: impl IntoIterator<Item = Result<Line, E>>,
    ) -> Result<Self, RecordingError> {
        let mut builder = Builder::new(name, Source::Mission);
        for line in lines {
            let line = line.map_err(|error| RecordingError::Unreadable(error.to_string()))?;
            builder.take(line.seq, line.ms, line.entry).map_err(|problem| RecordingError::Line {
                file: format!("the log of {name}"),
                line: line.seq,
                problem,
            })?;
        }
        builder.finish()
    }

    /// The full names of the tools that were there when the run began.
    pub fn tools(&self) -> Vec<String> {
        let first = self.outside.iter().find_map(|outside| match &outside.entry {
            Entry::Catalogue(catalogue) => Some(catalogue),
            _ => None,
        });
        first.map(|catalogue| catalogue.tools.iter().map(|tool| tool.full_name()).collect()).unwrap_or_default()
    }

    /// How it ended, where it did.
    pub(super) fn ending(&self) -> Option<Map<String, Value>> {
        self.is_finished.then(|| last(&self.groups))?
    }
}

/// Puts a recording together, line by line.
pub(super) struct Builder {
    name: String,
    source: Source,
    open: Option<Open>,
    outside: Vec<Outside>,
    asks: Vec<(Purpose, Option<Heard<Reply>>)>,
    calls: Vec<(CallName, Option<Heard<CallResult>>)>,
    replies: u64,
    results: u64,
    told: u64,
    /// Those before the one that goes on.
    groups: Vec<Group>,
    group: Group,
}

impl Builder {
    pub(super) fn new(name: &str, source: Source) -> Self {
        Self {
            name: name.to_owned(),
            source,
            open: None,
            outside: Vec::new(),
            asks: Vec::new(),
            calls: Vec::new(),
            replies: 0,
            results: 0,
            told: 0,
            groups: Vec::new(),
            group: Group::default(),
        }
    }

    /// Takes up a line. The error says what is wrong with it.
    pub(super) fn take(&mut self, seq: u64, ms: u64, entry: Entry) -> Result<(), String> {
        match entry {
            Entry::Reply(reply) => {
                self.replies = self.replies.saturating_add(1);
                let of = reply.of;
                let heard = Heard { seq, ms, what: reply };
                place(&mut self.asks, of, heard).ok_or_else(|| format!("a reply answers ask {of}, which was not made"))
            }
            Entry::Result(result) => {
                self.results = self.results.saturating_add(1);
                let of = result.of;
                let heard = Heard { seq, ms, what: result };
                place(&mut self.calls, of, heard).ok_or_else(|| format!("a result answers call {of}, which was not made"))
            }
            Entry::Ask(ask) => {
                self.asks.push((ask.purpose, None));
                self.group.asks.push((seq, ask));
                Ok(())
            }
            Entry::Intent(intent) => {
                self.calls.push((call_name(&intent.tool, &intent.arguments), None));
                self.group.intents.push((seq, intent));
                Ok(())
            }
            Entry::Record(record) => self.record(seq, record),
            Entry::Open(open) => {
                if self.open.is_some() {
                    return Err("the run is opened a second time".to_owned());
                }
                self.open = Some(open.as_ref().clone());
                self.outside(seq, ms, Entry::Open(open));
                Ok(())
            }
            entry => {
                self.outside(seq, ms, entry);
                Ok(())
            }
        }
    }

    fn outside(&mut self, seq: u64, ms: u64, entry: Entry) {
        let intents = u64::try_from(self.calls.len()).unwrap_or(u64::MAX);
        let (replies, results, told) = (self.replies, self.results, self.told);
        self.outside.push(Outside { intents, replies, results, told, seq, ms, entry });
    }

    fn record(&mut self, seq: u64, record: Box<RawValue>) -> Result<(), String> {
        #[derive(serde::Deserialize)]
        struct Head<'r> {
            #[serde(borrow)]
            event: std::borrow::Cow<'r, str>,
            index: Option<Value>,
        }
        let head: Head<'_> = serde_json::from_str(record.get()).map_err(|error| format!("a record cannot be read ({error})"))?;
        let (part, step) = (part(&head.event, self.source), head.index.as_ref().and_then(Value::as_u64));
        if head.event == "step_started" {
            let before = std::mem::replace(&mut self.group, Group { step, ..Group::default() });
            self.groups.push(before);
        }
        if head.event == "mission_finished" || head.event == "gate_requested" {
            self.told = self.told.saturating_add(1);
        }
        let told = Told { seq, record };
        match part {
            Part::Decides => self.group.decisions.push(told),
            Part::Tells => self.group.told.push(told),
            Part::Neither => {}
        }
        Ok(())
    }

    /// The recording.
    pub(super) fn finish(self) -> Result<Recording, RecordingError> {
        let Some(open) = self.open else {
            return Err(RecordingError::Unreadable(format!("{} holds no run: its first line is missing", self.name)));
        };
        let unsupported = |problem| RecordingError::Unsupported { name: self.name.clone(), problem };
        if open.format != LOG_FORMAT {
            return Err(unsupported(format!("its log has format {}, and this build reads {LOG_FORMAT}", open.format)));
        }
        if let Some(flag) = behaviours::unknown(&open.behaviours) {
            return Err(unsupported(format!(
                "it was decided by behaviour {flag}, which build {} knew and this one does not; replay it with that build",
                open.build
            )));
        }
        let mut groups = self.groups;
        groups.push(self.group);
        let mut replies: BTreeMap<Purpose, Vec<_>> = BTreeMap::new();
        for (purpose, heard) in self.asks {
            replies.entry(purpose).or_default().push(heard);
        }
        let mut results: BTreeMap<CallName, Vec<_>> = BTreeMap::new();
        for (call, heard) in self.calls {
            results.entry(call).or_default().push(heard);
        }
        Ok(Recording {
            name: self.name,
            source: self.source,
            open,
            is_finished: is_finished(&groups),
            outside: self.outside,
            replies,
            results,
            groups,
        })
    }
}

/// The last thing that was decided.
fn last(groups: &[Group]) -> Option<Map<String, Value>> {
    Some(groups.last()?.decisions.last()?.fields())
}

fn is_finished(groups: &[Group]) -> bool {
    last(groups).is_some_and(|last| last.get("event").is_some_and(|event| event == "mission_finished"))
}

/// Puts what came in with what it answers, by its number from 1.
fn place<K, T>(asked: &mut [(K, Option<T>)], of: u64, heard: T) -> Option<()> {
    let at = usize::try_from(of.checked_sub(1)?).ok()?;
    asked.get_mut(at)?.1 = Some(heard);
    Some(())
}
