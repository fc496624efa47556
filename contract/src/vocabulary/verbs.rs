//! The verbs beside `run`, and the flags that are theirs alone.

use serde::Serialize;

use super::Term;
use super::command_line::Status;

/// A verb: `mission <name>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Verb {
    /// Its name.
    pub name: &'static str,
    /// Whether this build does it.
    pub status: Status,
    /// What it does.
    pub meaning: &'static str,
    /// The words that can stand behind it, one of which has to; empty where none does.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub words: &'static [Term],
}

/// A flag of a verb, beside those that it shares with a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct VerbFlag {
    /// The verb, with the word behind it where there is one.
    pub verb: &'static str,
    /// The flag's name, dashes included.
    pub name: &'static str,
    /// What stands behind it; absent for a switch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<&'static str>,
    /// The closed list of values that it takes; empty where any goes.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub words: &'static [&'static str],
    /// What it does.
    pub meaning: &'static str,
}

use Status::{Landed, Later};

const fn verb(name: &'static str, status: Status, meaning: &'static str) -> Verb {
    Verb { name, status, meaning, words: &[] }
}

const fn word(name: &'static str, meaning: &'static str) -> Term {
    Term { name, meaning }
}

/// The verbs. With `--mission` on the line none is recognised.
pub const VERBS: &[Verb] = &[
    verb("run", Landed, "Carries out an objective: `mission run [flags] -- TEXT`."),
    verb("demo", Landed, "Carries out a mission with a scripted model and a tool server of its own."),
    verb("tools", Landed, "Lists the tools that servers offer."),
    Verb {
        words: &[
            word("list", "Every run, newest first, without reading a log."),
            word("show", "One run as a timeline, or the prompt of a step."),
            word("follow", "The records of a run as they become durable, until it ends."),
            word("export", "A run's records, or the files of the harness before."),
            word("prune", "Removes runs that have ended."),
        ],
        ..verb("runs", Landed, "Lists, shows, follows, exports and prunes runs.")
    },
    Verb {
        words: &[
            word("list", "Those that wait for a person; with --all the others too."),
            word("show", "One, with all that is asked: `show ID`."),
            word("answer", "What became of a call: `answer ID done`, `retry` or `abandon`."),
            word("approve", "The call may be made, once: `approve ID`."),
            word("refuse", "It may not: `refuse ID`."),
        ],
        ..verb("approvals", Landed, "Lists, shows and decides what waits for a person.")
    },
    Verb {
        words: &[word("check", "What a manifest closes, what the model reads of it, and what is wrong with it: `check PATH`.")],
        ..verb("skill", Landed, "Checks a skill, against tool servers where some are named.")
    },
    verb("lock", Landed, "Writes down the tools of a skill as its servers define them now, for `--locked`."),
    Verb {
        words: &[word("explain", "Which rule decides about a call, and what it says.")],
        ..verb("policy", Landed, "Says what the profile, the grants and the policy file say about a call.")
    },
    verb("verify", Landed, "Checks the logs of runs, line by line."),
    verb("replay", Landed, "Runs recordings again and reports drift."),
    verb("schema", Landed, "Prints the JSON Schema of a record, or the names of all."),
    verb("contract", Landed, "Prints this vocabulary and the limits."),
    verb("conform", Landed, "Holds a recorded stream to the contract, a line a problem."),
    verb("doctor", Later, "Says what this host can enforce."),
];

const fn switch(verb: &'static str, name: &'static str, meaning: &'static str) -> VerbFlag {
    VerbFlag { verb, name, value: None, words: &[], meaning }
}

const fn taking(verb: &'static str, name: &'static str, value: &'static str, meaning: &'static str) -> VerbFlag {
    VerbFlag { verb, name, value: Some(value), words: &[], meaning }
}

/// The flags of the verbs, beside those that they share with a run.
pub const VERB_FLAGS: &[VerbFlag] = &[
    taking("demo", "--keep", "DIR", "The skill, the script and the run go there."),
    switch("tools", "--json", "One JSON object."),
    switch("runs list", "--json", "One JSON object a run."),
    taking("runs show", "--step", "N", "That step alone, counted from 1 as the timeline does."),
    switch("runs show", "--prompt", "What the model was asked in that step, or in the last."),
    switch("runs show", "--json", "One JSON object."),
    taking("runs follow", "--from", "SEQ", "Begins with that line of the log."),
    switch("runs follow", "--envelope", "Each record with the number of its line and its time."),
    VerbFlag {
        words: &["seed2", "ndjson"],
        ..taking("runs export", "--format", "WORD", "The files of the harness before, or the records as they went out.")
    },
    taking("runs export", "--output", "PATH|-", "Where they go."),
    taking("runs prune", "--keep", "N", "Keeps the N newest that have ended."),
    taking("runs prune", "--older", "TIME", "Removes those that ended longer ago: `30s`, `15m`, `12h`, `7d` or `2w`."),
    switch("runs prune", "--dry-run", "Only says what would be removed."),
    taking("approvals", "--by", "WHO", "Who decides."),
    taking("approvals", "--note", "TEXT", "In their words."),
    switch("approvals", "--all", "Those too that are decided or over."),
    switch("approvals", "--json", "One JSON object an approval."),
    switch("skill", "--json", "One JSON object."),
    taking("policy", "--tool", "NAME", "The tool's full name."),
    taking("policy", "--args", "JSON", "The call's arguments."),
    switch("policy", "--json", "One JSON object."),
    taking("verify", "--head", "SHA256", "A line of the log that is known: without it the tail was cut."),
];

/// How a run stands, as `mission runs list` says it.
pub const RUN_STATES: &[Term] = &[
    word("running", "A process holds it."),
    word("open", "It has not ended and nobody holds it: its process was killed."),
    word("finished", "Its last stretch came to its end."),
    word("unknown", "It is no run, or cannot be looked at."),
];

/// What `mission runs list --json` says of a run.
pub const RUN_FIELDS: &[Term] = &[
    word("run_id", "The run."),
    word("state", "How it stands."),
    word("resumable", "Whether it can be carried on."),
    word("outcome", "How its last stretch ended; absent while it has not."),
    word("holder", "The process that holds it: its `pid` and `host`."),
    word("problem", "Why its state is unknown."),
    word("objective", "What was asked, redacted, its beginning."),
    word("created_at", "When it was begun."),
    word("updated_at", "When this was written: its end, once it has one."),
    word("steps", "Steps recorded."),
    word("provider", "Who answers."),
    word("model", "The model, when known."),
    word("protocol", "How the model is spoken to."),
    word("usage", "What its replies cost, once it ended."),
];
