//! Calls of which nobody knows whether they took effect: a person says so, once, and the run goes on; and runs whose processes are gone.

use std::path::{Path, PathBuf};

use mission_contract::digest::call_digest;
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::support::log::Log;
use crate::support::model::{Model, Turn, answer, call, held};
use crate::support::needs;
use crate::support::run::{Finished, Mission, run_dirs};
use crate::support::servers;

/// A folder to run in, and one for what belongs to the user and to no run.
struct Place {
    folder: tempfile::TempDir,
    state: tempfile::TempDir,
    server: String,
    note: PathBuf,
}

impl Place {
    fn new() -> Result<Self, String> {
        let (folder, state) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let note = state.path().join("note");
        let server = servers::misbehaving(&["--note", note.to_str().unwrap()])?;
        Ok(Self { folder, state, server, note })
    }

    fn at(&self, mission: Mission) -> Mission {
        mission.directory(self.folder.path()).env("XDG_STATE_HOME", self.state.path())
    }

    fn run_dir(&self) -> PathBuf {
        let mut runs = run_dirs(self.folder.path());
        assert_eq!(runs.len(), 1, "{runs:?}");
        runs.remove(0)
    }

    fn run(&self) -> String {
        self.run_dir().file_name().unwrap().to_str().unwrap().to_owned()
    }

    fn resume(&self, model: &Model) -> Finished {
        self.at(Mission::resume(&self.run())).model(model).run()
    }

    fn approvals(&self, words: &[&str]) -> Finished {
        self.at(Mission::verb(["approvals"])).args(words).run()
    }

    /// How often the server was started.
    fn starts(&self) -> usize {
        std::fs::read_to_string(&self.note).unwrap_or_default().lines().filter(|line| line.contains("\"started\"")).count()
    }

    /// A run that was killed in the middle of a call that never comes back.
    fn killed(&self, protocol: &str) {
        let both = vec![("mcp.hang".to_owned(), json!({})), ("mcp.add".to_owned(), json!({"a": 2, "b": 3}))];
        let turn = if protocol == "native" { Turn::Call(both) } else { call("mcp.hang", json!({})) };
        let model = Model::says([turn, Turn::Stall]);
        let mission = Mission::objective("do it once").model(&model).mcp_stdio("mcp", &self.server).protocol(protocol);
        let live = self.at(mission).spawn();
        live.wait_for_event("tool_call");
        wait_for_line(&self.run_dir(), "intent");
        live.signal(Signal::SIGKILL);
        live.finish();
    }
}

/// Waits until a log holds a line of this kind.
pub(crate) fn wait_for_line(run_dir: &Path, kind: &str) {
    let waited = std::time::Instant::now();
    while Log::read(run_dir).of_whole_lines(kind).is_empty() {
        assert!(waited.elapsed() < crate::support::PATIENCE, "no line of the kind {kind}");
        std::thread::yield_now();
    }
}

fn approval(finished: &Finished) -> String {
    let gate = finished.only("gate_requested");
    assert_eq!((&gate["tool"], &gate["kind"]), (&json!("mcp.hang"), &json!("reconcile")), "{gate}");
    gate["approval_id"].as_str().unwrap().to_owned()
}

