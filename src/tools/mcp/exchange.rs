//! Who waits for which answer of a server. What comes from it passes here in the order of the wire, and each answer goes, as the
//! bytes that it is, to whoever asked.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use mission_contract::log::{Era, Observed};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::frame::{Id, Outline, part};
use super::outgoing::{Asked, Outgoing, What};
use super::secrets::Secrets;
use crate::limits;
use crate::tools::PlaneEvent;

/// A message of a server: its bytes, and where its parts are.
#[derive(Debug, PartialEq)]
pub(crate) struct Message {
    line: Vec<u8>,
    result: Option<Range<usize>>,
    error: Option<Range<usize>>,
}

impl Message {
    /// The message in a line with this outline.
    pub(crate) fn new(line: Vec<u8>, outline: &Outline) -> Self {
        Self { line, result: outline.result.clone(), error: outline.error.clone() }
    }

    /// Its `result`.
    pub(crate) fn result(&self) -> Option<&[u8]> {
        part(&self.line, self.result.as_ref())
    }

    /// Its `error`.
    pub(crate) fn error(&self) -> Option<&[u8]> {
        part(&self.line, self.error.as_ref())
    }
}

/// What comes of waiting for an answer.
#[derive(Debug, PartialEq)]
pub(crate) enum Answer {
    /// It came.
    Message(Message),
    /// Something came in its place that cannot be read; why, as the second half of a sentence about the server.
    Unreadable(String),
    /// The server said no by other means than a message of the protocol.
    Refused(Refused),
    /// It broke off, and whether the server acted is unknown; why, as the second half of a sentence about the server.
    Lost(String),
    /// The server is gone, and it will not come.
    Gone,
    /// The request was never sent; why, as the second half of a sentence about the server.
    NotSent(String),
}

/// A no of a server by an HTTP status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    /// The status.
    pub(crate) status: u16,
    /// In words: the second half of a sentence about the server.
    pub(crate) why: String,
    /// How long it asks to be left alone.
    pub(crate) retry_after: Option<Duration>,
}

impl Refused {
    /// Whether the same request may be answered when it is made again a little later.
    pub(crate) fn is_passing(&self) -> bool {
        matches!(self.status, 429 | 500 | 502 | 503 | 504)
    }

    /// Whether the server may have acted on the request before it said so.
    pub(crate) fn may_have_acted(&self) -> bool {
        self.status >= 500 || self.status == 408
    }
}

/// What a session and its server have agreed upon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Agreed {
    /// The era of the protocol.
    pub(crate) era: Era,
    /// The version.
    pub(crate) version: String,
}

/// Where the reports about one server go.
#[derive(Clone, Debug)]
pub(crate) struct Reports {
    /// Its namespace.
    pub(crate) server: String,
    /// To whoever holds the plane.
    pub(crate) events: mpsc::Sender<PlaneEvent>,
    /// What none of them says.
    pub(crate) secrets: Secrets,
}

impl Reports {
    /// Tells something. Never waits: when nobody reads, it is dropped.
    pub(crate) fn tell(&self, what: &str, detail: String, of: Option<u64>) {
        let detail = self.secrets.scrub(detail);
        let observed = Observed { what: what.to_owned(), detail, server: Some(self.server.clone()), of };
        let _ = self.events.try_send(PlaneEvent::Observed(observed));
    }

    /// Says that the server's list is another one.
    pub(crate) fn stale(&self) {
        let _ = self.events.try_send(PlaneEvent::Stale { server: self.server.clone() });
    }
}

/// Somebody who waits for an answer: carried by the request until it is written, then kept here.
#[derive(Clone, Debug)]
pub(crate) struct Waiter(Arc<Mutex<Option<Slot>>>);

#[derive(Debug)]
struct Slot {
    answer: oneshot::Sender<Answer>,
    /// Woken by each progress.
    progress: Arc<Notify>,
    asked: Asked,
}

/// The other end of a [`Waiter`].
#[derive(Debug)]
pub(crate) struct Awaited {
    /// The answer. An error means that the request was dropped before it was sent.
    pub(crate) answer: oneshot::Receiver<Answer>,
    /// Woken by each progress.
    pub(crate) progress: Arc<Notify>,
}

