//! Stopping is real: whatever asks for it, and whatever resists, the end is told while what stalled still stalls.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::support::log::Log;
use crate::support::model::{Model, Turn, answer, call};
use crate::support::planes::tool;
use crate::support::remote::{Remote, events, status};
use crate::support::run::{Finished, Live, Mission, records, run_dirs};
use crate::support::{PATIENCE, needs, servers};

/// What asks a run to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    Word,
    Signal(Signal),
    ReaderGone,
}

const CAUSES: [Cause; 5] = [
    Cause::Word,
    Cause::Signal(Signal::SIGTERM),
    Cause::Signal(Signal::SIGINT),
    Cause::Signal(Signal::SIGHUP),
    Cause::ReaderGone,
];

impl Cause {
    fn prepare(self, mission: Mission) -> Mission {
        match self {
            Cause::Word => mission.control(),
            Cause::Signal(_) => mission,
            Cause::ReaderGone => mission.args(["--on-reader-gone", "stop"]),
        }
    }

    /// Asks for the end, and waits for it to be told where anybody can still hear it.
    fn end(self, live: &mut Live) {
        match self {
            Cause::Word => live.say(&json!({"control": "cancel"})),
            Cause::Signal(signal) => live.signal(signal),
            Cause::ReaderGone => return live.close_reader(),
        }
        live.wait_for_event("mission_finished");
    }

    fn check(self, finished: &Finished) {
        let (status, source) = match self {
            Cause::Word => (0, "channel"),
            Cause::Signal(signal) => (128 + signal as i32, "signal"),
            Cause::ReaderGone => (0, "reader_gone"),
        };
        finished.exits(status).replays();
        let log = finished.log();
        assert_eq!(log.problems(), Vec::<String>::new());
        let word = log.of_kind("control").pop().unwrap();
        assert_eq!((&word["word"], &word["source"]), (&json!("cancel"), &json!(source)), "{self:?} {word}");
        let last = log.of_kind("record").pop().unwrap();
        assert_eq!((&last["outcome"], &last["reason"]), (&json!("incomplete"), &json!("cancelled")), "{self:?} {last}");
        if self != Cause::ReaderGone {
            finished.ends("incomplete");
        }
    }
}

/// A server that takes connections and never says, reads or ends anything.
struct Silent {
    address: String,
    taken: Receiver<TcpStream>,
}

impl Silent {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/v1", listener.local_addr().unwrap());
        let (sender, taken) = channel();
        std::thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                if sender.send(stream).is_err() {
                    return;
                }
            }
        });
        Self { address, taken }
    }

    /// The next connection: it stays open as long as this value lives.
    fn connection(&self) -> TcpStream {
        self.taken.recv_timeout(PATIENCE).unwrap()
    }
}

#[test]
fn a_model_that_never_answers_holds_nothing_up() {
    for cause in CAUSES {
        let silent = Silent::start();
        let mission = Mission::objective("wait")
            .args(["--provider", "local", "--model", "scripted"])
            .env("LOCAL_API_BASE", &silent.address);
        let mut live = cause.prepare(mission).spawn();
        live.wait_for_event("step_started");
        let _held = silent.connection();
        cause.end(&mut live);
        let finished = live.finish();
        cause.check(&finished);
    }
}

fn is_there(pid: &Value) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}

#[test]
fn a_tool_that_never_answers_ignores_its_end_and_forks_holds_nothing_up() {
    for cause in CAUSES {
        let folder = tempfile::tempdir().unwrap();
        let note = folder.path().join("note.ndjson");
        let server = needs!(servers::misbehaving(&["--ignore-end", "--note", note.to_str().unwrap()]));
        let model =
            Model::says([call("mcp.spawn", json!({"session": true})), call("mcp.hang", json!({})), answer("never asked")]);
        let mut live = cause.prepare(Mission::objective("wait").model(&model).mcp_stdio("mcp", &server)).spawn();
        live.wait_for("the call", |record| record["event"] == "tool_call" && record["tool"] == "mcp.hang");
        let lived = || records(&std::fs::read_to_string(&note).unwrap_or_default());
        let pid = lived()[0]["pid"].clone();
        cause.end(&mut live);
        if cause != Cause::ReaderGone {
            assert!(is_there(&pid), "the end is told before the server is gone");
        }
        let finished = live.finish();
        cause.check(&finished);
        assert_eq!(finished.log().of_kind("result").pop().unwrap()["end"], "cancelled");
        if lived().iter().any(|each| each["what"] == "called" && each["tool"] == "mcp.hang") {
            assert!(lived().iter().any(|each| each["what"] == "cancelled"), "the server was told: {:?}", lived());
        }
        let child = finished.log().of_kind("result")[0]["text"].as_str().unwrap().trim().parse::<u64>().unwrap();
        assert!(!is_there(&pid) && !is_there(&json!(child)), "nothing of it is left");
    }
}

