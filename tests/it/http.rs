//! Tool servers over streamable HTTP in the handshake era: answers of every form, sessions, streams that break, and what a server may not do.

use mission::limits;
use mission::tools::ToolPlane;
use mission_contract::log::{CallEnd, Era, ServerCondition};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::support::planes::{Plane, http, tool};
use crate::support::remote::{Heard, Remote, Said, body, error, event, events, result, status};

fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

fn echo() -> Value {
    json!([tool("echo")])
}

/// A server with the tool `echo`, whose calls are answered by this.
fn calling(says: impl Fn(&Heard, usize) -> Said + Send + Sync + 'static) -> Remote {
    Remote::handshake(echo(), move |heard, before| match heard.method() {
        "tools/call" => says(heard, before),
        _ if heard.verb == "GET" => status(405),
        _ => status(202),
    })
}

#[tokio::test]
async fn a_server_is_probed_shaken_hands_with_listed_called_and_left() {
    let remote = calling(|heard, _| body(result(heard, text("hello"))));
    let mut plane = Plane::of(vec![http("srv", &remote.url(), Some("tok-0001"))]).await;
    let server = plane.server();
    assert_eq!((server.state, server.era, server.transport.as_str()), (ServerCondition::Ready, Some(Era::Handshake), "http"));
    assert_eq!(server.implementation.as_deref(), Some("remote 1"));
    let answer = plane.call("echo").await;
    assert_eq!((answer.end, answer.text.as_str()), (CallEnd::Ok, "hello"), "{answer:?}");
    plane.close().await;
    let posts: Vec<String> = remote.heard_verb("POST").iter().map(|heard| heard.method().to_owned()).collect();
    assert_eq!(posts, ["server/discover", "initialize", "notifications/initialized", "tools/list", "tools/call"]);
    for heard in remote.heard() {
        assert_eq!(heard.header("authorization"), Some("Bearer tok-0001"), "{heard:?}");
        assert_eq!(heard.path, "/mcp");
        if heard.verb == "POST" {
            assert_eq!(heard.header("content-type"), Some("application/json"));
            assert_eq!(heard.header("accept"), Some("application/json, text/event-stream"));
        }
        let (version, session) = (heard.header("mcp-protocol-version"), heard.header("mcp-session-id"));
        match heard.method() {
            "server/discover" => assert_eq!((version, heard.header("mcp-method")), (Some("2026-07-28"), Some("server/discover"))),
            "initialize" => assert_eq!((version, session), (None, None)),
            _ => assert_eq!((version, session, heard.header("mcp-method")), (Some("2025-06-18"), Some("s-1"), None), "{heard:?}"),
        }
    }
    assert_eq!(remote.heard_verb("DELETE").len(), 1, "the session is given back");
}

#[tokio::test]
async fn revisions_before_2025_06_18_have_no_header_and_send_batches() {
    let remote = Remote::says(|heard, _| match heard.method() {
        "initialize" => body(result(heard, json!({"protocolVersion": "2025-03-26", "capabilities": {"tools": {}}}))),
        "notifications/initialized" => status(202),
        "tools/list" => body(
            json!([{"jsonrpc": "2.0", "method": "notifications/message", "params": {}}, result(heard, json!({"tools": [tool("echo")]}))]),
        ),
        _ => status(404),
    });
    let plane = Plane::reaching(&remote).await;
    assert_eq!(plane.tools(), ["srv.echo"]);
    plane.close().await;
    assert!(remote.heard_method("tools/list")[0].header("mcp-protocol-version").is_none());
    assert!(remote.heard_verb("DELETE").is_empty(), "there was no session to give back");
}

#[tokio::test]
async fn a_stream_may_hold_anything_beside_the_answer() {
    let remote = calling(|heard, before| match before {
        0 => events(format!(
            ": hello\n\nid: 7\nretry: 1500\ndata: \n\n: keep-alive\n\r\nevent: ping\r\ndata: {{}}\r\n\r\ndata: {{\"type\":\"heartbeat\"}}\n\n{}{}id: 8\nevent: message\ndata: {{\"jsonrpc\":\"2.0\",\"id\":{},\ndata:  \"result\":{}}}\n\n",
            event(&json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}})),
            event(&json!({"jsonrpc": "2.0", "id": "srv-1", "method": "ping"})),
            heard.id(),
            text("one"),
        )),
        // No content type, and JSON.
        1 => status(200).saying(result(heard, text("two")).to_string()),
        2 => status(200).with("content-type", "Application/JSON; charset=UTF-8").saying(result(heard, text("three")).to_string()),
        _ => status(200).with("content-type", "TEXT/Event-Stream;charset=utf-8").saying(event(&result(heard, text("four")))),
    });
    let mut plane = Plane::reaching(&remote).await;
    for expected in ["one", "two", "three", "four"] {
        assert_eq!(plane.call("echo").await.text.as_str(), expected);
    }
    let pong = remote.wait_for(|heard| heard.body.get("result").is_some()).await;
    assert_eq!((pong.body["id"].clone(), pong.body["result"].clone()), (json!("srv-1"), json!({})));
    assert_eq!(pong.header("mcp-session-id"), Some("s-1"));
    let noise = plane.event("server_noise").await.unwrap();
    assert!(noise.detail.contains("ping"), "{noise:?}");
    plane.event("content_type_missing").await;
    plane.close().await;
}

