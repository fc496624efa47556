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

/// A bound as a length or a count: all of them fit on the machines that this is built for, and one that does not is the largest there is.
pub fn size(limit: u64) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX)
}

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

limits! {
    // engine
    RESULT_SHOWN_BYTES = 32 * KIB, "bytes", "what a model is shown of one result at once: the published bound";
    NAMES_LISTED = 64, "names", "names listed in one correction: the catalogue in the prompt holds them all";
    QUOTED_CHARACTERS = 200, "characters", "a quote from a model or a server inside one of our own sentences";
    ENUM_VALUES_LISTED = 8, "values", "values of an enumeration in a catalogue line: the published bound";
    PATTERN_BACKTRACKS = 100_000, "steps", "backtracking of one pattern of a tool's schema: past it the arguments count as not fitting";
    PATTERN_BYTES = 1024 * KIB, "bytes", "a compiled pattern of a schema or of a search";
    READ_CHARACTERS = 4_000, "characters", "one reading of a kept result: the published bound";
    GREP_MATCHES = 40, "lines", "matches and handles shown at once: the published bound";
    FRAGMENT_CHARACTERS = 64, "characters", "a fragment of an answer that has no newline: the published bound";
    CONTROL_WAITING = 64, "texts", "said to a run that wait for the model to be asked: past it they are dropped";
    CONTROL_WAITING_BYTES = MIB, "bytes", "of those texts in all: they all stand in one request";
    MISSION_SECONDS_MOST = 31_536_000, "seconds", "a run may be given: a year";
    MONEY_MOST = 1_000_000_000, "units", "of a currency that a limit or a price may be";
    BYTES_A_TOKEN = 3, "bytes", "of text that count as one token where a model does not say what it used: rather too many tokens than too few";
    REPLY_TOKENS_STATED = 2_048, "tokens", "left of a limit, below which a reply is asked to stop in time: any model may be told so much";
    TOKENS_PRICED = 1_000_000, "tokens", "that a price of ours is for";
    REVIEWS = 3, "reviews", "of a run's progress: past them a pattern that shows none ends it";
    REVIEW_REFUNDS = 2, "reviews", "that are given back because reading on without news may be right";
    REVIEW_ACTS = 20, "calls", "the last ones that a reviewer is shown";
    REVIEW_NOTE_CHARACTERS = 160, "characters", "of each of their results; ten times as many of what the reviewer writes";
    SIGNAL_REPEATS = 3, "times", "that one call with one result makes no progress, within twice as many calls";
    SIGNAL_REJECTED = 3, "steps", "in a row without a reply that can be used make no progress";
    SIGNAL_OSCILLATION = 4, "calls", "that two calls take turns over make no progress";
    SIGNAL_STALE = 4, "steps", "in a row without a new call or a new result make no progress";
    SIGNAL_SAME_REPLY = 3, "times", "that nothing can be read from the same reply, before a shape is demanded";
    DECISION_CANDIDATES = 64, "places", "places in a reply's prose where an object is looked for";

    // ----------------------------------------------------------------- driver
    DELTA_QUEUE = 256, "pieces", "of a reply that were not shown yet: past it the reply is held back";
    CLOSING_MS = 500, "milliseconds", "what readers get for the end of a run, however long something else resisted";
    CUT_MS = 2_000, "milliseconds", "what a model may take to let go when somebody has something else to say";
    SECOND_SIGNAL_MS = 500, "milliseconds", "what closing the log may take after a second signal, before the process ends by it";
    EARLY_CANCEL_MS = 1_000, "milliseconds", "what servers get to be up after a run was cancelled that has not begun: it then tells its end as any run";
    LISTING_SECONDS = 5, "seconds", "for all servers to list their tools again in the middle of a run: the published default";

    // ------------------------------------------------------------------ tools
    MCP_LINE_BYTES = 32 * MIB, "bytes", "one line of a tool server: past it the call fails, naming size and cap";
    MCP_LINE_SKIPPED_BYTES = 256 * MIB, "bytes", "what is skipped of one endless line before its server is ended";
    MCP_OVERLONG_MS = 100, "milliseconds", "how long the end of a line over the cap is awaited, to name its true size";
    MCP_STUCK_LINE_MS = 2_000, "milliseconds", "silence in the middle of a line over the cap, after which what was asked since fails too";
    MCP_LAST_ANSWERS_MS = 1_000, "milliseconds", "how long the answers of a server that reads no more are still read";
    MCP_READ_BYTES = 64 * KIB, "bytes", "read from a server at once: what a pipe holds";
    MCP_QUEUE_MESSAGES = 256, "messages", "written to a server and not yet read by it: a server that stopped reading is called no more";
    MCP_EVENT_QUEUE = 1024, "events", "reports of the servers that were not yet read: past it one is dropped, never waited for";
    MCP_PROBE_MS = 5_000, "milliseconds", "silence after the probe of a server before `initialize` is sent beside it: a cold start may take longer";
    MCP_LIST_PAGES = 100, "pages", "of one server's list: one that names ever new cursors ends here";
    MCP_SERVERS = 64, "servers", "of one run: each is a process tree and three pipes";
    MCP_CONNECT_SECONDS = 30, "seconds", "for a server to start and list its tools, and for a sign of life from a call, unless stated: the published default";
    MCP_DECLINED_REPORTS = 8, "reports", "of one server's requests that were declined: past it they are declined unreported";
    MCP_LATE_CALLS = 64, "calls", "given up and still recognised when their answer comes after all";
    MCP_TOOLS = 4_096, "tools", "of one server: four times the largest catalogue the program is built for";
    MCP_DEFINITION_BYTES = 256 * KIB, "bytes", "one tool's definition as its server sends it";
    MCP_DESCRIPTION_CHARACTERS = 16_384, "characters", "of one tool's description that a model is shown: it stands in every request";
    MCP_SCHEMA_BYTES = 128 * KIB, "bytes", "one schema of a tool: functions carry it in every request";
    MCP_DEFINITION_DEPTH = 64, "levels", "nesting of one tool's definition: validators recurse";
    MCP_TOOL_NAME_BYTES = 128, "bytes", "a tool's name: what the protocol allows";
    MCP_CALL_SECONDS = 3_600, "seconds", "one call in all, whatever progress it reports";
    MCP_CANCEL_MS = 20, "milliseconds", "how long handing a cancellation to a server's pipe may take";
    MCP_WAKE_MS = 2_000, "milliseconds", "for a sign of life from a server whose call a person has just allowed: without one the call is made";
    MCP_STALE_MS = 50, "milliseconds", "changes of a server's list that come this close are one";
    MCP_LIST_BYTES = 64 * MIB, "bytes", "the definitions of one server in all";
    MCP_LIST_RETRIES = 2, "retries", "of a page of a list that could not be had for a moment: listing is only reading";
    MCP_PROGRESS_REPORTS = 10_000, "reports", "of one call's progress that count as signs of life: past it only the answer does";
    MCP_PROBES = 3, "probes", "of one server's era when it is busy: whatever it says the last time holds";
    MCP_TOKEN_BYTES = 16 * KIB, "bytes", "a bearer token: what servers take as a header";
    MCP_SESSION_ID_BYTES = KIB, "bytes", "the name of a session, and of an event: longer ones are not sent back";
    MCP_SESSIONS_REMEMBERED = 8, "sessions", "of one server that are kept out of its own words: one that loses more in a row is given no new one";
    MCP_REDIRECTS = 3, "redirects", "followed for one request, each within the same origin";
    MCP_HTTP_CONNECT_SECONDS = 10, "seconds", "until a connection to a tool server stands";
    MCP_CONNECT_RETRIES = 2, "retries", "of a connection that was refused: nothing had been sent";
    MCP_RETRY_MS = 100, "milliseconds", "before the first retry of what may be tried again; four times as long before each further one";
    MCP_RETRY_AFTER_SECONDS = 30, "seconds", "that a server's Retry-After may ask for: a longer one is cut to it";
    MCP_KEEP_SECONDS = 4, "seconds", "an unused connection to a tool server is kept: common servers hang up after 5";
    MCP_KEEPALIVE_SECONDS = 30, "seconds", "of silence before a connection is asked whether its other end is there";
    MCP_POSTS = 32, "messages", "to one server that are under way at once";
    MCP_TELL_SECONDS = 30, "seconds", "for a server to take a message that needs no answer";
    MCP_LATE_MS = 10_000, "milliseconds", "how long the answer to a call that was given up is still listened for, where the protocol allows it";
    MCP_FAREWELL_MS = 500, "milliseconds", "for what was said last to reach a server, and again for giving its session back";
    MCP_ERROR_BODY_BYTES = 64 * KIB, "bytes", "what is read of a body that is no answer";
    MCP_ERROR_BODY_MS = 2_000, "milliseconds", "for that to come";
    MCP_DRAIN_MS = 20, "milliseconds", "for the rest of a stream that has said what it was to say, so that its connection can be used again";
    MCP_STREAM_EVENTS = 100_000, "events", "in place of one answer";
    MCP_STREAM_BYTES = 256 * MIB, "bytes", "in place of one answer, over all its connections";
    MCP_RESUMES = 5, "times", "one broken answer is picked up again";
    MCP_RESUME_MS = 500, "milliseconds", "before a broken stream is picked up, unless the server says how long";
    MCP_RETRY_SECONDS_MOST = 30, "seconds", "that a server may ask to be waited for before its stream is picked up";
    MCP_LISTENS = 5, "times", "a stream of changes that ends at once is opened again: past it the list is read again at boundaries";
    MCP_STEADY_SECONDS = 30, "seconds", "after which a stream of changes did not end at once";
    MCP_RESTARTS = 3, "restarts", "of a dead server in a row, no call of it having ended in between";
    MCP_RESTART_MS = 100, "milliseconds", "before the first restart of a dead server; four times as long before each further one";
    MCP_SAMPLE_BYTES = 200, "bytes", "what is quoted of what a server wrote";
    MCP_QUOTED_BYTES = 80, "bytes", "what is quoted of one word of a server inside a sentence";
    MCP_ERROR_DATA_BYTES = KIB, "bytes", "what is shown of the data of a server's error";
    MCP_END_MS = 250, "milliseconds", "between the end of a server's output and the end of its process: two pipes tell them";
    STDERR_TAIL_BYTES = 8 * KIB, "bytes", "kept of what a child says on its standard error: the end has the reason";
    STDERR_QUOTED_BYTES = KIB, "bytes", "of that in a message";
    STDERR_SETTLE_MS = 50, "milliseconds", "how long the rest of a dead child's standard error is awaited";
    CHILD_END_OF_INPUT_MS = 500, "milliseconds", "what a child may take to end by itself once its input has ended";
    CHILD_TERM_MS = 500, "milliseconds", "what a process group may take to end after TERM, before KILL";
    CHILD_KILL_MS = 5_000, "milliseconds", "what a child tree may take to be gone after KILL: longer only when the kernel holds a process";
    GUARDIAN_LOOK_MS = 20, "milliseconds", "between two looks for a process that was born while its tree was being ended";
    GUARDIAN_SLACK_MS = 1_000, "milliseconds", "for a guardian to be scheduled, beside what it waits for itself";
    GUARDIAN_STATUS_BYTES = 4 * KIB, "bytes", "what is read of a guardian's report: more than any line of it";

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
    JOURNAL_MERGED_LINES = 4, "lines", "beginnings of a line that are looked at within one: a lost newline makes two";
    JOURNAL_QUEUE_ENTRIES = 4096, "entries", "what may wait for the disk before the run waits for it";
    JOURNAL_QUEUE_BYTES = 32 * MIB, "bytes", "what may wait for the disk before the run waits for it";
    JOURNAL_GROUP_BYTES = 8 * MIB, "bytes", "what is synced together: more only delays what comes first";
    JOURNAL_WRITE_BYTES = MIB, "bytes", "lines that are written with one call: a larger line is written at once";
    JOURNAL_STUCK_MS = 5000, "milliseconds", "how long the end of a run waits for its disk after it gave its readers up";
    GIVE_UP_PAUSE_MS = 20, "milliseconds", "between two looks, once the grace is over, whether a reader holds the end of a run up";
    VERIFY_READ_BYTES = MIB, "bytes", "of a log that are read at once when it is verified; the memory of a longer line is given back";
    RUN_ID_ATTEMPTS = 16, "attempts", "new run ids that are tried when one is taken: the random part has 32 bits";
    ORPHANS_CLOSED = 32, "runs", "whose processes are gone, that one start closes: the next one goes on";
    ORPHANS_LOOKED_AT = 1024, "runs", "that are marked as not ended, looked at by one start";
    ORPHANS_WAIT_MS = 500, "milliseconds", "how long the end of a run waits for one that it is closing: it can be closed again";
    META_OBJECTIVE_CHARACTERS = 200, "characters", "what a list of runs shows of an objective";
    META_BYTES = 64 * KIB, "bytes", "what is read of a meta.json: ours are far smaller";
    LOCK_LOOKS = 10, "looks", "of others at a lock that whoever takes it waits for: a look is over at once";
    LOCK_LOOK_MS = 5, "milliseconds", "between two attempts to take a lock that somebody may only be looking at";
    LOCK_FILE_BYTES = 4 * KIB, "bytes", "what is read of a lock file to name its holder";

    // -------------------------------------------------------------- approvals
    APPROVAL_BYTES = 40 * MIB, "bytes", "an approval's file: the arguments of a call are at most what a model may say in a reply";
    APPROVALS_LISTED = 10_000, "files", "what is read of a folder of approvals at once";
    APPROVAL_BY_CHARACTERS = 200, "characters", "the name of whoever decides";
    APPROVAL_NOTE_CHARACTERS = 4_000, "characters", "what they say about it: a model reads it";
    APPROVAL_ID_SHOWN = 80, "characters", "what a refusal repeats of a word that is no approval's id";
    APPROVALS_LOCK_MS = 5000, "milliseconds", "how long a process waits for another one that writes an approval: a write takes milliseconds";
    APPROVALS_LOCK_PAUSE_MS = 5, "milliseconds", "between two attempts to take the lock of the approvals";

    GATE_LOOK_MS = 250, "milliseconds", "between two looks at an approval where the kernel does not tell of its change";
    GATE_HEARD = 8, "messages", "from a listener at a gate that may wait for the run";
    GATE_WAIT_SECONDS = 300, "seconds", "at a gate, unless --gate-wait says otherwise: a person who looks now answers within that";
    GATE_WAIT_SECONDS_MOST = 604_800, "seconds", "the longest wait at a gate: a week; who needs longer resumes";

    // ----------------------------------------------------------------- replay
    DRIFT_CHARACTERS = 400, "characters", "what is shown of each side of a drift: a paragraph that a person reads at once";
    DRIFT_BEFORE_CHARACTERS = 60, "characters", "what is shown of a drift's text before it begins to differ";
    RECORDING_BYTES = 4 * 1024 * MIB, "bytes", "one recording: it is held in memory while it is replayed";
    LISTED_RECORDINGS = 20, "recordings", "those of a folder that a refusal names";
    RECORDING_LINE_BYTES = 256 * MIB, "bytes", "one line of a foreign recording: as long as a line of a log may be";

    // ----------------------------------------------------------------- stream
    CONSOLE_QUEUE_RECORDS = 1024, "records", "what the console may be behind before it drops: it never blocks a run";
    CONSOLE_TEXT_CHARACTERS = 120, "characters", "what the console shows of one text that is not the answer: one line of a terminal";
    CONSOLE_REDRAW_MS = 1000, "milliseconds", "how often the live line is redrawn: it counts seconds";
    CONSOLE_FINISH_MS = 2000, "milliseconds", "how long the end of a run waits for a console that is behind";
    SINK_QUEUE_RECORDS = 1024, "records", "what one reader may be behind before the run waits for it";
    SINK_QUEUE_BYTES = 4 * MIB, "bytes", "what one reader may be behind before the run waits for it; a larger record goes through alone";
    SINK_WRITE_BYTES = 64 * KIB, "bytes", "lines that are written with one call: what a pipe holds";
    SINK_PIECE_BYTES = 32 * KIB, "bytes", "written with one call: half of what a pipe holds, so that its reader and we take turns";
    SINK_LAST_PIECE_BYTES = 4 * KIB, "bytes", "the same when the end of a run waits for it: what a pipe takes at once when it has room for anything";
    DIAGNOSTIC_BYTES = 4000, "bytes", "one sentence on stderr: less than a pipe takes at once";
    DIAGNOSTIC_WAIT_MS = 1000, "milliseconds", "how long a sentence waits for stderr before it is dropped";
    FIFO_READER_MS = 30_000, "milliseconds", "how long the door waits for somebody to open the FIFO behind --events";

    // ---------------------------------------------------------------- control
    CONTROL_READ_BYTES = 64 * KIB, "bytes", "read from the control channel at once: what a pipe holds";
    CONTROL_LINE_BYTES = 2 * MIB, "bytes", "one line of the control channel: the longest text, every character of it escaped";
    CONTROL_TEXT_BYTES = 256 * KIB, "bytes", "a text of the control channel: as long as an objective may be";
    CONTROL_ID_CHARACTERS = 200, "characters", "an id of a line of the control channel: it is repeated in an answer";
    CONTROL_WORD_CHARACTERS = 40, "characters", "what is repeated of a word of the control channel that nobody knows";
    CONTROL_QUOTED_CHARACTERS = 120, "characters", "what is repeated of a line of the control channel that cannot be read: the published bound";
    CONTROL_QUEUE = 256, "lines", "of the control channel that the run has not taken yet: past it they are dropped, but for a `cancel`";
    CONTROL_QUEUE_BYTES = 4 * MIB, "bytes", "of those lines in all";
    CONTROL_LINES = 500, "lines", "of the control channel that are read in one window: whoever writes more waits";
    CONTROL_WINDOW_MS = 1000, "milliseconds", "that window";
    CONTROL_SENTENCES = 64, "sentences", "on stderr about lines that cannot be used: the rest is dropped in silence";

    // ----------------------------------------------------------------- redact
    SECRET_CHARACTERS = 8, "characters", "a shorter value is no secret worth the damage that replacing it everywhere does: the published bound";
    SECRET_ENCODED_BYTES = 4 * KIB, "bytes", "a value past which it is looked for as it stands and escaped, and not in base64 or hexadecimal: nine times as much";
    SECRET_FORM_BYTES = 512, "bytes", "one piece of a known value: a longer one is looked for in pieces that overlap";
    SECRET_SHAPE_BYTES = KIB, "bytes", "how far ahead is looked to tell what nobody named: the header of a signed token, the authority of a URL";
    SECRET_NAME_BYTES = 64, "bytes", "how much of a name is read before a value: longer ones end the same";
    SECRET_CONTEXT_BYTES = 256, "bytes", "what a stream keeps of the text that was shown: a name stands before its value";
    PRIVATE_KEY_BYTES = 256 * KIB, "bytes", "how much is hidden of a private key without an end: four times the largest in use";
    REDACTOR_BLOCK_BYTES = 64 * KIB, "bytes", "read by both searches before what they found is put together: it stays in the processor's cache";
    REDACTOR_HELD_BYTES = 16 * KIB, "bytes", "how far one piece of a known value may be spread by escapes and line breaks, and so what a stream holds back at most: past it, it is no value";

    // ------------------------------------------------------------------ skill
    SKILL_BYTES = 64 * KIB, "bytes", "a manifest: it all stands in the prompt";
    SKILL_NODES = 5_000, "nodes", "the YAML of a manifest: far more than one that a person wrote";
    SKILL_LEVELS = 16, "levels", "nesting in the YAML of a manifest";
    SKILL_KEY_CHARACTERS = 80, "characters", "what a refusal repeats of a key";
    SKILL_NAME_CHARACTERS = 64, "characters", "a skill's name: records and lists show it";
    SKILL_DESCRIPTION_CHARACTERS = 1_024, "characters", "a skill's description before a check warns: what other programs take";
    GROUNDING_REPAIRS_MOST = 100, "repairs", "that a manifest may allow of one answer: each costs a step";
    GROUNDING_CITED_MOST = 1_000_000, "tokens", "that a manifest may ask an answer to cite";
    LOCK_BYTES = 4 * MIB, "bytes", "a mission.lock: two digests a tool, and there are at most so many tools";

    // ----------------------------------------------------------------- policy
    POLICY_BYTES = 256 * KIB, "bytes", "a policy file: it stands in the log of each of its runs";
    POLICY_NODES = 50_000, "nodes", "the YAML of a policy file: what its largest count of rules takes";
    POLICY_LEVELS = 16, "levels", "nesting in the YAML of a policy file";
    POLICY_RULES = 2_000, "rules", "of a policy file: all of them are looked at in microseconds";
    POLICY_REGEX_BYTES = MIB, "bytes", "one regular expression of a policy file, compiled";
    POLICY_ID_CHARACTERS = 64, "characters", "a rule's name: each decision holds it";
    POLICY_REASON_CHARACTERS = 500, "characters", "what a rule says of itself: a model reads it";
    POLICY_PROBLEMS = 20, "problems", "of a policy file that one refusal names";
    POLICY_SHOWN_CHARACTERS = 80, "characters", "what a refusal repeats of a text of a policy file";

    // ------------------------------------------------------------------ audit
    AUDIT_LINE_BYTES = 64 * KIB, "bytes", "one line of an audit file: it holds digests, no arguments and no results";
    AUDIT_NAME_CHARACTERS = 200, "characters", "of a tool's name that nobody offers, in an audit file: a model may have made it up";
    AUDIT_REASON_CHARACTERS = 2_000, "characters", "of why a call was refused or failed, in an audit file";
    AUDIT_LOCK_MS = 1_000, "milliseconds", "how long a line waits for another process that writes one: a write takes microseconds";
    AUDIT_LOCK_PAUSE_MS = 1, "milliseconds", "between two attempts to lock an audit file";
    AUDIT_SYNC_MS = 200, "milliseconds", "after which a line of an audit file is synced, with all that came meanwhile; nothing waits for it";
    AUDIT_CLOSE_MS = 5_000, "milliseconds", "how long the end of a run waits for the last sync of its audit file";

    // -------------------------------------------------------------------- cli
    PERSONALITY_BYTES = 256 * KIB, "bytes", "a personality, and the file of variables that it names: it all stands in the prompt";
    HISTORY_BYTES = 4 * MIB, "bytes", "a file of earlier turns, whatever it holds besides them";
    HISTORY_TURNS = 100, "turns", "earlier turns of a conversation: the published bound";
    HISTORY_CHARACTERS = 262_144, "characters", "earlier turns in all: the published bound";
    CONFORM_LINE_BYTES = 256 * MIB, "bytes", "one line that `mission conform` reads: as long as a line of a log may be";
    CONFORM_PROBLEMS_SHOWN = 100, "problems", "what `mission conform` prints of one line; the rest is counted";
    GRACE_SECONDS = 10, "seconds", "what is in flight may resist when a run ends, unless stated";
    GRACE_SECONDS_MOST = 3_600, "seconds", "that may be stated for it";
    TICK_MS_LEAST = 10, "milliseconds", "of silence that may be stated for a sign of life: more often is no silence";
    TICK_SECONDS_MOST = 86_400, "seconds", "of silence that may be stated: a day";
    MCP_TIMEOUT_SECONDS_MOST = 86_400, "seconds", "that may be stated for a tool server: a day";
    REDACT_FILE_BYTES = 64 * KIB, "bytes", "values of --redact-file, all files together: more than a thousand, and a moment to look for them";
    DEMO_LINE_BYTES = MIB, "bytes", "one message to the demo's tool server";
    FOLLOW_LOOK_MS = 250, "milliseconds", "between two looks at a run that is followed, where the kernel tells nothing of it";
    FOLLOW_SETTLE_MS = 20, "milliseconds", "between the end of a run's writer and its lock being free: the kernel does both, one after the other";
    SHOW_TEXT_BYTES = 64 * KIB, "bytes", "held of one text of the step that is shown by itself: the rest is what export is for";
    SHOW_EVENTS = 1024, "events", "of one step that a timeline lists: more are counted";
    LIST_OBJECTIVE_CHARACTERS = 60, "characters", "of an objective in a list of runs for people: the rest of a line";
    OBJECTIVE_BYTES = 256 * KIB, "bytes", "an objective: it all stands in the prompt";
}
