//! Secrets that nobody named: found by how they look. One search for the anchors of all rules; at each, a look ahead of bounded
//! length says whether a secret begins there, and from then on it is hidden up to its end, however far that is.

use std::collections::BTreeMap;

use super::assignment;
use super::class::{Class, Makeup};
use super::filter::Filter;
use super::forms::CUT;
use super::private_key;
use super::rules::{Pattern, RULES, Rule};
use super::span::{Label, Span};
use super::swallow::{Swallow, Swallowed};
use crate::limits::{SECRET_CONTEXT_BYTES, SECRET_SHAPE_BYTES, size};

/// The anchors of all rules.
pub(super) struct Shapes {
    filter: Filter,
    /// By their first byte in small letters, in the order of the rules.
    anchors: BTreeMap<u8, Vec<(&'static Rule, &'static [u8])>>,
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
    /// The anchor as the rule has it.
    anchor: &'static [u8],
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
    /// The anchors of all rules.
    pub fn new() -> Self {
        let all = || RULES.iter().flat_map(|rule| rule.anchors.iter().map(move |anchor| (rule, anchor.as_bytes())));
        let mut anchors: BTreeMap<u8, Vec<(&'static Rule, &'static [u8])>> = BTreeMap::new();
        for (rule, anchor) in all() {
            let first = anchor.first().copied().unwrap_or_default();
            anchors.entry(first.to_ascii_lowercase()).or_default().push((rule, anchor));
        }
        Self { filter: Filter::any_case(all().map(|(_, anchor)| anchor)), anchors }
    }

    /// What begins at `start`: the first anchor there that announces a secret, in the order of the rules.
    fn judge(&self, text: &[u8], start: usize, over: bool) -> Verdict {
        let rest = text.get(start..).unwrap_or_default();
        let Some(first) = rest.first() else { return Verdict::No };
        let inside = first.is_ascii_alphanumeric()
            && start.checked_sub(1).and_then(|at| text.get(at)).is_some_and(u8::is_ascii_alphanumeric);
        for (rule, anchor) in self.anchors.get(&first.to_ascii_lowercase()).into_iter().flatten() {
            // Inside a word none begins that is hidden itself.
            if inside && rule.hides_anchor() {
                continue;
            }
            let common = rest.len().min(anchor.len());
            let so_far = rest.get(..common).zip(anchor.get(..common));
            if !so_far.is_some_and(|(text, anchor)| text.eq_ignore_ascii_case(anchor)) {
                continue;
            }
            let end = start.saturating_add(anchor.len());
            if common < anchor.len() {
                if over {
                    continue;
                }
                return Verdict::More(if rule.hides_anchor() { start } else { end });
            }
            match judge(rule, &Candidate { text, start, end, over, anchor, placeholder: rule.placeholder }) {
                Verdict::No => {}
                verdict => return verdict,
            }
        }
        Verdict::No
    }
}

/// How far the search has come. Positions are those of the buffer that it is given each time.
#[derive(Clone, Debug, Default)]
pub(super) struct ShapesState {
    position: usize,
    open: Option<Swallow>,
    /// What begins at the position cannot be judged yet; from here on it may be hidden.
    waits: Option<usize>,
    /// Found, in order, apart from each other, not taken yet.
    pub spans: Vec<Span>,
}

