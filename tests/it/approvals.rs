//! `mission approvals` without a run: what it shows, what it refuses, and several people at once.

use std::path::{Path, PathBuf};

use mission_contract::digest::call_digest;
use serde_json::{Value, json};

use crate::house::{has_word, sources};
use crate::support::run::{Finished, Mission, write};

const ID: &str = "ap_0123456789abcdef";

struct Place {
    folder: tempfile::TempDir,
    home: tempfile::TempDir,
}

impl Place {
    /// With one call that waits.
    fn new() -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap(), home: tempfile::tempdir().unwrap() };
        place.put(ID, &place.record());
        place
    }

    fn record(&self) -> Value {
        json!({
            "approval_id": ID, "tool": "mcp.pay", "arguments": {"amount": 5}, "run_id": "run_1", "state": "pending", "kind": "gate",
            "requested_at": "2026-01-01T00:00:00.000Z", "definition": "d", "digest": call_digest("mcp.pay", "d", "{\"amount\":5}"),
        })
    }

    fn put(&self, id: &str, record: &Value) -> PathBuf {
        write(self.folder.path(), &format!(".mission/approvals/{id}.json"), &record.to_string())
    }

    fn written(&self) -> Value {
        serde_json::from_slice(&std::fs::read(self.folder.path().join(format!(".mission/approvals/{ID}.json"))).unwrap()).unwrap()
    }

    fn says(&self, words: &[&str]) -> Mission {
        Mission::verb(words.iter().copied()).directory(self.folder.path()).env("HOME", self.home.path())
    }

    fn run(&self, words: &[&str]) -> Finished {
        self.says(words).run()
    }
}

#[test]
fn of_several_processes_that_decide_at_once_one_does() {
    let place = Place::new();
    let words = |number: usize| if number.is_multiple_of(2) { "approve" } else { "refuse" };
    let by: Vec<String> = (0..8).map(|number| format!("person-{number}")).collect();
    let live: Vec<_> =
        by.iter().enumerate().map(|(number, by)| place.says(&["approvals", words(number), ID, "--by", by]).spawn()).collect();
    let ended: Vec<Finished> = live.into_iter().map(|live| live.finish()).collect();
    let won: Vec<usize> = ended.iter().enumerate().filter(|(_, ended)| ended.code() == 0).map(|(number, _)| number).collect();
    assert_eq!(won.len(), 1);
    let record = place.written();
    assert_eq!((record["decided_by"].as_str(), record["answer"].as_str()), (Some(by[won[0]].as_str()), Some(words(won[0]))));
    for (number, ended) in ended.iter().enumerate().filter(|(number, _)| *number != won[0]) {
        ended.exits(1);
        assert!(ended.stderr.contains(&format!("{} said {}", by[won[0]], words(won[0]))), "{number}\n{ended}");
    }
}

#[test]
fn what_is_asked_wrongly_exits_2_and_what_stands_otherwise_1() {
    let place = Place::new();
    let long = "x".repeat(5000);
    for words in [
        vec!["approvals", "approve", "../key", "--by", "ana"],
        vec!["approvals", "approve", ID],
        vec!["approvals", "approve", ID, "--by", " "],
        vec!["approvals", "approve", ID, "--by", "ana", "--note", &long],
        vec!["approvals", "answer", ID, "done", "--by", "ana"],
        vec!["approvals", "answer", ID, "yes", "--by", "ana"],
        vec!["approvals", "decide", ID],
        vec!["--approve", ID],
        vec!["--approve", ID, "--refuse", ID, "--decided-by", "ana"],
    ] {
        place.run(&words).refused(&[]);
    }
    assert_eq!(place.written()["state"], "pending");
    place.run(&["approvals", "approve", "ap_404", "--by", "ana"]).exits(1);
    place.run(&["--approve", ID, "--decided-by", "ana", "--note", "once"]).exits(0);
    assert_eq!((place.written()["state"].as_str(), place.written()["note"].as_str()), (Some("approved"), Some("once")));
    place.run(&["--refuse", ID, "--decided-by", "bob"]).exits(1);
    place.says(&["approvals", "list"]).env("MISSION_APPROVALS", "none").run().refused(&["MISSION_APPROVALS"]);
}

#[test]
fn what_a_file_says_moves_no_terminal_and_what_is_secret_is_not_kept() {
    let place = Place::new();
    let mut record = place.record();
    record["run_id"] = json!("run_\u{1b}[31m\u{202e}1");
    record["reason"] = json!("because\u{9b}2J");
    place.put(ID, &record);
    place.put("ap_1", &json!({"tool": "\u{1b}[2J"}));
    for words in [["approvals", "list", ""], ["approvals", "show", ID], ["approvals", "list", "--all"]] {
        let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
        let shown = place.run(&words);
        assert_eq!(shown.code(), i32::from(words[1] == "list"), "an unreadable one is told\n{shown}");
        for (name, text) in [("stdout", &shown.stdout), ("stderr", &shown.stderr)] {
            assert!(!text.chars().any(|each| matches!(each, '\u{1b}' | '\u{9b}' | '\u{202e}')), "{name}: {text:?}");
        }
    }
    let said = place.says(&["approvals", "approve", ID, "--by", "ana", "--note", "use hunter2hunter2"]);
    let said = said.env("PAY_TOKEN", "hunter2hunter2").run();
    said.exits(0);
    assert!(!said.stdout.chars().any(|each| matches!(each, '\u{1b}' | '\u{202e}')), "{:?}", said.stdout);
    assert_eq!(place.written()["note"], "use <redacted:PAY_TOKEN>");
}

/// The key may not lie where tools write; looking needs none.
#[test]
fn in_the_home_folder_approvals_are_shown_and_not_decided() {
    let place = Place::new();
    let at_home = |words: &[&str]| place.says(words).env("HOME", place.folder.path()).run();
    at_home(&["approvals", "list"]).exits(0);
    at_home(&["approvals", "show", ID]).exits(0);
    let refused = at_home(&["approvals", "approve", ID, "--by", "ana"]);
    refused.exits(1);
    assert!(refused.stderr.contains("below the workspace") && refused.stderr.contains("XDG_STATE_HOME"), "{refused}");
    assert!(!place.folder.path().join(".local").exists());
    assert_eq!(place.written()["state"], "pending");
}

/// Deciding is for people: the store's own room, and the verb that carries out what they typed.
#[test]
fn nothing_in_a_run_decides() {
    let sources = sources();
    let deciding: Vec<&str> = sources
        .iter()
        .filter(|source| source.code.contains(".decide(") || has_word(&source.code, "Approvals::decide"))
        .map(|source| source.name.as_str())
        .collect();
    assert_eq!(deciding, ["src/approvals/store.rs", "src/cli/approvals.rs", "src/driver/desk.rs"]);
    assert!(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/approvals/store.rs").is_file());
}
