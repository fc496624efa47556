//! The events and the control words, field by field. The records of [`crate::event`] have the same fields in the same
//! order; a test holds the two together.

use super::{Field, Kind, Origin, Shape};

const fn required(name: &'static str, kind: Kind) -> Field {
    Field { name, required: true, nullable: false, origin: Origin::Seed2, kind }
}

const fn optional(name: &'static str, kind: Kind) -> Field {
    Field { name, required: false, nullable: false, origin: Origin::Seed2, kind }
}

/// Optional, and ours.
const fn added(name: &'static str, kind: Kind) -> Field {
    Field { name, required: false, nullable: false, origin: Origin::Ours, kind }
}

/// Always there, in an event or an object that is ours.
const fn own(name: &'static str, kind: Kind) -> Field {
    Field { name, required: true, nullable: false, origin: Origin::Ours, kind }
}

const fn seed2(name: &'static str, meaning: &'static str, fields: &'static [Field]) -> Shape {
    Shape { name, origin: Origin::Seed2, meaning, fields }
}

const fn ours(name: &'static str, meaning: &'static str, fields: &'static [Field]) -> Shape {
    Shape { name, origin: Origin::Ours, meaning, fields }
}

const INDEX: Field = required("index", Kind::Count);
const TOOL: Field = required("tool", Kind::Text);
const ARGUMENTS: Field = required("arguments", Kind::Object);
const CALL: Field = optional("call", Kind::Count);
const USAGE: Field = optional("usage", Kind::Record { fields: USAGE_FIELDS });
const BRANCH: Field = optional("branch", Kind::Text);

const USAGE_FIELDS: &[Field] =
    &[required("prompt_tokens", Kind::Count), required("completion_tokens", Kind::Count), required("total_tokens", Kind::Count)];

const USAGE_TOTAL_FIELDS: &[Field] = &[
    required("prompt_tokens", Kind::Count),
    required("completion_tokens", Kind::Count),
    required("total_tokens", Kind::Count),
    required("calls", Kind::Count),
    optional("cost", Kind::Record { fields: COST_FIELDS }),
];

const COST_FIELDS: &[Field] = &[required("amount", Kind::Number), required("currency", Kind::Text)];

const LIMIT_FIELDS: &[Field] = &[
    added("steps", Kind::Count),
    added("seconds", Kind::Number),
    added("tokens", Kind::Count),
    added("bytes", Kind::Count),
    added("cost_micros", Kind::Count),
];

const SKILL_FIELDS: &[Field] = &[own("name", Kind::Text), own("digest", Kind::Text)];

const SERVER_FIELDS: &[Field] = &[
    own("name", Kind::Text),
    own("transport", Kind::Word { words: &["stdio", "http"] }),
    own("state", Kind::Word { words: &["ready", "failed"] }),
    added("era", Kind::Word { words: &["handshake", "stateless"] }),
    added("version", Kind::Text),
    own("tools", Kind::Count),
];

const RESUMED_FIELDS: &[Field] = &[required("from_seq", Kind::Count), required("steps_replayed", Kind::Count)];

const REVIEW_FIELDS: &[Field] = &[
    required("signal", Kind::Text),
    required("verdict", Kind::Word { words: &["progressing", "nudge", "stuck", "replan"] }),
    required("reviews_left", Kind::Count),
    optional("note", Kind::Text),
];

const COMPACTED_FIELDS: &[Field] = &[
    required("dropped_turns", Kind::Count),
    required("dropped_messages", Kind::Count),
    required("freed_chars", Kind::Count),
    required("tokens_before", Kind::Count),
    required("tokens_after", Kind::Count),
    required("limit_tokens", Kind::Count),
    required("profile", Kind::Text),
    required("dropped_results", Kind::Count),
];

const PLAN_FIELDS: &[Field] = &[required("id", Kind::Text), required("goal", Kind::Text), required("rung", Kind::Text)];

const ARTIFACT_FIELDS: &[Field] = &[required("in", Kind::Texts), required("out", Kind::Texts)];

const CHECK_FIELDS: &[Field] = &[
    required("check", Kind::Text),
    required("configured", Kind::Boolean),
    required("grounded", Kind::Boolean),
    required(
        "verdict",
        Kind::Word { words: &["unconfigured", "unsupported", "nothing_considered", "supported", "pass", "fail", "skipped"] },
    ),
    required("considered", Kind::Count),
    required("minimum", Kind::Count),
    required("unsupported", Kind::Texts),
    required("detail", Kind::Text),
    required("advisory", Kind::Boolean),
];

