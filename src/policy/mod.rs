//! What may be called: profiles grant scopes, a policy file narrows further. Pure; it decides, and the engine asks it before an intent
//! is written.
//!
//! Denied is what is not granted. A policy file widens nothing: the strictest of its rules that hold decides, in whatever order they stand,
//! and a gate or a refusal from elsewhere stays what it is.

mod authority;
mod condition;
mod error;
mod file;
mod globs;
mod scopes;
mod tree;

pub use authority::{Authority, Judgement};
pub use error::{PolicyError, Problem};
pub use file::{Effect, Matched, Policy};
pub use scopes::{Grants, Needs, known_scopes, needs, profile_named};

/// What a decision names when the profile made it.
pub const BY_PROFILE: &str = "profile";
/// When a scope that was granted besides let the call through.
pub const BY_GRANT: &str = "grant";
/// When a gate of the command line holds it.
pub const BY_GATE: &str = "gate";
/// When no rule of the policy file holds.
pub const BY_DEFAULT: &str = "default";
/// When the policy cannot be read.
pub const BY_POLICY: &str = "policy";
/// When it is not offered, or answered by the program itself.
pub const BY_CATALOGUE: &str = "catalogue";
