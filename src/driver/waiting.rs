//! What the loop waits for: whatever is in flight, and nothing where nothing is.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::future::{BoxFuture, MaybeDone, maybe_done};
use mission_contract::log::{CallEnd, CallResult, Control, Observed, Reply, ReplyEnd};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::desk::{Heard, Listening};
use super::fragments::Fragments;
use crate::engine::request::ToolDispatch;
use crate::journal::JournalFailed;
use crate::model::{Delta, ModelReply};
use crate::sys::signals::EndSignal;
use crate::tools::{Discovery, PlaneEvent, ToolPlane};

/// Work that goes on whether or not what comes of it can be taken yet.
pub(super) struct Underway<T>(MaybeDone<BoxFuture<'static, T>>);

impl<T> Underway<T> {
    pub(super) fn new(work: BoxFuture<'static, T>) -> Self {
        Self(maybe_done(work))
    }

    /// Lets it go on; what comes of it stays here.
    fn go_on(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if matches!(self.0, MaybeDone::Gone) { Poll::Ready(()) } else { Pin::new(&mut self.0).poll(context) }
    }

    /// What came of it. Once it was told, never again.
    async fn told(&mut self) -> T {
        std::future::poll_fn(|context| self.go_on(context)).await;
        match Pin::new(&mut self.0).take_output() {
            Some(told) => told,
            None => std::future::pending().await,
        }
    }
}

/// A question that is being answered.
pub(super) struct Asking {
    pub(super) ordinal: u64,
    pub(super) reply: Underway<ModelReply>,
    pub(super) deltas: mpsc::Receiver<Delta>,
    pub(super) cancel: CancellationToken,
    /// When it is given up, where it does not let go by itself.
    pub(super) until: Option<Instant>,
    pub(super) fragments: Fragments,
}

/// A call that is being made.
pub(super) struct Calling {
    pub(super) ordinal: u64,
    /// Waits for its intent to be durable, and makes the call.
    pub(super) result: Underway<CallResult>,
    pub(super) cancel: CancellationToken,
}

/// What woke the loop.
pub(super) enum Woke {
    Journal(JournalFailed),
    Signal(EndSignal),
    Delta(Delta),
    Reply(Option<ModelReply>),
    Result(Option<CallResult>),
    Report(Option<PlaneEvent>),
    Sink(Option<Observed>),
    Listed(Option<Discovery>),
    Decision(Heard),
    NobodyDecided,
    /// A line of the control channel.
    Heard(crate::control::Heard),
    /// What came of writing down a decision of the control channel.
    Written(Control, Result<(), String>),
    /// Nothing was said for as long as nothing may be said.
    Silence,
    /// A timer of the engine is over.
    Timer,
    /// Whoever asked the run to end asks again.
    Again,
    /// The audit file takes nothing any more.
    Unaudited(String),
}

/// What comes of a question where there is no model.
pub(super) fn nobody() -> ModelReply {
    let detail = Some("No model was opened for this stretch of the run.".to_owned());
    ModelReply { reply: Reply { end: ReplyEnd::Failed, detail, ..Reply::default() }, ..ModelReply::default() }
}

/// Makes a call once its intent is durable.
pub(super) async fn call(
    tools: Arc<dyn ToolPlane>,
    dispatch: ToolDispatch,
    durable: impl Future<Output = Result<(), JournalFailed>>,
    cancel: CancellationToken,
    was_waited_for: bool,
) -> CallResult {
    let ready = async {
        if was_waited_for {
            tools.wake(&dispatch.server).await;
        }
        durable.await
    };
    let durable = tokio::select! {
        biased;
        () = cancel.cancelled() => {
            let error = format!("The call of `{}` was given up before it was made.", dispatch.name);
            return CallResult { end: CallEnd::Cancelled, exit_code: -1, error, unsent: true, ..CallResult::default() };
        }
        durable = ready => durable,
    };
    match durable {
        Ok(()) => tools.call(dispatch, cancel).await,
        // The loop hears of it by itself.
        Err(_) => std::future::pending().await,
    }
}

/// Lets what is in flight go on and takes nothing of it: for a moment in which there is no room for what comes of it. Never ends.
pub(super) async fn underway(asking: &mut Option<Asking>, calling: &mut Option<Calling>) -> std::convert::Infallible {
    std::future::poll_fn(|context| {
        if let Some(asking) = asking {
            let _ = asking.reply.go_on(context);
        }
        if let Some(calling) = calling {
            let _ = calling.result.go_on(context);
        }
        Poll::Pending
    })
    .await
}

pub(super) async fn asked(asking: &mut Option<Asking>, end_by: Option<Instant>) -> Woke {
    let Some(asking) = asking else { return std::future::pending().await };
    let until = [end_by, asking.until].into_iter().flatten().min();
    tokio::select! {
        biased;
        // First: one that ignores its cancellation may have more to say for ever.
        () = at(until) => Woke::Reply(None),
        Some(delta) = asking.deltas.recv() => Woke::Delta(delta),
        reply = asking.reply.told() => Woke::Reply(Some(reply)),
    }
}

pub(super) async fn called(calling: &mut Option<Calling>, end_by: Option<Instant>) -> Option<CallResult> {
    let Some(calling) = calling else { return std::future::pending().await };
    tokio::select! {
        biased;
        result = calling.result.told() => Some(result),
        () = at(end_by) => None,
    }
}

/// What comes of the waiting at a gate.
pub(super) async fn decided(gate: &mut Option<Listening>, until: Option<Instant>) -> Woke {
    let Some(gate) = gate else { return std::future::pending().await };
    tokio::select! {
        biased;
        Some(heard) = gate.heard.recv() => Woke::Decision(heard),
        () = at(until) => Woke::NobodyDecided,
    }
}

pub(super) async fn listed(listing: &mut Option<BoxFuture<'static, Option<Discovery>>>) -> Option<Discovery> {
    match listing {
        Some(listing) => listing.await,
        None => std::future::pending().await,
    }
}

pub(super) async fn received<T>(receiver: &mut Option<mpsc::Receiver<T>>) -> Option<T> {
    match receiver {
        Some(receiver) => receiver.recv().await,
        None => std::future::pending().await,
    }
}

pub(super) async fn received_unbounded<T>(receiver: &mut Option<mpsc::UnboundedReceiver<T>>) -> Option<T> {
    match receiver {
        Some(receiver) => receiver.recv().await,
        None => std::future::pending().await,
    }
}

pub(super) async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
