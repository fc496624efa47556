#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use super::*;

#[test]
fn an_excerpt_begins_a_little_before_the_difference() {
    let long = "same ".repeat(100);
    assert_eq!(excerpt("short", 0), "short");
    let piece = excerpt(&format!("{long}other"), 470);
    assert_eq!(piece, format!("…{}other", "same ".repeat(6)));
    let cut = excerpt(&long, 0);
    assert!(cut.ends_with('…') && cut.chars().count() == limits::size(DRIFT_CHARACTERS) + 1, "{cut}");
}

#[test]
fn an_answer_is_compared_without_its_caveat() {
    let text = |text: &str| Value::String(text.to_owned());
    let (plain, caveat, other) = (text("31."), text("31.\n\n---\nNot supported: 31"), text("31.\n\n---\nWithout support: 31"));
    assert!(same_answer(Some(&caveat), Some(&other)));
    assert!(same_answer(Some(&plain), Some(&caveat)));
    assert!(!same_answer(Some(&plain), Some(&text("32."))));
    assert!(!same_answer(None, Some(&plain)));
}
