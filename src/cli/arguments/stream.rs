//! Flags about where the records of a run go.

use clap::Args;

/// Where the records of a run go.
#[derive(Clone, Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "Run")]
pub struct StreamFlags {
    /// Write the event stream there, one JSON object a line [MISSION_EVENTS]
    #[arg(long, value_name = "-|fd:N|PATH", allow_hyphen_values = true)]
    pub events: Option<String>,
}
