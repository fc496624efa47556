//! The only loop that does I/O: it carries out the engine's effects, and feeds back what came of them. Every input is journaled before the
//! engine sees it. It decides nothing.

mod fragments;
mod listing;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use mission_contract::event::{Event, MissionFinished, Notice, Outcome};
use mission_contract::log::{
    CallEnd, CallResult, Catalogue, Closed, Control, ControlSource, Entry, Leg, Observed, Open, Reply, ReplyEnd,
};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::engine::effect::{Effect, Ending};
use crate::engine::run::{FoldError, Run};
use crate::journal::{JournalFailed, RunLog};
use crate::limits::{DELTA_QUEUE, LISTING_SECONDS};
use crate::model::{Delta, ModelBackend, ModelReply};
use crate::redact::Redactor;
use crate::sys::clock::Clock;
use crate::sys::signals::{EndSignal, EndSignals};
use crate::tools::{Discovery, PlaneEvent, ToolPlane};
use fragments::Fragments;
use listing::Known;

/// What a run is opened with.
#[derive(Debug)]
pub struct Opening {
    /// What was asked.
    pub open: Open,
    /// Who answers.
    pub leg: Leg,
    /// What discovery found.
    pub discovery: Discovery,
    /// What was seen before the run began and the stream must tell.
    pub observed: Vec<Observed>,
}

/// What a run runs on.
pub struct Parts {
    /// Its log; the sinks hang on it.
    pub log: RunLog,
    /// The model.
    pub model: Arc<dyn ModelBackend>,
    /// The tools.
    pub tools: Arc<dyn ToolPlane>,
    /// What the tools report by themselves.
    pub reports: mpsc::Receiver<PlaneEvent>,
    /// What the sinks report by themselves.
    pub sinks: mpsc::UnboundedReceiver<Observed>,
    /// What never leaves.
    pub redactor: Arc<Redactor>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// The signals that end a run.
    pub signals: EndSignals,
    /// How long what is in flight may resist when the run ends.
    pub grace: Duration,
}

/// How a run ended, for the exit code.
#[derive(Debug)]
pub struct Ended {
    /// How the engine ended it; absent when something failed so badly that it did not.
    pub ending: Option<Ending>,
    /// Why the journal failed.
    pub journal: Option<JournalFailed>,
    /// The signal that came.
    pub signal: Option<EndSignal>,
    /// What went wrong inside.
    pub internal: Option<String>,
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
    let Parts { log, model, tools, reports, sinks, redactor, clock, signals, grace } = parts;
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
        grace,
        signal: None,
        asking: None,
        calling: None,
        listing: None,
        list_wanted: false,
        known: Known::default(),
        ending: None,
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
    let Driver { log, ending, signal, .. } = driver;
    let closing = log.close(grace).await;
    tools.close().await;
    Ended { ending, journal: journal.or(closing.failed), signal, internal, given_up: closing.given_up }
}

fn panic_words(panic: &(dyn std::any::Any + Send)) -> String {
    let words = panic.downcast_ref::<&str>().map(|words| (*words).to_owned()).or_else(|| panic.downcast_ref::<String>().cloned());
    format!("The program failed inside: {}", words.unwrap_or_else(|| "no words".to_owned()))
}

struct Asking {
    ordinal: u64,
    reply: BoxFuture<'static, ModelReply>,
    deltas: mpsc::Receiver<Delta>,
    cancel: CancellationToken,
    fragments: Fragments,
    /// When it is given up for good.
    deadline: Option<Instant>,
}

struct Calling {
    ordinal: u64,
    result: BoxFuture<'static, CallResult>,
    cancel: CancellationToken,
    deadline: Option<Instant>,
}

struct Driver {
    engine: Run,
    log: RunLog,
    model: Arc<dyn ModelBackend>,
    tools: Arc<dyn ToolPlane>,
    reports: Option<mpsc::Receiver<PlaneEvent>>,
    sinks: Option<mpsc::UnboundedReceiver<Observed>>,
    redactor: Arc<Redactor>,
    clock: Arc<dyn Clock>,
    signals: EndSignals,
    grace: Duration,
    signal: Option<EndSignal>,
    asking: Option<Asking>,
    calling: Option<Calling>,
    listing: Option<BoxFuture<'static, Option<Discovery>>>,
    /// The engine waits for a list.
    list_wanted: bool,
    known: Known,
    ending: Option<Ending>,
}

/// What woke the loop.
enum Woke {
    Journal(JournalFailed),
    Signal(EndSignal),
    Delta(Delta),
    Reply(Option<ModelReply>),
    Result(Option<CallResult>),
    Report(Option<PlaneEvent>),
    Sink(Option<Observed>),
    Listed(Option<Discovery>),
}

