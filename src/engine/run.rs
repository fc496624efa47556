//! A run: state as a fold over the inputs. Every decision is made here and in the two files below, from inputs alone.

mod budgets;
mod calls;
mod control;
mod doubt;
mod frame;
mod gates;
mod judging;
mod phase;
mod replies;
mod review;
mod steps;
mod stretch;

use std::collections::VecDeque;

use mission_contract::event::{
    BudgetSpent, Event, MissionFinished, MissionStarted, Notice, Outcome, Resumed, ServerRef, Usage, UsageTotal,
};
use mission_contract::log::{Catalogue, Entry, Era, Leg, Message, Observed, Open, Role, ServerCondition, ServerState};
use mission_contract::spec::Protocol;

pub use self::budgets::CLOCK_TIMER;
use self::budgets::Stop;
use self::control::Said;
pub use self::control::{Disposition, Standing, Verdict};
use self::doubt::Doubts;
use self::frame::Frame;
pub use self::gates::GATE_TIMER;
use self::gates::Gates;
use self::phase::Phase;
use self::review::Watching;
pub use self::stretch::{
    Awaited, CHANGED_AUDIT, CHANGED_BYTES, CHANGED_COST, CHANGED_GATE_WAIT, CHANGED_SECONDS, CHANGED_STEPS, CHANGED_TOKENS,
    is_resumable,
};
use super::conversation::Conversation;
use super::effect::{Effect, Ending};
use super::ledger::Ledger;
use super::offer::Offer;
use super::reading::Proposed;
use super::results::Results;
use crate::policy::Authority;

/// An input that does not fit the state: the log is not one that this engine writes.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum FoldError {
    /// An output, or an input of a kind that this build does not know what to do with.
    #[error("a `{0}` line is no input that can be applied here")]
    NotAnInput(&'static str),
    /// A line in the wrong place.
    #[error("a `{kind}` line stands where the run is {state}")]
    OutOfPlace {
        /// The line's kind.
        kind: &'static str,
        /// What the run was doing.
        state: &'static str,
    },
}

/// A turn whose calls are being carried out.
#[derive(Debug, Default)]
struct Turn {
    queue: VecDeque<Proposed>,
    /// For the turn's first record.
    usage: Option<Usage>,
    /// A tool was named that is not offered.
    unknown: bool,
    /// Added to the last result, for the model.
    remark: Option<String>,
}

/// The state of a run.
#[derive(Debug)]
pub struct Run {
    phase: Phase,
    open: Open,
    /// What decides about its calls.
    authority: Authority,
    epoch: u64,
    leg: Leg,
    servers: Vec<ServerState>,
    offer: Offer,
    frame: Frame,
    conversation: Conversation,
    results: Results,
    ledger: Ledger,
    /// An answer that is not whole, from a reply that could not be taken, and what it cost where that was not told.
    half: Option<(String, Option<Usage>)>,
    turn: Turn,
    waiting: Vec<Catalogue>,
    early: Vec<Observed>,
    /// Questions to the model, whatever for.
    asks: u64,
    /// Steps begun.
    begun: u64,
    intents: u64,
    index: u64,
    steps: u64,
    stop: Option<Stop>,
    /// How the run gets on.
    watch: Watching,
    /// What the question in flight carries besides its messages.
    asked: Frame,
    /// Calls whose effect is unknown, and those that a person gave up.
    doubts: Doubts,
    /// What people are asked.
    gates: Gates,
    /// What was said from outside and not acted upon yet.
    said: Said,
    /// For the first step of a later stretch.
    resumed: Option<Resumed>,
    ms: u64,
    seq: u64,
    effects: Vec<Effect>,
}

impl Default for Run {
    fn default() -> Self {
        Self {
            phase: Phase::Fresh,
            open: Open::default(),
            authority: Authority::default(),
            epoch: 1,
            leg: Leg::default(),
            servers: Vec::new(),
            offer: Offer::default(),
            frame: Frame::default(),
            conversation: Conversation::default(),
            results: Results::default(),
            ledger: Ledger::default(),
            half: None,
            turn: Turn::default(),
            waiting: Vec::new(),
            early: Vec::new(),
            asks: 0,
            begun: 0,
            intents: 0,
            index: 0,
            steps: 0,
            stop: None,
            watch: Watching::default(),
            asked: Frame::default(),
            doubts: Doubts::default(),
            gates: Gates::default(),
            said: Said::default(),
            resumed: None,
            ms: 0,
            seq: 0,
            effects: Vec::new(),
        }
    }
}

