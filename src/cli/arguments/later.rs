//! Flags that are published and whose work has not landed: known, hidden, and refused by name unless they say what holds anyway.

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use mission_contract::vocabulary::{FLAGS, Flag, Status};

/// A flag that was typed and whose work has not landed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The flag.
    pub flag: Flag,
    /// What it was given; nothing for a switch.
    pub values: Vec<String>,
}

impl Asked {
    /// The value that asks for what is not there yet; `None` when all of them say what holds anyway, or nothing.
    /// A switch has no value and asks all the same: its text is empty.
    pub fn wish(&self) -> Option<&str> {
        if self.flag.value.is_none() {
            return Some("");
        }
        self.values.iter().map(String::as_str).find(|value| !value.trim().is_empty() && !self.flag.is_default(value))
    }
}

fn flags() -> impl Iterator<Item = &'static Flag> {
    FLAGS.iter().filter(|flag| flag.status != Status::Landed)
}

fn arg(flag: &'static Flag) -> Arg {
    let action = if flag.value.is_some() { ArgAction::Append } else { ArgAction::SetTrue };
    let arg = Arg::new(flag.name).long(flag.name.trim_start_matches('-')).action(action).hide(true);
    if flag.value.is_some() { arg.allow_hyphen_values(true) } else { arg }
}

/// Adds all of them to the parser of a run.
pub fn add(command: Command) -> Command {
    flags().fold(command, |command, flag| command.arg(arg(flag)))
}

/// Adds those about tool servers to the parser of a verb that starts some.
pub fn add_servers(command: Command) -> Command {
    flags().filter(|flag| flag.name.starts_with("--mcp-")).fold(command, |command, flag| command.arg(arg(flag)))
}

/// Those that were typed.
pub fn asked(matches: &ArgMatches) -> Vec<Asked> {
    flags()
        .filter(|flag| {
            matches.try_contains_id(flag.name).is_ok() && matches.value_source(flag.name) == Some(ValueSource::CommandLine)
        })
        .map(|flag| {
            let values = match flag.value {
                Some(_) => matches.get_many::<String>(flag.name).into_iter().flatten().cloned().collect(),
                None => Vec::new(),
            };
            Asked { flag: *flag, values }
        })
        .collect()
}
