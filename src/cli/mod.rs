//! (see the crate's doc)

pub mod contract_verbs;
