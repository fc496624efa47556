#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use mission_contract::audit::Verdict;
use mission_contract::event::{Event, Outcome};
use mission_contract::log::{CallEnd, Decision, Entry, ToolDefinition};
use mission_contract::spec::{PolicyText, Protocol};
use serde_json::{Value, json};

use crate::engine::behaviours;
use crate::engine::run_story::{ADD, Story, add, call, tool};

const POLICY: &str = "\
version: 1
rules:
  - {id: no-threes, tools: mcp.add, effect: deny, reason: Threes are somebody else's., when: [{pointer: /b, equals: 3}]}
  - {id: big-sums, tools: 'mcp.add', effect: gate, reason: Somebody looks at large ones., when: [{pointer: /a, at_least: 100}]}
  - {id: echoes, tools: '*.echo', effect: gate}
";

/// A run that is governed: by a profile, by grants, by a policy.
fn governed(protocol: Protocol, profile: &str, grants: &[&str], policy: Option<&str>) -> Story {
    let mut story = Story::new(protocol);
    story.behaviours = vec![behaviours::SCOPES];
    story.spec.profile = Some(profile.to_owned());
    story.spec.grants = grants.iter().map(|scope| (*scope).to_owned()).collect();
    let text = |text: &str| PolicyText { file: "p.yaml".to_owned(), text: text.to_owned(), digest: "d1".to_owned() };
    story.spec.policy = policy.map(text);
    let ours = |name: &str| ToolDefinition { server: String::new(), name: name.to_owned(), ..tool(name, json!({})) };
    story.tools.extend([ours("run_shell_command"), ours("fs")]);
    story.begun()
}

fn last_error(story: &Story) -> Value {
    let mut results = story.events.iter().filter_map(|event| match event {
        Event::ToolResult(result) => Some(result),
        _ => None,
    });
    let result = results.next_back().unwrap();
    assert_eq!((result.ok, result.exit_code), (false, -1));
    serde_json::from_str(&result.error).unwrap()
}

#[test]
fn what_the_profile_does_not_grant_is_not_called_and_the_model_is_told_what_grants_it() {
    let mut story = governed(Protocol::Json, "safe", &[], None);
    insta::assert_snapshot!(story.says(r#"{"tool": "run_shell_command", "arguments": {}}"#), @r#"
    {"event":"tool_call","index":0,"tool":"run_shell_command","arguments":{}}
    {"event":"tool_result","index":0,"tool":"run_shell_command","arguments":{},"ok":false,"exit_code":-1,"output":"","error":"{\"error\":\"capability_denied\",\"tool\":\"run_shell_command\",\"action\":null,\"missing_scopes\":[\"shell.exec\"],\"message\":\"`run_shell_command` was not called: it needs the scope shell.exec, which the profile safe does not grant. The scope shell.exec is granted by the profile dev and those above it (--profile dev, MISSION_PROFILE=dev), or --grant shell.exec.\"}","handle":"r1","truncated":false}
    {"event":"step_started","index":1}
    ask 2
    Assistant: {"tool": "run_shell_command", "arguments": {}}
    User: run_shell_command failed (exit code -1):
    {"error":"capability_denied","tool":"run_shell_command","action":null,"missing_scopes":["shell.exec"],"message":"`run_shell_command` was not called: it needs the scope shell.exec, which the profile safe does not grant. The scope shell.exec is granted by the profile dev and those above it (--profile dev, MISSION_PROFILE=dev), or --grant shell.exec."}
    Do not send the same call again unchanged.
    "#);
    assert_eq!(last_error(&story)["missing_scopes"], json!(["shell.exec"]));
    story.says(r#"{"tool": "fs", "arguments": {"action": "delete"}}"#);
    let error = last_error(&story);
    assert_eq!(
        (&error["error"], &error["action"], &error["missing_scopes"]),
        (&json!("capability_denied"), &json!("delete"), &json!(["fs.delete"]))
    );
    assert!(story.intents.is_empty());
    let audited: Vec<(&str, Verdict, &str)> =
        story.audited.iter().map(|audited| (audited.tool.as_str(), audited.verdict, audited.rule.as_str())).collect();
    assert_eq!(audited, [("run_shell_command", Verdict::Denied, "profile"), ("fs", Verdict::Denied, "profile")]);
    // A tool of a server, and what is granted, is.
    assert!(story.says(ADD).contains("dispatch 1 mcp.add"));
    assert_eq!((story.audited[2].rule.as_str(), story.audited[2].is_outgoing()), ("profile", true));
    let mut story = governed(Protocol::Json, "safe", &["shell.exec"], None);
    assert!(story.says(r#"{"tool": "run_shell_command", "arguments": {}}"#).contains("dispatch 1 .run_shell_command"));
    assert_eq!((story.audited[0].rule.as_str(), story.audited[0].scopes.as_slice()), ("grant", &["shell.exec".to_owned()][..]));
    let mut story = governed(Protocol::Json, "dev", &[], None);
    assert!(story.says(r#"{"tool": "run_shell_command", "arguments": {}}"#).contains("dispatch 1 "));
}

#[test]
fn a_run_that_was_begun_before_scopes_is_judged_as_it_was() {
    let story = governed(Protocol::Json, "safe", &[], None);
    let mut old = Story::new(Protocol::Json);
    (old.spec, old.tools) = (story.spec, story.tools);
    let mut old = old.begun();
    assert!(old.says(r#"{"tool": "run_shell_command", "arguments": {}}"#).contains("dispatch 1 "));
}

#[test]
fn a_policy_denies_and_gates_by_arguments_and_names_its_rule() {
    let mut story = governed(Protocol::Json, "safe", &[], Some(POLICY));
    let Event::MissionStarted(started) = &story.events[0] else { unreachable!() };
    assert_eq!((started.gated.as_slice(), started.policy.as_deref()), (&["mcp.echo".to_owned()][..], Some("d1")));
    let prompt = story.request.as_ref().unwrap().messages[0].content.as_str().to_owned();
    assert!(prompt.contains("- mcp.echo (needs a person's approval)") && prompt.contains("- mcp.add:"), "{prompt}");
    insta::assert_snapshot!(story.says(ADD), @r#"
    {"event":"tool_call","index":0,"tool":"mcp.add","arguments":{"a":2,"b":3}}
    {"event":"tool_result","index":0,"tool":"mcp.add","arguments":{"a":2,"b":3},"ok":false,"exit_code":-1,"output":"","error":"{\"error\":\"policy_denied\",\"tool\":\"mcp.add\",\"action\":null,\"rule\":\"no-threes\",\"message\":\"`mcp.add` was not called: the policy of this run denies it (rule no-threes). Threes are somebody else's.\"}","handle":"r1","truncated":false}
    {"event":"step_started","index":1}
    ask 2
    Assistant: {"tool": "mcp.add", "arguments": {"a": 2, "b": 3}}
    User: mcp.add failed (exit code -1):
    {"error":"policy_denied","tool":"mcp.add","action":null,"rule":"no-threes","message":"`mcp.add` was not called: the policy of this run denies it (rule no-threes). Threes are somebody else's."}
    Do not send the same call again unchanged.
    "#);
    assert!(story.says(r#"{"tool": "mcp.add", "arguments": {"a": 2, "b": 4}}"#).contains("dispatch 1 mcp.add"));
    assert_eq!(story.audited.last().unwrap().rule, "default");
    story.returns("6");
    let told = story.says(r#"{"tool": "mcp.add", "arguments": {"a": 200, "b": 4}}"#);
    assert!(told.contains("The policy says so (rule big-sums). Somebody looks at large ones."), "{told}");
    assert_eq!(story.run.outcome(), Some(Outcome::AwaitingApproval));
    let told = story.taken_up_with("approve");
    assert!(told.contains("dispatch 2 mcp.add"), "{told}");
    let audited = story.audited.last().unwrap();
    assert_eq!((audited.rule.as_str(), audited.approval.as_ref().unwrap().1.as_str()), ("big-sums", "ana"));
}

#[test]
fn the_rest_of_a_reply_goes_on_behind_a_call_that_is_denied() {
    let mut story = governed(Protocol::Native, "safe", &[], Some(POLICY));
    let told = story.calls(vec![add("c1"), call("c2", "mcp_add", r#"{"a": 1, "b": 1}"#)]);
    assert!(told.contains("policy_denied") && told.contains("dispatch 1 mcp.add {\"a\":1,\"b\":1}"), "{told}");
    let told = story.returns("2");
    assert!(told.contains("Tool for c1: mcp.add failed (exit code -1)") && told.contains("Tool for c2"), "{told}");
}

#[test]
fn a_person_s_no_an_unknown_tool_and_a_kept_result_are_audited_and_what_is_malformed_is_not() {
    let mut story = governed(Protocol::Json, "safe", &[], Some(POLICY));
    story.says(r#"{"tool": "mcp.nothing", "arguments": {"x": 1}}"#);
    story.catalogue();
    story.says(r#"{"tool": "mcp.add", "arguments": {"a": "two"}}"#);
    story.says(r#"{"tool": "mcp.add", "arguments": {"a": 1, "b": 1}}"#);
    story.fails(CallEnd::Died, "gone");
    story.says(r#"{"tool": "mission_result", "arguments": {"handle": "r1"}}"#);
    story.says(r#"{"tool": "mcp.echo", "arguments": {"text": "x"}}"#);
    story.taken_up_with("refuse");
    let audited: Vec<(&str, Verdict, &str, bool)> = story
        .audited
        .iter()
        .map(|audited| (audited.tool.as_str(), audited.verdict, audited.rule.as_str(), audited.made.is_some()))
        .collect();
    assert_eq!(
        audited,
        [
            ("mcp.nothing", Verdict::UnknownTool, "catalogue", false),
            ("mcp.add", Verdict::Allowed, "default", false),
            ("mission_result", Verdict::Allowed, "catalogue", true),
            ("mcp.echo", Verdict::Denied, "echoes", false),
        ]
    );
    assert!(story.audited[3].reason.as_ref().unwrap().contains("ana refused it"));
}

#[test]
fn what_is_denied_is_denied_on_a_replay_of_its_inputs_too() {
    let mut story = governed(Protocol::Json, "safe", &[], Some(POLICY));
    let told = story.says(ADD);
    let mut again = governed(Protocol::Json, "safe", &[], Some(POLICY));
    assert_eq!(again.says(ADD), told);
    // A decision about nothing that waits is no way around it.
    let decision = Decision { approval_id: "ap_1".to_owned(), answer: "approve".to_owned(), ..Decision::default() };
    assert!(again.try_input(&Entry::Decision(decision)).is_err());
    assert!(again.intents.is_empty());
}
