//! What a model is shown of a text that is too long for it.

use crate::limits::RESULT_SHOWN_BYTES;

/// The part of a text that is shown.
#[derive(Debug, PartialEq, Eq)]
pub struct Shown {
    /// The text as it is shown.
    pub text: String,
    /// True when it is less than the whole.
    pub truncated: bool,
}

/// The text itself up to [`RESULT_SHOWN_BYTES`]; past that its first 60 % of that size and its last 40 %, around what `marker` says
/// (given the bytes of the head, of the tail and of the whole). Characters are never split.
pub fn bound(text: &str, marker: impl FnOnce(usize, usize, usize) -> String) -> Shown {
    let limit = usize::try_from(RESULT_SHOWN_BYTES).unwrap_or(usize::MAX);
    if text.len() <= limit {
        return Shown { text: text.to_owned(), truncated: false };
    }
    let head_size = limit.saturating_mul(6).checked_div(10).unwrap_or(0);
    let tail_size = limit.saturating_sub(head_size);
    let head = text.get(..text.floor_char_boundary(head_size)).unwrap_or_default();
    let tail = text.get(text.ceil_char_boundary(text.len().saturating_sub(tail_size))..).unwrap_or_default();
    let marker = marker(head.len(), tail.len(), text.len());
    Shown { text: format!("{head}\n{marker}\n{tail}"), truncated: true }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_text_within_the_bound_is_untouched() {
        let text = "x".repeat(32 * 1024);
        assert_eq!(bound(&text, |_, _, _| String::new()), Shown { text: text.clone(), truncated: false });
    }

    #[test]
    fn a_long_text_keeps_sixty_percent_of_the_bound_in_front_and_the_rest_behind() {
        let text = format!("{}{}", "a".repeat(40_000), "z".repeat(40_000));
        let shown = bound(&text, |head, tail, total| format!("[{head} {tail} {total}]"));
        assert!(shown.truncated);
        assert!(shown.text.contains("\n[19660 13108 80000]\n"));
        assert!(shown.text.starts_with("aaa") && shown.text.ends_with("zzz"));
    }

    #[test]
    fn characters_are_never_split() {
        let text = "é€🦀".repeat(9_000);
        let shown = bound(&text, |head, tail, _| {
            assert!(head <= 19_660 && tail <= 13_108);
            String::from("[cut]")
        });
        assert!(shown.text.contains("\n[cut]\n"));
    }
}
