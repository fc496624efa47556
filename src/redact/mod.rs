//! What never leaves: secrets, replaced by their names.
//!
//! A value is known when it stands in a variable named like a credential, or when it was given to us with a name; each occurrence,
//! in whatever escapes, in base64 or hexadecimal, becomes `<redacted:NAME>`. What nobody named is known by how it looks: the rules
//! stand in one table (`rules`), the names behind which secrets stand in another (`names`). Paths and host names stay as they are.
//!
//! Every search reads a text once and looks ahead a bounded number of bytes: the time is proportional to the text, whatever it is.
//!
//! What is not looked for: a known value that was compressed, encrypted, reversed or cut; a secret that no rule describes and no
//! name announces; one without a name that was encoded as a whole.

mod assignment;
mod class;
mod filter;
mod forms;
mod known;
mod names;
mod private_key;
mod rules;
mod scan;
mod shapes;
mod span;
mod stream;
mod swallow;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;

use mission_contract::event::{Arguments, Event};
use mission_contract::text::Text;
use mission_contract::visit::{Evidence, in_members};
use serde::Serialize;

pub use known::SearchError;
pub use stream::StreamRedactor;

use crate::limits;
use known::Known;
use scan::{Scan, Secrets, Step};
use shapes::Shapes;

/// Ends of a variable's name behind which a credential stands, and whole names: seed 2's four, and what else is in use.
const CREDENTIAL_WORDS: [&str; 9] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "PASS", "PAT", "APIKEY"];

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
        source: SearchError,
    },
}

/// Replaces secrets. Cheap to clone; takes time proportional to the text.
///
/// Doing it twice changes nothing, except where a value ends like a placeholder begins.
#[derive(Clone, Default)]
pub struct Redactor {
    secrets: Option<Arc<Secrets>>,
    evidence: bool,
}

/// The values themselves stay out of every message.
impl std::fmt::Debug for Redactor {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let looks = self.secrets.is_some();
        formatter.debug_struct("Redactor").field("looks", &looks).field("evidence", &self.evidence).finish()
    }
}

impl Redactor {
    /// A redactor for the credentials among `variables`, for the `given` values, each with its name, and for whatever looks like a
    /// secret.
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
            let value = value.trim();
            if is_secret(value) {
                let placeholder = format!("{PLACEHOLDER_START}{name}>");
                for form in forms::forms(value) {
                    patterns.entry(form).or_insert_with(|| placeholder.clone());
                }
            }
        }
        let count = patterns.len();
        if count > 0 {
            // A placeholder is found whole around a value inside it, and stays as it is.
            let of_values: Vec<String> = patterns.values().cloned().collect();
            let of_rules = rules::RULES.iter().map(|rule| rule.placeholder.to_owned());
            for placeholder in of_values.into_iter().chain(of_rules) {
                patterns.entry(placeholder.clone().into_bytes()).or_insert(placeholder);
            }
        }
        let known = Known::new(patterns).map_err(|source| RedactError::Build { count, source })?;
        Ok(Self { secrets: Some(Arc::new(Secrets { known, shapes: Shapes::new() })), evidence: false })
    }

    /// A redactor for the environment of this process and for the `given` values, each with its name.
    ///
    /// # Errors
    /// As [`Redactor::new`].
    pub fn from_environment(given: impl IntoIterator<Item = (String, String)>) -> Result<Self, RedactError> {
        Self::new(std::env::vars_os(), given)
    }

    /// The same, and with `evidence` what a record passes verbatim otherwise is redacted too.
    pub fn with_evidence(self, evidence: bool) -> Self {
        Self { evidence: evidence || self.evidence, ..self }
    }

    /// The text with every secret replaced. A text without one is not copied.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let Some(secrets) = &self.secrets else { return Cow::Borrowed(text) };
        let mut shown: Option<String> = None;
        let mut passed = 0;
        let mut give_out = |step: Step<'_>| match step {
            Step::Shown(range) => {
                passed = range.end;
                if let Some(shown) = &mut shown {
                    shown.push_str(text.get(range).unwrap_or_default());
                }
            }
            Step::Hidden(label) => {
                // So far everything was shown.
                let shown = shown.get_or_insert_with(|| text.get(..passed).unwrap_or_default().to_owned());
                shown.push_str(secrets.words(label));
            }
        };
        let mut scan = Scan::default();
        let mut end = 0;
        while end < text.len() {
            end = text.floor_char_boundary(usize::saturating_add(end, limits::size(limits::REDACTOR_BLOCK_BYTES)));
            scan.advance(secrets, text.get(..end).unwrap_or(text).as_bytes(), end == text.len(), &mut give_out);
        }
        shown.map_or(Cow::Borrowed(text), Cow::Owned)
    }

    /// Words of a command line with every secret replaced, one behind a flag that announces it included.
    pub fn words(&self, words: &[String]) -> Vec<String> {
        let mut before = "";
        let mut shown = Vec::new();
        for word in words {
            let joined = format!("{before} {word}");
            let announced = self.text(&joined);
            let alone = self.text(word).into_owned();
            let behind_flag = announced.strip_prefix(before).and_then(|rest| rest.strip_prefix(' '));
            shown.push(match behind_flag {
                Some(other) if before.starts_with('-') && alone == *word => other.to_owned(),
                _ => alone,
            });
            before = word;
        }
        shown
    }

    /// Replaces secrets in the free texts of a record, and in its evidence where that is to be. What the contract passes verbatim
    /// stays as it is otherwise. True when evidence was changed.
    pub fn event(&self, event: &mut Event) -> bool {
        if self.secrets.is_none() {
            return false;
        }
        event.free_text(&mut |_, text| {
            self.replace(text);
        });
        let mut changed = false;
        if self.evidence {
            event.evidence_text(&mut |evidence| match evidence {
                Evidence::String(_, text) => changed |= self.replace(text),
                Evidence::Text(_, text) => {
                    if let Cow::Owned(shown) = self.text(text.as_str()) {
                        *text = Text::from(shown);
                        changed = true;
                    }
                }
            });
        }
        changed
    }

    /// Replaces secrets in arguments too, which the wire passes verbatim: for what people read.
    pub fn arguments(&self, arguments: &mut Arguments) {
        if self.secrets.is_some() {
            in_members(arguments, &mut |text| {
                self.replace(text);
            });
        }
    }

    fn replace(&self, text: &mut String) -> bool {
        match self.text(text) {
            Cow::Owned(shown) => {
                *text = shown;
                true
            }
            Cow::Borrowed(_) => false,
        }
    }

    /// A redactor for a text that comes in pieces.
    pub fn stream(&self) -> StreamRedactor {
        StreamRedactor::new(self.secrets.clone())
    }
}

