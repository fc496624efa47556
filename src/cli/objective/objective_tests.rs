#![allow(clippy::unwrap_used, clippy::panic)]

use proptest::prelude::*;

use super::*;

fn told(words: &[&str]) -> Result<Line, CliError> {
    read(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
}

fn line(words: &[&str]) -> RunLine {
    match told(words).unwrap() {
        Line::Run(line) => line,
        other => panic!("{words:?} is {other:?}"),
    }
}

fn objective(words: &[&str]) -> String {
    line(words).objective.unwrap()
}

fn refused(words: &[&str]) -> String {
    told(words).unwrap_err().to_string()
}

/// Every name that is, was or will be a verb.
fn names() -> Vec<&'static str> {
    VERBS.iter().map(|verb| verb.name).chain(KEPT.iter().copied()).chain(["help", "version"]).collect()
}

#[test]
fn the_name_of_every_verb_is_an_objective_under_mission() {
    for name in names() {
        for words in [
            vec!["--mission", name],
            vec![name, "--mission"],
            vec!["--events", "-", name, "--mission"],
            vec!["--mission", "--", name],
        ] {
            assert_eq!(objective(&words), name, "{words:?}");
        }
        assert_eq!(objective(&["run", "--", name]), name);
        assert_eq!(objective(&["run", name]), name);
        assert_eq!(objective(&["--", name]), name);
    }
}

#[test]
fn without_mission_a_first_word_that_is_a_verb_is_that_verb() {
    for verb in Verb::ALL.into_iter().skip(1) {
        let words = vec!["--json".to_owned(), "x".to_owned()];
        assert_eq!(told(&[verb.name(), "--json", "x"]).unwrap(), Line::Verb { verb, words: words.clone() });
        assert_eq!(told(&["--json", verb.name(), "x"]).unwrap(), Line::Verb { verb, words });
    }
    // and the value of a flag is none
    assert_eq!(objective(&["--model", "tools", "count the lamps"]), "count the lamps");
    assert_eq!(told(&["help", "demo"]).unwrap(), Line::Help(Some(Verb::Demo)));
    assert_eq!(told(&["run", "--help"]).unwrap(), Line::Help(Some(Verb::Run)));
    assert_eq!(told(&["--mission", "-h"]).unwrap(), Line::Help(None));
    assert_eq!(told(&["-V"]).unwrap(), Line::Version);
}

#[test]
fn a_text_with_white_space_or_behind_two_dashes_is_an_objective_however_it_begins() {
    for text in [
        "-- how many?",
        "- how many lamps?",
        "--how many lamps?",
        "-5 + 3 is what?",
        "--mission impossible",
        "-\tx",
        "--json x=y",
    ] {
        assert_eq!(objective(&["--mission", text]), text);
        assert_eq!(objective(&["run", text]), text);
        assert_eq!(objective(&["--events", "fd:3", text]), text);
    }
    for text in ["--protocol", "-x", "--", "-", "--mission", "demo"] {
        assert_eq!(objective(&["--mission", "--", text]), text);
        assert_eq!(objective(&["run", "--seed", "-5", "--", text]), text);
    }
}

#[test]
fn a_flag_has_its_value_behind_it_or_behind_an_equals_sign() {
    let expected = ["--mission", "--mcp-stdio=a=npx -y b --c", "--seed=-7", "--events=-", "--swarm", "--model=--x"];
    let words = ["--mission", "--mcp-stdio", "a=npx -y b --c", "--seed", "-7", "add", "--events", "-", "--swarm", "--model=--x"];
    assert_eq!(line(&words), RunLine { flags: expected.map(str::to_owned).to_vec(), objective: Some("add".to_owned()) });
    // a known flag with its value in one word is a flag, white space or not
    assert_eq!(line(&["--mission", "--mcp-stdio=node server.js", "add"]).flags.last().unwrap(), "--mcp-stdio=node server.js");
}

#[test]
fn what_makes_no_command_is_refused() {
    insta::assert_snapshot!(refused(&["--mission", "add", "one word too many"]), @"there are two objectives, `add` and `one word too many`; an objective is one argument, put it in quotes");
    insta::assert_snapshot!(refused(&["run", "add", "--", "more"]), @"there are two objectives, `add` and `more`; an objective is one argument, put it in quotes");
    insta::assert_snapshot!(refused(&["--mission", "add", "--mission-steps"]), @"--mission-steps needs a value; write it behind the flag, or as --mission-steps=VALUE when it begins with a dash");
    insta::assert_snapshot!(refused(&["--mission", "add", "--model", "--no-stream"]), @"--model needs a value; write it behind the flag, or as --model=VALUE when it begins with a dash");
    insta::assert_snapshot!(refused(&["--mission", "add", "--model", "--"]), @"--model needs a value; write it behind the flag, or as --model=VALUE when it begins with a dash");
    insta::assert_snapshot!(refused(&["--mission=add"]), @"--mission is a switch and takes no value; write it alone");
    insta::assert_snapshot!(refused(&["doctor", "x"]), @"the verb `doctor` is not supported by this build yet; an objective of that name is written `mission run -- doctor`");
    insta::assert_snapshot!(refused(&["completions"]), @"the verb `completions` is not supported by this build yet; an objective of that name is written `mission run -- completions`");
    insta::assert_snapshot!(refused(&["tolos"]), @"`tolos` is no verb (did you mean `tools`?); an objective of one word is written `mission run -- tolos`");
    insta::assert_snapshot!(refused(&["help", "me"]), @"there is no help on `me`; the verbs are run, demo, tools, runs, approvals, skill, lock, policy, verify, replay, schema, contract, conform");
    // a flag that nobody knows is left for the parser, which has something to suggest
    assert_eq!(line(&["--mission", "--add=secret"]).flags, ["--mission", "--add"]);
    assert_eq!(objective(&["lamps"]), "lamps");
}

#[test]
fn the_verbs_are_those_that_the_contract_says_have_landed() {
    let landed: Vec<&str> = VERBS.iter().filter(|verb| verb.status == Status::Landed).map(|verb| verb.name).collect();
    assert_eq!(Verb::ALL.map(Verb::name).to_vec(), landed);
    assert!(Verb::ALL.iter().all(|verb| !verb.meaning().is_empty()));
}

proptest! {
    #[test]
    fn behind_two_dashes_anything_is_the_objective(text in ".{0,40}") {
        prop_assert_eq!(objective(&["--mission", "--", &text]), text);
    }

    #[test]
    fn no_words_make_it_panic(words in proptest::collection::vec("-{0,2}[a-z=. -]{0,9}|--mission|--model|--|run|help", 0..6)) {
        let _ = read(&words);
    }

    #[test]
    fn the_distance_is_one(left in "[a-d]{0,6}", right in "[a-d]{0,6}") {
        prop_assert_eq!(distance(&left, &right) == 0, left == right);
        prop_assert_eq!(distance(&left, &right), distance(&right, &left));
    }
}
