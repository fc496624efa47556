//! The calls of a reply, put together from the forms in which servers send them.
//!
//! The published form gives each call an `index`, and its id and name in the first fragment only. Real servers leave any of the three out, repeat
//! them, use one index for several whole calls, send arguments as an object, or send them a second time.

use std::collections::BTreeMap;

use mission_contract::log::ReplyCall;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::Delta;
use super::json_text::JsonText;
use crate::limits::{MODEL_ARGUMENTS_BYTES, MODEL_CALLS};

/// The members of a JSON object, unread.
pub type Members<'a> = BTreeMap<String, &'a RawValue>;

/// The calls so far.
#[derive(Debug, Default)]
pub struct Calls {
    calls: Vec<Call>,
}

#[derive(Debug, Default)]
struct Call {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    reader: JsonText,
    /// The arguments came as an object, not as text.
    as_object: bool,
    /// Members that the published form does not know, of the call and of its `function`.
    extras: Map<String, Value>,
    function_extras: Map<String, Value>,
    announced: bool,
}

/// A bound that a reply's calls passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TooMuch {
    /// More calls than allowed.
    #[error("more than {MODEL_CALLS} calls in one reply")]
    Calls,
    /// Larger arguments than allowed.
    #[error("arguments of more than {MODEL_ARGUMENTS_BYTES} bytes in one call")]
    Arguments,
}

/// One fragment of a call, or a whole one, as a server sent it.
#[derive(Debug, Default)]
struct Fragment {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: Arguments,
    extras: Map<String, Value>,
    function_extras: Map<String, Value>,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Arguments {
    #[default]
    None,
    /// A JSON string, as it came.
    Text(String),
    /// Anything else that is no null, as it came.
    Object(String),
}

impl Calls {
    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Takes the entries of one `tool_calls` list. What became known goes to `deltas`.
    ///
    /// # Errors
    /// When a bound is passed.
    pub fn entries(&mut self, entries: &[Members<'_>], deltas: &mut Vec<Delta>) -> Result<(), TooMuch> {
        let is_list = entries.len() > 1;
        for (place, entry) in entries.iter().enumerate() {
            self.take(Fragment::read(entry), is_list.then_some(place), deltas)?;
        }
        Ok(())
    }

    /// Takes the older form, in which a reply holds one call as `function_call`.
    ///
    /// # Errors
    /// When a bound is passed.
    pub fn function_call(&mut self, function: &Members<'_>, deltas: &mut Vec<Delta>) -> Result<(), TooMuch> {
        let mut fragment = Fragment { index: Some(0), ..Fragment::default() };
        fragment.read_function(function);
        self.take(fragment, None, deltas)
    }

    fn take(&mut self, fragment: Fragment, place: Option<usize>, deltas: &mut Vec<Delta>) -> Result<(), TooMuch> {
        let position = self.position(&fragment, place);
        if position >= self.calls.len() {
            if self.calls.len() as u64 >= MODEL_CALLS {
                return Err(TooMuch::Calls);
            }
            self.calls.push(Call { index: fragment.index, ..Call::default() });
        }
        let position = position.min(self.calls.len().saturating_sub(1));
        match self.calls.get_mut(position) {
            Some(call) => call.merge(fragment, position, deltas),
            None => Ok(()),
        }
    }

    /// Which call a fragment belongs to; the number of calls when it begins one. `place` is where it stands in a list of several.
    fn position(&self, fragment: &Fragment, place: Option<usize>) -> usize {
        let new = self.calls.len();
        if let Some(index) = fragment.index {
            // The last call with this index: where a server numbers all of them 0, it is the one that grows.
            let Some(at) = self.calls.iter().rposition(|call| call.index == Some(index)) else { return new };
            let begins_another = self.calls.get(at).is_some_and(|call| {
                !fragment.id.is_empty() && !call.id.is_empty() && fragment.id != call.id && !fragment.name.is_empty() && call.is_complete()
            });
            return if begins_another { new } else { at };
        }
        if !fragment.id.is_empty() {
            return self.calls.iter().rposition(|call| call.id == fragment.id).unwrap_or(new);
        }
        let last = new.saturating_sub(1);
        if !fragment.name.is_empty() {
            return match self.calls.get(last) {
                Some(call) if call.name.is_empty() => last,
                Some(call) if call.name == fragment.name && !call.arguments.is_empty() && !call.is_complete() => last,
                _ => new,
            };
        }
        place.filter(|place| *place < new).unwrap_or(last)
    }

    /// The reply is over: names that nobody was told yet, for calls whose arguments never came.
    pub fn announce_rest(&mut self, deltas: &mut Vec<Delta>) {
        for (position, call) in self.calls.iter_mut().enumerate() {
            call.announce(position, deltas);
        }
    }

    /// The calls, in the order in which they began. An id that was used before is left empty: it names another call. The second value says how
    /// often arguments had come twice.
    pub fn finish(self) -> (Vec<ReplyCall>, u64) {
        let mut doubled: u64 = 0;
        let mut calls: Vec<ReplyCall> = Vec::with_capacity(self.calls.len());
        for call in self.calls {
            let id = if calls.iter().any(|earlier| earlier.id == call.id) { String::new() } else { call.id };
            let mut opaque = call.extras;
            if !call.function_extras.is_empty() {
                opaque.insert("function".to_owned(), Value::Object(call.function_extras));
            }
            let arguments = match first_of_two(&call.arguments) {
                Some(once) => {
                    doubled = doubled.saturating_add(1);
                    once.to_owned()
                }
                None => call.arguments,
            };
            calls.push(ReplyCall { id, name: call.name, arguments, opaque: (!opaque.is_empty()).then_some(Value::Object(opaque)) });
        }
        (calls, doubled)
    }
}

impl Call {
    fn is_complete(&self) -> bool {
        !self.name.is_empty() && is_json(&self.arguments)
    }