#[tokio::test]
async fn a_notification_is_acknowledged_in_many_ways() {
    let acknowledged = async |said: Said| {
        let remote = Remote::says(move |heard, _| match heard.method() {
            "initialize" => body(result(heard, json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}))),
            "notifications/initialized" => said.clone(),
            "tools/list" => body(result(heard, json!({"tools": [tool("echo")]}))),
            _ => status(404),
        });
        let plane = Plane::reaching(&remote).await;
        plane.close().await;
        plane.server().clone()
    };
    for said in [
        status(202),
        status(204),
        body(Value::Null),
        status(200).with("content-type", "text/plain; charset=utf-8").saying("accepted"),
        body(json!({"jsonrpc": "2.0", "id": null})),
        status(200).in_pieces(Vec::new()),
        status(200),
    ] {
        let server = acknowledged(said.clone()).await;
        assert_eq!(server.state, ServerCondition::Ready, "{said:?}: {server:?}");
    }
    let refused = acknowledged(status(400).saying("no such thing")).await;
    assert_eq!(refused.state, ServerCondition::Failed);
    assert!(refused.detail.unwrap().contains("answered 400"));
}

#[tokio::test]
async fn characters_in_two_pieces_are_one_and_the_last_chunk_may_be_missing() {
    let remote = calling(|heard, _| {
        let whole = event(&result(heard, text("한글😀"))).into_bytes();
        let pieces = whole.chunks(1).map(<[u8]>::to_vec).collect();
        events("").in_pieces(pieces).cut()
    });
    let mut plane = Plane::reaching(&remote).await;
    let answer = plane.call("echo").await;
    assert_eq!((answer.end, answer.text.as_str()), (CallEnd::Ok, "한글😀"), "{answer:?}");
    plane.close().await;
}

#[tokio::test]
async fn a_lost_session_is_opened_again_and_the_call_is_not_made_again() {
    for (code, said) in
        [(404, ""), (400, r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"}}"#)]
    {
        let remote = Remote::says(move |heard, before| match heard.method() {
            "server/discover" => status(404),
            "initialize" => {
                let id = format!("session-{before}");
                body(result(heard, json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}})))
                    .with("mcp-session-id", &id)
            }
            "tools/list" if heard.header("mcp-session-id") == Some("session-1") => {
                body(result(heard, json!({"tools": [tool("echo"), tool("new")]})))
            }
            "tools/list" => body(result(heard, json!({"tools": [tool("echo"), tool("old")]}))),
            "tools/call" if heard.header("mcp-session-id") == Some("session-0") => status(code).saying(said),
            "tools/call" => body(result(heard, text("hello again"))),
            _ => status(202),
        });
        let mut plane = Plane::reaching(&remote).await;
        let lost = plane.call("echo").await;
        assert_eq!(lost.end, CallEnd::Died);
        assert_eq!(
            lost.error,
            "The server `srv` no longer knows the session that it gave. It had not answered the call of `echo`: whether the call took effect is unknown, and it is not repeated."
        );
        plane.event("session_lost").await.unwrap();
        assert_eq!(remote.heard_method("tools/call").len(), 1, "it is not made again");
        assert_eq!(plane.call("echo").await.text.as_str(), "hello again");
        plane.event("session_reopened").await.unwrap();
        let gone = plane.call("old").await;
        assert_eq!(gone.end, CallEnd::Ok, "the driver holds the set; the server says what it has: {gone:?}");
        let now: Vec<String> = plane.plane.list().await.tools.iter().map(|definition| definition.name.clone()).collect();
        assert_eq!(now, ["echo", "new"]);
        plane.close().await;
        assert_eq!(remote.heard_method("initialize")[1].header("mcp-session-id"), None, "the old session is not shown again");
        assert_eq!(remote.heard_verb("DELETE").len(), 1);
    }
}

