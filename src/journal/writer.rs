//! The writer's thread: the only one that touches the log. A group is written, synced, and only then delivered; the next one
//! collects meanwhile, and is written only after that sync returned.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;

use mission_contract::event::{Event, MissionFinished, Notice, Outcome, ToolResult};
use mission_contract::line::{self, LineWriter};
use mission_contract::log::Entry;
use mission_contract::text::{DEDUPLICATED_BYTES, Text};
use tokio::sync::{oneshot, watch};

use super::queue::{Envelope, Job, Queue};
use super::store::{HeldRun, META_FILE};
use super::weight;
use super::{JournalFailed, RunMeta, Witness};
use crate::engine::delivery::{Delivery, EventSink};
use crate::limits;
use crate::sys::clock::{Clock, rfc3339};
use crate::sys::files::{Durability, sync_folder};
use crate::sys::lock::Lock;

/// How far the log is.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress {
    /// Number of the last line that is durable.
    pub(super) durable: u64,
    /// Set once, for ever.
    pub(super) failed: Option<JournalFailed>,
}

/// The thread's state.
pub(super) struct Writer {
    queue: Arc<Queue>,
    progress: watch::Sender<Progress>,
    sinks: Vec<Box<dyn EventSink>>,
    clock: Arc<dyn Clock>,
    log: File,
    name: String,
    lines: LineWriter,
    /// Number of the last line given to the file.
    seq: u64,
    /// Lines that are not given to the file yet.
    buffer: Vec<u8>,
    failed: bool,
    /// The run's own ending, from the moment it is to be written until the sinks have one.
    ending: Option<MissionFinished>,
    /// The sinks were told that the journal failed.
    told: bool,
    kept: Option<Kept>,
    meta: RunMeta,
    unsynced: Vec<PathBuf>,
}

/// What is there besides the log where a run is kept.
struct Kept {
    meta: PathBuf,
    marker: PathBuf,
    /// The line that is durable for certain.
    head: Option<Witness>,
    /// True when the run's end is durable.
    ended: bool,
    /// Held for the life of the thread.
    _lock: Lock,
}

/// What goes to the sinks when the group is durable.
enum Outgoing {
    Record(Delivery),
    Fragment(Box<Event>),
    Emergency(Vec<Event>),
}

/// Tells the handle that the thread is gone, however it ended.
struct Farewell {
    queue: Arc<Queue>,
    done: Option<oneshot::Sender<()>>,
}

impl Drop for Farewell {
    fn drop(&mut self) {
        self.queue.abandon();
        if let Some(done) = self.done.take() {
            // Nobody listens when the handle was dropped.
            let _ = done.send(());
        }
    }
}

impl Writer {
    /// A writer that carries on after line `seq`, whose `sum` is `head`.
    pub(super) fn new(
        held: HeldRun,
        (seq, head): (u64, String),
        meta: RunMeta,
        clock: Arc<dyn Clock>,
        sinks: Vec<Box<dyn EventSink>>,
        queue: Arc<Queue>,
        progress: watch::Sender<Progress>,
    ) -> Self {
        let name = held.log_name();
        let kept = held.place.map(|place| Kept {
            meta: place.folder.join(META_FILE),
            marker: place.marker,
            head: (seq > 0).then(|| Witness { seq, sum: head.clone() }),
            ended: false,
            _lock: place.lock,
        });
        Self {
            queue,
            progress,
            sinks,
            clock,
            log: held.log,
            name,
            lines: LineWriter::new(head),
            seq,
            buffer: Vec::new(),
            failed: false,
            ending: None,
            told: false,
            kept,
            meta,
            unsynced: held.unsynced,
        }
    }

