//! The credentials that a recording redacts. A log keeps what came in as it was, and what went out redacted: the two together say which
//! values were taken out. A replay knows no credential of the run that it repeats, and must not let one out that the run held back.

use std::collections::BTreeMap;

use mission_contract::event::Event;
use serde_json::Value;

use super::fields::{Part, part};
use super::player::Player;
use super::recording::{Recording, Told};
use crate::redact::Redactor;

/// What stands before the name in a placeholder, and behind it.
const START: &str = "<redacted:";
const END: char = '>';

/// The credentials that were held back when this was recorded, each with its name: what replaying its inputs lets out where the recording
/// has a placeholder.
pub fn learn(recording: &Recording) -> Vec<(String, String)> {
    let told = recording.groups.iter().flat_map(|group| group.decisions.iter().chain(&group.told));
    if !told.into_iter().any(|told| told.record.get().contains(START)) {
        return Vec::new();
    }
    let mut decisions = recording.groups.iter().flat_map(|group| &group.decisions);
    let mut others = recording.groups.iter().flat_map(|group| &group.told);
    let mut player = Player::new(recording, recording.open.clone(), Redactor::default());
    let mut learned = BTreeMap::new();
    // A recording that cannot be replayed is refused elsewhere.
    while let Ok(Some(events)) = player.advance() {
        for event in &events {
            // The ending of a stretch that was carried on is not let out again.
            let same = |told: &&Told| told.fields().get("event").is_some_and(|name| name == event.name());
            let told = match part(event.name(), recording.source) {
                Part::Decides => decisions.find(same),
                Part::Tells => others.find(same),
                Part::Neither => continue,
            };
            if let Some(told) = told.filter(|told| told.record.get().contains(START)) {
                compare(&Value::Object(told.fields()), &plain(event), &mut learned);
            }
        }
    }
    learned.into_iter().map(|(value, name)| (name, value)).collect()
}

fn plain(event: &Event) -> Value {
    serde_json::to_value(event).unwrap_or_default()
}

fn compare(recorded: &Value, replayed: &Value, learned: &mut BTreeMap<String, String>) {
    match (recorded, replayed) {
        (Value::String(recorded), Value::String(replayed)) => held_back(recorded, replayed, learned),
        (Value::Array(recorded), Value::Array(replayed)) => {
            recorded.iter().zip(replayed).for_each(|(recorded, replayed)| compare(recorded, replayed, learned));
        }
        (Value::Object(recorded), Value::Object(replayed)) => {
            for (key, recorded) in recorded {
                if let Some(replayed) = replayed.get(key) {
                    compare(recorded, replayed, learned);
                }
            }
        }
        _ => {}
    }
}

/// The values in `replayed` where `recorded` has placeholders: nothing unless all around them is the same.
fn held_back(recorded: &str, replayed: &str, learned: &mut BTreeMap<String, String>) {
    let mut found = Vec::new();
    let (mut recorded, mut replayed) = (recorded, replayed);
    let mut name: Option<&str> = None;
    loop {
        let (literal, next) = match recorded.split_once(START) {
            Some((literal, rest)) => match rest.split_once(END) {
                Some((next, rest)) => (literal, Some((next, rest))),
                None => return,
            },
            None => (recorded, None),
        };
        let at = match (name, next) {
            (None, _) if replayed.starts_with(literal) => Some(0),
            (None, _) => None,
            (Some(_), None) if replayed.ends_with(literal) => replayed.len().checked_sub(literal.len()),
            (Some(_), _) => replayed.find(literal),
        };
        let Some(at) = at else { return };
        if let Some(name) = name {
            found.push((replayed.get(..at).unwrap_or_default().to_owned(), name.to_owned()));
        }
        replayed = replayed.get(at.saturating_add(literal.len())..).unwrap_or_default();
        match next {
            Some((next, rest)) => (name, recorded) = (Some(next), rest),
            None => break,
        }
    }
    learned.extend(found.into_iter().filter(|(value, _)| !value.is_empty() && !value.contains(START)));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learned(recorded: &str, replayed: &str) -> Vec<(String, String)> {
        let mut learned = BTreeMap::new();
        held_back(recorded, replayed, &mut learned);
        learned.into_iter().collect()
    }

    #[test]
    fn what_stands_where_a_placeholder_is_was_held_back() {
        let one = |value: &str, name: &str| (value.to_owned(), name.to_owned());
        assert_eq!(learned("a <redacted:KEY> b", "a hunter22 b"), [one("hunter22", "KEY")]);
        assert_eq!(learned("<redacted:KEY>", "hunter22"), [one("hunter22", "KEY")]);
        assert_eq!(learned("x<redacted:A>, <redacted:B>", "x11111111, 22222222"), [one("11111111", "A"), one("22222222", "B")]);
        assert_eq!(learned("other <redacted:KEY>", "a hunter22"), []);
        assert_eq!(learned("a <redacted:KEY> c", "a hunter22 b"), []);
        assert_eq!(learned("a <redacted:KEY>", "a <redacted:KEY>"), []);
        assert_eq!(learned("a <redacted:KEY", "a b"), []);
    }
}
