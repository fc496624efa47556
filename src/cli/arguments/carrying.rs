//! Flags about a run that is there already.

use clap::Args;

/// Which run is carried on.
#[derive(Clone, Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "Run")]
pub struct CarryFlags {
    /// Carry this run on; what it was asked stands in its log [MISSION_RESUME]
    #[arg(long, value_name = "ID")]
    pub resume: Option<String>,
    /// Begin the run that --run-id names, or carry it on; one that is over is told again
    #[arg(long)]
    pub start_or_resume: bool,
    /// The run that --start-or-resume begins or carries on: run_ and letters or digits
    #[arg(long, value_name = "ID")]
    pub run_id: Option<String>,
}
