#![allow(clippy::unwrap_used)]

use insta::assert_snapshot;
use mission_contract::event::{BudgetSpent, Cost, SkillRef, UsageTotal};
use serde_json::json;

use mission_contract::event::Arguments;

use super::*;

fn arguments(value: serde_json::Value) -> Arguments {
    value.as_object().unwrap().clone()
}

fn render(colours: bool, records: Vec<(u64, Event)>) -> String {
    let mut renderer = Renderer::new(colours);
    records
        .into_iter()
        .filter_map(|(at_ms, event)| Some(renderer.item(&Item::of(&Arc::new(event), &Redactor::default())?, at_ms)))
        .collect::<String>()
}

fn delta(part: u64, text: &str) -> Event {
    Event::AnswerDelta(AnswerDelta { part, text: text.into(), ..Default::default() })
}

fn answer(text: &str) -> Event {
    Event::Answer(Answer { text: text.into(), ..Default::default() })
}

/// A run with everything that people meet in one.
fn run() -> Vec<(u64, Event)> {
    let call = |text: &str| arguments(json!({ "text": text }));
    vec![
        (
            0,
            Event::MissionStarted(MissionStarted {
                catalogue: vec!["mcp.echo".into(), "mcp.drop".into(), "mission_result".into()],
                gated: vec!["mcp.drop".into()],
                max_steps: 5,
                run_id: Some("run_20261201T011109-0badcafe".into()),
                skill: Some(SkillRef { name: "greeter".into(), digest: String::new() }),
                ..Default::default()
            }),
        ),
        (10, Event::StepStarted(StepStarted { index: 0, ..Default::default() })),
        (
            1000,
            Event::ReplyRejected(ReplyRejected {
                problem: "No JSON object was found.\nReply with one.".into(),
                ..Default::default()
            }),
        ),
        (1000, Event::StepStarted(StepStarted { index: 1, injected: vec!["hurry up".into()], ..Default::default() })),
        (2000, Event::ToolCall(ToolCall { index: 1, tool: "mcp.echo".into(), arguments: call("hello"), ..Default::default() })),
        (
            2042,
            Event::ToolResult(ToolResult {
                tool: "mcp.echo".into(),
                output: "hello".into(),
                handle: "r1".into(),
                ..Default::default()
            }),
        ),
        (
            2050,
            Event::ToolCall(ToolCall {
                tool: "mcp.echo".into(),
                arguments: call(&"long ".repeat(1000)),
                branch: Some("worker-1".into()),
                ..Default::default()
            }),
        ),
        (
            65_050,
            Event::ToolResult(ToolResult {
                tool: "mcp.echo".into(),
                output: "x".repeat(1_700_000).into(),
                exit_code: 1,
                error: "no such thing: \x1b[2J\u{202e}".into(),
                handle: "r2".into(),
                truncated: true,
                branch: Some("worker-1".into()),
                ..Default::default()
            }),
        ),
        (
            66_000,
            Event::Notice(Notice {
                code: "mcp_noise".into(),
                detail: "3 lines were skipped".into(),
                server: Some("mcp".into()),
                ..Default::default()
            }),
        ),
        (66_000, Event::StepStarted(StepStarted { index: 2, ..Default::default() })),
        (67_000, delta(0, "It says\n")),
        (67_001, delta(1, "hello.")),
        (
            67_002,
            Event::Grounding(Grounding { ran: true, repairing: true, unsupported: vec!["hello.".into()], ..Default::default() }),
        ),
        (67_500, delta(0, "It says hi.")),
        (67_501, answer("It says hi.")),
        (
            67_502,
            Event::MissionFinished(MissionFinished {
                outcome: Outcome::Answered,
                steps: 3,
                usage: Some(UsageTotal {
                    prompt_tokens: 100,
                    completion_tokens: 20,
                    total_tokens: 120,
                    calls: 3,
                    cost: Some(Cost { amount: 0.25, currency: "EUR".into() }),
                }),
                elapsed_s: Some(67.502),
                ..Default::default()
            }),
        ),
    ]
}

