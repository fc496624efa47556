//! Recordings of the harness before: three files in a run's folder, `events.jsonl` (what went out), `model.jsonl` (what the model said) and
//! `tools.jsonl` (what the tools said). They are put into the order in which one of our logs has it all.

mod files;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use mission_contract::LOG_FORMAT;
use mission_contract::log::{
    Ask, CallEnd, CallResult, Catalogue, Control, ControlSource, Entry, Intent, Leg, Open, Reply, ReplyCall, ReplyEnd, Role,
    ServerState, ToolDefinition,
};
use mission_contract::spec::{HistoryTurn, Limits, PromptText, Protocol, Spec, Texts};
use serde_json::{Map, Value, json};

use self::files::{CallLine, Described, EventLine, Files, ModelLine, ToolResult};
use super::recording::{Builder, Recording, RecordingError, Source};
use crate::engine::texts;
use crate::engine::words::RESULT_TOOL;

/// The file by which such a recording is known.
pub const EVENTS_FILE: &str = "events.jsonl";

/// Reads the recording in `folder`; `name` is what messages call it.
///
/// # Errors
/// A file that is missing or has something wrong in a line, each by its name; a run of a kind that this build cannot carry out.
pub fn read(name: &str, folder: &Path) -> Result<Recording, RecordingError> {
    assemble(name, Files::read(folder)?)
}

fn assemble(name: &str, files: Files) -> Result<Recording, RecordingError> {
    let unsupported = |problem: String| RecordingError::Unsupported { name: name.to_owned(), problem };
    if let Some(line) = files.events.iter().find(|line| line.record.contains_key("branch") || line.record.contains_key("plan")) {
        return Err(unsupported(format!(
            "line {} of {EVENTS_FILE} belongs to a staged run, which it does not carry out",
            line.line
        )));
    }
    if let Some(line) = files.events.iter().find(|line| line.is("gate_requested")) {
        return Err(unsupported(format!(
            "in line {} of {EVENTS_FILE} a call waits for a person, and it has no gates",
            line.line
        )));
    }
    let Some(started) = files.events.iter().find(|line| line.is("mission_started")) else {
        return Err(RecordingError::Unreadable(format!(
            "{EVENTS_FILE} of {name} holds no `mission_started`: it is no recorded run"
        )));
    };
    let plane = Plane::of(&files, started);
    let open = Open {
        format: LOG_FORMAT,
        run_id: text(&started.record, "run_id"),
        spec: spec(&started.record, &files.model, plane.names.clone()),
        ..Open::default()
    };
    let mut assembly = Assembly { plane, asks: 0, calls: 0, lines: Vec::new() };
    assembly.lines.push((0, Entry::Open(Box::new(open))));
    assembly.lines.push((0, Entry::Leg(Leg::default())));
    let begun = assembly.plane.begin(&started.record);
    assembly.lines.push((0, Entry::Catalogue(begun)));
    let last_end = files.events.iter().rposition(|line| line.is("mission_finished"));
    let mut replies = files.model.into_iter().filter(|line| line.kind == "mission");
    let mut calls = files.calls.into_iter();
    for (position, line) in files.events.into_iter().enumerate() {
        // A run that was carried on ends once.
        if !line.is("mission_finished") || Some(position) == last_end {
            assembly.take(line, &mut replies, &mut calls);
        }
    }
    let mut builder = Builder::new(name, Source::Seed2);
    for (seq, entry) in assembly.lines {
        builder
            .take(seq, 0, entry)
            .map_err(|problem| RecordingError::Unreadable(format!("{EVENTS_FILE} of {name}: {problem}")))?;
    }
    builder.finish()
}

/// The lines of the log that it would have been.
struct Assembly {
    plane: Plane,
    asks: u64,
    calls: u64,
    lines: Vec<(u64, Entry)>,
}

