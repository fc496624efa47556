//! Fragments of an answer while it streams: a pure decoder, fed by the driver. They are provisional: neither journaled nor replayed.

use std::collections::BTreeMap;

use mission_contract::spec::Protocol;

use super::words::ANSWER_FUNCTION;
use crate::limits::FRAGMENT_CHARACTERS;

/// Finds the answer's text in a reply that arrives in pieces.
#[derive(Debug)]
pub struct AnswerDecoder {
    protocol: Protocol,
    text: Finder,
    calls: BTreeMap<usize, Call>,
    gathered: String,
    gathered_characters: u64,
    shown: u64,
}

#[derive(Debug, Default)]
struct Call {
    is_answer: bool,
    named: bool,
    early: String,
    finder: Option<Finder>,
}

impl AnswerDecoder {
    /// A decoder for one reply.
    pub fn new(protocol: Protocol) -> Self {
        Self {
            protocol,
            text: Finder::new("answer"),
            calls: BTreeMap::new(),
            gathered: String::new(),
            gathered_characters: 0,
            shown: 0,
        }
    }

    /// More of the reply's text.
    pub fn text(&mut self, piece: &str) -> Vec<String> {
        match self.protocol {
            Protocol::Json => {
                let mut found = String::new();
                self.text.feed(piece, &mut found);
                self.gather(&found)
            }
            Protocol::Native => Vec::new(),
        }
    }

    /// The name of a call became known.
    pub fn call_name(&mut self, position: usize, name: &str) -> Vec<String> {
        let call = self.calls.entry(position).or_default();
        if call.named {
            return Vec::new();
        }
        call.named = true;
        call.is_answer = self.protocol == Protocol::Native && name == ANSWER_FUNCTION;
        let early = std::mem::take(&mut call.early);
        if early.is_empty() { Vec::new() } else { self.call_arguments(position, &early) }
    }

    /// More of a call's arguments.
    pub fn call_arguments(&mut self, position: usize, piece: &str) -> Vec<String> {
        if self.protocol == Protocol::Json {
            return Vec::new();
        }
        let call = self.calls.entry(position).or_default();
        if !call.named {
            call.early.push_str(piece);
            return Vec::new();
        }
        if !call.is_answer {
            return Vec::new();
        }
        let mut found = String::new();
        call.finder.get_or_insert_with(|| Finder::new("text")).feed(piece, &mut found);
        self.gather(&found)
    }

    /// The reply is over: what was gathered and not yet given out.
    pub fn finish(&mut self) -> Option<String> {
        if self.gathered.is_empty() {
            return None;
        }
        self.gathered_characters = 0;
        Some(self.give(String::new()))
    }

    /// Characters given out so far.
    pub fn shown(&self) -> u64 {
        self.shown
    }

    fn gather(&mut self, text: &str) -> Vec<String> {
        let mut fragments = Vec::new();
        for character in text.chars() {
            self.gathered.push(character);
            self.gathered_characters = self.gathered_characters.saturating_add(1);
            if character == '\n' || self.gathered_characters >= FRAGMENT_CHARACTERS {
                self.gathered_characters = 0;
                fragments.push(self.give(String::new()));
            }
        }
        fragments
    }

    fn give(&mut self, empty: String) -> String {
        let fragment = std::mem::replace(&mut self.gathered, empty);
        self.shown = self.shown.saturating_add(fragment.chars().count() as u64);
        fragment
    }
}

/// Reads the string value of one key of the outermost object of a JSON text that arrives in pieces.
#[derive(Debug)]
struct Finder {
    key: &'static str,
    depth: u32,
    state: State,
    /// The key being read at depth 1.
    name: String,
    /// The pieces of an escape that is not complete.
    escape: Escape,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before the object.
    Before,
    /// Where a key may begin.
    Key,
    /// In a key at depth 1.
    InKey,
    /// Behind a key at depth 1.
    Colon,
    /// Where the value of the wanted key may begin.
    Wanted,
    /// In the wanted string.
    InWanted,
    /// In a value that is not wanted, outside a string.
    Skip,
    /// In a string of such a value.
    SkipString,
    /// Done, one way or the other.
    Over,
}

#[derive(Debug, Default)]
struct Escape {
    open: bool,
    /// Hexadecimal digits of a `\u` escape so far.
    digits: Option<String>,
    /// The first half of a surrogate pair.
    high: Option<u32>,
}

/// What a character of a JSON string stands for.
enum Read {
    /// Nothing yet.
    More,
    /// This character.
    Is(char),
    /// The string is over.
    End,
    /// It is no JSON string.
    Broken,
}

impl Escape {
    fn read(&mut self, character: char) -> Read {
        if let Some(digits) = &mut self.digits {
            if !character.is_ascii_hexdigit() {
                return Read::Broken;
            }
            digits.push(character);
            if digits.len() < 4 {
                return Read::More;
            }
            let unit = u32::from_str_radix(digits, 16).unwrap_or(0);
            self.digits = None;
            return self.unit(unit);
        }
        if self.open {
            self.open = false;
            let plain = match character {
                'u' => {
                    self.digits = Some(String::new());
                    return Read::More;
                }
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                'b' => '\u{8}',
                'f' => '\u{c}',
                other => other,
            };
            self.high = None;
            return Read::Is(plain);
        }
        match character {
            '\\' => {
                self.open = true;
                Read::More
            }
            '"' => Read::End,
            other => {
                self.high = None;
                Read::Is(other)
            }
        }
    }

