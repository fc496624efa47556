//! Flags about the model.

use clap::Args;

/// Which model is asked, and how.
#[derive(Clone, Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "Model")]
pub struct ModelFlags {
    /// local, openai or scripted [MISSION_PROVIDER, else openai]
    #[arg(long, value_name = "NAME")]
    pub provider: Option<String>,
    /// The model [LOCAL_MODEL, else the provider's]
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// What the scripted provider says, a JSON file
    #[arg(long, value_name = "FILE")]
    pub script: Option<String>,
    /// json or native: how the model is spoken to [MISSION_PROTOCOL, else json]
    #[arg(long, value_name = "WORD")]
    pub protocol: Option<String>,
    /// Take each reply whole [MISSION_STREAM=off]
    #[arg(long)]
    pub no_stream: bool,
    /// Sampling; not sent unless given
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    pub temperature: Option<String>,
    /// Sampling; not sent unless given
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    pub top_p: Option<String>,
    /// Sampling; not sent unless given
    #[arg(long, value_name = "INTEGER", allow_hyphen_values = true)]
    pub seed: Option<String>,
}