#[test]
fn a_call_over_http_that_never_ends_holds_nothing_up() {
    for cause in CAUSES {
        let remote = Remote::handshake(json!([tool("wait")]), |heard, _| match heard.method() {
            "tools/call" => events(": working\n\n").hanging(),
            "notifications/cancelled" => status(202),
            _ => status(405),
        });
        let model = Model::says([call("mcp.wait", json!({})), answer("never asked")]);
        let url = format!("mcp={}", remote.url());
        let mut live = cause.prepare(Mission::objective("wait").model(&model).args(["--mcp-url", &url])).spawn();
        live.wait_for_event("tool_call");
        let until = std::time::Instant::now() + PATIENCE;
        while remote.heard_method("tools/call").is_empty() {
            assert!(std::time::Instant::now() < until, "the call did not come");
            std::thread::yield_now();
        }
        cause.end(&mut live);
        let finished = live.finish();
        cause.check(&finished);
        assert_eq!(finished.log().of_kind("result")[0]["end"], "cancelled");
        assert_eq!(remote.heard_method("notifications/cancelled").len(), 1, "the server was told");
    }
}

#[test]
fn a_run_that_waits_for_a_person_ends_when_it_is_told_to() {
    let server = needs!(servers::misbehaving(&[]));
    for cause in CAUSES {
        let model = Model::says([call("mcp.add", json!({"a": 2, "b": 3}))]);
        let mission = Mission::objective("add").model(&model).mcp_stdio("mcp", &server);
        let mut live = cause.prepare(mission).args(["--gate-tool", "add", "--gate-wait", "600"]).spawn();
        live.wait_for_event("gate_requested");
        cause.end(&mut live);
        cause.check(&live.finish());
    }
}

#[test]
fn a_run_that_is_cancelled_while_it_begins_tells_its_end() {
    let server = needs!(servers::misbehaving(&[]));
    let model = Model::says([Turn::Stall]);
    let mut live = Mission::objective("wait").model(&model).mcp_stdio("mcp", &server).control().spawn();
    live.say(&json!({"control": "cancel"}));
    let finished = live.finish();
    Cause::Word.check(&finished);
    assert_eq!(finished.names().first().unwrap(), "mission_started");
}

#[test]
fn a_run_that_does_not_begin_is_cancelled_without_a_record() {
    needs!(servers::program("sleep"));
    for (flags, status) in [(vec![], 0), (vec!["--exit-codes", "outcome"], 14)] {
        let model = Model::says([answer("never asked")]);
        let mission = Mission::objective("wait").model(&model).mcp_stdio("mute", "sleep 1000").args(["--mcp-timeout", "600"]);
        let mut live = mission.args(flags).control().spawn();
        live.say(&json!({"control": "inject", "text": "Be quick."}));
        live.say(&json!({"control": "cancel"}));
        let finished = live.finish();
        finished.exits(status);
        assert_eq!(finished.stream, "", "{finished}");
        assert!(finished.stderr.contains("cancelled before it began"), "{finished}");
        assert!(run_dirs(&finished.directory).is_empty());
    }
}

#[test]
fn a_reader_that_goes_away_ends_nothing_unless_it_is_to() {
    let model = Model::says([crate::support::model::held(answer("Twelve."))]);
    let mut live = Mission::objective("wait").model(&model).args(["--on-reader-gone", "continue"]).spawn();
    live.wait_for_event("step_started");
    live.close_reader();
    model.wait_for_request(1);
    model.let_go();
    let finished = live.finish();
    finished.exits(0).replays();
    assert_eq!(finished.log().of_kind("record").pop().unwrap()["outcome"], "answered");
}

