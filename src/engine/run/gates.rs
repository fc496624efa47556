//! Calls that a person has to allow, and how a run waits for what they say.

use mission_contract::digest::{gate_id, key};
use mission_contract::event::{Event, GateRequested, Outcome};
use mission_contract::log::{Decision, Intent, ToolDefinition};
use mission_contract::spec::GateRule;
use serde_json::Value;

use super::phase::{About, Gated, Pending, Phase};
use super::{FoldError, Run};
use crate::engine::effect::{self, GateRequest};
use crate::engine::words;
use crate::policy::{BY_GATE, Effect};
use crate::skill::same_tool;

/// The name of the timer that ends the waiting at a gate.
pub const GATE_TIMER: &str = "gate";

/// Approvals that a run asks for and claims.
#[derive(Debug, Default)]
pub(super) struct Gates {
    /// How many calls were proposed to a person.
    asked: u64,
    /// The approval that the run was begun with was claimed.
    is_claimed: bool,
    /// When the waiting began, while it lasts.
    since: Option<u64>,
    /// Milliseconds that were waited in all.
    waited: u64,
}

impl Run {
    /// Whether the command line says that a tool needs a person. A server's own word takes nothing away, unless it is trusted.
    pub(super) fn is_gated_by_flags(&self, definition: &ToolDefinition) -> bool {
        let spec = &self.open.spec;
        let trusted = spec.trusted.contains(&definition.server);
        let says = |name: &str, what: bool| {
            trusted && definition.annotations.as_ref().and_then(|hints| hints.get(name)) == Some(&Value::Bool(what))
        };
        let only_reads = says("readOnlyHint", true);
        let by_rule = |rule: &GateRule| match rule {
            GateRule::Destructive => !(only_reads || says("destructiveHint", false)),
            GateRule::OpenWorld => !says("openWorldHint", false),
            GateRule::AllWrites => !only_reads,
        };
        let name = definition.full_name();
        let is_meant = |gate: &String| *gate == name || (spec.gates_as_given && same_tool(gate, &name));
        spec.gates.iter().any(is_meant) || spec.gate_rules.iter().any(by_rule)
    }

    /// Proposes a call to a person, or claims what one of them has said already.
    pub(super) fn propose(&mut self, mut call: Pending) {
        if call.intent.key.is_empty() {
            call.intent.key = key(&self.open.run_id, self.epoch, self.intents.saturating_add(1));
        }
        let approved = self.open.spec.approval.as_ref().filter(|approved| approved.digest == call.intent.digest);
        if let Some(approved) = approved
            && !self.gates.is_claimed
        {
            self.gates.is_claimed = true;
            let (approval_id, key, digest) = (approved.approval_id.clone(), call.intent.key.clone(), call.intent.digest.clone());
            self.effects.push(effect::Effect::Claim { approval_id: approval_id.clone(), key, digest });
            self.phase =
                Phase::Gated(Box::new(Gated { call, approval_id, about: About::Claim, decision: None, is_untold: false }));
            return;
        }
        self.gates.asked = self.gates.asked.saturating_add(1);
        let approval_id = gate_id(&self.open.run_id, self.gates.asked);
        self.wait_for_person(Gated { call, approval_id, about: About::Gate, decision: None, is_untold: false });
    }

    /// The run waits for a person: here, or until it is taken up again.
    pub(super) fn wait_for_person(&mut self, mut gated: Gated) {
        gated.is_untold = false;
        let reason = self.reason(&gated);
        let Gated { call, approval_id, about, .. } = &gated;
        let is_doubt = *about == About::Doubt;
        self.effects.push(effect::Effect::OpenGate(Box::new(GateRequest {
            approval_id: approval_id.clone(),
            index: self.index,
            intent: call.intent.clone(),
            is_doubt,
            reason: reason.clone(),
        })));
        self.tell_gate(&gated, reason);
        let wait = self.open.spec.gate_wait_ms.unwrap_or(0);
        // What is waited is the run's own time, unless it is free.
        let wait = if self.open.spec.gate_time_free { wait } else { wait.min(self.time_left().unwrap_or(u64::MAX)) };
        if wait > 0 {
            let Intent { key, digest, .. } = call.intent.clone();
            let approval_id = approval_id.clone();
            self.effects.push(effect::Effect::AwaitDecision { approval_id, key, digest, milliseconds: wait });
            self.gates.since = Some(self.ms);
            self.arm_free();
        }
        self.phase = Phase::Gated(Box::new(gated));
        if wait == 0 {
            self.finish(Outcome::AwaitingApproval, None, None, None);
        }
    }

    /// Why a person is asked.
    fn reason(&self, gated: &Gated) -> String {
        let (name, left) = (&gated.call.proposed.name, self.turn.queue.len());
        if gated.about == About::Doubt { words::in_doubt(name, left) } else { self.why_gated(&gated.call, left) }
    }

