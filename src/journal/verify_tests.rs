#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use std::ops::Range;

use mission_contract::digest;
use mission_contract::event::{MissionFinished, ToolResult};
use mission_contract::line::{Envelope, LineWriter};
use mission_contract::log::{CallResult, Observed, Open, Timer, Writer};
use proptest::prelude::*;

use super::*;

/// A log in the making, with the place of each line.
#[derive(Clone)]
struct Log {
    bytes: Vec<u8>,
    lines: Vec<Range<usize>>,
    writer: LineWriter,
}

fn at(seq: u64, group: u64) -> Envelope<'static> {
    Envelope { seq, group, at: "2026-12-01T00:00:00.000Z", ms: seq * 10, branch: None }
}

impl Log {
    fn new() -> Self {
        Self { bytes: Vec::new(), lines: Vec::new(), writer: LineWriter::new(digest::ZERO.to_owned()) }
    }

    fn line(mut self, envelope: Envelope<'_>, entry: &Entry) -> Self {
        let start = self.bytes.len();
        self.writer.line(envelope, entry, &mut self.bytes).unwrap();
        self.lines.push(start..self.bytes.len());
        self
    }

    fn group(self, entries: &[Entry]) -> Self {
        let group = self.lines.len() as u64 + 1;
        entries.iter().fold(self, |log, entry| {
            let seq = log.lines.len() as u64 + 1;
            log.line(at(seq, group), entry)
        })
    }

    fn head(&self) -> String {
        self.writer.head().to_owned()
    }
}

fn opening() -> Entry {
    Entry::Open(Box::new(Open { format: LOG_FORMAT, run_id: "run_1-1".into(), ..Open::default() }))
}

fn timer(name: &str) -> Entry {
    Entry::Timer(Timer { name: name.into() })
}

fn record(event: &Event) -> Entry {
    Entry::Record(serde_json::value::to_raw_value(event).unwrap())
}

fn ending(log_head: Option<String>) -> Entry {
    record(&Event::MissionFinished(MissionFinished { log_head, ..MissionFinished::default() }))
}

fn writer(epoch: u64) -> Entry {
    Entry::Writer(Writer { epoch, ..Writer::default() })
}

/// Two stretches, groups of one and of several lines, an end.
fn small() -> Log {
    let log = Log::new()
        .group(&[opening()])
        .group(&[timer("a"), Entry::Observed(Observed { detail: "ä {\"seq\":1} \n".into(), ..Observed::default() })])
        .group(&[writer(2), timer("b")])
        .group(&[timer("c")]);
    let head = log.head();
    log.group(&[ending(Some(head))])
}

/// What is said of these bytes, with or without a witness beside them.
fn said(bytes: &[u8], witness: Option<Witness>, head: Option<&str>) -> Verdict {
    judge(bytes, witness, head).unwrap()
}

fn alone(bytes: &[u8]) -> Verdict {
    said(bytes, None, None)
}

fn fault(bytes: &[u8]) -> String {
    alone(bytes).fault.unwrap().to_string()
}

fn witness(log: &Log) -> Option<Witness> {
    Some(Witness { seq: log.lines.len() as u64, sum: log.head() })
}

#[test]
fn a_whole_log_is_fine() {
    let log = small();
    let verdict = said(&log.bytes, witness(&log), Some(&log.head()));
    assert_eq!(verdict.fault, None);
    assert_eq!(verdict.notes, Vec::<String>::new());
    assert_eq!((verdict.seq, verdict.epoch, verdict.ended, verdict.head), (7, 2, true, log.head()));
    assert_eq!((verdict.run_id.as_deref(), verdict.bytes), (Some("run_1-1"), log.bytes.len() as u64));
}

#[test]
fn every_change_of_every_byte_is_found_and_named() {
    let log = small();
    for place in 0..log.bytes.len() {
        let line = log.lines.iter().position(|range| range.contains(&place)).unwrap() as u64 + 1;
        // Every bit by itself, all of them, and the bytes that mean something to whoever splits lines.
        let byte = log.bytes[place];
        let changes = (0..8).map(|bit| 1 << bit).chain([0xff, byte ^ b'\n', byte, byte ^ b'"']).filter(|change| *change != 0);
        for change in changes {
            let mut bytes = log.bytes.clone();
            bytes[place] ^= change;
            let found = alone(&bytes).fault;
            assert_eq!(found.map(|fault| fault.seq), Some(line), "byte {place}, change {change}");
        }
    }
}

