//! `model_state`, `notice`, `control_ack` and `tick`: what goes on beside the turns.

use serde::{Deserialize, Serialize};

/// `model_state`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ModelState {
    /// The step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<u64>,
    /// `cold`, `asking`, `queued`, `loading`, `loaded`, `failed` or `absent`.
    pub state: String,
    /// The provider.
    pub provider: String,
    /// The model.
    pub model: String,
    /// In words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Seconds since the request went out, three decimals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_s: Option<f64>,
    /// Seconds that the server asked us to wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_s: Option<f64>,
    /// The branch this record belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
}

/// `notice` (ours).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Notice {
    /// What kind of thing happened: a word of [`crate::vocabulary::NOTICE_CODES`].
    pub code: String,
    /// In words.
    pub detail: String,
    /// The tool server it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The tool it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The step it happened in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<u64>,
    /// The branch this record belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
}

/// `control_ack` (ours).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ControlAck {
    /// The `id` of the line, when it had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Its word.
    pub word: String,
    /// What became of it.
    pub disposition: String,
    /// The branch this record belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
}

/// `tick` (ours).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Tick {
    /// What the run is doing.
    pub state: String,
    /// What it waits for.
    pub waiting_on: String,
    /// Seconds in that state, three decimals.
    pub since_s: f64,
    /// The branch this record belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
}
