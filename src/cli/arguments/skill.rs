//! Flags about the skill, beside the one that names it; and what `mission skill` and `mission lock` take.

use clap::Args;

use super::tools::ServerFlags;

/// How strictly the skill is taken.
#[derive(Clone, Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "Tools")]
pub struct SkillFlags {
    /// The tools are those of mission.lock beside the manifest, or nothing is done
    #[arg(long)]
    pub locked: bool,
    /// Refuse to offer more tools than these
    #[arg(long, value_name = "INTEGER", allow_hyphen_values = true)]
    pub tool_limit: Option<String>,
    /// Do without the checks of answers that the skill asks for
    #[arg(long)]
    pub no_grounding: bool,
}

/// `mission skill`.
#[derive(Clone, Debug, Default, PartialEq, Args)]
pub struct SkillArguments {
    /// check PATH: a SKILL.md, its folder, or the name of a shipped skill
    #[arg(value_name = "WORD")]
    pub words: Vec<String>,
    /// The servers.
    #[command(flatten)]
    pub servers: ServerFlags,
    /// Print one JSON object
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

/// `mission lock`.
#[derive(Clone, Debug, Default, PartialEq, Args)]
pub struct LockArguments {
    /// SKILL.md or its folder; mission.lock is written beside it [MISSION_SKILL]
    #[arg(long, value_name = "DIR|FILE")]
    pub skill: Option<String>,
    /// The servers.
    #[command(flatten)]
    pub servers: ServerFlags,
}
