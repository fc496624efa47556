//! The only loop that does I/O: it carries out the engine's effects, and feeds back what came of them. Every input is journaled before the
//! engine sees it. It decides nothing.

mod auditing;
mod closing;
mod desk;
mod fragments;
mod hearing;
mod last_words;
mod listing;
mod opening;
pub mod orphans;
mod waiting;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use mission_contract::event::{Event, Notice};
use mission_contract::log::{
    CallEnd, CallResult, Closed, Control, ControlSource, Decision, Entry, Observed, Purpose, Reply, ReplyEnd, Timer,
};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::engine::effect::{Effect, Ending};
use crate::engine::run::{FoldError, GATE_TIMER, Run};
use crate::journal::{JournalFailed, Patience, RunLog};
use crate::limits::{CLOSING_MS, CUT_MS, DELTA_QUEUE};
use crate::model::{Delta, ModelBackend, ModelReply};
use crate::redact::Redactor;
use crate::sys::clock::Clock;
use crate::sys::signals::{Again, EndSignal, EndSignals, came};
use crate::tools::{Discovery, PlaneEvent, ToolPlane};
pub use auditing::Auditing;
use auditing::Auditor;
use closing::{Watchers, close};
pub use desk::{Desk, decision};
use desk::{Heard, Listening};
use fragments::Fragments;
pub use hearing::Outside;
use hearing::{Hearing, cancel, silence};
pub use listing::Known;
pub use opening::{Beginning, Opening, Parts, Taken};
use waiting::{
    Asking, Calling, Underway, Woke, asked, at, call, called, decided, listed, nobody, received, received_unbounded, underway,
};

/// How a run ended, for the exit code.
#[derive(Debug)]
pub struct Ended {
    /// How the engine ended it; absent when something failed so badly that it did not.
    pub ending: Option<Ending>,
    /// Why the journal failed.
    pub journal: Option<JournalFailed>,
    /// The signal that came.
    pub signal: Option<EndSignal>,
    /// Somebody ended it.
    pub cancelled: bool,
    /// What went wrong inside.
    pub internal: Option<String>,
    /// Why the last lines of the audit file may not be on the disk.
    pub audit: Option<String>,
    /// Sinks that were given up, and how many records each was not given.
    pub given_up: Vec<(String, u64)>,
}

/// Why the loop stopped early.
enum Broken {
    Journal(JournalFailed),
    Fold(FoldError),
}

impl From<FoldError> for Broken {
    fn from(error: FoldError) -> Self {
        Broken::Fold(error)
    }
}

/// Runs a mission to its end. `mission_finished` goes out on every path: a panic and a failed journal included.
pub async fn drive(opening: Opening, parts: Parts) -> Ended {
    let Parts { log, model, tools, reports, sinks, redactor, clock, signals, grace, desk, outside, auditing } = parts;
    let mut driver = Driver {
        engine: Run::default(),
        log,
        model,
        tools: Arc::clone(&tools),
        reports: Some(reports),
        sinks: Some(sinks),
        redactor,
        clock,
        signals,
        again: None,
        is_hurried: false,
        grace,
        desk,
        hearing: Hearing::new(outside),
        auditor: Auditor::new(auditing),
        gate: None,
        has_waited: false,
        gate_until: None,
        timer: None,
        claimed: None,
        signal: None,
        asking: None,
        calling: None,
        listing: None,
        list_wanted: false,
        list_stale: false,
        first: None,
        known: None,
        ending: None,
        end_by: None,
    };
    let outcome = AssertUnwindSafe(driver.run(opening)).catch_unwind().await;
    let mut journal = None;
    let mut internal = None;
    match outcome {
        Ok(Ok(())) => {}
        Ok(Err(Broken::Journal(failed))) => {
            driver.journal_failed(&failed);
            journal = Some(failed);
        }
        Ok(Err(Broken::Fold(error))) => internal = Some(error.to_string()),
        Err(panic) => internal = Some(panic_words(panic.as_ref())),
    }
    if let Some(detail) = &internal {
        driver.close_after(detail);
    }
    driver.let_go();
    let cancelled = driver.engine.is_cancelled();
    let patience = match driver.end_by {
        None => Patience::WhileTaken(driver.grace),
        Some(end_by) => {
            let left = end_by.saturating_duration_since(Instant::now());
            Patience::AtMost(left.max(Duration::from_millis(CLOSING_MS)))
        }
    };
    let Driver { log, ending, signal, signals, again, grace, auditor, .. } = driver;
    let closing = close(log, patience, tools, Watchers { signals, again, grace }).await;
    Ended {
        ending,
        journal: journal.or(closing.failed),
        signal,
        cancelled,
        internal,
        audit: auditor.close(),
        given_up: closing.given_up,
    }
}

