//! The texts of an event: what a redactor has to look at, field by field.
//!
//! *Free text* is scrubbed before a record leaves the run: the fields that seed 2 scrubs (`error`, `problem`, `reason`,
//! `text`, `caveat`, `detail`, `unsupported`, `injected`, `tool`) at any depth, a reviewer's `note`, and what we add that
//! a model, a server or an operator words. *Evidence* is what seed 2 passes verbatim and what may hold anything; it is
//! scrubbed only where evidence is to be redacted. Everything else is a closed word or an identifier: nobody can put a
//! secret there without naming a thing after it.

use serde_json::{Map, Value};

use crate::event::{Event, Usage};
use crate::text::Text;

/// One piece of evidence in an event.
#[derive(Debug)]
pub enum Evidence<'e> {
    /// A string, and the field that it stands in.
    String(&'static str, &'e mut String),
    /// A text that may be large, and the field that it stands in.
    Text(&'static str, &'e mut Text),
}

impl Event {
    /// The name of the event, as its `event` field has it.
    pub fn name(&self) -> &'static str {
        match self {
            Event::MissionStarted(_) => "mission_started",
            Event::StepStarted(_) => "step_started",
            Event::ReplyRejected(_) => "reply_rejected",
            Event::ToolCall(_) => "tool_call",
            Event::ToolResult(_) => "tool_result",
            Event::GateRequested(_) => "gate_requested",
            Event::AnswerDelta(_) => "answer_delta",
            Event::Grounding(_) => "grounding",
            Event::Answer(_) => "answer",
            Event::MissionFinished(_) => "mission_finished",
            Event::ModelState(_) => "model_state",
            Event::Notice(_) => "notice",
            Event::ControlAck(_) => "control_ack",
            Event::Tick(_) => "tick",
        }
    }

    /// The branch that the record belongs to.
    pub fn branch(&self) -> Option<&str> {
        match self {
            Event::MissionStarted(record) => record.branch.as_deref(),
            Event::StepStarted(record) => record.branch.as_deref(),
            Event::ReplyRejected(record) => record.branch.as_deref(),
            Event::ToolCall(record) => record.branch.as_deref(),
            Event::ToolResult(record) => record.branch.as_deref(),
            Event::GateRequested(record) => record.branch.as_deref(),
            Event::AnswerDelta(record) => record.branch.as_deref(),
            Event::Grounding(record) => record.branch.as_deref(),
            Event::Answer(record) => record.branch.as_deref(),
            Event::MissionFinished(record) => record.branch.as_deref(),
            Event::ModelState(record) => record.branch.as_deref(),
            Event::Notice(record) => record.branch.as_deref(),
            Event::ControlAck(record) => record.branch.as_deref(),
            Event::Tick(record) => record.branch.as_deref(),
        }
    }

    /// The record as it goes out: one JSON object, without its newline.
    pub fn to_line(&self) -> String {
        // Every key of an event is a string and every value plain data: this does not fail. Were it to, the reader is
        // told which record is missing, as seed 2 does.
        serde_json::to_string(self).unwrap_or_else(|_| format!("{{\"event\":\"{}\",\"unserializable\":true}}", self.name()))
    }

    /// Shows every free text of the record to `visit`, with the name of its field, in the order of the fields.
    pub fn free_text(&mut self, visit: &mut dyn FnMut(&'static str, &mut String)) {
        match self {
            Event::MissionStarted(_) => {}
            Event::StepStarted(record) => {
                all("injected", &mut record.injected, visit);
                if let Some(note) = record.review.as_mut().and_then(|review| review.note.as_mut()) {
                    visit("note", note);
                }
            }
            Event::ReplyRejected(record) => {
                visit("problem", &mut record.problem);
                optional("tool", &mut record.tool, visit);
                usage(&mut record.usage, visit);
            }
            Event::ToolCall(record) => {
                visit("tool", &mut record.tool);
                usage(&mut record.usage, visit);
            }
            Event::ToolResult(record) => {
                visit("tool", &mut record.tool);
                visit("error", &mut record.error);
            }
            Event::GateRequested(record) => {
                visit("tool", &mut record.tool);
                visit("reason", &mut record.reason);
            }
            Event::AnswerDelta(record) => visit("text", &mut record.text),
            Event::Grounding(record) => {
                visit("caveat", &mut record.caveat);
                all("unsupported", &mut record.unsupported, visit);
                for check in &mut record.checks {
                    all("unsupported", &mut check.unsupported, visit);
                    visit("detail", &mut check.detail);
                }
            }
            Event::Answer(record) => {
                visit("text", &mut record.text);
                usage(&mut record.usage, visit);
                if let Some(structured) = &mut record.structured {
                    in_value(structured, &mut |text| visit("structured", text));
                }
            }
            Event::MissionFinished(record) => optional("reason", &mut record.reason, visit),
            Event::ModelState(record) => optional("detail", &mut record.detail, visit),
            Event::Notice(record) => {
                visit("detail", &mut record.detail);
                optional("tool", &mut record.tool, visit);
            }
            Event::ControlAck(record) => {
                // The word as it was typed: somebody may have pasted anything there.
                visit("word", &mut record.word);
                visit("disposition", &mut record.disposition);
            }
            Event::Tick(record) => {
                visit("state", &mut record.state);
                visit("waiting_on", &mut record.waiting_on);
            }
        }
    }

    /// Shows every piece of evidence of the record to `visit`, in the order of the fields.
    pub fn evidence_text(&mut self, visit: &mut dyn FnMut(Evidence<'_>)) {
        match self {
            Event::MissionStarted(record) => visit(Evidence::String("objective", &mut record.objective)),
            Event::StepStarted(record) => {
                for step in record.plan.iter_mut().flatten() {
                    visit(Evidence::String("plan", &mut step.goal));
                }
                if let Some(artifacts) = &mut record.artifacts {
                    for name in artifacts.inputs.iter_mut().chain(&mut artifacts.outputs) {
                        visit(Evidence::String("artifacts", name));
                    }
                }
            }
            Event::ToolCall(record) => arguments(&mut record.arguments, visit),
            Event::ToolResult(record) => {
                arguments(&mut record.arguments, visit);
                visit(Evidence::Text("output", &mut record.output));
            }
            Event::GateRequested(record) => arguments(&mut record.arguments, visit),
            Event::ReplyRejected(_)
            | Event::AnswerDelta(_)
            | Event::Grounding(_)
            | Event::Answer(_)
            | Event::MissionFinished(_)
            | Event::ModelState(_)
            | Event::Notice(_)
            | Event::ControlAck(_)
            | Event::Tick(_) => {}
        }
    }
}

fn all(field: &'static str, texts: &mut [String], visit: &mut dyn FnMut(&'static str, &mut String)) {
    for text in texts {
        visit(field, text);
    }
}

