//! The closed words of the wire and the log, one list a subject.

use serde_json::{Map, Value};

use super::{Bound, ExitCode, LogKind, Term};
use crate::{canonical, text};

const fn term(name: &'static str, meaning: &'static str) -> Term {
    Term { name, meaning }
}

/// How a run ends.
pub const OUTCOMES: &[Term] = &[
    term("answered", "It answered."),
    term("answered_with_caveat", "It answered; the text says what in it is not supported."),
    term("awaiting_approval", "A call waits for a person; the run can be resumed."),
    term("budget_exhausted", "A limit was reached; `budget` says which."),
    term("incomplete", "It ended before an answer: cancelled, failed or killed. The run can be resumed."),
];

/// Why it ended so; absent otherwise.
pub const REASONS: &[Term] = &[
    term("cancelled", "A signal or the control channel asked for it; always with `incomplete`."),
    term("stuck", "The supervisor saw no progress; with any outcome."),
];

/// Which limit was reached.
pub const BUDGETS: &[Term] = &[
    term("steps", "Model turns."),
    term("seconds", "Time."),
    term("tokens", "Tokens."),
    term("bytes", "Bytes of tool results."),
    term("cost", "Money; only under --max-cost."),
];

/// What a model that makes the run wait is doing.
pub const MODEL_STATES: &[Term] = &[
    term("cold", "Its server does not list it: it has to be loaded first."),
    term("asking", "The request went out; never on the stream."),
    term("queued", "It is busy with others."),
    term("loading", "It is being loaded."),
    term("loaded", "It answers again after one of the waiting words."),
    term("failed", "Its server reported an error."),
    term("absent", "Its server cannot be reached."),
];

/// What a row of a grounding report says.
pub const GROUNDING_VERDICTS: &[Term] = &[
    term("unconfigured", "This run does not ask for the check."),
    term("unsupported", "A claim has no support in the results."),
    term("nothing_considered", "The answer holds nothing that the check looks at."),
    term("supported", "Every claim is supported."),
    term("pass", "A critic has no objection."),
    term("fail", "A critic has one."),
    term("skipped", "No critic could be asked."),
];

/// What calls for a supervisor's review.
pub const REVIEW_SIGNALS: &[Term] = &[
    term("repeated_call", "The same call came back with the same result three times within six calls."),
    term("rejected_replies", "Three steps in a row had a reply that was rejected, and no call."),
    term("oscillation", "Two calls took turns over four calls."),
    term("no_new_evidence", "Four steps in a row brought no new call and no new result."),
    term("failed_gate", "A step of a plan failed what it was to reach; only in staged runs."),
];

/// What a supervisor's review says.
pub const REVIEW_VERDICTS: &[Term] = &[
    term("progressing", "The run goes on as it was."),
    term("nudge", "The model is told something."),
    term("stuck", "The model is asked for the best answer now."),
    term("replan", "The plan is drawn anew."),
];

/// What became of a line of the control channel.
pub const CONTROL_DISPOSITIONS: &[Term] = &[
    term("applied", "It takes effect now."),
    term("queued", "It is put in front of the model the next time it is asked."),
    term("late", "There is nothing left that it could do."),
    term("refused", "It cannot be used, or the decision does not count; standard error says why."),
    term("dropped", "More was said than the run takes."),
];

/// What a run is doing in silence.
pub const TICK_STATES: &[Term] = &[
    term("asking", "The model was asked."),
    term("calling", "A tool was called."),
    term("listing", "The tool servers list their tools again."),
    term("gated", "A call waits for a person."),
    term("winding_up", "The run is being ended, and something resists."),
    term("between", "Between two steps."),
];

