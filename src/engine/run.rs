//! A run: state as a fold over the inputs. Every decision is made here, from inputs alone.

use std::sync::Arc;

use mission_contract::digest::{call_digest, key};
use mission_contract::event::{
    Answer, Arguments, BudgetSpent, Event, MissionFinished, MissionStarted, Notice, Outcome, ReplyRejected, ServerRef, StepStarted, ToolCall,
    ToolResult, Usage,
};
use mission_contract::log::{
    Ask, CallEnd, CallResult, Catalogue, Entry, Era, Intent, Leg, Message, Observed, Open, Purpose, Reply, ReplyCall, ReplyEnd, Role,
    ServerCondition, ServerState,
};
use mission_contract::spec::Protocol;
use mission_contract::text::Text;
use serde_json::{Value, json};

use super::bound::bound;
use super::conversation::Conversation;
use super::effect::{Effect, Ending};
use super::ledger::Ledger;
use super::offer::Offer;
use super::reading::native::{self, NativeTurn};
use super::reading::{Proposed, json as json_reading};
use super::request::{Constraint, FunctionChoice, FunctionDeclaration, ModelRequest, ToolDispatch};
use super::results::{Kept, Results};
use super::words::{self, RESULT_TOOL};
use super::{arguments, mission_result};

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

#[derive(Debug)]
enum Phase {
    Fresh,
    Opened,
    Listening,
    Asking { ordinal: u64 },
    Calling { ordinal: u64, call: Box<Pending> },
    Ended,
}

impl Phase {
    fn words(&self) -> &'static str {
        match self {
            Phase::Fresh => "not open yet",
            Phase::Opened => "not started yet",
            Phase::Listening => "waiting for the servers' lists",
            Phase::Asking { .. } => "waiting for the model",
            Phase::Calling { .. } => "waiting for a tool",
            Phase::Ended => "over",
        }
    }
}

/// A call that was dispatched.
#[derive(Debug)]
struct Pending {
    proposed: Proposed,
    arguments: Arguments,
    canonical: Arc<str>,
    digest: String,
}

/// A turn whose calls are being carried out.
#[derive(Debug, Default)]
struct Turn {
    queue: std::collections::VecDeque<Proposed>,
    usage: Option<Usage>,
    /// Added to the last result, for the model.
    remark: Option<String>,
}

/// The state of a run.
#[derive(Debug)]
pub struct Run {
    phase: Phase,
    open: Open,
    epoch: u64,
    leg: Leg,
    servers: Vec<ServerState>,
    offer: Offer,
    functions: Arc<Vec<FunctionDeclaration>>,
    conversation: Conversation,
    results: Results,
    ledger: Ledger,
    turn: Turn,
    waiting: Vec<Catalogue>,
    early: Vec<Observed>,
    asks: u64,
    intents: u64,
    index: u64,
    steps: u64,
    stop: Option<Option<String>>,
    ms: u64,
    seq: u64,
    effects: Vec<Effect>,
}

