//! The HTTP clients of a run: no protocol but HTTP/1.1, no redirect to another origin, no proxy to this machine, no certificate loaded
//! that nothing needs; and words for what goes wrong.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Client, StatusCode};

use crate::limits;
use crate::sys::http::{Cause, Route, client};
use crate::tools::address::Address;
use crate::tools::mcp::result::cut;

/// The clients, made when they are first needed. Servers of a kind share one, which shares no connection between two of them.
#[derive(Debug, Default)]
pub(crate) struct Clients(Mutex<BTreeMap<Route, Client>>);

impl Clients {
    /// The client for a server at this address.
    ///
    /// # Errors
    /// Why there is none: the second half of a sentence about the server.
    pub(crate) fn for_address(&self, address: &Address) -> Result<Client, String> {
        let route = address.route();
        let mut clients = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&route) {
            return Ok(client.clone());
        }
        let client = build(route).map_err(|why| {
            format!(
                "at {} cannot be reached, because no HTTP client could be made: {why}; check SSL_CERT_FILE and SSL_CERT_DIR",
                address.shown()
            )
        })?;
        clients.insert(route, client.clone());
        Ok(client)
    }
}

fn build(route: Route) -> Result<Client, String> {
    client(route)?
        .redirect(Policy::custom(|attempt| {
            let hops = u64::try_from(attempt.previous().len()).unwrap_or(u64::MAX);
            let is_kept = matches!(attempt.status(), StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
            let target = attempt.url();
            let stays = attempt.previous().last().is_some_and(|from| from.origin() == target.origin())
                && target.username().is_empty()
                && target.password().is_none();
            if is_kept && stays && hops <= limits::MCP_REDIRECTS { attempt.follow() } else { attempt.stop() }
        }))
        .tcp_keepalive(Duration::from_secs(limits::MCP_KEEPALIVE_SECONDS))
        .connect_timeout(Duration::from_secs(limits::MCP_HTTP_CONNECT_SECONDS))
        .pool_idle_timeout(Duration::from_secs(limits::MCP_KEEP_SECONDS))
        .build()
        .map_err(|error| cut(&Cause::of(&error).words, limits::size(limits::MCP_SAMPLE_BYTES)))
}

/// Where somebody may stand between us and this address, as the end of a sentence.
fn between(address: &Address) -> &'static str {
    let is_named = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let Route { is_loopback, is_encrypted } = address.route();
    let names: &[&str] = match is_encrypted {
        true => &["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"],
        false => &["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"],
    };
    if !is_loopback && names.iter().any(|name| is_named(name)) { ", and the proxy that the environment names" } else { "" }
}

/// What went wrong with a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// Nothing of it was sent. It may be made again where that is worth something.
    NotSent {
        /// The second half of a sentence about the server.
        why: String,
        /// The server may be there in a moment.
        is_passing: bool,
    },
    /// It may have been sent, wholly or in part.
    Broken(String),
}

/// What a failed request means.
pub(super) fn trouble(error: &reqwest::Error, address: &Address) -> Trouble {
    let (at, between) = (address.shown(), between(address));
    let Cause { kind, tls, words } = Cause::of(error);
    let words = cut(&words, limits::size(limits::MCP_SAMPLE_BYTES));
    let lower = words.to_lowercase();
    if error.is_builder() || error.is_request() && lower.contains("invalid") && kind.is_none() && !error.is_connect() {
        return Trouble::NotSent { why: format!("at {at} cannot be asked that: {words}"), is_passing: false };
    }
    if error.is_connect() {
        let why = match (tls, kind) {
            (Some(rustls::Error::InvalidMessage(_)), _) => {
                format!("at {at} does not speak TLS: its URL may have to begin with http://")
            }
            (Some(_), _) => format!(
                "at {at} cannot be trusted over TLS ({words}): where its certificate is issued by an authority of your own, name that in SSL_CERT_FILE"
            ),
            _ if lower.contains("tls handshake eof") => {
                format!("at {at} ends the TLS handshake: where it does not speak TLS its URL begins with http://")
            }
            _ if lower.contains("certificate") => format!("at {at} cannot be trusted over TLS ({words})"),
            (None, Some(io::ErrorKind::ConnectionRefused)) => {
                let why = format!("refuses the connection to {at}: check that it runs, and the URL{between}");
                return Trouble::NotSent { why, is_passing: true };
            }
            _ if error.is_timeout() => {
                format!(
                    "takes no connection at {at} within {} s: check that it runs, and the URL{between}",
                    limits::MCP_HTTP_CONNECT_SECONDS
                )
            }
            _ if lower.contains("dns error") || lower.contains("lookup address") => {
                format!("cannot be found: there is no address for the name in {at}")
            }
            _ => format!("cannot be reached at {at} ({words}): check that it runs, and the URL{between}"),
        };
        return Trouble::NotSent { why, is_passing: false };
    }
    Trouble::Broken(match kind {
        Some(io::ErrorKind::ConnectionReset) => "reset the connection".to_owned(),
        _ if lower.contains("before message completed") => "closed the connection without an answer".to_owned(),
        Some(io::ErrorKind::UnexpectedEof) => "closed the connection before its answer was complete".to_owned(),
        _ if lower.contains("unexpected eof") || lower.contains("incomplete") || lower.contains("end of file") => {
            "closed the connection before its answer was complete".to_owned()
        }
        _ => format!("broke the connection ({words})"),
    })
}