/// A waiter and what it will get.
pub(crate) fn waiter(asked: Asked) -> (Waiter, Awaited) {
    let (sender, answer) = oneshot::channel();
    let progress = Arc::new(Notify::new());
    let slot = Slot { answer: sender, progress: progress.clone(), asked };
    (Waiter(Arc::new(Mutex::new(Some(slot)))), Awaited { answer, progress })
}

impl Waiter {
    fn take(&self) -> Option<Slot> {
        locked(&self.0).take()
    }

    /// The request cannot be sent.
    pub(crate) fn not_sent(&self, why: &str) {
        if let Some(slot) = self.take() {
            let _ = slot.answer.send(Answer::NotSent(why.to_owned()));
        }
    }
}

#[derive(Debug)]
struct Pending {
    slot: Slot,
    token: Option<Id>,
    /// The last progress: it must grow.
    progress: Option<f64>,
    /// How many there were.
    reports: u64,
    given_up: CancellationToken,
}

#[derive(Debug, Default)]
struct State {
    pending: BTreeMap<Id, Pending>,
    /// What was given up and may be answered after all, oldest first: the method, and the call that it was.
    given_up: VecDeque<(Id, Asked)>,
    closed: bool,
    /// Since when, by count, changes of the list are heard of; nothing when they are not.
    hears_changes: Option<u64>,
    /// How often that began.
    hearings: u64,
    told: BTreeSet<&'static str>,
    declined: BTreeMap<&'static str, u64>,
    stale: bool,
}

/// See the module's doc. One for each life of a server.
#[derive(Debug)]
pub(crate) struct Exchange {
    state: Mutex<State>,
    /// What the wire is to carry to the server.
    outbox: mpsc::Sender<Outgoing>,
    /// Answered requests, for the client that numbered them.
    answered: mpsc::Sender<Id>,
    /// Fired when nothing more will come.
    closed: CancellationToken,
    agreed: OnceLock<Agreed>,
    /// Why nothing more will come, where it was we who saw to that: the second half of a sentence about the server.
    over: OnceLock<String>,
    pub(crate) reports: Reports,
}

impl Exchange {
    /// An exchange, what is to be carried to the server, and the ids that were answered.
    pub(crate) fn new(reports: Reports) -> (Arc<Self>, mpsc::Receiver<Outgoing>, mpsc::Receiver<Id>) {
        let messages = limits::size(limits::MCP_QUEUE_MESSAGES);
        let (outbox, outgoing) = mpsc::channel(messages);
        let (answered, ids) = mpsc::channel(messages);
        let state = Mutex::new(State::default());
        let closed = CancellationToken::new();
        let (agreed, over) = (OnceLock::new(), OnceLock::new());
        (Arc::new(Self { state, outbox, answered, closed, agreed, over, reports }), outgoing, ids)
    }

    /// The era and the version are decided. Only the first decision counts.
    pub(crate) fn agree(&self, era: Era, version: &str) {
        let _ = self.agreed.set(Agreed { era, version: version.to_owned() });
    }

    /// What was agreed upon; nothing while it is being found out.
    pub(crate) fn agreed(&self) -> Option<&Agreed> {
        self.agreed.get()
    }

    /// Whether the server speaks the stateless era.
    pub(crate) fn is_stateless(&self) -> bool {
        self.agreed.get().is_some_and(|agreed| agreed.era == Era::Stateless)
    }

    /// Writes a request whose answer goes to this waiter. It is in the order of the calls to this function.
    pub(crate) fn send(&self, id: Id, token: Option<Id>, line: Vec<u8>, waiter: &Waiter) {
        let mut state = locked(&self.state);
        if state.closed {
            drop(state);
            return waiter.not_sent("is gone");
        }
        let Some(slot) = waiter.take() else { return };
        let given_up = CancellationToken::new();
        let what = What::Request { id: id.clone(), asked: slot.asked.clone(), given_up: given_up.clone() };
        if let Err(why) = self.put(Outgoing { line, what }) {
            drop(state);
            let _ = slot.answer.send(Answer::NotSent(why.to_owned()));
            return;
        }
        state.pending.insert(id, Pending { slot, token, progress: None, reports: 0, given_up });
    }