const BUDGET_FIELDS: &[Field] = &[
    required("which", Kind::Word { words: &["steps", "seconds", "tokens", "bytes", "cost"] }),
    required("limit", Kind::Number),
    required("spent", Kind::Number),
];

/// The events of the stream, in the order of a run; `event` comes first in each, `branch` last.
pub const EVENTS: &[Shape] = &[
    seed2(
        "mission_started",
        "First record of a run, after discovery and before the model is asked; never repeated on a resume.",
        &[
            required("schema_version", Kind::Count),
            required("objective", Kind::Text),
            required("catalogue", Kind::Texts),
            required("gated", Kind::Texts),
            required("max_steps", Kind::Count),
            required("history", Kind::Count),
            optional("sandbox", Kind::Word { words: &["bwrap", "none"] }),
            Field { name: "audit_ref", required: false, nullable: true, origin: Origin::Seed2, kind: Kind::Text },
            optional("run_id", Kind::Text),
            optional("protocol", Kind::Word { words: &["native"] }),
            optional("profile", Kind::Text),
            optional("granted", Kind::Texts),
            added("version", Kind::Text),
            added("limits", Kind::Record { fields: LIMIT_FIELDS }),
            added("skill", Kind::Record { fields: SKILL_FIELDS }),
            added("servers", Kind::Records { fields: SERVER_FIELDS }),
            added("sandbox_layers", Kind::Texts),
            added("control", Kind::Boolean),
            added("policy", Kind::Text),
            BRANCH,
        ],
    ),
    seed2(
        "step_started",
        "Right before the model is asked.",
        &[
            INDEX,
            optional("resumed", Kind::Record { fields: RESUMED_FIELDS }),
            optional("catalogue", Kind::Texts),
            optional("injected", Kind::Texts),
            optional("review", Kind::Record { fields: REVIEW_FIELDS }),
            optional("compacted", Kind::Record { fields: COMPACTED_FIELDS }),
            optional("plan", Kind::Records { fields: PLAN_FIELDS }),
            optional("artifacts", Kind::Record { fields: ARTIFACT_FIELDS }),
            BRANCH,
        ],
    ),
    seed2(
        "reply_rejected",
        "A reply, or a call in it, that could not be carried out; the model is told why and asked again.",
        &[INDEX, required("problem", Kind::Text), optional("tool", Kind::Text), USAGE, BRANCH],
    ),
    seed2("tool_call", "Right before a tool is called.", &[INDEX, TOOL, ARGUMENTS, CALL, USAGE, BRANCH]),
    seed2(
        "tool_result",
        "How that call came back.",
        &[
            INDEX,
            TOOL,
            ARGUMENTS,
            required("ok", Kind::Boolean),
            required("exit_code", Kind::Integer),
            required("output", Kind::Text),
            required("error", Kind::Text),
            required("handle", Kind::Text),
            required("truncated", Kind::Boolean),
            CALL,
            BRANCH,
        ],
    ),
    seed2(
        "gate_requested",
        "A call that was proposed, not made, and waits for a person.",
        &[
            INDEX,
            TOOL,
            ARGUMENTS,
            required("reason", Kind::Text),
            optional("approval_id", Kind::Text),
            added("kind", Kind::Word { words: &["reconcile"] }),
            BRANCH,
        ],
    ),
    seed2(
        "answer_delta",
        "A provisional fragment of the answer; neither journaled nor replayed.",
        &[INDEX, required("part", Kind::Count), required("text", Kind::Text), BRANCH],
    ),
    seed2(
        "grounding",
        "What was found when the answer was held against the results.",
        &[
            required("ran", Kind::Boolean),
            required("grounded", Kind::Boolean),
            required("verified", Kind::Boolean),
            required("repairs", Kind::Count),
            required("repairing", Kind::Boolean),
            required("caveat", Kind::Text),
            required("unsupported", Kind::Texts),
            required("silent", Kind::Texts),
            required("uncited", Kind::Texts),
            required("checks", Kind::Records { fields: CHECK_FIELDS }),
            BRANCH,
        ],
    ),
    seed2(
        "answer",
        "The answer.",
        &[
            required("text", Kind::Text),
            required("outcome", Kind::Word { words: &["answered", "answered_with_caveat"] }),
            USAGE,
            added("structured", Kind::Any),
            BRANCH,
        ],
    ),
    seed2(
        "mission_finished",
        "Last record of a process, exactly one, on every way out.",
        &[
            required(
                "outcome",
                Kind::Word {
                    words: &["answered", "answered_with_caveat", "awaiting_approval", "budget_exhausted", "incomplete"],
                },
            ),
            required("steps", Kind::Count),
            required("max_steps", Kind::Count),
            optional("budget", Kind::Record { fields: BUDGET_FIELDS }),
            optional("reason", Kind::Word { words: &["cancelled", "stuck"] }),
            optional("usage", Kind::Record { fields: USAGE_TOTAL_FIELDS }),
            optional("elapsed_s", Kind::Number),
            added("log_head", Kind::Text),
            BRANCH,
        ],
    ),
    seed2(
        "model_state",
        "A model that makes the run wait, and the end of that wait; a healthy run has none.",
        &[
            optional("index", Kind::Count),
            required("state", Kind::Word { words: &["cold", "asking", "queued", "loading", "loaded", "failed", "absent"] }),
            required("provider", Kind::Text),
            required("model", Kind::Text),
            optional("detail", Kind::Text),
            optional("since_s", Kind::Number),
            optional("retry_after_s", Kind::Number),
            BRANCH,
        ],
    ),
    ours(
        "notice",
        "Something an operator should see.",
        &[
            own("code", Kind::Text),
            own("detail", Kind::Text),
            added("server", Kind::Text),
            added("tool", Kind::Text),
            added("index", Kind::Count),
            BRANCH,
        ],
    ),
    ours(
        "control_ack",
        "What became of a line of the control channel; only behind --control-acks.",
        &[
            added("id", Kind::Text),
            own("word", Kind::Text),
            own("disposition", Kind::Word { words: &["applied", "queued", "late", "refused", "dropped"] }),
            BRANCH,
        ],
    ),
    ours(
        "tick",
        "A sign of life; only behind --tick; neither journaled nor replayed.",
        &[
            own("state", Kind::Word { words: &["asking", "calling", "listing", "gated", "winding_up", "between"] }),
            own("waiting_on", Kind::Text),
            own("since_s", Kind::Number),
            BRANCH,
        ],
    ),
];

