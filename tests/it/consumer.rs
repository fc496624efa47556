//! The stream as somebody else reads it: `tests/consumer/consumer.py` was written from the published rules alone, starts the
//! program by itself, and judges what it reads.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::support::model::{Model, Turn, answer, call, held, text};
use crate::support::needs;
use crate::support::run::Mission;
use crate::support::servers;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/consumer")
}

fn consumer(python: &Path, words: &[&str]) -> (Value, Output) {
    let output = Command::new(python).arg(folder().join("consumer.py")).args(words).output().unwrap();
    (report(&output), output)
}

fn report(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|problem| panic!("{problem}: {}", String::from_utf8_lossy(&output.stderr)))
}

fn rules(report: &Value) -> BTreeSet<String> {
    report["problems"].as_array().unwrap().iter().map(|problem| problem["rule"].as_str().unwrap().to_owned()).collect()
}

/// Has the consumer start and judge a run; it must find nothing wrong.
#[track_caller]
fn judge(python: &Path, mission: &Mission, options: &[&str]) -> Value {
    let (home, _fresh) = mission.place();
    let mut words = vec![folder().join("consumer.py").into_os_string()];
    words.extend(options.iter().map(Into::into));
    words.push("--".into());
    words.extend(mission.command_line());
    let output = mission.command(&home, python.as_os_str(), &words).output().unwrap();
    let report = report(&output);
    assert_eq!(report["problems"], json!([]), "{report:#}\n{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(output.status.code(), Some(0));
    report
}

fn recordings(kind: &str) -> Vec<(String, PathBuf)> {
    let mut all: Vec<(String, PathBuf)> = std::fs::read_dir(folder().join("recorded").join(kind))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.file_stem().unwrap().to_str().unwrap().to_owned(), path))
        .collect();
    all.sort();
    assert!(!all.is_empty());
    all
}

#[test]
fn accepts_streams_that_keep_the_rules() {
    let python = needs!(servers::python());
    for (name, path) in recordings("good") {
        let (report, output) = consumer(&python, &["--recorded", path.to_str().unwrap()]);
        assert_eq!((&report["problems"], output.status.code()), (&json!([]), Some(0)), "{name}");
    }
}

#[test]
fn refuses_a_stream_that_breaks_a_rule_and_names_that_rule() {
    let python = needs!(servers::python());
    for (name, path) in recordings("broken") {
        let rule = name.split("--").next().unwrap();
        let (report, output) = consumer(&python, &["--recorded", path.to_str().unwrap()]);
        assert_eq!((&report["ok"], output.status.code()), (&json!(false), Some(1)), "{name}");
        assert!(rules(&report).contains(rule), "{name}: {}", report["problems"]);
    }
}

