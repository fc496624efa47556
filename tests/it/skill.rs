//! A skill closes the set: only what it names is offered, in its order, and what it names must be there.

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::support::model::{Model, answer, call};
use crate::support::needs;
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
