//! The front matter of a manifest: found in the file, and read as YAML with budgets.

use std::cell::RefCell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_yaml::{Budget, DuplicateKeyPolicy, MergeKeyPolicy, Options, Spanned};

use super::error::Problem;
use crate::limits;

/// The two halves of a file.
#[derive(Debug, PartialEq, Eq)]
pub struct Halves<'t> {
    /// The YAML between the fences. It begins on line 2.
    pub yaml: &'t str,
    /// The Markdown behind them.
    pub body: &'t str,
}

/// Splits a manifest at its fences: a first line `---`, YAML, a line `---`, Markdown. Blanks behind a fence count for nothing,
/// and a byte order mark in front of the first neither.
///
/// # Errors
/// What is no such file, and where it goes wrong.
pub fn split(text: &str) -> Result<Halves<'_>, Problem> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    if !is_fence(first) {
        return Err(Problem::at(1, 1, "a manifest begins with a line `---`, and nothing stands before it"));
    }
    let mut length = 0usize;
    let mut line = 1u64;
    for piece in rest.split_inclusive('\n') {
        line = line.saturating_add(1);
        if is_fence(piece.strip_suffix('\n').unwrap_or(piece)) {
            let (yaml, fence_and_body) = rest.split_at_checked(length).unwrap_or((rest, ""));
            return Ok(Halves { yaml, body: fence_and_body.strip_prefix(piece).unwrap_or_default() });
        }
        length = length.saturating_add(piece.len());
    }
    Err(Problem::at(line, 1, "the front matter has no end: close it with a line `---`"))
}

fn is_fence(line: &str) -> bool {
    line.strip_prefix("---").is_some_and(|rest| rest.trim_end_matches([' ', '\r']).is_empty())
}

/// A text and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Line in the file.
    pub line: u64,
    /// Column in characters.
    pub column: u64,
    /// The text, as it is written: `on` and `007` are texts like any other.
    pub text: String,
}

impl Placed {
    /// A problem with it.
    pub fn problem(&self, what: impl Into<String>) -> Problem {
        Problem::at(self.line, self.column, what)
    }
}

/// What the front matter says, before it is judged.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct FrontMatter {
    /// `name`.
    pub name: Option<Placed>,
    /// `description`.
    pub description: Option<Placed>,
    /// `allowed_tools` with its place and its entries.
    pub allowed_tools: Option<(Placed, Vec<Placed>)>,
    /// Keys that are not understood.
    pub others: Vec<Placed>,
}

/// Reads the YAML of a manifest.
///
/// # Errors
/// What is no YAML, is past a budget, or has another type than it should, and where.
pub fn read(yaml: &str) -> Result<FrontMatter, Problem> {
    let key = RefCell::new(None);
    let Raw { keys, skill } = parse(yaml, 1, Mapping { outer: true, key: &key }, &key)?;
    let mut front = keys.place();
    if let Some(inner) = skill {
        let inner = inner.place();
        // The nested mapping wins, key by key.
        front.name = inner.name.or(front.name);
        front.description = inner.description.or(front.description);
        front.allowed_tools = inner.allowed_tools.or(front.allowed_tools);
        front.others.extend(inner.others);
        front.others.sort_by_key(|key| (key.line, key.column));
    }
    Ok(front)
}

/// The keys of a mapping, in their order; for files of which nothing is understood yet.
///
/// # Errors
/// As `read`; also when it is no mapping.
pub fn keys(yaml: &str) -> Result<Vec<Placed>, Problem> {
    struct AnyKeys;
    impl<'de> Visitor<'de> for AnyKeys {
        type Value = Vec<Placed>;
        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("a mapping of keys to values")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vec<Placed>, A::Error> {
            let mut keys = Vec::new();
            while let Some(key) = map.next_key::<Spanned<String>>()? {
                map.next_value::<IgnoredAny>()?;
                keys.push(placed(key));
            }
            Ok(keys)
        }
    }
    impl<'de> DeserializeSeed<'de> for AnyKeys {
        type Value = Vec<Placed>;
        fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<Placed>, D::Error> {
            deserializer.deserialize_map(self)
        }
    }
    if yaml.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
        return Ok(Vec::new());
    }
    parse(yaml, 0, AnyKeys, &RefCell::new(None))
}

