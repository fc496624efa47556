//! Calls that a person has to allow: parked and resumed, waited for, given before, twice, late, by somebody else.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::support::log::Log;
use crate::support::model::{Model, Turn, answer, call};
use crate::support::needs;
use crate::support::planes::tool;
use crate::support::remote::{Remote, body, result, status};
use crate::support::run::{Finished, Mission, run_dirs};
use crate::support::servers;

/// A folder to run in, and one for what belongs to the user and to no run.
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

    fn gated(&self, model: &Model, protocol: &str) -> Mission {
        let mission = Mission::objective("add two and three").model(model).mcp_stdio("mcp", &self.server).protocol(protocol);
        self.at(mission).args(["--gate-tool", "add"])
    }

    fn runs(&self) -> Vec<PathBuf> {
        run_dirs(self.folder.path())
    }

    fn resume(&self, run: &str, model: &Model) -> Finished {
        self.at(Mission::resume(run)).model(model).run()
    }

    fn approvals(&self, words: &[&str]) -> Finished {
        self.at(Mission::verb(["approvals"])).args(words).run()
    }

    /// The log holds, and replays to what it is.
    #[track_caller]
    fn replays(&self, run: &str) {
        self.at(Mission::verb(["verify", run])).run().exits(0);
        let replayed = self.at(Mission::verb(["replay", "--strict", run])).run();
        assert!(replayed.stdout.contains("1 same"), "{replayed}");
    }

    /// The calls that the server really got.
    fn calls(&self) -> usize {
        let note = std::fs::read_to_string(self.state.path().join("note")).unwrap_or_default();
        note.lines().filter(|line| line.contains("\"called\"")).count()
    }
}

fn id(run_dir: &std::path::Path) -> String {
    run_dir.file_name().unwrap().to_str().unwrap().to_owned()
}

fn add() -> Turn {
    call("mcp.add", json!({"a": 2, "b": 3}))
}

fn approval(finished: &Finished) -> String {
    let gate = finished.only("gate_requested");
    assert_eq!((&gate["tool"], &gate["arguments"]), (&json!("mcp.add"), &json!({"a": 2, "b": 3})), "{gate}");
    assert!(gate.get("kind").is_none(), "{gate}");
    gate["approval_id"].as_str().unwrap().to_owned()
}

#[test]
fn a_parked_run_makes_the_approved_call_without_asking_the_model() {
    for protocol in ["json", "native"] {
        let place = needs!(Place::new());
        let turn = match protocol {
            "native" => Turn::Call(vec![("mcp.add".into(), json!({"a": 2, "b": 3})), ("mcp.big".into(), json!({"kib": 1}))]),
            _ => add(),
        };
        let model = Model::says([turn]);
        let parked = place.gated(&model, protocol).run();
        parked.exits(0).ends("awaiting_approval");
        assert_eq!(parked.only("mission_started")["gated"], json!(["mcp.add"]));
        assert!(model.requests()[0].to_string().contains("needs a person's approval"));
        assert_eq!(place.calls(), 0);
        let id_of = approval(&parked);
        let run = id(&place.runs()[0]);
        // Nobody has decided: the same question, and nobody is asked.
        let model = Model::says([answer("Five.")]);
        assert_eq!(approval(&place.resume(&run, &model)), id_of);
        place.approvals(&["answer", &id_of, "done", "--by", "ana"]).exits(2);
        place.approvals(&["approve", &id_of, "--by", "ana", "--note", "fine"]).exits(0);
        assert_eq!(model.requests().len(), 0);
        let resumed = place.resume(&run, &model);
        resumed.exits(0).ends("answered");
        let first = &resumed.named("tool_call")[0];
        assert_eq!((&first["tool"], &first["index"]), (&json!("mcp.add"), &json!(0)), "under its old step");
        assert_eq!(resumed.names()[0], "tool_call", "before the model is asked");
        assert_eq!(place.calls(), if protocol == "native" { 2 } else { 1 }, "the rest of the reply goes on");
        let log = resumed.log();
        assert_eq!(log.problems(), Vec::<String>::new());
        assert_eq!(log.of_kind("decision")[0]["by"], "ana");
        place.resume(&run, &model).refused_beside(&["answered"]);
        place.replays(&run);
        assert!(place.approvals(&["list", "--all"]).stdout.contains("spent"));
    }
}

