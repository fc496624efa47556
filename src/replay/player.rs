//! The loop of a replay: what the engine wants is looked up in the recording and told to it, until it has ended.

use std::collections::BTreeMap;

use mission_contract::event::{Event, Outcome};
use mission_contract::log::{
    CallEnd, CallResult, Catalogue, Closed, Control, ControlSource, Entry, Open, Purpose, Reply, ReplyEnd,
};
use mission_contract::replay::{Drift, ReplayVerdict};

use super::drift::Comparison;
use super::recording::{CallName, Outside, Recording, Source, call_name};
use crate::engine::effect::{Effect, Ending};
use crate::engine::run::{FoldError, Run, is_resumable};
use crate::redact::Redactor;

/// What came of a replay.
#[derive(Clone, Debug)]
pub struct Replayed {
    /// How the engine ended it.
    pub ending: Option<Ending>,
    /// Why it could not go on to an end of its own: the recording holds no more.
    pub ran_out: Option<String>,
    /// What the comparison with the recording comes to.
    pub verdict: ReplayVerdict,
    /// The first drift of each kind.
    pub drift: Vec<Drift>,
    /// Model turns that came to their end.
    pub steps: u64,
    /// Somebody ended it.
    pub cancelled: bool,
}

/// What the engine waits for.
#[derive(Debug)]
enum Waiting {
    Nothing,
    Reply { ordinal: u64, purpose: Purpose, nth: usize, is_aborted: bool },
    Result { ordinal: u64, call: CallName, nth: usize, is_cancelled: bool },
    List,
}

/// A replay that goes on.
pub struct Player<'r> {
    recording: &'r Recording,
    /// What is asked this time.
    open: Open,
    run: Run,
    redactor: Redactor,
    comparison: Comparison<'r>,
    waiting: Waiting,
    /// Of the recording's inputs from outside: the next one.
    outside: usize,
    replies: u64,
    results: u64,
    /// Ends of stretches, and calls that wait for a person, that were told so far.
    told: u64,
    /// Number of asks so far.
    asks: u64,
    asked: BTreeMap<Purpose, usize>,
    called: BTreeMap<CallName, usize>,
    /// The calls so far by their numbers: one that is made again under its number is the same one.
    made: BTreeMap<u64, usize>,
    seq: u64,
    ms: u64,
    ending: Option<Ending>,
    ran_out: Option<String>,
    /// A record has gone out.
    is_begun: bool,
}

impl<'r> Player<'r> {
    /// A replay of `recording`, asked `open`: what it was asked then, or a variation.
    pub fn new(recording: &'r Recording, open: Open, redactor: Redactor) -> Self {
        Self {
            recording,
            open,
            run: Run::default(),
            comparison: Comparison::new(recording, redactor.clone()),
            redactor,
            waiting: Waiting::Nothing,
            outside: 0,
            replies: 0,
            results: 0,
            told: 0,
            asks: 0,
            asked: BTreeMap::new(),
            called: BTreeMap::new(),
            made: BTreeMap::new(),
            seq: 0,
            ms: 0,
            ending: None,
            ran_out: None,
            is_begun: false,
        }
    }

    /// Tells the engine what comes next, and returns the records that it lets out, redacted; nothing once it is over.
    ///
    /// # Errors
    /// An input that this build's engine cannot take: the recording is not one that it could have made.
    pub fn advance(&mut self) -> Result<Option<Vec<Event>>, FoldError> {
        if let Some(outside) = self.due() {
            self.outside = self.outside.saturating_add(1);
            return self.tell_outside(outside).map(Some);
        }
        if self.ending.is_some() {
            self.comparison.end();
            return Ok(None);
        }
        match std::mem::replace(&mut self.waiting, Waiting::Nothing) {
            Waiting::Reply { ordinal, purpose, nth, is_aborted } => self.reply(ordinal, purpose, nth, is_aborted).map(Some),
            Waiting::Result { ordinal, call, nth, is_cancelled } => self.result(ordinal, &call, nth, is_cancelled).map(Some),
            Waiting::List => self.tell(Entry::Catalogue(Catalogue::default())).map(Some),
            Waiting::Nothing => {
                let place =
                    if self.run.awaits().is_some() { "at a gate that nobody decided" } else { "before the model was asked" };
                self.run_out(place.to_owned()).map(Some)
            }
        }
    }

