//! However a run ends, it says how: servers that do not start, or die; budgets; signals; models that fail.

use nix::sys::signal::Signal;
use serde_json::json;

use crate::support::model::{Model, Turn, answer, call, held};
use crate::support::needs;
use crate::support::run::{Finished, Mission, records};
use crate::support::servers;

#[test]
fn a_server_that_does_not_start_fails_the_run_and_says_why() {
    let server = needs!(servers::misbehaving(&["--refuse-to-start"]));
    let model = Model::says([answer("never asked")]);
    let finished = Mission::objective("add").model(&model).mcp_stdio("store", &server).run();
    finished.exits(1).ends("incomplete");
    assert_eq!(finished.names(), ["mission_started", "notice", "mission_finished"], "{finished}");
    let notice = finished.only("notice");
    assert_eq!(notice["server"], "store", "{finished}");
    assert!(notice["detail"].as_str().unwrap().contains("the store is locked"), "its last words are passed on\n{finished}");
    assert!(finished.stderr.contains("store"), "{finished}");
    assert_eq!(finished.only("mission_started")["servers"][0]["state"], "failed");
    assert_eq!(model.requests().len(), 0);
    assert_eq!(finished.log().problems(), Vec::<String>::new());
}

#[test]
fn a_program_that_is_not_there_fails_the_run_too() {
    let model = Model::says([answer("never asked")]);
    let finished = Mission::objective("add").model(&model).mcp_stdio("store", "no-such-program-anywhere --flag").run();
    finished.exits(1).ends("incomplete");
    assert!(finished.only("notice")["detail"].as_str().unwrap().contains("no-such-program-anywhere"), "{finished}");
}

#[test]
fn a_server_that_says_nothing_is_given_up_in_time() {
    needs!(servers::program("sleep"));
    let model = Model::says([answer("never asked")]);
    let finished = Mission::objective("add").model(&model).mcp_stdio("mute", "sleep 200").args(["--mcp-timeout", "0.3"]).run();
    finished.exits(1).ends("incomplete");
    assert_eq!(finished.only("notice")["server"], "mute");
}

#[test]
fn a_server_that_floods_its_output_is_given_up_and_named_for_it() {
    needs!(servers::program("cat"));
    let model = Model::says([answer("never asked")]);
    let finished = Mission::objective("add").model(&model).mcp_stdio("flood", "cat /dev/zero").run();
    finished.exits(1).ends("incomplete");
    let detail = finished.only("notice")["detail"].as_str().unwrap().to_owned();
    assert_eq!(detail, "The server `flood` wrote more than 268435456 bytes without an end of line and was given up.");
}

#[test]
fn an_optional_server_that_does_not_start_is_a_notice() {
    let broken = needs!(servers::misbehaving(&["--refuse-to-start"]));
    let good = needs!(servers::misbehaving(&[]));
    let model = Model::says([call("good.add", json!({"a": 2, "b": 3})), answer("5")]);
    let finished = Mission::objective("add")
        .model(&model)
        .mcp_stdio("good", &good)
        .mcp_stdio("store", &broken)
        .args(["--mcp-optional", "store"])
        .run();
    finished.exits(0).ends("answered");
    assert_eq!(finished.only("notice")["server"], "store");
    assert_eq!(finished.only("tool_result")["output"], "5");
}

#[test]
fn a_server_that_dies_in_a_call_fails_that_call_at_once_and_the_run_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let note = folder.path().join("note.ndjson");
    let server = needs!(servers::misbehaving(&["--note", note.to_str().unwrap()]));
    let model = Model::says([call("mcp.die", json!({})), answer("It died.")]);
    let finished = Mission::objective("die").model(&model).mcp_stdio("mcp", &server).run();
    finished.exits(0).ends("answered");
    let result = finished.only("tool_result");
    assert_eq!((&result["ok"], &result["exit_code"], &result["handle"]), (&json!(false), &json!(-1), &json!("r1")), "{finished}");
    assert!(!result["error"].as_str().unwrap().is_empty());
    let lived = records(&std::fs::read_to_string(&note).unwrap());
    assert_eq!(lived.iter().filter(|each| each["what"] == "called").count(), 1, "a call is never repeated by itself");
    assert_eq!(finished.log().of_kind("result")[0]["end"], "died");
}

