//! The forms in which a known value is looked for, and how a text is read so that few of them are enough.
//!
//! A text is read in two ways: as it stands, and *plainly*: percent and backslash escapes undone, line breaks (with the
//! indentation behind them) left out. Whatever the escapes, a value is found by its own plain form; only what changes every
//! letter (base64, hexadecimal) needs forms of its own.

use std::collections::BTreeSet;

use crate::limits::{SECRET_ENCODED_BYTES, SECRET_FORM_BYTES, size};

/// What one place of a text says when it is read plainly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Unit {
    /// Bytes of the text that it takes.
    pub taken: usize,
    bytes: [u8; 4],
    count: usize,
}

impl Unit {
    fn nothing(taken: usize) -> Self {
        Self { taken, bytes: [0; 4], count: 0 }
    }

    fn byte(taken: usize, byte: u8) -> Self {
        if matches!(byte, b'\n' | b'\r') { Self::nothing(taken) } else { Self { taken, bytes: [byte, 0, 0, 0], count: 1 } }
    }

    fn character(taken: usize, code: u32) -> Self {
        // Half of a pair is no character: a byte that no text holds.
        let Some(character) = char::from_u32(code) else { return Self { taken, bytes: [0xff, 0, 0, 0], count: 1 } };
        if matches!(character, '\n' | '\r') {
            return Self::nothing(taken);
        }
        let mut bytes = [0; 4];
        let count = character.encode_utf8(&mut bytes).len();
        Self { taken, bytes, count }
    }

    /// What it says; nothing for a line break.
    pub fn says(&self) -> &[u8] {
        self.bytes.get(..self.count).unwrap_or_default()
    }
}

/// Most backslashes in a row that are read as one escape: JSON inside JSON doubles them each time.
const BACKSLASHES: usize = 16;

/// What stands where a text was cut.
pub(super) const CUT: &[u8] = "…".as_bytes();

/// True for the bytes at which reading plainly may differ from reading as it stands, and for the first where a text was cut.
pub(super) fn is_special(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r' | b'%' | b'\\' | 0xe2)
}

/// Reads one place plainly. `after_break` says that only white space stands since a line break. Nothing when the text ends
/// too early to say, and is not `over`.
pub(super) fn unit(text: &[u8], at: usize, after_break: bool, over: bool) -> Option<Unit> {
    let ahead = |distance: usize| text.get(at.saturating_add(distance)).copied();
    let first = ahead(0)?;
    match first {
        b'\n' | b'\r' => Some(Unit::nothing(1)),
        b' ' | b'\t' if after_break => Some(Unit::nothing(1)),
        b'%' => match hexadecimal(text, at.saturating_add(1), 2) {
            Hexadecimal::Is(code) => Some(Unit::byte(3, u8::try_from(code).unwrap_or_default())),
            Hexadecimal::Incomplete if !over => None,
            _ => Some(Unit::byte(1, b'%')),
        },
        b'\\' => {
            let run = (1..BACKSLASHES).take_while(|distance| ahead(*distance) == Some(b'\\')).count().saturating_add(1);
            let escaped = |byte| Some(Unit::byte(run.saturating_add(1), byte));
            let digits = at.saturating_add(run).saturating_add(1);
            match ahead(run) {
                None if !over => None,
                Some(b'n' | b'r') => Some(Unit::nothing(run.saturating_add(1))),
                Some(b't') => escaped(b'\t'),
                Some(byte @ (b'"' | b'\'' | b'/')) => escaped(byte),
                Some(b'u') => match hexadecimal(text, digits, 4) {
                    Hexadecimal::Is(code) => Some(Unit::character(run.saturating_add(5), code)),
                    Hexadecimal::Incomplete if !over => None,
                    _ => Some(Unit::byte(run, b'\\')),
                },
                Some(b'x') => match hexadecimal(text, digits, 2) {
                    Hexadecimal::Is(code) => Some(Unit::byte(run.saturating_add(3), u8::try_from(code).unwrap_or_default())),
                    Hexadecimal::Incomplete if !over => None,
                    _ => Some(Unit::byte(run, b'\\')),
                },
                _ => Some(Unit::byte(run, b'\\')),
            }
        }
        other => Some(Unit::byte(1, other)),
    }
}

enum Hexadecimal {
    Is(u32),
    Not,
    Incomplete,
}

fn hexadecimal(text: &[u8], at: usize, digits: usize) -> Hexadecimal {
    let mut code: u32 = 0;
    for distance in 0..digits {
        let Some(byte) = text.get(at.saturating_add(distance)) else { return Hexadecimal::Incomplete };
        let Some(digit) = char::from(*byte).to_digit(16) else { return Hexadecimal::Not };
        code = code.saturating_mul(16).saturating_add(digit);
    }
    Hexadecimal::Is(code)
}

/// A whole text read plainly.
fn plain(text: &[u8]) -> Vec<u8> {
    let mut said = Vec::with_capacity(text.len());
    let mut at = 0usize;
    let mut after_break = false;
    while let Some(unit) = unit(text, at, after_break, true) {
        said.extend_from_slice(unit.says());
        after_break = unit.says().is_empty();
        at = at.saturating_add(unit.taken);
    }
    said
}