    /// Milliseconds of the run's own time.
    pub fn ms(&self) -> u64 {
        self.ms
    }

    /// What came of it so far.
    pub fn replayed(&self) -> Replayed {
        Replayed {
            ending: self.ending.clone(),
            ran_out: self.ran_out.clone(),
            verdict: self.comparison.verdict(),
            drift: self.comparison.drift().to_vec(),
            steps: self.run.steps(),
            cancelled: self.run.is_cancelled(),
        }
    }

    /// Somebody ends the replay itself. Nothing is compared any more.
    ///
    /// # Errors
    /// When the engine cannot take it.
    pub fn cancel(&mut self, signal: &str) -> Result<Vec<Event>, FoldError> {
        self.comparison.stop();
        // What would still come from outside is not waited for.
        self.outside = self.recording.outside.len();
        if self.ending.is_some() {
            return Ok(Vec::new());
        }
        let signal = Some(signal.to_owned());
        if !self.is_begun {
            // No record has gone out, so none has to say how it ended.
            self.ending = Some(Ending { outcome: Outcome::Incomplete, failure: None, signal });
            return Ok(Vec::new());
        }
        let word = "cancel".to_owned();
        let mut events =
            self.tell(Entry::Control(Control { word, source: ControlSource::Signal, signal, ..Control::default() }))?;
        events.extend(match std::mem::replace(&mut self.waiting, Waiting::Nothing) {
            Waiting::Reply { ordinal, .. } => self.tell(Entry::Reply(interrupted(ordinal)))?,
            Waiting::Result { ordinal, .. } => self.tell(Entry::Result(cancelled(ordinal)))?,
            Waiting::List | Waiting::Nothing => Vec::new(),
        });
        Ok(events)
    }

