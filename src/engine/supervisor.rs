//! Watching over progress: patterns in what a run did, when they call for a review, and what a review says.
//!
//! It sees digests of calls and results and counts; it asks nobody and decides nothing about the run.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::Deserialize;
use serde_json::value::RawValue;

use super::signal::Signal;
use super::words;
use crate::limits::{
    DECISION_CANDIDATES, REVIEW_ACTS, REVIEW_NOTE_CHARACTERS, REVIEW_REFUNDS, REVIEWS, SIGNAL_OSCILLATION, SIGNAL_REJECTED,
    SIGNAL_REPEATS, SIGNAL_SAME_REPLY, SIGNAL_STALE, size,
};

/// What a review says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on as it was.
    Progressing,
    /// It is told what to do differently.
    Nudge,
    /// It is to answer with what it has.
    Stuck,
}

impl Verdict {
    /// Its word on the wire.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Progressing => "progressing",
            Verdict::Nudge => "nudge",
            Verdict::Stuck => "stuck",
        }
    }
}

/// A review that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reviewed {
    /// What called for it.
    pub signal: Signal,
    /// What it says.
    pub verdict: Verdict,
    /// Reviews that remain.
    pub left: u64,
    /// In the reviewer's words.
    pub note: Option<String>,
}

/// A call that came back.
#[derive(Clone, Debug)]
struct Act {
    tool: String,
    call: String,
    result: String,
    ok: bool,
    /// The beginning of what came back.
    excerpt: String,
}

/// A step that is over.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    rejections: u64,
    acts: u64,
    /// An act in it was a new call, or brought a new result.
    is_new: bool,
}

/// What has been seen of a run.
#[derive(Debug)]
pub struct Watch {
    /// The last acts; those from `floor` on count.
    acts: VecDeque<Act>,
    floor: usize,
    steps: VecDeque<Seen>,
    now: Seen,
    /// Calls with what came of them.
    known: BTreeSet<(String, String)>,
    /// How often each pattern has to be seen by now.
    thresholds: BTreeMap<Signal, u64>,
    left: u64,
    refunds: u64,
    /// The last reply that nothing could be read from, and how often in a row.
    unreadable: Option<(String, u64)>,
    /// A shape was demanded since the last act.
    was_constrained: bool,
    rejections: u64,
}

impl Default for Watch {
    fn default() -> Self {
        Self {
            acts: VecDeque::new(),
            floor: 0,
            steps: VecDeque::new(),
            now: Seen::default(),
            known: BTreeSet::new(),
            thresholds: BTreeMap::new(),
            left: REVIEWS,
            refunds: REVIEW_REFUNDS,
            unreadable: None,
            was_constrained: false,
            rejections: 0,
        }
    }
}

impl Watch {
    /// A call came back. `call` and `result` are equal where the calls and the results are.
    pub fn acted(&mut self, tool: &str, call: &str, result: &str, ok: bool, text: &str) {
        self.now.acts = self.now.acts.saturating_add(1);
        self.now.is_new |= self.known.insert((call.to_owned(), result.to_owned()));
        let excerpt = text.chars().take(size(REVIEW_NOTE_CHARACTERS)).collect();
        self.acts.push_back(Act { tool: tool.to_owned(), call: call.to_owned(), result: result.to_owned(), ok, excerpt });
        (self.unreadable, self.was_constrained) = (None, false);
        // The largest window is that of repeated calls under the threshold as it is now.
        let most = size(
            self.threshold(Signal::RepeatedCall).max(self.threshold(Signal::Oscillation)).saturating_mul(2).max(REVIEW_ACTS),
        );
        while self.acts.len() > most {
            self.acts.pop_front();
            self.floor = self.floor.saturating_sub(1);
        }
    }

    /// A reply, or a call in it, was rejected.
    pub fn rejected(&mut self) {
        self.now.rejections = self.now.rejections.saturating_add(1);
        self.rejections = self.rejections.saturating_add(1);
    }

    /// Nothing could be read from a reply.
    pub fn unreadable(&mut self, reply: &str) {
        self.unreadable = match self.unreadable.take() {
            Some((last, times)) if last == reply => Some((last, times.saturating_add(1))),
            _ => Some((reply.to_owned(), 1)),
        };
    }

    /// A step is over.
    pub fn step_over(&mut self) {
        self.steps.push_back(std::mem::take(&mut self.now));
        let most = size(self.threshold(Signal::RejectedReplies).max(self.threshold(Signal::NoNewEvidence)));
        while self.steps.len() > most {
            self.steps.pop_front();
        }
    }

    /// Whether the model says the same nothing again and again, and a shape has not been demanded for it: it is now.
    pub fn demands_shape(&mut self) -> bool {
        let is_due = self.unreadable.as_ref().is_some_and(|(_, times)| *times >= SIGNAL_SAME_REPLY) && !self.was_constrained;
        if is_due {
            self.was_constrained = true;
            self.look_from_here();
        }
        is_due
    }

