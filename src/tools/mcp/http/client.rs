//! The HTTP clients of a run: no protocol but HTTP/1.1, no redirect to another origin, no proxy to this machine, no certificate loaded
//! that nothing needs; and words for what goes wrong.

use std::collections::BTreeMap;
use std::error::Error;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Client, StatusCode};

use crate::limits;
use crate::tools::address::Address;
use crate::tools::mcp::result::cut;

/// The clients, made when they are first needed. Servers of a kind share one, which shares no connection between two of them.
#[derive(Debug, Default)]
pub(crate) struct Clients(Mutex<BTreeMap<Kind, Client>>);

/// What a client depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    is_loopback: bool,
    is_encrypted: bool,
}

impl Clients {
    /// The client for a server at this address.
    ///
    /// # Errors
    /// Why there is none: the second half of a sentence about the server.
    pub(crate) fn for_address(&self, address: &Address) -> Result<Client, String> {
        let kind = Kind { is_loopback: address.is_loopback(), is_encrypted: address.is_encrypted() };
        let mut clients = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&kind) {
            return Ok(client.clone());
        }
        let client = build(kind).map_err(|why| {
            format!(
                "at {} cannot be reached, because no HTTP client could be made: {why}; check SSL_CERT_FILE and SSL_CERT_DIR",
                address.shown()
            )
        })?;
        clients.insert(kind, client.clone());
        Ok(client)
    }
}

fn build(kind: Kind) -> Result<Client, String> {
    let mut builder = Client::builder()
        .http1_only()
        .redirect(Policy::custom(|attempt| {
            let hops = u64::try_from(attempt.previous().len()).unwrap_or(u64::MAX);
            let is_kept = matches!(attempt.status(), StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
            let target = attempt.url();
            let stays = attempt.previous().last().is_some_and(|from| from.origin() == target.origin())
                && target.username().is_empty()
                && target.password().is_none();
            if is_kept && stays && hops <= limits::MCP_REDIRECTS { attempt.follow() } else { attempt.stop() }
        }))
        .retry(reqwest::retry::never())
        .referer(false)
        .tcp_nodelay(true)
        .tcp_keepalive(Duration::from_secs(limits::MCP_KEEPALIVE_SECONDS))
        .connect_timeout(Duration::from_secs(limits::MCP_HTTP_CONNECT_SECONDS))
        .pool_idle_timeout(Duration::from_secs(limits::MCP_KEEP_SECONDS))
        .pool_max_idle_per_host(2)
        .user_agent(concat!("mission/", env!("CARGO_PKG_VERSION")));
    if kind.is_loopback {
        builder = builder.no_proxy();
    }
    if kind.is_encrypted || (!kind.is_loopback && has_encrypted_proxy()) {
        // Whoever was first in this process decides; both would install the same.
        let _ = rustls::crypto::ring::default_provider().install_default();
    } else {
        // No connection of this client is ever encrypted: a configuration that trusts nobody costs nothing to build.
        let trust = rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(rustls::RootCertStore::empty())
            .with_no_client_auth();
        builder = builder.tls_backend_preconfigured(trust);
    }
    builder.build().map_err(|error| chain(&error))
}

fn has_encrypted_proxy() -> bool {
    ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"]
        .iter()
        .any(|name| std::env::var(name).is_ok_and(|value| value.trim().to_ascii_lowercase().starts_with("https://")))
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
    let at = address.shown();
    let kind = sources(error).find_map(|source| source.downcast_ref::<io::Error>()).map(io::Error::kind);
    let tls = sources(error).find_map(|source| source.downcast_ref::<rustls::Error>());
    let words = chain(error);
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
                let why = format!("refuses the connection to {at}: check that it runs, and the URL");
                return Trouble::NotSent { why, is_passing: true };
            }
            _ if error.is_timeout() => {
                format!(
                    "takes no connection at {at} within {} s: check that it runs, and the URL",
                    limits::MCP_HTTP_CONNECT_SECONDS
                )
            }
            _ if lower.contains("dns error") || lower.contains("lookup address") => {
                format!("cannot be found: there is no address for the name in {at}")
            }
            _ => format!("cannot be reached at {at} ({words}): check that it runs, and the URL"),
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

fn sources<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    /// No chain of causes is that long.
    const CAUSES: usize = 16;
    // An I/O error hides the error that it carries from the chain of sources.
    std::iter::successors(Some(error), |&error: &&'a (dyn Error + 'static)| {
        match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(inner) => Some(inner),
            None => error.source(),
        }
    })
    .take(CAUSES)
}

/// An error with its causes, without the address that it was about: that may hold what must not be shown.
fn chain(error: &reqwest::Error) -> String {
    let mut words: Vec<String> = Vec::new();
    for source in sources(error).skip(1) {
        let text = source.to_string();
        if !words.iter().any(|earlier| earlier.contains(&text)) {
            words.push(text);
        }
    }
    cut(&words.join(": "), limits::size(limits::MCP_SAMPLE_BYTES))
}
