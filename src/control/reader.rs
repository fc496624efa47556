//! The thread that reads the channel.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::queue::Queue;
use super::{Heard, Say, line};
use crate::limits;
use crate::sys::inputs::{Came, Input};
use crate::sys::lines::{Line, LineEnd, LineSplitter};

/// See the module's doc.
pub(super) struct Reader {
    input: Input,
    queue: Arc<Queue>,
    say: Say,
    /// Sentences that may still be said.
    sentences: u64,
    /// Words that nobody knows, and that were told.
    unknown: BTreeSet<String>,
    /// That lines are dropped was told, and none was taken since.
    is_full: bool,
    /// The window in which lines are counted, and how many there were.
    window: Instant,
    lines: u64,
}

impl Reader {
    pub(super) fn new(input: Input, queue: Arc<Queue>, say: Say) -> Self {
        let (sentences, window) = (limits::CONTROL_SENTENCES, Instant::now());
        Self { input, queue, say, sentences, unknown: BTreeSet::new(), is_full: false, window, lines: 0 }
    }

    /// Reads until there is nothing more to come, or nobody listens.
    pub(super) fn run(mut self, end: &io::PipeWriter) {
        let mut splitter = splitter();
        let mut buffer = vec![0; limits::size(limits::CONTROL_READ_BYTES)];
        loop {
            match self.input.read(&mut buffer, end.as_fd()) {
                Ok(Came::Bytes(size)) => {
                    let mut lines = Vec::new();
                    for line in splitter.push(buffer.get(..size).unwrap_or_default()) {
                        lines.push(owned(line));
                    }
                    if !lines.into_iter().all(|line| self.line(line, end)) {
                        return;
                    }
                }
                Ok(came) => {
                    // What the last writer left without an end of line is a line all the same.
                    let last = splitter.finish().map(owned);
                    splitter = self::splitter();
                    let goes_on = last.is_none_or(|line| self.line(line, end));
                    if !goes_on || came == Came::End {
                        return;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let name = self.input.name.clone();
                    return self.tell(&format!(
                        "The control channel {name} cannot be read any more ({error}); the run goes on without it."
                    ));
                }
            }
        }
    }

    /// Takes a line up. False when nobody listens any more.
    fn line(&mut self, line: Result<Vec<u8>, u64>, end: &io::PipeWriter) -> bool {
        let read = match line {
            Ok(bytes) if bytes.iter().all(u8::is_ascii_whitespace) => return true,
            Ok(bytes) => line::read(&bytes),
            Err(bytes) => Err(line::Unusable {
                id: None,
                word: String::new(),
                problem: format!("has {bytes} bytes, and {} are taken", limits::CONTROL_LINE_BYTES),
                is_unknown: false,
            }),
        };
        if !self.in_time(end) {
            return false;
        }
        match read {
            Ok(control) => {
                let word = control.word.clone();
                if self.queue.push(Heard::Word(control)) {
                    self.is_full = false;
                } else if !std::mem::replace(&mut self.is_full, true) {
                    self.tell(&format!(
                        "A line of the control channel (`{word}`) is dropped, because {} are waiting already; so is what follows until there is room.",
                        limits::CONTROL_QUEUE
                    ));
                }
            }
            Err(line::Unusable { id, word, problem, is_unknown }) => {
                if !is_unknown
                    || (self.unknown.len() < limits::size(limits::CONTROL_SENTENCES) && self.unknown.insert(word.clone()))
                {
                    self.tell(&format!("A line of the control channel {problem}; it is dropped."));
                }
                self.queue.push(Heard::Refused { id, word });
            }
        }
        true
    }

    /// Waits where lines come faster than they are taken. False when nobody listens any more.
    fn in_time(&mut self, end: &io::PipeWriter) -> bool {
        let window = Duration::from_millis(limits::CONTROL_WINDOW_MS);
        let spent = self.window.elapsed();
        if spent >= window {
            (self.window, self.lines) = (Instant::now(), 0);
        } else if self.lines >= limits::CONTROL_LINES {
            if crate::sys::inputs::is_gone_within(end.as_fd(), window.saturating_sub(spent)) {
                return false;
            }
            (self.window, self.lines) = (Instant::now(), 0);
        }
        self.lines = self.lines.saturating_add(1);
        true
    }

    fn tell(&mut self, sentence: &str) {
        match self.sentences {
            0 => return,
            1 => (self.say)("More lines of the control channel cannot be used than are told; the rest is dropped in silence."),
            _ => (self.say)(sentence),
        }
        self.sentences = self.sentences.saturating_sub(1);
    }
}

fn splitter() -> LineSplitter {
    LineSplitter::new(LineEnd::LineFeed, limits::size(limits::CONTROL_LINE_BYTES))
}

/// A line, or how long it was when it was too long.
fn owned(line: Line<'_>) -> Result<Vec<u8>, u64> {
    match line {
        Line::Whole(bytes) => Ok(bytes.into_owned()),
        Line::Overlong { bytes } => Err(bytes),
    }
}
