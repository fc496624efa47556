//! What is said to a run from outside while it goes on: words of the control channel, signals, a reader that went away.

use mission_contract::event::Event;
use mission_contract::event::Notice;
use mission_contract::log::{Control, Message, Reply, Role};

use super::calls::Finished;
use super::phase::{About, Gated, Phase};
use super::{Run, said};
use crate::engine::effect::Effect;
use crate::engine::words;
use crate::limits;

/// What becomes of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// It takes effect now.
    Applied,
    /// It is put in front of the model the next time it is asked.
    Queued,
    /// There is nothing left that it could do.
    Late,
    /// It cannot be used.
    Refused,
    /// More was said than the run takes.
    Dropped,
}

impl Disposition {
    /// Its word on the wire.
    pub fn word(self) -> &'static str {
        match self {
            Disposition::Applied => "applied",
            Disposition::Queued => "queued",
            Disposition::Late => "late",
            Disposition::Refused => "refused",
            Disposition::Dropped => "dropped",
        }
    }
}

/// What would become of a word now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// As it is told.
    pub disposition: Disposition,
    /// Whether it changes anything: what does not is no input.
    pub counts: bool,
}

/// What a run is doing, for whoever sees nothing of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// A word of the contract's list.
    pub state: &'static str,
    /// The model, the tool or the approval that it waits for.
    pub waiting_on: String,
    /// Tells one wait from the next one for the same thing.
    number: (u64, u64),
}

/// What was said and not acted upon yet.
#[derive(Debug, Default)]
pub(super) struct Said {
    /// User turns, in the order in which the model is to have them.
    texts: Vec<String>,
    /// How many of them, from the front, do not wait for others.
    steers: usize,
    /// Why calls that were not made yet are skipped.
    skip: Option<Skip>,
    /// A step was to be skipped of which nothing was left.
    is_late: bool,
    /// The ask in flight was given up for what was said.
    is_steered: bool,
}

/// Why calls are skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Skip {
    Cancelled,
    Steered,
}

impl Skip {
    fn why(self) -> &'static str {
        match self {
            Skip::Cancelled => words::STEP_CANCELLED,
            Skip::Steered => words::STEERED,
        }
    }
}

impl Said {
    fn has_room(&self, text: &str) -> bool {
        let bytes = self.texts.iter().fold(text.len(), |sum, text| sum.saturating_add(text.len()));
        self.texts.len() < limits::size(limits::CONTROL_WAITING) && bytes <= limits::size(limits::CONTROL_WAITING_BYTES)
    }

    /// A later stretch begins: what was said is still to be heard; what was to be skipped went with the process before.
    pub(super) fn taken_over(&mut self) {
        (self.skip, self.is_late, self.is_steered) = (None, false, false);
    }
}

/// The words that this build knows.
const WORDS: &[&str] = &["inject", "cancel", "cancel_step", "gate_decision", "steer"];

/// Whether a word is one that a log of this build may hold.
pub(super) fn is_known(word: &str) -> bool {
    WORDS.contains(&word)
}

impl Run {
    /// What would become of a word now. Says nothing and changes nothing.
    pub fn weigh(&self, control: &Control) -> Verdict {
        use Disposition::{Applied, Dropped, Late, Queued, Refused};
        let is = |disposition, counts| Verdict { disposition, counts };
        let is_ending = self.stop.is_some() || matches!(self.phase, Phase::Ended { .. });
        let text = control.text.as_deref().unwrap_or_default();
        match (control.word.as_str(), &self.phase) {
            ("gate_decision", Phase::Gated(gated)) => {
                let is_asked = gated.about != About::Claim && control.approval_id.as_ref() == Some(&gated.approval_id);
                if is_asked && !is_ending { is(Applied, true) } else { is(Refused, false) }
            }
            ("gate_decision", _) => is(Refused, false),
            ("cancel" | "inject" | "steer" | "cancel_step", _) if is_ending => is(Late, false),
            ("cancel", _) => is(Applied, true),
            ("inject" | "steer", _) if !self.said.has_room(text) => is(Dropped, false),
            ("steer", Phase::Asking { .. }) => is(Applied, true),
            ("inject" | "steer", _) => is(Queued, true),
            ("cancel_step", Phase::Asking { .. }) => is(Applied, true),
            ("cancel_step", Phase::Gated(gated)) if gated.about != About::Claim => is(Applied, true),
            ("cancel_step", Phase::Calling { .. }) if !self.turn.queue.is_empty() => is(Applied, true),
            ("cancel_step", Phase::Calling { .. } | Phase::Listening | Phase::Gated(_)) => is(Late, true),
            ("cancel_step", _) => is(Late, false),
            _ => is(Refused, false),
        }
    }

    /// The approval that a decision is waited for, here and now.
    pub fn waits_for_decision(&self) -> Option<&str> {
        match &self.phase {
            Phase::Gated(gated) if gated.about != About::Claim => Some(&gated.approval_id),
            _ => None,
        }
    }

