//! The audit file of real runs: a line a dispatch, chained, without a secret, and no call without its line.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use mission_contract::digest::sha256_hex;
use mission_contract::schema;
use serde_json::{Value, json};

use crate::support::log::Log;
use crate::support::model::{Model, Turn, answer, call};
use crate::support::needs;
use crate::support::player::{Serving, field_json};
use crate::support::run::{Finished, Mission, run_dirs};
use crate::support::servers;

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

    fn run(&self, model: &Model) -> Mission {
        self.at(Mission::objective("add").model(model).mcp_stdio("mcp", &self.server))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn log(&self, run: &str) -> Log {
        Log::read(&self.path(".mission/runs").join(run))
    }

    fn calls(&self) -> usize {
        let note = std::fs::read_to_string(self.state.path().join("note")).unwrap_or_default();
        note.lines().filter(|line| line.contains("\"called\"")).count()
    }

    fn verify(&self, path: &Path) -> Finished {
        self.at(Mission::verb(["verify"])).arg(path).run()
    }
}

fn add() -> Turn {
    call("mcp.add", json!({"a": 2, "b": 3}))
}

fn lines(path: &Path) -> Vec<Value> {
    let validator = jsonschema::validator_for(&schema::one("audit-line").unwrap()).unwrap();
    let text = std::fs::read_to_string(path).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for line in &lines {
        assert!(validator.is_valid(line), "{line}");
    }
    lines
}

fn audit_ref(run: &Finished) -> PathBuf {
    run.only("mission_started")["audit_ref"].as_str().unwrap().into()
}

fn id(run: &Finished) -> String {
    run.only("mission_started")["run_id"].as_str().unwrap().to_owned()
}

/// Each line as `event_type tool verdict rule`.
fn told(lines: &[Value]) -> Vec<String> {
    let word = |line: &Value, key: &str| line[key].as_str().unwrap().to_owned();
    lines.iter().map(|line| ["event_type", "tool_name", "verdict", "rule"].map(|key| word(line, key)).join(" ")).collect()
}

