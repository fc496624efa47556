//! Schemas of tools as they are in the field: local references, leftovers of older drafts, no type at all, unions with null,
//! patterns of another language. Each call is judged as its schema says, and what a schema cannot say costs its own tool only.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::needs;
use crate::support::player::{Serving, field_json};
use crate::support::servers;
use crate::support::wild::{Played, serve};

/// What becomes of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Verdict {
    /// It reaches the server.
    Valid,
    /// It is sent back to the model, with this problem.
    Invalid(String),
}

/// A run against these tools: what became of each call, in their order.
fn judged(tools: &Value, calls: &[(&str, Value)]) -> (Vec<Verdict>, Played<Serving>) {
    let played = serve(Serving::tools(tools), calls, &["--supervisor", "off"]);
    played.finished.exits(0).ends("answered");
    let mut verdicts = BTreeMap::new();
    for event in played.finished.events() {
        let verdict = match event["event"].as_str().unwrap() {
            "tool_call" => Verdict::Valid,
            "reply_rejected" => Verdict::Invalid(event["problem"].as_str().unwrap().to_owned()),
            _ => continue,
        };
        assert!(verdicts.insert(event["index"].as_u64().unwrap(), verdict).is_none(), "{}", played.finished);
    }
    let verdicts: Vec<Verdict> = verdicts.into_values().collect();
    assert_eq!(verdicts.len(), calls.len(), "{}", played.finished);
    let reached = verdicts.iter().filter(|verdict| **verdict == Verdict::Valid).count();
    assert_eq!(played.server.recorded("tools/call").len(), reached, "only what fits reaches the server");
    (verdicts, played)
}

/// Tools that are not offered, each with a notice that names it.
fn refused(played: &Played<Serving>) -> Vec<String> {
    let notices = played.finished.named("notice");
    let named = |notice: &Value| notice["detail"].as_str().unwrap().split('`').nth(1).map(str::to_owned);
    notices.iter().filter(|notice| notice["code"] == "tool_refused").filter_map(named).collect()
}

/// The tools on offer.
fn offered(played: &Played<Serving>) -> Vec<String> {
    let started = played.finished.only("mission_started");
    let names = started["catalogue"].as_array().unwrap().iter().map(|name| name.as_str().unwrap());
    names.filter_map(|name| name.strip_prefix("srv.")).map(str::to_owned).collect()
}

/// A field case: `tools.json`, and `calls.json` with what is expected of each call.
fn field_case(case: &str) -> (Vec<Verdict>, Played<Serving>) {
    let calls = field_json(case, "calls.json");
    let tools = field_json(case, "tools.json")["tools"].take();
    let only = tools[0]["name"].as_str().unwrap().to_owned();
    let calls: Vec<(String, Value, String, Option<String>)> = calls
        .as_array()
        .unwrap()
        .iter()
        .map(|call| {
            let text = |key: &str| call[key].as_str().map(str::to_owned);
            (text("tool").unwrap_or(only.clone()), call["arguments"].clone(), text("expect").unwrap(), text("message_contains"))
        })
        .collect();
    let made: Vec<(&str, Value)> = calls.iter().map(|(tool, arguments, ..)| (tool.as_str(), arguments.clone())).collect();
    let (verdicts, played) = judged(&tools, &made);
    for ((tool, arguments, expected, contains), verdict) in calls.iter().zip(&verdicts) {
        let is: &[&str] = match verdict {
            Verdict::Valid => &["valid", "parsed_once"],
            Verdict::Invalid(problem) if problem.contains("cannot be used in this run") => &["tool_refused"],
            Verdict::Invalid(_) if refused(&played).contains(tool) => &["tool_refused"],
            Verdict::Invalid(_) => &["invalid"],
        };
        assert!(
            expected.split("_or_").any(|one| is.contains(&one)),
            "{tool} {arguments}: {verdict:?}, where {expected} is expected"
        );
        if let (Some(word), Verdict::Invalid(problem)) = (contains, verdict) {
            assert!(problem.contains(word), "{problem}");
        }
    }
    (verdicts, played)
}

fn valid(verdicts: &[Verdict]) -> Vec<bool> {
    verdicts.iter().map(|verdict| *verdict == Verdict::Valid).collect()
}

