//! Placeholders in a script: `{{result.2#/count}}` and the like, filled from what the tools of the run really returned.

use serde_json::Value;

use super::failure::one_line;

/// A placeholder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Placeholder<'a> {
    /// Between the braces.
    text: &'a str,
    /// Number of the result, from 1; the last one when absent.
    result: Option<usize>,
    /// JSON Pointer.
    pointer: Option<&'a str>,
    /// The number of elements is wanted.
    length: bool,
}

/// A piece of a text with placeholders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece<'a> {
    Text(&'a str),
    Placeholder(Placeholder<'a>),
}

/// Checks the placeholders of a text.
///
/// # Errors
/// What is wrong with the first that is none.
pub fn check(text: &str) -> Result<(), String> {
    pieces(text).map(|_| ())
}

/// Checks the placeholders of every string in a value.
///
/// # Errors
/// See [`check`].
pub fn check_value(value: &Value) -> Result<(), String> {
    match value {
        Value::String(text) => check(text),
        Value::Array(list) => list.iter().try_for_each(check_value),
        Value::Object(object) => object.values().try_for_each(check_value),
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
    }
}

/// Fills the placeholders of a text.
///
/// # Errors
/// Which of them cannot be filled, and why.
pub fn fill(text: &str, results: &[&str]) -> Result<String, String> {
    let mut filled = String::new();
    for piece in pieces(text)? {
        match piece {
            Piece::Text(text) => filled.push_str(text),
            Piece::Placeholder(placeholder) => match value_of(&placeholder, results)? {
                Value::String(text) => filled.push_str(&text),
                other => filled.push_str(&other.to_string()),
            },
        }
    }
    Ok(filled)
}

/// Fills the placeholders of every string in a value. A string that is one placeholder becomes what it stands for.
///
/// # Errors
/// See [`fill`].
pub fn fill_value(value: &Value, results: &[&str]) -> Result<Value, String> {
    Ok(match value {
        Value::String(text) => match pieces(text)?.as_slice() {
            [Piece::Placeholder(placeholder)] => value_of(placeholder, results)?,
            _ => Value::String(fill(text, results)?),
        },
        Value::Array(list) => Value::Array(list.iter().map(|value| fill_value(value, results)).collect::<Result<_, _>>()?),
        Value::Object(object) => {
            Value::Object(object.iter().map(|(key, value)| Ok((key.clone(), fill_value(value, results)?))).collect::<Result<_, String>>()?)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    })
}

fn pieces(text: &str) -> Result<Vec<Piece<'_>>, String> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("{{result") {
        let Some((inner, after)) = behind.split_once("}}") else {
            return Err(format!("has a placeholder that is not closed: `{{{{result{}`", one_line(behind)));
        };
        if !before.is_empty() {
            pieces.push(Piece::Text(before));
        }
        let placeholder = read(inner).map_err(|problem| format!("has the placeholder `{{{{result{}}}}}`: {problem}", one_line(inner)))?;
        pieces.push(Piece::Placeholder(placeholder));
        rest = after;
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest));
    }
    Ok(pieces)
}

/// Reads what stands behind `{{result`.
fn read(text: &str) -> Result<Placeholder<'_>, String> {
    let (place, length) = match text.rsplit_once('|') {
        None => (text, false),
        Some((place, "length")) => (place, true),
        Some((_, word)) => return Err(format!("`{word}` is not known; the only word behind | is length")),
    };
    let (number, pointer) = match place.split_once('#') {
        None => (place, None),
        Some((number, pointer)) => (number, Some(pointer)),
    };
    let result = match number.strip_prefix('.') {
        None if number.is_empty() => None,
        None => return Err("behind `result` stands .N, #/pointer or nothing".to_owned()),
        Some(digits) => Some(
            digits.parse().ok().filter(|number| *number > 0).ok_or_else(|| format!("`{digits}` is no number of a result; they are counted from 1"))?,
        ),
    };
    if let Some(pointer) = pointer.filter(|pointer| !pointer.is_empty() && !pointer.starts_with('/')) {
        return Err(format!("`{pointer}` is no JSON Pointer; it begins with /"));
    }
    Ok(Placeholder { text, result, pointer, length })
}

