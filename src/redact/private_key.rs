//! The lines of a private key (RFC 7468, RFC 4880, RFC 4716), wherever they stand: as they are, indented or quoted, in one line with
//! escapes, with headers, and without an end.

use super::class::Class;
use super::shapes::{Candidate, Hidden, Verdict};
use super::span::Label;
use super::swallow::{Swallow, Swallowed};
use crate::limits::{PRIVATE_KEY_BYTES, size};

/// How far the lines of a key have been read.
#[derive(Clone, Debug, Default)]
pub(super) struct PrivateKey {
    /// Bytes so far.
    bytes: usize,
    /// The quote in which all of it stands.
    quote: Option<u8>,
    /// Characters of the word at hand.
    word: usize,
    /// A short word and white space stand in this line: a key has none.
    gap: bool,
    /// The line is a header.
    header: bool,
    escaped: bool,
    dashes: usize,
    end: End,
}

/// How far the last line has been read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum End {
    #[default]
    None,
    /// Dashes, and so many letters of `END`.
    Letters(usize),
    /// All of it, and the dashes behind it are awaited.
    Named,
    /// They have begun.
    Dashes,
}

/// Dashes in a row that begin and end a line about a block.
const DASHES: usize = 4;
/// A word of at least so many characters may stand before white space: a key in one line.
const KEY_WORD: usize = 16;

impl PrivateKey {
    /// Goes on through `text`.
    pub fn feed(&mut self, text: &[u8]) -> Swallowed {
        for (at, byte) in (0..).zip(text) {
            if self.bytes >= size(PRIVATE_KEY_BYTES) || !self.goes_on(*byte) {
                return Swallowed::Ended(at);
            }
            self.bytes = self.bytes.saturating_add(1);
        }
        Swallowed::Open(text.len())
    }

    /// Whether this byte still belongs to the key.
    fn goes_on(&mut self, byte: u8) -> bool {
        match self.end {
            End::Dashes => return byte == b'-',
            End::Named => {
                match byte {
                    b'-' => self.dashes = self.dashes.saturating_add(1),
                    b'\n' | b'\r' | b'"' | b'\'' | b'\\' => return false,
                    _ => self.dashes = 0,
                }
                if self.dashes >= DASHES {
                    self.end = End::Dashes;
                }
                return true;
            }
            End::Letters(read) => {
                let letter = b"END".get(read).copied();
                self.end = match byte {
                    b' ' if read == 0 => End::Letters(0),
                    b'-' if read == 0 => End::Letters(0),
                    _ if Some(byte) == letter && read < 2 => End::Letters(read.saturating_add(1)),
                    _ if Some(byte) == letter => End::Named,
                    _ => End::None,
                };
                if self.end != End::None {
                    self.dashes = 0;
                    return true;
                }
                // Another block begins before this one ended: it goes with it.
                self.header = true;
            }
            End::None => {}
        }
        self.body(byte)
    }

    fn body(&mut self, byte: u8) -> bool {
        let escaped = std::mem::replace(&mut self.escaped, byte == b'\\');
        self.dashes = if byte == b'-' { self.dashes.saturating_add(1) } else { 0 };
        match byte {
            b'\n' | b'\r' => self.line_ends(),
            b'n' | b'r' if escaped => self.line_ends(),
            b'\\' => {}
            b'-' => {
                if self.dashes >= DASHES {
                    self.end = End::Letters(0);
                    self.line_ends();
                }
            }
            b' ' | b'\t' => {
                self.gap |= self.word > 0 && self.word < KEY_WORD;
                self.word = 0;
            }
            _ if self.quote == Some(byte) && !self.header => return false,
            _ if self.header => {}
            b':' if self.word > 0 && !self.gap => self.header = true,
            _ if Class::Base64.holds(byte) => {
                if self.gap {
                    return false;
                }
                self.word = self.word.saturating_add(1);
            }
            // What an editor, a mail or a program puts around lines.
            b'.' if self.word > 0 => return false,
            b'"' | b'\'' | b',' | b';' | b'>' | b'|' | b'#' | b'*' | b'.' => {
                self.gap = false;
                self.word = 0;
            }
            _ => return !byte.is_ascii() && self.word == 0,
        }
        true
    }

