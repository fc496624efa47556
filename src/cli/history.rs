//! `--history`: earlier turns that a conversation begins with.

use std::path::Path;

use mission_contract::log::Role;
use mission_contract::spec::HistoryTurn;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::environment::{Environment, Stated};
use super::error::{CliError, quoted};
use super::personality::{at, text_of};
use crate::limits;
use crate::skill::{Problem, shown};

/// The turns of the file that the command line names, if it does.
///
/// # Errors
/// A file that cannot be read, or holds something else.
pub(super) fn of(typed: Option<&str>, environment: &Environment) -> Result<Vec<HistoryTurn>, CliError> {
    let Some(stated) = Stated::either("--history", typed, environment, "MISSION_HISTORY") else { return Ok(Vec::new()) };
    let text = text_of(&stated, Path::new(&stated.value), limits::HISTORY_BYTES)?;
    parse(&text).map_err(|problem| CliError::File {
        place: stated.place.to_owned(),
        file: quoted(&stated.value),
        problem: problem.to_string(),
    })
}

/// A turn as it is written; keys that nobody here knows are passed over.
#[derive(Deserialize)]
struct Written<'t> {
    #[serde(borrow)]
    role: Option<&'t RawValue>,
    #[serde(borrow)]
    content: Option<&'t RawValue>,
}

fn parse(text: &str) -> Result<Vec<HistoryTurn>, Problem> {
    let raw: Vec<&RawValue> = serde_json::from_str(text).map_err(|error| {
        let Problem { line, column, what } = at(&error);
        Problem::at(line, column, format!("{what}; earlier turns are a list of objects with `role` and `content`"))
    })?;
    let most = limits::size(limits::HISTORY_TURNS);
    if raw.len() > most {
        return Err(Problem::at(0, 0, format!("it has {} turns, and at most {most} are taken; leave the oldest out", raw.len())));
    }
    let mut characters = 0usize;
    let mut turns = Vec::new();
    for (index, raw) in raw.into_iter().enumerate() {
        let turn = turn(raw.get()).map_err(|what| {
            let (line, column) = place(text, raw.get());
            Problem::at(line, column, format!("turn {index} (from 0) {what}"))
        })?;
        characters = characters.saturating_add(turn.content.chars().count());
        if characters > limits::size(limits::HISTORY_CHARACTERS) {
            let (line, column) = place(text, raw.get());
            let most = limits::HISTORY_CHARACTERS;
            let what = format!("with turn {index} (from 0) it has {characters} characters, and at most {most} are taken");
            return Err(Problem::at(line, column, what));
        }
        turns.push(turn);
    }
    Ok(turns)
}

fn turn(raw: &str) -> Result<HistoryTurn, String> {
    if !raw.starts_with('{') {
        return Err("is no object with `role` and `content`".to_owned());
    }
    let written: Written<'_> = serde_json::from_str(raw).map_err(|error| format!("cannot be read: {}", at(&error).what))?;
    let role = match written.role.map(RawValue::get) {
        Some("\"user\"") => Role::User,
        Some("\"assistant\"") => Role::Assistant,
        Some(other) => return Err(format!("has the role {}; it is \"user\" or \"assistant\"", shown(other))),
        None => return Err("has no `role`; it is \"user\" or \"assistant\"".to_owned()),
    };
    let content = written.content.ok_or("has no `content`; it is a text")?;
    let content = serde_json::from_str(content.get()).map_err(|_| "has a `content` that is no text".to_owned())?;
    Ok(HistoryTurn { role, content })
}

/// Where a piece of a text stands in it.
fn place(text: &str, piece: &str) -> (u64, u64) {
    let offset = (piece.as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
    let before = text.get(..offset).unwrap_or_default();
    let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX).saturating_add(1);
    (number(before.matches('\n').count()), number(before.rsplit('\n').next().map_or(0, |last| last.chars().count())))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    fn refused(text: &str) -> String {
        parse(text).unwrap_err().to_string()
    }

    #[test]
    fn turns_are_read_and_other_keys_passed_over() {
        let turns = parse(r#"[{"role": "user", "content": "a\nb", "at": 1}, {"content": "", "role": "assistant"}]"#).unwrap();
        assert_eq!(turns.iter().map(|turn| turn.content.as_str()).collect::<Vec<_>>(), ["a\nb", ""]);
        assert_eq!(parse("[]").unwrap(), []);
    }

    #[test]
    fn what_is_no_history_is_refused_with_its_place() {
        insta::assert_snapshot!(refused("{\"role\": \"user\"}"), @"line 1, column 1: invalid type: map, expected a sequence; earlier turns are a list of objects with `role` and `content`");
        insta::assert_snapshot!(refused("[\n{\"role\": \"user\", \"content\": \"a\"},\n  7]"), @"line 3, column 3: turn 1 (from 0) is no object with `role` and `content`");
        insta::assert_snapshot!(refused("[{\"role\": \"system\", \"content\": \"a\"}]"), @r#"line 1, column 2: turn 0 (from 0) has the role \"system\"; it is "user" or "assistant""#);
        insta::assert_snapshot!(refused("[\n [\"user\", \"a\"]]"), @"line 2, column 2: turn 0 (from 0) is no object with `role` and `content`");
        insta::assert_snapshot!(refused("[{\"role\": \"user\"}]"), @"line 1, column 2: turn 0 (from 0) has no `content`; it is a text");
        insta::assert_snapshot!(refused("[{\"role\": \"user\", \"content\": [\"a\"]}]"), @"line 1, column 2: turn 0 (from 0) has a `content` that is no text");
        insta::assert_snapshot!(refused("[{\"role\": \"user\", \"role\": \"user\", \"content\": \"a\"}]"), @"line 1, column 2: turn 0 (from 0) cannot be read: duplicate field `role`");
        insta::assert_snapshot!(refused("[{\"content\": \"a\"}]"), @r#"line 1, column 2: turn 0 (from 0) has no `role`; it is "user" or "assistant""#);
        insta::assert_snapshot!(refused("[{]"), @"line 1, column 3: key must be a string; earlier turns are a list of objects with `role` and `content`");
        let turn = |content: &str| format!("{{\"role\": \"user\", \"content\": \"{content}\"}}");
        insta::assert_snapshot!(refused(&format!("[{}]", vec![turn("a"); 101].join(","))), @"it has 101 turns, and at most 100 are taken; leave the oldest out");
        insta::assert_snapshot!(refused(&format!("[{},\n{}]", turn("a"), turn(&"é".repeat(262_144)))), @"line 2, column 1: with turn 1 (from 0) it has 262145 characters, and at most 262144 are taken");
        assert_eq!(parse(&format!("[{}]", turn(&"é".repeat(262_144)))).unwrap().len(), 1);
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[\\[\\]{}\",: a-z\\n]{0,80}") {
            let _ = parse(&text);
        }
    }
}
