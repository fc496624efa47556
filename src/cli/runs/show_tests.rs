#![allow(clippy::unwrap_used, clippy::arithmetic_side_effects, clippy::indexing_slicing)]

use std::path::PathBuf;

use mission_contract::digest;
use mission_contract::event::{
    Answer, BudgetSpent, Event, GateRequested, Grounding, MissionFinished, Notice, Outcome, ReplyRejected, StepStarted, ToolCall,
    ToolResult, Usage, UsageTotal,
};
use mission_contract::line::{Envelope, LineWriter};
use mission_contract::log::{Ask, CallResult, Closed, Decision, Intent, Reply, ReplyCall, ReplyEnd, Role, Writer};

use super::*;

const SECRET: &str = "0123456789abcdef";

/// A log in which everything happens that a timeline shows.
struct Story {
    bytes: Vec<u8>,
    writer: LineWriter,
    seq: u64,
    _folder: tempfile::TempDir,
    path: PathBuf,
}

impl Story {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log.ndjson");
        Self { bytes: Vec::new(), writer: LineWriter::new(digest::ZERO.into()), seq: 0, _folder: folder, path }
    }

    fn at(mut self, ms: u64, entry: Entry) -> Self {
        self.seq += 1;
        let at = "2026-12-01T02:03:04.000Z";
        let envelope = Envelope { seq: self.seq, group: self.seq, at, ms, branch: None };
        self.writer.line(envelope, &entry, &mut self.bytes).unwrap();
        self
    }

    fn record(self, ms: u64, event: Event) -> Self {
        self.at(ms, Entry::Record(serde_json::value::to_raw_value(&event).unwrap()))
    }

    fn place(&self) -> RunPlace {
        std::fs::write(&self.path, &self.bytes).unwrap();
        RunPlace { name: "run_1-1".into(), folder: None, log: self.path.clone() }
    }
}

fn message(role: Role, text: &str) -> Message {
    Message { role, content: text.into(), ..Message::default() }
}

fn arguments(text: &str) -> mission_contract::event::Arguments {
    serde_json::from_str(text).unwrap()
}

fn story() -> Story {
    let mut open = Open { run_id: "run_1-1".into(), build: "0.1.0".into(), format: 1, ..Open::default() };
    open.spec.objective = format!("use {SECRET}\nwell");
    open.spec.provider = "local".into();
    open.spec.model = Some("scripted".into());
    let usage = Some(Usage { prompt_tokens: 100, completion_tokens: 7, total_tokens: 107, ..Usage::default() });
    let secret = arguments(&format!("{{\"key\":\"{SECRET}\"}}"));
    let call = ReplyCall { id: "c1".into(), name: "mcp_add".into(), arguments: "{}".into(), opaque: None };
    Story::new()
        .at(0, Entry::Open(Box::new(open)))
        .record(5, Event::MissionStarted(MissionStarted { catalogue: vec!["mcp.add".into()], ..Default::default() }))
        .record(6, Event::Notice(Notice { code: "server_noise".into(), detail: "a banner".into(), ..Default::default() }))
        .record(10, Event::StepStarted(StepStarted { index: 0, injected: vec!["be quick".into()], ..Default::default() }))
        .at(10, Entry::Ask(Ask { adds: vec![message(Role::System, "rules"), message(Role::User, SECRET)], ..Ask::default() }))
        .at(1510, Entry::Reply(Reply { of: 1, text: "I call".into(), calls: vec![call.clone()], usage, ..Reply::default() }))
        .record(1511, Event::ToolCall(ToolCall { tool: "mcp.add".into(), arguments: secret, ..Default::default() }))
        .at(1511, Entry::Intent(Intent::default()))
        .at(1811, Entry::Result(CallResult { of: 1, text: SECRET.into(), ..CallResult::default() }))
        .record(
            1812,
            Event::ToolResult(ToolResult {
                tool: "mcp.add".into(),
                ok: true,
                output: SECRET.into(),
                handle: "r1".into(),
                ..Default::default()
            }),
        )
        .record(1812, Event::StepStarted(StepStarted { index: 1, ..Default::default() }))
        .at(
            1812,
            Entry::Ask(Ask {
                adds: vec![
                    Message { calls: vec![call], ..message(Role::Assistant, "") },
                    Message { call_id: Some("c1".into()), ..message(Role::Tool, "31") },
                ],
                ..Ask::default()
            }),
        )
        .at(
            1900,
            Entry::Reply(Reply { of: 2, end: ReplyEnd::Cut, detail: Some("the connection broke".into()), ..Reply::default() }),
        )
        .record(1900, Event::ReplyRejected(ReplyRejected { index: 1, problem: "it was cut".into(), ..Default::default() }))
        .record(
            1901,
            Event::GateRequested(GateRequested {
                index: 1,
                tool: "mcp.pay".into(),
                reason: "it costs".into(),
                approval_id: Some("ap_1".into()),
                ..Default::default()
            }),
        )
        .at(61_901, Entry::Decision(Decision { answer: "approve".into(), by: "dana".into(), ..Decision::default() }))
        .at(61_901, Entry::Writer(Writer { epoch: 2, pid: 7, host: "here".into(), ..Writer::default() }))
        .at(61_902, Entry::Closed(Closed { by: "run_2-2".into(), detail: None }))
        .record(61_903, Event::Grounding(Grounding { ran: true, unsupported: vec!["48".into()], ..Default::default() }))
        .record(
            61_904,
            Event::Answer(Answer { text: format!("It is {SECRET}."), outcome: Outcome::Answered, ..Default::default() }),
        )
        .record(
            61_905,
            Event::MissionFinished(MissionFinished {
                outcome: Outcome::BudgetExhausted,
                steps: 2,
                budget: Some(BudgetSpent { which: "steps".into(), limit: 2.into(), spent: 2.into() }),
                usage: Some(UsageTotal { total_tokens: 107, calls: 1, ..Default::default() }),
                ..Default::default()
            }),
        )
}

