//! What is refused at the door: exit 2, one sentence on stderr that names the flag or field, no events, no run directory. And what
//! is an objective, whatever it looks like.

use serde_json::{Value, json};

use crate::support::model::{Model, answer};
use crate::support::needs;
use crate::support::run::{Mission, write};

/// Words after `mission`, variables, and what the sentence must name.
type Refusal = (&'static [&'static str], &'static [(&'static str, &'static str)], &'static [&'static str]);

const REFUSALS: &[Refusal] = &[
    // nothing to do
    (&["--mission"], &[], &["objective"]),
    (&["--mission", ""], &[], &["objective"]),
    (&["--mission", "  \n "], &[], &["objective"]),
    // flags that do not exist
    (&["--mission", "add", "--protocl", "json"], &[], &["--protocl"]),
    (&["--mission", "--add"], &[], &["--add"]),
    (&["--mission", "-x"], &[], &["-x"]),
    (&["--mission", "add", "--mission-step", "3"], &[], &["--mission-step"]),
    (&["--mission", "add", "one word too many"], &[], &["one word too many"]),
    // values that make no sense
    (&["--mission", "add", "--protocol", "xml"], &[], &["--protocol", "xml"]),
    (&["--mission", "add"], &[("MISSION_PROTOCOL", "xml")], &["MISSION_PROTOCOL", "xml"]),
    (&["--mission", "add", "--provider", "nobody"], &[], &["--provider", "nobody"]),
    (&["--mission", "add", "--mission-steps", "many"], &[], &["--mission-steps", "many"]),
    (&["--mission", "add", "--mission-steps"], &[], &["--mission-steps"]),
    (&["--mission", "add", "--temperature", "warm"], &[], &["--temperature", "warm"]),
    (&["--mission", "add", "--seed", "1.5"], &[], &["--seed", "1.5"]),
    (&["--mission", "add", "--profile", "emperor"], &[], &["--profile", "emperor", "god"]),
    (&["--mission", "add"], &[("JUDAIS_LOBI_PROFILE", "emperor")], &["JUDAIS_LOBI_PROFILE", "emperor"]),
    (&["--mission", "add", "--grant", "fs.fly"], &[], &["--grant", "fs.fly", "fs.write"]),
    (&["--mission", "add", "--policy", "no-such-file"], &[], &["--policy", "no-such-file"]),
    // servers
    (&["--mission", "add", "--mcp-stdio", ""], &[], &["--mcp-stdio"]),
    (&["--mission", "add", "--mcp-stdio", "a=true", "--mcp-stdio", "a=true"], &[], &["--mcp-stdio", "a"]),
    (&["--mission", "add", "--mcp-stdio", "unclosed 'quote"], &[], &["--mcp-stdio"]),
    (&["--mission", "add", "--mcp-optional", "nobody"], &[], &["--mcp-optional", "nobody"]),
    (&["--mission", "add", "--mcp-url", "127.0.0.1:9/mcp"], &[], &["--mcp-url", "http://"]),
    (&["--mission", "add"], &[("MCP_URL", "ftp://127.0.0.1/")], &["MCP_URL"]),
    (&["--mission", "add", "--mcp-url", "http://127.0.0.1:9/a", "--mcp-token", "t", "--mcp-token", "u"], &[], &["--mcp-token"]),
    (
        &["--mission", "add", "--mcp-url", "http://127.0.0.1:9/a", "--mcp-url", "http://127.0.0.1:9/b"],
        &[("MCP_TOKEN", "t")],
        &["MCP_TOKEN"],
    ),
    // models
    (&["--mission", "add", "--provider", "openai"], &[], &["OPENAI_API_KEY"]),
    (&["--mission", "add", "--provider", "scripted"], &[], &["--script"]),
    (&["--mission", "add", "--provider", "scripted", "--script", "no-such-file.yaml"], &[], &["no-such-file.yaml"]),
    (&["--mission", "add"], &[("LOCAL_API_BASE", "ftp://127.0.0.1/")], &["OPENAI_API_KEY"]),
    (
        &["--mission", "add", "--provider", "local"],
        &[("LOCAL_API_BASE", "ftp://127.0.0.1/"), ("LOCAL_MODEL", "m")],
        &["LOCAL_API_BASE"],
    ),
    // gates
    (&["--mission", "add", "--gate", "often"], &[], &["--gate `often`", "all-writes"]),
    (&["--mission", "add", "--gate-wait", "soon"], &[], &["--gate-wait `soon`", "seconds"]),
    (&["--mission", "add", "--gate-time", "paid"], &[], &["--gate-time `paid`", "free"]),
    (&["--mission", "add", "--gate-expires", "-1"], &[], &["--gate-expires `-1`"]),
    // a skill
    (&["--mission", "add", "--skill", "no-such-skill"], &[], &["--skill", "no-such-skill"]),
    // published, and not there yet
    (&["--mission", "add", "--swarm"], &[], &["--swarm"]),
    (&["--mission", "add"], &[("MISSION_SWARM", "1")], &["MISSION_SWARM"]),
    (&["--campaign", "add"], &[], &["--campaign"]),
    (&["--campaign-plan", "plan.yaml"], &[], &["--campaign-plan"]),
    (&["--mission", "--resume", "run_20260101T000000-00000000"], &[], &["--resume"]),
    (&["--mission", "--replay", "run_20260101T000000-00000000"], &[], &["--replay"]),
    // the channel in
    (&["--mission", "add", "--provider", "local", "--model", "x", "--control", "fd:4"], &[], &["--control fd:4", "not open"]),
    (&["--mission", "add", "--provider", "local", "--model", "x"], &[("MISSION_CONTROL", "fd:2")], &["MISSION_CONTROL fd:2"]),
    (&["--mission", "add", "--tick", "often"], &[], &["--tick `often`", "seconds"]),
    (&["--mission", "add", "--on-reader-gone", "cry"], &[], &["--on-reader-gone `cry`", "stop"]),
    (&["--mission", "add", "--exit-codes", "all"], &[], &["--exit-codes `all`", "outcome"]),
    (&["--mission", "add", "--control-acks"], &[], &["--control-acks"]),
    (&["--mission", "add", "--provider", "anthropic"], &[], &["--provider", "anthropic"]),
];

#[test]
fn refusals_name_what_is_wrong_and_leave_nothing_behind() {
    for (words, variables, naming) in REFUSALS {
        let mut mission = Mission::verb(words.iter().copied()).events("fd:1");
        for (name, value) in *variables {
            mission = mission.env(name, value);
        }
        let finished = mission.run();
        eprintln!("mission {}  ->  {}", words.join(" "), finished.stderr.trim_end());
        finished.refused(naming);
        assert_eq!(finished.stdout, "", "{finished}");
        assert!(!finished.directory.join(".mission").exists(), "{finished}");
    }
}

#[test]
fn defaults_of_what_is_not_there_yet_are_no_wish_for_it() {
    let model = Model::says([answer("Twelve.")]);
    let finished = Mission::objective("how many lamps?")
        .model(&model)
        .env("MISSION_SWARM", "0")
        .env("MISSION_CONTROL", "")
        .env("MISSION_RESUME", " ")
        .env("MCP_URL", "")
        .env("MISSION_APPROVAL", "")
        .env("MISSION_SECONDS", "0")
        .env("MISSION_GATE_WAIT", "300")
        .env("MISSION_PROFILE", "safe")
        .env("JUDAIS_LOBI_SANDBOX", "none")
        .env("JUDAIS_LOBI_AUDIT", "off")
        .run();
    finished.exits(0).ends("answered");
}

/// The flags or variables that the program itself says it does not do yet.
fn later(what: &str) -> Vec<(String, bool)> {
    let printed = Mission::verb(["contract"]).run();
    printed.exits(0);
    let contract: Value = serde_json::from_str(&printed.stdout).unwrap();
    let later: Vec<(String, bool)> = contract[what]
        .as_array()
        .unwrap_or_else(|| panic!("no {what} in the contract\n{printed}"))
        .iter()
        .filter(|each| each["status"] == "later")
        .map(|each| (each["name"].as_str().unwrap().to_owned(), each.get("value").is_some()))
        .collect();
    assert!(!later.is_empty(), "nothing is said to come later");
    later
}

#[test]
fn everything_that_is_published_and_not_there_yet_is_refused_by_name() {
    for (flag, valued) in later("flags") {
        let words: &[&str] = if valued { &[&flag, "7"] } else { &[&flag] };
        Mission::verb(["--mission", "add"]).args(words.iter().copied()).events("fd:1").run().refused(&[&flag]);
    }
    for (variable, _) in later("variables") {
        Mission::verb(["--mission", "add"]).env(&variable, "7").events("fd:1").run().refused(&[&variable]);
    }
}

#[test]
fn the_name_of_every_verb_is_an_objective_under_mission() {
    let verbs = [
        "run",
        "tools",
        "demo",
        "schema",
        "contract",
        "conform",
        "runs",
        "approvals",
        "replay",
        "verify",
        "doctor",
        "help",
        "version",
    ];
    for verb in verbs {
        let model = Model::says([answer("Twelve.")]);
        let finished = Mission::verb(["--mission", verb]).events("-").model(&model).run();
        finished.exits(0);
        assert!(finished.stdout.contains(&format!("\"objective\":\"{verb}\"")), "{verb}\n{finished}");
        // and wherever it stands on the line
        let finished = Mission::verb([verb, "--mission"]).events("-").model(&model).run();
        finished.exits(0);
        assert!(finished.stdout.contains(&format!("\"objective\":\"{verb}\"")), "{verb} first\n{finished}");
    }
}

#[test]
fn a_text_with_white_space_is_an_objective_even_when_it_begins_with_a_dash() {
    let objectives =
        ["-- how many?", "- how many lamps?", "--how many lamps?", "-5 + 3 is what?", "--mission impossible", "-\tx"];
    for objective in objectives {
        let model = Model::says([answer("Twelve.")]);
        let finished = Mission::objective(objective).model(&model).run();
        finished.exits(0).ends("answered");
        assert_eq!(finished.only("mission_started")["objective"], objective);
    }
}

#[test]
fn after_two_dashes_anything_is_an_objective() {
    for objective in ["--protocol", "-x", "demo", "how many lamps?"] {
        let model = Model::says([answer("Twelve.")]);
        let both = [
            Mission::verb(["--mission"]).model(&model).args(["--events", "fd:1", "--", objective]),
            Mission::verb(["run"]).model(&model).args(["--events", "fd:1", "--", objective]),
        ];
        for mission in both {
            let finished = mission.run();
            finished.exits(0);
            assert!(finished.stdout.contains(&format!("\"objective\":\"{objective}\"")), "{finished}");
        }
    }
}

#[test]
fn an_objective_is_kept_verbatim() {
    let objective = "  zwölf Lampen?\n\t— \"quoted\", \u{1f4a1}  ";
    let model = Model::says([answer("Twelve.")]);
    let finished = Mission::objective(objective).model(&model).run();
    finished.exits(0);
    assert_eq!(finished.only("mission_started")["objective"], objective);
    let messages = &model.requests()[0]["messages"];
    assert!(messages[1]["content"].as_str().unwrap().contains("zwölf Lampen?"), "{messages}");
}

#[test]
fn the_aliases_of_variables_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let runs = folder.path().join("elsewhere");
    let model = Model::says([answer("Twelve.")]);
    let finished = Mission::objective("how many lamps?").model(&model).env("JUDAIS_LOBI_RUNS", runs.as_os_str()).run();
    finished.exits(0);
    assert_eq!(
        std::fs::read_dir(&runs)
            .unwrap()
            .filter(|entry| entry.as_ref().unwrap().file_name().to_str().unwrap().starts_with("run_"))
            .count(),
        1
    );
    assert!(!finished.directory.join(".mission/runs").exists());
}

