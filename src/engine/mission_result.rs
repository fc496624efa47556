//! `mission_result`: how a model reads kept results, a part at a time. Answered here, without an intent.

use regex::RegexBuilder;
use serde_json::{Map, Value, json};

use super::results::{Kept, Results};
use super::words::quote;
use crate::limits::{GREP_MATCHES, PATTERN_BYTES, READ_CHARACTERS};

/// What the model is told that this tool does.
pub const DESCRIPTION: &str = "Read a kept result in parts. Without arguments: list all handles. With `handle` alone: what it holds. Add `path` \
(a field of its typed payload: a.b[0], or a JSON Pointer), `lines` (\"12\", \"10-40\", \"200-\"), `offset` with `limit` (characters), or `grep` (a \
regular expression).";

/// Keys of a typed payload that a summary names.
const KEYS_LISTED: usize = 20;

/// The schema of its arguments.
pub fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "handle": {"type": "string", "description": "r1, r2, …"},
            "path": {"type": "string"},
            "lines": {"type": "string"},
            "offset": {"type": ["integer", "string"]},
            "limit": {"type": ["integer", "string"]},
            "grep": {"type": "string"}
        }
    })
}

/// Reads what `arguments` ask for.
///
/// # Errors
/// A sentence for the model.
pub fn read(results: &Results, arguments: &Map<String, Value>) -> Result<String, String> {
    let asked = Asked::from(arguments)?;
    let Some(handle) = asked.handle else {
        if asked.path.is_some() || asked.lines.is_some() || asked.offset.is_some() || asked.grep.is_some() {
            return Err(format!("`handle` is missing: name the result to read. {}", index(results)));
        }
        return Ok(index(results));
    };
    let kept = results.get(handle).ok_or_else(|| format!("There is no result `{}`. {}", quote(handle), index(results)))?;
    if asked.path.is_some() && (asked.lines.is_some() || asked.offset.is_some() || asked.grep.is_some()) {
        return Err("`path` reads the typed payload and goes with none of `lines`, `offset` and `grep`.".to_owned());
    }
    if asked.lines.is_some() && (asked.offset.is_some() || asked.limit.is_some()) {
        return Err("`lines` goes with neither `offset` nor `limit`.".to_owned());
    }
    if asked.grep.is_some() && (asked.lines.is_some() || asked.offset.is_some()) {
        return Err("`grep` goes with neither `lines` nor `offset`.".to_owned());
    }
    if let Some(path) = asked.path {
        return field(handle, kept, path);
    }
    if let Some(lines) = asked.lines {
        return line_range(handle, kept, lines);
    }
    if let Some(pattern) = asked.grep {
        return grep(handle, kept, pattern, asked.limit);
    }
    if asked.offset.is_some() || asked.limit.is_some() {
        return slice(handle, kept, asked.offset.unwrap_or(0), asked.limit);
    }
    Ok(summary(handle, kept))
}

struct Asked<'a> {
    handle: Option<&'a str>,
    path: Option<&'a str>,
    lines: Option<&'a str>,
    grep: Option<&'a str>,
    offset: Option<usize>,
    limit: Option<usize>,
}

impl<'a> Asked<'a> {
    fn from(arguments: &'a Map<String, Value>) -> Result<Self, String> {
        let text = |name: &str| match arguments.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) if text.trim().is_empty() => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.as_str())),
            Some(_) => Err(format!("`{name}` must be a text.")),
        };
        let whole = |name: &str| {
            let number = match arguments.get(name) {
                None | Some(Value::Null) => return Ok(None),
                Some(Value::String(text)) if text.trim().is_empty() => return Ok(None),
                Some(Value::String(text)) => text.trim().parse::<i64>().ok(),
                Some(value) => value.as_i64(),
            };
            match number {
                None => Err(format!("`{name}` must be a whole number.")),
                Some(0) => Ok(None),
                Some(number) => usize::try_from(number).map(Some).map_err(|_| format!("`{name}` must not be negative.")),
            }
        };
        let lines = match arguments.get("lines") {
            Some(Value::Number(_)) => return Err("`lines` must be a text such as \"10-40\".".to_owned()),
            _ => text("lines")?,
        };
        Ok(Asked { handle: text("handle")?, path: text("path")?, lines, grep: text("grep")?, offset: whole("offset")?, limit: whole("limit")? })
    }
}