impl Assembly {
    fn take(
        &mut self,
        line: EventLine,
        replies: &mut impl Iterator<Item = ModelLine>,
        calls: &mut impl Iterator<Item = CallLine>,
    ) {
        let seq = line.seq;
        let is_step = line.is("step_started");
        if is_step && let Some(change) = self.plane.change(&line.record) {
            self.lines.push((seq, Entry::Catalogue(change)));
        }
        if line.is("mission_finished") && line.record.get("reason").is_some_and(|reason| reason == "cancelled") {
            self.cancel(seq);
        }
        let is_call = line.is("tool_call") && line.record.get("tool").is_some_and(|tool| tool != RESULT_TOOL);
        self.lines.push((seq, Entry::Record(line.raw)));
        if is_step {
            self.asks = self.asks.saturating_add(1);
            self.lines.push((seq, Entry::Ask(Ask::default())));
            if let Some(said) = replies.next() {
                self.lines.push((seq, Entry::Reply(reply(self.asks, said))));
            }
        }
        if is_call {
            self.calls = self.calls.saturating_add(1);
            let made = calls.next();
            let (tool, arguments) = match &made {
                Some(made) => (made.tool.clone(), made.arguments()),
                None => (text(&line.record, "tool"), object(&line.record, "arguments")),
            };
            self.lines.push((seq, Entry::Intent(Intent { tool, arguments, ..Intent::default() })));
            if let Some(result) = made.and_then(|made| made.result) {
                self.lines.push((seq, Entry::Result(returned(self.calls, result))));
            }
        }
    }

    /// The run was cancelled: seed 2 looked before each step and each call, so what came last was let come back first.
    fn cancel(&mut self, seq: u64) {
        let (word, source) = ("cancel".to_owned(), ControlSource::Channel);
        let control = Entry::Control(Control { word, source, ..Control::default() });
        let last = self.lines.iter().rposition(|(_, entry)| matches!(entry, Entry::Ask(_) | Entry::Reply(_) | Entry::Result(_)));
        match last {
            Some(last) if !matches!(self.lines.get(last), Some((_, Entry::Ask(_)))) => self.lines.insert(last, (seq, control)),
            _ => self.lines.push((seq, control)),
        }
    }
}

/// The tools of the run, as they came and went.
struct Plane {
    described: BTreeMap<String, Described>,
    /// The tools in their order, where none came later: a set that is closed takes up no other.
    names: Option<Vec<String>>,
    now: BTreeSet<String>,
}

impl Plane {
    fn of(files: &Files, started: &EventLine) -> Self {
        let described = files.catalogue.iter().map(|tool| (tool.name.clone(), tool.clone())).collect();
        let mut steps = files.events.iter().filter(|line| line.is("step_started"));
        let names = offered(&started.record).filter(|_| !steps.any(|step| offered(&step.record).is_some()));
        Self { described, names, now: BTreeSet::new() }
    }

    fn begin(&mut self, started: &Map<String, Value>) -> Catalogue {
        let names = offered(started).unwrap_or_default();
        self.now = names.iter().cloned().collect();
        let tools: Vec<ToolDefinition> = names.iter().map(|name| self.definition(name)).collect();
        let servers: BTreeSet<&str> = tools.iter().map(|tool| tool.server.as_str()).filter(|name| !name.is_empty()).collect();
        let server = |name: &str| ServerState { name: name.to_owned(), transport: "stdio".to_owned(), ..ServerState::default() };
        Catalogue { servers: servers.into_iter().map(server).collect(), tools, ..Catalogue::default() }
    }

    /// What a step says about the tools, where it says something new.
    fn change(&mut self, step: &Map<String, Value>) -> Option<Catalogue> {
        let now: BTreeSet<String> = offered(step)?.into_iter().collect();
        if now == self.now {
            return None;
        }
        let tools = now.difference(&self.now).map(|name| self.definition(name)).collect();
        let removed = self.now.difference(&now).cloned().collect();
        self.now = now;
        Some(Catalogue { tools, removed, ..Catalogue::default() })
    }

