//! `mission demo`: a real run with no key and no network. It goes the way of every other run; only the words are ours.

use std::io::Write;
use std::path::{Path, PathBuf};

use super::arguments::{DemoArguments, RunArguments};
use super::environment::Environment;
use super::error::CliError;
use super::objective::{self, Line};
use super::run;
use super::run::Exit;
use crate::demo::{OBJECTIVE, SCRIPT, SERVER_WORD, SKILL};
use crate::sys::descriptors::{Inherited, Target, parse_output};
use crate::sys::files::{self, Durability};

/// Variables of our own that would make it another run.
const OURS: [&str; 6] = ["MISSION_", "MCP_", "LOCAL_", "ELF_", "JUDAIS_LOBI_", "TAI_"];

/// Runs the demo.
///
/// # Errors
/// When its files cannot be written, or the run is refused.
pub fn demo(arguments: &DemoArguments, environment: &Environment, inherited: &mut Inherited) -> Result<Exit, CliError> {
    let keep = arguments.keep.as_deref().filter(|keep| !keep.trim().is_empty());
    let place = PathBuf::from(keep.unwrap_or(".mission"));
    let folder = place.join("demo");
    let skill = write(&folder, "SKILL.md", SKILL)?;
    let script = write(&folder, "script.json", SCRIPT)?;
    let server = server_command()?;
    let mut words = vec![
        "--mission".to_owned(),
        format!("--protocol={}", arguments.protocol),
        "--provider=scripted".to_owned(),
        format!("--script={script}"),
        format!("--skill={skill}"),
        format!("--mcp-stdio=parts={server}"),
    ];
    words.extend(arguments.events.as_ref().map(|events| format!("--events={events}")));
    words.extend(arguments.no_stream.then(|| "--no-stream".to_owned()));
    words.extend(["--".to_owned(), OBJECTIVE.to_owned()]);
    let mut environment: Environment = environment
        .iter()
        .filter(|(name, _)| !OURS.iter().any(|ours| name.starts_with(ours)))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    if keep.is_some() {
        // Absolute, so that no name of a folder is read as a word for something else.
        let runs = std::path::absolute(place.join("runs")).map_err(|error| CliError::no_directory(&error))?;
        environment.insert("MISSION_RUNS".to_owned(), text(&runs)?);
    }
    let Line::Run(line) = objective::read(&words)? else {
        return Err(CliError::Failed("the demo's own command line asks for no run".to_owned()));
    };
    let arguments_of_run = RunArguments::read(line)?;
    let quiet =
        arguments.events.as_deref().is_some_and(|events| matches!(parse_output("--events", events), Ok(Target::Standard)));
    let say = |sentence: &str| {
        if !quiet {
            // A reader of ours that went away misses the words, not the run.
            drop(writeln!(std::io::stdout().lock(), "{sentence}"));
        }
    };
    say(&format!(
        "This demo asks no real model: the model is scripted (it plays {script}). The tool server, the calls, the skill and the log are real,\nand the answer is made of what the calls return.\n"
    ));
    let done = run::run(arguments_of_run, &environment, inherited)?;
    if let Some(run) = &done.folder {
        say(&format!("\nThe run lies in {}: log.ndjson holds every word of it.", run.display()));
    }
    Ok(done.exit)
}

/// The command that starts the demo's tool server: this program, by its path where that still leads to it and can be written
/// down, else as the kernel names it (the file may have been replaced since).
fn server_command() -> Result<String, CliError> {
    let program = std::env::current_exe().ok().filter(|program| program.exists());
    let program = program.as_deref().and_then(Path::to_str).unwrap_or("/proc/self/exe");
    shlex::try_join([program, SERVER_WORD])
        .map_err(|_| CliError::Failed(format!("the path of this program cannot be written as a command: {program}")))
}

fn write(folder: &Path, name: &str, content: &str) -> Result<String, CliError> {
    let path = folder.join(name);
    files::create_folders(folder).and_then(|_| files::replace_file(&path, content.as_bytes(), Durability::Atomic)).map_err(
        |error| CliError::File {
            place: "the demo's file".to_owned(),
            file: path.display().to_string(),
            problem: format!("it cannot be written ({error}); run the demo in a folder of yours, or name one with --keep"),
        },
    )?;
    text(&path)
}

fn text(path: &Path) -> Result<String, CliError> {
    path.to_str()
        .map(str::to_owned)
        .ok_or_else(|| CliError::Failed(format!("the path {} is not UTF-8; run the demo elsewhere", path.display())))
}
