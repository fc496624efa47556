//! `mission runs`: what is there is listed, shown, followed, exported and removed.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use mission_contract::conforms::conforms_line;
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::support::model::{Model, Turn, answer, call, held};
use crate::support::needs;
use crate::support::run::{BINARY, Finished, Live, Mission, records, run_dirs};
use crate::support::servers;

const SECRET: &str = "s3cr3t-l4mp-0f-the-house";

fn mission(directory: &Path, words: &[&str]) -> Finished {
    Mission::verb(words.iter().copied()).directory(directory).env("LOCAL_API_KEY", SECRET).run()
}

fn runs(directory: &Path, words: &[&str]) -> Finished {
    mission(directory, &[&["runs"], words].concat())
}

fn id(run_dir: &Path) -> String {
    run_dir.file_name().unwrap().to_str().unwrap().to_owned()
}

/// A finished run with a call, a rejected reply, a large result and an answer, in which a credential is said.
fn told(protocol: &str, server: &str) -> (Finished, Model) {
    let add = ("mcp.add".to_owned(), json!({"a": 2, "b": 3}));
    let turns = vec![
        if protocol == "native" { Turn::Call(vec![add.clone(), add]) } else { Turn::Call(vec![add]) },
        call("mcp.no_such_tool", json!({})),
        call("mcp.fail", json!({"why": format!("the key {SECRET} is wrong")})),
        call("mcp.big", json!({"kib": 200})),
        call("mission_result", json!({"handle": "r1"})),
        answer(&format!("5, says {SECRET}.")),
    ];
    let model = Model::says(turns);
    let finished = Mission::objective("add two and three")
        .model(&model)
        .env("LOCAL_API_KEY", SECRET)
        .mcp_stdio("mcp", server)
        .protocol(protocol)
        .run();
    finished.exits(0).ends("answered");
    (finished, model)
}

fn answered(directory: &Path, objective: &str) -> String {
    let model = Model::says([answer("Twelve.")]);
    let finished = Mission::objective(objective).model(&model).directory(directory).run();
    finished.exits(0);
    finished.only("mission_started")["run_id"].as_str().unwrap().to_owned()
}

/// A run that waits for its model.
fn waiting(directory: &Path, model: &Model) -> (Live, PathBuf) {
    let before = run_dirs(directory);
    let live = Mission::objective("wait").model(model).directory(directory).spawn();
    model.wait_for_request(1);
    live.wait_for_event("step_started");
    let run_dir = run_dirs(directory).into_iter().find(|run| !before.contains(run)).unwrap();
    (live, run_dir)
}

/// A run that was killed while it waited for its model.
fn killed(directory: &Path) -> PathBuf {
    let model = Model::says([Turn::Stall]);
    let (live, run_dir) = waiting(directory, &model);
    live.signal(Signal::SIGKILL);
    live.finish();
    run_dir
}

#[test]
fn a_list_says_how_each_run_stands_and_reads_no_log() {
    let folder = tempfile::tempdir().unwrap();
    let empty = runs(folder.path(), &["list"]);
    empty.exits(0);
    assert!(empty.stdout.starts_with("no runs in "), "{empty}");
    assert!(!folder.path().join(".mission").exists(), "looking makes nothing");
    let first = answered(folder.path(), &format!("how many {SECRET}?"));
    let model = Model::says([Turn::Stall]);
    let (live, running) = waiting(folder.path(), &model);
    let running = id(&running);
    // The last one: whoever starts after it closes it.
    let open = id(&killed(folder.path()));
    // What stands in the logs is nothing to a list.
    let log = folder.path().join(".mission/runs").join(&first).join("log.ndjson");
    std::fs::set_permissions(&log, PermissionsExt::from_mode(0o000)).unwrap();
    std::fs::write(&log, "garbage").ok();
    let listed = records(&runs(folder.path(), &["list", "--json"]).stdout);
    let of = |name: &str| listed.iter().find(|run| run["run_id"] == name).unwrap_or_else(|| panic!("{listed:?}"));
    assert_eq!(listed.len(), 3);
    assert_eq!(
        (&of(&first)["state"], &of(&first)["outcome"], &of(&first)["resumable"]),
        (&json!("finished"), &json!("answered"), &json!(false))
    );
    assert_eq!((&of(&first)["steps"], &of(&first)["usage"]["total_tokens"]), (&json!(1), &json!(107)));
    assert_eq!(of(&first)["objective"], "how many <redacted:LOCAL_API_KEY>?");
    assert_eq!((&of(&open)["state"], &of(&open)["resumable"]), (&json!("open"), &json!(true)));
    assert_eq!((&of(&running)["state"], &of(&running)["resumable"]), (&json!("running"), &json!(false)));
    assert_eq!(of(&running)["holder"]["pid"], live.id());
    let text = runs(folder.path(), &["list"]).stdout;
    assert_eq!(text.lines().count(), 4, "{text}");
    assert!(!text.contains(SECRET) && text.contains(&running), "{text}");
    drop(live);
}

