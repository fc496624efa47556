//! The integration tests: they drive the built binary as a platform, an operator and CI would, with real descriptors, real
//! processes and real tool servers. `tests/run` fetches what they need.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::string_slice,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

#[path = "../support/mod.rs"]
mod support;

mod approvals;
mod audit;
mod budgets;
mod ceilings;
mod conformance;
mod consumer;
mod control;
mod control_gates;
mod demo;
mod door;
mod doubt;
mod endings;
mod eras;
mod faults;
mod field_gates;
mod fold;
mod gates;
mod guardian;
mod house;
mod http;
mod inherit;
mod journal;
mod kills;
mod manifests;
mod plane;
mod policy;
mod power;
mod processes;
mod reaching;
mod recordings;
mod redact;
mod replay;
mod results;
mod resume;
mod runs;
mod schemas;
mod servers;
mod servers_http;
mod skill;
mod stopping;
mod stream;
mod surroundings;
mod survive;
mod tables;
mod verify;
mod wild_http;
mod wild_lists;
mod wild_lives;
mod wild_stdio;
