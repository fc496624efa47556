//! The wire to a server over HTTP: each message is a POST, each answer a body of JSON or a stream of events.
//!
//! * `client`: the HTTP clients of a run, and words for what goes wrong.
//! * `post`: one message from here to its end; `stream`: an answer that comes as events, and picking up one that broke off.
//! * `listen`: the stream on which a server of the handshake era speaks of its own accord.
//! * `status`: a server's no, in words.

pub(crate) mod client;
mod listen;
mod post;
mod status;
mod stream;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mission_contract::log::Era;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue};
use reqwest::{Client, Method, RequestBuilder, Response};
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use self::client::{Trouble, trouble};
use super::exchange::Exchange;
use super::outgoing::{Asked, Outgoing, What};
use super::versions;
use crate::limits;
use crate::tools::address::{Address, Token};

/// What is said of a server that has lost our session: the second half of a sentence about it.
const SESSION_LOST: &str = "no longer knows the session that it gave";

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// A wire. Dropping it ends whatever is under way.
#[derive(Debug)]
pub(crate) struct HttpWire {
    link: Arc<Link>,
    serving: Mutex<Option<JoinHandle<()>>>,
    listening: Mutex<Option<JoinHandle<()>>>,
}

/// What the tasks of a wire share.
#[derive(Debug)]
struct Link {
    client: Client,
    address: Address,
    /// The `Authorization` header.
    credential: Option<HeaderValue>,
    exchange: Arc<Exchange>,
    /// The session that a server of the handshake era has given us.
    session: Mutex<Option<HeaderValue>>,
    done: CancellationToken,
}

impl HttpWire {
    /// Opens a wire. Nothing is connected yet.
    ///
    /// # Errors
    /// Why not: the second half of a sentence about the server.
    pub(crate) fn open(
        client: Client,
        address: &Address,
        token: Option<&Token>,
        exchange: &Arc<Exchange>,
        outgoing: mpsc::Receiver<Outgoing>,
    ) -> Result<Self, String> {
        let credential = match (token, address.basic()) {
            (Some(token), _) => Some(format!("Bearer {}", token.reveal())),
            (None, Some(basic)) => Some(format!("Basic {}", basic.reveal())),
            (None, None) => None,
        };
        let credential = credential.map(|value| {
            HeaderValue::from_str(&value).map(|mut value| {
                value.set_sensitive(true);
                value
            })
        });
        let link = Arc::new(Link {
            client,
            address: address.clone(),
            credential: credential.transpose().map_err(|_| "has a credential that no header can hold".to_owned())?,
            exchange: exchange.clone(),
            session: Mutex::default(),
            done: CancellationToken::new(),
        });
        let serving = tokio::spawn(link.clone().serve(outgoing));
        Ok(Self { link, serving: Mutex::new(Some(serving)), listening: Mutex::default() })
    }

    /// Listens to what a server of the handshake era says of its own accord, beside everything else.
    pub(crate) fn listen(&self) {
        let listening = tokio::spawn(self.link.clone().listen());
        if let Some(earlier) = self.listening.lock().unwrap_or_else(PoisonError::into_inner).replace(listening) {
            earlier.abort();
        }
    }

