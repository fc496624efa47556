//! Limits: what the run may not do any more, and how it ends when one is reached.

use mission_contract::event::{Answer, BudgetSpent, Event, Outcome};
use mission_contract::log::{Observed, Reply};
use mission_contract::spec::Protocol;

use super::phase::Phase;
use super::{Run, seconds};
use crate::engine::effect::Effect;
use crate::engine::half::half_answer;
use crate::engine::ledger::{Sizes, number};
use crate::engine::words;

/// The name of the timer that ends the time of a run.
pub const CLOCK_TIMER: &str = "clock";

/// Why a run is being ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// Somebody said so: the signal, if it was one.
    Asked(Option<String>),
    /// Its time is over.
    Clock,
}

impl Run {
    /// Bytes of the texts of the last request.
    pub(super) fn request_bytes(&self, is_step: bool) -> u64 {
        let messages = if is_step { self.conversation.messages() } else { self.watch.asked() };
        bytes(messages.iter().map(|message| {
            let calls = message.calls.iter().map(|call| call.name.len().saturating_add(call.arguments.len()));
            calls.fold(message.content.as_str().len(), usize::saturating_add)
        }))
    }

    /// Settles what a reply cost.
    pub(super) fn settle_reply(&mut self, reply: &Reply, is_step: bool) {
        let mut ledger = std::mem::take(&mut self.ledger);
        let sizes = || {
            let text = reply.text.as_str().len();
            let calls = reply.calls.iter().map(|call| call.name.len().saturating_add(call.arguments.len()));
            Sizes { request: self.request_bytes(is_step), reply: bytes(calls.chain([text])) }
        };
        let limits = &self.open.spec.limits;
        let counts = limits.tokens.is_some() || limits.cost_micros.is_some();
        let is_news = ledger.settle(reply.usage.as_ref(), sizes, is_step);
        self.ledger = ledger;
        if is_news && counts {
            let detail = words::USAGE_MISSING.to_owned();
            self.notice(Observed { what: "usage_missing".into(), detail, ..Observed::default() });
        }
    }

    /// The limit that the next question to the model would pass.
    pub(super) fn no_ask(&self) -> Option<BudgetSpent> {
        let limits = &self.open.spec.limits;
        let steps = limits.steps.unwrap_or(0);
        if steps > 0 && self.asks >= steps {
            return Some(BudgetSpent { which: "steps".into(), limit: steps.into(), spent: self.asks.into() });
        }
        self.ledger.no_ask(limits, self.open.spec.pricing.as_ref())
    }

    /// Work time at which the run's time is over, in milliseconds.
    fn over_at(&self) -> Option<u64> {
        let limit = self.open.spec.limits.seconds?;
        let free = if self.open.spec.gate_time_free { self.waited_for_people() } else { 0 };
        Some(ms(limit).saturating_add(free))
    }

    /// Milliseconds that are left of the run's time.
    pub(super) fn time_left(&self) -> Option<u64> {
        self.over_at().map(|over| over.saturating_sub(self.ms))
    }

    /// Whether the run's time is over.
    pub(super) fn is_late(&self) -> bool {
        self.time_left() == Some(0)
    }

    /// Has the driver tell when the time is over; not while the run waits for a person and that is free.
    pub(super) fn arm_clock(&mut self) {
        if let Some(over) = self.over_at() {
            let at = (!self.is_waiting_free()).then_some(over);
            self.effects.push(Effect::Arm { name: CLOCK_TIMER, at });
        }
    }

    /// The time is over.
    pub(super) fn time_is_over(&mut self) {
        if self.stop.is_some() {
            return;
        }
        match self.phase {
            Phase::Gated(_) => {
                self.effects.push(Effect::LeaveGate);
                return self.nobody_decided();
            }
            Phase::Asking { .. } | Phase::Reviewing { .. } => self.effects.push(Effect::AbortAsk),
            Phase::Calling { .. } => self.effects.push(Effect::CancelCall),
            Phase::Listening => {
                self.stop = Some(Stop::Clock);
                return self.stopped();
            }
            Phase::Ended { .. } => return,
            // Nothing has begun yet: what comes next ends it.
            Phase::Fresh | Phase::Opened { .. } | Phase::Resuming(_) | Phase::Between => {}
        }
        self.stop = Some(Stop::Clock);
    }

    /// Ends the run for the reason that it was stopped for.
    pub(super) fn stopped(&mut self) {
        match self.stop.clone() {
            Some(Stop::Clock) => self.out_of_time(),
            Some(Stop::Asked(signal)) => self.cancelled(signal),
            None => self.cancelled(None),
        }
    }

    pub(super) fn out_of_time(&mut self) {
        let limit = self.open.spec.limits.seconds.unwrap_or_default();
        let free = if self.open.spec.gate_time_free { self.waited_for_people() } else { 0 };
        let spent = number(seconds(self.ms.saturating_sub(free)));
        self.exhausted(BudgetSpent { which: "seconds".into(), limit: number(limit), spent });
    }

    pub(super) fn exhausted(&mut self, budget: BudgetSpent) {
        if let Some((half, usage)) = self.half.take() {
            let text = format!("{half}{}", words::caveat(words::HALF_AN_ANSWER));
            let outcome = Outcome::AnsweredWithCaveat;
            self.emit(Event::Answer(Answer { text, outcome, usage, structured: None, branch: None }));
        }
        self.finish(Outcome::BudgetExhausted, Some(budget), None, None);
    }

    /// Why the calls that are left of a turn are not made, when the run is being stopped.
    pub(super) fn why_stopped(&self) -> &'static str {
        match self.stop {
            Some(Stop::Clock) => words::OUT_OF_TIME,
            _ => words::CANCELLED,
        }
    }

    /// Keeps what a reply that cannot be taken holds of an answer: should a limit end the run here, that is what it has to show. One that
    /// was cut by the clock is a step of its own, and what it cost is told with it.
    pub(super) fn keep_half(&mut self, reply: &Reply, is_cut: bool) {
        let protocol = if self.watch.is_constrained() { Protocol::Json } else { self.open.spec.protocol };
        let Some(half) = half_answer(reply, protocol) else { return };
        if is_cut {
            self.steps = self.steps.saturating_add(1);
        }
        self.half = Some((half, reply.usage.clone().filter(|_| is_cut)));
    }
}

/// Seconds as whole milliseconds; less than none is none.
fn ms(seconds: f64) -> u64 {
    // A float that does not fit becomes the nearest number that does.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let ms = (seconds * 1000.0) as u64;
    ms
}

fn bytes(sizes: impl Iterator<Item = usize>) -> u64 {
    u64::try_from(sizes.fold(0, usize::saturating_add)).unwrap_or(u64::MAX)
}
