//! (see the crate's doc)
