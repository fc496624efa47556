//! The schemas: generated, kept in `schemas/`, and at one with the tables and with `conforms`.

use std::collections::BTreeSet;
use std::fs;

use mission_contract::conforms::conforms;
use mission_contract::digest::ZERO;
use mission_contract::line::Envelope;
use mission_contract::log::{Entry, LineWriter, Reply};
use mission_contract::vocabulary::{self, Field, Kind};
use mission_contract::{event::Event, schema};
use serde_json::{Value, json};

use crate::samples;

/// Set to 1, the test rewrites the files instead of comparing them.
const UPDATE: &str = "UPDATE_SCHEMAS";

#[test]
fn the_files_are_what_the_types_say() {
    let folder = crate::workspace().join("schemas");
    let update = std::env::var(UPDATE).is_ok_and(|value| value == "1");
    let command = format!("{UPDATE}=1 cargo test -p mission-contract --features schema --test contract");
    let schemas = schema::all();
    if update {
        fs::create_dir_all(&folder).unwrap();
    }
    for (name, schema) in &schemas {
        let path = folder.join(format!("{name}.json"));
        let text = schema::to_text(schema);
        if update {
            fs::write(&path, &text).unwrap();
        }
        let kept = fs::read_to_string(&path).unwrap_or_default();
        assert!(kept == text, "schemas/{name}.json is not what the types say; `{command}` rewrites it");
        assert_eq!(schema::one(name).as_ref(), Some(schema));
    }
    for entry in fs::read_dir(&folder).unwrap() {
        let file = entry.unwrap().file_name().into_string().unwrap();
        let known = file.strip_suffix(".json").is_some_and(|name| schemas.contains_key(name));
        assert!(known, "schemas/{file} belongs to no schema; delete it");
    }
}

/// The table of fields and the types have the same fields, the same types, the same that are required, the same order.
#[test]
fn the_table_of_fields_is_that_of_the_types() {
    for shape in vocabulary::EVENTS {
        let schema = schema::one(shape.name).unwrap();
        compare(shape.name, &schema, shape.fields, &["event"]);
        let record: Event = serde_json::from_value(samples::full(shape.name)).unwrap();
        assert_eq!(record.name(), shape.name);
        let line = record.to_line();
        let mut last = 0;
        for name in std::iter::once("event").chain(shape.fields.iter().map(|field| field.name)) {
            let place = line.find(&format!("\"{name}\":")).unwrap_or_else(|| panic!("{line} has no {name}"));
            assert!(place >= last, "{}: `{name}` stands too early in {line}", shape.name);
            // A nested key of the same name must not stand in for the field itself.
            last = last.max(place);
        }
        assert!(shape.fields.last().is_some_and(|field| field.name == "branch"));
    }
}

fn compare(place: &str, schema: &Value, fields: &[Field], besides: &[&str]) {
    let names = |list: &[&str]| list.iter().map(ToString::to_string).collect::<BTreeSet<String>>();
    let properties: BTreeSet<String> = schema["properties"].as_object().unwrap().keys().cloned().collect();
    let stated: Vec<&str> = fields.iter().map(|field| field.name).chain(besides.iter().copied()).collect();
    assert_eq!(properties, names(&stated), "{place}");
    let required: BTreeSet<String> = schema
        .get("required")
        .and_then(Value::as_array)
        .map(|list| list.iter().map(|name| name.as_str().unwrap().to_string()).collect())
        .unwrap_or_default();
    let stated: Vec<&str> =
        fields.iter().filter(|field| field.required).map(|field| field.name).chain(besides.iter().copied()).collect();
    assert_eq!(required, names(&stated), "{place}");
    for field in fields {
        let property = &schema["properties"][field.name];
        let place = format!("{place}.{}", field.name);
        let kind = property.get("type").and_then(Value::as_str).unwrap_or_default();
        match field.kind {
            Kind::Text if field.nullable => assert_eq!(property["oneOf"][1]["type"], "null", "{place}"),
            Kind::Text | Kind::Words => assert_eq!(kind, "string", "{place}"),
            Kind::Word { words } => assert_eq!(property["enum"], json!(words), "{place}"),
            Kind::Count => {
                assert_eq!((kind, &property["minimum"]), ("integer", &json!(0)), "{place}");
            }
            Kind::Integer => assert_eq!((kind, property.get("minimum")), ("integer", None), "{place}"),
            Kind::Number => assert_eq!(kind, "number", "{place}"),
            Kind::Boolean => assert_eq!(kind, "boolean", "{place}"),
            Kind::Texts => assert_eq!((kind, &property["items"]["type"]), ("array", &json!("string")), "{place}"),
            Kind::Object => assert_eq!((kind, property.get("properties")), ("object", None), "{place}"),
            Kind::Record { fields } => compare(&place, property, fields, &[]),
            Kind::Records { fields } => {
                assert_eq!(kind, "array", "{place}");
                compare(&place, &property["items"], fields, &[]);
            }
            Kind::Any => assert_eq!(kind, "", "{place}"),
        }
    }
}