#[test]
fn a_configuration_with_an_unknown_key_is_refused_in_ours() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), ".mission/config.yaml", "prizing: {}\n");
    let model = Model::says([answer("Twelve.")]);
    let finished = Mission::objective("how many lamps?").model(&model).directory(folder.path()).run();
    finished.refused(&["config.yaml", "prizing"]);
    assert_eq!(model.requests().len(), 0);
}

#[test]
fn help_is_short_and_says_where_more_is() {
    let finished = Mission::verb(["--help"]).run();
    finished.exits(0);
    assert!(finished.stdout.lines().count() <= 100, "{finished}");
    for word in ["--mission", "--events", "--mcp-stdio", "--skill", "demo"] {
        assert!(finished.stdout.contains(word), "{word}\n{finished}");
    }
    assert_eq!(Mission::verb(["--version"]).run().exits(0).stdout.trim(), format!("mission {}", env!("CARGO_PKG_VERSION")));
}

#[test]
fn sampling_is_sent_when_it_is_set_and_only_then() {
    let model = Model::says([answer("Twelve.")]);
    Mission::objective("how many lamps?").model(&model).run().exits(0);
    for name in ["temperature", "top_p", "seed"] {
        assert!(model.requests()[0].get(name).is_none(), "{name} was not asked for");
    }
    let model = Model::says([answer("Twelve.")]);
    Mission::objective("how many lamps?")
        .model(&model)
        .args(["--temperature", "0.25", "--top-p", "0.5", "--seed", "-7"])
        .run()
        .exits(0);
    let request = &model.requests()[0];
    assert_eq!((&request["temperature"], &request["top_p"], &request["seed"]), (&json!(0.25), &json!(0.5), &json!(-7)));
}

