//! What must vanish, and what must stay: the committed corpora, and this project's own texts.
#![allow(clippy::unwrap_used, clippy::string_slice, clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::*;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

fn shapes() -> Redactor {
    Redactor::new([], []).unwrap()
}

/// A text with a secret, in pieces, so that no scanner of repositories takes it for a real one.
#[derive(Deserialize)]
struct Case {
    name: String,
    text: Vec<String>,
    /// The pieces that must be gone.
    gone: Vec<usize>,
    /// What must still be there.
    #[serde(default)]
    kept: Vec<String>,
}

fn cases() -> Vec<Case> {
    serde_json::from_str(include_str!("../../tests/fixtures/redact/secrets.json")).unwrap()
}

#[test]
fn every_secret_of_the_corpus_vanishes() {
    let redactor = shapes();
    let mut wrong = Vec::new();
    for case in cases() {
        let text = case.text.concat();
        for around in [text.clone(), format!("before {text}\nbehind"), format!("{text}\n{text}")] {
            let shown = redactor.text(&around);
            let left = case.gone.iter().filter_map(|piece| case.text.get(*piece)).find(|piece| shown.contains(piece.as_str()));
            let lost = case.kept.iter().find(|piece| !shown.contains(piece.as_str()));
            if left.is_some() || lost.is_some() {
                wrong.push(format!("{}: left {left:?}, lost {lost:?} in {shown:?}", case.name));
            }
            assert_eq!(redactor.text(&shown), shown, "{}: twice is once", case.name);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_secret_of_the_corpus_vanishes_in_every_pair_of_pieces() {
    let redactor = shapes();
    for case in cases() {
        let text = case.text.concat();
        let whole = redactor.text(&text).into_owned();
        for cut in (0..=text.len()).filter(|cut| text.is_char_boundary(*cut)) {
            let (first, second) = text.split_at(cut);
            let mut stream = redactor.stream();
            let shown = [stream.push(first), stream.push(second), stream.finish()].concat();
            assert_eq!(shown, whole, "{}, cut at {cut}", case.name);
        }
        let mut stream = redactor.stream();
        let mut shown: String = text.chars().map(|each| stream.push(&each.to_string())).collect();
        shown.push_str(&stream.finish());
        assert_eq!(shown, whole, "{}, a character at a time", case.name);
    }
}

/// Lines of a text that do not stay what they are.
fn changed(redactor: &Redactor, name: &str, text: &str) -> Vec<String> {
    let mut wrong: Vec<String> = text
        .lines()
        .filter_map(|line| match redactor.text(line) {
            Cow::Owned(shown) => Some(format!("{name}: {line}\n   {shown}")),
            Cow::Borrowed(_) => None,
        })
        .collect();
    if wrong.is_empty() && matches!(redactor.text(text), Cow::Owned(_)) {
        wrong.push(format!("{name}: each line stays, and the whole does not"));
    }
    wrong
}

#[test]
fn what_is_ordinary_stays() {
    let ordinary = include_str!("../../tests/fixtures/redact/ordinary.txt");
    assert_eq!(ordinary.lines().count(), 2000);
    let wrong = changed(&shapes(), "ordinary.txt", ordinary);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn definitions_of_tools_stay() {
    let redactor = shapes();
    let mut wrong = Vec::new();
    let mut tools = 0;
    for entry in std::fs::read_dir(root().join("tests/fixtures/redact/tools")).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        wrong.extend(changed(&redactor, &path.display().to_string(), &text));
        let list: serde_json::Value = serde_json::from_str(&text).unwrap();
        for tool in list.as_array().unwrap() {
            tools += 1;
            wrong.extend(changed(&redactor, "in one line", &tool.to_string()));
            wrong.extend(changed(&redactor, "in a string", &serde_json::Value::from(tool.to_string()).to_string()));
        }
    }
    assert!(tools > 40, "{tools}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_texts_of_this_project_stay() {
    let redactor = shapes();
    let mut wrong = Vec::new();
    for name in ["README.md", "CONTRACT.md", "PLATFORMS.md", "bench/README.md", "Cargo.lock", "schemas/stream.json"] {
        wrong.extend(changed(&redactor, name, &std::fs::read_to_string(root().join(name)).unwrap()));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_rule_has_a_secret_in_the_corpus_or_is_like_one_that_has() {
    let redactor = shapes();
    let shown: String = cases().iter().map(|case| redactor.text(&case.text.concat()).into_owned()).collect();
    for rule in rules::RULES {
        let text = match rule.pattern {
            rules::Pattern::Token { least, .. } => {
                rule.anchors.iter().map(|anchor| format!(" {anchor}{} ", "aB3x".repeat(least))).collect()
            }
            _ => shown.clone(),
        };
        let shown = redactor.text(&text);
        let named = rule.placeholder.split("NAME").next().unwrap();
        let expected = if matches!(rule.pattern, rules::Pattern::Token { .. }) { rule.anchors.len() } else { 1 };
        assert!(shown.matches(named).count() >= expected, "{}: {shown}", rule.name);
    }
}

#[test]
fn the_rules_are_published() {
    let page = std::fs::read_to_string(root().join("PLATFORMS.md")).unwrap();
    let expected: Vec<String> = rules()
        .map(|rule| {
            let anchors = rule.anchors.iter().map(|anchor| format!("`{anchor}`")).collect::<Vec<_>>().join(" ");
            format!("| {} | {anchors} | `{}` | {} |", rule.name, rule.placeholder, rule.source)
        })
        .collect();
    let table = page.split("| what | begins | becomes | source |\n|---|---|---|---|\n").nth(1).unwrap();
    let rows: Vec<&str> = table.lines().take_while(|line| line.starts_with('|')).collect();
    assert_eq!(rows, expected);
}

#[test]
fn no_anchor_that_is_hidden_begins_inside_one_that_is_shown() {
    let all = |hides: bool| rules::RULES.iter().filter(move |rule| rule.hides_anchor() == hides).flat_map(|rule| rule.anchors);
    for shown in all(false) {
        assert!(shown.len() >= 3);
        for (at, letter) in shown.char_indices().skip(1) {
            let before = shown[..at].chars().next_back().unwrap();
            let rest = shown[at..].to_ascii_lowercase();
            let inside = before.is_ascii_alphanumeric() && letter.is_ascii_alphanumeric();
            for hidden in all(true).map(|anchor| anchor.to_ascii_lowercase()).filter(|_| !inside) {
                assert!(!hidden.starts_with(&rest) && !rest.starts_with(&hidden), "{hidden} in {shown}");
            }
        }
    }
}
