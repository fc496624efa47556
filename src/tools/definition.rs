//! One tool as its server defines it, read from its own bytes and checked alone: a bad one costs no other.

use mission_contract::log::ToolDefinition;
use serde_json::{Map, Value, json};

use super::{structure, wording};
use crate::limits;

/// A definition that can be used.
#[derive(Clone, Debug, PartialEq)]
pub struct Accepted {
    /// It.
    pub definition: ToolDefinition,
    /// What had to be put right in it, as sentences.
    pub repaired: Vec<String>,
}

/// Reads a definition and checks it.
///
/// # Errors
/// Why this tool is refused, as a sentence that names it where it has a name.
pub fn read(server: &str, raw: &str) -> Result<Accepted, String> {
    let bytes = raw.len();
    let cap = limits::size(limits::MCP_DEFINITION_BYTES);
    // The name is wanted for the reason, even when the rest is not looked at.
    let parsed: Result<Value, serde_json::Error> = serde_json::from_str(raw);
    let name = match &parsed {
        Ok(value) => value.get("name").and_then(Value::as_str).map(str::to_owned),
        Err(_) => None,
    };
    let refused = |reason: String| match name.as_deref().filter(|name| is_name(name)) {
        Some(name) => format!("The tool `{name}` is refused: {reason}."),
        None => format!("A tool is refused: {reason}. Its definition begins with {}", beginning(raw)),
    };
    if bytes > cap {
        return Err(refused(format!("its definition has {bytes} bytes, and {cap} are allowed")));
    }
    let mut tool = match parsed {
        Ok(Value::Object(tool)) => tool,
        Ok(_) => return Err(refused("its definition is no object".to_owned())),
        Err(error) if error.to_string().contains("recursion") => {
            return Err(refused(format!("its definition is nested more than {} levels deep", limits::MCP_DEFINITION_DEPTH)));
        }
        Err(error) => return Err(refused(format!("its definition is no JSON ({error})"))),
    };
    let name = match tool.remove("name") {
        Some(Value::String(name)) if is_name(&name) => name,
        Some(Value::String(_)) => {
            return Err(refused(format!(
                "a name has 1 to {} of the signs A-Z, a-z, 0-9, `_`, `-` and `.`, and its name does not",
                limits::MCP_TOOL_NAME_BYTES
            )));
        }
        Some(_) => return Err(refused("its name is no text".to_owned())),
        None => return Err(refused("it has no name".to_owned())),
    };
    let mut repaired = Vec::new();
    let input_schema = match tool.remove("inputSchema") {
        None | Some(Value::Null) => {
            repaired.push(format!("The tool `{name}` has no inputSchema; it is taken to have no arguments."));
            json!({ "type": "object" })
        }
        Some(schema) => schema,
    };
    let checked = |schema: &Value| {
        structure::check(schema)?;
        let (length, most) = (schema.to_string().len(), limits::size(limits::MCP_SCHEMA_BYTES));
        if length > most {
            return Err(format!("has {length} bytes, and {most} are allowed"));
        }
        wording::schema(schema)
    };
    checked(&input_schema).map_err(|reason| refused(format!("its inputSchema {reason}")))?;
    let output_schema = present(&mut tool, "outputSchema");
    if let Some(schema) = &output_schema {
        checked(schema).map_err(|reason| refused(format!("its outputSchema {reason}")))?;
    }
    let description = match present(&mut tool, "description") {
        None => String::new(),
        Some(Value::String(description)) => {
            let worded = wording::description(&dedented(&description)).map_err(&refused)?;
            repaired
                .extend(worded.done.map(|done| format!("The tool `{name}` is offered otherwise than it is defined: {done}.")));
            worded.text
        }
        Some(_) => return Err(refused("its description is no text".to_owned())),
    };
    let annotations = present(&mut tool, "annotations");
    if annotations.as_ref().is_some_and(|annotations| !annotations.is_object()) {
        return Err(refused("its annotations are no object".to_owned()));
    }
    if tool.get("execution").and_then(|execution| execution.get("taskSupport")).and_then(Value::as_str) == Some("required") {
        return Err(refused("it can only be called as a task, which is not supported".to_owned()));
    }
    let definition = ToolDefinition { server: server.to_owned(), name, description, input_schema, output_schema, annotations };
    Ok(Accepted { definition, repaired })
}

fn present(tool: &mut Map<String, Value>, key: &str) -> Option<Value> {
    tool.remove(key).filter(|value| !value.is_null())
}

fn is_name(name: &str) -> bool {
    let cap = limits::size(limits::MCP_TOOL_NAME_BYTES);
    (1..=cap).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
}

/// The first signs of something, quoted.
fn beginning(raw: &str) -> String {
    let mut signs = raw.chars();
    let shown: String = signs.by_ref().take(limits::size(limits::MCP_QUOTED_BYTES)).collect();
    let more = if signs.next().is_some() { "…" } else { "" };
    format!("{shown:?}{more}")
}

