//! A sink of lines: a descriptor, a file or standard output. It loses nothing: a slow reader makes the run wait.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use super::queue::{Queue, QueueValve};
use crate::engine::delivery::{Delivery, EventSink, Valve};
use crate::limits;
use crate::sys::descriptors::{Output, write_fully};

/// A reader that takes nothing any more. The run goes on without it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SinkGone {
    /// How the command line names the sink.
    pub name: String,
    /// Why nothing can be written to it.
    pub detail: String,
    /// True when its reader went away, and knows; false when nobody knows but us.
    pub by_reader: bool,
}

impl std::fmt::Display for SinkGone {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "the event stream on {} ended early: {}", self.name, self.detail)
    }
}

/// Writes one line a record, on a thread of its own behind a bounded queue.
#[derive(Debug)]
pub struct LineSink {
    queue: Arc<Queue>,
}

impl LineSink {
    /// Starts the thread. `on_gone` is called from it, at most once, when nothing can be written any more.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start(output: Output, on_gone: impl FnOnce(SinkGone) + Send + 'static) -> std::io::Result<Self> {
        let queue = Arc::new(Queue::new(output.name));
        let writer = Arc::clone(&queue);
        std::thread::Builder::new().name("events".to_owned()).spawn(move || {
            if let Err(error) = write_all(&writer, &output.descriptor) {
                // Told before the run is let go: it may be about to end.
                let name = QueueValve::new(Arc::clone(&writer)).name().to_owned();
                on_gone(SinkGone { name, detail: describe(&error), by_reader: is_by_reader(&error) });
                writer.switch_off();
            }
        })?;
        Ok(Self { queue })
    }
}

impl EventSink for LineSink {
    fn deliver(&mut self, delivery: &Delivery) {
        self.queue.push(Arc::clone(delivery.line()));
    }

    fn finish(&mut self) {
        self.queue.finish();
    }

    fn valve(&self) -> Option<Box<dyn Valve>> {
        Some(Box::new(QueueValve::new(Arc::clone(&self.queue))))
    }
}

impl Drop for LineSink {
    /// The thread ends when it has written what is there, and closes the descriptor.
    fn drop(&mut self) {
        self.queue.close();
    }
}

/// Writes whole lines until all is over. What is there already goes out with one call, up to a bound.
fn write_all(queue: &Queue, descriptor: &OwnedFd) -> std::io::Result<()> {
    let bound = limits::size(limits::SINK_WRITE_BYTES);
    let mut bytes = Vec::new();
    while let Some(first) = queue.pop(true) {
        let mut next = Some(first);
        while let Some(line) = next {
            if line.len() >= bound {
                // Too large to be copied: written from where it stands.
                write(queue, descriptor, &bytes)?;
                bytes.clear();
                write(queue, descriptor, line.as_bytes())?;
            } else {
                bytes.extend_from_slice(line.as_bytes());
            }
            bytes.push(b'\n');
            next = if bytes.len() < bound { queue.pop(false) } else { None };
        }
        write(queue, descriptor, &bytes)?;
        bytes.clear();
    }
    Ok(())
}

/// Writes in pieces, so that a slow reader is seen to take something: a call that waits for room in a pipe says nothing until all
/// is in. They are small once the end of the run waits for them; before that, each would only wake the reader once more.
fn write(queue: &Queue, descriptor: &OwnedFd, mut bytes: &[u8]) -> std::io::Result<()> {
    while !bytes.is_empty() {
        let most = if queue.is_over() { limits::SINK_LAST_PIECE_BYTES } else { limits::SINK_PIECE_BYTES };
        let (piece, rest) = bytes.split_at(bytes.len().min(limits::size(most)));
        write_fully(descriptor.as_fd(), piece)?;
        queue.took(piece.len());
        bytes = rest;
    }
    Ok(())
}

fn is_by_reader(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::BrokenPipe | std::io::ErrorKind::ConnectionReset)
}

fn describe(error: &std::io::Error) -> String {
    match error.kind() {
        _ if is_by_reader(error) => "its reader went away".to_owned(),
        std::io::ErrorKind::StorageFull => "its disk is full".to_owned(),
        _ => format!("it cannot be written ({error})"),
    }
}

#[cfg(test)]
#[path = "sink_tests.rs"]
mod tests;
