#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use std::path::PathBuf;

use mission_contract::replay::ReplayVerdict;
use proptest::prelude::*;

use super::super::Player;
use super::*;
use crate::redact::Redactor;

const FILES: [&str; 3] = ["events.jsonl", "model.jsonl", "tools.jsonl"];

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/seed2").join(name)
}

fn whole(name: &str) -> [Vec<u8>; 3] {
    FILES.map(|file| std::fs::read(fixture(name).join(file)).unwrap())
}

fn read_from(files: &[Vec<u8>; 3]) -> Result<Recording, String> {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in FILES.iter().zip(files) {
        std::fs::write(folder.path().join(name), bytes).unwrap();
    }
    read("it", folder.path()).map_err(|error| error.to_string().replace(folder.path().to_str().unwrap(), "…"))
}

fn verdict(recording: &Recording) -> ReplayVerdict {
    let mut player = Player::new(recording, recording.open.clone(), Redactor::default());
    while player.advance().unwrap().is_some() {}
    player.replayed().verdict
}

#[test]
fn a_line_that_is_wrong_is_named_with_its_file() {
    let spoilt = |at: usize, from: &str, to: &str| {
        let mut files = whole("json-answered");
        let text = String::from_utf8(files[at].clone()).unwrap();
        assert!(text.contains(from), "{from}");
        files[at] = text.replacen(from, to, 1).into_bytes();
        read_from(&files).unwrap_err()
    };
    insta::assert_snapshot!(spoilt(0, r#"{"seq": 3, "#, r#"{"seq": x, "#), @"line 3 of …/events.jsonl: expected value (at byte 9)");
    insta::assert_snapshot!(spoilt(0, r#"{"seq": 3, "#, "{"), @"line 3 of …/events.jsonl: missing field `seq` (at byte 209)");
    insta::assert_snapshot!(spoilt(0, "mission_started", "mission_stopped"), @"events.jsonl of it holds no `mission_started`: it is no recorded run");
    insta::assert_snapshot!(spoilt(1, r#""kind":"mission","#, ""), @"line 1 of …/model.jsonl: missing field `kind` (at byte 515)");
    insta::assert_snapshot!(spoilt(2, r#""exit_code":0"#, r#""exit_code":"0""#), @r#"line 2 of …/tools.jsonl: invalid type: string "0", expected i64 (at byte 115)"#);
    insta::assert_snapshot!(spoilt(2, r#""catalogue":["#, r#""catalogue":[7,"#), @"line 1 of …/tools.jsonl: invalid type: integer `7`, expected a tool's description (at byte 57)");
    let staged = spoilt(0, r#""event": "step_started""#, r#""event": "step_started", "branch": "s1""#);
    insta::assert_snapshot!(staged, @"it cannot be replayed by this build: line 2 of events.jsonl belongs to a staged run, which it does not carry out");
}

#[test]
fn a_file_that_is_missing_is_named() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("events.jsonl"), &whole("json-answered")[0]).unwrap();
    let missing = read("it", folder.path()).unwrap_err().to_string();
    assert!(missing.contains("model.jsonl"), "{missing}");
}

#[test]
fn what_was_asked_comes_out_of_the_recording() {
    let recording = read("it", &fixture("json-answered")).unwrap();
    let spec = &recording.open.spec;
    assert_eq!(spec.objective, "How many of w-7 are there?");
    assert_eq!(spec.texts.history.iter().map(|turn| turn.content.as_str()).collect::<Vec<_>>(), ["Hello.", "Good day."]);
    assert_eq!(spec.allowed_tools.as_deref(), Some(["mcp.stock".to_owned()].as_slice()));
    assert_eq!((spec.limits.steps, spec.protocol), (None, Protocol::Json));
    assert_eq!(recording.tools(), ["mcp.stock"]);
    let native = read("it", &fixture("native-two-calls")).unwrap();
    assert_eq!(native.open.spec.protocol, Protocol::Native);
    assert_eq!(read("it", &fixture("steps-spent")).unwrap().open.spec.limits.steps, Some(2));
    // A tool of the harness itself has no server.
    assert_eq!(read("it", &fixture("rejected-replies")).unwrap().tools(), ["fs", "mcp.stock"]);
}

#[test]
fn a_run_that_its_model_its_clock_or_a_crash_ended_is_no_drift() {
    let files = whole("json-answered");
    let lines = |at: usize, count: usize| {
        files[at].split_inclusive(|byte| *byte == b'\n').take(count).flatten().copied().collect::<Vec<u8>>()
    };
    let ended = |outcome: &str| {
        let line = format!(
            "{{\"seq\": 6, \"at\": \"\", \"record\": {{\"event\": \"mission_finished\", {outcome}, \"steps\": 1, \"max_steps\": 0}}}}\n"
        );
        [lines(0, 5), line.into_bytes()].concat()
    };
    let by_clock = r#""outcome": "budget_exhausted", "budget": {"which": "seconds", "limit": 5.0, "spent": 5.1}"#;
    for events in [lines(0, 3), lines(0, 5), ended(r#""outcome": "incomplete""#), ended(by_clock)] {
        let recording = read_from(&[events.clone(), lines(1, 1), lines(2, 2)]).unwrap();
        assert_eq!(verdict(&recording), ReplayVerdict::Same, "{}", String::from_utf8_lossy(&events));
    }
    let recording = read_from(&[ended(r#""outcome": "answered""#), lines(1, 1), lines(2, 2)]).unwrap();
    assert_eq!(verdict(&recording), ReplayVerdict::Decision, "it answered, and the recording has no answer");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn bytes_that_were_changed_are_told_or_replayed_and_nothing_else(
        name in proptest::sample::select(vec!["json-answered", "native-two-calls", "rejected-replies", "plane-grew"]),
        file in 0..3_usize,
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in proptest::option::of(any::<prop::sample::Index>()),
    ) {
        let mut files = whole(name);
        for (at, byte) in changes {
            let at = at.index(files[file].len());
            files[file][at] = byte;
        }
        if let Some(cut) = cut {
            let cut = cut.index(files[file].len());
            files[file].truncate(cut);
        }
        match read_from(&files) {
            Err(problem) => prop_assert!(problem.contains(FILES[file]), "{problem}"),
            Ok(recording) => {
                let mut player = Player::new(&recording, recording.open.clone(), Redactor::default());
                while let Ok(Some(_)) = player.advance() {}
                player.replayed();
            }
        }
    }

    #[test]
    fn lines_of_any_json_are_told_or_taken(lines in proptest::collection::vec("[{}\\[\\]\",:a-z0-9 ]{0,40}", 0..6)) {
        let text = lines.join("\n") + "\n";
        let _ = read_from(&[text.clone().into_bytes(), text.clone().into_bytes(), text.into_bytes()]);
    }
}
