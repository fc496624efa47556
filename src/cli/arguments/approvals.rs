//! Flags and words about approvals.

use clap::Args;

/// Deciding beside a run, as seed 2's callers do it. `mission approvals` is what the help names.
#[derive(Clone, Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "Run")]
pub struct DecisionFlags {
    /// Approve this, and exit (or: mission approvals)
    #[arg(long, value_name = "ID")]
    pub approve: Option<String>,
    /// Refuse this, and exit
    #[arg(long, value_name = "ID")]
    pub refuse: Option<String>,
    /// Who approves or refuses
    #[arg(long, value_name = "WHO")]
    pub decided_by: Option<String>,
    /// In their words
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub note: Option<String>,
}

/// Which calls need a person.
#[derive(Clone, Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "Gates")]
pub struct GateFlags {
    /// This tool needs a person's approval; again for each further one
    #[arg(long, value_name = "NAME")]
    pub gate_tool: Vec<String>,
    /// So do tools that are destructive, open-world or all-writes
    #[arg(long, value_name = "WORD")]
    pub gate: Vec<String>,
    /// Wait so long for a decision before the run ends [MISSION_GATE_WAIT]
    #[arg(long, value_name = "SECONDS", allow_hyphen_values = true)]
    pub gate_wait: Option<String>,
    /// free: waiting at a gate is no time of the run
    #[arg(long, value_name = "WORD")]
    pub gate_time: Option<String>,
    /// An approval can be decided and spent for so long
    #[arg(long, value_name = "SECONDS", allow_hyphen_values = true)]
    pub gate_expires: Option<String>,
    /// The approved call that this run may make [MISSION_APPROVAL]
    #[arg(long, value_name = "ID")]
    pub approval: Option<String>,
}

/// `mission approvals`.
#[derive(Clone, Debug, Default, PartialEq, Args)]
pub struct ApprovalsArguments {
    /// list, show ID, answer ID done|retry|abandon, approve ID or refuse ID
    #[arg(value_name = "WORD")]
    pub words: Vec<String>,
    /// Who decides
    #[arg(long, value_name = "WHO")]
    pub by: Option<String>,
    /// In their words
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub note: Option<String>,
    /// Those too that are decided or over
    #[arg(long)]
    pub all: bool,
    /// Print one JSON object an approval
    #[arg(long)]
    pub json: bool,
}
