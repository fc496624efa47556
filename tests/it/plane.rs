//! The tool plane against servers that play a script: each is a real process under the real guardian.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::arithmetic_side_effects)]

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use mission::engine::request::ToolDispatch;
use mission::sys::spawn::GuardianProgram;
use mission::tools::mcp::{McpPlane, PlaneOptions, Reach, ServerRequest, connect};
use mission::tools::{Discovery, PlaneEvent, ToolPlane};
use mission_contract::log::{CallEnd, CallResult, Era, Observed, ServerCondition};
use serde_json::{Value, json};
use tokio::sync::mpsc::Receiver;
use tokio_util::sync::CancellationToken;

/// Longer than anything here takes; a hang is a failure.
const LONG: Duration = Duration::from_secs(60);

/// A server that plays a script.
struct Player {
    folder: tempfile::TempDir,
    timeout: Duration,
}

impl Player {
    /// The steps that follow a handshake and a list of the tools `echo` and `other`.
    fn after_handshake(steps: Value) -> Self {
        let list = json!([
            {"expect": "tools/list"},
            {"send": {"jsonrpc": "2.0", "id": "$ID", "result": {"tools": [tool("other"), tool("echo")]}}},
        ]);
        Self::after_initialize(join(list, steps))
    }

    /// The steps that follow a handshake.
    fn after_initialize(steps: Value) -> Self {
        let handshake = json!([
            {"expect": "initialize"},
            {"send": {"jsonrpc": "2.0", "id": "$ID", "result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "player", "version": "1"}}}},
            {"expect": "notifications/initialized"},
        ]);
        Self::after_probe(join(handshake, steps))
    }

    /// The steps that follow a probe that was not understood.
    fn after_probe(steps: Value) -> Self {
        let probe = json!([
            {"expect": "server/discover"},
            {"send": {"jsonrpc": "2.0", "id": "$ID", "error": {"code": -32601, "message": "no"}}},
        ]);
        Self::new(join(probe, steps))
    }

    fn new(steps: Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("server.json"), json!({ "steps": steps }).to_string()).unwrap();
        Self { folder, timeout: LONG }
    }

    fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    fn request(&self, name: &str) -> ServerRequest {
        let player = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/players/fake_mcp_stdio.py");
        let path = |file: &str| self.folder.path().join(file).to_str().unwrap().to_owned();
        let argv = ["python3".to_owned(), player.to_owned(), path("server.json"), path("record")].to_vec();
        request(name, argv, self.timeout)
    }

    /// What was written to it, over all its lives.
    fn record(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.folder.path().join("record")).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).expect("what we write is JSON")).collect()
    }

    fn recorded(&self, method: &str) -> Vec<Value> {
        self.record().into_iter().filter(|line| line.get("method").and_then(Value::as_str) == Some(method)).collect()
    }
}

fn request(name: &str, argv: Vec<String>, timeout: Duration) -> ServerRequest {
    ServerRequest {
        name: name.to_owned(),
        reach: Reach::Stdio { argv, passes: BTreeMap::new() },
        optional: false,
        timeout,
        call_limit: LONG,
    }
}

fn tool(name: &str) -> Value {
    json!({"name": name, "description": format!("Does {name}."), "inputSchema": {"type": "object"}})
}

/// The steps that await a call and answer it with this text.
fn answered(text: &str) -> Value {
    json!([
        {"expect": "tools/call"},
        {"send": {"jsonrpc": "2.0", "id": "$ID", "result": {"content": [{"type": "text", "text": text}]}}},
    ])
}

fn join(one: Value, other: Value) -> Value {
    match (one, other) {
        (Value::Array(mut one), Value::Array(other)) => {
            one.extend(other);
            Value::Array(one)
        }
        _ => panic!("steps are a list"),
    }
}

struct Plane {
    plane: McpPlane,
    discovery: Discovery,
    events: Receiver<PlaneEvent>,
    calls: u64,
}

async fn plane(requests: Vec<ServerRequest>) -> Plane {
    let options = PlaneOptions {
        client_name: "tester".to_owned(),
        guardian_program: GuardianProgram(PathBuf::from(env!("CARGO_BIN_EXE_mission"))),
        ..PlaneOptions::default()
    };
    let (plane, discovery, events) = tokio::time::timeout(LONG, connect(requests, options)).await.expect("it connects");
    Plane { plane, discovery, events, calls: 0 }
}

