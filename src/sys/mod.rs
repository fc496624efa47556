//! (see the crate's doc)

pub mod clock;
pub mod descriptors;
pub mod files;
pub mod lock;
pub mod signals;
