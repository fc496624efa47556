//! Runs that ended before their time, carried on by another process.

use std::path::Path;

use mission_contract::digest::ZERO;
use mission_contract::line::{Envelope, LineWriter, parse_line};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::support::log::Log;
use crate::support::model::{Model, Turn, answer, call};
use crate::support::needs;
use crate::support::run::{Finished, Live, Mission, run_dirs};
use crate::support::servers;

/// The id of the only run in a folder.
fn only_run(folder: &Path) -> String {
    let runs = run_dirs(folder);
    assert_eq!(runs.len(), 1, "{runs:?}");
    runs[0].file_name().unwrap().to_str().unwrap().to_owned()
}

fn kill(live: Live) -> Finished {
    live.signal(Signal::SIGKILL);
    live.finish()
}

/// The conversation in a request: texts, calls, what the model's server wants back as it came.
fn messages(request: &Value) -> Vec<Value> {
    request["messages"].as_array().unwrap().clone()
}

/// A run that was killed while its model was asked for the third time: a call and a rejected reply are behind it.
fn killed(folder: &Path, server: &str, protocol: &str) -> (Log, Vec<Value>) {
    let model = Model::says([call("mcp.add", json!({"a": 2, "b": 3})), call("mcp.add", json!({"a": "two"})), Turn::Stall]);
    let mission = Mission::objective("add two and three").model(&model).mcp_stdio("mcp", server).protocol(protocol);
    let live = mission.directory(folder).spawn();
    model.wait_for_request(3);
    let third = messages(&model.requests()[2]);
    live.wait_for("the third step", |record| record["event"] == "step_started" && record["index"] == 2);
    (kill(live).log(), third)
}

#[test]
fn a_killed_run_goes_on_where_it_was() {
    let server = needs!(servers::misbehaving(&[]));
    for protocol in ["json", "native"] {
        let folder = tempfile::tempdir().unwrap();
        let (before, third) = killed(folder.path(), &server, protocol);
        let run = only_run(folder.path());
        let model = Model::says([answer("Five.")]);
        // Nothing is said again: objective, protocol and server stand in the log.
        let resumed = Mission::resume(&run).env("LOCAL_API_BASE", model.base_url()).directory(folder.path()).run();
        resumed.exits(0).ends("answered");
        assert_eq!(resumed.names(), ["step_started", "answer_delta", "answer", "mission_finished"], "{resumed}");
        let lines = before.lines().len() as u64;
        assert_eq!(resumed.only("step_started")["resumed"], json!({"from_seq": lines, "steps_replayed": 3}));
        assert_eq!((&resumed.only("step_started")["index"], &resumed.only("mission_finished")["steps"]), (&json!(3), &json!(3)));
        assert_eq!(messages(&model.requests()[0]), third, "the conversation is what it was, byte for byte");
        let log = resumed.log();
        assert_eq!(log.problems(), Vec::<String>::new());
        let writer = &log.of_kind("writer")[0];
        assert_eq!(
            (&writer["epoch"], &writer["changed"]),
            (&json!(2), &json!({"base_url": model.base_url()})),
            "another address"
        );
        assert_eq!(log.of_kind("open").len(), 1);
        assert!(!run_dirs(folder.path())[0].parent().unwrap().join("open").join(&run).exists(), "it is over");
    }
}

#[test]
fn a_run_that_was_told_to_end_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let model = Model::says([Turn::Stall]);
    let live = Mission::objective("wait").model(&model).directory(folder.path()).spawn();
    model.wait_for_request(1);
    live.signal(Signal::SIGTERM);
    live.finish().ends("incomplete");
    let model = Model::says([answer("Done.")]);
    let resumed = Mission::resume(&only_run(folder.path())).model(&model).directory(folder.path()).run();
    resumed.exits(0).ends("answered");
    assert!(!resumed.names().contains(&"mission_started".to_owned()));
}

