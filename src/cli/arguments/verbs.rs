//! What the verbs other than `run` take.

use clap::Args;

use super::super::objective::Verb;
use super::tools::ServerFlags;

/// `mission demo`.
#[derive(Clone, Debug, Default, PartialEq, Args)]
pub struct DemoArguments {
    /// json or native: how the model is spoken to
    #[arg(long, value_name = "WORD", default_value = "json")]
    pub protocol: String,
    /// Put the skill, the script and the run there [else .mission]
    #[arg(long, value_name = "DIR")]
    pub keep: Option<String>,
    /// Write the event stream there [MISSION_EVENTS]
    #[arg(long, value_name = "-|fd:N|PATH", allow_hyphen_values = true)]
    pub events: Option<String>,
    /// Take each reply whole
    #[arg(long)]
    pub no_stream: bool,
}

/// `mission tools`.
#[derive(Clone, Debug, Default, PartialEq, Args)]
pub struct ToolsArguments {
    /// The servers.
    #[command(flatten)]
    pub servers: ServerFlags,
    /// Print one JSON object
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

/// `mission schema`.
#[derive(Clone, Debug, Default, PartialEq, Args)]
pub struct SchemaArguments {
    /// A record, `log-line`, `control` or `stream`; without it the names are listed
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
}

/// `mission contract`.
#[derive(Clone, Debug, Default, PartialEq, Args)]
pub struct ContractArguments {}

/// `mission conform`.
#[derive(Clone, Debug, Default, PartialEq, Args)]
pub struct ConformArguments {
    /// A recorded event stream [else standard input]
    #[arg(value_name = "FILE")]
    pub file: Option<String>,
}

/// True for a verb that starts tool servers.
pub fn takes_servers(verb: Verb) -> bool {
    matches!(verb, Verb::Tools | Verb::Skill | Verb::Lock)
}