    /// The pattern that is there, the first of several.
    pub fn signal(&self) -> Option<Signal> {
        let acts: Vec<&Act> = self.acts.iter().skip(self.floor).collect();
        let last = |count: u64| acts.get(acts.len().checked_sub(size(count))?..);
        let repeats = self.threshold(Signal::RepeatedCall);
        let window = acts.get(acts.len().saturating_sub(size(repeats.saturating_mul(2)))..).unwrap_or_default();
        let same = |one: &Act| window.iter().filter(|act| act.call == one.call && act.result == one.result).count();
        if window.iter().any(|act| same(act) >= size(repeats)) {
            return Some(Signal::RepeatedCall);
        }
        let steps = |count: u64| self.steps.iter().rev().take(size(count)).collect::<Vec<_>>();
        let rejected = self.threshold(Signal::RejectedReplies);
        let no_use = steps(rejected);
        if no_use.len() == size(rejected) && no_use.iter().all(|step| step.rejections > 0 && step.acts == 0) {
            return Some(Signal::RejectedReplies);
        }
        if let Some(turns) = last(self.threshold(Signal::Oscillation))
            && let [first, second, ..] = turns
            && first.call != second.call
            && turns.iter().zip(turns.iter().skip(2)).all(|(act, next)| act.call == next.call)
        {
            return Some(Signal::Oscillation);
        }
        let stale = self.threshold(Signal::NoNewEvidence);
        let old = steps(stale);
        (old.len() == size(stale) && old.iter().all(|step| !step.is_new)).then_some(Signal::NoNewEvidence)
    }

    /// Only what comes from here on counts.
    pub fn look_from_here(&mut self) {
        self.floor = self.acts.len();
        self.steps.clear();
    }

    /// What a reviewer is asked about `signal`: its frame, and the question. Nothing when no review is left.
    pub fn question(&self, signal: Signal, objective: &str) -> Option<(String, String)> {
        if self.left == 0 {
            return None;
        }
        let acts: Vec<String> = self
            .acts
            .iter()
            .rev()
            .take(size(REVIEW_ACTS))
            .map(|act| words::reviewed_act(&act.tool, act.ok, &act.excerpt))
            .collect::<Vec<_>>()
            .into_iter()
            .rev()
            .collect();
        let frame = words::review_frame(self.may_progress(signal));
        Some((frame, words::review_question(objective, &acts, self.rejections, signal)))
    }

    /// Whether the next review about `signal` may say that the run gets on.
    fn may_progress(&self, signal: Signal) -> bool {
        self.left > 1 || (signal == Signal::NoNewEvidence && self.refunds > 0)
    }

    /// Takes what a reviewer replied: nothing that can be read is "progressing", and the review is spent all the same. Where there was
    /// nobody left to ask, the run is stuck.
    pub fn reviewed(&mut self, signal: Signal, reply: Option<&str>) -> Reviewed {
        self.look_from_here();
        if self.left == 0 {
            return Reviewed { signal, verdict: Verdict::Stuck, left: 0, note: None };
        }
        let (said, note) = reply.and_then(read).unwrap_or((Verdict::Progressing, None));
        let may_progress = self.may_progress(signal);
        self.left = self.left.saturating_sub(1);
        let verdict = if said == Verdict::Progressing && !may_progress { Verdict::Stuck } else { said };
        if verdict == Verdict::Progressing {
            let raised = self.threshold(signal).saturating_add(base(signal));
            self.thresholds.insert(signal, raised);
            if signal == Signal::NoNewEvidence && self.refunds > 0 {
                (self.refunds, self.left) = (self.refunds.saturating_sub(1), self.left.saturating_add(1));
            }
        }
        Reviewed { signal, verdict, left: self.left, note }
    }

    fn threshold(&self, signal: Signal) -> u64 {
        self.thresholds.get(&signal).copied().unwrap_or(base(signal))
    }
}

/// What a reviewer wrote.
#[derive(Deserialize)]
struct Said {
    verdict: String,
    #[serde(default)]
    note: Option<String>,
}

/// A verdict in a reply: an object alone, fenced, or in prose.
fn read(text: &str) -> Option<(Verdict, Option<String>)> {
    let starts = text.match_indices('{').map(|(start, _)| start).take(size(DECISION_CANDIDATES));
    starts.filter_map(|start| text.get(start..)).find_map(|rest| {
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<&RawValue>();
        let said: Said = serde_json::from_str(values.next()?.ok()?.get()).ok()?;
        let verdict = match said.verdict.trim().to_lowercase().as_str() {
            "progressing" => Verdict::Progressing,
            "nudge" => Verdict::Nudge,
            "stuck" => Verdict::Stuck,
            _ => return None,
        };
        let note =
            said.note.map(|note| note.trim().chars().take(size(REVIEW_NOTE_CHARACTERS.saturating_mul(10))).collect::<String>());
        Some((verdict, note.filter(|note| !note.is_empty())))
    })
}

/// How often a pattern has to be seen the first time.
fn base(signal: Signal) -> u64 {
    match signal {
        Signal::RepeatedCall => SIGNAL_REPEATS,
        Signal::RejectedReplies => SIGNAL_REJECTED,
        Signal::Oscillation => SIGNAL_OSCILLATION,
        Signal::NoNewEvidence => SIGNAL_STALE,
    }
}

#[cfg(test)]
#[path = "supervisor_tests.rs"]
mod tests;
