//! What is hidden of a text: from where to where, and what stands there instead.

/// A part of a text that is hidden.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Span {
    /// Its first byte.
    pub start: usize,
    /// The byte behind it.
    pub end: usize,
    /// What stands there instead.
    pub label: Label,
}

impl Span {
    /// The buffer has lost its first `bytes`.
    pub fn forget(&mut self, bytes: usize) {
        self.start = self.start.saturating_sub(bytes);
        self.end = self.end.saturating_sub(bytes);
        if let Label::Named { from, .. } = &mut self.label {
            *from = from.saturating_sub(bytes);
        }
    }
}

/// What stands in place of a hidden part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Label {
    /// The replacement of a known value, by its pattern.
    Known(usize),
    /// The placeholder of a rule.
    Rule(&'static str),
    /// The placeholder with a name that the text gives.
    Named {
        /// The placeholder.
        placeholder: String,
        /// Where the name begins in the text.
        from: usize,
    },
}
