//! The HTTP client of a model server: one connection that is kept, no redirects, no proxy to this machine, and words for what goes wrong.

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION, RETRY_AFTER};
use reqwest::{Client, Method, Response, StatusCode, Url};
use tokio::time::timeout;

use super::endpoint::Endpoint;
use super::failure::{FailureKind, Trouble, is_context_overflow, one_line, server_words};
use super::secret::Secret;
use super::settings::ModelError;
use super::stream::with_status;
use crate::limits::{
    MODEL_CONNECT_SECONDS, MODEL_ERROR_BODY_BYTES, MODEL_IDLE_SECONDS, MODEL_KEEP_SECONDS, MODEL_KEEP_TLS_SECONDS,
    MODEL_TAIL_SECONDS,
};

/// A client for one model server.
#[derive(Debug)]
pub struct HttpClient {
    client: Client,
    endpoint: Endpoint,
    key: Option<Secret>,
    /// The variable that holds the key, for sentences.
    key_variable: &'static str,
    /// How the server is set, for sentences: a variable's name, or nothing where it is fixed.
    base_variable: Option<&'static str>,
}

impl HttpClient {
    /// A client that sends `key` with every request. Nothing is connected yet, and certificates are loaded only for https.
    ///
    /// # Errors
    /// When the key cannot stand in a header, or TLS cannot be set up (a machine without certificates).
    pub fn new(
        endpoint: Endpoint,
        key: Option<Secret>,
        key_variable: &'static str,
        base_variable: Option<&'static str>,
    ) -> Result<Self, ModelError> {
        let mut headers = HeaderMap::new();
        if let Some(key) = &key {
            headers.insert(
                AUTHORIZATION,
                sensitive(&format!("Bearer {}", key.reveal())).ok_or(ModelError::BadKey { variable: key_variable })?,
            );
        }
        let mut builder = Client::builder()
            .http1_only()
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .tcp_nodelay(true)
            .connect_timeout(Duration::from_secs(MODEL_CONNECT_SECONDS))
            .pool_max_idle_per_host(2)
            .default_headers(headers)
            .user_agent(concat!("mission/", env!("CARGO_PKG_VERSION")));
        if endpoint.is_loopback() {
            builder = builder.no_proxy();
        }
        builder = if endpoint.is_encrypted() || (!endpoint.is_loopback() && has_encrypted_proxy()) {
            // Whoever was first in this process decides; both would install the same.
            let _ = rustls::crypto::ring::default_provider().install_default();
            builder.pool_idle_timeout(Duration::from_secs(MODEL_KEEP_TLS_SECONDS))
        } else {
            // No connection of this client is ever encrypted: a configuration that trusts nobody costs nothing to build.
            let trust = rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
                .with_safe_default_protocol_versions()
                .map_err(|error| ModelError::Client { server: endpoint.shown(), problem: error.to_string() })?
                .with_root_certificates(rustls::RootCertStore::empty())
                .with_no_client_auth();
            builder.tls_backend_preconfigured(trust).pool_idle_timeout(Duration::from_secs(MODEL_KEEP_SECONDS))
        };
        let client = builder
            .build()
            .map_err(|error| ModelError::Client { server: endpoint.shown(), problem: one_line(&chain(&error)) })?;
        Ok(Self { client, endpoint, key, key_variable, base_variable })
    }

    /// How sentences about the server begin.
    pub fn server(&self) -> String {
        format!("The model server at {}", self.endpoint.shown())
    }

    /// Fetches a resource.
    ///
    /// # Errors
    /// When no answer came, or its status says no.
    pub async fn get(&self, resource: &str) -> Result<Response, Trouble> {
        self.send(Method::GET, self.endpoint.resource(resource), None).await
    }

    /// Posts a JSON body to a resource and returns the answer once its head is here.
    ///
    /// # Errors
    /// When no answer came, or its status says no.
    pub async fn post(&self, resource: &str, body: Vec<u8>) -> Result<Response, Trouble> {
        self.send(Method::POST, self.endpoint.resource(resource), Some(body)).await
    }