fn panic_words(panic: &(dyn std::any::Any + Send)) -> String {
    let words = panic.downcast_ref::<&str>().map(|words| (*words).to_owned()).or_else(|| panic.downcast_ref::<String>().cloned());
    format!("The program failed inside: {}", words.unwrap_or_else(|| "no words".to_owned()))
}

struct Driver {
    engine: Run,
    log: RunLog,
    model: Option<Arc<dyn ModelBackend>>,
    tools: Arc<dyn ToolPlane>,
    reports: Option<mpsc::Receiver<PlaneEvent>>,
    sinks: Option<mpsc::UnboundedReceiver<Observed>>,
    redactor: Arc<Redactor>,
    clock: Arc<dyn Clock>,
    signals: EndSignals,
    /// Once the first one came: the second.
    again: Option<Again>,
    is_hurried: bool,
    grace: Duration,
    desk: Desk,
    hearing: Hearing,
    auditor: Auditor,
    /// A decision that is waited for, and until when.
    gate: Option<Listening>,
    /// The next call waited for a person.
    has_waited: bool,
    gate_until: Option<Instant>,
    /// A timer of the engine's, and when it is over.
    timer: Option<(&'static str, Instant)>,
    /// What came of a claim.
    claimed: Option<Decision>,
    signal: Option<EndSignal>,
    asking: Option<Asking>,
    calling: Option<Calling>,
    listing: Option<BoxFuture<'static, Option<Discovery>>>,
    /// The engine waits for a list.
    list_wanted: bool,
    /// A list changed while one was being read: what that one says may be old.
    list_stale: bool,
    /// What the log knew first of the tools; compared only when they are listed again.
    first: Option<Arc<Entry>>,
    known: Option<Known>,
    ending: Option<Ending>,
    /// Once the run is being ended: when what still resists is given up.
    end_by: Option<Instant>,
}

impl Driver {
    async fn run(&mut self, opening: Opening) -> Result<(), Broken> {
        self.begin(opening)?;
        while self.ending.is_none() {
            match self.woke().await {
                Woke::Journal(failed) => return Err(Broken::Journal(failed)),
                Woke::Signal(signal) => {
                    self.signal = Some(signal);
                    self.again = Some(Again::catch());
                    self.end_by();
                    let control = Control {
                        word: "cancel".to_owned(),
                        source: ControlSource::Signal,
                        signal: Some(signal.name().to_owned()),
                        ..Control::default()
                    };
                    self.input(Entry::Control(control))?;
                }
                Woke::Delta(delta) => self.show(delta),
                Woke::Reply(reply) => self.replied(reply)?,
                Woke::Result(result) => self.returned(result)?,
                Woke::Report(report) => self.reported(report)?,
                Woke::Sink(Some(observed)) => self.sink_told(observed)?,
                Woke::Sink(None) => self.sinks = None,
                Woke::Listed(discovery) => self.listed(discovery)?,
                Woke::Decision(Heard::Decision(decision)) => {
                    self.has_waited = self.gate.is_some();
                    self.leave_gate();
                    self.input(Entry::Decision(decision))?;
                }
                Woke::Decision(Heard::Observed(observed)) => self.input(Entry::Observed(observed))?,
                Woke::Unaudited(detail) => {
                    self.input(Entry::Closed(Closed { by: "audit".to_owned(), detail: Some(detail) }))?;
                }
                Woke::NobodyDecided => {
                    self.leave_gate();
                    self.input(Entry::Timer(Timer { name: GATE_TIMER.to_owned() }))?;
                }
                Woke::Heard(heard) => self.heard(heard)?,
                Woke::Written(control, result) => self.written(control, result)?,
                Woke::Silence => self.tick(),
                Woke::Timer => {
                    if let Some((name, _)) = self.timer.take() {
                        self.input(Entry::Timer(Timer { name: name.to_owned() }))?;
                    }
                }
                // What still resists is given up.
                Woke::Again => {
                    self.is_hurried = true;
                    self.end_by = Some(Instant::now());
                }
            }
        }
        Ok(())
    }