/// Reads YAML that begins `offset` lines below the top of its file.
///
/// `key` holds the key whose value is being read, for what is wrong with that value.
fn parse<S: for<'de> DeserializeSeed<'de, Value = T>, T>(
    yaml: &str,
    offset: u64,
    seed: S,
    key: &RefCell<Option<String>>,
) -> Result<T, Problem> {
    if let Some(problem) = forbidden(yaml, offset) {
        return Err(problem);
    }
    serde_yaml::with_deserializer_from_str_with_options(yaml, options(), |deserializer| seed.deserialize(deserializer)).map_err(
        |error| {
            let plain = error.without_snippet();
            let place = plain.location();
            let line = place.as_ref().map_or(1, |place| place.line().max(1)).saturating_add(offset);
            let column = place.as_ref().map_or(1, |place| place.column().max(1));
            Problem::at(line, column, words(plain, key.borrow().as_deref()))
        },
    )
}

/// Our words for what the parser says where people meet it; its own for the rest, without the place.
fn words(error: &serde_yaml::Error, key: Option<&str>) -> String {
    use serde_yaml::Error as E;
    let value = || key.map_or_else(|| "the front matter".to_owned(), |key| format!("the value of `{key}`"));
    match error {
        E::DuplicateMappingKey { key, .. } => match key {
            Some(key) => format!("the key `{key}` stands there twice; keep one of them"),
            None => "a key stands there twice; keep one of them".to_owned(),
        },
        E::Budget { .. } => too_much(),
        E::NullIntoString { .. } => format!("{} has to be a text, and there is none; write one, in quotes if need be", value()),
        E::Unexpected { expected: "string scalar", .. } => format!("{} has to be a text, and is none", value()),
        E::Unexpected { expected: "sequence start", .. } => format!("{} has to be a list, `[one, another]`", value()),
        E::Unexpected { expected: "mapping start", .. } => format!("{} has to be a mapping of keys to values", value()),
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

/// A sign that has no place in the front matter, whatever the parser would make of it.
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

/// Reads a file of settings as a value of ours.
pub fn settings<T: serde::de::DeserializeOwned>(yaml: &str) -> Result<T, Problem> {
    let key = RefCell::new(Some("the settings".to_owned()));
    parse(yaml, 0, std::marker::PhantomData::<T>, &key)
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
    options.with_snippet = false;
    options
}

/// One mapping of the front matter.
#[derive(Default)]
struct Keys {
    name: Option<Spanned<String>>,
    description: Option<Spanned<String>>,
    allowed_tools: Option<(Spanned<String>, Vec<Spanned<String>>)>,
    others: Vec<Spanned<String>>,
}

impl Keys {
    fn place(self) -> FrontMatter {
        FrontMatter {
            name: self.name.map(below),
            description: self.description.map(below),
            allowed_tools: self.allowed_tools.map(|(key, list)| (below(key), list.into_iter().map(below).collect())),
            others: self.others.into_iter().map(below).collect(),
        }
    }
}

/// Where it stands in the file: one line below where it stands in the YAML.
fn below(text: Spanned<String>) -> Placed {
    let placed = placed(text);
    Placed { line: placed.line.saturating_add(1), ..placed }
}

fn placed(text: Spanned<String>) -> Placed {
    Placed { line: text.referenced.line(), column: text.referenced.column(), text: text.value }
}

/// The outer mapping, and the nested one where there is one.
struct Raw {
    keys: Keys,
    skill: Option<Keys>,
}

/// Reads a mapping of the front matter.
#[derive(Clone, Copy)]
struct Mapping<'k> {
    outer: bool,
    key: &'k RefCell<Option<String>>,
}

impl<'de> DeserializeSeed<'de> for Mapping<'_> {
    type Value = Raw;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Raw, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Mapping<'_> {
    type Value = Raw;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a mapping of keys to values")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Raw, A::Error> {
        let mut keys = Keys::default();
        let mut skill = None;
        while let Some(key) = map.next_key::<Spanned<String>>()? {
            *self.key.borrow_mut() = Some(key.value.clone());
            match key.value.as_str() {
                "name" => keys.name = Some(map.next_value()?),
                "description" => keys.description = Some(map.next_value()?),
                "allowed_tools" => keys.allowed_tools = Some((key, map.next_value()?)),
                "skill" if self.outer => skill = Some(map.next_value_seed(Mapping { outer: false, key: self.key })?.keys),
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    keys.others.push(key);
                }
            }
        }
        Ok(Raw { keys, skill })
    }
}
