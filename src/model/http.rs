//! The HTTP client of a model server: one connection that is kept, no redirects, no proxy to this machine, and words for what goes wrong.

use std::io;
use std::time::Duration;

use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION, RETRY_AFTER};
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
use crate::sys::http::{Cause, beginning, client, header, status_text};

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
        let problem = |problem: String| ModelError::Client { server: endpoint.shown(), problem };
        let route = endpoint.route();
        let keep = if route.is_encrypted { MODEL_KEEP_TLS_SECONDS } else { MODEL_KEEP_SECONDS };
        let client = client(route)
            .map_err(problem)?
            .connect_timeout(Duration::from_secs(MODEL_CONNECT_SECONDS))
            .pool_idle_timeout(Duration::from_secs(keep))
            .default_headers(headers)
            .build()
            .map_err(|error| problem(one_line(&Cause::of(&error).words)))?;
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
        let retry_after = header(response.headers(), &RETRY_AFTER);
        let location = header(response.headers(), &LOCATION);
        let (most, within) = (crate::limits::size(MODEL_ERROR_BODY_BYTES), Duration::from_secs(MODEL_TAIL_SECONDS));
        let body = self.scrub(&String::from_utf8_lossy(&beginning(response, most, within).await));
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
        let Cause { kind: io_kind, tls, words } = Cause::of(error);
        let lower = words.to_lowercase();
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
