//! One message to a server from here to its end: sent, answered by a body or a stream, or refused.

use std::borrow::Cow;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE};
use reqwest::{Response, StatusCode};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::client::{Trouble, trouble};
use super::status::{No, refused};
use super::{Link, SESSION, SESSION_LOST};
use crate::limits;
use crate::sys::http::{beginning, header, status_text};
use crate::tools::mcp::exchange::{Answer, Refused};
use crate::tools::mcp::frame::{Id, Shape, shape};
use crate::tools::mcp::incoming::dispatch;
use crate::tools::mcp::outgoing::Asked;
use crate::tools::mcp::result::sample;

/// What a body is.
enum Media {
    Json,
    Events,
    /// The server does not say.
    Unstated,
    Other(String),
}

impl Link {
    /// Makes a request, and sees to it that whoever waits for its answer gets one.
    pub(super) async fn request(self: Arc<Self>, id: Id, asked: Asked, line: Vec<u8>, given_up: CancellationToken) {
        tokio::select! {
            biased;
            failure = self.answered(&id, &asked, line) => {
                if let Some(answer) = failure {
                    self.exchange.resolve(&id, answer);
                }
            }
            () = self.let_go(&given_up) => {}
        }
    }

    /// Waits until there is no use in reading on. Where closing the stream takes the request back that is at once; elsewhere an answer
    /// that comes after all is worth knowing of.
    async fn let_go(&self, given_up: &CancellationToken) {
        given_up.cancelled().await;
        if !self.exchange.is_stateless() {
            sleep(Duration::from_millis(limits::MCP_LATE_MS)).await;
        }
    }

    /// Makes a request. What it returns is said to whoever waits; nothing when that was done already.
    async fn answered(&self, id: &Id, asked: &Asked, line: Vec<u8>) -> Option<Answer> {
        let had_session = self.session.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        let response = match self.send(self.post(line, Some(asked))).await {
            Ok(response) => response,
            Err(Trouble::NotSent { why, .. }) => return Some(Answer::NotSent(why)),
            Err(Trouble::Broken(why)) => return Some(Answer::Lost(why)),
        };
        if asked.method == "initialize" {
            self.take_session(&response);
        }
        if !response.status().is_success() {
            return self.refused(response, Some(id), had_session).await;
        }
        if let Some(encoding) =
            header(response.headers(), &CONTENT_ENCODING).filter(|encoding| !encoding.eq_ignore_ascii_case("identity"))
        {
            let why = format!("sent its answer in the encoding {encoding:?}, which it was not asked for");
            return Some(Answer::Unreadable(why));
        }
        match media(&response) {
            Media::Events => self.stream(response, id, asked).await,
            Media::Json => self.body(response, id, false).await,
            Media::Unstated => self.body(response, id, true).await,
            Media::Other(kind) => {
                let status = response.status();
                let said = soon(response).await;
                let at = self.address.shown();
                Some(if kind == "text/html" {
                    let why = format!(
                        "at {at} answers with a web page ({kind}), as a login or a proxy does: check its URL, and whether it wants a token (--mcp-token)"
                    );
                    Answer::Refused(Refused { status: status.as_u16(), why, retry_after: None })
                } else {
                    let (status, said) = (status_text(status), self.shown(&said));
                    Answer::Unreadable(format!(
                        "at {at} answered {status} with {kind:?}, which is neither JSON nor a stream of events: {said}"
                    ))
                })
            }
        }
    }

    /// The session that comes with the answer to a handshake. It is a secret, and opaque.
    fn take_session(&self, response: &Response) {
        let session = response.headers().get(SESSION).cloned();
        let session = session.filter(|session| {
            let is_visible = session.as_bytes().iter().all(u8::is_ascii_graphic);
            let bytes = u64::try_from(session.len()).unwrap_or(u64::MAX);
            is_visible && (1..=limits::MCP_SESSION_ID_BYTES).contains(&bytes)
        });
        *self.session.lock().unwrap_or_else(PoisonError::into_inner) = session.map(|mut session| {
            session.set_sensitive(true);
            self.exchange.reports.secrets.session(session.to_str().unwrap_or_default());
            session
        });
    }

