//! The client that the conformance suites of the Model Context Protocol drive: the tool plane of the program, and a policy of a few
//! lines about what to call.
//!
//! A suite starts it with the URL of its server as the last argument, and the scenario in the environment. It reaches the server as a
//! run does, lists its tools, and calls each of them once, or makes the calls that the scenario names. It ends with 0 when the server
//! came up; how a call ended is for the suite to judge.

use std::process::ExitCode;
use std::time::Duration;

use mission::engine::request::ToolDispatch;
use mission::tools::address::Address;
use mission::tools::mcp::{PlaneOptions, Reach, ServerRequest, connect};
use mission::tools::{Discovery, ToolPlane};
use mission_contract::log::ServerCondition;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

/// The scenario that measures how soon a broken stream is picked up. In a suite of scenarios that run side by side it would measure the
/// suite; it is made alone, with [`ALONE`] set.
const TIMED: &str = "sse-retry";
const ALONE: &str = "MISSION_CONFORMANCE_ALONE";

/// The name of the server in the plane.
const SERVER: &str = "suite";

/// How long a call may give no sign of life. The suites give up after 30 s.
const PATIENCE: Duration = Duration::from_secs(8);
/// How long a call may take in all.
const LIMIT: Duration = Duration::from_secs(25);

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let scenario = variable("MCP_CONFORMANCE_SCENARIO");
    if scenario == TIMED && variable(ALONE).is_empty() {
        eprintln!("{scenario} is made alone");
        return ExitCode::FAILURE;
    }
    let Some(address) = std::env::args().next_back().and_then(|url| Address::parse(&url).ok()) else {
        eprintln!("the last argument is to be the URL of a server");
        return ExitCode::FAILURE;
    };
    let reach = Reach::Http { address, token: None };
    let request = ServerRequest { name: SERVER.to_owned(), reach, optional: false, timeout: PATIENCE, call_limit: LIMIT };
    let (plane, discovery, _reports) = connect(vec![request], PlaneOptions::default()).await;
    for observed in &discovery.observed {
        eprintln!("{}: {}", observed.what, observed.detail);
    }
    let is_up = discovery.servers.iter().all(|server| server.state == ServerCondition::Ready);
    for server in &discovery.servers {
        eprintln!("{:?} {:?} {:?}", server.state, server.version, server.detail);
    }
    for (ordinal, (name, arguments)) in (1..).zip(calls(&discovery)) {
        let dispatch = ToolDispatch {
            ordinal,
            server: SERVER.to_owned(),
            name: name.clone(),
            arguments,
            key: format!("conformance-{ordinal}"),
        };
        let result = plane.call(dispatch, CancellationToken::new()).await;
        eprintln!("{name}: {:?} {}{}", result.end, result.text.as_str(), result.error);
    }
    plane.close().await;
    if is_up { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

/// What is called: what the scenario names word for word, else every tool once.
fn calls(discovery: &Discovery) -> Vec<(String, Map<String, Value>)> {
    let context: Value = serde_json::from_str(&variable("MCP_CONFORMANCE_CONTEXT")).unwrap_or_default();
    if let Some(named) = context.get("toolCalls").and_then(Value::as_array) {
        let call = |call: &Value| Some((call.get("name")?.as_str()?.to_owned(), call.get("arguments")?.as_object()?.clone()));
        return named.iter().filter_map(call).collect();
    }
    discovery.tools.iter().map(|tool| (tool.name.clone(), arguments(&tool.name, discovery))).collect()
}

/// Arguments that the tools of the suites know what to do with.
fn arguments(tool: &str, discovery: &Discovery) -> Map<String, Value> {
    let arguments = match tool {
        "add_numbers" => json!({"a": 5, "b": 3}),
        // The schema of another tool, as it was understood.
        "json_schema_echo" => {
            let other = discovery.tools.iter().find(|tool| tool.name == "json_schema_2020_12_tool");
            json!({ "schema": other.map(|tool| tool.input_schema.clone()) })
        }
        _ => json!({}),
    };
    arguments.as_object().cloned().unwrap_or_default()
}
