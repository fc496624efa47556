//! Real tool servers over stdio, as their makers publish them: found, listed, called, ended.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::model::{Model, answer, call};
use crate::support::needs;
use crate::support::run::{Finished, Mission, records, write};
use crate::support::servers;

/// One run with one call of one real tool.
#[track_caller]
fn one_call(server: &str, protocol: &str, tool: &str, arguments: Value) -> Finished {
    let model = Model::says([call(&format!("mcp.{tool}"), arguments), answer("done")]);
    let finished = Mission::objective("use the tool once").model(&model).mcp_stdio("mcp", server).protocol(protocol).run();
    finished.exits(0).ends("answered");
    let started = finished.only("mission_started");
    let catalogue: Vec<&str> = started["catalogue"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    let (last, others) = catalogue.split_last().unwrap();
    assert_eq!(*last, "mission_result");
    assert!(others.is_sorted(), "by name: {others:?}");
    assert!(others.iter().all(|name| name.starts_with("mcp.")));
    assert_eq!(started["servers"][0]["name"], "mcp");
    assert_eq!(started["servers"][0]["state"], "ready");
    // Servers on the newer SDKs speak both eras in one process, and the newer one is taken.
    assert!(["handshake", "stateless"].contains(&started["servers"][0]["era"].as_str().unwrap()), "{finished}");
    assert_eq!(started["servers"][0]["tools"], others.len());
    assert_eq!(finished.log().problems(), Vec::<String>::new());
    finished
}

fn output(finished: &Finished) -> String {
    let result = finished.only("tool_result");
    assert_eq!(result["ok"], true, "{finished}");
    result["output"].as_str().unwrap().to_owned()
}

#[test]
fn everything_in_both_protocols() {
    let server = needs!(servers::everything());
    for protocol in ["json", "native"] {
        let finished = one_call(&server, protocol, "echo", json!({"message": "twelve lamps"}));
        assert_eq!(output(&finished), "Echo: twelve lamps");
        let finished = one_call(&server, protocol, "get-sum", json!({"a": 2, "b": 3}));
        assert!(output(&finished).contains('5'));
    }
}

#[test]
fn everything_gives_typed_results_and_blocks_that_are_no_text() {
    let server = needs!(servers::everything());
    let finished = one_call(&server, "json", "get-structured-content", json!({"location": "Chicago"}));
    assert!(finished.log().of_kind("result")[0]["structured"].is_object(), "{finished}");
    let finished = one_call(&server, "json", "get-tiny-image", json!({}));
    assert!(output(&finished).contains("[image"), "{finished}");
    assert!(!finished.log().of_kind("result")[0]["blocks"].as_array().unwrap().is_empty());
}

#[test]
fn filesystem_reads_what_is_in_its_folder_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let file = write(&root, "lamps.txt", "twelve lamps\n");
    let server = needs!(servers::filesystem(&root));
    for protocol in ["json", "native"] {
        let finished = one_call(&server, protocol, "read_text_file", json!({"path": file}));
        assert_eq!(output(&finished), "twelve lamps\n");
    }
    let finished = one_call(&server, "json", "read_text_file", json!({"path": "/etc/hostname"}));
    let result = finished.only("tool_result");
    assert_eq!((&result["ok"], &result["exit_code"]), (&json!(false), &json!(1)), "{finished}");
}

#[test]
fn memory_keeps_what_it_is_told_where_it_is_told_to() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("graph.jsonl");
    let server = needs!(servers::memory(&file));
    for protocol in ["json", "native"] {
        let entity = json!({"name": format!("lamp-{protocol}"), "entityType": "lamp", "observations": ["it is bright"]});
        one_call(&server, protocol, "create_entities", json!({"entities": [entity]}));
        assert!(std::fs::read_to_string(&file).unwrap().contains(&format!("lamp-{protocol}")));
    }
}

#[test]
fn time_converts_a_time() {
    let server = needs!(servers::time());
    for protocol in ["json", "native"] {
        let arguments = json!({"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"});
        let finished = one_call(&server, protocol, "convert_time", arguments);
        assert!(output(&finished).contains("21:00"), "{finished}");
    }
}