async fn of(player: &Player) -> Plane {
    let plane = plane(vec![player.request("srv")]).await;
    let server = plane.discovery.servers.first().unwrap();
    assert_eq!(server.state, ServerCondition::Ready, "{server:?}");
    plane
}

/// Why the only server did not come up.
async fn failure(player: &Player) -> String {
    let plane = plane(vec![player.request("srv")]).await;
    let server = plane.discovery.servers.first().unwrap();
    assert_eq!((server.state, plane.discovery.tools.len()), (ServerCondition::Failed, 0));
    plane.close().await;
    server.detail.clone().unwrap()
}

impl Plane {
    fn dispatch(&mut self, server: &str, name: &str) -> ToolDispatch {
        self.calls += 1;
        ToolDispatch {
            ordinal: self.calls,
            server: server.to_owned(),
            name: name.to_owned(),
            arguments: json!({"n": self.calls}).as_object().unwrap().clone(),
            key: format!("key-{}", self.calls),
        }
    }

    async fn call(&mut self, name: &str) -> CallResult {
        self.call_with(name, CancellationToken::new()).await
    }

    async fn call_with(&mut self, name: &str, cancel: CancellationToken) -> CallResult {
        let dispatch = self.dispatch("srv", name);
        tokio::time::timeout(LONG, self.plane.call(dispatch, cancel)).await.expect("the call ends")
    }

    async fn close(&self) {
        tokio::time::timeout(LONG, self.plane.close()).await.expect("it closes");
    }

    /// Waits for a report with this code (or `stale`).
    async fn event(&mut self, code: &str) -> Option<Observed> {
        loop {
            match tokio::time::timeout(LONG, self.events.recv()).await.expect("it is told").expect("the plane is there") {
                PlaneEvent::Observed(observed) if observed.what == code => return Some(observed),
                PlaneEvent::Stale { .. } if code == "stale" => return None,
                _ => {}
            }
        }
    }

    fn tools(&self) -> Vec<String> {
        self.discovery.tools.iter().map(|definition| definition.full_name()).collect()
    }
}

#[tokio::test]
async fn a_server_is_probed_shaken_hands_with_listed_and_called() {
    let player = Player::after_handshake(answered("hello"));
    let mut plane = of(&player).await;
    let server = plane.discovery.servers.first().unwrap();
    assert_eq!((server.era, server.version.as_deref()), (Some(Era::Handshake), Some("2025-06-18")));
    assert_eq!(server.implementation.as_deref(), Some("player 1"));
    assert_eq!(plane.tools(), ["srv.echo", "srv.other"]);
    let result = plane.call("echo").await;
    assert_eq!((result.end, result.text.as_str()), (CallEnd::Ok, "hello"));
    plane.close().await;
    let record = player.record();
    let methods: Vec<&str> = record.iter().filter_map(|line| line.get("method")?.as_str()).collect();
    assert_eq!(methods, ["server/discover", "initialize", "notifications/initialized", "tools/list", "tools/call"]);
    let initialize = player.recorded("initialize").remove(0);
    assert_eq!(initialize.pointer("/params/clientInfo/name"), Some(&json!("tester")));
    assert_eq!(initialize.pointer("/params/capabilities"), Some(&json!({})));
    let call = player.recorded("tools/call").remove(0);
    assert_eq!(call.pointer("/params/name"), Some(&json!("echo")));
    assert_eq!(call.pointer("/params/arguments"), Some(&json!({"n": 1})));
    assert_eq!(call.pointer("/params/_meta/mission~1idempotencyKey"), Some(&json!("key-1")));
    assert!(call.pointer("/params/_meta/progressToken").is_some());
}

#[tokio::test]
async fn noise_marks_batches_and_floods_cost_nothing() {
    let steps = json!([
        {"stderr_fill": 1_048_576},
        {"send_b64": "77u/"},
        {"send_raw": "Server ready\n\n"},
        {"eol": "\r\n"},
        {"expect": "initialize"},
        {"send_raw": "[debug] 1 \u{1F680}\n"},
        {"send": {"jsonrpc": "2.0", "id": "$IDS", "result": {"protocolVersion": "2025-03-26", "capabilities": {}}}},
        {"expect": "notifications/initialized"},
        {"send": {"jsonrpc": "2.0", "id": "ping-1", "method": "ping"}},
        {"expect": "tools/list"},
        {"send": [
            {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}},
            {"jsonrpc": "2.0", "id": "$ID", "result": {"tools": [tool("echo")]}},
        ]},
    ]);
    let player = Player::after_probe(join(steps, answered("fine")));
    let mut plane = of(&player).await;
    assert_eq!(plane.call("echo").await.text.as_str(), "fine");
    plane.close().await;
    let told: Vec<&Observed> = plane.discovery.observed.iter().collect();
    assert!(
        matches!(told.as_slice(), [noise] if noise.what == "server_noise" && noise.detail.ends_with("Server ready")),
        "{told:?}"
    );
    let answers: Vec<Value> = player.record().into_iter().filter(|line| line.get("method").is_none()).collect();
    assert_eq!(answers, [json!({"jsonrpc": "2.0", "id": "ping-1", "result": {}})]);
}

