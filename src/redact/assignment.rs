//! A value behind a name that stands for a secret: in the environment, in JSON and YAML, in headers, queries and flags.
//!
//! Names like these also stand before what is no secret: types, descriptions, code, other names. So the value has a say: the
//! less the name says, the more the value has to look like a secret.

use super::class::{Class, Makeup};
use super::names::{Kind, Place, classify};
use super::shapes::{BLANKS, Candidate, Hidden, Verdict};
use super::span::Label;
use super::swallow::Swallow;
use crate::limits::{SECRET_NAME_BYTES, size};

/// How much of a value is looked at.
const VALUE_BYTES: usize = 64;
/// Most backslashes before a quote.
const ESCAPES: usize = 8;

/// Judges what stands around the end of a name.
pub(super) fn judge(candidate: &Candidate<'_>) -> Verdict {
    let text = candidate.text;
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    match text.get(candidate.end) {
        None if !candidate.over => return Verdict::More(candidate.end),
        None => return Verdict::No,
        Some(byte) if is_name(*byte) => return Verdict::No,
        Some(_) => {}
    }
    let before = text.get(..candidate.start).unwrap_or_default();
    let reach = before.iter().rev().take(size(SECRET_NAME_BYTES)).take_while(|byte| is_name(**byte)).count();
    let begins = candidate.start.saturating_sub(reach);
    let whole = text.get(begins..candidate.end).unwrap_or_default();
    let dashes = whole.iter().take_while(|byte| **byte == b'-').count();
    let name = std::str::from_utf8(whole.get(dashes..).unwrap_or_default()).unwrap_or_default();
    if text.get(..begins).is_some_and(|before| before.ends_with(b"${")) {
        return Verdict::No; // a shell's `${NAME:-…}`
    }
    let in_query = begins.checked_sub(1).and_then(|at| text.get(at)).is_some_and(|byte| matches!(byte, b'?' | b'&'));
    let Some(kind) = classify(name, in_query) else { return Verdict::No };
    let mut reader = Reader { text, at: candidate.end, over: candidate.over };
    let (separator, opening) = match reader.separator(dashes > 0) {
        Read::Is(read) => read,
        Read::Not => return Verdict::No,
        Read::Incomplete => return Verdict::More(candidate.end),
    };
    let place = match (&opening, separator) {
        (Some(_), _) => Place::Quoted,
        (None, b'=') if in_query => Place::Query,
        (None, b' ') => Place::Flag,
        (None, _) if is_of_environment(name) => Place::Environment,
        (None, _) => Place::Bare,
    };
    let verdict = if kind == Kind::Header {
        header(&mut reader, opening)
    } else {
        value(&mut reader, kind, place, opening, separator, is_of_environment(name))
    };
    match verdict {
        Read::Is((start, from, swallow)) => Verdict::Hidden(Hidden {
            start,
            from,
            swallow,
            label: Label::Named { placeholder: candidate.placeholder.replace("NAME", name), from: begins.saturating_add(dashes) },
        }),
        Read::Not => Verdict::No,
        Read::Incomplete => Verdict::More(candidate.end),
    }
}

/// A name as variables have it.
fn is_of_environment(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
}

/// How a quoted value opens.
#[derive(Clone, Copy, Debug)]
struct Opening {
    quote: u8,
    escapes: usize,
}

enum Read<T> {
    Is(T),
    Not,
    Incomplete,
}

/// Where a value begins, how far it is known to go, and how it goes on.
type Found = (usize, usize, Swallow);

