//! Text of a tool as a model is told it: without what would rule a terminal, and with what nobody sees made visible.
//!
//! Escape sequences go, as do control characters other than line ends and tabs; a carriage return is a line end. Marks that turn the
//! direction of what follows, and the tag characters that mirror ASCII unseen, are shown by their numbers. Everything else stays, joiners
//! and spaces without a width among it: languages and emoji need them. The stream and the log keep the text as it came.

use std::borrow::Cow;
use std::fmt::Write;
use std::iter::Peekable;
use std::str::Chars;

const ESCAPE: char = '\u{1b}';

/// Marks that are shown by their numbers.
fn is_hidden(sign: char) -> bool {
    matches!(sign, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{e0000}'..='\u{e007f}')
}

fn is_ruling(sign: char) -> bool {
    sign.is_control() && !matches!(sign, '\n' | '\t')
}

/// The text as a model is told it.
pub fn plain(text: &str) -> Cow<'_, str> {
    if !text.chars().any(|sign| is_ruling(sign) || is_hidden(sign)) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    let mut signs = text.chars().peekable();
    while let Some(sign) = signs.next() {
        match sign {
            ESCAPE => match signs.peek() {
                Some('[') => {
                    signs.next();
                    skip_control(&mut signs);
                }
                Some(']' | 'P' | 'X' | '^' | '_') => {
                    signs.next();
                    skip_string(&mut signs);
                }
                Some(' '..='/') => {
                    while signs.next_if(|sign| matches!(sign, ' '..='/')).is_some() {}
                    signs.next_if(|sign| matches!(sign, '0'..='~'));
                }
                // Sequences of two signs; after any other the sign is a letter that is to be read.
                Some('7' | '8' | '=' | '>' | 'D' | 'E' | 'H' | 'M' | 'N' | 'O' | 'Z' | '\\' | 'c') => {
                    signs.next();
                }
                _ => {}
            },
            '\u{9b}' => skip_control(&mut signs),
            '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => skip_string(&mut signs),
            '\r' if signs.peek() == Some(&'\n') => {}
            '\r' => shown.push('\n'),
            sign if is_ruling(sign) => {}
            sign if is_hidden(sign) => {
                // Writing to a string does not fail.
                let _ = write!(shown, "\\u{{{:x}}}", u32::from(sign));
            }
            sign => shown.push(sign),
        }
    }
    Cow::Owned(shown)
}

/// Parameters, intermediates, and the sign that ends them.
fn skip_control(signs: &mut Peekable<Chars<'_>>) {
    while signs.next_if(|sign| matches!(sign, ' '..='?')).is_some() {}
    signs.next_if(|sign| matches!(sign, '@'..='~'));
}

/// A string of a sequence, with its end. One that does not end on its line is no sequence: what looks like it stays.
fn skip_string(signs: &mut Peekable<Chars<'_>>) {
    let mut ahead = signs.clone();
    while let Some(sign) = ahead.next() {
        match sign {
            '\n' | '\r' => return,
            '\u{7}' | '\u{9c}' => break,
            ESCAPE => {
                if ahead.next_if_eq(&'\\').is_none() {
                    return;
                }
                break;
            }
            _ => {}
        }
        if ahead.peek().is_none() {
            return;
        }
    }
    *signs = ahead;
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_rules_a_terminal_goes_and_what_is_to_be_read_stays() {
        for (text, shown) in [
            ("plain\tand\nsimple", "plain\tand\nsimple"),
            ("\u{1b}[1;31mred\u{1b}[0m \u{1b}[2J\u{1b}[?25lon", "red on"),
            ("\u{9b}2Kgone", "gone"),
            ("\u{1b}]0;title\u{7}a\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\", "alink"),
            ("\u{1b}Pq#0\u{1b}\\a\u{90}x\u{9c}b\u{1b}(Bc\u{1b}7d", "abcd"),
            ("a\r\nb\rc\u{7}\u{8}\u{0}\u{7f}\u{85}d", "a\nb\ncd"),
            // Nothing is hidden behind a sequence that does not end.
            ("\u{1b}]0;all of\nthis stays", "0;all of\nthis stays"),
            ("\u{1b}]0;and this", "0;and this"),
            ("\u{1b}", ""),
            ("\u{1b}balance", "balance"),
            ("\u{202e}txt.exe\u{202c}", "\\u{202e}txt.exe\\u{202c}"),
            ("\u{e0049}\u{e0047}", "\\u{e0049}\\u{e0047}"),
            ("👩\u{200d}🚀 می\u{200c}خواهم \u{200f}", "👩\u{200d}🚀 می\u{200c}خواهم \u{200f}"),
        ] {
            assert_eq!(plain(text), shown, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn nothing_that_rules_a_terminal_is_left(text in proptest::collection::vec(prop_oneof![
            Just('\u{1b}'), Just('['), Just(']'), Just('\\'), Just('\u{7}'), Just('\u{9b}'), Just('\u{9d}'), Just('\n'), Just('\r'),
            Just('\u{202e}'), Just('m'), Just('a'), any::<char>()
        ], 0..64)) {
            let text: String = text.into_iter().collect();
            let shown = plain(&text).into_owned();
            prop_assert!(!shown.chars().any(|sign| is_ruling(sign) || is_hidden(sign)));
            prop_assert_eq!(plain(&shown), shown.as_str());
            prop_assert!(shown.matches('\n').count() >= text.matches('\n').count(), "no line is lost");
        }
    }
}
