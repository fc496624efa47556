#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn text(raw: &str) -> String {
    from_raw(raw).unwrap_or_else(|problem| panic!("{raw}: {problem}")).text
}

fn problem(raw: &str) -> (String, Problem) {
    let problem = from_raw(raw).expect_err(raw);
    (problem.pointer, problem.problem)
}

fn lost(number: &str) -> Problem {
    Problem::NumberLost { number: number.to_string() }
}

#[test]
fn keys_are_sorted_by_code_point_at_every_depth() {
    // U+FF5E comes before U+1F600 by code point, and after it by UTF-16 unit.
    assert_eq!(
        text("{ \"b\": [ {\"z\":1 , \"a\" : null} ], \"\u{1F600}\":1, \"\u{FF5E}\":2, \"B\": true, \"a\": false }"),
        "{\"B\":true,\"a\":false,\"b\":[{\"a\":null,\"z\":1}],\"\u{FF5E}\":2,\"\u{1F600}\":1}"
    );
}

#[test]
fn escapes_are_the_shortest() {
    assert_eq!(
        text(r#""\u0041\/\u00e4\u000a\u0009\u0008\u000c\u000d\u0022\u005c\u0001\u007f\ud83d\ude00""#),
        "\"A/ä\\n\\t\\b\\f\\r\\\"\\\\\\u0001\u{7f}😀\""
    );
}

#[test]
fn numbers_have_one_form() {
    for (raw, canonical) in [
        ("0", "0"),
        ("-0", "0"),
        ("-0.0", "0"),
        ("0e999999999999999999999", "0"),
        ("1.0", "1"),
        ("1e2", "100"),
        ("-12.50", "-12.5"),
        ("1E-7", "1e-7"),
        ("0.1", "0.1"),
        ("18446744073709551615", "18446744073709551615"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("9007199254740993", "9007199254740993"),
        ("9007199254740991.0", "9007199254740991"),
        ("1e20", "1e+20"),
        ("100000000000000000000", "1e+20"),
        ("1.7976931348623157e308", "1.7976931348623157e+308"),
        ("5e-324", "5e-324"),
    ] {
        assert_eq!(text(raw), canonical, "{raw}");
        assert_eq!(text(&text(raw)), canonical, "{raw} again");
    }
}

#[test]
fn a_number_that_would_become_another_is_named() {
    for raw in [
        "18446744073709551617",
        "0.10000000000000000001",
        "1e400",
        "-1e400",
        "1e-400",
        "9007199254740993.0",
        "-9223372036854775809",
        "1e99999999999999999999",
    ] {
        assert_eq!(problem(&format!("{{\"a\":[1,{raw}]}}")), ("/a/1".to_string(), lost(raw)), "{raw}");
    }
    let long = format!("0.{}", "1".repeat(200));
    let (_, Problem::NumberLost { number }) = problem(&long) else { panic!("{long}") };
    assert_eq!(number.chars().count(), NUMBER_SHOWN + 1);
}

#[test]
fn what_is_no_value_is_named_with_its_place() {
    assert_eq!(problem(r#"{"a":{"b":NaN}}"#), ("/a/b".into(), Problem::NotFinite { word: "NaN" }));
    assert_eq!(problem("[1,\n -Infinity]"), ("/1".into(), Problem::NotFinite { word: "-Infinity" }));
    assert_eq!(problem(r#"{"a": Infinity}"#), ("/a".into(), Problem::NotFinite { word: "Infinity" }));
    assert_eq!(problem(r#"{"a":["x","\ud800"]}"#), ("/a/1".into(), Problem::LoneSurrogate));
    assert_eq!(problem(r#"{"a":{"\ud800":1}}"#), ("/a".into(), Problem::LoneSurrogate));
    assert_eq!(problem(r#"{"a":{"x":1,"\u0078":2}}"#), ("/a/x".into(), Problem::DuplicateKey { key: "x".into() }));
    assert_eq!(problem(r#"{"a/b":{"c~":[tru]}}"#).0, "/a~1b/c~0/0");
    assert_eq!(problem(r#"{"a":1 "b":2}"#), (String::new(), Problem::Syntax { line: 1, column: 8 }));
    assert!(matches!(problem(""), (_, Problem::Syntax { .. })));
    assert!(matches!(problem("{} {}"), (_, Problem::Syntax { .. })));
    // Two problems: the first one in the text is named.
    assert_eq!(problem(r#"{"a":1e400,"b":tru}"#), ("/a".into(), lost("1e400")));
    assert_eq!(problem(r#"{"a":"\ud800","b":tru}"#), ("/a".into(), Problem::LoneSurrogate));
}

#[test]
fn depth_is_bounded() {
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    assert_eq!(text(&nested(DEPTH)), nested(DEPTH));
    assert_eq!(problem(&nested(DEPTH + 1)), ("/0".repeat(DEPTH), Problem::TooDeep));
    assert_eq!(problem(&nested(1_000_000)).1, Problem::TooDeep);
    assert_eq!(problem(&"[".repeat(1_000_000)).1, Problem::TooDeep);
    // What is accepted can be read back with the usual bound, inside a line and a record.
    let line = format!("{{\"record\":{{\"arguments\":{{\"a\":{}}}}}}}", nested(DEPTH));
    serde_json::from_str::<serde_json::Value>(&line).unwrap();
}

#[test]
fn a_value_has_the_same_text_as_its_source() {
    let value = json!({"b": 1.0, "a": [1.5, -0.0, "é"]});
    assert_eq!(of_value(&value), r#"{"a":[1.5,0,"é"],"b":1}"#);
}

#[test]
fn the_sentence_says_where_and_what_to_do() {
    let problem = from_raw(r#"{"id":18446744073709551617}"#).unwrap_err();
    assert_eq!(
        problem.to_string(),
        "at /id: the number 18446744073709551617 cannot be carried exactly; give it as a string, or with fewer digits"
    );
}

fn any_value() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(|value| json!(value)),
        any::<i64>().prop_map(|value| json!(value)),
        any::<u64>().prop_map(|value| json!(value)),
        any::<f64>().prop_filter("finite", |value| value.is_finite()).prop_map(|value| json!(value)),
        (-1000i32..1000).prop_map(|value| json!(f64::from(value))),
        any::<String>().prop_map(|value| json!(value)),
    ];
    leaf.prop_recursive(4, 48, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(serde_json::Value::Array),
            prop::collection::btree_map(any::<String>(), inner, 0..6)
                .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Writes a value with its keys in the reverse order, with spaces and long escapes.
fn sloppy(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::Array(items) => format!("[ {} ]", items.iter().map(sloppy).collect::<Vec<_>>().join(" ,\n")),
        serde_json::Value::Object(members) => {
            let members: Vec<String> =
                members.iter().rev().map(|(key, item)| format!("{} : {}", escaped(key), sloppy(item))).collect();
            format!("{{ {} }}", members.join(" , "))
        }
        serde_json::Value::String(text) => escaped(text),
        other => other.to_string(),
    }
}

fn escaped(text: &str) -> String {
    let units: String = text.encode_utf16().map(|unit| format!("\\u{unit:04X}")).collect();
    format!("\"{units}\"")
}

proptest! {
    #[test]
    fn the_form_is_stable(value in any_value()) {
        let once = of_value(&value);
        let read = from_raw(&once).unwrap();
        prop_assert_eq!(&read.text, &once);
        prop_assert_eq!(of_value(&read.value), once);
    }

    #[test]
    fn order_spaces_and_escapes_never_matter(value in any_value()) {
        prop_assert_eq!(from_raw(&sloppy(&value)).unwrap().text, of_value(&value));
    }

    #[test]
    fn the_text_of_a_value_survives_an_ordinary_reader(value in any_value()) {
        let once = of_value(&value);
        let read: serde_json::Value = serde_json::from_str(&once).unwrap();
        prop_assert_eq!(of_value(&read), once);
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = from_raw(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn arbitrary_json_like_text_never_panics(raw in r#"[\[\]{}",:0-9eE.\-+ntrufalsNI\\ud ]{0,60}"#) {
        if let Ok(read) = from_raw(&raw) {
            // What it accepts, an ordinary reader accepts too.
            prop_assert!(serde_json::from_str::<serde_json::Value>(&raw).is_ok());
            prop_assert_eq!(from_raw(&read.text).unwrap().text, read.text);
        } 
    }
}