#[test]
fn a_run_is_shown_as_a_timeline_and_nothing_in_it_is_a_credential() {
    let server = needs!(servers::misbehaving(&[]));
    for protocol in ["json", "native"] {
        let (finished, model) = told(protocol, &server);
        let name = id(&finished.run_dir());
        let directory = &finished.directory;
        let shown = |words: &[&str]| {
            let shown = runs(directory, &[&["show", &name], words].concat());
            shown.exits(0);
            assert!(!shown.stdout.contains(SECRET), "{shown}");
            shown.stdout
        };
        let text = shown(&[]);
        for word in [
            "add two and three",
            "step 6 (index 5)",
            "mcp.big {\"kib\":200}",
            "<redacted:LOCAL_API_KEY>",
            "not usable",
            "answered",
        ] {
            assert!(text.contains(word), "{word} is missing:\n{text}");
        }
        let whole: Value = serde_json::from_str(&shown(&["--json"])).unwrap();
        assert_eq!((whole["steps"].as_array().unwrap().len(), &whole["total"]["steps"]), (6, &json!(6)));
        let one: Value = serde_json::from_str(&shown(&["--step", "3", "--json"])).unwrap();
        assert_eq!((&one["steps"][0]["index"], &one["steps"][0]["events"][0]["tool"]), (&json!(2), &json!("mcp.fail")));
        assert!(shown(&["--step", "1"]).contains("the model said"));
        // The prompt of each step is what the model was sent.
        for (step, request) in (1..).zip(model.requests()) {
            let prompt: Value = serde_json::from_str(&shown(&["--prompt", "--json", "--step", &step.to_string()])).unwrap();
            let sent = request["messages"].as_array().unwrap();
            let kept = prompt["messages"].as_array().unwrap();
            assert_eq!(kept.len(), sent.len(), "step {step}");
            for (kept, sent) in kept.iter().zip(sent) {
                let sent = sent["content"].as_str().unwrap_or_default().replace(SECRET, "<redacted:LOCAL_API_KEY>");
                assert_eq!((&kept["content"], kept["role"].as_str().is_some()), (&json!(sent), true), "step {step}");
            }
        }
        assert!(shown(&["--prompt"]).starts_with("step 6 (index 5), "));
        for (words, naming) in
            [(["--step", "7"], "steps 1 to 6"), (["--step", "0"], "counted from 1"), (["--step", "one"], "--step")]
        {
            let refused = runs(directory, &[&["show", &name][..], &words].concat());
            refused.exits(2);
            assert!(refused.stderr.contains(naming), "{refused}");
        }
    }
}

#[test]
fn a_killed_run_is_shown_as_far_as_it_came() {
    let folder = tempfile::tempdir().unwrap();
    let run_dir = killed(folder.path());
    let shown = runs(folder.path(), &["show", &id(&run_dir)]);
    shown.exits(0);
    assert!(shown.stdout.contains("step 1 (index 0)") && shown.stdout.contains("\nnot ended\n"), "{shown}");
}