/// S01. References within a schema are followed wherever they point; one that leads nowhere costs its tool.
#[test]
fn references_within_a_schema_are_followed() {
    needs!(servers::python());
    let (_, played) = field_case("S01");
    assert_eq!(offered(&played), ["defs", "escaped", "pointer"]);
    let notice = played.finished.only("notice");
    assert!(notice["detail"].as_str().unwrap().contains("#/$defs/Missing"), "{notice}");
    let tools = json!([
        {"name": "tree", "inputSchema": {"type": "object", "properties": {"root": {"$ref": "#/$defs/node"}}, "required": ["root"],
            "$defs": {"node": {"type": "object", "properties": {"v": {"type": "integer"}, "next": {"$ref": "#/$defs/node"}}, "required": ["v"]}}}},
        {"name": "self", "inputSchema": {"type": "object", "properties": {"child": {"$ref": "#"}}, "additionalProperties": false}},
        {"name": "anchor", "inputSchema": {"$defs": {"a": {"$anchor": "here", "type": "integer"}}, "properties": {"x": {"$ref": "#here"}}}},
        {"name": "id", "inputSchema": {"$id": "https://schemas.invalid/root.json", "properties": {"x": {"$ref": "item.json"}},
            "$defs": {"i": {"$id": "item.json", "type": "boolean"}}}},
        {"name": "percent", "inputSchema": {"definitions": {"a b%": {"type": "null"}}, "properties": {"x": {"$ref": "#/definitions/a%20b%25"}}}},
        {"name": "siblings", "inputSchema": {"$defs": {"s": {"type": "string"}}, "properties": {"x": {"$ref": "#/$defs/s", "maxLength": 2}}}},
        {"name": "circle", "inputSchema": {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "properties": {"x": {"type": "string"}}}},
        {"name": "dynamic", "inputSchema": {"$dynamicAnchor": "node", "type": "object", "properties": {"kids": {"type": "array", "items": {"$dynamicRef": "#node"}}}}},
        {"name": "data", "inputSchema": {"properties": {"x": {"const": {"$ref": "https://schemas.invalid/x"}}}}},
    ]);
    let deep = (0..50).fold(json!({"v": 1}), |inner, _| json!({"v": 1, "next": inner}));
    let (verdicts, played) = judged(
        &tools,
        &[
            ("tree", json!({"root": deep})),
            ("tree", json!({"root": {"v": 1, "next": {"v": "x"}}})),
            ("self", json!({"child": {"child": {"child": {}}}})),
            ("self", json!({"child": {"other": 1}})),
            ("anchor", json!({"x": 1})),
            ("anchor", json!({"x": "1"})),
            ("id", json!({"x": true})),
            ("id", json!({"x": 0})),
            ("percent", json!({"x": null})),
            ("percent", json!({"x": 1})),
            ("siblings", json!({"x": "ab"})),
            ("siblings", json!({"x": "abc"})),
            ("circle", json!({"x": "y"})),
            ("dynamic", json!({"kids": [{"kids": []}]})),
            ("dynamic", json!({"kids": [{"kids": 1}]})),
            ("data", json!({"x": {"$ref": "https://schemas.invalid/x"}})),
        ],
    );
    let expected = [true, false, true, false, true, false, true, false, true, false, true, false, true, true, false, true];
    assert_eq!(valid(&verdicts), expected, "{verdicts:#?}\n{}", played.finished);
    assert_eq!(refused(&played), Vec::<String>::new());
}

