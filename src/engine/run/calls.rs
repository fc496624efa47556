//! What becomes of the calls of a turn: refused, answered here, or dispatched, one after the other.

use std::sync::Arc;

use mission_contract::digest::{call_digest, key};
use mission_contract::event::{Arguments, Event, ToolCall, ToolResult};
use mission_contract::log::{CallEnd, CallResult, Intent, Observed, Role};
use mission_contract::text::Text;
use serde_json::Value;

use super::phase::{Pending, Phase};
use super::{Run, said, tool_message};
use crate::engine::arguments::kind_of;
use crate::engine::beside::beside;
use crate::engine::bound::bound;
use crate::engine::effect::Effect;
use crate::engine::mission_result;
use crate::engine::offer::Unusable;
use crate::engine::plain::plain;
use crate::engine::reading::Proposed;
use crate::engine::request::ToolDispatch;
use crate::engine::results::Kept;
use crate::engine::words::{self, RESULT_TOOL};
use crate::policy;

impl Run {
    /// Carries out the turn's next call, until one is in flight or none is left.
    pub(super) fn next_call(&mut self) {
        if self.stop.is_some() {
            self.drop_calls(self.why_stopped());
            return self.stopped();
        }
        if self.is_late() && !self.turn.queue.is_empty() {
            self.drop_calls(words::OUT_OF_TIME);
            return self.out_of_time();
        }
        if self.skips() {
            return;
        }
        // The run went on: what was said before is no answer any more.
        self.half = None;
        while let Some(proposed) = self.turn.queue.pop_front() {
            match self.prepare(&proposed) {
                Ok(Prepared { tool, arguments, canonical }) if tool == RESULT_TOOL => {
                    self.read_results(proposed, arguments, &canonical)
                }
                Ok(prepared) => {
                    if let Some(budget) = self.ledger.no_call(&self.open.spec.limits, self.open.spec.pricing.as_ref()) {
                        self.turn.queue.push_front(proposed);
                        self.drop_calls(words::LIMIT_REACHED);
                        return self.exhausted(budget);
                    }
                    return self.dispatch(proposed, prepared);
                }
                Err(Refusal { problem, tool }) => {
                    self.rejected(problem.clone(), tool);
                    self.tell(&proposed, &problem);
                }
            }
        }
        // A tool that nobody knew may be new.
        if self.turn.unknown && !self.servers.is_empty() {
            self.count_step();
            self.phase = Phase::Listening;
            self.effects.push(Effect::ListAgain);
            return;
        }
        self.step_over();
    }

    /// The run ends: what is left of the turn is told to be not called, for whoever takes the conversation up again.
    fn drop_calls(&mut self, why: &str) {
        for proposed in std::mem::take(&mut self.turn.queue) {
            self.tell(&proposed, &words::stopped_before_call(&proposed.name, why));
        }
        self.count_step();
    }

    pub(super) fn tell(&mut self, proposed: &Proposed, text: &str) {
        let remark = self.turn.remark.take();
        let text = remark.map_or_else(|| text.to_owned(), |remark| format!("{text}\n{remark}"));
        self.conversation.push(match &proposed.call_id {
            Some(id) => tool_message(id, &text),
            None => said(Role::User, &text),
        });
    }

    fn prepare(&mut self, proposed: &Proposed) -> Result<Prepared, Refusal> {
        if self.watch.is_last() {
            return Err(Refusal { problem: words::ONLY_AN_ANSWER.to_owned(), tool: Some(proposed.name.clone()) });
        }
        let Some(tool) = self.offer.resolve(&proposed.name) else {
            self.audit_unknown(&proposed.name, &proposed.arguments);
            return Err(self.unknown(&proposed.name));
        };
        let refused = |problem: String| Refusal { problem, tool: Some(tool.clone()) };
        let raw = if proposed.arguments.trim().is_empty() { "{}" } else { proposed.arguments.as_str() };
        let canonical = mission_contract::canonical::from_raw(raw)
            .map_err(|problem| refused(words::arguments_unreadable(&tool, &problem.pointer, &problem.problem.to_string())))?;
        let fault = if canonical.value.is_object() { self.offer.fault(&tool, &canonical.value) } else { Ok(None) };
        match fault {
            Ok(None) => {}
            Ok(Some(fault)) => return Err(refused(words::schema_violation(&tool, &fault, &self.offer.summary(&tool)))),
            Err(Unusable { problem, server, is_news }) => {
                if is_news {
                    let detail = format!("The tool {tool} cannot be used in this run, because {problem}.");
                    self.notice(Observed { what: "tool_unusable".into(), detail, server: Some(server), of: None });
                }
                return Err(refused(words::unusable_tool(&tool, &problem)));
            }
        }
        match canonical.value {
            Value::Object(arguments) => Ok(Prepared { tool, arguments, canonical: canonical.text.into() }),
            other => Err(refused(words::arguments_not_object(&tool, kind_of(&other)))),
        }
    }

