//! One life of a server: its wire, what was agreed upon, its requests.

use std::sync::Arc;
use std::time::Duration;

use mission_contract::log::{CallEnd, CallResult, Era};
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientConfig, ClientRequest, Implementation, ListToolsRequest,
    PaginatedRequestParams, PingRequest, ProtocolVersion, RequestMetaObject, ServerCapabilities, ServerPeerInfo,
    SubscriptionFilter, SubscriptionsListenRequest, SubscriptionsListenRequestParams,
};
use rmcp::service::{ClientCacheConfig, PeerRequestOptions, RequestHandle, RunningService, serve_directly};
use rmcp::{Peer, RoleClient};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::client::{Silent, Tap, carrying, id_of};
use super::eras::{Agreement, HEADER_MISMATCH, PATIENCE, Refusal, UNSUPPORTED_VERSION, agree, stateless_error};
use super::exchange::{Answer, Awaited, Exchange, Message, Refused, Reports, waiter};
use super::outgoing::Asked;
use super::request::ServerRequest;
use super::result::{Classified, classify, failed, protocol};
use super::wire::{Start, Wire};
use crate::engine::request::ToolDispatch;
use crate::limits;

/// Key of a call's `_meta` under which its idempotency key goes.
const IDEMPOTENCY_KEY: &str = "mission/idempotencyKey";

/// Why nothing is asked of a server any more: the second half of a sentence about it.
pub(crate) const BEING_ENDED: &str = "is being ended with the run";

/// See the module's doc.
#[derive(Debug)]
pub(crate) struct Session {
    server: String,
    pub(crate) agreement: Agreement,
    exchange: Arc<Exchange>,
    peer: Peer<RoleClient>,
    wire: Wire,
    /// Held for as long as requests may be made: dropping it ends the client.
    _running: RunningService<RoleClient, Silent>,
}

/// A start that came to nothing.
#[derive(Debug)]
pub(crate) struct Failed {
    /// Why: the second half of a sentence about the server.
    pub(crate) why: String,
    /// What is to be closed still.
    pub(crate) wire: Option<Box<Wire>>,
}

/// A call as a session makes it.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) dispatch: ToolDispatch,
    /// Its arguments that travel as headers too: header → value.
    pub(crate) mirrored: Vec<(String, String)>,
    /// How long it may give no sign of life.
    pub(crate) idle: Duration,
    /// How long it may take in all.
    pub(crate) limit: Duration,
}

impl Session {
    /// Reaches a server and comes to an agreement with it, within this time. `closing` gives it up, and leaves what is to be closed to
    /// the caller.
    pub(crate) async fn start(
        request: &ServerRequest,
        start: &Start,
        within: Duration,
        reports: Reports,
        closing: &CancellationToken,
    ) -> Result<Self, Failed> {
        let (exchange, outgoing, answered) = Exchange::new(reports);
        let wire = Wire::open(&request.reach, start, &exchange, outgoing).map_err(|why| Failed { why, wire: None })?;
        let failed = |why, wire| Err(Failed { why, wire: Some(Box::new(wire)) });
        let agreed = tokio::select! {
            agreed = timeout(within, agree(&exchange, &start.client_name, PATIENCE)) => agreed,
            () = closing.cancelled() => return failed(BEING_ENDED.to_owned(), wire),
        };
        let agreement = match agreed {
            Ok(Ok(agreement)) => agreement,
            Ok(Err(Refusal::Gone)) => return failed(wire.end_in_words(&exchange).await, wire),
            Ok(Err(Refusal::Because(why))) => return failed(why + &wire.last_words(), wire),
            Err(_) => {
                let why = format!("did not answer the handshake within {} s", request.timeout.as_secs_f64());
                return failed(why + &wire.last_words(), wire);
            }
        };
        let newest = match agreement.era {
            Era::Handshake => ProtocolVersion::LATEST_WITH_INITIALIZE,
            Era::Stateless => ProtocolVersion::NO_INITIALIZE,
        };
        let mut config = ClientConfig::default();
        config.client_info = Implementation::new(start.client_name.clone(), env!("CARGO_PKG_VERSION"));
        config.protocol_version = newest.clone();
        // In the stateless era this is what makes it put the metadata on each request.
        let version = serde_json::from_value(agreement.version.clone().into()).unwrap_or(newest);
        let info = ServerPeerInfo::new(version, ServerCapabilities::default());
        let running = serve_directly(Silent(config), Tap { exchange: exchange.clone(), answered }, Some(info));
        let peer = running.peer().clone();
        peer.set_response_cache_config(ClientCacheConfig::disabled()).await;
        Ok(Self { server: request.name.clone(), agreement, exchange, peer, wire, _running: running })
    }

    /// Whether it can still be asked.
    pub(crate) fn is_alive(&self) -> bool {
        !self.exchange.closed().is_cancelled()
    }

