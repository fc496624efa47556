//! A server as it is asked for.

use std::collections::BTreeMap;
use std::time::Duration;

/// A tool server to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerRequest {
    /// The namespace of its tools.
    pub name: String,
    /// The command and its arguments.
    pub argv: Vec<String>,
    /// Variables that are passed on besides the allow-list: name inside the server → name in our environment.
    pub passes: BTreeMap<String, String>,
    /// The run goes on without it when it does not come up.
    pub optional: bool,
    /// For its start, its handshake and its list in all; and how long a call may give no sign of life.
    pub timeout: Duration,
}
