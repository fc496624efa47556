//! What `mission replay --json` prints: a verdict a recording, and the first drift of each kind.

use serde::{Deserialize, Serialize};

/// What came of replaying some recordings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReplayReport {
    /// One verdict a recording, in the order of the command line.
    pub recordings: Vec<ReplayedRecording>,
}

/// What came of replaying one recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReplayedRecording {
    /// The recording, as it was named.
    pub recording: String,
    /// What came of it.
    pub verdict: ReplayVerdict,
    /// Who recorded it: `mission` or `seed2`; absent when it could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The recorded run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// Number of model turns replayed.
    pub steps: u64,
    /// False when the recording ends before its run did.
    pub finished: bool,
    /// The first drift of each kind, in the order in which they came.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drift: Vec<Drift>,
    /// Why it could not be replayed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// What came of replaying a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ReplayVerdict {
    /// It replays exactly.
    #[default]
    Same,
    /// Something is worded differently; everything decided is the same.
    Text,
    /// Something is decided differently.
    Decision,
    /// It could not be replayed.
    Broken,
}

/// What kind of difference a drift is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum DriftKind {
    /// A prompt, a correction or another text is worded differently.
    #[default]
    Text,
    /// A call, an argument, a verdict, the order or the outcome is another one.
    Decision,
}

/// A difference between a recording and its replay, both sides bounded and redacted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Drift {
    /// Its kind.
    pub kind: DriftKind,
    /// What differs.
    pub what: String,
    /// The step, from 0; absent before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
    /// `seq` of the recorded line; absent where the recording has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// What the recording has there; absent for nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<String>,
    /// What the replay has there; absent for nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replayed: Option<String>,
}

impl ReplayVerdict {
    /// Its word.
    pub fn name(self) -> &'static str {
        match self {
            ReplayVerdict::Same => "same",
            ReplayVerdict::Text => "text",
            ReplayVerdict::Decision => "decision",
            ReplayVerdict::Broken => "broken",
        }
    }
}

impl DriftKind {
    /// Its word.
    pub fn name(self) -> &'static str {
        match self {
            DriftKind::Text => "text",
            DriftKind::Decision => "decision",
        }
    }
}