    /// Whether the server remembers us by a session that it may forget.
    pub(crate) fn is_kept_by_server(&self) -> bool {
        self.wire.has_session()
    }

    /// Asks for a sign of life. What comes of it is seen by whether the session is alive then.
    pub(crate) async fn ping(&self, within: Duration) {
        let asked = self.ask(PingRequest::default().into(), Asked::of("ping"), None).await;
        let Ok((handle, mut awaited)) = asked else { return };
        if timeout(within, &mut awaited.answer).await.is_err() {
            self.give_up(handle, "the sign of life took too long").await;
        }
    }

    /// Whether arguments may travel as headers.
    pub(crate) fn has_headers(&self) -> bool {
        self.wire.closes_to_cancel(self.exchange.is_stateless())
    }

    /// Since when, by count, the server tells us when its list changes; nothing when it does not.
    pub(crate) fn hears_changes(&self) -> Option<u64> {
        self.exchange.hears_changes()
    }

    /// Waits until it cannot be asked any more, and says why.
    pub(crate) async fn death(&self) -> String {
        self.exchange.closed().cancelled().await;
        self.wire.end_in_words(&self.exchange).await
    }

    /// Ends it.
    pub(crate) async fn close(&self) {
        self.wire.close().await;
    }

    /// Sees to it that changes of the server's list are heard of, where it declares that it tells them. Nothing waits for it.
    pub(crate) fn listen(self: &Arc<Self>) {
        if !self.agreement.declares_changes {
            return;
        }
        match (self.agreement.era, &self.wire) {
            (Era::Handshake, Wire::Child(_)) => self.exchange.set_hears_changes(true),
            (Era::Handshake, Wire::Http(http)) => http.listen(),
            (Era::Stateless, _) => {
                let session = self.clone();
                tokio::spawn(async move { session.subscribe().await });
            }
        }
    }

    /// Keeps a subscription to changes of the list up: not for ever when it ends at once.
    async fn subscribe(&self) {
        let mut in_a_row = 0u64;
        let mut wait = Duration::from_millis(limits::MCP_RESUME_MS);
        while in_a_row <= limits::MCP_LISTENS && self.is_alive() {
            let begun = Instant::now();
            let filter = SubscriptionFilter::builder().tools_list_changed().build();
            let request = SubscriptionsListenRequest::new(SubscriptionsListenRequestParams::new(filter));
            let asked = Asked { is_standing: true, ..Asked::of("subscriptions/listen") };
            let Ok((_handle, awaited)) = self.ask(ClientRequest::from(request), asked, None).await else { return };
            // Its answer is its end; the first thing that it says is what it grants.
            let ended = awaited.answer.await;
            self.exchange.set_hears_changes(false);
            match ended {
                Ok(Answer::Message(message)) if message.error().is_some() => return,
                Ok(Answer::Message(_) | Answer::Lost(_) | Answer::NotSent(_)) => {}
                Ok(Answer::Refused(refused)) if refused.is_passing() => {}
                _ => return,
            }
            if begun.elapsed() >= Duration::from_secs(limits::MCP_STEADY_SECONDS) {
                in_a_row = 0;
                wait = Duration::from_millis(limits::MCP_RESUME_MS);
            } else {
                in_a_row = in_a_row.saturating_add(1);
                wait = wait.saturating_mul(2);
            }
            tokio::select! {
                () = sleep(wait) => {}
                () = self.exchange.closed().cancelled() => return,
            }
        }
    }

    /// One page of its tools. Where nothing or nobody could be asked for a moment it is asked again: that is only reading.
    pub(crate) async fn list_page(&self, cursor: Option<String>, within: Duration) -> Result<Message, String> {
        let late = || format!("did not list its tools within {:.1} s", within.as_secs_f64());
        let end = Instant::now().checked_add(within);
        let mut wait = Duration::from_millis(limits::MCP_RETRY_MS);
        let mut retries = 0u64;
        loop {
            let params = PaginatedRequestParams::default().with_cursor(cursor.clone());
            let request = ListToolsRequest::with_param(params).into();
            let (handle, mut awaited) = self.ask(request, Asked::of("tools/list"), None).await?;
            let answer = tokio::select! {
                biased;
                answer = &mut awaited.answer => answer,
                () = at(end) => {
                    self.give_up(handle, "the list took too long").await;
                    return Err(late());
                }
            };
            let (why, pause) = match answer {
                Ok(Answer::Message(message)) => {
                    self.look_at(&message);
                    return Ok(message);
                }
                Ok(Answer::Refused(refused)) if refused.is_passing() => (refused.why, refused.retry_after),
                Ok(Answer::Lost(why)) => (why, None),
                Ok(Answer::Unreadable(why) | Answer::NotSent(why) | Answer::Refused(Refused { why, .. })) => return Err(why),
                Ok(Answer::Gone) | Err(_) => return Err(self.wire.end_in_words(&self.exchange).await),
            };
            if retries >= limits::MCP_LIST_RETRIES {
                return Err(why);
            }
            retries = retries.saturating_add(1);
            tokio::select! {
                () = sleep(pause.unwrap_or(wait)) => {}
                () = at(end) => return Err(why),
            }
            wait = wait.saturating_mul(4);
        }
    }

