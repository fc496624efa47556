//! YAML as people write it in files of settings, read with budgets into a tree that knows where each value stands. A value stays the text
//! that was written: `on`, `007` and `1.10` are texts like any other.
//!
//! It is read twice: once to learn which value is a text, a list or a mapping, once to get the texts as they are written.

use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_yaml::{Budget, DuplicateKeyPolicy, MergeKeyPolicy, NonFiniteFloatPolicy, Options, Spanned};

use super::error::Problem;
use crate::limits;

/// A text and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Line in the file.
    pub line: u64,
    /// Column in characters.
    pub column: u64,
    /// The text as it is written.
    pub text: String,
}

impl Placed {
    /// A problem with it.
    pub fn problem(&self, what: impl Into<String>) -> Problem {
        Problem::at(self.line, self.column, what)
    }
}

/// A value and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Line in the file.
    pub line: u64,
    /// Column in characters.
    pub column: u64,
    /// It.
    pub value: Value,
}

/// A value of YAML, its scalars as they are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// `~`, `null`, or nothing at all.
    Nothing,
    /// A scalar.
    Text(String),
    /// A sequence.
    List(Vec<Node>),
    /// A mapping in its order; no key stands there twice.
    Map(Vec<(Placed, Node)>),
}

impl Node {
    /// A problem with it.
    pub fn problem(&self, what: impl Into<String>) -> Problem {
        Problem::at(self.line, self.column, what)
    }

    /// It as a text.
    ///
    /// # Errors
    /// It is none; `what` is the value in words.
    pub fn text(&self, what: &str) -> Result<&str, Problem> {
        match &self.value {
            Value::Text(text) => Ok(text),
            Value::Nothing => {
                Err(self.problem(format!("{what} has to be a text, and there is none; write one, in quotes if need be")))
            }
            _ => Err(self.problem(format!("{what} has to be a text, and is none"))),
        }
    }

    /// It as a text that is not blank.
    ///
    /// # Errors
    /// It is none.
    pub fn words(&self, what: &str) -> Result<&str, Problem> {
        match self.text(what)? {
            text if text.trim().is_empty() => {
                Err(self.problem(format!("{what} is empty; write something, or leave the key out")))
            }
            text => Ok(text),
        }
    }

    /// It as yes or no.
    ///
    /// # Errors
    /// It is neither.
    pub fn switch(&self, what: &str) -> Result<bool, Problem> {
        match self.text(what)? {
            "true" => Ok(true),
            "false" => Ok(false),
            other => Err(self.problem(format!("{what} has to be true or false, and is `{}`", shown(other)))),
        }
    }

    /// It as a whole number from 0 to `most`.
    ///
    /// # Errors
    /// It is none.
    pub fn count(&self, what: &str, most: u64) -> Result<u64, Problem> {
        let text = self.text(what)?;
        let number =
            Some(text).filter(|text| text.bytes().all(|digit| digit.is_ascii_digit())).and_then(|text| text.parse().ok());
        number
            .filter(|number| *number <= most)
            .ok_or_else(|| self.problem(format!("{what} has to be a whole number from 0 to {most}, and is `{}`", shown(text))))
    }

    /// It as a list.
    ///
    /// # Errors
    /// It is none.
    pub fn list(&self, what: &str) -> Result<&[Node], Problem> {
        match &self.value {
            Value::List(items) => Ok(items),
            _ => Err(self.problem(format!("{what} has to be a list, `[one, another]`"))),
        }
    }

    /// It as a mapping.
    ///
    /// # Errors
    /// It is none.
    pub fn map(&self, what: &str) -> Result<&[(Placed, Node)], Problem> {
        match &self.value {
            Value::Map(pairs) => Ok(pairs),
            _ => Err(self.problem(format!("{what} has to be a mapping of keys to values"))),
        }
    }
}

/// What a sentence repeats of a text from a file.
pub fn shown(text: &str) -> String {
    text.chars().flat_map(char::escape_debug).take(limits::size(limits::SKILL_KEY_CHARACTERS)).collect()
}

/// Reads YAML that begins `offset` lines below the top of its file. Nothing but blanks and comments is a mapping without keys.
///
/// # Errors
/// What is no YAML or is past a budget, and where.
pub fn read(yaml: &str, offset: u64) -> Result<Node, Problem> {
    if let Some(problem) = forbidden(yaml, offset) {
        return Err(problem);
    }
    if yaml.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
        return Ok(Node { line: offset.saturating_add(1), column: 1, value: Value::Map(Vec::new()) });
    }
    let shape: Spanned<Shape> =
        serde_yaml::with_deserializer_from_str_with_options(yaml, options(), |deserializer| Spanned::deserialize(deserializer))
            .map_err(|error| problem(&error, offset))?;
    serde_yaml::with_deserializer_from_str_with_options(yaml, options(), |deserializer| {
        Fill { shape: &shape, offset }.deserialize(deserializer)
    })
    .map_err(|error| problem(&error, offset))
}

fn problem(error: &serde_yaml::Error, offset: u64) -> Problem {
    let plain = error.without_snippet();
    let place = plain.location();
    let line = place.as_ref().map_or(1, |place| place.line().max(1)).saturating_add(offset);
    let column = place.as_ref().map_or(1, |place| place.column().max(1));
    Problem::at(line, column, words(plain))
}

