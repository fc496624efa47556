//! A text that comes in pieces: nothing of a secret is shown before it is known to be none.

use std::sync::Arc;

use super::scan::{Scan, Secrets, Step};
use crate::limits::{SECRET_CONTEXT_BYTES, size};

/// Replaces secrets in a text that comes in pieces. What it gives out, joined, is what
/// [`Redactor::text`](super::Redactor::text) makes of the whole, whatever the pieces.
///
/// It holds back what may be the beginning of a secret and cannot be told yet: most often nothing or a few characters, never more
/// than [`REDACTOR_HELD_BYTES`](crate::limits::REDACTOR_HELD_BYTES) and an escape that is not complete. What reaches the bound undecided is taken for no secret, in a whole
/// text too. Of a secret that is known to have begun nothing is kept, however long it is.
#[derive(Clone, Default)]
pub struct StreamRedactor {
    secrets: Option<Arc<Secrets>>,
    scan: Scan,
    /// What is not certain, and a little of what stood before.
    buffer: String,
}

/// What is held stays out of every message.
impl std::fmt::Debug for StreamRedactor {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("StreamRedactor").field("held", &self.held()).finish()
    }
}

impl StreamRedactor {
    pub(super) fn new(secrets: Option<Arc<Secrets>>) -> Self {
        Self { secrets, ..Self::default() }
    }

    /// Takes the next piece, and gives out what is certain by now.
    pub fn push(&mut self, piece: &str) -> String {
        if self.secrets.is_none() {
            return piece.to_owned();
        }
        self.buffer.push_str(piece);
        self.give_out(false)
    }

    /// Gives out the rest: the text is over. Another one may follow.
    pub fn finish(&mut self) -> String {
        let rest = self.give_out(true);
        self.scan = Scan::default();
        self.buffer.clear();
        rest
    }

    /// How many bytes are held back.
    pub fn held(&self) -> usize {
        self.buffer.len().saturating_sub(self.scan.certain())
    }

    fn give_out(&mut self, over: bool) -> String {
        let Some(secrets) = &self.secrets else { return String::new() };
        let mut shown = String::new();
        let buffer = &self.buffer;
        self.scan.advance(secrets, buffer.as_bytes(), over, &mut |step| match step {
            Step::Shown(range) => shown.push_str(buffer.get(range).unwrap_or_default()),
            Step::Hidden(label) => shown.push_str(secrets.words(label)),
        });
        let context = size(SECRET_CONTEXT_BYTES);
        // Now and then, not at every character.
        let mut done = self.scan.certain().saturating_sub(context);
        if done > context {
            while !self.buffer.is_char_boundary(done) {
                done = done.saturating_sub(1);
            }
            self.buffer.drain(..done);
            self.scan.forget(done);
        }
        shown
    }
}