    /// Makes a call.
    pub(crate) async fn call(&self, call: Call, cancel: &CancellationToken) -> Classified {
        let Call { dispatch: ToolDispatch { ordinal, name, arguments, key, .. }, mirrored, idle, limit } = call;
        let server = self.server.as_str();
        let plain = |result| Classified { result, notices: Vec::new() };
        let mut meta = RequestMetaObject::new();
        meta.0.0.insert(IDEMPOTENCY_KEY.to_owned(), key.into());
        let params = CallToolRequestParams::new(name.clone()).with_arguments(arguments);
        let asked = Asked { tool: Some(name.clone()), mirrored, call: Some(ordinal), ..Asked::of("tools/call") };
        let begun = Instant::now();
        let (handle, mut awaited) = match self.ask(CallToolRequest::new(params).into(), asked, Some(meta)).await {
            Ok(asked) => asked,
            Err(why) => return plain(protocol(not_sent(server, &name, &why))),
        };
        let end = begun.checked_add(limit);
        let mut idle_end = begun.checked_add(idle);
        loop {
            let deadline = [end, idle_end].into_iter().flatten().min();
            tokio::select! {
                biased;
                answer = &mut awaited.answer => {
                    return match answer {
                        Ok(Answer::Message(message)) => {
                            self.look_at(&message);
                            classify(message, server, &name)
                        }
                        Ok(answer) => plain(self.failure(answer, &name).await),
                        Err(_) => plain(self.failure(Answer::Gone, &name).await),
                    };
                }
                () = cancel.cancelled() => {
                    self.give_up(handle, "the run gave the call up").await;
                    return plain(cancelled(server, &name));
                }
                () = awaited.progress.notified() => idle_end = Instant::now().checked_add(idle),
                () = at(deadline) => {
                    let why = if end.is_some_and(|end| Instant::now() >= end) {
                        format!("within {} s in all", limit.as_secs_f64())
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

    /// A server that speaks another version than it did: the next use finds out which. One that misses headers wants others for its
    /// tools than it did: they are listed again.
    fn look_at(&self, message: &Message) {
        match stateless_error(message) {
            Some((UNSUPPORTED_VERSION, _)) => {
                self.exchange.close_because("no longer speaks the version of the protocol that was agreed upon");
            }
            Some((HEADER_MISMATCH, _)) => self.exchange.list_changed(),
            _ => {}
        }
    }

    /// What comes of a call that got no message for an answer.
    async fn failure(&self, answer: Answer, name: &str) -> CallResult {
        let server = self.server.as_str();
        let unknown = |why: &str| {
            failed(
                CallEnd::Died,
                format!(
                    "The server `{server}` {why}. It had not answered the call of `{name}`: whether the call took effect is unknown, and it is not repeated."
                ),
            )
        };
        match answer {
            Answer::Message(message) => classify(message, server, name).result,
            Answer::Unreadable(why) => protocol(format!("The server `{server}` {why}. The call of `{name}` has no result.")),
            Answer::Refused(refused) if refused.may_have_acted() => unknown(&refused.why),
            Answer::Refused(Refused { why, .. }) => {
                protocol(format!("The server `{server}` {why}. The call of `{name}` was not carried out."))
            }
            Answer::Lost(why) => unknown(&why),
            Answer::NotSent(why) => protocol(not_sent(server, name, &why)),
            Answer::Gone => unknown(&self.wire.end_in_words(&self.exchange).await),
        }
    }

    async fn ask(
        &self,
        request: ClientRequest,
        asked: Asked,
        meta: Option<RequestMetaObject>,
    ) -> Result<(RequestHandle<RoleClient>, Awaited), String> {
        let (waiter, awaited) = waiter(asked);
        let mut options = PeerRequestOptions::no_options();
        options.meta = meta;
        match self.peer.send_cancellable_request(carrying(request, waiter), options).await {
            Ok(handle) => Ok((handle, awaited)),
            Err(_) => Err(self.wire.end_in_words(&self.exchange).await),
        }
    }

    /// Nobody waits any more: the server is told in the way of its era, and a late answer is recognised. Takes no longer than a moment.
    async fn give_up(&self, handle: RequestHandle<RoleClient>, why: &str) {
        let id = id_of(&handle.id);
        self.exchange.give_up(&id);
        if self.wire.closes_to_cancel(self.exchange.is_stateless()) {
            return self.exchange.release(&id);
        }
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

async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