/// Reads on behind a name, a few bytes far.
struct Reader<'t> {
    text: &'t [u8],
    at: usize,
    over: bool,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn skip(&mut self, bytes: usize) {
        self.at = self.at.saturating_add(bytes);
    }

    fn run(&self, most: usize, mut fits: impl FnMut(u8) -> bool) -> usize {
        let rest = self.text.get(self.at..).unwrap_or_default();
        rest.iter().take(most).take_while(|byte| fits(**byte)).count()
    }

    /// A quote, with the backslashes before it.
    fn quote(&mut self) -> Read<Option<Opening>> {
        let escapes = self.run(ESCAPES, |byte| byte == b'\\');
        let next = self.text.get(self.at.saturating_add(escapes)).copied();
        if next.is_none() && !self.over {
            return Read::Incomplete;
        }
        match next.filter(|byte| matches!(byte, b'"' | b'\'' | b'`')) {
            Some(quote) => {
                self.skip(escapes.saturating_add(1));
                Read::Is(Some(Opening { quote, escapes }))
            }
            None if escapes > 0 => Read::Not,
            None => Read::Is(None),
        }
    }

    /// What stands between a name and its value: `=`, `:`, `=>`, `:=`, or white space behind a flag; and how the value opens.
    fn separator(&mut self, flag: bool) -> Read<(u8, Option<Opening>)> {
        let closed = match self.quote() {
            Read::Is(quote) => quote.is_some(),
            Read::Not => return Read::Not,
            Read::Incomplete => return Read::Incomplete,
        };
        if closed && self.peek() == Some(b']') {
            self.skip(1);
        }
        let blank = |byte| matches!(byte, b' ' | b'\t');
        let blanks = self.run(BLANKS, blank);
        self.skip(blanks);
        let separator = match self.peek() {
            None => return self.short(),
            Some(byte @ (b'=' | b':')) => {
                self.skip(1);
                match (byte, self.peek()) {
                    (_, None) => return self.short(),
                    (b'=', Some(b'>')) | (b':', Some(b'=')) => self.skip(1),
                    (b'=', Some(b'=' | b'~')) | (b':', Some(b':')) => return Read::Not,
                    _ => {}
                }
                byte
            }
            Some(_) if flag && !closed && blanks > 0 => b' ',
            Some(_) => return Read::Not,
        };
        self.skip(self.run(BLANKS, blank));
        match self.quote() {
            Read::Is(_) if self.peek().is_none() => self.short(),
            Read::Is(opening) => Read::Is((separator, opening)),
            Read::Not => Read::Not,
            Read::Incomplete => Read::Incomplete,
        }
    }

    fn short<T>(&self) -> Read<T> {
        if self.over { Read::Not } else { Read::Incomplete }
    }

    /// The head of a value: as far as it goes, and no farther than a bound. Nothing when more of it may come.
    fn head(&self, ends: impl Fn(u8) -> bool) -> Option<&[u8]> {
        self.bounded(self.run(VALUE_BYTES, |byte| !ends(byte)))
    }

    /// The head of a quoted value; a quote that is escaped is part of it.
    fn quoted_head(&self, opening: Opening) -> Option<&[u8]> {
        let mut escaped = false;
        let length = self.run(VALUE_BYTES, |byte| {
            let ends = !escaped && (byte == opening.quote || matches!(byte, b'\n' | b'\r'));
            escaped = opening.escapes == 0 && byte == b'\\' && !escaped;
            !ends
        });
        let head = self.bounded(length)?;
        // Inside a string the closing quote is escaped too.
        let trailing = head.iter().rev().take_while(|byte| opening.escapes > 0 && **byte == b'\\').count();
        head.get(..head.len().saturating_sub(trailing))
    }

    fn bounded(&self, length: usize) -> Option<&[u8]> {
        let end = self.at.saturating_add(length);
        let cut = end >= self.text.len() && length < VALUE_BYTES && !self.over;
        if cut { None } else { self.text.get(self.at..end) }
    }
}

fn value(
    reader: &mut Reader<'_>,
    kind: Kind,
    place: Place,
    opening: Option<Opening>,
    separator: u8,
    of_environment: bool,
) -> Read<Found> {
    let class = if place == Place::Environment { Class::Line } else { Class::Value };
    let head = match opening {
        Some(opening) => reader.quoted_head(opening),
        None => reader.head(|byte| !class.holds(byte)),
    };
    let Some(head) = head else { return Read::Incomplete };
    if head.is_empty() || is_stand_in(head) {
        return Read::Not;
    }
    // Words in quotes are a description, unless the name is a variable's.
    if opening.is_some() && !of_environment && head.iter().any(u8::is_ascii_whitespace) {
        return Read::Not;
    }
    if !kind.takes(&Makeup::of(head), place) {
        return Read::Not;
    }
    let swallow = match opening {
        Some(Opening { quote, escapes }) => Swallow::Quoted { quote, escapes },
        // `NAME: several words` is how a listing has it.
        None if of_environment && separator == b':' && kind == Kind::Password => Swallow::Line,
        None => Swallow::Class(class),
    };
    // From the start again: what ends a quoted text is for the one who hides it to say.
    Read::Is((reader.at, reader.at, swallow))
}

/// The schemes of an `Authorization` header, and whether parameters follow that fill the line.
const SCHEMES: &[(&str, bool)] = &[
    ("bearer", false),
    ("basic", false),
    ("token", false),
    ("apikey", false),
    ("api-key", false),
    ("key", false),
    ("dpop", false),
    ("negotiate", false),
    ("digest", true),
    ("oauth", true),
    ("hmac", true),
    ("signature", true),
    ("aws4-hmac-sha256", true),
];

