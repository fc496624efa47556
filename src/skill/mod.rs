//! What a manifest says: the tools that a run may use, and what the model is told. Pure: text in, a skill or a refusal out.
//!
//! * [`manifest`]: a manifest read whole, or refused with everything that is wrong with it.
//! * `frontmatter`, `yaml`: its front matter, with budgets and places.
//! * [`grounding`]: what it asks of an answer.
//! * `names`: when two spellings mean one tool.
//! * [`pins`]: the tools of a skill as they were when somebody looked at them.
//! * [`packs`]: the skills that are shipped.

mod error;
mod frontmatter;
pub mod grounding;
pub mod manifest;
mod names;
pub mod packs;
pub mod pins;
mod render;
mod spelling;
mod yaml;

pub use error::{Problem, SkillError};
pub use manifest::{AllowedTool, FILE_NAME, Manifest, SandboxWish};
pub use names::{near_match, same_tool, tool_key};
pub use yaml::{Node, Placed, Value, read as read_yaml, shown};