    async fn send(&self, method: Method, url: Url, body: Option<Vec<u8>>) -> Result<Response, Trouble> {
        let mut request = self.client.request(method, url);
        if self.key.is_none()
            && let Some((user, password)) = self.endpoint.credentials()
        {
            request = request.basic_auth(user, Some(password.reveal()));
        }
        if let Some(body) = body {
            request =
                request.header(CONTENT_TYPE, "application/json").header(ACCEPT, "text/event-stream, application/json").body(body);
        }
        let silent = Duration::from_secs(MODEL_IDLE_SECONDS);
        let response = match timeout(silent, request.send()).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(self.transport(&error)),
            Err(_) => return Err(self.silent(MODEL_IDLE_SECONDS)),
        };
        if response.status().is_success() { Ok(response) } else { Err(self.refusal(response).await) }
    }

    /// The server said nothing for this long.
    pub fn silent(&self, seconds: u64) -> Trouble {
        Trouble::new(FailureKind::Silent, format!("{} sent nothing for {seconds} s and was given up.", self.server()))
    }

    /// Words from a server, without our credentials in them.
    pub fn scrub(&self, text: &str) -> String {
        let password = self.endpoint.credentials().map(|(_, password)| password);
        self.key.iter().chain(password).fold(text.to_owned(), |text, secret| secret.scrub(&text))
    }

    /// A status that says no.
    async fn refusal(&self, response: Response) -> Trouble {
        let status = response.status();
        let retry_after = header(&response, &RETRY_AFTER);
        let location = header(&response, &LOCATION);
        let body = self.scrub(&beginning(response).await);
        let words = server_words(&body);
        let mut detail = format!("{} answered {}", self.server(), status_text(status));
        if status.is_redirection() {
            let target = location.and_then(|location| self.endpoint.resource("").join(&location).ok());
            let target = target.and_then(|target| Endpoint::parse(target.as_str()).ok()).map(|target| target.shown());
            detail.push_str(&format!(
                ", a redirect{}, which is not followed",
                target.map_or_else(String::new, |target| format!(" to {target}"))
            ));
            detail.push_str(
                &self.base_variable.map_or_else(String::new, |name| format!(": set {name} to where the server really is")),
            );
        } else if !words.is_empty() {
            detail.push_str(&format!(": {words}"));
        }
        if !detail.ends_with(['.', '!', '?', '…']) {
            detail.push('.');
        }
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => detail.push_str(&format!(" Check {}.", self.key_variable)),
            StatusCode::NOT_FOUND => {
                if let Some(name) = self.base_variable {
                    detail.push_str(&format!(" Check the model's name, and the path in {name}."));
                }
            }
            _ => {}
        }
        let kind = if !status.is_redirection() && is_context_overflow(&body) {
            FailureKind::ContextOverflow
        } else {
            FailureKind::Status
        };
        with_status(kind, status.as_u16(), retry_after, detail, body)
    }

    /// No answer, or an answer that broke.
    pub fn transport(&self, error: &reqwest::Error) -> Trouble {
        let server = self.server();
        let hint = self.base_variable.map_or_else(String::new, |name| format!(" Check that it runs, and {name}."));
        let io_kind = sources(error).find_map(|source| source.downcast_ref::<io::Error>()).map(io::Error::kind);
        let words = chain(error);
        let lower = words.to_lowercase();
        let tls = sources(error).find_map(|source| source.downcast_ref::<rustls::Error>());
        let is_tls = tls.is_some() || lower.contains("certificate") || lower.contains("tls handshake");
        let (kind, detail) = if error.is_connect() {
            if let Some(rustls::Error::InvalidMessage(_)) = tls {
                (
                    FailureKind::Untrusted,
                    format!("{server} does not speak TLS: its address may have to begin with http:// instead.{hint}"),
                )
            } else if is_tls {
                let words = one_line(&self.scrub(&words));
                (FailureKind::Untrusted, format!("{server} could not be trusted over TLS ({words})."))
            } else if error.is_timeout() {
                (FailureKind::Unreachable, format!("{server} took no connection within {MODEL_CONNECT_SECONDS} s.{hint}"))
            } else if lower.contains("dns error") || lower.contains("lookup address") {
                (FailureKind::Unreachable, format!("{server} could not be found: there is no address for its name.{hint}"))
            } else if io_kind == Some(io::ErrorKind::ConnectionRefused) {
                (FailureKind::Unreachable, format!("{server} refused the connection.{hint}"))
            } else {
                let words = one_line(&self.scrub(&words));
                (FailureKind::Unreachable, format!("{server} could not be reached ({words}).{hint}"))
            }
        } else if error.is_timeout() || io_kind == Some(io::ErrorKind::TimedOut) {
            (FailureKind::Silent, format!("{server} fell silent and was given up."))
        } else {
            let how = match io_kind {
                Some(io::ErrorKind::ConnectionReset) => "reset the connection".to_owned(),
                Some(io::ErrorKind::UnexpectedEof) => "closed the connection before its reply was complete".to_owned(),
                _ if lower.contains("before message completed") => "closed the connection without an answer".to_owned(),
                _ if lower.contains("unexpected eof") || lower.contains("incomplete") => {
                    "closed the connection before its reply was complete".to_owned()
                }
                _ => format!("broke the connection ({})", one_line(&self.scrub(&words))),
            };
            (FailureKind::Broken, format!("{server} {how}."))
        };
        Trouble::new(kind, detail)
    }
}

/// A value that clients do not print.
fn sensitive(value: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(value).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// A header as text.
pub fn header(response: &Response, name: &HeaderName) -> Option<String> {
    response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
}

/// A status with its words.
pub fn status_text(status: StatusCode) -> String {
    match status.canonical_reason() {
        Some(reason) => format!("{} {reason}", status.as_u16()),
        None => status.as_u16().to_string(),
    }
}

/// The beginning of a body, as far as it comes soon.
async fn beginning(mut response: Response) -> String {
    let limit = crate::limits::size(MODEL_ERROR_BODY_BYTES);
    let mut body = Vec::new();
    let read = async {
        while let Ok(Some(chunk)) = response.chunk().await {
            body.extend_from_slice(&chunk);
            if body.len() >= limit {
                break;
            }
        }
    };
    let _ = timeout(Duration::from_secs(MODEL_TAIL_SECONDS), read).await;
    body.truncate(limit);
    String::from_utf8_lossy(&body).into_owned()
}

fn sources<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    // An I/O error hides the error it carries from the chain of sources.
    std::iter::successors(Some(error), |&error: &&'a (dyn Error + 'static)| {
        match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(inner) => Some(inner),
            None => error.source(),
        }
    })
    .take(16)
}

/// An error with its causes, without the address it was about: that may hold what must not be shown.
fn chain(error: &reqwest::Error) -> String {
    let mut words: Vec<String> = Vec::new();
    for source in sources(error).skip(1) {
        let text = source.to_string();
        if !words.iter().any(|earlier| earlier.contains(&text)) {
            words.push(text);
        }
    }
    words.join(": ")
}

fn has_encrypted_proxy() -> bool {
    ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"]
        .iter()
        .any(|name| std::env::var(name).is_ok_and(|value| value.trim().to_ascii_lowercase().starts_with("https://")))
}
