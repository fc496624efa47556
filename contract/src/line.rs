//! Lines of a log as bytes: writing them, reading them, checking the chain that holds them together.
//!
//! `{"seq":…,"group":…,"at":"…","ms":…,("branch":"…",)"prev":"…","<kind>":{…},"sum":"…"}`, newline at the end. `sum` is
//! the SHA-256 of the bytes before `,"sum"`, `prev` the `sum` of the line before ([`digest::ZERO`] at first).

use std::fmt;
use std::sync::Arc;

use serde::Deserialize;
use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::digest::{self, Digest, sha256_hex};
use crate::log::Entry;
use crate::seal::{AFTER_SUM, BEFORE_SUM, SUM_DIGITS, seal, split_sum};

/// One line of a log, read and checked.
#[derive(Clone, Debug)]
pub struct Line {
    /// Number of the line, from 1.
    pub seq: u64,
    /// Number of the group that it was synced with.
    pub group: u64,
    /// When, RFC 3339 UTC with milliseconds: it informs only.
    pub at: String,
    /// Work time of the run in milliseconds, carried over resumes.
    pub ms: u64,
    /// The branch it belongs to.
    pub branch: Option<String>,
    /// `sum` of the line before.
    pub prev: Digest,
    /// What it says.
    pub entry: Entry,
    /// SHA-256 of its bytes before `,"sum"`.
    pub sum: Digest,
}

/// What is wrong with a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineProblem {
    /// It could not be written.
    Unwritable {
        /// Why.
        detail: String,
    },
    /// It does not end in a `sum`: it was cut short, or it is none of ours.
    NoSum,
    /// Its bytes are not those that were summed.
    SumDiffers {
        /// The `sum` that stands in it.
        stated: Digest,
        /// The one that its bytes have.
        found: Digest,
    },
    /// It is no JSON object of the right types.
    Malformed {
        /// Byte of the line, from 1.
        column: usize,
        /// Why.
        detail: String,
    },
    /// Another key stands where this one belongs.
    KeyOrder {
        /// What belongs there.
        expected: &'static str,
        /// What stands there; empty when nothing does.
        found: String,
    },
    /// A kind that this build does not know.
    UnknownKind {
        /// Its name.
        kind: String,
    },
    /// Its number does not follow the one before.
    SeqJumps {
        /// The number that belongs there.
        expected: u64,
        /// The number that stands there.
        found: u64,
    },
    /// Its `prev` is not the `sum` of the line before.
    PrevDiffers {
        /// The `sum` of the line before.
        expected: Digest,
        /// What stands there.
        found: Digest,
    },
    /// Its group lies before that of the line before.
    GroupFalls {
        /// The group of the line before.
        before: u64,
        /// Its own.
        found: u64,
    },
}

impl fmt::Display for LineProblem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LineProblem::Unwritable { detail } => write!(formatter, "the line could not be written: {detail}"),
            LineProblem::NoSum => {
                formatter.write_str("the line does not end in its `sum`: it was cut short, or is no line of a log")
            }
            LineProblem::SumDiffers { stated, found } => {
                write!(formatter, "the line's bytes were changed: `sum` says {stated}, they have {found}")
            }
            LineProblem::Malformed { column, detail } => {
                write!(formatter, "the line is no entry of a log (column {column}): {detail}")
            }
            LineProblem::KeyOrder { expected, found } if found.is_empty() => {
                write!(formatter, "the line ends where {expected} belongs")
            }
            LineProblem::KeyOrder { expected, found } => {
                write!(formatter, "the key `{found}` stands where {expected} belongs")
            }
            LineProblem::UnknownKind { kind } => {
                write!(formatter, "the line is of the kind `{kind}`, which this build does not know; a newer one wrote it")
            }
            LineProblem::SeqJumps { expected, found } if found < expected => {
                write!(formatter, "line {expected} belongs here and `seq` is {found}: a line was put in, or moved")
            }
            LineProblem::SeqJumps { expected, found } => {
                write!(formatter, "line {expected} is missing: `seq` is {found} here")
            }
            LineProblem::PrevDiffers { expected, found } => {
                write!(formatter, "the chain is broken: `prev` is {found}, the line before has the sum {expected}")
            }
            LineProblem::GroupFalls { before, found } => {
                write!(formatter, "the group falls from {before} to {found}")
            }
        }
    }
}

