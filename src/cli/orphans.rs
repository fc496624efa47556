//! Runs whose processes are gone are closed by the next run that starts: off its critical path, and never in its way.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use mission_contract::event::Event;

use super::resume::Held;
use crate::driver::orphans::close;
use crate::engine::delivery::{Delivery, EventSink};
use crate::journal::{RunLog, RunStore};
use crate::limits;
use crate::redact::Redactor;
use crate::stream::diagnostics;
use crate::sys::clock::{Clock, SystemClock};

/// Whoever closes orphans beside a run.
pub(super) struct Closer {
    is_over: Arc<AtomicBool>,
    done: Receiver<()>,
}

/// A sink that sees a run begin, and what hears of it.
pub(super) fn witness() -> (Box<dyn EventSink>, Receiver<()>) {
    let (started, begins) = channel();
    let sink = move |delivery: &Delivery| {
        if matches!(*delivery.event, Event::MissionStarted(_) | Event::StepStarted(_)) {
            // A second time nobody listens.
            let _ = started.send(());
        }
    };
    (Box::new(sink), begins)
}

impl Closer {
    /// Starts it. It waits until its run has told that it began. Where no thread can be had, nobody is closed this time.
    pub(super) fn start(store: &RunStore, run_id: &str, redactor: &Arc<Redactor>, begins: Receiver<()>) -> Option<Self> {
        if !store.is_kept() {
            return None;
        }
        let (ends, done) = channel();
        let is_over = Arc::new(AtomicBool::new(false));
        let closing = Closing {
            store: store.clone(),
            run_id: run_id.to_owned(),
            redactor: Arc::clone(redactor),
            is_over: Arc::clone(&is_over),
        };
        let work = move || {
            if begins.recv().is_ok() {
                closing.close_all();
            }
            let _ = ends.send(());
        };
        std::thread::Builder::new().name("orphans".to_owned()).spawn(work).ok()?;
        Some(Self { is_over, done })
    }

    /// The run is over: what is being closed is waited for, for a moment, and nothing more is begun.
    pub(super) fn end(self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = self.done.recv_timeout(Duration::from_millis(limits::ORPHANS_WAIT_MS));
    }
}

struct Closing {
    store: RunStore,
    run_id: String,
    redactor: Arc<Redactor>,
    is_over: Arc<AtomicBool>,
}

impl Closing {
    fn close_all(&self) {
        // Those that go on are marked too.
        let mut left = limits::ORPHANS_CLOSED;
        for run_id in self.store.marked_open(limits::size(limits::ORPHANS_LOOKED_AT)) {
            if left == 0 || self.is_over.load(Ordering::Relaxed) {
                return;
            }
            if run_id != self.run_id && self.close(&run_id) {
                left = left.saturating_sub(1);
            }
        }
    }

    /// Closes a run, unless somebody holds it. False when there was nothing to do.
    fn close(&self, run_id: &str) -> bool {
        let Ok(held) = self.store.hold(run_id) else { return false };
        if held.is_empty() {
            self.store.unmark(&held);
            return true;
        }
        drop(held);
        let held = match Held::of(&self.store, run_id) {
            Ok(held) => held,
            // Somebody was quicker, or its log is damaged: whoever takes it up is told.
            Err(_) => return false,
        };
        if held.folded.run.outcome().is_some() && held.folded.lost.is_empty() && held.folded.is_told {
            self.store.unmark(&held.held);
            return true;
        }
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::from(held.tail.ms));
        let (held, tail, taken) = held.into_taken(Default::default(), None);
        let closed =
            RunLog::reopen(held, &tail, Arc::clone(&clock), Vec::new()).map_err(|error| error.to_string()).and_then(|log| {
                let runtime =
                    tokio::runtime::Builder::new_current_thread().enable_time().build().map_err(|error| error.to_string())?;
                runtime.block_on(close(log, taken, &self.run_id, &self.redactor, &clock)).map_err(|error| error.to_string())
            });
        if let Err(problem) = closed {
            diagnostics::say(&self.redactor, &format!("Run {run_id}, whose process is gone, could not be closed: {problem}."));
        }
        true
    }
}
