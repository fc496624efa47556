#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use mission_contract::event::Outcome;
use mission_contract::log::{Entry, Reply, ReplyEnd, Writer};
use mission_contract::spec::{Protocol, Supervision};

use crate::engine::request::FunctionChoice;
use crate::engine::run_story::{ADD, Story, add, control};

fn watched(protocol: Protocol, supervisor: Supervision) -> Story {
    let mut story = Story::new(protocol);
    story.spec.supervisor = supervisor;
    story.begun()
}

/// The same call, three times over.
fn repeats(story: &mut Story) -> String {
    let mut told = String::new();
    for _ in 0..3 {
        if story.run.open().spec.protocol == Protocol::Native {
            story.calls(vec![add("1")]);
        } else {
            story.says(ADD);
        }
        told = story.returns("5");
    }
    told
}

#[test]
fn a_run_that_repeats_itself_is_reviewed_and_nudged() {
    let mut story = watched(Protocol::Json, Supervision::On);
    insta::assert_snapshot!(repeats(&mut story), @r#"
    {"event":"tool_result","index":2,"tool":"mcp.add","arguments":{"a":2,"b":3},"ok":true,"exit_code":0,"output":"5","error":"","handle":"r3","truncated":false}
    review 4
    System: You watch over somebody who carries out an objective with tools. You do not do the work yourself. Judge from the calls whether it gets on, and reply with one JSON object and nothing else: {"verdict": "…", "note": "…"}. The verdicts:
    - progressing: the work gets on, and is to go on as it does.
    - nudge: it is on a wrong track; the note says in one or two sentences what to do differently.
    - stuck: what there is will not become more; it is to answer now with what it has.
    User: Objective:
    Count.

    The last calls:
    - mcp.add (ok): 5
    - mcp.add (ok): 5
    - mcp.add (ok): 5

    Replies that could not be used so far: 0.
    What was noticed: the same call came back with the same result several times.
    "#);
    insta::assert_snapshot!(story.reviewer(r#"{"verdict": "nudge", "note": "Use the sum that you have."}"#), @r#"
    {"event":"step_started","index":3,"injected":["You are not getting on: the same call came back with the same result several times. Use the sum that you have. Nothing is lost: every result is still there. Do something different now."],"review":{"signal":"repeated_call","verdict":"nudge","reviews_left":2,"note":"Use the sum that you have."}}
    ask 5
    Assistant: {"tool": "mcp.add", "arguments": {"a": 2, "b": 3}}
    User: Result of mcp.add, ok: the very same as r1, which you already have. Read parts of it with mission_result and {"handle": "r1"}. The same call will keep returning this.
    User: You are not getting on: the same call came back with the same result several times. Use the sum that you have. Nothing is lost: every result is still there. Do something different now.
    "#);
    story.says(r#"{"answer": "Five."}"#);
    assert_eq!(story.run.outcome(), Some(Outcome::Answered));
}

#[test]
fn a_run_that_is_stuck_has_one_step_and_nothing_but_an_answer() {
    for protocol in [Protocol::Json, Protocol::Native] {
        let mut story = watched(protocol, Supervision::On);
        repeats(&mut story);
        let told = story.reviewer(r#"{"verdict": "stuck", "note": ""}"#);
        assert!(told.contains(r#""review":{"signal":"repeated_call","verdict":"stuck","reviews_left":2}"#), "{told}");
        assert!(told.contains("The work stops here"), "{told}");
        let request = story.request.as_ref().unwrap();
        if protocol == Protocol::Native {
            let names: Vec<&str> = request.functions.iter().map(|function| function.name.as_str()).collect();
            assert_eq!((names, request.choice), (vec!["mission_answer"], FunctionChoice::Required));
        } else {
            assert!(!request.constraint.as_ref().unwrap().schema.to_string().contains("tool"));
        }
        let mut other = story;
        let told = if protocol == Protocol::Native { other.calls(vec![add("9")]) } else { other.says(ADD) };
        assert!(told.contains("reply_rejected") && !told.contains("dispatch"), "{told}");
        assert!(told.contains(r#""outcome":"incomplete""#) && told.contains(r#""reason":"stuck""#), "{told}");
        let mut story = watched(protocol, Supervision::On);
        repeats(&mut story);
        story.reviewer(r#"{"verdict": "stuck"}"#);
        let answer = Reply {
            text: if protocol == Protocol::Json { r#"{"answer": "Five."}"# } else { "Five." }.into(),
            ..Reply::default()
        };
        let told = story.replies(answer);
        assert!(told.contains(r#""outcome":"answered""#) && told.contains(r#""reason":"stuck""#), "{told}");
    }
}

#[test]
fn a_review_that_fails_lets_it_go_on() {
    for reply in [Reply { end: ReplyEnd::Failed, ..Reply::default() }, Reply { text: "well".into(), ..Reply::default() }] {
        let mut story = watched(Protocol::Json, Supervision::On);
        repeats(&mut story);
        let told = story.input(Entry::Reply(Reply { of: 4, ..reply }));
        assert!(told.contains(r#""verdict":"progressing","reviews_left":2"#) && told.contains("ask 5"), "{told}");
    }
}

#[test]
fn nobody_is_asked_where_it_is_off_and_it_is_told_where_it_warns() {
    assert!(repeats(&mut watched(Protocol::Json, Supervision::Off)).contains("ask 4"));
    let told = repeats(&mut watched(Protocol::Json, Supervision::Warn));
    assert!(told.contains("no_progress") && told.contains("ask 4") && !told.contains("review"), "{told}");
}

#[test]
fn a_shape_is_demanded_of_a_model_that_says_the_same_nothing() {
    for protocol in [Protocol::Json, Protocol::Native] {
        let mut story = watched(protocol, Supervision::On);
        let told = (0..3).map(|_| story.says("  ")).last().unwrap();
        assert!(told.contains("Reply with one JSON object and nothing else") && told.contains("ask 4"), "{told}");
        let request = story.request.as_ref().unwrap();
        assert!(request.functions.is_empty());
        assert!(request.constraint.as_ref().unwrap().schema.to_string().contains(r#""enum":["mcp.add","mcp.echo""#));
        let told = story.says(ADD);
        assert!(told.contains("dispatch 1 mcp.add"), "{told}");
        // From there on as before.
        let told = story.returns("5");
        assert!(told.contains("ask 5"), "{told}");
        assert_eq!(story.request.as_ref().unwrap().functions.is_empty(), protocol == Protocol::Json);
    }
}

#[test]
fn a_run_can_be_ended_while_it_is_reviewed_and_taken_up_there() {
    let mut story = watched(Protocol::Json, Supervision::On);
    repeats(&mut story);
    assert_eq!(story.input(control("cancel", Some("SIGTERM"))), "abort the ask");
    let told = story.input(Entry::Reply(Reply { of: 4, end: ReplyEnd::Interrupted, ..Reply::default() }));
    assert!(told.contains(r#""reason":"cancelled""#), "{told}");
    story.input(Entry::Writer(Writer { epoch: 2, ..Writer::default() }));
    assert!(story.catalogue().contains("review 5"), "the question is asked anew");
    story.reviewer(r#"{"verdict": "stuck"}"#);
    // What was the last step when its process died is the last one again.
    story.input(Entry::Writer(Writer { epoch: 3, ..Writer::default() }));
    let told = story.catalogue();
    assert!(told.contains("ask 7") && told.contains("resumed"), "{told}");
    assert!(story.says(r#"{"answer": "Five."}"#).contains(r#""reason":"stuck""#));
}
