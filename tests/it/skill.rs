//! A skill closes the set: only what it names is offered, in its order, and what it names must be there.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::model::{Model, answer, call, held};
use crate::support::needs;
use crate::support::player::Serving;
use crate::support::run::{Finished, Mission, write};
use crate::support::servers;

fn skill(folder: &Path, front: &str) -> PathBuf {
    write(folder, "pack/SKILL.md", &format!("---\n{front}---\nCount lamps, never chairs.\n"))
}

/// A run under a skill with one or two of our servers.
fn under(front: &str, servers: &[(&str, &str)]) -> (Finished, Model) {
    let folder = tempfile::tempdir().unwrap();
    let path = skill(folder.path(), front);
    let model = Model::says([call("mcp.add", json!({"a": 2, "b": 3})), answer("5")]);
    let mut mission = Mission::objective("add").model(&model).skill(&path);
    for (name, command) in servers {
        mission = mission.mcp_stdio(name, command);
    }
    (mission.run(), model)
}

#[test]
fn only_what_it_names_is_offered_in_its_order() {
    let server = needs!(servers::misbehaving(&[]));
    let (finished, model) = under(
        "name: lamps\ndescription: Counts lamps.\nallowed_tools:\n  - mission_result\n  - mcp.look\n  - add\n  - absent?\n",
        &[("mcp", &server)],
    );
    finished.exits(0).ends("answered");
    let started = finished.only("mission_started");
    assert_eq!(started["catalogue"], json!(["mcp.look", "mcp.add", "mission_result"]), "{finished}");
    assert_eq!(started["skill"]["name"], "lamps");
    assert_eq!(started["skill"]["digest"].as_str().unwrap().len(), 64);
    let prompt = model.requests()[0]["messages"][0]["content"].as_str().unwrap().to_owned();
    assert!(prompt.contains("Count lamps, never chairs."), "{prompt}");
    assert!(prompt.contains("mcp.look") && !prompt.contains("mcp.big"), "{prompt}");
}

#[test]
fn what_it_does_not_name_is_not_called() {
    let server = needs!(servers::misbehaving(&[]));
    let (finished, _) = under("name: lamps\ndescription: d\nallowed_tools: [mcp.look]\n", &[("mcp", &server)]);
    finished.exits(0).ends("answered");
    assert_eq!(finished.only("reply_rejected")["tool"], "mcp.add");
    assert!(finished.named("tool_call").is_empty(), "{finished}");
}

#[test]
fn every_missing_and_every_ambiguous_name_is_refused_with_what_is_offered() {
    let server = needs!(servers::misbehaving(&[]));
    let front = "name: lamps\ndescription: d\nallowed_tools: [weigh, add, mcp.look, scales.read]\n";
    let (finished, model) = under(front, &[("mcp", &server), ("more", &server)]);
    finished.refused(&["weigh", "scales.read", "add", "mcp.add", "more.add", "mcp.look"]);
    assert_eq!(model.requests().len(), 0);
}

#[test]
fn manifests_that_are_not_understood_are_refused_and_never_half_read() {
    let server = needs!(servers::misbehaving(&[]));
    let cases: [(&str, &[&str]); 9] = [
        ("name: lamps\nallowed_tools: [mcp.add]\ngrounding: {number_pattern: '[0-9]+'}\n", &["grounding"]),
        ("name: lamps\nallowed_tools: [mcp.add]\nsandbox: bwrap\n", &["sandbox"]),
        ("name: lamps\nname: chairs\nallowed_tools: [mcp.add]\n", &["name"]),
        ("name: lamps\n", &["allowed_tools"]),
        ("name: lamps\nallowed_tools: []\n", &["allowed_tools"]),
        ("name: lamps\nallowed_tools: mcp.add\n", &["allowed_tools"]),
        ("allowed_tools: [mcp.add]\n", &["name"]),
        ("name: lamps\nallowed_tools: [mcp.add, mcp.add]\n", &["mcp.add"]),
        ("name: [lamps\nallowed_tools: [mcp.add]\n", &["line"]),
    ];
    for (front, naming) in cases {
        let (finished, model) = under(front, &[("mcp", &server)]);
        eprintln!("{front:?}  ->  {}", finished.stderr.trim_end());
        finished.refused(naming);
        assert_eq!(model.requests().len(), 0);
    }
}

#[test]
fn a_folder_a_file_and_the_variable_are_the_same_skill() {
    let server = needs!(servers::misbehaving(&[]));
    let folder = tempfile::tempdir().unwrap();
    let file = skill(folder.path(), "name: lamps\ndescription: d\nallowed_tools: [mcp.add]\n");
    let mut digests = Vec::new();
    for way in ["file", "folder", "variable"] {
        let model = Model::says([call("mcp.add", json!({"a": 2, "b": 3})), answer("5")]);
        let mission = Mission::objective("add").model(&model).mcp_stdio("mcp", &server);
        let mission = match way {
            "file" => mission.skill(&file),
            "folder" => mission.skill(file.parent().unwrap()),
            _ => mission.env("MISSION_SKILL", file.as_os_str()),
        };
        let finished = mission.run();
        finished.exits(0).ends("answered");
        digests.push(finished.only("mission_started")["skill"]["digest"].clone());
    }
    assert!(digests.iter().all(|digest| *digest == digests[0]));
}

