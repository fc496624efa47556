//! `mission demo`: a newcomer's first minute. No key, no network, no configuration; a real run that can be looked into.

use crate::support::log::Log;
use crate::support::run::{Mission, run_dirs};

#[test]
fn it_runs_in_both_protocols_and_leaves_a_run_to_look_into() {
    for protocol in ["json", "native"] {
        let finished = Mission::verb(["demo", "--protocol", protocol]).run();
        finished.exits(0);
        assert!(finished.stdout.to_lowercase().contains("scripted"), "it says that the model is scripted\n{finished}");
        assert!(!finished.stdout.contains('\u{1b}'), "no colours where there is no terminal\n{finished}");
        let runs = run_dirs(&finished.directory);
        assert_eq!(runs.len(), 1, "{finished}");
        let name = runs[0].file_name().unwrap().to_str().unwrap();
        assert!(finished.stdout.contains(name), "it says where the run lies\n{finished}");
        let log = Log::read(&runs[0]);
        assert_eq!(log.problems(), Vec::<String>::new());
        let open = log.of_kind("open").remove(0);
        assert_eq!(open["spec"]["protocol"], protocol);
        assert_eq!(open["spec"]["provider"], "scripted");
        assert!(open["spec"]["skill"]["name"].is_string(), "it runs under a skill");
        let results = log.of_kind("result");
        assert!(!results.is_empty() && results.iter().any(|result| result["end"] == "ok"), "real calls were made: {results:?}");
        let last = log.of_kind("record").pop().unwrap();
        assert_eq!(last["outcome"], "answered", "{last}");
    }
}

#[test]
fn it_needs_no_home_and_no_variables() {
    let finished = Mission::verb(["demo"]).env("HOME", "").env("PATH", "").run();
    finished.exits(0);
    assert_eq!(run_dirs(&finished.directory).len(), 1, "{finished}");
}

#[test]
fn it_keeps_its_run_where_it_is_told_to_and_a_blank_is_nowhere_else() {
    for (keep, place) in
        [("", ".mission/runs"), ("  ", ".mission/runs"), ("none", "none/runs"), (" odd  ön'e ", " odd  ön'e /runs")]
    {
        let finished = Mission::verb(["demo", "--keep", keep]).run();
        finished.exits(0);
        assert!(finished.directory.join(place).join("open").is_dir(), "{keep:?}\n{finished}");
    }
}

#[test]
fn it_finds_its_own_program_when_the_path_to_it_is_gone_or_cannot_be_written_down() {
    let gone = "cp \"$0\" ./copy && exec 9<./copy && rm ./copy && exec /proc/self/fd/9 \"$@\"";
    let odd = "place=$(printf 'odd \\377') && mkdir \"$place\" && cp \"$0\" \"$place/copy\" && exec \"$place/copy\" \"$@\"";
    for script in [gone, odd] {
        let finished = Mission::verb(["demo"]).by_shell(script).run();
        finished.exits(0);
        assert_eq!(run_dirs(&finished.directory).len(), 1, "{finished}");
    }
}

#[test]
fn the_word_for_its_server_is_an_objective_like_any_other() {
    let finished = Mission::verb(["__demo-server", "--mission", "--provider", "scripted"]).run();
    finished.refused(&["--script"]);
}

#[test]
fn its_answer_comes_from_its_tools() {
    // the answer is made of what the calls returned: the same words stand in a result
    let finished = Mission::verb(["demo"]).run();
    let log = Log::read(&run_dirs(&finished.directory)[0]);
    let answer = log.of_kind("record").into_iter().find(|record| record["event"] == "answer").unwrap()["text"]
        .as_str()
        .unwrap()
        .to_owned();
    let shown: String =
        log.of_kind("result").iter().map(|result| result["text"].as_str().unwrap_or_default().to_owned()).collect();
    let figures = |text: &str| {
        let mut all: Vec<String> =
            text.split(|each: char| !each.is_ascii_digit()).filter(|part| !part.is_empty()).map(str::to_owned).collect();
        all.sort();
        all.dedup();
        all
    };
    let said = figures(&answer);
    assert!(!said.is_empty(), "{answer}");
    for figure in said {
        assert!(figures(&shown).contains(&figure), "{figure} of {answer:?} stands in no result:\n{shown}");
    }
}

#[test]
fn it_gives_its_records_to_a_platform_too() {
    let finished = Mission::verb(["demo"]).events("-").run();
    finished.exits(0);
    let events = crate::support::run::records(&finished.stdout);
    assert_eq!(events.first().unwrap()["event"], "mission_started");
    assert_eq!(events.last().unwrap()["event"], "mission_finished");
}
