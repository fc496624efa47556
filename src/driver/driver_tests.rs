#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use std::sync::mpsc as channel;

use mission_contract::event::Outcome;
use mission_contract::log::{Leg, Open, ServerState, ToolDefinition, parse_line};
use mission_contract::spec::Spec;
use serde_json::{Value, json};

use super::*;
use crate::engine::delivery::Delivery;
use crate::journal::RunStore;
use crate::sys::clock::SystemClock;

/// A model that says these texts, and panics when it has nothing more to say.
struct Says(std::sync::Mutex<std::collections::VecDeque<&'static str>>);

impl Says {
    fn these(texts: &[&'static str]) -> Arc<Self> {
        Arc::new(Self(std::sync::Mutex::new(texts.iter().copied().collect())))
    }
}

impl ModelBackend for Says {
    fn leg(&self) -> Leg {
        Leg::default()
    }

    fn ask<'a>(
        &'a self,
        _: crate::engine::request::ModelRequest,
        _: mpsc::Sender<Delta>,
        _: CancellationToken,
    ) -> BoxFuture<'a, ModelReply> {
        async {
            let text = self.0.lock().unwrap().pop_front().unwrap_or_else(|| panic!("the model lost its mind"));
            ModelReply { reply: Reply { text: text.into(), ..Reply::default() }, ..ModelReply::default() }
        }
        .boxed()
    }
}

/// A plane whose calls and lists panic, and whose end does when it is told to.
struct Panics {
    at_the_end_too: bool,
}

impl ToolPlane for Panics {
    fn call(&self, _: crate::engine::request::ToolDispatch, _: CancellationToken) -> BoxFuture<'static, CallResult> {
        panic!("the tools lost their mind")
    }

    fn list(&self) -> BoxFuture<'static, Discovery> {
        async { panic!("the list is lost") }.boxed()
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        let at_the_end_too = self.at_the_end_too;
        async move { assert!(!at_the_end_too, "the end is lost") }.boxed()
    }
}

/// How a run ended, its records, and the lines of its log.
struct Told {
    ended: Ended,
    records: Vec<Value>,
    kinds: Vec<&'static str>,
}

async fn run(model: Arc<dyn ModelBackend>, tools: Panics) -> Told {
    run_before(model, tools, |_| {}).await
}

/// The same, with somebody who looks at every record when it goes out and holds the writer up meanwhile.
async fn run_before(
    model: Arc<dyn ModelBackend>,
    tools: impl ToolPlane + 'static,
    mut reader: impl FnMut(&Value) + Send + 'static,
) -> Told {
    let folder = tempfile::tempdir().unwrap();
    let store = RunStore::of(None, folder.path());
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
    let (sender, records) = channel::channel();
    let sink = move |delivery: &Delivery| {
        let record = serde_json::from_str(delivery.line()).unwrap();
        reader(&record);
        let _ = sender.send(record);
    };
    let log = RunLog::create(&store, "run_1-1", Arc::clone(&clock), vec![Box::new(sink)]).unwrap();
    let path = log.folder().unwrap().join("log.ndjson");
    let (_reports, plane_reports) = mpsc::channel(1);
    let (_sinks, sink_reports) = mpsc::unbounded_channel();
    let tool = ToolDefinition {
        server: "mcp".to_owned(),
        name: "add".to_owned(),
        input_schema: json!({"type": "object"}),
        ..ToolDefinition::default()
    };
    let server = ServerState { name: "mcp".to_owned(), ..ServerState::default() };
    let discovery = Discovery { servers: vec![server], tools: vec![tool], ..Discovery::default() };
    let open = Open { spec: Spec { objective: "Count.".to_owned(), ..Spec::default() }, ..Open::default() };
    let parts = Parts {
        log,
        model: Some(model),
        tools: Arc::new(tools),
        reports: plane_reports,
        sinks: sink_reports,
        redactor: Arc::default(),
        clock,
        signals: EndSignals::deaf().unwrap(),
        grace: Duration::from_secs(60),
        desk: Desk {
            approvals: crate::approvals::Approvals::of(Some("none"), folder.path(), None),
            objective: String::new(),
            run_id: "run_1-1".to_owned(),
            expiry: None,
            redactor: Arc::default(),
            clock: Arc::new(SystemClock::start()),
        },
        outside: super::Outside::default(),
        auditing: Auditing { file: None, run_id: "run_1-1".to_owned(), profile: "safe".to_owned() },
    };
    let ended = drive(
        Opening { beginning: Beginning::Fresh(Box::new(open)), leg: Some(Leg::default()), discovery, observed: Vec::new() },
        parts,
    )
    .await;
    let log = std::fs::read(&path).unwrap();
    let kinds = log.split_inclusive(|byte| *byte == b'\n').map(|line| parse_line(line).unwrap().entry.kind()).collect();
    Told { ended, records: records.iter().collect(), kinds }
}

