#![allow(clippy::unwrap_used, clippy::panic)]

use super::super::objective::{Line, read};
use super::*;

const KEY: (&str, &str) = ("OPENAI_API_KEY", "sk-dummy-key-0123");

fn resolved(words: &[&str], variables: &[(&str, &str)]) -> Result<RunConfiguration, CliError> {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let environment: Environment = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    match read(&words)? {
        Line::Run(line) => resolve(RunArguments::read(line)?, &environment),
        other => panic!("{other:?}"),
    }
}

fn refused(words: &[&str], variables: &[(&str, &str)]) -> String {
    let error = resolved(words, variables).unwrap_err();
    assert_eq!(error.exit_code(), 2);
    error.to_string()
}

#[test]
fn without_a_word_the_defaults_hold() {
    let configuration = resolved(&["--mission", " count the lamps\n"], &[KEY]).unwrap();
    assert_eq!(configuration.objective, " count the lamps\n");
    assert_eq!(
        (configuration.protocol, configuration.stream, configuration.governance.profile.as_str()),
        (Protocol::Json, true, "safe")
    );
    assert_eq!((configuration.limits.steps, configuration.grace), (None, Duration::from_secs(10)));
    let model = configuration.model.clone().unwrap();
    assert_eq!((model.provider, model.model.as_deref()), ("openai", Some("gpt-4o-mini")));
    assert_eq!(configuration.sampling, Sampling::default());
    assert!(
        configuration.events.is_none()
            && configuration.runs.is_none()
            && configuration.closing.skill.is_none()
            && configuration.colours
    );
    assert!(configuration.servers.requests.is_empty());
    assert!(!format!("{configuration:?}").contains(KEY.1), "a key is never shown");
}

#[test]
fn a_flag_beats_its_variable_and_blanks_are_unset() {
    let variables = [
        KEY,
        ("MISSION_PROTOCOL", " NATIVE "),
        ("MISSION_STREAM", "Off"),
        ("MISSION_EVENTS", "fd:3"),
        ("JUDAIS_LOBI_RUNS", "/runs"),
        ("ELF_PROVIDER", "local"),
        ("LOCAL_MODEL", "m"),
        ("NO_COLOR", "1"),
        ("MISSION_SKILL", " "),
    ];
    let configuration = resolved(&["--mission", "add"], &variables).unwrap();
    assert_eq!((configuration.protocol, configuration.stream, configuration.colours), (Protocol::Native, false, false));
    assert_eq!(configuration.events, Some(Stated { value: "fd:3".to_owned(), place: "MISSION_EVENTS" }));
    assert_eq!(configuration.runs, Some(Stated { value: "/runs".to_owned(), place: "JUDAIS_LOBI_RUNS" }));
    let model = configuration.model.clone().unwrap();
    assert_eq!((model.provider, model.model.as_deref()), ("local", Some("m")));
    let words = ["--mission", "add", "--protocol", "json", "--events", "-", "--provider", "openai", "--model", "x"];
    let configuration = resolved(&words, &variables).unwrap();
    assert_eq!(configuration.protocol, Protocol::Json);
    assert_eq!(configuration.events, Some(Stated { value: "-".to_owned(), place: "--events" }));
    let model = configuration.model.clone().unwrap();
    assert_eq!((model.provider, model.model.as_deref()), ("openai", Some("x")));
    let configuration = resolved(&["--mission", "add", "--protocol", "", "--events", " ", "--skill="], &variables).unwrap();
    assert_eq!(configuration.protocol, Protocol::Native);
    assert_eq!(configuration.events.unwrap().value, "fd:3");
    let ours = [("MISSION_PROVIDER", "local"), ("ELF_PROVIDER", "openai")];
    assert_eq!(resolved(&["--mission", "add"], &ours).unwrap().model.unwrap().provider, "local");
}

#[test]
fn numbers_are_read_as_the_published_rules_have_them() {
    let with = |words: &[&str]| resolved(&[&["--mission", "add"], words].concat(), &[KEY]).unwrap();
    for (typed, steps) in [("0", None), ("-3", None), ("20", Some(20)), (" 7 ", Some(7)), ("", None)] {
        assert_eq!(with(&["--mission-steps", typed]).limits.steps, steps, "{typed}");
    }
    let sampling = with(&["--temperature", "0", "--top-p", ".5", "--seed", "-7"]).sampling;
    assert_eq!(sampling, Sampling { temperature: Some(0.0), top_p: Some(0.5), seed: Some(-7) });
    assert_eq!(with(&["--grace", "0.25"]).grace, Duration::from_millis(250));
}

