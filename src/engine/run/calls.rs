//! What becomes of the calls of a turn: refused, answered here, or dispatched, one after the other.

use std::sync::Arc;

use mission_contract::digest::{call_digest, key};
use mission_contract::event::{Arguments, Event, ToolCall, ToolResult};
use mission_contract::log::{CallEnd, CallResult, Intent};
use mission_contract::text::Text;
use serde_json::Value;

use super::{Pending, Phase, Run, said, tool_message};
use crate::engine::bound::bound;
use crate::engine::effect::Effect;
use crate::engine::reading::Proposed;
use crate::engine::request::ToolDispatch;
use crate::engine::results::Kept;
use crate::engine::words::{self, RESULT_TOOL};
use crate::engine::{arguments, mission_result};
use mission_contract::log::Role;

impl Run {
    /// Carries out the turn's next call, until one is in flight or none is left.
    pub(super) fn next_call(&mut self) {
        let mut unknown = false;
        while let Some(proposed) = self.turn.queue.pop_front() {
            if let Some(signal) = self.stop.clone() {
                self.steps = self.steps.saturating_add(1);
                return self.cancelled(signal);
            }
            match self.prepare(&proposed) {
                Ok(Prepared { tool, arguments, canonical }) if tool == RESULT_TOOL => {
                    self.read_results(proposed, arguments, &canonical)
                }
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
            let shown: Vec<&str> =
                if self.native() { offered.iter().map(|name| self.offer.function(name)).collect() } else { offered.clone() };
            let near = near.map(|name| if self.native() { self.offer.function(name) } else { name });
            return Err(Refusal {
                problem: words::unknown_tool(&proposed.name, &shown, near),
                tool: proposed.name.clone(),
                not_offered: true,
            });
        };
        let raw = if proposed.arguments.trim().is_empty() { "{}" } else { proposed.arguments.as_str() };
        let canonical = mission_contract::canonical::from_raw(raw).map_err(|problem| {
            refusal(words::arguments_unreadable(&tool, &problem.pointer, &problem.problem.to_string()), &tool)
        })?;
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
                let Value::Object(arguments) = instance else {
                    return Err(refusal(words::arguments_not_object(&tool, "no object"), &tool));
                };
                return Ok(Prepared { tool, arguments, canonical: canonical.text.into() });
            }
            return Ok(Prepared { tool, arguments, canonical: canonical.text.into() });
        }
        Err(refusal(words::arguments_not_object(&tool, arguments::kind_of(&canonical.value)), &tool))
    }

    fn announce(&mut self, proposed: &Proposed, tool: &str, arguments: &Arguments) {
        let usage = self.turn.usage.take();
        let call = (proposed.position > 0).then_some(proposed.position);
        let event =
            ToolCall { index: self.index, tool: tool.to_owned(), arguments: arguments.clone(), call, usage, branch: None };
        self.emit(Event::ToolCall(event));
    }

    fn dispatch(&mut self, proposed: Proposed, prepared: Prepared) {
        let Prepared { tool, arguments, canonical } = prepared;
        let Some(offered) = self.offer.tool(&tool) else { return self.next_call() };
        let (server, name, definition) =
            (offered.definition.server.clone(), offered.definition.name.clone(), offered.digest.clone());
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
            remark: String::new(),
        };
        let call = Pending {
            proposed: Proposed { name: RESULT_TOOL.into(), ..proposed },
            arguments,
            canonical: Arc::clone(canonical),
            digest,
        };
        self.settle(call, result);
    }

    pub(super) fn returned(&mut self, result: &CallResult) {
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
                remark: result.remark.clone(),
            },
            CallEnd::Error => {
                let error = if result.error.is_empty() { text.to_string() } else { result.error.clone() };
                let structured = result.structured.clone().map(Arc::new);
                let remark = result.remark.clone();
                Finished { exit_code: 1, output: Arc::from(""), error, structured, repeats: None, remark }
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
        let (mut shown, truncated) = match (&same, ok) {
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
        if !result.remark.is_empty() {
            shown = format!("{shown}\n{}", result.remark);
        }
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
    /// What the model is told behind the text.
    remark: String,
}

impl Finished {
    fn failed(error: String) -> Self {
        Self { exit_code: -1, output: Arc::from(""), error, structured: None, repeats: None, remark: String::new() }
    }
}