#[test]
fn a_damaged_run_is_shown_up_to_the_damage() {
    let server = needs!(servers::misbehaving(&[]));
    let (finished, _model) = told("json", &server);
    let log = finished.run_dir().join("log.ndjson");
    let mut bytes = std::fs::read(&log).unwrap();
    let result = finished.log().lines().iter().position(|line| line.get("result").is_some()).unwrap();
    let start: usize = bytes.split_inclusive(|byte| *byte == b'\n').take(result).map(<[u8]>::len).sum();
    bytes[start + 20] ^= 1;
    std::fs::write(&log, bytes).unwrap();
    let damaged = runs(&finished.directory, &["show", &id(&finished.run_dir())]);
    damaged.exits(1);
    assert!(damaged.stderr.contains(&format!("is damaged at line {}", result + 1)), "{damaged}");
}

#[test]
fn an_export_is_the_stream_byte_for_byte() {
    let server = needs!(servers::misbehaving(&[]));
    for protocol in ["json", "native"] {
        let (finished, _model) = told(protocol, &server);
        let name = id(&finished.run_dir());
        // Fragments are shown and not kept.
        let stream: String = finished.stream.split_inclusive('\n').filter(|line| !line.contains("\"answer_delta\"")).collect();
        let exported = runs(&finished.directory, &["export", &name, "--format", "ndjson"]);
        exported.exits(0);
        assert!(exported.stdout == stream, "the export differs from the stream");
        assert!(
            stream.len() > 200 * 1024 && finished.log().bytes.len() < 2 * 200 * 1024,
            "the large text stands once in the log"
        );
        runs(&finished.directory, &["export", &name, "--format", "ndjson", "--output", "-"]).exits(0);
        runs(&finished.directory, &["export", &name, "--format", "ndjson", "--output", "records"]).exits(0);
        assert_eq!(std::fs::read_to_string(finished.directory.join("records")).unwrap(), stream);
        let again = runs(&finished.directory, &["export", &name, "--format", "ndjson", "--output", "records"]);
        again.exits(2);
        assert!(again.stderr.contains("is there already"), "{again}");
        runs(&finished.directory, &["export", &name, "--format", "ndjson", "--output", "."]).exits(0);
        assert!(finished.directory.join(format!("{name}.ndjson")).is_file());
        let followed = runs(&finished.directory, &["follow", &name]);
        followed.exits(0);
        assert!(followed.stdout == stream, "a run that has ended is followed to its end at once");
    }
}

