//! A server as it is asked for.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::tools::address::{Address, Token};

/// A tool server to start or to reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerRequest {
    /// The namespace of its tools.
    pub name: String,
    /// How it is reached.
    pub reach: Reach,
    /// The run goes on without it when it does not come up.
    pub optional: bool,
    /// For its start, its handshake and its list in all; and how long a call may give no sign of life.
    pub timeout: Duration,
    /// For one call in all, whatever progress it reports.
    pub call_limit: Duration,
}

/// How a server is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// It is started, and spoken to over its pipes.
    Stdio {
        /// The command and its arguments.
        argv: Vec<String>,
        /// Variables that are passed on besides the allow-list: name inside the server → name in our environment.
        passes: BTreeMap<String, String>,
    },
    /// It runs somewhere, and is spoken to over HTTP.
    Http {
        /// Where.
        address: Address,
        /// What it wants to see with every request.
        token: Option<Token>,
    },
}

impl Reach {
    /// The credentials that it is given, each with the name that stands in its place.
    pub fn secrets(&self) -> Vec<(String, String)> {
        match self {
            Reach::Stdio { .. } => Vec::new(),
            Reach::Http { address, token } => {
                let token = token.iter().map(|token| ("MCP_TOKEN".to_owned(), token.reveal().to_owned()));
                token.chain(address.secrets()).collect()
            }
        }
    }

    /// `stdio` or `http`: the word of the stream and the log.
    pub fn transport(&self) -> &'static str {
        match self {
            Reach::Stdio { .. } => "stdio",
            Reach::Http { .. } => "http",
        }
    }
}
