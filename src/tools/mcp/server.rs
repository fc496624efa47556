//! One server over its lives: started, listed, called, started again after a death. A call is never repeated.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mission_contract::log::{CallEnd, CallResult, Era, Observed, ServerCondition, ServerState, ToolDefinition};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::exchange::Reports;
use super::list::{Listing, list};
use super::request::ServerRequest;
use super::result::{failed, protocol};
use super::session::{BEING_ENDED, Failed, MaySpeakBoth, Opening, Session, Start, not_sent};
use crate::engine::request::ToolDispatch;
use crate::limits;

/// See the module's doc.
#[derive(Debug)]
pub(crate) struct Server {
    request: ServerRequest,
    start: Start,
    reports: Reports,
    /// Held while it is started again; never while it is asked something.
    current: tokio::sync::Mutex<Current>,
    /// Restarts since a call of it last came to its end.
    restarts: AtomicU64,
    died_at: Mutex<Option<Instant>>,
    /// It answers the probe in the stateless era, and shakes hands when that comes first.
    speaks_both: AtomicBool,
    /// Notices about its list that were told already.
    told: Mutex<BTreeSet<String>>,
    /// What is being closed beside the run.
    retired: Mutex<Vec<JoinHandle<()>>>,
    closing: CancellationToken,
}

#[derive(Debug, Default)]
struct Current {
    /// Its present or last life; none when it never came up.
    session: Option<Arc<Session>>,
    state: ServerState,
    /// Why it is not up: the second half of a sentence about it.
    why: String,
    tools: Vec<ToolDefinition>,
}

/// What one server gives to a discovery.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) state: ServerState,
    pub(crate) tools: Vec<ToolDefinition>,
    pub(crate) observed: Vec<Observed>,
}

/// A start that came to nothing: why, and whether the server speaks the stateless era only.
struct NotUp {
    why: String,
    is_stateless: bool,
}

impl Server {
    pub(crate) fn new(request: ServerRequest, start: Start, reports: Reports) -> Arc<Self> {
        let state = ServerState {
            name: request.name.clone(),
            transport: "stdio".to_owned(),
            optional: request.optional,
            ..ServerState::default()
        };
        Arc::new(Self {
            request,
            start,
            reports,
            current: tokio::sync::Mutex::new(Current { state, ..Current::default() }),
            restarts: AtomicU64::new(0),
            died_at: Mutex::default(),
            speaks_both: AtomicBool::new(false),
            told: Mutex::default(),
            retired: Mutex::default(),
            closing: CancellationToken::new(),
        })
    }

    /// Its namespace.
    pub(crate) fn name(&self) -> &str {
        &self.request.name
    }

    /// It cannot even be tried, for this reason.
    pub(crate) async fn refuse(&self, why: String) -> Part {
        let mut current = self.current.lock().await;
        self.not_up(&mut current, NotUp { why, is_stateless: false });
        part(&current, Vec::new())
    }

    /// Starts it and lists its tools, within its timeout.
    pub(crate) async fn begin(self: &Arc<Self>) -> Part {
        let mut current = self.current.lock().await;
        let notices = match self.bring_up(&mut current).await {
            Ok(notices) => notices,
            Err(not_up) => {
                self.not_up(&mut current, not_up);
                Vec::new()
            }
        };
        part(&current, notices)
    }

    /// Lists its tools again. A dead one is started again; one that never came up is not. A live one that cannot list them
    /// keeps those it had.
    pub(crate) async fn list(self: &Arc<Self>) -> Part {
        let session = {
            let mut current = self.current.lock().await;
            match current.session.clone() {
                None => return part(&current, Vec::new()),
                Some(session) if session.is_alive() => session,
                Some(_) => {
                    let notices = self.revive(&mut current, false).await.unwrap_or_default();
                    return part(&current, notices);
                }
            }
        };
        let listed = list(self.name(), &session, self.request.timeout).await;
        let mut current = self.current.lock().await;
        let notices = match listed {
            Ok(Listing { tools, notices }) => {
                current.tools = tools;
                self.untold(notices)
            }
            Err(why) => {
                let detail = format!("The server {why}; the tools that it had are kept.");
                self.untold(vec![("list_failed", detail)])
            }
        };
        part(&current, notices)
    }

