//! What came of a call: the raw answer of a server, classified. Pure.

use std::borrow::Cow;
use std::sync::Arc;

use mission_contract::log::{CallEnd, CallResult};
use mission_contract::text::Text;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::exchange::Message;
use super::text::decoded;
use crate::limits;

/// A result, and what an operator should see besides.
#[derive(Debug, PartialEq)]
pub(crate) struct Classified {
    /// `of` is left to the caller.
    pub(crate) result: CallResult,
    /// Notices: code and words.
    pub(crate) notices: Vec<(&'static str, String)>,
}

/// Classifies the answer to `tools/call`. The message is consumed: a large one is freed before its text is shared, so that two
/// copies of the text are the most there ever are.
pub(crate) fn classify(message: Message, server: &str, tool: &str) -> Classified {
    let mut notices = Vec::new();
    let draft = match (message.result(), message.error()) {
        (Some(_), Some(_)) => Draft::from(protocol(format!(
            "The server `{server}` answered the call of `{tool}` with a result and with an error in one; neither is taken."
        ))),
        (Some(result), None) => {
            let result = String::from_utf8_lossy(result);
            if let Cow::Owned(_) = result {
                notices.push((
                    "result_repaired",
                    format!("A result of `{tool}` holds bytes that are not UTF-8; each stands as U+FFFD in its text."),
                ));
            }
            completed(&result, server, tool, &mut notices)
        }
        (None, Some(error)) => Draft::from(refused(&String::from_utf8_lossy(error), server, tool)),
        (None, None) => Draft::from(protocol(format!(
            "The server `{server}` answered the call of `{tool}` with neither a result nor an error."
        ))),
    };
    drop(message);
    let Draft { mut result, text } = draft;
    if !text.is_empty() {
        result.text = Text::from(text);
    }
    Classified { result, notices }
}

/// A result whose text is not shared yet.
struct Draft {
    result: CallResult,
    text: String,
}

impl From<CallResult> for Draft {
    fn from(result: CallResult) -> Self {
        Self { result, text: String::new() }
    }
}

/// A call that came to nothing in the protocol's own terms.
pub(crate) fn protocol(error: String) -> CallResult {
    failed(CallEnd::Protocol, error)
}

/// A call that ended in this way.
pub(crate) fn failed(end: CallEnd, error: String) -> CallResult {
    CallResult { end, exit_code: -1, error, ..CallResult::default() }
}

/// What is said of a JSON-RPC error, whatever shape it has.
pub(crate) fn error_in_words(error: &str) -> String {
    #[derive(Deserialize)]
    struct Raw<'a> {
        #[serde(borrow)]
        code: Option<&'a RawValue>,
        #[serde(borrow)]
        message: Option<&'a RawValue>,
        #[serde(borrow)]
        data: Option<&'a RawValue>,
    }
    let most = limits::size(limits::MCP_ERROR_DATA_BYTES);
    let Ok(raw) = serde_json::from_str::<Raw<'_>>(error) else {
        return format!("an error that is no error object: {}", cut(error, most));
    };
    let code = raw.code.map_or("without a code", RawValue::get);
    let message = raw.message.map(|message| decoded(message.get()).unwrap_or_else(|| message.get().to_owned()));
    let mut words = match message.filter(|message| !message.is_empty()) {
        Some(message) => format!("error {code}: {message}"),
        None => format!("error {code}"),
    };
    if let Some(data) = raw.data {
        words.push_str(&format!(" (data: {})", cut(data.get(), most)));
    }
    words
}

fn refused(error: &str, server: &str, tool: &str) -> CallResult {
    protocol(format!("The server `{server}` answered the call of `{tool}` with {}", error_in_words(error)))
}

#[derive(Deserialize)]
struct RawResult<'a> {
    #[serde(borrow, default, rename = "resultType")]
    kind: Option<&'a RawValue>,
    #[serde(borrow, default)]
    content: Option<Vec<RawBlock<'a>>>,
    #[serde(borrow, default, rename = "structuredContent", deserialize_with = "present")]
    structured: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "isError")]
    is_error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    task: Option<&'a RawValue>,
}

/// A content block. Its members are kept raw: a wrong one costs the block, not the result.
#[derive(Deserialize)]
struct RawBlock<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow, default)]
    text: Option<&'a RawValue>,
    #[serde(borrow, default)]
    data: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "mimeType")]
    mime_type: Option<&'a RawValue>,
    #[serde(borrow, default)]
    uri: Option<&'a RawValue>,
    #[serde(borrow, default)]
    name: Option<&'a RawValue>,
    #[serde(borrow, default)]
    size: Option<&'a RawValue>,
    #[serde(borrow, default)]
    resource: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
