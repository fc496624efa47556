//! Lines of a server, and what becomes of each.
#![allow(clippy::unwrap_used, clippy::panic)]

use super::super::exchange::tests::{Rig, rig};
use super::*;

fn take_line(rig: &Rig, line: &[u8]) {
    dispatch(&rig.exchange, Cow::Borrowed(line));
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

#[tokio::test]
async fn a_line_over_the_cap_fails_what_waits_and_the_next_line_is_read() {
    let rig = rig();
    let mut first = rig.ask(1, None);
    let (mut server, output) = tokio::io::duplex(1024 * 1024);
    let reading = tokio::spawn(read(output, rig.exchange.clone()));
    let over = vec![b'x'; limits::size(limits::MCP_LINE_BYTES) + 1];
    server.write_all(&over).await.unwrap();
    server.write_all(b"\n").await.unwrap();
    assert_eq!(
        (&mut first.answer).await.unwrap(),
        Answer::Unreadable("sent a line of 33554433 bytes, and 33554432 are allowed".to_owned())
    );
    let second = rig.ask(2, None);
    server.write_all(b"\xEF\xBB\xBF noise\r\n{\"id\":2,\"result\":{}}\r\n").await.unwrap();
    assert!(matches!(second.answer.await.unwrap(), Answer::Message(_)));
    let third = rig.ask(3, None);
    // No end of the line, and the end of the output.
    server.write_all(b"{\"id\":3,\"result\":{}}").await.unwrap();
    drop(server);
    assert!(matches!(third.answer.await.unwrap(), Answer::Message(_)));
    reading.await.unwrap();
    assert!(rig.exchange.closed().is_cancelled());
}

#[tokio::test]
async fn a_line_without_an_end_fails_what_waits_all_the_same() {
    let rig = rig();
    let waiting = rig.ask(1, None);
    let (mut server, output) = tokio::io::duplex(1024 * 1024);
    let reading = tokio::spawn(read(output, rig.exchange.clone()));
    let over = vec![b'x'; limits::size(limits::MCP_LINE_BYTES) + 1];
    server.write_all(&over).await.unwrap();
    match waiting.answer.await.unwrap() {
        Answer::Unreadable(why) => assert!(why.starts_with("sent a line of more than 335"), "{why}"),
        other => panic!("{other:?}"),
    }
    let meanwhile = rig.ask(3, None);
    assert!(matches!(meanwhile.answer.await.unwrap(), Answer::Unreadable(_)), "nothing can come before the end of that line");
    let next = rig.ask(2, None);
    server.write_all(b"\n{\"id\":2,\"result\":{}}\n").await.unwrap();
    assert!(matches!(next.answer.await.unwrap(), Answer::Message(_)), "the end of that line fails nothing more");
    drop(server);
    reading.await.unwrap();
}

#[tokio::test]
async fn what_is_queued_is_written_before_the_input_ends() {
    let mut rig = rig();
    let (input, mut server) = tokio::io::duplex(64);
    let done = CancellationToken::new();
    let lines = std::mem::replace(&mut rig.lines, mpsc::channel(1).1);
    rig.exchange.write(b"one".to_vec()).unwrap();
    rig.exchange.write(b"two".to_vec()).unwrap();
    done.cancel();
    let writing = tokio::spawn(write(input, lines, rig.exchange.clone(), done));
    let mut text = String::new();
    server.read_to_string(&mut text).await.unwrap();
    assert_eq!(text, "one\ntwo\n");
    writing.await.unwrap();
    assert!(!rig.exchange.closed().is_cancelled());
}

#[tokio::test]
async fn a_server_that_takes_its_input_away_is_gone() {
    let mut rig = rig();
    let waiting = rig.ask(1, None);
    let (input, server) = tokio::io::duplex(64);
    drop(server);
    let lines = std::mem::replace(&mut rig.lines, mpsc::channel(1).1);
    write(input, lines, rig.exchange.clone(), CancellationToken::new()).await;
    assert_eq!(waiting.answer.await.unwrap(), Answer::Gone);
}

#[tokio::test]
async fn what_a_server_said_before_it_took_its_input_away_is_heard() {
    let mut rig = rig();
    let waiting = rig.ask(1, None);
    let (input, server) = tokio::io::duplex(64);
    drop(server);
    let lines = std::mem::replace(&mut rig.lines, mpsc::channel(1).1);
    let writing = tokio::spawn(write(input, lines, rig.exchange.clone(), CancellationToken::new()));
    // The writing has failed by now, and nothing was read yet.
    tokio::task::yield_now().await;
    let (mut server, output) = tokio::io::duplex(1024);
    server.write_all(b"{\"id\":1,\"result\":{}}\n").await.unwrap();
    drop(server);
    read(output, rig.exchange.clone()).await;
    assert!(matches!(waiting.answer.await.unwrap(), Answer::Message(_)));
    writing.await.unwrap();
}
