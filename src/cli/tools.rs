//! `mission tools`: what the servers of a command line offer, as a run would see it.

use std::io::Write;

use mission_contract::log::{Era, ServerCondition, ToolDefinition};
use mission_contract::vocabulary::exit;
use serde_json::json;

use super::arguments::{Asked, ToolsArguments};
use super::configuration::refuse_later;
use super::discover::{discover, is_short};
use super::environment::Environment;
use super::error::CliError;
use super::run::Exit;
use super::servers;
use crate::engine::summary;
use crate::stream::console::visible::one_line as harmless;
use crate::tools::Discovery;

/// Starts the servers, prints what they offer, and ends them. Exit code 1 when one of them did not come up.
///
/// # Errors
/// What is refused at the door, and output that cannot be written.
pub fn tools(
    arguments: &ToolsArguments,
    later: &[Asked],
    environment: &Environment,
    out: &mut dyn Write,
) -> Result<Exit, CliError> {
    refuse_later(later, environment)?;
    let servers = servers::resolve(&arguments.servers, environment)?;
    if servers.requests.is_empty() {
        return Err(CliError::Usage(
            "there is no server to ask; name one with --mcp-stdio NAME=COMMAND or --mcp-url NAME=URL".to_owned(),
        ));
    }
    let discovery = match discover(servers)? {
        Ok(discovery) => discovery,
        Err(signal) => return Ok(Exit::Signal(signal)),
    };
    let failed = is_short(&discovery);
    let text = if arguments.json { as_json(&discovery) } else { as_text(&discovery) };
    let text = super::hiding::redactor()?.text(&text).into_owned();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(CliError::Output)?;
    Ok(Exit::Code(if failed { exit::FAILED } else { exit::FINE }))
}

fn as_json(discovery: &Discovery) -> String {
    let tools: Vec<_> = discovery
        .tools
        .iter()
        .map(|tool| {
            json!({
                "name": tool.full_name(),
                "description": tool.description,
                "arguments": summary::arguments(&tool.input_schema),
                "input_schema": tool.input_schema,
                "annotations": tool.annotations,
            })
        })
        .collect();
    let notices: Vec<_> =
        discovery.observed.iter().map(|seen| json!({"code": seen.what, "server": seen.server, "detail": seen.detail})).collect();
    let whole = json!({"servers": discovery.servers, "tools": tools, "notices": notices});
    serde_json::to_string_pretty(&whole).unwrap_or_default() + "\n"
}

fn as_text(discovery: &Discovery) -> String {
    let mut text = String::new();
    for server in &discovery.servers {
        let about = match (server.state, server.era) {
            (ServerCondition::Failed, _) => {
                format!("did not come up: {}", server.detail.as_deref().unwrap_or("no reason is known"))
            }
            (ServerCondition::Ready, era) => {
                let era = match era {
                    Some(Era::Handshake) => "handshake",
                    Some(Era::Stateless) => "stateless",
                    None => "unknown era",
                };
                let version = server.version.as_deref().unwrap_or("no version");
                let own = server.implementation.as_deref().unwrap_or("no name of its own");
                format!("{own}, protocol {version} ({era})")
            }
        };
        text.push_str(&format!("{} ({}): {}\n", server.name, server.transport, harmless(&about)));
        for tool in discovery.tools.iter().filter(|tool| tool.server == server.name) {
            text.push_str(&tool_lines(tool));
        }
        for seen in discovery.observed.iter().filter(|seen| seen.server.as_deref() == Some(server.name.as_str())) {
            text.push_str(&format!("  ! {}: {}\n", seen.what, harmless(&seen.detail)));
        }
    }
    text
}

fn tool_lines(tool: &ToolDefinition) -> String {
    let first = tool.description.lines().next().unwrap_or_default();
    let arguments = summary::arguments(&tool.input_schema);
    let arguments = if arguments.is_empty() { String::new() } else { format!("      {}\n", harmless(&arguments)) };
    format!("  {}  {}\n{arguments}", tool.full_name(), harmless(first))
}
