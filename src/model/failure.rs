//! What went wrong with a request, for those who decide whether it is made again, and a server's own words about it.

use serde::Deserialize;
use serde_json::Value;

use crate::limits::MODEL_ERROR_CHARACTERS;

/// What kind of failure a reply came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// The server could not be reached: refused, no such host, no connection in time.
    Unreachable,
    /// No trust could be established over TLS.
    Untrusted,
    /// The connection broke.
    Broken,
    /// The server fell silent.
    Silent,
    /// The server answered with a status that says no.
    Status,
    /// The request is longer than the model's window: the same request never succeeds.
    ContextOverflow,
    /// The server reported a failure inside a reply.
    Reported,
    /// What came is no reply of this wire.
    Unreadable,
    /// A bound was passed.
    TooLarge,
    /// The script of a scripted model does not work out.
    Script,
}

/// Why there is no whole reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Its kind.
    pub kind: FailureKind,
    /// The HTTP status, when one came.
    pub status: Option<u16>,
    /// The `Retry-After` header as it was sent.
    pub retry_after: Option<String>,
}

impl Failure {
    /// A failure of this kind, without a status.
    pub fn of(kind: FailureKind) -> Self {
        Self { kind, status: None, retry_after: None }
    }
}

/// A failure and the sentence about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// What it was.
    pub failure: Failure,
    /// In words: what, where, the fix.
    pub detail: String,
    /// What the server sent, bounded; empty when nothing came. It may hold anything.
    pub body: String,
}

impl Trouble {
    /// Trouble of this kind.
    pub fn new(kind: FailureKind, detail: String) -> Self {
        Self { failure: Failure::of(kind), detail, body: String::new() }
    }

    /// The same, its sentence without the words about the server that begin it.
    pub fn without_server(mut self, server: &str) -> Self {
        if let Some(rest) = self.detail.strip_prefix(server) {
            self.detail = rest.trim_start().to_owned();
        }
        self
    }
}

/// Where servers put their message, in the order in which it is looked for.
#[derive(Deserialize)]
struct Report {
    #[serde(default)]
    error: Value,
    #[serde(default)]
    message: Value,
    #[serde(default)]
    detail: Value,
}

/// The message in what a server sent about a failure, on one line and at most 600 characters long: the forms of OpenAI and those who follow it,
/// of frameworks (`detail`), a bare text, or the beginning of whatever else came.
pub fn server_words(body: &str) -> String {
    let found = serde_json::from_str::<Value>(body).ok().and_then(|value| match value {
        Value::Array(list) => list.into_iter().next().and_then(report),
        other => report(other),
    });
    one_line(found.as_deref().unwrap_or(body))
}

fn report(value: Value) -> Option<String> {
    if let Value::String(text) = value {
        return Some(text);
    }
    let report: Report = serde_json::from_value(value).ok()?;
    [report.error, report.message, report.detail].iter().find_map(message)
}

fn message(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Object(object) => {
            let text = ["message", "msg", "detail", "error"].iter().find_map(|key| object.get(*key).and_then(message));
            let place = object.get("loc").and_then(Value::as_array).map(|parts| {
                parts
                    .iter()
                    .map(|part| part.as_str().map_or_else(|| part.to_string(), str::to_owned))
                    .collect::<Vec<_>>()
                    .join(".")
            });
            match (text, place) {
                (Some(text), Some(place)) => format!("{place}: {text}"),
                (Some(text), None) => text,
                (None, _) => ["type", "code"].iter().find_map(|key| object.get(*key).and_then(Value::as_str))?.to_owned(),
            }
        }
        Value::Array(list) => list.iter().filter_map(message).collect::<Vec<_>>().join("; "),
        Value::Null | Value::Bool(_) | Value::Number(_) => return None,
    };
    (!text.trim().is_empty()).then_some(text)
}

/// White space and control characters become single blanks, and what is too long is cut.
pub fn one_line(text: &str) -> String {
    let limit = crate::limits::size(MODEL_ERROR_CHARACTERS);
    let mut line = String::new();
    let mut characters: usize = 0;
    let mut is_gap = false;
    for character in text.chars() {
        if character.is_whitespace() || character.is_control() {
            is_gap = !line.is_empty();
            continue;
        }
        let needed = if is_gap { 2 } else { 1 };
        if characters.saturating_add(needed) >= limit {
            line.push('…');
            return line;
        }
        if is_gap {
            line.push(' ');
        }
        is_gap = false;
        line.push(character);
        characters = characters.saturating_add(needed);
    }
    line
}

/// True when a server's words say that the request does not fit the model's window. Every vendor words it in its own way.
pub fn is_context_overflow(body: &str) -> bool {
    let body = body.to_lowercase();
    [
        "exceed_context_size",
        "context_length_exceeded",
        "context length",
        "context size",
        "context window",
        "context limit",
        "prompt is too long",
        "model_max_prompt_tokens_exceeded",
    ]
    .iter()
    .any(|words| body.contains(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_is_found_in_every_known_form() {
        for (body, words) in [
            (r#"{"error":{"message":"Invalid API Key","type":"authentication_error","code":401}}"#, "Invalid API Key"),
            (r#"{"error":"model not found"}"#, "model not found"),
            (r#"{"object":"error","message":"too long","code":400}"#, "too long"),
            (r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#, "Overloaded"),
            (
                r#"{"detail":[{"loc":["body","stream_options"],"msg":"Extra inputs are not permitted","type":"extra_forbidden"}]}"#,
                "body.stream_options: Extra inputs are not permitted",
            ),
            (r#"[{"error":{"code":400,"message":"bad"}}]"#, "bad"),
            (r#"{"error":{"type":"overloaded_error"}}"#, "overloaded_error"),
            (r#""plain""#, "plain"),
            ("context length\r\n  exceeded\u{1b}[0m", "context length exceeded [0m"),
            (r#"{"odd":1}"#, r#"{"odd":1}"#),
            ("", ""),
        ] {
            assert_eq!(server_words(body), words);
        }
    }

    #[test]
    fn it_is_never_longer_than_the_bound() {
        let words = server_words(&"é ".repeat(5000));
        assert!(words.chars().count() as u64 <= MODEL_ERROR_CHARACTERS);
        assert!(words.ends_with('…'));
        assert_eq!(one_line(&"x".repeat(599)).len(), 599);
    }

    #[test]
    fn a_request_that_does_not_fit_is_known_whoever_says_it() {
        for body in [
            r#"{"error":{"message":"This model's maximum context length is 8192 tokens. However, you requested 9000 tokens","code":"context_length_exceeded"}}"#,
            r#"{"error":{"message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#,
            r#"{"error":{"message":"input length and `max_tokens` exceed context limit: 150001 + 50000 > 200000"}}"#,
            r#"{"object":"error","message":"This model's maximum context length is 4096 tokens"}"#,
            r#"{"error":{"type":"exceed_context_size_error","message":"the request exceeds the available context size"}}"#,
            "context length exceeded",
        ] {
            assert!(is_context_overflow(body), "{body}");
        }
        assert!(!is_context_overflow("Invalid API Key"));
    }
}
