//! Flags about recordings.

use clap::Args;

/// Whether a recording is run again instead of a mission.
#[derive(Clone, Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "Run")]
pub struct ReplayFlags {
    /// Run a recording again: nothing is asked, called or written [MISSION_REPLAY]
    #[arg(long, value_name = "ID|DIR")]
    pub replay: Option<String>,
}

/// `mission replay`.
#[derive(Clone, Debug, Default, PartialEq, Args)]
pub struct ReplayArguments {
    /// Recordings: runs, their folders or logs, and the folders of recorded runs of the harness before
    #[arg(value_name = "RUN|DIR")]
    pub recordings: Vec<String>,
    /// Fail on texts that are worded differently too, not only on decisions
    #[arg(long)]
    pub strict: bool,
    /// Print one JSON object; mission schema replay-report has its shape
    #[arg(long)]
    pub json: bool,
    /// Write the verdicts there as JUnit XML, a test case a recording
    #[arg(long, value_name = "FILE")]
    pub junit: Option<String>,
    /// Replay under this skill instead of the recorded one
    #[arg(long, value_name = "DIR|FILE|NAME")]
    pub skill: Option<String>,
    /// Do without the checks of answers that this skill asks for
    #[arg(long)]
    pub no_grounding: bool,
    /// Replay under these rules instead of the recorded ones
    #[arg(long, value_name = "FILE")]
    pub policy: Option<String>,
    /// Replay with a gate at these tools instead of the recorded ones; again for each further one
    #[arg(long, value_name = "NAME")]
    pub gate_tool: Vec<String>,
    /// Replay with a gate at tools that are destructive, open-world or all-writes
    #[arg(long, value_name = "WORD")]
    pub gate: Vec<String>,
}