#[test]
fn a_no_is_told_to_the_model_and_nothing_is_called() {
    let place = needs!(Place::new());
    let parked = place.gated(&Model::says([add()]), "json").run();
    let id_of = approval(&parked);
    place.at(Mission::verb(["--refuse", &id_of, "--decided-by", "ana", "--note", "too risky"])).run().exits(0);
    let model = Model::says([answer("Then not.")]);
    let resumed = place.resume(&id(&place.runs()[0]), &model);
    resumed.exits(0).ends("answered");
    assert!(model.requests()[0].to_string().contains("ana refused it. Their note: too risky"));
    assert_eq!(place.calls(), 0);
}

#[test]
fn a_run_that_waits_goes_on_when_somebody_decides() {
    let place = needs!(Place::new());
    // The first of them is called; the second is not.
    for (word, output, calls) in [("approve", Some("5"), 1), ("refuse", None, 1)] {
        let model = Model::says([add(), answer("Done.")]);
        let live = place.gated(&model, "json").args(["--gate-wait", "60"]).spawn();
        let gate = live.wait_for_event("gate_requested");
        let id_of = gate["approval_id"].as_str().unwrap();
        // Half a decision is none.
        place.approvals(&[word, id_of]).exits(2);
        place.approvals(&[word, id_of, "--by", "ana"]).exits(0);
        let finished = live.finish();
        finished.exits(0).ends("answered");
        assert_eq!(finished.named("tool_result").first().map(|result| result["output"].as_str().unwrap()), output);
        assert_eq!(place.calls(), calls);
        place.replays(finished.only("mission_started")["run_id"].as_str().unwrap());
    }
}

#[test]
fn a_run_that_waits_in_vain_is_parked_and_a_cancel_is_not_waited_for() {
    let place = needs!(Place::new());
    let model = Model::says([add()]);
    let parked = place.gated(&model, "json").args(["--gate-wait", "0.2"]).run();
    parked.exits(0).ends("awaiting_approval");
    let live = place.gated(&model, "json").args(["--gate-wait", "60"]).spawn();
    live.wait_for_event("gate_requested");
    live.signal(Signal::SIGTERM);
    let ended = live.finish();
    ended.ends("incomplete");
    // Nothing was lost: an answer still counts.
    let id_of = approval(&ended);
    place.approvals(&["approve", &id_of, "--by", "ana"]).exits(0);
    let run = ended.only("mission_started")["run_id"].as_str().unwrap().to_owned();
    let resumed = place.resume(&run, &Model::says([answer("Five.")]));
    resumed.exits(0).ends("answered");
    assert_eq!(place.calls(), 1);
    place.replays(&run);
}

#[test]
fn one_yes_is_for_one_call_of_one_run() {
    let place = needs!(Place::new());
    let parked = place.gated(&Model::says([add()]), "json").run();
    let (id_of, run) = (approval(&parked), id(&place.runs()[0]));
    place.at(Mission::verb(["--approve", &id_of, "--decided-by", "ana"])).run().exits(0);
    // A run of its own takes it along: only that call, only once.
    let other = call("mcp.add", json!({"a": 2, "b": 4}));
    let model = Model::says([add(), other]);
    let second = place.gated(&model, "json").args(["--approval", &id_of]).run();
    second.exits(0).ends("awaiting_approval");
    assert!(model.requests()[0].to_string().contains(&format!("A person has approved this one call ({id_of})")));
    assert_eq!(
        (second.only("tool_result")["output"].clone(), second.only("gate_requested")["arguments"].clone()),
        (json!("5"), json!({"a": 2, "b": 4}))
    );
    assert_eq!(place.calls(), 1);
    // It is spent: no third run, and not the one that had asked for it.
    place.gated(&model, "json").args(["--approval", &id_of]).run().refused_beside(&["--approval", "spent"]);
    let model = Model::says([answer("Somebody else did it.")]);
    let resumed = place.resume(&run, &model);
    resumed.exits(0).ends("answered");
    assert!(model.requests()[0].to_string().contains("the approval was spent by run"), "{}", model.requests()[0]);
    assert_eq!(place.calls(), 1);
}

