//! The core, sans I/O: no runtime, no clock, no randomness, no file. State is a fold over the inputs.

pub mod arguments;
pub mod behaviours;
pub mod beside;
pub mod bound;
pub mod conversation;
pub mod delivery;
pub mod effect;
pub mod fold;
pub mod fragments;
pub mod half;
pub mod ledger;
pub mod mission_result;
pub mod names;
pub mod offer;
pub mod plain;
pub mod reading;
pub mod request;
pub mod results;
pub mod run;
#[cfg(test)]
mod run_story;
pub mod signal;
pub mod summary;
pub mod supervisor;
pub mod texts;
pub mod words;
