//! Flags about where the records of a run go, where it is spoken to, and what is hidden.

use clap::Args;

/// Where the records of a run go, where it is spoken to, and what is hidden.
#[derive(Clone, Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "Run")]
pub struct StreamFlags {
    /// Write the event stream there, one JSON object a line [MISSION_EVENTS]
    #[arg(long, value_name = "-|fd:N|PATH", allow_hyphen_values = true)]
    pub events: Option<String>,
    /// Take words from there: inject, steer, cancel, cancel_step, gate_decision [MISSION_CONTROL]
    #[arg(long, value_name = "-|fd:N|PATH", allow_hyphen_values = true)]
    pub control: Option<String>,
    /// Answer each of those lines on the event stream
    #[arg(long)]
    pub control_acks: bool,
    /// A sign of life on the event stream after so much silence
    #[arg(long, value_name = "SECONDS", allow_hyphen_values = true)]
    pub tick: Option<String>,
    /// stop or continue when nobody reads the event stream any more [else continue]
    #[arg(long, value_name = "WORD", allow_hyphen_values = true)]
    pub on_reader_gone: Option<String>,
    /// outcome: the exit status tells the outcome
    #[arg(long, value_name = "WORD", allow_hyphen_values = true)]
    pub exit_codes: Option<String>,
    /// Hide each line of this file wherever it turns up [MISSION_REDACT_FILE]
    #[arg(long, value_name = "FILE")]
    pub redact_file: Vec<String>,
    /// Redact outputs and arguments of tools too
    #[arg(long)]
    pub redact_evidence: bool,
}
