#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use mission_contract::log::{CallEnd, Control, Entry, Reply, ReplyEnd};
use mission_contract::spec::Protocol;

use super::Disposition::{Applied, Dropped, Late, Queued, Refused};
use super::{Disposition, Verdict};
use crate::engine::run_story::{ADD, Story, add, call};
use crate::limits;

fn word(word: &str, text: &str) -> Control {
    Control { word: word.to_owned(), text: Some(text.to_owned()).filter(|text| !text.is_empty()), ..Control::default() }
}

/// Says a word; what becomes of it and what the run does.
fn says(story: &mut Story, control: &Control) -> (Disposition, String) {
    let Verdict { disposition, counts } = story.run.weigh(control);
    let done = if counts { story.input(Entry::Control(control.clone())) } else { String::new() };
    (disposition, done)
}

/// A run that waits a second for people.
fn waiting() -> Story {
    let mut story = Story::new(Protocol::Json);
    story.spec.gate_wait_ms = Some(1000);
    story.begun()
}

fn last_injected(story: &Story) -> Vec<String> {
    let mut steps = story.events.iter().filter_map(|event| match event {
        mission_contract::event::Event::StepStarted(step) => Some(step.injected.clone()),
        _ => None,
    });
    steps.next_back().unwrap()
}

#[test]
fn what_is_injected_is_heard_with_the_next_question_in_its_order() {
    let mut story = Story::json();
    assert_eq!(says(&mut story, &word("inject", "Use even numbers.")), (Queued, String::new()));
    assert_eq!(says(&mut story, &word("inject", "Be quick.")).0, Queued);
    story.says(ADD);
    assert_eq!(says(&mut story, &word("steer", "Stop adding.")), (Queued, String::new()), "a tool is not touched");
    assert_eq!(says(&mut story, &word("steer", "Multiply.")).0, Queued);
    insta::assert_snapshot!(story.returns("5"), @r#"
    {"event":"tool_result","index":0,"tool":"mcp.add","arguments":{"a":2,"b":3},"ok":true,"exit_code":0,"output":"5","error":"","handle":"r1","truncated":false}
    {"event":"step_started","index":1,"injected":["Stop adding.","Multiply.","Use even numbers.","Be quick."]}
    ask 2
    Assistant: {"tool": "mcp.add", "arguments": {"a": 2, "b": 3}}
    User: Result of mcp.add, ok (r1):
    5
    User: Stop adding.
    User: Multiply.
    User: Use even numbers.
    User: Be quick.
    "#);
    story.says(ADD);
    story.returns("5");
    assert_eq!(last_injected(&story), Vec::<String>::new(), "heard once");
}

#[test]
fn a_model_that_is_steered_is_interrupted_and_what_it_had_said_is_kept() {
    let mut story = Story::json();
    says(&mut story, &word("inject", "Be quick."));
    assert_eq!(says(&mut story, &word("steer", "Say it in French.")), (Applied, "cut the ask".to_owned()));
    assert_eq!(says(&mut story, &word("steer", "Or in Latin.")), (Applied, String::new()), "it is interrupted once");
    insta::assert_snapshot!(story.replies(Reply { end: ReplyEnd::Interrupted, text: r#"{"answer": "The su"#.into(), ..Reply::default() }), @r#"
    {"event":"step_started","index":1,"injected":["Say it in French.","Or in Latin.","Be quick."]}
    ask 2
    Assistant: {"answer": "The su
    User: Say it in French.
    User: Or in Latin.
    User: Be quick.
    "#);
    assert!(story.says(r#"{"answer": "Cinq."}"#).contains("answered"));
}

#[test]
fn a_reply_that_was_whole_by_then_is_heard_and_not_acted_upon() {
    for protocol in [Protocol::Json, Protocol::Native] {
        let mut story = Story::new(protocol).begun();
        says(&mut story, &word("steer", "Wait."));
        let reply = match protocol {
            Protocol::Json => Reply { text: ADD.into(), ..Reply::default() },
            Protocol::Native => Reply { text: "I add.".into(), calls: vec![add("a")], ..Reply::default() },
        };
        let done = story.replies(reply);
        assert!(!done.contains("dispatch") && done.contains("ask 2") && done.ends_with("User: Wait."), "{done}");
    }
    // Nothing was said: there is nothing to keep.
    let mut story = Story::native();
    says(&mut story, &word("steer", "Wait."));
    let done = story.replies(Reply { end: ReplyEnd::Interrupted, ..Reply::default() });
    assert!(!done.contains("Assistant"), "{done}");
}

#[test]
fn a_step_is_cancelled_before_its_call() {
    let mut story = Story::json();
    assert_eq!(says(&mut story, &word("cancel_step", "")), (Applied, String::new()));
    insta::assert_snapshot!(story.says(ADD), @r#"
    {"event":"notice","code":"calls_skipped","detail":"Proposed and not called, because the operator cancelled this step: `mcp.add`.","index":0}
    {"event":"step_started","index":1}
    ask 2
    Assistant: {"tool": "mcp.add", "arguments": {"a": 2, "b": 3}}
    User: `mcp.add` was proposed and not called: the operator cancelled this step.
    "#);
    assert!(story.says(ADD).contains("dispatch"), "one step only");
}

#[test]
fn what_is_left_of_a_step_is_skipped_and_what_goes_on_is_not() {
    let mut story = Story::native();
    story.calls(vec![add("a"), add("b"), call("c", "mcp_echo", r#"{"text": "x"}"#)]);
    assert_eq!(says(&mut story, &word("cancel_step", "")), (Applied, String::new()));
    assert_eq!(says(&mut story, &word("cancel_step", "")).0, Applied);
    let done = story.returns("5");
    assert!(done.contains("`mcp_add`") || done.contains("`mcp.add`"), "{done}");
    assert!(!done.contains("dispatch") && done.contains("Tool for c") && done.contains("ask 2"), "{done}");
    assert_eq!(last_injected(&story), Vec::<String>::new());
    // Said to wait for the step, a text takes it over.
    story.calls(vec![add("d"), add("e")]);
    assert_eq!(says(&mut story, &word("steer", "Enough.")).0, Queued);
    let done = story.returns("5");
    assert!(
        !done.contains("dispatch") && done.contains("has something to say first") && done.ends_with("User: Enough."),
        "{done}"
    );
}

#[test]
fn a_step_that_has_nothing_left_is_not_cancelled_and_the_model_is_told() {
    let mut story = Story::json();
    story.says(ADD);
    assert_eq!(says(&mut story, &word("cancel_step", "")), (Late, String::new()));
    assert!(story.run.weigh(&word("cancel_step", "")).counts);
    let done = story.returns("5");
    assert!(done.contains("\"injected\":[\"The operator wanted to cancel the step before this one."), "{done}");
    // The same where the reply called nothing at all.
    says(&mut story, &word("cancel_step", ""));
    assert!(story.says("neither").contains("It was too late"));
    assert!(!story.says(ADD).contains("too late"), "told once");
}

#[test]
fn what_ends_a_run_comes_first_and_once() {
    let mut story = Story::json();
    says(&mut story, &word("inject", "Later."));
    assert_eq!(says(&mut story, &word("cancel", "")), (Applied, "abort the ask".to_owned()));
    for late in ["cancel", "inject", "steer", "cancel_step"] {
        assert_eq!(story.run.weigh(&word(late, "x")), Verdict { disposition: Late, counts: false }, "{late}");
    }
    assert!(story.ends(ReplyEnd::Interrupted).contains("\"reason\":\"cancelled\""));
    assert_eq!(story.run.weigh(&word("cancel", "")).disposition, Late);
    // Whoever takes the run up hears what was said before.
    assert!(story.taken_up().contains("\"injected\":[\"Later.\"]"));
}

#[test]
fn a_run_that_is_steered_and_cancelled_ends() {
    let mut story = Story::json();
    says(&mut story, &word("steer", "Wait."));
    assert_eq!(says(&mut story, &word("cancel", "")).1, "abort the ask");
    assert!(story.ends(ReplyEnd::Interrupted).contains("\"reason\":\"cancelled\""));
    let up = story.taken_up();
    assert!(up.contains("\"injected\":[\"Wait.\"]"), "{up}");
    assert!(story.says(ADD).contains("dispatch"), "it was the process before that was steered away");
}

#[test]
fn a_call_that_waits_for_a_person_is_skipped_and_its_gate_is_left() {
    let mut story = Story::new(Protocol::Native);
    story.spec.gates = vec!["mcp.add".to_owned()];
    story.spec.gate_wait_ms = Some(1000);
    let mut story = story.begun();
    story.calls(vec![add("a"), add("b")]);
    let id = story.run.waits_for_decision().unwrap().to_owned();
    assert_eq!(story.run.standing().waiting_on, id);
    let decision = |approval_id: &str| Control { approval_id: Some(approval_id.to_owned()), ..word("gate_decision", "") };
    assert_eq!(says(&mut story, &decision("ap_other")).0, Refused);
    assert_eq!(says(&mut story, &decision(&id)), (Applied, String::new()), "it is spent elsewhere");
    assert_eq!(says(&mut story, &word("inject", "x")).0, Queued);
    let (disposition, done) = says(&mut story, &word("cancel_step", ""));
    assert_eq!(disposition, Applied);
    assert!(done.starts_with("leave the gate\n") && done.contains("ask 2") && !done.contains("dispatch"), "{done}");
    assert_eq!(says(&mut story, &decision(&id)).0, Refused);
    assert!(story.run.waits_for_decision().is_none());
}

#[test]
fn a_call_in_doubt_stays_so_when_its_gate_is_left() {
    let mut story = waiting();
    story.says(ADD);
    story.fails(CallEnd::Timeout, "gone");
    assert!(story.says(ADD).contains("await"), "the same call is a question");
    assert!(says(&mut story, &word("cancel_step", "")).1.contains("ask 3"));
    assert!(story.says(ADD).contains("await"), "and stays one");
    // One that a crash left: its result is still owed.
    let mut story = waiting();
    story.says(ADD);
    assert!(story.taken_up().contains("await"));
    let done = says(&mut story, &word("cancel_step", "")).1;
    assert!(done.contains("\"event\":\"tool_result\"") && done.contains("is unknown") && done.contains("ask 2"), "{done}");
    assert!(story.says(ADD).contains("await"));
}

#[test]
fn what_waits_to_be_heard_is_bounded() {
    let mut story = Story::json();
    for _ in 0..limits::CONTROL_WAITING {
        assert_eq!(says(&mut story, &word("inject", "x")).0, Queued);
    }
    assert_eq!(says(&mut story, &word("inject", "x")), (Dropped, String::new()));
    assert_eq!(says(&mut story, &word("steer", "x")), (Dropped, String::new()));
    assert_eq!(says(&mut story, &word("cancel", "")).0, Applied);
    let mut story = Story::json();
    let long = "x".repeat(limits::size(limits::CONTROL_WAITING_BYTES));
    assert_eq!(says(&mut story, &word("inject", &long)).0, Queued);
    assert_eq!(says(&mut story, &word("inject", "x")).0, Dropped);
}

#[test]
fn what_a_run_does_is_said() {
    let mut story = Story::json();
    let state = |story: &Story| story.run.standing().state;
    assert_eq!(state(&story), "asking");
    let asking = story.run.standing();
    story.says(ADD);
    assert_eq!((state(&story), story.run.standing().waiting_on.as_str()), ("calling", "mcp.add"));
    story.returns("5");
    assert_ne!(story.run.standing(), asking, "another question");
    story.says(r#"{"tool": "mcp.nope", "arguments": {}}"#);
    assert_eq!(state(&story), "listing");
    story.cancel();
    assert_eq!(state(&story), "winding_up");
}
