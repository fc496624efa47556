//! One life of a server: its process tree, its handshake, its requests.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mission_contract::log::{CallEnd, CallResult};
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientConfig, ClientRequest, Implementation, ListToolsRequest,
    PaginatedRequestParams, ProtocolVersion, RequestMetaObject, ServerCapabilities, ServerPeerInfo,
};
use rmcp::service::{ClientCacheConfig, PeerRequestOptions, RequestHandle, RunningService, serve_directly};
use rmcp::{Peer, RoleClient};
use tokio::sync::OnceCell;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::client::{Silent, Tap, carrying, id_of};
use super::exchange::{Answer, Awaited, Exchange, Message, Reports, waiter};
use super::probe::{Handshake, PATIENCE, Refusal, handshake, probe};
use super::pump;
use super::request::ServerRequest;
use super::result::{Classified, classify, failed, protocol};
use crate::engine::request::ToolDispatch;
use crate::limits;
use crate::sys::guardian::End;
use crate::sys::spawn::{ChildTree, GuardianProgram, StderrTail};

/// Key of a call's `_meta` under which its idempotency key goes.
const IDEMPOTENCY_KEY: &str = "mission/idempotencyKey";

/// Why nothing is asked of a server any more: the second half of a sentence about it.
pub(crate) const BEING_ENDED: &str = "is being ended with the run";

/// How servers are started.
#[derive(Clone, Debug)]
pub(crate) struct Start {
    pub(crate) client_name: String,
    pub(crate) guardian_program: GuardianProgram,
    pub(crate) environment: BTreeMap<OsString, OsString>,
}

/// See the module's doc.
#[derive(Debug)]
pub(crate) struct Session {
    server: String,
    pub(crate) handshake: Handshake,
    exchange: Arc<Exchange>,
    peer: Peer<RoleClient>,
    life: Life,
    /// Held for as long as requests may be made: dropping it ends the client.
    _running: RunningService<RoleClient, Silent>,
}

/// The processes of a session and who serves their pipes.
#[derive(Debug)]
pub(crate) struct Life {
    tree: Mutex<Option<ChildTree>>,
    exchange: Arc<Exchange>,
    /// How it came to its end, once somebody has asked: what we do with the tree afterwards changes nothing in it.
    end: OnceCell<String>,
    stderr: StderrTail,
    program: String,
    /// Ends the server's input once what is queued is written.
    done: CancellationToken,
    pumps: Vec<JoinHandle<()>>,
}

impl Life {
    /// Ends the tree. A second call has nothing left to do.
    pub(crate) async fn close(&self) {
        self.done.cancel();
        let tree = self.tree.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(tree) = tree {
            tree.close().await;
        }
    }

    /// How the server came to its end, once its pipes are closed: the second half of a sentence about it.
    async fn end_in_words(&self) -> String {
        self.end.get_or_init(|| self.find_end()).await.clone()
    }

    async fn find_end(&self) -> String {
        let ended = self.tree.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(ChildTree::ended);
        if let Some(why) = self.exchange.why_closed() {
            return why;
        }
        let mut words = match ended {
            None => "was ended by us".to_owned(),
            Some(ended) => match timeout(Duration::from_millis(limits::MCP_END_MS), ended).await {
                Ok(End::NotStarted(why)) => return format!("could not be started from `{}`: {why}", self.program),
                Ok(end) => end.to_string(),
                Err(_) => "closed its pipes and ran on".to_owned(),
            },
        };
        self.stderr.settle().await;
        if let Some(last_words) = self.stderr.quoted() {
            words.push_str(&format!("; it last said: {last_words}"));
        }
        words
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        for pump in &self.pumps {
            pump.abort();
        }
    }
}

/// How a server is spoken to first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
    /// It is asked for its era.
    Probe,
    /// Its era is known: it shakes hands.
    Handshake,
}

/// A server of the stateless era may shake hands when it is started anew and that comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MaySpeakBoth(pub(crate) bool);

/// A start that came to nothing.
#[derive(Debug)]
pub(crate) struct Failed {
    /// Why: the second half of a sentence about the server.
    pub(crate) why: String,
    /// It speaks the stateless era, and this says whether it may speak the other one too.
    pub(crate) stateless: Option<MaySpeakBoth>,
    /// What is to be closed still.
    pub(crate) life: Option<Box<Life>>,
}

