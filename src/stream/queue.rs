//! The bounded queue between the journal's writer and the thread of one sink.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use crate::engine::delivery::Valve;
use crate::limits;

/// Lines that wait for a reader, and what became of it.
#[derive(Debug)]
pub(super) struct Queue {
    name: String,
    state: Mutex<State>,
    changed: Condvar,
    /// Bytes written so far.
    taken: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    lines: VecDeque<Arc<String>>,
    bytes: u64,
    /// True while the sink's thread writes what it took out.
    writing: bool,
    /// Nothing is taken any more: the reader is gone, or was given up.
    off: bool,
    /// It was we who gave it up.
    given_up: bool,
    over: bool,
    left_out: u64,
}

impl Queue {
    pub(super) fn new(name: String) -> Self {
        Self { name, state: Mutex::default(), changed: Condvar::new(), taken: AtomicU64::new(0) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'s>(&self, state: MutexGuard<'s, State>, while_true: impl Fn(&State) -> bool) -> MutexGuard<'s, State> {
        self.changed.wait_while(state, |state| while_true(state)).unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for room, however long the reader takes. A line larger than all of the room goes in alone.
    pub(super) fn push(&self, line: Arc<String>) {
        let size = size_of(&line);
        let mut state = self.wait(self.state(), |state| {
            !state.off
                && !state.lines.is_empty()
                && (size_of_queue(state) >= limits::SINK_QUEUE_RECORDS
                    || state.bytes.saturating_add(size) > limits::SINK_QUEUE_BYTES)
        });
        if state.off {
            state.left_out = state.left_out.saturating_add(1);
            return;
        }
        state.bytes = state.bytes.saturating_add(size);
        state.lines.push_back(line);
        self.changed.notify_all();
    }

    /// The next line; nothing when all is over. `blocking` is false for a line that is to join what is written next.
    pub(super) fn pop(&self, blocking: bool) -> Option<Arc<String>> {
        let mut state = self.state();
        if blocking {
            state.writing = false;
            self.changed.notify_all();
            state = self.wait(state, |state| state.lines.is_empty() && !state.over && !state.off);
        }
        let line = state.lines.pop_front()?;
        state.bytes = state.bytes.saturating_sub(size_of(&line));
        state.writing = true;
        self.changed.notify_all();
        Some(line)
    }

    /// Whether nothing more comes.
    pub(super) fn is_over(&self) -> bool {
        self.state().over
    }

    /// Notes that so much was written.
    pub(super) fn took(&self, bytes: usize) {
        self.taken.fetch_add(u64::try_from(bytes).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Takes nothing any more, and frees whoever waits.
    pub(super) fn switch_off(&self) {
        self.switch_off_locked(&mut self.state());
    }

    fn switch_off_locked(&self, state: &mut State) {
        state.off = true;
        state.left_out = state.left_out.saturating_add(size_of_queue(state)).saturating_add(u64::from(state.writing));
        state.writing = false;
        state.lines.clear();
        state.bytes = 0;
        self.changed.notify_all();
    }

    /// Nothing more comes.
    pub(super) fn close(&self) {
        self.state().over = true;
        self.changed.notify_all();
    }

    /// Nothing more comes: waits until all is written, or given up.
    pub(super) fn finish(&self) {
        self.close();
        let _written = self.wait(self.state(), |state| !state.off && (state.writing || !state.lines.is_empty()));
    }
}

fn size_of(line: &str) -> u64 {
    u64::try_from(line.len()).unwrap_or(u64::MAX)
}

fn size_of_queue(state: &State) -> u64 {
    u64::try_from(state.lines.len()).unwrap_or(u64::MAX)
}

/// The valve of a queue.
#[derive(Clone, Debug)]
pub struct QueueValve {
    queue: Arc<Queue>,
}

impl QueueValve {
    pub(super) fn new(queue: Arc<Queue>) -> Self {
        Self { queue }
    }
}

impl Valve for QueueValve {
    fn name(&self) -> &str {
        &self.queue.name
    }

    fn give_up(&self) {
        let mut state = self.queue.state();
        if !state.off && (state.writing || !state.lines.is_empty()) {
            state.given_up = true;
            self.queue.switch_off_locked(&mut state);
        }
    }

    fn taken(&self) -> u64 {
        self.queue.taken.load(Ordering::Relaxed)
    }

    fn is_given_up(&self) -> bool {
        self.queue.state().given_up
    }

    fn left_out(&self) -> u64 {
        self.queue.state().left_out
    }
}
