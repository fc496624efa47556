#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::arithmetic_side_effects, clippy::panic)]
//! The backend against a server on loopback that plays what real servers send.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mission_contract::log::{ConstraintKind, Purpose, ReplyEnd, Role};
use mission_contract::spec::Sampling;
use serde_json::json;
use tokio::sync::mpsc::channel;
use tokio_util::sync::CancellationToken;

use super::endpoint::Endpoint;
use super::for_tests::{ask, message};
use super::model_server::*;
use super::openai::{OpenAiBackend, OpenAiKind, OpenAiSettings};
use super::{Delta, FailureKind, ModelBackend, ModelError, ModelReply, Secret};
use crate::engine::request::{Constraint, FunctionChoice, FunctionDeclaration, ModelRequest};

const KEY: &str = "sk-dummy-key-for-tests";

fn settings(base: &str) -> OpenAiSettings {
    OpenAiSettings {
        kind: OpenAiKind::Local,
        base: Endpoint::parse(base).unwrap(),
        key: Some(Secret::new(KEY)),
        model: Some("m".to_owned()),
    }
}

async fn backend(server: &ModelServer) -> OpenAiBackend {
    OpenAiBackend::connect(settings(&server.base_url())).await.unwrap()
}

fn request(stream: bool) -> ModelRequest {
    ModelRequest {
        ordinal: 1,
        purpose: Purpose::Step,
        messages: vec![message(Role::System, "You work."), message(Role::User, "Read the file")],
        functions: Arc::default(),
        choice: FunctionChoice::None,
        constraint: None,
        sampling: Sampling::default(),
        stream,
        reply_tokens: None,
    }
}

fn native(stream: bool) -> ModelRequest {
    let declare = |name: &str| FunctionDeclaration {
        name: name.to_owned(),
        description: "d".to_owned(),
        parameters: json!({"type": "object"}),
    };
    ModelRequest {
        functions: Arc::new(vec![declare("mcp_add"), declare("mission_answer")]),
        choice: FunctionChoice::Required,
        ..request(stream)
    }
}

async fn detail(server: &ModelServer) -> (String, Option<FailureKind>) {
    let (reply, _) = ask(&backend(server).await, request(true)).await;
    assert_eq!(reply.reply.end, ReplyEnd::Failed);
    let detail = reply.reply.detail.unwrap().replace(&server.base_url(), "BASE");
    assert!(!detail.contains(KEY));
    (detail, reply.failure.map(|failure| failure.kind))
}

fn shown(reply: &ModelReply) -> String {
    let calls: Vec<String> = reply.reply.calls.iter().map(|call| format!("{}({})", call.name, call.arguments)).collect();
    let usage = reply.reply.usage.as_ref().map_or("-".to_owned(), |usage| usage.total_tokens.to_string());
    format!(
        "{:?} {} {:?} [{}] {usage}",
        reply.reply.end,
        reply.reply.finish.as_deref().unwrap_or("-"),
        reply.reply.text.as_str(),
        calls.join(", ")
    )
}

/// What the pieces of a reply add up to.
fn added_up(deltas: &[Delta]) -> (String, Vec<(String, String)>) {
    let mut text = String::new();
    let mut calls: Vec<(String, String)> = Vec::new();
    for delta in deltas {
        match delta {
            Delta::Text(piece) => text.push_str(piece),
            Delta::CallName { position, name } => {
                assert_eq!(*position, calls.len());
                calls.push((name.clone(), String::new()));
            }
            Delta::CallArguments { position, fragment } => calls[*position].1.push_str(fragment),
        }
    }
    (text, calls)
}