#[test]
fn a_call_in_doubt_waits_for_a_person_and_is_asked_about_once() {
    for protocol in ["json", "native"] {
        let place = needs!(Place::new());
        place.killed(protocol);
        let starts = place.starts();
        let model = Model::says([answer("It is done.")]);
        let parked = place.resume(&model);
        parked.exits(0).ends("awaiting_approval");
        assert_eq!(parked.names(), ["gate_requested", "mission_finished"]);
        let id = approval(&parked);
        // Again, as often as somebody looks: the same one, and nobody is asked or started.
        let again = place.resume(&model);
        again.exits(0).ends("awaiting_approval");
        assert_eq!(approval(&again), id);
        assert_eq!((model.requests().len(), place.starts()), (0, starts));
        let listed = place.approvals(&["list"]);
        listed.exits(0);
        assert!(listed.stdout.contains(&id) && listed.stdout.contains("mcp.hang"), "{listed}");
        let shown = place.approvals(&["show", &id]);
        assert!(shown.stdout.contains("whether it took effect is unknown"), "{shown}");
        // A yes says nothing here, and nobody is not enough.
        let refused = place.approvals(&["approve", &id, "--by", "ana"]);
        refused.exits(2);
        assert!(refused.stderr.contains("done (it took effect), retry"), "{refused}");
        place.approvals(&["answer", &id, "done"]).exits(2);
        place.approvals(&["answer", &id, "perhaps", "--by", "ana"]).exits(2);
        place.approvals(&["answer", &id, "done", "--by", "ana", "--note", "seen in the ledger"]).exits(0);
        place.approvals(&["answer", &id, "retry", "--by", "bob"]).exits(1);
        let resumed = place.resume(&model);
        resumed.exits(0).ends("answered");
        let results = resumed.named("tool_result");
        assert_eq!(results.len(), if protocol == "native" { 2 } else { 1 }, "the calls behind it are made: {resumed}");
        assert_eq!((&results[0]["ok"], &results[0]["index"]), (&json!(true), &json!(0)));
        let said = results[0]["output"].as_str().unwrap();
        assert!(said.contains("ana has confirmed") && said.contains("seen in the ledger"), "{said}");
        if protocol == "native" {
            assert_eq!(results[1]["output"], "5");
        }
        let asked = model.requests()[0].to_string();
        assert!(asked.contains("seen in the ledger"), "{asked}");
        let log = resumed.log();
        assert_eq!(log.problems(), Vec::<String>::new());
        assert_eq!(log.of_kind("decision")[0]["answer"], "done");
        let intents = log.of_kind("intent");
        assert_eq!(intents.iter().filter(|intent| intent["tool"] == "mcp.hang").count(), 1, "it was not made again");
        let spent: Value = serde_json::from_str(&place.approvals(&["show", &id, "--json"]).stdout).unwrap();
        assert_eq!((&spent["state"], &spent["spent_by"]["run"]), (&json!("spent"), &json!(place.run())));
        assert!(place.approvals(&["list"]).stdout.contains("nothing waits"));
    }
}

#[test]
fn a_call_that_a_person_wants_again_is_made_again_with_its_key() {
    let place = needs!(Place::new());
    place.killed("json");
    let model = Model::says([answer("It hangs still.")]);
    let id = approval(&place.resume(&model));
    place.approvals(&["answer", &id, "retry", "--by", "ana"]).exits(0);
    // The call hangs again, and is given up: nobody knows once more.
    let timed_out = place.at(Mission::resume(&place.run())).args(["--mcp-timeout", "1"]).model(&model).run();
    timed_out.exits(0).ends("answered");
    let intents = timed_out.log().of_kind("intent");
    assert_eq!(intents.len(), 2);
    assert_eq!(intents[0], intents[1], "the same key, the same digest");
    assert!(timed_out.only("tool_result")["error"].as_str().unwrap().contains("unknown"), "{timed_out}");
}

#[test]
fn a_call_that_a_person_gives_up_is_not_made_again() {
    let place = needs!(Place::new());
    place.killed("json");
    let model = Model::says([call("mcp.hang", json!({})), answer("I leave it.")]);
    let id = approval(&place.resume(&model));
    // As seed 2's callers say no.
    place.at(Mission::verb(["--refuse", &id, "--decided-by", "ana", "--note", "leave it"])).run().exits(0);
    let resumed = place.resume(&model);
    resumed.exits(0).ends("answered");
    assert!(resumed.only("tool_result")["error"].as_str().unwrap().contains("leave it"));
    assert!(resumed.only("reply_rejected")["problem"].as_str().unwrap().contains("not to be made again"));
    assert_eq!(resumed.log().of_kind("intent").len(), 1);
    assert_eq!(resumed.log().of_kind("decision")[0]["answer"], "abandon");
}

