//! Processes, descriptors, signals, environments, locks, files, clocks, HTTP clients, and splitters of what comes in pieces: the only place for unsafe code.

pub mod clock;
pub mod descriptors;
pub mod environment;
pub mod files;
pub mod guardian;
pub mod http;
pub mod inputs;
pub mod lines;
pub mod lock;
pub mod signals;
pub mod spawn;
pub mod sse;
pub mod standard;
pub mod watch;
