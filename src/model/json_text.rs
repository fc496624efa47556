//! JSON strings that arrive in pieces, as real servers cut them: also in the middle of a surrogate pair.

/// Reads the pieces of one text.
#[derive(Debug, Default)]
pub struct JsonText {
    /// The escape of the first half of a pair whose second half has not come.
    half: String,
}

impl JsonText {
    /// The text of the next piece, a JSON string with its quotes. Nothing when it is no string. A half that stays alone becomes U+FFFD.
    pub fn read(&mut self, raw: &str) -> Option<String> {
        let inner = raw.strip_prefix('"')?.strip_suffix('"')?;
        let joined;
        let inner = if self.half.is_empty() {
            inner
        } else if inner.is_empty() {
            return Some(String::new());
        } else {
            joined = format!("{}{inner}", std::mem::take(&mut self.half));
            &joined
        };
        if let Ok(text) = serde_json::from_str(&format!("\"{inner}\"")) {
            return Some(text);
        }
        let (before, half) = inner.split_at_checked(inner.len().saturating_sub(ESCAPE))?;
        let inner = if is_half(half, &FIRST) && !ends_escaped(before) {
            self.half = half.to_owned();
            before
        } else {
            inner
        };
        serde_json::from_str(&format!("\"{}\"", without_lone_halves(inner))).ok()
    }

    /// The text is over: what stands for a half whose other half never came.
    pub fn finish(&mut self) -> &'static str {
        if std::mem::take(&mut self.half).is_empty() { "" } else { "\u{FFFD}" }
    }
}

/// Bytes of an escape that names a code unit: `\u` and four digits.
const ESCAPE: usize = 6;
/// Third digits of the first halves, and of the second.
const FIRST: [char; 6] = ['8', '9', 'a', 'b', 'A', 'B'];
const SECOND: [char; 8] = ['c', 'd', 'e', 'f', 'C', 'D', 'E', 'F'];

fn is_half(escape: &str, third: &[char]) -> bool {
    let Some(digits) = escape.strip_prefix("\\u") else { return false };
    let mut digits = digits.chars();
    digits.next().is_some_and(|first| first.eq_ignore_ascii_case(&'d'))
        && digits.next().is_some_and(|second| third.contains(&second))
        && digits.all(|digit| digit.is_ascii_hexdigit())
}

/// True when the backslash that follows `before` is itself escaped.
fn ends_escaped(before: &str) -> bool {
    before.chars().rev().take_while(|character| *character == '\\').count() % 2 == 1
}

fn without_lone_halves(inner: &str) -> String {
    let mut out = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some((before, behind)) = rest.split_once('\\') {
        out.push_str(before);
        let escape: String = std::iter::once('\\').chain(behind.chars().take(ESCAPE - 1)).collect();
        let next: String = behind.chars().skip(ESCAPE - 1).take(ESCAPE).collect();
        let taken = if is_half(&escape, &FIRST) && is_half(&next, &SECOND) {
            out.push_str(&escape);
            out.push_str(&next);
            ESCAPE + ESCAPE - 1
        } else if is_half(&escape, &FIRST) || is_half(&escape, &SECOND) {
            out.push('\u{FFFD}');
            ESCAPE - 1
        } else {
            out.push('\\');
            out.extend(behind.chars().next());
            1
        };
        let from = behind.char_indices().nth(taken).map_or(behind.len(), |(at, _)| at);
        rest = behind.get(from..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    fn read(pieces: &[&str]) -> String {
        let mut reader = JsonText::default();
        let mut text: String = pieces.iter().map(|piece| reader.read(piece).unwrap()).collect();
        text.push_str(reader.finish());
        text
    }

    #[test]
    fn a_pair_in_two_pieces_is_one_character() {
        assert_eq!(read(&[r#""a\ud83d""#, r#""""#, r#""\ude00b""#]), "a😀b");
        assert_eq!(read(&[r#""a\ud83d""#, r#""b""#]), "a\u{FFFD}b");
        assert_eq!(read(&[r#""\ud83d""#]), "\u{FFFD}");
        assert_eq!(read(&[r#""\\ud83d""#]), r"\ud83d");
        assert_eq!(read(&[r#""\ude00 \ud83d\ude00 \n \ud83dx é""#]), "\u{FFFD} 😀 \n \u{FFFD}x é");
        assert_eq!(JsonText::default().read("null"), None);
        assert_eq!(JsonText::default().read("\"\\q\""), None);
    }

    proptest! {
        #[test]
        fn any_string_reads_as_itself_and_in_halves(text in "[a\\\\\"é😀\n]{0,12}", cut in 0usize..40) {
            // Every unit of UTF-16 as an escape, cut between two of them.
            let units: Vec<String> = text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
            let (first, second) = units.split_at(cut.min(units.len()));
            let plain = serde_json::to_string(&text).unwrap();
            prop_assert_eq!(read(&[&plain]), text.clone());
            prop_assert_eq!(read(&[&format!("\"{}\"", first.concat()), &format!("\"{}\"", second.concat())]), text);
        }

        #[test]
        fn nothing_panics(raw in "\"[\\\\ud89ca0é\"]{0,30}\"") {
            let _ = JsonText::default().read(&raw);
        }
    }
}