/// S04. What an older draft left behind is understood, or costs its tool; it never takes another one down.
#[test]
fn leftovers_of_older_drafts_cost_their_own_tool_at_most() {
    needs!(servers::python());
    let (_, played) = field_case("S04");
    assert!(offered(&played).contains(&"good".to_owned()));
    let told: Vec<Value> = played.finished.named("notice").iter().map(|notice| notice["code"].clone()).collect();
    assert!(told.iter().all(|code| code == "tool_refused" || code == "tool_unusable"), "{}", played.finished);
    let dialect = |name: &str| format!("http://json-schema.org/{name}");
    let drafts = ["draft-04/schema#", "draft-06/schema#", "draft-07/schema#", "draft/2019-09/schema", "draft/2020-12/schema"];
    for draft in drafts {
        let bound = if draft.starts_with("draft-04") {
            json!({"minimum": 0, "exclusiveMinimum": true})
        } else {
            json!({"exclusiveMinimum": 0})
        };
        let defs = if draft.starts_with("draft-0") { "definitions" } else { "$defs" };
        let tuple = if draft == "draft/2020-12/schema" { "prefixItems" } else { "items" };
        let schema = json!({"$schema": dialect(draft), "type": "object", defs: {"n": {"type": "integer"}}, "properties": {
            "n": {"$ref": format!("#/{defs}/n")}, "b": bound, "t": {"type": "array", tuple: [{"type": "string"}, {"type": "boolean"}]},
            "e": {"enum": ["a", 1, null]}}, "required": ["n"], "additionalProperties": false});
        let tools = json!([{"name": "t", "inputSchema": schema}, {"name": "other", "inputSchema": {}}]);
        let (verdicts, played) = judged(
            &tools,
            &[
                ("t", json!({"n": 1, "b": 0.5, "t": ["x", true], "e": null})),
                ("t", json!({})),
                ("t", json!({"n": 1.5})),
                ("t", json!({"n": 1, "b": 0})),
                ("t", json!({"n": 1, "t": ["x", "y"]})),
                ("t", json!({"n": 1, "e": "b"})),
                ("t", json!({"n": 1, "x": 1})),
                ("other", json!({"any": "thing"})),
            ],
        );
        assert_eq!(valid(&verdicts), [true, false, false, false, false, false, false, true], "{draft}: {verdicts:#?}");
        assert_eq!(refused(&played), Vec::<String>::new(), "{draft}");
    }
    let unknown = json!([{"name": "t", "inputSchema": {"$schema": "https://schemas.invalid/mine", "type": "object"}}, {"name": "other", "inputSchema": {}}]);
    let (_, played) = judged(&unknown, &[("other", json!({}))]);
    assert_eq!((offered(&played), refused(&played)), (vec!["other".to_owned()], vec!["t".to_owned()]));
}

/// S05. No type, no properties, no schema: a tool without arguments; what is no object is refused by name.
#[test]
fn a_schema_that_says_little_is_taken_for_an_object() {
    needs!(servers::python());
    let (_, played) = field_case("S05");
    assert_eq!(offered(&played), ["empty", "missing", "notype", "null", "objonly", "reqonly"]);
    let mut names = refused(&played);
    names.sort();
    assert_eq!(names, ["arr", "true"]);
    let repaired: Vec<Value> =
        played.finished.named("notice").into_iter().filter(|notice| notice["code"] == "tool_repaired").collect();
    assert_eq!(repaired.len(), 2, "a missing schema is told: {}", played.finished);
    let odd = [
        json!(false),
        json!([]),
        json!("object"),
        json!(7),
        json!({"type": "objekt"}),
        json!({"type": "string"}),
        json!({"type": []}),
        json!({"type": ["array", "null"]}),
        json!({"type": 7}),
        json!({"type": null}),
    ];
    for (at, schema) in odd.iter().enumerate() {
        let tools = json!([{"name": format!("odd{at}"), "inputSchema": schema}, {"name": "good", "inputSchema": {"type": ["null", "object"]}}]);
        let (verdicts, played) = judged(&tools, &[("good", json!({})), (&format!("odd{at}"), json!({}))]);
        assert_eq!(valid(&verdicts), [true, false], "{schema}");
        assert_eq!((offered(&played), refused(&played)), (vec!["good".to_owned()], vec![format!("odd{at}")]), "{schema}");
    }
}

/// S09. Unions with null, formats, defaults, keys that are made up, whole numbers with a fraction of nothing.
#[test]
fn arguments_are_held_against_the_schema_as_it_stands() {
    needs!(servers::python());
    let (_, played) = field_case("S09");
    let sent: Vec<Value> = played.server.recorded("tools/call").iter().map(|call| call["params"]["arguments"].clone()).collect();
    assert_eq!(sent[0], json!({"a": null}), "no default is put in");
    let values: Vec<Value> = (0..5_000).map(|number| json!(format!("value-{number}"))).collect();
    let tools = json!([
        {"name": "choose", "inputSchema": {"type": "object", "properties": {"x": {"enum": values}}, "required": ["x"]}},
        {"name": "when", "inputSchema": {"type": "object", "properties": {"d": {"type": "string", "format": "date-time"}, "k": {"type": "string"}},
            "if": {"required": ["d"]}, "then": {"required": ["k"]}, "patternProperties": {"^x-": {"type": "integer"}}, "unevaluatedProperties": false}},
        {"name": "names", "inputSchema": {"type": "object", "propertyNames": {"maxLength": 3}, "minProperties": 1, "dependentRequired": {"a": ["b"]}}},
        {"name": "big", "inputSchema": {"type": "object", "properties": {"n": {"type": "integer", "maximum": 9007199254740993_i64, "multipleOf": 1}, "f": {"multipleOf": 0.1}}}},
    ]);
    let (verdicts, _) = judged(
        &tools,
        &[
            ("choose", json!({"x": "value-4999"})),
            ("choose", json!({"x": "value-5000"})),
            ("when", json!({"d": "yesterday", "k": "x", "x-a": 1})),
            ("when", json!({"d": "2026-01-01T00:00:00Z"})),
            ("when", json!({"x-a": "1"})),
            ("when", json!({"y": 1})),
            ("names", json!({"abc": 1})),
            ("names", json!({"abcd": 1})),
            ("names", json!({})),
            ("names", json!({"a": 1})),
            ("big", json!({"n": 9007199254740993_i64})),
            ("big", json!({"n": 9007199254740994_i64})),
            ("big", json!({"f": 0.3})),
        ],
    );
    let expected = [true, false, true, false, false, false, true, false, false, false, true, false, true];
    assert_eq!(valid(&verdicts), expected, "{verdicts:#?}");
    let Verdict::Invalid(problem) = &verdicts[1] else { panic!("{verdicts:?}") };
    assert!(problem.len() < 1_000 && problem.contains("value-0"), "a long choice is shortened: {problem}");
}

