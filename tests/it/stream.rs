//! Where records go: a descriptor, stdout, a file; what is refused as a place for them; readers that go away or are slow.

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::support::model::{Model, Turn, answer, call, held};
use crate::support::needs;
use crate::support::run::{Mission, records, run_dirs, write};
use crate::support::servers;

#[test]
fn a_descriptor_gets_the_records_and_stdout_is_for_people() {
    let model = Model::says([answer("Twelve.")]);
    let finished = Mission::objective("how many lamps?").model(&model).run();
    finished.exits(0).ends("answered");
    let expected = ["mission_started", "step_started", "answer_delta", "answer", "mission_finished"];
    assert_eq!(finished.names(), expected, "{finished}");
    assert!(finished.stdout.contains("Twelve."), "{finished}");
    assert!(!finished.stdout.contains("\"event\""), "{finished}");
    assert!(!finished.stdout.contains('\u{1b}'), "no colours where there is no terminal\n{finished}");
}

#[test]
fn a_dash_and_descriptor_one_put_the_records_on_stdout_and_nothing_else() {
    for word in ["-", "fd:1"] {
        let model = Model::says([answer("Twelve.")]);
        let finished = Mission::objective("how many lamps?").model(&model).events(word).run();
        finished.exits(0);
        let events = records(&finished.stdout);
        assert_eq!(events.first().unwrap()["event"], "mission_started", "{finished}");
        assert_eq!(events.last().unwrap()["event"], "mission_finished", "{finished}");
    }
}

#[test]
fn a_file_is_appended_to() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("events.ndjson");
    for round in 1..=2 {
        let model = Model::says([answer("Twelve.")]);
        Mission::objective("how many lamps?").model(&model).events(place.to_str().unwrap()).run().exits(0);
        let events = records(&std::fs::read_to_string(&place).unwrap());
        assert_eq!(events.iter().filter(|record| record["event"] == "mission_finished").count(), round);
    }
}

#[test]
fn the_variable_says_where_and_the_flag_wins() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("events.ndjson");
    let model = Model::says([answer("Twelve.")]);
    let words = ["--mission", "how many lamps?", "--provider", "local"];
    let described = |mission: Mission| {
        mission
            .env("LOCAL_API_BASE", model.base_url())
            .env("LOCAL_MODEL", "scripted")
            .env("MISSION_EVENTS", place.as_os_str())
            .run()
    };
    described(Mission::verb(words)).exits(0);
    assert!(!records(&std::fs::read_to_string(&place).unwrap()).is_empty());
    std::fs::remove_file(&place).unwrap();
    described(Mission::verb(words).events("-")).exits(0);
    assert!(!place.exists());
}

#[test]
fn places_that_cannot_take_records_are_refused_at_the_door() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("no/such/folder/events.ndjson");
    let words = [
        "fd:3",
        "fd:0",
        "fd:2",
        "fd:99999",
        "fd:",
        "fd:x",
        "fd:-1",
        "fd:3.0",
        "FD:3",
        missing.to_str().unwrap(),
        folder.path().to_str().unwrap(),
    ];
    for word in words {
        let model = Model::says([answer("Twelve.")]);
        let finished = Mission::objective("how many lamps?").model(&model).events(word).run();
        finished.refused(&["--events", word]);
        assert_eq!(model.requests().len(), 0);
    }
    let model = Model::says([answer("Twelve.")]);
    Mission::objective("how many lamps?").model(&model).wrong_way_stream().run().refused(&["--events", "fd:3"]);
}

#[test]
fn standard_output_that_cannot_take_records_is_refused_at_the_door() {
    let model = Model::says([answer("Twelve.")]);
    let run = |redirection: &str| {
        let script = format!("exec \"$0\" \"$@\" {redirection}");
        Mission::objective("how many lamps?").model(&model).events("-").by_shell(&script).run()
    };
    run(">&-").refused(&["--events", "descriptor 1 is not open"]);
    run("1</dev/null").refused(&["--events", "descriptor 1 is open for reading only"]);
    // without records on it nobody misses it
    let shut = Mission::objective("how many lamps?").model(&model).by_shell("exec \"$0\" \"$@\" >&-").run();
    shut.exits(0).ends("answered");
}

#[test]
fn records_on_what_standard_output_is_have_it_alone() {
    let model = Model::says([answer("Twelve.")]);
    let run = |word: &str, redirection: &str| {
        let script = format!("exec \"$0\" \"$@\" {redirection}");
        let finished = Mission::objective("how many lamps?").model(&model).events(word).by_shell(&script).run();
        finished.exits(0);
        let told = std::fs::read_to_string(finished.directory.join("both")).unwrap_or_else(|_| finished.stdout.clone());
        assert_eq!(records(&told).last().unwrap()["event"], "mission_finished", "{word} {redirection}\n{finished}");
    };
    run("/dev/stdout", "");
    run("/dev/fd/1", "");
    run("fd:3", "3>&1");
    run("both", ">both");
}

#[test]
fn a_stream_that_nobody_misses_but_us_is_told_on_stderr() {
    let model = Model::says([answer("Twelve.")]);
    let finished = Mission::objective("how many lamps?").model(&model).events("/dev/full").run();
    finished.exits(0);
    assert!(finished.stderr.contains("/dev/full ended early: its disk is full"), "{finished}");
    assert!(finished.stdout.contains("Twelve."), "{finished}");
}