/// Whatever is done to one field of a record, the schema and `conforms` judge it alike.
#[test]
fn schema_and_conforms_judge_alike() {
    let stream = jsonschema::validator_for(&schema::one("stream").unwrap()).unwrap();
    let others = [json!(null), json!(true), json!(-1), json!(1), json!(1.5), json!("word"), json!([]), json!([1]), json!({})];
    let mut refused = 0;
    for shape in vocabulary::EVENTS {
        let validator = jsonschema::validator_for(&schema::one(shape.name).unwrap()).unwrap();
        let full = samples::full(shape.name);
        assert_eq!(conforms(&full), Vec::new(), "{full}");
        assert!(validator.is_valid(&full) && stream.is_valid(&full), "{full}");
        for pointer in pointers(&full) {
            for other in others.iter().map(Some).chain([None]) {
                let mut changed = full.clone();
                let (parent, name) = pointer.rsplit_once('/').unwrap();
                match other {
                    Some(other) => *changed.pointer_mut(&pointer).unwrap() = other.clone(),
                    None => match changed.pointer_mut(parent).unwrap() {
                        Value::Object(members) => drop(members.remove(name)),
                        _ => continue,
                    },
                }
                // What the fields say about each other is beyond a schema of this size.
                let by_conforms = conforms(&changed)
                    .iter()
                    .all(|problem| matches!(problem.fault, mission_contract::conforms::Fault::Contradiction { .. }));
                assert_eq!(by_conforms, validator.is_valid(&changed), "{pointer} of {changed}");
                assert_eq!(by_conforms, stream.is_valid(&changed), "{pointer} of {changed}");
                refused += usize::from(!by_conforms);
            }
        }
    }
    assert!(refused > 500, "only {refused} changes were refused");
}

fn pointers(value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    walk(value, "", &mut found);
    found
}

fn walk(value: &Value, pointer: &str, found: &mut Vec<String>) {
    let children: Vec<(String, &Value)> = match value {
        Value::Array(items) => items.iter().enumerate().map(|(at, item)| (at.to_string(), item)).collect(),
        Value::Object(members) => members.iter().map(|(key, member)| (key.clone(), member)).collect(),
        _ => Vec::new(),
    };
    for (key, child) in children {
        let place = format!("{pointer}/{key}");
        found.push(place.clone());
        walk(child, &place, found);
    }
}

#[test]
fn control_lines_are_judged_by_their_word() {
    let validator = jsonschema::validator_for(&schema::one("control").unwrap()).unwrap();
    for line in [
        json!({"control": "inject", "text": "prefer the newest"}),
        json!({"control": "cancel", "id": "1"}),
        json!({"control": "cancel_step"}),
        json!({"control": "gate_decision", "approval_id": "ap_00112233445566aa", "approve": true, "decided_by": "dana"}),
        json!({"control": "steer", "text": "look elsewhere"}),
    ] {
        assert!(validator.is_valid(&line), "{line}");
    }
    for line in [
        json!({"control": "inject", "text": "  "}),
        json!({"control": "gate_decision", "approval_id": "ap_1", "approve": "yes", "decided_by": "dana"}),
        json!({"control": "sing"}),
        json!({"text": "x"}),
    ] {
        assert!(!validator.is_valid(&line), "{line}");
    }
}

#[test]
fn lines_of_a_log_are_valid() {
    let validator = jsonschema::validator_for(&schema::one("log-line").unwrap()).unwrap();
    let mut writer = LineWriter::new(ZERO.into());
    let record = serde_json::value::RawValue::from_string(r#"{"event":"step_started","index":0}"#.into()).unwrap();
    let entries =
        [Entry::Open(Box::default()), Entry::Reply(Reply { text: "hello".into(), ..Default::default() }), Entry::Record(record)];
    for (seq, entry) in (1..).zip(&entries) {
        let mut bytes = Vec::new();
        writer.line(Envelope { seq, group: 1, at: "2026-12-01T00:00:00.000Z", ms: 0, branch: None }, entry, &mut bytes).unwrap();
        let mut line: Value = serde_json::from_slice(&bytes).unwrap();
        assert!(validator.is_valid(&line), "{line}");
        line["tick"] = json!({});
        assert!(!validator.is_valid(&line), "{line}");
    }
    let kinds: Vec<&str> = vocabulary::LOG_KINDS.iter().map(|kind| kind.name).collect();
    for entry in &entries {
        assert!(kinds.contains(&entry.kind()));
    }
}
