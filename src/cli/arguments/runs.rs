//! What `mission runs` and `mission verify` take.

use clap::Args;
use mission_contract::vocabulary::{Term, VERBS};

/// What is to be done with runs: the word behind `mission runs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum RunsVerb {
    List,
    Show,
    Follow,
    Export,
    Prune,
}

impl RunsVerb {
    /// All of them.
    pub const ALL: [RunsVerb; 5] = [RunsVerb::List, RunsVerb::Show, RunsVerb::Follow, RunsVerb::Export, RunsVerb::Prune];

    /// The verb with its word.
    pub fn name(self) -> &'static str {
        match self {
            RunsVerb::List => "runs list",
            RunsVerb::Show => "runs show",
            RunsVerb::Follow => "runs follow",
            RunsVerb::Export => "runs export",
            RunsVerb::Prune => "runs prune",
        }
    }

    /// The word alone.
    pub fn word(self) -> &'static str {
        self.name().split_once(' ').map_or("", |(_, word)| word)
    }

    /// What it does.
    pub fn meaning(self) -> &'static str {
        let words = VERBS.iter().find(|verb| verb.name == "runs").map_or(&[] as &[Term], |verb| verb.words);
        words.iter().find(|word| word.name == self.word()).map_or("", |word| word.meaning)
    }

    /// The one of that word.
    pub fn named(word: &str) -> Option<RunsVerb> {
        RunsVerb::ALL.into_iter().find(|verb| verb.word() == word)
    }
}

/// `mission runs list`.
#[derive(Clone, Debug, Default, PartialEq, Args)]
pub struct ListArguments {
    /// Print one JSON object a run
    #[arg(long)]
    pub json: bool,
}

/// `mission runs show`.
#[derive(Clone, Debug, Default, PartialEq, Args)]
pub struct ShowArguments {
    /// A run's id, its folder or its log
    #[arg(value_name = "RUN")]
    pub run: Option<String>,
    /// That step alone, counted from 1 as the timeline does
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub step: Option<String>,
    /// What the model was asked in that step, or in the last
    #[arg(long)]
    pub prompt: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// `mission runs follow`.
#[derive(Clone, Debug, Default, PartialEq, Args)]
pub struct FollowArguments {
    /// A run's id, its folder or its log
    #[arg(value_name = "RUN")]
    pub run: Option<String>,
    /// Begin with that line of the log [else the first]
    #[arg(long, value_name = "SEQ", allow_hyphen_values = true)]
    pub from: Option<String>,
    /// Print each record with the number of its line and its time
    #[arg(long)]
    pub envelope: bool,
}

/// `mission runs export`.
#[derive(Clone, Debug, Default, PartialEq, Args)]
pub struct ExportArguments {
    /// A run's id, its folder or its log
    #[arg(value_name = "RUN")]
    pub run: Option<String>,
    /// The files of the harness before, or the records as they went out
    #[arg(long, value_name = "seed2|ndjson")]
    pub format: Option<String>,
    /// A new folder for seed2 [else the run's id]; a new file for ndjson [else standard output]
    #[arg(long, value_name = "PATH|-", allow_hyphen_values = true)]
    pub output: Option<String>,
}

/// `mission runs prune`.
#[derive(Clone, Debug, Default, PartialEq, Args)]
pub struct PruneArguments {
    /// Keep the N newest that have ended
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub keep: Option<String>,
    /// Remove those that ended longer ago: 30s, 15m, 12h, 7d or 2w
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub older: Option<String>,
    /// Only say what would be removed
    #[arg(long)]
    pub dry_run: bool,
}

/// `mission verify`.
#[derive(Clone, Debug, Default, PartialEq, Args)]
pub struct VerifyArguments {
    /// A run's id, its folder or its log; or an audit file
    #[arg(value_name = "RUN|FILE")]
    pub runs: Vec<String>,
    /// The sum of a line that the log or the audit file is known to hold
    #[arg(long, value_name = "SHA256", allow_hyphen_values = true)]
    pub head: Option<String>,
}