impl Session {
    /// Starts a server and shakes hands with it, within this time. `closing` gives it up, and leaves what is to be closed to the
    /// caller.
    pub(crate) async fn start(
        request: &ServerRequest,
        start: &Start,
        opening: Opening,
        within: Duration,
        reports: Reports,
        closing: &CancellationToken,
    ) -> Result<Self, Failed> {
        let spawned = ChildTree::spawn(&start.guardian_program, &request.argv, &start.environment, None);
        let mut tree =
            spawned.map_err(|error| Failed { why: format!("could not be started: {error}"), stateless: None, life: None })?;
        let (exchange, lines, answered) = Exchange::new(reports);
        let done = CancellationToken::new();
        let mut pumps = Vec::new();
        if let Some(stdout) = tree.stdout.take() {
            pumps.push(tokio::spawn(pump::read(stdout, exchange.clone())));
        }
        if let Some(stdin) = tree.stdin.take() {
            pumps.push(tokio::spawn(pump::write(stdin, lines, exchange.clone(), done.clone())));
        }
        let life = Life {
            exchange: exchange.clone(),
            stderr: tree.stderr(),
            tree: Mutex::new(Some(tree)),
            end: OnceCell::new(),
            program: request.argv.first().cloned().unwrap_or_default(),
            done,
            pumps,
        };
        let failed = |why, stateless, life| Err(Failed { why, stateless, life: Some(Box::new(life)) });
        let opened = async {
            match opening {
                Opening::Probe => probe(&exchange, &start.client_name, PATIENCE).await,
                Opening::Handshake => handshake(&exchange, &start.client_name).await,
            }
        };
        let opened = tokio::select! {
            opened = timeout(within, opened) => opened,
            () = closing.cancelled() => return failed(BEING_ENDED.to_owned(), None, life),
        };
        let handshake = match opened {
            Ok(Ok(shaken)) => shaken,
            Ok(Err(Refusal::Gone)) => return failed(life.end_in_words().await, None, life),
            Ok(Err(Refusal::Because(why))) => return failed(with_last_words(why, &life), None, life),
            Ok(Err(Refusal::Stateless { versions, may_speak_both })) => {
                let versions = if versions.is_empty() { "2026-07-28 or later".to_owned() } else { versions.join(", ") };
                let why = format!(
                    "speaks only the stateless era of the protocol ({versions}), which this build does not speak yet; use a version of the server that answers `initialize`"
                );
                return failed(why, Some(MaySpeakBoth(may_speak_both)), life);
            }
            Err(_) => {
                let why = format!("did not answer the handshake within {} s", request.timeout.as_secs_f64());
                return failed(with_last_words(why, &life), None, life);
            }
        };
        let mut config = ClientConfig::default();
        config.client_info = Implementation::new(start.client_name.clone(), env!("CARGO_PKG_VERSION"));
        config.protocol_version = ProtocolVersion::LATEST_WITH_INITIALIZE;
        let version = serde_json::from_value(handshake.version.clone().into()).unwrap_or(ProtocolVersion::LATEST_WITH_INITIALIZE);
        let info = ServerPeerInfo::new(version, ServerCapabilities::default());
        let running = serve_directly(Silent(config), Tap { exchange: exchange.clone(), answered }, Some(info));
        let peer = running.peer().clone();
        peer.set_response_cache_config(ClientCacheConfig::disabled()).await;
        Ok(Self { server: request.name.clone(), handshake, exchange, peer, life, _running: running })
    }

    /// Whether it can still be asked.
    pub(crate) fn is_alive(&self) -> bool {
        !self.exchange.closed().is_cancelled()
    }

    /// Waits until it cannot be asked any more, and says why.
    pub(crate) async fn death(&self) -> String {
        self.exchange.closed().cancelled().await;
        self.life.end_in_words().await
    }

    /// Ends it.
    pub(crate) async fn close(&self) {
        self.life.close().await;
    }

    /// One page of its tools.
    pub(crate) async fn list_page(&self, cursor: Option<String>, within: Duration) -> Result<Message, String> {
        let params = PaginatedRequestParams::default().with_cursor(cursor);
        let (handle, awaited) = self.ask(ListToolsRequest::with_param(params).into(), None, None).await?;
        match timeout(within, awaited.answer).await {
            Ok(Ok(Answer::Message(message))) => Ok(message),
            Ok(Ok(Answer::Unreadable(why))) => Err(why),
            Ok(Ok(Answer::NotSent(why))) => Err(why.to_owned()),
            Ok(Ok(Answer::Gone) | Err(_)) => Err(self.life.end_in_words().await),
            Err(_) => {
                self.give_up(handle, "the list took too long").await;
                Err(format!("did not list its tools within {:.1} s", within.as_secs_f64()))
            }
        }
    }

