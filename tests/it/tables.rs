//! The tables and the code say the same: every bound is used, every code of a notice is published, what landed is read.

use std::collections::BTreeSet;

use mission::limits;
use mission_contract::vocabulary::{FLAGS, NOTICE_CODES, Status, VARIABLES, Variable};

use crate::house::{Source, has_word, sources};

/// Codes that are published and that this build has no cause to emit: what emits them lands later.
const EMITTED_LATER: &[&str] = &["list_changed", "provider_hop", "turn_restarted"];

/// What stands right before the code of a notice, blanks apart.
const BEFORE_A_CODE: &[&str] =
    &["what:", "code:", "observe(", "tell(", "tell_once(", "gone:", "back: (", "declined(", "push((", "vec![(", "|words| ("];

/// The words in quotes that stand where the code of a notice does.
fn codes(code: &str) -> BTreeSet<String> {
    let mut codes = BTreeSet::new();
    for (at, _) in code.match_indices('"') {
        let before: String = code[..at].split_whitespace().collect::<Vec<_>>().join(" ");
        if !BEFORE_A_CODE.iter().any(|place| before.ends_with(place)) {
            continue;
        }
        let word: String = code[at + 1..].chars().take_while(|each| *each != '"').collect();
        let shape = |each: char| each.is_ascii_lowercase() || each == '_';
        if word.contains('_') && word.chars().all(shape) {
            codes.insert(word);
        }
    }
    codes
}

fn emitted() -> BTreeSet<String> {
    sources().iter().filter(|source| source.room().is_some()).flat_map(|source| codes(&source.text)).collect()
}

#[test]
fn every_code_of_a_notice_is_published() {
    let published: BTreeSet<&str> = NOTICE_CODES.iter().map(|term| term.name).collect();
    let emitted = emitted();
    let unknown: Vec<&String> = emitted.iter().filter(|code| !published.contains(code.as_str())).collect();
    assert!(unknown.is_empty(), "not in NOTICE_CODES: {unknown:?}");
    let silent: Vec<&&str> = published.iter().filter(|code| emitted.contains(**code) == EMITTED_LATER.contains(code)).collect();
    assert!(silent.is_empty(), "published and not emitted, or emitted and said to come later: {silent:?}");
}

#[test]
fn the_reader_of_codes_sees_what_it_should() {
    let code = "Observed { what: \"a_b\".into() }; tell(\n  \"c_d\",\n f(\"e_f\")); notices.push((\"g_h\", x)); what: \"no code\"; f(what, \"i_j\")";
    assert_eq!(codes(code), BTreeSet::from(["a_b", "c_d", "g_h"].map(String::from)));
}

#[test]
fn every_bound_bounds_something() {
    let sources = sources();
    let used = |name: &str| {
        let elsewhere = |source: &&Source| source.name != "src/limits.rs" && source.name.starts_with("src/");
        sources.iter().filter(elsewhere).any(|source| has_word(&source.code, name))
    };
    let unused: Vec<&str> = limits::TABLE.iter().map(|limit| limit.name).filter(|name| !used(name)).collect();
    assert!(unused.is_empty(), "in src/limits.rs and nowhere else: {unused:?}");
    let mut names: Vec<&str> = limits::TABLE.iter().map(|limit| limit.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), limits::TABLE.len());
    let units: BTreeSet<&str> = limits::TABLE.iter().map(|limit| limit.unit).collect();
    for short in ["ms", "s", "chars"] {
        assert!(!units.contains(short), "{short} is a unit cut short");
    }
}

/// A variable that landed is looked for by its name, or through the flag that it stands for. (The parser's own tests hold the
/// same of the flags; those of the environment refuse every variable that comes later.)
#[test]
fn a_variable_that_landed_is_read() {
    let quoted: BTreeSet<String> = sources()
        .iter()
        .filter(|source| source.room().is_some())
        .flat_map(|source| source.text.split('"').map(str::to_owned).collect::<Vec<_>>())
        .collect();
    let read = |variable: &Variable| {
        FLAGS.iter().any(|flag| flag.env == Some(variable.name) && flag.status == Status::Landed)
            || quoted.contains(variable.name)
    };
    let landed = VARIABLES.iter().filter(|variable| variable.status == Status::Landed);
    let unread: Vec<&str> = landed.filter(|variable| !read(variable)).map(|variable| variable.name).collect();
    assert!(unread.is_empty(), "said to have landed, and not read: {unread:?}");
}
