//! Known values: one search over all their forms that reads the text twice, as it stands and plainly.
//!
//! Both readings run through the same automaton, one step a byte, and nothing is ever read again: the time is proportional to
//! the text. While the readings say the same they are one, and where no form can begin the automaton rests.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use aho_corasick::automaton::{Automaton, StateID};
use aho_corasick::nfa::noncontiguous::NFA;
use aho_corasick::{Anchored, BuildError, MatchError, MatchKind};

use super::filter::{BEGINNING, Filter};
use super::forms::{CUT, is_special, unit};
use super::span::{Label, Span};
use crate::limits::{REDACTOR_HELD_BYTES, SECRET_CHARACTERS, size};

/// The forms of all values, and what takes their places.
pub(super) struct Known {
    automaton: NFA,
    start: StateID,
    filter: Filter,
    /// The forms and what stands in their places, in the order of the patterns.
    patterns: Vec<(Vec<u8>, String)>,
    /// Lengths of what may still become a value, and of which pattern, by state, sorted; only a text that comes in pieces, or that
    /// was cut, needs them.
    depths: OnceLock<Vec<(StateID, usize, usize)>>,
    /// Length of the longest form in bytes.
    longest: usize,
}

/// Why the search cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// There is too much to look for.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// It cannot be stepped through.
    #[error(transparent)]
    Match(#[from] MatchError),
}

impl Known {
    /// A search for the patterns, each with its replacement. Nothing when there is none.
    pub fn new(patterns: BTreeMap<Vec<u8>, String>) -> Result<Option<Self>, SearchError> {
        if patterns.is_empty() {
            return Ok(None);
        }
        let automaton = NFA::builder().match_kind(MatchKind::Standard).prefilter(false).build(patterns.keys())?;
        let start = automaton.start_state(Anchored::No)?;
        let filter = Filter::exact(patterns.keys().map(Vec::as_slice));
        let longest = patterns.keys().map(Vec::len).max().unwrap_or_default();
        let patterns = patterns.into_iter().collect();
        Ok(Some(Self { automaton, start, filter, patterns, depths: OnceLock::new(), longest }))
    }

    /// Nothing at all in place of a value rather than the value: a pattern without a replacement cannot be.
    pub fn replacement(&self, pattern: usize) -> &str {
        self.patterns.get(pattern).map_or("", |(_, replacement)| replacement)
    }

    /// How many bytes before this state may be the beginning of a value.
    fn depth(&self, state: StateID) -> usize {
        self.begun(state).map_or(0, |(depth, _)| depth)
    }

    /// The beginning of a value before this state, if it is long enough to say something of it: where a text was cut, no more comes.
    fn cut(&self, state: StateID) -> Option<(usize, usize)> {
        self.begun(state).filter(|(depth, _)| *depth >= size(SECRET_CHARACTERS))
    }

    /// How many bytes of which pattern stand before this state.
    fn begun(&self, state: StateID) -> Option<(usize, usize)> {
        let depths = self.depths.get_or_init(|| {
            let mut depths = Vec::new();
            for (number, (pattern, _)) in (0..).zip(&self.patterns) {
                let mut state = self.start;
                for (depth, byte) in (1..).zip(pattern) {
                    state = self.step(state, *byte);
                    depths.push((state, depth, number));
                }
            }
            depths.sort_unstable();
            depths.dedup_by_key(|(state, _, _)| *state);
            depths
        });
        let found = depths.binary_search_by_key(&state, |(state, _, _)| *state);
        found.ok().and_then(|position| depths.get(position)).map(|(_, depth, pattern)| (*depth, *pattern))
    }

    fn step(&self, state: StateID, byte: u8) -> StateID {
        self.automaton.next_state(Anchored::No, state, byte)
    }

    /// The longest form that ends in this state, and its length in bytes.
    fn found(&self, state: StateID) -> Option<(usize, usize)> {
        if !self.automaton.is_special(state) || !self.automaton.is_match(state) {
            return None;
        }
        let pattern = self.automaton.match_pattern(state, 0);
        Some((pattern.as_usize(), self.automaton.pattern_len(pattern)))
    }
}

/// How far the search has come. Positions are those of the buffer that it is given each time.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownState {
    position: usize,
    standing: Option<StateID>,
    plain: Option<Plain>,
    /// Found, in order, apart from each other, not taken yet.
    pub spans: Vec<Span>,
}

/// The second reading while it differs.
#[derive(Clone, Debug)]
struct Plain {
    state: StateID,
    /// Where it began to differ.
    since: usize,
    /// Where each byte that it has read since begins in the text. The oldest are forgotten.
    starts: Vec<usize>,
    /// Bytes in a row that both readings read alike.
    alike: usize,
    after_break: bool,
}

impl Plain {
    /// Where what it read `length` bytes ago begins.
    fn start_of(&self, length: usize) -> usize {
        match self.starts.len().checked_sub(length) {
            Some(position) => self.starts.get(position).copied().unwrap_or(self.since),
            None => self.since.wrapping_sub(length.saturating_sub(self.starts.len())),
        }
    }
}