    /// Makes a call. `idle` is how long it may give no sign of life.
    pub(crate) async fn call(&self, dispatch: ToolDispatch, idle: Duration, cancel: &CancellationToken) -> Classified {
        let ToolDispatch { ordinal, name, arguments, key, .. } = dispatch;
        let server = self.server.as_str();
        let plain = |result| Classified { result, notices: Vec::new() };
        let mut meta = RequestMetaObject::new();
        meta.0.0.insert(IDEMPOTENCY_KEY.to_owned(), key.into());
        let params = CallToolRequestParams::new(name.clone()).with_arguments(arguments);
        let begun = Instant::now();
        let (handle, mut awaited) = match self.ask(CallToolRequest::new(params).into(), Some(ordinal), Some(meta)).await {
            Ok(asked) => asked,
            Err(why) => return plain(protocol(not_sent(server, &name, &why))),
        };
        let end = begun.checked_add(Duration::from_secs(limits::MCP_CALL_SECONDS));
        let mut idle_end = begun.checked_add(idle);
        loop {
            let deadline = [end, idle_end].into_iter().flatten().min();
            tokio::select! {
                biased;
                answer = &mut awaited.answer => {
                    return match answer {
                        Ok(Answer::Message(message)) => classify(message, server, &name),
                        Ok(Answer::Unreadable(why)) => plain(protocol(format!("The server `{server}` {why}. The call of `{name}` has no result."))),
                        Ok(Answer::NotSent(why)) => plain(protocol(not_sent(server, &name, why))),
                        Ok(Answer::Gone) | Err(_) => {
                            let how = self.life.end_in_words().await;
                            plain(failed(CallEnd::Died, format!(
                                "The server `{server}` {how}. It had not answered the call of `{name}`: whether the call took effect is unknown, and it is not repeated."
                            )))
                        }
                    };
                }
                () = cancel.cancelled() => {
                    self.give_up(handle, "the run gave the call up").await;
                    return plain(cancelled(server, &name));
                }
                () = awaited.progress.notified() => idle_end = Instant::now().checked_add(idle),
                () = at(deadline) => {
                    let why = if end.is_some_and(|end| Instant::now() >= end) {
                        format!("within {} s in all", limits::MCP_CALL_SECONDS)
                    } else {
                        format!("and gave no sign of life for {} s", idle.as_secs_f64())
                    };
                    self.give_up(handle, "the call took too long").await;
                    return plain(failed(CallEnd::Timeout, format!(
                        "The server `{server}` did not answer the call of `{name}` {why}. It was told to give it up: whether the call took effect is unknown, and it is not repeated."
                    )));
                }
            }
        }
    }

    async fn ask(
        &self,
        request: ClientRequest,
        call: Option<u64>,
        meta: Option<RequestMetaObject>,
    ) -> Result<(RequestHandle<RoleClient>, Awaited), String> {
        let (waiter, awaited) = waiter(call);
        let mut options = PeerRequestOptions::no_options();
        options.meta = meta;
        match self.peer.send_cancellable_request(carrying(request, waiter), options).await {
            Ok(handle) => Ok((handle, awaited)),
            Err(_) => Err(self.life.end_in_words().await),
        }
    }

    /// Nobody waits any more: the server is told, and a late answer is recognised. Takes no longer than a moment.
    async fn give_up(&self, handle: RequestHandle<RoleClient>, why: &str) {
        self.exchange.give_up(&id_of(&handle.id));
        let told = handle.cancel(Some(why.to_owned()));
        let _ = timeout(Duration::from_millis(limits::MCP_CANCEL_MS), told).await;
    }
}

/// The result of a call that we gave up.
pub(crate) fn cancelled(server: &str, tool: &str) -> CallResult {
    failed(
        CallEnd::Cancelled,
        format!(
            "The call of `{tool}` was given up before the server `{server}` had answered: whether it took effect is unknown."
        ),
    )
}

/// What is said of a call that never left.
pub(crate) fn not_sent(server: &str, tool: &str, why: &str) -> String {
    format!("The call of `{tool}` was not made, because the server `{server}` {why}.")
}

fn with_last_words(mut why: String, life: &Life) -> String {
    if let Some(last_words) = life.stderr.quoted() {
        why.push_str(&format!("; it last said: {last_words}"));
    }
    why
}

async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
