//! Flags about what may be called.

use clap::Args;

/// What a deployment grants, and what narrows that.
#[derive(Clone, Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "Policy")]
pub struct PolicyFlags {
    /// safe, dev, research, ops or god: each grants more scopes than the one before [MISSION_PROFILE, else safe]
    #[arg(long, value_name = "NAME")]
    pub profile: Option<String>,
    /// Grant this scope too; again for each further one
    #[arg(long, value_name = "SCOPE[,SCOPE…]")]
    pub grant: Vec<String>,
    /// Rules that narrow further what may be called (mission schema policy has their form)
    #[arg(long, value_name = "FILE")]
    pub policy: Option<String>,
}

/// `mission policy`.
#[derive(Clone, Debug, Default, PartialEq, Args)]
pub struct PolicyArguments {
    /// explain: which rule decides about a call, and what it says
    #[arg(value_name = "WORD")]
    pub words: Vec<String>,
    /// The tool's full name
    #[arg(long, value_name = "NAME")]
    pub tool: Option<String>,
    /// The call's arguments, one JSON object [else none]
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    pub args: Option<String>,
    /// What is granted.
    #[command(flatten)]
    pub flags: PolicyFlags,
    /// Print one JSON object
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}
