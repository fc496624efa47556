//! YAML as a tree that knows where each value stands, read with budgets. Values have the types of YAML 1.2: `on` and `no` are texts.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use serde_yaml::{Budget, DuplicateKeyPolicy, MergeKeyPolicy, Options, Spanned};

use super::error::Problem;
use crate::limits;

/// A value and where it stands.
pub(super) type Node = Spanned<Tree>;

/// A value.
#[derive(Clone, Debug)]
pub(super) enum Tree {
    /// `null`, a yes or no, a number, a text.
    Scalar(Value),
    /// A sequence.
    List(Vec<Node>),
    /// A mapping in its order; no key stands there twice.
    Map(Vec<(Spanned<String>, Node)>),
}

impl Tree {
    /// It as JSON has it.
    pub(super) fn value(&self) -> Value {
        match self {
            Tree::Scalar(value) => value.clone(),
            Tree::List(items) => items.iter().map(|item| item.value.value()).collect(),
            Tree::Map(pairs) => {
                Value::Object(pairs.iter().map(|(key, item)| (key.value.clone(), item.value.value())).collect::<Map<_, _>>())
            }
        }
    }

    /// What it is, in words.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Tree::Scalar(Value::Null) => "nothing",
            Tree::Scalar(Value::Bool(_)) => "true or false",
            Tree::Scalar(Value::Number(_)) => "a number",
            Tree::Scalar(_) => "a text",
            Tree::List(_) => "a list",
            Tree::Map(_) => "a mapping",
        }
    }
}

/// A problem at a place.
pub(super) fn at<T>(place: &Spanned<T>, field: impl Into<String>, what: impl Into<String>) -> Problem {
    Problem { line: place.referenced.line(), column: place.referenced.column(), field: field.into(), what: what.into() }
}

/// Reads a whole file.
///
/// # Errors
/// What is no YAML or is past a budget, and where.
pub(super) fn read(yaml: &str) -> Result<Node, Problem> {
    if let Some(problem) = forbidden(yaml) {
        return Err(problem);
    }
    serde_yaml::with_deserializer_from_str_with_options(yaml, options(), |deserializer| Node::deserialize(deserializer)).map_err(
        |error| {
            let plain = error.without_snippet();
            let place = plain.location();
            let line = place.as_ref().map_or(1, |place| place.line().max(1));
            let column = place.as_ref().map_or(1, |place| place.column().max(1));
            Problem { line, column, field: String::new(), what: words(plain) }
        },
    )
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
        "this is more than a policy may hold: no anchors or aliases, at most {} nodes, at most {} levels",
        limits::POLICY_NODES,
        limits::POLICY_LEVELS
    )
}

/// A sign that has no place in a policy, whatever the parser would make of it.
fn forbidden(yaml: &str) -> Option<Problem> {
    for (line, text) in (1u64..).zip(yaml.split('\n')) {
        let text = text.strip_suffix('\r').unwrap_or(text);
        for (column, sign) in (1u64..).zip(text.chars()) {
            let what = match sign {
                '\t' => "a tab; indent and separate with spaces".to_owned(),
                sign if sign.is_control() => format!("a control character (U+{:04X}); remove it", u32::from(sign)),
                _ => continue,
            };
            return Some(Problem { line, column, field: String::new(), what });
        }
    }
    None
}

/// What a sentence repeats of a text from a file.
pub(super) fn shown(text: &str) -> String {
    text.chars().flat_map(char::escape_debug).take(limits::size(limits::POLICY_SHOWN_CHARACTERS)).collect()
}

fn options() -> Options {
    let mut budget = Budget::default();
    budget.max_nodes = limits::size(limits::POLICY_NODES);
    budget.max_depth = limits::size(limits::POLICY_LEVELS);
    budget.flow_nesting_limit = limits::size(limits::POLICY_LEVELS);
    budget.max_total_scalar_bytes = limits::size(limits::POLICY_BYTES);
    budget.max_aliases = 0;
    budget.max_anchors = 0;
    budget.max_merge_keys = 0;
    budget.max_documents = 1;
    let mut options = Options::default();
    options.budget = Some(budget);
    options.duplicate_keys = DuplicateKeyPolicy::Error;
    options.merge_keys = MergeKeyPolicy::Error;
    options.reject_unsupported_tags = true;
    options.with_snippet = false;
    options
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TreeVisitor)
    }
}

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Tree;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Tree, E> {
        Ok(Tree::Scalar(Value::Null))
    }

    fn visit_none<E>(self) -> Result<Tree, E> {
        Ok(Tree::Scalar(Value::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<Tree, E> {
        Ok(Tree::Scalar(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Tree, E> {
        Ok(Tree::Scalar(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Tree, E> {
        Ok(Tree::Scalar(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Tree, E> {
        let number = Number::from_f64(value).ok_or_else(|| E::custom("this is no number that JSON has; write it in quotes"))?;
        Ok(Tree::Scalar(Value::Number(number)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Tree, E> {
        Ok(Tree::Scalar(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Tree, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Tree::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut pairs: A) -> Result<Tree, A::Error> {
        let mut map = Vec::new();
        while let Some(pair) = pairs.next_entry()? {
            map.push(pair);
        }
        Ok(Tree::Map(map))
    }
}
