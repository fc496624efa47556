//! (see the crate's doc)

pub mod sse;