    /// A name that is not offered: what is, and the one that can only be meant.
    fn unknown(&mut self, name: &str) -> Refusal {
        self.turn.unknown = true;
        let offered = self.offer.catalogue();
        let shown = |tool: &'_ str| if self.native() { self.offer.function(tool).to_owned() } else { tool.to_owned() };
        let near = crate::skill::near_match(name, &offered).map(shown);
        let offered: Vec<String> = offered.iter().map(|tool| shown(tool)).collect();
        let offered: Vec<&str> = offered.iter().map(String::as_str).collect();
        let problem = words::unknown_tool(name, &offered, near.as_deref());
        Refusal { problem, tool: (!name.is_empty()).then(|| name.to_owned()) }
    }

    pub(super) fn announce(&mut self, call: &mut Pending) {
        if call.is_announced {
            return;
        }
        call.is_announced = true;
        let usage = self.turn.usage.take();
        let position = call.proposed.position;
        self.emit(Event::ToolCall(ToolCall {
            index: self.index,
            tool: call.proposed.name.clone(),
            arguments: call.intent.arguments.clone(),
            call: (position > 0).then_some(position),
            usage,
            branch: None,
        }));
    }

    fn dispatch(&mut self, proposed: Proposed, prepared: Prepared) {
        let Prepared { tool, arguments, canonical } = prepared;
        let Some(offered) = self.offer.tool(&tool) else { return self.next_call() };
        let definition = &offered.definition;
        let (name, server) = (definition.name.clone(), definition.server.clone());
        let (idempotent, judged) = (self.is_idempotent(definition), self.judge(definition, &arguments));
        let digest = call_digest(&tool, &offered.digest, &canonical);
        let intent = Intent {
            tool: tool.clone(),
            server,
            arguments,
            digest,
            key: String::new(),
            definition: offered.digest.clone(),
            idempotent,
        };
        let proposed = Proposed { name: tool, ..proposed };
        let effect = judged.effect;
        let call = Pending { judged, ..Pending::new(proposed, canonical, intent, name) };
        if effect == policy::Effect::Deny {
            return self.deny(call);
        }
        let Some(call) = self.doubted(call) else { return };
        if effect == policy::Effect::Gate { self.propose(call) } else { self.make(call) }
    }

    /// Makes a call. One that was made before keeps its key: a server that knows it does nothing twice.
    pub(super) fn make(&mut self, mut call: Pending) {
        self.announce(&mut call);
        self.intents = self.intents.saturating_add(1);
        if call.intent.key.is_empty() {
            call.intent.key = key(&self.open.run_id, self.epoch, self.intents);
        }
        call.is_intended = false;
        self.audit_outgoing(&call);
        let Intent { server, arguments, key, .. } = call.intent.clone();
        let dispatch = ToolDispatch { ordinal: self.intents, server, name: call.name.clone(), arguments, key };
        let intent = Box::new(call.intent.clone());
        self.phase = Phase::Calling { ordinal: self.intents, call: Box::new(call) };
        self.effects.push(Effect::Dispatch { intent, dispatch: Box::new(dispatch) });
    }