    fn tell_gate(&mut self, gated: &Gated, reason: String) {
        self.emit(Event::GateRequested(GateRequested {
            index: self.index,
            tool: gated.call.proposed.name.clone(),
            arguments: gated.call.intent.arguments.clone(),
            reason,
            approval_id: (!self.open.spec.approvals_off).then(|| gated.approval_id.clone()),
            kind: (gated.about == About::Doubt).then(|| "reconcile".to_owned()),
            branch: None,
        }));
    }

    /// The log does not hold the `gate_requested` of the call that waits: it is told by the stretch that goes on with the call, once.
    pub fn untold_gate(&mut self) {
        let at = match &mut self.phase {
            Phase::Ended { at, .. } | Phase::Resuming(at) => at.as_mut(),
            at => at,
        };
        if let Phase::Gated(gated) = at {
            gated.is_untold = gated.about != About::Claim;
        }
    }

    /// Tells of a call that waits for a person, where that was lost and nobody is asked again.
    pub(super) fn tell_untold_gate(&mut self, gated: &mut Gated) {
        if std::mem::take(&mut gated.is_untold) {
            let reason = self.reason(gated);
            self.tell_gate(gated, reason);
        }
    }

    /// The same where the run is closed as it stands.
    pub(super) fn tell_gate_at_end(&mut self) {
        let mut phase = std::mem::replace(&mut self.phase, Phase::Between);
        let at = if let Phase::Resuming(at) = &mut phase { at.as_mut() } else { &mut phase };
        if let Phase::Gated(gated) = at {
            self.tell_untold_gate(gated);
        }
        self.phase = phase;
    }

    /// What a person said while the run waits for it.
    pub(super) fn decided_here(&mut self, decision: &Decision) -> Result<(), FoldError> {
        let wrong = FoldError::OutOfPlace { kind: "decision", state: "not waiting for that approval" };
        let Phase::Gated(gated) = &self.phase else { return Err(wrong) };
        if gated.approval_id != decision.approval_id {
            return Err(wrong);
        }
        if let Phase::Gated(gated) = std::mem::replace(&mut self.phase, Phase::Between) {
            self.waited();
            self.act_on(Gated { decision: Some(decision.clone()), ..*gated });
        }
        Ok(())
    }

    /// Nobody said anything in time: the run can be taken up again when somebody has.
    pub(super) fn nobody_decided(&mut self) {
        self.waited();
        self.finish(Outcome::AwaitingApproval, None, None, None);
    }

    pub(super) fn waited(&mut self) {
        if let Some(since) = self.gates.since.take() {
            self.gates.waited = self.gates.waited.saturating_add(self.ms.saturating_sub(since));
            self.arm_free();
        }
    }

    /// Whether the run waits for a person and its clock does not run.
    pub(super) fn is_waiting_free(&self) -> bool {
        self.open.spec.gate_time_free && self.gates.since.is_some()
    }

    fn arm_free(&mut self) {
        if self.open.spec.gate_time_free {
            self.arm_clock();
        }
    }

    /// Milliseconds that the run waited for people.
    pub fn waited_for_people(&self) -> u64 {
        self.gates.waited
    }

    /// Does what a person said, or asks again.
    pub(super) fn act_on(&mut self, mut gated: Gated) {
        let Some(Decision { answer, by, note, .. }) = gated.decision.clone() else {
            return match gated.about {
                About::Claim => self.propose(gated.call),
                About::Gate | About::Doubt => self.wait_for_person(gated),
            };
        };
        self.tell_untold_gate(&mut gated);
        gated.call.decided_by = Some((gated.approval_id.clone(), by.clone()));
        match (gated.about, answer.as_str()) {
            (About::Doubt, answer) => self.settle_doubt(gated.call, answer, &by, note.as_deref()),
            (About::Gate | About::Claim, "approve") => self.make(gated.call),
            // It was not this run that it was spent on: a person is asked anew.
            (About::Claim, _) => self.propose(Pending { decided_by: None, ..gated.call }),
            (About::Gate, _) => {
                let text = words::refused(&gated.call.proposed.name, &by, note.as_deref());
                self.audit_refused(&gated.call, &text);
                self.tell(&gated.call.proposed, &text);
                self.next_call();
            }
        }
    }

    /// Why a call waits, with the rule of the policy that says so.
    fn why_gated(&self, call: &Pending, left: usize) -> String {
        let judged = &call.judged;
        let by = self.authority.policy().filter(|_| judged.effect == Effect::Gate && judged.rule != BY_GATE);
        let by = by.map(|_| (judged.rule.as_str(), judged.reason.as_deref()));
        words::gated(&call.proposed.name, by, left)
    }
}
