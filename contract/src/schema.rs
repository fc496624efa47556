//! JSON Schemas (2020-12) of everything on the wire and in the log, generated from the types and the vocabulary.
//!
//! They describe what `mission` writes: a field that does not apply is absent, never null. Further fields are allowed on
//! the wire, since a consumer drops what it does not know; a line of the log has exactly its own.

use std::collections::BTreeMap;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::vocabulary::{self, EVENTS, Field, Kind, LOG_KINDS, Shape};
use crate::{audit, event, file_schemas, lock, log, policy_schema, replay};

/// The dialect that every schema names.
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";

/// Every schema by its name: one an event, and `stream` (any event), `control` (any word of the control channel),
/// `log-line`, `audit-line`, `replay-report`; and the files that people write or read: `policy`, `skill`, `lock`, `personality`, `history`.
pub fn all() -> BTreeMap<&'static str, Value> {
    let mut schemas: BTreeMap<&'static str, Value> = EVENTS.iter().map(|shape| (shape.name, event(shape))).collect();
    schemas.insert("stream", stream());
    schemas.insert("control", control());
    schemas.insert("log-line", log_line());
    schemas.insert("audit-line", audit_line());
    schemas.insert("policy", policy_schema::policy());
    schemas.insert("replay-report", replay_report());
    schemas.insert("lock", lock());
    schemas.insert("skill", file_schemas::skill());
    schemas.insert("personality", file_schemas::personality());
    schemas.insert("history", file_schemas::history());
    schemas
}

/// One schema by its name.
pub fn one(name: &str) -> Option<Value> {
    match name {
        "stream" => Some(stream()),
        "control" => Some(control()),
        "log-line" => Some(log_line()),
        "audit-line" => Some(audit_line()),
        "policy" => Some(policy_schema::policy()),
        "replay-report" => Some(replay_report()),
        "lock" => Some(lock()),
        "skill" => Some(file_schemas::skill()),
        "personality" => Some(file_schemas::personality()),
        "history" => Some(file_schemas::history()),
        name => vocabulary::event(name).map(event),
    }
}

/// A schema as it stands in a file: indented, a newline at the end.
pub fn to_text(schema: &Value) -> String {
    let mut text = serde_json::to_string_pretty(schema).unwrap_or_default();
    text.push('\n');
    text
}

fn event(shape: &Shape) -> Value {
    let mut schema = bare_event(shape);
    if let Value::Object(members) = &mut schema {
        members.insert("$schema".into(), json!(DIALECT));
    }
    schema
}

/// The record's own schema, its name and the closed words added.
fn bare_event(shape: &Shape) -> Value {
    let mut schema = match shape.name {
        "mission_started" => of::<event::MissionStarted>(),
        "step_started" => of::<event::StepStarted>(),
        "reply_rejected" => of::<event::ReplyRejected>(),
        "tool_call" => of::<event::ToolCall>(),
        "tool_result" => of::<event::ToolResult>(),
        "gate_requested" => of::<event::GateRequested>(),
        "answer_delta" => of::<event::AnswerDelta>(),
        "grounding" => of::<event::Grounding>(),
        "answer" => of::<event::Answer>(),
        "mission_finished" => of::<event::MissionFinished>(),
        "model_state" => of::<event::ModelState>(),
        "notice" => of::<event::Notice>(),
        "control_ack" => of::<event::ControlAck>(),
        "tick" => of::<event::Tick>(),
        _ => Value::Null,
    };
    narrow(&mut schema, shape.fields);
    name_it(&mut schema, "event", shape.name);
    if let Value::Object(members) = &mut schema {
        members.insert("title".into(), json!(shape.name));
        members.insert("description".into(), json!(shape.meaning));
        if shape.name == "mission_started"
            && let Some(version) = members.get_mut("properties").and_then(|properties| properties.get_mut("schema_version"))
            && let Value::Object(version) = version
        {
            version.insert("const".into(), json!(crate::SCHEMA_VERSION));
        }
    }
    schema
}

/// Puts a constant under the key that tells records apart.
fn name_it(schema: &mut Value, key: &str, name: &str) {
    let Value::Object(members) = schema else { return };
    let properties = members.entry("properties").or_insert_with(|| json!({}));
    if let Value::Object(properties) = properties {
        properties.insert(key.into(), json!({ "const": name }));
    }
    let required = members.entry("required").or_insert_with(|| json!([]));
    if let Value::Array(required) = required {
        required.insert(0, json!(key));
    }
}

