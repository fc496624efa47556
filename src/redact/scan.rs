//! Both searches over one text, and their findings put together.
//!
//! Everything here depends on the text alone, never on the pieces that it comes in: a place is given out once both searches are
//! certain about it, and what overlaps is hidden as one. So a text that comes in pieces is shown exactly as when it comes whole.

use std::ops::Range;

use super::known::{Known, KnownState};
use super::shapes::{Shapes, ShapesState};
use super::span::{Label, Span};

/// What is looked for.
pub(super) struct Secrets {
    /// Known values, if there are any.
    pub known: Option<Known>,
    /// What secrets look like.
    pub shapes: Shapes,
}

impl Secrets {
    /// What stands in place of something hidden.
    pub fn words<'s>(&'s self, label: &'s Label) -> &'s str {
        match label {
            Label::Known(pattern) => self.known.as_ref().map_or("", |known| known.replacement(*pattern)),
            Label::Rule(placeholder) => placeholder,
            Label::Named { placeholder, .. } => placeholder,
        }
    }
}

/// What stands in place of a value whose name is not to be told.
const NAMELESS: &str = "<redacted:value>";

/// One step of giving a text out.
pub(super) enum Step<'l> {
    /// A part that is shown.
    Shown(Range<usize>),
    /// In place of a part that is not.
    Hidden(&'l Label),
}

/// How far a text has been read. Positions are those of the buffer that it is given each time.
#[derive(Clone, Debug, Default)]
pub(super) struct Scan {
    known: KnownState,
    shapes: ShapesState,
    /// Up to here everything has been decided.
    certain: usize,
    /// Up to here everything is hidden.
    covered: usize,
}

impl Scan {
    /// Reads on, and gives out what is certain.
    pub fn advance(&mut self, secrets: &Secrets, text: &[u8], over: bool, give_out: &mut dyn FnMut(Step<'_>)) {
        if let Some(known) = &secrets.known {
            self.known.advance(known, text, over);
        }
        let continued = self.shapes.advance(&secrets.shapes, text, over);
        self.covered = self.covered.max(continued);
        let certain = if over {
            text.len()
        } else {
            let of_values = secrets.known.as_ref().map_or(text.len(), |known| self.known.certain(known));
            of_values.min(self.shapes.certain(text.len())).max(self.certain)
        };
        let mut from = self.certain;
        let (mut values, mut shapes) = (0usize, 0usize);
        loop {
            let value = self.known.spans.get(values);
            let shape = self.shapes.spans.get(shapes);
            // What is known by its value is named by it, also where it looks like something.
            let value_first = match (value, shape) {
                (Some(value), Some(shape)) => value.start <= shape.start,
                (value, _) => value.is_some(),
            };
            let next: Option<&Span> = if value_first { value } else { shape };
            let Some(span) = next.filter(|span| span.start < certain) else { break };
            if span.start >= self.covered {
                let shown = from.max(self.covered)..span.start;
                if !shown.is_empty() {
                    give_out(Step::Shown(shown));
                }
                // A name of which a part is hidden is not repeated.
                let label = match &span.label {
                    Label::Named { from, .. } if *from < self.covered => &Label::Rule(NAMELESS),
                    label => label,
                };
                give_out(Step::Hidden(label));
                from = span.start;
            }
            self.covered = self.covered.max(span.end);
            if value_first { values = values.saturating_add(1) } else { shapes = shapes.saturating_add(1) }
        }
        self.known.spans.drain(..values);
        self.shapes.spans.drain(..shapes);
        let shown = from.max(self.covered)..certain;
        if !shown.is_empty() {
            give_out(Step::Shown(shown));
        }
        self.certain = certain;
    }

    /// Up to here everything has been given out, or is hidden.
    pub fn certain(&self) -> usize {
        self.certain
    }

    /// The buffer has lost its first `bytes`.
    pub fn forget(&mut self, bytes: usize) {
        self.known.forget(bytes);
        self.shapes.forget(bytes);
        self.certain = self.certain.saturating_sub(bytes);
        self.covered = self.covered.saturating_sub(bytes);
    }
}
