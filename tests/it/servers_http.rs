//! Real tool servers over HTTP, as their makers publish them: npm `server-everything`, the Python SDK in both eras, FastMCP.

use serde_json::{Value, json};

use crate::support::each::each;
use crate::support::http::{everything, lamps};
use crate::support::model::{Model, Turn, answer, call};
use crate::support::needs;
use crate::support::run::{Finished, Mission};
use crate::support::wild::codes;

/// A run with these calls of one server.
fn run(url: &str, protocol: &str, calls: &[(&str, Value)], arguments: &[&str]) -> Finished {
    let turns: Vec<Turn> = calls.iter().map(|(tool, arguments)| call(&format!("srv.{tool}"), arguments.clone())).collect();
    let model = Model::says(turns.into_iter().chain([answer("done")]));
    let finished = Mission::objective("use them")
        .model(&model)
        .args(["--mcp-url", &format!("srv={url}")])
        .protocol(protocol)
        .args(arguments)
        .run();
    finished.exits(0).ends("answered");
    assert_eq!(finished.named("tool_result").len(), calls.len(), "{finished}");
    assert_eq!(finished.log().problems(), Vec::<String>::new());
    finished
}

/// What a server of the run is said to be.
fn server(finished: &Finished) -> Value {
    finished.only("mission_started")["servers"][0].clone()
}

#[test]
fn everything_over_http() {
    let server_process = needs!(everything());
    let url = server_process.url();
    for protocol in ["json", "native"] {
        let calls = [
            ("echo", json!({"message": "twelve lamps"})),
            ("get-sum", json!({"a": 2, "b": 3})),
            ("get-structured-content", json!({"location": "New York"})),
            ("get-tiny-image", json!({})),
            ("trigger-long-running-operation", json!({"duration": 3, "steps": 6})),
            ("get-resource-links", json!({"count": 2})),
        ];
        // A call of 3 s, and no sign of life for longer than 2 s is the end of one: its progress is heard.
        let finished = run(&url, protocol, &calls, &["--mcp-timeout", "2"]);
        let started = server(&finished);
        assert_eq!(
            (&started["transport"], &started["era"], &started["version"]),
            (&json!("http"), &json!("handshake"), &json!("2025-11-25"))
        );
        let results = finished.named("tool_result");
        assert!(results.iter().all(|result| result["ok"] == true), "{finished}");
        for (result, word) in
            results.iter().zip(["Echo: twelve lamps", "5", "temperature", "[image image/png", "completed", "resource_link"])
        {
            assert!(result["output"].as_str().unwrap().contains(word), "{word}: {result}");
        }
        // 5 announcements that its list changed, right at the start: nothing changed, and nobody is told. One tool is for tasks only.
        assert_eq!(codes(&finished), ["tool_refused"], "{finished}");
        assert!(finished.named("step_started").iter().all(|step| step.get("catalogue").is_none()), "{finished}");
    }
}

/// What every server of `lamps.py` is asked for, whatever it is made with and whichever era it speaks.
fn all_of_its_work(options: &[&str], era: &str, version: &str) {
    let serves = lamps(options).unwrap();
    let calls = [
        ("add", json!({"a": 2, "b": 40})),
        ("fail", json!({"why": "the lamp is out"})),
        ("big", json!({"kib": 1024})),
        // 4 s with progress; 2 s without a sign of life would be its end.
        ("slow", json!({"steps": 20})),
    ];
    // A reply that is one JSON document has no room for progress.
    let progress_is_heard = !options.contains(&"--json");
    for protocol in ["json", "native"] {
        let finished = run(&serves.url(), protocol, &calls, &["--mcp-timeout", "2"]);
        let started = server(&finished);
        assert_eq!(
            (&started["era"], &started["version"], &started["tools"]),
            (&json!(era), &json!(version), &json!(4)),
            "{finished}"
        );
        let results = finished.named("tool_result");
        let output = |number: usize| results[number]["output"].as_str().unwrap();
        assert!(output(0).contains("42"), "{finished}");
        assert_eq!(
            (&results[1]["ok"], &results[1]["exit_code"]),
            (&json!(false), &json!(1)),
            "it ran and failed: {}",
            results[1]
        );
        assert!(results[1]["error"].as_str().unwrap().contains("the lamp is out"), "{}", results[1]);
        assert!(output(2).len() > 1_000_000 && output(2).starts_with("lamp lamp"));
        if progress_is_heard {
            assert_eq!(output(3), "done after 20", "{}", results[3]);
        } else {
            let error = results[3]["error"].as_str().unwrap();
            assert!(error.contains("no sign of life for 2 s") && error.contains("not repeated"), "{}", results[3]);
        }
        let kept = finished.log().of_kind("result");
        assert_eq!(kept[0]["structured"]["sum"], 42, "{}", kept[0]);
    }
}