#[test]
fn an_export_for_seed_2_has_its_four_files() {
    let server = needs!(servers::misbehaving(&[]));
    for protocol in ["json", "native"] {
        let (finished, model) = told(protocol, &server);
        let name = id(&finished.run_dir());
        runs(&finished.directory, &["export", &name, "--format", "seed2", "--output", "older"]).exits(0);
        let folder = finished.directory.join("older");
        let read = |file: &str| std::fs::read_to_string(folder.join(file)).unwrap();
        assert_eq!(std::fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
        // Each record stands in an envelope of its own.
        let events = records(&read("events.jsonl"));
        let kept: Vec<Value> = finished.events().into_iter().filter(|record| record["event"] != "answer_delta").collect();
        assert_eq!(events.iter().map(|line| line["record"].clone()).collect::<Vec<_>>(), kept);
        assert_eq!(
            events.iter().map(|line| line["seq"].as_u64().unwrap()).collect::<Vec<_>>(),
            (1..=kept.len() as u64).collect::<Vec<_>>()
        );
        let first = read("events.jsonl");
        let first = first.lines().next().unwrap();
        assert!(
            first.starts_with("{\"seq\": 1, \"at\": \"20")
                && first.contains("+00:00\", \"record\": {\"event\": \"mission_started\", \"schema_version\": 1, "),
            "{first}"
        );
        // Every request with the reply to it.
        let asked = records(&read("model.jsonl"));
        let requests = model.requests();
        assert_eq!(asked.len(), requests.len());
        for (position, (line, request)) in asked.iter().zip(&requests).enumerate() {
            assert_eq!((&line["call"], &line["kind"]), (&json!(position + 1), &json!("mission")));
            let sent = request["messages"].as_array().unwrap();
            let kept = line["request"]["messages"].as_array().unwrap();
            assert_eq!(kept.len(), sent.len());
            for (kept, sent) in kept.iter().zip(sent) {
                let text = sent["content"].as_str().unwrap_or_default().replace(SECRET, "<redacted:LOCAL_API_KEY>");
                assert_eq!((&kept["role"], &kept["content"]), (&sent["role"], &json!(text)));
                assert_eq!(kept.get("tool_call_id"), sent.get("tool_call_id"));
            }
            assert_eq!(line["reply"]["usage"]["total_tokens"], 107 + 100 * position);
            assert_eq!(canonical(line), read("model.jsonl").lines().nth(position).unwrap());
        }
        if protocol == "native" {
            assert_eq!(asked[0]["reply"]["tool_calls"][1]["name"], "mcp.add");
            assert_eq!(asked[1]["request"]["messages"][2]["tool_calls"][0]["function"]["name"], "mcp.add");
            assert_eq!(asked[0]["request"]["extra"]["tool_choice"], "required");
        }
        // What was called, with what came back.
        let tools = records(&read("tools.jsonl"));
        let catalogue = &tools[0];
        assert_eq!(catalogue["call"], 0);
        assert!(
            catalogue["catalogue"]
                .as_array()
                .unwrap()
                .iter()
                .any(|tool| tool["name"] == "mcp.add" && tool["input_schema"].is_object())
        );
        let results = finished.named("tool_result");
        assert_eq!(tools.len(), results.len() + 1);
        for (position, (line, result)) in tools[1..].iter().zip(&results).enumerate() {
            assert_eq!(line["call"], position + 1);
            assert_eq!(
                (&line["tool"], &line["result"]["stdout"], &line["result"]["exit_code"]),
                (&result["tool"], &result["output"], &result["exit_code"])
            );
            assert_eq!(line["arguments"]["args"], json!([]));
        }
        let meta: Value = serde_json::from_str(&read("meta.json")).unwrap();
        assert_eq!((&meta["run_id"], &meta["last_seq"]), (&json!(name), &json!(events.len())));
        assert_eq!(
            (&meta["meta"]["objective"], &meta["meta"]["flags"]["provider"]),
            (&json!("add two and three"), &json!("local"))
        );
        for file in ["model.jsonl", "tools.jsonl", "meta.json"] {
            assert!(!read(file).contains(SECRET), "{file}");
        }
        // Whole or not at all.
        let again = runs(&finished.directory, &["export", &name, "--format", "seed2", "--output", "older"]);
        again.exits(2);
        runs(&finished.directory, &["export", &name, "--format", "seed2", "--output", "-"]).exits(2);
        let log = finished.run_dir().join("log.ndjson");
        let mut bytes = std::fs::read(&log).unwrap();
        bytes[2000] ^= 1;
        std::fs::write(&log, bytes).unwrap();
        runs(&finished.directory, &["export", &name, "--format", "seed2", "--output", "half"]).exits(1);
        let left: Vec<_> = std::fs::read_dir(&finished.directory).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert!(left.iter().all(|name| name != "half" && !name.to_str().unwrap().starts_with(".new-")), "{left:?}");
    }
}

/// Sorted keys, no spaces.
fn canonical(value: &Value) -> String {
    mission_contract::canonical::of_value(value)
}

/// `mission runs follow …`, read line by line.
struct Following {
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
}

impl Following {
    fn start(directory: &Path, words: &[&str]) -> Self {
        let mut command = Command::new(BINARY);
        command.args(["runs", "follow"]).args(words).current_dir(directory).env_clear();
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line
    }

    fn end(mut self) -> (Option<i32>, String, String) {
        let (mut rest, mut said) = (String::new(), String::new());
        self.lines.read_to_string(&mut rest).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap().code(), rest, said)
    }
}