impl std::error::Error for LineProblem {}

/// How every line begins.
pub const LINE_START: &[u8] = b"{\"seq\":";

/// What a line says besides its entry and its place in the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// Number of the line, from 1.
    pub seq: u64,
    /// Number of the group that it is synced with.
    pub group: u64,
    /// When it is written, RFC 3339 UTC with milliseconds.
    pub at: &'a str,
    /// Work time of the run in milliseconds.
    pub ms: u64,
    /// The branch that it belongs to; none on the main one.
    pub branch: Option<&'a str>,
}

/// Builds lines and keeps the chain between them.
#[derive(Clone, Debug)]
pub struct LineWriter {
    head: Digest,
}

impl LineWriter {
    /// A writer that carries on after the line whose `sum` is `prev` ([`digest::ZERO`] for a new log).
    pub fn new(prev: Digest) -> Self {
        LineWriter { head: prev }
    }

    /// `sum` of the last line built.
    pub fn head(&self) -> &str {
        &self.head
    }

    /// Appends one line, its newline included, to `out`. The bytes are summed where they stand, without a copy.
    ///
    /// # Errors
    /// [`LineProblem::Unwritable`] when the entry does not serialise; `out` and the chain are then as before.
    pub fn line(&mut self, envelope: Envelope<'_>, entry: &Entry, out: &mut Vec<u8>) -> Result<(), LineProblem> {
        let start = out.len();
        if let Err(error) = self.before_sum(envelope, entry, out) {
            out.truncate(start);
            return Err(LineProblem::Unwritable { detail: error.to_string() });
        }
        self.head = seal(start, out);
        Ok(())
    }

    fn before_sum(&self, envelope: Envelope<'_>, entry: &Entry, out: &mut Vec<u8>) -> Result<(), serde_json::Error> {
        let Envelope { seq, group, at, ms, branch } = envelope;
        out.extend_from_slice(b"{\"seq\":");
        serde_json::to_writer(&mut *out, &seq)?;
        out.extend_from_slice(b",\"group\":");
        serde_json::to_writer(&mut *out, &group)?;
        out.extend_from_slice(b",\"at\":");
        serde_json::to_writer(&mut *out, at)?;
        out.extend_from_slice(b",\"ms\":");
        serde_json::to_writer(&mut *out, &ms)?;
        if let Some(branch) = branch {
            out.extend_from_slice(b",\"branch\":");
            serde_json::to_writer(&mut *out, branch)?;
        }
        out.extend_from_slice(b",\"prev\":");
        serde_json::to_writer(&mut *out, &self.head)?;
        // The entry is an object of one member, which becomes one of the line's.
        let brace = out.len();
        serde_json::to_writer(&mut *out, entry)?;
        if let Some(brace) = out.get_mut(brace) {
            *brace = b',';
        }
        out.pop();
        Ok(())
    }
}

/// Reads one line, with or without its newline, and checks everything that it says about itself.
///
/// # Errors
/// The first thing that is wrong with it. The sum is checked first: past it, the bytes are those that were written.
pub fn parse_line(bytes: &[u8]) -> Result<Line, LineProblem> {
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let (summed, stated) = split_sum(bytes).ok_or(LineProblem::NoSum)?;
    let found = sha256_hex(summed);
    if found.as_bytes() != stated {
        return Err(LineProblem::SumDiffers { stated: String::from_utf8_lossy(stated).into_owned(), found });
    }
    let mut problem = None;
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let line = LineSeed { sum: found, problem: &mut problem }
        .deserialize(&mut deserializer)
        .and_then(|line| deserializer.end().map(|()| line));
    line.map_err(|error| problem.unwrap_or_else(|| LineProblem::Malformed { column: error.column(), detail: error.to_string() }))
}

/// Whether a line, damaged or not, was written to its end: a sum stands in it and something follows, or its last bytes are those
/// of a sum. A line that was cut is not; one whose bytes were changed in one place is.
pub fn reaches_its_end(line: &[u8]) -> bool {
    let ends = line.ends_with(b"\n");
    let bytes = line.strip_suffix(b"\n").unwrap_or(line);
    let digits = bytes.strip_suffix(AFTER_SUM).map(|rest| rest.iter().rev().take_while(|byte| byte.is_ascii_hexdigit()).count());
    let announced = line.windows(BEFORE_SUM.len()).rposition(|window| window == BEFORE_SUM);
    let whole = BEFORE_SUM.len().saturating_add(SUM_DIGITS).saturating_add(AFTER_SUM.len());
    (ends && digits.is_some_and(|digits| digits >= SUM_DIGITS))
        || announced.is_some_and(|start| ends || line.len() > start.saturating_add(whole))
}

