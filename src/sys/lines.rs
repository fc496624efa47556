//! A bounded line splitter: bytes in, complete lines out, however the bytes were cut.
//!
//! It is incremental and holds at most one line. A line that lies whole in what was pushed is borrowed from there; one that
//! came in pieces is handed over as the buffer it was gathered in, so a large line is copied once. A line over the cap is
//! counted and skipped, never held.
//!
//! A line's length is the number of its bytes before the line end, a carriage return before a line feed and a byte order
//! mark included: so it does not depend on how the bytes were cut.

use std::borrow::Cow;

use crate::limits;

const BYTE_ORDER_MARK: &[u8] = &[0xEF, 0xBB, 0xBF];

/// What ends a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineEnd {
    /// A line feed; a carriage return right before it belongs to the line end. NDJSON, MCP over stdio.
    LineFeed,
    /// A line feed, a carriage return, or both in that order. Server-sent events.
    Any,
}

/// A line, without its end and without a byte order mark at the start of the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// It fits.
    Whole(Cow<'a, [u8]>),
    /// It was longer than the cap, and is gone.
    Overlong {
        /// How long it was, in bytes.
        bytes: u64,
    },
}

/// See the module's doc.
#[derive(Debug)]
pub struct LineSplitter {
    end: LineEnd,
    cap: usize,
    /// The beginning of the current line; empty while it is skipped.
    held: Vec<u8>,
    /// Length so far of the current line when it is over the cap.
    skipped: Option<u64>,
    /// No line has come yet.
    first: bool,
    /// The last byte was a carriage return that ended a line: a line feed right after it belongs to it.
    after_return: bool,
}

impl LineSplitter {
    /// A splitter for lines of at most `cap` bytes.
    pub fn new(end: LineEnd, cap: usize) -> Self {
        Self { end, cap, held: Vec::new(), skipped: None, first: true, after_return: false }
    }

    /// A splitter for lines as a tool server writes them: [`limits::MCP_LINE_BYTES`].
    pub fn for_messages() -> Self {
        Self::new(LineEnd::LineFeed, limits::size(limits::MCP_LINE_BYTES))
    }

    /// The complete lines, now that these bytes came. The iterator is to be run to its end: what it did not reach is lost.
    pub fn push<'s, 'b>(&'s mut self, bytes: &'b [u8]) -> Lines<'s, 'b> {
        Lines { splitter: self, rest: bytes }
    }

    /// How long the current line is so far, when it is already over the cap.
    pub fn over_cap(&self) -> Option<u64> {
        self.skipped
    }

    /// The end of the input: the last line, when it had no end of its own.
    pub fn finish(&mut self) -> Option<Line<'static>> {
        if self.held.is_empty() && self.skipped.is_none() {
            return None;
        }
        Some(self.complete(&[], false))
    }

    /// The current line, whose last bytes these are.
    fn complete<'b>(&mut self, tail: &'b [u8], ended: bool) -> Line<'b> {
        let first = std::mem::replace(&mut self.first, false);
        if let Some(before) = self.skipped.take() {
            return Line::Overlong { bytes: before.saturating_add(length(tail)) };
        }
        let bytes = self.held.len().saturating_add(tail.len());
        if bytes > self.cap {
            self.held = Vec::new();
            return Line::Overlong { bytes: u64::try_from(bytes).unwrap_or(u64::MAX) };
        }
        let strip_return = ended && self.end == LineEnd::LineFeed;
        if self.held.is_empty() {
            let mut line = tail;
            if first {
                line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
            }
            if strip_return {
                line = line.strip_suffix(b"\r").unwrap_or(line);
            }
            return Line::Whole(Cow::Borrowed(line));
        }
        let mut line = std::mem::take(&mut self.held);
        line.extend_from_slice(tail);
        if first && line.starts_with(BYTE_ORDER_MARK) {
            line.drain(..BYTE_ORDER_MARK.len());
        }
        if strip_return && line.last() == Some(&b'\r') {
            line.pop();
        }
        Line::Whole(Cow::Owned(line))
    }

    /// The current line goes on with these bytes.
    fn gather(&mut self, bytes: &[u8]) {
        if let Some(before) = self.skipped {
            self.skipped = Some(before.saturating_add(length(bytes)));
        } else if self.held.len().saturating_add(bytes.len()) > self.cap {
            self.skipped = Some(length(&self.held).saturating_add(length(bytes)));
            self.held = Vec::new();
        } else {
            self.held.extend_from_slice(bytes);
        }
    }
}

fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

/// The lines that one push completes.
#[derive(Debug)]
pub struct Lines<'s, 'b> {
    splitter: &'s mut LineSplitter,
    rest: &'b [u8],
}

