//! The stateless era (2026-07-28) over pipes and over HTTP: metadata on every request, no power to the server, no answer written to it,
//! streams that end when they break.

use std::collections::BTreeSet;

use mission::tools::ToolPlane;
use mission_contract::log::{CallEnd, CallResult, Era, ServerCondition};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::support::planes::{Plane, Player, http, tool};
use crate::support::remote::{Heard, Remote, Said, body, error, event, events, result, status};

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const INFO: &str = "io.modelcontextprotocol/clientInfo";

fn text(text: &str) -> Value {
    json!({"resultType": "complete", "content": [{"type": "text", "text": text}]})
}

fn discovered(capabilities: Value) -> Value {
    json!({"resultType": "complete", "supportedVersions": ["2025-11-25", "2026-07-28"], "capabilities": capabilities, "ttlMs": -1, "cacheScope": "private",
           "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "player", "version": "2"}}})
}

/// A server over stdio that was discovered and listed, and then does this.
fn player(capabilities: Value, steps: Value) -> Player {
    let mut all = json!([
        {"expect": "server/discover"},
        {"send": {"jsonrpc": "2.0", "id": "$ID", "result": discovered(capabilities)}},
        {"expect": "tools/list"},
        {"send": {"jsonrpc": "2.0", "id": "$ID", "result": {"tools": [tool("echo")], "ttlMs": 0}}},
    ]);
    let Value::Array(more) = steps else { panic!("steps are a list") };
    all.as_array_mut().unwrap().extend(more);
    Player::new(all)
}

/// A server over HTTP with the tool `echo`, whose calls are answered by this.
fn calling(says: impl Fn(&Heard, usize) -> Said + Send + Sync + 'static) -> Remote {
    Remote::stateless(json!([tool("echo")]), move |heard, before| match heard.method() {
        "tools/call" => says(heard, before),
        _ => status(405),
    })
}

/// Checks what every request of this era carries, over either wire.
fn check_metadata(requests: &[Value]) {
    let mut ids = BTreeSet::new();
    for request in requests {
        let meta = &request["params"]["_meta"];
        assert_eq!(meta[VERSION], "2026-07-28", "{request}");
        assert_eq!(meta[CAPABILITIES], json!({}), "nothing is declared: {request}");
        assert_eq!(meta[INFO]["name"], "tester", "{request}");
        assert!(meta[INFO]["version"].is_string());
        assert!(ids.insert(request["id"].to_string()), "an id twice: {request}");
        assert_eq!(request["jsonrpc"], "2.0");
    }
}

#[tokio::test]
async fn over_pipes_every_request_says_what_it_is() {
    let player = player(
        json!({"tools": {}}),
        json!([
            {"expect": "tools/call"},
            {"send": {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": "$TOKEN", "progress": 1}}},
            {"send": {"jsonrpc": "2.0", "id": 77, "method": "elicitation/create", "params": {"message": "Key?", "requestedSchema": {}}}},
            {"send": {"jsonrpc": "2.0", "id": 78, "method": "ping"}},
            {"send_raw": "{\"jsonrpc\":\"2.0\",\"odd\":true}\n"},
            {"send": {"jsonrpc": "2.0", "id": "$ID", "result": text("hello")}},
        ]),
    );
    let mut plane = Plane::of(vec![player.request()]).await;
    let server = plane.server();
    assert_eq!(
        (server.state, server.era, server.version.as_deref()),
        (ServerCondition::Ready, Some(Era::Stateless), Some("2026-07-28"))
    );
    assert_eq!(server.implementation.as_deref(), Some("player 2"));
    assert_eq!(plane.call("echo").await.text.as_str(), "hello");
    let refused = plane.event("server_request_refused").await.unwrap();
    assert!(refused.detail.contains("elicitation/create"), "{refused:?}");
    plane.close().await;
    let record = player.record();
    let methods: Vec<&str> = record.iter().map(|line| line["method"].as_str().expect("no answer is ever written")).collect();
    assert_eq!(methods, ["server/discover", "tools/list", "tools/call"]);
    check_metadata(&record);
    assert_eq!(record[2].pointer("/params/_meta/mission~1idempotencyKey"), Some(&json!("key-1")));
}

#[tokio::test]
async fn over_http_the_head_says_the_same_as_the_body() {
    let remote = calling(|heard, before| match before {
        0 => body(result(heard, text("one"))),
        _ => events(
            event(&json!({"jsonrpc": "2.0", "id": 5, "method": "sampling/createMessage", "params": {}}))
                + &event(&result(heard, text("two"))),
        ),
    });
    let mut plane = Plane::of(vec![http("srv", &remote.url(), Some("tok-0001"))]).await;
    assert_eq!((plane.server().era, plane.server().version.as_deref()), (Some(Era::Stateless), Some("2026-07-28")));
    assert_eq!(plane.call("echo").await.text.as_str(), "one");
    assert_eq!(plane.call("echo").await.text.as_str(), "two");
    plane.event("server_request_refused").await.unwrap();
    plane.close().await;
    assert_eq!(
        remote.methods(),
        ["server/discover", "tools/list", "tools/call", "tools/call"],
        "only requests, and nothing at the end"
    );
    let requests: Vec<Value> = remote.heard().into_iter().map(|heard| heard.body).collect();
    check_metadata(&requests);
    for heard in remote.heard() {
        assert_eq!(heard.header("mcp-protocol-version"), Some("2026-07-28"));
        assert_eq!(heard.header("mcp-method"), Some(heard.method()));
        assert_eq!(heard.header("mcp-name"), heard.body.pointer("/params/name").and_then(Value::as_str));
        assert_eq!(heard.header("mcp-session-id"), None);
        assert_eq!(heard.header("authorization"), Some("Bearer tok-0001"));
    }
}

#[tokio::test]
async fn a_session_that_a_stateless_server_gives_is_not_sent_back() {
    let remote = Remote::says(|heard, _| {
        let said = match heard.method() {
            "server/discover" => discovered(json!({"tools": {}})),
            "tools/list" => json!({"tools": [tool("echo")]}),
            _ => text("x"),
        };
        body(result(heard, said)).with("mcp-session-id", "unwanted")
    });
    let mut plane = Plane::reaching(&remote).await;
    assert_eq!(plane.call("echo").await.end, CallEnd::Ok);
    plane.close().await;
    assert!(remote.heard().iter().all(|heard| heard.header("mcp-session-id").is_none() && heard.verb == "POST"));
}

#[tokio::test]
async fn arguments_travel_as_headers_where_the_tool_says_so() {
    let annotated = json!({"name": "deploy", "description": "Deploys.", "inputSchema": {"type": "object", "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"}, "count": {"type": "integer", "x-mcp-header": "Count"},
        "dry": {"type": "boolean", "x-mcp-header": "Dry"}, "note": {"type": "string"},
        "deep": {"type": "object", "properties": {"zone": {"type": "string", "x-mcp-header": "Zone"}}},
    }}});
    let wrong =
        json!({"name": "wrong", "inputSchema": {"type": "object", "properties": {"a": {"type": "number", "x-mcp-header": "A"}}}});
    let secret = json!({"name": "secret", "inputSchema": {"type": "object", "properties": {"a": {"type": "string", "writeOnly": true, "x-mcp-header": "A"}}}});
    let remote = Remote::stateless(json!([annotated, wrong, secret]), |heard, _| body(result(heard, text("done"))));
    let mut plane = Plane::reaching(&remote).await;
    assert_eq!(plane.tools(), ["srv.deploy"], "one bad tool costs one tool");
    let refused: Vec<&str> = plane.discovery.observed.iter().map(|seen| seen.detail.as_str()).collect();
    insta::assert_snapshot!(refused.join("\n"), @"
    The tool `wrong` is refused: its inputSchema wants `/a` as a header, which is neither string nor integer nor boolean.
    The tool `secret` is refused: its inputSchema wants `/a` as a header, which is a secret.
    ");
    let arguments = json!({"region": "é ", "count": -3, "dry": true, "note": "x", "deep": {"zone": "b"}});
    assert_eq!(plane.call_with("deploy", arguments, CancellationToken::new()).await.end, CallEnd::Ok);
    assert_eq!(plane.call_with("deploy", json!({"region": null}), CancellationToken::new()).await.end, CallEnd::Ok);
    let too_large = plane.call_with("deploy", json!({"count": 9_007_199_254_740_993i64}), CancellationToken::new()).await;
    assert_eq!(too_large.end, CallEnd::Protocol);
    plane.close().await;
    let calls = remote.heard_method("tools/call");
    assert_eq!(calls.len(), 2);
    let mirrored = |heard: &Heard| -> Vec<String> {
        heard
            .headers
            .iter()
            .filter(|(name, _)| name.starts_with("mcp-param-"))
            .map(|(name, value)| format!("{name}={value}"))
            .collect()
    };
    assert_eq!(
        mirrored(&calls[0]),
        ["mcp-param-count=-3", "mcp-param-dry=true", "mcp-param-region==?base64?w6kg?=", "mcp-param-zone=b"]
    );
    assert_eq!(mirrored(&calls[1]), Vec::<String>::new());
}

#[tokio::test]
async fn a_tool_that_wants_other_headers_than_it_did_is_listed_again() {
    let wanting = |header: &str| json!([{"name": "echo", "inputSchema": {"type": "object", "properties": {"a": {"type": "string", "x-mcp-header": header}}}}]);
    let remote = Remote::says(move |heard, before| match heard.method() {
        "server/discover" => body(result(heard, discovered(json!({"tools": {}})))),
        "tools/list" => body(result(heard, json!({"tools": wanting(if before == 0 { "Old" } else { "New" })}))),
        _ if heard.header("mcp-param-new") == Some("x") => body(result(heard, text("fine"))),
        _ => status(400).saying(error(heard, -32020, "Mcp-Param-New is missing").to_string()),
    });
    let mut plane = Plane::reaching(&remote).await;
    let refused = plane.call_with("echo", json!({"a": "x"}), CancellationToken::new()).await;
    assert!(refused.end == CallEnd::Protocol && refused.error.contains("-32020"), "{refused:?}");
    plane.event("stale").await;
    plane.plane.list().await;
    assert_eq!(plane.call_with("echo", json!({"a": "x"}), CancellationToken::new()).await.text.as_str(), "fine");
    plane.close().await;
    assert_eq!(remote.heard_method("tools/call").len(), 2, "neither was made again by itself");
}

#[tokio::test]
async fn annotated_tools_are_tools_like_others_over_pipes() {
    let wrong =
        json!({"name": "wrong", "inputSchema": {"type": "object", "properties": {"a": {"type": "number", "x-mcp-header": "A"}}}});
    let player = Player::new(json!([
        {"expect": "server/discover"},
        {"send": {"jsonrpc": "2.0", "id": "$ID", "result": discovered(json!({"tools": {}}))}},
        {"expect": "tools/list"},
        {"send": {"jsonrpc": "2.0", "id": "$ID", "result": {"tools": [wrong]}}},
    ]));
    let plane = Plane::of(vec![player.request()]).await;
    assert_eq!(plane.tools(), ["srv.wrong"]);
    plane.close().await;
}

#[tokio::test]
async fn a_broken_stream_ends_its_call_at_once_and_is_not_picked_up() {
    for said in [events("id: 1\nretry: 0\ndata:\n\n"), events("id: 1\ndata:\n\n").cut()] {
        let remote = calling(move |_, _| said.clone());
        let mut plane = Plane::reaching(&remote).await;
        let answer = plane.call("echo").await;
        assert_eq!(answer.end, CallEnd::Died, "{answer:?}");
        assert!(answer.error.ends_with("whether the call took effect is unknown, and it is not repeated."), "{}", answer.error);
        plane.close().await;
        assert_eq!(remote.heard_method("tools/call").len(), 1);
        assert!(remote.heard_verb("GET").is_empty());
    }
}

#[tokio::test]
async fn over_http_a_call_is_taken_back_by_hanging_up() {
    let remote = calling(|_, _| events(": working\n\n").hanging());
    let mut plane = Plane::reaching(&remote).await;
    let cancel = CancellationToken::new();
    let (answer, ()) = tokio::join!(plane.call_with("echo", json!({}), cancel.clone()), async {
        remote.wait_for(|heard| heard.method() == "tools/call").await;
        cancel.cancel();
    });
    assert_eq!(answer.end, CallEnd::Cancelled);
    remote.wait_for_hang_up().await;
    plane.close().await;
    assert_eq!(remote.methods(), ["server/discover", "tools/list", "tools/call"], "and by no message");
}

#[tokio::test]
async fn over_pipes_a_call_is_taken_back_by_a_message_and_a_late_result_is_known() {
    let player = player(
        json!({"tools": {}}),
        json!([
            {"expect": "tools/call"},
            {"send": {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}},
            {"expect": "notifications/cancelled"},
            {"send": {"jsonrpc": "2.0", "id": "$ID", "result": text("too late")}},
        ]),
    );
    let mut plane = Plane::of(vec![player.request()]).await;
    let cancel = CancellationToken::new();
    let call = tokio::spawn(plane.begin("echo", json!({}), cancel.clone()));
    // The server has the call: it has answered it with something else.
    plane.event("stale").await;
    cancel.cancel();
    let answer = call.await.unwrap();
    assert_eq!(answer.end, CallEnd::Cancelled);
    assert_eq!(plane.event("late_result").await.unwrap().of, Some(1));
    plane.close().await;
    let record = player.record();
    assert_eq!(record[3]["params"]["requestId"], record[2]["id"]);
}

#[tokio::test]
async fn changes_of_the_list_are_subscribed_to_where_they_are_declared() {
    let over_pipes = player(
        json!({"tools": {"listChanged": true}}),
        json!([
            {"expect": "subscriptions/listen"},
            {"send": {"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": {"notifications": {"toolsListChanged": true}, "_meta": {"io.modelcontextprotocol/subscriptionId": "$ID"}}}},
            {"send": {"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {"_meta": {"io.modelcontextprotocol/subscriptionId": "$ID"}}}},
            {"expect": "tools/call"},
            {"send": {"jsonrpc": "2.0", "id": "$ID", "result": text("beside")}},
        ]),
    );
    let mut plane = Plane::of(vec![over_pipes.request()]).await;
    plane.event("stale").await;
    assert_eq!(plane.call("echo").await.text.as_str(), "beside");
    plane.close().await;
    let listen = over_pipes.record().into_iter().find(|line| line["method"] == "subscriptions/listen").unwrap();
    assert_eq!(listen["params"]["notifications"], json!({"toolsListChanged": true}));
    check_metadata(&over_pipes.record());

    let remote = Remote::says(|heard, _| match heard.method() {
        "server/discover" => body(result(heard, discovered(json!({"tools": {"listChanged": true}})))),
        "tools/list" => body(result(heard, json!({"tools": [tool("echo")]}))),
        "subscriptions/listen" => {
            let notice = |method: &str, params: Value| event(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
            let acknowledged =
                notice("notifications/subscriptions/acknowledged", json!({"notifications": {"toolsListChanged": true}}));
            events(acknowledged + ": keep-alive\n\n" + &notice("notifications/tools/list_changed", json!({}))).hanging()
        }
        _ => body(result(heard, text("beside"))),
    });
    let mut plane = Plane::reaching(&remote).await;
    plane.event("stale").await;
    assert_eq!(plane.call("echo").await.text.as_str(), "beside");
    plane.close().await;
    remote.wait_for_hang_up().await;
    assert!(remote.heard_verb("GET").is_empty());
}

#[tokio::test]
async fn a_subscription_that_a_server_keeps_ending_is_not_made_for_ever() {
    let remote = Remote::says(|heard, _| match heard.method() {
        "server/discover" => body(result(heard, discovered(json!({"tools": {"listChanged": true}})))),
        "tools/list" => body(result(heard, json!({"tools": [tool("echo")]}))),
        "subscriptions/listen" => body(error(heard, -32601, "not here")),
        _ => body(result(heard, text("fine"))),
    });
    let mut plane = Plane::reaching(&remote).await;
    remote.wait_for(|heard| heard.method() == "subscriptions/listen").await;
    assert_eq!(plane.call("echo").await.text.as_str(), "fine");
    plane.close().await;
    assert_eq!(remote.heard_method("subscriptions/listen").len(), 1, "an error is the end of it");
}

/// The same for either wire: what a result of this kind becomes.
async fn both(answer: Value) -> [CallResult; 2] {
    let player = player(
        json!({"tools": {}}),
        json!([
            {"expect": "tools/call"},
            {"send": {"jsonrpc": "2.0", "id": "$ID", "result": answer}},
        ]),
    );
    let mut plane = Plane::of(vec![player.request()]).await;
    let over_pipes = plane.call("echo").await;
    plane.close().await;
    let remote = calling(move |heard, _| body(result(heard, answer.clone())));
    let mut plane = Plane::reaching(&remote).await;
    let over_http = plane.call("echo").await;
    plane.close().await;
    [over_pipes, over_http]
}

#[tokio::test]
async fn only_whole_results_are_results() {
    for (answer, error) in [
        (json!({"resultType": "later", "content": []}), "a result of the type \"later\", which is not known"),
        (
            json!({"resultType": "input_required", "inputRequests": {"a": {"method": "elicitation/create", "params": {}}}, "requestState": "s"}),
            "a question for a person",
        ),
        (json!({"resultType": "task", "taskId": "T-1", "status": "working", "content": []}), "a task (id T-1)"),
        (json!({"resultType": "complete"}), "neither content nor structuredContent"),
        (json!({}), "neither content nor structuredContent"),
    ] {
        for result in both(answer).await {
            assert_eq!(result.end, CallEnd::Protocol);
            assert!(result.error.contains(error), "{}", result.error);
        }
    }
    for answer in [
        json!({"content": [{"type": "text", "text": "t"}]}),
        json!({"resultType": "complete", "content": [{"type": "text", "text": "t"}]}),
    ] {
        for result in both(answer).await {
            assert_eq!((result.end, result.text.as_str()), (CallEnd::Ok, "t"));
        }
    }
}

#[tokio::test]
async fn a_version_is_agreed_upon_again_once() {
    let unsupported = |heard: &Heard| {
        let error = json!({"code": -32022, "message": "m", "data": {"supported": ["2026-07-28"], "requested": "2026-07-28"}});
        status(400)
            .with("content-type", "application/json")
            .saying(json!({"jsonrpc": "2.0", "id": heard.id(), "error": error}).to_string())
    };
    let remote = Remote::says(move |heard, before| match (heard.method(), before) {
        ("server/discover", 0) => unsupported(heard),
        ("server/discover", _) => body(result(heard, discovered(json!({"tools": {}})))),
        ("tools/list", _) => body(result(heard, json!({"tools": [tool("echo")]}))),
        ("tools/call", 0) => unsupported(heard),
        (_, _) => body(result(heard, text("again"))),
    });
    let mut plane = Plane::reaching(&remote).await;
    assert_eq!(plane.server().state, ServerCondition::Ready);
    let refused = plane.call("echo").await;
    assert_eq!(refused.end, CallEnd::Protocol, "it is not made again by itself: {refused:?}");
    assert_eq!(plane.call("echo").await.text.as_str(), "again", "and the next one agrees anew");
    plane.close().await;
    assert_eq!(
        remote.methods(),
        ["server/discover", "server/discover", "tools/list", "tools/call", "server/discover", "tools/list", "tools/call"]
    );
    let stubborn = Remote::says(move |heard, _| unsupported(heard));
    let plane = Plane::reaching(&stubborn).await;
    assert!(plane.failure().contains("speaks no version of the protocol that is known"), "{}", plane.failure());
    assert_eq!(stubborn.methods(), ["server/discover"; 2]);
    plane.close().await;
}

#[tokio::test]
async fn a_server_that_speaks_neither_era_is_told_with_both_lists() {
    let remote = Remote::says(|heard, _| body(result(heard, json!({"supportedVersions": ["2031-01-01"], "capabilities": {}}))));
    let plane = Plane::reaching(&remote).await;
    insta::assert_snapshot!(plane.failure(), @"The server `srv` speaks no version of the protocol that is known: it speaks 2031-01-01; known are 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25, 2026-07-28.");
    assert_eq!(remote.methods(), ["server/discover"]);
    plane.close().await;
}

#[tokio::test]
async fn nothing_is_fetched_on_a_servers_word() {
    let canary = Remote::says(|_, _| status(200));
    let at = canary.url();
    let tools = json!([
        {"name": "icons", "icons": [{"src": at}], "inputSchema": {"type": "object"}, "_meta": {"see": at}},
        {"name": "remote", "inputSchema": {"type": "object", "properties": {"a": {"$ref": at}}}},
        {"name": "schema", "inputSchema": {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": at, "type": "object"}},
    ]);
    let link = at.clone();
    let remote = Remote::stateless(tools, move |heard, _| {
        body(result(
            heard,
            json!({"content": [{"type": "resource_link", "uri": link, "name": "l"}, {"type": "resource", "resource": {"uri": link, "text": "t"}}]}),
        ))
    });
    let mut plane = Plane::reaching(&remote).await;
    assert_eq!(plane.tools(), ["srv.icons", "srv.schema"]);
    let result = plane.call("icons").await;
    assert_eq!(result.text.as_str(), format!("[resource_link {at}]\n[resource {at}]\nt"));
    plane.plane.list().await;
    plane.close().await;
    assert!(canary.heard().is_empty());
}