struct LineSeed<'p> {
    sum: Digest,
    problem: &'p mut Option<LineProblem>,
}

impl<'de> DeserializeSeed<'de> for LineSeed<'_> {
    type Value = Line;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Line, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl LineSeed<'_> {
    fn refuse<T, E: de::Error>(&mut self, problem: LineProblem) -> Result<T, E> {
        let sentence = problem.to_string();
        *self.problem = Some(problem);
        Err(E::custom(sentence))
    }

    fn next_is<'de, A: MapAccess<'de>>(&mut self, map: &mut A, expected: &'static str) -> Result<(), A::Error> {
        let found = map.next_key::<String>()?.unwrap_or_default();
        match found == expected {
            true => Ok(()),
            false => self.refuse(LineProblem::KeyOrder { expected, found }),
        }
    }
}

impl<'de> Visitor<'de> for LineSeed<'_> {
    type Value = Line;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a line of a log")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Line, A::Error> {
        self.next_is(&mut map, "seq")?;
        let seq = map.next_value()?;
        self.next_is(&mut map, "group")?;
        let group = map.next_value()?;
        self.next_is(&mut map, "at")?;
        let at = map.next_value()?;
        self.next_is(&mut map, "ms")?;
        let ms = map.next_value()?;
        let mut branch = None;
        let mut key = map.next_key::<String>()?.unwrap_or_default();
        if key == "branch" {
            branch = Some(map.next_value()?);
            key = map.next_key::<String>()?.unwrap_or_default();
        }
        if key != "prev" {
            return self.refuse(LineProblem::KeyOrder { expected: "prev", found: key });
        }
        let prev = map.next_value()?;
        let kind = map.next_key::<String>()?.unwrap_or_default();
        let entry = match kind.as_str() {
            "open" => Entry::Open(map.next_value()?),
            "writer" => Entry::Writer(map.next_value()?),
            "leg" => Entry::Leg(map.next_value()?),
            "catalogue" => Entry::Catalogue(map.next_value()?),
            "reply" => Entry::Reply(map.next_value()?),
            "result" => Entry::Result(map.next_value()?),
            "control" => Entry::Control(map.next_value()?),
            "decision" => Entry::Decision(map.next_value()?),
            "timer" => Entry::Timer(map.next_value()?),
            "observed" => Entry::Observed(map.next_value()?),
            "closed" => Entry::Closed(map.next_value()?),
            "ask" => Entry::Ask(map.next_value()?),
            "intent" => Entry::Intent(map.next_value()?),
            "record" => Entry::Record(map.next_value()?),
            "sum" | "" => return self.refuse(LineProblem::KeyOrder { expected: "the entry", found: kind }),
            _ => return self.refuse(LineProblem::UnknownKind { kind }),
        };
        self.next_is(&mut map, "sum")?;
        let sum: Digest = map.next_value()?;
        if sum != self.sum {
            // The summed bytes hold an end of their own: two objects in one line.
            return self.refuse(LineProblem::NoSum);
        }
        match map.next_key::<String>()? {
            None => Ok(Line { seq, group, at, ms, branch, prev, entry, sum }),
            Some(found) => self.refuse(LineProblem::KeyOrder { expected: "the end", found }),
        }
    }
}

/// Follows the chain of a log, line by line.
#[derive(Clone, Debug)]
pub struct ChainVerifier {
    seq: u64,
    group: u64,
    head: Digest,
}

impl Default for ChainVerifier {
    fn default() -> Self {
        ChainVerifier { seq: 0, group: 0, head: digest::ZERO.to_string() }
    }
}

impl ChainVerifier {
    /// A verifier for a log from its first line.
    pub fn new() -> Self {
        Self::default()
    }

    /// A verifier for what follows a line that was checked before.
    pub fn after(seq: u64, group: u64, sum: Digest) -> Self {
        ChainVerifier { seq, group, head: sum }
    }