#[test]
fn every_dispatch_has_its_line_with_rule_step_digests_and_figures() {
    let place = needs!(Place::new());
    std::fs::write(place.path("p.yaml"), "version: 1\nrules: [{id: no-big, tools: '*.big', effect: deny}]\n").unwrap();
    let model = Model::says([
        add(),
        call("mcp.big", json!({"kib": 1})),
        call("mcp.nothing_like_it", json!({})),
        call("mission_result", json!({"handle": "r1"})),
        answer("Five."),
    ]);
    let run = place.run(&model).args(["--policy", "p.yaml"]).run();
    run.exits(0).ends("answered");
    let path = audit_ref(&run);
    assert!(path.starts_with(place.path(".mission/audit")), "{}", path.display());
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let lines = lines(&path);
    assert_eq!(
        told(&lines),
        [
            "tool_intent mcp.add allowed default",
            "tool_dispatch mcp.add allowed default",
            "tool_dispatch mcp.big denied no-big",
            "tool_dispatch mcp.nothing_like_it unknown_tool catalogue",
            "tool_dispatch mission_result allowed catalogue",
        ]
    );
    let made = &lines[1];
    assert_eq!(made["session_id"], run.only("mission_started")["run_id"]);
    assert_eq!((&made["scopes"], &made["profile"], &made["step"]), (&json!(["mcp.call"]), &json!("safe"), &json!(0)));
    assert_eq!(made["arguments_digest"], sha256_hex(br#"{"a":2,"b":3}"#));
    assert_eq!(
        (&made["exit_code"], &made["bytes_out"], &made["result_digest"]),
        (&json!(0), &json!(1), &json!(sha256_hex(b"5")))
    );
    assert!(made["duration_ms"].is_u64());
    assert_eq!((&made["key"], &made["key"]), (&lines[0]["key"], &run.log().of_kind("intent")[0]["key"]));
    assert_eq!((&lines[2]["step"], &lines[3]["step"], &lines[4]["step"]), (&json!(1), &json!(2), &json!(3)));
    let verified = place.verify(&path);
    verified.exits(0);
    assert!(verified.stdout.contains("fine, 5 lines"), "{}", verified.stdout);
    let head = lines[4]["sum"].as_str().unwrap().to_owned();
    place.at(Mission::verb(["verify"])).arg(&path).args(["--head", &head]).run().exits(0);
    // Whoever changes it, or cuts it where the head is known, is seen.
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("\"denied\"", "\"allowed\"")).unwrap();
    let verified = place.verify(&path);
    verified.exits(1);
    assert!(verified.stdout.contains("line 3"), "{}", verified.stdout);
    let cut: String = text.split_inclusive('\n').take(4).collect();
    std::fs::write(&path, cut).unwrap();
    place.verify(&path).exits(0);
    place.at(Mission::verb(["verify"])).arg(&path).args(["--head", &head]).run().exits(1);
}

#[test]
fn the_file_is_where_the_variable_says_shared_by_runs_and_switched_off_by_a_word() {
    let place = needs!(Place::new());
    let model = || Model::says([add(), answer("Five.")]);
    for (word, runs) in [("none", "none"), ("OFF", "")] {
        let off = place.run(&model()).env("JUDAIS_LOBI_AUDIT", word).env("MISSION_RUNS", runs).run();
        off.exits(0).ends("answered");
        assert_eq!(off.only("mission_started")["audit_ref"], Value::Null);
        assert!(!place.path(".mission/audit").exists());
    }
    let live: Vec<_> = (0..4)
        .map(|_| {
            let model = model();
            let live = place.run(&model).env("MISSION_AUDIT", "logs/all.jsonl").spawn();
            (live, model)
        })
        .collect();
    for (live, _model) in live {
        let run = live.finish();
        run.exits(0).ends("answered");
        assert_eq!(audit_ref(&run), place.path("logs/all.jsonl"));
    }
    place.verify(&place.path("logs/all.jsonl")).exits(0);
    let lines = lines(&place.path("logs/all.jsonl"));
    assert_eq!(lines.len(), 8);
    let sessions: std::collections::BTreeSet<&str> = lines.iter().map(|line| line["session_id"].as_str().unwrap()).collect();
    assert_eq!(sessions.len(), 4);
    assert!(!place.path(".mission/audit").exists());
}

#[test]
fn a_file_that_cannot_be_written_is_refused_at_the_door_and_nothing_is_left() {
    let place = needs!(Place::new());
    let model = Model::says([]);
    std::fs::write(place.path("letter"), "Dear all,\n").unwrap();
    for (word, expected) in
        [("letter", "does not end like an audit file"), ("letter/a.jsonl", "cannot be written"), ("/dev/null", "no regular file")]
    {
        place.run(&model).env("MISSION_AUDIT", word).run().refused(&["MISSION_AUDIT", expected]);
    }
    assert_eq!(std::fs::read_to_string(place.path("letter")).unwrap(), "Dear all,\n");
    assert!(run_dirs(place.folder.path()).is_empty() && model.requests().is_empty() && place.calls() == 0);
}

#[test]
fn a_call_whose_line_cannot_be_written_is_not_made_and_the_run_goes_on_when_it_can() {
    let place = needs!(Place::new());
    let model = Model::says([add(), answer("Five.")]);
    // The file is gone when the first call is to go out.
    let live = place.run(&model).env("MISSION_AUDIT", "a.jsonl").args(["--gate-tool", "add", "--gate-wait", "60"]).spawn();
    let gate = live.wait_for_event("gate_requested");
    std::fs::remove_file(place.path("a.jsonl")).unwrap();
    let approval = gate["approval_id"].as_str().unwrap().to_owned();
    place.at(Mission::verb(["approvals", "approve", &approval, "--by", "ana"])).run().exits(0);
    let run = live.finish();
    run.exits(1).ends("incomplete");
    assert!(run.stderr.contains("nothing is called without its line there"), "{}", run.stderr);
    assert_eq!((place.calls(), run.log().of_kind("intent").len()), (0, 0));
    let id = id(&run);
    place.at(Mission::verb(["replay", &id])).run().exits(0);
    place.at(Mission::verb(["verify", &id])).run().exits(0);
    // It was approved and not made: the resume makes it, once, and says so in the file that the run named.
    let resumed = place.at(Mission::resume(&id)).model(&model).run();
    resumed.exits(0).ends("answered");
    assert_eq!((place.calls(), &resumed.only("tool_result")["output"]), (1, &json!("5")));
    let lines = lines(&place.path("a.jsonl"));
    assert_eq!(told(&lines), ["tool_intent mcp.add allowed gate", "tool_dispatch mcp.add allowed gate"]);
    assert_eq!((&lines[0]["approval_id"], &lines[0]["decided_by"]), (&json!(approval), &json!("ana")));
    place.at(Mission::verb(["replay", &id])).run().exits(0);
}

#[test]
fn a_resume_carries_the_file_of_its_run_on_or_names_another_one() {
    let place = needs!(Place::new());
    let gated = |model: &Model| place.run(model).args(["--gate-tool", "add"]).run();
    for (variable, elsewhere) in [("", false), ("other.jsonl", true)] {
        let parked = gated(&Model::says([call("mission_result", json!({})), add()]));
        parked.ends("awaiting_approval");
        let (own, id) = (audit_ref(&parked), id(&parked));
        let approval = parked.only("gate_requested")["approval_id"].as_str().unwrap().to_owned();
        place.at(Mission::verb(["approvals", "refuse", &approval, "--by", "ana", "--note", "no"])).run().exits(0);
        let resumed =
            place.at(Mission::resume(&id)).model(&Model::says([answer("Then not.")])).env("MISSION_AUDIT", variable).run();
        resumed.exits(0).ends("answered");
        let denied = if elsewhere { lines(&place.path("other.jsonl")).remove(0) } else { lines(&own).remove(1) };
        assert_eq!(told(std::slice::from_ref(&denied)), ["tool_dispatch mcp.add denied gate"]);
        assert!(denied["reason"].as_str().unwrap().contains("ana refused it"), "{denied}");
        place.verify(&own).exits(0);
        let changed = &place.log(&id).of_kind("writer")[0]["changed"];
        assert_eq!(changed.get("audit_ref").is_some(), elsewhere, "{changed}");
    }
}

#[test]
fn a_call_that_comes_to_no_end_is_an_error_and_a_tool_s_own_failure_is_none() {
    let place = needs!(Place::new());
    let model = Model::says([call("mcp.fail", json!({"why": "because"})), call("mcp.die", json!({})), answer("No.")]);
    let run = place.run(&model).run();
    run.exits(0);
    let lines = lines(&audit_ref(&run));
    let ends: Vec<(&Value, &Value, &Value)> = lines
        .iter()
        .filter(|line| line["event_type"] == "tool_dispatch")
        .map(|line| (&line["tool_name"], &line["verdict"], &line["exit_code"]))
        .collect();
    assert_eq!(ends, [(&json!("mcp.fail"), &json!("allowed"), &json!(1)), (&json!("mcp.die"), &json!("error"), &json!(-1))]);
    place.verify(&audit_ref(&run)).exits(0);
}

/// X07, as the design has it: a secret in arguments reaches the tool, binds the approval and is made once; what people and auditors read has a
/// marker or a digest in its place, also where the secret is known to nobody but the environment.
#[test]
fn a_secret_in_arguments_reaches_the_tool_and_no_reader() {
    let place = needs!(Place::new());
    let (case, expected) = (field_json("X07", "call.json"), field_json("X07", "expect.json"));
    let secret = expected["tool_sees"].as_str().unwrap();
    let properties = json!({"url": {"type": "string"}, "token": {"type": "string"}});
    let serving = Serving::tools(&json!([{"name": "http_get", "inputSchema": {"type": "object", "properties": properties}}]));
    let model = Model::says([call("srv.http_get", case["arguments"].clone()), answer("Fetched.")]);
    let mission = |mission: Mission| place.at(mission).env("MISSION_AUDIT", "a.jsonl").env("UPSTREAM_TOKEN", secret);
    let run = Mission::objective("fetch").model(&model).mcp_stdio("srv", &serving.line()).args(["--gate-tool", "http_get"]);
    let parked = mission(run).run();
    parked.ends("awaiting_approval");
    let gate = parked.only("gate_requested");
    assert!(!gate["reason"].to_string().contains(secret));
    let approval = gate["approval_id"].as_str().unwrap().to_owned();
    let shown = mission(Mission::verb(["approvals", "show", &approval])).run();
    assert!(!shown.stdout.contains(secret) && shown.stdout.contains("<redacted:UPSTREAM_TOKEN>"), "{}", shown.stdout);
    mission(Mission::verb(["approvals", "approve", &approval, "--by", "ana"])).run().exits(0);
    let resumed = mission(Mission::resume(&id(&parked)).model(&model)).run();
    resumed.exits(0).ends("answered");
    assert_eq!(serving.recorded("tools/call")[0]["params"]["arguments"], case["arguments"], "the real bytes");
    let audit = std::fs::read_to_string(place.path("a.jsonl")).unwrap();
    assert!(!audit.contains(secret), "{audit}");
    let canonical = mission_contract::canonical::of_value(&case["arguments"]);
    assert_eq!(lines(&place.path("a.jsonl"))[1]["arguments_digest"], sha256_hex(canonical.as_bytes()));
    mission(Mission::verb(["replay", &id(&parked)])).run().exits(0);
    assert_eq!(serving.recorded("tools/call").len(), 1);
}
