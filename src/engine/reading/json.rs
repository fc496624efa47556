//! Replies of the `json` protocol: one decision a reply, read from what models really send.

use std::collections::BTreeMap;

use mission_contract::log::ReplyCall;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::engine::words;
use crate::limits::DECISION_CANDIDATES;

/// What a reply decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It answers.
    Answer(String),
    /// It calls a tool.
    Call {
        /// The tool's name as the model spelt it.
        tool: String,
        /// The raw text of the arguments.
        arguments: String,
        /// Names of further calls in the same reply; they are not run.
        left: Vec<String>,
        /// True when it stood beside the text, as a call of a function.
        beside: bool,
    },
    /// It cannot be taken.
    Rejected {
        /// The correction.
        problem: String,
        /// The tool's name, when one was read.
        tool: Option<String>,
    },
}

/// Reads a reply: an object alone, fenced, or in prose; calls of functions stand in its place when there is none.
pub fn read(text: &str, calls: &[ReplyCall]) -> Decision {
    let stripped = without_fences(text);
    let trimmed = stripped.trim();
    let mut problem = None;
    if !trimmed.is_empty() {
        match serde_json::from_str::<&RawValue>(trimmed) {
            Ok(whole) => match decide(whole.get()) {
                Ok(decision) => return decision,
                Err(correction) => problem = Some(correction),
            },
            Err(error) => {
                if let Some(decision) = first_in_prose(trimmed) {
                    return decision;
                }
                problem = Some(words::no_object(&place(&error)));
            }
        }
    }
    let named: Vec<&ReplyCall> = calls.iter().filter(|call| !call.name.is_empty()).collect();
    if let Some((first, rest)) = named.split_first() {
        let arguments = super::native::arguments(first).to_owned();
        let left = rest.iter().map(|call| call.name.clone()).collect();
        return Decision::Call { tool: first.name.clone(), arguments, left, beside: true };
    }
    Decision::Rejected { problem: problem.unwrap_or_else(words::empty_reply), tool: None }
}

/// Where reading stopped, without a library's words.
fn place(error: &serde_json::Error) -> String {
    format!("reading stops at line {}, column {}", error.line(), error.column())
}

/// A reply without the fences that models put around an object.
fn without_fences(text: &str) -> String {
    let mut kept = Vec::new();
    for line in text.lines() {
        let start = line.trim_start();
        if let Some(rest) = start.strip_prefix("```") {
            let rest = rest.trim_start_matches('`');
            let info: String = rest.chars().take_while(|c| c.is_ascii_alphanumeric()).collect();
            let after = rest.strip_prefix(info.as_str()).unwrap_or(rest).trim();
            if !after.is_empty() {
                kept.push(after.trim_end_matches('`'));
            }
            continue;
        }
        let end = line.trim_end();
        kept.push(end.strip_suffix("```").unwrap_or(line));
    }
    kept.join("\n")
}

/// The first object in prose that decides something.
fn first_in_prose(text: &str) -> Option<Decision> {
    let mut from = 0;
    for _ in 0..DECISION_CANDIDATES {
        let rest = text.get(from..)?;
        let start = from.saturating_add(rest.find('{')?);
        let mut values = serde_json::Deserializer::from_str(text.get(start..)?).into_iter::<&RawValue>();
        match values.next() {
            Some(Ok(object)) => {
                if let Ok(decision) = decide(object.get()) {
                    return Some(with_the_rest(
                        decision,
                        text.get(start.saturating_add(values.byte_offset())..).unwrap_or_default(),
                    ));
                }
                from = start.saturating_add(values.byte_offset());
            }
            _ => from = start.saturating_add(1),
        }
    }
    None
}

/// Names further calls that stand behind the one that was taken.
fn with_the_rest(decision: Decision, rest: &str) -> Decision {
    let Decision::Call { tool, arguments, mut left, beside } = decision else { return decision };
    let mut from = 0;
    for _ in 0..DECISION_CANDIDATES {
        let Some(found) = rest.get(from..).and_then(|rest| rest.find('{')) else { break };
        let start = from.saturating_add(found);
        let mut values = serde_json::Deserializer::from_str(rest.get(start..).unwrap_or_default()).into_iter::<&RawValue>();
        match values.next() {
            Some(Ok(object)) => {
                if let Ok(Decision::Call { tool, .. }) = decide(object.get()) {
                    left.push(tool);
                }
                from = start.saturating_add(values.byte_offset());
            }
            _ => from = start.saturating_add(1),
        }
    }
    Decision::Call { tool, arguments, left, beside }
}