fn optional(field: &'static str, text: &mut Option<String>, visit: &mut dyn FnMut(&'static str, &mut String)) {
    if let Some(text) = text {
        visit(field, text);
    }
}

/// What a provider adds to its counts is free text: nobody has said what it holds.
fn usage(usage: &mut Option<Usage>, visit: &mut dyn FnMut(&'static str, &mut String)) {
    for extra in usage.iter_mut().flat_map(|usage| usage.extras.values_mut()) {
        in_value(extra, &mut |text| visit("usage", text));
    }
}

fn arguments(arguments: &mut Map<String, Value>, visit: &mut dyn FnMut(Evidence<'_>)) {
    in_members(arguments, &mut |text| visit(Evidence::String("arguments", text)));
}

/// Shows every string of a JSON value to `visit`, the keys of its objects included.
pub fn in_value(value: &mut Value, visit: &mut dyn FnMut(&mut String)) {
    match value {
        Value::String(text) => visit(text),
        Value::Array(items) => items.iter_mut().for_each(|item| in_value(item, visit)),
        Value::Object(members) => in_members(members, visit),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Shows every string of a JSON object to `visit`, its keys included. Two keys that become one keep the later value.
pub fn in_members(members: &mut Map<String, Value>, visit: &mut dyn FnMut(&mut String)) {
    let mut changed = Vec::new();
    for (key, value) in members.iter_mut() {
        in_value(value, visit);
        let mut shown = key.clone();
        visit(&mut shown);
        if shown != *key {
            changed.push((key.clone(), shown));
        }
    }
    for (old, new) in changed {
        if let Some(value) = members.remove(&old) {
            members.insert(new, value);
        }
    }
}
