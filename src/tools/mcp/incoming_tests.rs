//! Messages of a server, and what becomes of each.
#![allow(clippy::unwrap_used, clippy::panic)]

use super::super::exchange::tests::{Rig, rig};
use super::*;

fn take_line(rig: &Rig, line: &[u8]) {
    dispatch(&rig.exchange, Cow::Borrowed(line), None);
}

#[test]
fn noise_is_told_once_and_never_answered() {
    let mut rig = rig();
    for noise in [
        &b"Server v1.2 ready"[..],
        b"",
        b"\xff\xfe\xfd",
        b"42",
        b"[]",
        b"[1,2]",
        b"{\"level\":\"info\",\"method\":\"GET\",\"id\":3}",
        b"{\"msg\":\"x\"}",
        b"{\"jsonrpc\":\"2.0\"",
        b"{not json}",
        b"\"jsonrpc\"",
    ] {
        take_line(&rig, noise);
    }
    assert_eq!(rig.told(), ["server_noise"]);
    assert!(rig.written().is_empty());
}

#[test]
fn answers_are_found_however_they_are_written() {
    let rig = rig();
    for (line, id) in [
        (&br#"{"jsonrpc":"2.0","id":1,"result":{}}"#[..], 1),
        (br#" { "result" : {"a":[1]} , "id" : "2" }"#, 2),
        (br#"{"id":3.0,"error":{"code":-99999999999,"message":"m"},"jsonrpc":"2.0"}"#, 3),
        (br#"[{"jsonrpc":"2.0","method":"notifications/message","params":{}},{"jsonrpc":"2.0","id":4,"result":{}}]"#, 4),
        (br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}}"#, 5),
        (br#"{"jsonrpc":"2.0","id":6}"#, 6),
    ] {
        let mut awaited = rig.ask(id, None);
        take_line(&rig, line);
        assert!(matches!(awaited.answer.try_recv(), Ok(Answer::Message(_))), "{}", String::from_utf8_lossy(line));
    }
}

#[test]
fn a_damaged_answer_does_not_leave_anybody_waiting() {
    let mut rig = rig();
    for line in [
        &br#"{"jsonrpc":"2.0","id":1,"result":{"content":[],}"#[..],
        br#"{"jsonrpc":"2.0","id":1,"result":"#,
        br#"{"result":{"content":[{"type":"te"#,
        br#"{"jsonrpc":"2.0","id":1,"result":{}} and more"#,
    ] {
        let mut awaited = rig.ask(1, None);
        take_line(&rig, line);
        match awaited.answer.try_recv() {
            Ok(Answer::Unreadable(why)) => assert!(why.starts_with("sent an answer that is no JSON (at byte "), "{why}"),
            other => panic!("{other:?} for {}", String::from_utf8_lossy(line)),
        }
    }
    assert!(rig.told().is_empty());
}

#[test]
fn a_server_is_granted_a_ping_and_nothing_else() {
    let mut rig = rig();
    rig.exchange.agree(Era::Handshake, "2025-11-25");
    for line in [
        r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#,
        r#"{"jsonrpc":"2.0","id":2,"method":"sampling/createMessage","params":{"messages":[]}}"#,
        r#"{"jsonrpc":"2.0","id":3,"method":"elicitation/create","params":{"message":"Key?","requestedSchema":{}}}"#,
        r#"{"jsonrpc":"2.0","id":4,"method":"odd \"name\"","params":[]}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info"}}"#,
    ] {
        take_line(&rig, line.as_bytes());
    }
    insta::assert_snapshot!(rig.written().join("\n"), @r#"
    {"jsonrpc":"2.0","id":"p","result":{}}
    {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"roots/list is not offered by this client"}}
    {"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"sampling/createMessage is not offered by this client"}}
    {"jsonrpc":"2.0","id":3,"result":{"action":"decline"}}
    {"jsonrpc":"2.0","id":4,"error":{"code":-32601,"message":"odd \"name\" is not offered by this client"}}
    "#);
    assert_eq!(rig.told(), ["sampling_declined", "elicitation_declined"]);
    for id in 0..100 {
        take_line(&rig, format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"sampling/createMessage"}}"#).as_bytes());
    }
    assert_eq!(rig.written().len(), 100);
    assert_eq!(rig.told().len(), 7, "eight in all");
}

#[test]
fn in_the_stateless_era_a_server_asks_for_nothing() {
    let mut rig = rig();
    take_line(&rig, br#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#);
    take_line(&rig, br#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#);
    assert_eq!(rig.written(), [r#"{"jsonrpc":"2.0","id":2,"result":{}}"#], "undecided: nothing but a ping");
    rig.exchange.agree(Era::Stateless, "2026-07-28");
    for method in ["ping", "elicitation/create", "sampling/createMessage", "roots/list"] {
        take_line(&rig, format!(r#"{{"jsonrpc":"2.0","id":3,"method":"{method}","params":{{}}}}"#).as_bytes());
    }
    assert!(rig.written().is_empty());
    assert_eq!(rig.told(), ["server_request_refused"; 5]);
}

#[test]
fn an_error_without_an_id_belongs_to_the_request_it_came_in_answer_to() {
    let rig = rig();
    let (mut one, mut two) = (rig.ask(1, None), rig.ask(2, None));
    let error = br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"m"}}"#;
    dispatch(&rig.exchange, Cow::Borrowed(error), Some(&Id::Number(2)));
    assert!(matches!(two.answer.try_recv(), Ok(Answer::Message(_))));
    dispatch(&rig.exchange, Cow::Borrowed(b"{\"jsonrpc\":\"2.0\",\"result\":{"), Some(&Id::Number(1)));
    assert!(matches!(one.answer.try_recv(), Ok(Answer::Unreadable(_))));
}

#[test]
fn what_a_subscription_grants_is_heard() {
    let rig = rig();
    let acknowledged = |granted: &str| {
        let line = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{{"notifications":{granted}}}}}"#
        );
        take_line(&rig, line.as_bytes());
        rig.exchange.hears_changes()
    };
    assert_eq!(acknowledged("{}"), None);
    assert_eq!(acknowledged(r#"{"toolsListChanged":true}"#), Some(1));
    assert_eq!(acknowledged(r#"{"toolsListChanged":false}"#), None);
    assert_eq!(acknowledged(r#"{"toolsListChanged":true}"#), Some(2), "another hearing");
}