/// What a notice is about. A consumer treats an unknown code like a known one: it shows `detail`.
pub const NOTICE_CODES: &[Term] = &[
    term("server_failed", "A tool server did not come up, or is gone."),
    term("server_noise", "A tool server sends what is no message of the protocol; said once a server."),
    term("server_died", "A tool server ended while the run went on; its pending calls have failed."),
    term("server_restarted", "A tool server that had ended was started again."),
    term("server_request_refused", "A tool server asks for something in an era of the protocol in which servers do not ask."),
    term("session_lost", "A tool server over HTTP no longer knows its session with us; its pending calls have failed."),
    term("session_reopened", "A tool server over HTTP was given a new session."),
    term("content_type_missing", "A tool server over HTTP does not say what its answers are; said once a server."),
    term("credential_unencrypted", "A tool server's credential goes over the network unencrypted."),
    term("tool_refused", "A tool's definition fails the checks; the tool is not offered."),
    term("tool_repaired", "A tool's definition had a fault that could be mended; the tool is offered."),
    term("tool_undescribed", "A tool has no description; the model is told its name and its arguments alone."),
    term("tool_names_shared", "Tools of several servers have one name; each is called by its full name."),
    term("tool_limit", "A tool joined past the limit on tools; it is not offered."),
    term("grounding_off", "The skill asks for its answers to be checked, and the operator does without."),
    term("tool_unusable", "A tool's schema cannot be compiled; its calls are refused."),
    term("list_changed", "Tools joined or left."),
    term("list_failed", "A tool server did not list its tools again; those that it had are kept."),
    term("definition_changed", "A tool's definition changed; this run keeps the one it began with."),
    term("late_result", "An answer came after its call had been given up; it is not taken."),
    term("late_answer", "An answer to something else than a call came when it was no longer waited for."),
    term("result_repaired", "A result holds bytes that are not UTF-8; each stands as U+FFFD in its text."),
    term("content_unknown", "A result holds content of a type that is not known; it is named and not read."),
    term("structured_dropped", "A result's typed part cannot be read; it is kept as text."),
    term(
        "output_mismatch",
        "A result's typed part breaks the schema that its tool promises; it is taken, and the model is told.",
    ),
    term("output_unchecked", "The schema of a tool's results cannot be compiled; they are not checked."),
    term("model_failed", "The model could not be asked, or its reply did not come to its end."),
    term("constraint_refused", "The model's server refuses to hold replies to a shape; they are only checked."),
    term("parameter_refused", "The model's server refuses a parameter; it is left out from here on."),
    term("stream_noise", "A streamed reply holds what cannot be read; it is skipped."),
    term("arguments_doubled", "A streamed reply sends the arguments of a call twice; they are taken once."),
    term("reasoning_unclosed", "A reply's reasoning has no end."),
    term("provider_hop", "The provider has no key; the next one is asked."),
    term("turn_restarted", "A reply broke after some of it was shown; its fragments start over at part 0."),
    term("journal_failed", "The log cannot be written; nothing more is dispatched."),
    term("reader_gone", "A reader of the stream went away; the detail says whether the run goes on."),
    term("torn_tail", "The log ended in a damaged line, which was moved aside."),
    term("approval_unsigned", "An approval holds a decision that nobody signed: it counts as pending."),
    term("approval_unrecorded", "A call waits for a person, and that could not be written down."),
    term("approval_not_needed", "An approval was given for a tool that needs none in this run; it is not spent."),
    term("calls_skipped", "Calls of a step were skipped, because somebody said so."),
    term("run_closed", "The run was closed without the engine having ended it; the detail says why."),
    term("elicitation_declined", "A tool server asked a person something; it was declined."),
    term("sampling_declined", "A tool server asked for the model; it was declined."),
    term("task_refused", "A tool server began a task that was not asked for; it is not followed."),
    term("no_progress", "Under `--supervisor warn`: a pattern that shows no progress."),
    term("usage_missing", "A model reports no usage; limits count an estimate."),
];

