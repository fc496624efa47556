//! Arguments held against a tool's JSON Schema: offline, bounded, in our own words.

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

use super::words::{quote, quoted_list};
use crate::limits::{PATTERN_BACKTRACKS, PATTERN_BYTES};

/// A tool's schema, compiled.
#[derive(Debug)]
pub struct Compiled(Validator);

/// Compiles a schema in the dialect that it declares, 2020-12 otherwise. No reference is ever fetched.
///
/// # Errors
/// A sentence's end that says why it cannot be used.
pub fn compile(schema: &Value) -> Result<Compiled, String> {
    compile_for("the schema of its arguments", schema)
}

/// Compiles a schema like [`compile`], and calls it by this name when it cannot be used.
///
/// # Errors
/// As [`compile`].
pub fn compile_for(name: &str, schema: &Value) -> Result<Compiled, String> {
    jsonschema::options()
        .with_retriever(NothingIsFetched)
        .with_pattern_options(
            PatternOptions::fancy_regex()
                .backtrack_limit(usize::try_from(PATTERN_BACKTRACKS).unwrap_or(usize::MAX))
                .size_limit(usize::try_from(PATTERN_BYTES).unwrap_or(usize::MAX)),
        )
        .build(schema)
        .map(Compiled)
        .map_err(|error| {
            let place = error.instance_path().as_str();
            let place = if place.is_empty() { "its root".to_owned() } else { format!("`{}`", quote(place)) };
            format!("{name} is not usable at {place} (keyword `{}`)", error.kind().keyword())
        })
}

struct NothingIsFetched;

impl jsonschema::Retrieve for NothingIsFetched {
    fn retrieve(&self, uri: &jsonschema::Uri<String>) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        Err(format!("the reference {uri} points outside the schema, and nothing is fetched").into())
    }
}

impl Compiled {
    /// The first fault by place, as a sentence; nothing when the arguments fit.
    pub fn fault(&self, arguments: &Value) -> Option<String> {
        self.fault_of("the arguments object", arguments)
    }

    /// The first fault by place of any value, which is called by this name; nothing when it fits.
    pub fn fault_of(&self, name: &str, value: &Value) -> Option<String> {
        if self.0.is_valid(value) {
            return None;
        }
        // One at a time: arguments may break a rule in a million places.
        let (pointer, problem) = self
            .0
            .iter_errors(value)
            .map(|error| (error.instance_path().as_str().to_owned(), sentence(error.kind(), error.instance())))
            .min()?;
        let place = if pointer.is_empty() { name.to_owned() } else { format!("the value at `{}`", quote(&pointer)) };
        Some(format!("{place} {problem}"))
    }
}

/// What is wrong, with the keyword's limit, never with a library's words.
fn sentence(kind: &ValidationErrorKind, instance: &Value) -> String {
    use ValidationErrorKind as Kind;
    let rule = match kind {
        Kind::Required { property } => format!("lacks the required `{}`", quote(property.as_str().unwrap_or_default())),
        Kind::Type { kind } => {
            return format!("must be of type {}, and is {}{}", type_words(kind), kind_of(instance), in_brackets(instance));
        }
        Kind::Enum { options } => format!("must be one of {}", shown(options)),
        Kind::Constant { expected_value } => format!("must be {}", shown(expected_value)),
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            format!("has what is not allowed: {}", quoted_list(&unexpected.iter().map(String::as_str).collect::<Vec<_>>()))
        }
        Kind::Minimum { limit } => format!("must be at least {limit}"),
        Kind::Maximum { limit } => format!("must be at most {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("must be greater than {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("must be less than {limit}"),
        Kind::MinLength { limit } => format!("must have at least {limit} characters"),
        Kind::MaxLength { limit } => format!("must have at most {limit} characters"),
        Kind::MinItems { limit } => format!("must have at least {limit} items"),
        Kind::MaxItems { limit } => format!("must have at most {limit} items"),
        Kind::AdditionalItems { limit } => format!("must have at most {limit} items"),
        Kind::MinProperties { limit } => format!("must have at least {limit} fields"),
        Kind::MaxProperties { limit } => format!("must have at most {limit} fields"),
        Kind::MultipleOf { multiple_of } => format!("must be a multiple of {multiple_of}"),
        Kind::Pattern { pattern } => format!("must match the pattern `{}`", quote(pattern)),
        Kind::Format { format } => format!("must be a valid {format}"),
        Kind::UniqueItems => "must not hold an item twice".to_owned(),
        Kind::Contains => "must contain an item of the required form".to_owned(),
        Kind::AnyOf { .. } | Kind::OneOfNotValid { .. } => "fits none of the allowed forms".to_owned(),
        Kind::OneOfMultipleValid { .. } => "fits more than one of the forms of which exactly one is allowed".to_owned(),
        Kind::Not { .. } => "has a form that is not allowed".to_owned(),
        Kind::PropertyNames { .. } => "has a field with a name that is not allowed".to_owned(),
        other => format!("breaks the rule `{}` of the schema", other.keyword()),
    };
    match instance {
        Value::Array(_) | Value::Object(_) => rule,
        scalar => format!("{rule}, and is {}", shown(scalar)),
    }
}

/// The value itself, where its kind does not say all and it is short by nature.
fn in_brackets(value: &Value) -> String {
    match value {
        Value::Null | Value::Array(_) | Value::Object(_) => String::new(),
        scalar => format!(" ({})", shown(scalar)),
    }
}

fn shown(value: &Value) -> String {
    quote(&mission_contract::canonical::of_value(value))
}

fn type_words(kind: &TypeKind) -> String {
    match kind {
        TypeKind::Single(kind) => kind.to_string(),
        TypeKind::Multiple(kinds) => kinds.iter().map(|kind| kind.to_string()).collect::<Vec<_>>().join(" or "),
    }
}

/// The kind of a JSON value, with its article.
pub fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
