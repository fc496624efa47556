//! Hands over to the library, and maps what comes back to an exit code.

use std::process::ExitCode;

fn main() -> ExitCode {
    if let Some(code) = mission::sys::guardian::run_if_asked() {
        std::process::exit(code);
    }
    mission::cli::main(std::env::args_os().skip(1).collect())
}