#[test]
fn a_line_that_is_gone_doubled_moved_or_put_in_is_found_at_its_place() {
    let log = small();
    let count = log.lines.len();
    let piece = |line: usize| log.bytes[log.lines[line].clone()].to_vec();
    let joined = |pieces: Vec<Vec<u8>>| pieces.concat();
    let all = || (0..count).map(piece).collect::<Vec<_>>();
    for line in 0..count {
        // Gone: found at its number, or, where it was the last, by what stands outside.
        let mut without = all();
        without.remove(line);
        let verdict = said(&joined(without.clone()), witness(&log), None);
        assert_eq!(verdict.fault.map(|fault| fault.seq), Some(line as u64 + 1), "without {line}");
        if line + 1 < count {
            assert_eq!(alone(&joined(without)).fault.map(|fault| fault.seq), Some(line as u64 + 1));
        }
        // Doubled, right behind itself and at the very end.
        let mut twice = all();
        twice.insert(line, piece(line));
        assert_eq!(alone(&joined(twice)).fault.map(|fault| fault.seq), Some(line as u64 + 2));
        let mut again = all();
        again.push(piece(line));
        assert_eq!(alone(&joined(again)).fault.map(|fault| fault.seq), Some(count as u64 + 1));
        // Moved.
        for other in 0..line {
            let mut moved = all();
            moved.swap(line, other);
            assert_eq!(alone(&joined(moved)).fault.map(|fault| fault.seq), Some(other as u64 + 1), "{line} and {other}");
        }
        // Put in: a line of somebody's own, right in itself, whose successor does not know it.
        let mut own = LineWriter::new(if line == 0 { digest::ZERO.to_owned() } else { sum(&piece(line - 1)) });
        let mut forged = Vec::new();
        own.line(at(line as u64 + 1, line as u64 + 1), &if line == 0 { opening() } else { timer("forged") }, &mut forged)
            .unwrap();
        let mut with = all();
        with.insert(line, forged);
        assert_eq!(alone(&joined(with)).fault.map(|fault| fault.seq), Some(line as u64 + 2), "put in at {line}");
    }
}

fn sum(line: &[u8]) -> String {
    mission_contract::line::parse_line(line).unwrap().sum
}

#[test]
fn a_tail_that_was_cut_is_found_by_every_witness() {
    let log = small();
    let head = log.head();
    for length in 0..log.bytes.len() {
        let cut = &log.bytes[..length];
        let whole = log.lines.iter().filter(|line| line.end <= length).count() as u64;
        let by_meta = said(cut, witness(&log), None).fault.unwrap();
        assert_eq!((by_meta.seq, by_meta.fault), (7, Fault::TailCut), "{length}");
        let by_head = said(cut, None, Some(&head)).fault.unwrap();
        assert_eq!((by_head.seq, by_head.fault), (whole, Fault::NoHead { head: head.clone() }), "{length}");
        // Nothing outside knows: a torn tail, or the end of a run that was killed.
        let verdict = alone(cut);
        assert_eq!((verdict.fault, verdict.seq), (None, whole), "{length}");
        let torn = log.lines.iter().all(|line| line.end != length) && length > 0;
        assert_eq!(verdict.notes.iter().any(|note| note.starts_with("a torn tail: ")), torn, "{length}");
    }
}

