//! Everything a consumer may depend on, as data: `mission contract` prints it, `CONTRACT.md` says it in prose, and
//! [`crate::conforms`] holds records to it.
//!
//! *Origin* says who promised a name first: `seed2` names are those of the harness that `mission` replaces, `ours` came
//! with `mission`. *Status* says whether this build does what the name promises: `later` is refused by name until then,
//! unless its value is the default.

mod command_line;
mod events;
mod governance;
mod verbs;
mod words;

use serde::Serialize;

pub use command_line::{FLAGS, Flag, Status, VARIABLES, Variable};
pub use events::{CONTROL_WORDS, EVENTS, REPLAY_REPORT};
pub use governance::{
    AUDIT_EVENTS, AUDIT_FIELDS, AUDIT_VERDICTS, POLICY_EFFECTS, POLICY_FIELDS, POLICY_RULES, PROFILES, Profile, TOOL_SCOPES,
    ToolScopes,
};
pub use verbs::{RUN_FIELDS, RUN_STATES, VERB_FLAGS, VERBS, Verb, VerbFlag};
pub use words::{
    APPROVAL_FIELDS, APPROVAL_STATES, BOUNDS, BUDGETS, CONTROL_DISPOSITIONS, DRIFT_KINDS, EXIT_CLAUSES, EXIT_CODES,
    GROUNDING_VERDICTS, LOG_ENVELOPE, LOG_KINDS, MODEL_STATES, NOTICE_CODES, OUTCOMES, REASONS, REPLAY_VERDICTS, REVIEW_SIGNALS,
    REVIEW_VERDICTS, TICK_STATES, VOLATILE_KEYS, drop_volatile, exit,
};

/// Who promised a name first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The harness that `mission` replaces.
    Seed2,
    /// `mission` itself: additive.
    Ours,
}

/// What a field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum Kind {
    /// A string.
    Text,
    /// A string that is not blank.
    Words,
    /// A string out of a closed list.
    Word {
        /// The list.
        words: &'static [&'static str],
    },
    /// A whole number from 0.
    Count,
    /// A whole number.
    Integer,
    /// Any number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// A list of strings.
    Texts,
    /// An object with keys of somebody else's.
    Object,
    /// An object with these fields; others may stand beside them.
    Record {
        /// Its fields.
        fields: &'static [Field],
    },
    /// A list of such objects.
    Records {
        /// The fields of each.
        fields: &'static [Field],
    },
    /// Any JSON value.
    Any,
}

/// A field of an event, a control word or a nested object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// True when it is always there.
    pub required: bool,
    /// True when it may be null; every other field is absent instead.
    #[serde(skip_serializing_if = "is_false")]
    pub nullable: bool,
    /// Who promised it first.
    pub origin: Origin,
    /// What it holds.
    #[serde(flatten)]
    pub kind: Kind,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde asks for a reference
fn is_false(flag: &bool) -> bool {
    !*flag
}

/// An event of the stream, or a word of the control channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Shape {
    /// Its name: the value of `event`, or of `control`.
    pub name: &'static str,
    /// Who promised it first.
    pub origin: Origin,
    /// What it says.
    pub meaning: &'static str,
    /// Its fields in their order, the one with the name apart.
    pub fields: &'static [Field],
}

/// A word and what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Term {
    /// The word.
    pub name: &'static str,
    /// What it says.
    pub meaning: &'static str,
}

/// An exit status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ExitCode {
    /// The number; `128+n` stands for a signal.
    pub code: &'static str,
    /// `run`, `verb`, or `outcome` for a run under `--exit-codes outcome`.
    pub of: &'static str,
    /// What it says.
    pub meaning: &'static str,
}

/// A kind of line of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LogKind {
    /// Its name.
    pub name: &'static str,
    /// `input` or `output`.
    pub direction: &'static str,
    /// What it says.
    pub meaning: &'static str,
}

/// A bound of the contract itself; those of the program stand beside it in `mission contract`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Bound {
    /// Its name.
    pub name: &'static str,
    /// Its value.
    pub value: usize,
    /// The value's unit.
    pub unit: &'static str,
    /// Why it is what it is.
    pub reason: &'static str,
}

