//! The core, sans I/O: no runtime, no clock, no randomness, no file. State is a fold over the inputs.

pub mod request;