/// Adds the closed words of the vocabulary to a schema that was derived from a type.
fn narrow(schema: &mut Value, fields: &[Field]) {
    for field in fields {
        let Some(place) = schema.get_mut("properties").and_then(|properties| properties.get_mut(field.name)) else {
            continue;
        };
        match field.kind {
            Kind::Word { words } => {
                let description = place.get("description").cloned();
                let mut narrowed = Map::new();
                narrowed.insert("type".into(), json!("string"));
                narrowed.insert("enum".into(), json!(words));
                if let Some(description) = description {
                    narrowed.insert("description".into(), description);
                }
                *place = Value::Object(narrowed);
            }
            Kind::Record { fields } => narrow(place, fields),
            Kind::Records { fields } => {
                if let Some(items) = place.get_mut("items") {
                    narrow(items, fields);
                }
            }
            _ => {}
        }
    }
}

fn of<T: JsonSchema>() -> Value {
    let mut generator = generator();
    let schema = generator.subschema_for::<T>();
    finish(schema.to_value())
}

fn generator() -> SchemaGenerator {
    let mut settings = SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    settings.meta_schema = None;
    SchemaGenerator::new(settings)
}

/// Takes out what says nothing (widths of integers, defaults, titles of types) and the nulls that are never written.
fn finish(mut schema: Value) -> Value {
    tidy(&mut schema);
    schema
}

