//! The demo: a real run on a real tool server of the program's own, with a scripted model. Everything it needs is in the binary.

mod server;

use std::process::ExitCode;

/// The first argument by which the program is asked to be the demo's tool server.
pub const SERVER_WORD: &str = "__demo-server";

/// What the demo is asked to do.
pub const OBJECTIVE: &str = "Do we have to reorder seals for the coolant pump?";

/// The skill under which it runs.
pub const SKILL: &str = include_str!("../../skills/parts-desk/SKILL.md");

/// What its model says.
pub const SCRIPT: &str = include_str!("script.json");

/// The store that its tools read.
const PARTS: &str = include_str!("../../skills/parts-desk/fixtures/parts.json");

/// Serves the demo's tools on standard input and output, if the program was asked to.
pub fn serve_if_asked() -> Option<ExitCode> {
    // Alone: with anything beside it, it may be an objective.
    if !std::env::args_os().skip(1).eq([SERVER_WORD]) {
        return None;
    }
    Some(match server::serve(&mut std::io::stdin().lock(), &mut std::io::stdout().lock(), PARTS) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    })
}
