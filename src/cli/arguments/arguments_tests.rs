#![allow(clippy::unwrap_used)]

use mission_contract::vocabulary::{FLAGS, Status};

use super::super::objective::{Line, read};
use super::*;

fn run(words: &[&str]) -> Result<RunArguments, CliError> {
    match read(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())? {
        Line::Run(line) => RunArguments::read(line),
        other => panic!("{other:?}"),
    }
}

fn refused(words: &[&str]) -> String {
    run(words).unwrap_err().to_string()
}

#[test]
fn flags_are_read() {
    let words = [
        "--mission",
        "add",
        "--mcp-stdio",
        "a=b --c",
        "--mcp-stdio=-x y",
        "--seed",
        "-7",
        "--top-p=-1",
        "--events",
        "-",
        "--no-stream",
        "--model",
        "x",
        "--model",
        "y",
        "--mcp-env",
        "A=B",
        "--grace",
        "3",
    ];
    let arguments = run(&words).unwrap();
    let flags = arguments.flags;
    assert_eq!(arguments.objective.as_deref(), Some("add"));
    assert!(flags.mission && flags.model.no_stream);
    assert_eq!(flags.tools.servers.mcp_stdio, ["a=b --c", "-x y"]);
    assert_eq!(
        (flags.model.seed.as_deref(), flags.model.top_p.as_deref(), flags.streams.events.as_deref()),
        (Some("-7"), Some("-1"), Some("-"))
    );
    assert_eq!(flags.model.model.as_deref(), Some("y"), "the last one counts");
    assert_eq!(
        (flags.tools.servers.mcp_env.as_slice(), flags.limits.grace.as_deref()),
        (["A=B".to_owned()].as_slice(), Some("3"))
    );
    assert_eq!(arguments.later, []);
}

#[test]
fn blanks_are_values_here() {
    let arguments = run(&["--mission", "add", "--model", "", "--events=", "--mcp-stdio", ""]).unwrap();
    assert_eq!((arguments.flags.model.model.as_deref(), arguments.flags.tools.servers.mcp_stdio.len()), (Some(""), 1));
}

#[test]
fn a_misspelt_flag_is_refused_with_the_one_that_is_near() {
    insta::assert_snapshot!(refused(&["--mission", "add", "--protocl", "json"]), @"");
    insta::assert_snapshot!(refused(&["--mission", "add", "--mission-step=3"]), @"");
    insta::assert_snapshot!(refused(&["--mission", "-x"]), @"");
    insta::assert_snapshot!(refused(&["--mission", "--api-key=hunter2"]), @"");
    insta::assert_snapshot!(read_verb::<ToolsArguments>(Verb::Tools, &["--jsn".to_owned()]).unwrap_err(), @"");
    insta::assert_snapshot!(read_verb::<ToolsArguments>(Verb::Tools, &["me".to_owned()]).unwrap_err(), @"");
    insta::assert_snapshot!(read_verb::<ConformArguments>(Verb::Conform, &["a".to_owned(), "b".to_owned()]).unwrap_err(), @"");
    insta::assert_snapshot!(read_verb::<ToolsArguments>(Verb::Tools, &["--mcp-stdio".to_owned()]).unwrap_err(), @"");
    insta::assert_snapshot!(read_verb::<ToolsArguments>(Verb::Tools, &["--json=yes".to_owned()]).unwrap_err(), @"");
}

#[test]
fn every_flag_of_the_contract_is_known_and_no_other() {
    let command = later::add(run_command());
    let mut typed: Vec<String> =
        command.get_arguments().filter_map(|arg| arg.get_long()).map(|long| format!("--{long}")).collect();
    let mut published: Vec<String> =
        FLAGS.iter().map(|flag| flag.name.to_owned()).chain(["--help".to_owned(), "--version".to_owned()]).collect();
    typed.sort();
    published.sort();
    assert_eq!(typed, published);
    for arg in command.get_arguments() {
        let Some(flag) = arg.get_long().and_then(|long| mission_contract::vocabulary::flag(&format!("--{long}"))) else {
            continue;
        };
        assert_eq!(arg.get_action().takes_values(), flag.value.is_some(), "{}", flag.name);
        if flag.status == Status::Landed && flag.value.is_some() {
            assert_eq!(arg.get_value_names().unwrap().first().unwrap().as_str(), flag.value.unwrap(), "{}", flag.name);
            assert_eq!(matches!(arg.get_action(), clap::ArgAction::Append), flag.repeatable, "{}", flag.name);
        }
        assert_eq!(arg.is_hide_set(), flag.status != Status::Landed, "{}", flag.name);
    }
}

#[test]
fn what_has_not_landed_is_asked_for_unless_it_says_what_holds_anyway() {
    let arguments =
        run(&["--mission", "add", "--swarm", "--gate-wait", "300.0", "--history", "", "--profile", "dev", "--resume=x"]).unwrap();
    let wishes: Vec<(&str, Option<&str>)> = arguments.later.iter().map(|asked| (asked.flag.name, asked.wish())).collect();
    assert_eq!(
        wishes,
        [("--history", None), ("--gate-wait", None), ("--profile", Some("dev")), ("--resume", Some("x")), ("--swarm", Some(""))]
    );
}

#[test]
fn the_help_is_short_and_says_where_more_is() {
    let help = help(None);
    assert!(help.lines().count() <= 60 && help.lines().all(|line| line.chars().count() <= HELP_COLUMNS), "{help}");
    insta::assert_snapshot!(help, @"");
}

#[test]
fn every_verb_has_its_own_help() {
    insta::assert_snapshot!(help(Some(Verb::Tools)), @"");
    insta::assert_snapshot!(help(Some(Verb::Demo)), @"");
    insta::assert_snapshot!(help(Some(Verb::Conform)), @"");
    insta::assert_snapshot!(help(Some(Verb::Schema)), @"");
    insta::assert_snapshot!(help(Some(Verb::Contract)), @"");
    assert_eq!(help(Some(Verb::Run)), help(None));
}
