//! The flags and variables of a run, with what each is when nobody states it.

use serde::Serialize;

use super::Origin;

/// Whether this build does what a name promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It does.
    Landed,
    /// It does not yet: refused by name, unless its value is the default.
    Later,
    /// It does not yet, and nothing reads it until then: setting it is no mistake (a key of a provider).
    Unread,
}

/// A flag of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Flag {
    /// Its name, dashes included.
    pub name: &'static str,
    /// What stands behind it; absent for a switch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<&'static str>,
    /// The closed list of values that this build takes; empty where any goes.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub words: &'static [&'static str],
    /// Values of that list that are refused by name until their work lands.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub later_words: &'static [&'static str],
    /// True when it may be given several times.
    pub repeatable: bool,
    /// What holds when neither the flag nor its variable is given: a value, or a word in brackets for what is no value.
    pub default: &'static str,
    /// The variable that stands in for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub env: Option<&'static str>,
    /// Who promised it first.
    pub origin: Origin,
    /// Whether this build does it.
    pub status: Status,
    /// What it does.
    pub meaning: &'static str,
}

/// A variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// Older names that are read when it is unset, in this order.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub aliases: &'static [&'static str],
    /// What holds when it is unset or blank: a value, or a word in brackets for what is no value.
    pub default: &'static str,
    /// Other values that ask for what this build does anyway: accepted even while the rest is refused.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub accepts: &'static [&'static str],
    /// Who promised it first.
    pub origin: Origin,
    /// Whether this build reads it.
    pub status: Status,
    /// What it does.
    pub meaning: &'static str,
}

impl Flag {
    /// True when a value that was typed says what holds anyway. A switch has no such value.
    pub fn is_default(&self, value: &str) -> bool {
        self.value.is_some() && same_value(value, self.default)
    }
}

impl Variable {
    /// True when a value says what holds anyway; a blank one always does.
    pub fn is_default(&self, value: &str) -> bool {
        value.trim().is_empty()
            || same_value(value, self.default)
            || self.accepts.iter().any(|accepted| same_value(value, accepted))
    }
}

/// Values are the same as words (trimmed, in any case) or as numbers.
fn same_value(left: &str, right: &str) -> bool {
    let (left, right) = (left.trim(), right.trim());
    let numbers = left.parse::<f64>().ok().zip(right.parse::<f64>().ok());
    left.eq_ignore_ascii_case(right) || numbers.is_some_and(|(left, right)| left == right)
}

use Origin::{Ours, Seed2};
use Status::{Landed, Later, Unread};

const SWITCH: Flag = Flag {
    name: "",
    value: None,
    words: &[],
    later_words: &[],
    repeatable: false,
    default: "(off)",
    env: None,
    origin: Seed2,
    status: Landed,
    meaning: "",
};

const fn switch(name: &'static str, status: Status, meaning: &'static str) -> Flag {
    Flag { name, status, meaning, ..SWITCH }
}

const fn taking(name: &'static str, value: &'static str, default: &'static str, status: Status, meaning: &'static str) -> Flag {
    Flag { name, value: Some(value), default, status, meaning, ..SWITCH }
}

impl Flag {
    const fn env(self, name: &'static str) -> Flag {
        Flag { env: Some(name), ..self }
    }

    const fn repeatable(self) -> Flag {
        Flag { repeatable: true, ..self }
    }

    const fn words(self, words: &'static [&'static str], later_words: &'static [&'static str]) -> Flag {
        Flag { words, later_words, ..self }
    }

    const fn ours(self) -> Flag {
        Flag { origin: Ours, ..self }
    }
}

