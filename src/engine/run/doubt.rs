//! Calls of which nobody knows whether they took effect. A person says what became of them; none is repeated by itself.

use std::collections::BTreeMap;

use mission_contract::digest::approval_id;
use mission_contract::log::{Catalogue, ToolDefinition};
use serde_json::Value;

use super::Run;
use super::calls::Finished;
use super::phase::{About, Gated, Pending, Phase};
use crate::engine::words;

/// Calls in doubt, by their digest.
#[derive(Debug, Default)]
pub(super) struct Doubts(BTreeMap<String, Doubt>);

#[derive(Debug)]
enum Doubt {
    /// The approval that decides it, and the call's key.
    Open { approval_id: String, key: String },
    /// A person gave it up.
    GivenUp,
}

impl Run {
    /// Whether a call of this tool may be made twice: its server's word counts only where it is trusted.
    pub(super) fn is_idempotent(&self, definition: &ToolDefinition) -> bool {
        let hint = |name: &str| definition.annotations.as_ref().and_then(|hints| hints.get(name)) == Some(&Value::Bool(true));
        self.open.spec.trusted.contains(&definition.server) && (hint("readOnlyHint") || hint("idempotentHint"))
    }

    /// Whether the tool of a call is what it was when the call was decided upon.
    pub(super) fn is_unchanged(&self, call: &Pending, change: &Catalogue) -> bool {
        let tool = &call.intent.tool;
        let changed = change.tools.iter().chain(&change.changed).any(|definition| definition.full_name() == *tool);
        let offered = self.offer.tool(tool).is_some_and(|offered| offered.digest == call.intent.definition);
        offered && !changed && !change.removed.contains(tool)
    }

    /// Nobody knows what became of a call.
    pub(super) fn doubt(&mut self, ordinal: u64, call: &Pending) {
        if call.intent.idempotent {
            return;
        }
        let approval_id = approval_id(&self.open.run_id, ordinal);
        self.doubts.0.insert(call.intent.digest.clone(), Doubt::Open { approval_id, key: call.intent.key.clone() });
    }

    /// A call in doubt that nobody says anything about.
    pub(super) fn still_in_doubt(&mut self, call: &Pending, approval_id: String) {
        self.doubts.0.insert(call.intent.digest.clone(), Doubt::Open { approval_id, key: call.intent.key.clone() });
    }

    /// A call that is proposed: itself, or nothing when the same one is in doubt.
    pub(super) fn doubted(&mut self, mut call: Pending) -> Option<Pending> {
        match self.doubts.0.get(&call.intent.digest) {
            None => Some(call),
            Some(Doubt::GivenUp) => {
                let text = words::given_up_before(&call.proposed.name);
                self.rejected(text.clone(), Some(call.proposed.name.clone()));
                self.tell(&call.proposed, &text);
                self.next_call();
                None
            }
            Some(Doubt::Open { approval_id, key }) => {
                call.intent.key.clone_from(key);
                let approval_id = approval_id.clone();
                self.wait_for_person(Gated { call, approval_id, about: About::Doubt, decision: None, is_untold: false });
                None
            }
        }
    }

    /// A call that a crash left in doubt.
    pub(super) fn gated(&self, ordinal: u64, call: Pending) -> Phase {
        let approval_id = approval_id(&self.open.run_id, ordinal);
        Phase::Gated(Box::new(Gated { call, approval_id, about: About::Doubt, decision: None, is_untold: false }))
    }

    /// Does what a person said about a call in doubt.
    pub(super) fn settle_doubt(&mut self, mut call: Pending, answer: &str, by: &str, note: Option<&str>) {
        self.doubts.0.remove(&call.intent.digest);
        let finished = match answer {
            "retry" => return self.make(call),
            "done" => Finished::said(&words::confirmed(by, note)),
            _ => {
                self.doubts.0.insert(call.intent.digest.clone(), Doubt::GivenUp);
                Finished::failed(words::given_up(by, note))
            }
        };
        self.announce(&mut call);
        self.settle(call, finished);
        self.next_call();
    }
}
