//! `mission runs WORD`: what is done with runs that are there, one file a word.

mod conversation;
mod export;
mod follow;
mod list;
mod prune;
mod seed2;
mod show;
mod timeline;

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use mission_contract::vocabulary::exit;

use super::arguments::{self, RunsVerb, read_runs, read_runs_verb};
use super::environment::{Environment, Stated};
use super::error::CliError;
use super::hiding;
use super::objective::Verb;
use super::run::Exit;
use crate::journal::{JournalError, RunPlace, RunStore};
use crate::redact::Redactor;

/// Where runs are, and what of them is shown.
pub struct Runs {
    /// Where they are kept.
    pub store: RunStore,
    /// The working directory.
    pub directory: PathBuf,
    /// Replaces what the environment knows to be a credential.
    pub redactor: Arc<Redactor>,
}

impl Runs {
    /// Those of the working directory, or of `MISSION_RUNS`.
    ///
    /// # Errors
    /// Without a working directory or a redactor.
    pub fn open(environment: &Environment) -> Result<Self, CliError> {
        let directory = std::env::current_dir().map_err(|error| CliError::no_directory(&error))?;
        let stated = Stated::variable(environment, "MISSION_RUNS");
        let store = RunStore::of(stated.as_ref().map(|stated| stated.value.as_str()), &directory);
        Ok(Self { store, directory, redactor: hiding::redactor()? })
    }

    /// The run that a word names.
    ///
    /// # Errors
    /// When there is none.
    pub fn find(&self, word: &str) -> Result<RunPlace, JournalError> {
        self.store.find(word, &self.directory)
    }

    /// The run that a verb needs.
    ///
    /// # Errors
    /// When none was named, or there is none.
    fn named(&self, verb: RunsVerb, word: Option<&str>) -> Result<RunPlace, CliError> {
        let Some(word) = word.filter(|word| !word.trim().is_empty()) else {
            let name = verb.name();
            return Err(CliError::Usage(format!("`mission {name}` needs a run: its id, its folder or its log")));
        };
        Ok(self.find(word)?)
    }
}

/// Carries out `mission runs …`.
///
/// # Errors
/// Words that it does not take, and whatever the word behind it comes to.
pub fn runs(words: &[String], environment: &Environment, out: &mut dyn Write) -> Result<Exit, CliError> {
    let Some((verb, words)) = read_runs(words)? else {
        return print(out, &arguments::help(Some(Verb::Runs)));
    };
    let help = |out: &mut dyn Write| print(out, &arguments::runs_help(verb));
    match verb {
        RunsVerb::List => {
            let Some(arguments) = read_runs_verb(verb, &words)? else { return help(out) };
            list::list(&Runs::open(environment)?, &arguments, out)
        }
        RunsVerb::Follow => {
            let Some(arguments) = read_runs_verb(verb, &words)? else { return help(out) };
            follow::follow(&Runs::open(environment)?, &arguments, out)
        }
        RunsVerb::Show => {
            let Some(arguments) = read_runs_verb(verb, &words)? else { return help(out) };
            show::show(&Runs::open(environment)?, &arguments, out)
        }
        RunsVerb::Export => {
            let Some(arguments) = read_runs_verb(verb, &words)? else { return help(out) };
            export::export(&Runs::open(environment)?, &arguments, out)
        }
        RunsVerb::Prune => {
            let Some(arguments) = read_runs_verb(verb, &words)? else { return help(out) };
            prune::prune(&Runs::open(environment)?, &arguments, out)
        }
    }
}

/// A whole number that was typed.
fn number(stated: &Stated) -> Result<u64, CliError> {
    stated.value.trim().parse().map_err(|_| stated.refuse("that is no whole number from 0"))
}

fn print(out: &mut dyn Write, text: &str) -> Result<Exit, CliError> {
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(CliError::Output)?;
    Ok(Exit::Code(exit::FINE))
}
