//! Reads a run's log by its published form, with code of its own: what the program writes is judged here, not echoed.

use std::path::Path;

use serde_json::Value;
use sha2::{Digest, Sha256};

/// The log of a run.
pub struct Log {
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// The kinds of line: exactly one stands in each.
const KINDS: [&str; 14] = [
    "open",
    "writer",
    "leg",
    "catalogue",
    "reply",
    "result",
    "control",
    "decision",
    "timer",
    "observed",
    "closed",
    "ask",
    "intent",
    "record",
];

impl Log {
    /// Reads the log in a run directory.
    pub fn read(run_dir: &Path) -> Self {
        let path = run_dir.join("log.ndjson");
        let bytes = std::fs::read(&path).unwrap_or_else(|problem| panic!("{}: {problem}", path.display()));
        Self { bytes }
    }

    /// Its lines.
    pub fn lines(&self) -> Vec<Value> {
        self.raw_lines().map(|line| serde_json::from_slice(line).unwrap()).collect()
    }

    /// What its lines of one kind hold.
    pub fn of_kind(&self, kind: &str) -> Vec<Value> {
        self.lines().into_iter().filter_map(|mut line| line.as_object_mut().unwrap().remove(kind)).collect()
    }

    /// The same of a log that is being written: what is not whole yet is not there.
    pub fn of_whole_lines(&self, kind: &str) -> Vec<Value> {
        let end = self.bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        Self { bytes: self.bytes[..end].to_vec() }.of_kind(kind)
    }

    fn raw_lines(&self) -> impl Iterator<Item = &[u8]> {
        self.bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty())
    }

    /// Everything that is wrong with the envelope and the chain.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.bytes.last() != Some(&b'\n') {
            problems.push("the last line has no end".to_owned());
        }
        let mut before = "0".repeat(64);
        let (mut group, mut ms) = (0, 0);
        for (at, raw) in (1..).zip(self.raw_lines()) {
            let line: Value = match serde_json::from_slice(raw) {
                Ok(line) => line,
                Err(problem) => {
                    problems.push(format!("line {at}: {problem}"));
                    return problems;
                }
            };
            let marker = b",\"sum\":\"";
            let end = raw.windows(marker.len()).rposition(|window| window == marker).unwrap_or(raw.len());
            let sum: String = Sha256::digest(&raw[..end]).iter().map(|byte| format!("{byte:02x}")).collect();
            if line["sum"] != sum.as_str() {
                problems.push(format!("line {at}: sum {} where its bytes give {sum}", line["sum"]));
            }
            if line["prev"] != before.as_str() {
                problems.push(format!("line {at}: prev is not the sum of the line before"));
            }
            before = line["sum"].as_str().unwrap_or_default().to_owned();
            if line["seq"] != at {
                problems.push(format!("line {at}: seq {}", line["seq"]));
            }
            let keys = keys_in_order(raw);
            let here = KINDS.iter().filter(|kind| line.get(**kind).is_some()).count();
            if here != 1 {
                problems.push(format!("line {at}: {here} kinds"));
            } else {
                let mut expected = vec!["seq", "group", "at", "ms"];
                if line.get("branch").is_some() {
                    expected.push("branch");
                }
                expected.extend(["prev", kind(&line), "sum"]);
                if keys != expected {
                    problems.push(format!("line {at}: keys {keys:?}"));
                }
            }
            let (this_group, this_ms) = (line["group"].as_u64().unwrap_or(0), line["ms"].as_u64().unwrap_or(0));
            if this_group < group.max(1) || this_ms < ms {
                problems.push(format!("line {at}: group or ms runs backwards"));
            }
            (group, ms) = (this_group, this_ms);
            if !is_utc_ms(line["at"].as_str().unwrap_or_default()) {
                problems.push(format!("line {at}: at {}", line["at"]));
            }
        }
        problems
    }
}

/// The kind of a line.
pub fn kind(line: &Value) -> &'static str {
    KINDS.into_iter().find(|kind| line.get(*kind).is_some()).unwrap()
}

/// `2026-12-01T00:00:00.000Z`.
fn is_utc_ms(text: &str) -> bool {
    let shape: String = text.chars().map(|each| if each.is_ascii_digit() { '0' } else { each }).collect();
    shape == "0000-00-00T00:00:00.000Z"
}

/// The keys of an object's top level, in the order in which they stand.
fn keys_in_order(raw: &[u8]) -> Vec<String> {
    let (mut keys, mut depth, mut at) = (Vec::new(), 0, 0);
    while at < raw.len() {
        match raw[at] {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            b'"' => {
                let start = at;
                at += 1;
                while raw[at] != b'"' {
                    at += if raw[at] == b'\\' { 2 } else { 1 };
                }
                if depth == 1 && raw.get(at + 1) == Some(&b':') {
                    keys.push(serde_json::from_slice(&raw[start..=at]).unwrap());
                }
            }
            _ => {}
        }
        at += 1;
    }
    keys
}

#[test]
fn a_changed_byte_a_lost_line_and_a_swapped_key_are_seen() {
    let mut before = "0".repeat(64);
    let mut text = String::new();
    for seq in 1..=3 {
        let head = format!(
            r#"{{"seq":{seq},"group":{seq},"at":"2026-03-01T10:00:00.00{seq}Z","ms":{seq},"prev":"{before}","timer":{{"name":"a,\"sum\":\"b"}}"#
        );
        before = Sha256::digest(head.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
        text.push_str(&format!("{head},\"sum\":\"{before}\"}}\n"));
    }
    let log = |text: &str| Log { bytes: text.as_bytes().to_vec() };
    assert_eq!(log(&text).problems(), Vec::<String>::new());
    let lost: String = text.lines().enumerate().filter(|(at, _)| *at != 1).map(|(_, line)| format!("{line}\n")).collect();
    for broken in [
        text.replacen("a,", "A,", 1),
        lost,
        text.replacen("\"group\":2,\"at\"", "\"at2\":0,\"at\"", 1),
        text.trim_end().to_owned(),
    ] {
        assert!(!log(&broken).problems().is_empty(), "{broken}");
    }
}