    /// Makes a call. A dead server is started again before; if that fails, nothing is sent.
    pub(crate) async fn call(self: Arc<Self>, dispatch: ToolDispatch, cancel: CancellationToken) -> CallResult {
        let (tool, ordinal) = (dispatch.name.clone(), dispatch.ordinal);
        let session = tokio::select! {
            biased;
            session = self.clone().session(tool.clone()) => session,
            () = cancel.cancelled() => {
                return failed(CallEnd::Cancelled, format!("The call of `{tool}` was given up before it was made."));
            }
        };
        let session = match session {
            Ok(session) => session,
            Err(why) => return protocol(not_sent(self.name(), &tool, &why)),
        };
        let classified = session.call(dispatch, self.request.timeout, &cancel).await;
        for (what, detail) in classified.notices {
            self.reports.tell(what, detail, Some(ordinal));
        }
        if matches!(classified.result.end, CallEnd::Ok | CallEnd::Error | CallEnd::Protocol) && session.is_alive() {
            self.restarts.store(0, Ordering::Relaxed);
        }
        classified.result
    }

    /// Ends it.
    pub(crate) async fn close(&self) {
        self.closing.cancel();
        let session = self.current.lock().await.session.take();
        if let Some(session) = session {
            session.close().await;
        }
        let retired = std::mem::take(&mut *self.retired.lock().unwrap_or_else(PoisonError::into_inner));
        for closing in retired {
            let _ = closing.await;
        }
    }

    /// A session that can be asked for this tool.
    async fn session(self: Arc<Self>, tool: String) -> Result<Arc<Session>, String> {
        {
            let current = self.current.lock().await;
            match &current.session {
                None if self.closing.is_cancelled() => return Err(BEING_ENDED.to_owned()),
                None => return Err(current.why.clone()),
                Some(session) if session.is_alive() => return Ok(session.clone()),
                Some(_) => {}
            }
        }
        // On a task of its own: a call that is given up meanwhile does not leave half a start behind.
        let revived = tokio::spawn(async move {
            let mut current = self.current.lock().await;
            if !current.session.as_ref().is_some_and(|session| session.is_alive()) {
                let notices = self.revive(&mut current, true).await?;
                for observed in notices {
                    self.reports.tell(&observed.what, observed.detail, observed.of);
                }
            }
            if !current.tools.iter().any(|definition| definition.name == tool) {
                return Err("died, was started again, and no longer has this tool".to_owned());
            }
            current.session.clone().ok_or_else(|| BEING_ENDED.to_owned())
        });
        revived.await.unwrap_or_else(|_| Err("could not be started again".to_owned()))
    }

    /// Starts a dead server again: not at once when it keeps dying, and not for ever.
    async fn revive(self: &Arc<Self>, current: &mut Current, tell_stale: bool) -> Result<Vec<Observed>, String> {
        let restarts = self.restarts.load(Ordering::Relaxed);
        if restarts >= limits::MCP_RESTARTS {
            let why = format!("has died {restarts} times since a call of it last came to its end, and is not started again");
            self.not_up(current, NotUp { why: why.clone(), is_stateless: false });
            return Err(why);
        }
        self.restarts.store(restarts.saturating_add(1), Ordering::Relaxed);
        let died_at = *self.died_at.lock().unwrap_or_else(PoisonError::into_inner);
        let backoff = Duration::from_millis(
            limits::MCP_RESTART_MS.saturating_mul(4u64.saturating_pow(u32::try_from(restarts).unwrap_or(u32::MAX))),
        );
        if let Some(at) = died_at.and_then(|at| at.checked_add(backoff)) {
            tokio::select! {
                () = tokio::time::sleep_until(at) => {}
                () = self.closing.cancelled() => return Err(BEING_ENDED.to_owned()),
            }
        }
        match self.bring_up(current).await {
            Ok(mut notices) => {
                let detail = "The server had died and was started again; what it held in memory is gone.".to_owned();
                let server = Some(self.name().to_owned());
                notices.insert(0, Observed { what: "server_restarted".to_owned(), detail, server, of: None });
                if tell_stale {
                    self.reports.stale();
                }
                Ok(notices)
            }
            Err(not_up) => {
                *self.died_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
                let why = format!("is gone and could not be started again: it {}", not_up.why);
                self.not_up(current, not_up);
                Err(why)
            }
        }
    }

