//! The console: records in words on standard output. It never makes a run wait: when it is behind it leaves records out and
//! says how many.

pub mod figures;
mod render;
pub mod visible;

use std::collections::VecDeque;
use std::io::IsTerminal;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use render::{Item, Renderer};

use crate::engine::delivery::{Delivery, EventSink};
use crate::limits;
use crate::redact::Redactor;
use crate::sys::clock::Clock;
use crate::sys::descriptors::{terminal_columns, write_fully};

/// Back to the first column, and the line cleared.
const ERASE: &str = "\r\x1b[2K";

/// Columns of a terminal that does not say how many it has.
const USUAL_COLUMNS: usize = 80;

/// How it looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// Whether colours are used.
    pub colours: bool,
    /// Columns of the live line; absent where none is drawn.
    pub live: Option<usize>,
}

impl Look {
    /// What suits a descriptor: colours and a live line on a terminal only, no colours with `NO_COLOR`, neither on a dumb one.
    pub fn of(descriptor: &OwnedFd, variable: impl Fn(&str) -> Option<String>) -> Self {
        let said = |name| variable(name).filter(|value| !value.trim().is_empty());
        if !descriptor.is_terminal() || said("TERM").is_none_or(|term| term == "dumb") {
            return Self::default();
        }
        let columns = terminal_columns(descriptor.as_fd()).unwrap_or(USUAL_COLUMNS);
        Self { colours: said("NO_COLOR").is_none(), live: Some(columns) }
    }
}

/// A sink for people.
pub struct Console {
    shared: Arc<Shared>,
    clock: Arc<dyn Clock>,
    /// Arguments pass the wire verbatim; here they do not.
    redactor: Arc<Redactor>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    items: VecDeque<(u64, Item)>,
    left_out: u64,
    /// Nothing more comes.
    over: bool,
    /// Nothing is printed any more.
    ended: bool,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Console {
    /// Starts the console's thread.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start(output: OwnedFd, look: Look, clock: Arc<dyn Clock>, redactor: Arc<Redactor>) -> std::io::Result<Self> {
        let shared = Arc::<Shared>::default();
        let console = Self { shared: Arc::clone(&shared), clock: Arc::clone(&clock), redactor };
        std::thread::Builder::new().name("console".to_owned()).spawn(move || {
            // A reader that went away ends the console and nothing else.
            let _ = print_all(&shared, &output, look, &*clock);
            let mut state = shared.state();
            state.ended = true;
            state.items.clear();
            shared.changed.notify_all();
        })?;
        Ok(console)
    }
}

impl EventSink for Console {
    fn deliver(&mut self, delivery: &Delivery) {
        let Some(item) = Item::of(&delivery.event, &self.redactor) else { return };
        let mut state = self.shared.state();
        if state.ended {
            return;
        }
        if u64::try_from(state.items.len()).unwrap_or(u64::MAX) >= limits::CONSOLE_QUEUE_RECORDS {
            state.left_out = state.left_out.saturating_add(1);
            let oldest = state.items.iter().position(|(_, item)| item.may_be_left_out());
            match oldest {
                Some(oldest) => drop(state.items.remove(oldest)),
                None => return,
            }
        }
        state.items.push_back((self.clock.monotonic_ms(), item));
        self.shared.changed.notify_all();
    }

    /// Waits until all is printed, for a moment at most.
    fn finish(&mut self) {
        let mut state = self.shared.state();
        state.over = true;
        self.shared.changed.notify_all();
        let moment = Duration::from_millis(limits::CONSOLE_FINISH_MS);
        let _printed =
            self.shared.changed.wait_timeout_while(state, moment, |state| !state.ended).unwrap_or_else(PoisonError::into_inner);
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        self.shared.state().over = true;
        self.shared.changed.notify_all();
    }
}

/// Prints until all is over. The live line is redrawn once a second, and erased before anything else is printed.
fn print_all(shared: &Shared, output: &OwnedFd, look: Look, clock: &dyn Clock) -> std::io::Result<()> {
    let mut renderer = Renderer::new(look.colours);
    let mut drawn = false;
    let pause = Duration::from_millis(limits::CONSOLE_REDRAW_MS);
    loop {
        let (items, left_out, over) = {
            let state = shared.state();
            let idle = |state: &mut State| state.items.is_empty() && state.left_out == 0 && !state.over;
            let mut state = if drawn {
                shared.changed.wait_timeout_while(state, pause, idle).unwrap_or_else(PoisonError::into_inner).0
            } else {
                shared.changed.wait_while(state, idle).unwrap_or_else(PoisonError::into_inner)
            };
            (std::mem::take(&mut state.items), std::mem::take(&mut state.left_out), state.over)
        };
        let mut text = String::new();
        if std::mem::take(&mut drawn) {
            text.push_str(ERASE);
        }
        if left_out > 0 {
            text.push_str(&renderer.left_out(left_out));
        }
        for (at_ms, item) in &items {
            text.push_str(&renderer.item(item, *at_ms));
        }
        if let Some(columns) = look.live.filter(|_| !over)
            && let Some(line) = renderer.live(clock.monotonic_ms(), columns)
        {
            text.push_str(&line);
            drawn = true;
        }
        write_fully(output.as_fd(), text.as_bytes())?;
        if over && items.is_empty() && left_out == 0 {
            return Ok(());
        }
    }
}

#[cfg(test)]
#[path = "console_tests.rs"]
mod tests;
