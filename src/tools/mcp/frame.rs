//! What one line of a server is: a message of the protocol, several of them, a damaged one, or noise. Pure.
//!
//! The outline of a message (its `id`, `method`, `result`, …) is found by a scan that neither recurses nor copies nor decodes,
//! and that knows how far it came when the rest is damaged. The parts are parsed by whoever wants them.

use std::ops::Range;

use memchr::memchr2;

/// The id of a request, or the token of a progress. A number and the text of that number are one: servers mix them up.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Id {
    /// A whole number.
    Number(i64),
    /// Anything else.
    Text(String),
}

impl Id {
    /// What the bytes of a JSON value say; nothing for what is no id.
    pub(crate) fn read(bytes: &[u8]) -> Option<Id> {
        match serde_json::from_slice(bytes).ok()? {
            serde_json::Value::Number(number) => number.as_i64().or_else(|| whole(number.as_f64()?)).map(Id::Number),
            serde_json::Value::String(text) => Some(text.parse().map_or(Id::Text(text), Id::Number)),
            _ => None,
        }
    }
}

/// `3.0` as some servers write 3.
fn whole(number: f64) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    // Within that bound a float without a fraction is exactly an i64.
    #[allow(clippy::cast_possible_truncation)]
    (number.fract() == 0.0 && number.abs() <= EXACT).then_some(number as i64)
}

/// Where the parts of a message lie in its line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outline {
    /// It says `"jsonrpc": "2.0"`.
    pub(crate) is_protocol: bool,
    /// Its `id`, when there is one and it is not null.
    pub(crate) id: Option<Range<usize>>,
    /// Its `method`.
    pub(crate) method: Option<Range<usize>>,
    /// Its `params`.
    pub(crate) params: Option<Range<usize>>,
    /// Its `result`.
    pub(crate) result: Option<Range<usize>>,
    /// Its `error`.
    pub(crate) error: Option<Range<usize>>,
}

/// A line that begins as an object and is none.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Damaged {
    /// What was found before the damage.
    pub(crate) outline: Outline,
    /// Where it is, in bytes from the start of the line.
    pub(crate) at: usize,
}

/// The part of a line at a range.
pub(crate) fn part<'a>(line: &'a [u8], range: Option<&Range<usize>>) -> Option<&'a [u8]> {
    line.get(range?.clone())
}

/// What kind of thing a line is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Nothing but white space.
    Blank,
    /// An object: an outline.
    Object(Outline),
    /// An array that holds objects: the ranges of its elements.
    Batch(Vec<Range<usize>>),
    /// It begins as an object and breaks off or goes wrong.
    Damaged(Damaged),
    /// Anything else.
    Other,
}

/// Looks at a line.
pub(crate) fn shape(line: &[u8]) -> Shape {
    let start = skip_space(line, 0);
    match line.get(start) {
        None => Shape::Blank,
        Some(b'{') => object(line, start),
        Some(b'[') => match elements(line, start) {
            Some(elements) if !elements.is_empty() && elements.iter().all(|range| line.get(range.start) == Some(&b'{')) => {
                Shape::Batch(elements)
            }
            _ => Shape::Other,
        },
        Some(_) => Shape::Other,
    }
}

fn object(line: &[u8], start: usize) -> Shape {
    let mut outline = Outline::default();
    let mut seen = Vec::new();
    let read = members(line, start, |key, value| {
        // One key twice is two messages in one: which of them is meant is not for us to say.
        if KEYS.contains(&key) && seen.contains(&key) {
            return false;
        }
        seen.push(key);
        let bytes = line.get(value.clone()).unwrap_or_default();
        let present = (bytes != b"null").then_some(value);
        match key {
            b"jsonrpc" => outline.is_protocol = bytes == br#""2.0""#,
            b"id" => outline.id = present,
            b"method" => outline.method = present,
            b"params" => outline.params = present,
            b"result" => outline.result = present,
            b"error" => outline.error = present,
            _ => {}
        }
        true
    });
    match read {
        Ok(()) => Shape::Object(outline),
        Err(at) => Shape::Damaged(Damaged { outline, at }),
    }
}