/// The flags of a run.
pub const FLAGS: &[Flag] = &[
    switch("--mission", Landed, "The positional is the objective, whatever it says; no verb is recognised."),
    // the model
    taking("--provider", "NAME", "(config, else openai)", Landed, "Who answers.")
        .env("MISSION_PROVIDER")
        .words(&["local", "openai", "scripted"], &["anthropic", "mistral", "auto"]),
    taking("--model", "NAME", "(the provider's)", Landed, "The model."),
    taking("--script", "FILE", "(none)", Landed, "What the scripted provider says.").ours(),
    taking("--temperature", "NUMBER", "(not sent)", Landed, "Sampling."),
    taking("--top-p", "NUMBER", "(not sent)", Landed, "Sampling."),
    taking("--seed", "INTEGER", "(not sent)", Landed, "Sampling."),
    taking("--protocol", "WORD", "json", Landed, "How the model is spoken to.")
        .env("MISSION_PROTOCOL")
        .words(&["json", "native"], &[]),
    switch("--no-stream", Landed, "Take each reply whole; no fragments of the answer.").env("MISSION_STREAM"),
    taking("--history", "FILE", "(none)", Landed, "Earlier turns that the conversation is seeded with.").env("MISSION_HISTORY"),
    taking("--personality", "FILE", "(none)", Landed, "Who the model is.").env("MISSION_PERSONALITY"),
    // the tools
    taking("--mcp-stdio", "[NAME=]COMMAND", "(none)", Landed, "A tool server to start.").env("MCP_STDIO").repeatable(),
    taking("--mcp-url", "[NAME=]URL", "(none)", Landed, "A tool server to reach over HTTP.").env("MCP_URL").repeatable(),
    taking("--mcp-token", "TOKEN", "(none)", Landed, "The token of the URL in the same place; empty where it needs none.")
        .env("MCP_TOKEN")
        .repeatable(),
    taking("--mcp-timeout", "SECONDS", "30", Landed, "How long a tool server may take to come up and to answer.")
        .env("MCP_TIMEOUT_S"),
    taking("--mcp-optional", "NAME", "(none)", Landed, "The run goes on without this server.").repeatable().ours(),
    taking("--mcp-env", "[NAME=]VAR", "(none)", Landed, "A variable that the servers, or the one named, may see.")
        .repeatable()
        .ours(),
    taking("--trust-annotations", "NAME", "(none)", Landed, "What this server says about its tools loosens rules.")
        .repeatable()
        .ours(),
    switch("--confine-servers", Later, "Tool servers are started in the sandbox.").ours(),
    taking("--tool-limit", "INTEGER", "(none)", Landed, "Most tools that may be offered to the model; more are refused.").ours(),
    taking("--skill", "DIR|FILE|NAME", "(none)", Landed, "The manifest that closes the set of tools, or a shipped skill's name.")
        .env("MISSION_SKILL"),
    switch("--locked", Landed, "The skill's tools are those of the `mission.lock` beside its manifest, or the run is refused.")
        .ours(),
    // the limits
    taking("--mission-steps", "INTEGER", "0", Landed, "Ceiling on model turns; 0 is none."),
    taking("--mission-seconds", "SECONDS", "(none)", Landed, "Ceiling on time.").env("MISSION_SECONDS"),
    taking("--max-tokens-total", "INTEGER", "0", Landed, "Ceiling on tokens, of requests and replies; 0 is none.").ours(),
    taking("--max-bytes", "INTEGER", "0", Landed, "Ceiling on bytes of tool results; 0 is none.").ours(),
    taking("--max-cost", "AMOUNT", "(none)", Landed, "Ceiling on money, in the currency of the model's price.").ours(),
    taking("--supervisor", "WORD", "on", Landed, "What is done about a run that makes no progress.")
        .words(&["off", "warn", "on"], &[])
        .ours(),
    taking("--grace", "SECONDS", "10", Landed, "How long what is in flight may resist when the run ends.").ours(),
    // the streams
    taking("--events", "-|fd:N|PATH", "(none)", Landed, "Where the records go.").env("MISSION_EVENTS"),
    taking("--control", "-|fd:N|PATH", "(none)", Landed, "Where words from outside come from.").env("MISSION_CONTROL"),
    switch("--control-acks", Landed, "Every line of the control channel is answered.").ours(),
    taking("--tick", "SECONDS", "(none)", Landed, "A sign of life at least that often.").ours(),
    taking("--on-reader-gone", "WORD", "continue", Landed, "Whether a run goes on when nobody reads its stream any more.")
        .words(&["continue", "stop"], &[])
        .ours(),
    taking("--redact-file", "FILE", "(none)", Landed, "Values that are hidden wherever they turn up, one a line.")
        .env("MISSION_REDACT_FILE")
        .repeatable()
        .ours(),
    switch("--redact-evidence", Landed, "Redact also what is verbatim otherwise.").ours(),
    taking("--log", "FILE", "(none)", Later, "Diagnostics in detail.").ours(),
    taking("--exit-codes", "WORD", "(one for every outcome)", Landed, "The exit status tells the outcome.")
        .words(&["outcome"], &[])
        .ours(),
    // governance
    taking("--gate-tool", "NAME", "(none)", Landed, "This tool needs a person's approval.").repeatable(),
    taking("--gate", "WORD", "(none)", Landed, "Tools that may do this need a person's approval.")
        .words(&["destructive", "open-world", "all-writes"], &[])
        .repeatable()
        .ours(),
    taking(
        "--gate-wait",
        "SECONDS",
        "300",
        Landed,
        "How long a run waits at a gate; where nobody states it, only one with --control waits.",
    )
    .env("MISSION_GATE_WAIT"),
    taking("--gate-time", "WORD", "(counted)", Landed, "Whether waiting at a gate counts as time.").words(&["free"], &[]).ours(),
    taking("--gate-expires", "SECONDS", "(never)", Landed, "How long an approval can be decided and spent.").ours(),
    taking("--approval", "ID", "(none)", Landed, "An approved call that this run may make.").env("MISSION_APPROVAL"),
    taking("--approve", "ID", "(none)", Landed, "Approve, and exit."),
    taking("--refuse", "ID", "(none)", Landed, "Refuse, and exit."),
    taking("--decided-by", "WHO", "(nobody)", Landed, "Who approves or refuses."),
    taking("--note", "TEXT", "(none)", Landed, "In their words."),
    taking("--profile", "NAME", "safe", Landed, "Which scopes are granted: what code tools may do.")
        .env("MISSION_PROFILE")
        .words(&["safe", "dev", "research", "ops", "god"], &[]),
    taking("--grant", "SCOPE[,SCOPE…]", "(none)", Landed, "A scope besides the profile's.").repeatable(),
    taking("--policy", "FILE", "(none)", Landed, "Rules that narrow further what may be called.").ours(),
    switch("--no-grounding", Landed, "The answer is not held against the results.").ours(),
    switch("--unsandboxed", Later, "Code tools run without a sandbox.").env("MISSION_SANDBOX"),
    taking("--sandbox-min", "LAYERS", "(none)", Later, "Refuse to run with less.").ours(),
    taking("--root", "DIR", "(the working directory)", Later, "The workspace of code tools.").ours(),
    // carrying on, and other kinds of run
    taking("--resume", "ID", "(none)", Landed, "Carry a run on.").env("MISSION_RESUME"),
    switch("--start-or-resume", Landed, "Begin the run that --run-id names, or carry it on.").ours(),
    taking("--run-id", "ID", "(a new one)", Landed, "The run that --start-or-resume begins or carries on.").ours(),
    taking("--replay", "ID|DIR", "(none)", Landed, "Run a recording again: no model, server or network is touched.")
        .env("MISSION_REPLAY"),
    taking("--replay-tools", "WORD", "recorded", Later, "Where a replay's results come from.").words(&["recorded"], &["live"]),
    switch("--swarm", Later, "Plan first, then work in stages.").env("MISSION_SWARM"),
    switch("--campaign", Later, "Draft a plan from the objective and carry it out."),
    taking("--campaign-plan", "FILE", "(none)", Later, "Carry this plan out."),
    switch("--auto-approve", Later, "A campaign's plan needs no approval."),
];

