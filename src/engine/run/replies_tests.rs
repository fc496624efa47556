//! What goes out for what a model says, and what it is told.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use std::sync::Arc;

use mission_contract::digest::{call_digest, definition_digest, key};
use mission_contract::event::Event;
use mission_contract::log::{CallEnd, CallResult, Entry, Reply, Role};
use mission_contract::spec::{HistoryTurn, Protocol};
use serde_json::json;

use crate::engine::run_story::{ADD, Story, add, add_properties, call, server, tool, usage};

#[test]

fn the_prompt_has_its_parts_in_their_order_and_depends_on_no_server_s_speed() {
    let mut story = Story::new(Protocol::Json);
    story.spec.texts.skill.text = "  Only even numbers.\n".into();
    story.spec.texts.history.push(HistoryTurn { role: Role::User, content: "Hello.".into() });
    let mut late = Story::new(Protocol::Json);
    (late.spec, late.tools) = (story.spec.clone(), story.tools.iter().rev().cloned().collect());
    let (story, late) = (story.begun(), late.begun());
    assert_eq!(story.digests, late.digests);
    insta::assert_snapshot!(story.said(), @r#"
    System: You count.

    Only even numbers.

    One decision a reply.

    Tool catalogue:
    - mcp.add: Does add.
        arguments: a (integer, required), b (integer, required)
    - mcp.echo: Does echo.
        arguments: text (string, required)
    - mission_result: Read a kept result in parts. Without arguments: list all handles. With `handle` alone: what it holds. Add `path` (a field of its typed payload: a.b[0], or a JSON Pointer), `lines` ("12", "10-40", "200-"), `offset` with `limit` (characters), or `grep` (a regular expression).
        arguments: grep (string), handle (string), limit (integer|string), lines (string), offset (integer|string), path (string)

    Be brief.
    User: Hello.
    User: Count.
    "#);
    let native = Story::native();
    insta::assert_snapshot!(native.adds[0].content.as_str(), @r#"
    You count.

    One decision a reply.

    Tool catalogue:
    - mcp_add: Does add.
        arguments: a (integer, required), b (integer, required)
    - mcp_echo: Does echo.
        arguments: text (string, required)
    - mission_result: Read a kept result in parts. Without arguments: list all handles. With `handle` alone: what it holds. Add `path` (a field of its typed payload: a.b[0], or a JSON Pointer), `lines` ("12", "10-40", "200-"), `offset` with `limit` (characters), or `grep` (a regular expression).
        arguments: grep (string), handle (string), limit (integer|string), lines (string), offset (integer|string), path (string)

    Be brief.
    "#);
    let request = native.request.unwrap();
    let names: Vec<&str> = request.functions.iter().map(|function| function.name.as_str()).collect();
    assert_eq!(names, ["mcp_add", "mcp_echo", "mission_result", "mission_answer"]);
    assert!(request.constraint.is_none());
    let request = story.request.unwrap();
    assert!(request.functions.is_empty() && request.constraint.is_some());
}

#[test]
fn a_run_of_the_json_protocol_from_its_first_record_to_its_last() {
    let mut story = Story::new(Protocol::Json);
    story.open();
    insta::assert_snapshot!(story.catalogue(), @r#"
    {"event":"mission_started","schema_version":1,"objective":"Count.","catalogue":["mcp.add","mcp.echo","mission_result"],"gated":[],"max_steps":0,"history":0,"audit_ref":null,"run_id":"run_1","version":"test","limits":{},"servers":[{"name":"mcp","transport":"stdio","state":"ready","tools":2}]}
    {"event":"step_started","index":0}
    ask 1
    System: You count.

    One decision a reply.

    Tool catalogue:
    - mcp.add: Does add.
        arguments: a (integer, required), b (integer, required)
    - mcp.echo: Does echo.
        arguments: text (string, required)
    - mission_result: Read a kept result in parts. Without arguments: list all handles. With `handle` alone: what it holds. Add `path` (a field of its typed payload: a.b[0], or a JSON Pointer), `lines` ("12", "10-40", "200-"), `offset` with `limit` (characters), or `grep` (a regular expression).
        arguments: grep (string), handle (string), limit (integer|string), lines (string), offset (integer|string), path (string)

    Be brief.
    User: Count.
    "#);
    insta::assert_snapshot!(story.replies(Reply { text: ADD.into(), usage: Some(usage(10, 5)), ..Reply::default() }), @r#"
    {"event":"tool_call","index":0,"tool":"mcp.add","arguments":{"a":2,"b":3},"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}
    dispatch 1 mcp.add {"a":2,"b":3}
    "#);
    insta::assert_snapshot!(story.returns("5"), @r#"
    {"event":"tool_result","index":0,"tool":"mcp.add","arguments":{"a":2,"b":3},"ok":true,"exit_code":0,"output":"5","error":"","handle":"r1","truncated":false}
    {"event":"step_started","index":1}
    ask 2
    Assistant: {"tool": "mcp.add", "arguments": {"a": 2, "b": 3}}
    User: Result of mcp.add, ok (r1):
    5
    "#);
    assert_eq!((story.keeps, story.adds.len()), (None, 2));
    insta::assert_snapshot!(story.says(r#"{"answer": "5"}"#), @r#"
    {"event":"answer","text":"5","outcome":"answered"}
    {"event":"mission_finished","outcome":"answered","steps":2,"max_steps":0,"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,"calls":1},"elapsed_s":1.5}
    finish Ending { outcome: Answered, failure: None, signal: None }
    "#);
}

#[test]
fn every_reply_that_cannot_be_taken_is_corrected() {
    let mut story = Story::json();
    let replies = [
        "",
        "Let me think.",
        "[1]",
        r#"{"thought": "x"}"#,
        r#"{"answer": " "}"#,
        r#"{"tool": "mcp.add", "arguments": [2, 3]}"#,
        r#"{"tool": "", "arguments": {}}"#,
        r#"{"tool": "mcp.add", "arguments": {"a": 2}}"#,
        r#"{"tool": "mcp.add", "arguments": {"a": "two", "b": 3}}"#,
        r#"{"tool": "mcp.add", "arguments": {"a": 2, "b": -1}}"#,
        r#"{"tool": "mcp.add", "arguments": {"a": 2, "b": 18446744073709551617}}"#,
        r#"{"tool": "mcp.add", "arguments": {"a": 1, "a": 2, "b": 3}}"#,
        r#"{"tool": "mcp.add", "arguments": "{\"a\": 1"}"#,
    ];
    let corrections: Vec<String> = replies
        .iter()
        .map(|reply| {
            let told = story.says(reply);
            let told = if told.contains("list again") { story.changes(vec![], vec![], &[]) } else { told };
            assert!(told.contains("\nask "), "{told}");
            let Some(Event::ReplyRejected(rejected)) =
                story.events.iter().rev().find(|event| matches!(event, Event::ReplyRejected(_)))
            else {
                panic!("{reply} is not rejected")
            };
            assert_eq!(story.adds.last().unwrap().content.as_str(), rejected.problem);
            format!("{:?} {}", rejected.tool, rejected.problem)
        })
        .collect();
    insta::assert_snapshot!(corrections.join("\n"), @r#"
    None Your reply was empty. Send one JSON object: {"tool": "<name>", "arguments": {...}} to call a tool, or {"answer": "<text>"} to finish.
    None Your reply holds no JSON object that can be read (reading stops at line 1, column 1). Send one JSON object: {"tool": "<name>", "arguments": {...}} to call a tool, or {"answer": "<text>"} to finish.
    None Your reply is an array, not a JSON object. Send one JSON object: {"tool": "<name>", "arguments": {...}} to call a tool, or {"answer": "<text>"} to finish.
    None Your object has neither `tool` nor `answer` (it has `thought`). Send one JSON object: {"tool": "<name>", "arguments": {...}} to call a tool, or {"answer": "<text>"} to finish.
    None Your answer is empty. Put the whole answer into it as text, or call a tool.
    Some("mcp.add") `mcp.add` was not called: its `arguments` are an array, not an object. Send them again as a JSON object.
    None Your call names no tool. Offered are: `mcp.add`, `mcp.echo`, `mission_result`.
    Some("mcp.add") `mcp.add` was not called: the arguments object lacks the required `b`. It takes: a (integer, required), b (integer, required). Correct the arguments and send the call again.
    Some("mcp.add") `mcp.add` was not called: the value at `/a` must be of type integer, and is a string ("two"). It takes: a (integer, required), b (integer, required). Correct the arguments and send the call again.
    Some("mcp.add") `mcp.add` was not called: the value at `/b` must be at least 0, and is -1. It takes: a (integer, required), b (integer, required). Correct the arguments and send the call again.
    Some("mcp.add") `mcp.add` was not called: the value at `/b` in its arguments cannot be taken: the number 18446744073709551617 cannot be carried exactly; give it as a string, or with fewer digits. Correct that and send the call again.
    Some("mcp.add") `mcp.add` was not called: the value at `/a` in its arguments cannot be taken: the key "a" stands there twice. Correct that and send the call again.
    Some("mcp.add") `mcp.add` was not called: its arguments cannot be taken: this is not valid JSON (line 1, column 7). Correct that and send the call again.
    "#);
    assert_eq!(story.run.steps(), replies.len() as u64);
    assert!(story.intents.is_empty());
}

#[test]
fn every_native_reply_that_cannot_be_taken_is_corrected() {
    let mut story = Story::native();
    let mut corrections = Vec::new();
    let mut corrected = |told: String| corrections.push(told.split_once("\nask ").unwrap().1.to_owned());
    corrected(story.says(" "));
    corrected(story.replies(Reply { text: "I will now".into(), finish: Some("length".into()), ..Reply::default() }));
    corrected(
        story.calls(vec![call("a", "mission_answer", r#"{"text": "1"}"#), call("b", "mission_answer", r#"{"text": "2"}"#)]),
    );
    corrected(story.calls(vec![call("c", "mission_answer", r#"{"answer": "1"}"#)]));
    corrected(story.calls(vec![call("", "mcp_add", "[2, 3]"), call("e", "mcp_echo", "{\"text\":")]));
    corrected(story.calls(vec![call("f", "mcp_add", r#"{"a": 2, "b": {"c/d": NaN}}"#)]));
    insta::assert_snapshot!(corrections.join("\n\n"), @r#"
    2
    Assistant: (nothing)
    User: Your reply called no function. Call the tools you need, or finish by calling `mission_answer` with your answer.

    3
    Assistant: I will now
    User: Your reply reached its length limit before it called a function. Do not explain: call the tools you need, or finish by calling `mission_answer` with a shorter answer.

    4
    Assistant:  [a mission_answer {"text": "1"}] [b mission_answer {"text": "2"}]
    Tool for a: You called `mission_answer` 2 times. Call it once, alone, with the whole answer.
    Tool for b: You called `mission_answer` 2 times. Call it once, alone, with the whole answer.

    5
    Assistant:  [c mission_answer {"answer": "1"}]
    Tool for c: Your call of `mission_answer` cannot be taken: `text` is missing. It takes one string, `text`, and nothing else is needed.

    6
    Assistant:  [call_4_0 mcp_add {"unreadable":"[2, 3]"}] [e mcp_echo {"unreadable":"{\"text\":"}]
    Tool for call_4_0: `mcp.add` was not called: its `arguments` are an array, not an object. Send them again as a JSON object.
    Tool for e: `mcp.echo` was not called: the value at `/text` in its arguments cannot be taken: this is not valid JSON (line 1, column 8). Correct that and send the call again.

    7
    Assistant:  [f mcp_add {"unreadable":"{\"a\": 2, \"b\": {\"c/d\": NaN}}"}]
    Tool for f: `mcp.add` was not called: the value at `/b/c~1d` in its arguments cannot be taken: NaN is not a JSON number. Correct that and send the call again.
    "#);
}

#[test]
fn a_name_that_is_not_offered_is_refused_with_the_one_that_can_be_meant_and_the_servers_are_asked_again() {
    let mut story = Story::json();
    insta::assert_snapshot!(story.says(r#"{"tool": "Add", "arguments": {}}"#), @r#"
    {"event":"reply_rejected","index":0,"problem":"There is no tool `Add`. Its exact name here is `mcp.add`: use that spelling. Offered are: `mcp.add`, `mcp.echo`, `mission_result`.","tool":"Add"}
    list again
    "#);
    insta::assert_snapshot!(story.changes(vec![tool("look", json!({}))], vec![], &[]), @r#"
    {"event":"step_started","index":1,"catalogue":["mcp.add","mcp.echo","mcp.look","mission_result"]}
    ask 2
    System: You count.

    One decision a reply.

    Tool catalogue:
    - mcp.add: Does add.
        arguments: a (integer, required), b (integer, required)
    - mcp.echo: Does echo.
        arguments: text (string, required)
    - mcp.look: Does look.
    - mission_result: Read a kept result in parts. Without arguments: list all handles. With `handle` alone: what it holds. Add `path` (a field of its typed payload: a.b[0], or a JSON Pointer), `lines` ("12", "10-40", "200-"), `offset` with `limit` (characters), or `grep` (a regular expression).
        arguments: grep (string), handle (string), limit (integer|string), lines (string), offset (integer|string), path (string)

    Be brief.
    User: Count.
    Assistant: {"tool": "Add", "arguments": {}}
    User: There is no tool `Add`. Its exact name here is `mcp.add`: use that spelling. Offered are: `mcp.add`, `mcp.echo`, `mission_result`.
    User: The catalogue changed: +mcp.look. The list above is up to date.
    "#);
    let mut native = Story::native();
    insta::assert_snapshot!(native.calls(vec![call("a", "add", "{}"), add("b")]), @r#"
    {"event":"reply_rejected","index":0,"problem":"There is no tool `add`. Its exact name here is `mcp_add`: use that spelling. Offered are: `mcp_add`, `mcp_echo`, `mission_result`.","tool":"add"}
    {"event":"tool_call","index":0,"tool":"mcp.add","arguments":{"a":2,"b":3},"call":1}
    dispatch 1 mcp.add {"a":2,"b":3}
    "#);
    assert!(native.returns("5").ends_with("list again"), "the call beside it changes nothing in that");
    // Nothing changed, and nobody answered: the run goes on.
    insta::assert_snapshot!(native.input(Entry::Catalogue(Default::default())), @r#"
    {"event":"step_started","index":1}
    ask 2
    Assistant:  [a add {}] [b mcp_add {"a": 2, "b": 3}]
    Tool for a: There is no tool `add`. Its exact name here is `mcp_add`: use that spelling. Offered are: `mcp_add`, `mcp_echo`, `mission_result`.
    Tool for b: Result of mcp.add, ok (r1):
    5
    "#);
}

#[test]
fn without_a_server_nobody_is_asked_again() {
    let mut story = Story::new(Protocol::Json);
    (story.tools, story.servers) = (vec![], vec![]);
    let mut story = story.begun();
    assert!(story.says(r#"{"tool": "mcp.add", "arguments": {}}"#).contains("ask 2"));
}

#[test]
fn a_native_turn_makes_its_calls_in_order_and_numbers_those_that_are_no_answer() {
    let mut story = Story::native();
    let calls = vec![
        call("a", "mission_answer", r#"{"text": "early"}"#),
        call("b", "nope", "{}"),
        add("c"),
        call("", "mission_result", "null"),
        call("c", "mcp_echo", r#"{"text": "hi"}"#),
    ];
    insta::assert_snapshot!(story.replies(Reply { calls, usage: Some(usage(7, 1)), ..Reply::default() }), @r#"
    {"event":"reply_rejected","index":0,"problem":"There is no tool `nope`. Offered are: `mcp_add`, `mcp_echo`, `mission_result`.","tool":"nope","usage":{"prompt_tokens":7,"completion_tokens":1,"total_tokens":8}}
    {"event":"tool_call","index":0,"tool":"mcp.add","arguments":{"a":2,"b":3},"call":1}
    dispatch 1 mcp.add {"a":2,"b":3}
    "#);
    insta::assert_snapshot!(story.returns("5"), @r#"
    {"event":"tool_result","index":0,"tool":"mcp.add","arguments":{"a":2,"b":3},"ok":true,"exit_code":0,"output":"5","error":"","handle":"r1","truncated":false,"call":1}
    {"event":"tool_call","index":0,"tool":"mission_result","arguments":{},"call":2}
    {"event":"tool_result","index":0,"tool":"mission_result","arguments":{},"ok":true,"exit_code":0,"output":"r1: mcp.add, 1 characters, text only","error":"","handle":"r2","truncated":false,"call":2}
    {"event":"tool_call","index":0,"tool":"mcp.echo","arguments":{"text":"hi"},"call":3}
    dispatch 2 mcp.echo {"text":"hi"}
    "#);
    assert!(story.returns("hi").ends_with("list again"));
    insta::assert_snapshot!(story.changes(vec![], vec![], &["mcp.echo"]), @r#"
    {"event":"step_started","index":1,"catalogue":["mcp.add","mission_result"]}
    ask 2
    System: You count.

    One decision a reply.

    Tool catalogue:
    - mcp_add: Does add.
        arguments: a (integer, required), b (integer, required)
    - mission_result: Read a kept result in parts. Without arguments: list all handles. With `handle` alone: what it holds. Add `path` (a field of its typed payload: a.b[0], or a JSON Pointer), `lines` ("12", "10-40", "200-"), `offset` with `limit` (characters), or `grep` (a regular expression).
        arguments: grep (string), handle (string), limit (integer|string), lines (string), offset (integer|string), path (string)

    Be brief.
    User: Count.
    Assistant:  [a mission_answer {"text": "early"}] [b nope {}] [c mcp_add {"a": 2, "b": 3}] [call_0_3 mission_result {}] [call_0_4 mcp_echo {"text": "hi"}]
    Tool for a: This answer was ignored, because the same reply called tools; those ran. When you have what you need, call `mission_answer` alone.
    Tool for b: There is no tool `nope`. Offered are: `mcp_add`, `mcp_echo`, `mission_result`.
    Tool for c: Result of mcp.add, ok (r1):
    5
    Tool for call_0_3: Result of mission_result, ok (r2):
    r1: mcp.add, 1 characters, text only
    Tool for call_0_4: Result of mcp.echo, ok (r3):
    hi
    User: The catalogue changed: -mcp_echo. The list above is up to date.
    "#);
    assert_eq!(story.run.steps(), 1, "a turn is one step");
}

#[test]
fn a_result_is_shown_whole_in_part_or_by_its_handle() {
    let mut story = Story::json();
    let shown = |story: &Story| story.adds.last().unwrap().content.as_str().to_owned();
    story.says(ADD);
    story.returns("");
    insta::assert_snapshot!(shown(&story), @"
    Result of mcp.add, ok (r1):
    (no output)
    ");
    story.says(ADD);
    let long = format!("{}{}", "é".repeat(20_000), "z".repeat(20_000));
    let told = story.returns(&long);
    assert!(told.contains(r#""truncated":true"#) && told.contains(&long), "the stream has the whole");
    let text = shown(&story);
    let marker: String = text.chars().filter(|sign| !"éz".contains(*sign)).collect();
    insta::assert_snapshot!(marker, @r#"
    Result of mcp.add, ok (r2):

    [… shown are the first 19660 and the last 13108 of 60000 bytes; the middle is missing. The whole is kept as r2: read it with mission_result and {"handle": "r2"} plus `path` (a field), `lines` ("10-40"), `offset` or `grep` …]
    "#);
    assert!(text.len() < 33 * 1024 + 512);
    story.says(ADD);
    let told = story.returns(&long);
    assert!(told.contains(r#""truncated":false"#) && told.contains(&long));
    insta::assert_snapshot!(shown(&story), @r#"Result of mcp.add, ok: the very same as r2, which you already have. Read parts of it with mission_result and {"handle": "r2"}. The same call will keep returning this."#);
    story.says(ADD);
    story.result(CallResult { text: long.as_str().into(), structured: Some(Arc::new(json!({"n": 1}))), ..CallResult::default() });
    assert!(shown(&story).contains("(r4)"), "another typed result is another result");
    for (end, error) in [
        (CallEnd::Error, "no such number"),
        (CallEnd::Error, ""),
        (CallEnd::Protocol, "The server answered with nonsense."),
        (CallEnd::Died, "The server died: whether it took effect is unknown."),
        (CallEnd::Timeout, ""),
    ] {
        story.says(ADD);
        // What did not go out leaves no doubt: it may be proposed again.
        story.result(CallResult { end, error: error.to_owned(), unsent: true, ..CallResult::default() });
    }
    let results: Vec<String> = story
        .events
        .iter()
        .filter_map(|event| match event {
            Event::ToolResult(result) if !result.ok => {
                Some(format!("{} {} {:?} {:?}", result.handle, result.exit_code, result.output.as_str(), result.error))
            }
            _ => None,
        })
        .collect();
    insta::assert_snapshot!(results.join("\n"), @r#"
    r5 1 "" "no such number"
    r6 1 "" ""
    r7 -1 "" "The server answered with nonsense."
    r8 -1 "" "The server died: whether it took effect is unknown."
    r9 -1 "" "The call did not come to its end: whether it took effect is unknown, and it is not repeated."
    "#);
    insta::assert_snapshot!(shown(&story), @"
    mcp.add failed (exit code -1):
    The call did not come to its end: whether it took effect is unknown, and it is not repeated.
    Do not send the same call again unchanged.
    ");
}

#[test]
fn a_large_result_is_shared_and_not_copied() {
    let mut story = Story::json();
    story.says(ADD);
    let text: Arc<str> = Arc::from("x".repeat(1 << 20));
    let structured = Arc::new(json!({"text": "x".repeat(1 << 20)}));
    story.result(CallResult {
        text: Arc::clone(&text).into(),
        structured: Some(Arc::clone(&structured)),
        ..CallResult::default()
    });
    let Some(Event::ToolResult(result)) = story.events.iter().find(|event| matches!(event, Event::ToolResult(_))) else {
        panic!("a result")
    };
    let mission_contract::text::Text::Inline(output) = &result.output else { panic!("inline") };
    assert!(Arc::ptr_eq(output, &text));
    assert_eq!(Arc::strong_count(&structured), 2, "the store holds the very same");
}

#[test]
fn what_an_ask_carries_is_built_once_until_the_offer_changes() {
    let mut story = Story::native();
    let first = story.request.clone().unwrap();
    story.says(" ");
    let second = story.request.clone().unwrap();
    assert!(Arc::ptr_eq(&first.functions, &second.functions));
    story.changes(vec![tool("look", json!({}))], vec![], &[]);
    story.says(" ");
    let third = story.request.clone().unwrap();
    assert_eq!(third.functions.len(), first.functions.len() + 1);
}

#[test]
fn a_server_cannot_take_the_names_that_are_ours() {
    let mut story = Story::new(Protocol::Native);
    let named = |server: &str, name: &str| {
        let mut tool = tool(name, json!({}));
        tool.server = server.to_owned();
        tool
    };
    story.servers.push(server("mission"));
    story.tools = vec![named("mission", "answer"), named("mission", "result"), named("mcp", "mission_answer")];
    let mut story = story.begun();
    let functions: Vec<String> = story.request.as_ref().unwrap().functions.iter().map(|function| function.name.clone()).collect();
    assert_eq!(functions[0], "mcp_mission_answer");
    assert_eq!(functions[3..], ["mission_result", "mission_answer"]);
    assert!(functions[1].starts_with("mission_answer_") && functions[2].starts_with("mission_result_"));
    let told = story.calls(vec![call("a", &functions[2], "{}"), call("b", "mission_result", "{}")]);
    assert!(told.ends_with("dispatch 1 mission.result {}"), "{told}");
    assert!(story.returns("x").contains(r#""tool":"mission_result""#));
}

#[test]
fn an_intent_binds_tool_definition_and_canonical_arguments_and_its_key_is_never_used_again() {
    let mut story = Story::json();
    story.says(r#"{"tool": "add", "arguments": {}}"#);
    story.changes(vec![], vec![], &[]);
    story.says("{\"tool\": \"mcp.add\", \"arguments\": {\"b\": 3.0,\n \"a\": 2}}");
    let intent = &story.intents[0];
    let definition = definition_digest(&tool("add", add_properties()));
    assert_eq!(intent.digest, call_digest("mcp.add", &definition, r#"{"a":2,"b":3}"#));
    assert_eq!(intent.key, key("run_1", 1, 1));
    story.returns("5");
    story.says(ADD);
    assert_eq!(story.intents[0].digest, story.intents[1].digest);
    assert_eq!(story.intents[1].key, key("run_1", 1, 2));
}

#[test]
fn calls_of_functions_in_the_json_protocol_are_read_and_shown_as_decisions() {
    let mut story = Story::json();
    let calls = || vec![call("", "mcp_add", r#"{"a": 2, "b": 3}"#), call("", "mcp.echo", "{}")];
    story.calls(calls());
    story.returns("5");
    insta::assert_snapshot!(story.said(), @r#"
    Assistant: {"tool": "mcp_add", "arguments": {"a": 2, "b": 3}}
    User: Result of mcp.add, ok (r1):
    5
    Only the first call of your reply was taken; not run: `mcp.echo`. Send one call a reply.
    "#);
    story.replies(Reply { text: "Again.".into(), calls: calls(), ..Reply::default() });
    story.returns("6");
    insta::assert_snapshot!(story.said(), @r#"
    Assistant: Again.
    {"tool": "mcp_add", "arguments": {"a": 2, "b": 3}}
    User: Result of mcp.add, ok (r2):
    6
    Only the first call of your reply was taken; not run: `mcp.echo`. Send one call a reply.
    "#);
}