#[test]
fn a_server_that_died_is_there_again_for_the_next_call() {
    let server = needs!(servers::misbehaving(&[]));
    let model = Model::says([call("mcp.die", json!({})), call("mcp.add", json!({"a": 2, "b": 3})), answer("5")]);
    let finished = Mission::objective("die, then add").model(&model).mcp_stdio("mcp", &server).run();
    finished.exits(0).ends("answered");
    assert_eq!(finished.named("tool_result")[1]["output"], "5", "{finished}");
}

#[test]
fn a_call_that_never_comes_back_is_given_up_and_the_server_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let note = folder.path().join("note.ndjson");
    let server = needs!(servers::misbehaving(&["--note", note.to_str().unwrap()]));
    let model = Model::says([call("mcp.hang", json!({})), answer("It hangs.")]);
    let finished = Mission::objective("hang").model(&model).mcp_stdio("mcp", &server).args(["--mcp-timeout", "2"]).run();
    finished.exits(0).ends("answered");
    assert_eq!(finished.only("tool_result")["exit_code"], -1, "{finished}");
    assert_eq!(finished.log().of_kind("result")[0]["end"], "timeout");
    let lived = records(&std::fs::read_to_string(&note).unwrap());
    assert!(lived.iter().any(|each| each["what"] == "cancelled"), "{lived:?}");
}

#[test]
fn the_steps_budget_ends_a_run_before_the_spend() {
    let server = needs!(servers::misbehaving(&[]));
    let model = Model::says((0..9).map(|a| call("mcp.add", json!({"a": a, "b": 3}))));
    let finished = Mission::objective("add").model(&model).mcp_stdio("mcp", &server).steps(2).run();
    finished.exits(0).ends("budget_exhausted");
    assert_eq!(finished.only("mission_finished")["budget"], json!({"which": "steps", "limit": 2, "spent": 2}));
    assert_eq!(finished.only("mission_started")["max_steps"], 2);
    assert_eq!(model.requests().len(), 2);
}

#[test]
fn no_ceiling_is_the_default() {
    let server = needs!(servers::misbehaving(&[]));
    let turns = (0..60).map(|a| call("mcp.add", json!({"a": a, "b": 3}))).chain([answer("done")]);
    let model = Model::says(turns);
    let finished = Mission::objective("add").model(&model).mcp_stdio("mcp", &server).run();
    finished.exits(0).ends("answered");
    assert_eq!(finished.only("mission_started")["max_steps"], 0);
    assert_eq!(finished.only("mission_finished")["steps"], 61);
}

#[track_caller]
fn wound_up(finished: &Finished, signal: Signal) {
    finished.exits(128 + signal as i32).ends("incomplete");
    let last = finished.only("mission_finished");
    assert_eq!(last["reason"], "cancelled", "{finished}");
    let log = finished.log();
    assert_eq!(log.problems(), Vec::<String>::new());
    let word = log.of_kind("control").pop().unwrap();
    assert_eq!((&word["word"], &word["source"]), (&json!("cancel"), &json!("signal")), "{word}");
    assert!(
        std::fs::read_dir(finished.directory.join(".mission/runs/open")).is_ok_and(|open| open.count() == 0),
        "the run is closed"
    );
}

#[test]
fn a_signal_winds_up_a_run_whose_model_is_silent() {
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        let model = Model::says([Turn::Stall]);
        let mut live = Mission::objective("wait").model(&model).spawn();
        model.wait_for_request(1);
        live.signal(signal);
        // the ending comes while the request still holds its connection, or lets it go: nobody waits for the model
        live.wait_for_event("mission_finished");
        live.wait();
        model.wait_for_hang_up();
        wound_up(&live.finish(), signal);
    }
}