fn index(results: &Results) -> String {
    if results.is_empty() {
        return "There is no result yet.".to_owned();
    }
    let limit = usize::try_from(GREP_MATCHES).unwrap_or(usize::MAX);
    let count = results.iter().count();
    let mut lines: Vec<String> = results
        .iter()
        .skip(count.saturating_sub(limit))
        .map(|(handle, kept)| {
            let payload = if kept.structured.is_some() { "text and typed payload" } else { "text only" };
            format!("{handle}: {}, {} characters, {payload}", kept.tool, kept.text.chars().count())
        })
        .collect();
    if count > limit {
        lines.insert(0, format!("({} earlier ones are left out)", count.saturating_sub(limit)));
    }
    lines.join("\n")
}

fn summary(handle: &str, kept: &Kept) -> String {
    let mut text = format!("{handle}: {}({}), {} characters of text.", kept.tool, quote(&kept.arguments), kept.text.chars().count());
    match kept.structured.as_deref() {
        None => text.push_str(" No typed payload."),
        Some(Value::Object(map)) => {
            let keys: Vec<&str> = map.keys().take(KEYS_LISTED).map(String::as_str).collect();
            text.push_str(&format!(" Typed payload: an object with {} fields: {}.", map.len(), keys.join(", ")));
        }
        Some(Value::Array(items)) => {
            let first = items.first().map_or_else(|| "none".to_owned(), shape);
            text.push_str(&format!(" Typed payload: an array of {} items; the first is {first}.", items.len()));
        }
        Some(value) => text.push_str(&format!(" Typed payload: {}.", super::arguments::kind_of(value))),
    }
    text
}

fn shape(value: &Value) -> String {
    match value {
        Value::Object(map) => format!("an object with {}", map.keys().take(KEYS_LISTED).cloned().collect::<Vec<_>>().join(", ")),
        other => super::arguments::kind_of(other).to_owned(),
    }
}

/// The value at a path, in words where there is none.
fn field(handle: &str, kept: &Kept, path: &str) -> Result<String, String> {
    let payload = kept.structured.as_deref().ok_or_else(|| {
        format!("{handle} has no typed payload: read its text with `lines`, `offset` or `grep`.")
    })?;
    let value = if path.starts_with('/') {
        payload.pointer(path).ok_or_else(|| format!("{handle} has nothing at `{}`: {}.", quote(path), shape(payload)))?
    } else {
        walk(handle, payload, path)?
    };
    let text = match value {
        Value::String(text) => text.clone(),
        other => serde_json::to_string_pretty(other).unwrap_or_default(),
    };
    Ok(cut(&text, "read a field further in"))
}

fn walk<'a>(handle: &str, payload: &'a Value, path: &str) -> Result<&'a Value, String> {
    let mut value = payload;
    for part in path.split('.').map(str::trim).filter(|part| !part.is_empty()) {
        let (key, indexes) = part.split_once('[').map_or((part, None), |(key, rest)| (key, Some(rest)));
        if !key.is_empty() {
            value = value.get(key).ok_or_else(|| format!("{handle} has no `{}` there: it is {}.", quote(key), shape(value)))?;
        }
        for index in indexes.into_iter().flat_map(|rest| rest.split('[')) {
            let number: i64 = index
                .strip_suffix(']')
                .and_then(|digits| digits.trim().parse().ok())
                .ok_or_else(|| format!("`{}` is no path: an index is a whole number in brackets.", quote(path)))?;
            let items = value.as_array().ok_or_else(|| format!("{handle} has no list there: it is {}.", shape(value)))?;
            let place = if number < 0 {
                usize::try_from(number.unsigned_abs()).ok().and_then(|back| items.len().checked_sub(back))
            } else {
                usize::try_from(number).ok()
            };
            value = place
                .and_then(|place| items.get(place))
                .ok_or_else(|| format!("{handle} has no item {number} there: the list holds {}.", items.len()))?;
        }
    }
    Ok(value)
}

