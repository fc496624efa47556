//! The channel in: lines of whoever started the run, read on a thread of their own and handed to the driver one by one.
//!
//! A line that cannot be used is told in one sentence and never fatal; it is used whole or not at all. The end of the channel, and a
//! writer that goes away, say nothing: a run is only ended by a word.

mod line;
mod queue;
mod reader;

use std::io;
use std::sync::Arc;

use mission_contract::log::Control;

use crate::sys::inputs::Input;
use queue::Queue;

/// What the channel hands over.
#[derive(Clone, Debug, PartialEq)]
pub enum Heard {
    /// A word that can be used.
    Word(Control),
    /// A line that cannot; why was told already.
    Refused {
        /// Its id, when one was read.
        id: Option<String>,
        /// Its word, as far as one was read.
        word: String,
    },
    /// A line that was not taken, because more came than the run takes.
    Dropped {
        /// Its id.
        id: Option<String>,
        /// Its word.
        word: String,
    },
}

/// Says one sentence to whoever looks after the run.
pub type Say = Box<dyn Fn(&str) + Send>;

/// An open channel. When it is dropped nobody reads it any more.
#[derive(Debug)]
pub struct ControlChannel {
    queue: Arc<Queue>,
    /// Its other end is at the reader: closing this one ends it.
    _end: io::PipeReader,
}

impl ControlChannel {
    /// Starts to read.
    ///
    /// # Errors
    /// When the system gives no thread or no pipe.
    pub fn start(input: Input, say: Say) -> io::Result<Self> {
        let queue = Arc::<Queue>::default();
        let (end, here) = io::pipe()?;
        let writer = Arc::clone(&queue);
        std::thread::Builder::new()
            .name("control".to_owned())
            .spawn(move || reader::Reader::new(input, writer, say).run(&here))?;
        Ok(Self { queue, _end: end })
    }

    /// The next line. Safe to drop and call again before it returned.
    pub async fn next(&self) -> Heard {
        self.queue.next(|_| true).await
    }

    /// The next word that ends the run, whatever stands before it.
    pub async fn next_cancel(&self) -> Heard {
        self.queue.next(is_cancel).await
    }

    /// Waits until a word is there that ends the run, and leaves it.
    pub async fn cancel_waits(&self) {
        self.queue.wait_for(is_cancel).await;
    }
}

fn is_cancel(heard: &Heard) -> bool {
    matches!(heard, Heard::Word(control) if control.word == "cancel")
}

#[cfg(test)]
mod control_tests;
