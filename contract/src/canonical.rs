//! Canonical JSON: one text for one value, so that a digest over it means something.
//!
//! UTF-8, keys sorted by code point at every depth, no spaces, shortest escapes. Integers of the i64 and u64 ranges are
//! exact; every other number stands in its shortest f64 form, an integral one below 2^53 as an integer and `-0` as `0`.
//! What would not survive that is a problem with a pointer, never a silent change: a number whose decimal value the form
//! does not have, NaN and Infinity, a lone surrogate, a duplicate key.

use std::fmt;
use std::io::{self, Write};

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Number, Value};

use crate::canonical_syntax;

/// How deep arrays and objects may be nested (levels). JSON readers commonly stop at 128, ours too; eight are left for
/// the record and the line that a value stands in, so that what was accepted can be read back.
pub const DEPTH: usize = 120;

/// How much of a number a problem repeats (characters).
const NUMBER_SHOWN: usize = 48;

/// Integral floats below this magnitude are written as integers: up to it every integer is exact in an f64.
const EXACT_INTEGERS: f64 = 9_007_199_254_740_992.0;

/// A value and its canonical text.
#[derive(Clone, Debug, PartialEq)]
pub struct Canonical {
    /// The value: its numbers are those of the text.
    pub value: Value,
    /// Its canonical text.
    pub text: String,
}

/// Why a text has no canonical form, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CanonicalProblem {
    /// JSON Pointer (RFC 6901) to the place; empty for the whole.
    pub pointer: String,
    /// What is wrong there.
    pub problem: Problem,
}

/// What is wrong with a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// It is no JSON.
    Syntax {
        /// Line of the text, from 1.
        line: usize,
        /// Byte of that line, from 1.
        column: usize,
    },
    /// `NaN`, `Infinity` or `-Infinity`.
    NotFinite {
        /// The word.
        word: &'static str,
    },
    /// A number that would come out as another one.
    NumberLost {
        /// The number as it was written, shortened when it is long.
        number: String,
    },
    /// A string with half of a surrogate pair: it is no Unicode text.
    LoneSurrogate,
    /// The same key twice in one object.
    DuplicateKey {
        /// The key.
        key: String,
    },
    /// Nested deeper than [`DEPTH`].
    TooDeep,
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Syntax { line, column } => write!(formatter, "this is not valid JSON (line {line}, column {column})"),
            Problem::NotFinite { word } => write!(formatter, "{word} is not a JSON number"),
            Problem::NumberLost { number } => write!(
                formatter,
                "the number {number} cannot be carried exactly; give it as a string, or with fewer digits"
            ),
            Problem::LoneSurrogate => formatter.write_str("the text holds half of a surrogate pair, which is no character"),
            Problem::DuplicateKey { key } => write!(formatter, "the key {key:?} stands there twice"),
            Problem::TooDeep => write!(formatter, "it is nested deeper than {DEPTH} levels"),
        }
    }
}

impl fmt::Display for CanonicalProblem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pointer.as_str() {
            "" => write!(formatter, "{}", self.problem),
            pointer => write!(formatter, "at {pointer}: {}", self.problem),
        }
    }
}

impl std::error::Error for CanonicalProblem {}

impl CanonicalProblem {
    /// The same problem, seen from the container that holds its place under `segment`.
    fn under(mut self, segment: &str) -> Self {
        let mut pointer = String::with_capacity(self.pointer.len().saturating_add(segment.len()).saturating_add(1));
        push_segment(&mut pointer, segment);
        pointer.push_str(&self.pointer);
        self.pointer = pointer;
        self
    }
}

impl From<Problem> for CanonicalProblem {
    fn from(problem: Problem) -> Self {
        CanonicalProblem { pointer: String::new(), problem }
    }
}

/// Appends one segment to a JSON Pointer, escaped as RFC 6901 has it.
pub fn push_segment(pointer: &mut String, segment: &str) {
    pointer.push('/');
    for character in segment.chars() {
        match character {
            '~' => pointer.push_str("~0"),
            '/' => pointer.push_str("~1"),
            other => pointer.push(other),
        }
    }
}

/// Reads a JSON text into its value and its canonical text.
///
/// Each level of nesting reads the text below it once more: that is what it costs to see numbers as they were written
/// without a JSON reader of our own; [`DEPTH`] bounds it.
///
/// # Errors
/// The first problem, level by level, with a pointer to its place.
pub fn from_raw(raw: &str) -> Result<Canonical, CanonicalProblem> {
    let whole: &RawValue = serde_json::from_str(raw).map_err(|error| canonical_syntax::locate(raw, &error))?;
    let value = read(whole, 0)?;
    let text = of_value(&value);
    Ok(Canonical { value, text })
}

/// The canonical text of a value.
pub fn of_value(value: &Value) -> String {
    let mut bytes = Vec::new();
    // A vector takes every write, and what is written comes from strings.
    match write_value(value, &mut bytes) {
        Ok(()) => String::from_utf8(bytes).unwrap_or_default(),
        Err(_) => String::new(),
    }
}