    /// An answer in one piece.
    async fn body(&self, mut response: Response, id: &Id, is_unstated: bool) -> Option<Answer> {
        let cap = limits::size(limits::MCP_LINE_BYTES);
        let status = response.status();
        let too_large =
            |bytes: String| Some(Answer::Unreadable(format!("sent an answer of {bytes} bytes, and {cap} are allowed")));
        let stated = response.content_length().map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
        if let Some(bytes) = stated.filter(|bytes| *bytes > cap) {
            return too_large(bytes.to_string());
        }
        let mut body = Vec::with_capacity(stated.unwrap_or_default());
        loop {
            match response.chunk().await {
                Ok(Some(chunk)) => {
                    if body.len().saturating_add(chunk.len()) > cap {
                        return too_large(format!("more than {cap}"));
                    }
                    body.extend_from_slice(&chunk);
                    self.exchange.sign_of_life(id);
                }
                Ok(None) => break,
                Err(error) => return Some(Answer::Lost(broken(&trouble(&error, &self.address)))),
            }
        }
        let is_message = matches!(shape(&body), Shape::Object(_) | Shape::Batch(_) | Shape::Damaged(_));
        if body.iter().all(u8::is_ascii_whitespace) {
            return Some(Answer::Unreadable(format!("answered with {} and nothing in it", status_text(status))));
        }
        let said =
            || format!("answered with {} and what is no message of the protocol: {}", status_text(status), self.shown(&body));
        if !is_message {
            return Some(Answer::Unreadable(said()));
        }
        if is_unstated {
            self.exchange.tell_once("content_type_missing", || {
                "The server does not say what its answers are (no content type); they are read as JSON.".to_owned()
            });
        }
        let beginning = sample(&body);
        dispatch(&self.exchange, Cow::Owned(body), Some(id));
        self.exchange.is_pending(id).then(|| {
            let said = self.exchange.reports.secrets.scrub(beginning);
            Answer::Unreadable(format!("answered with {} and messages of which none is the answer: {said}", status_text(status)))
        })
    }

    /// A status that says no. What it returns is said to whoever waits; nothing when the body was an answer.
    pub(super) async fn refused(&self, response: Response, of: Option<&Id>, had_session: bool) -> Option<Answer> {
        let (status, headers) = (response.status(), response.headers().clone());
        let body = soon(response).await;
        let names_session = || String::from_utf8_lossy(&body).to_lowercase().contains("session");
        if had_session && (status == StatusCode::NOT_FOUND || (status == StatusCode::BAD_REQUEST && names_session())) {
            self.lose_session();
            return Some(Answer::Gone);
        }
        // A status that says it all: whatever the body says was not said by the server behind it.
        let is_about_access = matches!(status.as_u16(), 401 | 403 | 429 | 502 | 503 | 504);
        if let (Some(of), false, Shape::Object(outline)) = (of, is_about_access, shape(&body))
            && outline.error.is_some()
        {
            dispatch(&self.exchange, Cow::Owned(body), Some(of));
            return None;
        }
        let said = if body.trim_ascii_start().starts_with(b"<") { String::new() } else { self.shown(&body) };
        let has_credential = self.credential.is_some();
        Some(Answer::Refused(refused(&No { address: &self.address, status, headers: &headers, has_credential, said: &said })))
    }

    /// Sends what needs no answer.
    ///
    /// # Errors
    /// Why the server did not take it: the second half of a sentence about it.
    pub(super) async fn tell(&self, line: Vec<u8>) -> Result<(), String> {
        if self.exchange.is_stateless() {
            // This era knows only requests over HTTP.
            return Ok(());
        }
        let had_session = self.session.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        let told = async {
            let response = self.send(self.post(line, None)).await.map_err(|trouble| broken(&trouble))?;
            if response.status().is_success() {
                soon(response).await;
                return Ok(());
            }
            match self.refused(response, None, had_session).await {
                Some(Answer::Refused(refused)) => Err(refused.why),
                _ => Err(SESSION_LOST.to_owned()),
            }
        };
        let seconds = limits::MCP_TELL_SECONDS;
        timeout(Duration::from_secs(seconds), told)
            .await
            .unwrap_or_else(|_| Err(format!("did not take a notification within {seconds} s")))
    }

    /// The beginning of what a server said, harmless and without our credentials.
    pub(super) fn shown(&self, body: &[u8]) -> String {
        self.exchange.reports.secrets.scrub(sample(body.trim_ascii()))
    }
}

/// The beginning of a body that is no answer, as far as it comes soon.
async fn soon(response: Response) -> Vec<u8> {
    let within = Duration::from_millis(limits::MCP_ERROR_BODY_MS);
    beginning(response, limits::size(limits::MCP_ERROR_BODY_BYTES), within).await
}

fn media(response: &Response) -> Media {
    let stated = header(response.headers(), &CONTENT_TYPE).unwrap_or_default();
    let kind = stated.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match kind.as_str() {
        "" => Media::Unstated,
        "application/json" => Media::Json,
        "text/event-stream" => Media::Events,
        _ => Media::Other(kind),
    }
}

/// A trouble in words: the second half of a sentence about the server.
pub(super) fn broken(trouble: &Trouble) -> String {
    match trouble {
        Trouble::NotSent { why, .. } | Trouble::Broken(why) => why.clone(),
    }
}