#[test]
fn refusals_name_what_is_wrong_and_the_fix() {
    let no = |words: &[&str]| refused(&[&["--mission", "add"], words].concat(), &[KEY]);
    insta::assert_snapshot!(refused(&["--mission"], &[]), @r#"there is no objective; say what is to be done: mission --mission "TEXT" (see mission --help)"#);
    insta::assert_snapshot!(refused(&[], &[]), @r#"there is no objective; say what is to be done: mission --mission "TEXT" (see mission --help)"#);
    insta::assert_snapshot!(refused(&["--mission", " \n"], &[]), @r#"there is no objective; say what is to be done: mission --mission "TEXT" (see mission --help)"#);
    insta::assert_snapshot!(refused(&["--mission", &"x".repeat(300_000)], &[]), @"the objective is larger than 262144 bytes; put what is long into a file that a tool can read");
    insta::assert_snapshot!(no(&["--protocol", "xml"]), @"--protocol `xml`: that is no protocol; say json or native");
    insta::assert_snapshot!(refused(&["--mission", "add"], &[KEY, ("MISSION_PROTOCOL", "xml")]), @"MISSION_PROTOCOL `xml`: that is no protocol; say json or native");
    insta::assert_snapshot!(no(&["--mission-steps", "many"]), @"--mission-steps `many`: that is no whole number; give one like 20, or 0 for no ceiling");
    insta::assert_snapshot!(no(&["--temperature", "warm"]), @"--temperature `warm`: that is no number; give one like 0.7");
    insta::assert_snapshot!(no(&["--top-p", "nan"]), @"--top-p `nan`: that is no number; give one like 0.7");
    insta::assert_snapshot!(no(&["--seed", "1.5"]), @"--seed `1.5`: that is no whole number of 64 bits; give one like 7");
    insta::assert_snapshot!(no(&["--exit-codes", "loudly"]), @"--exit-codes `loudly`: that is no such word; say outcome, or leave it out");
    insta::assert_snapshot!(no(&["--on-reader-gone", "wait"]), @"--on-reader-gone `wait`: that is no such word; say stop or continue");
    insta::assert_snapshot!(no(&["--tick", "0"]), @"--tick `0`: that is no time between 0.01 and 86400 seconds");
    insta::assert_snapshot!(no(&["--control-acks"]), @"--control-acks answers the lines of the control channel, and there is none; give --control, or leave it out");
    insta::assert_snapshot!(no(&["--grace", "-1"]), @"--grace `-1`: that is no time between 0 and 3600 seconds");
    insta::assert_snapshot!(no(&["--provider", "nobody"]), @"provider `nobody` (from --provider) is not known: name `openai`, `local` or `scripted`");
    insta::assert_snapshot!(refused(&["--mission", "add"], &[("MISSION_PROVIDER", "mistral")]), @"MISSION_PROVIDER `mistral`: this build cannot ask that provider; name one of local, openai, scripted");
    insta::assert_snapshot!(no(&["--provider", "scripted"]), @"--provider scripted plays a file: name it with --script FILE");
    insta::assert_snapshot!(no(&["--skill", "no-such-skill"]), @"--skill `no-such-skill`: there is no such file or folder, and no shipped skill of that name; name a SKILL.md, the folder that holds one, or one of analyst, parts-desk");
    insta::assert_snapshot!(no(&["--trust-annotations", "nobody"]), @"--trust-annotations `nobody`: no server has that name; none is given");
    insta::assert_snapshot!(no(&["--mcp-optional", "nobody"]), @"--mcp-optional `nobody`: no server has that name; none is given");
    insta::assert_snapshot!(refused(&["--mission", "add"], &[]), @"no model can be asked: OPENAI_API_KEY is not set. Set it, or ask a server of your own with --provider local (LOCAL_API_BASE)");
}

#[test]
fn what_has_not_landed_is_refused_by_name_before_anything_else() {
    let no = |words: &[&str]| refused(&[&["--mission"], words].concat(), &[]);
    insta::assert_snapshot!(no(&["--confine-servers"]), @"--confine-servers is not supported by this build yet; leave it out");
    insta::assert_snapshot!(no(&["--swarm"]), @"--swarm is not supported by this build yet; leave it out");
    insta::assert_snapshot!(no(&["--replay-tools", "mine"]), @"--replay-tools `mine`: that is no such word; leave it out, or say recorded");
    insta::assert_snapshot!(no(&["--replay-tools", "live"]), @"--replay-tools live is not supported by this build yet; leave it out, or say recorded");
    insta::assert_snapshot!(refused(&["--mission", "add"], &[KEY, ("MISSION_SWARM", "1")]), @"MISSION_SWARM is not supported by this build yet; unset it");
    let fine = [
        "--mission",
        "add",
        "--gate-wait",
        "300",
        "--profile",
        "SAFE",
        "--replay-tools",
        "recorded",
        "--resume",
        "",
        "--control=",
    ];
    resolved(&fine, &[KEY, ("MISSION_GATE_WAIT", "10")]).unwrap();
    resolved(&["--mission", "add", "--mcp-stdio", "x"], &[KEY, ("MCP_URL", "http://h/"), ("MCP_TOKEN", "t")]).unwrap();
}