#[tokio::test]
async fn a_server_that_keeps_losing_its_session_is_left_alone() {
    let remote = calling(|_, _| status(404));
    let mut plane = Plane::reaching(&remote).await;
    for _ in 0..=limits::MCP_RESTARTS {
        assert_eq!(plane.call("echo").await.end, CallEnd::Died);
    }
    let last = plane.call("echo").await;
    insta::assert_snapshot!(last.error, @"The call of `echo` was not made, because the server `srv` has lost its session 3 times since a call of it last came to its end, and is given no new one.");
    assert_eq!(remote.heard_method("tools/call").len(), 4);
    plane.close().await;
}

#[tokio::test]
async fn a_stream_of_its_own_delays_and_fails_nothing() {
    for said in [status(405), status(404), status(400), status(401), status(200), events("").hanging(), status(200).hanging()] {
        let get = said.clone();
        let remote = Remote::handshake(echo(), move |heard, _| match heard.method() {
            "tools/call" => body(result(heard, text("fine"))),
            _ => get.clone(),
        });
        let mut plane = Plane::reaching(&remote).await;
        remote.wait_for(|heard| heard.verb == "GET").await;
        let answer = plane.call("echo").await;
        assert_eq!(answer.text.as_str(), "fine", "{said:?}: {answer:?}");
        plane.close().await;
    }
}

#[tokio::test]
async fn a_change_of_the_list_is_heard_on_the_servers_own_stream() {
    let remote = Remote::handshake(echo(), |heard, _| match heard.verb.as_str() {
        "GET" => events(event(&json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}))).hanging(),
        _ => status(202),
    });
    let mut plane = Plane::reaching(&remote).await;
    plane.event("stale").await;
    let get = remote.heard_verb("GET").remove(0);
    assert_eq!((get.header("accept"), get.header("mcp-session-id")), (Some("text/event-stream"), Some("s-1")));
    plane.close().await;
    remote.wait_for_hang_up().await;
}

#[tokio::test]
async fn a_broken_answer_is_picked_up_behind_its_last_event() {
    let remote = Remote::handshake(echo(), |heard, _| match (heard.method(), heard.header("last-event-id")) {
        ("tools/call", _) => events("id: a\nretry: 20\ndata:\n\n"),
        (_, None) => status(405),
        // The id of the call is that of the only one.
        (_, Some("a")) => {
            events("id: b\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}\n\n").cut()
        }
        (_, Some(_)) => events(event(&json!({"jsonrpc": "2.0", "id": 1, "result": text("at last")}))),
    });
    let mut plane = Plane::reaching(&remote).await;
    let answer = plane.call("echo").await;
    assert_eq!((answer.end, answer.text.as_str()), (CallEnd::Ok, "at last"), "{answer:?}");
    let seen: Vec<Option<String>> = remote
        .heard_verb("GET")
        .iter()
        .map(|heard| heard.header("last-event-id").map(str::to_owned))
        .filter(Option::is_some)
        .collect();
    assert_eq!(seen, [Some("a".to_owned()), Some("b".to_owned())]);
    assert_eq!(remote.heard_method("tools/call").len(), 1);
    plane.close().await;
}

#[tokio::test]
async fn a_server_that_keeps_closing_its_answer_is_not_followed_for_ever() {
    let remote = Remote::handshake(echo(), |heard, before| match (heard.method(), heard.header("last-event-id")) {
        ("tools/call", _) => events("id: 0\nretry: 0\ndata:\n\n"),
        (_, None) => status(405),
        _ => events(format!("id: {before}\nretry: 0\ndata:\n\n")),
    });
    let mut plane = Plane::reaching(&remote).await;
    let answer = plane.call("echo").await;
    assert_eq!(answer.end, CallEnd::Died);
    insta::assert_snapshot!(answer.error, @"The server `srv` ended its answer before it was complete; it was picked up 5 times, which is all that is allowed. It had not answered the call of `echo`: whether the call took effect is unknown, and it is not repeated.");
    let resumed = remote.heard_verb("GET").iter().filter(|heard| heard.header("last-event-id").is_some()).count();
    assert_eq!(u64::try_from(resumed).unwrap(), limits::MCP_RESUMES);
    plane.close().await;
}

