//! Text from outside, made harmless for a terminal: what would move its cursor, colour it or turn its direction is shown by
//! its number instead.

use std::borrow::Cow;
use std::fmt::Write;

/// Whether a character does something else than stand there: control characters, marks that turn the direction of what
/// follows, and marks that nobody sees.
fn acts(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{061c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}'
                | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
        )
}

/// The text as it may be printed; its lines and tabs stay.
pub fn text(text: &str) -> Cow<'_, str> {
    replaced(text, |character| matches!(character, '\n' | '\t'), None)
}

/// The text as one line: line breaks and tabs become spaces.
pub fn one_line(text: &str) -> Cow<'_, str> {
    replaced(text, |_| false, Some(' '))
}

/// The text as one line of at most so many characters; a longer one ends in `…`.
pub fn shortened(text: &str, characters: usize) -> Cow<'_, str> {
    let Some((cut, _)) = text.char_indices().nth(characters) else { return one_line(text) };
    let mut short = one_line(text.get(..cut).unwrap_or_default()).into_owned();
    short.push('…');
    Cow::Owned(short)
}

fn replaced(text: &str, stays: impl Fn(char) -> bool, space: Option<char>) -> Cow<'_, str> {
    if !text.chars().any(|character| acts(character) && !stays(character)) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match (character, space) {
            // A line break of the other kind is one line break.
            ('\r', _) if characters.peek() == Some(&'\n') => {}
            ('\n' | '\t', Some(space)) => shown.push(space),
            _ if acts(character) && !stays(character) => {
                // Writing to a string does not fail.
                let _ = write!(shown, "\\u{{{:x}}}", u32::from(character));
            }
            _ => shown.push(character),
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_is_shown_by_its_number() {
        assert_eq!(text("a\x1b[2Jb\u{202e}c\u{9b}d\x07\x7f"), "a\\u{1b}[2Jb\\u{202e}c\\u{9b}d\\u{7}\\u{7f}");
        assert_eq!(text("one\r\ntwo\n\tthree\rfour"), "one\ntwo\n\tthree\\u{d}four");
        assert_eq!(one_line("one\r\ntwo\n\tthree"), "one two  three");
        assert!(matches!(text("plain — ü 👩‍🚀\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn a_long_line_ends_in_an_ellipsis() {
        assert_eq!(shortened("äöü", 3), "äöü");
        assert_eq!(shortened("äöü\nx", 4), "äöü …");
    }
}