const KEYS: &[&[u8]] = &[b"jsonrpc", b"id", b"method", b"params", b"result", b"error"];

/// Walks over the members of the object that begins at `start` and is to be all there is; says where it went wrong.
fn members<'a>(line: &'a [u8], start: usize, mut each: impl FnMut(&'a [u8], Range<usize>) -> bool) -> Result<(), usize> {
    let mut at = skip_space(line, after(start));
    if line.get(at) == Some(&b'}') {
        return ends(line, after(at));
    }
    loop {
        if line.get(at) != Some(&b'"') {
            return Err(at);
        }
        let end = skip_string(line, at).ok_or(line.len())?;
        let key = line.get(after(at)..end.saturating_sub(1)).ok_or(at)?;
        at = skip_space(line, end);
        if line.get(at) != Some(&b':') {
            return Err(at);
        }
        at = skip_space(line, after(at));
        let Some(end) = skip_value(line, at) else {
            // It breaks off in here; what it was to be is known all the same.
            each(key, at..line.len());
            return Err(line.len());
        };
        if end == at || !each(key, at..end) {
            return Err(at);
        }
        at = skip_space(line, end);
        match line.get(at) {
            Some(b',') => at = skip_space(line, after(at)),
            Some(b'}') => return ends(line, after(at)),
            _ => return Err(at),
        }
    }
}

fn ends(line: &[u8], at: usize) -> Result<(), usize> {
    let at = skip_space(line, at);
    if at == line.len() { Ok(()) } else { Err(at) }
}

/// The elements of the array that begins at `start` and is to be all there is.
fn elements(line: &[u8], start: usize) -> Option<Vec<Range<usize>>> {
    let mut elements = Vec::new();
    let mut at = skip_space(line, after(start));
    if line.get(at) == Some(&b']') {
        return ends(line, after(at)).is_ok().then_some(elements);
    }
    loop {
        let end = skip_value(line, at).filter(|end| *end > at)?;
        elements.push(at..end);
        at = skip_space(line, end);
        match line.get(at)? {
            b',' => at = skip_space(line, after(at)),
            b']' => return ends(line, after(at)).is_ok().then_some(elements),
            _ => return None,
        }
    }
}

fn after(at: usize) -> usize {
    at.saturating_add(1)
}

fn skip_space(line: &[u8], at: usize) -> usize {
    let blank = line.get(at..).unwrap_or_default().iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n')).count();
    at.saturating_add(blank)
}

/// The end of the string that begins at `at`.
fn skip_string(line: &[u8], at: usize) -> Option<usize> {
    let mut at = after(at);
    loop {
        at = at.checked_add(memchr2(b'"', b'\\', line.get(at..)?)?)?;
        if line.get(at) == Some(&b'"') {
            return Some(after(at));
        }
        at = at.saturating_add(2);
    }
}

