//! Replay: a recorded run again, with nothing of the world outside.
//!
//! A [`Recording`] is one recorded run in memory, whoever recorded it. A [`Player`] folds it once more: the engine asks, and gets the recorded
//! reply of the same purpose and ordinal; it calls, and gets the recorded result of the same tool and arguments, the k-th for the k-th time;
//! whatever else was told to it then arrives again after the same number of replies and results. All of that is input to the engine, and
//! every decision is the engine's, so nothing here waits, and nothing of the driver is needed: it is the part of a run that a replay has
//! not. [`drift`] holds what comes out against what the recording has.
//!
//! Nothing is written: a replay leaves no run behind, and the run's own ids hold in it.

pub mod drift;
mod fields;
mod player;
pub mod recording;
mod secrets;
pub mod seed2;

pub use player::{Player, Replayed};
pub use recording::{Recording, RecordingError, Source};
pub use secrets::learn;
