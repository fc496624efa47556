//! What every ask carries besides its messages. It is built when the offer changes, and shared from then on: a catalogue of a thousand
//! tools must not cost anything at each step.

use std::sync::Arc;

use mission_contract::spec::{Protocol, Sampling};
use serde_json::{Value, json};

use crate::engine::offer::{Offer, answer_function};
use crate::engine::request::{Constraint, FunctionChoice, FunctionDeclaration};

/// See the module's doc.
#[derive(Clone, Debug, Default)]
pub(super) struct Frame {
    pub(super) functions: Arc<Vec<FunctionDeclaration>>,
    pub(super) choice: FunctionChoice,
    pub(super) constraint: Option<Constraint>,
    /// All of it, and the sampling values, as canonical JSON: what the digest of an ask begins with. The model's name is not in it.
    pub(super) header: Arc<str>,
}

impl Frame {
    /// The frame under a protocol: declared functions, or a shape for the reply.
    pub(super) fn of(offer: &Offer, protocol: Protocol, sampling: &Sampling) -> Self {
        match protocol {
            Protocol::Native => Self::new(offer.functions(), FunctionChoice::Required, None, sampling),
            Protocol::Json => Self::new(Vec::new(), FunctionChoice::None, Some(("decision", decision_schema())), sampling),
        }
    }

    /// The frame of the last question of a run that is wound up: nothing but an answer is offered.
    pub(super) fn only_answer(protocol: Protocol, sampling: &Sampling) -> Self {
        match protocol {
            Protocol::Native => Self::new(vec![answer_function()], FunctionChoice::Required, None, sampling),
            Protocol::Json => Self::new(Vec::new(), FunctionChoice::None, Some(("answer", answer_schema())), sampling),
        }
    }

    /// The frame where one object of exactly this shape is demanded, whatever the protocol.
    pub(super) fn one_object(tools: &[String], sampling: &Sampling) -> Self {
        let call = json!({
            "type": "object",
            "properties": {"tool": {"type": "string", "enum": tools}, "arguments": {"type": "object"}},
            "required": ["tool", "arguments"],
            "additionalProperties": false,
        });
        let schema = json!({"anyOf": [call, answer_schema()]});
        Self::new(Vec::new(), FunctionChoice::None, Some(("one_object", schema)), sampling)
    }

    fn new(
        functions: Vec<FunctionDeclaration>,
        choice: FunctionChoice,
        constraint: Option<(&'static str, Value)>,
        sampling: &Sampling,
    ) -> Self {
        let declared = |function: &FunctionDeclaration| json!({"name": function.name, "description": function.description, "parameters": function.parameters});
        let header = json!({
            "choice": format!("{choice:?}"),
            "constraint": constraint.as_ref().map(|(_, schema)| schema),
            "functions": functions.iter().map(declared).collect::<Vec<_>>(),
            "sampling": sampling,
        });
        Self {
            functions: Arc::new(functions),
            choice,
            constraint: constraint.map(|(name, schema)| Constraint { name, schema: Arc::new(schema) }),
            header: mission_contract::canonical::of_value(&header).into(),
        }
    }
}

/// The frame of a review. Its sampling is the server's own: a judgement is no part of the work.
pub(super) fn verdict_frame() -> Frame {
    let schema = json!({
        "type": "object",
        "properties": {"verdict": {"type": "string", "enum": ["progressing", "nudge", "stuck"]}, "note": {"type": "string"}},
        "required": ["verdict", "note"],
    });
    Frame::new(Vec::new(), FunctionChoice::None, Some(("verdict", schema)), &Sampling::default())
}

fn answer_schema() -> Value {
    json!({"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"], "additionalProperties": false})
}

/// The shape of a reply of the `json` protocol.
fn decision_schema() -> Value {
    json!({"anyOf": [
        {"type": "object", "properties": {"tool": {"type": "string"}, "arguments": {"type": "object"}}, "required": ["tool", "arguments"]},
        {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}
    ]})
}
