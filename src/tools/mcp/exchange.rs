//! Who waits for which answer of a server. What comes from it passes here in the order of the wire, and each answer goes, as the
//! bytes that it is, to whoever asked.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mission_contract::log::Observed;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::frame::{Id, Outline, part};
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
    /// The server is gone, and it will not come.
    Gone,
    /// The request was never sent; why, as the second half of a sentence about the server.
    NotSent(&'static str),
}

/// Where the reports about one server go.
#[derive(Clone, Debug)]
pub(crate) struct Reports {
    /// Its namespace.
    pub(crate) server: String,
    /// To whoever holds the plane.
    pub(crate) events: mpsc::Sender<PlaneEvent>,
}

impl Reports {
    /// Tells something. Never waits: when nobody reads, it is dropped.
    pub(crate) fn tell(&self, what: &str, detail: String, of: Option<u64>) {
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
    /// The call that it is, by the number of its intent.
    call: Option<u64>,
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
pub(crate) fn waiter(call: Option<u64>) -> (Waiter, Awaited) {
    let (sender, answer) = oneshot::channel();
    let progress = Arc::new(Notify::new());
    let slot = Slot { answer: sender, progress: progress.clone(), call };
    (Waiter(Arc::new(Mutex::new(Some(slot)))), Awaited { answer, progress })
}

impl Waiter {
    fn take(&self) -> Option<Slot> {
        locked(&self.0).take()
    }

    /// The request cannot be sent.
    pub(crate) fn not_sent(&self, why: &'static str) {
        if let Some(slot) = self.take() {
            let _ = slot.answer.send(Answer::NotSent(why));
        }
    }
}

#[derive(Debug)]
struct Pending {
    slot: Slot,
    token: Option<Id>,
    /// The last progress: it must grow.
    progress: Option<f64>,
}

#[derive(Debug, Default)]
struct State {
    pending: BTreeMap<Id, Pending>,
    /// Calls that were given up, oldest first.
    given_up: VecDeque<(Id, u64)>,
    closed: bool,
    noise_told: bool,
    /// Why it was we who ended it: the second half of a sentence about the server.
    why: Option<String>,
    declined: BTreeMap<&'static str, u64>,
    stale: bool,
}

/// See the module's doc. One for each life of a server.
#[derive(Debug)]
pub(crate) struct Exchange {
    state: Mutex<State>,
    /// Lines for the server.
    outbox: mpsc::Sender<Vec<u8>>,
    /// Answered requests, for the client that numbered them.
    answered: mpsc::Sender<Id>,
    /// Fired when nothing more will come.
    closed: CancellationToken,
    pub(crate) reports: Reports,
}

impl Exchange {
    /// An exchange, the lines to be written to the server, and the ids that were answered.
    pub(crate) fn new(reports: Reports) -> (Arc<Self>, mpsc::Receiver<Vec<u8>>, mpsc::Receiver<Id>) {
        let messages = limits::size(limits::MCP_QUEUE_MESSAGES);
        let (outbox, lines) = mpsc::channel(messages);
        let (answered, ids) = mpsc::channel(messages);
        let state = Mutex::new(State::default());
        (Arc::new(Self { state, outbox, answered, closed: CancellationToken::new(), reports }), lines, ids)
    }

    /// Writes a request whose answer goes to this waiter. It is in the order of the calls to this function.
    pub(crate) fn send(&self, id: Id, token: Option<Id>, line: Vec<u8>, waiter: &Waiter) {
        let mut state = locked(&self.state);
        if state.closed {
            drop(state);
            return waiter.not_sent("is gone");
        }
        if let Err(why) = self.write(line) {
            drop(state);
            return waiter.not_sent(why);
        }
        if let Some(slot) = waiter.take() {
            state.pending.insert(id, Pending { slot, token, progress: None });
        }
    }

    /// Writes a line. Never waits.
    ///
    /// # Errors
    /// Why not, as the second half of a sentence about the server.
    pub(crate) fn write(&self, mut line: Vec<u8>) -> Result<(), &'static str> {
        line.push(b'\n');
        self.outbox.try_send(line).map_err(|error| match error {
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

    fn resolve(&self, id: &Id, answer: Answer) -> bool {
        let mut state = locked(&self.state);
        if let Some(pending) = state.pending.remove(id) {
            drop(state);
            let _ = pending.slot.answer.send(answer);
            let _ = self.answered.try_send(id.clone());
            return true;
        }
        let late = state.given_up.iter().position(|(given_up, _)| given_up == id);
        let Some((_, call)) = late.and_then(|at| state.given_up.remove(at)) else { return false };
        drop(state);
        let bytes = match &answer {
            Answer::Message(message) => message.line.len(),
            _ => 0,
        };
        self.reports.tell(
            "late_result",
            format!("An answer of {bytes} bytes came after its call had been given up; it is not taken, and the call did reach the server."),
            Some(call),
        );
        true
    }

    /// Nobody waits for this answer any more; when it comes after all it is recognised.
    pub(crate) fn give_up(&self, id: &Id) {
        let mut state = locked(&self.state);
        let Some(call) = state.pending.remove(id).and_then(|pending| pending.slot.call) else { return };
        state.given_up.push_back((id.clone(), call));
        if u64::try_from(state.given_up.len()).unwrap_or(u64::MAX) > limits::MCP_LATE_CALLS {
            state.given_up.pop_front();
        }
    }

    /// Progress came. Only what grows, and only for a token of ours, is a sign of life.
    pub(crate) fn progress(&self, token: &Id, progress: f64) {
        let mut state = locked(&self.state);
        let pending = state.pending.values_mut().find(|pending| pending.token.as_ref() == Some(token));
        if let Some(pending) = pending
            && pending.progress.is_none_or(|last| progress > last)
        {
            pending.progress = Some(progress);
            pending.slot.progress.notify_one();
        }
    }

    /// Something came that is no message. Told once.
    pub(crate) fn noise(&self, sample: impl FnOnce() -> String) {
        let told = std::mem::replace(&mut locked(&self.state).noise_told, true);
        if !told {
            let sample = sample();
            self.reports.tell(
                "server_noise",
                format!("The server writes to its standard output what is no message of the protocol; it is skipped, now and later. It began with: {sample}"),
                None,
            );
        }
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
            tokio::time::sleep(std::time::Duration::from_millis(limits::MCP_STALE_MS)).await;
            locked(&exchange.state).stale = false;
            exchange.reports.stale();
        });
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

    /// Nothing more is taken from the server, for this reason: the second half of a sentence about it.
    pub(crate) fn close_because(&self, why: String) {
        locked(&self.state).why.get_or_insert(why);
        self.close();
    }

    /// Why it was we who ended it, if so.
    pub(crate) fn why_closed(&self) -> Option<String> {
        locked(&self.state).why.clone()
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