impl Driver {
    async fn run(&mut self, opening: Opening) -> Result<(), Broken> {
        let Opening { open, leg, discovery, observed } = opening;
        self.known = Known::of(&discovery.tools);
        self.input(Entry::Open(Box::new(open))).await?;
        self.input(Entry::Leg(leg)).await?;
        for observed in observed.into_iter().chain(discovery.observed) {
            self.input(Entry::Observed(observed)).await?;
        }
        let catalogue = Catalogue { servers: discovery.servers, tools: discovery.tools, ..Catalogue::default() };
        self.input(Entry::Catalogue(catalogue)).await?;
        while self.ending.is_none() {
            match self.woke().await {
                Woke::Journal(failed) => return Err(Broken::Journal(failed)),
                Woke::Signal(signal) => {
                    self.signal = Some(signal);
                    let control = Control {
                        word: "cancel".to_owned(),
                        source: ControlSource::Signal,
                        signal: Some(signal.name().to_owned()),
                        ..Control::default()
                    };
                    self.input(Entry::Control(control)).await?;
                }
                Woke::Delta(delta) => self.show(delta),
                Woke::Reply(reply) => self.replied(reply).await?,
                Woke::Result(result) => self.returned(result).await?,
                Woke::Report(report) => self.reported(report).await?,
                Woke::Sink(Some(observed)) => self.input(Entry::Observed(observed)).await?,
                Woke::Sink(None) => self.sinks = None,
                Woke::Listed(discovery) => self.listed(discovery).await?,
            }
        }
        Ok(())
    }

    /// Waits for whatever comes first; what is behind a fragment comes after it.
    async fn woke(&mut self) -> Woke {
        let failed = self.log.failed();
        let signalled = self.signal.is_some();
        tokio::select! {
            biased;
            failure = failed => Woke::Journal(failure),
            signal = self.signals.first(), if !signalled => Woke::Signal(signal),
            woke = asked(&mut self.asking) => woke,
            result = called(&mut self.calling) => Woke::Result(result),
            report = received(&mut self.reports) => Woke::Report(report),
            observed = received_unbounded(&mut self.sinks) => Woke::Sink(observed),
            discovery = listed(&mut self.listing) => Woke::Listed(discovery),
        }
    }

    /// Journals an input, lets the engine decide, and carries out what it wants.
    async fn input(&mut self, entry: Entry) -> Result<(), Broken> {
        self.room().await?;
        let ms = self.clock.monotonic_ms();
        let seq = self.log.append(ms, entry.clone());
        let effects = self.engine.apply(seq, ms, &entry)?;
        drop(entry);
        for effect in effects {
            self.carry_out(ms, effect).await?;
        }
        Ok(())
    }

    /// Waits until the journal can take more: a slow reader holds the run back, and loses nothing.
    async fn room(&mut self) -> Result<(), Broken> {
        let (room, failed) = (self.log.room(), self.log.failed());
        tokio::select! {
            biased;
            failure = failed => Err(Broken::Journal(failure)),
            () = room => Ok(()),
        }
    }

    async fn carry_out(&mut self, ms: u64, effect: Effect) -> Result<(), Broken> {
        match effect {
            Effect::Emit { mut event, repeats } => {
                self.redactor.event(&mut event);
                self.log.record(ms, *event, repeats);
            }
            Effect::Ask { ask, index, request } => {
                self.log.append(ms, Entry::Ask(*ask));
                let (sender, deltas) = mpsc::channel(usize::try_from(DELTA_QUEUE).unwrap_or(usize::MAX));
                let cancel = CancellationToken::new();
                let ordinal = request.ordinal;
                let native = !request.functions.is_empty();
                let (model, token) = (Arc::clone(&self.model), cancel.clone());
                let reply = async move { model.ask(*request, sender, token).await }.boxed();
                let fragments = Fragments::new(native, index, self.redactor.stream());
                // At the boundary of a step, while the model works: what servers do not tell is found out.
                if ordinal > 1 {
                    self.begin_listing(self.tools.list_unheard());
                }
                self.asking = Some(Asking { ordinal, reply, deltas, cancel, fragments, deadline: None });
            }
            Effect::AbortAsk => {
                if let Some(asking) = &mut self.asking {
                    asking.cancel.cancel();
                    asking.deadline = Instant::now().checked_add(self.grace);
                }
            }
            Effect::Dispatch { intent, dispatch } => {
                self.log.append(ms, Entry::Intent(*intent));
                self.log.synced().await.map_err(Broken::Journal)?;
                let cancel = CancellationToken::new();
                let ordinal = dispatch.ordinal;
                let result = self.tools.call(*dispatch, cancel.clone());
                self.calling = Some(Calling { ordinal, result, cancel, deadline: None });
            }
            Effect::CancelCall => {
                if let Some(calling) = &mut self.calling {
                    calling.cancel.cancel();
                    calling.deadline = Instant::now().checked_add(self.grace);
                }
            }
            Effect::ListAgain => {
                self.list_wanted = true;
                self.list();
            }
            Effect::Finish(ending) => self.ending = Some(ending),
        }
        Ok(())
    }

    fn show(&mut self, delta: Delta) {
        if let Some(asking) = &mut self.asking {
            for event in asking.fragments.read(delta) {
                self.log.pass(event);
            }
        }
    }