#[test]
fn a_reader_that_goes_away_is_no_crash() {
    let server = needs!(servers::misbehaving(&[]));
    let model = Model::says([held(call("mcp.add", json!({"a": 2, "b": 3}))), answer("5")]);
    let mut live = Mission::objective("add").model(&model).mcp_stdio("mcp", &server).spawn();
    live.wait_for_event("step_started");
    live.close_reader();
    model.let_go();
    let finished = live.finish();
    finished.exits(0);
    assert!(finished.stdout.contains('5'), "{finished}");
    let log = finished.log();
    assert_eq!(log.problems(), Vec::<String>::new());
    let last = log.of_kind("record").pop().unwrap();
    assert_eq!((&last["event"], &last["outcome"]), (&json!("mission_finished"), &json!("answered")));
}

#[test]
fn a_slow_reader_loses_nothing() {
    let server = needs!(servers::misbehaving(&[]));
    let model = Model::says([call("mcp.big", json!({"kib": 700})), call("mcp.add", json!({"a": 2, "b": 3})), answer("5")]);
    let live = Mission::objective("much").model(&model).mcp_stdio("mcp", &server).slow_reader().spawn();
    model.wait_for_request(1);
    live.read_now();
    let finished = live.finish();
    finished.exits(0).ends("answered");
    let results = finished.named("tool_result");
    assert_eq!(results[0]["output"].as_str().unwrap().len(), 700 * 1024);
    assert_eq!(results[0]["truncated"], true, "the model is shown less");
    assert_eq!(finished.log().problems(), Vec::<String>::new());
    assert_eq!(without_fragments(finished.events()), logged(&finished.log()), "what was logged is what was read");
}

#[test]
fn the_stream_has_what_the_log_has_in_its_order() {
    let server = needs!(servers::misbehaving(&[]));
    let two = Turn::Call(vec![("mcp.add".into(), json!({"a": 2, "b": 3})), ("mcp.fail".into(), json!({"why": "no"}))]);
    let model = Model::says([two, answer("5")]);
    let finished = Mission::objective("add").model(&model).mcp_stdio("mcp", &server).protocol("native").run();
    finished.exits(0);
    let log = finished.log();
    assert_eq!(without_fragments(finished.events()), logged(&log));
    let (record, before) = {
        let lines = log.lines();
        (lines[lines.len() - 1].clone(), lines[lines.len() - 2].clone())
    };
    assert_eq!(record["record"]["event"], "mission_finished");
    assert_eq!(finished.only("mission_finished")["log_head"], before["sum"], "the last record names the line before it");
}

#[test]
fn the_program_finds_its_own_stream_conforming_and_a_broken_one_not() {
    let server = needs!(servers::misbehaving(&[]));
    let model = Model::says([call("mcp.add", json!({"a": 2, "b": 3})), answer("5")]);
    let finished = Mission::objective("add").model(&model).mcp_stdio("mcp", &server).run();
    finished.exits(0);
    let folder = tempfile::tempdir().unwrap();
    let good = write(folder.path(), "good.ndjson", &finished.stream);
    let broken = write(folder.path(), "broken.ndjson", &finished.stream.replace("\"handle\":\"r1\",", ""));
    Mission::verb(["conform".as_ref(), good.as_os_str()]).run().exits(0);
    let judged = Mission::verb(["conform".as_ref(), broken.as_os_str()]).run();
    judged.exits(1);
    assert!(judged.stdout.contains("handle"), "{judged}");
}

#[test]
fn the_console_alone_is_enough() {
    let model = Model::says([answer("Twelve.")]);
    let finished = Mission::verb(["--mission", "how many lamps?"]).model(&model).run();
    finished.exits(0);
    assert!(finished.stdout.contains("Twelve."), "{finished}");
    assert_eq!(run_dirs(&finished.directory).len(), 1);
}

#[test]
fn without_streaming_there_are_no_fragments() {
    let model = Model::says([answer("Twelve.")]);
    let finished = Mission::objective("how many lamps?").model(&model).arg("--no-stream").run();
    finished.exits(0).ends("answered");
    assert_eq!(finished.names(), ["mission_started", "step_started", "answer", "mission_finished"]);
    assert_ne!(model.requests()[0]["stream"], true);
}

fn without_fragments(mut events: Vec<Value>) -> Vec<Value> {
    events.retain(|record| record["event"] != "answer_delta");
    events
}

/// The records of a log, with the texts put back that it stores once.
fn logged(log: &crate::support::log::Log) -> Vec<Value> {
    let lines = log.lines();
    let mut records = log.of_kind("record");
    for record in &mut records {
        for field in ["output", "error"] {
            if let Some(seq) = record[field]["$of"].as_u64() {
                let line = lines.iter().find(|line| line["seq"] == seq).unwrap();
                record[field] = line["result"]["text"].clone();
            }
        }
    }
    records
}

#[test]
fn a_signal_ends_a_run_whose_reader_takes_nothing() {
    let server = needs!(servers::misbehaving(&[]));
    // The reader is far behind after the first result: the intent of the second call can become durable only behind it.
    let model = Model::says([call("mcp.big", json!({"kib": 6000})), call("mcp.add", json!({"a": 2, "b": 3})), answer("5")]);
    let live = Mission::objective("add").model(&model).mcp_stdio("mcp", &server).args(["--grace", "1"]).slow_reader().spawn();
    model.wait_for_request(2);
    live.signal(Signal::SIGTERM);
    let finished = live.finish();
    finished.exits(143);
    assert!(finished.stderr.contains("took nothing any more"), "{}", finished.stderr);
    let log = finished.log();
    assert_eq!(log.problems(), Vec::<String>::new());
    let last = log.of_kind("record").pop().unwrap();
    assert_eq!((&last["event"], &last["reason"]), (&json!("mission_finished"), &json!("cancelled")));
}
