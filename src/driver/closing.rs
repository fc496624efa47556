//! The end of a stretch: its log is closed, its readers get what is left, its servers are ended.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use tokio_util::sync::CancellationToken;

use crate::journal::{Closing, Patience, RunLog};
use crate::sys::signals::{Again, EndSignals};
use crate::tools::ToolPlane;

/// Whoever may ask for the end to be quick.
pub(super) struct Watchers {
    pub(super) signals: EndSignals,
    /// A signal came already; this is the second one.
    pub(super) again: Option<Again>,
    pub(super) grace: Duration,
}

/// Closes everything. A reader is waited for with `patience`, unless a signal asks for less.
pub(super) async fn close(log: RunLog, patience: Patience, tools: Arc<dyn ToolPlane>, watchers: Watchers) -> Closing {
    let hurry = CancellationToken::new();
    let close = async {
        let closing = log.close_or_hurry(patience, hurry.cancelled()).await;
        // Whoever reads has the last record; a plane that panics has nothing more to say. Where nobody waits, its guardians end it.
        let close = AssertUnwindSafe(async { tools.close().await }).catch_unwind();
        tokio::select! {
            biased;
            () = hurry.cancelled() => {}
            _ = close => {}
        }
        closing
    };
    tokio::select! {
        closing = close => closing,
        never = hurried(watchers, &hurry) => match never {},
    }
}

/// Who asks a run that is over to end gives it the grace; who asks again, not even that.
async fn hurried(watchers: Watchers, hurry: &CancellationToken) -> std::convert::Infallible {
    let Watchers { mut signals, again, grace } = watchers;
    match again {
        Some(again) => again.came().await,
        None => {
            signals.first().await;
            let again = Again::catch();
            tokio::select! {
                () = again.came() => {}
                () = tokio::time::sleep(grace) => {}
            }
        }
    }
    hurry.cancel();
    std::future::pending().await
}
