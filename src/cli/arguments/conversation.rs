//! Flags about who the model is and what was said before.

use clap::Args;

/// What a conversation begins with.
#[derive(Clone, Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "Model")]
pub struct ConversationFlags {
    /// Who the model is: a file of TOML, JSON or YAML [MISSION_PERSONALITY]
    #[arg(long, value_name = "FILE")]
    pub personality: Option<String>,
    /// Earlier turns to begin with, as JSON [MISSION_HISTORY]
    #[arg(long, value_name = "FILE")]
    pub history: Option<String>,
}
