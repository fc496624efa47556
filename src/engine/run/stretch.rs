//! A later stretch of a run: a process took over where another one ended, of itself or not.

use mission_contract::digest::approval_id;
use mission_contract::event::{Outcome, Resumed};
use mission_contract::log::{Ask, Catalogue, Decision, Leg, Open, Purpose, Writer};

use super::phase::Phase;
use super::{FoldError, Run};
use crate::engine::offer::Offer;

/// The name, in a `writer` line, of the ceiling on steps: the new total, 0 for none.
pub const CHANGED_STEPS: &str = "mission_steps";

/// The name, in a `writer` line, of the ceiling on time: the new total, in seconds.
pub const CHANGED_SECONDS: &str = "mission_seconds";

/// The name, in a `writer` line, of the ceiling on tokens: the new total, 0 for none.
pub const CHANGED_TOKENS: &str = "max_tokens_total";

/// The name, in a `writer` line, of the ceiling on bytes of results: the new total, 0 for none.
pub const CHANGED_BYTES: &str = "max_bytes";

/// The name, in a `writer` line, of the ceiling on money: the new total, in millionths, 0 for none.
pub const CHANGED_COST: &str = "max_cost_micros";

/// The name, in a `writer` line, of how long the run waits at a gate: milliseconds, 0 for not at all.
pub const CHANGED_GATE_WAIT: &str = "gate_wait_ms";

/// The name, in a `writer` line, of the audit file: its path, null for none.
pub const CHANGED_AUDIT: &str = "audit_ref";

/// What a run waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Awaited {
    /// The approval that a person has to decide.
    pub approval_id: String,
    /// The key of the call that it is about.
    pub key: String,
    /// The call's digest: an answer about any other call is none.
    pub digest: String,
}

/// Whether a run that ended so can be taken up again.
pub fn is_resumable(outcome: Outcome) -> bool {
    matches!(outcome, Outcome::Incomplete | Outcome::AwaitingApproval)
}

impl Run {
    /// A process takes the run over. What was in flight is gone with the one before.
    pub(super) fn taken_over(&mut self, writer: &Writer) {
        self.epoch = writer.epoch;
        let at = match std::mem::replace(&mut self.phase, Phase::Between) {
            Phase::Ended { outcome, at } if is_resumable(outcome) => *at,
            over @ Phase::Ended { .. } => {
                self.phase = over;
                return;
            }
            Phase::Resuming(at) => *at,
            at => at,
        };
        if let Some(steps) = writer.changed.get(CHANGED_STEPS).and_then(serde_json::Value::as_u64) {
            self.open.spec.limits.steps = (steps > 0).then_some(steps);
        }
        if let Some(wait) = writer.changed.get(CHANGED_GATE_WAIT).and_then(serde_json::Value::as_u64) {
            self.open.spec.gate_wait_ms = (wait > 0).then_some(wait);
        }
        for (name, limit) in [(CHANGED_TOKENS, 0), (CHANGED_BYTES, 1), (CHANGED_COST, 2)] {
            if let Some(total) = writer.changed.get(name).and_then(serde_json::Value::as_u64) {
                let limits = &mut self.open.spec.limits;
                let limit = match limit {
                    0 => &mut limits.tokens,
                    1 => &mut limits.bytes,
                    _ => &mut limits.cost_micros,
                };
                *limit = (total > 0).then_some(total);
            }
        }
        if let Some(total) = writer.changed.get(CHANGED_SECONDS).and_then(serde_json::Value::as_f64) {
            self.open.spec.limits.seconds = Some(total);
        }
        if let Some(audit) = writer.changed.get(CHANGED_AUDIT) {
            self.open.spec.audit_ref = audit.as_str().map(str::to_owned);
        }
        self.stop = None;
        self.half = None;
        let mut ledger = std::mem::take(&mut self.ledger);
        ledger.taken_over(|| self.request_bytes(!matches!(at, Phase::Reviewing { .. })));
        self.ledger = ledger;
        self.said.taken_over();
        self.watch.taken_over(matches!(at, Phase::Asking { .. }));
        self.resumed = Some(Resumed { from_seq: self.seq.saturating_sub(1), steps_replayed: self.begun });
        let at = match at {
            Phase::Calling { ordinal, call } if call.is_intended && !call.intent.idempotent => self.gated(ordinal, *call),
            at => at,
        };
        self.phase = Phase::Resuming(Box::new(at));
    }

    /// A person's answer: while the run waits for it, or before the servers of a later stretch are listed.
    pub(super) fn decided(&mut self, decision: &Decision) -> Result<(), FoldError> {
        if let Phase::Gated(_) = &self.phase {
            return self.decided_here(decision);
        }
        if let Phase::Resuming(at) = &mut self.phase
            && let Phase::Gated(gated) = at.as_mut()
            && gated.approval_id == decision.approval_id
        {
            gated.decision = Some(decision.clone());
            return Ok(());
        }
        Err(FoldError::OutOfPlace { kind: "decision", state: "not waiting for that approval" })
    }