struct RawResource<'a> {
    #[serde(borrow, default)]
    uri: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "mimeType")]
    mime_type: Option<&'a RawValue>,
    #[serde(borrow, default)]
    text: Option<&'a RawValue>,
    #[serde(borrow, default)]
    blob: Option<&'a RawValue>,
}

/// A member that is there, be it null: absent is another thing.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

fn completed(result: &str, server: &str, tool: &str, notices: &mut Vec<(&'static str, String)>) -> Draft {
    let no_result =
        |what: String| Draft::from(protocol(format!("The server `{server}` answered the call of `{tool}` with {what}")));
    // A list would be taken for the members in their order.
    if !result.starts_with('{') {
        return no_result("something that is no result of a call: it is no object.".to_owned());
    }
    let raw = match serde_json::from_str::<RawResult<'_>>(result) {
        Ok(raw) => raw,
        Err(error) => return no_result(format!("something that is no result of a call: {error}.")),
    };
    let kind: Option<Value> = raw.kind.map(|kind| serde_json::from_str(kind.get()).unwrap_or_default());
    match (kind.as_ref().and_then(Value::as_str), result_type(kind.as_ref())) {
        (_, Ok(())) => {}
        (Some("input_required"), _) => {
            notices.push(("elicitation_declined", format!("The tool `{tool}` asks for input from a person, which is declined.")));
            return no_result("a question for a person, which cannot be asked here; the call is not gone on with.".to_owned());
        }
        (Some("task"), _) => return no_result(task_answer(result, tool, notices)),
        (_, Err(shown)) => return no_result(format!("a result of the type {shown}, which is not known.")),
    }
    if raw.task.is_some() && raw.content.is_none() {
        return no_result(task_answer(result, tool, notices));
    }
    let is_error = match raw.is_error.map(RawValue::get) {
        None | Some("null" | "false") => false,
        Some("true") => true,
        Some(other) => {
            return no_result(format!("a result that does not say whether it is an error: isError is {}.", quoted(other)));
        }
    };
    let Some(content) = raw.content.or(raw.structured.map(|_| Vec::new())).or(is_error.then(Vec::new)) else {
        return no_result("a result that has neither content nor structuredContent.".to_owned());
    };
    if let Some(unknown) = content.iter().find_map(unknown_type) {
        if content.iter().all(|block| unknown_type(block).is_some()) {
            return no_result(format!("content of the type {unknown}, which is not known, and with nothing else."));
        }
        notices.push((
            "content_unknown",
            format!("A result of `{tool}` holds content of the type {unknown}, which is not known; it is named and not read."),
        ));
    }
    let mut blocks = Vec::new();
    let mut texts: Vec<String> = Vec::with_capacity(content.len());
    for block in &content {
        texts.push(block_text(block, &mut blocks));
    }
    // A single text is moved, not copied.
    let mut text = match <[String; 1]>::try_from(texts) {
        Ok([text]) => text,
        Err(texts) => texts.join("\n"),
    };
    let mut structured = None;
    if let Some(raw) = raw.structured {
        match serde_json::from_str(raw.get()) {
            Ok(value) => structured = Some(Arc::new(value)),
            Err(error) => notices.push((
                "structured_dropped",
                format!("The structuredContent of a result of `{tool}` cannot be read and is kept as text: {error}."),
            )),
        }
        if text.is_empty() || structured.is_none() {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(raw.get());
        }
    }
    if is_error {
        if text.is_empty() {
            text = format!("The tool `{tool}` says that it failed, and not why.");
        }
        let result = CallResult { end: CallEnd::Error, exit_code: 1, error: text, structured, blocks, ..CallResult::default() };
        return Draft::from(result);
    }
    Draft { result: CallResult { structured, blocks, ..CallResult::default() }, text }
}

