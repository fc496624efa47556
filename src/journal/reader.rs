//! Reading a log back: line by line, each checked, damage told apart from a torn tail.
//!
//! The `group` of a line is the number of the first line that was synced with it. So the last group that can be seen says
//! where it began, and damage at a line before that is damage to something that had been durable.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use mission_contract::digest;
use mission_contract::line::{ChainVerifier, LINE_START, Line, LineProblem, parse_line, put_back};
use mission_contract::log::Entry;
use mission_contract::text::{DEDUPLICATED_BYTES, Text};
use serde_json::value::RawValue;

use super::ReadError;
use crate::limits;
use crate::sys::files::open_regular;

/// What is wrong with a line without its end.
pub(super) const CUT: &str = "it was cut short";

/// Reads a log. Yields its good lines in order; the error, if there is one, is the last thing it yields.
#[derive(Debug)]
pub struct LogReader {
    name: String,
    input: BufReader<OwnedReadFrom>,
    chain: ChainVerifier,
    buffer: Vec<u8>,
    tail: Tail,
    over: bool,
    /// Where the lines stand whose texts a record may repeat: place and length.
    texts: BTreeMap<u64, (u64, usize)>,
    /// The text of the last of them: the record that repeats it follows soon.
    recent: Option<(u64, Arc<str>)>,
}

/// Where a log ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tail {
    /// Number of the last good line; 0 when there is none.
    pub seq: u64,
    /// Its `sum`.
    pub sum: String,
    /// Its work time in milliseconds.
    pub ms: u64,
    /// Number of the last stretch.
    pub epoch: u64,
    /// Bytes up to the end of that line.
    pub bytes: u64,
    /// What stands behind it, when something does.
    pub torn: Option<TornTail>,
}

/// The remains of what was being written when the power, or the process, went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TornTail {
    /// How many bytes.
    pub bytes: u64,
    /// What is wrong with the first line of it.
    pub problem: String,
}