fn value_of(placeholder: &Placeholder<'_>, results: &[&str]) -> Result<Value, String> {
    let problem = |what: &str| format!("the placeholder `{{{{result{}}}}}` cannot be filled: {what}", placeholder.text);
    let number = placeholder.result.unwrap_or(results.len());
    let Some(text) = number.checked_sub(1).and_then(|index| results.get(index)) else {
        return Err(problem(&format!("{} result(s) came back so far", results.len())));
    };
    let value = match placeholder.pointer {
        None => Value::String((*text).to_owned()),
        Some(pointer) => {
            let whole = json_in(text).ok_or_else(|| problem(&format!("there is no JSON in the result, which begins: {}", one_line(text))))?;
            whole.pointer(pointer).cloned().ok_or_else(|| problem("there is nothing at that place in the result"))?
        }
    };
    if !placeholder.length {
        return Ok(value);
    }
    let length = match &value {
        Value::Array(list) => list.len(),
        Value::Object(object) => object.len(),
        Value::String(text) => text.chars().count(),
        Value::Null | Value::Bool(_) | Value::Number(_) => return Err(problem("what stands there has no length")),
    };
    Ok(Value::from(length))
}

/// The JSON in a result: all of it, or the first object or list that begins a line.
fn json_in(text: &str) -> Option<Value> {
    if let Ok(value) = serde_json::from_str(text) {
        return Some(value);
    }
    let mut rest = text;
    loop {
        if rest.starts_with(['{', '['])
            && let Some(Ok(value)) = serde_json::Deserializer::from_str(rest).into_iter::<Value>().next()
        {
            return Some(value);
        }
        rest = rest.split_once('\n')?.1;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    const RESULTS: [&str; 2] = [r#"{"hits": [{"id": 7}, {"id": 9}], "a/b": "x"}"#, "Found:\n{\"count\": 3}\nThat is all."];

    #[test]
    fn a_text_is_filled_from_what_came_back() {
        let filled = |text: &str| fill(text, &RESULTS).unwrap();
        assert_eq!(filled("{{result.1#/hits/1/id}} of {{result.1#/hits|length}}, {{result.1#/a~1b}}"), "9 of 2, x");
        assert_eq!(filled("{{result#/count}} {{result.2#/count}} {{result.1#/hits/0}}"), r#"3 3 {"id":7}"#);
        assert_eq!(filled("{{result}}"), RESULTS[1]);
        assert_eq!(filled("no {{other}} placeholder"), "no {{other}} placeholder");
        assert_eq!(filled("{{result.2|length}}"), "32");
    }

    #[test]
    fn a_value_keeps_its_type_where_it_stands_alone() {
        let value = json!({"id": "{{result.1#/hits/0/id}}", "text": "id {{result.1#/hits/0/id}}", "list": ["{{result.1#/hits}}", 1, null]});
        assert_eq!(
            fill_value(&value, &RESULTS).unwrap(),
            json!({"id": 7, "text": "id 7", "list": [[{"id": 7}, {"id": 9}], 1, null]})
        );
    }

    #[test]
    fn what_cannot_be_filled_says_why() {
        let problem = |text: &str| fill(text, &RESULTS).unwrap_err();
        insta::assert_snapshot!(problem("{{result.3}}"), @"the placeholder `{{result.3}}` cannot be filled: 2 result(s) came back so far");
        insta::assert_snapshot!(problem("{{result.1#/nope}}"), @"the placeholder `{{result.1#/nope}}` cannot be filled: there is nothing at that place in the result");
        insta::assert_snapshot!(problem("{{result#/count|length}}"), @"the placeholder `{{result#/count|length}}` cannot be filled: what stands there has no length");
        insta::assert_snapshot!(fill("{{result#/a}}", &["plain"]).unwrap_err(), @"the placeholder `{{result#/a}}` cannot be filled: there is no JSON in the result, which begins: plain");
        insta::assert_snapshot!(fill("{{result}}", &[]).unwrap_err(), @"the placeholder `{{result}}` cannot be filled: 0 result(s) came back so far");
        insta::assert_snapshot!(problem("{{result.1"), @"has a placeholder that is not closed: `{{result.1`");
        insta::assert_snapshot!(problem("{{results}}"), @"has the placeholder `{{results}}`: behind `result` stands .N, #/pointer or nothing");
        insta::assert_snapshot!(problem("{{result|size}}"), @"has the placeholder `{{result|size}}`: `size` is not known; the only word behind | is length");
    }
}