#[test]
fn a_run_whose_server_was_away_begins_when_it_is_there() {
    let server = needs!(servers::misbehaving(&[]));
    let folder = tempfile::tempdir().unwrap();
    let away = folder.path().join("away");
    let script = format!("test -e {} && exec {server}", away.display());
    let command = format!("sh -c {}", shlex::try_quote(&script).unwrap());
    let model = Model::says([call("mcp.add", json!({"a": 2, "b": 3})), answer("Five.")]);
    let mission = Mission::objective("add").model(&model).mcp_stdio("mcp", &command).directory(folder.path());
    mission.run().exits(1).ends("incomplete");
    let run = only_run(folder.path());
    // It is still away.
    let resumed = Mission::resume(&run).model(&model).directory(folder.path()).run();
    resumed.exits(1).ends("incomplete");
    assert_eq!(resumed.names(), ["notice", "mission_finished"]);
    std::fs::write(&away, "").unwrap();
    let resumed = Mission::resume(&run).model(&model).directory(folder.path()).run();
    resumed.exits(0).ends("answered");
    assert_eq!(resumed.only("tool_result")["output"], "5");
    assert!(resumed.named("step_started")[0]["resumed"].is_object());
    assert_eq!(resumed.log().problems(), Vec::<String>::new());
}

#[test]
fn a_run_that_is_held_is_refused_with_its_holder() {
    let folder = tempfile::tempdir().unwrap();
    let model = Model::says([Turn::Stall]);
    let live = Mission::objective("wait").model(&model).directory(folder.path()).spawn();
    model.wait_for_request(1);
    let run = only_run(folder.path());
    let refused = Mission::resume(&run).model(&model).directory(folder.path()).run();
    refused.exits(3);
    let (holder, host) = (format!("process {}", live.id()), nix::unistd::gethostname().unwrap().into_string().unwrap());
    for word in [&run, &holder, &host] {
        assert!(refused.stderr.contains(word.as_str()), "{word}: {refused}");
    }
    assert!(refused.events().is_empty());
    kill(live);
}

/// Two operators reach for the same run: one has it, and the other is told who.
#[test]
fn of_two_operators_who_resume_at_once_one_does() {
    let host = nix::unistd::gethostname().unwrap().into_string().unwrap();
    let server = needs!(servers::misbehaving(&[]));
    for _ in 0..5 {
        let folder = tempfile::tempdir().unwrap();
        // Once there is a pipe of this name, the server takes as long to start as somebody likes.
        let slow = folder.path().join("slow");
        let script = format!("test -p {0} && cat {0} >/dev/null; exec {server}", slow.display());
        let command = format!("sh -c {}", shlex::try_quote(&script).unwrap());
        let model = Model::says([Turn::Stall]);
        let mission = Mission::objective("wait").model(&model).mcp_stdio("mcp", &command);
        let live = mission.directory(folder.path()).spawn();
        live.wait_for_event("step_started");
        kill(live);
        nix::unistd::mkfifo(&slow, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let run = only_run(folder.path());
        let model = Model::says([answer("Done.")]);
        let both = [(); 2].map(|()| Mission::resume(&run).model(&model).directory(folder.path()).spawn());
        let ids: Vec<u32> = both.iter().map(Live::id).collect();
        std::thread::scope(|scope| {
            let (ended, ends) = std::sync::mpsc::channel();
            for (live, other) in both.into_iter().zip([ids[1], ids[0]]) {
                let ended = ended.clone();
                scope.spawn(move || ended.send((live.finish(), other)).unwrap());
            }
            let (refused, holder) = ends.recv().unwrap();
            refused.exits(3);
            for word in [&run, &format!("process {holder}"), &host] {
                assert!(refused.stderr.contains(word.as_str()), "{word}: {refused}");
            }
            assert_eq!(refused.stream, "");
            std::fs::write(&slow, "go on").unwrap();
            ends.recv().unwrap().0.exits(0).ends("answered");
        });
        let log = Log::read(&run_dirs(folder.path())[0]);
        assert_eq!((log.problems(), log.of_kind("writer").len()), (Vec::new(), 1));
    }
}

/// The text of a result that the model was shown only in part is there for it after a crash, by the handle that it knows; a typed payload is too.
#[test]
fn what_a_handle_stands_for_outlives_a_crash() {
    let (server, counting) = (needs!(servers::misbehaving(&[])), needs!(servers::counting()));
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("ledger"), "lamp\nchair\n").unwrap();
    let model = Model::says([call("mcp.big", json!({"kib": 200})), call("store.count", json!({})), Turn::Stall]);
    let mission = Mission::objective("read").model(&model).mcp_stdio("mcp", &server).mcp_stdio("store", &counting);
    let live = mission.directory(folder.path()).spawn();
    live.wait_for("the third step", |record| record["event"] == "step_started" && record["index"] == 2);
    kill(live);
    let read = |arguments| call("mission_result", arguments);
    let lines = read(json!({"handle": "r1", "lines": "3000-3001"}));
    let model = Model::says([lines, read(json!({"handle": "r2", "path": "ledger.items[1]"})), answer("Read.")]);
    let resumed = Mission::resume(&only_run(folder.path())).model(&model).directory(folder.path()).run();
    resumed.exits(0).ends("answered");
    let outputs: Vec<Value> = resumed.named("tool_result").iter().map(|result| result["output"].clone()).collect();
    assert!(outputs[0].as_str().unwrap().contains("line 000002999 of the numbered lines"), "{resumed}");
    assert!(outputs[1].as_str().unwrap().contains("chair"), "{resumed}");
    assert_eq!(resumed.only("mission_finished")["usage"]["calls"], 5, "what was spent before counts");
}

