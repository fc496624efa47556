//! How a run ends, and what else changes its course: budgets, cancels, failures, changes of the plane.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use mission_contract::digest::definition_digest;
use mission_contract::event::Event;
use mission_contract::log::{CallEnd, Entry, Reply, ReplyEnd, ServerCondition};
use mission_contract::spec::Protocol;
use serde_json::json;

use super::FoldError;
use crate::engine::run_story::{ADD, Story, add, add_properties, call, control, server, tool};

#[test]
fn the_steps_budget_ends_a_run_before_the_next_question() {
    let mut story = Story::new(Protocol::Json);
    story.spec.limits.steps = Some(2);
    let mut story = story.begun();
    story.says("no decision");
    story.says(ADD);
    insta::assert_snapshot!(story.returns("5"), @r#"
    {"event":"tool_result","index":1,"tool":"mcp.add","arguments":{"a":2,"b":3},"ok":true,"exit_code":0,"output":"5","error":"","handle":"r1","truncated":false}
    {"event":"mission_finished","outcome":"budget_exhausted","steps":2,"max_steps":2,"budget":{"which":"steps","limit":2,"spent":2},"elapsed_s":1.5}
    finish Ending { outcome: BudgetExhausted, failure: None, signal: None }
    "#);
    assert_eq!(story.request.unwrap().ordinal, 2);
}

#[test]
fn a_cancel_ends_a_run_from_wherever_it_is() {
    let mut before = Story::new(Protocol::Json);
    before.open();
    assert_eq!(before.cancel(), "");
    before.catalogue();
    assert_eq!(before.names(), ["mission_started", "mission_finished"]);

    let mut asking = Story::json();
    assert_eq!(asking.input(control("cancel", Some("SIGTERM"))), "abort the ask");
    assert_eq!(asking.cancel(), "", "once is enough");
    insta::assert_snapshot!(asking.ends(ReplyEnd::Interrupted), @r#"
    {"event":"mission_finished","outcome":"incomplete","steps":0,"max_steps":0,"reason":"cancelled","elapsed_s":1.5}
    finish Ending { outcome: Incomplete, failure: None, signal: Some("SIGTERM") }
    "#);

    let mut broken = Story::json();
    broken.cancel();
    assert!(broken.ends(ReplyEnd::Failed).contains(r#""reason":"cancelled""#), "what broke off meanwhile changes nothing");

    let mut listening = Story::json();
    listening.says(r#"{"tool": "nope"}"#);
    insta::assert_snapshot!(listening.cancel(), @r#"
    {"event":"mission_finished","outcome":"incomplete","steps":1,"max_steps":0,"reason":"cancelled","elapsed_s":1.5}
    finish Ending { outcome: Incomplete, failure: None, signal: None }
    "#);

    let mut calling = Story::native();
    calling.calls(vec![add("a"), call("b", "mcp_echo", r#"{"text": "hi"}"#)]);
    assert_eq!(calling.cancel(), "cancel the call");
    insta::assert_snapshot!(calling.fails(CallEnd::Cancelled, "It was given up."), @r#"
    {"event":"tool_result","index":0,"tool":"mcp.add","arguments":{"a":2,"b":3},"ok":false,"exit_code":-1,"output":"","error":"It was given up.","handle":"r1","truncated":false}
    {"event":"mission_finished","outcome":"incomplete","steps":1,"max_steps":0,"reason":"cancelled","elapsed_s":1.5}
    finish Ending { outcome: Incomplete, failure: None, signal: None }
    "#);
    assert_eq!(calling.intents.len(), 1);
    let last = calling.run.conversation.messages().pop().unwrap();
    assert_eq!(last.call_id.as_deref(), Some("b"));
    insta::assert_snapshot!(last.content.as_str(), @"`mcp_echo` was proposed and not called: the run was cancelled.");
}

#[test]
fn what_a_model_said_in_spite_of_a_cancel_is_kept_when_it_answers_and_not_carried_out_when_it_does_not() {
    let mut answers = Story::json();
    answers.input(control("cancel", Some("SIGINT")));
    insta::assert_snapshot!(answers.says(r#"{"answer": "5"}"#), @r#"
    {"event":"answer","text":"5","outcome":"answered"}
    {"event":"mission_finished","outcome":"answered","steps":1,"max_steps":0,"elapsed_s":1.5}
    finish Ending { outcome: Answered, failure: None, signal: Some("SIGINT") }
    "#);
    for reply in [ADD, r#"{"tool": "nope"}"#, "no decision"] {
        let mut story = Story::json();
        story.cancel();
        let told = story.says(reply);
        assert!(told.contains(r#""outcome":"incomplete","steps":1,"max_steps":0,"reason":"cancelled""#), "{told}");
        assert!(!told.contains("list again") && !told.contains("tool_call"), "{told}");
    }
}

#[test]
fn a_model_that_fails_ends_the_run_and_says_why() {
    for end in [ReplyEnd::Cut, ReplyEnd::Failed, ReplyEnd::Interrupted] {
        let mut story = Story::json();
        let told = story.ends(end);
        assert!(told.contains(r#""event":"notice","code":"model_failed""#) && told.contains("incomplete"), "{told}");
        assert!(told.ends_with(&format!("failure: Some(\"It was {end:?}.\"), signal: None }}")), "{told}");
    }
}

#[test]
fn a_run_is_closed_once() {
    for protocol in [Protocol::Json, Protocol::Native] {
        let mut story = Story::new(protocol).begun();
        insta::allow_duplicates! { insta::assert_snapshot!(story.close(), @r#"
        {"event":"notice","code":"run_closed","detail":"It broke.","index":0}
        {"event":"mission_finished","outcome":"incomplete","steps":0,"max_steps":0,"elapsed_s":1.5}
        finish Ending { outcome: Incomplete, failure: Some("It broke."), signal: None }
        "#) };
        assert_eq!(story.close(), "");
        assert_eq!(story.observe("server_noise"), "");
        assert_eq!(story.cancel(), "");
        let reply = Entry::Reply(Reply { of: 1, ..Reply::default() });
        let problem = story.try_input(&reply).unwrap_err();
        assert_eq!(problem, FoldError::OutOfPlace { kind: "reply", state: "over" });
        assert_eq!(problem.to_string(), "a `reply` line stands where the run is over");
    }
}

#[test]
fn what_was_seen_is_told_whenever_it_is_seen() {
    let mut story = Story::new(Protocol::Json);
    story.observe("a");
    story.open();
    story.observe("b");
    story.catalogue();
    story.observe("c");
    story.says(ADD);
    story.observe("d");
    story.returns("5");
    story.says(r#"{"tool": "nope"}"#);
    story.observe("e");
    let seen: Vec<String> = story
        .events
        .iter()
        .filter_map(|event| match event {
            Event::Notice(notice) => Some(format!("{} {:?}", notice.code, notice.index)),
            _ => None,
        })
        .collect();
    assert_eq!(seen, ["a None", "b None", "c Some(0)", "d Some(0)", "e Some(1)"]);
    assert_eq!(story.names()[..3], ["mission_started", "notice", "notice"]);
}

#[test]
fn a_server_that_did_not_come_up_ends_the_run_unless_it_is_optional() {
    let mut story = Story::new(Protocol::Json);
    let mut failed = server("more");
    (failed.state, failed.detail) = (ServerCondition::Failed, Some("The server `more` exited.".into()));
    story.servers.push(failed.clone());
    let mut story = story.begun();
    assert_eq!(story.names(), ["mission_started", "notice", "mission_finished"]);
    assert!(story.request.is_none());
    failed.optional = true;
    story = Story::new(Protocol::Json);
    story.servers.push(failed);
    assert_eq!(story.begun().names(), ["mission_started", "notice", "step_started"]);
}

#[test]
fn tools_join_and_leave_at_the_boundary_of_a_step_behind_the_results() {
    let mut story = Story::native();
    story.calls(vec![add("a")]);
    assert_eq!(story.changes(vec![tool("look", json!({}))], vec![], &["mcp.echo"]), "");
    insta::assert_snapshot!(story.returns("5"), @r#"
    {"event":"tool_result","index":0,"tool":"mcp.add","arguments":{"a":2,"b":3},"ok":true,"exit_code":0,"output":"5","error":"","handle":"r1","truncated":false}
    {"event":"step_started","index":1,"catalogue":["mcp.add","mcp.look","mission_result"]}
    ask 2
    System: You count.

    One decision a reply.

    Tool catalogue:
    - mcp_add: Does add.
        arguments: a (integer, required), b (integer, required)
    - mcp_look: Does look.
    - mission_result: Read a kept result in parts. Without arguments: list all handles. With `handle` alone: what it holds. Add `path` (a field of its typed payload: a.b[0], or a JSON Pointer), `lines` ("12", "10-40", "200-"), `offset` with `limit` (characters), or `grep` (a regular expression).
        arguments: grep (string), handle (string), limit (integer|string), lines (string), offset (integer|string), path (string)

    Be brief.
    User: Count.
    Assistant:  [a mcp_add {"a": 2, "b": 3}]
    Tool for a: Result of mcp.add, ok (r1):
    5
    User: The catalogue changed: +mcp_look, -mcp_echo. The list above is up to date.
    "#);
    assert_eq!(story.keeps, Some(0), "the first message is another one");
    // It left and came back as it was, between two steps: nothing happened.
    story.changes(vec![], vec![], &["mcp.look"]);
    story.changes(vec![tool("look", json!({}))], vec![], &[]);
    assert!(!story.says(" ").contains("catalogue"));
}

#[test]
fn a_changed_definition_is_not_taken_up_however_it_comes() {
    let mut story = Story::json();
    let other = tool("add", json!({"a": {"type": "string"}}));
    story.changes(vec![], vec![other.clone()], &[]);
    insta::assert_snapshot!(story.says(ADD), @r#"
    {"event":"tool_call","index":0,"tool":"mcp.add","arguments":{"a":2,"b":3}}
    dispatch 1 mcp.add {"a":2,"b":3}
    "#);
    assert_eq!(story.intents[0].definition, definition_digest(&tool("add", add_properties())));
    story.changes(vec![], vec![], &["mcp.add"]);
    assert!(story.returns("5").contains("-mcp.add"));
    story.changes(vec![other], vec![], &[]);
    assert!(story.says("x").contains("definition_changed"), "under its old name it would be taken for the old one");
    story.changes(vec![tool("add", add_properties())], vec![], &[]);
    assert!(story.says("x").contains("+mcp.add"), "as it was it may come back");
}

#[test]
fn a_skill_closes_the_set() {
    let mut story = Story::new(Protocol::Json);
    story.spec.allowed_tools = Some(vec!["mcp.echo".into(), "mcp.add".into()]);
    story.tools.push(tool("rm", json!({})));
    let mut story = story.begun();
    let Event::MissionStarted(started) = &story.events[0] else { panic!("first") };
    assert_eq!(started.catalogue, ["mcp.echo", "mcp.add", "mission_result"]);
    story.changes(vec![tool("look", json!({}))], vec![], &["mcp.echo"]);
    assert!(story.says("x").contains("The catalogue changed: -mcp.echo. "));
    story.changes(vec![tool("echo", json!({"text": {"type": "string"}}))], vec![], &[]);
    assert!(story.says("x").contains(r#""catalogue":["mcp.echo","mcp.add","mission_result"]"#), "what it allows may come back");
    assert!(story.says(r#"{"tool": "mcp.rm"}"#).contains("There is no tool `mcp.rm`."));
}

#[test]
fn a_schema_that_cannot_be_used_costs_its_tool_and_is_told_once() {
    let mut story = Story::new(Protocol::Json);
    story.tools[0].input_schema = json!({"type": "object", "properties": {"text": {"pattern": "("}}});
    let mut story = story.begun();
    let call = r#"{"tool": "mcp.echo", "arguments": {"text": "x"}}"#;
    insta::assert_snapshot!(story.says(call), @r#"
    {"event":"notice","code":"tool_unusable","detail":"The tool mcp.echo cannot be used in this run, because the schema of its arguments is not usable at `/properties/text/pattern` (keyword `format`).","server":"mcp","index":0}
    {"event":"reply_rejected","index":0,"problem":"`mcp.echo` was not called: it cannot be used in this run, because the schema of its arguments is not usable at `/properties/text/pattern` (keyword `format`). Go another way.","tool":"mcp.echo"}
    {"event":"step_started","index":1}
    ask 2
    Assistant: {"tool": "mcp.echo", "arguments": {"text": "x"}}
    User: `mcp.echo` was not called: it cannot be used in this run, because the schema of its arguments is not usable at `/properties/text/pattern` (keyword `format`). Go another way.
    "#);
    assert!(!story.says(call).contains("notice"));
}