#[test]
fn has_a_broken_stream_for_each_of_its_rules() {
    let source = std::fs::read_to_string(folder().join("consumer.py")).unwrap();
    let stated: BTreeSet<&str> = source.split(".wrong(\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    let recorded = recordings("broken");
    let mut broken: BTreeSet<&str> = recorded.iter().map(|(name, _)| name.split("--").next().unwrap()).collect();
    broken.extend(["deadline", "exit"]); // of a live command: the next test
    assert_eq!(stated, broken);
}

#[test]
fn refuses_a_command_that_ends_late_in_silence_or_with_another_status() {
    let python = needs!(servers::python());
    let good = folder().join("recorded/good/json.ndjson");
    let say = format!("cat {} >&3", good.display());
    let cases: [(&[&str], &str, &[&str]); 5] = [
        (&[], &say, &[]),
        (&[], "exit 0", &["silence"]),
        (&[], &format!("{say}; exit 3"), &["exit"]),
        (&["--deadline", "0.3"], "exec sleep 50", &["silence", "deadline", "exit"]),
        (&["--signal", "TERM"], &format!("trap '' TERM; {say}"), &["exit"]),
    ];
    for (options, script, expected) in cases {
        let (report, _) = consumer(&python, &[options, &["--", "sh", "-c", script]].concat());
        assert_eq!(rules(&report), expected.iter().map(|&rule| rule.to_owned()).collect(), "{script}");
    }
}

#[test]
fn reads_a_run_in_the_json_protocol() {
    let python = needs!(servers::python());
    let server = needs!(servers::misbehaving(&[]));
    let model = Model::says([
        call("mcp.add", json!({"a": 2, "b": 3})),
        answer("2 and 3 make 5.\nThat is all of it, and it took one tool call to find out."),
    ]);
    let report = judge(&python, &Mission::objective("add two and three").model(&model).mcp_stdio("mcp", &server), &[]);
    assert_eq!(report["outcome"], "answered");
    assert_eq!(report["protocol"], "json");
    assert_eq!(report["steps"], 2);
    assert_eq!(report["calls"][0]["output"], "5");
    assert_eq!(report["answer"], report["deltas"], "the fragments give the answer");
    assert_eq!(report["usage"]["calls"], 2);
}

#[test]
fn reads_a_run_in_the_native_protocol_with_two_calls_in_a_turn() {
    let python = needs!(servers::python());
    let server = needs!(servers::misbehaving(&[]));
    let two = Turn::Call(vec![("mcp.add".into(), json!({"a": 2, "b": 3})), ("mcp.fail".into(), json!({"why": "no lamps"}))]);
    let model = Model::says([two, answer("5, and no lamps.")]);
    let mission = Mission::objective("add two and three").model(&model).mcp_stdio("mcp", &server).protocol("native");
    let report = judge(&python, &mission, &[]);
    assert_eq!(report["outcome"], "answered");
    assert_eq!(report["protocol"], "native");
    assert_eq!(report["calls"][0]["ok"], true);
    assert_eq!(report["calls"][1]["exit_code"], 1);
    assert_eq!(report["calls"][1]["error"], "no lamps");
    assert_eq!(report["answer"], report["deltas"], "the fragments give the answer");
}

#[test]
fn reads_a_run_whose_replies_are_rejected() {
    let python = needs!(servers::python());
    let server = needs!(servers::misbehaving(&[]));
    for protocol in ["json", "native"] {
        let model = Model::says([
            text(""),
            call("mcp.weigh", json!({"of": "lamps"})),
            call("mcp.add", json!({"a": "two", "b": 3})),
            // To the run's reviewer: three steps came to nothing.
            text(r#"{"verdict": "nudge", "note": "Numbers, not words."}"#),
            call("mcp.add", json!({"a": 2, "b": 3})),
            answer("5"),
        ]);
        let mission = Mission::objective("add two and three").model(&model).mcp_stdio("mcp", &server).protocol(protocol);
        let report = judge(&python, &mission, &[]);
        assert_eq!(report["outcome"], "answered", "{protocol}");
        assert_eq!(report["steps"], 5, "{protocol}");
        let rejected = report["rejected"].as_array().unwrap();
        assert_eq!(rejected.len(), 3, "{protocol}: {rejected:#?}");
        assert_eq!(rejected[1]["tool"], "mcp.weigh", "{protocol}");
        assert!(rejected[2]["problem"].as_str().unwrap().contains("/a"), "{protocol}: {}", rejected[2]);
        assert_eq!(report["calls"].as_array().unwrap().len(), 1, "{protocol}: a rejected call is not made");
    }
}

#[test]
fn reads_a_run_that_ends_at_its_steps_budget() {
    let python = needs!(servers::python());
    let server = needs!(servers::misbehaving(&[]));
    let model = Model::says((0..9).map(|a| call("mcp.add", json!({"a": a, "b": 3}))));
    let report = judge(&python, &Mission::objective("add").model(&model).mcp_stdio("mcp", &server).steps(3), &[]);
    assert_eq!(report["outcome"], "budget_exhausted");
    assert_eq!(report["budget"], json!({"which": "steps", "limit": 3, "spent": 3}));
    assert_eq!(model.requests().len(), 3, "the spend is stopped before it happens");
}

#[test]
fn reads_a_run_whose_server_is_dead_from_the_start() {
    let python = needs!(servers::python());
    let server = needs!(servers::misbehaving(&["--refuse-to-start"]));
    let model = Model::says([answer("never asked")]);
    let report = judge(&python, &Mission::objective("add").model(&model).mcp_stdio("mcp", &server), &["--exit", "1"]);
    assert_eq!(report["outcome"], "incomplete");
    assert_eq!(report["dropped"]["notice"], 1);
    assert_eq!(model.requests().len(), 0);
}

#[test]
fn reads_a_run_whose_server_dies_in_the_middle_of_a_call() {
    let python = needs!(servers::python());
    let server = needs!(servers::misbehaving(&[]));
    let model = Model::says([call("mcp.die", json!({})), answer("It died.")]);
    let report = judge(&python, &Mission::objective("die").model(&model).mcp_stdio("mcp", &server), &[]);
    assert_eq!(report["outcome"], "answered");
    assert_eq!(report["calls"][0]["exit_code"], -1);
}

#[test]
fn reads_a_run_that_is_cancelled_while_the_model_is_silent() {
    let python = needs!(servers::python());
    for (signal, status) in [("TERM", 143), ("INT", 130)] {
        let model = Model::says([Turn::Stall]);
        let report = judge(&python, &Mission::objective("wait").model(&model), &["--signal", signal]);
        assert_eq!((&report["outcome"], &report["reason"]), (&json!("incomplete"), &json!("cancelled")));
        assert_eq!(report["exit_code"], status);
    }
}

#[test]
fn reads_a_run_that_is_cancelled_while_a_tool_runs() {
    let python = needs!(servers::python());
    let server = needs!(servers::misbehaving(&[]));
    let model = Model::says([call("mcp.hang", json!({})), held(answer("never asked"))]);
    let mission = Mission::objective("wait").model(&model).mcp_stdio("mcp", &server);
    let report = judge(&python, &mission, &["--signal", "TERM", "--on", "tool_call"]);
    assert_eq!((&report["outcome"], &report["reason"]), (&json!("incomplete"), &json!("cancelled")));
    assert_eq!(report["calls"][0]["exit_code"], -1);
    assert_eq!(model.requests().len(), 1);
}