const ID: Field = added("id", Kind::Text);

/// The words of the control channel: one JSON object a line, its word under `control`.
pub const CONTROL_WORDS: &[Shape] = &[
    seed2(
        "inject",
        "A user turn put in front of the model before the next time it is asked.",
        &[required("text", Kind::Words), ID],
    ),
    seed2("cancel", "Wind the run up, as a first SIGTERM does, without its exit status.", &[ID]),
    seed2("cancel_step", "Skip what the current step has not dispatched yet, and ask the model again.", &[ID]),
    seed2(
        "gate_decision",
        "A person's answer to a call that waits.",
        &[
            required("approval_id", Kind::Text),
            required("approve", Kind::Boolean),
            required("decided_by", Kind::Words),
            optional("note", Kind::Text),
            added("answer", Kind::Word { words: &["done", "retry", "abandon"] }),
            ID,
        ],
    ),
    ours(
        "steer",
        "A user turn that does not wait for the step to end: the model is interrupted, a tool never; calls that were not made yet are skipped.",
        &[own("text", Kind::Words), ID],
    ),
];

const DRIFT_FIELDS: &[Field] = &[
    own("kind", Kind::Word { words: &["text", "decision"] }),
    own("what", Kind::Text),
    added("step", Kind::Count),
    added("seq", Kind::Count),
    added("recorded", Kind::Text),
    added("replayed", Kind::Text),
];

const REPLAYED_FIELDS: &[Field] = &[
    own("recording", Kind::Text),
    own("verdict", Kind::Word { words: &["same", "text", "decision", "broken"] }),
    added("source", Kind::Word { words: &["mission", "seed2"] }),
    added("run_id", Kind::Text),
    own("steps", Kind::Count),
    own("finished", Kind::Boolean),
    added("drift", Kind::Records { fields: DRIFT_FIELDS }),
    added("problem", Kind::Text),
];

/// What `mission replay --json` prints.
pub const REPLAY_REPORT: &[Field] = &[own("recordings", Kind::Records { fields: REPLAYED_FIELDS })];
