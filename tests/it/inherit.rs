//! What a tool server inherits: three descriptors, and of the environment only what is on the list or was passed by name.

use serde_json::{Value, json};

use crate::support::model::{Model, answer, call};
use crate::support::needs;
use crate::support::run::{Finished, Mission};
use crate::support::servers;

fn look(more: impl Fn(Mission) -> Mission) -> Result<(Value, Finished), String> {
    let server = servers::misbehaving(&[])?;
    let model = Model::says([call("mcp.look", json!({})), answer("done")]);
    let finished = more(Mission::objective("look around").model(&model).mcp_stdio("mcp", &server)).run();
    finished.exits(0).ends("answered");
    let output = finished.only("tool_result")["output"].as_str().unwrap().to_owned();
    Ok((serde_json::from_str(&output).unwrap(), finished))
}

#[test]
fn a_server_has_its_three_descriptors_and_no_other() {
    let (seen, _) = needs!(look(|mission| mission));
    let mut numbers: Vec<&str> = seen["descriptors"].as_object().unwrap().keys().map(String::as_str).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, ["0", "1", "2"], "{seen:#}");
}

#[test]
fn a_server_does_not_see_our_environment() {
    let (seen, _) = needs!(look(|mission| {
        mission
            .env("LOCAL_API_KEY", "s3cr3t-l4mp-0f-the-house")
            .env("HOUSE_TOKEN", "t0k3n-0f-the-house")
            .env("MISSION_STREAM", "on")
            .env("LAMPS", "twelve")
            .env("LANG", "C.UTF-8")
    }));
    let environment = seen["environment"].as_object().unwrap();
    for name in ["LOCAL_API_KEY", "LOCAL_API_BASE", "HOUSE_TOKEN", "MISSION_STREAM", "LAMPS"] {
        assert!(!environment.contains_key(name), "{name}: {seen:#}");
    }
    for name in ["PATH", "HOME", "LANG"] {
        assert!(environment.contains_key(name), "{name}: {seen:#}");
    }
}

#[test]
fn a_variable_that_is_passed_by_name_is_seen_and_stays_out_of_log_and_stream() {
    let secret = "t0k3n-0f-the-house";
    let (seen, finished) = needs!(look(|mission| mission.env("HOUSE_TOKEN", secret).args(["--mcp-env", "HOUSE_TOKEN"])));
    assert_eq!(seen["environment"]["HOUSE_TOKEN"], secret, "{seen:#}");
    let open = finished.log().of_kind("open").remove(0);
    assert!(open["spec"]["servers"][0]["passes"].to_string().contains("HOUSE_TOKEN"), "{open}");
    assert!(!open.to_string().contains(secret));
}

#[test]
fn a_server_runs_in_our_folder_and_in_a_group_of_its_own() {
    let (seen, finished) = needs!(look(|mission| mission));
    assert_eq!(seen["directory"], finished.directory.to_str().unwrap());
    assert_ne!(seen["group"], seen["parent"], "{seen:#}");
}
