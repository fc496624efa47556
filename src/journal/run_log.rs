//! The handle by which a run is written: appending never waits, and says nothing about durability; [`RunLog::synced`] does.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use mission_contract::digest;
use mission_contract::event::Event;
use mission_contract::log::Entry;
use tokio::sync::{oneshot, watch};

use super::queue::{Envelope, Job, Queue};
use super::reader::ReadFrom;
use super::store::HeldRun;
use super::writer::{Progress, Writer};
use super::{JournalError, JournalFailed, RunMeta, RunStore, Tail};
use crate::engine::delivery::{EventSink, Valve};
use crate::limits;
use crate::sys::clock::{Clock, rfc3339};
use crate::sys::files::{create_file, sync_folder};
use crate::sys::lock::Holder;

/// A run that is being written. One task owns it.
///
/// Dropping it without [`RunLog::close`] lets the thread write and deliver what is queued, and waits for nothing.
pub struct RunLog {
    queue: Arc<Queue>,
    progress: watch::Receiver<Progress>,
    done: Option<oneshot::Receiver<()>>,
    valves: Vec<Box<dyn Valve>>,
    clock: Arc<dyn Clock>,
    next: u64,
    run_id: String,
    epoch: u64,
    folder: Option<PathBuf>,
    name: String,
}

/// How closing went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Closing {
    /// Why not everything is durable.
    pub failed: Option<JournalFailed>,
    /// Sinks whose readers took nothing any more, with the number of records that they were not given.
    pub given_up: Vec<(String, u64)>,
}

/// How long the end of a run waits for a slow reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// This long in all: the run was told to end.
    AtMost(Duration),
    /// As long as something is taken at least once in this time: a slow reader loses nothing.
    WhileTaken(Duration),
}

impl RunLog {
    /// Makes a run in `store` and starts its writer. The first thing to append is `open`; [`RunLog::run_id`] says which id the
    /// run got: `run_id`, or another one when that was taken.
    ///
    /// # Errors
    /// What is in the way. Nothing is left half done then.
    pub fn create(
        store: &RunStore,
        run_id: &str,
        clock: Arc<dyn Clock>,
        sinks: Vec<Box<dyn EventSink>>,
    ) -> Result<Self, JournalError> {
        let held = store.create(run_id, &*clock)?;
        Self::begin(held, clock, sinks)
    }

    /// The same with just this id. What a process left there that died before it wrote a line is taken over.
    ///
    /// # Errors
    /// What is in the way: somebody else who begins it, for one.
    pub fn create_exactly(
        store: &RunStore,
        run_id: &str,
        clock: Arc<dyn Clock>,
        sinks: Vec<Box<dyn EventSink>>,
    ) -> Result<Self, JournalError> {
        Self::begin(store.create_exactly(run_id)?, clock, sinks)
    }

    fn begin(held: HeldRun, clock: Arc<dyn Clock>, sinks: Vec<Box<dyn EventSink>>) -> Result<Self, JournalError> {
        let meta = RunMeta { run_id: held.run_id.clone(), created_at: rfc3339(clock.utc()), ..RunMeta::default() };
        Self::start(held, (0, digest::ZERO.to_owned()), 1, meta, clock, sinks)
    }