/// The lines of a log with other moments, the chain mended behind them.
fn at_other_moments(log: &Log, moment: impl Fn(&str) -> String) -> Vec<u8> {
    let mut writer = LineWriter::new(ZERO.to_owned());
    let mut bytes = Vec::new();
    for line in log.bytes.split_inclusive(|byte| *byte == b'\n') {
        let line = parse_line(line).unwrap();
        let at = moment(&line.at);
        writer
            .line(Envelope { seq: line.seq, group: line.group, at: &at, ms: line.ms, branch: None }, &line.entry, &mut bytes)
            .unwrap();
    }
    bytes
}

/// A moment informs and decides nothing: the clock was ahead while the run began, and was set right before it went on.
#[test]
fn a_clock_that_jumps_back_changes_nothing() {
    let server = needs!(servers::misbehaving(&[]));
    for protocol in ["json", "native"] {
        let folder = tempfile::tempdir().unwrap();
        let (before, third) = killed(folder.path(), &server, protocol);
        let (run, run_dir) = (only_run(folder.path()), run_dirs(folder.path()).remove(0));
        let ahead = at_other_moments(&before, |at| format!("2199{}", &at[4..]));
        std::fs::write(run_dir.join("log.ndjson"), ahead).unwrap();
        let _ = std::fs::remove_file(run_dir.join("meta.json")); // its witness is of the other bytes
        let model = Model::says([answer("Five.")]);
        let resumed = Mission::resume(&run).model(&model).directory(folder.path()).run();
        resumed.exits(0).ends("answered");
        assert_eq!(messages(&model.requests()[0]), third);
        assert!(resumed.only("mission_finished")["elapsed_s"].as_f64().unwrap() < 60.0, "{resumed}");
        let log = resumed.log();
        assert_eq!(log.problems(), Vec::<String>::new(), "work time never falls");
        let moments: Vec<String> = log.lines().iter().map(|line| line["at"].as_str().unwrap().to_owned()).collect();
        assert!(moments[0].starts_with("2199") && !moments.last().unwrap().starts_with("2199") && !moments.is_sorted());
        let verb = |words: &[&str]| Mission::verb(words.iter().copied()).directory(folder.path()).run();
        verb(&["verify", &run]).exits(0);
        verb(&["replay", "--strict", &run]).exits(0);
        verb(&["runs", "show", &run]).exits(0);
        assert!(verb(&["runs", "list"]).stdout.contains(&run));
    }
}

