//! Field cases at gates: late decisions, waiting that is no work, odd decisions, texts that rule a terminal.

use std::path::PathBuf;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::support::log::Log;
use crate::support::model::{Model, Turn, answer, call};
use crate::support::needs;
use crate::support::run::{Finished, Mission, run_dirs};
use crate::support::servers;

/// A folder to run in, one for what belongs to the user, and a server that notes its calls.
struct Place {
    folder: tempfile::TempDir,
    state: tempfile::TempDir,
    server: String,
}

impl Place {
    fn new() -> Result<Self, String> {
        let (folder, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let server = servers::misbehaving(&["--note", state.path().join("note").to_str().unwrap()])?;
        Ok(Self { folder, state, server })
    }

    fn at(&self, mission: Mission) -> Mission {
        mission.directory(self.folder.path()).env("XDG_STATE_HOME", self.state.path())
    }

    fn gated(&self, model: &Model, tool: &str) -> Mission {
        let mission = Mission::objective("do it").model(model).mcp_stdio("mcp", &self.server);
        self.at(mission).args(["--gate-tool", tool])
    }

    fn resume(&self, run: &str, model: &Model, words: &[&str]) -> Finished {
        self.at(Mission::resume(run)).model(model).args(words).run()
    }

    fn approvals(&self, words: &[&str]) -> Finished {
        self.at(Mission::verb(["approvals"])).args(words).run()
    }

    fn file(&self, approval: &str) -> PathBuf {
        self.folder.path().join(".mission/approvals").join(format!("{approval}.json"))
    }

    fn executed(&self) -> usize {
        let note = std::fs::read_to_string(self.state.path().join("note")).unwrap_or_default();
        note.lines().filter(|line| line.contains("\"called\"")).count()
    }
}

fn add() -> Turn {
    call("mcp.add", json!({"a": 2, "b": 3}))
}

fn run_of(finished: &Finished) -> String {
    finished.only("mission_started")["run_id"].as_str().unwrap().to_owned()
}

fn approval_of(finished: &Finished) -> String {
    finished.only("gate_requested")["approval_id"].as_str().unwrap().to_owned()
}

/// A04. What comes after the time of an approval, or after its run has gone another way for good, makes no call. One that comes after a
/// wait, a cancel or a kill is not late: it is kept, and the run that is taken up acts on it.
#[test]
fn a_late_decision_makes_no_call() {
    let place = needs!(Place::new());
    // Its own time is over.
    let model = Model::says([add()]);
    let expired = place.gated(&model, "add").args(["--gate-expires", "0"]).run();
    expired.exits(0).ends("awaiting_approval");
    place.approvals(&["approve", &approval_of(&expired), "--by", "ana"]).exits(1);
    let model = Model::says([answer("Then not.")]);
    place.resume(&run_of(&expired), &model, &[]).exits(0).ends("answered");
    // Another answer was given before, and acted upon.
    let model = Model::says([add()]);
    let parked = place.gated(&model, "add").run();
    let (run, id) = (run_of(&parked), approval_of(&parked));
    place.approvals(&["refuse", &id, "--by", "ana"]).exits(0);
    let model = Model::says([answer("Then not.")]);
    place.resume(&run, &model, &[]).exits(0).ends("answered");
    place.approvals(&["approve", &id, "--by", "ben"]).exits(1);
    // The run is over.
    place.resume(&run, &model, &[]).refused_beside(&[&run, "answered"]);
    assert_eq!(place.executed(), 0);
    // A wait that ended, and a cancel: the person is not asked a second time, and the answer counts once.
    let model = Model::says([add()]);
    let live = place.gated(&model, "add").args(["--gate-wait", "60"]).spawn();
    live.wait_for_event("gate_requested");
    live.signal(Signal::SIGTERM);
    let cancelled = live.finish();
    let (run, id) = (run_of(&cancelled), approval_of(&cancelled));
    place.approvals(&["approve", &id, "--by", "ana"]).exits(0);
    assert_eq!(place.executed(), 0, "nothing is executed by the answer itself");
    let model = Model::says([answer("Five.")]);
    place.resume(&run, &model, &[]).exits(0).ends("answered");
    place.approvals(&["approve", &id, "--by", "ana"]).exits(1);
    assert_eq!(place.executed(), 1);
}

/// A06. A person who thinks longer than the run may work takes nothing from it where waiting is free; where it counts, the run is parked
/// when its time is over, and says how it can go on.
#[test]
fn waiting_is_no_work_where_it_is_free() {
    let place = needs!(Place::new());
    let model = Model::says([add(), answer("Five.")]);
    let limits = ["--gate-wait", "60", "--mission-seconds", "2.5", "--tick", "0.5"];
    let live = place.gated(&model, "add").args(limits).args(["--gate-time", "free"]).spawn();
    let gate = live.wait_for_event("gate_requested");
    // The person thinks for longer than that.
    live.wait_for("a wait of three seconds", |record| record["event"] == "tick" && record["since_s"].as_f64() > Some(3.0));
    place.approvals(&["approve", gate["approval_id"].as_str().unwrap(), "--by", "ana"]).exits(0);
    let finished = live.finish();
    finished.exits(0).ends("answered");
    assert_eq!(place.executed(), 1);
    assert!(finished.only("mission_finished")["elapsed_s"].as_f64().unwrap() > 3.0, "both times are told");
    // What is left is as much as before.
    let replay = Mission::verb(["replay", "--strict", &run_of(&finished)]);
    place.at(replay).run().exits(0);

    let model = Model::says([add()]);
    let parked = place.gated(&model, "add").args(["--gate-wait", "60", "--mission-seconds", "1"]).run();
    parked.exits(0).ends("awaiting_approval");
    let (run, id) = (run_of(&parked), approval_of(&parked));
    place.approvals(&["approve", &id, "--by", "ana"]).exits(0);
    let model = Model::says([answer("Five.")]);
    // The approval is not thrown away with a run that could not use it any more.
    place.resume(&run, &model, &[]).refused_beside(&["--mission-seconds", &run]);
    assert_eq!(place.executed(), 1);
    let resumed = place.resume(&run, &model, &["--mission-seconds", "60"]);
    resumed.exits(0).ends("answered");
    assert_eq!((place.executed(), run_dirs(place.folder.path()).len()), (2, 2));
}

/// A08. Only the words that are written down count, from the command and from the file; everything else leaves the gate as it was.
#[test]
fn an_odd_decision_is_none() {
    let place = needs!(Place::new());
    let model = Model::says([add()]);
    let parked = place.gated(&model, "add").run();
    let (run, id) = (run_of(&parked), approval_of(&parked));
    for word in ["Approve", "yes", "true", "null", "approve ", "[\"approve\"]", "{\"v\":\"approve\"}", "", "done", "retry"] {
        let said = place.approvals(&["answer", &id, word, "--by", "ana"]);
        assert_eq!(said.code(), 2, "{word:?}: {said}");
    }
    let mut wrong = id.clone();
    wrong.pop();
    for other in [id.to_uppercase(), wrong, "1".to_owned(), format!("{id} "), format!("../approvals/{id}")] {
        let said = place.approvals(&["approve", &other, "--by", "ana"]);
        assert_ne!(said.code(), 0, "{other:?}: {said}");
    }
    // Somebody writes it into the file.
    let whole = std::fs::read(place.file(&id)).unwrap();
    let record: Value = serde_json::from_slice(&whole).unwrap();
    assert_eq!(record["state"], "pending");
    for odd in [
        json!("Approve"),
        json!("approved"),
        json!("yes"),
        json!(true),
        json!(null),
        json!("approved "),
        json!(["approved"]),
        json!({"v": "approve"}),
        json!(1),
    ] {
        let mut edited = record.clone();
        edited["state"] = odd.clone();
        edited["decided_by"] = json!("ana");
        std::fs::write(place.file(&id), edited.to_string()).unwrap();
        let model = Model::says([answer("never asked")]);
        let again = place.resume(&run, &model, &[]);
        again.exits(0).ends("awaiting_approval");
        assert_eq!((approval_of(&again), model.requests().len()), (id.clone(), 0), "{odd}");
    }
    assert_eq!(place.executed(), 0);
    // It is open until somebody decides it.
    std::fs::write(place.file(&id), &whole).unwrap();
    place.approvals(&["approve", &id, "--by", "ana"]).exits(0);
    place.resume(&run, &Model::says([answer("Five.")]), &[]).exits(0).ends("answered");
    assert_eq!(place.executed(), 1);
}

/// What would rule a terminal, or hide what a person is to see.
const RULING: &str = "A\u{1b}[2J\u{1b}]0;PWNED\u{7}\u{1b}]8;;http://x.invalid/\u{1b}\\link\u{1b}]8;;\u{1b}\\ \u{1b}]52;c;ZWNobw==\u{7}\u{9b}31m balance 1\u{200b}0\rbalance 9 \u{202e}txt.exe\u{202c} \u{1b}Pq\u{1b}\\ end";

/// R05 at a gate: what a person is asked about is kept as it came and rules no screen, whoever shows it.
#[test]
fn what_is_asked_of_a_person_rules_no_screen() {
    let place = needs!(Place::new());
    let arguments = json!({"why": RULING});
    let model = Model::says([call("mcp.fail", arguments.clone())]);
    let parked = place.gated(&model, "fail").run();
    parked.exits(0).ends("awaiting_approval");
    assert_eq!(parked.only("gate_requested")["arguments"], arguments, "on the wire as it came");
    let (run, id) = (run_of(&parked), approval_of(&parked));
    let shown = place.approvals(&["show", &id]);
    let list = place.approvals(&["list"]);
    let again = place.resume(&run, &model, &[]);
    place.approvals(&["approve", &id, "--by", "ana", "--note", RULING]).exits(0);
    let decided = place.approvals(&["show", &id]);
    let resumed = place.resume(&run, &Model::says([answer("It failed.")]), &[]);
    resumed.exits(0).ends("answered");
    let story = place.at(Mission::verb(["runs", "show", &run])).run();
    for screen in [&parked, &shown, &list, &again, &decided, &resumed, &story] {
        for text in [&screen.stdout, &screen.stderr] {
            let ruling = text.chars().find(|sign| matches!(sign, '\u{1b}' | '\u{9b}' | '\u{7}' | '\r' | '\u{202e}'));
            assert_eq!(ruling, None, "{text:?}");
        }
    }
    assert!(shown.stdout.contains("balance 1") && shown.stdout.contains("PWNED"), "nothing is hidden: {shown}");
    let log = Log::read(&run_dirs(place.folder.path())[0]);
    assert_eq!(log.of_kind("intent")[0]["arguments"], arguments, "in the log as it came");
    assert_eq!(log.of_kind("result")[0]["error"], RULING);
}