    /// Number of the last good line; 0 before the first.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// Group of the last good line; 0 before the first.
    pub fn group(&self) -> u64 {
        self.group
    }

    /// `sum` of the last good line.
    pub fn head(&self) -> &str {
        &self.head
    }

    /// Reads the next line and checks that it follows the one before.
    ///
    /// # Errors
    /// The first thing that is wrong with it; the verifier then still stands at the last good line.
    pub fn check(&mut self, bytes: &[u8]) -> Result<Line, LineProblem> {
        let line = parse_line(bytes)?;
        let expected = self.seq.saturating_add(1);
        if line.seq != expected {
            return Err(LineProblem::SeqJumps { expected, found: line.seq });
        }
        if line.prev != self.head {
            return Err(LineProblem::PrevDiffers { expected: self.head.clone(), found: line.prev });
        }
        if line.group < self.group {
            return Err(LineProblem::GroupFalls { before: self.group, found: line.group });
        }
        self.seq = line.seq;
        self.group = line.group;
        self.head.clone_from(&line.sum);
        Ok(line)
    }
}

/// Why a record of a log cannot be made whole again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PutBackProblem {
    /// The log has no `result` with text at that line.
    NoText {
        /// Number of the line that the record points to.
        seq: u64,
    },
    /// `$of` stands where the contract has none, or not as it is written.
    Malformed {
        /// Why.
        detail: String,
    },
}

impl fmt::Display for PutBackProblem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PutBackProblem::NoText { seq } => {
                write!(formatter, "the record repeats the text of line {seq}, and that is no `result` of this log")
            }
            PutBackProblem::Malformed { detail } => write!(formatter, "the record is no record of the stream: {detail}"),
        }
    }
}

impl std::error::Error for PutBackProblem {}

/// The parts of a record that decide whether it points to a text.
#[derive(Deserialize)]
struct Pointing<'r> {
    #[serde(borrow)]
    output: Option<&'r RawValue>,
}

#[derive(Deserialize)]
struct Of {
    #[serde(rename = "$of")]
    seq: u64,
}

/// The `result` line whose text a record repeats; nothing when it holds all of its own.
///
/// # Errors
/// When it is no record.
pub fn points_at(record: &RawValue) -> Result<Option<u64>, PutBackProblem> {
    Ok(pointer_in(record.get())?.map(|(seq, _)| seq))
}

/// The line that `output` points to, and the text of that pointer.
fn pointer_in(line: &str) -> Result<Option<(u64, &str)>, PutBackProblem> {
    if !line.contains("\"$of\"") {
        return Ok(None);
    }
    let malformed = |error: serde_json::Error| PutBackProblem::Malformed { detail: error.to_string() };
    let pointing: Pointing<'_> = serde_json::from_str(line).map_err(malformed)?;
    let output = match pointing.output {
        Some(output) if output.get().starts_with('{') => output.get(),
        // The word stands in somebody's arguments or texts.
        _ => return Ok(None),
    };
    let Of { seq } = serde_json::from_str(output).map_err(malformed)?;
    Ok(Some((seq, output)))
}

/// The wire line of a record, byte for byte and without its newline: where `output` points to a `result` of the log, the
/// text of that line stands in it again.
///
/// # Errors
/// When `text_of` does not know the line, or the record is none.
pub fn put_back(record: &RawValue, text_of: impl Fn(u64) -> Option<Arc<str>>) -> Result<String, PutBackProblem> {
    let line = record.get();
    let Some((seq, output)) = pointer_in(line)? else { return Ok(line.to_string()) };
    let text = text_of(seq).ok_or(PutBackProblem::NoText { seq })?;
    // `output` borrows from `line`: the distance between them is where it stands.
    let start = output.as_ptr().addr().saturating_sub(line.as_ptr().addr());
    let end = start.saturating_add(output.len());
    let (Some(before), Some(after)) = (line.get(..start), line.get(end..)) else {
        return Err(PutBackProblem::Malformed { detail: "its output lies outside of it".to_string() });
    };
    let quoted = serde_json::to_string(&*text).map_err(|error| PutBackProblem::Malformed { detail: error.to_string() })?;
    Ok([before, quoted.as_str(), after].concat())
}

#[cfg(test)]
#[path = "line_tests.rs"]
mod tests;