    fn read_results(&mut self, proposed: Proposed, arguments: Arguments, canonical: &Arc<str>) {
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
            remark: String::new(),
        };
        let intent = Intent { tool: RESULT_TOOL.to_owned(), arguments, digest, ..Intent::default() };
        let proposed = Proposed { name: RESULT_TOOL.into(), ..proposed };
        let (canonical, name) = (Arc::clone(canonical), String::new());
        let mut call = Pending::new(proposed, canonical, intent, name);
        self.audit_answered(&call, &result);
        self.announce(&mut call);
        self.settle(call, result);
    }

    pub(super) fn returned(&mut self, result: &CallResult) {
        let Phase::Calling { ordinal, call } = std::mem::replace(&mut self.phase, Phase::Between) else { return };
        let text: Arc<str> = match &result.text {
            Text::Inline(text) => Arc::clone(text),
            Text::Of { .. } => Arc::from(""),
        };
        let finished = match result.end {
            CallEnd::Ok => Finished {
                exit_code: result.exit_code,
                output: text,
                error: String::new(),
                structured: result.structured.clone(),
                repeats: Some(self.seq),
                remark: result.remark.clone(),
            },
            CallEnd::Error => {
                let error = if result.error.is_empty() { text.to_string() } else { result.error.clone() };
                let (structured, remark) = (result.structured.clone(), result.remark.clone());
                Finished { exit_code: 1, output: Arc::from(""), error, structured, repeats: None, remark }
            }
            CallEnd::Protocol => Finished::failed(result.error.clone()),
            // Who made the call knows whether it went out at all, and says so.
            CallEnd::Timeout | CallEnd::Died | CallEnd::Cancelled if result.error.trim().is_empty() => {
                Finished::failed(words::EFFECT_UNKNOWN.to_owned())
            }
            CallEnd::Timeout | CallEnd::Died | CallEnd::Cancelled => Finished::failed(result.error.clone()),
        };
        self.ledger.returned(finished.output.len().saturating_add(finished.error.len()));
        if result.end.leaves_doubt() && !result.unsent {
            self.doubt(ordinal, &call);
        }
        self.settle(*call, finished);
        self.next_call();
    }

    /// Keeps a result, tells the stream and the model.
    pub(super) fn settle(&mut self, call: Pending, result: Finished) {
        let ok = result.exit_code == 0;
        let tool = call.proposed.name.clone();
        let kept = Kept {
            tool: tool.clone(),
            arguments: Arc::clone(&call.canonical),
            ok,
            text: if ok { Arc::clone(&result.output) } else { Arc::from(result.error.as_str()) },
            structured: result.structured,
        };
        let typed = kept.structured.as_deref().and_then(|value| beside(&kept.text, value));
        let (handle, same) = self.results.keep(&call.intent.digest, kept);
        let came = if ok { &*result.output } else { result.error.as_str() };
        self.watch_act(&tool, &call.intent.digest, same.as_deref(), &handle, ok, came);
        let typed = typed
            .map_or_else(String::new, |typed| format!("\n{}", words::typed_result(&handle, &typed.to_string(), typed.truncated)));
        let marker = |head, tail, total| words::truncation(&handle, head, tail, total);
        let (mut shown, truncated) = match (&same, ok) {
            (Some(same), _) => (words::repeated_result(&tool, same), false),
            (None, true) => {
                let shown = bound(&result.output, marker);
                let body = if shown.text.is_empty() { words::NO_OUTPUT } else { &shown.text };
                (format!("{}\n{body}{typed}", words::result_heading(&tool, &handle)), shown.truncated)
            }
            (None, false) => {
                let shown = bound(&result.error, marker);
                (words::failed_result(&tool, result.exit_code, &format!("{}{typed}", shown.text)), shown.truncated)
            }
        };
        if !result.remark.is_empty() {
            shown = format!("{shown}\n{}", result.remark);
        }
        let event = ToolResult {
            index: self.index,
            tool,
            arguments: call.intent.arguments,
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
        self.tell(&call.proposed, &plain(&shown));
    }
}

struct Prepared {
    tool: String,
    arguments: Arguments,
    canonical: Arc<str>,
}

struct Refusal {
    problem: String,
    /// The tool's name, when the model gave one.
    tool: Option<String>,
}

/// How a call came back, as the stream tells it.
pub(super) struct Finished {
    exit_code: i64,
    output: Arc<str>,
    error: String,
    structured: Option<Arc<Value>>,
    repeats: Option<u64>,
    /// What the model is told behind the text.
    remark: String,
}

impl Finished {
    pub(super) fn exit_code(&self) -> i64 {
        self.exit_code
    }

    pub(super) fn output(&self) -> &str {
        &self.output
    }

    pub(super) fn error(&self) -> &str {
        &self.error
    }

    pub(super) fn said(output: &str) -> Self {
        Self { exit_code: 0, output: Arc::from(output), ..Self::failed(String::new()) }
    }

    pub(super) fn failed(error: String) -> Self {
        Self { exit_code: -1, output: Arc::from(""), error, structured: None, repeats: None, remark: String::new() }
    }
}
