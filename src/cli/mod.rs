//! The command line: arguments as typed (pure), configuration as resolved, one file a verb. Every error becomes an exit code and one
//! sentence here, and nowhere else.

mod approvals;
pub mod arguments;
mod awaited;
pub mod ceilings;
pub mod closing;
pub mod configuration;
mod contract_verbs;
mod demo;
mod discover;
pub mod environment;
pub mod error;
pub mod files;
pub mod gates;
pub mod governing;
mod hiding;
mod history;
mod junit;
mod lock;
pub mod objective;
mod orphans;
pub mod personality;
mod policy;
pub mod prices;
mod recordings;
mod replay;
mod replay_verb;
mod resume;
mod retell;
mod run;
mod runs;
mod same_texts;
pub mod servers;
mod sinks;
mod skill_check;
pub mod skills;
mod speaking;
mod tools;
mod verify;

use std::ffi::OsString;
use std::io::{self, BufReader, Write};
use std::panic::{AssertUnwindSafe, PanicHookInfo};
use std::process::ExitCode;

use arguments::{
    ConformArguments, ContractArguments, DemoArguments, LockArguments, PolicyArguments, ReplayArguments, RunArguments,
    SchemaArguments, SkillArguments, ToolsArguments, VerifyArguments, read_verb,
};
use environment::Environment;
use error::CliError;
use mission_contract::vocabulary::exit;
use objective::{Line, Verb};
use run::Exit;

use crate::stream::diagnostics;
use crate::sys::descriptors::Inherited;
use crate::sys::signals;

/// Carries out a command line (without the program's name). `inherited` are the descriptors that were open when the process began.
///
/// What is refused is one redacted sentence on stderr and exit code 2.
pub fn main(
    arguments: impl IntoIterator<Item = OsString>,
    variables: impl IntoIterator<Item = (OsString, OsString)>,
    inherited: Inherited,
) -> ExitCode {
    std::panic::set_hook(Box::new(say_panic));
    let carried = std::panic::catch_unwind(AssertUnwindSafe(|| carry_out(arguments, variables, inherited)));
    // The hook has said it.
    let Ok(carried) = carried else { return ExitCode::from(exit::FAILED) };
    match carried {
        Ok(Exit::Code(code)) => ExitCode::from(code),
        Ok(Exit::Signal(signal)) => {
            signals::end_by(signal);
            // The signal did not end us: say what it would have said.
            ExitCode::from(u8::try_from(signals::exit_number(signal)).unwrap_or(exit::FAILED))
        }
        Err(error) => {
            if !error.is_reader_gone() {
                say(&error.to_string());
            }
            ExitCode::from(error.exit_code())
        }
    }
}

/// One redacted sentence on stderr.
fn say(sentence: &str) {
    match hiding::redactor() {
        Ok(redactor) => diagnostics::say(&redactor, sentence),
        // What cannot be redacted is not said.
        Err(redactor) => drop(writeln!(io::stderr(), "mission: {redactor}")),
    }
}

/// A failure inside is told like every other: one sentence, redacted, with the place for whoever mends it.
fn say_panic(panic: &PanicHookInfo<'_>) {
    let words = panic.payload_as_str().unwrap_or("no words");
    let place = panic.location().map(|place| format!(" at {}:{}", place.file(), place.line())).unwrap_or_default();
    say(&format!("The program failed inside{place}: {words}"));
}