/// Patterns are those of another language: looking ahead, digits that are ten, and backtracking that has an end.
#[test]
fn patterns_of_another_language_are_understood_and_bounded() {
    needs!(servers::python());
    let pattern =
        |pattern: &str| json!({"type": "object", "properties": {"x": {"type": "string", "pattern": pattern}}, "required": ["x"]});
    let tools = json!([
        {"name": "ahead", "inputSchema": pattern(r"^(?=.*\d)(?!.*\s).{4,}$")},
        {"name": "behind", "inputSchema": pattern(r"(?<=\$)\d+(?<!0)$")},
        {"name": "digits", "inputSchema": pattern(r"^\d+$")},
        {"name": "words", "inputSchema": pattern(r"^\w+$")},
        {"name": "back", "inputSchema": pattern(r"^(a|b)\1$")},
        {"name": "unicode", "inputSchema": pattern(r"^\p{Letter}+$")},
        {"name": "escape", "inputSchema": pattern(r"^\/api\/v1\-x$")},
        {"name": "control", "inputSchema": pattern(r"^\cA?\u0041$")},
        {"name": "class", "inputSchema": pattern(r"^[^]$")},
        {"name": "slow", "inputSchema": pattern(r"^(([a-z])+.)+[A-Z]([a-z])+$")},
        {"name": "slower", "inputSchema": pattern(r"^(a+)+\1$")},
        {"name": "broken", "inputSchema": pattern("^(")},
        {"name": "huge", "inputSchema": pattern("(x{1000}){1000}")},
    ]);
    let calls = [
        ("ahead", "abc1", Some(true)),
        ("ahead", "ab 1", Some(false)),
        ("behind", "$17", Some(true)),
        ("behind", "$10", Some(false)),
        ("digits", "0123", Some(true)),
        ("digits", "\u{0661}\u{0662}", Some(false)),
        ("words", "a_1", Some(true)),
        ("words", "\u{e9}", Some(false)),
        ("back", "aa", Some(true)),
        ("back", "ab", Some(false)),
        ("unicode", "\u{e9}\u{df}", Some(true)),
        ("unicode", "a1", Some(false)),
        ("escape", "/api/v1-x", Some(true)),
        ("control", "A", None),
        ("class", "x", None),
        ("slow", &"a".repeat(200), Some(false)),
        ("slower", &format!("{}b", "a".repeat(60)), Some(false)),
        ("broken", "(", Some(false)),
        ("broken", "x", Some(false)),
        ("huge", "x", Some(false)),
    ];
    let made: Vec<(&str, Value)> = calls.iter().map(|(tool, text, _)| (*tool, json!({"x": text}))).collect();
    let (verdicts, played) = judged(&tools, &made);
    for ((tool, text, expected), verdict) in calls.iter().zip(&verdicts) {
        assert!(expected.is_none_or(|expected| (*verdict == Verdict::Valid) == expected), "{tool} {text}: {verdict:?}");
    }
    assert!(played.took < Duration::from_secs(20), "{:?}", played.took);
    let told: Vec<String> =
        played.finished.named("notice").iter().map(|notice| notice["detail"].as_str().unwrap().to_owned()).collect();
    assert_eq!(
        told.iter().filter(|detail| detail.contains("broken") && detail.contains("cannot be used")).count(),
        1,
        "told once: {told:?}"
    );
}
