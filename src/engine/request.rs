//! What the engine asks the outside for: a model's reply, a tool's result.

use std::sync::Arc;

use mission_contract::event::Arguments;
use mission_contract::log::{Message, Purpose};
use mission_contract::spec::Sampling;
use serde_json::Value;

/// A question to the model, provider-neutral. A backend renders it into its wire format and changes nothing else.
#[derive(Clone, Debug)]
pub struct ModelRequest {
    /// Number of the ask, from 1.
    pub ordinal: u64,
    /// What it is for.
    pub purpose: Purpose,
    /// The conversation. The first message is the system's.
    pub messages: Vec<Arc<Message>>,
    /// The functions on offer, in their order; empty in the `json` protocol.
    pub functions: Arc<Vec<FunctionDeclaration>>,
    /// Whether a function must be called.
    pub choice: FunctionChoice,
    /// The shape that the reply is to have, where the server can hold it to one.
    pub constraint: Option<Constraint>,
    /// Sampling values; what is absent is not sent.
    pub sampling: Sampling,
    /// Whether the reply is to be streamed.
    pub stream: bool,
    /// Tokens after which the reply is to stop: what is left of a limit; absent where it may have as many as it likes.
    pub reply_tokens: Option<u64>,
}

/// A function as it is declared to a model. Its name fits `^[A-Za-z0-9_-]{1,64}$`.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionDeclaration {
    /// The name the model is to use.
    pub name: String,
    /// What it does.
    pub description: String,
    /// JSON Schema of its arguments.
    pub parameters: Value,
}

/// Whether a function must be called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FunctionChoice {
    /// No functions are declared.
    #[default]
    None,
    /// The model may call one.
    Auto,
    /// The model must call at least one; several calls in one reply are welcome. Best effort on real servers.
    Required,
}

/// A shape for a reply.
#[derive(Clone, Debug, PartialEq)]
pub struct Constraint {
    /// A name for the schema, as some servers want one.
    pub name: &'static str,
    /// The JSON Schema.
    pub schema: Arc<Value>,
}

/// A call to be made now. Its intent is durable.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolDispatch {
    /// Number of the intent, from 1.
    pub ordinal: u64,
    /// The namespace of the server.
    pub server: String,
    /// The server's own name of the tool.
    pub name: String,
    /// The arguments.
    pub arguments: Arguments,
    /// The idempotency key.
    pub key: String,
}
