//! The contract held to itself: types, tables, schemas and prose say the same.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::arithmetic_side_effects)]

#[path = "contract/dependencies.rs"]
mod dependencies;
#[path = "contract/document.rs"]
mod document;
#[path = "contract/samples.rs"]
mod samples;
#[path = "contract/schemas.rs"]
mod schemas;
#[path = "contract/texts.rs"]
mod texts;

use std::path::PathBuf;

/// The folder of the workspace.
fn workspace() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).parent().expect("the crate lies in a workspace").to_path_buf()
}
