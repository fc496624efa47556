//! The seam between the journal, which knows when a record may go out, and the sinks, which know where to.

use std::sync::{Arc, OnceLock};

use mission_contract::event::Event;

/// A record on its way out. It is redacted already.
#[derive(Debug)]
pub struct Delivery {
    /// The record.
    pub event: Arc<Event>,
    line: OnceLock<Arc<String>>,
}

impl Delivery {
    /// A delivery whose line is made when the first sink asks for it.
    pub fn new(event: Arc<Event>) -> Self {
        Self { event, line: OnceLock::new() }
    }

    /// A delivery whose line exists already.
    pub fn with_line(event: Arc<Event>, line: String) -> Self {
        Self { event, line: OnceLock::from(Arc::new(line)) }
    }

    /// Its wire line, without the newline: made once, shared by all sinks.
    pub fn line(&self) -> &Arc<String> {
        self.line.get_or_init(|| Arc::new(line_of(&self.event)))
    }
}

/// The wire line. The memory for a large output is taken at once: growing step by step would take it twice.
fn line_of(event: &Event) -> String {
    let Event::ToolResult(result) = event else { return event.to_line() };
    let output = result.output.as_str().len();
    // What escaping adds to usual text, and the other fields.
    let mut bytes = Vec::with_capacity(output.saturating_add(output >> 4).saturating_add(1024));
    match serde_json::to_writer(&mut bytes, event).map(|()| String::from_utf8(bytes)) {
        Ok(Ok(line)) => line,
        _ => event.to_line(),
    }
}

/// Somewhere records go. Called from the journal's writer thread, in the order of the log.
pub trait EventSink: Send {
    /// Takes a record. A sink that must lose nothing waits here for its reader.
    fn deliver(&mut self, delivery: &Delivery);

    /// Nothing more comes: returns when everything taken has been written, or cannot be.
    fn finish(&mut self) {}

    /// The handle by which the end of a run frees itself from a reader that takes nothing; absent where nothing is waited for.
    fn valve(&self) -> Option<Box<dyn Valve>> {
        None
    }
}

impl<F: FnMut(&Delivery) + Send> EventSink for F {
    fn deliver(&mut self, delivery: &Delivery) {
        self(delivery);
    }
}

/// Frees the journal's writer from a reader that takes nothing.
pub trait Valve: Send + Sync {
    /// How the command line names the sink.
    fn name(&self) -> &str;

    /// Gives the reader up if something waits for it: what it has not taken stays untaken.
    fn give_up(&self);

    /// Bytes that the reader, or what stands between it and us, has taken so far.
    fn taken(&self) -> u64;

    /// Whether the reader was given up.
    fn is_given_up(&self) -> bool;

    /// Number of records that the reader was not given.
    fn left_out(&self) -> u64;
}