    /// Writes until the queue is closed and empty.
    pub(super) fn run(mut self, done: oneshot::Sender<()>) {
        let farewell = Farewell { queue: Arc::clone(&self.queue), done: Some(done) };
        // What was made must be durable before anything that stands in it is.
        for folder in std::mem::take(&mut self.unsynced) {
            if let Err(error) = sync_folder(&folder) {
                self.fail(&format!("the folder {} could not be synced ({error})", folder.display()));
                break;
            }
        }
        let mut listed = false;
        while let Some(group) = self.queue.take() {
            let (count, weight) = group.size();
            self.group(group.jobs);
            self.queue.done(count, weight);
            // The first list entry of a run is written when there is nothing better to do.
            if !listed && self.queue.is_idle() {
                self.list(Durability::Atomic);
                listed = true;
            }
        }
        self.list(Durability::Synced);
        if let Some(kept) = &self.kept
            && kept.ended
        {
            // A mark that stays behind is found and removed by a later start.
            let _ = std::fs::remove_file(&kept.marker);
        }
        self.end_all_the_same();
        for sink in &mut self.sinks {
            sink.finish();
        }
        drop(self);
        drop(farewell);
    }

    fn group(&mut self, jobs: Vec<Job>) {
        let mut outgoing = Vec::new();
        let mut first = None;
        let mut ends = false;
        for job in jobs {
            match job {
                Job::Entry { envelope, entry } => {
                    self.meta.note_entry(&entry);
                    self.line(*first.get_or_insert(envelope.seq), envelope, None, &entry);
                }
                Job::Record { envelope, event, repeats } => {
                    ends |= matches!(*event, Event::MissionFinished(_));
                    let group = *first.get_or_insert(envelope.seq);
                    outgoing.extend(self.record(group, envelope, *event, repeats).map(Outgoing::Record));
                }
                // Nothing before it waits for the disk.
                Job::Fragment(event) if outgoing.is_empty() && !self.failed => self.deliver(*event),
                Job::Fragment(event) => outgoing.push(Outgoing::Fragment(event)),
                Job::Emergency(events) => outgoing.push(Outgoing::Emergency(events)),
            }
        }
        if first.is_some() {
            self.sync(ends);
        }
        for out in outgoing {
            match out {
                Outgoing::Record(delivery) if !self.failed => self.hand_out(&delivery),
                Outgoing::Fragment(event) if !self.failed => self.deliver(*event),
                Outgoing::Emergency(events) => {
                    self.told = true;
                    events.into_iter().for_each(|event| self.deliver(event));
                }
                // Never shown, as it is lost.
                Outgoing::Record(_) | Outgoing::Fragment(_) => {}
            }
        }
    }

    /// Writes a record. In the log a large text that a `result` holds already is a pointer to it.
    fn record(&mut self, group: u64, envelope: Envelope, mut event: Event, repeats: Option<u64>) -> Option<Delivery> {
        if let Event::MissionFinished(finished) = &event {
            self.ending = Some(finished.clone());
        }
        if self.failed {
            return None;
        }
        if let Event::MissionFinished(finished) = &mut event
            && self.kept.is_some()
        {
            finished.log_head = Some(self.lines.head().to_owned());
        }
        self.meta.note_event(&event);
        let pointed = point_at(&mut event, repeats);
        let raw = match serde_json::value::to_raw_value(&event) {
            Ok(raw) => raw,
            Err(error) => {
                self.fail(&format!("a record of the kind {} could not be written ({error})", event.name()));
                return None;
            }
        };
        let branch = event.branch().map(str::to_owned);
        let entry = Entry::Record(raw);
        self.line(group, envelope, branch.as_deref(), &entry);
        match (pointed, event, entry) {
            (Some(output), Event::ToolResult(mut result), _) => {
                result.output = output;
                Some(Delivery::new(Arc::new(Event::ToolResult(result))))
            }
            (_, event, Entry::Record(raw)) => Some(Delivery::with_line(Arc::new(event), String::from(Box::<str>::from(raw)))),
            (_, event, _) => Some(Delivery::new(Arc::new(event))),
        }
    }