#[tokio::test]
async fn what_a_real_server_sent_is_read_in_any_segments() {
    for (name, expected) in [
        ("tiny_openai_plain", r#"Whole stop "Ok." [] 107"#),
        ("tiny_openai_auto", r#"Whole stop "Ok." [] 768"#),
        ("tiny_openai_named", r#"Whole stop "Ok." [] 768"#),
        ("tiny_openai_none", r#"Whole stop "Ok." [] 768"#),
        ("tiny_openai_tool", r#"Whole tool_calls "Ok." [read_file({"path":"/workspace/a.txt","head":1})] 840"#),
        ("tiny_openai_parallel", r#"Whole tool_calls "Ok." [read_file({"path":"/workspace/a.txt","head":1})] 1008"#),
        ("tiny_openai_tool_truncated", r#"Whole length "Ok." [] 784"#),
        ("tiny_reasoning", r#"Whole stop "" [] 36"#),
        ("smollm2_openai_plain", r#"Whole stop "The capital of France is Paris." [] 48"#),
    ] {
        let file = format!("llamacpp_{name}.response.raw");
        for segment in [1, 7, 4096] {
            let server = ModelServer::start().reply(recorded(&file).in_segments_of(segment));
            let (reply, deltas) = ask(&backend(&server).await, request(true)).await;
            assert_eq!(shown(&reply), expected, "{name} in segments of {segment}");
            assert!(reply.failure.is_none() && reply.observed.is_empty());
            let (text, calls) = added_up(&deltas);
            assert_eq!(text, reply.reply.text.as_str(), "{name}");
            assert_eq!(
                calls,
                reply.reply.calls.iter().map(|call| (call.name.clone(), call.arguments.clone())).collect::<Vec<_>>()
            );
        }
    }
    for (name, finish) in [("random_openai_plain", "length"), ("smollm2_openai_tool", "length"), ("err_midstream", "length")] {
        let server = ModelServer::start().reply(recorded(&format!("llamacpp_{name}.response.raw")).in_segments_of(11));
        let (reply, deltas) = ask(&backend(&server).await, request(true)).await;
        assert_eq!((reply.reply.end, reply.reply.finish.as_deref()), (ReplyEnd::Whole, Some(finish)), "{name}");
        assert_eq!(added_up(&deltas).0, reply.reply.text.as_str());
        assert!(!reply.reply.text.as_str().is_empty());
    }
}

#[tokio::test]
async fn what_a_real_server_refuses_is_told_in_its_own_words() {
    let server = ModelServer::start()
        .reply(recorded("llamacpp_err_auth.response.raw"))
        .reply(recorded("llamacpp_err_bad.response.raw"))
        .reply(recorded("llamacpp_err_badref.response.raw"))
        .reply(recorded("llamacpp_err_ctx.response.raw"));
    let (said, kind) = detail(&server).await;
    insta::assert_snapshot!(said, @"The model server at BASE answered 401 Unauthorized: Invalid API Key. Check LOCAL_API_KEY.");
    assert_eq!(kind, Some(FailureKind::Status));
    insta::assert_snapshot!(detail(&server).await.0, @"The model server at BASE answered 400 Bad Request: Expected 'messages' to be an array.");
    insta::assert_snapshot!(detail(&server).await.0, @"The model server at BASE answered 400 Bad Request: Unable to generate parser for this template. Automatic parser generation failed: JSON schema error at #/properties/a: cannot resolve $ref #/$defs/none, $defs not found.");
    let (said, kind) = detail(&server).await;
    insta::assert_snapshot!(said, @"The model server at BASE answered 400 Bad Request: request (8014 tokens) exceeds the available context size (1024 tokens), try increasing it.");
    assert_eq!(kind, Some(FailureKind::ContextOverflow));
}

#[tokio::test]
async fn a_reply_is_the_same_streamed_and_not() {
    for stream in [true, false] {
        let server = ModelServer::start()
            .reply(says("A text.").costing(json!({"prompt_tokens": 3, "completion_tokens": 2, "cached": true})))
            .reply(calls([("mcp.add", json!({"a": 1})), ("nope", json!({}))]))
            .reply(answers("Three."))
            .reply(calls([("mcp.add", json!({"a": 1}))]));
        let backend = backend(&server).await;
        let (reply, deltas) = ask(&backend, request(stream)).await;
        assert_eq!(shown(&reply), r#"Whole stop "A text." [] 5"#);
        assert_eq!(reply.reply.usage.unwrap().extras, [("cached".to_owned(), json!(true))].into());
        assert_eq!(deltas.is_empty(), !stream);
        assert_eq!(shown(&ask(&backend, native(stream)).await.0), r#"Whole tool_calls "" [mcp_add({"a":1}), nope({})] -"#);
        assert_eq!(shown(&ask(&backend, native(stream)).await.0), r#"Whole tool_calls "" [mission_answer({"text":"Three."})] -"#);
        assert_eq!(
            shown(&ask(&backend, request(stream)).await.0),
            r#"Whole stop "{\"arguments\":{\"a\":1},\"tool\":\"mcp.add\"}" [] -"#
        );
        // One connection for all of them.
        assert_eq!(server.connections(), 1);
        assert_eq!(server.requests().len(), 4);
    }
}

#[tokio::test]
async fn a_request_carries_what_it_should() {
    let server = ModelServer::start().reply(says("ok"));
    ask(&backend(&server).await, request(true)).await;
    let seen = server.wait_for_request(1);
    assert_eq!((seen.method.as_str(), seen.path.as_str()), ("POST", "/v1/chat/completions"));
    assert_eq!(seen.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    assert_eq!(seen.header("content-type"), Some("application/json"));
    assert_eq!(seen.header("accept-encoding"), None);
    assert_eq!(seen.header("transfer-encoding"), None);
    assert_eq!(
        seen.body,
        json!({
            "model": "m",
            "messages": [{"role": "system", "content": "You work."}, {"role": "user", "content": "Read the file"}],
            "stream": true, "stream_options": {"include_usage": true},
        })
    );
}

#[tokio::test]
async fn credentials_in_the_base_url_are_sent_and_never_told() {
    let server = ModelServer::start().reply(status(401, &json!({"error": "who is me:pa55word?"})));
    let base = format!("http://me:pa55word@127.0.0.1:{}/v1", server.port());
    let backend = OpenAiBackend::connect(OpenAiSettings { key: None, ..settings(&base) }).await.unwrap();
    let (reply, _) = ask(&backend, request(false)).await;
    assert_eq!(server.wait_for_request(1).header("authorization"), Some("Basic bWU6cGE1NXdvcmQ="));
    assert!(!reply.reply.detail.unwrap().contains("pa55word"));
}

#[tokio::test]
async fn a_reply_that_is_cut_keeps_what_was_said() {
    let server = ModelServer::start()
        .reply(says("abcdefgh ijklmnop").cut_after(420))
        .reply(says("whole but for its end").without_done().cut_after(100_000))
        .reply(calls([("mcp.add", json!({"a": 1}))]).cut_after(450));
    let backend = backend(&server).await;
    let (reply, deltas) = ask(&backend, request(true)).await;
    assert_eq!(shown(&reply), r#"Cut - "abcdefgh ijklmno" [] -"#);
    assert_eq!(added_up(&deltas).0, "abcdefgh ijklmno");
    assert_eq!(reply.failure.unwrap().kind, FailureKind::Broken);
    let said = reply.reply.detail.unwrap().replace(&server.base_url(), "BASE");
    insta::assert_snapshot!(said, @"The model server at BASE closed the connection before its reply was complete.");
    assert_eq!(shown(&ask(&backend, request(true)).await.0), r#"Whole stop "whole but for its end" [] -"#);
    let (reply, _) = ask(&backend, native(true)).await;
    assert_eq!((reply.reply.end, reply.reply.calls.len()), (ReplyEnd::Cut, 1));
}

#[tokio::test]
async fn a_connection_that_is_closed_reset_or_refused_is_told_apart() {
    let server = ModelServer::start().reply(hangs_up()).reply(resets());
    let (said, kind) = detail(&server).await;
    insta::assert_snapshot!(said, @"The model server at BASE closed the connection without an answer.");
    assert_eq!(kind, Some(FailureKind::Broken));
    let (said, kind) = detail(&server).await;
    insta::assert_snapshot!(said, @"The model server at BASE reset the connection.");
    assert_eq!(kind, Some(FailureKind::Broken));
    let base = server.base_url();
    drop(server);
    let backend = OpenAiBackend::connect(settings(&base)).await.unwrap();
    let (reply, _) = ask(&backend, request(true)).await;
    insta::assert_snapshot!(reply.reply.detail.unwrap().replace(&base, "BASE"), @"The model server at BASE refused the connection. Check that it runs, and LOCAL_API_BASE.");
    assert_eq!(reply.failure.unwrap().kind, FailureKind::Unreachable);
}

#[tokio::test]
async fn a_name_without_an_address_and_a_server_without_tls_are_told_apart() {
    // A label of 64 characters is refused by the resolver itself: nobody is asked.
    let backend = OpenAiBackend::connect(settings(&format!("http://{}.invalid:1/v1", "m".repeat(64)))).await.unwrap();
    let (reply, _) = ask(&backend, request(true)).await;
    assert_eq!(reply.failure.unwrap().kind, FailureKind::Unreachable);
    insta::assert_snapshot!(reply.reply.detail.unwrap().replace(&"m".repeat(64), "LONG"), @"The model server at http://LONG.invalid:1/v1 could not be found: there is no address for its name. Check that it runs, and LOCAL_API_BASE.");
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let base = format!("https://127.0.0.1:{}/v1", listener.local_addr().unwrap().port());
    let plain = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut hello = [0; 16];
        stream.read_exact(&mut hello).unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n").unwrap();
        // Until the client is gone: closing earlier might be seen as a reset.
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
    });
    match OpenAiBackend::connect(settings(&base)).await {
        Ok(backend) => {
            let (reply, _) = ask(&backend, request(true)).await;
            insta::assert_snapshot!(reply.reply.detail.unwrap().replace(&base, "BASE"), @"The model server at BASE does not speak TLS: its address may have to begin with http:// instead. Check that it runs, and LOCAL_API_BASE.");
            assert_eq!(reply.failure.unwrap().kind, FailureKind::Untrusted);
            plain.join().unwrap();
        }
        // A machine without certificates says so, and how to get them.
        Err(error) => assert!(error.to_string().contains("certificates"), "{error}"),
    }
}

#[tokio::test]
async fn giving_up_closes_the_connection_at_once_and_keeps_what_was_said() {
    let server = ModelServer::start().reply(says("abcdefgh ijklmnop").in_fragments_of(4).stalling_after(400)).reply(stalls());
    let backend = backend(&server).await;
    for (number, expected) in [(1, "abcdefgh"), (2, "")] {
        let cancel = CancellationToken::new();
        let (sender, mut receiver) = channel(64);
        let give_up = async {
            server.shared_wait(number).await;
            let mut seen = String::new();
            while seen.len() < expected.len() {
                match tokio::time::timeout(Duration::from_secs(20), receiver.recv()).await {
                    Ok(Some(Delta::Text(piece))) => seen.push_str(&piece),
                    other => panic!("{other:?}"),
                }
            }
            cancel.cancel();
            Instant::now()
        };
        let (reply, cancelled) = tokio::join!(backend.ask(request(true), sender, cancel.clone()), give_up);
        assert!(cancelled.elapsed() < Duration::from_millis(200));
        assert_eq!(reply.reply.end, ReplyEnd::Interrupted);
        assert!(reply.reply.text.as_str().starts_with(expected));
        assert!(reply.failure.is_none());
        server.hang_up_seen(number).await;
    }
}

#[tokio::test]
async fn dropping_the_question_closes_the_connection_too() {
    let server = ModelServer::start().reply(stalls());
    let backend = backend(&server).await;
    let (sender, _receiver) = channel(1);
    let question = backend.ask(request(true), sender, CancellationToken::new());
    tokio::select! {
        _ = question => panic!("it was answered"),
        () = server.shared_wait(1) => {}
    }
    server.hang_up_seen(1).await;
}

#[tokio::test]
async fn a_part_that_a_server_refuses_is_left_out_from_then_on() {
    let server = ModelServer::start()
        .reply(status(
            400,
            &json!({"error": {"message": "'response_format' of type json_schema is not supported", "param": "response_format"}}),
        ))
        .reply(status(422, &json!({"detail": [{"loc": ["body", "stream_options"], "msg": "Extra inputs are not permitted"}]})))
        .reply(status(400, &json!({"error": {"message": "unknown field parallel_tool_calls; tool_choice must be auto"}})))
        .reply(says("one"))
        .reply(says("two"));
    let backend = backend(&server).await;
    let mut full = native(true);
    full.constraint = Some(Constraint { name: "decision", schema: Arc::new(json!({"type": "object"})) });
    let (reply, _) = ask(&backend, full.clone()).await;
    assert_eq!(reply.reply.text.as_str(), "one");
    let told: Vec<String> =
        reply.observed.iter().map(|seen| format!("{}: {}", seen.what, seen.detail.replace(&server.base_url(), "BASE"))).collect();
    insta::assert_snapshot!(told.join("\n"), @"
    constraint_refused: The model server at BASE refuses `response_format`: replies are not held to a shape in this run.
    parameter_refused: The model server at BASE refuses `stream_options`: in this run streamed replies may come without usage.
    parameter_refused: The model server at BASE refuses `parallel_tool_calls`: in this run it is left out.
    parameter_refused: The model server at BASE refuses `tool_choice`: in this run a call is asked for and not required.
    ");
    let (reply, _) = ask(&backend, full).await;
    assert_eq!((reply.reply.text.as_str(), reply.observed.len()), ("two", 0));
    let bodies: Vec<_> = server.requests().into_iter().map(|request| request.body).collect();
    assert_eq!(bodies.len(), 5);
    assert_eq!(bodies[0]["response_format"]["type"], "json_schema");
    assert_eq!((&bodies[1]["response_format"], &bodies[1]["stream_options"]["include_usage"]), (&json!(null), &json!(true)));
    assert_eq!((&bodies[2]["stream_options"], &bodies[2]["tool_choice"]), (&json!(null), &json!("required")));
    assert_eq!((&bodies[3]["parallel_tool_calls"], &bodies[3]["tool_choice"]), (&json!(null), &json!("auto")));
    assert_eq!(bodies[4], bodies[3]);
}

#[tokio::test]
async fn a_refusal_of_something_else_is_not_asked_again() {
    let server = ModelServer::start()
        .reply(status(400, &json!({"error": {"message": "response_format and messages exceed the maximum context length"}})))
        .reply(status(400, &json!({"error": {"message": "response_format is fine, we never asked"}})))
        .reply(status(500, &json!({"error": {"message": "stream_options broke us"}})));
    let backend = backend(&server).await;
    let constrained = ModelRequest { constraint: Some(Constraint { name: "d", schema: Arc::new(json!({})) }), ..request(true) };
    assert_eq!(ask(&backend, constrained).await.0.failure.unwrap().kind, FailureKind::ContextOverflow);
    assert_eq!(ask(&backend, request(false)).await.0.failure.unwrap().status, Some(400));
    assert_eq!(ask(&backend, request(true)).await.0.failure.unwrap().status, Some(500));
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn what_is_no_completion_is_told_with_what_came() {
    let html = [("Content-Type", "text/html; charset=utf-8")];
    let server = ModelServer::start()
        .reply(page(200, &html, b"<html><h1>Sign in</h1></html>"))
        .reply(page(200, &[("Content-Type", "text/event-stream")], b""))
        .reply(page(200, &[("Content-Type", "application/json")], b"{\"status\": \"ok\"}"))
        .reply(page(204, &[], b""))
        .reply(page(200, &[("Content-Encoding", "gzip"), ("Content-Type", "application/json")], b"\x1f\x8b\x08"))
        .reply(page(502, &html, b"<html>\n<h1>502 Bad Gateway</h1></html>"))
        .reply(page(301, &[("Location", "http://user:pw@other.example/v1/chat/completions?k=v")], b""))
        .reply(page(
            429,
            &[("Retry-After", "7"), ("Content-Type", "application/json")],
            b"{\"error\":{\"message\":\"slow down\"}}",
        ))
        .reply(page(404, &[], format!("no model for {KEY}").as_bytes()));
    let mut told = String::new();
    for _ in 0..9 {
        told.push_str(&detail(&server).await.0);
        told.push('\n');
    }
    insta::assert_snapshot!(told, @r#"
    The model server at BASE answered 200 OK, text/html; charset=utf-8, with a page for people in place of a completion: something else than a model server answers there. It begins: <html><h1>Sign in</h1></html>
    The model server at BASE answered 200 OK, text/event-stream, with an empty body.
    The model server at BASE answered 200 OK, application/json, with JSON that is no completion. It begins: {"status": "ok"}
    The model server at BASE answered 204 No Content, which holds no completion.
    The model server at BASE answered 200 OK, application/json, compressed (gzip) although that was not asked for.
    The model server at BASE answered 502 Bad Gateway: <html> <h1>502 Bad Gateway</h1></html>.
    The model server at BASE answered 301 Moved Permanently, a redirect to http://other.example/v1/chat/completions, which is not followed: set LOCAL_API_BASE to where the server really is.
    The model server at BASE answered 429 Too Many Requests: slow down.
    The model server at BASE answered 404 Not Found: no model for [redacted]. Check the model's name, and the path in LOCAL_API_BASE.
    "#);
}

#[tokio::test]
async fn a_servers_label_does_not_matter() {
    let completion = br#"{"choices":[{"message":{"content":"whole"}}]}"#;
    let stream = b"data: {\"choices\":[{\"delta\":{\"content\":\"streamed\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let server = ModelServer::start()
        .reply(page(200, &[("Content-Type", "text/event-stream")], completion))
        .reply(page(200, &[], completion))
        .reply(page(201, &[("Content-Type", "Application/JSON; charset=UTF-8")], completion))
        .reply(page(200, &[("Content-Type", "application/json")], stream))
        .reply(page(200, &[], stream));
    let backend = backend(&server).await;
    for (stream, expected) in [(true, "whole"), (false, "whole"), (true, "whole"), (false, "streamed"), (true, "streamed")] {
        let (reply, deltas) = ask(&backend, request(stream)).await;
        assert_eq!((reply.reply.end, reply.reply.text.as_str()), (ReplyEnd::Whole, expected));
        assert_eq!(added_up(&deltas).0, if stream { expected } else { "" });
    }
}

#[tokio::test]
async fn an_endless_event_ends_the_reply() {
    let big = format!("{{\"choices\":[{{\"delta\":{{\"content\":\"{}\"}}}}]}}", "x".repeat(9 << 20));
    let server = ModelServer::start().reply(events([r#"{"choices":[{"delta":{"content":"first"}}]}"#, &big, "[DONE]"]));
    let (reply, _) = ask(&backend(&server).await, request(true)).await;
    assert_eq!((reply.reply.end, reply.reply.text.as_str()), (ReplyEnd::Cut, "first"));
    assert_eq!(reply.failure.unwrap().kind, FailureKind::TooLarge);
    insta::assert_snapshot!(reply.reply.detail.unwrap().replace(&server.base_url(), "BASE"), @"The model server at BASE sent too much: one event is larger than 8388608 bytes.");
}

#[tokio::test]
async fn a_complete_reply_does_not_wait_for_a_connection_that_stays_open() {
    let server = ModelServer::start().reply(says("done").never_ending());
    let backend = backend(&server).await;
    let begun = Instant::now();
    assert_eq!(ask(&backend, request(true)).await.0.reply.text.as_str(), "done");
    assert!(begun.elapsed() < Duration::from_secs(1));
    server.hang_up_seen(1).await;
}

#[tokio::test]
async fn an_unnamed_model_is_the_first_that_the_server_lists() {
    let unnamed = |server: &ModelServer| OpenAiSettings { model: None, ..settings(&server.base_url()) };
    let list =
        json!({"object": "list", "data": [{"object": "model"}, {"id": "org/first", "max_model_len": 8192}, {"id": "second"}]});
    let server = ModelServer::start().listing(status(200, &list)).reply(says("ok"));
    let backend = OpenAiBackend::connect(unnamed(&server)).await.unwrap();
    let leg = backend.leg();
    assert_eq!((leg.provider.as_str(), leg.model.as_str(), leg.window), ("local", "org/first", Some(8192)));
    assert_eq!(leg.capabilities.constraint, ConstraintKind::JsonSchema);
    ask(&backend, request(true)).await;
    assert_eq!(server.requests()[0].body["model"], "org/first");
    assert_eq!(server.other_requests()[0].header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    for odd in [status(404, &json!({})), status(200, &json!({"data": []})), page(200, &[], b"<html>")] {
        let server = ModelServer::start().listing(odd);
        assert_eq!(OpenAiBackend::connect(unnamed(&server)).await.unwrap().leg().model, "local-model");
    }
    let server = ModelServer::start().listing(status(401, &json!({"error": {"message": "Invalid API Key"}})));
    let error = OpenAiBackend::connect(unnamed(&server)).await.unwrap_err();
    assert!(error.is_servers());
    insta::assert_snapshot!(error.to_string().replace(&server.base_url(), "BASE"), @"no model is named (--model, LOCAL_MODEL), and the server did not list its own. The model server at BASE answered 401 Unauthorized: Invalid API Key. Check LOCAL_API_KEY.");
    let settings = unnamed(&server);
    drop(server);
    assert!(matches!(OpenAiBackend::connect(settings).await, Err(ModelError::NoModel { kind: FailureKind::Unreachable, .. })));
}

#[tokio::test]
async fn the_hosted_service_is_asked_in_its_own_way() {
    let server = ModelServer::start()
        .reply(says("ok"))
        .reply(status(401, &json!({"error": {"message": format!("Incorrect key: {KEY}")}})));
    let backend =
        OpenAiBackend::connect(OpenAiSettings { kind: OpenAiKind::Hosted, ..settings(&server.base_url()) }).await.unwrap();
    assert_eq!(backend.leg().provider, "openai");
    assert_eq!(backend.leg().capabilities.constraint, ConstraintKind::JsonObject);
    let constrained = ModelRequest { constraint: Some(Constraint { name: "d", schema: Arc::new(json!({})) }), ..request(false) };
    ask(&backend, constrained).await;
    assert_eq!(server.requests()[0].body["response_format"], json!({"type": "json_object"}));
    let (reply, _) = ask(&backend, request(false)).await;
    insta::assert_snapshot!(reply.reply.detail.unwrap().replace(&server.base_url(), "BASE"), @"The model server at BASE answered 401 Unauthorized: Incorrect key: [redacted]. Check OPENAI_API_KEY.");
}

impl ModelServer {
    /// Waits for a request without blocking the runtime, whose task is what sends it.
    async fn shared_wait(&self, count: usize) {
        let begun = Instant::now();
        while self.requests().len() < count {
            assert!(begun.elapsed() < Duration::from_secs(20), "no request {count}");
            tokio::task::yield_now().await;
        }
    }

    /// Waits until clients hung up without blocking the runtime, whose task is what closes their sockets.
    async fn hang_up_seen(&self, count: usize) {
        let begun = Instant::now();
        while self.hung_up() < count {
            assert!(begun.elapsed() < Duration::from_secs(20), "nobody hung up");
            tokio::task::yield_now().await;
        }
    }
}
