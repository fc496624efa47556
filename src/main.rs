//! Hands over to the library, and maps what comes back to an exit code.

use std::process::ExitCode;

use mission::sys::descriptors::Inherited;
use mission::sys::{guardian, signals};

fn main() -> ExitCode {
    if let Some(code) = guardian::run_if_asked() {
        std::process::exit(code);
    }
    signals::prepare();
    // Before anything opens a descriptor: only what is open now was given to us.
    let inherited = Inherited::guard();
    if let Some(code) = mission::demo::serve_if_asked() {
        return code;
    }
    mission::cli::main(std::env::args_os().skip(1), std::env::vars_os(), inherited)
}