/// A rule as it is published.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PublishedRule {
    /// What it finds.
    pub name: &'static str,
    /// What stands in its place; `NAME` is the name that the text gives.
    pub placeholder: &'static str,
    /// Where it is looked for.
    pub anchors: &'static [&'static str],
    /// Who says that it looks like this.
    pub source: &'static str,
}

/// The rules by which secrets are found that nobody named, in their order.
pub fn rules() -> impl Iterator<Item = PublishedRule> {
    rules::RULES.iter().map(|rule| PublishedRule {
        name: rule.name,
        placeholder: rule.placeholder,
        anchors: rule.anchors,
        source: rule.source,
    })
}

fn names_a_credential(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    CREDENTIAL_WORDS.iter().any(|word| name.strip_suffix(word).is_some_and(|before| before.is_empty() || before.ends_with('_')))
}

/// The names of the variables that look like credentials and whose values are too short to be looked for: hiding them would hide
/// ordinary words.
pub fn too_short(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Vec<String> {
    let is_short =
        |value: &str| !value.is_empty() && value.chars().nth(limits::size(limits::SECRET_CHARACTERS.saturating_sub(1))).is_none();
    let mut names: Vec<String> = variables
        .into_iter()
        .filter(|(_, value)| is_short(value.to_string_lossy().trim()))
        .map(|(name, _)| name.to_string_lossy().into_owned())
        .filter(|name| names_a_credential(name))
        .collect();
    names.sort();
    names
}

/// Whether a value is long enough to be looked for, and is one.
fn is_secret(value: &str) -> bool {
    let characters = u64::try_from(value.chars().count()).unwrap_or(u64::MAX);
    // `<redacted>` and its like stand where somebody removed a value: they are none.
    characters >= limits::SECRET_CHARACTERS && !PLACEHOLDER_START.contains(value) && value != "<redacted>"
}

#[cfg(test)]
mod corpus_tests;
#[cfg(test)]
mod field_tests;
#[cfg(test)]
mod stream_tests;
#[cfg(test)]
#[path = "redact_tests.rs"]
mod tests;
