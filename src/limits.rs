//! Every bound of the program in one table: name, value, unit, reason. `mission contract` prints it.

use serde::Serialize;

/// One bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Limit {
    /// Its name.
    pub name: &'static str,
    /// Its value.
    pub value: u64,
    /// The value's unit.
    pub unit: &'static str,
    /// Why it is what it is.
    pub reason: &'static str,
}

macro_rules! limits {
    ($($name:ident = $value:expr, $unit:literal, $reason:literal;)*) => {
        $(#[doc = $reason] pub const $name: u64 = $value;)*
        /// All of them, in the order of the rooms.
        pub const TABLE: &[Limit] = &[
            $(Limit { name: stringify!($name), value: $name, unit: $unit, reason: $reason },)*
        ];
    };
}

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

limits! {
    // engine
    RESULT_SHOWN_BYTES = 32 * KIB, "bytes", "what a model is shown of one result at once: the published bound";

    // ------------------------------------------------------------------ tools
    MCP_LINE_BYTES = 32 * MIB, "bytes", "one line of a tool server: past it the call fails, naming size and cap";

    // ------------------------------------------------------------------ model
    MODEL_BODY_BYTES = 32 * MIB, "bytes", "one reply of a model server, decompressed";
    MODEL_EVENT_BYTES = 8 * MIB, "bytes", "one event of a streamed reply: a whole call may stand in it";
    MODEL_ARGUMENTS_BYTES = 8 * MIB, "bytes", "the arguments of one call in a reply";
    MODEL_CALLS = 128, "calls", "in one reply: more is a model that runs in circles";
    MODEL_UNREADABLE_EVENTS = 256, "events", "skipped in one streamed reply before it is given up as no reply";
    MODEL_ERROR_BODY_BYTES = 64 * KIB, "bytes", "what is read of a reply that reports a failure";
    MODEL_ERROR_CHARACTERS = 600, "characters", "what is repeated of a model server's own words about a failure";
    MODEL_CONNECT_SECONDS = 10, "seconds", "until a connection to a model server stands";
    MODEL_IDLE_SECONDS = 600, "seconds", "silence of a model server before a request is given up: long prompts are read without a byte";
    MODEL_TAIL_SECONDS = 10, "seconds", "silence once a reply is complete but for its usage";
    MODEL_DRAIN_MS = 1_000, "milliseconds", "for the rest of a reply that is complete, so that its connection can be used again";
    MODEL_REUSE_MS = 20, "milliseconds", "a new request waits for the rest of the last reply: a new connection is cheaper than more";
    MODEL_PROBE_SECONDS = 5, "seconds", "for the list of a server's models";
    MODEL_PROBE_BYTES = 4 * MIB, "bytes", "the list of a server's models";
    MODEL_KEEP_SECONDS = 4, "seconds", "an unused connection to a model server is kept: common servers hang up after 5";
    MODEL_KEEP_TLS_SECONDS = 60, "seconds", "an unused encrypted connection is kept: setting one up is dear, and hosted servers wait longer";
    SCRIPT_BYTES = 4 * MIB, "bytes", "a script for the scripted model";
    SCRIPT_DELAY_MS = 3_600_000, "milliseconds", "one delay in such a script";

    // ---------------------------------------------------------------- journal
    JOURNAL_LINE_BYTES = 256 * MIB, "bytes", "one line of a log when it is read";

    // ----------------------------------------------------------------- stream
    CONSOLE_QUEUE_RECORDS = 1024, "records", "what the console may be behind before it drops: it never blocks a run";

    // ------------------------------------------------------------------ skill
    SKILL_BYTES = 64 * KIB, "bytes", "a manifest: it all stands in the prompt";

    // -------------------------------------------------------------------- cli
    CONFORM_LINE_BYTES = 256 * MIB, "bytes", "one line that `mission conform` reads: as long as a line of a log may be";
    CONFORM_PROBLEMS_SHOWN = 100, "problems", "what `mission conform` prints of one line; the rest is counted";
    OBJECTIVE_BYTES = 256 * KIB, "bytes", "an objective: it all stands in the prompt";
}