#[test]
fn an_approval_that_does_not_hold_is_refused_at_the_door() {
    let place = needs!(Place::new());
    let model = Model::says([add()]);
    let id_of = approval(&place.gated(&model, "json").run());
    let door = |words: &[&str]| place.gated(&model, "json").args(words).run();
    door(&["--approval", &id_of]).refused_beside(&["--approval", "pending"]);
    door(&["--approval", "ap_0000000000000000"]).refused_beside(&["--approval", "ap_0000000000000000"]);
    door(&["--approval", "../x"]).refused_beside(&["--approval"]);
    place.approvals(&["refuse", &id_of, "--by", "ana"]).exits(0);
    door(&["--approval", &id_of]).refused_beside(&["--approval", "ana said refuse"]);
    // Its time is over.
    let expiring = place.gated(&model, "json").args(["--gate-expires", "0"]).run();
    let expired = approval(&expiring);
    place.approvals(&["approve", &expired, "--by", "ana"]).exits(1);
    door(&["--approval", &expired]).refused_beside(&["--approval", "time is over"]);
    // Without an asked tool there is nothing to approve.
    let alone = place.at(Mission::objective("x").model(&model));
    let approved = approval(&place.gated(&model, "json").run());
    place.approvals(&["approve", &approved, "--by", "ana"]).exits(0);
    alone.args(["--approval", &approved]).run().refused_beside(&["--approval", "mcp.add", "does not offer"]);
}

#[test]
fn gates_are_named_as_tools_are() {
    let place = needs!(Place::new());
    let model = Model::says([answer("x")]);
    let door = |words: &[&str]| {
        let mission = Mission::objective("x").model(&model).mcp_stdio("a", &place.server).mcp_stdio("b", &place.server);
        place.at(mission).args(words).run()
    };
    door(&["--gate-tool", "add"]).refused_beside(&["--gate-tool", "a.add", "b.add"]);
    door(&["--gate-tool", "weigh"]).refused_beside(&["--gate-tool", "weigh"]);
    door(&["--gate", "everything"]).refused_beside(&["--gate", "destructive"]);
    door(&["--gate-wait", "-1"]).refused_beside(&["--gate-wait"]);
    door(&["--gate-time", "paid"]).refused_beside(&["--gate-time"]);
    let fine = door(&["--gate-tool", "b.look", "--gate-tool", "a_add"]);
    assert_eq!(fine.only("mission_started")["gated"], json!(["a.add", "b.look"]));
    let all = door(&["--gate", "all-writes"]);
    let started = all.only("mission_started");
    assert_eq!(started["gated"].as_array().unwrap().len() + 1, started["catalogue"].as_array().unwrap().len());
    let trusted = door(&["--gate", "all-writes", "--trust-annotations", "a"]);
    let gated = trusted.only("mission_started")["gated"].clone();
    assert!(
        !gated.as_array().unwrap().contains(&json!("a.read_hang")) && gated.as_array().unwrap().contains(&json!("b.read_hang"))
    );
}

#[test]
fn a_crash_between_the_yes_and_the_call_makes_it_once() {
    let place = needs!(Place::new());
    let model = Model::says([add(), answer("Done.")]);
    let live = place.gated(&model, "json").args(["--gate-wait", "60"]).spawn();
    let id_of = live.wait_for_event("gate_requested")["approval_id"].as_str().unwrap().to_owned();
    live.signal(Signal::SIGKILL);
    live.finish();
    place.approvals(&["approve", &id_of, "--by", "ana"]).exits(0);
    let run = id(&place.runs()[0]);
    let resumed = place.resume(&run, &Model::says([answer("Done.")]));
    resumed.exits(0).ends("answered");
    assert_eq!(place.calls(), 1);
    let spent: Value = serde_json::from_str(&place.approvals(&["show", &id_of, "--json"]).stdout).unwrap();
    assert_eq!(spent["spent_by"]["run"], run);
    assert_eq!(Log::read(&place.runs()[0]).problems(), Vec::<String>::new());
    place.replays(&run);
}