fn header(reader: &mut Reader<'_>, opening: Option<Opening>) -> Read<Found> {
    let start = reader.at;
    let word = |reader: &Reader<'_>| reader.head(|byte| !Class::Line.holds(byte)).map(<[u8]>::to_vec);
    let Some(first) = word(reader) else { return Read::Incomplete };
    let scheme = SCHEMES.iter().find(|(name, _)| first.eq_ignore_ascii_case(name.as_bytes()));
    let mut credential = first;
    if scheme.is_some() {
        reader.skip(credential.len());
        let blanks = reader.run(BLANKS, |byte| byte == b' ');
        reader.skip(blanks);
        if reader.peek().is_none() {
            return reader.short();
        }
        let Some(second) = word(reader) else { return Read::Incomplete };
        credential = second;
    }
    let makeup = Makeup::of(&credential);
    let fits = match scheme {
        _ if is_stand_in(&credential) => false,
        Some((_, true)) => makeup.length >= 6,
        Some(_) => {
            makeup.length >= 6 && (makeup.digits > 0 || makeup.capitals > 0 && makeup.small > 0 && makeup.length >= 8)
                || makeup.length >= 24
        }
        None => makeup.length >= 8 && makeup.is_mixed() || makeup.length >= 24,
    };
    if !fits {
        return Read::Not;
    }
    let swallow = match (scheme, opening) {
        (Some((_, true)), Some(Opening { quote, escapes })) => Swallow::Quoted { quote, escapes },
        (Some((_, true)), None) => Swallow::Line,
        _ => Swallow::Class(Class::Line),
    };
    Read::Is((start, reader.at, swallow))
}

/// Words that stand where a secret would.
const STAND_INS: &[&str] = &[
    "true",
    "false",
    "null",
    "none",
    "nil",
    "undefined",
    "unset",
    "empty",
    "yes",
    "no",
    "on",
    "off",
    "string",
    "str",
    "text",
    "integer",
    "int",
    "number",
    "bool",
    "boolean",
    "object",
    "array",
    "bytes",
    "any",
    "optional",
    "required",
    "missing",
    "invalid",
    "incorrect",
    "wrong",
    "hidden",
    "masked",
    "secret",
    "password",
    "passwd",
    "pass",
    "pwd",
    "passphrase",
    "token",
    "key",
    "apikey",
    "api_key",
    "api-key",
    "value",
    "name",
    "user",
    "username",
    "not",
    "must",
    "is",
    "should",
    "the",
    "a",
    "an",
    "default",
    "self",
    "env",
    "environment",
    "prompt",
    "ask",
    "todo",
    "tbd",
    "n/a",
    "new",
    "old",
    "current",
    "unknown",
    "ok",
    "found",
    "expired",
    "valid",
];

/// Parts of what people write where a secret would stand, and of code that fetches one.
const STAND_IN_PARTS: &[&str] = &[
    "your",
    "example",
    "placeholder",
    "***",
    "...",
    "redacted",
    "changeme",
    "change-me",
    "change_me",
    "process.env",
    "os.environ",
    "getenv",
    "env.",
    "secrets.",
    "config.",
    "settings.",
    "self.",
    "this.",
    "<",
    "•",
];

/// Beginnings of what is worked out elsewhere: variables, templates, paths, addresses, digests.
const STAND_IN_STARTS: &[&str] = &[
    "${", "$(", "$[", "%(", "%s", "%{", "%d", "{", "[", "(", "~/", "./", "../", "file:", "http://", "https://", "sha1", "sha256",
    "sha512", "md5",
];

/// Whether a value only stands where a secret would.
pub(super) fn is_stand_in(value: &[u8]) -> bool {
    let text = String::from_utf8_lossy(value).to_lowercase();
    let word = text.trim_matches(|each: char| !each.is_alphanumeric());
    let first = text.split_whitespace().next().unwrap_or_default();
    let first = first.trim_matches(|each: char| !each.is_alphanumeric() && each != '_');
    let variable =
        text.strip_prefix('$').is_some_and(|rest| rest.starts_with(|each: char| each.is_ascii_alphabetic() || each == '_'));
    let constant =
        value.contains(&b'_') && value.iter().all(|byte| byte.is_ascii_uppercase() || matches!(byte, b'_' | b'0'..=b'9'));
    let path = value.first() == Some(&b'/') && (value.len() < 32 || value.contains(&b'.'));
    let drive = value.get(1..3) == Some(b":\\");
    let call = value.contains(&b'(')
        && value
            .iter()
            .take_while(|byte| **byte != b'(')
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b':'));
    let one_sign = text.chars().next().is_some_and(|first| text.chars().all(|each| each == first));
    let crossed = text.len() >= 4 && word.chars().filter(|each| *each == 'x').count().saturating_mul(2) > text.len();
    STAND_INS.contains(&word)
        || STAND_INS.contains(&first)
        || variable
        || constant
        || path
        || drive
        || call
        || one_sign
        || crossed
        || STAND_IN_STARTS.iter().any(|start| text.starts_with(start))
        || STAND_IN_PARTS.iter().any(|part| text.contains(part))
}
