#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use proptest::prelude::*;

use super::*;
use crate::event::{Event, ToolResult};
use crate::log::{Ask, CallResult, Catalogue, Closed, Control, Decision, Intent, Leg, Observed, Open, Reply, Timer, Writer};
use crate::text::Text;

const AT: &str = "2026-12-01T00:00:00.000Z";

fn record(line: &str) -> Box<RawValue> {
    RawValue::from_string(line.to_string()).unwrap()
}

fn one_of_each() -> Vec<Entry> {
    vec![
        Entry::Open(Box::new(Open { run_id: "run_1".into(), ..Default::default() })),
        Entry::Writer(Writer::default()),
        Entry::Leg(Leg::default()),
        Entry::Catalogue(Catalogue::default()),
        Entry::Reply(Reply { of: 1, text: "ä \"quoted\"\n".into(), ..Default::default() }),
        Entry::Result(CallResult::default()),
        Entry::Control(Control::default()),
        Entry::Decision(Decision::default()),
        Entry::Timer(Timer::default()),
        Entry::Observed(Observed::default()),
        Entry::Closed(Closed::default()),
        Entry::Ask(Ask::default()),
        Entry::Intent(Intent::default()),
        Entry::Record(record(r#"{"event":"step_started","index":0}"#)),
    ]
}

fn log_of(entries: &[Entry]) -> Vec<Vec<u8>> {
    let mut writer = LineWriter::new(digest::ZERO.into());
    let mut lines = Vec::new();
    for (position, entry) in entries.iter().enumerate() {
        let mut out = Vec::new();
        let seq = position as u64 + 1;
        let branch = (!position.is_multiple_of(2)).then_some("direct");
        writer.line(Envelope { seq, group: seq / 3, at: AT, ms: seq * 10, branch }, entry, &mut out).unwrap();
        lines.push(out);
    }
    lines
}

/// A line with the right sum over whatever stands before it.
fn summed(before_sum: &str) -> Vec<u8> {
    format!("{before_sum},\"sum\":\"{}\"}}\n", sha256_hex(before_sum.as_bytes())).into_bytes()
}

#[test]
fn a_line_has_its_keys_in_order_and_the_sum_of_its_bytes() {
    let mut out = Vec::new();
    let mut writer = LineWriter::new(digest::ZERO.into());
    writer
        .line(
            Envelope { seq: 1, group: 1, at: AT, ms: 7, branch: Some("direct") },
            &Entry::Timer(Timer { name: "wall".into() }),
            &mut out,
        )
        .unwrap();
    let before = format!(
        r#"{{"seq":1,"group":1,"at":"{AT}","ms":7,"branch":"direct","prev":"{}","timer":{{"name":"wall"}}"#,
        digest::ZERO
    );
    assert_eq!(out, summed(&before));
    assert_eq!(writer.head(), sha256_hex(before.as_bytes()));
}

#[test]
fn every_kind_comes_back_as_it_was_written() {
    let entries = one_of_each();
    let lines = log_of(&entries);
    let mut verifier = ChainVerifier::new();
    for (entry, bytes) in entries.iter().zip(&lines) {
        let line = verifier.check(bytes).unwrap_or_else(|problem| panic!("{}: {problem}", entry.kind()));
        assert_eq!(line.entry.kind(), entry.kind());
        assert_eq!(serde_json::to_string(&line.entry).unwrap(), serde_json::to_string(entry).unwrap());
        assert_eq!(line.ms, line.seq * 10);
        assert_eq!(line.branch.is_some(), line.seq.is_multiple_of(2));
    }
    assert_eq!(verifier.seq(), entries.len() as u64);
    // An entry serialises under the same name that a line holds it under.
    for entry in &entries {
        assert!(serde_json::to_string(entry).unwrap().starts_with(&format!("{{\"{}\":", entry.kind())));
    }
}

#[test]
fn a_changed_byte_anywhere_is_found() {
    let lines = log_of(&one_of_each());
    let good = &lines[4];
    for position in 0..good.len() - 1 {
        let mut bad = good.clone();
        bad[position] ^= 1;
        let mut verifier = ChainVerifier::after(4, 1, sum_of(&lines[3]));
        assert!(verifier.check(&bad).is_err(), "byte {position}");
        assert_eq!(verifier.seq(), 4);
    }
    for end in 0..good.len() - 1 {
        assert_eq!(parse_line(&good[..end]).unwrap_err(), LineProblem::NoSum, "cut at {end}");
    }
}

fn sum_of(line: &[u8]) -> Digest {
    parse_line(line).unwrap().sum
}

#[test]
fn a_line_that_is_missing_moved_or_forged_is_found() {
    let lines = log_of(&one_of_each());
    let mut verifier = ChainVerifier::new();
    verifier.check(&lines[0]).unwrap();
    assert_eq!(verifier.check(&lines[2]).unwrap_err(), LineProblem::SeqJumps { expected: 2, found: 3 });
    // The right number and a right sum, but another past.
    let mut other = LineWriter::new(sha256_hex(b"elsewhere"));
    let mut forged = Vec::new();
    other.line(Envelope { seq: 2, group: 1, at: AT, ms: 0, branch: None }, &Entry::Timer(Timer::default()), &mut forged).unwrap();
    assert!(matches!(verifier.check(&forged).unwrap_err(), LineProblem::PrevDiffers { .. }));
    let mut back = Vec::new();
    let mut verifier = ChainVerifier::after(1, 5, digest::ZERO.into());
    LineWriter::new(digest::ZERO.into())
        .line(Envelope { seq: 2, group: 4, at: AT, ms: 0, branch: None }, &Entry::Timer(Timer::default()), &mut back)
        .unwrap();
    assert_eq!(verifier.check(&back).unwrap_err(), LineProblem::GroupFalls { before: 5, found: 4 });
}

#[test]
fn keys_out_of_order_are_named() {
    let prev = digest::ZERO;
    let key_order = |before: String| match parse_line(&summed(&before)).unwrap_err() {
        LineProblem::KeyOrder { expected, found } => (expected, found),
        other => panic!("{before}: {other}"),
    };
    assert_eq!(key_order(r#"{"group":1"#.into()), ("seq", "group".into()));
    let head = format!(r#"{{"seq":1,"group":1,"at":"{AT}","ms":0"#);
    assert_eq!(key_order(format!(r#"{head},"timer":{{"name":""}}"#)), ("prev", "timer".into()));
    assert_eq!(key_order(format!(r#"{head},"prev":"{prev}""#)), ("the entry", "sum".into()));
    let two = format!(r#"{head},"prev":"{prev}","timer":{{"name":""}},"closed":{{"by":""}}"#);
    assert_eq!(key_order(two), ("sum", "closed".into()));
    let late = format!(r#"{head},"prev":"{prev}","timer":{{"name":""}},"sum":"","branch":"x""#);
    assert!(parse_line(&summed(&late)).is_err());
    assert_eq!(
        parse_line(&summed(&format!(r#"{head},"prev":"{prev}","dream":{{}}"#))).unwrap_err(),
        LineProblem::UnknownKind { kind: "dream".into() }
    );
    assert!(matches!(
        parse_line(&summed(&format!(r#"{head},"prev":"{prev}","timer":{{"name":5}}"#))).unwrap_err(),
        LineProblem::Malformed { .. }
    ));
    assert!(matches!(parse_line(&summed("not json")).unwrap_err(), LineProblem::Malformed { .. }));
}

#[test]
fn a_large_text_is_stored_once_and_put_back_byte_for_byte() {
    let big: Arc<str> = "a \"line\" with ünïcode\n".repeat(5000).into();
    let mut result =
        ToolResult { tool: "mcp.read".into(), output: big.clone().into(), exit_code: 0, ok: true, ..Default::default() };
    // Arguments that look like the pointer must stay what they are.
    result.arguments = serde_json::from_str(r#"{"output":{"$of":12},"a":"\"$of\""}"#).unwrap();
    result.branch = Some("direct".into());
    let wire = Event::ToolResult(result.clone()).to_line();
    result.output = Text::Of { seq: 12 };
    let stored = record(&Event::ToolResult(result).to_line());
    assert!(stored.get().len() < 1000);
    let text_of = |seq| (seq == 12).then(|| big.clone());
    assert_eq!(put_back(&stored, text_of).unwrap(), wire);
    assert_eq!(put_back(&stored, |_| None).unwrap_err(), PutBackProblem::NoText { seq: 12 });
    // And what points to nothing is left alone.
    assert_eq!(put_back(&record(&wire), |_| None).unwrap(), wire);
    let plain = r#"{"event":"step_started","index":0}"#;
    assert_eq!(put_back(&record(plain), |_| None).unwrap(), plain);
}

#[test]
fn numbers_of_arguments_survive_the_log() {
    let raw = r#"{"a":0.30000000000000004,"b":5e-324,"c":18446744073709551615,"d":2.2250738585072014e-308}"#;
    let arguments = serde_json::from_str(raw).unwrap();
    let entry = Entry::Intent(Intent { arguments, ..Default::default() });
    let lines = log_of(std::slice::from_ref(&entry));
    let Entry::Intent(read) = parse_line(&lines[0]).unwrap().entry else { panic!("no intent") };
    assert_eq!(crate::canonical::of_value(&serde_json::Value::Object(read.arguments)), raw);
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(parse_line(&bytes).is_err());
        let _ = parse_line(&summed(&String::from_utf8_lossy(&bytes)));
    }

    #[test]
    fn any_text_survives_a_line(text in any::<String>(), branch in prop::option::of(any::<String>())) {
        let entry = Entry::Reply(Reply { text: text.as_str().into(), ..Default::default() });
        let mut out = Vec::new();
        LineWriter::new(digest::ZERO.into()).line(Envelope { seq: 1, group: 1, at: AT, ms: 0, branch: branch.as_deref() }, &entry, &mut out).unwrap();
        let line = parse_line(&out).unwrap();
        prop_assert_eq!(&line.branch, &branch);
        let Entry::Reply(reply) = line.entry else { panic!("no reply") };
        prop_assert_eq!(reply.text.as_str(), text.as_str());
    }
}