impl Run {
    /// Applies one input: its sequence number in the log, the run's work time in milliseconds, and the input.
    ///
    /// # Errors
    /// When the input does not fit the state.
    pub fn apply(&mut self, seq: u64, ms: u64, input: &Entry) -> Result<Vec<Effect>, FoldError> {
        self.ms = ms;
        self.seq = seq;
        match (input, &self.phase) {
            (Entry::Open(open), Phase::Fresh) => {
                self.open = open.as_ref().clone();
                self.govern();
                self.phase = Phase::Opened { announced: false };
            }
            (Entry::Writer(writer), phase) if !matches!(phase, Phase::Fresh) => self.taken_over(writer),
            (Entry::Leg(leg), phase) if !matches!(phase, Phase::Fresh | Phase::Ended { .. }) => self.leg = leg.clone(),
            (Entry::Catalogue(catalogue), Phase::Opened { .. }) => self.start(catalogue),
            (Entry::Catalogue(catalogue), Phase::Resuming(_)) => self.carry_on(catalogue),
            (Entry::Decision(decision), Phase::Resuming(_) | Phase::Gated(_)) => self.decided(decision)?,
            (Entry::Timer(timer), Phase::Gated(_)) if timer.name == GATE_TIMER => self.nobody_decided(),
            (Entry::Catalogue(catalogue), Phase::Listening) => {
                self.waiting.push(catalogue.clone());
                self.next_step();
            }
            (Entry::Catalogue(catalogue), Phase::Asking { .. } | Phase::Reviewing { .. } | Phase::Calling { .. }) => {
                self.waiting.push(catalogue.clone());
            }
            (Entry::Reply(reply), Phase::Asking { ordinal }) if *ordinal == reply.of => self.replied(reply),
            (Entry::Reply(reply), Phase::Reviewing { ordinal, signal }) if *ordinal == reply.of => {
                self.reviewer_replied(*signal, reply);
            }
            (Entry::Timer(timer), phase) if timer.name == CLOCK_TIMER && !matches!(phase, Phase::Fresh) => self.time_is_over(),
            (Entry::Result(result), Phase::Calling { ordinal, .. }) if *ordinal == result.of => self.returned(result),
            (Entry::Control(word), phase) if control::is_known(&word.word) && !matches!(phase, Phase::Fresh) => {
                self.controlled(word)
            }
            (Entry::Observed(observed), phase) if phase.is_unannounced() => self.early.push(observed.clone()),
            (Entry::Observed(_), Phase::Ended { .. }) => {}
            (Entry::Observed(observed), _) => self.notice(observed.clone()),
            (Entry::Closed(_), Phase::Ended { .. }) => {}
            (Entry::Closed(closed), phase) if !matches!(phase, Phase::Fresh) => {
                let detail = closed.detail.clone();
                self.tell_gate_at_end();
                if let Some(detail) = detail.clone() {
                    self.notice(Observed { what: "run_closed".into(), detail, ..Observed::default() });
                }
                self.finish(Outcome::Incomplete, None, None, detail);
            }
            (Entry::Control(_) | Entry::Timer(_) | Entry::Ask(_) | Entry::Intent(_) | Entry::Record(_), _) => {
                return Err(FoldError::NotAnInput(input.kind()));
            }
            (input, phase) => return Err(FoldError::OutOfPlace { kind: input.kind(), state: phase.words() }),
        }
        Ok(std::mem::take(&mut self.effects))
    }

    /// Model turns that came to their end so far.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// The ceiling on them; 0 is none.
    pub fn max_steps(&self) -> u64 {
        self.open.spec.limits.steps.unwrap_or(0)
    }

    /// What the replies cost so far, where any of them said so.
    pub fn usage(&self) -> Option<UsageTotal> {
        self.ledger.total(self.open.spec.pricing.as_ref())
    }

    fn emit(&mut self, event: Event) {
        self.effects.push(Effect::Emit { event: Box::new(event), repeats: None });
    }

    fn notice(&mut self, observed: Observed) {
        let index = self.begun.checked_sub(1).map(|_| self.index);
        self.emit(Event::Notice(Notice {
            code: observed.what,
            detail: observed.detail,
            server: observed.server,
            index,
            ..Notice::default()
        }));
    }

    fn native(&self) -> bool {
        self.open.spec.protocol == Protocol::Native
    }

    fn start(&mut self, catalogue: &Catalogue) {
        let spec = &self.open.spec;
        self.servers = catalogue.servers.clone();
        self.offer = Offer::new(&catalogue.tools, spec.allowed_tools.clone()).limited(spec.tool_limit);
        let tools_of = |name: &str| catalogue.tools.iter().filter(|tool| tool.server == name).count() as u64;
        let servers = self.servers.iter().map(|server| server_ref(server, tools_of(&server.name))).collect();
        let gated = self.offer.gated(|definition| self.is_gated(definition));
        let spec = &self.open.spec;
        let started = MissionStarted {
            schema_version: mission_contract::SCHEMA_VERSION,
            objective: spec.objective.clone(),
            catalogue: self.offer.catalogue(),
            gated,
            max_steps: spec.limits.steps.unwrap_or(0),
            history: spec.texts.history.len() as u64,
            sandbox: spec.sandbox.clone(),
            audit_ref: spec.audit_ref.clone(),
            run_id: spec.recorded.then(|| self.open.run_id.clone()),
            protocol: self.native().then(|| "native".to_owned()),
            profile: spec.profile.clone(),
            granted: spec.grants.clone(),
            version: Some(self.open.build.clone()),
            limits: Some(spec.limits.clone()),
            skill: spec.skill.clone(),
            servers,
            control: spec.control.then_some(true),
            policy: spec.policy.as_ref().map(|policy| policy.digest.clone()),
            ..MissionStarted::default()
        };
        self.emit(Event::MissionStarted(started));
        self.phase = Phase::Opened { announced: true };
        self.arm_clock();
        let failure = self.tell_failed_servers();
        for observed in std::mem::take(&mut self.early) {
            self.notice(observed);
        }
        if failure.is_some() {
            return self.finish(Outcome::Incomplete, None, None, failure);
        }
        self.begin();
    }

