//! What every HTTP client of this program has in common: HTTP/1.1 alone, no retry of its own, no proxy to this machine, no certificate
//! loaded that nothing needs; and what there is to read when something goes wrong.

use std::error::Error;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName};
use reqwest::{Client, ClientBuilder, Response, StatusCode, Url};
use tokio::time::timeout;

/// What a client has to know of the way to its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Route {
    /// It is this machine: no proxy stands between.
    pub is_loopback: bool,
    /// It is reached over https.
    pub is_encrypted: bool,
}

impl Route {
    /// What is to be known of an address.
    pub fn of(url: &Url) -> Self {
        Self { is_loopback: is_loopback(url), is_encrypted: url.scheme() == "https" }
    }

    /// Whether a connection of its client is ever encrypted.
    fn needs_trust(self) -> bool {
        let is_encrypted = |value: String| value.trim().to_ascii_lowercase().starts_with("https://");
        let to_proxy = || {
            ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"].iter().any(|name| std::env::var(name).is_ok_and(is_encrypted))
        };
        self.is_encrypted || (!self.is_loopback && to_proxy())
    }
}

/// Whether an address is this machine itself, by any of its names.
pub fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    match host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback() || address.is_unspecified(),
        Err(_) => {
            let name = host.trim_end_matches('.').to_ascii_lowercase();
            name == "localhost" || name.ends_with(".localhost")
        }
    }
}

/// A client to be finished by whoever knows what it is for. It follows no redirect. Certificates are loaded when it is built, and only
/// where something is encrypted.
///
/// # Errors
/// Why TLS cannot be set up.
pub fn client(route: Route) -> Result<ClientBuilder, String> {
    let mut builder = Client::builder()
        .http1_only()
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .tcp_nodelay(true)
        .pool_max_idle_per_host(2)
        .user_agent(concat!("mission/", env!("CARGO_PKG_VERSION")));
    if route.is_loopback {
        builder = builder.no_proxy();
    }
    if route.needs_trust() {
        // Whoever was first in this process decides; both would install the same.
        let _ = rustls::crypto::ring::default_provider().install_default();
        return Ok(builder);
    }
    // A configuration that trusts nobody costs nothing to build.
    let trust = rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    Ok(builder.tls_backend_preconfigured(trust))
}

/// What is known of a request that failed.
#[derive(Debug)]
pub struct Cause<'a> {
    /// The kind of the I/O error behind it.
    pub kind: Option<io::ErrorKind>,
    /// The TLS error behind it.
    pub tls: Option<&'a rustls::Error>,
    /// All causes, without the address that they are about: that may hold what must not be shown.
    pub words: String,
}

impl<'a> Cause<'a> {
    /// What is behind an error.
    pub fn of(error: &'a reqwest::Error) -> Self {
        let mut words: Vec<String> = Vec::new();
        for source in sources(error).skip(1) {
            let text = source.to_string();
            if !words.iter().any(|earlier| earlier.contains(&text)) {
                words.push(text);
            }
        }
        Self {
            kind: sources(error).find_map(|source| source.downcast_ref::<io::Error>()).map(io::Error::kind),
            tls: sources(error).find_map(|source| source.downcast_ref::<rustls::Error>()),
            words: words.join(": "),
        }
    }
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

/// A header as text.
pub fn header(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
}

/// A status with its words.
pub fn status_text(status: StatusCode) -> String {
    match status.canonical_reason() {
        Some(reason) => format!("{} {reason}", status.as_u16()),
        None => status.as_u16().to_string(),
    }
}

/// The beginning of a body, at most so many bytes, as far as it comes within this time.
pub async fn beginning(mut response: Response, bytes: usize, within: Duration) -> Vec<u8> {
    let mut body = Vec::new();
    let read = async {
        while let Ok(Some(chunk)) = response.chunk().await {
            body.extend_from_slice(&chunk);
            if body.len() >= bytes {
                break;
            }
        }
    };
    let _ = timeout(within, read).await;
    body.truncate(bytes);
    body
}