fn carry_out(
    arguments: impl IntoIterator<Item = OsString>,
    variables: impl IntoIterator<Item = (OsString, OsString)>,
    mut inherited: Inherited,
) -> Result<Exit, CliError> {
    let mut words = Vec::new();
    for (position, argument) in (1..).zip(arguments) {
        let not_text =
            |argument: OsString| CliError::ArgumentNotUtf8 { position, shown: error::quoted(&argument.to_string_lossy()) };
        words.push(argument.into_string().map_err(not_text)?);
    }
    let environment = environment::take(variables)?;
    match objective::read(&words)? {
        Line::Run(line) => {
            let arguments = RunArguments::read(line)?;
            hiding::take_up(Some(&arguments.flags.streams), &environment)?;
            if let Some(asked) = approvals::asked(&arguments.flags.decision)? {
                return approvals::decide(&asked, &environment, &mut io::stdout().lock());
            }
            match replay::wanted(&arguments, &environment) {
                Some(wanted) => replay::replay(&wanted, &arguments, &environment, &mut inherited),
                None => Ok(run::run(arguments, &environment, &mut inherited)?.exit),
            }
        }
        Line::Help(verb) => print(&arguments::help(verb)),
        Line::Version => print(&format!("mission {}\n", env!("CARGO_PKG_VERSION"))),
        Line::Verb { verb, words } => {
            hiding::take_up(None, &environment)?;
            carry_out_verb(verb, &words, &environment, &mut inherited)
        }
    }
}

fn carry_out_verb(verb: Verb, words: &[String], environment: &Environment, inherited: &mut Inherited) -> Result<Exit, CliError> {
    let help = || print(&arguments::help(Some(verb)));
    let mut out = io::stdout().lock();
    match verb {
        Verb::Run => help(),
        Verb::Demo => {
            drop(out);
            let Some((arguments, _)) = read_verb::<DemoArguments>(verb, words)? else { return help() };
            demo::demo(&arguments, environment, inherited)
        }
        Verb::Tools => {
            let Some((arguments, later)) = read_verb::<ToolsArguments>(verb, words)? else { return help() };
            tools::tools(&arguments, &later, environment, &mut out)
        }
        Verb::Runs => runs::runs(words, environment, &mut out),
        Verb::Approvals => approvals::approvals(words, environment, &mut out),
        Verb::Skill => {
            let Some((arguments, later)) = read_verb::<SkillArguments>(verb, words)? else { return help() };
            skill_check::skill(&arguments, &later, environment, &mut out)
        }
        Verb::Lock => {
            let Some((arguments, later)) = read_verb::<LockArguments>(verb, words)? else { return help() };
            lock::lock(&arguments, &later, environment, &mut out)
        }
        Verb::Policy => {
            let Some((arguments, _)) = read_verb::<PolicyArguments>(verb, words)? else { return help() };
            policy::policy(&arguments, environment, &mut out)
        }
        Verb::Verify => {
            let Some((arguments, _)) = read_verb::<VerifyArguments>(verb, words)? else { return help() };
            verify::verify(&arguments, environment, &mut out)
        }
        Verb::Replay => {
            let Some((arguments, _)) = read_verb::<ReplayArguments>(verb, words)? else { return help() };
            replay_verb::replay(&arguments, environment, &mut out)
        }
        Verb::Schema => {
            let Some((arguments, _)) = read_verb::<SchemaArguments>(verb, words)? else { return help() };
            contract_verbs::schema(arguments.name.as_deref(), &mut out)?;
            Ok(Exit::Code(exit::FINE))
        }
        Verb::Contract => {
            if read_verb::<ContractArguments>(verb, words)?.is_none() {
                return help();
            }
            contract_verbs::contract(&mut out)?;
            Ok(Exit::Code(exit::FINE))
        }
        Verb::Conform => {
            let Some((arguments, _)) = read_verb::<ConformArguments>(verb, words)? else { return help() };
            let code = match arguments.file {
                None => contract_verbs::conform(BufReader::new(io::stdin().lock()), &mut out)?,
                Some(path) => {
                    let file = std::fs::File::open(&path).map_err(|error| CliError::File {
                        place: "the stream".to_owned(),
                        file: error::quoted(&path),
                        problem: format!("it cannot be read ({error}); name a readable file"),
                    })?;
                    contract_verbs::conform(BufReader::new(file), &mut out)?
                }
            };
            Ok(Exit::Code(code))
        }
    }
}

fn print(text: &str) -> Result<Exit, CliError> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(CliError::Output)?;
    Ok(Exit::Code(exit::FINE))
}