/// What a whole JSON value decides; the correction where it decides nothing.
fn decide(raw: &str) -> Result<Decision, String> {
    let Ok(object) = serde_json::from_str::<BTreeMap<String, &RawValue>>(raw) else {
        let kind = serde_json::from_str::<Value>(raw).map_or("no object", |value| super::super::arguments::kind_of(&value));
        return Err(words::not_an_object(kind));
    };
    let tool = object.get("tool").map(|raw| text_of(raw));
    let calls = tool.as_ref().is_some_and(|tool| !tool.is_empty());
    if let Some(answer) = object.get("answer") {
        let answer = text_of(answer);
        if !answer.trim().is_empty() {
            return Ok(Decision::Answer(answer));
        }
        if !calls {
            return Ok(Decision::Rejected { problem: words::blank_answer(), tool: None });
        }
    }
    let Some(tool) = tool else {
        return Err(words::neither_key(&object.keys().map(String::as_str).collect::<Vec<_>>()));
    };
    let arguments = match object.get("arguments").map(|raw| raw.get().trim()) {
        None | Some("null" | "\"\"" | "0" | "[]" | "false") => "{}".to_owned(),
        // Some models put the object into a string.
        Some(text) if text.starts_with('"') => serde_json::from_str(text).unwrap_or_else(|_| text.to_owned()),
        Some(text) => text.to_owned(),
    };
    Ok(Decision::Call { tool, arguments, left: Vec::new(), beside: false })
}

/// A call as the protocol wants it: what a model sees of one that it made in another form.
pub fn written(tool: &str, arguments: &str) -> String {
    let arguments = match serde_json::from_str::<&RawValue>(arguments) {
        Ok(raw) if raw.get().starts_with('{') => raw.get().to_owned(),
        _ if arguments.trim().is_empty() => "{}".to_owned(),
        _ => Value::from(arguments).to_string(),
    };
    format!("{{\"tool\": {}, \"arguments\": {arguments}}}", Value::from(tool))
}

/// A value as text: a string as it is, null as nothing, anything else as JSON.
fn text_of(raw: &RawValue) -> String {
    match serde_json::from_str(raw.get()) {
        Ok(Value::String(text)) => text,
        Ok(Value::Null) => String::new(),
        _ => raw.get().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::panic)]
    use proptest::prelude::*;

    use super::*;

    fn call(tool: &str, arguments: &str, left: &[&str]) -> Decision {
        let left = left.iter().map(|name| (*name).into()).collect();
        Decision::Call { tool: tool.into(), arguments: arguments.into(), left, beside: false }
    }

    #[test]
    fn an_object_is_found_alone_fenced_and_in_prose() {
        let wanted = call("mcp.add", "{\"a\":1}", &[]);
        for text in [
            "{\"tool\":\"mcp.add\",\"arguments\":{\"a\":1}}",
            "```json\n{\"tool\":\"mcp.add\",\"arguments\":{\"a\":1}}\n```",
            "```json {\"tool\":\"mcp.add\",\"arguments\":{\"a\":1}}```",
            "I will add {numbers} now:\n{\"tool\":\"mcp.add\",\"arguments\":{\"a\":1}}\nThat is all.",
            "{\"thought\":\"x\"} {\"tool\":\"mcp.add\",\"arguments\":{\"a\":1}}",
            "{\"tool\":\"mcp.add\",\"arguments\":\"{\\\"a\\\":1}\"}",
        ] {
            assert_eq!(read(text, &[]), wanted, "{text}");
        }
        assert_eq!(read("{\"tool\":\"a\"}\n{\"tool\":\"b\"}{\"tool\":\"c\"}", &[]), call("a", "{}", &["b", "c"]));
    }

    #[test]
    fn an_answer_wins_unless_it_is_blank_beside_a_call() {
        assert_eq!(read("{\"tool\":\"x\",\"answer\":\"done\"}", &[]), Decision::Answer("done".into()));
        assert_eq!(read("{\"answer\":{\"n\":1}}", &[]), Decision::Answer("{\"n\":1}".into()));
        assert_eq!(read("{\"tool\":\"x\",\"answer\":null}", &[]), call("x", "{}", &[]));
        let Decision::Rejected { problem, .. } = read("{\"answer\":\" \"}", &[]) else { panic!("a blank answer is no answer") };
        assert_eq!(problem, words::blank_answer());
    }

    #[test]
    fn native_calls_stand_in_for_an_object() {
        let calls = ["mcp_add", "mcp_echo"].map(|name| ReplyCall {
            name: name.into(),
            arguments: "{\"a\":1}".into(),
            ..ReplyCall::default()
        });
        for text in ["", "Let me add."] {
            let Decision::Call { tool, arguments, left, beside } = read(text, &calls) else { panic!("a call is there") };
            assert_eq!((tool.as_str(), left, beside), ("mcp_add", vec!["mcp_echo".to_owned()], true));
            assert_eq!(written(&tool, &arguments), "{\"tool\": \"mcp_add\", \"arguments\": {\"a\":1}}");
        }
    }

    #[test]
    fn a_reply_without_a_decision_is_corrected() {
        for (text, wanted) in [
            ("", words::empty_reply()),
            ("```\n```", words::empty_reply()),
            ("[1]", words::not_an_object("an array")),
            ("{\"a\":1}", words::neither_key(&["a"])),
            ("hello", words::no_object("reading stops at line 1, column 1")),
        ] {
            assert_eq!(read(text, &[]), Decision::Rejected { problem: wanted, tool: None }, "{text}");
        }
    }

    proptest! {
        #[test]
        fn nothing_brings_it_down(text in "[ -~\\n{}\\[\\]\"]{0,300}") {
            let _ = read(&text, &[]);
        }
    }
}