#[test]
fn without_a_skill_and_without_a_server_only_our_own_tool_is_offered() {
    let model = Model::says([answer("Twelve.")]);
    let finished = Mission::objective("how many lamps?").model(&model).run();
    finished.exits(0);
    assert_eq!(finished.only("mission_started")["catalogue"], json!(["mission_result"]));
}

#[test]
fn checks_of_answers_are_done_without_only_when_somebody_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = skill(folder.path(), "name: lamps\nallowed_tools: [mission_result]\ngrounding: {number_pattern: '[0-9]+'}\n");
    let model = Model::says([answer("twelve")]);
    let mission = || Mission::objective("count").model(&model).skill(&path);
    mission().run().refused(&["lamps", "grounding", "--no-grounding"]);
    assert!(model.requests().is_empty());
    let finished = mission().arg("--no-grounding").run();
    finished.exits(0).ends("answered");
    assert_eq!(finished.only("notice")["code"], "grounding_off", "{finished}");
    assert_eq!(finished.log().of_kind("open")[0]["spec"]["grounding_off"], true);
    // A block without a check asks for nothing.
    let path = skill(folder.path(), "name: lamps\nallowed_tools: [mission_result]\ngrounding: {max_repairs: 0}\n");
    let model = Model::says([answer("twelve")]);
    Mission::objective("count").model(&model).skill(&path).run().exits(0).ends("answered");
}

/// S12 and its kind: a bound on what is offered, counted behind the skill.
#[test]
fn more_tools_than_the_limit_are_refused_and_none_joins_past_it() {
    let server = needs!(servers::misbehaving(&[]));
    let folder = tempfile::tempdir().unwrap();
    let path = skill(folder.path(), "name: lamps\nallowed_tools: [mcp.add, mcp.look]\n");
    let model = Model::says([call("mcp.add", json!({"a": 2, "b": 3})), answer("5")]);
    let mission = || Mission::objective("add").model(&model).mcp_stdio("mcp", &server);
    mission().args(["--tool-limit", "2"]).run().refused(&["--tool-limit", "--skill"]);
    mission().skill(&path).args(["--tool-limit", "1"]).run().refused(&["2 tools", "--tool-limit"]);
    for wrong in ["0", "-1", "many"] {
        mission().args(["--tool-limit", wrong]).run().refused(&["--tool-limit", wrong]);
    }
    assert!(model.requests().is_empty());
    let finished = mission().skill(&path).args(["--tool-limit", "2"]).run();
    finished.exits(0).ends("answered");
    assert_eq!(finished.only("mission_started")["catalogue"], json!(["mcp.add", "mcp.look", "mission_result"]));
    // What joins later.
    let tool = |name: &str| json!({"name": name, "description": "Does it.", "inputSchema": {}});
    let one = Serving::tools(&json!([tool("one")]));
    let model = Model::says([call("srv.one", json!({})), held(call("srv.nobody", json!({}))), answer("done")]);
    let live = Mission::objective("call").model(&model).mcp_stdio("srv", &one.line()).args(["--tool-limit", "2"]).spawn();
    live.wait_for_event("tool_result");
    model.wait_for_request(2);
    // The name that nobody knows makes the run list again.
    one.list(&json!({"tools": [tool("one"), tool("three"), tool("two")]}));
    model.let_go();
    let finished = live.finish();
    finished.exits(0).ends("answered");
    let offered: Vec<Value> = finished.named("step_started").iter().filter_map(|step| step.get("catalogue").cloned()).collect();
    assert_eq!(offered, [json!(["srv.one", "srv.three", "mission_result"])], "{finished}");
    let notice = finished.only("notice");
    assert_eq!((&notice["code"], &notice["server"]), (&json!("tool_limit"), &json!("srv")));
    assert!(notice["detail"].as_str().unwrap().contains("srv.two"), "{notice}");
}

/// M07, what a skill needs: a server that does not come up ends the run before a model is asked.
#[test]
fn a_server_that_the_set_needs_and_that_is_away_ends_the_run() {
    let good = needs!(servers::misbehaving(&[]));
    let bad = needs!(servers::misbehaving(&["--refuse-to-start"]));
    let folder = tempfile::tempdir().unwrap();
    let path = skill(folder.path(), "name: lamps\nallowed_tools: [good.add, bad.look]\n");
    let model = Model::says([answer("never")]);
    let mission = || Mission::objective("add").model(&model).skill(&path).mcp_stdio("good", &good).mcp_stdio("bad", &bad);
    let finished = mission().run();
    finished.exits(1).ends("incomplete");
    assert_eq!(finished.only("notice")["server"], "bad", "{finished}");
    // Not needed by the run, and still needed by the skill.
    mission().args(["--mcp-optional", "bad"]).run().refused(&["bad.look", "good.add"]);
    assert!(model.requests().is_empty());
    let path = skill(folder.path(), "name: lamps\nallowed_tools: [good.add, bad.look?]\n");
    let model = Model::says([call("good.add", json!({"a": 2, "b": 3})), answer("5")]);
    let mission = Mission::objective("add").model(&model).skill(&path).mcp_stdio("good", &good).mcp_stdio("bad", &bad);
    let finished = mission.args(["--mcp-optional", "bad"]).run();
    finished.exits(0).ends("answered");
    assert_eq!(finished.only("mission_started")["catalogue"], json!(["good.add", "mission_result"]));
}