#[test]
fn what_vouches_for_a_tail_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log.ndjson");
    let whole = small();
    std::fs::write(&log, &whole.bytes[..whole.lines[5].end]).unwrap();
    let place = |known: bool| RunPlace { name: "it".into(), folder: known.then(|| folder.path().to_owned()), log: log.clone() };
    let said = |known| verify(&place(known), None).unwrap();
    insta::assert_snapshot!(said(false).notes.join("\n"), @"
    no meta.json stands beside it: nothing but the log itself vouches for its tail
    the run has not come to its end: the last line is no `mission_finished`
    ");
    std::fs::write(folder.path().join("meta.json"), "[garbage").unwrap();
    insta::assert_snapshot!(said(true).notes.join("\n"), @"
    meta.json is missing or cannot be read: nothing but the log itself vouches for its tail
    the run has not come to its end: the last line is no `mission_finished`
    ");
    let meta = crate::journal::RunMeta { head: witness(&whole), ..Default::default() };
    std::fs::write(folder.path().join("meta.json"), serde_json::to_vec(&meta).unwrap()).unwrap();
    assert_eq!(said(true).fault, Some(LogFault { seq: 7, fault: Fault::TailCut }));
    assert_eq!(said(false).fault, None, "a log that is named by itself is judged by itself");
}

#[test]
fn a_head_may_be_older_than_the_log() {
    let log = small();
    let older = sum(&log.bytes[log.lines[3].clone()]);
    let verdict = said(&log.bytes, witness(&log), Some(&older));
    assert_eq!((verdict.fault, verdict.notes), (None, vec!["--head names line 4; 3 more stand behind it".to_owned()]));
    let older = Witness { seq: 4, sum: older };
    assert_eq!(said(&log.bytes, Some(older.clone()), None).fault, None, "a witness of a run that goes on is older too");
    let other = Witness { sum: digest::sha256_hex(b"other"), ..older };
    insta::assert_snapshot!(said(&log.bytes, Some(other), None).fault.unwrap().fault.to_string().get(..11).unwrap(), @"its sum is ");
}

#[test]
fn what_stands_behind_a_killed_run_is_a_torn_tail_and_no_fault() {
    let log = Log::new().group(&[opening()]).group(&[timer("a")]);
    let half = &small().bytes[..40];
    for left in [
        half.to_vec(),
        [half, b"\n"].concat(),
        [half, b"\n\n"].concat(),
        [half, &[0; 700], b"x\n"].concat(),
        b"\xff\xfe\0\0 nothing of ours\n{\"seq\":".to_vec(),
        vec![0; 4096],
        "{\"seq\":3,\"t\":\"ä".as_bytes().split_last().unwrap().1.to_vec(),
    ] {
        let verdict = said(&[log.bytes.clone(), left.clone()].concat(), witness(&log), None);
        assert_eq!((verdict.fault, verdict.seq, verdict.bytes), (None, 2, log.bytes.len() as u64));
        assert!(
            verdict.notes[0].starts_with(&format!("a torn tail: {} bytes behind line 2 ", left.len())),
            "{:?}",
            verdict.notes
        );
        // The same in the middle of what had been synced is a fault: somebody wrote behind it.
        let more = log.clone().group(&[timer("b")]);
        let behind = [&more.bytes[..log.lines[1].start], &left, &more.bytes[log.lines[1].start..]].concat();
        assert!(alone(&behind).fault.is_some(), "{left:?}");
    }
}

#[test]
fn an_empty_file_and_one_that_is_no_log_are_told_apart() {
    assert_eq!(alone(b"").notes[0], "the log is empty: nothing of the run had become durable");
    assert_eq!(alone(b"").fault, None);
    assert_eq!(alone(&small().bytes[..9]).fault, None, "the first line was being written");
    for text in [&b"# A text\n"[..], b"{}\n", b"{\"seq\":1,\"type\":\"run_start\",\"run_id\":\"r1\"}\n", b"\n", b"x"] {
        assert_eq!(fault(text), "line 1: this is no log of a run: its first line does not begin as one");
    }
}

#[test]
fn lines_that_are_whole_and_contradict_each_other_are_found() {
    let begun = || Log::new().group(&[opening()]);
    let pointing = |seq| record(&Event::ToolResult(ToolResult { output: Text::Of { seq }, ..ToolResult::default() }));
    let text = |size| Entry::Result(CallResult { text: "x".repeat(size).into(), ..CallResult::default() });
    let cases = [
        Log::new().group(&[timer("a")]),
        begun().group(&[opening()]),
        begun().group(&[writer(3)]),
        begun().group(&[writer(1)]),
        begun().line(Envelope { group: 5, ..at(2, 5) }, &timer("a")),
        begun().line(Envelope { ms: 3, ..at(2, 2) }, &timer("a")),
        begun().line(Envelope { at: "yesterday", ..at(2, 2) }, &timer("a")),
        begun().group(&[ending(Some(digest::sha256_hex(b"other")))]),
        begun().group(&[pointing(1)]),
        begun().group(&[text(100), pointing(2)]),
        begun().group(&[record(&Event::StepStarted(Default::default())), pointing(9)]),
        begun().group(&[Entry::Record(RawValue::from_string("{\"event\":\"mission_finished\"}".into()).unwrap())]),
        Log::new().group(&[Entry::Open(Box::new(Open { format: LOG_FORMAT + 1, ..Open::default() }))]),
    ];
    let said: Vec<String> = cases.iter().map(|log| fault(&log.bytes)).collect();
    insta::assert_snapshot!(said.join("\n"), @"
    line 1: `timer` stands where it does not belong: a log begins with `open`
    line 2: `open` stands where it does not belong: `open` is the first line and no other
    line 2: stretch 2 should begin here, and it says 3
    line 2: stretch 2 should begin here, and it says 1
    line 2: its group is 5; that of the line before is 1, and a new one bears the line's own number
    line 2: its work time falls from 10 ms to 3 ms
    line 2: its `at` is no RFC 3339 time in UTC with milliseconds
    line 2: its `log_head` is d9298a10d1b0735837dc4bd85dac641b0f3cef27a47e5d53a54f2f3f5b2fcffa, the line before has the sum 4f9222692e6d726492c5c57ef79111357320fd1941e851418c9b4104a27c17a1: lines before it were replaced
    line 2: the record repeats the text of line 1, and that is no `result` of this log
    line 3: the record repeats the text of line 2, and that is no `result` of this log
    line 3: the record repeats the text of line 9, and that is no `result` of this log
    line 2: the record is no record of the stream: missing field `outcome`
    line 1: the log has format 2, this build reads 1; verify it with the build that wrote it
    ");
    assert_eq!(alone(&begun().group(&[text(DEDUPLICATED_BYTES + 1), pointing(2)]).bytes).fault, None);
    assert_eq!(alone(&begun().group(&[writer(2), writer(3)]).bytes).fault, None);
    // The time of day only informs: it may fall.
    let fell = begun().line(Envelope { at: "2026-11-30T23:00:00.000Z", ..at(2, 2) }, &timer("a"));
    assert_eq!(alone(&fell.bytes).fault, None);
}

#[test]
fn a_kind_that_is_not_known_is_left_to_the_build_that_knows_it() {
    let log = Log::new().group(&[opening()]);
    let text = String::from_utf8(log.clone().group(&[timer("x")]).bytes[log.bytes.len()..].to_vec()).unwrap();
    let text = text.replace("\"timer\"", "\"dance\"");
    let (summed, _) = text.split_once(",\"sum\"").unwrap();
    let line = format!("{summed},\"sum\":\"{}\"}}\n", digest::sha256_hex(summed.as_bytes()));
    insta::assert_snapshot!(fault(&[log.bytes.clone(), line.into_bytes()].concat()), @"line 2: the line is of the kind `dance`, which this build does not know; a newer one wrote it");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn a_log_whose_bytes_are_others_is_never_fine_as_a_whole(
        edits in proptest::collection::vec((any::<prop::sample::Index>(), 0..3_u8, any::<u8>()), 1..4)
    ) {
        let log = small();
        let mut bytes = log.bytes.clone();
        for (place, what, byte) in edits {
            match what {
                0 if !bytes.is_empty() => { let place = place.index(bytes.len()); bytes[place] = byte; }
                1 if !bytes.is_empty() => { bytes.remove(place.index(bytes.len())); }
                _ => bytes.insert(place.index(bytes.len() + 1), byte),
            }
        }
        let verdict = said(&bytes, witness(&log), Some(&log.head()));
        let same = bytes == log.bytes;
        // Behind the last line there may be a torn tail: its note is there then.
        let tail = bytes.starts_with(&log.bytes) && !verdict.notes.is_empty();
        prop_assert!(verdict.fault.is_some() || same || tail, "{:?}", verdict);
    }

    #[test]
    fn what_is_no_log_is_no_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let verdict = alone(&bytes);
        prop_assert_eq!(verdict.seq, 0);
    }
}
