//! Secrets that nobody named: found by how they look. One search for the anchors of all rules; at each, a look ahead of bounded
//! length says whether a secret begins there, and from then on it is hidden up to its end, however far that is.

use std::collections::BTreeSet;

use aho_corasick::automaton::{Automaton, StateID};
use aho_corasick::dfa::DFA;
use aho_corasick::{Anchored, MatchKind, StartKind};

use super::assignment;
use super::class::{Class, Makeup};
use super::known::SearchError;
use super::private_key;
use super::rules::{Pattern, RULES, Rule};
use super::span::{Label, Span};
use super::swallow::{Swallow, Swallowed};
use crate::limits::{SECRET_CONTEXT_BYTES, SECRET_SHAPE_BYTES, size};

/// The search for the anchors.
pub(super) struct Shapes {
    automaton: DFA,
    start: StateID,
    /// By pattern.
    anchors: Vec<(&'static Rule, &'static str)>,
    /// Beginnings, shorter than the whole, of the anchors that are hidden themselves; in small letters.
    beginnings: BTreeSet<Vec<u8>>,
    longest: usize,
}

/// An anchor in a text, and what is known about it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate<'t> {
    /// The text as far as it has come, with what stood before.
    pub text: &'t [u8],
    /// Where the anchor begins.
    pub start: usize,
    /// The byte behind the anchor.
    pub end: usize,
    /// Nothing follows the text.
    pub over: bool,
    /// What the rule puts in place of a secret.
    pub placeholder: &'static str,
}

impl<'t> Candidate<'t> {
    /// The text behind the anchor.
    pub fn behind(&self) -> &'t [u8] {
        self.text.get(self.end..).unwrap_or_default()
    }

    /// The byte before the anchor.
    fn before(&self) -> Option<u8> {
        self.start.checked_sub(1).and_then(|at| self.text.get(at)).copied()
    }
}

/// What an anchor turns out to be.
#[derive(Clone, Debug)]
pub(super) enum Verdict {
    /// Nothing.
    No,
    /// It cannot be told yet; what begins here may be hidden.
    More(usize),
    /// A secret.
    Hidden(Hidden),
}

/// A secret whose end is not known yet.
#[derive(Clone, Debug)]
pub(super) struct Hidden {
    /// Where it begins.
    pub start: usize,
    /// So far it is known to go.
    pub from: usize,
    /// How it goes on.
    pub swallow: Swallow,
    /// What stands in its place.
    pub label: Label,
}

impl Shapes {
    /// The search for all rules.
    pub fn new() -> Result<Self, SearchError> {
        let anchors: Vec<(&'static Rule, &'static str)> =
            RULES.iter().flat_map(|rule| rule.anchors.iter().map(move |anchor| (rule, *anchor))).collect();
        let automaton = DFA::builder()
            .match_kind(MatchKind::Standard)
            .start_kind(StartKind::Unanchored)
            .ascii_case_insensitive(true)
            .prefilter(false)
            .build(anchors.iter().map(|(_, anchor)| anchor))?;
        let start = automaton.start_state(Anchored::No)?;
        let hidden = anchors.iter().filter(|(rule, _)| rule.hides_anchor()).map(|(_, anchor)| anchor.to_ascii_lowercase());
        let beginnings: BTreeSet<Vec<u8>> = hidden
            .flat_map(|anchor| {
                (1..anchor.len()).filter_map(|end| anchor.as_bytes().get(..end).map(<[u8]>::to_vec)).collect::<Vec<_>>()
            })
            .collect();
        let longest = beginnings.iter().map(Vec::len).max().unwrap_or_default();
        Ok(Self { automaton, start, anchors, beginnings, longest })
    }

    /// Judges the anchors that end in `state`, at `end`.
    fn judge(&self, state: StateID, text: &[u8], end: usize, over: bool) -> Verdict {
        for index in 0..self.automaton.match_len(state) {
            let pattern = self.automaton.match_pattern(state, index);
            let Some((rule, anchor)) = self.anchors.get(pattern.as_usize()) else { continue };
            let start = end.saturating_sub(anchor.len());
            let candidate = Candidate { text, start, end, over, placeholder: rule.placeholder };
            match judge(rule, anchor, &candidate) {
                Verdict::No => {}
                verdict => return verdict,
            }
        }
        Verdict::No
    }

