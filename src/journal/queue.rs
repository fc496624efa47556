//! What waits to be written: from the driver's task to the writer's thread.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, Utc};
use mission_contract::event::Event;
use mission_contract::log::Entry;
use tokio::sync::Notify;

use super::weight;
use crate::limits;

/// One thing to be done, in its order.
#[derive(Debug)]
pub(super) enum Job {
    /// A line of the log.
    Entry { envelope: Envelope, entry: Arc<Entry> },
    /// A line of the log that goes to the sinks once it is durable.
    Record {
        envelope: Envelope,
        event: Box<Event>,
        /// The `result` line whose text its output equals.
        repeats: Option<u64>,
    },
    /// To the sinks only, behind the records before it.
    Fragment(Box<Event>),
    /// To the sinks only, though the journal has failed.
    Emergency(Vec<Event>),
}

/// What the handle decides about a line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Envelope {
    pub(super) seq: u64,
    pub(super) at: DateTime<Utc>,
    pub(super) ms: u64,
}

impl Job {
    fn weight(&self) -> usize {
        match self {
            Self::Entry { entry, .. } => weight::of_entry(entry),
            Self::Record { event, .. } | Self::Fragment(event) => weight::of_event(event),
            Self::Emergency(events) => events.iter().map(weight::of_event).fold(0, usize::saturating_add),
        }
    }
}

/// Jobs that are taken out together, and what they weigh.
#[derive(Debug, Default)]
pub(super) struct Group {
    pub(super) jobs: Vec<Job>,
    weight: usize,
}

/// The queue. What was taken out counts until it is done with.
#[derive(Debug, Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    more: Condvar,
    room: Notify,
}

#[derive(Debug, Default)]
struct State {
    jobs: VecDeque<(usize, Job)>,
    count: usize,
    weight: usize,
    /// Nothing more comes.
    over: bool,
    /// Nobody takes anything out any more.
    abandoned: bool,
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn push(&self, job: Job) {
        let weight = job.weight();
        let mut state = self.state();
        if state.abandoned {
            return;
        }
        state.count = state.count.saturating_add(1);
        state.weight = state.weight.saturating_add(weight);
        state.jobs.push_back((weight, job));
        self.more.notify_one();
    }

    /// Nothing more comes.
    pub(super) fn close(&self) {
        self.state().over = true;
        self.more.notify_one();
    }

    /// Nobody takes anything out any more: frees whoever waits for room.
    pub(super) fn abandon(&self) {
        let mut state = self.state();
        state.abandoned = true;
        state.jobs.clear();
        drop(state);
        self.room.notify_waiters();
    }

    /// Whether something is there to be taken out at once.
    pub(super) fn is_idle(&self) -> bool {
        let state = self.state();
        state.jobs.is_empty() && !state.over
    }

    /// Waits for something, and takes out all that is there up to a bound; nothing when all is over.
    pub(super) fn take(&self) -> Option<Group> {
        let bound = limits::size(limits::JOURNAL_GROUP_BYTES);
        let mut state = self
            .more
            .wait_while(self.state(), |state| state.jobs.is_empty() && !state.over)
            .unwrap_or_else(PoisonError::into_inner);
        let mut group = Group::default();
        while group.weight < bound {
            let Some((weight, job)) = state.jobs.pop_front() else { break };
            group.weight = group.weight.saturating_add(weight);
            group.jobs.push(job);
        }
        (!group.jobs.is_empty()).then_some(group)
    }

    /// A group of so many jobs, of this weight, is done with.
    pub(super) fn done(&self, count: usize, weight: usize) {
        let mut state = self.state();
        state.count = state.count.saturating_sub(count);
        state.weight = state.weight.saturating_sub(weight);
        drop(state);
        self.room.notify_waiters();
    }

    fn has_room(&self) -> bool {
        let state = self.state();
        let count = u64::try_from(state.count).unwrap_or(u64::MAX);
        let weight = u64::try_from(state.weight).unwrap_or(u64::MAX);
        state.abandoned || (count < limits::JOURNAL_QUEUE_ENTRIES && weight < limits::JOURNAL_QUEUE_BYTES)
    }

    /// Resolves when what is queued is below its bounds.
    pub(super) async fn room(&self) {
        loop {
            let mut freed = std::pin::pin!(self.room.notified());
            freed.as_mut().enable();
            if self.has_room() {
                return;
            }
            freed.await;
        }
    }
}

impl Group {
    /// Number of jobs, and their weight.
    pub(super) fn size(&self) -> (usize, usize) {
        (self.jobs.len(), self.weight)
    }
}
