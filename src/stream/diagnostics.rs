//! Diagnostics: one redacted sentence each, on stderr.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::poll::PollTimeout;

use super::console::visible;
use crate::limits;
use crate::redact::Redactor;
use crate::sys::descriptors::{wait_writable, write_fully};

/// Says one sentence on stderr. It never fails and never makes a run wait: where nobody reads, nobody is told.
pub fn say(redactor: &Redactor, sentence: &str) {
    say_on(io::stderr().as_fd(), redactor, sentence);
}

fn say_on(stderr: BorrowedFd<'_>, redactor: &Redactor, sentence: &str) {
    let mut line = String::from("mission: ");
    line.push_str(&visible::one_line(&redactor.text(sentence)));
    // A pipe with room at all takes this much at once: no reader can hold us up in the middle.
    let bound = limits::size(limits::DIAGNOSTIC_BYTES);
    line.truncate(line.floor_char_boundary(bound));
    line.push('\n');
    let wait = PollTimeout::try_from(limits::DIAGNOSTIC_WAIT_MS).unwrap_or(PollTimeout::ZERO);
    if matches!(wait_writable(stderr, wait), Ok(true)) {
        // A closed stderr is nothing to fail over.
        let _ = write_fully(stderr, line.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::fs::File;
    use std::io::Read;

    use super::*;

    #[test]
    fn a_sentence_is_redacted_and_stays_one_line() {
        let redactor = Redactor::new([("A_KEY".into(), "0123456789".into())], []).unwrap();
        let (reader, writer) = nix::unistd::pipe().unwrap();
        say_on(writer.as_fd(), &redactor, "key 0123456789\nis\x1b[31m wrong");
        say_on(writer.as_fd(), &redactor, &"ä".repeat(5000));
        drop(writer);
        let mut text = String::new();
        File::from(reader).read_to_string(&mut text).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.first(), Some(&"mission: key <redacted:A_KEY> is\\u{1b}[31m wrong"));
        assert_eq!(lines.len(), 2);
    }

    #[test]
    fn a_closed_or_a_full_stderr_is_nothing_to_fail_over() {
        let (reader, writer) = nix::unistd::pipe().unwrap();
        nix::fcntl::fcntl(&writer, nix::fcntl::FcntlArg::F_SETFL(nix::fcntl::OFlag::O_NONBLOCK)).unwrap();
        while nix::unistd::write(&writer, &[0; 4096]).is_ok() {}
        say_on(writer.as_fd(), &Redactor::default(), "nobody reads");
        drop(reader);
        say_on(writer.as_fd(), &Redactor::default(), "nobody is there");
    }
}
