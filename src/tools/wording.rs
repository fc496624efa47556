//! What a definition says in words, before a model reads it: marks that deceive refuse the tool, marks that nobody sees are taken out, and
//! what is too long is cut. Pure.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::limits;

/// A description that may be shown to a model.
#[derive(Debug, PartialEq, Eq)]
pub struct Worded {
    /// It.
    pub text: String,
    /// What had to be done to it, the second half of a sentence.
    pub done: Option<String>,
}

/// Looks at a description.
///
/// # Errors
/// Why its tool cannot be offered, as the second half of a sentence about it.
pub fn description(text: &str) -> Result<Worded, String> {
    deceives(text).map_or(Ok(()), |sign| Err(format!("its description holds {}", named(sign))))?;
    let mut done = Vec::new();
    let mut shown = Cow::Borrowed(text);
    let unseen = text.chars().filter(|sign| is_unseen(*sign)).count();
    if unseen > 0 {
        shown = text.chars().filter(|sign| !is_unseen(*sign)).collect::<String>().into();
        done.push(format!("holds {unseen} marks that nobody sees, which were taken out"));
    }
    let most = limits::size(limits::MCP_DESCRIPTION_CHARACTERS);
    if let Some((at, _)) = shown.char_indices().nth(most) {
        let whole = shown.chars().count();
        shown = format!("{}…", shown.get(..at).unwrap_or_default()).into();
        done.push(format!("has {whole} characters, of which the first {most} are shown"));
    }
    let done = (!done.is_empty()).then(|| format!("its description {}", done.join(" and ")));
    Ok(Worded { text: shown.into_owned(), done })
}

/// Looks at the words in a schema: names of arguments, titles, descriptions. Called on what is known to be nested no deeper than allowed.
///
/// # Errors
/// Why its tool cannot be offered, as the second half of a sentence about the schema.
pub fn schema(value: &Value) -> Result<(), String> {
    match value {
        Value::Array(items) => items.iter().try_for_each(schema),
        Value::Object(members) => members_of(members),
        _ => Ok(()),
    }
}

fn members_of(members: &Map<String, Value>) -> Result<(), String> {
    for (key, value) in members {
        if let Some(sign) = deceives(key) {
            return Err(format!("holds {} in a name", named(sign)));
        }
        if let Value::String(text) = value
            && matches!(key.as_str(), "description" | "title")
            && let Some(sign) = deceives(text)
        {
            return Err(format!("holds {} in a {key}", named(sign)));
        }
        schema(value)?;
    }
    Ok(())
}

/// A sign that makes a text look like another, or that only a machine reads: control characters and escapes, marks that turn the direction of
/// what follows, and tags, which spell out words that nobody sees.
fn deceives(text: &str) -> Option<char> {
    text.chars().find(|sign| {
        let plain = matches!(sign, '\n' | '\t' | '\r');
        (sign.is_control() && !plain)
            || matches!(sign, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{e0000}'..='\u{e007f}')
    })
}

/// A sign that nobody sees and that does no harm by itself. Joiners are no such sign: some scripts and pictures need them.
fn is_unseen(sign: char) -> bool {
    matches!(sign, '\u{ad}' | '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2060}'..='\u{2065}' | '\u{feff}')
}

fn named(sign: char) -> String {
    let what = match sign {
        '\u{e0000}'..='\u{e007f}' => "a tag that nobody sees",
        sign if sign.is_control() => "a control character",
        _ => "a mark that turns the direction of what follows",
    };
    format!("{what} (U+{:04X})", u32::from(sign))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_deceives_is_refused_and_what_is_unseen_is_taken_out() {
        insta::assert_snapshot!(description("Reads. \u{202e}txt.exe").unwrap_err(), @"its description holds a mark that turns the direction of what follows (U+202E)");
        insta::assert_snapshot!(description("Reads. \u{1b}[2J").unwrap_err(), @"its description holds a control character (U+001B)");
        insta::assert_snapshot!(description("Reads.\u{e0041}").unwrap_err(), @"its description holds a tag that nobody sees (U+E0041)");
        insta::assert_snapshot!(schema(&json!({"properties": {"a": {"description": "x\u{2066}"}}})).unwrap_err(), @"holds a mark that turns the direction of what follows (U+2066) in a description");
        insta::assert_snapshot!(schema(&json!({"anyOf": [{"properties": {"a\u{0}": {}}}]})).unwrap_err(), @"holds a control character (U+0000) in a name");
        schema(&json!({"properties": {"a": {"enum": ["\u{1b}"], "pattern": "\u{1}"}}})).unwrap();
        let plain = "Zähl die Lämpchen 👨\u{200d}👩\u{200d}👧.\n\tنعم";
        assert_eq!(description(plain).unwrap(), Worded { text: plain.to_owned(), done: None });
        let worded = description("\u{feff}Re\u{200b}ads.").unwrap();
        assert_eq!(worded.text, "Reads.");
        insta::assert_snapshot!(worded.done.unwrap(), @"its description holds 2 marks that nobody sees, which were taken out");
        insta::assert_snapshot!(description(&"ä".repeat(20_000)).unwrap().done.unwrap(), @"its description has 20000 characters, of which the first 16384 are shown");
    }

    proptest! {
        #[test]
        fn what_is_shown_needs_nothing_more(text in any::<String>()) {
            if let Ok(worded) = description(&text) {
                prop_assert_eq!(description(&worded.text).unwrap().done, None);
            }
        }
    }
}