#[test]
fn a_skill_that_was_changed_is_refused_with_both_digests() {
    let server = needs!(servers::misbehaving(&[]));
    let folder = tempfile::tempdir().unwrap();
    let manifest = |body: &str| format!("---\nname: lamps\ndescription: d\nallowed_tools: [mcp.add]\n---\n{body}\n");
    let skill = crate::support::run::write(folder.path(), "SKILL.md", &manifest("Count lamps."));
    let model = Model::says([Turn::Stall]);
    let mission = Mission::objective("count").model(&model).mcp_stdio("mcp", &server).skill(&skill).directory(folder.path());
    let live = mission.spawn();
    let began = live.wait_for_event("mission_started")["skill"]["digest"].as_str().unwrap().to_owned();
    live.wait_for_event("step_started");
    kill(live);
    let run = only_run(folder.path());
    let model = Model::says([answer("Twelve.")]);
    std::fs::write(&skill, manifest("Count chairs.")).unwrap();
    let resume = || Mission::resume(&run).model(&model).directory(folder.path());
    let refused = resume().skill(&skill).run();
    refused.refused_beside(&["--skill", &began]);
    let digests = |text: &str| text.split(|each: char| !each.is_ascii_hexdigit()).filter(|word| word.len() == 64).count();
    assert_eq!(digests(&refused.stderr), 2, "{refused}");
    // Unsaid, the run goes on with the texts that it began with.
    resume().run().exits(0).ends("answered");
    let asked = model.requests()[0].to_string();
    assert!(asked.contains("Count lamps.") && !asked.contains("Count chairs."), "{asked}");
}

#[test]
fn what_the_command_line_repeats_must_agree() {
    let server = needs!(servers::misbehaving(&[]));
    let folder = tempfile::tempdir().unwrap();
    killed(folder.path(), &server, "json");
    let run = only_run(folder.path());
    let skill = crate::support::run::write(
        folder.path(),
        "SKILL.md",
        "---\nname: other\ndescription: d\nallowed_tools: [mcp.add]\n---\nWork.\n",
    );
    let model = Model::says([answer("Five.")]);
    let base = model.base_url();
    let line = |words: &[&str]| Mission::resume(&run).env("LOCAL_API_BASE", &base).args(words).directory(folder.path());
    for (words, naming) in [
        (vec!["--mission", "add two and four"], vec!["add two and four", "add two and three"]),
        (vec!["--protocol", "native"], vec!["--protocol", "native", "json"]),
        (vec!["--provider", "scripted"], vec!["--provider", "scripted", "local"]),
        (vec!["--model", "other"], vec!["--model", "other", "scripted"]),
        (vec!["--temperature", "0.5"], vec!["--temperature", "0.5", "not set"]),
        (vec!["--no-stream"], vec!["--no-stream"]),
        (vec!["--skill", skill.to_str().unwrap()], vec!["--skill", "other", "none"]),
        (vec!["--mcp-stdio", "mcp=true"], vec!["mcp", "true", "misbehaving.py"]),
        (vec!["--mcp-stdio", "new=true"], vec!["new", "mcp"]),
        (vec!["--mcp-url", "mcp=http://127.0.0.1:1/mcp"], vec!["mcp", "http", "stdio"]),
        (vec!["--trust-annotations", "mcp"], vec!["--trust-annotations", "mcp"]),
        (vec!["--run-id", "run_x"], vec!["--run-id", "--start-or-resume"]),
    ] {
        let before = Log::read(&run_dirs(folder.path())[0]).bytes;
        line(&words).run().refused_beside(&naming);
        assert_eq!(Log::read(&run_dirs(folder.path())[0]).bytes, before, "{words:?}");
    }
    // What agrees is fine.
    let command = format!("mcp={server}");
    let same = [
        "--mission",
        "add two and three",
        "--protocol",
        "json",
        "--provider",
        "local",
        "--model",
        "scripted",
        "--mcp-stdio",
        &command,
    ];
    line(&same).run().exits(0).ends("answered");
    line(&[]).run().refused_beside(&["answered"]);
}

#[test]
fn only_a_run_can_be_resumed() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join(".mission/runs/run_empty")).unwrap();
    std::fs::write(folder.path().join(".mission/runs/run_empty/log.ndjson"), "").unwrap();
    for run in ["run_missing", "../runs/run_empty", "run_empty/../run_empty", "/etc/passwd", "open", "run_empty"] {
        Mission::resume(run).directory(folder.path()).run().refused_beside(&[]);
    }
    Mission::resume("run_x").env("MISSION_RUNS", "none").directory(folder.path()).run().refused_beside(&["MISSION_RUNS"]);
    Mission::verb(["--mission", "x"])
        .env("MISSION_RESUME", "run_missing")
        .directory(folder.path())
        .run()
        .refused_beside(&["run_missing"]);
}

