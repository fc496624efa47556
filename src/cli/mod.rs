//! The command line: one file a verb; every error becomes an exit code and a sentence here.

pub mod contract_verbs;
mod verbs;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use mission_contract::vocabulary::exit;

/// Carries out a command line (without the program's name).
///
/// A refusal is one sentence on stderr and exit code 2.
pub fn main(arguments: Vec<OsString>) -> ExitCode {
    let mut words = Vec::new();
    for argument in arguments {
        match argument.into_string() {
            Ok(word) => words.push(word),
            Err(word) => {
                return refuse(&format!("The argument {} is not UTF-8: give it as UTF-8 text.", word.to_string_lossy()));
            }
        }
    }
    match verbs::run(&words) {
        Ok(code) => ExitCode::from(code),
        Err(verbs::VerbError::Usage(sentence)) => refuse(&sentence),
        Err(verbs::VerbError::Contract(error)) => {
            say(&error.to_string());
            ExitCode::from(error.exit_code())
        }
    }
}

fn refuse(sentence: &str) -> ExitCode {
    say(sentence);
    ExitCode::from(exit::REFUSED)
}

/// One sentence on stderr; a closed stderr is nobody's fault.
fn say(sentence: &str) {
    let _ = writeln!(std::io::stderr().lock(), "mission: {sentence}");
}
