//! The log is the run: it holds, it is chained, it is private, and where none is wanted nothing is left.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};

use crate::endings::small_files;
use crate::support::log::Log;
use crate::support::model::{Model, Turn, answer, call};
use crate::support::needs;
use crate::support::run::{Finished, Mission, records, run_dirs};
use crate::support::servers;

fn run(protocol: &str) -> Option<Finished> {
    let server = servers::misbehaving(&[]).ok()?;
    let turns = match protocol {
        "native" => vec![
            Turn::Call(vec![("mcp.add".into(), json!({"a": 2, "b": 3})), ("mcp.big".into(), json!({"kib": 200}))]),
            answer("5, and much."),
        ],
        _ => vec![call("mcp.add", json!({"a": 2, "b": 3})), call("mcp.big", json!({"kib": 200})), answer("5, and much.")],
    };
    let model = Model::says(turns);
    Some(Mission::objective("add two and three").model(&model).mcp_stdio("mcp", &server).protocol(protocol).run())
}

#[test]
fn the_chain_and_the_envelope_hold() {
    needs!(servers::python());
    for protocol in ["json", "native"] {
        let finished = run(protocol).unwrap();
        finished.exits(0).ends("answered");
        let log = finished.log();
        assert_eq!(log.problems(), Vec::<String>::new(), "{protocol}");
        let lines = log.lines();
        assert_eq!(lines[0]["open"]["format"], 1);
        assert_eq!(lines[0]["open"]["run_id"], finished.only("mission_started")["run_id"]);
        assert_eq!(finished.run_dir().file_name().unwrap().to_str(), lines[0]["open"]["run_id"].as_str());
        assert_eq!(lines[0]["open"]["spec"]["objective"], "add two and three");
    }
}

#[test]
fn an_intent_stands_before_its_call_and_its_result_after_it_in_another_group() {
    needs!(servers::python());
    let finished = run("json").unwrap();
    let log = finished.log();
    let lines = log.lines();
    let intents: Vec<&Value> = lines.iter().filter(|line| line.get("intent").is_some()).collect();
    let results: Vec<&Value> = lines.iter().filter(|line| line.get("result").is_some()).collect();
    assert_eq!((intents.len(), results.len()), (2, 2));
    for (intent, result) in intents.iter().zip(&results) {
        assert!(intent["group"].as_u64() < result["group"].as_u64(), "the intent was durable before the call: {intent} {result}");
        let key = intent["intent"]["key"].as_str().unwrap();
        assert!(key.len() == 64 && key.chars().all(|each| each.is_ascii_hexdigit()), "{key}");
    }
    assert_ne!(intents[0]["intent"]["key"], intents[1]["intent"]["key"]);
    assert_eq!(log.of_kind("ask").len(), 3);
    assert_eq!(log.of_kind("reply").len(), 3);
}

#[test]
fn a_large_text_is_stored_once() {
    needs!(servers::python());
    let finished = run("json").unwrap();
    let log = finished.log();
    let record =
        log.of_kind("record").into_iter().find(|record| record["event"] == "tool_result" && record["handle"] == "r2").unwrap();
    let seq = record["output"]["$of"].as_u64().unwrap_or_else(|| panic!("not stored once: {}", record["handle"]));
    let result = log.lines().into_iter().find(|line| line["seq"] == seq).unwrap();
    assert_eq!(result["result"]["text"], finished.named("tool_result")[1]["output"]);
    assert!(log.bytes.len() < 2 * 200 * 1024, "{} bytes", log.bytes.len());
}

#[test]
fn it_is_private() {
    needs!(servers::python());
    let finished = run("json").unwrap();
    let state = finished.directory.join(".mission");
    let mut seen = 0;
    each(&state, &mut |path, metadata| {
        let mode = metadata.permissions().mode() & 0o777;
        let expected = if metadata.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(mode, expected, "{} is {mode:o}", path.display());
        seen += 1;
    });
    assert!(seen >= 6, "{seen} files and folders");
    assert_eq!(std::fs::read_to_string(state.join(".gitignore")).unwrap().trim(), "*");
    assert!(finished.run_dir().join("meta.json").is_file());
    assert_eq!(std::fs::read_dir(state.join("runs/open")).map_or(0, Iterator::count), 0, "a run that is over is not open");
}

fn each(path: &Path, see: &mut impl FnMut(&Path, &std::fs::Metadata)) {
    let metadata = std::fs::symlink_metadata(path).unwrap();
    see(path, &metadata);
    if metadata.is_dir() {
        for entry in std::fs::read_dir(path).unwrap() {
            each(&entry.unwrap().path(), see);
        }
    }
}

#[test]
fn none_leaves_nothing_and_says_no_run_id() {
    let server = needs!(servers::misbehaving(&[]));
    for word in ["none", "OFF"] {
        let model = Model::says([call("mcp.add", json!({"a": 2, "b": 3})), answer("5")]);
        let finished = Mission::objective("add")
            .model(&model)
            .mcp_stdio("mcp", &server)
            .env("MISSION_RUNS", word)
            .env("MISSION_AUDIT", word)
            .run();
        finished.exits(0).ends("answered");
        assert!(finished.only("mission_started").get("run_id").is_none(), "{finished}");
        assert!(run_dirs(&finished.directory).is_empty());
        let left: Vec<_> = std::fs::read_dir(&finished.directory).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

#[test]
fn runs_lie_where_the_variable_says() {
    let folder = tempfile::tempdir().unwrap();
    let model = Model::says([answer("Twelve.")]);
    let finished =
        Mission::objective("how many lamps?").model(&model).env("MISSION_RUNS", folder.path().join("here").as_os_str()).run();
    finished.exits(0);
    let id = finished.only("mission_started")["run_id"].as_str().unwrap().to_owned();
    assert!(folder.path().join("here").join(id).join("log.ndjson").is_file());
    assert!(run_dirs(&finished.directory).is_empty());
}

#[test]
fn a_folder_that_cannot_be_written_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("taken"), "a file").unwrap();
    let model = Model::says([answer("Twelve.")]);
    let finished = Mission::objective("how many lamps?")
        .model(&model)
        .env("MISSION_RUNS", folder.path().join("taken/runs").as_os_str())
        .run();
    finished.refused(&["MISSION_RUNS"]);
    assert_eq!(model.requests().len(), 0);
}

