//! One record of every event, all fields filled, made from the schemas.

use mission_contract::{schema, vocabulary};
use serde_json::{Map, Value, json};

/// A record that has every field of an event. Every string that is no closed word says where it stands.
pub fn full(event: &str) -> Value {
    let mut record = fill(&schema::one(event).expect(event), "");
    let members = record.as_object_mut().unwrap();
    // The two rules that tie fields together.
    if members.contains_key("exit_code") {
        members.insert("ok".into(), json!(members["exit_code"] == 0));
    }
    if event == "mission_finished" {
        members.insert("outcome".into(), json!("budget_exhausted"));
        members.insert("reason".into(), json!("stuck"));
    }
    for field in vocabulary::event(event).unwrap().fields {
        if field.name == "usage" && event != "mission_finished" {
            members["usage"].as_object_mut().unwrap().insert("extra".into(), json!({ "key": "/usage/extra/key" }));
        }
    }
    record
}

fn fill(schema: &Value, pointer: &str) -> Value {
    if let Some(constant) = schema.get("const") {
        return constant.clone();
    }
    if let Some(first) = schema.get("enum").and_then(|words| words.get(0)) {
        return first.clone();
    }
    if let Some(first) = schema.get("oneOf").and_then(|branches| branches.get(0)) {
        return fill(first, pointer);
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("string") => json!(pointer),
        Some("integer" | "number") => json!(1),
        Some("boolean") => json!(true),
        Some("array") => json!([fill(&schema["items"], &format!("{pointer}/0"))]),
        Some("object") if schema.get("properties").is_some() => {
            let members: Map<String, Value> = schema["properties"]
                .as_object()
                .unwrap()
                .iter()
                .map(|(name, field)| (name.clone(), fill(field, &format!("{pointer}/{name}"))))
                .collect();
            Value::Object(members)
        }
        // Anybody's object, or any value.
        _ => json!({ "key": format!("{pointer}/key") }),
    }
}

/// Every string of a value with the pointer to it; in lists and anybody's objects too.
pub fn strings(value: &Value, pointer: &str, found: &mut Vec<(String, String)>) {
    match value {
        Value::String(text) => found.push((pointer.to_string(), text.clone())),
        Value::Array(items) => {
            for (position, item) in items.iter().enumerate() {
                strings(item, &format!("{pointer}/{position}"), found);
            }
        }
        Value::Object(members) => {
            for (key, member) in members {
                strings(member, &format!("{pointer}/{key}"), found);
            }
        }
        _ => {}
    }
}