    /// Starts it, shakes hands, lists its tools; all within its timeout.
    async fn bring_up(self: &Arc<Self>, current: &mut Current) -> Result<Vec<Observed>, NotUp> {
        if self.closing.is_cancelled() {
            return Err(NotUp { why: BEING_ENDED.to_owned(), is_stateless: false });
        }
        let begun = Instant::now();
        let session = Arc::new(self.open(begun).await?);
        let left = self.request.timeout.saturating_sub(begun.elapsed());
        let listed = tokio::select! {
            listed = list(self.name(), &session, left) => listed,
            () = self.closing.cancelled() => Err(BEING_ENDED.to_owned()),
        };
        let Listing { tools, notices } = match listed {
            Ok(listing) => listing,
            Err(why) => {
                self.retire(async move { session.close().await });
                return Err(NotUp { why, is_stateless: false });
            }
        };
        let handshake = &session.handshake;
        current.state.state = ServerCondition::Ready;
        current.state.era = Some(Era::Handshake);
        current.state.version = Some(handshake.version.clone());
        current.state.implementation = handshake.implementation.clone();
        current.state.detail = None;
        current.tools = tools;
        current.session = Some(session.clone());
        self.watch(session);
        Ok(self.untold(notices))
    }

    /// Starts it and shakes hands. A server that may speak both eras, and holds a connection to the one it began with, is started
    /// a second time for that.
    async fn open(&self, begun: Instant) -> Result<Session, NotUp> {
        let attempt = async |opening| {
            let left = self.request.timeout.saturating_sub(begun.elapsed());
            let started = Session::start(&self.request, &self.start, opening, left, self.reports.clone(), &self.closing).await;
            started.map_err(|Failed { why, stateless, life }| {
                if let Some(life) = life {
                    self.retire(async move { life.close().await });
                }
                (NotUp { why, is_stateless: stateless.is_some() }, stateless)
            })
        };
        let known = self.speaks_both.load(Ordering::Relaxed);
        let opening = if known { Opening::Handshake } else { Opening::Probe };
        match attempt(opening).await {
            Ok(session) => Ok(session),
            Err((not_up, Some(MaySpeakBoth(true)))) => match attempt(Opening::Handshake).await {
                Ok(session) => {
                    self.speaks_both.store(true, Ordering::Relaxed);
                    Ok(session)
                }
                Err(_) => Err(not_up),
            },
            Err((not_up, _)) => {
                // Whatever is remembered of it is asked anew the next time.
                self.speaks_both.store(false, Ordering::Relaxed);
                Err(not_up)
            }
        }
    }

    /// Waits for the death of a session, tells it, and ends what is left of it.
    fn watch(self: &Arc<Self>, session: Arc<Session>) {
        let server = self.clone();
        tokio::spawn(async move {
            let how = session.death().await;
            if !server.closing.is_cancelled() {
                *server.died_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
                server.reports.tell("server_died", format!("The server {how}."), None);
            }
            session.close().await;
        });
    }

    fn retire(&self, closing: impl Future<Output = ()> + Send + 'static) {
        let mut retired = self.retired.lock().unwrap_or_else(PoisonError::into_inner);
        retired.retain(|closing| !closing.is_finished());
        retired.push(tokio::spawn(closing));
    }

    fn not_up(&self, current: &mut Current, not_up: NotUp) {
        current.state.state = ServerCondition::Failed;
        if not_up.is_stateless {
            current.state.era = Some(Era::Stateless);
        }
        current.state.detail = Some(format!("The server `{}` {}.", self.request.name, not_up.why));
        current.why = not_up.why;
        current.tools.clear();
    }

    /// Those notices that were not told before, each about this server.
    fn untold(&self, notices: Vec<(&'static str, String)>) -> Vec<Observed> {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if u64::try_from(told.len()).unwrap_or(u64::MAX) > limits::MCP_TOOLS {
            told.clear();
        }
        notices
            .into_iter()
            .filter(|(_, detail)| told.insert(detail.clone()))
            .map(|(what, detail)| Observed { what: what.to_owned(), detail, server: Some(self.request.name.clone()), of: None })
            .collect()
    }
}

fn part(current: &Current, observed: Vec<Observed>) -> Part {
    Part { state: current.state.clone(), tools: current.tools.clone(), observed }
}
