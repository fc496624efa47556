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

mod guardian;
mod house;
mod plane;
