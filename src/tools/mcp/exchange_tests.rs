//! Who gets which answer.
#![allow(clippy::unwrap_used, clippy::panic)]

use super::super::frame::{Shape, shape};
use super::*;

pub(crate) struct Rig {
    pub(crate) exchange: Arc<Exchange>,
    pub(crate) outgoing: mpsc::Receiver<Outgoing>,
    pub(crate) answered: mpsc::Receiver<Id>,
    pub(crate) events: mpsc::Receiver<PlaneEvent>,
}

/// An exchange without a server.
pub(crate) fn rig() -> Rig {
    let (sender, events) = mpsc::channel(1024);
    let (exchange, outgoing, answered) =
        Exchange::new(Reports { server: "srv".to_owned(), events: sender, secrets: Secrets::default() });
    Rig { exchange, outgoing, answered, events }
}

impl Rig {
    /// The codes of what was told.
    pub(crate) fn told(&mut self) -> Vec<String> {
        let mut told = Vec::new();
        while let Ok(event) = self.events.try_recv() {
            told.push(match event {
                PlaneEvent::Observed(observed) => observed.what,
                PlaneEvent::Stale { .. } => "stale".to_owned(),
            });
        }
        told
    }

    /// What was written to the server.
    pub(crate) fn written(&mut self) -> Vec<String> {
        let mut written = Vec::new();
        while let Ok(outgoing) = self.outgoing.try_recv() {
            written.push(String::from_utf8(outgoing.line).unwrap());
        }
        written
    }

    pub(crate) fn ask(&self, id: i64, call: Option<u64>) -> Awaited {
        let (waiter, awaited) = waiter(Asked { call, ..Asked::of("tools/call") });
        self.exchange.send(Id::Number(id), Some(Id::Number(id.saturating_add(100))), b"{}".to_vec(), &waiter);
        awaited
    }
}

pub(crate) fn answer_line(line: &str) -> Message {
    match shape(line.as_bytes()) {
        Shape::Object(outline) => Message::new(line.as_bytes().to_vec(), &outline),
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_answer_goes_to_who_asked_and_only_once() {
    let mut rig = rig();
    let (mut one, mut two) = (rig.ask(1, None), rig.ask(2, None));
    assert!(rig.exchange.answer(&Id::Number(2), answer_line(r#"{"id":2,"result":2}"#)));
    assert!(!rig.exchange.answer(&Id::Number(2), answer_line(r#"{"id":2,"result":3}"#)));
    assert!(!rig.exchange.answer(&Id::Number(9), answer_line(r#"{"id":9,"result":3}"#)));
    assert!(matches!(two.answer.try_recv().unwrap(), Answer::Message(message) if message.result() == Some(b"2")));
    assert!(one.answer.try_recv().is_err());
    assert_eq!(rig.answered.try_recv().unwrap(), Id::Number(2));
    assert!(rig.answered.try_recv().is_err());
    rig.exchange.close();
    assert_eq!(one.answer.try_recv().unwrap(), Answer::Gone);
    let mut late = rig.ask(3, None);
    assert_eq!(late.answer.try_recv().unwrap(), Answer::NotSent("is gone".to_owned()));
}

#[test]
fn an_answer_after_its_call_was_given_up_is_told_and_not_taken() {
    let mut rig = rig();
    let mut call = rig.ask(1, Some(7));
    rig.exchange.give_up(&Id::Number(1));
    assert!(rig.exchange.answer(&Id::Number(1), answer_line(r#"{"id":1,"result":{}}"#)));
    assert!(call.answer.try_recv().is_err());
    match rig.events.try_recv().unwrap() {
        PlaneEvent::Observed(observed) => assert_eq!((observed.what.as_str(), observed.of), ("late_result", Some(7))),
        other => panic!("{other:?}"),
    }
    assert!(!rig.exchange.answer(&Id::Number(1), answer_line(r#"{"id":1,"result":{}}"#)));
    assert!(rig.told().is_empty());
}

#[test]
fn what_names_no_request_is_for_the_only_one() {
    let rig = rig();
    let unreadable = || Answer::Unreadable("x".to_owned());
    assert!(!rig.exchange.answer_the_only_one(unreadable));
    let mut one = rig.ask(1, None);
    let two = rig.ask(2, None);
    assert!(!rig.exchange.answer_the_only_one(unreadable));
    rig.exchange.give_up(&Id::Number(2));
    drop(two);
    assert!(rig.exchange.answer_the_only_one(unreadable));
    assert_eq!(one.answer.try_recv().unwrap(), unreadable());
}

#[tokio::test]
async fn only_progress_that_grows_is_a_sign_of_life() {
    let rig = rig();
    let call = rig.ask(1, Some(1));
    let token = Id::Number(101);
    let woken = async || {
        tokio::select! {
            biased;
            () = call.progress.notified() => true,
            () = std::future::ready(()) => false,
        }
    };
    rig.exchange.progress(&token, 1.0);
    assert!(woken().await);
    rig.exchange.progress(&token, 1.0);
    rig.exchange.progress(&token, 0.5);
    rig.exchange.progress(&token, f64::NAN);
    rig.exchange.progress(&Id::Number(1), 2.0);
    assert!(!woken().await);
    rig.exchange.progress(&token, 1.5);
    assert!(woken().await);
}

#[tokio::test]
async fn progress_is_a_sign_of_life_so_many_times_and_no_more() {
    let rig = rig();
    let awaited = rig.ask(1, Some(1));
    let token = Id::Number(101);
    let mut heard = 0;
    for number in 0..limits::MCP_PROGRESS_REPORTS + 5 {
        rig.exchange.progress(&token, number as f64);
        heard += u64::from(futures_util::FutureExt::now_or_never(awaited.progress.notified()).is_some());
    }
    assert_eq!(heard, limits::MCP_PROGRESS_REPORTS);
}

#[test]
fn so_many_calls_that_were_given_up_are_remembered() {
    let mut rig = rig();
    let many = i64::try_from(limits::MCP_LATE_CALLS).unwrap() + 1;
    for id in 0..many {
        rig.ask(id, Some(1));
        rig.exchange.give_up(&Id::Number(id));
    }
    let late = |id: i64| rig.exchange.answer(&Id::Number(id), answer_line(r#"{"jsonrpc":"2.0","id":0,"result":{}}"#));
    assert!(!late(0), "the oldest is forgotten");
    assert!(late(1) && late(many - 1));
    assert_eq!(rig.told(), ["late_result"; 2]);
}

#[test]
fn a_server_that_does_not_read_is_not_waited_for() {
    let mut rig = rig();
    for _ in 0..limits::MCP_QUEUE_MESSAGES {
        rig.exchange.notify(b"x".to_vec()).unwrap();
    }
    let mut call = rig.ask(1, None);
    assert_eq!(call.answer.try_recv().unwrap(), Answer::NotSent("does not read what is written to it".to_owned()));
    assert_eq!(rig.written().len(), limits::MCP_QUEUE_MESSAGES as usize);
    drop(rig.outgoing);
    assert_eq!(rig.exchange.notify(Vec::new()), Err("has closed its input"));
}

#[tokio::test]
async fn changes_of_a_list_that_come_together_are_one() {
    let mut rig = rig();
    rig.exchange.list_changed();
    rig.exchange.list_changed();
    assert!(matches!(rig.events.recv().await, Some(PlaneEvent::Stale { server }) if server == "srv"));
    assert!(rig.told().is_empty());
    rig.exchange.list_changed();
    assert!(matches!(rig.events.recv().await, Some(PlaneEvent::Stale { .. })));
}