    /// Where the longest end of the text (not before `since`) begins that may become an anchor which is hidden itself.
    fn begun(&self, text: &[u8], since: usize) -> usize {
        let tail = text.get(text.len().saturating_sub(self.longest).max(since)..).unwrap_or_default().to_ascii_lowercase();
        let offset = text.len().saturating_sub(tail.len());
        let letter = |at: usize| text.get(at).is_some_and(u8::is_ascii_alphanumeric);
        let found = (0..tail.len()).find(|start| {
            let at = offset.saturating_add(*start);
            // Inside a word none begins.
            let inside = letter(at) && at.checked_sub(1).is_some_and(letter);
            !inside && tail.get(*start..).is_some_and(|end| self.beginnings.contains(end))
        });
        found.map_or(text.len(), |start| offset.saturating_add(start))
    }
}

/// How far the search has come. Positions are those of the buffer that it is given each time.
#[derive(Clone, Debug, Default)]
pub(super) struct ShapesState {
    position: usize,
    /// Where the search began afresh: no anchor begins before.
    since: usize,
    state: Option<StateID>,
    open: Option<Swallow>,
    /// An anchor ends at the position and cannot be judged yet; what begins here may be hidden.
    waits: Option<usize>,
    /// Found, in order, apart from each other, not taken yet.
    pub spans: Vec<Span>,
}

impl ShapesState {
    /// Reads on to the end of the text, or to where it cannot be told yet. Gives how far the secret that was open before goes.
    pub fn advance(&mut self, shapes: &Shapes, text: &[u8], over: bool) -> usize {
        let was_open = self.open.is_some();
        let mut continued = 0;
        if was_open {
            self.swallow(shapes, text, over);
            continued = self.position;
        }
        while self.open.is_none() {
            let state = if self.waits.is_some() { self.state } else { self.next_anchor(shapes, text) };
            let Some(state) = state else { break };
            match shapes.judge(state, text, self.position, over) {
                Verdict::No => self.waits = None,
                Verdict::More(hold) => {
                    self.waits = Some(hold);
                    break;
                }
                Verdict::Hidden(hidden) => {
                    self.waits = None;
                    self.position = hidden.from;
                    self.open = Some(hidden.swallow);
                    self.swallow(shapes, text, over);
                    self.spans.push(Span { start: hidden.start, end: self.position, label: hidden.label });
                }
            }
        }
        continued
    }

    /// Hides on, and looks for anchors again behind the secret's end.
    fn swallow(&mut self, shapes: &Shapes, text: &[u8], over: bool) {
        let Some(swallow) = &mut self.open else { return };
        let (distance, ended) = match swallow.feed(text.get(self.position..).unwrap_or_default(), over) {
            Swallowed::Ended(distance) => (distance, true),
            Swallowed::Open(distance) => (distance, false),
        };
        self.position = self.position.saturating_add(distance);
        if ended {
            self.open = None;
            self.since = self.position;
            self.state = Some(shapes.start);
        }
    }

    /// Steps to behind the next anchor, and gives the state there.
    fn next_anchor(&mut self, shapes: &Shapes, text: &[u8]) -> Option<StateID> {
        let mut state = self.state.unwrap_or(shapes.start);
        let mut found = None;
        let mut read = 0usize;
        for byte in text.get(self.position..).unwrap_or_default() {
            state = shapes.automaton.next_state(Anchored::No, state, *byte);
            read = read.saturating_add(1);
            if shapes.automaton.is_special(state) && shapes.automaton.is_match(state) {
                found = Some(state);
                break;
            }
        }
        self.position = self.position.saturating_add(read);
        self.state = Some(state);
        found
    }

    /// No secret that is not found yet begins before this.
    pub fn certain(&self, shapes: &Shapes, text: &[u8]) -> usize {
        match self.waits {
            Some(hold) => hold,
            None if self.open.is_some() => self.position,
            None => shapes.begun(text, self.since),
        }
    }