impl Default for Run {
    fn default() -> Self {
        Self {
            phase: Phase::Fresh,
            open: Open::default(),
            epoch: 1,
            leg: Leg::default(),
            servers: Vec::new(),
            offer: Offer::default(),
            functions: Arc::default(),
            conversation: Conversation::default(),
            results: Results::default(),
            ledger: Ledger::default(),
            turn: Turn::default(),
            waiting: Vec::new(),
            early: Vec::new(),
            asks: 0,
            intents: 0,
            index: 0,
            steps: 0,
            stop: None,
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
                self.phase = Phase::Opened;
            }
            (Entry::Writer(writer), phase) if !matches!(phase, Phase::Fresh) => self.epoch = writer.epoch,
            (Entry::Leg(leg), phase) if !matches!(phase, Phase::Fresh | Phase::Ended) => self.leg = leg.clone(),
            (Entry::Catalogue(catalogue), Phase::Opened) => self.start(catalogue),
            (Entry::Catalogue(catalogue), Phase::Listening) => {
                self.waiting.push(catalogue.clone());
                self.next_step();
            }
            (Entry::Catalogue(catalogue), Phase::Asking { .. } | Phase::Calling { .. }) => self.waiting.push(catalogue.clone()),
            (Entry::Reply(reply), Phase::Asking { ordinal }) if *ordinal == reply.of => self.replied(reply),
            (Entry::Result(result), Phase::Calling { ordinal, .. }) if *ordinal == result.of => self.returned(result),
            (Entry::Control(control), phase) if control.word == "cancel" && !matches!(phase, Phase::Fresh) => self.cancel(control.signal.clone()),
            (Entry::Observed(observed), Phase::Fresh | Phase::Opened) => self.early.push(observed.clone()),
            (Entry::Observed(_), Phase::Ended) => {}
            (Entry::Observed(observed), _) => self.notice(observed.clone()),
            (Entry::Closed(_), Phase::Ended) => {}
            (Entry::Closed(closed), phase) if !matches!(phase, Phase::Fresh) => {
                if let Some(detail) = &closed.detail {
                    self.notice(Observed { what: "driver_failed".into(), detail: detail.clone(), ..Observed::default() });
                }
                self.finish(Outcome::Incomplete, None, None, true);
            }
            (Entry::Control(_) | Entry::Decision(_) | Entry::Timer(_) | Entry::Ask(_) | Entry::Intent(_) | Entry::Record(_), _) => {
                return Err(FoldError::NotAnInput(input.kind()));
            }
            (input, phase) => return Err(FoldError::OutOfPlace { kind: input.kind(), state: phase.words() }),
        }
        Ok(std::mem::take(&mut self.effects))
    }

    /// Model turns begun so far.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    fn emit(&mut self, event: Event) {
        self.effects.push(Effect::Emit { event: Box::new(event), repeats: None });
    }

    fn notice(&mut self, observed: Observed) {
        let index = self.asks.checked_sub(1).map(|_| self.index);
        self.emit(Event::Notice(Notice { code: observed.what, detail: observed.detail, server: observed.server, index, ..Notice::default() }));
    }

    fn native(&self) -> bool {
        self.open.spec.protocol == Protocol::Native
    }

    fn start(&mut self, catalogue: &Catalogue) {
        let spec = &self.open.spec;
        self.servers = catalogue.servers.clone();
        self.offer = Offer::new(&catalogue.tools, spec.allowed_tools.clone());
        let tools_of = |name: &str| catalogue.tools.iter().filter(|tool| tool.server == name).count() as u64;
        let servers = self.servers.iter().map(|server| server_ref(server, tools_of(&server.name))).collect();
        let started = MissionStarted {
            schema_version: mission_contract::SCHEMA_VERSION,
            objective: spec.objective.clone(),
            catalogue: self.offer.catalogue(),
            gated: spec.gates.clone(),
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
            ..MissionStarted::default()
        };
        self.emit(Event::MissionStarted(started));
        let failed: Vec<ServerState> = self.servers.iter().filter(|server| server.state == ServerCondition::Failed).cloned().collect();
        for server in &failed {
            let detail = server.detail.clone().unwrap_or_else(|| format!("The tool server {} did not come up.", server.name));
            self.notice(Observed { what: "server_failed".into(), detail, server: Some(server.name.clone()), of: None });
        }
        for observed in std::mem::take(&mut self.early) {
            self.notice(observed);
        }
        if failed.iter().any(|server| !server.optional) {
            return self.finish(Outcome::Incomplete, None, None, true);
        }
        self.set_prompt();
        for turn in &self.open.spec.texts.history {
            self.conversation.push(said(turn.role, &turn.content));
        }
        self.conversation.push(said(Role::User, &self.open.spec.objective));
        self.next_step();
    }

    /// The system message, its parts in their fixed order; the functions of the `native` protocol.
    fn set_prompt(&mut self) {
        let texts = &self.open.spec.texts;
        let frame = format!("{}\n\n{}", texts.persona.text.trim(), texts.skill.text.trim());
        let catalogue = format!("Tool catalogue:\n{}", self.offer.text(self.native()));
        let parts = [frame.trim(), texts.protocol.text.trim(), &catalogue, texts.conduct.text.trim()];
        let text = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n");
        self.conversation.set_first(said(Role::System, &text));
        self.functions = Arc::new(if self.native() { self.offer.functions() } else { Vec::new() });
    }

    fn next_step(&mut self) {
        if let Some(signal) = self.stop.clone() {
            return self.cancelled(signal);
        }
        let limit = self.open.spec.limits.steps.unwrap_or(0);
        if limit > 0 && self.asks >= limit {
            let budget = BudgetSpent { which: "steps".into(), limit: limit.into(), spent: self.asks.into() };
            return self.finish(Outcome::BudgetExhausted, Some(budget), None, false);
        }
        let changed = self.take_up_changes();
        self.index = self.asks;
        let catalogue = changed.then(|| self.offer.catalogue());
        self.emit(Event::StepStarted(StepStarted { index: self.index, catalogue, ..StepStarted::default() }));
        self.asks = self.asks.saturating_add(1);
        let request = self.request();
        let header = header(&request);
        let added = self.conversation.ask(&header);
        let ask = Ask { purpose: Purpose::Step, keeps: added.keeps, adds: added.adds, digest: added.digest };
        self.phase = Phase::Asking { ordinal: self.asks };
        self.effects.push(Effect::Ask { ask: Box::new(ask), index: self.index, request: Box::new(request) });
    }

    fn request(&self) -> ModelRequest {
        let constraint = (!self.native()).then(|| Constraint { name: "decision", schema: Arc::new(decision_schema()) });
        ModelRequest {
            ordinal: self.asks,
            purpose: Purpose::Step,
            messages: self.conversation.messages(),
            functions: Arc::clone(&self.functions),
            choice: if self.native() { FunctionChoice::Required } else { FunctionChoice::None },
            constraint,
            sampling: self.open.spec.sampling.clone(),
            stream: self.open.spec.stream,
        }
    }

    /// Applies what the servers changed, at the boundary of a step. True when the offer is another one.
    fn take_up_changes(&mut self) -> bool {
        let (mut joined, mut left) = (Vec::new(), Vec::new());
        for catalogue in std::mem::take(&mut self.waiting) {
            self.servers = if catalogue.servers.is_empty() { std::mem::take(&mut self.servers) } else { catalogue.servers.clone() };
            let change = self.offer.apply(&catalogue);
            for name in &change.changed {
                let detail = format!("The definition of {name} changed; this run goes on with the one it began with.");
                self.notice(Observed { what: "definition_changed".into(), detail, ..Observed::default() });
            }
            joined.extend(change.joined);
            left.extend(change.left);
        }
        if joined.is_empty() && left.is_empty() {
            return false;
        }
        self.set_prompt();
        self.conversation.push(said(Role::User, &words::plane_change(&joined, &left)));
        true
    }

    fn cancel(&mut self, signal: Option<String>) {
        if self.stop.is_some() {
            return;
        }
        self.stop = Some(signal.clone());
        match self.phase {
            Phase::Asking { .. } => self.effects.push(Effect::AbortAsk),
            Phase::Calling { .. } => self.effects.push(Effect::CancelCall),
            Phase::Listening => self.cancelled(signal),
            Phase::Fresh | Phase::Opened | Phase::Ended => {}
        }
    }

    fn cancelled(&mut self, signal: Option<String>) {
        self.finish_with(Outcome::Incomplete, None, Some("cancelled".into()), false, signal);
    }

    fn finish(&mut self, outcome: Outcome, budget: Option<BudgetSpent>, reason: Option<String>, failed: bool) {
        self.finish_with(outcome, budget, reason, failed, self.stop.clone().flatten());
    }

    fn finish_with(&mut self, outcome: Outcome, budget: Option<BudgetSpent>, reason: Option<String>, failed: bool, signal: Option<String>) {
        let finished = MissionFinished {
            outcome,
            steps: self.steps,
            max_steps: self.open.spec.limits.steps.unwrap_or(0),
            budget,
            reason,
            usage: self.ledger.total(),
            elapsed_s: Some(seconds(self.ms)),
            ..MissionFinished::default()
        };
        self.emit(Event::MissionFinished(finished));
        self.phase = Phase::Ended;
        self.effects.push(Effect::Finish(Ending { outcome, failed, signal }));
    }

    fn replied(&mut self, reply: &Reply) {
        self.ledger.add(reply.usage.as_ref());
        match reply.end {
            ReplyEnd::Whole => {}
            ReplyEnd::Interrupted => return self.cancelled(self.stop.clone().flatten()),
            ReplyEnd::Cut | ReplyEnd::Failed => {
                let detail = reply.detail.clone().unwrap_or_else(|| "The model's reply did not come to its end.".to_owned());
                self.notice(Observed { what: "model_failed".into(), detail, ..Observed::default() });
                return self.finish(Outcome::Incomplete, None, None, true);
            }
        }
        self.turn = Turn { usage: reply.usage.clone(), ..Turn::default() };
        if self.native() { self.native_reply(reply) } else { self.json_reply(reply) }
    }

    fn json_reply(&mut self, reply: &Reply) {
        let spoken = reply.text.as_str();
        let echo = match (spoken.trim().is_empty(), reply.calls.first()) {
            (false, _) => spoken.to_owned(),
            (true, Some(call)) => json!({"tool": call.name, "arguments": call.arguments}).to_string(),
            (true, None) => words::NOTHING_SAID.to_owned(),
        };
        self.conversation.push(said(Role::Assistant, &echo));
        match json_reading::read(spoken, &reply.calls) {
            json_reading::Decision::Answer(text) => self.answer(text),
            json_reading::Decision::Rejected { problem, tool } => {
                self.rejected(problem.clone(), tool);
                self.conversation.push(said(Role::User, &problem));
                self.step_over();
            }
            json_reading::Decision::Call { tool, arguments, left } => {
                if !left.is_empty() {
                    self.turn.remark = Some(words::not_run(&left.iter().map(String::as_str).collect::<Vec<_>>()));
                }
                self.turn.queue.push_back(Proposed { name: tool, arguments, position: 0, call_id: None });
                self.next_call();
            }
        }
    }

    fn native_reply(&mut self, reply: &Reply) {
        let calls: Vec<ReplyCall> = reply.calls.iter().filter(|call| !call.name.is_empty()).cloned().collect();
        let turn = native::read(reply, &calls, self.index);
        let echo = calls.iter().zip(turn.ids()).map(|(call, id)| native::echo(call, id, &self.offer)).collect::<Vec<_>>();
        let content = if echo.is_empty() && reply.text.as_str().trim().is_empty() { words::NOTHING_SAID.into() } else { reply.text.clone() };
        self.conversation.push(Message { role: Role::Assistant, content, calls: echo, opaque: reply.opaque.clone(), call_id: None });
        match turn {
            NativeTurn::Answer(text) => self.answer(text),
            NativeTurn::Nothing(problem) => {
                self.rejected(problem.clone(), None);
                self.conversation.push(said(Role::User, &problem));
                self.step_over();
            }
            NativeTurn::Answers { problem, ids } => {
                for id in ids {
                    self.rejected(problem.clone(), Some(words::ANSWER_FUNCTION.to_owned()));
                    self.conversation.push(tool_message(&id, &problem));
                }
                self.step_over();
            }
            NativeTurn::Answered { text, .. } => self.answer(text),
            NativeTurn::Calls { calls, ignored } => {
                for id in ignored {
                    self.conversation.push(tool_message(&id, &words::answer_beside_tools()));
                }
                self.turn.queue.extend(calls);
                self.next_call();
            }
        }
    }

    fn answer(&mut self, text: String) {
        self.steps = self.steps.saturating_add(1);
        let usage = self.turn.usage.take();
        self.emit(Event::Answer(Answer { text, outcome: Outcome::Answered, usage, structured: None, branch: None }));
        self.finish(Outcome::Answered, None, None, false);
    }

    fn rejected(&mut self, problem: String, tool: Option<String>) {
        let usage = self.turn.usage.take();
        self.emit(Event::ReplyRejected(ReplyRejected { index: self.index, problem, tool, usage, branch: None }));
    }

    fn step_over(&mut self) {
        self.steps = self.steps.saturating_add(1);
        self.next_step();
    }

    /// Carries out the turn's next call, until one is in flight or none is left.
    fn next_call(&mut self) {
        let mut unknown = false;
        while let Some(proposed) = self.turn.queue.pop_front() {
            if let Some(signal) = self.stop.clone() {
                self.steps = self.steps.saturating_add(1);
                return self.cancelled(signal);
            }
            match self.prepare(&proposed) {
                Ok(Prepared { tool, arguments, canonical }) if tool == RESULT_TOOL => self.read_results(proposed, arguments, &canonical),
                Ok(prepared) => return self.dispatch(proposed, prepared),
                Err(Refusal { problem, tool, not_offered }) => {
                    unknown |= not_offered;
                    self.rejected(problem.clone(), Some(tool));
                    self.tell(&proposed, &problem);
                }
            }
        }
        self.turn_over(unknown);
    }

    fn turn_over(&mut self, list_again: bool) {
        if list_again && !self.servers.is_empty() {
            self.steps = self.steps.saturating_add(1);
            self.phase = Phase::Listening;
            self.effects.push(Effect::ListAgain);
            return;
        }
        self.step_over();
    }

    fn tell(&mut self, proposed: &Proposed, text: &str) {
        let remark = self.turn.remark.take();
        let text = remark.map_or_else(|| text.to_owned(), |remark| format!("{text}\n{remark}"));
        self.conversation.push(match &proposed.call_id {
            Some(id) => tool_message(id, &text),
            None => said(Role::User, &text),
        });
    }

    fn prepare(&mut self, proposed: &Proposed) -> Result<Prepared, Refusal> {
        let refusal = |problem: String, tool: &str| Refusal { problem, tool: tool.to_owned(), not_offered: false };
        let Some(tool) = self.offer.resolve(&proposed.name) else {
            let catalogue = self.offer.catalogue();
            let offered: Vec<&str> = catalogue.iter().map(String::as_str).collect();
            let near = crate::skill::near_match(&proposed.name, &offered);
            let shown: Vec<&str> = if self.native() { offered.iter().map(|name| self.offer.function(name)).collect() } else { offered.clone() };
            let near = near.map(|name| if self.native() { self.offer.function(name) } else { name });
            return Err(Refusal { problem: words::unknown_tool(&proposed.name, &shown, near), tool: proposed.name.clone(), not_offered: true });
        };
        let raw = if proposed.arguments.trim().is_empty() { "{}" } else { proposed.arguments.as_str() };
        let canonical = mission_contract::canonical::from_raw(raw)
            .map_err(|problem| refusal(words::arguments_unreadable(&tool, &problem.pointer, &problem.problem.to_string()), &tool))?;
        if let Value::Object(arguments) = canonical.value {
            if tool != RESULT_TOOL {
                let instance = Value::Object(arguments);
                match self.offer.fault(&tool, &instance) {
                    Err(problem) => return Err(refusal(words::unusable_tool(&tool, &problem), &tool)),
                    Ok(Some(fault)) => {
                        return Err(refusal(words::schema_violation(&tool, &fault, &self.offer.summary(&tool)), &tool));
                    }
                    Ok(None) => {}
                }
                let Value::Object(arguments) = instance else { return Err(refusal(words::arguments_not_object(&tool, "no object"), &tool)) };
                return Ok(Prepared { tool, arguments, canonical: canonical.text.into() });
            }
            return Ok(Prepared { tool, arguments, canonical: canonical.text.into() });
        }
        Err(refusal(words::arguments_not_object(&tool, arguments::kind_of(&canonical.value)), &tool))
    }

    fn announce(&mut self, proposed: &Proposed, tool: &str, arguments: &Arguments) {
        let usage = self.turn.usage.take();
        let call = (proposed.position > 0).then_some(proposed.position);
        let event = ToolCall { index: self.index, tool: tool.to_owned(), arguments: arguments.clone(), call, usage, branch: None };
        self.emit(Event::ToolCall(event));
    }

    fn dispatch(&mut self, proposed: Proposed, prepared: Prepared) {
        let Prepared { tool, arguments, canonical } = prepared;
        let Some(offered) = self.offer.tool(&tool) else { return self.next_call() };
        let (server, name, definition) = (offered.definition.server.clone(), offered.definition.name.clone(), offered.digest.clone());
        self.announce(&proposed, &tool, &arguments);
        self.intents = self.intents.saturating_add(1);
        let digest = call_digest(&tool, &definition, &canonical);
        let key = key(&self.open.run_id, self.epoch, self.intents);
        let intent = Intent {
            tool: tool.clone(),
            server: server.clone(),
            arguments: arguments.clone(),
            digest: digest.clone(),
            key: key.clone(),
            definition,
            idempotent: false,
        };
        let dispatch = ToolDispatch { ordinal: self.intents, server, name, arguments: arguments.clone(), key };
        let proposed = Proposed { name: tool, ..proposed };
        let call = Box::new(Pending { proposed, arguments, canonical, digest });
        self.phase = Phase::Calling { ordinal: self.intents, call };
        self.effects.push(Effect::Dispatch { intent: Box::new(intent), dispatch: Box::new(dispatch) });
    }

    fn read_results(&mut self, proposed: Proposed, arguments: Arguments, canonical: &Arc<str>) {
        self.announce(&proposed, RESULT_TOOL, &arguments);
        let (ok, text) = match mission_result::read(&self.results, &arguments) {
            Ok(text) => (true, text),
            Err(problem) => (false, problem),
        };
        let digest = call_digest(RESULT_TOOL, "", canonical);
        let result = Finished {
            exit_code: i64::from(!ok),
            output: if ok { Arc::from(text.as_str()) } else { Arc::from("") },
            error: if ok { String::new() } else { text },
            structured: None,
            repeats: None,
        };
        let call = Pending { proposed: Proposed { name: RESULT_TOOL.into(), ..proposed }, arguments, canonical: Arc::clone(canonical), digest };
        self.settle(call, result);
    }

    fn returned(&mut self, result: &CallResult) {
        let Phase::Calling { call, .. } = std::mem::replace(&mut self.phase, Phase::Opened) else { return };
        let text: Arc<str> = match &result.text {
            Text::Inline(text) => Arc::clone(text),
            Text::Of { .. } => Arc::from(""),
        };
        let finished = match result.end {
            CallEnd::Ok => Finished {
                exit_code: result.exit_code,
                output: text,
                error: String::new(),
                structured: result.structured.clone().map(Arc::new),
                repeats: Some(self.seq),
            },
            CallEnd::Error => {
                let error = if result.error.is_empty() { text.to_string() } else { result.error.clone() };
                let structured = result.structured.clone().map(Arc::new);
                Finished { exit_code: 1, output: Arc::from(""), error, structured, repeats: None }
            }
            CallEnd::Protocol => Finished::failed(result.error.clone()),
            CallEnd::Timeout | CallEnd::Died | CallEnd::Cancelled => {
                Finished::failed(format!("{} {}", result.error, words::EFFECT_UNKNOWN).trim().to_owned())
            }
        };
        self.settle(*call, finished);
        if self.stop.is_some() && self.turn.queue.is_empty() {
            self.steps = self.steps.saturating_add(1);
            return self.cancelled(self.stop.clone().flatten());
        }
        self.next_call();
    }

    /// Keeps a result, tells the stream and the model.
    fn settle(&mut self, call: Pending, result: Finished) {
        let ok = result.exit_code == 0;
        let tool = call.proposed.name.clone();
        let kept = Kept {
            tool: tool.clone(),
            arguments: Arc::clone(&call.canonical),
            ok,
            text: if ok { Arc::clone(&result.output) } else { Arc::from(result.error.as_str()) },
            structured: result.structured,
        };
        let (handle, same) = self.results.keep(&call.digest, kept);
        let marker = |head, tail, total| words::truncation(&handle, head, tail, total);
        let (shown, truncated) = match (&same, ok) {
            (Some(same), _) => (words::repeated_result(&tool, same), false),
            (None, true) => {
                let shown = bound(&result.output, marker);
                let body = if shown.text.is_empty() { words::NO_OUTPUT } else { &shown.text };
                (format!("{}\n{body}", words::result_heading(&tool, &handle)), shown.truncated)
            }
            (None, false) => {
                let shown = bound(&result.error, marker);
                (words::failed_result(&tool, result.exit_code, &shown.text), shown.truncated)
            }
        };
        let event = ToolResult {
            index: self.index,
            tool,
            arguments: call.arguments,
            ok,
            exit_code: result.exit_code,
            output: Text::Inline(result.output),
            error: result.error,
            handle,
            truncated,
            call: (call.proposed.position > 0).then_some(call.proposed.position),
            branch: None,
        };
        self.effects.push(Effect::Emit { event: Box::new(Event::ToolResult(event)), repeats: result.repeats });
        self.tell(&call.proposed, &shown);
    }
}