#[test]
fn a_run_that_goes_on_is_followed_as_it_goes() {
    let folder = tempfile::tempdir().unwrap();
    let model = Model::says([held(answer("Twelve."))]);
    let (live, run_dir) = waiting(folder.path(), &model);
    let mut following = Following::start(folder.path(), &[&id(&run_dir)]);
    let mut from = Following::start(folder.path(), &[&id(&run_dir), "--envelope", "--from", "6"]);
    // Nothing more is written before the model is let go: what was written comes all the same.
    assert!(following.line().starts_with("{\"event\":\"mission_started\""));
    assert!(following.line().starts_with("{\"event\":\"step_started\""));
    model.let_go();
    let finished = live.finish();
    finished.exits(0).ends("answered");
    let (code, rest, said) = following.end();
    assert_eq!((code, said.as_str()), (Some(0), ""));
    let names: Vec<Value> = records(&rest).into_iter().map(|record| record["event"].clone()).collect();
    assert_eq!(names, ["answer", "mission_finished"]);
    assert!(rest.lines().all(|line| conforms_line(line).is_empty() && finished.stream.contains(line)));
    let first: Value = serde_json::from_str(&from.line()).unwrap();
    let lines = finished.log().lines();
    let expected = lines.iter().find(|line| line["seq"].as_u64() >= Some(6) && line.get("record").is_some()).unwrap();
    assert_eq!((&first["seq"], &first["at"], &first["record"]), (&expected["seq"], &expected["at"], &expected["record"]));
    assert_eq!(from.end().0, Some(0));
}

#[test]
fn the_death_of_a_run_ends_its_followers() {
    let folder = tempfile::tempdir().unwrap();
    let model = Model::says([Turn::Stall]);
    let (live, run_dir) = waiting(folder.path(), &model);
    let mut following = Following::start(folder.path(), &[&id(&run_dir)]);
    following.line();
    live.signal(Signal::SIGKILL);
    live.finish();
    let (code, rest, said) = following.end();
    assert_eq!((code, rest.lines().count()), (Some(1), 1), "{rest}");
    assert!(said.contains("no process writes it"), "{said}");
    // Whoever comes later is told the same.
    let later = runs(folder.path(), &["follow", &id(&run_dir)]);
    later.exits(1);
    assert_eq!(later.stdout.lines().count(), 2, "{later}");
}

#[test]
fn a_reader_that_goes_away_ends_following_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let model = Model::says([held(answer("Twelve."))]);
    let (live, run_dir) = waiting(folder.path(), &model);
    let mut following = Following::start(folder.path(), &[&id(&run_dir)]);
    following.line();
    following.line();
    let Following { mut child, lines } = following;
    drop(lines);
    // It ends though nothing is written that it could notice it by.
    let ended = child.wait().unwrap();
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!((ended.code(), said.as_str()), (Some(1), ""));
    model.let_go();
    live.finish().exits(0).ends("answered");
}

#[test]
fn only_what_has_ended_is_pruned_and_what_stays_is_told_why() {
    let folder = tempfile::tempdir().unwrap();
    let ended: Vec<String> = (0..3).map(|number| answered(folder.path(), &format!("number {number}"))).collect();
    let model = Model::says([Turn::Stall]);
    let (live, running) = waiting(folder.path(), &model);
    let running = id(&running);
    // The last one: whoever starts after it closes it.
    let open = id(&killed(folder.path()));
    let store = folder.path().join(".mission/runs");
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("meta.json"), "{}").unwrap();
    std::os::unix::fs::symlink(outside.path(), store.join("run_link")).unwrap();
    std::fs::create_dir(store.join("run_foreign")).unwrap();
    let all = ["run_foreign", "run_link"]
        .into_iter()
        .map(str::to_owned)
        .chain(ended.iter().cloned())
        .chain([open.clone(), running.clone()]);
    let there = |name: &String| store.join(name).symlink_metadata().is_ok();
    let dry = runs(folder.path(), &["prune", "--keep", "0", "--dry-run"]);
    dry.exits(0);
    assert!(dry.stdout.contains("would remove 3, kept 4"), "{dry}");
    assert!(all.clone().all(|name| there(&name)), "{dry}");
    let recent = runs(folder.path(), &["prune", "--older", "1h"]);
    recent.exits(0);
    assert!(recent.stdout.contains("removed 0, kept 7") && recent.stdout.contains("it ended more recently"), "{recent}");
    let pruned = runs(folder.path(), &["prune", "--keep", "1"]);
    pruned.exits(0);
    let left: Vec<String> = all.clone().filter(there).collect();
    assert_eq!(left.len(), 5, "{pruned}");
    assert_eq!(ended.iter().filter(|name| there(name)).count(), 1, "{pruned}");
    for (name, reason) in [
        (&open, "it has not ended"),
        (&running, "it is being written by process "),
        (&"run_link".to_owned(), "it is a symbolic link"),
        (&"run_foreign".to_owned(), "its meta.json is missing or cannot be read"),
    ] {
        let line =
            pruned.stdout.lines().find(|line| line.starts_with(&format!("kept {name}"))).unwrap_or_else(|| panic!("{pruned}"));
        assert!(line.contains(reason), "{line}");
    }
    runs(folder.path(), &["prune", "--older", "0s"]).exits(0);
    assert_eq!(all.clone().filter(there).count(), 4);
    assert!(outside.path().join("meta.json").exists());
    assert!(
        std::fs::read_dir(&store).unwrap().all(|entry| !entry.unwrap().file_name().to_str().unwrap().starts_with(".removing"))
    );
    drop(live);
}