/// What a run's or a verb's exit status says.
pub const EXIT_CODES: &[ExitCode] = &[
    ExitCode { code: "0", of: "run", meaning: "The run came to an outcome, whichever." },
    ExitCode { code: "1", of: "run", meaning: "Something went wrong that was not handled, or a tool server failed." },
    ExitCode { code: "2", of: "run", meaning: "Refused at the door: one sentence on stderr, no event, no run directory." },
    ExitCode { code: "3", of: "run", meaning: "Another process holds the run." },
    ExitCode { code: "4", of: "run", meaning: "The log could not be written." },
    ExitCode { code: "128+n", of: "run", meaning: "Wound up by signal n." },
    ExitCode { code: "0", of: "verb", meaning: "Fine." },
    ExitCode { code: "1", of: "verb", meaning: "It found something." },
    ExitCode { code: "2", of: "verb", meaning: "It was asked wrongly." },
    ExitCode { code: "0", of: "outcome", meaning: "answered" },
    ExitCode { code: "10", of: "outcome", meaning: "answered_with_caveat" },
    ExitCode { code: "11", of: "outcome", meaning: "awaiting_approval" },
    ExitCode { code: "12", of: "outcome", meaning: "budget_exhausted" },
    ExitCode { code: "13", of: "outcome", meaning: "incomplete" },
    ExitCode { code: "14", of: "outcome", meaning: "incomplete, cancelled" },
];

/// The exit statuses as numbers.
pub mod exit {
    use crate::event::Outcome;

    /// Fine.
    pub const FINE: u8 = 0;
    /// A run: unhandled, or a tool server failed. A verb: it found something.
    pub const FAILED: u8 = 1;
    /// Refused at the door; a verb asked wrongly.
    pub const REFUSED: u8 = 2;
    /// Another process holds the run.
    pub const HELD: u8 = 3;
    /// The log could not be written.
    pub const JOURNAL_FAILED: u8 = 4;
    /// Wound up by signal n: this plus n.
    pub const SIGNAL: u8 = 128;

    /// The status of a run under `--exit-codes outcome`.
    pub fn of_outcome(outcome: Outcome, cancelled: bool) -> u8 {
        match outcome {
            Outcome::Answered => FINE,
            Outcome::AnsweredWithCaveat => 10,
            Outcome::AwaitingApproval => 11,
            Outcome::BudgetExhausted => 12,
            Outcome::Incomplete if cancelled => 14,
            Outcome::Incomplete => 13,
        }
    }
}

/// What a driver may rely on about a run's end. The names are those of the harness before.
pub const EXIT_CLAUSES: &[Term] = &[
    term("stdout", "Prose for people, never to be parsed; `--events -` silences it."),
    term("events", "The only channel for machines."),
    term("silence", "No event at all means failure."),
    term("finished", "`mission_finished` comes on every way out."),
    term("sigterm", "The first one winds the run up, then the process ends by it; the second ends it at once."),
    term("control", "A cancel from the control channel exits 0."),
    term("diagnostic", "Standard error holds whole sentences, credentials redacted."),
];

/// Keys that differ between two runs of the same thing: a comparison drops them. The first five are the harness's.
pub const VOLATILE_KEYS: &[&str] =
    &["run_id", "elapsed_s", "started_at", "usage", "audit_ref", "log_head", "version", "since_s", "retry_after_s"];

/// Drops the volatile keys of a record.
pub fn drop_volatile(record: &mut Map<String, Value>) {
    record.retain(|key, _| !VOLATILE_KEYS.contains(&key.as_str()));
}

/// What kind of difference between a recording and its replay a drift is.
pub const DRIFT_KINDS: &[Term] = &[
    term("text", "A prompt, a correction or another text is worded differently."),
    term("decision", "A call, an argument, a verdict, the order or the outcome is another one."),
];

/// What `mission replay` says of a recording.
pub const REPLAY_VERDICTS: &[Term] = &[
    term("same", "It replays exactly."),
    term("text", "Something is worded differently; everything decided is the same."),
    term("decision", "Something is decided differently."),
    term("broken", "It could not be replayed."),
];

