//! (see the crate's doc)

pub mod sse;
pub mod environment;
pub mod guardian;
pub mod lines;
pub mod spawn;