/// The end of the value that begins at `at`. What is between its outer brackets is only counted.
fn skip_value(line: &[u8], mut at: usize) -> Option<usize> {
    let mut open = 0usize;
    loop {
        match line.get(at)? {
            b'"' => {
                at = skip_string(line, at)?;
            }
            b'{' | b'[' => {
                open = open.checked_add(1)?;
                at = after(at);
            }
            b'}' | b']' => {
                open = open.checked_sub(1)?;
                at = after(at);
            }
            _ if open > 0 => at = after(at),
            _ => {
                let rest = line.get(at..)?;
                let length = rest.iter().position(|byte| matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n'))?;
                return at.checked_add(length);
            }
        }
        if open == 0 {
            return Some(at);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn outline_of(line: &[u8]) -> Outline {
        match shape(line) {
            Shape::Object(outline) => outline,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn ids_are_read_as_servers_write_them() {
        for (text, id) in [
            ("7", Some(Id::Number(7))),
            ("\"7\"", Some(Id::Number(7))),
            ("7.0", Some(Id::Number(7))),
            ("-1", Some(Id::Number(-1))),
            ("\"probe-1\"", Some(Id::Text("probe-1".to_owned()))),
            ("7.5", None),
            ("1e300", None),
            ("null", None),
            ("[7]", None),
        ] {
            assert_eq!(Id::read(text.as_bytes()), id, "{text}");
        }
    }

    #[test]
    fn an_outline_is_found_in_any_order_and_spacing() {
        let line = br#" {"result": {"content":[{"text":"a\"}\\"}]} , "id" :3, "jsonrpc":"2.0","extra":[1,{"id":9}]} "#;
        let outline = outline_of(line);
        assert!(outline.is_protocol);
        assert_eq!(part(line, outline.id.as_ref()), Some(&b"3"[..]));
        assert_eq!(part(line, outline.result.as_ref()), Some(&br#"{"content":[{"text":"a\"}\\"}]}"#[..]));
        assert_eq!(outline.method, None);
        let outline = outline_of(br#"{"id":null,"error":{},"jsonrpc":"1.0"}"#);
        assert!(!outline.is_protocol);
        assert_eq!((outline.id, outline.error.is_some()), (None, true));
        assert_eq!(outline_of(b"{}"), Outline::default());
    }

    #[test]
    fn what_is_no_message_is_told_apart() {
        assert_eq!(shape(b" \t"), Shape::Blank);
        for noise in ["Server v1.2 ready", "42", "[]", "[1,2]", "[{},3]", "\"text\"", "[2026-12-01] INFO x", "\u{1F680}"] {
            assert_eq!(shape(noise.as_bytes()), Shape::Other, "{noise}");
        }
        assert!(matches!(shape(br#"[{"id":1},{"id":2}]"#), Shape::Batch(elements) if elements.len() == 2));
    }

    #[test]
    fn damage_is_found_after_what_is_whole() {
        for line in [
            &br#"{"jsonrpc":"2.0","id":5,"result":{"a":1},}"#[..],
            br#"{"jsonrpc":"2.0","id":5,"result":{"a":[1,2}"#,
            br#"{"jsonrpc":"2.0","id":5,"result":"open"#,
            br#"{"jsonrpc":"2.0","id":5} trailing"#,
            br#"{"jsonrpc":"2.0","id":5,"id":6}"#,
            br#"{"jsonrpc":"2.0","id":5,'result':1}"#,
            br#"{"jsonrpc":"2.0","id":5 /* five */,"result":1}"#,
        ] {
            match shape(line) {
                Shape::Damaged(damaged) => {
                    assert_eq!(part(line, damaged.outline.id.as_ref()), Some(&b"5"[..]));
                    assert!(damaged.at <= line.len());
                }
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn depth_costs_no_stack() {
        let deep = format!(r#"{{"id":1,"result":{}{}}}"#, "[".repeat(1_000_000), "]".repeat(1_000_000));
        assert!(outline_of(deep.as_bytes()).result.is_some());
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::btree_map(any::<String>(), inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_outline_of_any_message_holds_its_parts(result in any_value(), id in any::<i64>()) {
            let line = json!({"jsonrpc": "2.0", "id": id, "result": result, "params": [result]}).to_string().into_bytes();
            let outline = outline_of(&line);
            let read = |range: Option<&Range<usize>>| part(&line, range).map(|bytes| serde_json::from_slice::<Value>(bytes).unwrap());
            prop_assert_eq!(read(outline.result.as_ref()).unwrap_or(Value::Null), result);
            prop_assert_eq!(Id::read(part(&line, outline.id.as_ref()).unwrap()), Some(Id::Number(id)));
        }

        #[test]
        fn any_bytes_have_a_shape(bytes in proptest::collection::vec(prop_oneof![
            Just(b'{'), Just(b'}'), Just(b'['), Just(b']'), Just(b'"'), Just(b'\\'), Just(b':'), Just(b','), Just(b' '), any::<u8>()
        ], 0..64)) {
            shape(&bytes);
        }
    }
}