    /// Waits for whatever comes first; what is behind a fragment comes after it. Where the journal has no room, because the disk or a
    /// reader is slow, nothing is taken but a signal: what is in flight goes on, what comes of it is held back, and nothing is lost. A run that is being ended waits for
    /// no reader.
    async fn woke(&mut self) -> Woke {
        let (failed, room) = (self.log.failed(), self.log.room());
        let (is_signalled, is_ending) = (self.signal.is_some(), self.end_by.is_some());
        let end_by = self.end_by;
        let timer = self.timer.map(|(_, at)| at);
        if let Some(detail) = self.auditor.failure() {
            return Woke::Unaudited(detail);
        }
        if let Some(decision) = self.claimed.take() {
            return Woke::Decision(Heard::Decision(decision));
        }
        let (until, tick_at, is_deciding) = (self.gate_until, self.hearing.tick_at(), self.hearing.is_deciding());
        let (lines, channel) = self.hearing.ears();
        let (asking, calling, reports, sinks, listing, gate) =
            (&mut self.asking, &mut self.calling, &mut self.reports, &mut self.sinks, &mut self.listing, &mut self.gate);
        let anything = async {
            if !is_ending {
                tokio::select! {
                    () = room => {}
                    never = underway(asking, calling) => match never {},
                }
            }
            tokio::select! {
                biased;
                woke = lines.next() => woke,
                woke = asked(asking, end_by) => woke,
                result = called(calling, end_by) => Woke::Result(result),
                report = received(reports) => Woke::Report(report),
                observed = received_unbounded(sinks) => Woke::Sink(observed),
                discovery = listed(listing) => Woke::Listed(discovery),
                heard = decided(gate, until), if !is_deciding => heard,
                woke = silence(tick_at) => woke,
            }
        };
        tokio::select! {
            biased;
            failure = failed => Woke::Journal(failure),
            signal = self.signals.first(), if !is_signalled => Woke::Signal(signal),
            () = came(&self.again), if !self.is_hurried => Woke::Again,
            () = at(timer), if timer.is_some() => Woke::Timer,
            woke = anything => woke,
            // Where nothing else is taken.
            woke = cancel(channel), if !is_ending => woke,
        }
    }

    /// Journals an input, lets the engine decide, and carries out what it wants. Waits for nothing.
    fn input(&mut self, entry: impl Into<Arc<Entry>>) -> Result<(), FoldError> {
        let ms = self.clock.monotonic_ms();
        let entry = entry.into();
        let seq = self.log.append(ms, Arc::clone(&entry));
        for effect in self.engine.apply(seq, ms, &entry)? {
            self.carry_out(ms, effect);
        }
        self.stands();
        Ok(())
    }

    fn carry_out(&mut self, ms: u64, effect: Effect) {
        match effect {
            Effect::Emit { mut event, repeats } => {
                let changed = self.redactor.event(&mut event);
                self.hearing.said();
                // What was changed repeats nothing.
                self.log.record(ms, *event, repeats.filter(|_| !changed));
            }
            Effect::Ask { ask, index } => {
                let request = self.engine.request();
                self.log.append(ms, Entry::Ask(*ask));
                let (sender, deltas) = mpsc::channel(usize::try_from(DELTA_QUEUE).unwrap_or(usize::MAX));
                let cancel = CancellationToken::new();
                let (ordinal, request_purpose) = (request.ordinal, request.purpose);
                let native = !request.functions.is_empty();
                let (model, token) = (self.model.clone(), cancel.clone());
                let reply = async move {
                    match model {
                        Some(model) => model.ask(request, sender, token).await,
                        None => nobody(),
                    }
                };
                let reply = reply.boxed();
                let is_shown = request_purpose == Purpose::Step;
                let fragments = Fragments::new(native, index, self.redactor.stream()).shown_if(is_shown);
                // At the boundary of a step, while the model works: what servers do not tell is found out.
                if ordinal > 1 {
                    self.begin_listing(self.tools.list_unheard());
                }
                self.asking = Some(Asking { ordinal, reply: Underway::new(reply), deltas, cancel, until: None, fragments });
            }
            Effect::AbortAsk => {
                self.end_by();
                if let Some(asking) = &self.asking {
                    asking.cancel.cancel();
                }
            }
            Effect::CutAsk => {
                if let Some(asking) = &mut self.asking {
                    asking.until = Instant::now().checked_add(Duration::from_millis(CUT_MS));
                    asking.cancel.cancel();
                }
            }
            Effect::LeaveGate => self.leave_gate(),
            Effect::Arm { name, at } => {
                let wait = at.map(|at| Duration::from_millis(at.saturating_sub(self.clock.monotonic_ms())));
                self.timer = wait.and_then(|wait| Instant::now().checked_add(wait)).map(|at| (name, at));
            }
            Effect::Audit(audited) => self.auditor.note(*audited, ms, &self.redactor),
            // Its line could not be written.
            Effect::Dispatch { .. } if self.auditor.has_failed() => {}
            Effect::Dispatch { intent, dispatch } => {
                self.log.append(ms, Entry::Intent(*intent));
                let cancel = CancellationToken::new();
                let ordinal = dispatch.ordinal;
                let durable = self.log.synced();
                let waited = std::mem::take(&mut self.has_waited);
                let result = call(Arc::clone(&self.tools), *dispatch, durable, cancel.clone(), waited).boxed();
                self.calling = Some(Calling { ordinal, result: Underway::new(result), cancel });
            }
            Effect::CancelCall => {
                self.end_by();
                if let Some(calling) = &self.calling {
                    calling.cancel.cancel();
                }
            }
            Effect::OpenGate(request) => {
                if let Err(detail) = self.desk.note(&request) {
                    let mut notice =
                        Event::Notice(Notice { code: "approval_unrecorded".to_owned(), detail, ..Notice::default() });
                    self.redactor.event(&mut notice);
                    self.log.record(ms, notice, None);
                }
            }
            Effect::AwaitDecision { approval_id, key, digest, milliseconds } => {
                self.gate_until = Instant::now().checked_add(Duration::from_millis(milliseconds));
                self.gate = Some(self.desk.listen(&approval_id, &key, &digest));
            }
            Effect::Claim { approval_id, key, digest } => self.claimed = Some(self.desk.claim(&approval_id, &key, &digest)),
            Effect::ListAgain => {
                self.list_wanted = true;
                self.list();
            }
            Effect::Finish(ending) => self.ending = Some(ending),
        }
    }