    /// The buffer has lost its first `bytes`.
    pub fn forget(&mut self, bytes: usize) {
        self.position = self.position.saturating_sub(bytes);
        self.since = self.since.saturating_sub(bytes);
        self.waits = self.waits.map(|hold| hold.saturating_sub(bytes));
        for span in &mut self.spans {
            span.forget(bytes);
        }
    }
}

fn judge(rule: &Rule, anchor: &str, candidate: &Candidate<'_>) -> Verdict {
    match rule.pattern {
        Pattern::Token { class, least } => token(anchor, candidate, class, least),
        Pattern::Exactly { count } => exactly(anchor, candidate, count),
        Pattern::SignedToken => signed_token(anchor, candidate),
        Pattern::Bearer => bearer(candidate),
        Pattern::UrlPassword => url_password(candidate),
        Pattern::PrivateKey => private_key::judge(candidate),
        Pattern::Assignment => assignment::judge(candidate),
        Pattern::Cookie => cookie(candidate),
    }
}

fn hidden(candidate: &Candidate<'_>, start: usize, from: usize, swallow: Swallow) -> Verdict {
    Verdict::Hidden(Hidden { start, from, swallow, label: Label::Rule(candidate.placeholder) })
}

/// Letters and digits that are looked at to tell a drawn text from a worded one.
const DRAWN_BYTES: usize = 96;

/// Whether the anchor stands exactly so, and begins a word.
fn begins_word(anchor: &str, candidate: &Candidate<'_>) -> bool {
    candidate.text.get(candidate.start..candidate.end) == Some(anchor.as_bytes())
        && !candidate.before().is_some_and(|byte| byte.is_ascii_alphanumeric())
}

fn token(anchor: &str, candidate: &Candidate<'_>, class: Class, least: usize) -> Verdict {
    if !begins_word(anchor, candidate) {
        return Verdict::No;
    }
    match drawn(candidate.behind(), class, least, candidate.over) {
        Some(Some(length)) => {
            let from = candidate.end.saturating_add(length);
            hidden(candidate, candidate.start, from, Swallow::Class(class))
        }
        Some(None) => Verdict::No,
        None => Verdict::More(candidate.start),
    }
}

/// How many bytes it takes to see that a text begins with at least so many characters of a class that look drawn at random;
/// nothing when it does not, or when the text ends too early to say.
pub(super) fn drawn(text: &[u8], class: Class, least: usize, over: bool) -> Option<Option<usize>> {
    let mut makeup = Makeup::default();
    for byte in text.iter().take(least.max(DRAWN_BYTES)) {
        if !class.holds(*byte) {
            return Some(None);
        }
        makeup.add(*byte);
        if makeup.length >= least && makeup.is_drawn() {
            return Some(Some(makeup.length));
        }
    }
    if makeup.length >= least.max(DRAWN_BYTES) || over { Some(None) } else { None }
}

fn exactly(anchor: &str, candidate: &Candidate<'_>, count: usize) -> Verdict {
    if !begins_word(anchor, candidate) {
        return Verdict::No;
    }
    let fits = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
    let behind = candidate.behind();
    let fitting = behind.iter().take(count).take_while(|byte| fits(byte)).count();
    match behind.get(fitting) {
        None if !candidate.over => Verdict::More(candidate.start),
        None if fitting == count => hidden(candidate, candidate.start, candidate.end.saturating_add(count), Swallow::Nothing),
        Some(byte) if fitting == count && !byte.is_ascii_alphanumeric() => {
            hidden(candidate, candidate.start, candidate.end.saturating_add(count), Swallow::Nothing)
        }
        _ => Verdict::No,
    }
}

/// Characters of each of the first two parts of a signed token.
const PART_BYTES: usize = 10;

