#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn sentences(record: &Value) -> Vec<String> {
    conforms(record).iter().map(ToString::to_string).collect()
}

/// A run as the harness before writes it.
const RUN: &str = r#"{"event":"mission_started","schema_version":1,"objective":"how many?","catalogue":["mcp.stock","mission_result"],"gated":[],"max_steps":0,"history":0,"sandbox":"bwrap","audit_ref":null,"run_id":"run_20260101T090001-9f8e7d6c","profile":"safe","somebody_s_own":1}
{"event":"step_started","index":0}
{"event":"tool_call","index":0,"tool":"mcp.stock","arguments":{"sku":"w-7"},"usage":{"prompt_tokens":412,"completion_tokens":19,"total_tokens":431,"cached":{"a":1}}}
{"event":"tool_result","index":0,"tool":"mcp.stock","arguments":{"sku":"w-7"},"ok":true,"exit_code":0,"output":"31","error":"","handle":"r1","truncated":false,"call":1}
{"event":"answer_delta","index":1,"part":0,"text":"31"}
{"event":"answer","text":"31","outcome":"answered","structured":null}
{"event":"mission_finished","outcome":"answered","steps":2,"max_steps":0,"usage":{"prompt_tokens":882,"completion_tokens":33,"total_tokens":915,"calls":2,"cost":{"amount":0.01,"currency":"EUR"}},"elapsed_s":3.418,"branch":"direct"}"#;

#[test]
fn a_recorded_run_conforms() {
    for line in RUN.lines() {
        assert_eq!(conforms_line(line), Vec::new(), "{line}");
    }
}

#[test]
fn each_problem_is_named_with_its_place() {
    assert_eq!(sentences(&json!([])), ["a record is a JSON object"]);
    assert_eq!(sentences(&json!({"index": 0})), ["a record has its name under `event`"]);
    assert_eq!(sentences(&json!({"event": "dream"})), ["/event: the contract has no event `dream`"]);
    assert_eq!(
        sentences(&json!({"event": "dream", "schema_version": 2})),
        ["/schema_version: the version of the stream is 1", "/event: the contract has no event `dream`"]
    );
    assert_eq!(sentences(&json!({"event": "step_started"})), ["/index: this required field is missing"]);
    assert_eq!(
        sentences(&json!({"event": "step_started", "index": null, "branch": null})),
        [
            "/index: this field is null; a field that does not apply is left out",
            "/branch: this field is null; a field that does not apply is left out",
        ]
    );
    assert_eq!(
        sentences(&json!({"event": "step_started", "index": 1.5, "injected": ["a", 1], "review": {
            "signal": "oscillation", "verdict": "maybe", "reviews_left": true
        }})),
        [
            "/index: this has to be a whole number from 0",
            "/injected: this has to be a list of strings",
            "/review/verdict: this has to be one of: progressing, nudge, stuck, replan",
            "/review/reviews_left: this has to be a whole number from 0",
        ]
    );
    assert_eq!(
        sentences(&json!({"event": "step_started", "index": 0, "plan": [{"id": "s1", "goal": "g", "rung": "tool"}, {"id": 1}]})),
        [
            "/plan/1/id: this has to be a string",
            "/plan/1/goal: this required field is missing",
            "/plan/1/rung: this required field is missing",
        ]
    );
    assert_eq!(conforms_line("{\"event\":").len(), 1);
    assert_eq!(conforms_line("{\"event\":").first().unwrap().fault, Fault::NotJson { column: 9 });
}

#[test]
fn contradictions_are_found() {
    let finished = |outcome: &str, more: Value| {
        let mut record = json!({"event": "mission_finished", "outcome": outcome, "steps": 1, "max_steps": 1});
        record.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        conforms(&record).len()
    };
    let budget = json!({"budget": {"which": "steps", "limit": 1, "spent": 1}});
    assert_eq!(finished("budget_exhausted", budget.clone()), 0);
    assert_eq!(finished("budget_exhausted", json!({})), 1);
    assert_eq!(finished("answered", budget), 1);
    assert_eq!(finished("incomplete", json!({"reason": "cancelled"})), 0);
    assert_eq!(finished("answered", json!({"reason": "stuck"})), 0);
    assert_eq!(finished("answered", json!({"reason": "cancelled"})), 1);
    let result = |ok: bool, exit_code: i64| {
        conforms(&json!({"event": "tool_result", "index": 0, "tool": "a.b", "arguments": {}, "ok": ok, "exit_code": exit_code,
            "output": "", "error": "", "handle": "r1", "truncated": false}))
        .len()
    };
    assert_eq!(result(true, 0) + result(false, -1), 0);
    assert_eq!(result(true, 1), 1);
}

proptest! {
    #[test]
    fn any_line_is_judged_without_a_panic(line in any::<String>()) {
        let _ = conforms_line(&line);
    }

    #[test]
    fn a_missing_required_field_is_always_found(line in 0usize..7, field in 0usize..32) {
        let mut record: Value = serde_json::from_str(RUN.lines().nth(line).unwrap()).unwrap();
        let members = record.as_object_mut().unwrap();
        let required: Vec<&str> = vocabulary::event(members["event"].as_str().unwrap()).unwrap()
            .fields.iter().filter(|field| field.required).map(|field| field.name).collect();
        let name = required[field % required.len()];
        members.remove(name);
        prop_assert_eq!(conforms(&record), vec![Problem { pointer: format!("/{name}"), fault: Fault::Missing }]);
    }
}