    /// Whether the server has given us a session.
    pub(crate) fn has_session(&self) -> bool {
        self.link.session.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Lets what was said last go out, gives the session back, and ends whatever is under way.
    pub(crate) async fn close(&self) {
        self.link.done.cancel();
        let serving = self.serving.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(serving) = serving {
            let _ = serving.await;
            let farewell = timeout(Duration::from_millis(limits::MCP_FAREWELL_MS), self.link.give_back());
            let _ = farewell.await;
        }
        self.link.exchange.close();
        self.stop_listening();
    }

    fn stop_listening(&self) {
        if let Some(listening) = self.listening.lock().unwrap_or_else(PoisonError::into_inner).take() {
            listening.abort();
        }
    }
}

impl Drop for HttpWire {
    fn drop(&mut self) {
        self.link.done.cancel();
        self.stop_listening();
    }
}

impl Link {
    /// Carries what comes, each message on a task of its own, until it is told to end.
    async fn serve(self: Arc<Self>, mut outgoing: mpsc::Receiver<Outgoing>) {
        let cap = limits::size(limits::MCP_POSTS);
        let mut requests = JoinSet::new();
        let mut others = JoinSet::new();
        loop {
            let under_way = requests.len().saturating_add(others.len());
            tokio::select! {
                biased;
                next = outgoing.recv(), if under_way < cap => match next {
                    Some(Outgoing { line, what: What::Request { id, asked, given_up } }) => {
                        requests.spawn(self.clone().request(id, asked, line, given_up));
                    }
                    Some(Outgoing { line, what }) => {
                        let link = self.clone();
                        others.spawn(async move {
                            let taken = link.tell(line).await;
                            if let What::Notification(Some(waiting)) = what {
                                let _ = waiting.send(taken);
                            }
                        });
                    }
                    None => break,
                },
                Some(_) = requests.join_next() => {}
                Some(_) = others.join_next() => {}
                () = self.done.cancelled() => break,
            }
        }
        drop(requests);
        // A cancellation that was just said is to reach the server.
        let told = async { while others.join_next().await.is_some() {} };
        let _ = timeout(Duration::from_millis(limits::MCP_FAREWELL_MS), told).await;
    }

    /// A request to the server, with everything in its head that the era wants there. `asked` is nothing for what is no request.
    fn to_server(&self, method: Method, asked: Option<&Asked>) -> RequestBuilder {
        let mut request = self.client.request(method, self.address.url().clone());
        if let Some(credential) = &self.credential {
            request = request.header(AUTHORIZATION, credential.clone());
        }
        let agreed = self.exchange.agreed();
        let (era, version) = match (agreed, asked.map(|asked| asked.method)) {
            (Some(agreed), _) => (agreed.era, agreed.version.as_str()),
            (None, Some("server/discover")) => (Era::Stateless, versions::newest_stateless()),
            (None, _) => return request,
        };
        if versions::has_header(version) {
            request = request.header(VERSION, version);
        }
        match era {
            Era::Handshake => match self.session.lock().unwrap_or_else(PoisonError::into_inner).clone() {
                Some(session) => request.header(SESSION, session),
                None => request,
            },
            Era::Stateless => {
                let Some(asked) = asked else { return request };
                request = request.header(METHOD, asked.method);
                if let Some(tool) = &asked.tool {
                    request = request.header(NAME, tool);
                }
                asked.mirrored.iter().fold(request, |request, (name, value)| request.header(name, value))
            }
        }
    }

    fn post(&self, line: Vec<u8>, asked: Option<&Asked>) -> RequestBuilder {
        self.to_server(Method::POST, asked)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, text/event-stream")
            .body(line)
    }

    /// Sends a request, and again when nobody was there to take it: nothing has been said then.
    async fn send(&self, request: RequestBuilder) -> Result<Response, Trouble> {
        let mut wait = Duration::from_millis(limits::MCP_RETRY_MS);
        for _ in 0..limits::MCP_CONNECT_RETRIES {
            let Some(copy) = request.try_clone() else { break };
            match copy.send().await.map_err(|error| trouble(&error, &self.address)) {
                Err(Trouble::NotSent { is_passing: true, .. }) => sleep(wait).await,
                sent => return sent,
            }
            wait = wait.saturating_mul(4);
        }
        request.send().await.map_err(|error| trouble(&error, &self.address))
    }

    /// The session is gone at the server: whoever waits is told, and nothing more is asked in it.
    fn lose_session(&self) {
        *self.session.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.exchange.close_because(SESSION_LOST);
    }

    /// Gives the session back. Whether the server takes it is its own affair.
    async fn give_back(&self) {
        if self.session.lock().unwrap_or_else(PoisonError::into_inner).is_some() {
            let _ = self.to_server(Method::DELETE, None).send().await;
        }
    }
}
