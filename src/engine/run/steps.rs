//! The steps of a run: what each begins with, and what the model is asked in it.

use std::collections::BTreeSet;

use mission_contract::event::{Event, StepStarted};
use mission_contract::log::{Ask, Observed, Purpose, Role};
use mission_contract::spec::Sampling;

use super::frame::{Frame, verdict_frame};
use super::phase::Phase;
use super::{Run, said};
use crate::engine::effect::Effect;
use crate::engine::request::ModelRequest;
use crate::engine::words;

impl Run {
    /// The conversation begins.
    pub(super) fn begin(&mut self) {
        self.set_prompt();
        for turn in &self.open.spec.texts.history {
            self.conversation.push(said(turn.role, &turn.content));
        }
        self.conversation.push(said(Role::User, &self.open.spec.objective));
        if let Some(approved) = &self.open.spec.approval {
            let arguments = serde_json::Value::from(approved.arguments.clone()).to_string();
            self.conversation.push(said(Role::User, &words::approved_before(&approved.tool, &arguments, &approved.approval_id)));
        }
        self.next_step();
    }

    /// The system message, its parts in their fixed order; the functions of the `native` protocol.
    pub(super) fn set_prompt(&mut self) {
        let texts = &self.open.spec.texts;
        let frame = format!("{}\n\n{}", texts.persona.text.trim(), texts.skill.text.trim());
        let catalogue = format!("Tool catalogue:\n{}", self.offer.text(self.native(), |definition| self.is_gated(definition)));
        let parts = [frame.trim(), texts.protocol.text.trim(), &catalogue, texts.conduct.text.trim()];
        let text = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n");
        self.conversation.set_first(said(Role::System, &text));
        self.frame = Frame::of(&self.offer, self.open.spec.protocol, &self.open.spec.sampling);
    }

    pub(super) fn next_step(&mut self) {
        if self.stop.is_some() {
            return self.stopped();
        }
        if self.is_late() {
            return self.out_of_time();
        }
        if self.is_wound_up() {
            return self.wound_up();
        }
        if let Some(budget) = self.no_ask() {
            return self.exhausted(budget);
        }
        if !self.looks_back() {
            self.begin_step();
        }
    }

    pub(super) fn begin_step(&mut self) {
        if let Some(budget) = self.no_ask() {
            return self.exhausted(budget);
        }
        let changed = self.take_up_changes();
        let mut injected = self.hear();
        let (review, notes) = self.take_notes();
        injected.extend(notes);
        self.index = self.begun;
        let catalogue = changed.then(|| self.offer.catalogue());
        let resumed = self.resumed.take();
        let started = StepStarted { index: self.index, resumed, catalogue, injected, review, ..StepStarted::default() };
        self.emit(Event::StepStarted(started));
        self.begun = self.begun.saturating_add(1);
        self.asks = self.asks.saturating_add(1);
        self.ledger.asked();
        self.asked = self.frame_now();
        let added = self.conversation.ask(&self.asked.header);
        let ask = Ask { purpose: Purpose::Step, keeps: added.keeps, adds: added.adds, digest: added.digest };
        self.phase = Phase::Asking { ordinal: self.asks };
        self.effects.push(Effect::Ask { ask: Box::new(ask), index: self.index });
    }

    /// What the model is asked now: the whole request of the last [`Effect::Ask`].
    pub fn request(&self) -> ModelRequest {
        let is_review = matches!(self.phase, Phase::Reviewing { .. });
        let frame = if is_review { verdict_frame() } else { self.asked.clone() };
        ModelRequest {
            ordinal: self.asks,
            purpose: if is_review { Purpose::Review } else { Purpose::Step },
            messages: if is_review { self.watch.asked() } else { self.conversation.messages() },
            functions: frame.functions,
            choice: frame.choice,
            constraint: frame.constraint,
            sampling: if is_review { Sampling::default() } else { self.open.spec.sampling.clone() },
            stream: self.open.spec.stream && !is_review,
            reply_tokens: self.ledger.reply_tokens(&self.open.spec.limits, self.open.spec.pricing.as_ref()),
        }
    }

    /// Applies what the servers changed, at the boundary of a step. True when the offer is another one.
    pub(super) fn take_up_changes(&mut self) -> bool {
        if self.waiting.is_empty() {
            return false;
        }
        let before: BTreeSet<String> = self.offer.catalogue().into_iter().collect();
        for catalogue in std::mem::take(&mut self.waiting) {
            if !catalogue.servers.is_empty() {
                self.servers.clone_from(&catalogue.servers);
            }
            for (name, server) in self.offer.apply(&catalogue) {
                let detail = format!("The definition of {name} changed; this run goes on with the one it began with.");
                self.notice(Observed { what: "definition_changed".into(), detail, server: Some(server), of: None });
            }
        }
        for (name, server) in self.offer.kept_out() {
            let detail = format!("The tool {name} joined past the limit on tools; it is not offered.");
            self.notice(Observed { what: "tool_limit".into(), detail, server: Some(server), of: None });
        }
        let after: BTreeSet<String> = self.offer.catalogue().into_iter().collect();
        if before == after {
            return false;
        }
        self.set_prompt();
        let shown = |name: &String| if self.native() { self.offer.function(name).to_owned() } else { name.clone() };
        let joined: Vec<String> = after.difference(&before).map(shown).collect();
        let left: Vec<String> = before.difference(&after).map(shown).collect();
        self.conversation.push(said(Role::User, &words::plane_change(&joined, &left)));
        true
    }
}
