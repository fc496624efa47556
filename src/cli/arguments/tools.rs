//! Flags about tools: servers, and the skill that closes their set.

use clap::Args;

/// Which tools a run may use.
#[derive(Clone, Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "Tools")]
pub struct ToolFlags {
    /// The servers.
    #[command(flatten)]
    pub servers: ServerFlags,
    /// Believe this server which of its tools may be called twice
    #[arg(long, value_name = "NAME")]
    pub trust_annotations: Vec<String>,
    /// SKILL.md, its folder or a shipped skill: only the tools it names, in its order [MISSION_SKILL]
    #[arg(long, value_name = "DIR|FILE|NAME")]
    pub skill: Option<String>,
}

/// Which tool servers are started.
#[derive(Clone, Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "Tools")]
pub struct ServerFlags {
    /// A tool server to start; again for each further one [MCP_STDIO]
    #[arg(long, value_name = "[NAME=]COMMAND", allow_hyphen_values = true)]
    pub mcp_stdio: Vec<String>,
    /// A tool server to reach over HTTP; again for each further one [MCP_URL]
    #[arg(long, value_name = "[NAME=]URL")]
    pub mcp_url: Vec<String>,
    /// The token of the URL in the same place, '' where it needs none [MCP_TOKEN]
    #[arg(long, value_name = "TOKEN", allow_hyphen_values = true)]
    pub mcp_token: Vec<String>,
    /// How long a server may take to come up or answer [MCP_TIMEOUT_S, else 30]
    #[arg(long, value_name = "SECONDS", allow_hyphen_values = true)]
    pub mcp_timeout: Option<String>,
    /// Go on without this server when it does not come up
    #[arg(long, value_name = "NAME")]
    pub mcp_optional: Vec<String>,
    /// Let the servers see this variable, perhaps by another name
    #[arg(long, value_name = "[NAME=]VAR")]
    pub mcp_env: Vec<String>,
}
