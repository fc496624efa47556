#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use mission_contract::digest::{call_digest, definition_digest};
use mission_contract::event::Outcome;
use mission_contract::log::{Decision, Entry, Timer, Writer};
use mission_contract::spec::{ApprovedCall, GateRule, Protocol};
use serde_json::json;

use super::GATE_TIMER;
use crate::engine::run_story::{ADD, Story, add, add_properties, call, tool};

/// A run in which `mcp.add` needs a person, who is waited for so long.
fn gated(protocol: Protocol, wait: Option<u64>) -> Story {
    let mut story = Story::new(protocol);
    story.spec.gates = vec!["mcp.add".to_owned()];
    story.spec.gate_wait_ms = wait;
    story.begun()
}

fn says(story: &mut Story, answer: &str) -> String {
    let approval_id = story.run.awaits().unwrap().approval_id;
    let (by, note) = ("ana".to_owned(), Some("I looked.".to_owned()));
    story.input(Entry::Decision(Decision { approval_id, answer: answer.to_owned(), by, note, content: None }))
}

/// Another run that is asked the same.
fn with(story: &Story) -> Story {
    let mut other = Story::new(Protocol::Json);
    other.spec = story.spec.clone();
    other.begun()
}

#[test]
fn a_gated_call_is_proposed_and_not_made() {
    let mut story = gated(Protocol::Json, None);
    assert!(
        story.request.as_ref().unwrap().messages[0].content.as_str().contains("- mcp.add (needs a person's approval): Does add.")
    );
    insta::assert_snapshot!(story.says(ADD), @r#"
    gate ap_c5d1dcfafcfe34b9 mcp.add {"a":2,"b":3}
    {"event":"gate_requested","index":0,"tool":"mcp.add","arguments":{"a":2,"b":3},"reason":"`mcp.add` needs a person's approval: it was proposed with these arguments and not called.","approval_id":"ap_c5d1dcfafcfe34b9"}
    {"event":"mission_finished","outcome":"awaiting_approval","steps":0,"max_steps":0,"elapsed_s":1.5}
    finish Ending { outcome: AwaitingApproval, failure: None, signal: None }
    "#);
    assert_eq!(story.run.outcome(), Some(Outcome::AwaitingApproval));
    assert!(story.intents.is_empty());
    // What cannot be called is not proposed.
    let mut story = gated(Protocol::Json, None);
    let told = story.says(r#"{"tool": "mcp.add", "arguments": {"a": "two", "b": 3}}"#);
    assert!(told.contains("reply_rejected") && !told.contains("gate "), "{told}");
    // Other tools are not held up.
    assert!(story.says(r#"{"tool": "mcp.echo", "arguments": {"text": "x"}}"#).contains("dispatch 1 mcp.echo"));
}

#[test]
fn a_yes_is_for_that_call_under_its_step_and_for_no_other() {
    let mut story = gated(Protocol::Json, None);
    story.says(ADD);
    insta::assert_snapshot!(story.taken_up_with("approve"), @r#"
    {"event":"tool_call","index":0,"tool":"mcp.add","arguments":{"a":2,"b":3}}
    dispatch 1 mcp.add {"a":2,"b":3}
    "#);
    assert_eq!(story.intents.len(), 1);
    story.returns("5");
    // The same call again is another one.
    let told = story.says(ADD);
    assert!(told.contains("gate ") && story.intents.len() == 1, "{told}");
}

/// The process died before its `gate_requested` was durable: whatever becomes of the call, it is told once, and before that.
#[test]
fn a_gate_that_a_crash_lost_is_told_once() {
    let lost = || {
        let mut story = gated(Protocol::Json, None);
        story.says(ADD);
        story.run.untold_gate();
        story
    };
    let asked_again = lost().taken_up();
    let answered = lost().taken_up_with("approve");
    assert!(answered.find("gate_requested") < answered.find("tool_call"), "{answered}");
    let mut story = lost();
    let mut closed = story.input(Entry::Writer(Writer { epoch: 2, ..Writer::default() }));
    closed += &story.close();
    assert!(closed.find("gate_requested") < closed.find("mission_finished"), "{closed}");
    for told in [&asked_again, &answered, &closed] {
        assert_eq!(told.matches("gate_requested").count(), 1, "{told}");
    }
    // What was told before is not told by whoever acts on the answer.
    let mut told = gated(Protocol::Json, None);
    told.says(ADD);
    assert!(!told.taken_up_with("approve").contains("gate_requested"));
}

#[test]
fn a_no_is_told_to_the_model() {
    let mut story = gated(Protocol::Json, None);
    story.says(ADD);
    insta::assert_snapshot!(story.taken_up_with("refuse"), @r#"
    {"event":"step_started","index":1,"resumed":{"from_seq":4,"steps_replayed":1}}
    ask 2
    Assistant: {"tool": "mcp.add", "arguments": {"a": 2, "b": 3}}
    User: `mcp.add` was not called: ana refused it. Their note: I looked. Go another way.
    "#);
    assert!(story.intents.is_empty());
}

#[test]
fn nobody_has_decided_means_the_same_question_again() {
    let mut story = gated(Protocol::Json, None);
    story.says(ADD);
    let first = story.run.awaits();
    let told = story.taken_up();
    assert!(told.contains(&first.clone().unwrap().approval_id), "{told}");
    assert_eq!(story.run.awaits(), first);
}

#[test]
fn a_run_that_waits_goes_on_in_its_step() {
    let mut story = gated(Protocol::Native, Some(5000));
    let told = story.calls(vec![add("a"), call("b", "mcp_echo", r#"{"text": "x"}"#)]);
    assert!(
        told.contains("await ap_")
            && told.contains("One more call of the same reply waits behind it.")
            && !told.contains("finish"),
        "{told}"
    );
    insta::assert_snapshot!(says(&mut story, "approve"), @r#"
    {"event":"tool_call","index":0,"tool":"mcp.add","arguments":{"a":2,"b":3}}
    dispatch 1 mcp.add {"a":2,"b":3}
    "#);
    let told = story.returns("5");
    assert!(told.contains("dispatch 2 mcp.echo"), "{told}");
    let mut story = gated(Protocol::Native, Some(5000));
    story.calls(vec![add("a"), call("b", "mcp_echo", r#"{"text": "x"}"#)]);
    let told = says(&mut story, "refuse");
    assert!(told.contains("dispatch 1 mcp.echo"), "{told}");
}

#[test]
fn a_run_that_waits_in_vain_ends_and_can_be_taken_up() {
    let mut story = gated(Protocol::Json, Some(5000));
    story.says(ADD);
    let told = story.input(Entry::Timer(Timer { name: GATE_TIMER.to_owned() }));
    assert!(told.contains("awaiting_approval"), "{told}");
    assert!(story.taken_up_with("approve").contains("dispatch 1 mcp.add"));
    let mut story = gated(Protocol::Json, Some(5000));
    story.says(ADD);
    assert!(story.cancel().contains("incomplete"), "a cancel is not waited for");
    assert!(story.taken_up_with("approve").contains("dispatch 1 mcp.add"));
}

#[test]
fn a_call_that_was_approved_before_the_run_passes_once() {
    let mut story = Story::new(Protocol::Json);
    story.spec.gates = vec!["mcp.add".to_owned()];
    let definition = definition_digest(&tool("add", add_properties()));
    story.spec.approval = Some(ApprovedCall {
        approval_id: "ap_1".to_owned(),
        tool: "mcp.add".to_owned(),
        arguments: serde_json::from_value(json!({"a": 2, "b": 3})).unwrap(),
        digest: call_digest("mcp.add", &definition, r#"{"a":2,"b":3}"#),
    });
    let mut story = story.begun();
    assert!(story.said().contains("A person has approved this one call (ap_1)"), "{}", story.said());
    // Another call of the tool is none of it.
    let mut other = with(&story);
    assert!(other.says(r#"{"tool": "mcp.add", "arguments": {"a": 2, "b": 4}}"#).contains("gate "));
    assert_eq!(story.says(ADD), "claim ap_1");
    assert!(says(&mut story, "approve").contains("dispatch 1 mcp.add"));
    story.returns("5");
    assert!(story.says(ADD).contains("gate "), "once");
    // Somebody else was quicker: a person is asked.
    let mut late = with(&story);
    late.says(ADD);
    let told = says(&mut late, "refuse");
    assert!(told.contains("gate ap_") && late.intents.is_empty(), "{told}");
}

#[test]
fn what_a_server_says_of_its_tools_opens_no_gate_unless_it_is_trusted() {
    for (rule, hints, trusted, gates) in [
        (GateRule::Destructive, json!({}), true, true),
        (GateRule::Destructive, json!({"destructiveHint": false}), true, false),
        (GateRule::Destructive, json!({"destructiveHint": false}), false, true),
        (GateRule::Destructive, json!({"readOnlyHint": true}), true, false),
        (GateRule::OpenWorld, json!({"readOnlyHint": true}), true, true),
        (GateRule::OpenWorld, json!({"openWorldHint": false}), true, false),
        (GateRule::OpenWorld, json!({"openWorldHint": false}), false, true),
        (GateRule::AllWrites, json!({"destructiveHint": false}), true, true),
        (GateRule::AllWrites, json!({"readOnlyHint": true}), true, false),
        (GateRule::AllWrites, json!({"readOnlyHint": true}), false, true),
    ] {
        let mut story = Story::new(Protocol::Json);
        story.tools = vec![tool("add", add_properties())];
        story.tools[0].annotations = Some(hints.clone());
        story.spec.gate_rules = vec![rule];
        story.spec.trusted = if trusted { vec!["mcp".to_owned()] } else { Vec::new() };
        let mut story = story.begun();
        assert_eq!(story.says(ADD).contains("gate "), gates, "{rule:?} {hints} {trusted}");
    }
}