#[test]
fn git_sees_a_new_file() {
    let folder = tempfile::tempdir().unwrap();
    let repository = folder.path().canonicalize().unwrap();
    let server = needs!(servers::git(&repository));
    let made = Command::new("git").args(["init", "--quiet"]).current_dir(&repository).status().unwrap();
    assert!(made.success());
    write(&repository, "lamps.txt", "twelve lamps\n");
    for protocol in ["json", "native"] {
        let finished = one_call(&server, protocol, "git_status", json!({"repo_path": repository}));
        assert!(output(&finished).contains("lamps.txt"), "{finished}");
    }
}

#[test]
fn several_servers_at_once_have_namespaces_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let everything = needs!(servers::everything());
    let files = needs!(servers::filesystem(&folder.path().canonicalize().unwrap()));
    let memory = needs!(servers::memory(&folder.path().join("graph.jsonl")));
    let model = Model::says([call("mcp.echo", json!({"message": "one"})), call("mcp2.read_graph", json!({})), answer("done")]);
    let finished = Mission::objective("use two of three")
        .model(&model)
        .args(["--mcp-stdio", &everything])
        .mcp_stdio("files", &files)
        .args(["--mcp-stdio", &memory])
        .run();
    finished.exits(0).ends("answered");
    let started = finished.only("mission_started");
    let namespaces: Vec<&str> =
        started["servers"].as_array().unwrap().iter().map(|server| server["name"].as_str().unwrap()).collect();
    assert_eq!(namespaces, ["mcp", "files", "mcp2"], "in the order of the command line");
    assert!(finished.named("tool_result").iter().all(|result| result["ok"] == true), "{finished}");
}

#[test]
fn tools_lists_what_a_run_would_offer() {
    let everything = needs!(servers::everything());
    let listed = Mission::verb(["tools", "--mcp-stdio", &everything, "--json"]).run();
    listed.exits(0);
    let listing: Value = serde_json::from_str(&listed.stdout).unwrap_or_else(|problem| panic!("{problem}\n{listed}"));
    let names = listing.to_string();
    for name in ["mcp.echo", "mcp.get-sum", "mcp.get-structured-content"] {
        assert!(names.contains(&format!("\"{name}\"")), "{name}\n{listed}");
    }
    let read = Mission::verb(["tools", "--mcp-stdio", &everything]).run();
    read.exits(0);
    assert!(read.stdout.contains("mcp.echo"), "{read}");
    assert!(!Path::new(&read.directory).join(".mission").exists(), "listing leaves nothing behind");
}

#[test]
fn a_server_and_our_name_can_be_given_by_variables_and_a_flag_puts_the_server_aside() {
    let folder = tempfile::tempdir().unwrap();
    let notes = folder.path().join("notes.ndjson");
    let server = needs!(servers::misbehaving(&["--note", notes.to_str().unwrap()]));
    let run = |name: &str, more: &[&str]| {
        let model = Model::says([call("mcp.add", json!({"a": 2, "b": 3})), answer("5")]);
        Mission::objective("add").model(&model).env("MCP_STDIO", &server).env("MCP_CLIENT_NAME", name).args(more).run()
    };
    let finished = run("platform", &[]);
    finished.exits(0).ends("answered");
    assert_eq!(output(&finished), "5");
    let other = needs!(servers::misbehaving(&[]));
    let finished = run("nobody", &["--mcp-stdio", &format!("other={other}")]);
    assert_eq!(finished.only("mission_started")["servers"][0]["name"], "other", "{finished}");
    let told: Vec<Value> = records(&std::fs::read_to_string(notes).unwrap());
    let names: Vec<&Value> = told.iter().filter(|note| note["what"] == "client").map(|note| &note["name"]).collect();
    assert_eq!(names, ["platform"]);
}

#[test]
fn how_long_a_server_may_be_silent_can_be_given_by_a_variable() {
    let model = Model::says([answer("never asked")]);
    let finished = Mission::objective("add").model(&model).mcp_stdio("mute", "sleep 200").env("MCP_TIMEOUT_S", "0.3").run();
    finished.exits(1).ends("incomplete");
    assert!(finished.only("notice")["detail"].as_str().unwrap().contains("0.3 s"), "{finished}");
    assert_eq!(model.requests().len(), 0);
}