    /// Whether somebody ended the run.
    pub fn is_cancelled(&self) -> bool {
        self.stop.is_some()
    }

    /// What it is doing.
    pub fn standing(&self) -> Standing {
        let (state, waiting_on) = match &self.phase {
            Phase::Asking { .. } if self.leg.model.is_empty() => ("asking", self.leg.provider.clone()),
            Phase::Asking { .. } => ("asking", self.leg.model.clone()),
            Phase::Calling { call, .. } => ("calling", call.proposed.name.clone()),
            Phase::Listening => ("listing", "tool servers".to_owned()),
            Phase::Gated(gated) => ("gated", gated.approval_id.clone()),
            _ => ("between", String::new()),
        };
        let state = if self.stop.is_some() { "winding_up" } else { state };
        Standing { state, waiting_on, number: (self.asks, self.intents) }
    }

    pub(super) fn controlled(&mut self, control: &Control) {
        if control.word == "cancel" {
            return self.cancel(control.signal.clone());
        }
        if !self.weigh(control).counts {
            return;
        }
        let text = control.text.clone().unwrap_or_default();
        match control.word.as_str() {
            "inject" => self.said.texts.push(text),
            "steer" => self.steer(text),
            "cancel_step" => self.cancel_step(),
            // What a person said of a call is acted upon when it is spent: that is a `decision`.
            _ => {}
        }
    }

    fn steer(&mut self, text: String) {
        self.said.texts.insert(self.said.steers, text);
        self.said.steers = self.said.steers.saturating_add(1);
        match &self.phase {
            Phase::Asking { .. } if !self.said.is_steered => {
                self.said.is_steered = true;
                self.effects.push(Effect::CutAsk);
            }
            Phase::Calling { .. } if !self.turn.queue.is_empty() => self.said.skip = Some(Skip::Steered),
            _ => {}
        }
    }

    fn cancel_step(&mut self) {
        match std::mem::replace(&mut self.phase, Phase::Between) {
            Phase::Gated(gated) if gated.about != About::Claim => self.leave_gate(*gated),
            at @ Phase::Asking { .. } => {
                self.phase = at;
                self.said.skip = Some(Skip::Cancelled);
            }
            at => {
                let is_calling = matches!(at, Phase::Calling { .. });
                self.phase = at;
                if is_calling && !self.turn.queue.is_empty() {
                    self.said.skip = Some(Skip::Cancelled);
                } else {
                    self.said.is_late = true;
                }
            }
        }
    }

    /// A call that waits for a person is skipped; one in doubt stays in doubt.
    fn leave_gate(&mut self, gated: Gated) {
        self.effects.push(Effect::LeaveGate);
        self.waited();
        let Gated { mut call, approval_id, about, .. } = gated;
        if about == About::Doubt && call.is_announced {
            self.still_in_doubt(&call, approval_id);
            self.announce(&mut call);
            self.settle(call, Finished::failed(words::EFFECT_UNKNOWN.to_owned()));
        } else {
            self.turn.queue.push_front(call.proposed);
        }
        self.said.skip = Some(Skip::Cancelled);
        self.next_call();
    }

    /// Skips what is left of a turn, where somebody said so. True when the step is over by that.
    pub(super) fn skips(&mut self) -> bool {
        let Some(skip) = self.said.skip.take() else { return false };
        let name = |name: &str| self.offer.resolve(name).unwrap_or_else(|| name.to_owned());
        let names: Vec<String> = self.turn.queue.iter().map(|proposed| name(&proposed.name)).collect();
        for proposed in std::mem::take(&mut self.turn.queue) {
            self.tell(&proposed, &words::stopped_before_call(&proposed.name, skip.why()));
        }
        if !names.is_empty() {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let detail = format!("Proposed and not called, because {}: {}.", skip.why(), words::quoted_list(&names));
            let index = Some(self.index);
            self.emit(Event::Notice(Notice { code: "calls_skipped".into(), detail, index, ..Notice::default() }));
        }
        self.step_over();
        true
    }

    /// A reply whose ask was given up for what somebody said: what it had said is kept, and nothing in it is done. True when it was one.
    pub(super) fn is_steered_away(&mut self, reply: &Reply) -> bool {
        if !std::mem::take(&mut self.said.is_steered) || self.stop.is_some() {
            return false;
        }
        if !reply.text.as_str().trim().is_empty() {
            let content = reply.text.clone();
            self.conversation.push(Message { role: Role::Assistant, content, ..Message::default() });
        }
        self.said.skip = None;
        self.step_over();
        true
    }

    /// What was said is put in front of the model, which is about to be asked.
    pub(super) fn hear(&mut self) -> Vec<String> {
        let Said { texts, skip, is_late, .. } = std::mem::take(&mut self.said);
        let mut turns = texts;
        if is_late || skip.is_some() {
            turns.push(words::STEP_CANCELLED_LATE.to_owned());
        }
        for turn in &turns {
            self.conversation.push(said(Role::User, turn));
        }
        turns
    }
}