#[test]
fn the_python_sdk_and_fastmcp_in_both_eras() {
    needs!(lamps(&["sdk"]));
    type Case = (&'static [&'static str], &'static str, &'static str);
    let table: Vec<(&str, Case)> = vec![
        ("sdk, as it is", (&["sdk"], "stateless", "2026-07-28")),
        ("sdk, JSON", (&["sdk", "--json"], "stateless", "2026-07-28")),
        ("sdk, handshake", (&["sdk", "--only", "handshake"], "handshake", "2025-11-25")),
        ("sdk, stateless only", (&["sdk", "--only", "stateless"], "stateless", "2026-07-28")),
        ("fastmcp, as it is", (&["fastmcp"], "stateless", "2026-07-28")),
        ("fastmcp, handshake", (&["fastmcp", "--only", "handshake"], "handshake", "2025-11-25")),
    ];
    each(&table, |(options, era, version)| all_of_its_work(options, era, version));
}

#[test]
fn a_token_opens_a_server_and_is_told_to_nobody() {
    let token = "t0k3n-0f-the-house-of-lamps";
    let serves = needs!(lamps(&["sdk", "--token", token]));
    let calls = [("add", json!({"a": 1, "b": 1}))];
    let finished = run(&serves.url(), "json", &calls, &["--mcp-token", token]);
    assert!(finished.only("tool_result")["output"].as_str().unwrap().contains('2'));
    let model = Model::says([answer("never asked")]);
    let url = format!("srv={}", serves.url());
    for wrong in ["another-token-entirely", ""] {
        let refused = Mission::objective("x").model(&model).args(["--mcp-url", &url, "--mcp-token", wrong]).run();
        refused.exits(1).ends("incomplete");
        assert!(refused.only("notice")["detail"].as_str().unwrap().contains("401"), "{refused}");
        assert!(wrong.is_empty() || !format!("{refused}").contains(wrong), "{refused}");
    }
    let log = std::fs::read_to_string(finished.run_dir().join("log.ndjson")).unwrap();
    assert!(!log.contains(token) && !format!("{finished}").contains(token));
}

#[test]
fn servers_over_pipes_and_http_are_one_catalogue() {
    let files = tempfile::tempdir().unwrap();
    let stdio = needs!(crate::support::servers::filesystem(&files.path().canonicalize().unwrap()));
    let (remote, lamps) = (needs!(everything()), needs!(lamps(&["sdk"])));
    let model = Model::says([
        call("web.echo", json!({"message": "one"})),
        call("lamps.add", json!({"a": 1, "b": 2})),
        call("files.list_allowed_directories", json!({})),
        answer("done"),
    ]);
    let finished = Mission::objective("use three of three")
        .model(&model)
        .mcp_stdio("files", &stdio)
        .args(["--mcp-url", &format!("web={}", remote.url()), "--mcp-url", &format!("lamps={}", lamps.url())])
        .run();
    finished.exits(0).ends("answered");
    let started = finished.only("mission_started");
    let seen: Vec<(&Value, &Value, &Value)> =
        started["servers"].as_array().unwrap().iter().map(|each| (&each["name"], &each["transport"], &each["era"])).collect();
    assert_eq!(
        seen,
        [
            (&json!("files"), &json!("stdio"), &json!("handshake")),
            (&json!("web"), &json!("http"), &json!("handshake")),
            (&json!("lamps"), &json!("http"), &json!("stateless")),
        ]
    );
    assert!(finished.named("tool_result").iter().all(|result| result["ok"] == true), "{finished}");
}