impl ShapesState {
    /// Reads on to the end of the text, or to where it cannot be told yet. Gives how far a secret goes that was open before
    /// and has been taken.
    pub fn advance(&mut self, shapes: &Shapes, text: &[u8], over: bool) -> usize {
        let mut continued = 0;
        if self.open.is_some() {
            self.swallow(text, over);
            match self.spans.last_mut() {
                // Not taken yet: it is the one that is open.
                Some(span) => span.end = self.position,
                None => continued = self.position,
            }
        }
        self.waits = None;
        while self.open.is_none() && self.position < text.len() {
            let rest = text.get(self.position..).unwrap_or_default();
            self.position = self.position.saturating_add(shapes.filter.passes(rest));
            match shapes.judge(text, self.position, over) {
                Verdict::No => self.position = self.position.saturating_add(1).min(text.len()),
                Verdict::More(hold) => {
                    self.waits = Some(hold);
                    break;
                }
                Verdict::Hidden(hidden) => {
                    self.position = hidden.from;
                    self.open = Some(hidden.swallow);
                    self.swallow(text, over);
                    self.spans.push(Span { start: hidden.start, end: self.position, label: hidden.label });
                }
            }
        }
        continued
    }

    /// Hides on, up to the end of the secret or of the text.
    fn swallow(&mut self, text: &[u8], over: bool) {
        let Some(swallow) = &mut self.open else { return };
        let (distance, ended) = match swallow.feed(text.get(self.position..).unwrap_or_default(), over) {
            Swallowed::Ended(distance) => (distance, true),
            Swallowed::Open(distance) => (distance, false),
        };
        self.position = self.position.saturating_add(distance);
        if ended {
            self.open = None;
        }
    }

    /// No secret that is not found yet begins before this, in a text of such a length. (None that is hidden with its anchor begins
    /// inside an anchor that is shown: a test holds that.)
    pub fn certain(&self, length: usize) -> usize {
        match self.waits {
            // Behind an anchor that is shown may stand the beginning of one that is not.
            Some(hold) => hold.min(length),
            None => self.position,
        }
    }

    /// The buffer has lost its first `bytes`.
    pub fn forget(&mut self, bytes: usize) {
        self.position = self.position.saturating_sub(bytes);
        self.waits = self.waits.map(|hold| hold.saturating_sub(bytes));
        for span in &mut self.spans {
            span.forget(bytes);
        }
    }
}

fn judge(rule: &Rule, candidate: &Candidate<'_>) -> Verdict {
    match rule.pattern {
        Pattern::Token { class, least } => token(candidate, class, least),
        Pattern::Exactly { count } => exactly(candidate, count),
        Pattern::SignedToken => signed_token(candidate),
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
/// How many are enough where the text was cut behind them.
const CUT_BYTES: usize = 6;

/// Whether the anchor stands exactly so, and begins a word.
fn begins_word(candidate: &Candidate<'_>) -> bool {
    candidate.text.get(candidate.start..candidate.end) == Some(candidate.anchor)
        && !candidate.before().is_some_and(|byte| byte.is_ascii_alphanumeric())
}

fn token(candidate: &Candidate<'_>, class: Class, least: usize) -> Verdict {
    if !begins_word(candidate) {
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
fn drawn(text: &[u8], class: Class, least: usize, over: bool) -> Option<Option<usize>> {
    let mut makeup = Makeup::default();
    for (at, byte) in text.iter().take(least.max(DRAWN_BYTES)).enumerate() {
        if !class.holds(*byte) {
            let cut = text.get(at..).is_some_and(|rest| rest.starts_with(CUT));
            return Some((cut && at >= CUT_BYTES && makeup.is_drawn()).then_some(at));
        }
        makeup.add(*byte);
        if makeup.length >= least && makeup.is_drawn() {
            return Some(Some(makeup.length));
        }
    }
    if makeup.length >= least.max(DRAWN_BYTES) || over { Some(None) } else { None }
}

fn exactly(candidate: &Candidate<'_>, count: usize) -> Verdict {
    if !begins_word(candidate) {
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

fn signed_token(candidate: &Candidate<'_>) -> Verdict {
    let word = Class::Word;
    if candidate.before().is_some_and(|byte| word.holds(byte)) || !begins_word(candidate) {
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
    let ends =
        |byte: u8| byte.is_ascii_whitespace() || matches!(byte, b'/' | b'?' | b'#' | b'"' | b'\'' | b'<' | b'>' | b'`' | b'\\');
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
