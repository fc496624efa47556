//! What never leaves: the values of credentials, replaced by their names.
//!
//! A value is known when it stands in a variable named like a credential, or when it was given to us with a name. Each
//! occurrence becomes `<redacted:NAME>`. Paths and host names stay as they are.

mod stream;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use mission_contract::event::{Arguments, Event};
use mission_contract::visit::in_members;

pub use stream::StreamRedactor;

use crate::limits;

/// Ends of a variable's name behind which a credential stands, and whole names.
const CREDENTIAL_WORDS: [&str; 4] = ["KEY", "TOKEN", "SECRET", "PASSWORD"];

/// What stands before the name in a placeholder.
const PLACEHOLDER_START: &str = "<redacted:";

/// Why there is no redactor. A run without one is refused.
#[derive(Debug, thiserror::Error)]
pub enum RedactError {
    /// The search for the values could not be built.
    #[error("the redactor could not be built from {count} credentials ({source}); unset those that the run does not need")]
    Build {
        /// How many there are.
        count: usize,
        /// Why.
        source: aho_corasick::BuildError,
    },
}

/// Replaces known values. Cheap to clone; takes time proportional to the text.
///
/// Doing it twice changes nothing, except where a value ends like a placeholder begins.
#[derive(Clone, Debug, Default)]
pub struct Redactor {
    values: Option<Arc<Values>>,
}

/// The values, and what takes their places.
struct Values {
    automaton: AhoCorasick,
    /// By pattern.
    replacements: Vec<String>,
    /// All patterns, sorted: to see whether a text ends in the beginning of one.
    sorted: Vec<String>,
    /// True for every byte that some pattern begins with.
    first: [bool; 256],
    /// Length of the longest pattern in bytes.
    longest: usize,
}

/// The values themselves stay out of every message.
impl std::fmt::Debug for Values {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Values").field("count", &self.replacements.len()).finish()
    }
}

impl Redactor {
    /// A redactor for the credentials among `variables` and for the `given` values, each with its name.
    ///
    /// # Errors
    /// When the search cannot be built: the caller refuses to start rather than run without it.
    pub fn new(
        variables: impl IntoIterator<Item = (OsString, OsString)>,
        given: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, RedactError> {
        let from_variables = variables
            .into_iter()
            .map(|(name, value)| (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned()))
            .filter(|(name, _)| names_a_credential(name));
        let mut patterns = BTreeMap::new();
        for (name, value) in given.into_iter().chain(from_variables) {
            let placeholder = format!("{PLACEHOLDER_START}{name}>");
            for form in forms(&value) {
                patterns.entry(form).or_insert_with(|| placeholder.clone());
            }
        }
        Self::from_patterns(patterns)
    }

    /// A redactor for the environment of this process and for the `given` values, each with its name.
    ///
    /// # Errors
    /// As [`Redactor::new`].
    pub fn from_environment(given: impl IntoIterator<Item = (String, String)>) -> Result<Self, RedactError> {
        Self::new(std::env::vars_os(), given)
    }

    fn from_patterns(mut patterns: BTreeMap<String, String>) -> Result<Self, RedactError> {
        if patterns.is_empty() {
            return Ok(Self::default());
        }
        let count = patterns.len();
        // A placeholder is found whole before a value inside it is, and stays as it is.
        let placeholders: Vec<String> = patterns.values().cloned().collect();
        for placeholder in placeholders {
            patterns.entry(placeholder.clone()).or_insert(placeholder);
        }
        let bytes: usize = patterns.keys().map(String::len).sum();
        // The quickest form takes a kilobyte for each byte of a value: only while that is little.
        let kind = match u64::try_from(bytes) {
            Ok(bytes) if bytes <= limits::REDACTOR_TABLE_BYTES => AhoCorasickKind::DFA,
            _ => AhoCorasickKind::ContiguousNFA,
        };
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .kind(Some(kind))
            .build(patterns.keys())
            .map_err(|source| RedactError::Build { count, source })?;
        let mut first = [false; 256];
        for byte in patterns.keys().filter_map(|pattern| pattern.as_bytes().first()) {
            if let Some(mark) = first.get_mut(usize::from(*byte)) {
                *mark = true;
            }
        }
        let longest = patterns.keys().map(String::len).max().unwrap_or_default();
        let (sorted, replacements) = patterns.into_iter().unzip();
        Ok(Self { values: Some(Arc::new(Values { automaton, replacements, sorted, first, longest })) })
    }

    /// The text with every known value replaced.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let Some(values) = &self.values else { return Cow::Borrowed(text) };
        let mut shown = String::new();
        let mut from = 0;
        for found in values.automaton.find_iter(text) {
            shown.push_str(text.get(from..found.start()).unwrap_or_default());
            shown.push_str(values.replacement(found.pattern().as_usize()));
            from = found.end();
        }
        if from == 0 {
            return Cow::Borrowed(text);
        }
        shown.push_str(text.get(from..).unwrap_or_default());
        Cow::Owned(shown)
    }

    /// Replaces known values in the free texts of a record. What the contract passes verbatim stays as it is.
    pub fn event(&self, event: &mut Event) {
        if self.values.is_none() {
            return;
        }
        event.free_text(&mut |_, text| {
            if let Cow::Owned(shown) = self.text(text) {
                *text = shown;
            }
        });
    }

    /// Replaces known values in arguments too, which the wire passes verbatim: for what people read.
    pub fn arguments(&self, arguments: &mut Arguments) {
        if self.values.is_some() {
            in_members(arguments, &mut |text| {
                if let Cow::Owned(shown) = self.text(text) {
                    *text = shown;
                }
            });
        }
    }

    /// A redactor for a text that comes in pieces.
    pub fn stream(&self) -> StreamRedactor {
        StreamRedactor::new(self.values.clone())
    }
}

impl Values {
    /// Nothing at all in place of a value rather than the value: a pattern without a replacement cannot be.
    fn replacement(&self, pattern: usize) -> &str {
        self.replacements.get(pattern).map_or("", String::as_str)
    }
}

fn names_a_credential(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    CREDENTIAL_WORDS.iter().any(|word| name.strip_suffix(word).is_some_and(|before| before.is_empty() || before.ends_with('_')))
}

/// The forms in which a value can stand in a text: as it is, and as a JSON string has it.
fn forms(value: &str) -> Vec<String> {
    let value = value.trim();
    let characters = u64::try_from(value.chars().count()).unwrap_or(u64::MAX);
    // `<redacted>` and its like stand where somebody removed a value: they are none.
    if characters < limits::SECRET_CHARACTERS || PLACEHOLDER_START.contains(value) || value == "<redacted>" {
        return Vec::new();
    }
    let mut forms = vec![value.to_owned()];
    if let Ok(quoted) = serde_json::to_string(value)
        && let Some(escaped) = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'))
        && escaped != value
    {
        forms.push(escaped.to_owned());
    }
    forms
}

#[cfg(test)]
#[path = "redact_tests.rs"]
mod tests;