/// All of it.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Vocabulary {
    /// Version of the stream.
    pub schema_version: u32,
    /// Version of the log.
    pub log_format: u32,
    /// The events.
    pub events: &'static [Shape],
    /// How a run ends.
    pub outcomes: &'static [Term],
    /// Why it ended so.
    pub reasons: &'static [Term],
    /// Which limit was reached.
    pub budgets: &'static [Term],
    /// What a model that makes the run wait is doing.
    pub model_states: &'static [Term],
    /// What a row of a grounding report says.
    pub grounding_verdicts: &'static [Term],
    /// What calls for a supervisor's review.
    pub review_signals: &'static [Term],
    /// What a supervisor's review says.
    pub review_verdicts: &'static [Term],
    /// What a notice is about.
    pub notice_codes: &'static [Term],
    /// The words of the control channel.
    pub control_words: &'static [Shape],
    /// What became of a line of it.
    pub control_dispositions: &'static [Term],
    /// What a run is doing in silence.
    pub tick_states: &'static [Term],
    /// Exit statuses.
    pub exit_codes: &'static [ExitCode],
    /// What a driver may rely on about a run's end, by the names that the harness before gave it.
    pub exit_clauses: &'static [Term],
    /// The verbs.
    pub verbs: &'static [Verb],
    /// The flags of the verbs, beside those that they share with a run.
    pub verb_flags: &'static [VerbFlag],
    /// What a list of runs says of each.
    pub run_fields: &'static [Term],
    /// How a run stands.
    pub run_states: &'static [Term],
    /// The flags of a run.
    pub flags: &'static [Flag],
    /// The variables.
    pub variables: &'static [Variable],
    /// Keys that differ from run to run: a comparison drops them.
    pub volatile_keys: &'static [&'static str],
    /// What kind of difference a drift is.
    pub drift_kinds: &'static [Term],
    /// What `mission replay` says of a recording.
    pub replay_verdicts: &'static [Term],
    /// Fields of what `mission replay --json` prints.
    pub replay_report: &'static [Field],
    /// Keys of a line of the log, in order.
    pub log_envelope: &'static [Term],
    /// Kinds of line of the log.
    pub log_kinds: &'static [LogKind],
    /// Fields of an approval's file.
    pub approval_fields: &'static [Term],
    /// States of an approval.
    pub approval_states: &'static [Term],
    /// The profiles, lowest first.
    pub profiles: &'static [Profile],
    /// What calls of tools of ours need.
    pub tool_scopes: &'static [ToolScopes],
    /// Keys of a policy file, of a rule, of a condition.
    pub policy_fields: &'static [Term],
    /// What a rule does with a call, mildest first.
    pub policy_effects: &'static [Term],
    /// Rules that stand in no file.
    pub policy_rules: &'static [Term],
    /// Fields of a line of an audit file.
    pub audit_fields: &'static [Term],
    /// Which line of a call it is.
    pub audit_events: &'static [Term],
    /// What an audit file says became of a call.
    pub audit_verdicts: &'static [Term],
    /// Bounds of the contract.
    pub bounds: &'static [Bound],
}

/// Everything a consumer may depend on.
pub const VOCABULARY: Vocabulary = Vocabulary {
    schema_version: crate::SCHEMA_VERSION,
    log_format: crate::LOG_FORMAT,
    events: EVENTS,
    outcomes: OUTCOMES,
    reasons: REASONS,
    budgets: BUDGETS,
    model_states: MODEL_STATES,
    grounding_verdicts: GROUNDING_VERDICTS,
    review_signals: REVIEW_SIGNALS,
    review_verdicts: REVIEW_VERDICTS,
    notice_codes: NOTICE_CODES,
    control_words: CONTROL_WORDS,
    control_dispositions: CONTROL_DISPOSITIONS,
    tick_states: TICK_STATES,
    exit_codes: EXIT_CODES,
    exit_clauses: EXIT_CLAUSES,
    verbs: VERBS,
    verb_flags: VERB_FLAGS,
    run_fields: RUN_FIELDS,
    run_states: RUN_STATES,
    flags: FLAGS,
    variables: VARIABLES,
    volatile_keys: VOLATILE_KEYS,
    drift_kinds: DRIFT_KINDS,
    replay_verdicts: REPLAY_VERDICTS,
    replay_report: REPLAY_REPORT,
    log_envelope: LOG_ENVELOPE,
    log_kinds: LOG_KINDS,
    approval_fields: APPROVAL_FIELDS,
    approval_states: APPROVAL_STATES,
    profiles: PROFILES,
    tool_scopes: TOOL_SCOPES,
    policy_fields: POLICY_FIELDS,
    policy_effects: POLICY_EFFECTS,
    policy_rules: POLICY_RULES,
    audit_fields: AUDIT_FIELDS,
    audit_events: AUDIT_EVENTS,
    audit_verdicts: AUDIT_VERDICTS,
    bounds: BOUNDS,
};

/// The shape of an event by its name.
pub fn event(name: &str) -> Option<&'static Shape> {
    EVENTS.iter().find(|shape| shape.name == name)
}

/// The shape of a control word by its name.
pub fn control_word(name: &str) -> Option<&'static Shape> {
    CONTROL_WORDS.iter().find(|shape| shape.name == name)
}

/// A flag by its name, dashes included.
pub fn flag(name: &str) -> Option<&'static Flag> {
    FLAGS.iter().find(|flag| flag.name == name)
}

/// A variable by its name or one of its aliases.
pub fn variable(name: &str) -> Option<&'static Variable> {
    VARIABLES.iter().find(|variable| variable.name == name || variable.aliases.contains(&name))
}
