//! A typed result that stands beside a text, as a model is shown it: what the text says already is not said twice.

use std::fmt::{Display, Write};

use serde_json::Value;

use crate::limits::RESULT_SHOWN_BYTES;

/// What is shown of a value.
#[derive(Debug, PartialEq, Eq)]
pub struct Beside {
    /// Its JSON, up to [`RESULT_SHOWN_BYTES`].
    pub text: String,
    /// True when it is less than the whole.
    pub truncated: bool,
}

/// The value as it is shown below the text; nothing when the text is the same value. Beside a text that is itself too long to be shown
/// whole nothing is added: the two would have to be read whole to be compared.
pub fn beside(text: &str, value: &Value) -> Option<Beside> {
    let limit = usize::try_from(RESULT_SHOWN_BYTES).unwrap_or(usize::MAX);
    if value.is_null() || text.len() > limit || is_same(text, value) {
        return None;
    }
    let mut shown = Bounded { text: String::new(), limit };
    let truncated = write!(shown, "{value}").is_err();
    Some(Beside { text: shown.text, truncated })
}

fn is_same(text: &str, value: &Value) -> bool {
    match value {
        // A text is no JSON of itself where a server gives it as it is.
        Value::String(string) if string == text => true,
        value => serde_json::from_str::<Value>(text).is_ok_and(|said| said == *value),
    }
}

/// Takes what is written up to a limit, and refuses the rest.
struct Bounded {
    text: String,
    limit: usize,
}

impl Write for Bounded {
    fn write_str(&mut self, piece: &str) -> std::fmt::Result {
        let room = self.limit.saturating_sub(self.text.len());
        let fits = piece.get(..piece.floor_char_boundary(room)).unwrap_or_default();
        self.text.push_str(fits);
        if fits.len() < piece.len() { Err(std::fmt::Error) } else { Ok(()) }
    }
}

impl Display for Beside {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}{}", self.text, if self.truncated { "…" } else { "" })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_text_says_already_is_not_said_again() {
        for (text, value) in [
            ("{\"b\": 1,\n \"a\": [true]}", json!({"a": [true], "b": 1})),
            ("plain", json!("plain")),
            ("\"quoted\"", json!("quoted")),
            ("7", json!(7)),
            ("anything", json!(null)),
        ] {
            assert_eq!(beside(text, &value), None, "{text}");
        }
    }

    #[test]
    fn more_than_the_text_says_stands_below_it() {
        let shown = beside("2 rows", &json!({"rows": [{"v": "é"}]})).unwrap();
        assert_eq!((shown.to_string().as_str(), shown.truncated), (r#"{"rows":[{"v":"é"}]}"#, false));
        assert!(beside("{\"a\":1", &json!({"a": 1})).is_some(), "half of it is not all of it");
        assert_eq!(beside(&"x".repeat(40_000), &json!({"a": 1})), None);
    }

    #[test]
    fn a_long_value_is_cut_at_a_character() {
        let shown = beside("", &json!(["é".repeat(40_000)])).unwrap();
        assert!(shown.truncated && shown.text.len() <= 32 * 1024 && shown.text.len() > 32 * 1024 - 4);
        assert!(shown.to_string().ends_with("é…"));
    }
}
