//! Flags about a run that is there already.

use clap::Args;

/// Which run is carried on.
#[derive(Clone, Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "Run")]
pub struct CarryFlags {
    /// Carry this run on, as its log has it [MISSION_RESUME]
    #[arg(long, value_name = "ID")]
    pub resume: Option<String>,
    /// Begin the run that --run-id names, or carry it on
    #[arg(long)]
    pub start_or_resume: bool,
    /// The run of --start-or-resume, `run_NAME`
    #[arg(long, value_name = "ID")]
    pub run_id: Option<String>,
}