/// A task that nobody asked for. Work may be going on: its id is for the operator.
fn task_answer(result: &str, tool: &str, notices: &mut Vec<(&'static str, String)>) -> String {
    let value: Value = serde_json::from_str(result).unwrap_or_default();
    let id = value.get("taskId").or_else(|| value.pointer("/task/taskId")).and_then(Value::as_str);
    let id = quoted(id.unwrap_or("unknown"));
    notices.push((
        "task_refused",
        format!("The tool `{tool}` began a task that was not asked for (id {id}); it may still be at work."),
    ));
    format!("a task (id {id}), which was not asked for and is not followed; it may still be at work.")
}

/// Whether a result of this `resultType` is a whole one: absent means that it is.
///
/// # Errors
/// The type, as it may be shown.
pub(crate) fn result_type(kind: Option<&Value>) -> Result<(), String> {
    match kind {
        None => Ok(()),
        Some(Value::String(kind)) if kind == "complete" => Ok(()),
        Some(other) => Err(quoted(&other.to_string())),
    }
}

/// The type of a block that is none of the protocol's, as it may be shown.
fn unknown_type(block: &RawBlock<'_>) -> Option<String> {
    let kind = block.kind.and_then(|kind| decoded(kind.get()));
    match kind.as_deref() {
        Some("text" | "image" | "audio" | "resource_link" | "resource") => None,
        Some(kind) => Some(quoted(&format!("{kind:?}"))),
        None => Some("of no name".to_owned()),
    }
}

/// The text of a block. What is not text is noted in `blocks` and stands as a line in brackets.
fn block_text(block: &RawBlock<'_>, blocks: &mut Vec<Value>) -> String {
    let string = |raw: Option<&RawValue>| raw.and_then(|raw| decoded(raw.get()));
    let kind = string(block.kind).unwrap_or_default();
    let mime_type = string(block.mime_type);
    match (kind.as_str(), block) {
        ("text", RawBlock { text: Some(text), .. }) => {
            if let Some(text) = decoded(text.get()) {
                return text;
            }
        }
        ("image" | "audio", RawBlock { data: Some(data), .. }) => {
            let mime_type = mime_type.unwrap_or_else(|| "of an unknown type".to_owned());
            let bytes = base64_bytes(data.get());
            let line = format!("[{kind} {mime_type}, {bytes} bytes]");
            blocks.push(json!({ "kind": kind, "mime_type": mime_type, "bytes": bytes }));
            return line;
        }
        ("resource_link", RawBlock { uri: Some(uri), .. }) => {
            let uri = decoded(uri.get()).unwrap_or_default();
            let mut noted = json!({ "kind": kind, "uri": uri });
            if let Value::Object(noted) = &mut noted {
                noted.extend(string(block.name).map(|name| ("name".to_owned(), name.into())));
                noted.extend(mime_type.map(|mime_type| ("mime_type".to_owned(), mime_type.into())));
                let size: Option<u64> = block.size.and_then(|size| serde_json::from_str(size.get()).ok());
                noted.extend(size.map(|size| ("bytes".to_owned(), size.into())));
            }
            blocks.push(noted);
            return format!("[resource_link {uri}]");
        }
        ("resource", RawBlock { resource: Some(resource), .. }) => {
            let resource: RawResource<'_> = serde_json::from_str(resource.get()).unwrap_or_default();
            let uri = string(resource.uri).unwrap_or_default();
            let mime_type = string(resource.mime_type);
            let mut noted = json!({ "kind": kind, "uri": uri });
            let text = string(resource.text);
            let bytes = match &text {
                Some(text) => u64::try_from(text.len()).unwrap_or(u64::MAX),
                None => base64_bytes(resource.blob.map_or("", RawValue::get)),
            };
            let line = match (&text, &mime_type) {
                (Some(text), _) => format!("[resource {uri}]\n{text}"),
                (None, Some(mime_type)) => format!("[resource {uri} {mime_type}, {bytes} bytes]"),
                (None, None) => format!("[resource {uri}, {bytes} bytes]"),
            };
            if let Value::Object(noted) = &mut noted {
                noted.extend(mime_type.map(|mime_type| ("mime_type".to_owned(), mime_type.into())));
                noted.insert("bytes".to_owned(), bytes.into());
            }
            blocks.push(noted);
            return line;
        }
        _ => {}
    }
    let kind = if kind.is_empty() { "unknown".to_owned() } else { quoted(&kind) };
    blocks.push(json!({ "kind": kind }));
    format!("[{kind}]")
}

/// How many bytes a base64 string (quotes included) stands for. It is not decoded.
fn base64_bytes(string: &str) -> u64 {
    let signs = string.trim_matches('"').trim_end_matches('=').len();
    u64::try_from(signs).unwrap_or(u64::MAX).saturating_mul(3) / 4
}

/// One word of a server, as a sentence repeats it.
pub(crate) fn quoted(text: &str) -> String {
    cut(text, limits::size(limits::MCP_QUOTED_BYTES))
}

/// Text that has at most so many bytes.
pub(crate) fn cut(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let end = (0..=bytes).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    format!("{}…", text.get(..end).unwrap_or_default())
}

/// A sample of what a server wrote, printable and bounded.
pub(crate) fn sample(bytes: &[u8]) -> String {
    let cap = limits::size(limits::MCP_SAMPLE_BYTES);
    let text = String::from_utf8_lossy(bytes.get(..cap.min(bytes.len())).unwrap_or_default());
    let printable: String =
        text.chars().flat_map(|sign| if sign.is_control() { sign.escape_unicode().collect() } else { vec![sign] }).collect();
    if bytes.len() > cap { format!("{printable}…") } else { printable }
}

#[cfg(test)]
#[path = "result_tests.rs"]
mod tests;