/// A description as a docstring is meant: the common indentation of all lines but the first is taken away, and what is blank
/// around the whole. Then it does not depend on the version of Python that a server runs on.
fn dedented(text: &str) -> String {
    let mut lines = text.trim().lines();
    let first = lines.next().unwrap_or_default();
    let rest: Vec<&str> = lines.collect();
    let indentation = |line: &str| line.len().saturating_sub(line.trim_start_matches([' ', '\t']).len());
    let margin = rest.iter().filter(|line| !line.trim().is_empty()).map(|line| indentation(line)).min().unwrap_or(0);
    let mut dedented = first.trim_end().to_owned();
    for line in rest {
        dedented.push('\n');
        dedented.push_str(line.get(margin..).unwrap_or_default().trim_end());
    }
    dedented
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn refused(raw: &str) -> String {
        read("s", raw).unwrap_err()
    }

    #[test]
    fn a_definition_is_read_whole() {
        let accepted = read(
            "s",
            r#"{"name":"a.b-C_1","title":"T","description":"One.\n\n        Two:\n          three\n    ","inputSchema":{"properties":{"z":{},"a":{}}},
                "outputSchema":{"type":"object"},"annotations":{"readOnlyHint":true},"execution":{"taskSupport":"optional"},"icons":[]}"#,
        )
        .unwrap();
        assert!(accepted.repaired.is_empty());
        let definition = accepted.definition;
        assert_eq!(definition.full_name(), "s.a.b-C_1");
        assert_eq!(definition.description, "One.\n\nTwo:\n  three");
        assert_eq!(definition.input_schema, json!({"properties": {"z": {}, "a": {}}}));
        assert_eq!(definition.output_schema, Some(json!({"type": "object"})));
        assert_eq!(definition.annotations, Some(json!({"readOnlyHint": true})));
    }

    #[test]
    fn a_missing_schema_means_no_arguments_and_is_told() {
        for raw in [r#"{"name":"now"}"#, r#"{"name":"now","inputSchema":null}"#] {
            let accepted = read("s", raw).unwrap();
            assert_eq!(accepted.definition.input_schema, json!({"type": "object"}));
            let told = "The tool `now` has no inputSchema; it is taken to have no arguments.";
            assert_eq!(accepted.repaired, [told]);
        }
    }

    #[test]
    fn each_flaw_has_its_sentence() {
        insta::assert_snapshot!(refused(r#"{"name":7,"inputSchema":{}}"#), @r#"A tool is refused: its name is no text. Its definition begins with "{\"name\":7,\"inputSchema\":{}}""#);
        insta::assert_snapshot!(refused(r#"{"inputSchema":{}}"#), @r#"A tool is refused: it has no name. Its definition begins with "{\"inputSchema\":{}}""#);
        insta::assert_snapshot!(refused("[]"), @r#"A tool is refused: its definition is no object. Its definition begins with "[]""#);
        insta::assert_snapshot!(refused(r#"{"name":"a b","inputSchema":{}}"#), @r#"A tool is refused: a name has 1 to 128 of the signs A-Z, a-z, 0-9, `_`, `-` and `.`, and its name does not. Its definition begins with "{\"name\":\"a b\",\"inputSchema\":{}}""#);
        insta::assert_snapshot!(refused(r#"{"name":"t","inputSchema":"x"}"#), @"The tool `t` is refused: its inputSchema is no object.");
        insta::assert_snapshot!(refused(r#"{"name":"t","inputSchema":{},"outputSchema":{"$ref":"http://x.test/"}}"#), @r#"The tool `t` is refused: its outputSchema has the reference "http://x.test/", which leads nowhere in it; nothing is fetched for a reference."#);
        insta::assert_snapshot!(refused(r#"{"name":"t","inputSchema":{},"description":1}"#), @"The tool `t` is refused: its description is no text.");
        insta::assert_snapshot!(refused(r#"{"name":"t","inputSchema":{},"annotations":[]}"#), @"The tool `t` is refused: its annotations are no object.");
        insta::assert_snapshot!(refused(r#"{"name":"t","inputSchema":{},"execution":{"taskSupport":"required"}}"#), @"The tool `t` is refused: it can only be called as a task, which is not supported.");
        let deep = format!(r#"{{"name":"t","inputSchema":{}{{}}{}}}"#, r#"{"not":"#.repeat(3_000), "}".repeat(3_000));
        assert!(refused(&deep).contains("its definition is nested more than 64 levels deep"));
        let large = format!(r#"{{"name":"t","description":"{}"}}"#, "x".repeat(256 * 1024));
        insta::assert_snapshot!(refused(&large), @"The tool `t` is refused: its definition has 262173 bytes, and 262144 are allowed.");
    }

    #[test]
    fn dedenting_twice_is_dedenting_once() {
        for text in ["", "one", "  one\n    two\n      three", "one\n\ttwo\n\tthree\n", "one\n  \n    two\n ", "a\r\n  b\r\n"] {
            let once = dedented(text);
            assert_eq!(dedented(&once), once, "{text:?}");
        }
    }
}