fn tidy(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(tidy),
        Value::Object(members) => {
            if members.get("format").and_then(Value::as_str).is_some_and(|format| format.contains("int") || format == "double") {
                members.remove("format");
            }
            members.remove("default");
            members.remove("maximum");
            if let Some(Value::String(description)) = members.get_mut("description") {
                // A link means something in Rust's documentation only.
                *description = description.replace("[`", "`").replace("`]", "`");
            }
            if let Some(Value::Array(types)) = members.get_mut("type") {
                types.retain(|name| name != "null");
                if let [only] = types.as_slice() {
                    let only = only.clone();
                    members.insert("type".into(), only);
                }
            }
            without_null_branch(members);
            for (key, member) in members.iter_mut() {
                if key == "properties" {
                    nullable_again(member);
                }
                tidy(member);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// `anyOf: [X, null]` is `X`.
fn without_null_branch(members: &mut Map<String, Value>) {
    let Some(Value::Array(branches)) = members.get_mut("anyOf") else { return };
    branches.retain(|branch| branch.get("type").and_then(Value::as_str) != Some("null"));
    if branches.len() != 1 {
        return;
    }
    if let Some(Value::Array(mut only)) = members.remove("anyOf")
        && let Some(Value::Object(inner)) = only.pop()
    {
        for (key, value) in inner {
            members.entry(key).or_insert(value);
        }
    }
}

/// `audit_ref` is the one field that may be null: written so that [`tidy`] leaves it.
fn nullable_again(properties: &mut Value) {
    if let Some(Value::Object(audit)) = properties.get_mut("audit_ref") {
        audit.remove("type");
        audit.insert("oneOf".into(), json!([{ "type": "string" }, { "type": "null" }]));
    }
}

fn stream() -> Value {
    let definitions: Map<String, Value> = EVENTS.iter().map(|shape| (shape.name.to_string(), bare_event(shape))).collect();
    let branches: Vec<Value> = EVENTS.iter().map(|shape| json!({ "$ref": format!("#/$defs/{}", shape.name) })).collect();
    json!({
        "$schema": DIALECT,
        "title": "stream",
        "description": "One line of the event stream. A consumer drops events and fields that it does not know.",
        "oneOf": branches,
        "$defs": definitions,
    })
}

fn control() -> Value {
    let branches: Vec<Value> = vocabulary::CONTROL_WORDS
        .iter()
        .map(|word| {
            let mut branch = object_of(word.fields);
            name_it(&mut branch, "control", word.name);
            if let Value::Object(members) = &mut branch {
                members.insert("description".into(), json!(word.meaning));
            }
            branch
        })
        .collect();
    json!({
        "$schema": DIALECT,
        "title": "control",
        "description": "One line of the control channel.",
        "oneOf": branches,
    })
}

fn object_of(fields: &[Field]) -> Value {
    let properties: Map<String, Value> = fields.iter().map(|field| (field.name.to_string(), of_kind(field.kind))).collect();
    let required: Vec<&str> = fields.iter().filter(|field| field.required).map(|field| field.name).collect();
    json!({ "type": "object", "properties": properties, "required": required })
}

fn of_kind(kind: Kind) -> Value {
    match kind {
        Kind::Text => json!({ "type": "string" }),
        Kind::Words => json!({ "type": "string", "pattern": "\\S" }),
        Kind::Word { words } => json!({ "type": "string", "enum": words }),
        Kind::Count => json!({ "type": "integer", "minimum": 0 }),
        Kind::Integer => json!({ "type": "integer" }),
        Kind::Number => json!({ "type": "number" }),
        Kind::Boolean => json!({ "type": "boolean" }),
        Kind::Texts => json!({ "type": "array", "items": { "type": "string" } }),
        Kind::Object => json!({ "type": "object" }),
        Kind::Record { fields } => object_of(fields),
        Kind::Records { fields } => json!({ "type": "array", "items": object_of(fields) }),
        Kind::Any => json!(true),
    }
}

fn replay_report() -> Value {
    let mut schema = of::<replay::ReplayReport>();
    narrow(&mut schema, vocabulary::REPLAY_REPORT);
    if let Value::Object(members) = &mut schema {
        members.insert("$schema".into(), json!(DIALECT));
        members.insert("title".into(), json!("replay-report"));
    }
    schema
}

fn lock() -> Value {
    let mut schema = of::<lock::Lock>();
    if let Value::Object(members) = &mut schema {
        members.insert("$schema".into(), json!(DIALECT));
        members.insert("title".into(), json!("lock"));
        if let Some(Value::Object(format)) = members.get_mut("properties").and_then(|properties| properties.get_mut("format")) {
            format.insert("const".into(), json!(lock::LOCK_FORMAT));
        }
    }
    schema
}

fn audit_line() -> Value {
    let mut schema = of::<audit::AuditLine>();
    if let Value::Object(members) = &mut schema {
        members.insert("$schema".into(), json!(DIALECT));
        members.insert("title".into(), json!("audit-line"));
        members.insert("additionalProperties".into(), json!(false));
        let sum =
            json!({ "type": "string", "pattern": "^[0-9a-f]{64}$", "description": "SHA-256 of the line's bytes before it." });
        if let Some(Value::Object(properties)) = members.get_mut("properties") {
            properties.insert("sum".into(), sum);
        }
        if let Some(Value::Array(required)) = members.get_mut("required") {
            required.push(json!("sum"));
        }
    }
    schema
}

fn log_line() -> Value {
    let sum = json!({ "type": "string", "pattern": "^[0-9a-f]{64}$" });
    let mut properties = Map::new();
    properties.insert("seq".into(), json!({ "type": "integer", "minimum": 1 }));
    properties.insert("group".into(), json!({ "type": "integer", "minimum": 0 }));
    properties.insert("at".into(), json!({ "type": "string" }));
    properties.insert("ms".into(), json!({ "type": "integer", "minimum": 0 }));
    properties.insert("branch".into(), json!({ "type": "string" }));
    properties.insert("prev".into(), sum.clone());
    properties.insert("sum".into(), sum);
    for term in vocabulary::LOG_ENVELOPE {
        if let Some(Value::Object(place)) = properties.get_mut(term.name) {
            place.insert("description".into(), json!(term.meaning));
        }
    }
    let mut branches = Vec::new();
    for kind in LOG_KINDS {
        let mut body = match kind.name {
            "open" => of::<log::Open>(),
            "writer" => of::<log::Writer>(),
            "leg" => of::<log::Leg>(),
            "catalogue" => of::<log::Catalogue>(),
            "reply" => of::<log::Reply>(),
            "result" => of::<log::CallResult>(),
            "control" => of::<log::Control>(),
            "decision" => of::<log::Decision>(),
            "timer" => of::<log::Timer>(),
            "observed" => of::<log::Observed>(),
            "closed" => of::<log::Closed>(),
            "ask" => of::<log::Ask>(),
            "intent" => of::<log::Intent>(),
            "record" => json!({ "type": "object" }),
            _ => Value::Null,
        };
        if let Value::Object(members) = &mut body {
            members.remove("title");
            members.insert("description".into(), json!(format!("{} ({})", kind.meaning, kind.direction)));
        }
        properties.insert(kind.name.into(), body);
        branches.push(json!({ "required": [kind.name] }));
    }
    json!({
        "$schema": DIALECT,
        "title": "log-line",
        "description": "One line of a run's log. A record's text that repeats a result's may stand as {\"$of\": seq}.",
        "type": "object",
        "properties": properties,
        "required": ["seq", "group", "at", "ms", "prev", "sum"],
        "oneOf": branches,
        "additionalProperties": false,
    })
}
