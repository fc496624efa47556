//! Lines of a server, in and out.
#![allow(clippy::unwrap_used, clippy::panic)]

use super::super::exchange::Answer;
use super::super::exchange::tests::rig;
use super::*;

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
    let outgoing = std::mem::replace(&mut rig.outgoing, mpsc::channel(1).1);
    rig.exchange.notify(b"one".to_vec()).unwrap();
    rig.exchange.notify(b"two".to_vec()).unwrap();
    done.cancel();
    let writing = tokio::spawn(write(input, outgoing, rig.exchange.clone(), done));
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
    let outgoing = std::mem::replace(&mut rig.outgoing, mpsc::channel(1).1);
    write(input, outgoing, rig.exchange.clone(), CancellationToken::new()).await;
    assert_eq!(waiting.answer.await.unwrap(), Answer::Gone);
}

#[tokio::test]
async fn what_a_server_said_before_it_took_its_input_away_is_heard() {
    let mut rig = rig();
    let waiting = rig.ask(1, None);
    let (input, server) = tokio::io::duplex(64);
    drop(server);
    let lines = std::mem::replace(&mut rig.outgoing, mpsc::channel(1).1);
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