    /// A code unit; half a pair that finds no other half is dropped.
    fn unit(&mut self, unit: u32) -> Read {
        let high = self.high.take();
        match unit {
            0xD800..=0xDBFF => {
                self.high = Some(unit);
                Read::More
            }
            0xDC00..=0xDFFF => {
                let Some(high) = high else { return Read::More };
                let upper = high.saturating_sub(0xD800).saturating_mul(0x400);
                let code = upper.saturating_add(unit.saturating_sub(0xDC00)).saturating_add(0x1_0000);
                char::from_u32(code).map_or(Read::More, Read::Is)
            }
            other => char::from_u32(other).map_or(Read::More, Read::Is),
        }
    }
}

impl Finder {
    fn new(key: &'static str) -> Self {
        Self { key, depth: 0, state: State::Before, name: String::new(), escape: Escape::default() }
    }

    fn feed(&mut self, piece: &str, found: &mut String) {
        for character in piece.chars() {
            match self.state {
                State::Over => return,
                State::Before => {
                    if character == '{' {
                        self.depth = 1;
                        self.state = State::Key;
                    }
                }
                State::Key => match character {
                    '"' => {
                        self.name.clear();
                        self.state = State::InKey;
                    }
                    '}' => self.state = State::Over,
                    _ => {}
                },
                State::InKey => match self.escape.read(character) {
                    Read::More => {}
                    Read::Is(character) => self.name.push(character),
                    Read::End => self.state = State::Colon,
                    Read::Broken => self.state = State::Over,
                },
                State::Colon => {
                    if character == ':' {
                        self.state = if self.name == self.key { State::Wanted } else { State::Skip };
                    }
                }
                State::Wanted => {
                    if character == '"' {
                        self.state = State::InWanted;
                    } else if !character.is_whitespace() {
                        self.state = State::Skip;
                        self.skip(character);
                    }
                }
                State::InWanted => match self.escape.read(character) {
                    Read::More => {}
                    Read::Is(character) => found.push(character),
                    Read::End | Read::Broken => self.state = State::Over,
                },
                State::Skip => self.skip(character),
                State::SkipString => match self.escape.read(character) {
                    Read::More | Read::Is(_) => {}
                    Read::End => self.state = State::Skip,
                    Read::Broken => self.state = State::Over,
                },
            }
        }
    }

    fn skip(&mut self, character: char) {
        match character {
            '"' => self.state = State::SkipString,
            '{' | '[' => self.depth = self.depth.saturating_add(1),
            '}' | ']' => {
                self.depth = self.depth.saturating_sub(1);
                if self.depth == 0 {
                    self.state = State::Over;
                }
            }
            ',' if self.depth == 1 => self.state = State::Key,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::string_slice, clippy::arithmetic_side_effects)]
    use proptest::prelude::*;

    use super::*;

    fn json(pieces: &[&str]) -> String {
        let mut decoder = AnswerDecoder::new(Protocol::Json);
        let mut all: Vec<String> = pieces.iter().flat_map(|piece| decoder.text(piece)).collect();
        all.extend(decoder.finish());
        assert_eq!(decoder.shown(), all.concat().chars().count() as u64);
        all.concat()
    }

    #[test]
    fn only_the_answer_of_the_outermost_object_is_shown() {
        assert_eq!(json(&["```json\n{\"note\": {\"answer\": \"no\"}, \"answer\": \"yes\"}\n```"]), "yes");
        assert_eq!(json(&["{\"tool\": \"mcp.x\", \"arguments\": {\"answer\": \"no\"}}"]), "");
        assert_eq!(json(&["{\"answer\": 42, \"x\": \"answer\"}"]), "");
        assert_eq!(json(&["{\"answer\": \"half"]), "half");
    }

    #[test]
    fn escapes_are_read_across_pieces() {
        assert_eq!(json(&["{\"answer\":\"a\\", "n\\u00e", "9\\ud83", "e\\udd80\\", "\"q"]), "a\né🦀\"q");
        assert_eq!(json(&["{\"answer\":\"\\udd80x\\ud83ey"]), "xy");
        assert_eq!(json(&["{\"answer\":\"ok\\uZZZZ more"]), "ok");
    }

    #[test]
    fn a_native_answer_is_read_whenever_its_name_comes() {
        let mut decoder = AnswerDecoder::new(Protocol::Native);
        assert!(decoder.call_arguments(1, "{\"text\":\"one\\n").is_empty());
        assert!(decoder.call_name(0, "mcp_x").is_empty());
        assert!(decoder.call_arguments(0, "{\"text\":\"no\"}").is_empty());
        assert_eq!(decoder.call_name(1, "mission_answer"), ["one\n"]);
        assert!(decoder.call_arguments(1, "two\"}").is_empty());
        assert_eq!(decoder.finish().unwrap(), "two");
    }

    #[test]
    fn a_fragment_is_a_line_or_sixty_four_characters() {
        let mut decoder = AnswerDecoder::new(Protocol::Json);
        let long = "x".repeat(130);
        let fragments = decoder.text(&format!("{{\"answer\":\"ab\\n{long}\"}}"));
        assert_eq!(fragments.iter().map(String::len).collect::<Vec<_>>(), [3, 64, 64]);
        assert_eq!(decoder.finish().unwrap().len(), 2);
    }

    proptest! {
        #[test]
        fn any_split_of_any_answer_shows_the_answer(answer in ".{0,200}", cut in any::<proptest::sample::Index>()) {
            let reply = serde_json::json!({"a": [1, "}{\""], "answer": answer}).to_string();
            let mut at = cut.index(reply.len() + 1);
            while !reply.is_char_boundary(at) { at -= 1; }
            prop_assert_eq!(json(&[&reply[..at], &reply[at..]]), answer);
        }

        #[test]
        fn nothing_brings_it_down(text in ".{0,200}") {
            json(&[&text]);
        }
    }
}
