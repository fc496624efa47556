//! Flags about how far a run may go.

use clap::Args;

/// How far a run may go.
#[derive(Clone, Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "Run")]
pub struct LimitFlags {
    /// Ceiling on model turns; 0 is none [else 0]
    #[arg(long, value_name = "INTEGER", allow_hyphen_values = true)]
    pub mission_steps: Option<String>,
    /// Ceiling on time [MISSION_SECONDS]
    #[arg(long, value_name = "SECONDS", allow_hyphen_values = true)]
    pub mission_seconds: Option<String>,
    /// Ceiling on tokens, of requests and replies
    #[arg(long, value_name = "INTEGER", allow_hyphen_values = true)]
    pub max_tokens_total: Option<String>,
    /// Ceiling on bytes of tool results
    #[arg(long, value_name = "INTEGER", allow_hyphen_values = true)]
    pub max_bytes: Option<String>,
    /// Ceiling on money, in the currency of the model's price
    #[arg(long, value_name = "AMOUNT", allow_hyphen_values = true)]
    pub max_cost: Option<String>,
    /// off, warn or on: what is done about a run that makes no progress [else on]
    #[arg(long, value_name = "WORD")]
    pub supervisor: Option<String>,
    /// How long what is in flight may resist when the run ends [else 10]
    #[arg(long, value_name = "SECONDS", allow_hyphen_values = true)]
    pub grace: Option<String>,
}