/// Real servers of npm and PyPI under one closed set: what it names works, and nothing else of theirs can be reached.
#[test]
fn real_servers_under_a_closed_set() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let files = write(&root, "shelf/lamps.txt", "twelve lamps\n").parent().unwrap().to_owned();
    let (everything, time) = (needs!(servers::everything()), needs!(servers::time()));
    let (filesystem, memory) = (needs!(servers::filesystem(&files)), needs!(servers::memory(&root.join("graph.jsonl"))));
    let path = skill(&root, "name: lamps\nallowed_tools: [convert_time, files.read_text_file, echo, read_graph, weigh?]\n");
    for protocol in ["json", "native"] {
        let model = Model::says([
            call("files.write_file", json!({"path": files.join("new.txt"), "content": "x"})),
            call("memory.create_entities", json!({"entities": []})),
            call("files.read_text_file", json!({"path": files.join("lamps.txt")})),
            call("everything.echo", json!({"message": "hello"})),
            call("time.convert_time", json!({"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"})),
            answer("twelve"),
        ]);
        let mission =
            Mission::objective("count").model(&model).skill(&path).protocol(protocol).mcp_stdio("everything", &everything);
        let mission = mission.mcp_stdio("time", &time).mcp_stdio("files", &filesystem).mcp_stdio("memory", &memory);
        let finished = mission.run();
        finished.exits(0).ends("answered");
        let catalogue =
            json!(["time.convert_time", "files.read_text_file", "everything.echo", "memory.read_graph", "mission_result"]);
        assert_eq!(finished.only("mission_started")["catalogue"], catalogue, "{finished}");
        let refused: Vec<String> =
            finished.named("reply_rejected").iter().map(|rejected| rejected["tool"].as_str().unwrap().to_owned()).collect();
        assert_eq!(refused, ["files.write_file", "memory.create_entities"], "{finished}");
        assert!(!files.join("new.txt").exists());
        let results = finished.named("tool_result");
        assert_eq!(results.len(), 3, "{finished}");
        assert!(results.iter().all(|result| result["ok"] == true), "{finished}");
    }
}

/// The texts of a run stand in its log; one that is carried on has no other skill, named or set.
#[test]
fn a_run_is_not_carried_on_under_another_skill() {
    let folder = tempfile::tempdir().unwrap();
    let path = skill(folder.path(), "name: lamps\nallowed_tools: [mission_result]\n");
    let place = folder.path().join("place");
    std::fs::create_dir(&place).unwrap();
    let model = Model::says([answer("never")]);
    let asked = Model::says([held(answer("never"))]);
    let mut live = Mission::objective("count").model(&asked).skill(&path).directory(&place).spawn();
    asked.wait_for_request(1);
    live.wait_for_event("step_started");
    live.signal(nix::sys::signal::Signal::SIGKILL);
    live.wait();
    let finished = live.finish();
    let started = finished.only("mission_started");
    let (run, digest) = (started["run_id"].as_str().unwrap(), started["skill"]["digest"].as_str().unwrap());
    let other = write(folder.path(), "other/SKILL.md", "---\nname: lamps\nallowed_tools: [mission_result, x?]\n---\nx\n");
    let text = std::fs::read(&other).unwrap();
    let other_digest = mission_contract::digest::sha256_hex(&text);
    for way in ["--skill", "MISSION_SKILL"] {
        let resumed = Mission::resume(run).model(&model).directory(&place);
        let resumed = if way.starts_with('-') { resumed.skill(&other) } else { resumed.env(way, other.as_os_str()) };
        let finished = resumed.run();
        finished.exits(2);
        for naming in [way, digest, &other_digest] {
            assert!(finished.stderr.contains(naming), "{naming}: {finished}");
        }
    }
    for (flags, naming) in
        [(&["--locked"][..], "--locked"), (&["--no-grounding"], "--no-grounding"), (&["--tool-limit", "9"], "--tool-limit")]
    {
        let finished = Mission::resume(run).model(&model).directory(&place).args(flags).run();
        finished.exits(2);
        assert!(finished.stderr.contains(naming), "{finished}");
    }
    assert!(model.requests().is_empty());
    let model = Model::says([answer("twelve")]);
    Mission::resume(run).model(&model).directory(&place).skill(&path).run().exits(0).ends("answered");
    assert!(model.requests()[0]["messages"][0]["content"].as_str().unwrap().contains("Count lamps"), "the log's own words");
}