fn slice(handle: &str, kept: &Kept, offset: usize, limit: Option<usize>) -> Result<String, String> {
    let total = kept.text.chars().count();
    if offset >= total {
        return Err(format!("{handle} has {total} characters: `offset` {offset} is past its end."));
    }
    let most = usize::try_from(READ_CHARACTERS).unwrap_or(usize::MAX);
    let length = limit.unwrap_or(most).min(most);
    let text: String = kept.text.chars().skip(offset).take(length).collect();
    let end = offset.saturating_add(length).min(total);
    let next = if end < total { format!("\n[go on with offset {end}]") } else { String::new() };
    Ok(format!("{handle}, characters {offset} to {end} of {total}:\n{text}{next}"))
}

fn line_range(handle: &str, kept: &Kept, wanted: &str) -> Result<String, String> {
    let unreadable = || format!("`lines` is \"N\", \"N-M\" or \"N-\", counted from 1, not \"{}\".", quote(wanted));
    let (first, last) = match wanted.trim().split_once('-') {
        None => (wanted.trim(), Some(wanted.trim())),
        Some((first, "")) => (first.trim(), None),
        Some((first, last)) => (first.trim(), Some(last.trim())),
    };
    let first: usize = first.parse().ok().filter(|first| *first > 0).ok_or_else(unreadable)?;
    let last: usize = match last {
        None => usize::MAX,
        Some(last) => last.parse().ok().filter(|last| *last >= first).ok_or_else(unreadable)?,
    };
    let total = kept.text.lines().count();
    if first > total {
        return Err(format!("{handle} has {total} lines: line {first} is past its end."));
    }
    let last = last.min(total);
    let body: String =
        kept.text.lines().skip(first.saturating_sub(1)).take(last.saturating_sub(first).saturating_add(1)).collect::<Vec<_>>().join("\n");
    Ok(format!("{handle}, lines {first} to {last} of {total}:\n{}", cut(&body, "ask for fewer lines, or use `offset`")))
}

fn grep(handle: &str, kept: &Kept, pattern: &str, limit: Option<usize>) -> Result<String, String> {
    let size = usize::try_from(PATTERN_BYTES).unwrap_or(usize::MAX);
    let expression = RegexBuilder::new(pattern)
        .size_limit(size)
        .build()
        .map_err(|_| format!("`grep` is no regular expression that can be used: \"{}\".", quote(pattern)))?;
    let most = limit.unwrap_or(usize::try_from(GREP_MATCHES).unwrap_or(usize::MAX));
    let mut shown = Vec::new();
    let mut matches: usize = 0;
    let mut total: usize = 0;
    for line in kept.text.lines() {
        total = total.saturating_add(1);
        if expression.is_match(line) {
            matches = matches.saturating_add(1);
            if shown.len() < most {
                shown.push(format!("{total}: {line}"));
            }
        }
    }
    let left = matches.saturating_sub(shown.len());
    let rest = if left > 0 { format!("\n[{left} more matches; narrow the pattern or raise `limit`]") } else { String::new() };
    let body = cut(&shown.join("\n"), "narrow the pattern");
    Ok(format!("{handle}: {matches} of {total} lines match.\n{body}{rest}").trim_end().to_owned())
}

/// The first [`READ_CHARACTERS`] of a text, with a note when there is more.
fn cut(text: &str, advice: &str) -> String {
    let most = usize::try_from(READ_CHARACTERS).unwrap_or(usize::MAX);
    let total = text.chars().count();
    if total <= most {
        return text.to_owned();
    }
    let shown: String = text.chars().take(most).collect();
    format!("{shown}\n[cut: {most} of {total} characters; {advice}]")
}

#[cfg(test)]
#[path = "mission_result_tests.rs"]
mod tests;
