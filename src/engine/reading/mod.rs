//! What a model's reply decides: reading is tolerant, deciding is not.

pub mod json;
pub mod native;

/// A call that a reply proposes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposed {
    /// The tool's name as the model spelt it.
    pub name: String,
    /// The raw text of the arguments.
    pub arguments: String,
    /// Position among the reply's calls that are not the answer.
    pub position: u64,
    /// The id that its result must carry, in the `native` protocol.
    pub call_id: Option<String>,
}
