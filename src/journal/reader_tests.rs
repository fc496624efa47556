#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::arithmetic_side_effects, clippy::string_slice)]

use std::io::Write;
use std::ops::Range;

use mission_contract::event::{Event, ToolResult};
use mission_contract::line::{Envelope, LineWriter};
use mission_contract::log::{CallResult, Observed, Timer, Writer};
use proptest::prelude::*;

use super::*;

/// A log in the making: its bytes, and of each line where it stands and what group it is in.
#[derive(Clone, Debug)]
struct Log {
    bytes: Vec<u8>,
    lines: Vec<(Range<usize>, u64)>,
    writer: LineWriter,
}

impl Log {
    fn new() -> Self {
        Self { bytes: Vec::new(), lines: Vec::new(), writer: LineWriter::new(digest::ZERO.to_owned()) }
    }

    fn group(mut self, entries: &[Entry]) -> Self {
        let group = self.lines.len() as u64 + 1;
        for entry in entries {
            let (start, seq) = (self.bytes.len(), self.lines.len() as u64 + 1);
            self.writer
                .line(Envelope { seq, group, at: "2026-12-01T00:00:00.000Z", ms: seq * 10, branch: None }, entry, &mut self.bytes)
                .unwrap();
            self.lines.push((start..self.bytes.len(), group));
        }
        self
    }

    fn last_group(&self) -> u64 {
        self.lines.last().unwrap().1
    }
}

fn timer(name: &str) -> Entry {
    Entry::Timer(Timer { name: name.into() })
}

/// Three groups: of two lines, of one, and of three.
fn small() -> Log {
    Log::new()
        .group(&[timer("a"), Entry::Observed(Observed { detail: "ä {\"seq\":1} \n".into(), ..Default::default() })])
        .group(&[timer("c")])
        .group(&[timer("d"), timer("e"), timer("f")])
}

fn reader(bytes: &[u8]) -> LogReader {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    LogReader::new(file, "log".into())
}

/// The lines that are good, and how it ended.
fn read(bytes: &[u8]) -> (u64, Result<Tail, ReadError>) {
    let mut reader = reader(bytes);
    let mut good = 0;
    for line in &mut reader {
        match line {
            Ok(line) => {
                good += 1;
                assert_eq!(line.seq, good);
            }
            Err(error) => return (good, Err(error)),
        }
    }
    (good, Ok(reader.tail().clone()))
}

#[test]
fn a_whole_log_is_read_to_its_end() {
    let log = small().group(&[Entry::Writer(Writer { epoch: 4, ..Default::default() })]);
    let (good, tail) = read(&log.bytes);
    let tail = tail.unwrap();
    assert_eq!((good, tail.seq, tail.epoch, tail.ms, tail.bytes), (7, 7, 4, 70, log.bytes.len() as u64));
    assert_eq!((tail.sum.as_str(), tail.torn), (log.writer.head(), None));
}

#[test]
fn an_empty_log_holds_no_run() {
    assert!(matches!(reader(b"").into_tail(), Err(ReadError::Empty { .. })));
    assert!(matches!(reader(b"\0\0\0\0\n").into_tail(), Err(ReadError::Empty { .. })));
}

#[test]
fn damage_in_an_earlier_group_names_the_line_and_in_the_last_one_is_a_torn_tail() {
    let log = small();
    let damage = |line: usize| {
        let mut bytes = log.bytes.clone();
        bytes[log.lines[line - 1].0.start + 20] ^= 1;
        read(&bytes)
    };
    for line in 1..=3 {
        let (good, end) = damage(line);
        let text = end.unwrap_err().to_string();
        assert!(text.starts_with(&format!("the log log is damaged at line {line}, which had been made durable: ")), "{text}");
        assert_eq!(good, line as u64 - 1);
    }
    for line in 4..=6 {
        let (good, end) = damage(line);
        let tail = end.unwrap();
        let start = log.lines[line - 1].0.start as u64;
        assert_eq!((good, tail.seq, tail.bytes), (line as u64 - 1, line as u64 - 1, start));
        assert_eq!(tail.torn.unwrap().bytes, log.bytes.len() as u64 - start);
    }
}

#[test]
fn two_lines_run_together_by_a_lost_newline_are_two() {
    // The last group is one line: behind the damage there is no other.
    let log = Log::new().group(&[timer("a")]).group(&[timer("b")]);
    let mut bytes = log.bytes.clone();
    bytes[log.lines[0].0.end - 1] = b' ';
    assert!(matches!(read(&bytes), (0, Err(ReadError::Damaged { line: 1, .. }))));
}

