//! Drives the built binary with real descriptors against real processes.

mod guardian;
mod plane;