fn signed_token(anchor: &str, candidate: &Candidate<'_>) -> Verdict {
    let word = Class::Word;
    if candidate.before().is_some_and(|byte| word.holds(byte)) || !begins_word(anchor, candidate) {
        return Verdict::No;
    }
    let more = if candidate.over { Verdict::No } else { Verdict::More(candidate.start) };
    let behind = candidate.behind();
    let most = size(SECRET_SHAPE_BYTES);
    let header = behind.iter().take(most).take_while(|byte| word.holds(**byte)).count();
    match behind.get(header) {
        _ if header == most => return Verdict::No,
        None => return more,
        Some(b'.') if header >= PART_BYTES => {}
        Some(_) => return Verdict::No,
    }
    let second = behind.get(header.saturating_add(1)..).unwrap_or_default();
    let claims = second.iter().take(PART_BYTES).take_while(|byte| word.holds(**byte)).count();
    match claims {
        PART_BYTES => {
            let from = candidate.end.saturating_add(header).saturating_add(1).saturating_add(claims);
            hidden(candidate, candidate.start, from, Swallow::Class(Class::Dotted))
        }
        claims if claims == second.len() => more,
        _ => Verdict::No,
    }
}

/// Characters that a bearer token has at least, where no header says that it is one.
const BEARER_BYTES: usize = 16;
/// White space between a word and what it announces.
pub(super) const BLANKS: usize = 8;

fn bearer(candidate: &Candidate<'_>) -> Verdict {
    if candidate.before().is_some_and(|byte| byte.is_ascii_alphanumeric()) {
        return Verdict::No;
    }
    let behind = candidate.behind();
    let blanks = behind.iter().take(BLANKS).take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    if blanks == behind.len() {
        return if candidate.over { Verdict::No } else { Verdict::More(candidate.end) };
    }
    if blanks == 0 {
        return Verdict::No;
    }
    match drawn(behind.get(blanks..).unwrap_or_default(), Class::Credential, BEARER_BYTES, candidate.over) {
        Some(Some(length)) => {
            let start = candidate.end.saturating_add(blanks);
            hidden(candidate, start, start.saturating_add(length), Swallow::Class(Class::Credential))
        }
        Some(None) => Verdict::No,
        None => Verdict::More(candidate.end),
    }
}

fn url_password(candidate: &Candidate<'_>) -> Verdict {
    let behind = candidate.behind();
    let ends = |byte: u8| byte.is_ascii_whitespace() || matches!(byte, b'/' | b'?' | b'#' | b'"' | b'\'' | b'<' | b'>' | b'`' | b'\\');
    let authority = behind.iter().take(size(SECRET_SHAPE_BYTES)).take_while(|byte| !ends(**byte)).count();
    if authority == behind.len() && authority < size(SECRET_SHAPE_BYTES) && !candidate.over {
        return Verdict::More(candidate.end);
    }
    let authority = behind.get(..authority).unwrap_or_default();
    let colon = authority.iter().position(|byte| *byte == b':');
    let at_sign = authority.iter().rposition(|byte| *byte == b'@');
    let (Some(colon), Some(at_sign)) = (colon, at_sign) else { return Verdict::No };
    let first = colon.saturating_add(1);
    match authority.get(first..at_sign) {
        Some(password) if !password.is_empty() && !assignment::is_stand_in(password) => {
            let place = |distance: usize| candidate.end.saturating_add(distance);
            hidden(candidate, place(first), place(at_sign), Swallow::Nothing)
        }
        _ => Verdict::No,
    }
}

/// Characters that a session's name has at least.
const SESSION_BYTES: usize = 16;

fn cookie(candidate: &Candidate<'_>) -> Verdict {
    let before = candidate.text.get(candidate.start.saturating_sub(size(SECRET_CONTEXT_BYTES) / 2)..candidate.start);
    let line = before.unwrap_or_default().rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    if !line.to_ascii_lowercase().windows(COOKIE.len()).any(|word| word == COOKIE) {
        return Verdict::No;
    }
    match drawn(candidate.behind(), Class::Credential, SESSION_BYTES, candidate.over) {
        Some(Some(length)) => {
            hidden(candidate, candidate.end, candidate.end.saturating_add(length), Swallow::Class(Class::Value))
        }
        Some(None) => Verdict::No,
        None => Verdict::More(candidate.end),
    }
}

const COOKIE: &[u8] = b"cookie";