#[test]
fn nothing_inside_a_run_can_approve() {
    // Who decides are the verbs, and whoever writes to the control channel: one place writes down what came from there, and one place
    // hands it what came.
    let mut places = Vec::new();
    for source in crate::house::sources() {
        if matches!(source.room(), Some("cli" | "approvals")) {
            continue;
        }
        for call in [".decide(", "desk.sign("] {
            places.extend(source.code.match_indices(call).map(|_| format!("{} {call}", source.name)));
        }
    }
    places.sort();
    assert_eq!(places, ["src/driver/desk.rs .decide(", "src/driver/hearing.rs desk.sign("]);
}

#[test]
fn a_recording_is_replayed_with_a_gate_that_it_had_not() {
    let place = needs!(Place::new());
    let model = Model::says([add(), answer("Five.")]);
    let finished = place.at(Mission::objective("add").model(&model).mcp_stdio("mcp", &place.server)).run();
    finished.exits(0).ends("answered");
    let run = id(&place.runs()[0]);
    let replayed = place.at(Mission::default().args(["--replay", &run, "--gate-tool", "add"])).run();
    replayed.exits(0).ends("awaiting_approval");
    approval(&replayed);
    let verdict = place.at(Mission::verb(["replay", &run, "--gate", "all-writes"])).run();
    verdict.exits(1);
    assert!(verdict.stdout.contains("decision"), "{verdict}");
    place.at(Mission::verb(["replay", &run])).run().exits(0);
    place.at(Mission::verb(["replay", &run, "--gate-tool", "subtract"])).run().exits(1);
    place.at(Mission::verb(["replay", &run, "--gate", "never"])).run().exits(2);
    assert_eq!(place.calls(), 1);
    assert!(!place.at(Mission::verb(["approvals", "list"])).run().stdout.contains("ap_"), "a replay asks nobody");
}

/// A06. A server that forgot its session while a person thought has a new one before the call goes out.
#[test]
fn a_session_that_a_server_forgot_meanwhile_does_not_cost_the_call() {
    let forgot = Arc::new(AtomicBool::new(false));
    let forgets = Arc::clone(&forgot);
    let remote = Remote::handshake(json!([tool("add")]), move |heard, _| {
        let is_known = !forgets.load(Ordering::SeqCst) || heard.header("mcp-session-id") == Some("s-2");
        match heard.method() {
            _ if !is_known => status(404),
            "ping" => body(result(heard, json!({}))),
            "tools/call" => body(result(heard, json!({"content": [{"type": "text", "text": "5"}]}))),
            _ => status(405),
        }
    });
    let model = Model::says([call("mcp.add", json!({})), answer("Five.")]);
    let (folder, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let at = |mission: Mission| mission.directory(folder.path()).env("XDG_STATE_HOME", state.path());
    let url = format!("mcp={}", remote.url());
    let live =
        at(Mission::objective("add").model(&model)).args(["--mcp-url", &url, "--gate-tool", "add", "--gate-wait", "60"]).spawn();
    let gate = live.wait_for_event("gate_requested");
    forgot.store(true, Ordering::SeqCst);
    let id_of = gate["approval_id"].as_str().unwrap();
    at(Mission::verb(["approvals", "approve", id_of, "--by", "ana"])).run().exits(0);
    let finished = live.finish();
    finished.exits(0).ends("answered");
    assert_eq!(finished.only("tool_result")["output"], "5", "{finished}");
    let calls = remote.heard_method("tools/call");
    assert_eq!(calls.iter().map(|heard| heard.header("mcp-session-id")).collect::<Vec<_>>(), [Some("s-2")]);
}