/// The names of the records, the end being the last of them.
fn ends_once(told: &Told) -> Vec<&str> {
    let names: Vec<&str> = told.records.iter().map(|record| record["event"].as_str().unwrap()).collect();
    assert_eq!(names.iter().filter(|name| **name == "mission_finished").count(), 1, "{names:?}");
    assert_eq!(names.last(), Some(&"mission_finished"), "{names:?}");
    names
}

const ADD: &str = r#"{"tool": "mcp.add", "arguments": {}}"#;

#[tokio::test]
async fn a_run_that_goes_well_leaves_nothing_to_say() {
    let told = run(Says::these(&[r#"{"answer": "5"}"#]), Panics { at_the_end_too: false }).await;
    assert_eq!(ends_once(&told), ["mission_started", "step_started", "answer", "mission_finished"]);
    assert_eq!((told.ended.internal, told.ended.journal), (None, None));
    assert_eq!(told.ended.ending.unwrap().outcome, Outcome::Answered);
}

#[tokio::test]
async fn a_model_that_panics_ends_the_run_and_is_told() {
    let told = run(Says::these(&[]), Panics { at_the_end_too: true }).await;
    assert_eq!(ends_once(&told), ["mission_started", "step_started", "notice", "mission_finished"]);
    assert_eq!(told.records.last().unwrap()["outcome"], "incomplete");
    assert_eq!(told.ended.internal.as_deref(), Some("The program failed inside: the model lost its mind"));
    assert_eq!(told.ended.journal, None);
    assert_eq!(told.kinds[told.kinds.len() - 3..], ["closed", "record", "record"]);
}

#[tokio::test]
async fn tools_that_panic_end_the_run_and_are_told() {
    let told = run(Says::these(&[ADD]), Panics { at_the_end_too: false }).await;
    assert_eq!(ends_once(&told), ["mission_started", "step_started", "tool_call", "notice", "mission_finished"]);
    assert!(told.records[3]["detail"].as_str().unwrap().ends_with("the tools lost their mind"));
    assert!(told.kinds.contains(&"intent") && !told.kinds.contains(&"result"), "its effect is in doubt: {:?}", told.kinds);
    let told = run(Says::these(&[r#"{"tool": "nope"}"#]), Panics { at_the_end_too: false }).await;
    assert_eq!(ends_once(&told), ["mission_started", "step_started", "reply_rejected", "notice", "mission_finished"]);
    assert!(told.ended.internal.unwrap().ends_with("the list is lost"));
}

/// A model that says when it was asked.
struct Tells(Arc<Says>, channel::Sender<()>);

impl ModelBackend for Tells {
    fn leg(&self) -> Leg {
        Leg::default()
    }

    fn ask<'a>(
        &'a self,
        request: crate::engine::request::ModelRequest,
        deltas: mpsc::Sender<Delta>,
        cancel: CancellationToken,
    ) -> BoxFuture<'a, ModelReply> {
        async move {
            let _ = self.1.send(());
            self.0.ask(request, deltas, cancel).await
        }
        .boxed()
    }
}

/// A plane whose every result fills the journal's queue.
struct Large;

impl ToolPlane for Large {
    fn call(&self, _: crate::engine::request::ToolDispatch, _: CancellationToken) -> BoxFuture<'static, CallResult> {
        let text = "x".repeat(crate::limits::size(crate::limits::JOURNAL_QUEUE_BYTES) + 1);
        async { CallResult { text: text.into(), ..CallResult::default() } }.boxed()
    }

    fn list(&self) -> BoxFuture<'static, Discovery> {
        async { panic!("nothing is listed twice") }.boxed()
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        async {}.boxed()
    }
}

#[tokio::test]
async fn the_model_is_asked_while_a_large_result_is_still_being_written() {
    let (sender, asked) = channel::channel();
    let model = Arc::new(Tells(Says::these(&[ADD, r#"{"answer": "done"}"#]), sender));
    let told = run_before(model, Large, move |record| {
        if record["event"] == "tool_result" {
            for ask in ["the first", "the second"] {
                assert!(asked.recv_timeout(Duration::from_secs(20)).is_ok(), "{ask} ask waits for the disk and the readers");
            }
        }
    })
    .await;
    assert_eq!(told.ended.ending.unwrap().outcome, Outcome::Answered);
    assert_eq!(told.ended.journal, None);
}