fn redactor() -> Redactor {
    Redactor::new([("A_KEY".into(), SECRET.into())], []).unwrap()
}

type Show = fn(&RunPlace, Option<u64>, &Redactor, &mut dyn Write) -> Result<u64, CliError>;

fn shown(story: &Story, step: Option<u64>, show: Show) -> String {
    let mut out = Vec::new();
    show(&story.place(), step, &redactor(), &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert!(!text.contains(SECRET), "{text}");
    text
}

#[test]
fn a_run_is_a_timeline() {
    insta::assert_snapshot!(shown(&story(), None, as_text), @r#"
    run run_1-1
      objective  use <redacted:A_KEY> well
      begun      2026-12-01T02:03:04.000Z by mission 0.1.0
      model      local, scripted (json)
      tools      1 offered
    step 1 (index 0), at 10 ms
      model 1.5 s, tools 300 ms, 107 tokens (100 in, 7 out)
      server_noise: a banner
      told       be quick
      mcp.add {"key":"<redacted:A_KEY>"}
        ok, 300 ms, 16 B, r1
    step 2 (index 1), at 1.8 s
      model 88 ms, waiting 1 min 0 s
      reply cut  the connection broke
      not usable it was cut
      waits      mcp.pay (ap_1): it costs
      decided    approve by dana
      stretch 2, process 7 on here
      closed by run_2-2
      not grounded: 1 claim without support
      answer     It is <redacted:A_KEY>.
    budget_exhausted, steps: 2 of 2, 107 tokens in 1 reply
      2 steps in 1 min 1 s: model 1.5 s, tools 300 ms, waiting 1 min 0 s, own 17 ms
    "#);
}

#[test]
fn a_step_by_itself_has_its_texts() {
    insta::assert_snapshot!(shown(&story(), Some(0), as_text), @r#"
    step 1 (index 0), at 10 ms
      model 1.5 s, tools 300 ms, 107 tokens (100 in, 7 out)
      the model said
        | I call
        | mcp_add({})
      server_noise: a banner
      told       be quick
      mcp.add
        | {"key":"<redacted:A_KEY>"}
        ok, 300 ms, 16 B, r1
        | <redacted:A_KEY>
    "#);
    assert_eq!(shown(&story(), Some(9), as_text), "");
}

#[test]
fn a_run_is_one_json_object() {
    let text = shown(&story(), None, as_json);
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["run"]["run_id"], "run_1-1");
    assert_eq!(value["steps"][0]["events"][2]["exit_code"], 0);
    assert_eq!(value["steps"][1]["waiting_ms"], 60_000);
    assert_eq!((&value["total"]["model_ms"], &value["total"]["tool_ms"]), (&json!(1588), &json!(300)));
    let one: Value = serde_json::from_str(&shown(&story(), Some(1), as_json)).unwrap();
    assert_eq!(one["steps"].as_array().unwrap().len(), 1);
}

#[test]
fn the_prompt_of_a_step_is_what_was_sent_for_it() {
    let text = |step| shown(&story(), step, |place, step, redactor, out| prompt(place, step, false, redactor, out));
    insta::assert_snapshot!(text(None), @"
    step 2 (index 1), 4 messages

    --- system
    rules

    --- user
    <redacted:A_KEY>

    --- assistant
    calls mcp_add({}) (c1)

    --- tool (c1)
    31
    ");
    assert!(text(Some(0)).contains("2 messages") && !text(Some(0)).contains("--- tool"));
    assert_eq!(text(Some(5)), "");
    let json: Value =
        serde_json::from_str(&shown(&story(), None, |place, step, redactor, out| prompt(place, step, true, redactor, out)))
            .unwrap();
    assert_eq!((&json["step"], &json["messages"][3]["content"]), (&json!(2), &json!("31")));
}

#[test]
fn a_run_that_was_killed_says_so_and_one_without_a_line_is_none() {
    let mut killed = Story { bytes: Vec::new(), ..story() };
    killed.seq = 0;
    killed.writer = LineWriter::new(digest::ZERO.into());
    let mut killed = killed.at(0, Entry::Open(Box::default()));
    killed.bytes.extend(b"{\"seq\":2");
    insta::assert_snapshot!(shown(&killed, None, as_text).lines().skip(4).collect::<Vec<_>>().join("\n"), @"
    not ended
      0 steps in 0 ms: model 0 ms, tools 0 ms, waiting 0 ms, own 0 ms
      8 bytes behind line 1 were being written when it stopped
    ");
    let empty = Story::new();
    assert!(as_text(&empty.place(), None, &redactor(), &mut Vec::new()).is_err());
}