#[tokio::test]
async fn a_server_that_does_not_come_up_says_why() {
    let exits = Player::new(json!([{"stderr": "boom: missing API key\n"}, {"exit": 3}]));
    insta::assert_snapshot!(failure(&exits).await, @"The server `srv` exited with status 3; it last said: boom: missing API key.");
    let absent = plane(vec![request("srv", vec!["/nowhere/server".to_owned()], LONG)]).await;
    insta::assert_snapshot!(absent.discovery.servers.first().unwrap().detail.as_deref().unwrap(), @"The server `srv` could not be started from `/nowhere/server`: No such file or directory.");
    let moment = Duration::from_millis(1_500);
    let silent = Player::after_probe(json!([{"stderr": "loading\n"}, {"hang": true}])).with_timeout(moment);
    insta::assert_snapshot!(failure(&silent).await, @"The server `srv` did not answer the handshake within 1.5 s; it last said: loading.");
    let listless = Player::after_initialize(json!([{"hang": true}])).with_timeout(moment);
    assert!(failure(&listless).await.starts_with("The server `srv` did not list its tools within "));
    let endless = Player::after_initialize(json!([
        {"expect": "tools/list"},
        {"send": {"jsonrpc": "2.0", "id": "$ID", "result": {"tools": [], "nextCursor": ""}}},
        {"expect": "tools/list"},
        {"send": {"jsonrpc": "2.0", "id": "$ID", "result": {"tools": [], "nextCursor": ""}}},
    ]));
    insta::assert_snapshot!(failure(&endless).await, @r#"The server `srv` names the page "" of its list twice: the list would have no end."#);
    let mut unset = exits.request("srv");
    let Reach::Stdio { passes, .. } = &mut unset.reach else { panic!("a child") };
    passes.insert("KEY".to_owned(), "NOBODY_SETS_THIS".to_owned());
    let unset = plane(vec![unset]).await;
    insta::assert_snapshot!(unset.discovery.servers.first().unwrap().detail.as_deref().unwrap(), @"The server `srv` was not started: the variable `NOBODY_SETS_THIS` is to be passed to a server but is not set; set it, or leave it out.");
}

#[tokio::test]
async fn servers_start_side_by_side_and_stand_in_their_order() {
    // The first does not begin before the second has.
    let (one, other) = (Player::after_handshake(json!([])), Player::after_handshake(json!([])));
    let flag = one.folder.path().join("flag");
    let behind = |script: String, mut request: ServerRequest| {
        let Reach::Stdio { argv, .. } = &mut request.reach else { panic!("a child") };
        argv.splice(0..0, ["sh".to_owned(), "-c".to_owned(), format!("{script}; exec \"$@\""), "sh".to_owned()]);
        request
    };
    let waiting = behind(format!("until [ -e '{}' ]; do sleep 0.01; done", flag.display()), one.request("one"));
    let first = behind(format!("touch '{}'", flag.display()), other.request("a"));
    let plane = plane(vec![waiting, first, request("gone", vec!["/nowhere/x".to_owned()], LONG)]).await;
    let servers: Vec<(&str, ServerCondition)> =
        plane.discovery.servers.iter().map(|server| (server.name.as_str(), server.state)).collect();
    assert_eq!(servers, [("one", ServerCondition::Ready), ("a", ServerCondition::Ready), ("gone", ServerCondition::Failed)]);
    assert_eq!(plane.tools(), ["a.echo", "a.other", "one.echo", "one.other"]);
    plane.close().await;
}

#[tokio::test]
async fn a_death_in_a_call_is_told_and_the_next_call_starts_the_server_again() {
    let player = Player::after_handshake(json!([{"expect": "tools/call"}, {"stderr": "segfault\n"}, {"exit": 1}]));
    let mut plane = of(&player).await;
    let died = plane.call("echo").await;
    assert_eq!((died.end, died.exit_code), (CallEnd::Died, -1));
    insta::assert_snapshot!(died.error, @"The server `srv` exited with status 1; it last said: segfault. It had not answered the call of `echo`: whether the call took effect is unknown, and it is not repeated.");
    assert_eq!(plane.event("server_died").await.unwrap().server.as_deref(), Some("srv"));
    assert_eq!(player.recorded("tools/call").len(), 1, "not repeated");
    assert_eq!(plane.call("echo").await.end, CallEnd::Died);
    plane.event("stale").await;
    plane.event("server_restarted").await;
    assert_eq!(plane.call("other").await.end, CallEnd::Died);
    assert_eq!(plane.call("echo").await.end, CallEnd::Died);
    let last = plane.call("echo").await;
    assert_eq!(last.end, CallEnd::Protocol);
    insta::assert_snapshot!(last.error, @"The call of `echo` was not made, because the server `srv` has died 3 times since a call of it last came to its end, and is not started again.");
    let keys: Vec<Value> =
        player.recorded("tools/call").iter().filter_map(|call| call.pointer("/params/arguments/n").cloned()).collect();
    assert_eq!(keys, [1, 2, 3, 4].map(Value::from), "each call was made once");
    plane.close().await;
}

#[tokio::test]
async fn a_tool_that_a_restarted_server_no_longer_has_is_not_called() {
    let player = Player::after_handshake(json!([{"expect": "tools/call"}, {"exit": 1}]));
    let mut plane = of(&player).await;
    assert_eq!(plane.call("echo").await.end, CallEnd::Died);
    let steps = std::fs::read_to_string(player.folder.path().join("server.json")).unwrap();
    std::fs::write(player.folder.path().join("server.json"), steps.replace("\"echo\"", "\"renamed\"")).unwrap();
    let refused = plane.call("echo").await;
    assert_eq!(refused.end, CallEnd::Protocol);
    assert!(refused.error.contains("no longer has this tool"), "{}", refused.error);
    assert_eq!(player.recorded("tools/call").len(), 1);
    plane.event("stale").await;
    assert_eq!(plane.call("renamed").await.end, CallEnd::Died, "it is called under its new name");
    plane.close().await;
}

#[tokio::test]
async fn a_server_that_closes_its_output_and_runs_on_is_dead() {
    let player = Player::after_handshake(
        json!([{"expect": "tools/call"}, {"close_stdout": true}, {"ignore_sigterm": true}, {"hang": true}]),
    );
    let mut plane = of(&player).await;
    let died = plane.call("echo").await;
    assert_eq!(died.end, CallEnd::Died);
    assert!(died.error.starts_with("The server `srv` closed its pipes and ran on."), "{}", died.error);
    plane.close().await;
}

#[tokio::test]
async fn progress_keeps_a_call_alive_and_silence_ends_it() {
    let progress = |number: u64| json!({"send": {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": "$TOKEN", "progress": number}}});
    let mut steps = vec![json!({"expect": "tools/call"})];
    for number in 0..8 {
        steps.extend([json!({"sleep_ms": 400}), progress(number)]);
    }
    steps.push(json!({"send": {"jsonrpc": "2.0", "id": "$ID", "result": {"content": [{"type": "text", "text": "slow"}]}}}));
    steps.extend([json!({"expect": "tools/call"}), json!({"expect": "notifications/cancelled"})]);
    steps.push(json!({"send": {"jsonrpc": "2.0", "id": "$ID", "result": {"content": []}}}));
    let player = Player::after_handshake(Value::Array(steps)).with_timeout(Duration::from_millis(2_500));
    let mut plane = of(&player).await;
    let slow = plane.call("echo").await;
    assert_eq!((slow.end, slow.text.as_str()), (CallEnd::Ok, "slow"), "{}", slow.error);
    let silent = plane.call("echo").await;
    assert_eq!((silent.end, silent.exit_code), (CallEnd::Timeout, -1));
    insta::assert_snapshot!(silent.error, @"The server `srv` did not answer the call of `echo` and gave no sign of life for 2.5 s. It was told to give it up: whether the call took effect is unknown, and it is not repeated.");
    assert_eq!(plane.event("late_result").await.unwrap().of, Some(2));
    let call = player.recorded("tools/call").remove(1);
    let cancelled = player.recorded("notifications/cancelled").remove(0);
    assert_eq!(cancelled.pointer("/params/requestId"), call.get("id"));
    plane.close().await;
}

#[tokio::test]
async fn a_call_that_is_given_up_is_cancelled_at_the_server_and_the_session_lives() {
    let steps = json!([{"expect": "tools/call"}, {"send": {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}}, {"expect": "notifications/cancelled"}]);
    let player = Player::after_handshake(join(steps, answered("next")));
    let mut plane = of(&player).await;
    let cancel = CancellationToken::new();
    let dispatch = plane.dispatch("srv", "echo");
    let call = tokio::spawn(plane.plane.call(dispatch, cancel.clone()));
    // The server has the call.
    plane.event("stale").await;
    cancel.cancel();
    let given_up = tokio::time::timeout(LONG, call).await.unwrap().unwrap();
    assert_eq!((given_up.end, given_up.exit_code), (CallEnd::Cancelled, -1));
    assert_eq!(plane.call("echo").await.text.as_str(), "next");
    assert_eq!(player.recorded("notifications/cancelled").len(), 1);
    let never = plane.call_with("echo", cancel).await;
    assert_eq!(never.end, CallEnd::Cancelled);
    assert_eq!(player.recorded("tools/call").len(), 2);
    plane.close().await;
}

#[tokio::test]
async fn a_changed_list_is_told_and_listed_again() {
    let steps = json!([
        {"expect": "tools/call"},
        {"send": {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}},
        {"send": {"jsonrpc": "2.0", "id": "$ID", "result": {"content": []}}},
        {"expect": "tools/list"},
        {"send": {"jsonrpc": "2.0", "id": "$ID", "result": {"tools": [tool("new"), {"name": "bad name", "inputSchema": {}}]}}},
        {"expect": "tools/list"},
        {"send": {"jsonrpc": "2.0", "id": "$ID", "error": {"code": -32603, "message": "busy"}}},
        {"expect": "tools/list"},
        {"send": {"jsonrpc": "2.0", "id": "$ID", "result": {"tools": [tool("new"), {"name": "bad name", "inputSchema": {}}]}}},
    ]);
    let player = Player::after_handshake(steps);
    let mut plane = of(&player).await;
    assert_eq!(plane.call("echo").await.end, CallEnd::Ok);
    plane.event("stale").await;
    let names = |discovery: &Discovery| -> Vec<String> { discovery.tools.iter().map(|tool| tool.name.clone()).collect() };
    let codes = |discovery: &Discovery| -> Vec<String> { discovery.observed.iter().map(|told| told.what.clone()).collect() };
    let listed = plane.plane.list().await;
    assert_eq!((names(&listed), codes(&listed)), (vec!["new".to_owned()], vec!["tool_refused".to_owned()]));
    let failed = plane.plane.list().await;
    assert_eq!((names(&failed), codes(&failed)), (vec!["new".to_owned()], vec!["list_failed".to_owned()]));
    let again = plane.plane.list().await;
    assert_eq!((names(&again), codes(&again)), (vec!["new".to_owned()], vec![]), "told once");
    plane.close().await;
}

#[tokio::test]
async fn a_line_over_the_cap_fails_its_call_and_not_the_session() {
    let steps = json!([
        {"expect": "tools/call"},
        {"send_fill": {"prefix": "{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"", "char": "x", "count": 34_000_000, "suffix": "\"}]}}\n"}},
        {"expect": "tools/call"},
        {"send_fill": {"prefix": "{\"jsonrpc\":\"2.0\",\"id\":$ID,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"", "char": "y", "count": 3_000_000, "suffix": "\"}]}}\n"}},
    ]);
    let player = Player::after_handshake(steps);
    let mut plane = of(&player).await;
    let over = plane.call("echo").await;
    assert_eq!(over.end, CallEnd::Protocol);
    assert!(over.error.contains("and 33554432 are allowed"), "{}", over.error);
    let large = plane.call("echo").await;
    assert_eq!((large.end, large.text.as_str().len()), (CallEnd::Ok, 3_000_000));
    plane.close().await;
}

#[tokio::test]
async fn a_call_of_a_server_that_is_not_there_or_never_came_up_is_not_made() {
    let mut plane = plane(vec![request("srv", vec!["/nowhere/server".to_owned()], LONG)]).await;
    insta::assert_snapshot!(plane.call("echo").await.error, @"The call of `echo` was not made, because the server `srv` could not be started from `/nowhere/server`: No such file or directory.");
    let dispatch = plane.dispatch("other", "echo");
    insta::assert_snapshot!(plane.plane.call(dispatch, CancellationToken::new()).await.error, @"The call of `echo` was not made, because there is no server `other`.");
    plane.close().await;
}
