//! Decisions that come on the control channel: signed by the run, spent once, and never about anything that does not wait.

use std::path::PathBuf;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::support::model::{Model, Turn, answer, call};
use crate::support::needs;
use crate::support::run::{Finished, Live, Mission, run_dirs};
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
        let mission = Mission::objective("add").model(model).mcp_stdio("mcp", &self.server).protocol(protocol);
        self.at(mission).args(["--gate-tool", "add", "--control-acks"]).control()
    }

    fn calls(&self) -> usize {
        let note = std::fs::read_to_string(self.state.path().join("note")).unwrap_or_default();
        note.lines().filter(|line| line.contains("\"called\"")).count()
    }

    fn runs(&self) -> Vec<PathBuf> {
        run_dirs(self.folder.path())
    }

    fn approvals(&self, words: &[&str]) -> Finished {
        self.at(Mission::verb(["approvals"])).args(words).run()
    }
}

fn add() -> Turn {
    call("mcp.add", json!({"a": 2, "b": 3}))
}

fn waits_for(live: &Live) -> String {
    live.wait_for_event("gate_requested")["approval_id"].as_str().unwrap().to_owned()
}

fn decision(approval: &str, approve: bool, id: &str) -> Value {
    json!({"control": "gate_decision", "approval_id": approval, "approve": approve, "decided_by": "ana", "note": "I looked.", "id": id})
}

fn acked(live: &Live, id: &str) -> String {
    let ack = live.wait_for(id, |record| record["event"] == "control_ack" && record["id"] == id);
    ack["disposition"].as_str().unwrap().to_owned()
}

#[test]
fn a_yes_on_the_channel_makes_the_call_in_its_step_and_goes_on() {
    for protocol in ["json", "native"] {
        let place = needs!(Place::new());
        let turn = match protocol {
            "native" => Turn::Call(vec![("mcp.add".into(), json!({"a": 2, "b": 3})), ("mcp.big".into(), json!({"kib": 1}))]),
            _ => add(),
        };
        let model = Model::says([turn, answer("Five.")]);
        // No wait is stated: with a channel the run waits by itself.
        let mut live = place.gated(&model, protocol).spawn();
        let approval = waits_for(&live);
        live.say(&decision("ap_0123456789abcdef", true, "other"));
        assert_eq!(acked(&live, "other"), "refused");
        assert_eq!(place.calls(), 0);
        live.say(&decision(&approval, true, "yes"));
        assert_eq!(acked(&live, "yes"), "applied");
        let finished = live.finish();
        finished.exits(0).ends("answered").replays();
        let call = &finished.named("tool_call")[0];
        assert_eq!((&call["tool"], &call["index"]), (&json!("mcp.add"), &json!(0)), "{finished}");
        assert_eq!(place.calls(), if protocol == "native" { 2 } else { 1 });
        let log = finished.log();
        assert_eq!(log.problems(), Vec::<String>::new());
        let decided = &log.of_kind("decision")[0];
        assert_eq!((&decided["answer"], &decided["by"]), (&json!("approve"), &json!("ana")));
        let said = &log.of_kind("control")[0];
        assert_eq!(
            (&said["word"], &said["approval_id"], &said["id"]),
            (&json!("gate_decision"), &json!(approval), &json!("yes"))
        );
        assert!(finished.stderr.contains("ap_0123456789abcdef, which nothing waits for"), "{finished}");
        let shown: Value = serde_json::from_str(&place.approvals(&["show", &approval, "--json"]).stdout).unwrap();
        assert_eq!((&shown["state"], &shown["decided_by"]), (&json!("spent"), &json!("ana")));
    }
}

#[test]
fn a_no_on_the_channel_is_told_to_the_model() {
    let place = needs!(Place::new());
    let model = Model::says([add(), answer("Then not.")]);
    let mut live = place.gated(&model, "json").spawn();
    let approval = waits_for(&live);
    live.say(&decision(&approval, false, "no"));
    let finished = live.finish();
    finished.exits(0).ends("answered").replays();
    assert!(model.requests()[1].to_string().contains("ana refused it. Their note: I looked."));
    assert_eq!((place.calls(), finished.named("tool_call").len()), (0, 0));
}

#[test]
fn two_answers_are_one_and_the_command_decides_too() {
    let place = needs!(Place::new());
    let model = Model::says([add(), answer("Five.")]);
    let mut live = place.gated(&model, "json").spawn();
    let approval = waits_for(&live);
    live.say_raw(&format!("{}\n{}\n", decision(&approval, true, "yes"), decision(&approval, false, "no")));
    assert_eq!(acked(&live, "yes"), "applied");
    assert_eq!(acked(&live, "no"), "refused", "what is decided is decided");
    live.finish().exits(0).ends("answered").replays();
    assert_eq!(place.calls(), 1);
    let place = needs!(Place::new());
    let model = Model::says([add(), answer("Five.")]);
    let live = place.gated(&model, "json").spawn();
    let approval = waits_for(&live);
    place.approvals(&["approve", &approval, "--by", "bo"]).exits(0);
    let finished = live.finish();
    finished.exits(0).ends("answered").replays();
    assert_eq!(finished.log().of_kind("decision")[0]["by"], "bo");
}