    /// When what still resists is given up. The first call decides.
    fn end_by(&mut self) -> Instant {
        let now = Instant::now();
        *self.end_by.get_or_insert_with(|| now.checked_add(self.grace).unwrap_or(now))
    }

    fn show(&mut self, delta: Delta) {
        let Some(asking) = &mut self.asking else { return };
        for event in asking.fragments.read(delta) {
            self.pass(event);
        }
    }

    fn pass(&mut self, event: Event) {
        self.hearing.said();
        self.log.pass(event);
    }

    fn replied(&mut self, reply: Option<ModelReply>) -> Result<(), FoldError> {
        let Some(mut asking) = self.asking.take() else { return Ok(()) };
        while let Ok(delta) = asking.deltas.try_recv() {
            for event in asking.fragments.read(delta) {
                self.log.pass(event);
            }
        }
        for event in asking.fragments.finish() {
            self.log.pass(event);
        }
        let ModelReply { mut reply, observed, .. } = reply.unwrap_or_else(|| ModelReply {
            reply: Reply {
                end: ReplyEnd::Interrupted,
                detail: Some("The model did not let go in time.".to_owned()),
                ..Reply::default()
            },
            ..ModelReply::default()
        });
        for observed in observed {
            self.input(Entry::Observed(observed))?;
        }
        reply.of = asking.ordinal;
        reply.shown = asking.fragments.shown();
        self.input(Entry::Reply(reply))
    }

    fn returned(&mut self, result: Option<CallResult>) -> Result<(), FoldError> {
        let Some(calling) = self.calling.take() else { return Ok(()) };
        let mut result = result.unwrap_or_else(|| CallResult {
            end: CallEnd::Cancelled,
            exit_code: -1,
            error: "The call was given up, and its server did not let go in time: whether it took effect is unknown.".to_owned(),
            ..CallResult::default()
        });
        result.of = calling.ordinal;
        self.auditor.returned(&result, self.clock.monotonic_ms(), &self.redactor);
        self.input(Entry::Result(result))
    }

    fn reported(&mut self, report: Option<PlaneEvent>) -> Result<(), FoldError> {
        match report {
            Some(PlaneEvent::Observed(observed)) => self.input(Entry::Observed(observed)),
            Some(PlaneEvent::Stale { .. }) => {
                self.list();
                Ok(())
            }
            None => {
                self.reports = None;
                Ok(())
            }
        }
    }

    fn leave_gate(&mut self) {
        self.gate = None;
        self.gate_until = None;
    }

    /// Gives up whatever is still in flight: nobody takes it any more.
    fn let_go(&mut self) {
        if let Some(asking) = self.asking.take() {
            asking.cancel.cancel();
        }
        if let Some(calling) = self.calling.take() {
            calling.cancel.cancel();
        }
        self.listing = None;
        self.leave_gate();
    }
}

#[cfg(test)]
#[path = "driver_tests.rs"]
mod tests;
