#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use mission_contract::event::{Event, Outcome};
use mission_contract::log::{CallEnd, CallResult, Catalogue, Entry, ReplyEnd, Writer};
use mission_contract::spec::Protocol;
use serde_json::json;

use crate::engine::run_story::{ADD, Story, add, add_properties, tool};

fn json() -> Story {
    Story::new(Protocol::Json).begun()
}

#[test]
fn a_question_without_a_reply_is_asked_again_in_a_step_that_says_where_it_took_over() {
    let mut story = json();
    story.says(ADD);
    story.returns("5");
    insta::assert_snapshot!(story.taken_up(), @r#"
    {"event":"step_started","index":2,"resumed":{"from_seq":5,"steps_replayed":2}}
    ask 3
    "#);
    story.says(r#"{"answer": "5"}"#);
    assert_eq!(story.run.outcome(), Some(Outcome::Answered));
    assert_eq!(story.names().iter().filter(|name| **name == "mission_started").count(), 1);
}

#[test]
fn a_model_that_failed_is_asked_again() {
    let mut story = json();
    story.ends(ReplyEnd::Failed);
    assert_eq!(story.run.outcome(), Some(Outcome::Incomplete));
    assert!(story.taken_up().contains("ask 2"));
    assert_eq!(story.run.outcome(), None);
}

#[test]
fn a_run_that_answered_is_not_taken_up() {
    let mut story = json();
    story.says(r#"{"answer": "5"}"#);
    story.input(Entry::Writer(Writer { epoch: 2, ..Writer::default() }));
    assert_eq!(story.run.outcome(), Some(Outcome::Answered));
}

#[test]
fn what_is_stated_again_goes_further_and_what_is_not_stays() {
    let mut story = Story::new(Protocol::Json);
    story.spec.limits.steps = Some(2);
    let mut story = story.begun();
    story.says(ADD);
    story.returns("5");
    let changed = [(super::CHANGED_STEPS.to_owned(), json!(3))].into();
    story.input(Entry::Writer(Writer { epoch: 2, changed, ..Writer::default() }));
    story.input(Entry::Catalogue(Catalogue::default()));
    story.says(ADD);
    story.returns("6");
    let Some(Event::MissionFinished(finished)) = story.events.last() else { panic!("{:?}", story.names()) };
    assert_eq!(
        (finished.outcome, finished.steps, finished.max_steps),
        (Outcome::BudgetExhausted, 2, 3),
        "the step that was interrupted counts as begun"
    );
}

#[test]
fn what_the_servers_changed_meanwhile_is_told_at_the_first_step() {
    let mut story = json();
    story.input(Entry::Writer(Writer { epoch: 2, ..Writer::default() }));
    let tools = vec![tool("look", json!({}))];
    let servers = story.servers.clone();
    let told = story.input(Entry::Catalogue(Catalogue { servers, tools, ..Catalogue::default() }));
    assert!(told.contains(r#""catalogue":["mcp.add","mcp.echo","mcp.look","mission_result"]"#), "{told}");
    let mut story = json();
    story.input(Entry::Writer(Writer { epoch: 2, ..Writer::default() }));
    let changed = vec![tool("add", json!({"x": {"type": "integer"}}))];
    let servers = story.servers.clone();
    let told = story.input(Entry::Catalogue(Catalogue { servers, changed, ..Catalogue::default() }));
    assert!(told.contains("definition_changed"), "{told}");
}

#[test]
fn a_call_that_nobody_knows_the_end_of_waits_for_a_person() {
    let mut story = json();
    story.says(ADD);
    insta::assert_snapshot!(story.taken_up(), @r#"
    gate ap_65699d8cc304f4f3 mcp.add {"a":2,"b":3}
    {"event":"gate_requested","index":0,"tool":"mcp.add","arguments":{"a":2,"b":3},"reason":"`mcp.add` was called with these arguments and no result came back: whether it took effect is unknown. Look, then say done (it did; the run goes on), retry (it did not; make the call again) or abandon (leave it).","approval_id":"ap_65699d8cc304f4f3","kind":"reconcile"}
    {"event":"mission_finished","outcome":"awaiting_approval","steps":0,"max_steps":0,"elapsed_s":1.5}
    finish Ending { outcome: AwaitingApproval, failure: None, signal: None }
    "#);
    assert_eq!(story.run.outcome(), Some(Outcome::AwaitingApproval));
    let waits = story.run.awaits();
    // Nobody has decided: the same one again.
    assert!(story.taken_up().contains(&waits.clone().unwrap().approval_id));
    assert_eq!(story.run.awaits(), waits);
    insta::assert_snapshot!(story.taken_up_with("done"), @r#"
    {"event":"tool_result","index":0,"tool":"mcp.add","arguments":{"a":2,"b":3},"ok":true,"exit_code":0,"output":"The call was interrupted before its result came back; ana has confirmed that it took effect. Their note: I looked.","error":"","handle":"r1","truncated":false}
    {"event":"step_started","index":1,"resumed":{"from_seq":8,"steps_replayed":1}}
    ask 2
    Assistant: {"tool": "mcp.add", "arguments": {"a": 2, "b": 3}}
    User: Result of mcp.add, ok (r1):
    The call was interrupted before its result came back; ana has confirmed that it took effect. Their note: I looked.
    "#);
}

#[test]
fn a_call_is_made_again_with_its_key_only_when_a_person_says_so() {
    let mut story = json();
    story.says(ADD);
    story.taken_up();
    insta::assert_snapshot!(story.taken_up_with("retry"), @r#"dispatch 2 mcp.add {"a":2,"b":3}"#);
    assert_eq!(story.intents.len(), 2);
    assert_eq!(story.intents[0], story.intents[1]);
    story.returns("5");
    // Another crash before the next result asks about the new call.
    let mut story = json();
    story.says(ADD);
    story.taken_up();
    let first = story.run.awaits();
    story.taken_up_with("retry");
    story.taken_up();
    assert_ne!(story.run.awaits(), first);
}

#[test]
fn a_call_that_was_given_up_is_not_made_again() {
    let mut story = json();
    story.says(ADD);
    story.taken_up();
    insta::assert_snapshot!(story.taken_up_with("abandon"), @r#"
    {"event":"tool_result","index":0,"tool":"mcp.add","arguments":{"a":2,"b":3},"ok":false,"exit_code":-1,"output":"","error":"The call was interrupted before its result came back, and ana decided that it is not to be made again; whether it took effect is unknown. Their note: I looked.","handle":"r1","truncated":false}
    {"event":"step_started","index":1,"resumed":{"from_seq":6,"steps_replayed":1}}
    ask 2
    Assistant: {"tool": "mcp.add", "arguments": {"a": 2, "b": 3}}
    User: mcp.add failed (exit code -1):
    The call was interrupted before its result came back, and ana decided that it is not to be made again; whether it took effect is unknown. Their note: I looked.
    Do not send the same call again unchanged.
    "#);
    insta::assert_snapshot!(story.says(ADD), @r#"
    {"event":"reply_rejected","index":1,"problem":"`mcp.add` was not called: a person decided that this very call is not to be made again. Go another way.","tool":"mcp.add"}
    {"event":"step_started","index":2}
    ask 3
    Assistant: {"tool": "mcp.add", "arguments": {"a": 2, "b": 3}}
    User: `mcp.add` was not called: a person decided that this very call is not to be made again. Go another way.
    "#);
    assert_eq!(story.intents.len(), 1);
}

#[test]
fn calls_behind_one_in_doubt_are_made_when_it_is_settled() {
    let mut story = Story::new(Protocol::Native).begun();
    let other = crate::engine::run_story::call("b", "mcp_add", r#"{"a": 9, "b": 9}"#);
    story.calls(vec![add("a"), other]);
    let told = story.taken_up();
    assert!(told.contains("One more call of the same reply waits behind it."), "{told}");
    let told = story.taken_up_with("done");
    assert!(told.contains("dispatch 2"), "{told}");
    insta::assert_snapshot!(story.returns("18"), @r#"
    {"event":"tool_result","index":0,"tool":"mcp.add","arguments":{"a":9,"b":9},"ok":true,"exit_code":0,"output":"18","error":"","handle":"r2","truncated":false,"call":1}
    {"event":"step_started","index":1,"resumed":{"from_seq":6,"steps_replayed":1}}
    ask 2
    Assistant:  [a mcp_add {"a": 2, "b": 3}] [b mcp_add {"a": 9, "b": 9}]
    Tool for a: Result of mcp.add, ok (r1):
    The call was interrupted before its result came back; ana has confirmed that it took effect. Their note: I looked.
    Tool for b: Result of mcp.add, ok (r2):
    18
    "#);
}

#[test]
fn a_tool_that_may_be_called_twice_is_where_its_server_is_believed() {
    for (trusted, hints, gates) in [
        (true, json!({"readOnlyHint": true}), false),
        (true, json!({"idempotentHint": true}), false),
        (true, json!({"readOnlyHint": "true"}), true),
        (true, json!({}), true),
        (false, json!({"readOnlyHint": true, "idempotentHint": true}), true),
    ] {
        let mut story = Story::new(Protocol::Json);
        story.tools = vec![tool("add", add_properties())];
        story.tools[0].annotations = Some(hints.clone());
        story.spec.trusted = if trusted { vec!["mcp".to_owned()] } else { Vec::new() };
        let mut story = story.begun();
        story.says(ADD);
        let told = story.taken_up();
        assert_eq!(told.contains("gate "), gates, "{hints} {told}");
        assert_eq!(story.intents.len(), if gates { 1 } else { 2 });
        assert!(story.intents.iter().all(|intent| intent.key == story.intents[0].key), "the same key");
    }
}

#[test]
fn a_changed_definition_voids_what_its_server_said() {
    let mut story = Story::new(Protocol::Json);
    story.tools = vec![tool("add", add_properties())];
    story.tools[0].annotations = Some(json!({"readOnlyHint": true}));
    story.spec.trusted = vec!["mcp".to_owned()];
    let mut story = story.begun();
    story.says(ADD);
    story.input(Entry::Writer(Writer { epoch: 2, ..Writer::default() }));
    let changed = vec![tool("add", add_properties())];
    let servers = story.servers.clone();
    let told = story.input(Entry::Catalogue(Catalogue { servers, changed, ..Catalogue::default() }));
    assert!(told.contains("gate "), "{told}");
}

#[test]
fn a_call_of_a_live_run_that_did_not_come_back_is_not_repeated_by_itself() {
    for end in [CallEnd::Timeout, CallEnd::Died] {
        let mut story = json();
        story.says(ADD);
        story.fails(end, "");
        let told = story.says(ADD);
        assert!(told.contains("gate ") && told.contains("awaiting_approval"), "{told}");
        assert_eq!(story.intents.len(), 1);
        let told = story.taken_up_with("retry");
        assert!(told.contains("dispatch 2 mcp.add"), "{told}");
        assert_eq!(story.intents[0].key, story.intents[1].key);
        story.returns("5");
        // It is settled: the next one is a call of its own.
        assert!(story.says(ADD).contains("dispatch 3"));
        assert_ne!(story.intents[2].key, story.intents[0].key);
    }
    let mut story = json();
    story.says(ADD);
    story.result(CallResult { end: CallEnd::Died, unsent: true, ..CallResult::default() });
    assert!(story.says(ADD).contains("dispatch 2"), "it never went out");
}