    /// Carries a run on behind its `tail`, as [`super::LogReader::into_tail`] found it under the same hold. A torn tail is
    /// moved to `log.torn-<seq>` first. The first thing to append is `writer`, with [`RunLog::epoch`].
    ///
    /// # Errors
    /// What is in the way.
    pub fn reopen(
        mut held: HeldRun,
        tail: &Tail,
        clock: Arc<dyn Clock>,
        sinks: Vec<Box<dyn EventSink>>,
    ) -> Result<Self, JournalError> {
        let epoch = tail.epoch.saturating_add(1);
        let mut meta = RunMeta { run_id: held.run_id.clone(), ..RunMeta::default() };
        if let Some(place) = &mut held.place {
            let at = |source| JournalError::place(&place.folder, source);
            if tail.torn.is_some() {
                move_torn(&held.log, &place.folder, tail).map_err(at)?;
            }
            place.lock.sign(&Holder::this_process(epoch)).map_err(at)?;
            match create_file(&place.marker) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(at(error)),
                _ => held.unsynced.extend(place.marker.parent().map(Path::to_path_buf)),
            }
            meta = RunMeta::read(&place.folder.join(super::store::META_FILE)).unwrap_or(meta);
        }
        Self::start(held, (tail.seq, tail.sum.clone()), epoch, meta, clock, sinks)
    }

    fn start(
        held: HeldRun,
        head: (u64, String),
        epoch: u64,
        meta: RunMeta,
        clock: Arc<dyn Clock>,
        sinks: Vec<Box<dyn EventSink>>,
    ) -> Result<Self, JournalError> {
        let queue = Arc::<Queue>::default();
        let (sender, progress) = watch::channel(Progress { durable: head.0, failed: None });
        let (done, closed) = oneshot::channel();
        let log = Self {
            queue: Arc::clone(&queue),
            progress,
            done: Some(closed),
            valves: sinks.iter().filter_map(|sink| sink.valve()).collect(),
            clock: Arc::clone(&clock),
            next: head.0.saturating_add(1),
            run_id: held.run_id.clone(),
            epoch,
            folder: held.place.as_ref().map(|place| place.folder.clone()),
            name: held.log_name(),
        };
        let writer = Writer::new(held, head, meta, clock, sinks, queue, sender);
        std::thread::Builder::new().name("journal".to_owned()).spawn(move || writer.run(done)).map_err(JournalError::Thread)?;
        Ok(log)
    }

    /// The run's id.
    pub fn run_id(&self) -> &str {
        &self.run_id
    }

    /// Number of this stretch of the run, from 1.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The run's folder; nothing where the run is not kept.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// Number of the last line appended; 0 before the first.
    pub fn last_seq(&self) -> u64 {
        self.next.saturating_sub(1)
    }

    fn envelope(&mut self, ms: u64) -> Envelope {
        let seq = self.next;
        self.next = seq.saturating_add(1);
        Envelope { seq, at: self.clock.utc(), ms }
    }

    /// Appends a line, and returns its number. `ms` is the run's work time. An entry that is shared is not copied.
    pub fn append(&mut self, ms: u64, entry: impl Into<Arc<Entry>>) -> u64 {
        let envelope = self.envelope(ms);
        self.queue.push(Job::Entry { envelope, entry: entry.into() });
        envelope.seq
    }

    /// Appends a record, redacted by the caller, and returns the number of its line. It goes to the sinks once it is durable.
    /// `repeats` is the number of the `result` line whose text equals its `output`: a large one is stored once. The
    /// `log_head` of a `mission_finished` is filled in.
    pub fn record(&mut self, ms: u64, event: Event, repeats: Option<u64>) -> u64 {
        let envelope = self.envelope(ms);
        self.queue.push(Job::Record { envelope, event: Box::new(event), repeats });
        envelope.seq
    }

    /// Hands a fragment, redacted by the caller, to the sinks, behind the records before it. It is not journaled.
    pub fn pass(&mut self, event: Event) {
        self.queue.push(Job::Fragment(Box::new(event)));
    }

    /// Hands the last records of a run whose journal has failed to the sinks, and nowhere else.
    pub fn emergency(&mut self, events: Vec<Event>) {
        self.queue.push(Job::Emergency(events));
    }

    /// Resolves when everything appended so far is durable.
    ///
    /// # Errors
    /// When it will never be.
    pub fn synced(&self) -> impl Future<Output = Result<(), JournalFailed>> + Send + 'static {
        let target = self.last_seq();
        let mut progress = self.progress.clone();
        let gone = self.writer_gone();
        async move {
            match progress.wait_for(|progress| progress.durable >= target || progress.failed.is_some()).await {
                Ok(progress) if progress.durable >= target => Ok(()),
                Ok(progress) => Err(progress.failed.clone().unwrap_or(gone)),
                Err(_) => Err(gone),
            }
        }
    }

    /// Resolves when what is queued is below its bounds: the driver waits for it before it goes on, so that a slow disk or a
    /// slow reader slows the run instead of filling the memory.
    pub fn room(&self) -> impl Future<Output = ()> + Send + 'static {
        let queue = Arc::clone(&self.queue);
        async move { queue.room().await }
    }

    /// Why nothing is durable any more, if so.
    pub fn failure(&self) -> Option<JournalFailed> {
        self.progress.borrow().failed.clone()
    }

    /// Resolves as soon as nothing is durable any more; never while all is well.
    pub fn failed(&self) -> impl Future<Output = JournalFailed> + Send + 'static {
        let mut progress = self.progress.clone();
        let gone = self.writer_gone();
        async move {
            match progress.wait_for(|progress| progress.failed.is_some()).await {
                Ok(progress) => progress.failed.clone().unwrap_or(gone),
                Err(_) => gone,
            }
        }
    }

    /// Writes and delivers everything, ends the sinks and frees the run. A reader is given up when `patience` ends; the log is
    /// complete all the same.
    pub async fn close(self, patience: Patience) -> Closing {
        self.close_or_hurry(patience, std::future::pending()).await
    }

    /// The same; when `hurry` comes first, every reader that something waits for is given up there and then.
    pub async fn close_or_hurry(mut self, patience: Patience, hurry: impl Future<Output = ()>) -> Closing {
        let everything = self.synced();
        let failure = self.progress.clone();
        self.queue.close();
        let mut failed = None;
        if let Some(mut done) = self.done.take()
            && !tokio::select! {
                biased;
                ended = self.ends_within(patience, &mut done) => ended,
                () = hurry => false,
            }
        {
            let stuck = tokio::time::timeout(Duration::from_millis(limits::JOURNAL_STUCK_MS), self.give_up(done)).await;
            if stuck.is_err() {
                failed = Some(JournalFailed { path: self.name.clone(), detail: "its disk does not answer".to_owned() });
            }
        }
        if failed.is_none() {
            failed = match failure.borrow().failed.clone() {
                Some(failed) => Some(failed),
                // The thread is gone: this does not wait.
                None => everything.await.err(),
            };
        }
        let given_up = self.valves.iter().filter(|valve| valve.is_given_up());
        Closing { failed, given_up: given_up.map(|valve| (valve.name().to_owned(), valve.left_out())).collect() }
    }

    /// Waits for the thread's end. False when patience ended first.
    async fn ends_within(&self, patience: Patience, done: &mut oneshot::Receiver<()>) -> bool {
        match patience {
            Patience::AtMost(time) => tokio::time::timeout(time, done).await.is_ok(),
            Patience::WhileTaken(pause) => loop {
                let before = self.taken();
                if tokio::time::timeout(pause, &mut *done).await.is_ok() {
                    return true;
                }
                if self.taken() == before {
                    return false;
                }
            },
        }
    }

    /// What the disk and the readers have taken so far.
    fn taken(&self) -> (u64, u64) {
        let bytes = self.valves.iter().fold(0_u64, |sum, valve| sum.wrapping_add(valve.taken()));
        (self.progress.borrow().durable, bytes)
    }

    /// Gives up every reader that something waits for, until the thread has ended. More than once: it may come to wait for
    /// one only after it has written more.
    async fn give_up(&self, mut done: oneshot::Receiver<()>) {
        let pause = Duration::from_millis(limits::GIVE_UP_PAUSE_MS);
        loop {
            self.valves.iter().for_each(|valve| valve.give_up());
            if tokio::time::timeout(pause, &mut done).await.is_ok() {
                return;
            }
        }
    }

    fn writer_gone(&self) -> JournalFailed {
        JournalFailed { path: self.name.clone(), detail: "its writer has ended".to_owned() }
    }
}

impl Drop for RunLog {
    fn drop(&mut self) {
        self.queue.close();
    }
}

/// Moves what stands behind the last good line to a file of its own, and cuts the log there. The copy is durable before the
/// log is cut.
pub(super) fn move_torn(log: &File, folder: &Path, tail: &Tail) -> io::Result<()> {
    let name = format!("log.torn-{}", tail.seq.saturating_add(1));
    let mut suffix = 1_u64;
    let mut torn = loop {
        let path = match suffix {
            1 => folder.join(&name),
            _ => folder.join(format!("{name}.{suffix}")),
        };
        match create_file(&path) {
            Ok(file) => break file,
            // It was torn at this line before.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && suffix < limits::RUN_ID_ATTEMPTS => {
                suffix = suffix.saturating_add(1);
            }
            Err(error) => return Err(error),
        }
    };
    let mut rest = ReadFrom { log, at: tail.bytes };
    io::copy(&mut rest, &mut torn)?;
    torn.sync_all()?;
    sync_folder(folder)?;
    log.set_len(tail.bytes)?;
    log.sync_all()
}

#[cfg(test)]
#[path = "run_log_tests.rs"]
mod tests;
