//! What every ask carries besides its messages. It is built when the offer changes, and shared from then on: a catalogue of a thousand
//! tools must not cost anything at each step.

use std::sync::Arc;

use mission_contract::spec::{Protocol, Sampling};
use serde_json::{Value, json};

use crate::engine::offer::Offer;
use crate::engine::request::{Constraint, FunctionChoice, FunctionDeclaration};

/// See the module's doc.
#[derive(Debug, Default)]
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
        let (functions, choice, constraint) = match protocol {
            Protocol::Native => (offer.functions(), FunctionChoice::Required, None),
            Protocol::Json => (Vec::new(), FunctionChoice::None, Some(decision_schema())),
        };
        let declared = |function: &FunctionDeclaration| json!({"name": function.name, "description": function.description, "parameters": function.parameters});
        let header = json!({
            "choice": format!("{choice:?}"),
            "constraint": constraint,
            "functions": functions.iter().map(declared).collect::<Vec<_>>(),
            "sampling": sampling,
        });
        Self {
            functions: Arc::new(functions),
            choice,
            constraint: constraint.map(|schema| Constraint { name: "decision", schema: Arc::new(schema) }),
            header: mission_contract::canonical::of_value(&header).into(),
        }
    }
}

/// The shape of a reply of the `json` protocol.
fn decision_schema() -> Value {
    json!({"anyOf": [
        {"type": "object", "properties": {"tool": {"type": "string"}, "arguments": {"type": "object"}}, "required": ["tool", "arguments"]},
        {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}
    ]})
}
