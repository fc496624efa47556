#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::collections::BTreeMap;

use mission_contract::event::{Outcome, Usage};
use mission_contract::log::{CallEnd, Entry, Reply, ReplyCall, ReplyEnd, Timer, Writer};
use mission_contract::spec::{Pricing, Protocol};
use serde_json::json;

use super::{CHANGED_SECONDS, CHANGED_TOKENS, CLOCK_TIMER};
use crate::engine::run_story::{ADD, Story, add, control, usage};

fn limited(protocol: Protocol, limit: impl FnOnce(&mut Story)) -> Story {
    let mut story = Story::new(protocol);
    limit(&mut story);
    story.begun()
}

fn clock() -> Entry {
    Entry::Timer(Timer { name: CLOCK_TIMER.to_owned() })
}

fn costing(text: &str, usage: Usage) -> Reply {
    Reply { text: text.into(), usage: Some(usage), ..Reply::default() }
}

#[test]
fn the_clock_is_armed_and_interrupts_the_model() {
    let mut story = Story::new(Protocol::Json);
    story.spec.limits.seconds = Some(2.5);
    story.open();
    assert!(story.catalogue().contains("arm clock Some(2500)"));
    assert_eq!(story.input(clock()), "abort the ask");
    story.ms = 2504;
    let reply = Reply { end: ReplyEnd::Interrupted, ..Reply::default() };
    insta::assert_snapshot!(story.replies(reply), @r#"
    {"event":"mission_finished","outcome":"budget_exhausted","steps":0,"max_steps":0,"budget":{"which":"seconds","limit":2.5,"spent":2.504},"elapsed_s":2.504}
    finish Ending { outcome: BudgetExhausted, failure: None, signal: None }
    "#);
}

#[test]
fn half_an_answer_is_delivered_with_its_caveat() {
    for protocol in [Protocol::Json, Protocol::Native] {
        let mut story = limited(protocol, |story| story.spec.limits.seconds = Some(2.0));
        story.input(clock());
        let reply = match protocol {
            Protocol::Json => Reply { text: r#"{"answer": "There are tw"#.into(), ..Reply::default() },
            Protocol::Native => {
                let arguments = r#"{"text": "There are tw"#.to_owned();
                Reply {
                    calls: vec![ReplyCall { name: "mission_answer".into(), arguments, ..ReplyCall::default() }],
                    ..Reply::default()
                }
            }
        };
        let told = story.replies(Reply { end: ReplyEnd::Interrupted, ..reply });
        assert!(told.contains(r#""text":"There are tw\n\n---\nThis answer is not whole"#), "{told}");
        assert!(told.contains("answered_with_caveat") && told.contains("budget_exhausted"), "{told}");
    }
}

#[test]
fn half_an_answer_is_not_lost_with_any_other_limit() {
    for protocol in [Protocol::Json, Protocol::Native] {
        let half = || match protocol {
            Protocol::Json => Reply { text: r#"{"answer": "There are tw"#.into(), ..Reply::default() },
            Protocol::Native => Reply { text: "There are tw".into(), ..Reply::default() },
        };
        let cut = || Reply { finish: Some("length".to_owned()), usage: Some(usage(90, 10)), ..half() };
        for limit in ["steps", "tokens"] {
            let mut story = limited(protocol, |story| match limit {
                "steps" => story.spec.limits.steps = Some(1),
                _ => story.spec.limits.tokens = Some(150),
            });
            let told = story.replies(cut());
            assert!(told.contains(r#""text":"There are tw\n\n---\nThis answer is not whole"#), "{told}");
            assert!(told.contains(&format!(r#""which":"{limit}""#)) && told.contains(r#""steps":1"#), "{told}");
        }
        // A call was taken afterwards: it is no answer any more.
        let mut story = limited(protocol, |story| story.spec.limits.steps = Some(2));
        story.replies(cut());
        match protocol {
            Protocol::Json => story.says(ADD),
            Protocol::Native => story.calls(vec![add("1")]),
        };
        let told = story.returns("5");
        assert!(told.contains("budget_exhausted") && !told.contains("not whole"), "{told}");
    }
}

#[test]
fn a_call_that_nobody_could_be_told_of_is_not_made() {
    let mut story = limited(Protocol::Json, |story| story.spec.limits.tokens = Some(150));
    let told = story.replies(Reply { text: ADD.into(), usage: Some(usage(140, 20)), ..Reply::default() });
    assert!(told.contains(r#""which":"tokens","limit":150,"spent":160"#) && story.intents.is_empty(), "{told}");
    let mut story = limited(Protocol::Json, |story| story.spec.limits.tokens = Some(150));
    let reply = Reply { text: r#"{"answer": "Five."}"#.into(), usage: Some(usage(140, 20)), ..Reply::default() };
    assert!(story.replies(reply).contains(r#""outcome":"answered""#), "an answer has cost what it cost");
}

#[test]
fn a_question_that_died_with_its_process_counts_and_one_that_was_answered_counts_once() {
    let mut story = limited(Protocol::Json, |story| story.spec.limits.tokens = Some(100_000));
    story.taken_up();
    let died = story.run.spent().0;
    assert!(died > 50, "{died}");
    story.ends(ReplyEnd::Interrupted);
    let settled = story.run.spent().0;
    story.taken_up();
    assert_eq!(story.run.spent().0, settled);
}

#[test]
fn a_whole_answer_that_came_with_the_end_of_the_time_is_one() {
    let mut story = limited(Protocol::Json, |story| story.spec.limits.seconds = Some(2.0));
    story.input(clock());
    story.says(r#"{"answer": "Two."}"#);
    assert_eq!(story.run.outcome(), Some(Outcome::Answered));
}

#[test]
fn the_clock_interrupts_a_call_and_names_those_that_were_not_made() {
    let mut story = limited(Protocol::Native, |story| story.spec.limits.seconds = Some(2.0));
    story.calls(vec![add("1"), add("2")]);
    assert_eq!(story.input(clock()), "cancel the call");
    let told = story.fails(CallEnd::Cancelled, "given up");
    assert!(told.contains("budget_exhausted") && told.contains(r#""which":"seconds""#), "{told}");
    // Somebody who cancels is heard first.
    let mut story = limited(Protocol::Json, |story| story.spec.limits.seconds = Some(2.0));
    story.input(clock());
    assert_eq!(story.input(control("cancel", None)), "");
    let told = story.replies(Reply { end: ReplyEnd::Interrupted, ..Reply::default() });
    assert!(told.contains(r#""outcome":"incomplete""#) && told.contains(r#""reason":"cancelled""#), "{told}");
}

#[test]
fn no_time_at_all_asks_nobody() {
    let mut story = Story::new(Protocol::Json);
    story.spec.limits.seconds = Some(0.0);
    story.open();
    let told = story.catalogue();
    assert!(told.contains("mission_started") && told.contains("budget_exhausted") && !told.contains("ask 1"), "{told}");
}

#[test]
fn waiting_for_a_person_is_time_unless_it_is_free() {
    for is_free in [false, true] {
        let mut story = limited(Protocol::Json, |story| {
            story.spec.limits.seconds = Some(10.0);
            story.spec.gates = vec!["mcp.add".to_owned()];
            story.spec.gate_wait_ms = Some(60_000);
            story.spec.gate_time_free = is_free;
        });
        let told = story.says(ADD);
        assert!(told.contains(if is_free { "for 60000 ms" } else { "for 8500 ms" }), "{told}");
        assert_eq!(told.contains("arm clock None"), is_free, "{told}");
        story.ms = 31_500;
        if is_free {
            let approval_id = story.run.awaits().unwrap().approval_id;
            let answer =
                mission_contract::log::Decision { approval_id, answer: "approve".into(), by: "ana".into(), ..Default::default() };
            let told = story.input(Entry::Decision(answer));
            assert!(told.contains("arm clock Some(40000)") && told.contains("dispatch 1"), "{told}");
        } else {
            let told = story.input(clock());
            assert!(told.contains("leave the gate") && told.contains("awaiting_approval"), "{told}");
        }
    }
}

#[test]
fn a_question_that_would_pass_the_limit_is_not_asked() {
    let mut story = limited(Protocol::Json, |story| story.spec.limits.tokens = Some(500));
    story.replies(costing(ADD, usage(200, 10)));
    let told = story.returns("5");
    assert!(told.contains("ask 2"), "{told}");
    story.replies(costing(ADD, usage(220, 10)));
    insta::assert_snapshot!(story.returns("5").lines().last().unwrap(), @"finish Ending { outcome: BudgetExhausted, failure: None, signal: None }");
    let finished = story.events.last().unwrap().to_line();
    assert!(finished.contains(r#""budget":{"which":"tokens","limit":500,"spent":440}"#), "{finished}");
}

#[test]
fn a_model_that_reports_nothing_counts_by_its_bytes_and_that_is_told_once() {
    let mut story = limited(Protocol::Json, |story| story.spec.limits.tokens = Some(100_000));
    assert!(story.says(ADD).contains("usage_missing"));
    story.returns("5");
    assert!(!story.says(ADD).contains("usage_missing"));
    assert!(story.run.usage().is_none(), "what is reported stays as it was reported");
    assert!(story.run.spent().0 > 100);
    // Without a ceiling nobody has to know.
    assert!(!Story::json().says(ADD).contains("usage_missing"));
}

#[test]
fn money_ends_a_run_and_stands_in_its_usage() {
    let mut story = limited(Protocol::Json, |story| {
        story.spec.limits.cost_micros = Some(1_000);
        story.spec.pricing = Some(Pricing { prompt_micros: 2_000_000, completion_micros: 8_000_000, currency: "EUR".into() });
    });
    // The call is not made: nobody could be told any more what came of it.
    story.replies(costing(ADD, usage(300, 50)));
    assert!(story.intents.is_empty());
    let finished = story.events.last().unwrap().to_line();
    assert!(finished.contains(r#""budget":{"which":"cost","limit":0.001,"spent":0.001}"#), "{finished}");
    assert!(finished.contains(r#""cost":{"amount":0.001,"currency":"EUR"}"#), "{finished}");
}

#[test]
fn bytes_end_the_calls_and_not_the_answer() {
    let limit = |story: &mut Story| story.spec.limits.bytes = Some(4);
    let mut story = limited(Protocol::Native, limit);
    story.calls(vec![add("1"), add("2")]);
    let told = story.returns("12345");
    assert!(told.contains(r#""which":"bytes","limit":4,"spent":5"#) && !told.contains("dispatch 2"), "{told}");
    let mut story = limited(Protocol::Json, limit);
    story.says(ADD);
    assert!(story.returns("12345").contains("ask 2"));
    story.says(r#"{"answer": "Five digits."}"#);
    assert_eq!(story.run.outcome(), Some(Outcome::Answered));
}

#[test]
fn a_later_stretch_has_what_is_left_or_what_it_is_given() {
    let mut story = limited(Protocol::Json, |story| {
        story.spec.limits.seconds = Some(5.0);
        story.spec.limits.tokens = Some(500);
    });
    story.ms = 3_000;
    story.replies(costing(ADD, usage(400, 10)));
    let writer = |changed: &[(&str, serde_json::Value)]| {
        let changed: BTreeMap<String, serde_json::Value> =
            changed.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        Entry::Writer(Writer { epoch: 2, changed, ..Writer::default() })
    };
    story.ms = 4_000;
    story.input(writer(&[]));
    let told = story.catalogue();
    assert!(told.contains("arm clock Some(5000)"), "the time before counts: {told}");
    story.input(writer(&[(CHANGED_SECONDS, json!(9.0)), (CHANGED_TOKENS, json!(2_000))]));
    assert!(story.catalogue().contains("arm clock Some(9000)"));
    // Nothing is left: nobody is called or asked.
    let mut late = limited(Protocol::Json, |story| story.spec.limits.seconds = Some(2.0));
    late.ms = 2_500;
    late.input(writer(&[]));
    let told = late.catalogue();
    assert!(told.contains("budget_exhausted") && !told.contains("ask 2"), "{told}");
}
