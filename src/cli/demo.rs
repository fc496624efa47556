//! `mission demo`: a real run with no key and no network. It goes the way of every other run; only the words are ours.

use std::io::Write;
use std::path::{Path, PathBuf};

use super::arguments::{DemoArguments, RunArguments};
use super::environment::Environment;
use super::error::CliError;
use super::objective::{self, Line};
use super::run::Exit;
use super::{configuration, run};
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
    let place = arguments.keep.as_deref().map_or_else(|| PathBuf::from(".mission"), PathBuf::from);
    let folder = place.join("demo");
    let skill = write(&folder, "SKILL.md", SKILL)?;
    let script = write(&folder, "script.json", SCRIPT)?;
    let program = std::env::current_exe().map_err(|error| CliError::system("the path of this program", &error))?;
    let program = text(&program)?;
    let server = shlex::try_join([program.as_str(), SERVER_WORD])
        .map_err(|_| CliError::Failed(format!("the path of this program cannot be written as a command: {program}")))?;
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
    if let Some(keep) = &arguments.keep {
        environment.insert("MISSION_RUNS".to_owned(), format!("{}/runs", keep.trim_end_matches('/')));
    }
    let Line::Run(line) = objective::read(&words)? else {
        return Err(CliError::Failed("the demo's own command line asks for no run".to_owned()));
    };
    let configuration = configuration::resolve(RunArguments::read(line)?, &environment)?;
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
    let done = run::run(configuration, &environment, inherited)?;
    if let Some(run) = &done.folder {
        say(&format!("\nThe run lies in {}: log.ndjson holds every word of it.", run.display()));
    }
    Ok(done.exit)
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
