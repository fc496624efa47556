//! How much memory an entry takes while it waits, about. Texts count in full, though they may be shared.

use mission_contract::event::{Arguments, Event};
use mission_contract::log::{Entry, Message, ReplyCall};
use mission_contract::text::Text;
use serde_json::Value;

/// What the fixed parts of an entry take, and its envelope.
const BASE: usize = 512;

/// Bytes of an entry, about.
pub(super) fn of_entry(entry: &Entry) -> usize {
    let parts = match entry {
        Entry::Reply(reply) => {
            sum([text(&reply.text), reply.opaque.as_ref().map_or(0, value), sum(reply.calls.iter().map(call))])
        }
        Entry::Result(result) => sum([
            text(&result.text),
            result.error.len(),
            result.structured.as_deref().map_or(0, value),
            sum(result.blocks.iter().map(value)),
        ]),
        Entry::Catalogue(catalogue) => sum(catalogue.tools.iter().chain(&catalogue.changed).map(|tool| {
            sum([
                tool.description.len(),
                value(&tool.input_schema),
                tool.output_schema.as_ref().map_or(0, value),
                tool.annotations.as_ref().map_or(0, value),
                BASE,
            ])
        })),
        Entry::Ask(ask) => sum(ask.adds.iter().map(message)),
        Entry::Intent(intent) => arguments(&intent.arguments),
        Entry::Record(record) => record.get().len(),
        Entry::Control(control) => control.text.as_ref().map_or(0, String::len),
        Entry::Decision(decision) => decision.content.as_ref().map_or(0, value),
        Entry::Observed(observed) => observed.detail.len(),
        Entry::Open(open) => sum([
            open.spec.objective.len(),
            open.spec.texts.skill.text.len(),
            sum(open.spec.texts.history.iter().map(|turn| turn.content.len())),
        ]),
        Entry::Writer(_) | Entry::Leg(_) | Entry::Timer(_) | Entry::Closed(_) => 0,
    };
    parts.saturating_add(BASE)
}

/// Bytes of a record, about.
pub(super) fn of_event(event: &Event) -> usize {
    let parts = match event {
        Event::MissionStarted(record) => sum([record.objective.len(), sum(record.catalogue.iter().map(String::len))]),
        Event::StepStarted(record) => sum(record.injected.iter().map(String::len)),
        Event::ReplyRejected(record) => record.problem.len(),
        Event::ToolCall(record) => arguments(&record.arguments),
        Event::ToolResult(record) => sum([arguments(&record.arguments), text(&record.output), record.error.len()]),
        Event::GateRequested(record) => arguments(&record.arguments),
        Event::AnswerDelta(record) => record.text.len(),
        Event::Grounding(record) => sum(record.unsupported.iter().map(String::len)).saturating_mul(2),
        Event::Answer(record) => sum([record.text.len(), record.structured.as_ref().map_or(0, value)]),
        Event::Notice(record) => record.detail.len(),
        Event::MissionFinished(_) | Event::ModelState(_) | Event::ControlAck(_) | Event::Tick(_) => 0,
    };
    parts.saturating_add(BASE)
}

fn sum(parts: impl IntoIterator<Item = usize>) -> usize {
    parts.into_iter().fold(0, usize::saturating_add)
}

fn text(text: &Text) -> usize {
    text.as_str().len()
}

fn call(call: &ReplyCall) -> usize {
    sum([BASE, call.arguments.len(), call.opaque.as_ref().map_or(0, value)])
}

fn message(message: &Message) -> usize {
    sum([BASE, text(&message.content), sum(message.calls.iter().map(call)), message.opaque.as_ref().map_or(0, value)])
}

fn arguments(arguments: &Arguments) -> usize {
    sum(arguments.iter().map(|(key, member)| sum([key.len(), value(member)])))
}

fn value(of: &Value) -> usize {
    let parts = match of {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(items) => sum(items.iter().map(value)),
        Value::Object(members) => arguments(members),
    };
    parts.saturating_add(8)
}