    /// Writes a notification. Never waits.
    ///
    /// # Errors
    /// Why not, as the second half of a sentence about the server.
    pub(crate) fn notify(&self, line: Vec<u8>) -> Result<(), &'static str> {
        self.put(Outgoing { line, what: What::Notification(None) })
    }

    /// Writes a notification, and waits until the server has taken it.
    ///
    /// # Errors
    /// Why it did not, as the second half of a sentence about the server.
    pub(crate) async fn notify_surely(&self, line: Vec<u8>) -> Result<(), String> {
        let (taken, waiting) = oneshot::channel();
        self.put(Outgoing { line, what: What::Notification(Some(taken)) }).map_err(str::to_owned)?;
        waiting.await.unwrap_or_else(|_| Err("has closed its input".to_owned()))
    }

    /// Answers a request of the server's. Never waits; where it cannot be written there is nobody to be told.
    pub(crate) fn reply(&self, line: Vec<u8>) {
        let _ = self.put(Outgoing { line, what: What::Reply });
    }

    fn put(&self, outgoing: Outgoing) -> Result<(), &'static str> {
        self.outbox.try_send(outgoing).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => "does not read what is written to it",
            mpsc::error::TrySendError::Closed(_) => "has closed its input",
        })
    }

    /// An answer came. Says whether anybody waited for it.
    pub(crate) fn answer(&self, id: &Id, message: Message) -> bool {
        self.resolve(id, Answer::Message(message))
    }

    /// Something came in place of an answer.
    pub(crate) fn unreadable(&self, id: &Id, why: String) -> bool {
        self.resolve(id, Answer::Unreadable(why))
    }

    /// An answer that names no request: it is for the only one that waits, if it is only one.
    pub(crate) fn answer_the_only_one(&self, answer: impl FnOnce() -> Answer) -> bool {
        let only = {
            let state = locked(&self.state);
            let mut ids = state.pending.keys();
            match (ids.next(), ids.next()) {
                (Some(only), None) => Some(only.clone()),
                _ => None,
            }
        };
        only.is_some_and(|id| self.resolve(&id, answer()))
    }

    /// Something came that may have been the answer to any request: all of them fail.
    pub(crate) fn fail_all(&self, why: &str) {
        let ids: Vec<Id> = locked(&self.state).pending.keys().cloned().collect();
        for id in ids {
            self.resolve(&id, Answer::Unreadable(why.to_owned()));
        }
    }

    /// Whether this request is still to be answered, or was given up and may be all the same.
    pub(crate) fn awaits(&self, id: &Id) -> bool {
        let state = locked(&self.state);
        state.pending.contains_key(id) || state.given_up.iter().any(|(given_up, _)| given_up == id)
    }

    /// Whether somebody waits for the answer to this request.
    pub(crate) fn is_pending(&self, id: &Id) -> bool {
        locked(&self.state).pending.contains_key(id)
    }

    /// Ends the waiting for an answer in this way.
    pub(crate) fn resolve(&self, id: &Id, answer: Answer) -> bool {
        let mut state = locked(&self.state);
        if let Some(pending) = state.pending.remove(id) {
            drop(state);
            let _ = pending.slot.answer.send(answer);
            let _ = self.answered.try_send(id.clone());
            return true;
        }
        let late = state.given_up.iter().position(|(given_up, _)| given_up == id);
        let Some((_, asked)) = late.and_then(|at| state.given_up.remove(at)) else { return false };
        drop(state);
        let bytes = match &answer {
            Answer::Message(message) => message.line.len(),
            Answer::Unreadable(_) => 0,
            // That nothing comes is no answer.
            _ => return true,
        };
        match asked.call {
            Some(call) => self.reports.tell(
                "late_result",
                format!("An answer of {bytes} bytes came after its call had been given up; it is not taken, and the call did reach the server."),
                Some(call),
            ),
            None => self.reports.tell(
                "late_answer",
                format!("An answer of {bytes} bytes to {} came when it was no longer waited for; it is not taken.", asked.method),
                None,
            ),
        }
        true
    }

    /// Nobody waits for this answer any more; when it comes after all it is recognised.
    pub(crate) fn give_up(&self, id: &Id) {
        let mut state = locked(&self.state);
        let Some(pending) = state.pending.remove(id) else { return };
        pending.given_up.cancel();
        state.given_up.push_back((id.clone(), pending.slot.asked));
        if u64::try_from(state.given_up.len()).unwrap_or(u64::MAX) > limits::MCP_LATE_CALLS {
            state.given_up.pop_front();
        }
    }

    /// Whoever numbered this request need not keep it any longer: no answer to it will be taken.
    pub(crate) fn release(&self, id: &Id) {
        let _ = self.answered.try_send(id.clone());
    }

    /// Part of an answer came.
    pub(crate) fn sign_of_life(&self, id: &Id) {
        if let Some(pending) = locked(&self.state).pending.get(id) {
            pending.slot.progress.notify_one();
        }
    }

    /// Progress came. Only what grows, and only for a token of ours, is a sign of life.
    pub(crate) fn progress(&self, token: &Id, progress: f64) {
        let mut state = locked(&self.state);
        let pending = state.pending.values_mut().find(|pending| pending.token.as_ref() == Some(token));
        if let Some(pending) = pending
            && pending.progress.is_none_or(|last| progress > last)
            && pending.reports < limits::MCP_PROGRESS_REPORTS
        {
            pending.progress = Some(progress);
            pending.reports = pending.reports.saturating_add(1);
            pending.slot.progress.notify_one();
        }
    }

    /// Something came that is no message. Told once.
    pub(crate) fn noise(&self, sample: impl FnOnce() -> String) {
        self.tell_once("server_noise", || {
            let sample = sample();
            format!("The server sends what is no message of the protocol; it is skipped, now and later. It began with: {sample}")
        });
    }

    /// Tells something that is true of the server as such, once.
    pub(crate) fn tell_once(&self, what: &'static str, detail: impl FnOnce() -> String) {
        if locked(&self.state).told.insert(what) {
            self.reports.tell(what, detail(), None);
        }
    }

    /// Since when, by count, the server tells us when its list changes; nothing when it does not.
    pub(crate) fn hears_changes(&self) -> Option<u64> {
        locked(&self.state).hears_changes
    }

    /// From now on it does, or no longer does.
    pub(crate) fn set_hears_changes(&self, hears: bool) {
        let mut state = locked(&self.state);
        state.hearings = state.hearings.saturating_add(u64::from(hears));
        state.hears_changes = hears.then_some(state.hearings);
    }

    /// A request of the server was declined. Told a bounded number of times.
    pub(crate) fn declined(&self, what: &'static str, detail: &str) {
        let mut state = locked(&self.state);
        let times = state.declined.entry(what).or_default();
        *times = times.saturating_add(1);
        if *times <= limits::MCP_DECLINED_REPORTS {
            drop(state);
            self.reports.tell(what, detail.to_owned(), None);
        }
    }

    /// The server says that its list is another one now. Several in a row are one report.
    pub(crate) fn list_changed(self: &Arc<Self>) {
        if std::mem::replace(&mut locked(&self.state).stale, true) {
            return;
        }
        let exchange = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(limits::MCP_STALE_MS)).await;
            locked(&exchange.state).stale = false;
            exchange.reports.stale();
        });
    }

    /// Nothing more will come, for this reason.
    pub(crate) fn close_because(&self, why: impl Into<String>) {
        let _ = self.over.set(why.into());
        self.close();
    }

    /// Why nothing more will come, where that is known.
    pub(crate) fn over(&self) -> Option<&str> {
        self.over.get().map(String::as_str)
    }

    /// Nothing more will come: whoever waits is told.
    pub(crate) fn close(&self) {
        let mut state = locked(&self.state);
        state.closed = true;
        let pending = std::mem::take(&mut state.pending);
        drop(state);
        for pending in pending.into_values() {
            let _ = pending.slot.answer.send(Answer::Gone);
        }
        self.closed.cancel();
    }

    /// Fires when nothing more will come.
    pub(crate) fn closed(&self) -> &CancellationToken {
        &self.closed
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[path = "exchange_tests.rs"]
pub(crate) mod tests;