/// All forms of a value, none longer than a bound: a long one is looked for in pieces that overlap, so that a text with the
/// whole value has all of them, end to end.
pub(super) fn forms(value: &str) -> BTreeSet<Vec<u8>> {
    let bytes = value.as_bytes();
    let mut whole = vec![bytes.to_vec(), plain(bytes)];
    if bytes.len() <= size(SECRET_ENCODED_BYTES) {
        for before in 0..3 {
            for alphabet in [STANDARD, URL_SAFE] {
                whole.push(base64(bytes, before, alphabet));
            }
        }
        whole.push(digits(bytes, b"0123456789abcdef"));
        whole.push(digits(bytes, b"0123456789ABCDEF"));
    }
    // What is left of a value that is nothing but escapes would be found everywhere.
    let long_enough = |form: &Vec<u8>| form.len() >= SHORTEST_FORM;
    whole.into_iter().filter(long_enough).flat_map(|form| pieces(&form)).collect()
}

/// A form of fewer bytes than a value has characters is none.
const SHORTEST_FORM: usize = 8;

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL_SAFE: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The characters of a base64 text that say these bytes and nothing else when `before` (0, 1 or 2) bytes of a group of three
/// stand before them, whatever stands around.
fn base64(bytes: &[u8], before: usize, alphabet: &[u8; 64]) -> Vec<u8> {
    let all = std::iter::repeat_n(0, before).chain(bytes.iter().copied()).collect::<Vec<u8>>();
    let mut text = Vec::new();
    for group in all.chunks(3) {
        let joined = (0..3).fold(0u32, |joined, position| joined << 8 | u32::from(group.get(position).copied().unwrap_or(0)));
        // A group of n bytes fills n characters, and one more in part: that one depends on what follows.
        let filled = if group.len() == 3 { 4 } else { group.len() };
        for position in 0..filled {
            let shift = 18usize.saturating_sub(position.saturating_mul(6));
            let index = usize::try_from(joined >> shift & 63).unwrap_or_default();
            text.extend(alphabet.get(index));
        }
    }
    // The bytes before reach into as many characters, and one more.
    let foreign = if before == 0 { 0 } else { before.saturating_add(1) };
    text.split_off(foreign.min(text.len()))
}

fn digits(bytes: &[u8], alphabet: &[u8; 16]) -> Vec<u8> {
    let digit = |number: u8| alphabet.get(usize::from(number)).copied().unwrap_or_default();
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// The form, or pieces of it of the bound's length, each beginning in the middle of the one before and between two characters.
fn pieces(form: &[u8]) -> Vec<Vec<u8>> {
    let longest = size(SECRET_FORM_BYTES);
    let boundary = |mut at: usize| {
        while form.get(at).is_some_and(|byte| byte & 0xc0 == 0x80) {
            at = at.saturating_sub(1);
        }
        at
    };
    let mut pieces = Vec::new();
    let mut from = 0usize;
    loop {
        let end = from.saturating_add(longest);
        if end >= form.len() {
            let start = boundary(form.len().saturating_sub(longest));
            pieces.extend(form.get(start..).map(<[u8]>::to_vec));
            return pieces;
        }
        pieces.extend(form.get(from..boundary(end)).map(<[u8]>::to_vec));
        from = boundary(from.saturating_add(longest / 2));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn says(text: &str) -> String {
        String::from_utf8(plain(text.as_bytes())).unwrap()
    }

    #[test]
    fn escapes_are_undone_and_line_breaks_left_out() {
        assert_eq!(says("a%2Fb%2fc"), "a/b/c");
        assert_eq!(says("a\\u0041\\x42\\/\\\"\\\\\\\"c"), "aAB/\"\"c");
        assert_eq!(says("ab\n   cd\r\n\tef gh\\nij"), "abcdef ghij");
        assert_eq!(says("100% 5%zz \\w \\u12"), "100% 5%zz \\w \\u12");
        assert_eq!(says("%C3%A4\\u00e4"), "ää");
        assert_eq!(unit(b"a%4", 1, false, false), None);
        assert_eq!(unit(b"a\\", 1, false, false), None);
        assert_eq!(unit(b"a\\u00", 1, false, false), None);
    }

    #[test]
    fn base64_is_found_whatever_stands_around_it() {
        let value = b"0123456789abcdef";
        for before in 0..3 {
            for after in 0..3 {
                let text = [vec![b'x'; before + 3], value.to_vec(), vec![b'y'; after]].concat();
                let whole = String::from_utf8(padded(&text)).unwrap();
                let form = String::from_utf8(base64(value, before, STANDARD)).unwrap();
                assert!(whole.contains(&form), "{form} in {whole}");
                assert!(form.len() >= 20);
            }
        }
    }

    /// A whole text in base64, its last group filled with zeros.
    fn padded(bytes: &[u8]) -> Vec<u8> {
        base64(&[bytes, &[0, 0]].concat(), 0, STANDARD)
    }

    #[test]
    fn a_long_form_comes_in_pieces_that_overlap() {
        let long: String = (0..400).map(|number| format!("ä{number};")).collect();
        let found = pieces(long.as_bytes());
        assert!(found.len() > 5);
        let mut reached = 0;
        for piece in &found {
            let piece = std::str::from_utf8(piece).unwrap();
            assert!(piece.len() <= size(SECRET_FORM_BYTES) + 1);
            let at = long.find(piece).unwrap();
            assert!(at < reached.max(1), "it begins inside what came before");
            reached = at + piece.len();
        }
        assert_eq!(reached, long.len());
        assert_eq!(pieces(b"short"), [b"short".to_vec()]);
    }
}
