//! Flags about where the records of a run go, and what is hidden there.

use clap::Args;

/// Where the records of a run go, and what is hidden there.
#[derive(Clone, Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "Run")]
pub struct StreamFlags {
    /// Write the event stream there, one JSON object a line [MISSION_EVENTS]
    #[arg(long, value_name = "-|fd:N|PATH", allow_hyphen_values = true)]
    pub events: Option<String>,
    /// Hide each line of this file wherever it turns up [MISSION_REDACT_FILE]
    #[arg(long, value_name = "FILE")]
    pub redact_file: Vec<String>,
    /// Redact outputs and arguments of tools too
    #[arg(long)]
    pub redact_evidence: bool,
}
