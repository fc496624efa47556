//! `open`, `writer` and `leg`: what a stretch of a run begins with.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::spec::Spec;

/// `open`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Open {
    /// [`crate::LOG_FORMAT`].
    pub format: u32,
    /// Behaviour flags: rules of decision that came after the first format. Never reused.
    pub behaviours: Vec<u32>,
    /// Version of the program.
    pub build: String,
    /// The run.
    pub run_id: String,
    /// What was asked.
    pub spec: Spec,
}

/// `writer`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Writer {
    /// Number of the stretch, from 1 (the stretch that `open` began).
    pub epoch: u64,
    /// Process id.
    pub pid: u32,
    /// Host name.
    pub host: String,
    /// Version of the program.
    pub build: String,
    /// What the command line changed: name → new value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub changed: BTreeMap<String, Value>,
}

/// `leg`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Leg {
    /// The provider.
    pub provider: String,
    /// The model.
    pub model: String,
    /// Context window in tokens, when known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u64>,
    /// What its server can do.
    pub capabilities: Capabilities,
}

/// What a model's server can do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Capabilities {
    /// Streams its replies.
    pub stream: bool,
    /// Takes function declarations.
    pub tools: bool,
    /// Makes several calls in one reply.
    pub parallel_calls: bool,
    /// Takes `tool_choice: required`; even then it may not honour it.
    pub required_choice: bool,
    /// How a reply can be held to a shape.
    pub constraint: ConstraintKind,
}

/// How a reply can be held to a shape.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ConstraintKind {
    /// Not at all.
    #[default]
    None,
    /// To one JSON object of any shape.
    JsonObject,
    /// To a JSON Schema.
    JsonSchema,
}