#[tokio::test]
async fn what_cannot_be_picked_up_is_unknown_at_once() {
    let broken = async |said: fn(&Heard) -> Said| {
        let remote = calling(move |heard, _| said(heard));
        let mut plane = Plane::reaching(&remote).await;
        let answer = plane.call("echo").await;
        plane.close().await;
        assert_eq!(remote.heard_method("tools/call").len(), 1, "not made again");
        assert!(remote.heard_verb("GET").iter().all(|heard| heard.header("last-event-id").is_none()));
        assert_eq!(answer.end, CallEnd::Died, "{answer:?}");
        answer.error
    };
    insta::assert_snapshot!(broken(|_| events("data:\n\n")).await, @"The server `srv` ended its answer before it was complete. It had not answered the call of `echo`: whether the call took effect is unknown, and it is not repeated.");
    insta::assert_snapshot!(broken(|_| events("data: {\"jsonrpc\"").cut()).await, @"The server `srv` closed the connection before its answer was complete. It had not answered the call of `echo`: whether the call took effect is unknown, and it is not repeated.");
    insta::assert_snapshot!(broken(|_| body(json!({"jsonrpc": "2.0"})).cut()).await, @"The server `srv` closed the connection before its answer was complete. It had not answered the call of `echo`: whether the call took effect is unknown, and it is not repeated.");
    assert!(broken(|_| status(502).saying("bad gateway")).await.contains("answered 502"));
    assert!(broken(|_| status(500).saying("oh")).await.contains("answered 500"));
}

