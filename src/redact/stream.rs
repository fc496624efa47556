//! A text that comes in pieces: nothing of a value is shown before it is known to be none.

use std::sync::Arc;

use super::Values;

/// Replaces known values in a text that comes in pieces. What it gives out, joined, is what
/// [`Redactor::text`](super::Redactor::text) makes of the whole. It holds back less than the longest known value.
#[derive(Clone, Debug, Default)]
pub struct StreamRedactor {
    values: Option<Arc<Values>>,
    held: String,
}

impl StreamRedactor {
    pub(super) fn new(values: Option<Arc<Values>>) -> Self {
        Self { values, held: String::new() }
    }

    /// Takes the next piece, and gives out what is certain by now.
    pub fn push(&mut self, piece: &str) -> String {
        if self.values.is_none() {
            return piece.to_owned();
        }
        self.held.push_str(piece);
        self.give_out(false)
    }

    /// Gives out the rest: the text is over. Another one may follow.
    pub fn finish(&mut self) -> String {
        self.give_out(true)
    }

    fn give_out(&mut self, over: bool) -> String {
        let Some(values) = &self.values else { return std::mem::take(&mut self.held) };
        let text = std::mem::take(&mut self.held);
        let mut shown = String::with_capacity(text.len());
        let mut from = 0;
        let certain = loop {
            // A match that begins before the uncertain end is the leftmost and the longest whatever comes.
            let certain = if over { text.len() } else { values.uncertain_from(&text, from) };
            let rest = text.get(from..).unwrap_or_default();
            let Some(found) = values.automaton.find(rest) else { break certain };
            let start = from.saturating_add(found.start());
            if start >= certain {
                break certain;
            }
            shown.push_str(text.get(from..start).unwrap_or_default());
            shown.push_str(values.replacement(found.pattern().as_usize()));
            from = from.saturating_add(found.end());
        };
        shown.push_str(text.get(from..certain).unwrap_or_default());
        self.held = text.get(certain..).unwrap_or_default().to_owned();
        shown
    }
}

impl Values {
    /// Where the longest end of `text` (from `from` on) starts that some pattern begins with but is not; its length when
    /// there is none.
    fn uncertain_from(&self, text: &str, from: usize) -> usize {
        let bytes = text.as_bytes();
        let window = bytes.len().saturating_sub(self.longest.saturating_sub(1)).max(from);
        (window..bytes.len())
            .find(|start| {
                let Some(end) = bytes.get(*start..) else { return false };
                let Some(byte) = end.first() else { return false };
                self.first.get(usize::from(*byte)).copied().unwrap_or_default() && self.is_begun_by(end)
            })
            .unwrap_or(bytes.len())
    }

    /// Whether some pattern begins with these bytes and goes on.
    fn is_begun_by(&self, bytes: &[u8]) -> bool {
        let position = self.sorted.partition_point(|pattern| pattern.as_bytes() <= bytes);
        self.sorted.get(position).is_some_and(|pattern| pattern.as_bytes().starts_with(bytes))
    }
}
