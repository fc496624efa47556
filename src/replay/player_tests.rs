#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use std::sync::Arc;

use mission_contract::LOG_FORMAT;
use mission_contract::log::{Line, Observed, ServerState, ToolDefinition, Writer};
use mission_contract::spec::Spec;
use mission_contract::text::Text;
use serde_json::{Value, json};

use super::*;

/// What comes in, in order; what comes out is made of it by the engine itself.
enum In {
    Says(&'static str),
    Comes(&'static str),
    Told(Entry),
}

/// A recording of a run with the tool `mcp.add` and these inputs.
fn recording(inputs: Vec<In>) -> Recording {
    recorded(lines(inputs))
}

fn recorded(lines: Vec<Entry>) -> Recording {
    let lines = (1..).zip(lines).map(|(seq, entry)| {
        Ok::<_, String>(Line {
            seq,
            group: seq,
            at: String::new(),
            ms: 10 * seq,
            branch: None,
            prev: String::new(),
            entry,
            sum: String::new(),
        })
    });
    Recording::from_log("it", lines).unwrap()
}

/// The lines of its log.
fn lines(inputs: Vec<In>) -> Vec<Entry> {
    let tool = |name: &str| ToolDefinition {
        server: "mcp".into(),
        name: name.into(),
        input_schema: json!({"type": "object"}),
        ..ToolDefinition::default()
    };
    let open = Open {
        format: LOG_FORMAT,
        run_id: "run_1-1".into(),
        spec: Spec { objective: "Add.".into(), ..Spec::default() },
        ..Open::default()
    };
    let servers = vec![ServerState { name: "mcp".into(), ..ServerState::default() }];
    let begin = [
        Entry::Open(Box::new(open)),
        Entry::Catalogue(Catalogue { servers, tools: vec![tool("add"), tool("sum")], ..Catalogue::default() }),
    ];
    let (mut run, mut lines, mut asks, mut calls) = (Run::default(), Vec::new(), 0, 0);
    let inputs = inputs.into_iter().map(|input| match input {
        In::Says(text) => Entry::Reply(Reply { text: text.into(), ..Reply::default() }),
        In::Comes(text) => Entry::Result(CallResult { text: text.into(), ..CallResult::default() }),
        In::Told(entry) => entry,
    });
    for mut entry in begin.into_iter().chain(inputs) {
        match &mut entry {
            Entry::Reply(reply) => {
                asks += 1;
                reply.of = asks;
            }
            Entry::Result(result) => {
                calls += 1;
                result.of = calls;
            }
            _ => {}
        }
        let seq = lines.len() as u64 + 1;
        let effects = run.apply(seq, 10 * seq, &entry).unwrap();
        lines.push(entry);
        for effect in effects {
            match effect {
                Effect::Emit { event, .. } => lines.push(Entry::Record(serde_json::value::to_raw_value(&event).unwrap())),
                Effect::Ask { ask, .. } => lines.push(Entry::Ask(*ask)),
                Effect::Dispatch { intent, .. } => lines.push(Entry::Intent(*intent)),
                Effect::AbortAsk
                | Effect::CutAsk
                | Effect::Arm { .. }
                | Effect::LeaveGate
                | Effect::CancelCall
                | Effect::OpenGate(_)
                | Effect::AwaitDecision { .. }
                | Effect::Claim { .. }
                | Effect::ListAgain
                | Effect::Audit(_)
                | Effect::Finish(_) => {}
            }
        }
    }
    lines
}

fn play(recording: &Recording, open: Open) -> (Vec<Value>, Replayed) {
    let mut player = Player::new(recording, open, Redactor::default());
    let mut events = Vec::new();
    while let Some(told) = player.advance().unwrap() {
        events.extend(told.iter().map(|event| serde_json::to_value(event).unwrap()));
    }
    (events, player.replayed())
}

fn again(recording: &Recording) -> (Vec<Value>, Replayed) {
    play(recording, recording.open.clone())
}

const ADD: &str = r#"{"tool": "mcp.add", "arguments": {"a": 1}}"#;
const DONE: &str = r#"{"answer": "done"}"#;

fn control() -> Entry {
    Entry::Control(Control { word: "cancel".into(), ..Control::default() })
}

fn seen(detail: &str) -> Entry {
    Entry::Observed(Observed { what: "server_noise".into(), detail: detail.into(), ..Observed::default() })
}

#[test]
fn the_k_th_call_gets_the_k_th_result() {
    let recording = recording(vec![In::Says(ADD), In::Comes("one"), In::Says(ADD), In::Comes("two"), In::Says(DONE)]);
    let (events, replayed) = again(&recording);
    let outputs: Vec<&Value> =
        events.iter().filter(|event| event["event"] == "tool_result").map(|event| &event["output"]).collect();
    assert_eq!(outputs, ["one", "two"]);
    assert_eq!((replayed.verdict, replayed.steps), (ReplayVerdict::Same, 3));
    assert_eq!(replayed.ending.unwrap().outcome, Outcome::Answered);
}

#[test]
fn a_call_that_was_not_recorded_is_told_so_and_the_replay_goes_on() {
    let recording = recording(vec![In::Says(ADD), In::Comes("one"), In::Says(DONE)]);
    let mut other = recording.open.clone();
    // The tool is another one for the model under this set.
    other.spec.allowed_tools = Some(vec!["mcp.sum".into()]);
    let (events, replayed) = play(&recording, other);
    assert_eq!(replayed.verdict, ReplayVerdict::Decision);
    assert!(events.iter().any(|event| event["event"] == "answer"), "{events:?}");
    let mut spoilt = recording;
    spoilt.results.clear();
    let (events, replayed) = again(&spoilt);
    let result = events.iter().find(|event| event["event"] == "tool_result").unwrap();
    assert_eq!((&result["ok"], &result["exit_code"]), (&json!(false), &json!(-1)));
    assert!(result["error"].as_str().unwrap().starts_with("not_in_recording: "), "{result}");
    assert_eq!(replayed.verdict, ReplayVerdict::Decision);
    assert_eq!(replayed.ending.unwrap().outcome, Outcome::Answered);
}

#[test]
fn what_came_from_outside_comes_after_as_many_replies_and_results() {
    let inputs = vec![
        In::Told(seen("while the model was asked first")),
        In::Says(ADD),
        In::Told(seen("in the call")),
        In::Comes("one"),
        In::Told(seen("while the model was asked again")),
        In::Told(control()),
        In::Told(Entry::Reply(Reply { end: ReplyEnd::Interrupted, text: Text::Inline(Arc::from("")), ..Reply::default() })),
    ];
    let recording = recording(inputs);
    let (events, replayed) = again(&recording);
    assert_eq!(replayed.verdict, ReplayVerdict::Same, "{:?}", replayed.drift);
    let names: Vec<&str> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    insta::assert_snapshot!(names.join(" "), @"mission_started step_started notice tool_call notice tool_result step_started notice mission_finished");
    assert_eq!(events.last().unwrap()["reason"], "cancelled");
}

#[test]
fn a_recording_without_an_ending_ends_where_it_ends() {
    for (inputs, place) in [
        (vec![In::Says(ADD), In::Comes("one")], "The recording ends where the model is asked for the 2nd time."),
        (vec![In::Says(ADD)], "The recording ends in a call of `mcp.add`."),
    ] {
        let (events, replayed) = again(&recording(inputs));
        assert_eq!((replayed.verdict, replayed.ran_out.as_deref()), (ReplayVerdict::Same, Some(place)));
        assert_eq!(events.last().unwrap()["outcome"], "incomplete");
        assert_eq!(events[events.len() - 2]["code"], "run_closed");
    }
}

#[test]
fn a_replay_that_needs_more_than_was_recorded_drifts() {
    let mut recording = recording(vec![In::Says(DONE)]);
    recording.replies.values_mut().for_each(|replies| replies[0].as_mut().unwrap().what.text = ADD.into());
    let (_, replayed) = again(&recording);
    assert_eq!(replayed.verdict, ReplayVerdict::Decision);
    assert!(replayed.ran_out.is_some());
}

#[test]
fn somebody_who_ends_a_replay_gets_an_ending() {
    let recording = recording(vec![In::Says(ADD), In::Comes("one"), In::Says(DONE)]);
    for steps in 0..8 {
        let mut player = Player::new(&recording, recording.open.clone(), Redactor::default());
        let mut events: Vec<Event> = Vec::new();
        for _ in 0..steps {
            events.extend(player.advance().unwrap().unwrap_or_default());
        }
        // Before it has begun there is nothing to end.
        let begun = steps >= 2;
        events.extend(player.cancel("SIGTERM").unwrap());
        while let Ok(Some(told)) = player.advance() {
            events.extend(told);
        }
        let ends = events.iter().filter(|event| matches!(event, Event::MissionFinished(_))).count();
        assert_eq!(ends, usize::from(begun), "{steps}: {events:?}");
        assert_ne!(player.replayed().verdict, ReplayVerdict::Decision);
    }
}

#[test]
fn what_a_crash_lost_and_the_next_process_wrote_is_no_drift() {
    let whole = || lines(vec![In::Says(ADD), In::Comes("one"), In::Says(DONE)]);
    let place = |is_it: fn(&Entry) -> bool| whole().iter().rposition(is_it).unwrap();
    // A call's intent that was lost is decided upon again, by whoever lists the servers again.
    let intent = place(|entry| matches!(entry, Entry::Intent(_)));
    let mut lost = whole();
    lost.splice(
        intent..intent,
        [Entry::Writer(Writer { epoch: 2, ..Writer::default() }), Entry::Catalogue(Catalogue::default())],
    );
    // The end of a run that was over is told by whoever looks.
    let reply = place(|entry| matches!(entry, Entry::Reply(_)));
    let mut over = whole();
    over.insert(reply + 1, Entry::Writer(Writer { epoch: 2, ..Writer::default() }));
    for (what, lines) in [("the intent", lost), ("the end", over)] {
        let (events, replayed) = again(&recorded(lines));
        // The step behind the crash does not say here that the run was resumed: that is a text.
        assert_ne!(replayed.verdict, ReplayVerdict::Decision, "{what}: {:?}", replayed.drift);
        let ends: Vec<&Value> = events.iter().filter(|event| event["event"] == "mission_finished").collect();
        assert_eq!((ends.len(), &ends[0]["outcome"]), (1, &json!("answered")), "{what}");
        assert_eq!(replayed.ran_out, None, "{what}");
    }
}