    async fn replied(&mut self, reply: Option<ModelReply>) -> Result<(), Broken> {
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
            self.input(Entry::Observed(observed)).await?;
        }
        reply.of = asking.ordinal;
        reply.shown = asking.fragments.shown();
        self.input(Entry::Reply(reply)).await
    }

    async fn returned(&mut self, result: Option<CallResult>) -> Result<(), Broken> {
        let Some(calling) = self.calling.take() else { return Ok(()) };
        let mut result = result.unwrap_or_else(|| CallResult {
            end: CallEnd::Cancelled,
            exit_code: -1,
            error: "The call was given up, and its server did not let go in time.".to_owned(),
            ..CallResult::default()
        });
        result.of = calling.ordinal;
        self.input(Entry::Result(result)).await
    }

    async fn reported(&mut self, report: Option<PlaneEvent>) -> Result<(), Broken> {
        match report {
            Some(PlaneEvent::Observed(observed)) => self.input(Entry::Observed(observed)).await,
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

    fn list(&mut self) {
        let list = self.tools.list().map(Some).boxed();
        self.begin_listing(list);
    }

    fn begin_listing(&mut self, list: BoxFuture<'static, Option<Discovery>>) {
        if self.listing.is_none() {
            let list = tokio::time::timeout(Duration::from_secs(LISTING_SECONDS), list);
            self.listing = Some(async move { list.await.ok().flatten() }.boxed());
        }
    }

    async fn listed(&mut self, discovery: Option<Discovery>) -> Result<(), Broken> {
        self.listing = None;
        let wanted = std::mem::take(&mut self.list_wanted);
        let Some(discovery) = discovery else {
            if wanted {
                return self.input(Entry::Catalogue(Catalogue::default())).await;
            }
            return Ok(());
        };
        for observed in discovery.observed {
            self.input(Entry::Observed(observed)).await?;
        }
        let (catalogue, differs) = self.known.compare(discovery.servers, discovery.tools);
        if differs || wanted { self.input(Entry::Catalogue(catalogue)).await } else { Ok(()) }
    }

    /// The journal is gone: what can still be told goes to the sinks only.
    fn journal_failed(&mut self, failed: &JournalFailed) {
        let mut notice =
            Event::Notice(Notice { code: "journal_failed".to_owned(), detail: failed.to_string(), ..Notice::default() });
        self.redactor.event(&mut notice);
        let ended = self.ending.is_some();
        let mut events = vec![notice];
        if !ended {
            events.push(self.last_words());
        }
        self.log.emergency(events);
    }

    /// The run failed inside: the engine ends it if it still can.
    fn close_after(&mut self, detail: &str) {
        if self.ending.is_some() {
            return;
        }
        let ms = self.clock.monotonic_ms();
        let entry = Entry::Closed(Closed { by: "driver".to_owned(), detail: Some(detail.to_owned()) });
        let seq = self.log.append(ms, entry.clone());
        let engine = &mut self.engine;
        let effects = std::panic::catch_unwind(AssertUnwindSafe(|| engine.apply(seq, ms, &entry)));
        let mut finished = false;
        if let Ok(Ok(effects)) = effects {
            for effect in effects {
                if let Effect::Emit { mut event, repeats } = effect {
                    finished |= matches!(*event, Event::MissionFinished(_));
                    self.redactor.event(&mut event);
                    self.log.record(ms, *event, repeats);
                }
            }
        }
        if !finished {
            let last = self.last_words();
            self.log.record(ms, last, None);
        }
    }

    /// An ending without the engine.
    fn last_words(&self) -> Event {
        let elapsed_s = Some(self.clock.monotonic_ms() as f64 / 1000.0);
        Event::MissionFinished(MissionFinished {
            outcome: Outcome::Incomplete,
            steps: self.engine.steps(),
            max_steps: self.engine.max_steps(),
            elapsed_s,
            ..MissionFinished::default()
        })
    }
}

async fn asked(asking: &mut Option<Asking>) -> Woke {
    let Some(asking) = asking else { return std::future::pending().await };
    tokio::select! {
        biased;
        Some(delta) = asking.deltas.recv() => Woke::Delta(delta),
        reply = &mut asking.reply => Woke::Reply(Some(reply)),
        () = at(asking.deadline) => Woke::Reply(None),
    }
}

async fn called(calling: &mut Option<Calling>) -> Option<CallResult> {
    let Some(calling) = calling else { return std::future::pending().await };
    tokio::select! {
        biased;
        result = &mut calling.result => Some(result),
        () = at(calling.deadline) => None,
    }
}

async fn listed(listing: &mut Option<BoxFuture<'static, Option<Discovery>>>) -> Option<Discovery> {
    match listing {
        Some(listing) => listing.await,
        None => std::future::pending().await,
    }
}

async fn received<T>(receiver: &mut Option<mpsc::Receiver<T>>) -> Option<T> {
    match receiver {
        Some(receiver) => receiver.recv().await,
        None => std::future::pending().await,
    }
}

async fn received_unbounded<T>(receiver: &mut Option<mpsc::UnboundedReceiver<T>>) -> Option<T> {
    match receiver {
        Some(receiver) => receiver.recv().await,
        None => std::future::pending().await,
    }
}

async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
