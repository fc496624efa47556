#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use std::io::Write;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use mission_contract::log::Control;
use proptest::prelude::*;

use super::*;
use crate::limits;
use crate::sys::descriptors::Inherited;

const PATIENCE: Duration = Duration::from_secs(60);

fn read(line: &str) -> Result<Control, String> {
    line::read(line.as_bytes()).map_err(|unusable| unusable.problem)
}

#[test]
fn each_word_is_read_with_its_fields() {
    let control = read(r#" {"control":"inject","text":"Ü \"x\"","id":7,"of":"ours",  "x":1e999} "#).unwrap();
    assert_eq!((control.word.as_str(), control.text.as_deref(), control.id.as_deref()), ("inject", Some("Ü \"x\""), Some("7")));
    assert_eq!(read(r#"{"control":"steer","text":"x","id":null}"#).unwrap().id, None);
    assert_eq!(read(r#"{"control":"cancel"}"#).unwrap().word, "cancel");
    assert_eq!(read(r#"{"control":"cancel_step","id":"a"}"#).unwrap().id.as_deref(), Some("a"));
    let decision = |rest: &str| read(&format!(r#"{{"control":"gate_decision","approval_id":"ap_1","decided_by":"ana",{rest}}}"#));
    let control = decision(r#""approve":true,"note":"fine""#).unwrap();
    assert_eq!(control.approval_id.as_deref(), Some("ap_1"));
    assert_eq!((control.by.as_deref(), control.note.as_deref()), (Some("ana"), Some("fine")));
    for (rest, answer) in [
        (r#""approve":true"#, "approve"),
        (r#""approve":false,"note":null"#, "refuse"),
        (r#""approve":true,"answer":"done""#, "done"),
        (r#""approve":true,"answer":"retry""#, "retry"),
        (r#""approve":false,"answer":"abandon""#, "abandon"),
    ] {
        assert_eq!(decision(rest).unwrap().answer.as_deref(), Some(answer), "{rest}");
    }
    for rest in [
        r#""approve":"yes""#,
        r#""approve":1"#,
        r#""approve":null"#,
        r#""note":"x""#,
        r#""approve":false,"answer":"done""#,
        r#""approve":true,"answer":"abandon""#,
        r#""approve":true,"answer":"maybe""#,
        r#""approve":true,"answer":1"#,
        r#""approve":true,"note":1"#,
    ] {
        assert!(decision(rest).is_err(), "{rest}");
    }
}

#[test]
fn a_line_that_cannot_be_used_says_why() {
    let long = format!(r#"{{"control":"inject","text":"{}"}}"#, "x".repeat(limits::size(limits::CONTROL_TEXT_BYTES) + 1));
    let id = format!(r#"{{"control":"cancel","id":"{}"}}"#, "x".repeat(201));
    let all: Vec<String> = [
        "cancel",
        "[]",
        r#"{"control":"cancel""#,
        r#"{"control":"cancel","control":"inject"}"#,
        "{}",
        r#"{"control":7}"#,
        r#"{"control":"stop now"}"#,
        r#"{"control":"inject"}"#,
        r#"{"control":"inject","text":" "}"#,
        r#"{"control":"inject","text":["x"]}"#,
        r#"{"control":"gate_decision","approve":true}"#,
        r#"{"control":"gate_decision","approval_id":"ap_1","approve":true,"decided_by":""}"#,
        r#"{"control":"cancel","id":{}}"#,
        &id,
        &long,
    ]
    .into_iter()
    .map(|line| read(line).unwrap_err())
    .collect();
    insta::assert_snapshot!(all.join("\n"), @r#"
    is no JSON object: cancel
    is no JSON object: []
    cannot be read (EOF while parsing an object at line 1 column 19): {"control":"cancel"
    cannot be read (duplicate field `control` at line 1 column 29): {"control":"cancel","control":"inject"}
    has no word under `control`
    has no word under `control`
    says `stop now`, which is no word; there are inject, steer, cancel, cancel_step and gate_decision
    says `inject`, and it has no `text`
    says `inject`, and its `text` is blank
    says `inject`, and its `text` is no text
    says `gate_decision`, and it has no `approval_id`
    says `gate_decision`, and its `decided_by` is blank
    has an `id` that is no text
    has an `id` that is too long
    says `inject`, and its `text` has 262145 bytes, and 262144 are taken
    "#);
}

#[test]
fn what_is_known_of_a_refused_line_is_answered() {
    let unusable = line::read(br#"{"control":"inject","id":"a7"}"#).unwrap_err();
    assert_eq!((unusable.id.as_deref(), unusable.word.as_str(), unusable.is_unknown), (Some("a7"), "inject", false));
    let unusable = line::read(br#"{"control":"halt","id":"a8"}"#).unwrap_err();
    assert_eq!((unusable.id.as_deref(), unusable.word.as_str(), unusable.is_unknown), (Some("a8"), "halt", true));
    let unusable = line::read(format!(r#"{{"control":"{}"}}"#, "é".repeat(500)).as_bytes()).unwrap_err();
    assert_eq!(unusable.word.chars().count(), 41);
    // What is no UTF-8 is replaced, not refused.
    assert_eq!(line::read(b"{\"control\":\"inject\",\"text\":\"caf\xe9\"}").unwrap().text.as_deref(), Some("caf\u{fffd}"));
}

proptest! {
    #[test]
    fn any_line_is_taken_whole_or_told(line in prop_oneof![".{0,80}", r#"\{"control":"(inject|cancel|steer|x)","text":.{0,20}\}"#]) {
        if let Ok(control) = line::read(line.as_bytes()) {
            prop_assert!(["inject", "steer"].contains(&control.word.as_str()) == control.text.is_some());
            prop_assert!(control.text.is_none_or(|text| !text.trim().is_empty()));
        }
    }
}

fn opened(word: &str) -> (ControlChannel, Receiver<String>) {
    let (sender, said) = channel();
    let input = Inherited::guard().input("--control", word).unwrap();
    let say = move |sentence: &str| {
        let _ = sender.send(sentence.to_owned());
    };
    (ControlChannel::start(input, Box::new(say)).unwrap(), said)
}

async fn next(channel: &ControlChannel) -> Heard {
    tokio::time::timeout(PATIENCE, channel.next()).await.unwrap()
}

async fn word(channel: &ControlChannel) -> String {
    match next(channel).await {
        Heard::Word(control) => control.text.unwrap_or(control.word),
        other => format!("{other:?}"),
    }
}

#[tokio::test]
async fn a_fifo_serves_one_writer_after_the_other_and_reads_what_they_leave() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fifo");
    nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let (channel, said) = opened(path.to_str().unwrap());
    for text in ["one", "two", "three"] {
        let mut writer = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        // In pieces, and the last line without its end.
        write!(writer, "{{\"control\":\"inject\",").unwrap();
        write!(writer, "\"text\":\"{text}\"}}\n\r\n{{\"control\":\"inject\",\"text\":\"{text} more\"}}").unwrap();
        drop(writer);
        assert_eq!(word(&channel).await, text);
        assert_eq!(word(&channel).await, format!("{text} more"));
    }
    assert!(said.try_recv().is_err(), "nobody complained of a writer that went away");
}

#[tokio::test]
async fn a_file_is_read_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("words");
    std::fs::write(&path, "\u{feff}{\"control\":\"inject\",\"text\":\"a\"}\n\nnonsense\n{\"control\":\"cancel\"}").unwrap();
    let (channel, said) = opened(path.to_str().unwrap());
    assert_eq!(word(&channel).await, "a");
    assert_eq!(next(&channel).await, Heard::Refused { id: None, word: String::new() });
    assert_eq!(word(&channel).await, "cancel");
    assert_eq!(said.recv_timeout(PATIENCE).unwrap(), "A line of the control channel is no JSON object: nonsense; it is dropped.");
    assert!(said.recv_timeout(PATIENCE).is_err(), "its reader has ended, and dropped what it says with");
}

#[tokio::test]
async fn more_than_is_taken_is_dropped_but_never_what_ends_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("words");
    let most = limits::size(limits::CONTROL_QUEUE);
    let mut lines = "{\"control\":\"inject\",\"text\":\"x\",\"id\":\"i\"}\n".repeat(most + 9);
    lines.push_str("{\"control\":\"cancel\"}\n{\"control\":\"cancel\"}\n");
    std::fs::write(&path, lines).unwrap();
    let (channel, said) = opened(path.to_str().unwrap());
    assert!(said.recv_timeout(PATIENCE).unwrap().contains("is dropped, because 256 are waiting already"));
    // Once it has ended nothing more comes.
    while said.recv_timeout(PATIENCE).is_ok() {}
    let Heard::Word(control) = tokio::time::timeout(PATIENCE, channel.next_cancel()).await.unwrap() else { panic!("no word") };
    assert_eq!(control.word, "cancel");
    for _ in 0..most {
        assert_eq!(word(&channel).await, "x");
    }
    for _ in 0..9 {
        assert_eq!(next(&channel).await, Heard::Dropped { id: Some("i".to_owned()), word: "inject".to_owned() });
    }
    assert_eq!(next(&channel).await, Heard::Dropped { id: None, word: "cancel".to_owned() }, "one is enough");
}

#[tokio::test]
async fn what_is_said_of_bad_lines_has_an_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("words");
    let long = "x".repeat(limits::size(limits::CONTROL_LINE_BYTES) + 1);
    let lines = format!("{}{}{long}\n", "{\"control\":\"halt\"}\n".repeat(5), "nonsense\n".repeat(200));
    std::fs::write(&path, lines).unwrap();
    let (_channel, said) = opened(path.to_str().unwrap());
    let mut all = Vec::new();
    while let Ok(sentence) = said.recv_timeout(PATIENCE) {
        all.push(sentence);
    }
    assert_eq!(all.len(), limits::size(limits::CONTROL_SENTENCES));
    assert_eq!(all.iter().filter(|sentence| sentence.contains("`halt`")).count(), 1, "a word that nobody knows is told once");
    assert!(all.last().unwrap().contains("dropped in silence"));
}