#[test]
fn a_working_directory_that_is_gone_is_refused() {
    let script = "mkdir gone && cd gone && rmdir ../gone && exec \"$0\" \"$@\"";
    let model = Model::says([answer("Twelve.")]);
    Mission::objective("how many lamps?").model(&model).by_shell(script).run().refused(&["the working directory"]);
}

#[test]
fn a_folder_in_which_nothing_can_be_made_durable_is_refused() {
    let unprivileged = if nix::unistd::geteuid().is_root() { Err("no folder that root may not read".to_owned()) } else { Ok(()) };
    needs!(unprivileged);
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o300)).unwrap();
    let model = Model::says([answer("Twelve.")]);
    let finished = Mission::objective("how many lamps?").model(&model).directory(folder.path()).run();
    finished.refused(&["it may not be read"]);
}

#[allow(unsafe_code)]
fn open_files<const MOST: u64>() {
    let limit = libc::rlimit { rlim_cur: MOST, rlim_max: MOST };
    // SAFETY: the call reads the structure, which lives until it returns.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) }, 0);
}

#[test]
fn a_process_that_may_open_hardly_a_file_ends_with_a_sentence() {
    let model = Model::says([answer("Twelve.")]);
    for few in [open_files::<6>, open_files::<7>, open_files::<8>, open_files::<10>, open_files::<12>] {
        let finished = Mission::objective("how many lamps?").model(&model).inherits(few).run();
        assert!([0, 1, 2].contains(&finished.code()), "{finished}");
        assert!(finished.stderr.lines().all(|line| line.starts_with("mission: ")), "{finished}");
    }
}