/// Our words for what the parser says where people meet it; its own for the rest, without the place.
fn words(error: &serde_yaml::Error) -> String {
    use serde_yaml::Error as E;
    match error {
        E::DuplicateMappingKey { key, .. } => match key {
            Some(key) => format!("the key `{}` stands there twice; keep one of them", shown(key)),
            None => "a key stands there twice; keep one of them".to_owned(),
        },
        E::Budget { .. } => too_much(),
        E::NullIntoString { .. } | E::Unexpected { expected: "string scalar", .. } => {
            "a key has to be a text, and is none".to_owned()
        }
        E::MergeKeyNotAllowed { .. } => "merge keys (`<<`) are not allowed; write the keys out".to_owned(),
        other => {
            let text = other.to_string();
            let first = text.lines().next().unwrap_or_default();
            let bare = first.split(" at line ").next().unwrap_or_default();
            let bare = bare.strip_prefix("error: ").unwrap_or(bare);
            let bare = bare.split_once(": ").filter(|(place, _)| place.starts_with("line ")).map_or(bare, |(_, rest)| rest);
            if bare.contains("recursion limit") { too_much() } else { format!("this cannot be read: {bare}") }
        }
    }
}

fn too_much() -> String {
    format!(
        "this is more than a file of settings may hold: no anchors or aliases, at most {} nodes, at most {} levels",
        limits::SKILL_NODES,
        limits::SKILL_LEVELS
    )
}

/// A sign that has no place in such a file, whatever the parser would make of it.
fn forbidden(yaml: &str, offset: u64) -> Option<Problem> {
    for (line, text) in (1u64..).zip(yaml.split('\n')) {
        let text = text.strip_suffix('\r').unwrap_or(text);
        for (column, sign) in (1u64..).zip(text.chars()) {
            let what = match sign {
                '\t' => "a tab; indent and separate with spaces".to_owned(),
                sign if sign.is_control() => format!("a control character (U+{:04X}); remove it", u32::from(sign)),
                _ => continue,
            };
            return Some(Problem::at(line.saturating_add(offset), column, what));
        }
    }
    None
}

fn options() -> Options {
    let count = |limit: u64| usize::try_from(limit).unwrap_or(usize::MAX);
    let mut budget = Budget::default();
    budget.max_nodes = count(limits::SKILL_NODES);
    budget.max_depth = count(limits::SKILL_LEVELS);
    budget.flow_nesting_limit = count(limits::SKILL_LEVELS);
    budget.max_total_scalar_bytes = count(limits::SKILL_BYTES);
    budget.max_aliases = 0;
    budget.max_anchors = 0;
    budget.max_merge_keys = 0;
    budget.max_documents = 1;
    let mut options = Options::default();
    options.budget = Some(budget);
    options.duplicate_keys = DuplicateKeyPolicy::Error;
    options.merge_keys = MergeKeyPolicy::Error;
    options.reject_unsupported_tags = true;
    // A text that looks like a number is a text.
    options.non_finite_float_policy = NonFiniteFloatPolicy::AsString;
    options.with_snippet = false;
    options
}

/// What kind of value stands where.
enum Shape {
    Nothing,
    Text,
    List(Vec<Spanned<Shape>>),
    Map(Vec<(Spanned<String>, Spanned<Shape>)>),
}

impl<'de> Deserialize<'de> for Shape {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ShapeVisitor)
    }
}

struct ShapeVisitor;

impl<'de> Visitor<'de> for ShapeVisitor {
    type Value = Shape;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Shape, E> {
        Ok(Shape::Nothing)
    }

    fn visit_none<E>(self) -> Result<Shape, E> {
        Ok(Shape::Nothing)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Shape, E> {
        Ok(Shape::Text)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Shape, E> {
        Ok(Shape::Text)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Shape, E> {
        Ok(Shape::Text)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Shape, E> {
        Ok(Shape::Text)
    }

    fn visit_str<E>(self, _: &str) -> Result<Shape, E> {
        Ok(Shape::Text)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Shape, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Shape::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut pairs: A) -> Result<Shape, A::Error> {
        let mut map = Vec::new();
        while let Some(pair) = pairs.next_entry()? {
            map.push(pair);
        }
        Ok(Shape::Map(map))
    }
}

/// Reads a value whose shape is known.
struct Fill<'s> {
    shape: &'s Spanned<Shape>,
    offset: u64,
}

impl<'s> Fill<'s> {
    fn of(&self, shape: &'s Spanned<Shape>) -> Fill<'s> {
        Fill { shape, offset: self.offset }
    }
}

impl<'de> DeserializeSeed<'de> for Fill<'_> {
    type Value = Node;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        let place = self.shape.referenced;
        let value = match &self.shape.value {
            Shape::Nothing => {
                IgnoredAny::deserialize(deserializer)?;
                Value::Nothing
            }
            Shape::Text => Value::Text(String::deserialize(deserializer)?),
            Shape::List(_) => deserializer.deserialize_seq(&self)?,
            Shape::Map(_) => deserializer.deserialize_map(&self)?,
        };
        Ok(Node { line: place.line().saturating_add(self.offset), column: place.column(), value })
    }
}

impl<'de> Visitor<'de> for &Fill<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the value that was read before")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        if let Shape::List(shapes) = &self.shape.value {
            for shape in shapes {
                list.extend(items.next_element_seed(self.of(shape))?);
            }
        }
        // The end is read too.
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Value::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut pairs: A) -> Result<Value, A::Error> {
        let mut map = Vec::new();
        if let Shape::Map(shapes) = &self.shape.value {
            for (key, shape) in shapes {
                if pairs.next_key::<IgnoredAny>()?.is_none() {
                    break;
                }
                let (line, column) = (key.referenced.line().saturating_add(self.offset), key.referenced.column());
                let key = Placed { line, column, text: key.value.clone() };
                map.push((key, pairs.next_value_seed(self.of(shape))?));
            }
        }
        while pairs.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Value::Map(map))
    }
}