#[test]
fn a_run_in_words() {
    assert_snapshot!(render(false, run()), @r#"
    run run_20261201T011109-0badcafe
      3 tools, 1 behind an approval, skill greeter, at most 5 steps
    step 1
      the reply was not usable: No JSON object was found. Reply with one.
    step 2
      told: hurry up
      mcp.echo {"text":"hello"}
        ok, 5 B, 42 ms, r1
    [worker-1]   mcp.echo {"text":"long long long long long long long long long long long long long long long long long long long long long long l…
    [worker-1]     the tool failed, 1.6 MiB, 1 min 3 s, r2, more than the model was shown: no such thing: \u{1b}[2J\u{202e}
      mcp_noise (mcp): 3 lines were skipped
    step 3

    It says
    hello.
      not grounded, the model is asked to repair it
        without support: hello.

    It says hi.

    answered: 3 steps, 120 tokens (100 in, 20 out), 0.25 EUR, 1 min 7 s
    "#);
}

#[test]
fn colours_change_nothing_but_the_colours() {
    let coloured = render(true, run());
    assert!(coloured.contains("\x1b[1mstep 1\x1b[0m") && coloured.contains("\x1b[32mok\x1b[0m"), "{coloured}");
    // What came from outside brought none in.
    assert!(!coloured.contains("\x1b[2J"));
    let plain = regex::Regex::new("\x1b\\[[0-9]*m").unwrap().replace_all(&coloured, "").into_owned();
    assert_eq!(plain, render(false, run()));
}

#[test]
fn other_endings() {
    let finished = |record| render(false, vec![(0, Event::MissionFinished(record))]).trim_start().to_owned();
    let budget = BudgetSpent { which: "steps".into(), limit: 5.into(), spent: 5.into() };
    assert_snapshot!(finished(MissionFinished {
        outcome: Outcome::BudgetExhausted,
        budget: Some(budget),
        steps: 5,
        ..Default::default()
    }), @"a limit was reached: steps: 5 of 5, 5 steps");
    assert_snapshot!(finished(MissionFinished {
        outcome: Outcome::Incomplete,
        reason: Some("cancelled".into()),
        steps: 1,
        elapsed_s: Some(0.25),
        ..Default::default()
    }), @"not finished: cancelled, 1 step, 250 ms");
}

#[test]
fn rarer_records() {
    assert_snapshot!(render(false, vec![
        (0, Event::MissionStarted(MissionStarted { history: 1, ..Default::default() })),
        (0, Event::StepStarted(StepStarted {
            index: 3,
            resumed: Some(mission_contract::event::Resumed { from_seq: 9, steps_replayed: 3 }),
            catalogue: Some(vec!["mcp.echo".into()]),
            ..Default::default()
        })),
        (0, Event::ModelState(ModelState {
            state: "loading".into(),
            model: "small".into(),
            detail: Some("the server loads it".into()),
            ..Default::default()
        })),
        (0, Event::GateRequested(GateRequested {
            tool: "mcp.drop".into(),
            arguments: arguments(json!({ "table": "users" })),
            reason: "it is gated".into(),
            approval_id: Some("ap_1".into()),
            ..Default::default()
        })),
    ]), @r#"
    run (not recorded)
      0 tools, 1 turn before it
    step 4, resumed after 3 steps
      the offer changed: 1 tool
      model small: loading (the server loads it)
      mcp.drop {"table":"users"}
        waits for a person: it is gated
        approval ap_1
    "#);
}

#[test]
fn an_answer_that_was_shown_is_not_shown_again() {
    let texts = |records| render(false, records).matches("Yes.").count();
    assert_eq!(texts(vec![(0, delta(0, "Ye")), (0, delta(1, "s.")), (0, answer("Yes."))]), 1);
    assert_eq!(texts(vec![(0, answer("Yes."))]), 1);
    // Fragments that were left out, or a caveat at its end: the whole of it is shown.
    assert_eq!(render(false, vec![(0, delta(1, "s.")), (0, answer("Yes."))]), "\ns.\n\nYes.\n");
    // The model began again.
    let again = vec![(0, delta(0, "Ye")), (0, delta(0, "Yes.")), (0, answer("Yes."))];
    assert_eq!(render(false, again), "\nYe\n\nYes.\n");
}

#[test]
fn the_live_line_says_what_is_waited_for_and_fits() {
    let mut renderer = Renderer::new(false);
    assert_eq!(renderer.live(0, 80), None);
    let mut show = |at_ms, event| renderer.item(&Item::of(&Arc::new(event), &Redactor::default()).unwrap(), at_ms);
    show(1000, Event::StepStarted(StepStarted::default()));
    assert_eq!(renderer.live(1900, 80).unwrap(), "asking the model…");
    assert_eq!(renderer.live(4999, 80).unwrap(), "asking the model… 3 s");
    assert_eq!(renderer.live(4999, 12).unwrap(), "asking the…");
    let mut show = |at_ms, event| renderer.item(&Item::of(&Arc::new(event), &Redactor::default()).unwrap(), at_ms);
    show(5000, Event::ToolCall(ToolCall { tool: "mcp.echo".into(), ..Default::default() }));
    assert_eq!(renderer.live(6000, 80).unwrap(), "mcp.echo… 1 s");
    let mut show = |at_ms, event| renderer.item(&Item::of(&Arc::new(event), &Redactor::default()).unwrap(), at_ms);
    show(7000, Event::ToolResult(ToolResult::default()));
    assert_eq!(renderer.live(8000, 80), None);
}

#[test]
fn sizes_and_times() {
    assert_eq!(
        [0, 1, 1023, 1024, 1536, 16 * 1024 * 1024].map(size),
        ["empty", "1 B", "1023 B", "1.0 KiB", "1.5 KiB", "16.0 MiB"]
    );
    assert_eq!([0, 999, 1250, 59_999, 61_500].map(time), ["0 ms", "999 ms", "1.2 s", "59.9 s", "1 min 1 s"]);
}
