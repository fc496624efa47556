//! Decoding the text of a JSON string once, into its own memory: results may be many megabytes. Pure.

use memchr::memchr;

/// The text that a JSON string (quotes included) stands for; nothing when it is no string. A surrogate without its other half
/// becomes the replacement character: what came is shown as far as it can be.
pub(crate) fn decoded(string: &str) -> Option<String> {
    let mut rest = string.trim().strip_prefix('"')?.strip_suffix('"')?;
    // Never longer than what it is decoded from.
    let mut text = String::with_capacity(rest.len());
    while let Some(at) = memchr(b'\\', rest.as_bytes()) {
        let (plain, escape) = rest.split_at_checked(at)?;
        text.push_str(plain);
        let mut signs = escape.chars();
        signs.next();
        let sign = match signs.next()? {
            'n' => '\n',
            't' => '\t',
            'r' => '\r',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'u' => {
                rest = unicode(signs.as_str(), &mut text)?;
                continue;
            }
            other @ ('"' | '\\' | '/') => other,
            _ => return None,
        };
        text.push(sign);
        rest = signs.as_str();
    }
    text.push_str(rest);
    Some(text)
}

/// Decodes what follows a `\u`, and returns what follows that.
fn unicode<'a>(digits: &'a str, text: &mut String) -> Option<&'a str> {
    let (high, rest) = unit(digits)?;
    if let Some(sign) = char::from_u32(high) {
        text.push(sign);
        return Some(rest);
    }
    let pair = (0xD800..0xDC00).contains(&high).then_some(rest).and_then(|rest| unit(rest.strip_prefix("\\u")?));
    match pair {
        Some((low, after)) if (0xDC00..0xE000).contains(&low) => {
            let sign = (high & 0x3FF).checked_shl(10)? | (low & 0x3FF);
            text.push(char::from_u32(sign.saturating_add(0x1_0000))?);
            Some(after)
        }
        _ => {
            text.push(char::REPLACEMENT_CHARACTER);
            Some(rest)
        }
    }
}

fn unit(digits: &str) -> Option<(u32, &str)> {
    let (digits, rest) = digits.split_at_checked(4)?;
    // `from_str_radix` takes a sign.
    if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    Some((u32::from_str_radix(digits, 16).ok()?, rest))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn escapes_are_decoded() {
        assert_eq!(decoded(r#""a\n\t\r\b\f\"\\\/\u00e9\u20AC\ud83d\ude80z""#).unwrap(), "a\n\t\r\u{8}\u{c}\"\\/é€🚀z");
        assert_eq!(decoded(r#""\ud83d \ude80\ud83dx\ud83d\u0041""#).unwrap(), "\u{fffd} \u{fffd}\u{fffd}x\u{fffd}A");
        for wrong in ["", "7", "null", r#""\x""#, r#""\u12""#, r#""\u+123""#, r#""open"#] {
            assert_eq!(decoded(wrong), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn any_text_comes_back(text in any::<String>()) {
            prop_assert_eq!(decoded(&serde_json::to_string(&text).unwrap()), Some(text.clone()));
            let escaped: String = text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
            prop_assert_eq!(decoded(&format!("\"{escaped}\"")), Some(text));
        }
    }
}
