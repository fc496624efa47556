//! What a command line asks for: which words are flags, which one is the objective, and whether there is a verb. Pure.
//!
//! * With `--mission` on the line the word that is no flag is the objective, whatever it says, and no verb is recognised.
//! * A word that begins with `-` is the objective when it holds white space or stands after `--`; any other is a flag.
//! * `mission run [flags] -- TEXT` says the same without `--mission`.
//! * Without either, a first word equal to a verb is that verb; any other is the objective.

use mission_contract::vocabulary::{self, Status, VERBS};

use super::error::{CliError, quoted};

/// What a command line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// A run.
    Run(RunLine),
    /// Another verb.
    Verb {
        /// Its name.
        verb: Verb,
        /// The other words, in their order.
        words: Vec<String>,
    },
    /// The help of the program, or of a verb.
    Help(Option<Verb>),
    /// The version.
    Version,
}

/// A run, its flags told from its objective.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunLine {
    /// The flags, one word each: `--flag` or `--flag=value`. A flag that nobody knows stands among them without a value.
    pub flags: Vec<String>,
    /// The objective, verbatim.
    pub objective: Option<String>,
}

/// The verbs that this build carries out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Verb {
    Run,
    Demo,
    Tools,
    Runs,
    Approvals,
    Skill,
    Lock,
    Verify,
    Schema,
    Contract,
    Conform,
    Replay,
    Policy,
}

impl Verb {
    /// All of them.
    pub const ALL: [Verb; 13] = [
        Verb::Run,
        Verb::Demo,
        Verb::Tools,
        Verb::Runs,
        Verb::Approvals,
        Verb::Skill,
        Verb::Lock,
        Verb::Policy,
        Verb::Verify,
        Verb::Replay,
        Verb::Schema,
        Verb::Contract,
        Verb::Conform,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Verb::Run => "run",
            Verb::Demo => "demo",
            Verb::Tools => "tools",
            Verb::Runs => "runs",
            Verb::Approvals => "approvals",
            Verb::Skill => "skill",
            Verb::Lock => "lock",
            Verb::Verify => "verify",
            Verb::Schema => "schema",
            Verb::Contract => "contract",
            Verb::Conform => "conform",
            Verb::Replay => "replay",
            Verb::Policy => "policy",
        }
    }

    /// What it does, for a list.
    pub fn meaning(self) -> &'static str {
        VERBS.iter().find(|verb| verb.name == self.name()).map_or("", |verb| verb.meaning)
    }

    fn named(name: &str) -> Option<Verb> {
        Verb::ALL.into_iter().find(|verb| verb.name() == name)
    }
}

/// Names that are kept for verbs to come, beside those that the contract lists.
const KEPT: &[&str] = &["mcp", "completions"];

fn is_kept(name: &str) -> bool {
    KEPT.contains(&name) || VERBS.iter().any(|verb| verb.name == name && verb.status != Status::Landed)
}

