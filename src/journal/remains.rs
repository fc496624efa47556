//! What stands behind the last good line of a log: the remains of what was being written, or lines that somebody changed.
//!
//! A crash leaves the beginning of what was written, zeros where blocks never came, or what stood on the disk before. It does
//! not leave a line that is whole in its form and differs in a byte: that is how a change is told from a torn tail.

use mission_contract::line::reaches_its_end;

/// How the first line of every log begins.
const FIRST: &[u8] = b"{\"seq\":1,\"group\":1,\"at\":\"";

/// What was seen of it, piece by piece.
#[derive(Debug, Default)]
pub(super) struct Remains {
    bytes: u64,
    /// Zeros side by side: blocks that never came.
    zeros: bool,
    /// Anything but zeros.
    written: bool,
    /// The first bytes.
    beginning: Vec<u8>,
    /// A line was written to its end.
    reaches: bool,
}

impl Remains {
    /// Takes the next line, with its newline if it has one.
    pub(super) fn take(&mut self, line: &[u8]) {
        if self.bytes == 0 {
            self.beginning = line.iter().copied().take(FIRST.len()).collect();
        }
        self.bytes = self.bytes.saturating_add(u64::try_from(line.len()).unwrap_or(u64::MAX));
        self.zeros |= memchr::memmem::find(line, b"\0\0").is_some();
        self.written |= line.iter().any(|byte| *byte != 0);
        self.reaches |= reaches_its_end(line);
    }

    /// How many bytes there are.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether no crash leaves this: a line that was written to its end, and no block of it missing.
    pub(super) fn were_changed(&self) -> bool {
        self.reaches && !self.zeros
    }

    /// Whether this can be what is left of the first line of a log.
    pub(super) fn begin_a_log(&self) -> bool {
        !self.written || FIRST.starts_with(&self.beginning) || self.beginning.starts_with(FIRST)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use mission_contract::digest;
    use mission_contract::line::{Envelope, LineWriter};
    use mission_contract::log::{Entry, Timer};

    use super::*;

    fn line() -> Vec<u8> {
        let mut bytes = Vec::new();
        let envelope = Envelope { seq: 1, group: 1, at: "2026-12-01T00:00:00.000Z", ms: 0, branch: None };
        let entry = Entry::Timer(Timer { name: "a".into() });
        LineWriter::new(digest::ZERO.to_owned()).line(envelope, &entry, &mut bytes).unwrap();
        bytes
    }

    fn remains(bytes: &[u8]) -> Remains {
        let mut remains = Remains::default();
        bytes.split_inclusive(|byte| *byte == b'\n').for_each(|line| remains.take(line));
        remains
    }

    #[test]
    fn a_line_that_was_cut_is_what_a_crash_leaves_and_one_that_was_changed_is_not() {
        let whole = line();
        for length in 1..whole.len() {
            let cut = remains(whole.get(..length).unwrap());
            assert!(!cut.were_changed() && cut.begin_a_log(), "{length}");
        }
        for place in 0..whole.len() {
            for change in 1..=255_u8 {
                let mut changed = whole.clone();
                *changed.get_mut(place).unwrap() ^= change;
                assert!(remains(&changed).were_changed(), "{place} {change}");
            }
        }
    }

    #[test]
    fn garbage_and_zeros_are_what_a_crash_leaves() {
        let whole = line();
        let mut zeros = whole.clone();
        zeros.truncate(60);
        zeros.extend([0; 512]);
        zeros.extend(b"rest\",\"sum\":\"0\"}\n");
        let half = whole.get(..60).unwrap();
        let ended = [half, b"\n"].concat();
        let blank = [half, b"\n\n"].concat();
        for left in [zeros, ended, blank, b"\xff\xfenothing of ours\n".to_vec(), vec![0; 9], b"{\"seq\":1,\"gro".to_vec()] {
            assert!(!remains(&left).were_changed(), "{left:?}");
        }
        assert!(remains(&[0; 9]).begin_a_log());
        assert!(!remains(b"# A text\n").begin_a_log());
    }
}
