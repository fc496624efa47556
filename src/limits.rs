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

    // ---------------------------------------------------------------- journal
    JOURNAL_LINE_BYTES = 256 * MIB, "bytes", "one line of a log when it is read";
    JOURNAL_QUEUE_ENTRIES = 4096, "entries", "what may wait for the disk before the run waits for it";
    JOURNAL_QUEUE_BYTES = 32 * MIB, "bytes", "what may wait for the disk before the run waits for it";
    JOURNAL_GROUP_BYTES = 8 * MIB, "bytes", "what is synced together: more only delays what comes first";
    JOURNAL_WRITE_BYTES = MIB, "bytes", "lines that are written with one call: a larger line is written at once";
    JOURNAL_STUCK_MS = 5000, "ms", "how long the end of a run waits for its disk after it gave its readers up";
    GIVE_UP_PAUSE_MS = 20, "ms", "between two looks, once the grace is over, whether a reader holds the end of a run up";
    RUN_ID_ATTEMPTS = 16, "attempts", "new run ids that are tried when one is taken: the random part has 32 bits";
    META_OBJECTIVE_CHARS = 200, "characters", "what a list of runs shows of an objective";
    META_BYTES = 64 * KIB, "bytes", "what is read of a meta.json: ours are far smaller";
    LOCK_FILE_BYTES = 4 * KIB, "bytes", "what is read of a lock file to name its holder";

    // ----------------------------------------------------------------- stream
    CONSOLE_QUEUE_RECORDS = 1024, "records", "what the console may be behind before it drops: it never blocks a run";
    CONSOLE_TEXT_CHARS = 120, "characters", "what the console shows of one text that is not the answer: one line of a terminal";
    CONSOLE_REDRAW_MS = 1000, "ms", "how often the live line is redrawn: it counts seconds";
    CONSOLE_FINISH_MS = 2000, "ms", "how long the end of a run waits for a console that is behind";
    SINK_QUEUE_RECORDS = 1024, "records", "what one reader may be behind before the run waits for it";
    SINK_QUEUE_BYTES = 4 * MIB, "bytes", "what one reader may be behind before the run waits for it; a larger record goes through alone";
    SINK_WRITE_BYTES = 64 * KIB, "bytes", "lines that are written with one call: what a pipe holds";
    DIAGNOSTIC_BYTES = 4000, "bytes", "one sentence on stderr: less than a pipe takes at once";
    DIAGNOSTIC_WAIT_MS = 1000, "ms", "how long a sentence waits for stderr before it is dropped";
    FIFO_READER_MS = 30_000, "ms", "how long the door waits for somebody to open the FIFO behind --events";

    // ----------------------------------------------------------------- redact
    SECRET_CHARS = 8, "characters", "a shorter value is no secret worth the damage that replacing it everywhere does: the published bound";
    REDACTOR_TABLE_BYTES = 4 * KIB, "bytes", "known values in all up to which the quickest search is used: it takes a kilobyte a byte";

    // ------------------------------------------------------------------ skill
    SKILL_BYTES = 64 * KIB, "bytes", "a manifest: it all stands in the prompt";

    // -------------------------------------------------------------------- cli
    CONFORM_LINE_BYTES = 256 * MIB, "bytes", "one line that `mission conform` reads: as long as a line of a log may be";
    CONFORM_PROBLEMS_SHOWN = 100, "problems", "what `mission conform` prints of one line; the rest is counted";
    OBJECTIVE_BYTES = 256 * KIB, "bytes", "an objective: it all stands in the prompt";
}