/// A word, told apart.
enum Word<'w> {
    Flag(String),
    Help,
    Version,
    Plain { position: usize, text: &'w str },
    AfterDashes(&'w str),
    Wrong(CliError),
}

/// Tells the words of a command line apart (without the program's name).
///
/// # Errors
/// A flag that misses its value or has one too many, two objectives, a verb that has not landed or is misspelt.
pub fn read(words: &[String]) -> Result<Line, CliError> {
    let told = tell(words);
    if !told.iter().any(|word| matches!(word, Word::Flag(flag) if flag == "--mission")) {
        let first = told.iter().find_map(|word| match word {
            Word::Plain { position, text } => Some((*position, *text)),
            _ => None,
        });
        if let Some((position, text)) = first {
            let others = || {
                words.iter().enumerate().filter(|(index, _)| *index != position).map(|(_, word)| word.clone()).collect::<Vec<_>>()
            };
            match Verb::named(text) {
                Some(Verb::Run) => return run(tell(&others()), Some(Verb::Run)),
                Some(verb) => return Ok(Line::Verb { verb, words: others() }),
                None if text == "help" => return help(&others()),
                None if text == "version" => return Ok(Line::Version),
                None if is_kept(text) => {
                    let fix = format!("an objective of that name is written `mission run -- {text}`");
                    return Err(CliError::NotLanded { what: format!("the verb `{text}`"), fix });
                }
                None => {
                    if let Some(verb) = meant(text) {
                        let verb = verb.name();
                        let sentence = format!(
                            "{} is no verb (did you mean `{verb}`?); an objective of one word is written `mission run -- {text}`",
                            quoted(text)
                        );
                        return Err(CliError::Usage(sentence));
                    }
                }
            }
        }
    }
    run(told, None)
}

/// `mission help [VERB]`.
fn help(words: &[String]) -> Result<Line, CliError> {
    match words.first() {
        None => Ok(Line::Help(None)),
        Some(word) => match Verb::named(word) {
            Some(verb) => Ok(Line::Help(Some(verb))),
            None => {
                let verbs = Verb::ALL.map(Verb::name).join(", ");
                Err(CliError::Usage(format!("there is no help on {}; the verbs are {verbs}", quoted(word))))
            }
        },
    }
}

fn run(told: Vec<Word<'_>>, verb: Option<Verb>) -> Result<Line, CliError> {
    let mut line = RunLine::default();
    let mut wrong = None;
    for word in told {
        let objective = match word {
            Word::Help => return Ok(Line::Help(verb)),
            Word::Version => return Ok(Line::Version),
            Word::Flag(flag) => {
                line.flags.push(flag);
                continue;
            }
            Word::Wrong(error) => {
                wrong.get_or_insert(error);
                continue;
            }
            Word::Plain { text, .. } | Word::AfterDashes(text) => text,
        };
        if let Some(first) = &line.objective {
            let sentence = format!(
                "there are two objectives, {} and {}; an objective is one argument, put it in quotes",
                quoted(first),
                quoted(objective)
            );
            // The value of a flag that nobody knows looks like an objective: the flag is told first.
            if !line.flags.iter().any(|flag| is_unknown(flag)) {
                wrong.get_or_insert(CliError::Objective(sentence));
            }
        } else {
            line.objective = Some(objective.to_owned());
        }
    }
    match wrong {
        Some(error) => Err(error),
        None => Ok(Line::Run(line)),
    }
}

fn is_unknown(flag: &str) -> bool {
    let name = flag.split_once('=').map_or(flag, |(name, _)| name);
    vocabulary::flag(name).is_none()
}

fn tell(words: &[String]) -> Vec<Word<'_>> {
    let mut told = Vec::new();
    let mut rest = words.iter().enumerate().peekable();
    while let Some((position, word)) = rest.next() {
        let text = word.as_str();
        if text == "--" {
            told.extend(rest.map(|(_, word)| Word::AfterDashes(word)));
            break;
        }
        if !text.starts_with('-') {
            told.push(Word::Plain { position, text });
            continue;
        }
        let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
        let wrong = |error: fn(String) -> CliError| Word::Wrong(error(name.to_owned()));
        told.push(match (name, vocabulary::flag(name).map(|flag| flag.value.is_some()), value) {
            ("--help" | "-h", _, None) => Word::Help,
            ("--version" | "-V", _, None) => Word::Version,
            ("--help" | "-h" | "--version" | "-V", _, Some(_)) | (_, Some(false), Some(_)) => {
                wrong(|flag| CliError::ValueForSwitch { flag })
            }
            (_, Some(false), None) => Word::Flag(name.to_owned()),
            (_, Some(true), Some(value)) => Word::Flag(format!("{name}={value}")),
            (_, Some(true), None) => match rest.next_if(|(_, next)| may_be_value(next)) {
                Some((_, value)) => Word::Flag(format!("{name}={value}")),
                None => wrong(|flag| CliError::ValueMissing { flag }),
            },
            (_, None, _) if text.contains(char::is_whitespace) => Word::Plain { position, text },
            (_, None, _) => Word::Flag(name.to_owned()),
        });
    }
    told
}

/// A word that begins with a dash is the value of the flag before it only when it cannot be a flag itself.
fn may_be_value(word: &str) -> bool {
    !word.starts_with('-') || word == "-" || word.contains(char::is_whitespace) || word.parse::<f64>().is_ok()
}

/// The verb that a word is a misspelling of: one or two letters away.
fn meant(word: &str) -> Option<Verb> {
    if word.chars().count() < 3 || word.contains(char::is_whitespace) {
        return None;
    }
    Verb::ALL.into_iter().find(|verb| distance(word, verb.name()) <= if verb.name().len() > 4 { 2 } else { 1 })
}

/// How many letters are to be added, dropped or replaced to get from one word to the other.
fn distance(left: &str, right: &str) -> usize {
    let mut row: Vec<usize> = (0..=right.chars().count()).collect();
    for (index, mine) in left.chars().enumerate() {
        let mut diagonal = index;
        let mut before = index.saturating_add(1);
        if let Some(first) = row.first_mut() {
            *first = before;
        }
        for (cell, theirs) in row.iter_mut().skip(1).zip(right.chars()) {
            let cheapest =
                diagonal.saturating_add(usize::from(mine != theirs)).min(before.saturating_add(1)).min(cell.saturating_add(1));
            diagonal = *cell;
            *cell = cheapest;
            before = cheapest;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod objective_tests;
