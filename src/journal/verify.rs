//! Verifying a log: the bytes of every line, the chain that holds them together, what the lines say of each other, and the
//! witnesses that stand outside of it. Memory is bounded by the longest line, whatever the log's size.

use std::collections::BTreeSet;
use std::io::{self, BufRead, BufReader, Read};

use mission_contract::LOG_FORMAT;
use mission_contract::event::Event;
use mission_contract::line::{ChainVerifier, Line, LineProblem, PutBackProblem, points_at};
use mission_contract::log::Entry;
use mission_contract::text::{DEDUPLICATED_BYTES, Text};
use serde_json::value::RawValue;

use super::find::RunPlace;
use super::reader::{CUT, group_in};
use super::remains::Remains;
use super::store::is_run_id;
use super::{ReadError, Witness};
use crate::limits;
use crate::sys::files::open_regular;

/// How a `mission_finished` begins.
const ENDING: &str = "{\"event\":\"mission_finished\"";

/// What a log turned out to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// The run that its first line names.
    pub run_id: Option<String>,
    /// Number of the last good line; 0 when there is none.
    pub seq: u64,
    /// Its `sum`; empty when there is none.
    pub head: String,
    /// Number of stretches.
    pub epoch: u64,
    /// Bytes up to the end of that line.
    pub bytes: u64,
    /// True when the last good line is a `mission_finished`.
    pub ended: bool,
    /// What is wrong, and where. The first fault: behind it nothing can be said of the chain.
    pub fault: Option<LogFault>,
    /// What is not wrong, and should be known.
    pub notes: Vec<String>,
}

/// What is wrong with a log, and at which line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {seq}: {fault}")]
pub struct LogFault {
    /// The number that the line has, or should have.
    pub seq: u64,
    /// What is wrong.
    pub fault: Fault,
}