#[tokio::test]
async fn what_a_server_says_no_to_was_not_carried_out() {
    let refused = async |said: fn(&Heard) -> Said| {
        let remote = calling(move |heard, _| said(heard));
        let mut plane = Plane::reaching(&remote).await;
        let answer = plane.call("echo").await;
        plane.close().await;
        assert_eq!(answer.end, CallEnd::Protocol, "{answer:?}");
        answer.error.replace(&remote.url(), "URL")
    };
    insta::assert_snapshot!(refused(|_| status(429).with("retry-after", "3")).await, @"The server `srv` at URL takes no more requests now (429 Too Many Requests), and asks to wait for 3 s. The call of `echo` was not carried out.");
    insta::assert_snapshot!(refused(|_| status(401)).await, @"The server `srv` at URL wants a credential (401 Unauthorized): give its token with --mcp-token, in the place of its URL, or MCP_TOKEN. The call of `echo` was not carried out.");
    insta::assert_snapshot!(refused(|_| status(200).with("content-type", "text/html").saying("<title>Sign in</title>")).await, @"The server `srv` at URL answers with a web page (text/html), as a login or a proxy does: check its URL, and whether it wants a token (--mcp-token). The call of `echo` was not carried out.");
    // A message of the protocol is one whatever the status.
    insta::assert_snapshot!(refused(|heard| body(error(heard, -32602, "no such tool"))).await, @"The server `srv` answered the call of `echo` with error -32602: no such tool");
    insta::assert_snapshot!(refused(|_| status(400).saying(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"what?"}}"#)).await, @"The server `srv` answered the call of `echo` with error -32600: what?");
    insta::assert_snapshot!(refused(|_| status(202)).await, @"The server `srv` answered with 202 Accepted and nothing in it. The call of `echo` has no result.");
    insta::assert_snapshot!(refused(|_| body(json!({"jsonrpc": "2.0", "id": "other", "result": {}}))).await, @r#"The server `srv` answered with 200 OK and messages of which none is the answer: {"id":"other","jsonrpc":"2.0","result":{}}. The call of `echo` has no result."#);
    insta::assert_snapshot!(refused(|_| status(200).with("content-type", "text/plain").saying("hi")).await, @r#"The server `srv` at URL answered 200 OK with "text/plain", which is neither JSON nor a stream of events: hi. The call of `echo` has no result."#);
    insta::assert_snapshot!(refused(|_| status(200).with("content-type", "application/json").with("content-encoding", "gzip").saying("x")).await, @r#"The server `srv` sent its answer in the encoding "gzip", which it was not asked for. The call of `echo` has no result."#);
    insta::assert_snapshot!(refused(|_| events("data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[}\n\n")).await, @r#"The server `srv` sent an answer that is no JSON (at byte 46: {"jsonrpc":"2.0","id":1,"result":{"content":[}). The call of `echo` has no result."#);
}

#[tokio::test]
async fn an_answer_over_the_cap_fails_its_call_and_nothing_else() {
    const CAP: usize = 33_554_432;
    let remote = calling(|heard, before| match before {
        0 => body(result(heard, text(&"x".repeat(CAP)))),
        1 => events("").in_pieces(vec![b"data: ".to_vec(), vec![b'x'; CAP], vec![b'x'; 16]]).hanging(),
        2 => status(200).with("content-type", "application/json").in_pieces(vec![vec![b' '; CAP], vec![b' '; 16]]).hanging(),
        _ => events(event(&result(heard, text(&"y".repeat(3_000_000))))),
    });
    let mut plane = Plane::reaching(&remote).await;
    for _ in 0..3 {
        let over = plane.call("echo").await;
        assert_eq!(over.end, CallEnd::Protocol);
        assert!(over.error.contains("and 33554432 are allowed"), "{}", over.error);
    }
    let large = plane.call("echo").await;
    assert_eq!((large.end, large.text.as_str().len()), (CallEnd::Ok, 3_000_000));
    plane.close().await;
}

#[tokio::test]
async fn a_stream_of_anything_but_the_answer_has_an_end() {
    let remote = calling(|_, before| {
        let note = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}\n\n";
        let large = format!(
            "data: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":\"{}\"}}\n\n",
            "x".repeat(1 << 20)
        );
        match before {
            0 => events(note.repeat(100_001)).hanging(),
            _ => events("").in_pieces(vec![large.into_bytes(); 257]).hanging(),
        }
    });
    let mut plane = Plane::reaching(&remote).await;
    let many = plane.call("echo").await;
    assert!(many.end == CallEnd::Died && many.error.contains("sent more than 100000 events in place of one answer"), "{many:?}");
    let much = plane.call("echo").await;
    assert!(
        much.end == CallEnd::Died && much.error.contains("sent more than 268435456 bytes in place of one answer"),
        "{much:?}"
    );
    plane.close().await;
}

#[tokio::test]
async fn a_call_that_is_given_up_is_taken_back_by_a_message_and_its_late_result_is_known() {
    let (let_go, held) = std::sync::mpsc::channel::<()>();
    let held = std::sync::Mutex::new(held);
    let remote = calling(move |heard, _| {
        // The answer comes once the test says so.
        let _ = held.lock().unwrap().recv();
        body(result(heard, text("too late")))
    });
    let mut plane = Plane::reaching(&remote).await;
    let cancel = CancellationToken::new();
    let (answer, ()) = tokio::join!(plane.call_with("echo", json!({}), cancel.clone()), async {
        remote.wait_for(|heard| heard.method() == "tools/call").await;
        cancel.cancel();
    });
    assert_eq!(answer.end, CallEnd::Cancelled);
    let told = remote.wait_for(|heard| heard.method() == "notifications/cancelled").await;
    assert_eq!(told.body["params"]["requestId"], remote.heard_method("tools/call")[0].body["id"]);
    drop(let_go);
    assert_eq!(plane.event("late_result").await.unwrap().of, Some(1));
    plane.close().await;
}

#[tokio::test]
async fn a_redirect_to_another_origin_is_never_followed() {
    let thief = Remote::says(|heard, _| body(result(heard, json!({"protocolVersion": "2025-06-18", "capabilities": {}}))));
    let target = thief.url().replace("/mcp", "/steal");
    for (code, method) in [
        (307, "server/discover"),
        (308, "initialize"),
        (302, "server/discover"),
        (307, "tools/list"),
        (307, "notifications/initialized"),
    ] {
        let target = target.clone();
        let front = Remote::says(move |heard, _| match heard.method() {
            said if said == method => status(code).with("location", &target),
            "server/discover" => status(404),
            "initialize" => body(result(heard, json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}))),
            _ => status(202),
        });
        let plane = Plane::of(vec![http("srv", &front.url(), Some("tok-0001"))]).await;
        let why = plane.failure();
        assert!(why.contains("redirects to another origin, http://127.0.0.1:"), "{why}");
        plane.close().await;
    }
    assert!(thief.heard().is_empty(), "{:?}", thief.heard());
}

#[tokio::test]
async fn a_redirect_within_the_origin_keeps_method_and_body() {
    let remote = Remote::says(|heard, _| match (heard.path.as_str(), heard.method()) {
        ("/mcp", _) => status(308).with("location", "/mcp/"),
        (_, "server/discover") => status(404),
        (_, "initialize") => body(result(heard, json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}))),
        (_, "tools/list") => body(result(heard, json!({"tools": echo()}))),
        (_, "tools/call") => body(result(heard, text("there"))),
        _ => status(202),
    });
    let mut plane = Plane::of(vec![http("srv", &remote.url(), Some("tok-0001"))]).await;
    assert_eq!(plane.call("echo").await.text.as_str(), "there");
    assert!(remote.heard().iter().all(|heard| heard.header("authorization") == Some("Bearer tok-0001")));
    plane.close().await;
    let circle = Remote::says(|_, _| status(307).with("location", "/mcp"));
    let plane = Plane::reaching(&circle).await;
    assert!(plane.failure().contains("(307 Temporary Redirect)"), "{}", plane.failure());
    assert_eq!(u64::try_from(circle.heard().len()).unwrap(), limits::MCP_REDIRECTS + 1);
    plane.close().await;
}