#[test]
fn a_limit_that_is_stated_is_that_much_further() {
    let server = needs!(servers::misbehaving(&[]));
    let folder = tempfile::tempdir().unwrap();
    let again = |number: u64| call("mcp.add", json!({"a": number, "b": 1}));
    let model = Model::says([again(1), Turn::Stall]);
    let live = Mission::objective("add").model(&model).mcp_stdio("mcp", &server).steps(3).directory(folder.path()).spawn();
    model.wait_for_request(2);
    live.wait_for("the second step", |record| record["event"] == "step_started" && record["index"] == 1);
    kill(live);
    let run = only_run(folder.path());
    let model = Model::says([again(2), again(3), Turn::Stall]);
    let live = Mission::resume(&run).model(&model).steps(3).directory(folder.path()).spawn();
    model.wait_for_request(3);
    live.wait_for("the fifth step", |record| record["event"] == "step_started" && record["index"] == 4);
    let log = kill(live).log();
    assert_eq!(log.of_kind("writer")[0]["changed"]["mission_steps"], 5);
    // Unstated: what is left of it, which is nothing.
    let model = Model::says([again(4)]);
    let resumed = Mission::resume(&run).model(&model).directory(folder.path()).run();
    resumed.exits(0).ends("budget_exhausted");
    assert_eq!(resumed.only("mission_finished")["max_steps"], 5);
    assert_eq!(model.requests().len(), 0);
}

#[test]
fn a_torn_tail_is_moved_aside_and_told() {
    let folder = tempfile::tempdir().unwrap();
    let model = Model::says([Turn::Stall]);
    let live = Mission::objective("wait").model(&model).directory(folder.path()).spawn();
    live.wait_for_event("step_started");
    model.wait_for_request(1);
    let log = kill(live).log();
    let run = only_run(folder.path());
    let run_dir = &run_dirs(folder.path())[0];
    let garbage = [b"{\"seq\":".as_slice(), &[0; 300], b"\n\xff\xfe{}"].concat();
    std::fs::write(run_dir.join("log.ndjson"), [log.bytes.as_slice(), &garbage].concat()).unwrap();
    let model = Model::says([answer("Done.")]);
    let resumed = Mission::resume(&run).model(&model).directory(folder.path()).run();
    resumed.exits(0).ends("answered");
    let notice = resumed.only("notice");
    assert_eq!(notice["code"], "torn_tail");
    let torn = format!("log.torn-{}", log.lines().len() + 1);
    assert!(notice["detail"].as_str().unwrap().contains(&torn), "{notice}");
    assert_eq!(std::fs::read(run_dir.join(torn)).unwrap(), garbage);
    assert_eq!(resumed.log().problems(), Vec::<String>::new());
    assert!(resumed.log().bytes.starts_with(&log.bytes));
}

#[test]
fn a_log_that_was_changed_is_not_carried_on() {
    let server = needs!(servers::misbehaving(&[]));
    let folder = tempfile::tempdir().unwrap();
    let (before, _) = killed(folder.path(), &server, "json");
    let path = run_dirs(folder.path())[0].join("log.ndjson");
    let changed = String::from_utf8(before.bytes).unwrap().replacen("add two and three", "add two and seven", 1);
    std::fs::write(&path, &changed).unwrap();
    Mission::resume(&only_run(folder.path())).directory(folder.path()).run().refused_beside(&["line 1"]);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), changed);
}

#[test]
fn a_server_that_was_given_a_credential_is_given_again() {
    let server = needs!(servers::misbehaving(&[]));
    let folder = tempfile::tempdir().unwrap();
    let secret = "credential-of-the-test-0123456789";
    let command = format!("{server} --note {secret}");
    let model = Model::says([Turn::Stall]);
    let mission = Mission::objective("wait").model(&model).env("SOME_API_KEY", secret).mcp_stdio("mcp", &command);
    let live = mission.directory(folder.path()).spawn();
    live.wait_for_event("step_started");
    let log = kill(live).log();
    assert!(!String::from_utf8(log.bytes).unwrap().contains(secret));
    let model = Model::says([answer("Done.")]);
    let run = only_run(folder.path());
    let resume = || Mission::resume(&run).model(&model).env("SOME_API_KEY", secret).directory(folder.path());
    resume().run().refused_beside(&["mcp", "--mcp-stdio"]);
    resume().mcp_stdio("mcp", &command).run().exits(0).ends("answered");
}

