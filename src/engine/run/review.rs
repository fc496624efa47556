//! How a run that makes no progress is reviewed, told so, and wound up.

use std::sync::Arc;

use mission_contract::digest::sha256_hex;
use mission_contract::event::{Outcome, Review};
use mission_contract::log::{Ask, Message, Observed, Purpose, Reply, ReplyEnd, Role};
use mission_contract::spec::Supervision;

use super::frame::{Frame, verdict_frame};
use super::phase::Phase;
use super::{Run, said};
use crate::engine::conversation::Conversation;
use crate::engine::effect::Effect;
use crate::engine::signal::Signal;
use crate::engine::supervisor::{Reviewed, Verdict, Watch};
use crate::engine::words;

/// What is watched, and what came of it.
#[derive(Debug, Default)]
pub(super) struct Watching {
    pub(super) watch: Watch,
    /// The last question to a reviewer.
    asked: Vec<Arc<Message>>,
    /// For the next step.
    review: Option<Review>,
    /// User turns for the next step, told in `injected`.
    notes: Vec<String>,
    /// The next step is the last.
    winding_up: bool,
    /// The run is being wound up: the step that is under way is the last.
    is_last: bool,
    /// The reply that is asked for has a shape of its own, whatever the protocol.
    is_constrained: bool,
}

impl Watching {
    /// The messages of the last question to a reviewer.
    pub(super) fn asked(&self) -> Vec<Arc<Message>> {
        self.asked.clone()
    }

    /// Whether the step that is under way is the last one.
    pub(super) fn is_last(&self) -> bool {
        self.is_last
    }

    /// Whether the reply that is asked for is one object, whatever the protocol.
    pub(super) fn is_constrained(&self) -> bool {
        self.is_constrained
    }

    /// A later stretch begins: what was asked and not answered is asked again.
    pub(super) fn taken_over(&mut self, was_asking: bool) {
        if was_asking {
            (self.is_last, self.is_constrained) = (false, false);
        }
    }
}

impl Run {
    fn is_watched(&self) -> bool {
        self.open.spec.supervisor == Supervision::On
    }

    /// Looks at the progress at the boundary of a step. True when a reviewer is being asked: the step begins when that is over.
    pub(super) fn looks_back(&mut self) -> bool {
        self.watch.is_constrained = false;
        if self.watch.winding_up || self.open.spec.supervisor.is_off() {
            return false;
        }
        if self.is_watched() && self.watch.watch.demands_shape() {
            self.watch.is_constrained = true;
            let offered = self.offer.catalogue();
            let tools: Vec<&str> = offered.iter().map(String::as_str).collect();
            self.watch.notes.push(words::demand(&tools));
            return false;
        }
        let Some(signal) = self.watch.watch.signal() else { return false };
        if !self.is_watched() {
            self.watch.watch.look_from_here();
            let detail = format!("The run makes no progress: {}", words::pattern(signal));
            self.notice(Observed { what: "no_progress".into(), detail, ..Observed::default() });
            return false;
        }
        match self.watch.watch.question(signal, &self.open.spec.objective) {
            // Nobody is asked where a limit forbids it.
            Some(question) if self.ledger.no_ask(&self.open.spec.limits, self.open.spec.pricing.as_ref()).is_none() => {
                self.ask_reviewer(signal, question);
                true
            }
            Some(_) => false,
            None => {
                let reviewed = self.watch.watch.reviewed(signal, None);
                self.take_review(reviewed);
                false
            }
        }
    }

    fn ask_reviewer(&mut self, signal: Signal, (frame, question): (String, String)) {
        let mut conversation = Conversation::default();
        conversation.set_first(said(Role::System, &frame));
        conversation.push(said(Role::User, &question));
        let added = conversation.ask(&verdict_frame().header);
        // Every review is a conversation of its own: the first one has nothing before it to keep.
        let keeps = (!self.watch.asked.is_empty()).then_some(0);
        self.watch.asked = conversation.messages();
        let ask = Ask { purpose: Purpose::Review, keeps, adds: added.adds, digest: added.digest };
        self.asks = self.asks.saturating_add(1);
        self.ledger.asked();
        self.phase = Phase::Reviewing { ordinal: self.asks, signal };
        self.effects.push(Effect::Ask { ask: Box::new(ask), index: self.begun });
    }

    /// A reviewer replied.
    pub(super) fn reviewer_replied(&mut self, signal: Signal, reply: &Reply) {
        self.settle_reply(reply, false);
        self.phase = Phase::Between;
        if self.stop.is_some() {
            return self.stopped();
        }
        let text = (reply.end == ReplyEnd::Whole).then(|| reply.text.as_str().to_owned());
        let reviewed = self.watch.watch.reviewed(signal, text.as_deref());
        self.take_review(reviewed);
        self.begin_step();
    }

    fn take_review(&mut self, reviewed: Reviewed) {
        let Reviewed { signal, verdict, left, note } = reviewed;
        match verdict {
            Verdict::Progressing => {}
            Verdict::Nudge => self.watch.notes.push(words::nudge(signal, note.as_deref())),
            Verdict::Stuck => {
                self.watch.notes.push(words::wind_up(signal));
                self.watch.winding_up = true;
            }
        }
        self.watch.review =
            Some(Review { signal: signal.word().to_owned(), verdict: verdict.word().to_owned(), reviews_left: left, note });
    }

    /// What a review left for the step that begins: its record, and user turns.
    pub(super) fn take_notes(&mut self) -> (Option<Review>, Vec<String>) {
        let notes = std::mem::take(&mut self.watch.notes);
        for note in &notes {
            self.conversation.push(said(Role::User, note));
        }
        self.watch.is_last = self.watch.winding_up;
        (self.watch.review.take(), notes)
    }

    /// The frame of the question that is about to be asked: where only an answer or one object is taken it is another one.
    pub(super) fn frame_now(&self) -> Frame {
        if self.watch.is_last {
            return Frame::only_answer(self.open.spec.protocol, &self.open.spec.sampling);
        }
        if self.watch.is_constrained {
            return Frame::one_object(&self.offer.catalogue(), &self.open.spec.sampling);
        }
        self.frame.clone()
    }

    /// The last step of a run that is wound up is over without an answer.
    pub(super) fn is_wound_up(&self) -> bool {
        self.watch.is_last
    }

    pub(super) fn wound_up(&mut self) {
        self.finish(Outcome::Incomplete, None, None, None);
    }

    /// Why the run ended, where the supervisor ended it.
    pub(super) fn stuck(&self) -> Option<String> {
        self.watch.is_last.then(|| "stuck".to_owned())
    }

    /// Notes a call that came back.
    pub(super) fn watch_act(&mut self, tool: &str, call: &str, same: Option<&str>, handle: &str, ok: bool, text: &str) {
        if self.open.spec.supervisor.is_off() {
            return;
        }
        let result = if ok { same.unwrap_or(handle).to_owned() } else { sha256_hex(text.as_bytes()).to_string() };
        self.watch.watch.acted(tool, call, &result, ok, text);
    }
}
