//! What a run was asked to do, as the journal's `open` line keeps it. It never holds a credential.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::digest::sha256_hex;
use crate::event::SkillRef;

/// Everything a resume or a replay needs to know about what was asked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Spec {
    /// The objective, verbatim.
    pub objective: String,
    /// How the model is spoken to.
    pub protocol: Protocol,
    /// The texts of the prompt, each once, in the order in which the prompt holds them.
    pub texts: Texts,
    /// Sampling values; what is absent is not sent.
    #[serde(default)]
    pub sampling: Sampling,
    /// The model's provider.
    pub provider: String,
    /// The model; absent when the server's first one was taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Base URL of the model's server, credentials masked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// True when replies are streamed.
    pub stream: bool,
    /// The limits.
    #[serde(default)]
    pub limits: Limits,
    /// What the model's tokens cost; absent when no price is configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pricing: Option<Pricing>,
    /// What watches over the run's progress (`--supervisor`).
    #[serde(default, skip_serializing_if = "Supervision::is_off")]
    pub supervisor: Supervision,
    /// The skill that closes the set of tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill: Option<SkillRef>,
    /// The allowed tools in manifest order, resolved to their full names. Absent without a skill.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_tools: Option<Vec<String>>,
    /// The digest of the set of tools that the run was held to (`--locked`). Absent when it was held to none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locked: Option<crate::digest::Digest>,
    /// Most tools that the run offers (`--tool-limit`). Absent for any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_limit: Option<u64>,
    /// True when the operator does without the checks that the skill asks for (`--no-grounding`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub grounding_off: bool,
    /// Servers whose word about their tools counts (`--trust-annotations`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trusted: Vec<String>,
    /// True when approvals are not kept (`MISSION_APPROVALS=none`): a call that waits for a person has no id then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub approvals_off: bool,
    /// Tools that need approval.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<String>,
    /// True when those are names as they were given: no server had said yet what it offers. Every tool that one of them may mean needs approval.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gates_as_given: bool,
    /// Which tools need approval by what is known of them (`--gate`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gate_rules: Vec<GateRule>,
    /// How long the run waits at a gate, in milliseconds; absent when it ends there at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate_wait_ms: Option<u64>,
    /// True when waiting at a gate does not count as time of the run (`--gate-time free`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gate_time_free: bool,
    /// True when a control channel is open (`--control`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub control: bool,
    /// The call that a person approved before the run (`--approval`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovedCall>,
    /// The profile that grants scopes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Scopes granted besides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<String>,
    /// The rules that narrow further what may be called (`--policy`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyText>,
    /// `bwrap` or `none`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
    /// Path of the audit file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit_ref: Option<String>,
    /// True when outputs and arguments of tools are redacted too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub redact_evidence: bool,
    /// The tool servers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<ServerSpec>,
    /// False when the run leaves no log behind (`MISSION_RUNS=none`): its id is then not on the wire.
    pub recorded: bool,
}

/// Which tools need approval by what is known of them. What a server says of its tools loosens nothing unless it is trusted; what it
/// does not say is what the protocol's defaults say (it writes, destroys and reaches outside).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum GateRule {
    /// Those that may destroy something.
    Destructive,
    /// Those that reach outside.
    OpenWorld,
    /// Those that do not only read.
    AllWrites,
}

/// A call that a person approved.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ApprovedCall {
    /// The approval.
    pub approval_id: String,
    /// The tool's full name.
    pub tool: String,
    /// The arguments.
    pub arguments: crate::event::Arguments,
    /// SHA-256 over tool, definition digest and canonical arguments.
    pub digest: String,
}

/// How the model is spoken to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// One JSON object a reply.
    #[default]
    Json,
    /// The server's own function calls.
    Native,
}

/// The texts of the prompt.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Texts {
    /// Who the model is.
    pub persona: PromptText,
    /// What the skill says; empty without one.
    #[serde(default)]
    pub skill: PromptText,
    /// How to reply.
    pub protocol: PromptText,
    /// How to behave.
    pub conduct: PromptText,
    /// Earlier turns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<HistoryTurn>,
}

/// A text and its digest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PromptText {
    /// The text.
    pub text: String,
    /// SHA-256 of its bytes, in hex.
    pub digest: String,
}

impl PromptText {
    /// A text with its digest.
    pub fn of(text: &str) -> Self {
        Self { text: text.to_owned(), digest: sha256_hex(text.as_bytes()) }
    }
}

/// A policy file as it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PolicyText {
    /// Where it came from, as it was named.
    pub file: String,
    /// Its text.
    pub text: String,
    /// SHA-256 of its bytes, in hex.
    pub digest: String,
}

/// An earlier turn of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HistoryTurn {
    /// `user` or `assistant`.
    pub role: crate::log::Role,
    /// What was said.
    pub content: String,
}

/// Sampling values.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Sampling {
    /// `temperature`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// `top_p`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// `seed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<i64>,
}

/// The limits of a run; what is absent is unlimited.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Limits {
    /// Model turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
    /// Seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// Tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Bytes of tool results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Money, in millionths of the currency's unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_micros: Option<u64>,
}

/// What tokens cost. Money is counted in millionths of the currency's unit, and whole ones of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pricing {
    /// A million tokens of requests, in millionths of the unit.
    pub prompt_micros: u64,
    /// A million tokens of replies, in millionths of the unit.
    pub completion_micros: u64,
    /// ISO 4217 code.
    pub currency: String,
}

/// What watches over a run's progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Supervision {
    /// Nothing.
    #[default]
    Off,
    /// What shows no progress is told in a `notice`.
    Warn,
    /// What shows no progress is reviewed, and the run wound up when it is stuck.
    On,
}

impl Supervision {
    /// Whether nothing watches.
    pub fn is_off(&self) -> bool {
        *self == Supervision::Off
    }
}

/// A tool server as it was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ServerSpec {
    /// The namespace of its tools.
    pub name: String,
    /// `stdio` or `http`.
    pub transport: String,
    /// The command and its arguments (stdio), credentials masked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub argv: Vec<String>,
    /// The address (http), credentials masked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// True when something was masked: it must be given again on a resume.
    #[serde(default)]
    pub masked: bool,
    /// Names of the variables that are passed on: inside the server → in our environment.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub passes: BTreeMap<String, String>,
    /// True when the run goes on without it.
    #[serde(default)]
    pub optional: bool,
}