/// Keys of a line of the log, in their order.
pub const LOG_ENVELOPE: &[Term] = &[
    term("seq", "Number of the line, from 1."),
    term("group", "Number of the group that it was synced with; it never falls."),
    term("at", "When it was written, RFC 3339 UTC with milliseconds; it informs only."),
    term("ms", "Work time of the run in milliseconds, carried over resumes."),
    term("branch", "The branch that it belongs to; absent on the main one."),
    term("prev", "`sum` of the line before; 64 zeros on the first."),
    term("<kind>", "Exactly one of the kinds."),
    term("sum", "SHA-256 of the line's bytes before `,\"sum\"`, in hex."),
];

const fn input(name: &'static str, meaning: &'static str) -> LogKind {
    LogKind { name, direction: "input", meaning }
}

const fn output(name: &'static str, meaning: &'static str) -> LogKind {
    LogKind { name, direction: "output", meaning }
}

/// The kinds of line of the log.
pub const LOG_KINDS: &[LogKind] = &[
    input("open", "What was asked. The first line."),
    input("writer", "A process took over. The first line of every later stretch."),
    input("leg", "The model that answers from here on."),
    input("catalogue", "The tool servers and their tools: whole once, then what changed."),
    input("reply", "What the model said."),
    input("result", "How a call came back."),
    input("control", "A word from outside."),
    input("decision", "A person's answer."),
    input("timer", "A timer ran out."),
    input("observed", "Something the driver saw and the stream must tell."),
    input("closed", "The run is over without the engine having ended it."),
    output("ask", "The model is asked."),
    output("intent", "A call is about to be made."),
    output("record", "A record of the stream, redacted, as it goes out."),
];

/// Fields of an approval's file, `<id>.json`; a blank string where one does not apply.
pub const APPROVAL_FIELDS: &[Term] = &[
    term("approval_id", "`ap_` and 16 hex digits; the file's name."),
    term("tool", "The tool's full name."),
    term("arguments", "The proposed arguments, verbatim."),
    term("objective", "What the run was asked."),
    term("run_id", "The run."),
    term("reason", "Why it waits."),
    term("state", "Where it stands."),
    term("requested_at", "When it was asked for."),
    term("decided_at", "When it was decided."),
    term("decided_by", "Who decided."),
    term("note", "In their words."),
    term("spent_at", "When its call was dispatched."),
    term("why_gated", "What a gate is, for whoever opens the file; nobody reads it back."),
    term("kind", "gate: may the call be made; `reconcile`: what became of it."),
    term("definition", "Digest of the tool's definition."),
    term("digest", "SHA-256 over the tool, its definition's digest and the canonical arguments."),
    term("key", "The idempotency key of the call that it is about; blank when it was not made."),
    term("index", "The step in which it was proposed."),
    term("expires_at", "Until when it can be decided and spent; absent for ever."),
    term("answer", "What was said: `approve`, `refuse`, `done`, `retry` or `abandon`."),
    term(
        "signature",
        "HMAC-SHA256, in hex digits, over the canonical JSON of [approval_id, tool, digest, answer, decided_by, decided_at, note, kind, run_id, expires_at]; null where one is absent.",
    ),
    term("spent_by", "The run and the key of the call that acted upon it."),
];

/// States of an approval.
pub const APPROVAL_STATES: &[Term] = &[
    term("pending", "Nobody has decided."),
    term("approved", "The call may be made, once."),
    term("refused", "It may not."),
    term("spent", "The answer was acted upon."),
    term("abandoned", "Its run ended for good."),
];

/// Bounds of the contract.
pub const BOUNDS: &[Bound] = &[
    Bound {
        name: "CANONICAL_DEPTH",
        value: canonical::DEPTH,
        unit: "levels",
        reason: "JSON readers commonly stop at 128; eight are left for the record and the line around a value",
    },
    Bound {
        name: "DEDUPLICATED_BYTES",
        value: text::DEDUPLICATED_BYTES,
        unit: "bytes",
        reason: "a text longer than this is stored once in a log; below it a pointer saves little",
    },
];