    fn definition(&self, full_name: &str) -> ToolDefinition {
        let (server, name) = full_name.split_once('.').unwrap_or(("", full_name));
        let described = self.described.get(full_name);
        // What is not described took any arguments.
        let schema = described.map(|tool| tool.input_schema.clone()).filter(Value::is_object);
        ToolDefinition {
            server: server.to_owned(),
            name: name.to_owned(),
            description: described.map(|tool| tool.description.clone()).unwrap_or_default(),
            input_schema: schema.unwrap_or_else(|| json!({"type": "object"})),
            ..ToolDefinition::default()
        }
    }
}

/// The tools that a record offers; ours is always there.
fn offered(record: &Map<String, Value>) -> Option<Vec<String>> {
    let names = record.get("catalogue")?.as_array()?;
    Some(names.iter().filter_map(Value::as_str).filter(|name| *name != RESULT_TOOL).map(str::to_owned).collect())
}

fn spec(started: &Map<String, Value>, model: &[ModelLine], allowed_tools: Option<Vec<String>>) -> Spec {
    let optional = |name: &str| started.get(name).and_then(Value::as_str).map(str::to_owned);
    let list = |name: &str| {
        let words = started.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        words.iter().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>()
    };
    let protocol = if optional("protocol").as_deref() == Some("native") { Protocol::Native } else { Protocol::Json };
    let steps = started.get("max_steps").and_then(Value::as_u64).filter(|steps| *steps > 0);
    let turns = started.get("history").and_then(Value::as_u64).and_then(|turns| usize::try_from(turns).ok()).unwrap_or(0);
    let first = model.iter().find(|line| line.kind == "mission").map(|line| line.request.messages.as_slice()).unwrap_or_default();
    Spec {
        objective: text(started, "objective"),
        protocol,
        texts: Texts {
            persona: PromptText::of(texts::PERSONA),
            skill: PromptText::default(),
            protocol: PromptText::of(texts::protocol(protocol)),
            conduct: PromptText::of(texts::CONDUCT),
            history: first.iter().skip(1).take(turns).map(turn).collect(),
        },
        limits: Limits { steps, ..Limits::default() },
        allowed_tools,
        gates: list("gated"),
        profile: optional("profile"),
        grants: list("granted"),
        sandbox: optional("sandbox"),
        audit_ref: optional("audit_ref"),
        recorded: started.contains_key("run_id"),
        ..Spec::default()
    }
}

fn turn(message: &Map<String, Value>) -> HistoryTurn {
    let role = if message.get("role").is_some_and(|role| role == "assistant") { Role::Assistant } else { Role::User };
    HistoryTurn { role, content: text(message, "content") }
}

fn reply(of: u64, line: ModelLine) -> Reply {
    let said = line.reply;
    let calls = said.tool_calls.into_iter().map(|call| ReplyCall {
        id: call.id.unwrap_or_default(),
        name: call.name,
        arguments: call
            .arguments_raw
            .unwrap_or_else(|| call.arguments.map_or_else(String::new, |arguments| arguments.to_string())),
        opaque: call.extra.filter(|extra| !extra.is_null()),
    });
    Reply {
        of,
        end: ReplyEnd::Whole,
        text: said.content.unwrap_or_default().into(),
        calls: calls.collect(),
        usage: said.usage.and_then(|usage| serde_json::from_value(usage).ok()),
        ..Reply::default()
    }
}

fn returned(of: u64, result: ToolResult) -> CallResult {
    let structured = result.structured.filter(|value| !value.is_null()).map(Arc::new);
    let (end, exit_code) = match result.exit_code {
        0 => (CallEnd::Ok, 0),
        -1 => (CallEnd::Protocol, -1),
        code => (CallEnd::Error, code),
    };
    let error = if end == CallEnd::Protocol && result.stderr.is_empty() { result.stdout.clone() } else { result.stderr };
    CallResult { of, end, exit_code, text: result.stdout.into(), error, structured, ..CallResult::default() }
}

fn text(record: &Map<String, Value>, name: &str) -> String {
    record.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn object(record: &Map<String, Value>, name: &str) -> Map<String, Value> {
    record.get(name).and_then(Value::as_object).cloned().unwrap_or_default()
}

#[cfg(test)]
#[path = "../seed2_tests.rs"]
mod tests;
