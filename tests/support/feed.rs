//! The reading end of an event stream: a thread that reads, and everybody else who waits for what it read.

use std::io::{PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Instant;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde_json::Value;

use super::PATIENCE;

/// When and how the stream is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reading {
    /// At once, as fast as it comes.
    #[default]
    Prompt,
    /// Not before [`Feed::release`], and then in small bites.
    Held,
}

#[derive(Default)]
struct SoFar {
    bytes: Vec<u8>,
    records: Vec<Value>,
    parsed: usize,
    ended: bool,
}

/// What has been read so far.
pub struct Feed {
    state: Arc<(Mutex<SoFar>, Condvar)>,
    stop: Option<PipeWriter>,
    go: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Feed {
    /// Starts to read.
    pub fn start(source: PipeReader, reading: Reading) -> Self {
        let state = Arc::new((Mutex::new(SoFar::default()), Condvar::new()));
        let (stopped, stop) = std::io::pipe().unwrap();
        let (go, gone) = channel();
        if reading == Reading::Prompt {
            go.send(()).unwrap();
        }
        let bite = if reading == Reading::Held { 509 } else { 1 << 16 };
        let shared = Arc::clone(&state);
        let thread = std::thread::spawn(move || read(source, &stopped, &gone, bite, &shared));
        Self { state, stop: Some(stop), go: Some(go), thread: Some(thread) }
    }

    /// Lets a held reading begin.
    pub fn release(&self) {
        self.go.as_ref().unwrap().send(()).unwrap();
    }

    /// Waits until a record of the stream fits, and gives it.
    pub fn wait_for(&self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let until = Instant::now() + PATIENCE;
        let (lock, changed) = &*self.state;
        let mut state = lock.lock().unwrap();
        loop {
            if let Some(record) = state.records.iter().find(|record| fits(record)) {
                return record.clone();
            }
            let left = until.saturating_duration_since(Instant::now());
            assert!(
                !state.ended && !left.is_zero(),
                "{what} did not come; the stream was:\n{}",
                String::from_utf8_lossy(&state.bytes)
            );
            state = changed.wait_timeout(state, left).unwrap().0;
        }
    }

    /// What has come until now.
    pub fn so_far(&self) -> String {
        String::from_utf8_lossy(&self.state.0.lock().unwrap().bytes).into_owned()
    }

    /// Gives the reading end back to the system, as a reader that goes away does.
    pub fn close(&mut self) {
        drop(self.go.take());
        if let Some(mut stop) = self.stop.take() {
            let _ = stop.write_all(b"x"); // the thread may have ended by itself
        }
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }

    /// Waits for the end of the stream and gives all of it.
    pub fn end(&mut self) -> Vec<u8> {
        drop(self.go.take());
        if self.stop.is_some() {
            let until = Instant::now() + PATIENCE;
            let (lock, changed) = &*self.state;
            let mut state = lock.lock().unwrap();
            while !state.ended {
                let left = until.saturating_duration_since(Instant::now());
                assert!(!left.is_zero(), "the stream has no end; so far:\n{}", String::from_utf8_lossy(&state.bytes));
                state = changed.wait_timeout(state, left).unwrap().0;
            }
        }
        let bytes = self.state.0.lock().unwrap().bytes.clone();
        self.close();
        bytes
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.close();
    }
}

fn read(mut source: PipeReader, stopped: &PipeReader, gone: &Receiver<()>, bite: usize, shared: &(Mutex<SoFar>, Condvar)) {
    let _ = gone.recv(); // an error is the end of the wait, too
    let mut buffer = vec![0; bite];
    loop {
        let mut ready = [PollFd::new(source.as_fd(), PollFlags::POLLIN), PollFd::new(stopped.as_fd(), PollFlags::POLLIN)];
        match poll(&mut ready, PollTimeout::NONE) {
            // Whoever traces or stops this process interrupts it.
            Err(nix::errno::Errno::EINTR) => continue,
            polled => polled.unwrap(),
        };
        let [from_source, from_stop] = ready.map(|each| each.revents().is_some_and(|events| !events.is_empty()));
        let size = if from_stop || !from_source { 0 } else { source.read(&mut buffer).unwrap() };
        let (lock, changed) = shared;
        let mut state = lock.lock().unwrap();
        let before = state.bytes.len();
        state.bytes.extend_from_slice(&buffer[..size]);
        state.ended = size == 0;
        if let Some(end) = buffer[..size].iter().rposition(|byte| *byte == b'\n') {
            let lines = state.bytes[state.parsed..=before + end].to_vec();
            state.parsed = before + end + 1;
            for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                let record =
                    serde_json::from_slice(line).unwrap_or_else(|_| Value::String(String::from_utf8_lossy(line).into_owned()));
                state.records.push(record);
            }
        }
        changed.notify_all();
        if state.ended {
            return;
        }
    }
}
