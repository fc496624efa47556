#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::read;
use crate::engine::results::{Kept, Results};

fn results() -> Results {
    let mut results = Results::default();
    let text: String = (1..=300).map(|n| format!("line {n} é\n")).collect();
    let payload = json!({"a": {"b": [1, {"c": "deep"}]}, "x.y": true});
    results.keep(
        "d1",
        Kept { tool: "mcp.big".into(), arguments: Arc::from("{}"), ok: true, text: Arc::from(text), structured: Some(Arc::new(payload)) },
    );
    results.keep("d2", Kept { tool: "mcp.echo".into(), arguments: Arc::from("{}"), ok: true, text: Arc::from("hi"), structured: None });
    results
}

fn ask(arguments: Value) -> Result<String, String> {
    read(&results(), arguments.as_object().unwrap())
}

#[test]
fn the_index_names_every_handle() {
    insta::assert_snapshot!(ask(json!({})).unwrap(), @r"
    r1: mcp.big, 3192 characters, text and typed payload
    r2: mcp.echo, 2 characters, text only
    ");
    insta::assert_snapshot!(ask(json!({"handle": "r1"})).unwrap(), @"r1: mcp.big({}), 3192 characters of text. Typed payload: an object with 2 fields: a, x.y.");
}

#[test]
fn a_field_is_reached_by_path_and_by_pointer() {
    assert_eq!(ask(json!({"handle": "r1", "path": "a.b[1].c"})).unwrap(), "deep");
    assert_eq!(ask(json!({"handle": "r1", "path": "a.b[-2]"})).unwrap(), "1");
    assert_eq!(ask(json!({"handle": "r1", "path": "/x.y"})).unwrap(), "true");
    assert!(ask(json!({"handle": "r1", "path": "a.q"})).unwrap_err().contains("no `q` there"));
    assert!(ask(json!({"handle": "r2", "path": "a"})).unwrap_err().contains("no typed payload"));
}

#[test]
fn text_is_read_by_lines_offset_and_pattern() {
    assert_eq!(ask(json!({"handle": "r1", "lines": "2-3"})).unwrap(), "r1, lines 2 to 3 of 300:\nline 2 é\nline 3 é");
    assert_eq!(ask(json!({"handle": "r1", "lines": "300-"})).unwrap(), "r1, lines 300 to 300 of 300:\nline 300 é");
    assert_eq!(ask(json!({"handle": "r2", "offset": "1"})).unwrap(), "r2, characters 1 to 2 of 2:\ni");
    assert!(ask(json!({"handle": "r1", "limit": 9})).unwrap().ends_with("[go on with offset 9]"));
    assert_eq!(ask(json!({"handle": "r1", "grep": "line 30\\b"})).unwrap(), "r1: 1 of 300 lines match.\n30: line 30 é");
    assert_eq!(ask(json!({"handle": "r1", "grep": "nowhere"})).unwrap(), "r1: 0 of 300 lines match.");
    assert!(ask(json!({"handle": "r1", "grep": "line"})).unwrap().ends_with("[260 more matches; narrow the pattern or raise `limit`]"));
}

#[test]
fn what_cannot_be_read_is_said_in_a_sentence() {
    for (arguments, words) in [
        (json!({"handle": "r9"}), "no result `r9`"),
        (json!({"path": "a"}), "`handle` is missing"),
        (json!({"handle": "r1", "path": "a", "offset": 1}), "goes with none"),
        (json!({"handle": "r1", "lines": "1", "limit": 1}), "neither"),
        (json!({"handle": "r1", "grep": "x", "lines": "1"}), "neither"),
        (json!({"handle": "r1", "offset": -1}), "negative"),
        (json!({"handle": "r1", "offset": 1.5}), "whole number"),
        (json!({"handle": "r1", "offset": 5000}), "past its end"),
        (json!({"handle": "r1", "lines": "0"}), "counted from 1"),
        (json!({"handle": "r1", "lines": "3-2"}), "counted from 1"),
        (json!({"handle": "r1", "lines": "301"}), "past its end"),
        (json!({"handle": "r1", "grep": "("}), "regular expression"),
        (json!({"handle": 1}), "must be a text"),
    ] {
        let problem = ask(arguments.clone()).unwrap_err();
        assert!(problem.contains(words), "{arguments}: {problem}");
    }
}

proptest! {
    #[test]
    fn no_arguments_bring_it_down(handle in "r[0-9]{0,3}|.{0,3}", path in ".{0,12}", lines in "[0-9-]{0,8}", offset in any::<i64>()) {
        let _ = ask(json!({"handle": handle, "path": path}));
        let _ = ask(json!({"handle": "r1", "lines": lines}));
        let _ = ask(json!({"handle": "r1", "offset": offset, "limit": offset}));
        let _ = ask(json!({"handle": "r1", "grep": path}));
    }
}