#[test]
fn what_is_asked_wrongly_of_runs_is_refused_in_a_sentence() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join(".mission/runs/run_foreign")).unwrap();
    for (words, naming) in [
        (&[][..], "list, show, follow, export, prune"),
        (&["lst"], "`lst`"),
        (&["list", "extra"], "`extra`"),
        (&["list", "--jsn"], "--json"),
        (&["show"], "needs a run"),
        (&["show", "run_none"], "there is no run run_none"),
        (&["show", "../../../etc"], "log.ndjson"),
        (&["show", "run_foreign"], "no log.ndjson"),
        (&["show", "/dev/null"], "neither a folder nor a file"),
        (&["follow", "run_none"], "run_none"),
        (&["follow", "run_none", "--from", "x"], "--from"),
        (&["export", "run_none"], "--format"),
        (&["export", "run_none", "--format", "xml"], "xml"),
        (&["prune"], "--keep"),
        (&["prune", "--keep", "-1"], "--keep"),
        (&["prune", "--older", "soon"], "--older"),
        (&["prune", "--keep", "1", "--older", "7d"], "two rules"),
    ] {
        let refused = runs(folder.path(), words);
        refused.exits(2);
        assert_eq!(refused.stderr.lines().count(), 1, "{refused}");
        assert!(refused.stderr.contains(naming), "{words:?}: {refused}");
    }
    let nowhere = Mission::verb(["runs", "list"]).directory(folder.path()).env("MISSION_RUNS", "none").run();
    nowhere.exits(2);
    assert!(nowhere.stderr.contains("MISSION_RUNS"), "{nowhere}");
    for words in [&["--help"][..], &["prune", "--help"], &["show", "-h"]] {
        runs(folder.path(), words).exits(0);
    }
}

#[test]
fn a_log_that_is_none_of_ours_is_a_sentence_too() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join(".mission/runs/run_1");
    std::fs::create_dir_all(&run).unwrap();
    std::fs::write(run.join("meta.json"), vec![b'['; 100_000]).unwrap();
    for (log, naming) in [(&b""[..], "holds no run"), (b"\0\0\0\0", "holds no run"), (b"# A text\n{}\n", "holds no run")] {
        std::fs::write(run.join("log.ndjson"), log).unwrap();
        for words in [
            &["show"][..],
            &["show", "--prompt"],
            &["export", "--format", "ndjson"],
            &["export", "--format", "seed2", "--output", "x"],
        ] {
            let refused = runs(folder.path(), &[&words[..1], &["run_1"], &words[1..]].concat());
            refused.exits(1);
            assert!(refused.stderr.contains(naming) && refused.stderr.lines().count() == 1, "{words:?}: {refused}");
        }
        runs(folder.path(), &["follow", "run_1"]).exits(1);
        assert!(!folder.path().join("x").exists());
    }
    assert_eq!(records(&runs(folder.path(), &["list", "--json"]).stdout)[0]["state"], "unknown");
}