#[test]
fn a_scripted_model_goes_on_in_its_script() {
    let server = needs!(servers::misbehaving(&[]));
    let folder = tempfile::tempdir().unwrap();
    let script = json!({"steps": [
        {"calls": [{"name": "mcp.add", "arguments": {"a": 2, "b": 3}}, {"name": "mcp.hang", "arguments": {}}]},
        {"answer": "Both are known now."},
    ]});
    let script = crate::support::run::write(folder.path(), "script.json", &script.to_string());
    let scripted = |mission: Mission| {
        mission.args(["--provider", "scripted", "--script", script.to_str().unwrap()]).directory(folder.path())
    };
    let live = scripted(Mission::objective("add").mcp_stdio("mcp", &server)).spawn();
    live.wait_for("the second call", |record| record["event"] == "tool_call" && record["tool"] == "mcp.hang");
    live.signal(Signal::SIGTERM);
    live.finish().ends("incomplete");
    let resumed = scripted(Mission::resume(&only_run(folder.path()))).run();
    resumed.exits(0).ends("answered");
    assert!(resumed.only("answer")["text"].as_str().unwrap().contains("Both are known now."), "{resumed}");
}

#[test]
fn one_command_begins_a_run_carries_it_on_and_tells_it_again() {
    let folder = tempfile::tempdir().unwrap();
    let line = |model: &Model| {
        Mission::objective("how many lamps?")
            .args(["--start-or-resume", "--run-id", "run_lamps-1"])
            .model(model)
            .directory(folder.path())
    };
    let model = Model::says([Turn::Stall]);
    let live = line(&model).spawn();
    model.wait_for_request(1);
    let started = live.wait_for_event("mission_started");
    assert_eq!(started["run_id"], "run_lamps-1");
    live.wait_for_event("step_started");
    line(&model).run().exits(3);
    kill(live);
    assert_eq!(only_run(folder.path()), "run_lamps-1");
    let model = Model::says([answer("Twelve.")]);
    let resumed = line(&model).run();
    resumed.exits(0).ends("answered");
    let log = resumed.log().bytes;
    let again = line(&model).run();
    again.exits(0).ends("answered");
    assert_eq!(again.names(), ["mission_started", "answer", "mission_finished"]);
    assert_eq!(again.only("mission_started"), started);
    assert_eq!(again.only("answer"), resumed.only("answer"));
    assert_eq!(again.only("mission_finished"), resumed.only("mission_finished"));
    assert_eq!(again.log().bytes, log);
    assert_eq!(model.requests().len(), 1);
    for (words, naming) in [
        (vec!["--start-or-resume"], "--run-id"),
        (vec!["--start-or-resume", "--run-id", "lamps"], "run_"),
        (vec!["--start-or-resume", "--run-id", "run_../x"], "run_"),
        (vec!["--start-or-resume", "--run-id", "run_x", "--resume", "run_y"], "--resume"),
    ] {
        Mission::objective("x").args(words).model(&model).directory(folder.path()).run().refused_beside(&[naming]);
    }
}

#[test]
fn what_a_process_left_that_died_before_a_line_is_begun() {
    let folder = tempfile::tempdir().unwrap();
    let run_dir = folder.path().join(".mission/runs/run_lamps");
    for left in [None, Some(""), Some("{\"seq\":1,\"gro")] {
        let _ = std::fs::remove_dir_all(folder.path().join(".mission"));
        std::fs::create_dir_all(&run_dir).unwrap();
        if let Some(left) = left {
            std::fs::write(run_dir.join("log.ndjson"), left).unwrap();
        }
        let model = Model::says([answer("Twelve.")]);
        let words = ["--start-or-resume", "--run-id", "run_lamps"];
        let finished = Mission::objective("how many?").args(words).model(&model).directory(folder.path()).run();
        finished.exits(0).ends("answered");
        assert_eq!(finished.log().problems(), Vec::<String>::new());
    }
}
