//! What replies cost, as records carry it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What one reply of a model cost, as its server reported it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Usage {
    /// Tokens of the request.
    pub prompt_tokens: u64,
    /// Tokens of the reply.
    pub completion_tokens: u64,
    /// Their sum, unless the server states another.
    pub total_tokens: u64,
    /// What else the server reported, verbatim.
    #[serde(flatten)]
    pub extras: BTreeMap<String, Value>,
}

/// What all replies of a run cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UsageTotal {
    /// Tokens of the requests.
    pub prompt_tokens: u64,
    /// Tokens of the replies.
    pub completion_tokens: u64,
    /// All tokens.
    pub total_tokens: u64,
    /// Number of replies that reported.
    pub calls: u64,
    /// What they cost; only where a price is configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}

/// An amount of money.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cost {
    /// Six decimals.
    pub amount: f64,
    /// ISO 4217 code.
    pub currency: String,
}