impl KnownState {
    /// Reads on to the end of the text, or to where it cannot be told yet.
    pub fn advance(&mut self, known: &Known, text: &[u8], over: bool) {
        let mut standing = self.standing.unwrap_or(known.start);
        loop {
            if self.plain.is_none() {
                standing = self.read_alike(known, standing, text);
            }
            if !self.read_apart(known, &mut standing, text, over) {
                break;
            }
        }
        self.standing = Some(standing);
    }

    /// Both readings as one, to the next place where they may differ.
    fn read_alike(&mut self, known: &Known, mut state: StateID, text: &[u8]) -> StateID {
        loop {
            let mut rest = text.get(self.position..).unwrap_or_default();
            if state == known.start {
                let passed = known.filter.passes_alike(rest);
                self.position = self.position.saturating_add(passed);
                rest = rest.get(passed..).unwrap_or_default();
            }
            // Step through what may begin here, and then until nothing has begun.
            for (read, byte) in (1usize..).zip(rest) {
                if is_special(*byte) {
                    return state;
                }
                state = known.step(state, *byte);
                self.position = self.position.saturating_add(1);
                if let Some((pattern, length)) = known.found(state) {
                    let end = self.position;
                    add(&mut self.spans, Span { start: end.saturating_sub(length), end, label: Label::Known(pattern) });
                }
                if state == known.start && rest.len().saturating_sub(read) >= BEGINNING {
                    break;
                }
            }
            if self.position >= text.len() {
                return state;
            }
        }
    }

    /// One place in both readings. False when the text is at its end.
    fn read_apart(&mut self, known: &Known, standing: &mut StateID, text: &[u8], over: bool) -> bool {
        let after_break = self.plain.as_ref().is_some_and(|plain| plain.after_break);
        let Some(unit) = unit(text, self.position, after_break, over) else { return false };
        let end = self.position.saturating_add(unit.taken);
        let mut plain = self.plain.take().unwrap_or_else(|| Plain {
            state: *standing,
            since: self.position,
            starts: Vec::new(),
            alike: 0,
            after_break: false,
        });
        if text.get(self.position..).is_some_and(|rest| rest.starts_with(CUT)) {
            let cuts = [
                known.cut(*standing).map(|(length, pattern)| (self.position.saturating_sub(length), pattern)),
                known.cut(plain.state).map(|(length, pattern)| (plain.start_of(length), pattern)),
            ];
            for (start, pattern) in cuts.into_iter().flatten() {
                add(&mut self.spans, Span { start, end: self.position, label: Label::Known(pattern) });
            }
        }
        for (at, byte) in (self.position..end).zip(text.get(self.position..end).unwrap_or_default()) {
            *standing = known.step(*standing, *byte);
            if let Some((pattern, length)) = known.found(*standing) {
                let end = at.saturating_add(1);
                add(&mut self.spans, Span { start: end.saturating_sub(length), end, label: Label::Known(pattern) });
            }
        }
        for byte in unit.says() {
            plain.state = known.step(plain.state, *byte);
            plain.starts.push(self.position);
            if let Some((pattern, length)) = known.found(plain.state) {
                add(&mut self.spans, Span { start: plain.start_of(length), end, label: Label::Known(pattern) });
            }
        }
        let alike = unit.taken == 1 && unit.says() == text.get(self.position..end).unwrap_or_default();
        plain.alike = if alike { plain.alike.saturating_add(1) } else { 0 };
        plain.after_break = unit.says().is_empty();
        self.position = end;
        if plain.starts.len() > known.longest.saturating_mul(4) {
            plain.starts.drain(..plain.starts.len().saturating_sub(known.longest));
        }
        // A value that is spread wider than this is given up: no more than this is ever held back.
        if end.wrapping_sub(plain.start_of(known.longest)) > size(REDACTOR_HELD_BYTES) {
            plain.state = known.start;
        }
        let both_idle = plain.state == known.start && *standing == known.start;
        if !(both_idle || plain.alike >= known.longest) {
            self.plain = Some(plain);
        }
        true
    }

    /// No value that is not found yet begins before this.
    pub fn certain(&self, known: &Known) -> usize {
        let standing = self.standing.map_or(0, |state| known.depth(state));
        let certain = self.position.saturating_sub(standing);
        match &self.plain {
            Some(plain) => match known.depth(plain.state) {
                0 => certain,
                depth => certain.min(plain.start_of(depth)),
            },
            None => certain,
        }
    }

    /// The buffer has lost its first `bytes`.
    pub fn forget(&mut self, bytes: usize) {
        self.position = self.position.saturating_sub(bytes);
        for span in &mut self.spans {
            span.forget(bytes);
        }
        if let Some(plain) = &mut self.plain {
            // What lies before the buffer is only measured from: it wraps, so that distances stay what they are.
            plain.since = plain.since.wrapping_sub(bytes);
            for start in &mut plain.starts {
                *start = start.wrapping_sub(bytes);
            }
        }
    }
}

/// Adds a span that ends no earlier than the others. Those that it overlaps become one with it; the one that begins first,
/// and among those the longest, names it.
fn add(spans: &mut Vec<Span>, mut span: Span) {
    while let Some(last) = spans.last_mut() {
        if span.start >= last.end {
            break;
        }
        if last.start < span.start || (last.start == span.start && last.end >= span.end) {
            last.end = last.end.max(span.end);
            return;
        }
        span.end = span.end.max(last.end);
        spans.pop();
    }
    spans.push(span);
}