/// The log of the only run below a folder.
fn log(folder: &Path) -> Log {
    Log::read(&run_dirs(folder)[0])
}

#[test]
fn a_stuck_reader_has_the_grace_and_no_more() {
    let folder = tempfile::tempdir().unwrap();
    let model = Model::says([Turn::Stall]);
    let long = "x".repeat(20_000);
    let mission = Mission::objective(&long).model(&model).directory(folder.path()).slow_reader().args(["--grace", "0.3"]);
    let mut live = mission.control().spawn();
    model.wait_for_request(1);
    live.say(&json!({"control": "cancel"}));
    live.wait();
    let log = log(folder.path());
    assert_eq!(log.problems(), Vec::<String>::new());
    assert_eq!(log.of_kind("record").pop().unwrap()["reason"], "cancelled");
    live.read_now();
    let left = live.finish();
    assert!(left.stderr.contains("records were not given to it"), "{left}");
}

#[test]
fn a_second_signal_ends_it_at_once_and_the_log_is_closed() {
    for (first, second) in
        [(Signal::SIGTERM, Signal::SIGTERM), (Signal::SIGINT, Signal::SIGINT), (Signal::SIGTERM, Signal::SIGINT)]
    {
        let folder = tempfile::tempdir().unwrap();
        let note = folder.path().join("note.ndjson");
        let server = needs!(servers::misbehaving(&["--ignore-end", "--note", note.to_str().unwrap()]));
        let model = Model::says([Turn::Stall]);
        // Nobody reads: the first signal has its reader waited for, ten minutes long.
        let mut live = Mission::objective(&"x".repeat(20_000))
            .model(&model)
            .mcp_stdio("mcp", &server)
            .directory(folder.path())
            .slow_reader()
            .args(["--grace", "600"])
            .spawn();
        model.wait_for_request(1);
        live.signal(first);
        model.wait_for_hang_up();
        let begun = std::time::Instant::now();
        live.signal(second);
        live.wait();
        assert!(begun.elapsed().as_secs() < 30, "a second signal waits for nobody");
        let log = log(folder.path());
        assert_eq!(log.problems(), Vec::<String>::new());
        assert_eq!(log.of_kind("record").pop().unwrap()["event"], "mission_finished");
        assert_eq!(std::fs::read_dir(folder.path().join(".mission/runs/open")).unwrap().count(), 0, "the run is closed");
        live.read_now();
        let finished = live.finish();
        assert!([first, second].map(|signal| 128 + signal as i32).contains(&finished.code()), "{finished}");
        let pid = records(&std::fs::read_to_string(&note).unwrap())[0]["pid"].clone();
        let until = std::time::Instant::now() + PATIENCE;
        while is_there(&pid) {
            assert!(std::time::Instant::now() < until, "a child is left");
            std::thread::yield_now();
        }
    }
}

#[test]
fn the_exit_status_tells_the_outcome_where_it_is_to() {
    let server = needs!(servers::misbehaving(&[]));
    let add = || call("mcp.add", json!({"a": 2, "b": 3}));
    let outcome =
        |model: &Model| Mission::objective("add").model(model).mcp_stdio("mcp", &server).args(["--exit-codes", "outcome"]);
    outcome(&Model::says([answer("Five.")])).run().exits(0).ends("answered");
    outcome(&Model::says([add()])).args(["--gate-tool", "add"]).run().exits(11).ends("awaiting_approval");
    outcome(&Model::says([add()])).steps(1).run().exits(12).ends("budget_exhausted");
    outcome(&Model::says([Turn::Status(500)])).run().exits(13).ends("incomplete");
    let model = Model::says([Turn::Stall]);
    let mut live = outcome(&model).control().spawn();
    model.wait_for_request(1);
    live.say(&json!({"control": "cancel"}));
    let cancelled = live.finish();
    cancelled.exits(14).ends("incomplete");
    let id = cancelled.run_dir().file_name().unwrap().to_owned();
    let replayed = Mission::default().arg("--replay").arg(id).args(["--exit-codes", "outcome"]).directory(&cancelled.directory);
    replayed.run().exits(14).ends("incomplete");
    let live = outcome(&model).spawn();
    model.wait_for_request(2);
    live.signal(Signal::SIGTERM);
    live.finish().exits(143).ends("incomplete");
}