    /// Tells of each server that did not come up; gives a sentence when one of them was needed.
    fn tell_failed_servers(&mut self) -> Option<String> {
        let failed: Vec<ServerState> =
            self.servers.iter().filter(|server| server.state == ServerCondition::Failed).cloned().collect();
        let mut failure = None;
        for server in failed {
            let detail = server.detail.unwrap_or_else(|| format!("The tool server {} did not come up.", server.name));
            if !server.optional {
                failure.get_or_insert(detail.clone());
            }
            self.notice(Observed { what: "server_failed".into(), detail, server: Some(server.name), of: None });
        }
        failure
    }

    fn cancel(&mut self, signal: Option<String>) {
        // Where the time is over, what is in flight is being given up already.
        match &self.stop {
            Some(Stop::Asked(_)) => return,
            Some(Stop::Clock) => return self.stop = Some(Stop::Asked(signal)),
            None => self.stop = Some(Stop::Asked(signal.clone())),
        }
        match self.phase {
            Phase::Asking { .. } | Phase::Reviewing { .. } => self.effects.push(Effect::AbortAsk),
            Phase::Calling { .. } => self.effects.push(Effect::CancelCall),
            Phase::Listening | Phase::Gated(_) => self.cancelled(signal),
            // Nothing has begun yet: what comes next ends it.
            Phase::Fresh | Phase::Opened { .. } | Phase::Resuming(_) | Phase::Between => {}
            Phase::Ended { .. } => {}
        }
    }

    fn cancelled(&mut self, signal: Option<String>) {
        self.finish_with(Outcome::Incomplete, None, Some("cancelled".into()), None, signal);
    }

    fn finish(&mut self, outcome: Outcome, budget: Option<BudgetSpent>, reason: Option<String>, failure: Option<String>) {
        let signal = match &self.stop {
            Some(Stop::Asked(signal)) => signal.clone(),
            _ => None,
        };
        self.finish_with(outcome, budget, reason, failure, signal);
    }

    fn finish_with(
        &mut self,
        outcome: Outcome,
        budget: Option<BudgetSpent>,
        reason: Option<String>,
        failure: Option<String>,
        signal: Option<String>,
    ) {
        let finished = MissionFinished {
            outcome,
            steps: self.steps,
            max_steps: self.open.spec.limits.steps.unwrap_or(0),
            budget,
            reason: reason.or_else(|| self.stuck()),
            usage: self.usage(),
            elapsed_s: Some(seconds(self.ms)),
            ..MissionFinished::default()
        };
        self.emit(Event::MissionFinished(finished));
        self.end(outcome);
        self.effects.push(Effect::Finish(Ending { outcome, failure, signal }));
    }
}

fn said(role: Role, text: &str) -> Message {
    Message { role, content: text.into(), ..Message::default() }
}

fn tool_message(id: &str, text: &str) -> Message {
    Message { role: Role::Tool, content: text.into(), call_id: Some(id.to_owned()), ..Message::default() }
}

fn server_ref(server: &ServerState, tools: u64) -> ServerRef {
    let state = match server.state {
        ServerCondition::Ready => "ready",
        ServerCondition::Failed => "failed",
    };
    let era = server.era.map(|era| match era {
        Era::Handshake => "handshake".to_owned(),
        Era::Stateless => "stateless".to_owned(),
    });
    let (name, transport) = (server.name.clone(), server.transport.clone());
    ServerRef { name, transport, state: state.into(), era, version: server.version.clone(), tools }
}

/// Milliseconds as seconds with three decimals.
fn seconds(ms: u64) -> f64 {
    ms as f64 / 1000.0
}

#[cfg(test)]
mod any_input_tests;
#[cfg(test)]
mod budgets_tests;
#[cfg(test)]
mod control_tests;
#[cfg(test)]
mod endings_tests;
#[cfg(test)]
mod gates_tests;
#[cfg(test)]
mod judging_tests;
#[cfg(test)]
mod replies_tests;
#[cfg(test)]
mod review_tests;
#[cfg(test)]
mod stretch_tests;
