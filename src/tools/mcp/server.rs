//! One server over its lives: started, listed, called, started again after a death. A call is never repeated.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mission_contract::log::{CallEnd, CallResult, Observed, ServerCondition, ServerState, ToolDefinition};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::exchange::Reports;
use super::list::{Listing, list};
use super::mirror;
use super::output::Outputs;
use super::request::{Reach, ServerRequest};
use super::result::{failed, protocol};
use super::session::{BEING_ENDED, Call, Failed, Session, not_sent};
use super::wire::Start;
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
    /// What its tools promise about their results.
    outputs: Outputs,
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
    tools: Arc<Vec<ToolDefinition>>,
    /// The same as the server sent them.
    raw: Vec<String>,
    /// Since when, by count, it told of changes when it was last listed.
    heard: Option<u64>,
}

/// What one server gives to a discovery.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) state: ServerState,
    pub(crate) tools: Arc<Vec<ToolDefinition>>,
    pub(crate) observed: Vec<Observed>,
}

impl Server {
    pub(crate) fn new(request: ServerRequest, start: Start, reports: Reports) -> Arc<Self> {
        let state = ServerState {
            name: request.name.clone(),
            transport: request.reach.transport().to_owned(),
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
            outputs: Outputs::default(),
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
        self.not_up(&mut current, why);
        part(&current, Vec::new())
    }

    /// Starts it and lists its tools, within its timeout.
    pub(crate) async fn begin(self: &Arc<Self>) -> Part {
        let mut current = self.current.lock().await;
        let notices = match self.bring_up(&mut current).await {
            Ok(notices) => notices,
            Err(why) => {
                self.not_up(&mut current, why);
                Vec::new()
            }
        };
        part(&current, notices)
    }

    /// Lists its tools again. A dead one is started again; one that never came up is not. A live one that cannot list them
    /// keeps those it had.
    pub(crate) async fn list(self: &Arc<Self>) -> Part {
        let alive = {
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
        let notices = self.list_live(&alive).await;
        let mut current = self.current.lock().await;
        if !alive.is_alive() && current.session.as_ref().is_some_and(|session| Arc::ptr_eq(session, &alive)) {
            // It was found out by asking. Listing is only reading: it is done again.
            let notices = self.revive(&mut current, false).await.unwrap_or_default();
            return part(&current, notices);
        }
        part(&current, notices.unwrap_or_default())
    }

    /// Lists its tools again if it does not tell when they change, or did not all the time since they were last listed. Nothing when
    /// that is not so, when it is not there, and when nothing is different.
    pub(crate) async fn list_unheard(self: &Arc<Self>) -> Option<Part> {
        let session = {
            let current = self.current.lock().await;
            let session = current.session.clone().filter(|session| session.is_alive())?;
            if session.hears_changes().is_some() && session.hears_changes() == current.heard {
                return None;
            }
            session
        };
        let notices = self.list_live(&session).await?;
        Some(part(&*self.current.lock().await, notices))
    }

    /// It as it is, without asking it.
    pub(crate) async fn part(&self) -> Part {
        part(&*self.current.lock().await, Vec::new())
    }

    /// Lists a live server's tools. Nothing when they are the same as before.
    async fn list_live(&self, session: &Session) -> Option<Vec<Observed>> {
        let heard = session.hears_changes();
        let known = self.current.lock().await.raw.clone();
        let listed = list(self.name(), session, self.request.timeout, Some(&known)).await;
        match listed {
            Ok(listing) => {
                let mut current = self.current.lock().await;
                current.heard = heard;
                let Listing { tools, raw, notices } = listing?;
                current.tools = tools;
                current.raw = raw;
                Some(self.untold(notices))
            }
            Err(why) => {
                let detail = format!("The server {why}; the tools that it had are kept.");
                Some(self.untold(vec![("list_failed", detail)])).filter(|notices| !notices.is_empty())
            }
        }
    }

    /// Makes a call. A dead server is started again before; if that fails, nothing is sent.
    pub(crate) async fn call(self: Arc<Self>, dispatch: ToolDispatch, cancel: CancellationToken) -> CallResult {
        let (tool, ordinal) = (dispatch.name.clone(), dispatch.ordinal);
        let session = tokio::select! {
            biased;
            session = self.clone().session(tool.clone()) => session,
            () = cancel.cancelled() => {
                let why = format!("The call of `{tool}` was given up before it was made.");
                return CallResult { unsent: true, ..failed(CallEnd::Cancelled, why) };
            }
        };
        let (session, tools) = match session {
            Ok(session) => session,
            Err(why) => return protocol(not_sent(self.name(), &tool, &why)),
        };
        let definition = find(&tools, &tool);
        let mut mirrored = Vec::new();
        if let Some(definition) = definition.filter(|_| session.has_headers()) {
            let headers = mirror::read(&definition.input_schema).and_then(|mirror| mirror::headers(&mirror, &dispatch.arguments));
            match headers {
                Ok(headers) => mirrored = headers,
                Err(why) => return protocol(format!("The call of `{tool}` was not made, because {why}.")),
            }
        }
        let call = Call { dispatch, mirrored, idle: self.request.timeout, limit: self.request.call_limit };
        let mut classified = session.call(call, &cancel).await;
        if let Some(definition) = definition {
            self.outputs.check(definition, &mut classified);
        }
        for (what, detail) in classified.notices {
            self.reports.tell(what, detail, Some(ordinal));
        }
        if classified.result.end != CallEnd::Error {
            // Our sentence, with words of the server in it. What the tool itself says is kept as it came.
            classified.result.error = self.reports.secrets.scrub(classified.result.error);
        }
        if matches!(classified.result.end, CallEnd::Ok | CallEnd::Error | CallEnd::Protocol) && session.is_alive() {
            self.restarts.store(0, Ordering::Relaxed);
        }
        classified.result
    }

    /// Asks a server that keeps a session for us whether it still does. One that does not is dead to us, and is reached anew for the next
    /// call.
    pub(crate) async fn wake(&self) {
        let session = self.current.lock().await.session.clone();
        if let Some(session) = session.filter(|session| session.is_kept_by_server()) {
            session.ping(Duration::from_millis(limits::MCP_WAKE_MS)).await;
        }
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

    /// A session that can be asked for this tool, and the tools that it has.
    async fn session(self: Arc<Self>, tool: String) -> Result<(Arc<Session>, Arc<Vec<ToolDefinition>>), String> {
        {
            let current = self.current.lock().await;
            match &current.session {
                None if self.closing.is_cancelled() => return Err(BEING_ENDED.to_owned()),
                None => return Err(current.why.clone()),
                Some(session) if session.is_alive() => return Ok((session.clone(), current.tools.clone())),
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
            if find(&current.tools, &tool).is_none() {
                return Err(format!("{}, and no longer has this tool", self.words().again));
            }
            let session = current.session.clone().ok_or_else(|| BEING_ENDED.to_owned())?;
            Ok((session, current.tools.clone()))
        });
        revived.await.unwrap_or_else(|_| Err("could not be started again".to_owned()))
    }

    /// Starts a dead server again: not at once when it keeps dying, and not for ever.
    async fn revive(self: &Arc<Self>, current: &mut Current, tell_stale: bool) -> Result<Vec<Observed>, String> {
        let restarts = self.restarts.load(Ordering::Relaxed);
        if restarts >= limits::MCP_RESTARTS {
            let why = self.words().too_often.replace("{}", &restarts.to_string());
            self.not_up(current, why.clone());
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
                let (what, detail) = self.words().back;
                let (what, detail, server) = (what.to_owned(), detail.to_owned(), Some(self.name().to_owned()));
                notices.insert(0, Observed { what, detail, server, of: None });
                if tell_stale {
                    self.reports.stale();
                }
                Ok(notices)
            }
            Err(not_up) => {
                *self.died_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
                let why = format!("is gone and could not be {} again: it {not_up}", self.words().started);
                self.not_up(current, not_up);
                Err(why)
            }
        }
    }

    /// Starts or reaches it, comes to an agreement, lists its tools; all within its timeout.
    async fn bring_up(self: &Arc<Self>, current: &mut Current) -> Result<Vec<Observed>, String> {
        if self.closing.is_cancelled() {
            return Err(BEING_ENDED.to_owned());
        }
        let begun = Instant::now();
        let left = || self.request.timeout.saturating_sub(begun.elapsed());
        let started = Session::start(&self.request, &self.start, left(), self.reports.clone(), &self.closing).await;
        let session = Arc::new(started.map_err(|Failed { why, wire }| {
            if let Some(wire) = wire {
                self.retire(async move { wire.close().await });
            }
            why
        })?);
        let listed = tokio::select! {
            listed = list(self.name(), &session, left(), None) => listed,
            () = self.closing.cancelled() => Err(BEING_ENDED.to_owned()),
        };
        let Listing { tools, raw, mut notices } = match listed {
            Ok(listing) => listing.unwrap_or_default(),
            Err(why) => {
                self.retire(async move { session.close().await });
                return Err(why);
            }
        };
        let agreement = &session.agreement;
        current.state.state = ServerCondition::Ready;
        current.state.era = Some(agreement.era);
        current.state.version = Some(agreement.version.clone());
        current.state.implementation = agreement.implementation.clone();
        current.state.detail = None;
        current.tools = tools;
        current.raw = raw;
        current.session = Some(session.clone());
        self.unencrypted(&mut notices);
        session.listen();
        // Over pipes nothing was missed since the list was asked for; elsewhere nobody listens yet.
        current.heard = session.hears_changes();
        self.watch(session);
        Ok(self.untold(notices))
    }

    /// A credential that everybody between can read.
    fn unencrypted(&self, notices: &mut Vec<(&'static str, String)>) {
        let Reach::Http { address, token } = &self.request.reach else { return };
        let has_credential = token.is_some() || address.is_masked();
        if has_credential && !address.route().is_encrypted && !address.route().is_loopback {
            let detail =
                format!("The credential of the server goes to {} unencrypted; use https where you can.", address.shown());
            notices.push(("credential_unencrypted", detail));
        }
    }

    fn words(&self) -> &'static Words {
        match self.request.reach {
            Reach::Stdio { .. } => &CHILD,
            Reach::Http { .. } => &REMOTE,
        }
    }

    /// Waits for the death of a session, tells it, and ends what is left of it.
    fn watch(self: &Arc<Self>, session: Arc<Session>) {
        let server = self.clone();
        tokio::spawn(async move {
            let how = session.death().await;
            if !server.closing.is_cancelled() {
                *server.died_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
                server.reports.tell(server.words().gone, format!("The server {how}."), None);
            }
            session.close().await;
        });
    }

    fn retire(&self, closing: impl Future<Output = ()> + Send + 'static) {
        let mut retired = self.retired.lock().unwrap_or_else(PoisonError::into_inner);
        retired.retain(|closing| !closing.is_finished());
        retired.push(tokio::spawn(closing));
    }

    fn not_up(&self, current: &mut Current, why: String) {
        let why = self.reports.secrets.scrub(why);
        current.state.state = ServerCondition::Failed;
        current.state.detail = Some(format!("The server `{}` {why}.", self.request.name));
        current.why = why;
        current.tools = Arc::default();
        current.raw = Vec::new();
    }

    /// Those notices that were not told before, each about this server.
    fn untold(&self, notices: Vec<(&'static str, String)>) -> Vec<Observed> {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if u64::try_from(told.len()).unwrap_or(u64::MAX) > limits::MCP_TOOLS {
            told.clear();
        }
        notices
            .into_iter()
            .map(|(what, detail)| (what, self.reports.secrets.scrub(detail)))
            .filter(|(_, detail)| told.insert(detail.clone()))
            .map(|(what, detail)| Observed { what: what.to_owned(), detail, server: Some(self.request.name.clone()), of: None })
            .collect()
    }
}

/// What is said of a server that went away and came back: codes, sentences and parts of sentences.
struct Words {
    gone: &'static str,
    back: (&'static str, &'static str),
    again: &'static str,
    too_often: &'static str,
    started: &'static str,
}

const CHILD: Words = Words {
    gone: "server_died",
    back: ("server_restarted", "The server had died and was started again; what it held in memory is gone."),
    again: "died, was started again",
    too_often: "has died {} times since a call of it last came to its end, and is not started again",
    started: "started",
};

const REMOTE: Words = Words {
    gone: "session_lost",
    back: ("session_reopened", "The server had lost its session and was given a new one; what it held in the old one is gone."),
    again: "lost its session, was given a new one",
    too_often: "has lost its session {} times since a call of it last came to its end, and is given no new one",
    started: "reached",
};

/// A tool among others that are sorted by name.
fn find<'a>(tools: &'a [ToolDefinition], name: &str) -> Option<&'a ToolDefinition> {
    tools.binary_search_by(|definition| definition.name.as_str().cmp(name)).ok().and_then(|at| tools.get(at))
}

fn part(current: &Current, observed: Vec<Observed>) -> Part {
    Part { state: current.state.clone(), tools: current.tools.clone(), observed }
}
