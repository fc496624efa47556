//! Every way in which a command line ends without its work, with its exit code and its sentence.

use std::io;

use mission_contract::vocabulary::exit;

use super::contract_verbs::ContractVerbError;
use crate::approvals::ApprovalError;
use crate::journal::{JournalError, ReadError};
use crate::model::settings::ModelError;
use crate::policy::PolicyError;
use crate::redact::RedactError;
use crate::skill::SkillError;
use crate::sys::descriptors::DescriptorError;
use crate::sys::environment::EnvironmentError;
use crate::tools::ToolsError;

/// Why a command line was not carried out: what, where, and the fix.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// An argument that is no text.
    #[error("argument {position} ({shown}) is not UTF-8; give it as UTF-8 text")]
    ArgumentNotUtf8 {
        /// Its position, from 1.
        position: usize,
        /// What of it can be shown.
        shown: String,
    },
    /// A variable that is read here and is no text.
    #[error("the variable {name} is not UTF-8; set it to UTF-8 text, or unset it")]
    VariableNotUtf8 {
        /// The variable.
        name: String,
    },
    /// A flag that nobody knows.
    #[error("{}", unknown_flag(flag, suggestion.as_deref(), verb.as_deref()))]
    UnknownFlag {
        /// The flag, without a value.
        flag: String,
        /// The flag that it may be meant for.
        suggestion: Option<String>,
        /// The verb behind which it stands.
        verb: Option<String>,
    },
    /// A flag without its value.
    #[error("{flag} needs a value; write it behind the flag, or as {flag}=VALUE when it begins with a dash")]
    ValueMissing {
        /// The flag.
        flag: String,
    },
    /// A switch with a value.
    #[error("{flag} is a switch and takes no value; write it alone")]
    ValueForSwitch {
        /// The flag.
        flag: String,
    },
    /// A value that makes no sense.
    #[error("{place} {value}: {problem}")]
    Value {
        /// The flag or variable.
        place: String,
        /// What was given, bounded and on one line.
        value: String,
        /// What is wrong with it, and the fix.
        problem: String,
    },
    /// Something published whose work has not landed.
    #[error("{what} is not supported by this build yet; {fix}")]
    NotLanded {
        /// The flag, variable or verb.
        what: String,
        /// What to do instead.
        fix: String,
    },
    /// The words do not make a command.
    #[error("{0}")]
    Usage(String),
    /// There is no objective, or none that can be carried out.
    #[error("{0}")]
    Objective(String),
    /// The servers of the command line.
    #[error("{0}")]
    Servers(#[from] ToolsError),
    /// The variables that are passed on to servers.
    #[error("--mcp-env: {0}")]
    Passes(#[from] EnvironmentError),
    /// The model.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The skill.
    #[error(transparent)]
    Skill(#[from] SkillError),
    /// The policy file.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// A file that was named, or is looked for, and cannot be taken.
    #[error("{place} {file}: {problem}")]
    File {
        /// The flag or variable that names it, or what it is.
        place: String,
        /// The file.
        file: String,
        /// What is wrong with it, and the fix.
        problem: String,
    },
    /// An approval that cannot be shown or decided.
    #[error(transparent)]
    Approval(#[from] ApprovalError),
    /// A verb of the contract.
    #[error(transparent)]
    Contract(#[from] ContractVerbError),
    /// Refused at the door, in words of another room.
    #[error("{0}")]
    Refused(String),
    /// It went wrong.
    #[error("{0}")]
    Failed(String),
    /// Another process holds the run.
    #[error("{0}")]
    Held(String),
    /// The log could not be written.
    #[error("{0}")]
    Journal(String),
    /// A log cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// What a verb had to say could not be written.
    #[error("the output could not be written: {0}")]
    Output(#[source] io::Error),
}

impl From<RedactError> for CliError {
    fn from(error: RedactError) -> Self {
        CliError::Refused(error.to_string())
    }
}

impl From<DescriptorError> for CliError {
    fn from(error: DescriptorError) -> Self {
        CliError::Refused(error.to_string())
    }
}

impl From<JournalError> for CliError {
    fn from(error: JournalError) -> Self {
        match error {
            JournalError::Held { .. } => CliError::Held(error.to_string()),
            _ => CliError::Refused(error.to_string()),
        }
    }
}

impl CliError {
    /// The system did not give what every run needs.
    pub(super) fn system(what: &str, error: &io::Error) -> Self {
        CliError::Failed(format!("{what} could not be had from the system: {error}"))
    }

    /// The working directory is gone, or may not be looked up.
    pub(super) fn no_directory(error: &io::Error) -> Self {
        CliError::Refused(format!("the working directory cannot be found ({error}); change to one that is there"))
    }

    /// The exit status that it ends the program with.
    pub fn exit_code(&self) -> u8 {
        match self {
            CliError::Contract(error) => error.exit_code(),
            CliError::Model(error) if error.is_servers() => exit::FAILED,
            CliError::Approval(error) if !error.is_usage() => exit::FAILED,
            CliError::Failed(_) | CliError::Output(_) | CliError::Read(_) => exit::FAILED,
            CliError::Held(_) => exit::HELD,
            CliError::Journal(_) => exit::JOURNAL_FAILED,
            _ => exit::REFUSED,
        }
    }

    /// True when whoever read our output went away: they know, and nobody is told.
    pub fn is_reader_gone(&self) -> bool {
        let (CliError::Output(error) | CliError::Contract(ContractVerbError::Write(error))) = self else { return false };
        error.kind() == io::ErrorKind::BrokenPipe
    }

    /// A value that makes no sense, bounded for display.
    pub(super) fn value(place: impl Into<String>, value: &str, problem: impl Into<String>) -> Self {
        CliError::Value { place: place.into(), value: quoted(value), problem: problem.into() }
    }
}

/// Most characters of a value that a refusal repeats.
const SHOWN_CHARACTERS: usize = 120;

/// A text of the command line as a sentence repeats it: quoted, on one line, bounded.
pub(super) fn quoted(text: &str) -> String {
    let mut shown: String = text.chars().flat_map(char::escape_debug).take(SHOWN_CHARACTERS).collect();
    if text.chars().count() > SHOWN_CHARACTERS {
        shown.push('…');
    }
    format!("`{}`", shown.replace("\\'", "'").replace("\\\"", "\""))
}

fn unknown_flag(flag: &str, suggestion: Option<&str>, verb: Option<&str>) -> String {
    let of = verb.map_or_else(|| "mission".to_owned(), |verb| format!("`mission {verb}`"));
    let meant = suggestion.map(|flag| format!(" (did you mean {flag}?)")).unwrap_or_default();
    let more = match verb {
        None => "an objective that begins with a dash stands after `--`",
        Some(_) => "its flags are listed by --help",
    };
    format!("{} is no flag of {of}{meant}; {more}", quoted(flag))
}