impl LogReader {
    /// Opens a log for reading. A log that is being written ends where its writer is, perhaps in a torn tail.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let name = path.display().to_string();
        let file = open_regular(path).map_err(|source| ReadError::Io { path: name.clone(), source })?;
        Ok(Self::new(file, name))
    }

    /// Reads on behind the last good line, where the log was torn when it was read: it is being written, and may have grown.
    pub fn again(&mut self) {
        if self.over && self.tail.torn.take().is_some() {
            self.rewind();
        }
        self.over = false;
    }

    /// Makes everything durable that stands in the log by now, whoever wrote it. Returns how many bytes that are.
    ///
    /// # Errors
    /// When the system cannot say that it is.
    pub fn sync(&self) -> Result<u64, ReadError> {
        let log = &self.input.get_ref().log;
        let bytes = log.metadata().map_err(|source| self.io(source))?.len();
        match log.sync_data() {
            // What can only be read holds nothing that is not durable.
            Err(error) if !matches!(error.raw_os_error(), Some(libc::EROFS | libc::EINVAL)) => Err(self.io(error)),
            _ => Ok(bytes),
        }
    }

    /// Goes back to the end of the last good line.
    fn rewind(&mut self) {
        self.input.consume(self.input.buffer().len());
        self.input.get_mut().at = self.tail.bytes;
    }

    pub(super) fn new(file: File, name: String) -> Self {
        Self {
            name,
            input: BufReader::with_capacity(64 * 1024, OwnedReadFrom { log: file, at: 0 }),
            chain: ChainVerifier::new(),
            buffer: Vec::new(),
            tail: Tail { seq: 0, sum: digest::ZERO.to_owned(), ms: 0, epoch: 1, bytes: 0, torn: None },
            over: false,
            texts: BTreeMap::new(),
            recent: None,
        }
    }

    /// Where the log ends, as far as it was read.
    pub fn tail(&self) -> &Tail {
        &self.tail
    }

    /// Reads what is left, and says where the log ends.
    ///
    /// # Errors
    /// When the log is damaged, or holds no good line at all.
    pub fn into_tail(mut self) -> Result<Tail, ReadError> {
        for line in &mut self {
            line?;
        }
        if self.tail.seq == 0 {
            return Err(ReadError::Empty { path: self.name });
        }
        Ok(self.tail)
    }

    fn read(&mut self) -> Result<Option<Line>, ReadError> {
        let problem = match self.next_bytes().map_err(|source| self.io(source))? {
            Bytes::End => return Ok(None),
            Bytes::Cut => {
                // The end of the file: what is written behind it meanwhile is looked at when it is read again.
                self.tail.torn = Some(TornTail { bytes: length(&self.buffer), problem: CUT.to_owned() });
                return Ok(None);
            }
            Bytes::TooLong => format!("it is longer than {} bytes", limits::JOURNAL_LINE_BYTES),
            Bytes::Line => match self.chain.check(&self.buffer) {
                Ok(line) => return self.good(line).map(Some),
                Err(
                    problem @ (LineProblem::UnknownKind { .. } | LineProblem::Malformed { .. } | LineProblem::KeyOrder { .. }),
                ) => {
                    // Its bytes are those that were summed: somebody wrote it so.
                    let line = self.chain.seq().saturating_add(1);
                    return Err(ReadError::Foreign { path: self.name.clone(), line, problem });
                }
                Err(problem) => problem.to_string(),
            },
        };
        let damaged = self.chain.seq().saturating_add(1);
        let (last_group, bytes) = self.rest().map_err(|source| self.io(source))?;
        if last_group.is_some_and(|first| first > damaged) {
            return Err(ReadError::Damaged { path: self.name.clone(), line: damaged, problem });
        }
        self.tail.torn = Some(TornTail { bytes, problem });
        Ok(None)
    }

    fn io(&self, source: io::Error) -> ReadError {
        ReadError::Io { path: self.name.clone(), source }
    }

    /// Takes up a good line, and puts back what it points to.
    fn good(&mut self, mut line: Line) -> Result<Line, ReadError> {
        let start = self.tail.bytes;
        let length = self.buffer.len();
        self.tail.seq = line.seq;
        self.tail.sum.clone_from(&line.sum);
        self.tail.ms = line.ms;
        self.tail.bytes = start.saturating_add(u64::try_from(length).unwrap_or(u64::MAX));
        match &mut line.entry {
            Entry::Writer(writer) => self.tail.epoch = writer.epoch,
            Entry::Result(result) => {
                if let Text::Inline(text) = &result.text
                    && text.len() > DEDUPLICATED_BYTES
                {
                    self.texts.insert(line.seq, (start, length));
                    self.recent = Some((line.seq, Arc::clone(text)));
                }
            }
            Entry::Record(record) if record.get().contains("\"$of\"") => {
                let whole = put_back(record, |seq| self.text_of(seq))
                    .map_err(|problem| problem.to_string())
                    .and_then(|text| RawValue::from_string(text).map_err(|error| error.to_string()));
                match whole {
                    Ok(whole) => *record = whole,
                    Err(problem) => {
                        return Err(ReadError::Damaged { path: self.name.clone(), line: line.seq, problem });
                    }
                }
            }
            _ => {}
        }
        Ok(line)
    }

    /// The text of a `result` line that was read before.
    fn text_of(&self, seq: u64) -> Option<Arc<str>> {
        if let Some((recent, text)) = &self.recent
            && *recent == seq
        {
            return Some(Arc::clone(text));
        }
        let (start, length) = self.texts.get(&seq)?;
        let mut bytes = vec![0; *length];
        self.input.get_ref().log.read_exact_at(&mut bytes, *start).ok()?;
        match parse_line(&bytes).ok()?.entry {
            Entry::Result(result) => match result.text {
                Text::Inline(text) => Some(text),
                Text::Of { .. } => None,
            },
            _ => None,
        }
    }

    /// The next line into the buffer, its newline included.
    fn next_bytes(&mut self) -> io::Result<Bytes> {
        self.buffer.clear();
        // A line as large as the largest tool result is rare: its memory is not kept for those after it.
        self.buffer.shrink_to(64 * 1024);
        let bound = limits::JOURNAL_LINE_BYTES.saturating_add(1);
        let got = self.input.by_ref().take(bound).read_until(b'\n', &mut self.buffer)?;
        Ok(match self.buffer.last() {
            None => Bytes::End,
            Some(b'\n') => Bytes::Line,
            Some(_) if u64::try_from(got).unwrap_or(u64::MAX) >= bound => Bytes::TooLong,
            Some(_) => Bytes::Cut,
        })
    }

    /// Reads to the end from a damaged line on, which stands in the buffer: the last group of which a line is whole, and how
    /// many bytes all of it has.
    fn rest(&mut self) -> io::Result<(Option<u64>, u64)> {
        let mut last = None;
        let mut bytes = 0_u64;
        loop {
            bytes = bytes.saturating_add(length(&self.buffer));
            last = last.max(group_in(&self.buffer));
            if let Bytes::End = self.next_bytes()? {
                return Ok((last, bytes));
            }
        }
    }
}

impl Iterator for LogReader {
    type Item = Result<Line, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        let item = self.read().transpose();
        self.over = !matches!(item, Some(Ok(_)));
        item
    }
}

/// What the buffer holds.
enum Bytes {
    End,
    Line,
    Cut,
    TooLong,
}

/// The group of the whole line in these bytes, if there is one: at their beginning, or behind a line whose newline was lost.
pub(super) fn group_in(bytes: &[u8]) -> Option<u64> {
    if !bytes.ends_with(b"\n") {
        return None;
    }
    let merged = memchr::memmem::rfind_iter(bytes, LINE_START).take(limits::size(limits::JOURNAL_MERGED_LINES));
    std::iter::once(0)
        .chain(merged)
        .filter_map(|start| match parse_line(bytes.get(start..)?) {
            Ok(line) => Some(line.group),
            Err(_) => None,
        })
        .max()
}

fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

/// Reads a file from a place on, whatever its own position is.
pub(super) struct ReadFrom<'f> {
    pub(super) log: &'f File,
    pub(super) at: u64,
}

impl Read for ReadFrom<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.log.read_at(buffer, self.at)?;
        self.at = self.at.saturating_add(u64::try_from(got).unwrap_or(u64::MAX));
        Ok(got)
    }
}

/// The same, owning the file.
#[derive(Debug)]
struct OwnedReadFrom {
    log: File,
    at: u64,
}

impl Read for OwnedReadFrom {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut from = ReadFrom { log: &self.log, at: self.at };
        let got = from.read(buffer)?;
        self.at = from.at;
        Ok(got)
    }
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
