//! The servers of a command line started, listed and ended, for verbs that only want to know what is there.

use mission_contract::log::ServerCondition;

use super::error::CliError;
use super::servers::Servers;
use crate::sys::signals::{EndSignal, EndSignals};
use crate::tools::mcp::{PlaneOptions, connect};
use crate::tools::{Discovery, ToolPlane};

/// What the servers offer, or the signal that came first.
///
/// # Errors
/// When the system does not give what this needs.
pub(super) fn discover(servers: Servers) -> Result<Result<Discovery, EndSignal>, CliError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| CliError::system("a runtime", &error))?;
    runtime.block_on(async {
        let mut signals = EndSignals::catch().map_err(|error| CliError::system("the signals", &error))?;
        let options = PlaneOptions { client_name: servers.client_name, ..PlaneOptions::default() };
        tokio::select! {
            (plane, discovery, _) = connect(servers.requests, options) => {
                plane.close().await;
                Ok(Ok(discovery))
            }
            signal = signals.first() => Ok(Err(signal)),
        }
    })
}

/// True when a server that is needed did not come up.
pub(super) fn is_short(discovery: &Discovery) -> bool {
    discovery.servers.iter().any(|server| server.state == ServerCondition::Failed && !server.optional)
}
