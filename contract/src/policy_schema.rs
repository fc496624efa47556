//! The JSON Schema of a policy file.

use serde_json::{Map, Value, json};

use crate::vocabulary::{POLICY_EFFECTS, POLICY_FIELDS, POLICY_RULES};

/// The signs of a rule's name, as a regular expression.
pub const RULE_ID: &str = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$";

fn described(name: &str, mut schema: Value) -> Value {
    if let (Value::Object(members), Some(term)) = (&mut schema, POLICY_FIELDS.iter().find(|term| term.name == name)) {
        members.insert("description".into(), json!(term.meaning));
    }
    schema
}

fn object(properties: &[(&str, Value)], required: &[&str]) -> Value {
    let properties: Map<String, Value> =
        properties.iter().map(|(name, schema)| ((*name).to_owned(), described(name, schema.clone()))).collect();
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

/// The schema.
pub fn policy() -> Value {
    let effects: Vec<&str> = POLICY_EFFECTS.iter().map(|effect| effect.name).collect();
    let reserved: Vec<&str> = POLICY_RULES.iter().map(|rule| rule.name).collect();
    let glob = json!({ "type": "string", "pattern": "\\S" });
    let operators = [
        ("exists", json!({ "type": "boolean" })),
        ("equals", json!({})),
        ("one_of", json!({ "type": "array", "minItems": 1 })),
        ("matches", json!({ "type": "string", "format": "regex" })),
        ("at_least", json!({ "type": "number" })),
        ("at_most", json!({ "type": "number" })),
    ];
    let one_operator: Vec<Value> = operators.iter().map(|(name, _)| json!({ "required": [name] })).collect();
    let place =
        [("pointer", json!({ "type": "string", "pattern": "^(/([^~/]|~[01])*)+$" })), ("not", json!({ "type": "boolean" }))];
    let mut condition = object(&[&place[..], &operators[..]].concat(), &["pointer"]);
    if let Value::Object(members) = &mut condition {
        members.insert("oneOf".into(), json!(one_operator));
    }
    let rule = object(
        &[
            ("id", json!({ "type": "string", "pattern": RULE_ID, "not": { "enum": reserved } })),
            ("tools", json!({ "oneOf": [glob, { "type": "array", "minItems": 1, "items": glob }] })),
            ("effect", json!({ "enum": effects })),
            ("when", json!({ "type": "array", "items": condition })),
            ("reason", json!({ "type": "string", "pattern": "\\S" })),
        ],
        &["id", "tools", "effect"],
    );
    let mut schema = object(
        &[
            ("version", json!({ "const": 1 })),
            ("default", json!({ "enum": effects })),
            ("rules", json!({ "type": "array", "items": rule })),
        ],
        &["version", "rules"],
    );
    if let Value::Object(members) = &mut schema {
        members.insert("$schema".into(), json!("https://json-schema.org/draft/2020-12/schema"));
        members.insert("title".into(), json!("policy"));
        members.insert(
            "description".into(),
            json!("What `--policy` reads, as YAML. It narrows what may be called and widens nothing."),
        );
    }
    schema
}