const VARIABLE: Variable =
    Variable { name: "", aliases: &[], default: "(unset)", accepts: &[], origin: Seed2, status: Landed, meaning: "" };

const fn variable(name: &'static str, status: Status, default: &'static str, meaning: &'static str) -> Variable {
    Variable { name, default, status, meaning, ..VARIABLE }
}

impl Variable {
    const fn aliases(self, aliases: &'static [&'static str]) -> Variable {
        Variable { aliases, ..self }
    }

    const fn accepts(self, accepts: &'static [&'static str]) -> Variable {
        Variable { accepts, ..self }
    }

    const fn ours(self) -> Variable {
        Variable { origin: Ours, ..self }
    }
}

/// The variables. A flag beats its variable, a variable its aliases; a blank value is none.
pub const VARIABLES: &[Variable] = &[
    variable("MISSION_PROVIDER", Landed, "(unset)", "`--provider`, where no configuration names one.").aliases(&["ELF_PROVIDER"]),
    variable("MISSION_PROTOCOL", Landed, "json", "`--protocol`."),
    variable("MISSION_STREAM", Landed, "on", "`off`, `0`, `false`, `no` or `none` is `--no-stream`."),
    variable("MISSION_SKILL", Landed, "(unset)", "`--skill`."),
    variable("MISSION_EVENTS", Landed, "(unset)", "`--events`."),
    variable("MISSION_RUNS", Landed, ".mission/runs", "Where runs are kept; `none` or `off` keeps none.")
        .aliases(&["JUDAIS_LOBI_RUNS"]),
    variable("MCP_STDIO", Landed, "(unset)", "One tool server to start, when no server flag is given."),
    variable("MCP_URL", Landed, "(unset)", "One tool server to reach over HTTP, when no server flag is given."),
    variable("MCP_TOKEN", Landed, "(unset)", "The token of the one URL."),
    variable("MCP_TIMEOUT_S", Landed, "30", "`--mcp-timeout`."),
    variable("MCP_CLIENT_NAME", Landed, "(the program's)", "The name that tool servers are told."),
    variable("LOCAL_API_BASE", Landed, "(unset)", "Base URL of the local model server."),
    variable("LOCAL_MODEL", Landed, "(the server's first)", "`--model` for the local provider."),
    variable("LOCAL_API_KEY", Landed, "(unset)", "Key of the local model server, when it wants one."),
    variable("OPENAI_API_KEY", Landed, "(unset)", "Key of the `openai` provider."),
    variable("MISSION_REPLAY", Landed, "(unset)", "`--replay`."),
    variable("MISSION_REDACT_FILE", Landed, "(unset)", "One `--redact-file`, for every verb.").ours(),
    variable("NO_COLOR", Landed, "(unset)", "No colours on a terminal.").ours(),
    variable("XDG_CONFIG_HOME", Landed, "~/.config", "Where `mission/config.yaml` is looked for.").ours(),
    variable("ANTHROPIC_API_KEY", Unread, "(unset)", "Key of the `anthropic` provider."),
    variable("MISTRAL_API_KEY", Unread, "(unset)", "Key of the `mistral` provider."),
    variable("XDG_STATE_HOME", Unread, "~/.local/state", "Where the key that signs decisions is kept.").ours(),
    variable("MISSION_PERSONALITY", Landed, "(unset)", "`--personality`.").aliases(&["TAI_PERSONALITY", "ELF_PERSONALITY"]),
    variable("MISSION_SECONDS", Landed, "(unset)", "`--mission-seconds`; what is not above 0 is none."),
    variable("MISSION_SWARM", Later, "(unset)", "`--swarm`; `0` is off.").accepts(&["0"]),
    variable("MISSION_HISTORY", Landed, "(unset)", "`--history`."),
    variable("MISSION_APPROVAL", Landed, "(unset)", "`--approval`."),
    variable("MISSION_RESUME", Landed, "(unset)", "`--resume`."),
    variable("MISSION_CONTROL", Landed, "(unset)", "`--control`."),
    variable("MISSION_GATE_WAIT", Landed, "300", "`--gate-wait`."),
    variable("MISSION_PROFILE", Landed, "safe", "`--profile`.").aliases(&["JUDAIS_LOBI_PROFILE"]),
    variable("MISSION_SANDBOX", Later, "(the best there is)", "`bwrap` insists on it, `none` is `--unsandboxed`.")
        .aliases(&["JUDAIS_LOBI_SANDBOX"])
        .accepts(&["none"]),
    variable(
        "MISSION_AUDIT",
        Landed,
        "(a new file in .mission/audit)",
        "Where the audit file goes; `none` or `off` writes none.",
    )
    .aliases(&["JUDAIS_LOBI_AUDIT"])
    .accepts(&["none", "off"]),
    variable("MISSION_APPROVALS", Landed, "(unset)", "Where approvals are kept; `none` or `off` keeps none.")
        .aliases(&["JUDAIS_LOBI_APPROVALS"])
        .accepts(&["none", "off"]),
    variable("MISSION_MEMORY", Later, "(unset)", "Where memory is kept; `none` or `off` keeps none.")
        .aliases(&["JUDAIS_LOBI_MEMORY"])
        .accepts(&["none", "off"]),
    variable("MISSION_MEMORY_PRINCIPAL", Later, "default", "Whose memory it is.").aliases(&["JUDAIS_LOBI_MEMORY_PRINCIPAL"]),
];

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use super::*;

    #[test]
    fn a_default_is_recognised_however_it_is_spelt() {
        let flag = |name| crate::vocabulary::flag(name).expect(name);
        assert!(flag("--gate-wait").is_default("300.0"));
        assert!(flag("--profile").is_default(" Safe "));
        assert!(!flag("--profile").is_default("dev"));
        assert!(!flag("--swarm").is_default(""));
        let variable = |name| crate::vocabulary::variable(name).expect(name);
        assert!(variable("JUDAIS_LOBI_AUDIT").is_default("OFF"));
        assert!(variable("MISSION_SWARM").is_default("0"));
        assert!(variable("MISSION_RESUME").is_default("  "));
        assert!(!variable("MISSION_SWARM").is_default("1"));
    }

    #[test]
    fn names_are_unique_and_every_flag_s_variable_is_listed() {
        let mut flags: Vec<&str> = FLAGS.iter().map(|flag| flag.name).collect();
        let mut variables: Vec<&str> =
            VARIABLES.iter().flat_map(|variable| variable.aliases.iter().copied().chain([variable.name])).collect();
        for flag in FLAGS {
            assert!(flag.env.is_none_or(|name| variables.contains(&name)), "{}", flag.name);
            assert!(flag.name.starts_with("--") && !flag.meaning.is_empty());
        }
        for names in [&mut flags, &mut variables] {
            let count = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), count);
        }
    }
}
