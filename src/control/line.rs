//! One line of the channel: a JSON object with its word under `control`, taken whole or not at all.

use mission_contract::log::{Control, ControlSource};
use mission_contract::vocabulary::control_word;
use serde::Deserialize;
use serde_json::Value;

use crate::limits;

/// A line that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unusable {
    /// Its id, when one was read.
    pub(super) id: Option<String>,
    /// Its word, as far as one was read.
    pub(super) word: String,
    /// Why, the end of a sentence that begins with the line.
    pub(super) problem: String,
    /// True when nobody knows the word: told once a word.
    pub(super) is_unknown: bool,
}

/// The fields that any word has; what else stands in a line is not ours. One that stands there twice is refused.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Fields {
    control: Option<Value>,
    id: Option<Value>,
    text: Option<Value>,
    approval_id: Option<Value>,
    approve: Option<Value>,
    decided_by: Option<Value>,
    note: Option<Value>,
    answer: Option<Value>,
}

/// Reads a line.
pub(super) fn read(line: &[u8]) -> Result<Control, Unusable> {
    let text = String::from_utf8_lossy(line);
    let unreadable = |problem: &str| Unusable {
        id: None,
        word: String::new(),
        problem: format!("{problem}: {}", shown(text.trim(), limits::CONTROL_QUOTED_CHARACTERS)),
        is_unknown: false,
    };
    if !text.trim_start().starts_with('{') {
        return Err(unreadable("is no JSON object"));
    }
    let fields: Fields = serde_json::from_str(&text).map_err(|error| unreadable(&format!("cannot be read ({error})")))?;
    let id = match &fields.id {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(id)) => Ok(Some(id.clone())),
        Some(Value::Number(id)) => Ok(Some(id.to_string())),
        Some(_) => Err("has an `id` that is no text"),
    };
    let id = id.and_then(|id| match id {
        Some(id) if id.chars().count() > limits::size(limits::CONTROL_ID_CHARACTERS) => Err("has an `id` that is too long"),
        id => Ok(id),
    });
    let word = match &fields.control {
        Some(Value::String(word)) => word.clone(),
        _ => String::new(),
    };
    let known = control_word(&word);
    let refused = |problem: String| Unusable {
        id: id.clone().ok().flatten(),
        word: shown(&word, limits::CONTROL_WORD_CHARACTERS),
        problem,
        is_unknown: !word.is_empty() && known.is_none(),
    };
    if word.is_empty() {
        return Err(refused("has no word under `control`".to_owned()));
    }
    if known.is_none() {
        let word = shown(&word, limits::CONTROL_WORD_CHARACTERS);
        return Err(refused(format!(
            "says `{word}`, which is no word; there are inject, steer, cancel, cancel_step and gate_decision"
        )));
    }
    let id = match &id {
        Ok(id) => id.clone(),
        Err(problem) => return Err(refused((*problem).to_owned())),
    };
    let control = Control { word: word.clone(), source: ControlSource::Channel, id, ..Control::default() };
    let told = match word.as_str() {
        "inject" | "steer" => told(&fields, control),
        "gate_decision" => decided(&fields, control),
        _ => Ok(control),
    };
    told.map_err(|problem| refused(format!("says `{word}`, and {problem}")))
}

fn told(fields: &Fields, control: Control) -> Result<Control, String> {
    let text = words(fields.text.as_ref(), "text", limits::CONTROL_TEXT_BYTES)?;
    Ok(Control { text: Some(text), ..control })
}

fn decided(fields: &Fields, control: Control) -> Result<Control, String> {
    let approval_id = words(fields.approval_id.as_ref(), "approval_id", limits::CONTROL_ID_CHARACTERS)?;
    let approve = match fields.approve {
        Some(Value::Bool(approve)) => approve,
        _ => return Err("its `approve` is neither true nor false: nothing is decided by default".to_owned()),
    };
    let by = words(fields.decided_by.as_ref(), "decided_by", limits::CONTROL_TEXT_BYTES)?;
    let note = match &fields.note {
        None | Some(Value::Null) => None,
        Some(Value::String(note)) => Some(note.clone()).filter(|note| !note.trim().is_empty()),
        Some(_) => return Err("its `note` is no text".to_owned()),
    };
    let answer = match &fields.answer {
        None | Some(Value::Null) => None,
        Some(Value::String(answer)) => Some(answer.as_str()),
        Some(_) => return Err("its `answer` is no text".to_owned()),
    };
    let answer = match (approve, answer) {
        (true, None) => "approve",
        (false, None) => "refuse",
        (true, Some("done")) => "done",
        (true, Some("retry")) => "retry",
        (false, Some("abandon")) => "abandon",
        (_, Some("done" | "retry" | "abandon")) => return Err("its `approve` and its `answer` say two things".to_owned()),
        (_, Some(_)) => return Err("its `answer` is none of done, retry and abandon".to_owned()),
    };
    Ok(Control { approval_id: Some(approval_id), answer: Some(answer.to_owned()), by: Some(by), note, ..control })
}

/// A text that says something.
fn words(value: Option<&Value>, name: &str, most: u64) -> Result<String, String> {
    match value {
        Some(Value::String(text)) if text.trim().is_empty() => Err(format!("its `{name}` is blank")),
        Some(Value::String(text)) if u64::try_from(text.len()).unwrap_or(u64::MAX) > most => {
            Err(format!("its `{name}` has {} bytes, and {most} are taken", text.len()))
        }
        Some(Value::String(text)) => Ok(text.clone()),
        Some(_) => Err(format!("its `{name}` is no text")),
        None => Err(format!("it has no `{name}`")),
    }
}

fn shown(text: &str, most: u64) -> String {
    let mut shown: String = text.chars().take(limits::size(most)).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}
