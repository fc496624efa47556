//! The command line as it is typed: flags by subject, values as texts. Pure; what the texts mean is decided in `configuration`.
// What stands in brackets there is a variable: these docs are the help.
#![allow(rustdoc::broken_intra_doc_links)]

mod later;
mod limits;
mod model;
mod replay;
mod stream;
mod tools;
mod verbs;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, Command, CommandFactory, FromArgMatches, Parser};

pub use later::Asked;
pub use limits::LimitFlags;
pub use model::ModelFlags;
pub use replay::{ReplayArguments, ReplayFlags};
pub use stream::StreamFlags;
pub use tools::{ServerFlags, ToolFlags};
pub use verbs::{ConformArguments, ContractArguments, DemoArguments, SchemaArguments, ToolsArguments};

use super::error::CliError;
use super::objective::{RunLine, Verb};

/// A run as it is asked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunArguments {
    /// What it is to do.
    pub objective: Option<String>,
    /// Its flags.
    pub flags: RunFlags,
    /// What was asked for and has not landed.
    pub later: Vec<Asked>,
}

/// The flags of a run.
#[derive(Clone, Debug, Default, PartialEq, Parser)]
#[command(
    name = "mission",
    disable_help_flag = true,
    disable_version_flag = true,
    args_override_self = true,
    override_usage = "mission --mission [FLAGS] TEXT\n       mission run [FLAGS] -- TEXT\n       mission VERB …"
)]
pub struct RunFlags {
    /// TEXT is the objective, whatever it says
    #[arg(long, help_heading = "Run")]
    pub mission: bool,
    /// Which model.
    #[command(flatten)]
    pub model: ModelFlags,
    /// Which tools.
    #[command(flatten)]
    pub tools: ToolFlags,
    /// How far.
    #[command(flatten)]
    pub limits: LimitFlags,
    /// Where to.
    #[command(flatten)]
    pub streams: StreamFlags,
    /// Whether a recording.
    #[command(flatten)]
    pub replay: ReplayFlags,
}

impl RunArguments {
    /// Reads a run's flags.
    ///
    /// # Errors
    /// A flag that nobody knows.
    pub fn read(line: RunLine) -> Result<Self, CliError> {
        let (flags, later) = parse::<RunFlags>(later::add(run_command()), &line.flags, None)?;
        Ok(RunArguments { objective: line.objective, flags, later })
    }
}

/// The parser of a run, for its help too.
fn run_command() -> Command {
    with_help(RunFlags::command().about("Carries out one objective with a language model and MCP tools, under governance."))
}

fn with_help(command: Command) -> Command {
    let flag = |name: &'static str, short, help: &'static str| {
        clap::Arg::new(name).long(name).short(short).action(clap::ArgAction::SetTrue).help(help).help_heading("Other")
    };
    command.arg(flag("help", 'h', "Print this, or with a verb what it takes")).arg(flag("version", 'V', "Print the version"))
}

/// Reads the words behind another verb than `run`. `Ok(None)` when they ask for its help.
///
/// # Errors
/// Words that the verb does not take.
pub fn read_verb<T: Args>(verb: Verb, words: &[String]) -> Result<Option<(T, Vec<Asked>)>, CliError> {
    let flags = words.iter().take_while(|word| *word != "--");
    if flags.clone().any(|word| word == "--help" || word == "-h") {
        return Ok(None);
    }
    let command = verb_command::<T>(verb);
    let command = if verbs::takes_servers(verb) { later::add_servers(command) } else { command };
    parse::<Flattened<T>>(command, words, Some(verb)).map(|(arguments, later)| Some((arguments.0, later)))
}

fn verb_command<T: Args>(verb: Verb) -> Command {
    let command = Command::new(verb.name()).bin_name(format!("mission {}", verb.name()));
    let command = command.disable_help_flag(true).disable_version_flag(true).args_override_self(true);
    // What is said of the structure in the code is not what is said of the verb.
    T::augment_args(command).about(verb.meaning()).long_about(None::<&str>)
}

struct Flattened<T>(T);

impl<T: FromArgMatches> FromArgMatches for Flattened<T> {
    fn from_arg_matches(matches: &clap::ArgMatches) -> Result<Self, clap::Error> {
        T::from_arg_matches(matches).map(Flattened)
    }
    fn update_from_arg_matches(&mut self, matches: &clap::ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }
}

/// The help of the program, or of a verb.
pub fn help(verb: Option<Verb>) -> String {
    let command = match verb {
        None | Some(Verb::Run) => run_command().after_help(verbs_listed()),
        Some(verb @ Verb::Demo) => verb_command::<DemoArguments>(verb),
        Some(verb @ Verb::Tools) => verb_command::<ToolsArguments>(verb),
        Some(verb @ Verb::Replay) => verb_command::<ReplayArguments>(verb),
        Some(verb @ Verb::Schema) => verb_command::<SchemaArguments>(verb),
        Some(verb @ Verb::Contract) => verb_command::<ContractArguments>(verb),
        Some(verb @ Verb::Conform) => verb_command::<ConformArguments>(verb),
    };
    command.term_width(HELP_COLUMNS).render_help().to_string()
}

/// The help is one text wherever it is read.
const HELP_COLUMNS: usize = 110;

fn verbs_listed() -> String {
    let mut text = String::from("Verbs:\n");
    for verb in Verb::ALL {
        text.push_str(&format!("  {:<10} {}\n", verb.name(), verb.meaning()));
    }
    text.push_str(
        "\nA flag beats its variable, given in brackets. `mission contract` prints every flag, variable and exit code.",
    );
    text
}

fn parse<T: FromArgMatches>(command: Command, words: &[String], verb: Option<Verb>) -> Result<(T, Vec<Asked>), CliError> {
    let program = std::iter::once("mission".to_owned());
    let parsed = command.try_get_matches_from(program.chain(words.iter().cloned()));
    let matches = parsed.map_err(|error| refusal(&error, verb))?;
    let later = later::asked(&matches);
    T::from_arg_matches(&matches).map(|arguments| (arguments, later)).map_err(|error| refusal(&error, verb))
}

/// What the parser refuses, in our words.
fn refusal(error: &clap::Error, verb: Option<Verb>) -> CliError {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        Some(ContextValue::Strings(texts)) => texts.first().cloned(),
        _ => None,
    };
    // `--flag <VALUE>` is how the parser names a flag; its name is the first word.
    let name = |text: String| text.split([' ', '=']).next().unwrap_or_default().to_owned();
    let argument = context(ContextKind::InvalidArg).map(name).unwrap_or_default();
    match error.kind() {
        ErrorKind::UnknownArgument if argument.starts_with('-') => CliError::UnknownFlag {
            flag: argument,
            suggestion: context(ContextKind::SuggestedArg).map(name),
            verb: verb.map(|verb| verb.name().to_owned()),
        },
        ErrorKind::UnknownArgument => {
            let verb = verb.map_or("run", Verb::name);
            CliError::Usage(format!(
                "`mission {verb}` takes no word {}; see mission help {verb}",
                super::error::quoted(&argument)
            ))
        }
        ErrorKind::InvalidValue if context(ContextKind::InvalidValue).is_none_or(|value| value.is_empty()) => {
            CliError::ValueMissing { flag: argument }
        }
        ErrorKind::TooManyValues => CliError::ValueForSwitch { flag: argument },
        _ => {
            let text = error.to_string();
            let first = text.lines().next().unwrap_or_default();
            CliError::Usage(first.strip_prefix("error: ").unwrap_or(first).to_owned())
        }
    }
}

#[cfg(test)]
mod arguments_tests;