struct Prepared {
    tool: String,
    arguments: Arguments,
    canonical: Arc<str>,
}

struct Refusal {
    problem: String,
    tool: String,
    not_offered: bool,
}

/// How a call came back, as the stream tells it.
struct Finished {
    exit_code: i64,
    output: Arc<str>,
    error: String,
    structured: Option<Arc<Value>>,
    repeats: Option<u64>,
}

impl Finished {
    fn failed(error: String) -> Self {
        Self { exit_code: -1, output: Arc::from(""), error, structured: None, repeats: None }
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

/// All of a request that is not a message and not the model's name, for its digest.
fn header(request: &ModelRequest) -> String {
    let functions: Vec<Value> = request
        .functions
        .iter()
        .map(|function| json!({"name": function.name, "description": function.description, "parameters": function.parameters}))
        .collect();
    let constraint = request.constraint.as_ref().map(|constraint| constraint.schema.as_ref().clone());
    let header = json!({
        "choice": format!("{:?}", request.choice),
        "constraint": constraint,
        "functions": functions,
        "sampling": request.sampling,
    });
    mission_contract::canonical::of_value(&header)
}

/// The shape of a reply of the `json` protocol.
fn decision_schema() -> Value {
    json!({"anyOf": [
        {"type": "object", "properties": {"tool": {"type": "string"}, "arguments": {"type": "object"}}, "required": ["tool", "arguments"]},
        {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}
    ]})
}

/// Milliseconds as seconds with three decimals.
fn seconds(ms: u64) -> f64 {
    std::time::Duration::from_millis(ms).as_secs_f64()
}