#[test]
fn what_somebody_wrote_into_an_approval_decides_nothing() {
    let place = needs!(Place::new());
    place.killed("json");
    let model = Model::says([answer("Done.")]);
    let id = approval(&place.resume(&model));
    let path = place.folder.path().join(format!(".mission/approvals/{id}.json"));
    let mut record: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    for (field, value) in
        [("state", "approved"), ("answer", "done"), ("decided_by", "ana"), ("decided_at", "2026-01-01T00:00:00.000Z")]
    {
        record[field] = json!(value);
    }
    std::fs::write(&path, record.to_string()).unwrap();
    let resumed = place.resume(&model);
    resumed.exits(0).ends("awaiting_approval");
    assert_eq!(resumed.only("notice")["code"], "approval_unsigned");
    assert_eq!(model.requests().len(), 0);
    // A person can decide all the same.
    place.approvals(&["answer", &id, "done", "--by", "ana"]).exits(0);
    place.resume(&model).exits(0).ends("answered");
}

/// The file is made to show a harmless call, so that a person says yes to that: nothing is made of it.
#[test]
fn a_yes_to_another_call_than_the_run_waits_for_makes_none() {
    for consistent in [false, true] {
        let place = needs!(Place::new());
        place.killed("json");
        let model = Model::says([answer("Done.")]);
        let id = approval(&place.resume(&model));
        let path = place.folder.path().join(format!(".mission/approvals/{id}.json"));
        let truth: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let mut lie = truth.clone();
        lie["tool"] = json!("mcp.look");
        lie["arguments"] = json!({"at": "lamps"});
        if consistent {
            let definition = lie["definition"].as_str().unwrap_or_default();
            lie["digest"] = json!(call_digest("mcp.look", definition, "{\"at\":\"lamps\"}"));
        }
        std::fs::write(&path, lie.to_string()).unwrap();
        // Where the digest was left as it was, nobody can be led to decide at all.
        place.approvals(&["answer", &id, "retry", "--by", "ana"]).exits(i32::from(!consistent));
        let resumed = place.resume(&model);
        resumed.exits(0).ends("awaiting_approval");
        assert_eq!(resumed.only("notice")["code"], "approval_unsigned", "{resumed}");
        assert_eq!((model.requests().len(), resumed.log().of_kind("intent").len()), (0, 1), "{resumed}");
        // It is asked anew, with the truth.
        let asked: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        for field in ["tool", "arguments", "digest", "state"] {
            assert_eq!(asked[field], truth[field], "{field}");
        }
        place.approvals(&["answer", &id, "done", "--by", "ana"]).exits(0);
        place.resume(&model).exits(0).ends("answered");
    }
}

#[test]
fn without_a_place_for_approvals_a_call_in_doubt_waits_without_an_id() {
    let place = needs!(Place::new());
    let model = Model::says([call("mcp.hang", json!({}))]);
    let mission = Mission::objective("once").model(&model).mcp_stdio("mcp", &place.server).env("MISSION_APPROVALS", "none");
    let live = place.at(mission).spawn();
    live.wait_for_event("tool_call");
    wait_for_line(&place.run_dir(), "intent");
    live.signal(Signal::SIGKILL);
    live.finish();
    let parked = place.at(Mission::resume(&place.run())).env("MISSION_APPROVALS", "none").model(&model).run();
    parked.exits(0).ends("awaiting_approval");
    assert!(parked.only("gate_requested").get("approval_id").is_none(), "{parked}");
    assert!(!place.folder.path().join(".mission/approvals").exists());
}

