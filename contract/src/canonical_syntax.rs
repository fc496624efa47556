//! Where a JSON text breaks: a visitor that follows the path while `serde_json` reads the text once more.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

use crate::canonical::{CanonicalProblem, DEPTH, Problem, push_segment, shown};

/// The words that some writers put where a number belongs; the longest first.
const NOT_FINITE: [&str; 3] = ["-Infinity", "Infinity", "NaN"];

/// Finds the place of a syntax error that `serde_json` has met in `raw`.
pub(crate) fn locate(raw: &str, error: &serde_json::Error) -> CanonicalProblem {
    let mut track = Track { path: Vec::new(), too_deep: false };
    let mut deserializer = serde_json::Deserializer::from_str(raw);
    let found = Follow { track: &mut track }.deserialize(&mut deserializer).err();
    let mut pointer = String::new();
    for segment in &track.path {
        push_segment(&mut pointer, segment);
    }
    // The second reading decodes strings and numbers too, so it may stop earlier: then that is the first problem.
    let problem = match found {
        _ if track.too_deep => Problem::TooDeep,
        Some(found) if position(&found) != position(error) => decoding(raw, &found),
        _ => syntax(raw, error),
    };
    CanonicalProblem { pointer, problem }
}

fn position(error: &serde_json::Error) -> (usize, usize) {
    (error.line(), error.column())
}

fn syntax(raw: &str, error: &serde_json::Error) -> Problem {
    let near = offset(raw, error);
    let word = (near.saturating_sub(2)..=near.saturating_add(1)).find_map(|start| {
        let rest = raw.get(start..)?;
        NOT_FINITE.into_iter().find(|word| rest.starts_with(word))
    });
    match word {
        Some(word) => Problem::NotFinite { word },
        None => Problem::Syntax { line: error.line(), column: error.column() },
    }
}

/// The text is JSON up to there, but what it spells cannot be kept: a number out of range, or half a surrogate pair.
fn decoding(raw: &str, error: &serde_json::Error) -> Problem {
    let before = raw.get(..=offset(raw, error)).unwrap_or(raw);
    let tail = before.rsplit(|character: char| !is_of_number(character)).find(|part| !part.is_empty());
    match tail {
        Some(number) if error.to_string().starts_with("number out of range") => {
            Problem::NumberLost { number: shown(number) }
        }
        _ => Problem::LoneSurrogate,
    }
}

fn is_of_number(character: char) -> bool {
    character.is_ascii_digit() || matches!(character, '-' | '+' | '.' | 'e' | 'E')
}

/// The byte that an error's line and column name.
fn offset(raw: &str, error: &serde_json::Error) -> usize {
    let start: usize = raw.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum();
    start.saturating_add(error.column().saturating_sub(1))
}

struct Track {
    path: Vec<String>,
    too_deep: bool,
}

struct Follow<'t> {
    track: &'t mut Track,
}

impl<'de> DeserializeSeed<'de> for Follow<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Follow<'_> {
    fn enter<E: serde::de::Error>(&mut self) -> Result<(), E> {
        if self.track.path.len() < DEPTH {
            return Ok(());
        }
        self.track.too_deep = true;
        Err(E::custom("too deep"))
    }
}

impl<'de> Visitor<'de> for Follow<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        self.enter()?;
        let mut position: usize = 0;
        loop {
            self.track.path.push(position.to_string());
            // What fails leaves its segment on the path: that is the place.
            let item = items.next_element_seed(Follow { track: &mut *self.track })?;
            self.track.path.pop();
            match item {
                Some(()) => position = position.saturating_add(1),
                None => return Ok(()),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut members: A) -> Result<(), A::Error> {
        self.enter()?;
        while let Some(key) = members.next_key::<String>()? {
            self.track.path.push(key);
            members.next_value_seed(Follow { track: &mut *self.track })?;
            self.track.path.pop();
        }
        Ok(())
    }
}