impl<'b> Iterator for Lines<'_, 'b> {
    type Item = Line<'b>;

    fn next(&mut self) -> Option<Line<'b>> {
        if self.splitter.after_return && !self.rest.is_empty() {
            self.splitter.after_return = false;
            self.rest = self.rest.strip_prefix(b"\n").unwrap_or(self.rest);
        }
        let found = match self.splitter.end {
            LineEnd::LineFeed => memchr::memchr(b'\n', self.rest),
            LineEnd::Any => memchr::memchr2(b'\n', b'\r', self.rest),
        };
        let Some((line, ending)) = found.and_then(|at| self.rest.split_at_checked(at)) else {
            let rest = std::mem::take(&mut self.rest);
            if !rest.is_empty() {
                self.splitter.gather(rest);
            }
            return None;
        };
        let (ending, rest) = ending.split_first()?;
        self.rest = rest;
        self.splitter.after_return = *ending == b'\r';
        Some(self.splitter.complete(line, true))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::arithmetic_side_effects)]
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, PartialEq, Eq, Clone)]
    enum Seen {
        Line(Vec<u8>),
        Overlong(u64),
    }

    fn seen(line: Line<'_>) -> Seen {
        match line {
            Line::Whole(line) => Seen::Line(line.into_owned()),
            Line::Overlong { bytes } => Seen::Overlong(bytes),
        }
    }

    fn split(end: LineEnd, cap: usize, pieces: &[&[u8]]) -> Vec<Seen> {
        let mut splitter = LineSplitter::new(end, cap);
        let mut lines: Vec<Seen> = Vec::new();
        for piece in pieces {
            lines.extend(splitter.push(piece).map(seen));
            assert!(splitter.held.len() <= cap, "a line over the cap is not held");
        }
        lines.extend(splitter.finish().map(seen));
        lines
    }

    fn line(text: &[u8]) -> Seen {
        Seen::Line(text.to_vec())
    }

    #[test]
    fn ends_marks_and_the_last_line() {
        let all = split(LineEnd::LineFeed, 64, &[b"\xEF\xBB\xBFa\r\n\nb\rc\n\xEF\xBB\xBFd\r"]);
        assert_eq!(all, [line(b"a"), line(b""), line(b"b\rc"), line(b"\xEF\xBB\xBFd\r")]);
        let any = split(LineEnd::Any, 64, &[b"a\r", b"\nb\r\rc", b"\n\nd"]);
        assert_eq!(any, [line(b"a"), line(b"b"), line(b""), line(b"c"), line(b""), line(b"d")]);
    }

    #[test]
    fn a_line_over_the_cap_is_counted_and_skipped() {
        let mut splitter = LineSplitter::new(LineEnd::LineFeed, 4);
        assert_eq!(splitter.push(b"12345").count(), 0);
        assert_eq!(splitter.over_cap(), Some(5));
        assert_eq!(splitter.push(b"678").count(), 0);
        assert_eq!(splitter.over_cap(), Some(8));
        let rest: Vec<Seen> = splitter.push(b"9\n1234\n12345\n").map(seen).collect();
        assert_eq!(rest, [Seen::Overlong(9), line(b"1234"), Seen::Overlong(5)]);
        assert_eq!(splitter.over_cap(), None);
    }

    #[test]
    fn a_whole_line_is_borrowed_and_a_gathered_one_is_given_away() {
        let mut splitter = LineSplitter::new(LineEnd::LineFeed, 64);
        let mut lines = splitter.push(b"whole\nbeg");
        assert!(matches!(lines.next(), Some(Line::Whole(Cow::Borrowed(b"whole")))));
        assert!(lines.next().is_none());
        let lines: Vec<Line<'_>> = splitter.push(b"un\n").collect();
        assert!(matches!(&lines[..], [Line::Whole(Cow::Owned(line))] if line == b"begun"));
    }

    /// What the splitter is to give, said another way: whole input at once.
    fn expected(end: LineEnd, cap: usize, input: &[u8]) -> Vec<Seen> {
        let mut lines = Vec::new();
        let mut current: Vec<u8> = Vec::new();
        let mut bytes = input.iter().copied().peekable();
        let mut push = |current: &mut Vec<u8>, ended: bool| {
            let mut text = std::mem::take(current);
            if text.len() > cap {
                lines.push(Seen::Overlong(text.len() as u64));
                return;
            }
            if lines.is_empty() && text.starts_with(BYTE_ORDER_MARK) {
                text.drain(..3);
            }
            if ended && end == LineEnd::LineFeed && text.last() == Some(&b'\r') {
                text.pop();
            }
            lines.push(Seen::Line(text));
        };
        while let Some(byte) = bytes.next() {
            match (byte, end) {
                (b'\n', _) => push(&mut current, true),
                (b'\r', LineEnd::Any) => {
                    if bytes.peek() == Some(&b'\n') {
                        bytes.next();
                    }
                    push(&mut current, true);
                }
                _ => current.push(byte),
            }
        }
        if !current.is_empty() {
            push(&mut current, false);
        }
        lines
    }

    proptest! {
        #[test]
        fn any_split_of_any_bytes_gives_the_same_lines(
            bytes in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), Just(0xEF), Just(0xBB), Just(0xBF), any::<u8>()], 0..200),
            cuts in proptest::collection::vec(0usize..200, 0..12),
            cap in 1usize..24,
            any_end in any::<bool>(),
        ) {
            let end = if any_end { LineEnd::Any } else { LineEnd::LineFeed };
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            prop_assert_eq!(split(end, cap, &pieces), expected(end, cap, &bytes));
        }
    }
}