#[test]
fn a_killed_run_leaves_a_log_that_holds_and_is_known_to_be_open() {
    let folder = tempfile::tempdir().unwrap();
    let model = Model::says([Turn::Stall]);
    let live = Mission::objective("wait").model(&model).directory(folder.path()).spawn();
    model.wait_for_request(1);
    live.wait_for_event("step_started");
    live.signal(nix::sys::signal::Signal::SIGKILL);
    let killed = live.finish();
    let log = killed.log();
    assert_eq!(log.problems(), Vec::<String>::new());
    assert_eq!(logged_names(&log), ["mission_started", "step_started"]);
    let run_dir = killed.run_dir();
    assert!(run_dir.parent().unwrap().join("open").join(run_dir.file_name().unwrap()).exists());
}

#[test]
fn a_run_is_held_by_its_process_and_by_nobody_once_that_is_killed() {
    use nix::fcntl::{Flock, FlockArg};
    let folder = tempfile::tempdir().unwrap();
    let model = Model::says([Turn::Stall]);
    let live = Mission::objective("wait").model(&model).directory(folder.path()).spawn();
    model.wait_for_request(1);
    let run_dir = run_dirs(folder.path()).remove(0);
    let lock = || std::fs::File::open(run_dir.join("lock")).unwrap();
    let holder: Value = serde_json::from_reader(lock()).unwrap();
    assert_eq!((&holder["pid"], &holder["epoch"]), (&json!(live.id()), &json!(1)), "{holder}");
    assert!(holder["host"].is_string() && holder["boot_id"].is_string(), "{holder}");
    assert!(Flock::lock(lock(), FlockArg::LockSharedNonblock).is_err(), "a run that goes on is held");
    live.signal(nix::sys::signal::Signal::SIGKILL);
    live.finish();
    assert!(Flock::lock(lock(), FlockArg::LockExclusiveNonblock).is_ok(), "the kernel frees it");
}

#[test]
fn what_a_list_shows_names_the_last_line_as_a_witness() {
    let model = Model::says([answer("Twelve.")]);
    let finished = Mission::objective("how many lamps?").model(&model).run();
    finished.exits(0);
    let meta: Value = serde_json::from_slice(&std::fs::read(finished.run_dir().join("meta.json")).unwrap()).unwrap();
    let last = finished.log().lines().pop().unwrap();
    assert_eq!(meta["head"], json!({"seq": last["seq"], "sum": last["sum"]}));
    assert_eq!(
        (&meta["run_id"], &meta["objective"], &meta["outcome"], &meta["steps"], &meta["provider"]),
        (&finished.only("mission_started")["run_id"], &json!("how many lamps?"), &json!("answered"), &json!(1), &json!("local"))
    );
}

fn logged_names(log: &Log) -> Vec<String> {
    log.of_kind("record").iter().map(|record| record["event"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn no_credential_stands_in_the_log_or_leaves_on_the_stream() {
    let server = needs!(servers::misbehaving(&[]));
    let secret = "s3cr3t-l4mp-0f-the-house";
    let model = Model::says([
        call("mcp.fail", json!({"why": format!("the key {secret} is wrong")})),
        answer(&format!("It says {secret}.")),
    ]);
    let finished = Mission::objective("fail").model(&model).mcp_stdio("mcp", &server).env("LOCAL_API_KEY", secret).run();
    finished.exits(0).ends("answered");
    assert_eq!(finished.only("tool_result")["error"], "the key <redacted:LOCAL_API_KEY> is wrong", "{finished}");
    assert_eq!(finished.only("answer")["text"], "It says <redacted:LOCAL_API_KEY>.");
    let fragments: String =
        finished.named("answer_delta").iter().map(|delta| delta["text"].as_str().unwrap().to_owned()).collect();
    assert_eq!(fragments, "It says <redacted:LOCAL_API_KEY>.", "also when it comes in pieces");
    assert!(!finished.stdout.contains(secret) && !finished.stderr.contains(secret), "{finished}");
    let open = finished.log().of_kind("open").remove(0);
    assert!(!open.to_string().contains(secret), "{open}");
}

#[test]
fn a_run_whose_log_cannot_be_written_dispatches_nothing_more_and_shows_nothing_that_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let note = folder.path().join("note.ndjson");
    let server = needs!(servers::misbehaving(&["--note", note.to_str().unwrap()]));
    let turns = [call("mcp.big", json!({"kib": 200})), call("mcp.add", json!({"a": 2, "b": 3})), answer("5")];
    let model = Model::says(turns);
    let finished = Mission::objective("add two and three").model(&model).mcp_stdio("mcp", &server).inherits(small_files).run();
    finished.exits(4).ends("incomplete");
    assert!(finished.named("tool_result").is_empty(), "{finished}");
    let log = std::fs::read_to_string(finished.run_dir().join("log.ndjson")).unwrap();
    assert!(!log.contains("mission_finished"), "what stands in the stream alone is not in the log");
    let called = records(&std::fs::read_to_string(&note).unwrap());
    assert_eq!(called.iter().filter(|each| each["what"] == "called").count(), 1, "{called:?}");
}