/// Writes the canonical text of a value.
///
/// # Errors
/// Those of `out` only.
pub fn write_value(value: &Value, out: &mut impl Write) -> io::Result<()> {
    match value {
        Value::Null => out.write_all(b"null"),
        Value::Bool(true) => out.write_all(b"true"),
        Value::Bool(false) => out.write_all(b"false"),
        Value::Number(number) => write!(out, "{}", shortest(number)),
        Value::String(text) => write_string(text, out),
        Value::Array(items) => {
            out.write_all(b"[")?;
            for (position, item) in items.iter().enumerate() {
                if position > 0 {
                    out.write_all(b",")?;
                }
                write_value(item, out)?;
            }
            out.write_all(b"]")
        }
        Value::Object(members) => {
            // Sorted here: another crate of a consumer's may have switched the map to insertion order.
            let mut sorted: Vec<(&String, &Value)> = members.iter().collect();
            sorted.sort_by(|left, right| left.0.cmp(right.0));
            out.write_all(b"{")?;
            for (position, (key, item)) in sorted.into_iter().enumerate() {
                if position > 0 {
                    out.write_all(b",")?;
                }
                write_string(key, out)?;
                out.write_all(b":")?;
                write_value(item, out)?;
            }
            out.write_all(b"}")
        }
    }
}

fn write_string(text: &str, out: &mut impl Write) -> io::Result<()> {
    serde_json::to_writer(out, text).map_err(io::Error::from)
}

/// A number in its canonical form: integers stay, an integral float below 2^53 becomes one.
fn shortest(number: &Number) -> Number {
    match number.as_f64() {
        Some(float) if number.is_f64() => of_float(float).unwrap_or_else(|| number.clone()),
        _ => number.clone(),
    }
}

/// The canonical number of a float; nothing for NaN and the infinities.
fn of_float(float: f64) -> Option<Number> {
    if float.fract() == 0.0 && float.abs() < EXACT_INTEGERS {
        // In range and integral, as just asked: the conversion loses nothing (and turns -0 into 0).
        #[allow(clippy::cast_possible_truncation)]
        let integer = float as i64;
        return Some(Number::from(integer));
    }
    Number::from_f64(float)
}

/// The members of an object in their order, their values unread.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;

        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = Vec<(String, &'de RawValue)>;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(members)
            }
        }

        deserializer.deserialize_map(MembersVisitor).map(Members)
    }
}

/// Reads one value whose syntax is known to be right; what can still fail is decoding a string.
fn read(raw: &RawValue, depth: usize) -> Result<Value, CanonicalProblem> {
    let text = raw.get().trim();
    match text.as_bytes().first() {
        Some(b'{') => {
            let below = deeper(depth)?;
            let members: Members<'_> = serde_json::from_str(text).map_err(|_| Problem::LoneSurrogate)?;
            let mut object = Map::new();
            for (key, member) in members.0 {
                if object.contains_key(&key) {
                    return Err(CanonicalProblem::from(Problem::DuplicateKey { key: key.clone() }).under(&key));
                }
                let value = read(member, below).map_err(|problem| problem.under(&key))?;
                object.insert(key, value);
            }
            Ok(Value::Object(object))
        }
        Some(b'[') => {
            let below = deeper(depth)?;
            let items: Vec<&RawValue> = serde_json::from_str(text).map_err(|_| Problem::LoneSurrogate)?;
            items
                .into_iter()
                .enumerate()
                .map(|(position, item)| read(item, below).map_err(|problem| problem.under(&position.to_string())))
                .collect::<Result<Vec<Value>, CanonicalProblem>>()
                .map(Value::Array)
        }
        Some(b'"') => match serde_json::from_str::<String>(text) {
            Ok(string) => Ok(Value::String(string)),
            Err(_) => Err(Problem::LoneSurrogate.into()),
        },
        Some(b't') => Ok(Value::Bool(true)),
        Some(b'f') => Ok(Value::Bool(false)),
        Some(b'n') => Ok(Value::Null),
        _ => Ok(Value::Number(read_number(text)?)),
    }
}

fn deeper(depth: usize) -> Result<usize, Problem> {
    match depth.saturating_add(1) {
        below if below <= DEPTH => Ok(below),
        _ => Err(Problem::TooDeep),
    }
}

/// The canonical number of a JSON number as it was written.
fn read_number(text: &str) -> Result<Number, Problem> {
    if let Ok(integer) = text.parse::<u64>() {
        return Ok(Number::from(integer));
    }
    if let Ok(integer) = text.parse::<i64>() {
        return Ok(Number::from(integer));
    }
    let number = text.parse::<f64>().ok().and_then(of_float);
    match number {
        Some(number) if Decimal::of(text) == Decimal::of(&number.to_string()) => Ok(number),
        _ => Err(Problem::NumberLost { number: shown(text) }),
    }
}

/// A number for a sentence: all of it, or its beginning.
pub(crate) fn shown(number: &str) -> String {
    match number.char_indices().nth(NUMBER_SHOWN) {
        Some((end, _)) => format!("{}…", number.get(..end).unwrap_or_default()),
        None => number.to_string(),
    }
}

/// The decimal value of a JSON number: sign, digits without zeros at either end, power of ten. Zero has no digits.
#[derive(PartialEq, Eq)]
struct Decimal {
    negative: bool,
    digits: String,
    exponent: i64,
}

impl Decimal {
    fn of(text: &str) -> Decimal {
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let mut digits = String::with_capacity(mantissa.len());
        digits.push_str(whole);
        digits.push_str(fraction);
        let without_tail = digits.trim_end_matches('0');
        let tail = digits.len().saturating_sub(without_tail.len());
        let significant = without_tail.trim_start_matches('0').to_string();
        if significant.is_empty() {
            return Decimal { negative: false, digits: significant, exponent: 0 };
        }
        // An exponent that does not fit makes the number zero or infinite as a float: it is lost before this compares.
        let stated = exponent.parse::<i64>().unwrap_or(i64::MAX);
        let exponent = stated.saturating_sub(count(fraction.len())).saturating_add(count(tail));
        Decimal { negative, digits: significant, exponent }
    }
}

fn count(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}

#[cfg(test)]
#[path = "canonical_tests.rs"]
mod tests;