#[test]
fn a_writer_that_goes_away_leaves_the_gate_to_others() {
    let place = needs!(Place::new());
    let model = Model::says([add(), answer("Five.")]);
    let mut live = place.gated(&model, "json").spawn();
    let approval = waits_for(&live);
    live.hang_up();
    place.approvals(&["approve", &approval, "--by", "bo"]).exits(0);
    live.finish().exits(0).ends("answered");
}

#[test]
fn a_gate_is_left_with_its_step_and_nobody_can_open_it_any_more() {
    let place = needs!(Place::new());
    let model = Model::says([add(), answer("Nothing.")]);
    let mut live = place.gated(&model, "json").spawn();
    let approval = waits_for(&live);
    live.say(&json!({"control": "steer", "text": "Then say so.", "id": "s"}));
    assert_eq!(acked(&live, "s"), "queued", "what waits for a person goes on waiting");
    live.say(&json!({"control": "cancel_step", "id": "c"}));
    assert_eq!(acked(&live, "c"), "applied");
    let finished = live.finish();
    finished.exits(0).ends("answered").replays();
    assert_eq!(place.calls(), 0);
    assert!(model.requests()[1].to_string().contains("Then say so."));
    place.approvals(&["approve", &approval, "--by", "ana"]);
    assert_eq!(place.calls(), 0);
}

#[test]
fn a_wait_of_none_and_approvals_that_are_not_kept_wait_for_nobody() {
    let place = needs!(Place::new());
    place.gated(&Model::says([add()]), "json").args(["--gate-wait", "0"]).run().exits(0).ends("awaiting_approval");
    place.gated(&Model::says([add()]), "json").env("MISSION_APPROVALS", "none").run().exits(0).ends("awaiting_approval");
}

#[test]
fn what_became_of_a_call_in_doubt_is_answered_in_so_many_words() {
    for (approve, word) in [(true, Some("done")), (true, Some("retry")), (false, None), (false, Some("abandon"))] {
        let place = needs!(Place::new());
        let model = Model::says([call("mcp.hang", json!({}))]);
        let mission = Mission::objective("hang").model(&model).mcp_stdio("mcp", &place.server);
        let live = place.at(mission).spawn();
        live.wait_for_event("tool_call");
        while place.calls() == 0 {
            std::thread::yield_now();
        }
        live.signal(Signal::SIGKILL);
        live.finish();
        let id = place.runs()[0].file_name().unwrap().to_str().unwrap().to_owned();
        let model = Model::says([answer("Done.")]);
        let resumed = Mission::resume(&id).model(&model).args(["--control-acks", "--mcp-timeout", "1"]).control();
        let mut live = place.at(resumed).spawn();
        let gate = live.wait_for_event("gate_requested");
        assert_eq!(gate["kind"], "reconcile");
        let approval = gate["approval_id"].as_str().unwrap();
        live.say(&decision(approval, true, "bare"));
        assert_eq!(acked(&live, "bare"), "refused", "a bare yes says nothing");
        let mut line = decision(approval, approve, "answer");
        if let Some(word) = word {
            line["answer"] = json!(word);
        }
        live.say(&line);
        assert_eq!(acked(&live, "answer"), "applied");
        let finished = live.finish();
        finished.exits(0).ends("answered").replays();
        assert_eq!(finished.log().of_kind("decision")[0]["answer"], word.unwrap_or("abandon"));
        let result = finished.only("tool_result");
        assert_eq!(result["ok"], json!(word == Some("done")), "{result}");
        assert_eq!(place.calls(), if word == Some("retry") { 2 } else { 1 });
    }
}

/// A run whose server was away when it began has its gates when it is carried on.
#[test]
fn gates_hold_where_the_server_came_up_only_later() {
    let place = needs!(Place::new());
    let up = place.state.path().join("up");
    let script = format!("test -f {} && exec {} || exit 3", up.display(), place.server);
    let server = format!("sh -c {}", shlex(&script));
    for flags in [["--gate-tool", "add"], ["--gate", "destructive"]] {
        let folder = tempfile::tempdir().unwrap();
        let at = |mission: Mission| mission.directory(folder.path()).env("XDG_STATE_HOME", place.state.path());
        let model = Model::says([add()]);
        let away = at(Mission::objective("add").model(&model).mcp_stdio("mcp", &server)).args(flags).run();
        away.exits(1).ends("incomplete");
        std::fs::write(&up, "").unwrap();
        let id = away.run_dir().file_name().unwrap().to_str().unwrap().to_owned();
        let resumed = at(Mission::resume(&id).model(&model)).run();
        resumed.exits(0).ends("awaiting_approval").replays();
        assert_eq!(place.calls(), 0, "nobody said yes");
        std::fs::remove_file(&up).unwrap();
    }
}

fn shlex(script: &str) -> String {
    format!("'{}'", script.replace('\'', "'\\''"))
}