    fn merge(&mut self, fragment: Fragment, position: usize, deltas: &mut Vec<Delta>) -> Result<(), TooMuch> {
        if self.id.is_empty() {
            self.id = fragment.id;
        }
        if !fragment.name.is_empty() && !self.announced {
            // Usually it comes once; some servers repeat it, some let it grow, some cut it.
            if fragment.name.starts_with(&self.name) {
                self.name = fragment.name;
            } else {
                self.name.push_str(&fragment.name);
            }
        }
        self.extras.extend(fragment.extras);
        self.function_extras.extend(fragment.function_extras);
        let piece = match fragment.arguments {
            Arguments::None => String::new(),
            Arguments::Text(raw) => self.reader.read(&raw).unwrap_or_default(),
            // An empty object in front of text fragments is only a placeholder, and one that follows an object replaces it.
            Arguments::Object(object) => {
                if self.as_object {
                    self.arguments.clear();
                }
                let is_placeholder = self.arguments.is_empty() && is_empty_object(&object);
                self.as_object = !is_placeholder;
                if is_placeholder { String::new() } else { object }
            }
        };
        if !piece.is_empty() {
            if self.arguments.len().saturating_add(piece.len()) as u64 > MODEL_ARGUMENTS_BYTES {
                return Err(TooMuch::Arguments);
            }
            self.arguments.push_str(&piece);
            self.announce(position, deltas);
            deltas.push(Delta::CallArguments { position, fragment: piece });
        } else if !self.arguments.is_empty() {
            self.announce(position, deltas);
        }
        Ok(())
    }

    fn announce(&mut self, position: usize, deltas: &mut Vec<Delta>) {
        if !self.announced && !self.name.is_empty() {
            self.announced = true;
            deltas.push(Delta::CallName { position, name: self.name.clone() });
        }
    }
}

impl Fragment {
    fn read(entry: &Members<'_>) -> Self {
        let mut fragment = Self::default();
        for (key, value) in entry {
            match key.as_str() {
                "index" => fragment.index = number(value),
                "id" => fragment.id = text(value).unwrap_or_default(),
                "type" => {}
                "function" => {
                    if let Ok(function) = serde_json::from_str::<Members<'_>>(value.get()) {
                        fragment.read_function(&function);
                    }
                }
                _ => keep(&mut fragment.extras, key, value),
            }
        }
        fragment
    }

