//! Whether a record of the stream is what the contract says. Unknown fields are allowed: the vocabulary only grows.

use std::fmt;

use serde_json::{Map, Value};

use crate::canonical::push_segment;
use crate::vocabulary::{self, Field, Kind};

/// What is wrong with a record, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// JSON Pointer (RFC 6901) to the place; empty for the record itself.
    pub pointer: String,
    /// What is wrong there.
    pub fault: Fault,
}

/// What is wrong with a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The line is no JSON.
    NotJson {
        /// Byte of the line, from 1.
        column: usize,
    },
    /// It is no object.
    NotAnObject,
    /// It says another version of the stream.
    SchemaVersion,
    /// It has no `event`, or one that is no string.
    NoEvent,
    /// An event that the contract does not have.
    UnknownEvent {
        /// Its name.
        name: String,
    },
    /// A required field is missing.
    Missing,
    /// It is null: what does not apply is absent.
    Null,
    /// It is of another type.
    WrongType {
        /// What belongs there.
        expected: &'static str,
    },
    /// It is no word of the closed list.
    UnknownWord {
        /// The list.
        words: &'static [&'static str],
    },
    /// It contradicts another field.
    Contradiction {
        /// The rule, as a sentence.
        rule: &'static str,
    },
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.pointer.is_empty() {
            write!(formatter, "{}: ", self.pointer)?;
        }
        match &self.fault {
            Fault::NotJson { column } => write!(formatter, "this is not valid JSON (column {column})"),
            Fault::NotAnObject => formatter.write_str("a record is a JSON object"),
            Fault::SchemaVersion => write!(formatter, "the version of the stream is {}", crate::SCHEMA_VERSION),
            Fault::NoEvent => formatter.write_str("a record has its name under `event`"),
            Fault::UnknownEvent { name } => write!(formatter, "the contract has no event `{name}`"),
            Fault::Missing => formatter.write_str("this required field is missing"),
            Fault::Null => formatter.write_str("this field is null; a field that does not apply is left out"),
            Fault::WrongType { expected } => write!(formatter, "this has to be {expected}"),
            Fault::UnknownWord { words } => write!(formatter, "this has to be one of: {}", words.join(", ")),
            Fault::Contradiction { rule } => formatter.write_str(rule),
        }
    }
}

/// Every problem of one line of a stream; none when it conforms.
pub fn conforms_line(line: &str) -> Vec<Problem> {
    match serde_json::from_str(line) {
        Ok(record) => conforms(&record),
        Err(error) => vec![at_top(Fault::NotJson { column: error.column() })],
    }
}

/// Every problem of one record; none when it conforms.
pub fn conforms(record: &Value) -> Vec<Problem> {
    let Value::Object(members) = record else {
        return vec![at_top(Fault::NotAnObject)];
    };
    let mut problems = Vec::new();
    if members.get("schema_version").is_some_and(|version| version.as_u64() != Some(u64::from(crate::SCHEMA_VERSION))) {
        problems.push(Problem { pointer: "/schema_version".into(), fault: Fault::SchemaVersion });
    }
    let Some(name) = members.get("event").and_then(Value::as_str) else {
        problems.push(at_top(Fault::NoEvent));
        return problems;
    };
    let Some(shape) = vocabulary::event(name) else {
        problems.push(Problem { pointer: "/event".into(), fault: Fault::UnknownEvent { name: name.to_string() } });
        return problems;
    };
    check_fields(members, shape.fields, "", &mut problems);
    if problems.is_empty() {
        contradictions(name, members, &mut problems);
    }
    problems
}

fn at_top(fault: Fault) -> Problem {
    Problem { pointer: String::new(), fault }
}

fn check_fields(members: &Map<String, Value>, fields: &[Field], pointer: &str, problems: &mut Vec<Problem>) {
    for field in fields {
        let mut place = pointer.to_string();
        push_segment(&mut place, field.name);
        match members.get(field.name) {
            None if field.required => problems.push(Problem { pointer: place, fault: Fault::Missing }),
            None => {}
            Some(Value::Null) if field.nullable || field.kind == Kind::Any => {}
            Some(Value::Null) => problems.push(Problem { pointer: place, fault: Fault::Null }),
            Some(value) => check_value(value, field.kind, &place, problems),
        }
    }
}

fn check_value(value: &Value, kind: Kind, pointer: &str, problems: &mut Vec<Problem>) {
    let fault = match (kind, value) {
        (Kind::Any, _)
        | (Kind::Text, Value::String(_))
        | (Kind::Object, Value::Object(_))
        | (Kind::Number, Value::Number(_))
        | (Kind::Boolean, Value::Bool(_)) => None,
        (Kind::Words, Value::String(text)) if !text.trim().is_empty() => None,
        (Kind::Word { words }, Value::String(word)) if words.contains(&word.as_str()) => None,
        (Kind::Word { words }, Value::String(_)) => Some(Fault::UnknownWord { words }),
        (Kind::Count, Value::Number(number)) if number.is_u64() => None,
        (Kind::Integer, Value::Number(number)) if number.is_u64() || number.is_i64() => None,
        (Kind::Texts, Value::Array(items)) if items.iter().all(Value::is_string) => None,
        (Kind::Record { fields }, Value::Object(members)) => {
            check_fields(members, fields, pointer, problems);
            None
        }
        (Kind::Records { fields }, Value::Array(items)) => {
            for (position, item) in items.iter().enumerate() {
                let mut place = pointer.to_string();
                push_segment(&mut place, &position.to_string());
                check_value(item, Kind::Record { fields }, &place, problems);
            }
            None
        }
        _ => Some(Fault::WrongType { expected: expected(kind) }),
    };
    if let Some(fault) = fault {
        problems.push(Problem { pointer: pointer.to_string(), fault });
    }
}

fn expected(kind: Kind) -> &'static str {
    match kind {
        Kind::Text | Kind::Word { .. } => "a string",
        Kind::Words => "a string that is not blank",
        Kind::Count => "a whole number from 0",
        Kind::Integer => "a whole number",
        Kind::Number => "a number",
        Kind::Boolean => "true or false",
        Kind::Texts => "a list of strings",
        Kind::Object | Kind::Record { .. } => "an object",
        Kind::Records { .. } => "a list of objects",
        Kind::Any => "any value",
    }
}

/// What the fields of one record say about each other.
fn contradictions(name: &str, members: &Map<String, Value>, problems: &mut Vec<Problem>) {
    let text = |field: &str| members.get(field).and_then(Value::as_str);
    let mut contradiction = |field: &str, rule: &'static str| {
        problems.push(Problem { pointer: format!("/{field}"), fault: Fault::Contradiction { rule } });
    };
    match name {
        "mission_finished" => {
            let exhausted = text("outcome") == Some("budget_exhausted");
            if exhausted != members.contains_key("budget") {
                contradiction("budget", "`budget` is there exactly when the outcome is budget_exhausted");
            }
            if text("reason") == Some("cancelled") && text("outcome") != Some("incomplete") {
                contradiction("reason", "`reason` is cancelled only when the outcome is incomplete");
            }
        }
        "tool_result" => {
            let fine = members.get("exit_code").and_then(Value::as_i64) == Some(0);
            if members.get("ok").and_then(Value::as_bool) != Some(fine) {
                contradiction("ok", "`ok` is true exactly when `exit_code` is 0");
            }
        }
        _ => {}
    }
}

#[cfg(test)]
#[path = "conforms_tests.rs"]
mod tests;