#[test]
fn a_line_that_is_missing_is_damage() {
    let log = small();
    let without = |line: usize| {
        let mut bytes = log.bytes.clone();
        bytes.drain(log.lines[line - 1].0.clone());
        read(&bytes)
    };
    assert!(matches!(without(3), (2, Err(ReadError::Damaged { line: 3, .. }))));
    assert_eq!(without(5).1.unwrap().seq, 4);
}

#[test]
fn a_line_of_another_build_is_no_damage() {
    let mut log = small();
    let start = log.bytes.len();
    log = log.group(&[timer("x")]);
    let text = String::from_utf8(log.bytes[start..].to_vec()).unwrap().replace("\"timer\"", "\"dance\"");
    let summed = &text[..text.find(",\"sum\"").unwrap()];
    let line = format!("{summed},\"sum\":\"{}\"}}\n", digest::sha256_hex(summed.as_bytes()));
    log.bytes.truncate(start);
    log.bytes.extend_from_slice(line.as_bytes());
    let (good, end) = read(&log.bytes);
    assert_eq!(good, 6);
    assert!(matches!(end, Err(ReadError::Foreign { line: 7, problem: LineProblem::UnknownKind { .. }, .. })));
}

#[test]
fn a_text_that_is_stored_once_is_put_back_byte_for_byte() {
    let large: Arc<str> = "grün \"x\"\n".repeat(20_000).into();
    let other: Arc<str> = "other ".repeat(20_000).into();
    let result = |text: &Arc<str>| Entry::Result(CallResult { text: Text::Inline(Arc::clone(text)), ..Default::default() });
    let record = |output: Text| {
        let event = Event::ToolResult(ToolResult { tool: "mcp.big".into(), output, handle: "r1".into(), ..Default::default() });
        serde_json::value::to_raw_value(&event).unwrap()
    };
    // The later one points past the result before it.
    let log = Log::new()
        .group(&[result(&large), result(&other), Entry::Record(record(Text::Of { seq: 1 }))])
        .group(&[Entry::Record(record(Text::Of { seq: 2 }))]);
    let lines: Vec<Line> = reader(&log.bytes).map(Result::unwrap).collect();
    for (line, text) in [(2, &large), (3, &other)] {
        match &lines[line].entry {
            Entry::Record(shown) => assert_eq!(shown.get(), record(Text::Inline(Arc::clone(text))).get()),
            other => assert!(matches!(other, Entry::Record(_))),
        }
    }
    let dangling = Log::new().group(&[Entry::Record(record(Text::Of { seq: 9 }))]);
    assert!(matches!(read(&dangling.bytes), (0, Err(ReadError::Damaged { line: 1, .. }))));
}

/// Logs of every small shape.
fn logs() -> impl Strategy<Value = Log> {
    let entry = prop_oneof![
        "[a-zäö\\PC]{0,8}".prop_map(|name| timer(&name)),
        ".{0,20}".prop_map(|detail| Entry::Observed(Observed { detail, ..Default::default() })),
    ];
    let group = proptest::collection::vec(entry, 1..4);
    proptest::collection::vec(group, 1..5).prop_map(|groups| groups.iter().fold(Log::new(), |log, group| log.group(group)))
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    #[test]
    fn a_changed_byte_is_found_and_classed_by_its_group(log in logs(), place: prop::sample::Index, change in 1..=255u8) {
        let place = place.index(log.bytes.len());
        let mut bytes = log.bytes.clone();
        bytes[place] ^= change;
        let line = log.lines.iter().position(|(range, _)| range.contains(&place)).unwrap();
        let (good, end) = read(&bytes);
        prop_assert_eq!(good, line as u64);
        if log.lines[line].1 == log.last_group() {
            let tail = end.unwrap();
            prop_assert_eq!(tail.bytes, log.lines[line].0.start as u64);
            prop_assert_eq!(tail.torn.unwrap().bytes, (bytes.len() - log.lines[line].0.start) as u64);
        } else {
            let named = matches!(end, Err(ReadError::Damaged { line: named, .. }) if named == line as u64 + 1);
            prop_assert!(named, "{end:?}");
        }
    }

    #[test]
    fn a_cut_log_ends_at_its_last_whole_line(log in logs(), place: prop::sample::Index) {
        let length = place.index(log.bytes.len());
        let whole = log.lines.iter().filter(|(range, _)| range.end <= length).count();
        let end = whole.checked_sub(1).map_or(0, |last| log.lines[last].0.end);
        let (good, tail) = read(&log.bytes[..length]);
        let tail = tail.unwrap();
        prop_assert_eq!((good, tail.bytes), (whole as u64, end as u64));
        prop_assert_eq!(tail.torn.map(|torn| torn.bytes), (length > end).then_some((length - end) as u64));
    }

    #[test]
    fn what_is_no_log_is_no_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let (good, _) = read(&bytes);
        prop_assert_eq!(good, 0);
    }
}
