//! Flags about how far a run may go.

use clap::Args;

/// How far a run may go.
#[derive(Clone, Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "Run")]
pub struct LimitFlags {
    /// Ceiling on model turns; 0 is none [else 0]
    #[arg(long, value_name = "INTEGER", allow_hyphen_values = true)]
    pub mission_steps: Option<String>,
    /// How long what is in flight may resist when the run ends [else 10]
    #[arg(long, value_name = "SECONDS", allow_hyphen_values = true)]
    pub grace: Option<String>,
}