    /// The servers were listed again; the list holds what changed meanwhile.
    pub(super) fn carry_on(&mut self, catalogue: &Catalogue) {
        let Phase::Resuming(at) = std::mem::replace(&mut self.phase, Phase::Between) else { return };
        if let Phase::Opened { announced } = *at {
            self.phase = Phase::Opened { announced };
            if !announced {
                return self.start(catalogue);
            }
            self.servers.clone_from(&catalogue.servers);
            self.offer = Offer::new(&catalogue.tools, self.open.spec.allowed_tools.clone()).limited(self.open.spec.tool_limit);
        } else if !catalogue.servers.is_empty() {
            self.servers.clone_from(&catalogue.servers);
        }
        let failure = if catalogue.servers.is_empty() { None } else { self.tell_failed_servers() };
        if failure.is_some() || self.stop.is_some() {
            if !matches!(*at, Phase::Opened { .. }) {
                self.waiting.push(catalogue.clone());
                self.phase = *at;
            }
            return match self.stop {
                Some(_) => self.stopped(),
                None => self.finish(Outcome::Incomplete, None, None, failure),
            };
        }
        if self.is_late() && !matches!(*at, Phase::Opened { .. }) {
            self.waiting.push(catalogue.clone());
            self.phase = *at;
            return self.out_of_time();
        }
        self.arm_clock();
        if matches!(*at, Phase::Opened { .. }) {
            return self.begin();
        }
        self.waiting.push(catalogue.clone());
        match *at {
            // Its intent never stood in the log: it was not made.
            Phase::Calling { ordinal, call } if !call.is_intended => {
                self.intents = ordinal.saturating_sub(1);
                self.make(*call);
            }
            Phase::Calling { call, .. } if self.is_unchanged(&call, catalogue) => self.make(*call),
            Phase::Calling { ordinal, call } => match self.gated(ordinal, *call) {
                Phase::Gated(gated) => self.act_on(*gated),
                _ => self.next_step(),
            },
            Phase::Gated(gated) => self.act_on(*gated),
            _ => self.next_step(),
        }
    }

    /// The run is over; a later stretch begins where it stands.
    pub(super) fn end(&mut self, outcome: Outcome) {
        let at = match std::mem::replace(&mut self.phase, Phase::Between) {
            Phase::Resuming(at) | Phase::Ended { at, .. } => at,
            at => Box::new(at),
        };
        self.phase = Phase::Ended { outcome, at };
    }

    /// What the log says was asked: its words count, whatever this build would have said.
    pub(in crate::engine) fn asked(&mut self, ask: &Ask) {
        if ask.purpose == Purpose::Step {
            self.conversation.asked_so(ask);
        }
    }

    /// The log holds the intent of the call in flight.
    pub fn intended(&mut self) {
        if let Phase::Calling { call, .. } = &mut self.phase {
            call.is_intended = true;
        }
    }

    /// Whether `mission_started` is still to come.
    pub fn is_unannounced(&self) -> bool {
        self.phase.is_unannounced()
    }

    /// What was asked.
    pub fn open(&self) -> &Open {
        &self.open
    }

    /// Who answers.
    pub fn leg(&self) -> &Leg {
        &self.leg
    }

    /// The digest of a tool's definition as the run began with it.
    pub fn definition(&self, tool: &str) -> Option<&str> {
        self.offer.digest(tool)
    }

    /// Model turns begun so far: what a limit on them counts.
    pub fn steps_begun(&self) -> u64 {
        self.begun
    }

    /// Seconds of its time that are spent.
    pub fn seconds_spent(&self) -> f64 {
        let free = if self.open.spec.gate_time_free { self.waited_for_people() } else { 0 };
        super::seconds(self.ms.saturating_sub(free))
    }

    /// What its limits have counted so far: tokens, bytes of results, millionths of money.
    pub fn spent(&self) -> (u64, u64, u64) {
        self.ledger.spent(self.open.spec.pricing.as_ref())
    }

    /// How the last stretch ended, if it did.
    pub fn outcome(&self) -> Option<Outcome> {
        match &self.phase {
            Phase::Ended { outcome, .. } => Some(*outcome),
            _ => None,
        }
    }

    /// The approval that a person has to decide before the run can go on.
    pub fn awaits(&self) -> Option<Awaited> {
        let at = match &self.phase {
            Phase::Ended { outcome, at } if is_resumable(*outcome) => at.as_ref(),
            Phase::Resuming(at) => at.as_ref(),
            at => at,
        };
        match at {
            Phase::Gated(gated) => Some(Awaited {
                approval_id: gated.approval_id.clone(),
                key: gated.call.intent.key.clone(),
                digest: gated.call.intent.digest.clone(),
            }),
            Phase::Calling { ordinal, call } if call.is_intended && !call.intent.idempotent => Some(Awaited {
                approval_id: approval_id(&self.open.run_id, *ordinal),
                key: call.intent.key.clone(),
                digest: call.intent.digest.clone(),
            }),
            _ => None,
        }
    }
}
