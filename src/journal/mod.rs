//! The journal: one writer, group commit, chain, reader, lock, the store of runs.
//!
//! A run is its log. [`RunLog`] is the handle that the driver appends with; a thread of its own writes, syncs and then
//! delivers what was recorded. [`LogReader`] reads a log back, line by line, checked. [`RunStore`] knows where runs live.

mod error;
mod find;
mod list;
mod meta;
mod prune;
mod queue;
mod reader;
mod remains;
mod run_log;
mod store;
mod verify;
mod weight;
mod writer;

pub use error::{JournalError, JournalFailed, ReadError};
pub use find::RunPlace;
pub use list::{ListedRun, RunState};
pub use meta::{RunMeta, Witness};
pub use prune::Kept;
pub use reader::{LogReader, Tail, TornTail};
pub use run_log::{Closing, Patience, RunLog};
pub use store::{HeldRun, RunStore, is_run_id};
pub use verify::{Fault, LogFault, Verdict, verify};
