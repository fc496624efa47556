//! Processes, descriptors, locks, files, clock: the only place for unsafe code.

pub mod environment;
pub mod guardian;
pub mod lines;
pub mod spawn;
pub mod sse;