/// What is wrong with a log.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// A line is damaged, or does not follow the one before.
    #[error(transparent)]
    Line(#[from] LineProblem),
    /// It has no end.
    #[error("{CUT}, and more was written behind it")]
    Cut,
    /// It is longer than any line of ours.
    #[error("it is longer than {} bytes", limits::JOURNAL_LINE_BYTES)]
    TooLong,
    /// The file is no log.
    #[error("this is no log of a run: its first line does not begin as one")]
    NoLog,
    /// It is that of another run.
    #[error("this is the log of {found}, and not of the run whose folder it lies in")]
    OtherRun {
        /// The run that its first line names.
        found: String,
    },
    /// A later version wrote it.
    #[error("the log has format {found}, this build reads {LOG_FORMAT}; verify it with the build that wrote it")]
    Format {
        /// Its format.
        found: u32,
    },
    /// Something stands where it cannot.
    #[error("`{kind}` stands where it does not belong: {rule}")]
    Place {
        /// The kind of the line.
        kind: &'static str,
        /// The rule.
        rule: &'static str,
    },
    /// A stretch is missing, or counted twice.
    #[error("stretch {expected} should begin here, and it says {found}")]
    Epoch {
        /// The stretch that should begin.
        expected: u64,
        /// The one that is named.
        found: u64,
    },
    /// A group is named by its first line.
    #[error("its group is {found}; that of the line before is {before}, and a new one bears the line's own number")]
    Group {
        /// The group of the line before.
        before: u64,
        /// Its own.
        found: u64,
    },
    /// Work time only grows.
    #[error("its work time falls from {before} ms to {found} ms")]
    WorkTime {
        /// That of the line before.
        before: u64,
        /// Its own.
        found: u64,
    },
    /// The time of day is not written as we write it.
    #[error("its `at` is no RFC 3339 time in UTC with milliseconds")]
    TimeOfDay,
    /// A record repeats a text that is not there.
    #[error(transparent)]
    Text(#[from] PutBackProblem),
    /// A record is none.
    #[error("the record is no record of the stream: {detail}")]
    Record {
        /// Why.
        detail: String,
    },
    /// The end of the run names another line before it.
    #[error("its `log_head` is {found}, the line before has the sum {expected}: lines before it were replaced")]
    LogHead {
        /// The `sum` of the line before.
        expected: String,
        /// What stands there.
        found: String,
    },
    /// A line that was durable is gone.
    #[error("the log ends before it, and meta.json knows it to have been durable: the tail was cut")]
    TailCut,
    /// A line that was durable is another one now.
    #[error("its sum is {found}, and meta.json knows a durable line with the sum {expected}: the log was replaced")]
    Replaced {
        /// What the witness says.
        expected: String,
        /// What stands there.
        found: String,
    },
    /// The line that the caller knows is not there.
    #[error("no line up to here has the sum {head} that --head names: the tail was cut, or the log replaced")]
    NoHead {
        /// What the caller knows.
        head: String,
    },
}

/// Reads a log from its first to its last byte and says what it is. `head` is the `sum` of a line that the caller knows.
///
/// # Errors
/// When the log cannot be read. What is wrong with it is no error, but the verdict.
pub fn verify(place: &RunPlace, head: Option<&str>) -> Result<Verdict, ReadError> {
    let name = place.log.display().to_string();
    // First: a run that goes on has its witness in the log by the time that the log is read.
    let meta = place.meta();
    let io = |source| ReadError::Io { path: name.clone(), source };
    let log = open_regular(&place.log).map_err(io)?;
    let witness = meta.as_ref().and_then(|meta| meta.head.clone());
    let mut verdict = judge(log, witness, head).map_err(io)?;
    let lies_in = place.folder.as_ref().and_then(|folder| folder.file_name()?.to_str()).filter(|name| is_run_id(name));
    if let (None, Some(name), Some(found)) = (&verdict.fault, lies_in, &verdict.run_id)
        && name != found
    {
        verdict.fault = Some(LogFault { seq: 1, fault: Fault::OtherRun { found: found.clone() } });
    }
    if verdict.fault.is_none() {
        match (&place.folder, meta) {
            (Some(_), Some(_)) => {}
            (Some(_), None) => verdict
                .notes
                .push("meta.json is missing or cannot be read: nothing but the log itself vouches for its tail".to_owned()),
            (None, _) => {
                verdict.notes.push("no meta.json stands beside it: nothing but the log itself vouches for its tail".to_owned())
            }
        }
        if verdict.seq > 0 && !verdict.ended {
            verdict.notes.push("the run has not come to its end: the last line is no `mission_finished`".to_owned());
        }
    }
    Ok(verdict)
}

/// What the bytes of a log are, beside what is known of it from outside.
fn judge<R: Read>(log: R, witness: Option<Witness>, head: Option<&str>) -> io::Result<Verdict> {
    let mut verifier = Verifier::new(log, witness, head);
    let fault = verifier.lines()?;
    let fault = fault.or_else(|| verifier.outside());
    Ok(Verdict { fault, ..verifier.verdict })
}

struct Verifier<'h, R> {
    input: BufReader<R>,
    buffer: Vec<u8>,
    chain: ChainVerifier,
    verdict: Verdict,
    group: u64,
    ms: u64,
    /// Lines whose text a record may repeat. One for each 64 KiB of the log at most.
    texts: BTreeSet<u64>,
    /// A line known to be durable, and whether it was seen.
    witness: Option<Witness>,
    /// A line that the caller knows, and where it stands.
    head: Option<(&'h str, Option<u64>)>,
}

impl<'h, R: Read> Verifier<'h, R> {
    fn new(log: R, witness: Option<Witness>, head: Option<&'h str>) -> Self {
        Self {
            input: BufReader::with_capacity(limits::size(limits::VERIFY_READ_BYTES), log),
            buffer: Vec::new(),
            chain: ChainVerifier::new(),
            verdict: Verdict { epoch: 1, ..Verdict::default() },
            group: 0,
            ms: 0,
            texts: BTreeSet::new(),
            witness,
            head: head.map(|head| (head, None)),
        }
    }

    /// Reads line after line to the end, or to the first fault.
    fn lines(&mut self) -> io::Result<Option<LogFault>> {
        loop {
            let got = self.next_bytes()?;
            if got == 0 {
                return Ok(None);
            }
            let whole = self.buffer.ends_with(b"\n");
            let checked = match whole {
                true => self.chain.check(&self.buffer),
                false => Err(LineProblem::NoSum),
            };
            let seq = self.verdict.seq.saturating_add(1);
            let fault = match checked {
                Ok(line) => self.good(&line).err(),
                Err(problem) => self.damaged(problem, whole)?,
            };
            match fault {
                Some(fault) => return Ok(Some(LogFault { seq, fault })),
                // A torn tail was read to its end.
                None if self.verdict.seq < seq => return Ok(None),
                None => {}
            }
        }
    }

    /// The next line into the buffer, its newline included; returns how many bytes it has.
    fn next_bytes(&mut self) -> io::Result<usize> {
        self.buffer.clear();
        self.buffer.shrink_to(limits::size(limits::VERIFY_READ_BYTES));
        let bound = limits::JOURNAL_LINE_BYTES.saturating_add(1);
        self.input.by_ref().take(bound).read_until(b'\n', &mut self.buffer)
    }

    /// What a good line says of those before it.
    fn good(&mut self, line: &Line) -> Result<(), Fault> {
        let Verdict { seq: last, epoch, .. } = self.verdict;
        let before = std::mem::replace(&mut self.group, line.group);
        if line.group != before && line.group != line.seq {
            return Err(Fault::Group { before, found: line.group });
        }
        if line.ms < self.ms {
            return Err(Fault::WorkTime { before: self.ms, found: line.ms });
        }
        if !is_time_of_day(&line.at) {
            return Err(Fault::TimeOfDay);
        }
        let kind = line.entry.kind();
        let mut ended = false;
        match (&line.entry, last) {
            (Entry::Open(open), 0) if open.format == LOG_FORMAT => self.verdict.run_id = Some(open.run_id.clone()),
            (Entry::Open(open), 0) => return Err(Fault::Format { found: open.format }),
            (_, 0) => return Err(Fault::Place { kind, rule: "a log begins with `open`" }),
            (Entry::Open(_), _) => return Err(Fault::Place { kind, rule: "`open` is the first line and no other" }),
            (Entry::Writer(writer), _) => {
                let expected = epoch.saturating_add(1);
                if writer.epoch != expected {
                    return Err(Fault::Epoch { expected, found: writer.epoch });
                }
                self.verdict.epoch = expected;
            }
            (Entry::Result(result), _) => {
                if matches!(&result.text, Text::Inline(text) if text.len() > DEDUPLICATED_BYTES) {
                    self.texts.insert(line.seq);
                }
            }
            (Entry::Record(record), _) => ended = self.record(record, &line.prev)?,
            _ => {}
        }
        self.witness(line)?;
        if let Some((known, at)) = &mut self.head
            && *known == line.sum
        {
            *at = Some(line.seq);
        }
        self.ms = line.ms;
        self.verdict.ended = ended;
        self.verdict.seq = line.seq;
        self.verdict.head.clone_from(&line.sum);
        self.verdict.bytes = self.verdict.bytes.saturating_add(length(&self.buffer));
        Ok(())
    }

    /// What a record points at. True when it is the end of the run.
    fn record(&self, record: &RawValue, prev: &str) -> Result<bool, Fault> {
        let text = record.get();
        if let Some(seq) = points_at(record)?
            && !self.texts.contains(&seq)
        {
            return Err(PutBackProblem::NoText { seq }.into());
        }
        if !text.starts_with(ENDING) {
            return Ok(false);
        }
        let event: Event = serde_json::from_str(text).map_err(|error| Fault::Record { detail: error.to_string() })?;
        match event {
            Event::MissionFinished(finished) => match finished.log_head {
                Some(found) if found != prev => Err(Fault::LogHead { expected: prev.to_owned(), found }),
                _ => Ok(true),
            },
            _ => Ok(false),
        }
    }

    fn witness(&mut self, line: &Line) -> Result<(), Fault> {
        match &self.witness {
            Some(witness) if witness.seq == line.seq && witness.sum != line.sum => {
                Err(Fault::Replaced { expected: witness.sum.clone(), found: line.sum.clone() })
            }
            Some(witness) if witness.seq == line.seq => {
                self.witness = None;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// A line that is none of the chain: either a fault, or the beginning of a torn tail, which is noted.
    fn damaged(&mut self, problem: LineProblem, whole: bool) -> io::Result<Option<Fault>> {
        let first = self.verdict.seq.saturating_add(1);
        let too_long = length(&self.buffer) > limits::JOURNAL_LINE_BYTES;
        let by_hand = match &problem {
            LineProblem::NoSum | LineProblem::SumDiffers { .. } => false,
            // Its bytes are those that were summed: a whole line that does not belong here.
            _ => true,
        };
        if by_hand {
            return Ok(Some(problem.into()));
        }
        let mut remains = Remains::default();
        let mut last_group = None;
        loop {
            remains.take(&self.buffer);
            last_group = last_group.max(group_in(&self.buffer));
            if self.next_bytes()? == 0 {
                break;
            }
        }
        let fault = || match (too_long, whole) {
            (true, _) => Fault::TooLong,
            (false, true) => problem.clone().into(),
            (false, false) => Fault::Cut,
        };
        if last_group.is_some_and(|group| group > first) || remains.were_changed() {
            return Ok(Some(fault()));
        }
        if first == 1 && !remains.begin_a_log() {
            return Ok(Some(Fault::NoLog));
        }
        self.verdict.notes.push(format!(
            "a torn tail: {} bytes behind line {} were being written when the process or the machine went; the next writer moves \
             them to log.torn-{first}",
            remains.bytes(),
            self.verdict.seq
        ));
        Ok(None)
    }

    /// What is known from outside, once the whole log was read.
    fn outside(&mut self) -> Option<LogFault> {
        let last = self.verdict.seq;
        if let Some(witness) = self.witness.take() {
            return Some(LogFault { seq: witness.seq, fault: Fault::TailCut });
        }
        match self.head.take() {
            Some((head, None)) => Some(LogFault { seq: last, fault: Fault::NoHead { head: head.to_owned() } }),
            Some((_, Some(at))) => {
                let behind = last.saturating_sub(at);
                if behind > 0 {
                    self.verdict.notes.push(format!("--head names line {at}; {behind} more stand behind it"));
                }
                None
            }
            None if last == 0 && self.verdict.notes.is_empty() => {
                self.verdict.notes.push("the log is empty: nothing of the run had become durable".to_owned());
                None
            }
            None => None,
        }
    }
}

fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

/// `2026-12-01T00:00:00.000Z`, digit for digit.
fn is_time_of_day(text: &str) -> bool {
    const SHAPE: &[u8] = b"0000-00-00T00:00:00.000Z";
    text.len() == SHAPE.len()
        && text.bytes().zip(SHAPE).all(|(byte, shape)| if *shape == b'0' { byte.is_ascii_digit() } else { byte == *shape })
}

#[cfg(test)]
#[path = "verify_tests.rs"]
mod tests;