    /// The next input from outside, when its time has come: as many replies and results were given as before it in the recording. While a
    /// reply is waited for no result can come.
    fn due(&self) -> Option<&'r Outside> {
        let next = self.recording.outside.get(self.outside)?;
        if self.ending.is_some() {
            // A run that had ended was carried on.
            return matches!(next.entry, Entry::Writer(_)).then_some(next);
        }
        let is_due = match self.waiting {
            Waiting::Result { .. } => {
                next.replies < self.replies || (next.replies == self.replies && next.results <= self.results)
            }
            Waiting::Nothing | Waiting::Reply { .. } | Waiting::List => next.replies <= self.replies,
        };
        is_due.then_some(next)
    }

    fn tell_outside(&mut self, outside: &'r Outside) -> Result<Vec<Event>, FoldError> {
        (self.seq, self.ms) = (outside.seq, self.ms.max(outside.ms));
        if let Entry::Open(_) = outside.entry {
            let open = Entry::Open(Box::new(self.open.clone()));
            return self.tell(open);
        }
        if let (Entry::Catalogue(_), Waiting::List) = (&outside.entry, &self.waiting) {
            self.waiting = Waiting::Nothing;
        }
        let ended = self.ending.clone();
        if let Entry::Writer(_) = outside.entry {
            self.ending = None;
            // What was in flight is gone with its process; whether a call could have been made is what the log says.
            if let Waiting::Result { ordinal, .. } = std::mem::replace(&mut self.waiting, Waiting::Nothing)
                && ordinal <= outside.intents
            {
                self.run.intended();
            }
        }
        let told = self.apply(&outside.entry);
        if self.run.outcome().is_some() && self.ending.is_none() {
            // It was over: whoever took it up only wrote down what its process had no time to.
            self.ending = ended;
        }
        match told {
            // After a drift it may come where it makes no sense.
            Err(FoldError::OutOfPlace { .. }) if self.comparison.verdict() == ReplayVerdict::Decision => Ok(Vec::new()),
            told => told,
        }
    }

    fn reply(&mut self, ordinal: u64, purpose: Purpose, nth: usize, is_aborted: bool) -> Result<Vec<Event>, FoldError> {
        let recorded = self.recording.replies.get(&purpose).and_then(|all| all.get(nth)).and_then(Option::as_ref);
        let reply = match recorded {
            Some(heard) => {
                (self.seq, self.ms) = (heard.seq, self.ms.max(heard.ms));
                Reply { of: ordinal, ..heard.what.clone() }
            }
            None if is_aborted => interrupted(ordinal),
            None => return self.run_out(format!("where the model is asked for the {} time", nth_word(nth))),
        };
        self.replies = self.replies.saturating_add(1);
        self.tell(Entry::Reply(reply))
    }

    fn result(&mut self, ordinal: u64, call: &CallName, nth: usize, is_cancelled: bool) -> Result<Vec<Event>, FoldError> {
        let recorded = self.recording.results.get(call).and_then(|all| all.get(nth));
        let result = match recorded {
            Some(Some(heard)) => {
                (self.seq, self.ms) = (heard.seq, self.ms.max(heard.ms));
                CallResult { of: ordinal, ..heard.what.clone() }
            }
            _ if is_cancelled => cancelled(ordinal),
            // It was made, and nothing came back before the recording ends.
            Some(None) => return self.run_out(format!("in a call of `{}`", call.0)),
            None => {
                let times = if nth == 0 { "no result" } else { "no further result" };
                let error = format!("not_in_recording: the recording holds {times} of `{}` with these arguments.", call.0);
                CallResult { of: ordinal, end: CallEnd::Protocol, exit_code: -1, error, ..CallResult::default() }
            }
        };
        self.results = self.results.saturating_add(1);
        self.tell(Entry::Result(result))
    }

    /// The recording holds no more: the run is closed here. That is a drift where the recorded run had gone on to an end of its own.
    fn run_out(&mut self, place: String) -> Result<Vec<Event>, FoldError> {
        if self.ends_from_outside() {
            self.comparison.stop();
        }
        let detail = format!("The recording ends {place}.");
        self.ran_out = Some(detail.clone());
        self.outside = self.recording.outside.len();
        let told = self.tell(Entry::Closed(Closed { by: "replay".to_owned(), detail: Some(detail) }))?;
        if self.ending.is_none() {
            // The engine has nothing to end: no replay goes on for ever.
            self.ending = Some(Ending { outcome: Outcome::Incomplete, failure: None, signal: None });
        }
        Ok(told)
    }

    /// Whether the recorded run ended by something that a recording cannot hold: it was killed, or a foreign one ended by its clock, its
    /// model or a crash.
    fn ends_from_outside(&self) -> bool {
        let Some(ending) = self.recording.ending() else { return true };
        let is = |name: &str, word: &str| ending.get(name).is_some_and(|value| value == word);
        let by_clock = ending.get("budget").and_then(|budget| budget.get("which")).is_some_and(|which| which == "seconds");
        self.recording.source == Source::Seed2 && (is("outcome", "incomplete") || is("outcome", "awaiting_approval") || by_clock)
    }

    fn tell(&mut self, entry: Entry) -> Result<Vec<Event>, FoldError> {
        self.apply(&entry)
    }

    fn apply(&mut self, entry: &Entry) -> Result<Vec<Event>, FoldError> {
        let mut events = Vec::new();
        for effect in self.run.apply(self.seq, self.ms, entry)? {
            match effect {
                Effect::Emit { mut event, .. } => {
                    self.is_begun = true;
                    self.redactor.event(&mut event);
                    if self.was_untold(&event) {
                        continue;
                    }
                    self.comparison.record(&event);
                    // One ending a process: that of a stretch that was carried on is passed over.
                    let is_last = !self.is_carried_on() || self.run.outcome().is_some_and(|outcome| !is_resumable(outcome));
                    if is_last || !matches!(*event, Event::MissionFinished(_)) {
                        events.push(*event);
                    }
                }
                Effect::Ask { ask, .. } => {
                    self.comparison.ask(&ask);
                    let nth = count(&mut self.asked, ask.purpose);
                    self.asks = self.asks.saturating_add(1);
                    let (ordinal, purpose) = (self.asks, ask.purpose);
                    self.waiting = Waiting::Reply { ordinal, purpose, nth, is_aborted: false };
                }
                Effect::Dispatch { intent, dispatch } => {
                    if !self.was_lost(dispatch.ordinal) {
                        self.comparison.intent(&intent);
                    }
                    let call = call_name(&intent.tool, &intent.arguments);
                    let (ordinal, called) = (dispatch.ordinal, &mut self.called);
                    let nth = *self.made.entry(ordinal).or_insert_with(|| count(called, call.clone()));
                    self.waiting = Waiting::Result { ordinal, call, nth, is_cancelled: false };
                }
                Effect::AbortAsk | Effect::CutAsk => {
                    if let Waiting::Reply { is_aborted, .. } = &mut self.waiting {
                        *is_aborted = true;
                    }
                }
                Effect::CancelCall => {
                    if let Waiting::Result { is_cancelled, .. } = &mut self.waiting {
                        *is_cancelled = true;
                    }
                }
                // Nobody is asked again: what was said is in the recording.
                Effect::Arm { .. }
                | Effect::Audit(_)
                | Effect::OpenGate(_)
                | Effect::AwaitDecision { .. }
                | Effect::LeaveGate
                | Effect::Claim { .. } => {}
                Effect::ListAgain => self.waiting = Waiting::List,
                Effect::Finish(ending) => {
                    self.waiting = Waiting::Nothing;
                    self.ending = Some(ending);
                }
            }
        }
        Ok(events)
    }

    /// Whether the recorded run was killed, or closed, before the intent of this number was written: whoever carried it on made the call, and
    /// wrote it.
    fn was_lost(&self, ordinal: u64) -> bool {
        let ends = |outside: &&Outside| matches!(outside.entry, Entry::Writer(_) | Entry::Closed(_));
        let next = self.recording.outside.iter().skip(self.outside).find(ends);
        next.is_some_and(|next| (next.replies, next.results) <= (self.replies, self.results) && next.intents < ordinal)
    }

    /// Whether the recorded run was killed before the end of its stretch, or the call that waits for a person, was written: to whoever carried
    /// it on, the end had not happened, and the call was told then.
    fn was_untold(&mut self, event: &Event) -> bool {
        let is_gate = matches!(event, Event::GateRequested(_));
        if !is_gate && !matches!(event, Event::MissionFinished(finished) if is_resumable(finished.outcome)) {
            return false;
        }
        if self.next_writer().is_some_and(|next| next.told <= self.told) {
            if is_gate {
                self.run.untold_gate();
            }
            return true;
        }
        self.told = self.told.saturating_add(1);
        false
    }

    fn is_carried_on(&self) -> bool {
        self.next_writer().is_some()
    }

    /// Where the next process takes over.
    fn next_writer(&self) -> Option<&'r Outside> {
        self.recording.outside.iter().skip(self.outside).find(|outside| matches!(outside.entry, Entry::Writer(_)))
    }
}

/// The number of times before.
fn count<K: Ord>(counts: &mut BTreeMap<K, usize>, key: K) -> usize {
    let count = counts.entry(key).or_default();
    let before = *count;
    *count = before.saturating_add(1);
    before
}

fn nth_word(nth: usize) -> String {
    let number = nth.saturating_add(1);
    let ending = match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}

fn interrupted(of: u64) -> Reply {
    Reply { of, end: ReplyEnd::Interrupted, ..Reply::default() }
}

fn cancelled(of: u64) -> CallResult {
    let error = "The call was given up before it came back.".to_owned();
    CallResult { of, end: CallEnd::Cancelled, exit_code: -1, error, ..CallResult::default() }
}

#[cfg(test)]
#[path = "player_tests.rs"]
mod tests;