    fn line_ends(&mut self) {
        self.word = 0;
        self.gap = false;
        self.header = false;
    }
}

/// Letters between `BEGIN` and the dashes.
const TITLE_BYTES: usize = 48;
/// Bytes between the first line and the key.
const BETWEEN_BYTES: usize = 24;

/// Judges what stands behind `-----BEGIN `.
pub(super) fn judge(candidate: &Candidate<'_>) -> Verdict {
    let behind = candidate.behind();
    let is_title = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b' ';
    let title = behind.iter().take(TITLE_BYTES).take_while(|byte| is_title(byte)).count();
    let words = behind.get(..title).unwrap_or_default().trim_ascii_end();
    if title >= TITLE_BYTES {
        return Verdict::No;
    }
    let dashes = behind.get(title..).unwrap_or_default();
    let closing = dashes.iter().take(DASHES.saturating_add(1)).take_while(|byte| **byte == b'-').count();
    if dashes.len() <= closing && !candidate.over {
        return Verdict::More(candidate.start);
    }
    let private = words.ends_with(b"PRIVATE KEY") || words.ends_with(b"PRIVATE KEY BLOCK");
    if !private || closing < DASHES {
        return Verdict::No;
    }
    let lines = title.saturating_add(closing);
    match begins(behind.get(lines..).unwrap_or_default(), candidate.over) {
        None => Verdict::More(candidate.start),
        Some(Begins::Not) => Verdict::No,
        Some(Begins::OnNextLine) => {
            let before = candidate.start.checked_sub(1).and_then(|at| candidate.text.get(at)).copied();
            let quote = before.filter(|byte| matches!(byte, b'"' | b'\'' | b'`'));
            hidden(candidate, lines, PrivateKey { quote, ..PrivateKey::default() })
        }
        Some(Begins::Here) => hidden(candidate, lines, PrivateKey::default()),
    }
}

fn hidden(candidate: &Candidate<'_>, lines: usize, key: PrivateKey) -> Verdict {
    Verdict::Hidden(Hidden {
        start: candidate.start,
        from: candidate.end.saturating_add(lines),
        swallow: Swallow::PrivateKey(key),
        label: Label::Rule(candidate.placeholder),
    })
}

enum Begins {
    OnNextLine,
    Here,
    Not,
}

/// Whether a key follows the first line: on the next line, or behind what a list puts between two texts.
fn begins(text: &[u8], over: bool) -> Option<Begins> {
    let mut plain = true;
    let mut at = 0usize;
    loop {
        match text.get(at) {
            None => return over.then_some(Begins::Not),
            Some(b'\n' | b'\r') if plain => return Some(Begins::OnNextLine),
            Some(b'\\') if plain => {
                let run = text.iter().skip(at).take(BETWEEN_BYTES).take_while(|byte| **byte == b'\\').count();
                match text.get(at.saturating_add(run)) {
                    None => return over.then_some(Begins::Not),
                    Some(b'n' | b'r') => return Some(Begins::OnNextLine),
                    Some(_) => at = at.saturating_add(run),
                }
            }
            Some(b' ' | b'\t') => at = at.saturating_add(1),
            Some(b'"' | b'\'' | b',' | b'+' | b'\\' | b'\n' | b'\r') => {
                plain = false;
                at = at.saturating_add(1);
            }
            Some(_) => {
                let rest = text.get(at..).unwrap_or_default();
                let word = rest.iter().take(KEY_WORD).take_while(|byte| Class::Base64.holds(**byte)).count();
                return match word {
                    KEY_WORD => Some(Begins::Here),
                    word if word == rest.len() && !over => None,
                    _ => Some(Begins::Not),
                };
            }
        }
        if at > BETWEEN_BYTES {
            return Some(Begins::Not);
        }
    }
}
