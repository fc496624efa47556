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

mod consumer;
mod demo;
mod door;
mod endings;
mod fold;
mod guardian;
mod house;
mod inherit;
mod journal;
mod plane;
mod processes;
mod recordings;
mod replay;
mod servers;
mod skill;
mod stream;
mod tables;