    /// Adds a line to what is written next.
    fn line(&mut self, group: u64, envelope: Envelope, branch: Option<&str>, entry: &Entry) {
        if self.failed {
            return;
        }
        let Envelope { seq, at, ms } = envelope;
        // The memory for a large line is taken at once: growing step by step would take it twice.
        let size = weight::of_entry(entry);
        self.buffer.reserve(size.saturating_add(size >> 4));
        let at = rfc3339(at);
        match self.lines.line(line::Envelope { seq, group, at: &at, ms, branch }, entry, &mut self.buffer) {
            Ok(()) => self.seq = seq,
            Err(problem) => return self.fail(&format!("line {seq} could not be written ({problem})")),
        }
        let bound = limits::size(limits::JOURNAL_WRITE_BYTES);
        if self.buffer.len() >= bound {
            self.write();
            self.buffer.shrink_to(bound);
        }
    }

    fn write(&mut self) {
        let written = self.log.write_all(&self.buffer);
        self.buffer.clear();
        if let Err(error) = written {
            self.fail(&format!("it could not be written ({error})"));
        }
    }

    /// Makes everything durable that was added. A failure is for ever: what a second sync would say about lost pages is not
    /// to be believed.
    fn sync(&mut self, ends: bool) {
        if !self.failed {
            self.write();
        }
        if self.failed {
            return;
        }
        if let Err(error) = self.log.sync_data() {
            return self.fail(&format!("it could not be synced ({error})"));
        }
        // What was synced into a file that nobody can find any more is lost with this process.
        if self.kept.is_some() && self.log.metadata().is_ok_and(|facts| facts.nlink() == 0) {
            return self.fail("its file was removed");
        }
        let (seq, sum) = (self.seq, self.lines.head());
        if let Some(kept) = &mut self.kept {
            kept.head = Some(Witness { seq, sum: sum.to_owned() });
            kept.ended |= ends;
        }
        self.progress.send_modify(|progress| progress.durable = seq);
    }

    fn fail(&mut self, detail: &str) {
        self.failed = true;
        self.buffer.clear();
        let failed = JournalFailed { path: self.name.clone(), detail: detail.to_owned() };
        self.progress.send_modify(|progress| progress.failed = Some(failed));
    }

    /// A run that ended and whose ending was lost with the journal says so to the sinks all the same: what it had come to is
    /// not durable, so it is `incomplete`.
    fn end_all_the_same(&mut self) {
        let Some(lost) = self.ending.take() else { return };
        let failed = self.progress.borrow().failed.clone();
        let Some(failed) = failed else { return };
        if !self.told {
            // Without the path: nothing here redacts.
            let detail = format!("the journal failed at the run's end: {}; what was not durable is lost", failed.detail);
            self.deliver(Event::Notice(Notice { code: "journal_failed".to_owned(), detail, ..Notice::default() }));
        }
        let ending = MissionFinished { outcome: Outcome::Incomplete, budget: None, log_head: None, ..lost };
        self.deliver(Event::MissionFinished(ending));
    }

    fn deliver(&mut self, event: Event) {
        self.hand_out(&Delivery::new(Arc::new(event)));
    }

    fn hand_out(&mut self, delivery: &Delivery) {
        if matches!(*delivery.event, Event::MissionFinished(_)) {
            self.ending = None;
        }
        for sink in &mut self.sinks {
            sink.deliver(delivery);
        }
    }

    /// Writes what a list of runs shows. It is a cache: failing costs a list its line, and nothing else.
    fn list(&mut self, durability: Durability) {
        if let Some(kept) = &self.kept {
            self.meta.updated_at = rfc3339(self.clock.utc());
            self.meta.head.clone_from(&kept.head);
            let _ = self.meta.write(&kept.meta, durability);
        }
    }
}

/// Replaces the output of a `tool_result` by a pointer to the `result` line that holds it, where that saves something.
/// Returns the output then.
fn point_at(event: &mut Event, repeats: Option<u64>) -> Option<Text> {
    match (event, repeats) {
        (Event::ToolResult(ToolResult { output, .. }), Some(seq)) if output.as_str().len() > DEDUPLICATED_BYTES => {
            Some(std::mem::replace(output, Text::Of { seq }))
        }
        _ => None,
    }
}
