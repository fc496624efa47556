//! The command line as it is typed: flags by subject, values as texts. Pure; what the texts mean is decided in `configuration`.
// What stands in brackets there is a variable: these docs are the help.
#![allow(rustdoc::broken_intra_doc_links)]

mod approvals;
mod carrying;
mod conversation;
mod later;
mod limits;
mod model;
mod policy;
mod replay;
mod runs;
mod skill;
mod stream;
mod tools;
mod verbs;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, Command, CommandFactory, FromArgMatches, Parser};

pub use approvals::{ApprovalsArguments, DecisionFlags, GateFlags};
pub use carrying::CarryFlags;
pub use conversation::ConversationFlags;
pub use later::Asked;
pub use limits::LimitFlags;
pub use model::ModelFlags;
pub use policy::{PolicyArguments, PolicyFlags};
pub use replay::{ReplayArguments, ReplayFlags};
pub use runs::{ExportArguments, FollowArguments, ListArguments, PruneArguments, RunsVerb, ShowArguments, VerifyArguments};
pub use skill::{LockArguments, SkillArguments, SkillFlags};
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
    /// What it begins with.
    #[command(flatten)]
    pub conversation: ConversationFlags,
    /// Which tools.
    #[command(flatten)]
    pub tools: ToolFlags,
    /// How strictly.
    #[command(flatten)]
    pub skill: SkillFlags,
    /// How far.
    #[command(flatten)]
    pub limits: LimitFlags,
    /// Where to.
    #[command(flatten)]
    pub streams: StreamFlags,
    /// From where.
    #[command(flatten)]
    pub carry: CarryFlags,
    /// What a person said.
    #[command(flatten)]
    pub decision: DecisionFlags,
    /// What a person is asked.
    #[command(flatten)]
    pub gates: GateFlags,
    /// What may be called.
    #[command(flatten)]
    pub policy: PolicyFlags,
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
    if asks_for_help(words) {
        return Ok(None);
    }
    let command = verb_command::<T>(verb.name(), verb.meaning());
    let command = if verbs::takes_servers(verb) { later::add_servers(command) } else { command };
    parse::<Flattened<T>>(command, words, Some(verb.name())).map(|(arguments, later)| Some((arguments.0, later)))
}

fn asks_for_help(words: &[String]) -> bool {
    words.iter().take_while(|word| *word != "--").any(|word| word == "--help" || word == "-h")
}

/// Tells the word behind `mission runs` from those that it takes. `Ok(None)` when they ask for help.
///
/// # Errors
/// No word, or one that is none.
pub fn read_runs(words: &[String]) -> Result<Option<(RunsVerb, Vec<String>)>, CliError> {
    let all = || RunsVerb::ALL.map(RunsVerb::word).join(", ");
    let Some(position) = words.iter().position(|word| !word.starts_with('-')) else {
        return match asks_for_help(words) {
            true => Ok(None),
            false => Err(CliError::Usage(format!("`mission runs` needs a word: {}", all()))),
        };
    };
    let (before, behind) = words.split_at(position);
    let word = behind.first().map(String::as_str).unwrap_or_default();
    let Some(verb) = RunsVerb::named(word) else {
        let word = super::error::quoted(word);
        return Err(CliError::Usage(format!("{word} is nothing that `mission runs` does; it does {}", all())));
    };
    Ok(Some((verb, before.iter().chain(behind.iter().skip(1)).cloned().collect())))
}

/// Reads the words behind `mission runs WORD`. `Ok(None)` when they ask for its help.
///
/// # Errors
/// Words that it does not take.
pub fn read_runs_verb<T: Args>(verb: RunsVerb, words: &[String]) -> Result<Option<T>, CliError> {
    if asks_for_help(words) {
        return Ok(None);
    }
    let command = verb_command::<T>(verb.name(), verb.meaning());
    parse::<Flattened<T>>(command, words, Some(verb.name())).map(|(arguments, _)| Some(arguments.0))
}

fn verb_command<T: Args>(name: &'static str, meaning: &'static str) -> Command {
    let command = Command::new(name).bin_name(format!("mission {name}"));
    let command = command.disable_help_flag(true).disable_version_flag(true).args_override_self(true);
    // What is said of the structure in the code is not what is said of the verb.
    T::augment_args(command).about(meaning).long_about(None::<&str>)
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
    fn of<T: Args>(verb: Verb) -> Command {
        verb_command::<T>(verb.name(), verb.meaning())
    }
    let command = match verb {
        None | Some(Verb::Run) => run_command().after_help(verbs_listed()),
        Some(verb @ Verb::Demo) => of::<DemoArguments>(verb),
        Some(verb @ Verb::Tools) => of::<ToolsArguments>(verb),
        Some(verb @ Verb::Runs) => return runs_listed(verb),
        Some(verb @ Verb::Approvals) => of::<ApprovalsArguments>(verb),
        Some(verb @ Verb::Skill) => of::<SkillArguments>(verb),
        Some(verb @ Verb::Lock) => of::<LockArguments>(verb),
        Some(verb @ Verb::Policy) => of::<PolicyArguments>(verb),
        Some(verb @ Verb::Verify) => of::<VerifyArguments>(verb),
        Some(verb @ Verb::Schema) => of::<SchemaArguments>(verb),
        Some(verb @ Verb::Contract) => of::<ContractArguments>(verb),
        Some(verb @ Verb::Conform) => of::<ConformArguments>(verb),
        Some(verb @ Verb::Replay) => of::<ReplayArguments>(verb),
    };
    rendered(command)
}

/// The help of `mission runs WORD`.
pub fn runs_help(verb: RunsVerb) -> String {
    rendered(runs_command(verb))
}

fn runs_command(verb: RunsVerb) -> Command {
    fn of<T: Args>(verb: RunsVerb) -> Command {
        verb_command::<T>(verb.name(), verb.meaning())
    }
    match verb {
        RunsVerb::List => of::<ListArguments>(verb),
        RunsVerb::Show => of::<ShowArguments>(verb),
        RunsVerb::Follow => of::<FollowArguments>(verb),
        RunsVerb::Export => of::<ExportArguments>(verb),
        RunsVerb::Prune => of::<PruneArguments>(verb),
    }
}

fn rendered(command: Command) -> String {
    command.term_width(HELP_COLUMNS).render_help().to_string()
}

fn runs_listed(verb: Verb) -> String {
    let mut text = format!("{}\n\nUsage: mission runs WORD …\n\nWords:\n", verb.meaning());
    for verb in RunsVerb::ALL {
        text.push_str(&format!("  {:<7} {}\n", verb.word(), verb.meaning()));
    }
    text.push_str("\nEach has a help of its own: mission runs WORD --help\n");
    text
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

fn parse<T: FromArgMatches>(command: Command, words: &[String], verb: Option<&str>) -> Result<(T, Vec<Asked>), CliError> {
    let program = std::iter::once("mission".to_owned());
    let parsed = command.try_get_matches_from(program.chain(words.iter().cloned()));
    let matches = parsed.map_err(|error| refusal(&error, verb))?;
    let later = later::asked(&matches);
    T::from_arg_matches(&matches).map(|arguments| (arguments, later)).map_err(|error| refusal(&error, verb))
}

/// What the parser refuses, in our words.
fn refusal(error: &clap::Error, verb: Option<&str>) -> CliError {
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
            verb: verb.map(str::to_owned),
        },
        ErrorKind::UnknownArgument => {
            let verb = verb.unwrap_or("run");
            let word = super::error::quoted(&argument);
            CliError::Usage(format!("`mission {verb}` takes no word {word}; see mission {verb} --help"))
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