#[tokio::test]
async fn who_may_not_ask_is_told_at_once_and_the_token_is_told_to_nobody() {
    const TOKEN: &str = "tok-abc-0001";
    let failure = async |token: Option<&str>, said: Said| {
        let remote = Remote::says(move |_, _| said.clone());
        let plane = Plane::of(vec![http("srv", &remote.url(), token)]).await;
        plane.close().await;
        assert!(remote.heard().len() <= 2, "no loop: {:?}", remote.methods());
        assert!(!format!("{:?}", plane.discovery).contains(TOKEN), "{:?}", plane.discovery);
        plane.failure().replace(&remote.url(), "URL").replace(&remote.url().replace("/mcp", ""), "ORIGIN")
    };
    let challenge = status(401).with("www-authenticate", "Bearer resource_metadata=\"http://127.0.0.1:1/x\"");
    insta::assert_snapshot!(failure(None, challenge).await, @"The server `srv` at URL wants a credential (401 Unauthorized): give its token with --mcp-token, in the place of its URL, or MCP_TOKEN; a login over OAuth is not made.");
    insta::assert_snapshot!(failure(Some(TOKEN), status(401).saying(format!("bad key {TOKEN}"))).await, @"The server `srv` at URL does not accept the credential that it is given (401 Unauthorized): give a valid token with --mcp-token or MCP_TOKEN.");
    insta::assert_snapshot!(failure(Some(TOKEN), status(403).saying(format!("{TOKEN} may not"))).await, @"The server `srv` at URL forbids the request to the credential that it is given (403 Forbidden): give a token with more rights; it says: *** may not.");
    insta::assert_snapshot!(failure(None, status(302).with("location", "/login")).await, @"The server `srv` at URL redirects to ORIGIN/login (302 Found), as a login does, and that is not followed: check its URL, and whether it wants a token (--mcp-token).");
    let page = status(200).with("content-type", "text/html; charset=utf-8").saying("<!doctype html><title>Sign in</title>");
    insta::assert_snapshot!(failure(None, page).await, @"The server `srv` at URL answers with a web page (text/html), as a login or a proxy does: check its URL, and whether it wants a token (--mcp-token).");
    insta::assert_snapshot!(failure(None, status(404).saying("not here")).await, @"The server `srv` has nothing at URL (404 Not Found): check the path of its URL; it says: not here; if it only speaks the old transport with a stream of its own (HTTP+SSE), that is not spoken here.");
}

#[tokio::test]
async fn a_busy_server_is_asked_again_and_not_for_ever() {
    let remote = Remote::says(|heard, before| match (heard.method(), before) {
        ("server/discover", 0) => status(503).with("retry-after", "0"),
        ("server/discover", 1) => status(429),
        ("server/discover", _) => status(404),
        ("initialize", _) => body(result(heard, json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}))),
        ("tools/list", 0) => status(503).with("retry-after", "0"),
        ("tools/list", _) => body(result(heard, json!({"tools": echo()}))),
        _ => status(202),
    });
    let plane = Plane::reaching(&remote).await;
    assert_eq!(plane.tools(), ["srv.echo"]);
    plane.close().await;
    let busy = Remote::says(|_, _| status(503).with("retry-after", "0").saying("come back later"));
    let plane = Plane::reaching(&busy).await;
    assert!(plane.failure().contains("503 Service Unavailable; it says: come back later"), "{}", plane.failure());
    assert_eq!(busy.methods(), ["server/discover"; 3]);
    plane.close().await;
}

#[tokio::test]
async fn nobody_there_is_told() {
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let plane = Plane::of(vec![http("srv", &format!("http://{gone}/mcp"), None)]).await;
    let why = plane.failure().replace(&gone.to_string(), "HOST");
    insta::assert_snapshot!(why, @"The server `srv` refuses the connection to http://HOST/mcp: check that it runs, and the URL.");
    plane.close().await;
}