    fn read_function(&mut self, function: &Members<'_>) {
        for (key, value) in function {
            match key.as_str() {
                "name" => self.name = text(value).unwrap_or_default(),
                "arguments" => {
                    self.arguments = match value.get() {
                        "null" => Arguments::None,
                        raw if raw.starts_with('"') => Arguments::Text(raw.to_owned()),
                        raw => Arguments::Object(raw.to_owned()),
                    }
                }
                _ => keep(&mut self.function_extras, key, value),
            }
        }
    }
}

/// A JSON string's text.
pub fn text(value: &RawValue) -> Option<String> {
    if value.get().starts_with('"') { serde_json::from_str(value.get()).ok() } else { None }
}

/// A number, also where a server writes it as text.
fn number(value: &RawValue) -> Option<u64> {
    serde_json::from_str(value.get()).ok().or_else(|| text(value)?.parse().ok())
}

fn keep(extras: &mut Map<String, Value>, key: &str, value: &RawValue) {
    if value.get() != "null"
        && let Ok(value) = serde_json::from_str(value.get())
    {
        extras.insert(key.to_owned(), value);
    }
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

fn is_empty_object(raw: &str) -> bool {
    serde_json::from_str::<Members<'_>>(raw).is_ok_and(|members| members.is_empty())
}

/// Some servers stream arguments and then send them once more, whole: the first half, when that is what this is.
fn first_of_two(arguments: &str) -> Option<&str> {
    let half = arguments.len() / 2;
    let (first, second) = arguments.split_at_checked(half)?;
    (half > 0 && first == second && first.trim_start().starts_with('{') && is_json(first)).then_some(first)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn put_together(chunks: &[&str]) -> (Vec<ReplyCall>, u64, Vec<Delta>) {
        let mut calls = Calls::default();
        let mut deltas = Vec::new();
        for chunk in chunks {
            let entries: Vec<Members<'_>> = serde_json::from_str(chunk).unwrap();
            calls.entries(&entries, &mut deltas).unwrap();
        }
        calls.announce_rest(&mut deltas);
        let (calls, doubled) = calls.finish();
        (calls, doubled, deltas)
    }

    fn shown(chunks: &[&str]) -> Vec<String> {
        put_together(chunks).0.into_iter().map(|call| format!("{}:{}({})", call.id, call.name, call.arguments)).collect()
    }

    #[test]
    fn the_published_form() {
        let (calls, doubled, deltas) = put_together(&[
            r#"[{"index":0,"id":"a","type":"function","function":{"name":"one","arguments":""}}]"#,
            r#"[{"index":0,"function":{"arguments":"{\"x\":"}}]"#,
            r#"[{"index":1,"id":"b","type":"function","function":{"name":"two","arguments":"{}"}}]"#,
            r#"[{"index":0,"function":{"arguments":"1}"}}]"#,
        ]);
        assert_eq!(calls.iter().map(|call| call.arguments.as_str()).collect::<Vec<_>>(), [r#"{"x":1}"#, "{}"]);
        assert_eq!(doubled, 0);
        assert_eq!(
            deltas,
            [
                Delta::CallName { position: 0, name: "one".to_owned() },
                Delta::CallArguments { position: 0, fragment: r#"{"x":"#.to_owned() },
                Delta::CallName { position: 1, name: "two".to_owned() },
                Delta::CallArguments { position: 1, fragment: "{}".to_owned() },
                Delta::CallArguments { position: 0, fragment: "1}".to_owned() },
            ]
        );
    }

    #[test]
    fn index_id_and_name_may_be_missing() {
        assert_eq!(shown(&[r#"[{"function":{"name":"echo","arguments":"{}"}}]"#]), [":echo({})"]);
        assert_eq!(
            shown(&[r#"[{"function":{"name":"a","arguments":{"n":1}}}]"#, r#"[{"function":{"name":"b","arguments":{"n":18446744073709551617}}}]"#]),
            [r#":a({"n":1})"#, r#":b({"n":18446744073709551617})"#]
        );
        assert_eq!(
            shown(&[r#"[{"id":"c1","function":{"arguments":""}}]"#, r#"[{"function":{"name":"echo"}}]"#, r#"[{"function":{"arguments":"{}"}}]"#]),
            ["c1:echo({})"]
        );
        assert_eq!(
            shown(&[r#"[{"index":0,"id":"c1","function":{"name":"e","arguments":null}}]"#, r#"[{"index":"0","function":{"arguments":"{}"}}]"#]),
            ["c1:e({})"]
        );
        assert_eq!(shown(&[r#"[{"index":0,"function":{"name":null,"arguments":"{}"}}]"#]), [":({})"]);
        assert_eq!(
            shown(&[r#"[{"function":{"name":"a"}},{"function":{"name":"b"}}]"#, r#"[{"function":{"arguments":"1"}},{"function":{"arguments":"2"}}]"#]),
            [":a(1)", ":b(2)"]
        );
    }

    #[test]
    fn one_index_for_several_whole_calls() {
        assert_eq!(
            shown(&[
                r#"[{"index":0,"id":"a","function":{"name":"one","arguments":"{}"}}]"#,
                r#"[{"index":0,"id":"b","function":{"name":"two","arguments":"{}"}}]"#,
            ]),
            ["a:one({})", "b:two({})"]
        );
        // A fresh id on each fragment of the same call begins no other.
        assert_eq!(
            shown(&[r#"[{"index":0,"id":"a","function":{"name":"one","arguments":"{"}}]"#, r#"[{"index":0,"id":"b","function":{"arguments":"}"}}]"#]),
            ["a:one({})"]
        );
    }

    #[test]
    fn an_id_used_twice_names_the_first_only() {
        assert_eq!(
            shown(&[r#"[{"index":0,"id":"s","function":{"name":"e","arguments":"1"}},{"index":1,"id":"s","function":{"name":"e","arguments":"2"}}]"#]),
            ["s:e(1)", ":e(2)"]
        );
    }

    #[test]
    fn arguments_that_come_twice_count_once() {
        let whole = r#"[{"index":0,"id":"a","function":{"name":"e","arguments":"{\"t\":\"x\"}"}}]"#;
        let (calls, doubled, _) = put_together(&[whole, whole]);
        assert_eq!((calls.first().unwrap().arguments.as_str(), doubled), (r#"{"t":"x"}"#, 1));
        // Not doubled but wrong: kept as it came.
        assert_eq!(shown(&[r#"[{"index":0,"id":"a","function":{"name":"e","arguments":"\"t\":\"x\"}"}}]"#]), [r#"a:e("t":"x"})"#]);
        assert_eq!(shown(&[r#"[{"index":0,"id":"a","function":{"name":"e","arguments":"11"}}]"#]), ["a:e(11)"]);
    }

    #[test]
    fn names_repeat_grow_or_come_in_pieces() {
        let fragment = |name: &str, arguments: &str| format!(r#"[{{"index":0,"function":{{"name":"{name}","arguments":"{arguments}"}}}}]"#);
        for names in [["get_time", "get_time"], ["get_", "time"], ["get_", "get_time"]] {
            let chunks = [fragment(names[0], ""), fragment(names[1], ""), fragment("", "{}")];
            let chunks: Vec<&str> = chunks.iter().map(String::as_str).collect();
            let (calls, _, deltas) = put_together(&chunks);
            assert_eq!(calls.first().unwrap().name, "get_time");
            assert_eq!(deltas.iter().filter(|delta| matches!(delta, Delta::CallName { name, .. } if name == "get_time")).count(), 1);
        }
    }

    #[test]
    fn an_object_may_stand_in_front_of_text_or_grow() {
        assert_eq!(
            shown(&[r#"[{"index":0,"function":{"name":"e","arguments":{}}}]"#, r#"[{"index":0,"function":{"arguments":"{\"a\":1}"}}]"#]),
            [r#":e({"a":1})"#]
        );
        assert_eq!(
            shown(&[r#"[{"index":0,"function":{"name":"e","arguments":{"a":1}}}]"#, r#"[{"index":0,"function":{"arguments":{"a":1,"b":2}}}]"#]),
            [r#":e({"a":1,"b":2})"#]
        );
    }

    #[test]
    fn unknown_members_are_kept_for_the_provider() {
        let (calls, _, _) = put_together(&[
            r#"[{"index":0,"id":"a","type":"function","extra_content":{"google":{"thought_signature":"x"}},"function":{"name":"e","arguments":"{}","strict":true}}]"#,
        ]);
        assert_eq!(
            calls.first().unwrap().opaque,
            Some(serde_json::json!({"extra_content": {"google": {"thought_signature": "x"}}, "function": {"strict": true}}))
        );
    }

    #[test]
    fn bounds_hold() {
        let mut calls = Calls::default();
        let mut deltas = Vec::new();
        for index in 0..=MODEL_CALLS {
            let entry = format!(r#"{{"index":{index},"function":{{"name":"e"}}}}"#);
            let outcome = calls.entries(&[serde_json::from_str(&entry).unwrap()], &mut deltas);
            assert_eq!(outcome.err(), (index == MODEL_CALLS).then_some(TooMuch::Calls));
        }
    }
}
