#![allow(clippy::unwrap_used)]

use mission_contract::event::{Answer, Notice, ToolResult};
use proptest::prelude::*;

use super::*;

fn redactor(variables: &[(&str, &str)]) -> Redactor {
    Redactor::new(variables.iter().map(|(name, value)| (name.into(), value.into())), []).unwrap()
}

#[test]
fn credentials_are_found_by_the_names_of_their_variables() {
    let redactor = redactor(&[
        ("OPENAI_API_KEY", "abcdefgh-1"),
        ("TOKEN", "abcdefgh-2"),
        ("db_password", "abcdefgh-3"),
        ("GITHUB_PAT", "abcdefgh-6"),
        ("COMPASS", "abcdefgh-7"),
        ("MONKEY", "abcdefgh-4"),
        ("KEY_FILE", "abcdefgh-5"),
        ("SHORT_KEY", "seven77"),
    ]);
    let text = "abcdefgh-1 abcdefgh-2 abcdefgh-3 abcdefgh-4 abcdefgh-5 seven77 abcdefgh-6 abcdefgh-7";
    assert_eq!(
        redactor.text(text),
        "<redacted:OPENAI_API_KEY> <redacted:TOKEN> <redacted:db_password> abcdefgh-4 abcdefgh-5 seven77 <redacted:GITHUB_PAT> abcdefgh-7"
    );
}

#[test]
fn eight_characters_not_bytes_make_a_value() {
    let redactor = redactor(&[("A_KEY", "äöüäöü7"), ("B_KEY", "äöüäöü78")]);
    assert_eq!(redactor.text("äöüäöü7 äöüäöü78"), "äöüäöü7 <redacted:B_KEY>");
}

#[test]
fn the_longest_value_wins_and_a_given_one_names_it() {
    let redactor = Redactor::new(
        [("A_KEY".into(), "0123456789".into()), ("B_KEY".into(), "0123456789abcdef".into())],
        [("--mcp-bearer".to_owned(), "0123456789".to_owned())],
    )
    .unwrap();
    assert_eq!(redactor.text("0123456789abcdef 0123456789abc"), "<redacted:B_KEY> <redacted:--mcp-bearer>abc");
}

#[test]
fn a_value_is_found_with_white_space_around_it_and_inside_json() {
    let redactor = redactor(&[("A_SECRET", " pass\"word\\x\n")]);
    assert_eq!(redactor.text("pass\"word\\x!"), "<redacted:A_SECRET>!");
    let json = serde_json::to_string("it is pass\"word\\x").unwrap();
    assert_eq!(redactor.text(&json), "\"it is <redacted:A_SECRET>\"");
}

#[test]
fn placeholders_stay_even_where_a_value_looks_like_their_middle() {
    let redactor = redactor(&[("A_KEY", "redacted"), ("B_KEY", "cted:CCCCC"), ("CCCCC_KEY", "secret-secret")]);
    let once = redactor.text("secret-secret redacted cted:CCCCC").into_owned();
    assert_eq!(once, "<redacted:CCCCC_KEY> redacted <redacted:B_KEY>");
    assert_eq!(redactor.text(&once), once);
}

#[test]
fn without_values_nothing_is_copied() {
    assert!(matches!(redactor(&[]).text("text"), Cow::Borrowed("text")));
    assert!(matches!(redactor(&[("A_KEY", "0123456789")]).text("text"), Cow::Borrowed("text")));
    assert_eq!(redactor(&[]).stream().push("text"), "text");
}

#[test]
fn a_record_loses_values_in_its_free_texts_and_keeps_its_evidence() {
    let redactor = redactor(&[("A_KEY", "0123456789")]);
    let mut answer = Event::Answer(Answer { text: "it is 0123456789".into(), ..Default::default() });
    redactor.event(&mut answer);
    assert!(matches!(answer, Event::Answer(Answer { text, .. }) if text == "it is <redacted:A_KEY>"));
    let mut notice = Event::Notice(Notice { detail: "0123456789".into(), ..Default::default() });
    redactor.event(&mut notice);
    assert!(!notice.to_line().contains("0123456789"));
    let mut result =
        Event::ToolResult(ToolResult { output: "0123456789".into(), error: "0123456789".into(), ..Default::default() });
    redactor.event(&mut result);
    assert!(matches!(result, Event::ToolResult(ToolResult { output, error, .. })
        if output.as_str() == "0123456789" && error == "<redacted:A_KEY>"));
}

#[test]
fn no_message_of_ours_shows_a_value() {
    assert!(!format!("{:?}", redactor(&[("A_KEY", "0123456789")])).contains("0123456789"));
}

#[test]
fn the_beginning_of_a_value_is_held_back_until_it_is_none() {
    let redactor = redactor(&[("A_KEY", "0123456789"), ("B_KEY", "0123456789abc")]);
    let mut stream = redactor.stream();
    assert_eq!(stream.push("see 01234"), "see ");
    assert_eq!(stream.push("5678"), "");
    assert_eq!(stream.push("x"), "012345678x");
    assert_eq!(stream.push("0123456789"), "");
    assert_eq!(stream.push("ab"), "");
    assert_eq!(stream.push("!"), "<redacted:A_KEY>ab!");
    assert_eq!(stream.push("0123456789ab"), "");
    assert_eq!(stream.finish(), "<redacted:A_KEY>ab");
    assert_eq!(stream.push("again"), "again");
}

/// Values over a small alphabet, so that they overlap in every way, and texts that are full of them and of their parts.
/// No value begins or ends with a bracket: beside a placeholder it would seem to be there again.
fn values() -> impl Strategy<Value = Vec<String>> {
    proptest::collection::vec("[abé:][abé:<>]{6,10}[abé:]", 1..5)
}

fn texts() -> impl Strategy<Value = (Vec<String>, Vec<String>)> {
    values().prop_flat_map(|values| {
        let known = proptest::sample::select(values.clone());
        let part = (proptest::sample::select(values.clone()), 0..12usize, 0..12usize)
            .prop_map(|(value, skip, take)| value.chars().skip(skip).take(take).collect::<String>());
        let piece = prop_oneof![known, part, "[abé<>:r]{0,3}", Just("<redacted:K0_KEY>".to_owned())];
        (Just(values), proptest::collection::vec(piece, 0..12))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(512) })]

    #[test]
    fn pieces_joined_are_the_whole_redacted_and_twice_is_once((values, pieces) in texts(), cuts in proptest::collection::vec(0..40usize, 0..12)) {
        let named: Vec<(String, String)> =
            values.iter().enumerate().map(|(number, value)| (format!("K{number}_KEY"), value.clone())).collect();
        let redactor = Redactor::new([], named).unwrap();
        let text = pieces.concat();
        let whole = redactor.text(&text).into_owned();
        for value in &values {
            prop_assert!(!whole.contains(value.as_str()), "{value:?} is left in {whole:?}");
        }
        prop_assert_eq!(redactor.text(&whole), whole.as_str());

        let mut stream = redactor.stream();
        let mut shown = String::new();
        let mut rest: Vec<char> = text.chars().collect();
        for cut in cuts {
            let later = rest.split_off(cut.min(rest.len()));
            shown.push_str(&stream.push(&rest.into_iter().collect::<String>()));
            prop_assert!(whole.starts_with(&shown), "{shown:?} is not how {whole:?} begins");
            rest = later;
        }
        shown.push_str(&stream.push(&rest.into_iter().collect::<String>()));
        shown.push_str(&stream.finish());
        prop_assert_eq!(shown, whole);
    }
}