#[test]
fn a_live_call_that_did_not_come_back_is_not_repeated_but_on_a_persons_word() {
    let place = needs!(Place::new());
    let hang = || call("mcp.hang", json!({}));
    let model = Model::says([hang(), hang()]);
    let mission = Mission::objective("once").model(&model).mcp_stdio("mcp", &place.server).args(["--mcp-timeout", "1"]);
    let parked = place.at(mission).run();
    parked.exits(0).ends("awaiting_approval");
    let id = approval(&parked);
    assert_eq!(parked.log().of_kind("intent").len(), 1);
    place.approvals(&["answer", &id, "done", "--by", "ana"]).exits(0);
    let model = Model::says([answer("Done.")]);
    let resumed = place.resume(&model);
    resumed.exits(0).ends("answered");
    assert_eq!(resumed.only("tool_result")["ok"], true);
}

#[test]
fn a_call_that_may_be_made_twice_is_made_again_by_itself() {
    let place = needs!(Place::new());
    // `look` only reads, and its server says so.
    let model = Model::says([call("mcp.read_hang", json!({})), Turn::Stall]);
    let mission = Mission::objective("look").model(&model).mcp_stdio("mcp", &place.server);
    let live = place.at(mission.args(["--trust-annotations", "mcp"])).spawn();
    live.wait_for_event("tool_call");
    wait_for_line(&place.run_dir(), "intent");
    live.signal(Signal::SIGKILL);
    live.finish();
    let model = Model::says([answer("Seen.")]);
    let resumed = place.at(Mission::resume(&place.run())).args(["--mcp-timeout", "1"]).model(&model).run();
    resumed.exits(0).ends("answered");
    assert!(resumed.named("gate_requested").is_empty());
    let intents = resumed.log().of_kind("intent");
    assert_eq!((intents.len(), &intents[0]), (2, &intents[1]));
}

#[test]
fn a_run_whose_process_is_gone_is_closed_by_the_next_one_and_can_still_be_resumed() {
    let place = needs!(Place::new());
    place.killed("json");
    let (orphan, orphan_dir) = (place.run(), place.run_dir());
    let model = Model::says([held(answer("Twelve."))]);
    let live = place.at(Mission::objective("how many lamps?")).model(&model).spawn();
    live.wait_for_event("mission_started");
    let mark = orphan_dir.parent().unwrap().join("open").join(&orphan);
    let waited = std::time::Instant::now();
    while mark.exists() {
        assert!(waited.elapsed() < crate::support::PATIENCE, "nobody closes it");
        std::thread::yield_now();
    }
    model.let_go();
    let other = live.finish();
    other.exits(0).ends("answered");
    let log = Log::read(&orphan_dir);
    assert_eq!(log.problems(), Vec::<String>::new());
    let closer = other.only("mission_started")["run_id"].clone();
    assert_eq!(log.of_kind("closed"), [json!({"by": closer})]);
    let last = log.of_kind("record").pop().unwrap();
    assert_eq!((&last["event"], &last["outcome"]), (&json!("mission_finished"), &json!("incomplete")));
    // Its call is as much in doubt as before.
    let parked = place.at(Mission::resume(&orphan)).model(&model).run();
    parked.exits(0).ends("awaiting_approval");
    let id = approval(&parked);
    place.approvals(&["answer", &id, "done", "--by", "ana"]).exits(0);
    let model = Model::says([answer("Done.")]);
    place.at(Mission::resume(&orphan)).model(&model).run().exits(0).ends("answered");
    assert_eq!(Log::read(&orphan_dir).problems(), Vec::<String>::new());
    let replayed = place.at(Mission::verb(["replay", "--strict", &orphan])).run();
    assert!(replayed.stdout.contains("1 same"), "{replayed}");
}

#[test]
fn a_run_that_goes_on_is_not_closed_by_another() {
    let place = needs!(Place::new());
    let model = Model::says([held(answer("First."))]);
    let first = place.at(Mission::objective("wait")).model(&model).spawn();
    first.wait_for_event("step_started");
    let second = Model::says([answer("Second.")]);
    place.at(Mission::objective("be quick")).model(&second).run().exits(0).ends("answered");
    model.let_go();
    first.finish().exits(0).ends("answered");
}