#[test]
fn a_signal_winds_up_a_run_whose_tool_is_silent() {
    let folder = tempfile::tempdir().unwrap();
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let note = folder.path().join(format!("{signal}.ndjson"));
        let server = needs!(servers::misbehaving(&["--note", note.to_str().unwrap()]));
        let model = Model::says([call("mcp.hang", json!({})), answer("never asked")]);
        let live = Mission::objective("wait").model(&model).mcp_stdio("mcp", &server).spawn();
        live.wait_for_event("tool_call");
        live.signal(signal);
        let finished = live.finish();
        wound_up(&finished, signal);
        assert_eq!(finished.log().of_kind("result")[0]["end"], "cancelled");
        assert_eq!(model.requests().len(), 1);
        let lived = records(&std::fs::read_to_string(&note).unwrap());
        if lived.iter().any(|each| each["what"] == "called") {
            assert!(lived.iter().any(|each| each["what"] == "cancelled"), "the server was not told: {lived:?}");
        }
    }
}

#[allow(unsafe_code)]
fn ignored(signal: Signal) {
    // SAFETY: to ignore a signal runs no code of ours.
    unsafe { nix::sys::signal::signal(signal, nix::sys::signal::SigHandler::SigIgn) }.unwrap();
}

#[test]
fn signals_that_were_blocked_by_whoever_started_the_run_wind_it_up_all_the_same() {
    let model = Model::says([Turn::Stall]);
    let blocked = || nix::sys::signal::SigSet::all().thread_block().unwrap();
    let live = Mission::objective("wait").model(&model).inherits(blocked).spawn();
    model.wait_for_request(1);
    live.signal(Signal::SIGTERM);
    wound_up(&live.finish(), Signal::SIGTERM);
}

#[test]
fn a_run_that_is_to_outlive_its_terminal_does() {
    let model = Model::says([held(answer("Twelve."))]);
    let live = Mission::objective("wait")
        .model(&model)
        .inherits(|| {
            ignored(Signal::SIGHUP);
            ignored(Signal::SIGINT);
        })
        .spawn();
    model.wait_for_request(1);
    live.signal(Signal::SIGHUP);
    live.signal(Signal::SIGINT);
    model.let_go();
    live.finish().exits(0).ends("answered");
}

#[test]
fn how_a_server_ended_is_known_where_the_deaths_of_children_are_ignored() {
    let server = needs!(servers::misbehaving(&["--refuse-to-start"]));
    let model = Model::says([answer("never asked")]);
    let finished =
        Mission::objective("add").model(&model).mcp_stdio("store", &server).inherits(|| ignored(Signal::SIGCHLD)).run();
    finished.exits(1).ends("incomplete");
    assert!(finished.only("notice")["detail"].as_str().unwrap().contains("exited with status 3"), "{finished}");
}

/// No file of the process grows beyond 64 KiB.
#[allow(unsafe_code)]
pub fn small_files() {
    let limit = libc::rlimit { rlim_cur: 64 * 1024, rlim_max: 64 * 1024 };
    // SAFETY: the call reads the structure, which lives until it returns.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit) }, 0);
}

#[test]
fn a_log_that_cannot_be_written_ends_the_run_and_the_stream_says_so() {
    // in the middle of the run, and with its very last lines
    for turns in [
        vec![call("mission_result", json!({"handle": "x".repeat(80_000)})), answer("Twelve.")],
        vec![answer(&"x".repeat(80_000))],
    ] {
        let model = Model::says(turns);
        let finished = Mission::objective("much").model(&model).arg("--no-stream").inherits(small_files).run();
        finished.exits(4).ends("incomplete");
        assert_eq!(finished.named("mission_finished").len(), 1, "{finished}");
        assert_eq!(finished.only("notice")["code"], "journal_failed");
        assert!(finished.stderr.contains("log.ndjson"), "{finished}");
    }
}

#[test]
fn a_model_that_fails_ends_the_run_with_its_words() {
    let model = Model::says([Turn::Status(500)]);
    let finished = Mission::objective("add").model(&model).run();
    finished.exits(1).ends("incomplete");
    assert!(finished.stderr.contains("500"), "{finished}");
    assert_eq!(finished.log().of_kind("reply")[0]["end"], "failed");
}

#[test]
fn a_model_that_is_not_there_ends_the_run() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let finished = Mission::objective("add")
        .args(["--provider", "local", "--model", "scripted"])
        .env("LOCAL_API_BASE", format!("http://{nobody}/v1"))
        .run();
    finished.exits(1).ends("incomplete");
    assert!(finished.stderr.contains(&nobody.to_string()), "{finished}");
}
