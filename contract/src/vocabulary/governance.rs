//! What governs calls: scopes, profiles, the policy file, the audit file.

use serde::Serialize;

use super::Term;

const fn term(name: &'static str, meaning: &'static str) -> Term {
    Term { name, meaning }
}

/// A profile. Each grants what those before it grant, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Profile {
    /// Its name.
    pub name: &'static str,
    /// The scopes that it grants beyond the one before; `*` is every scope.
    pub adds: &'static [&'static str],
}

const fn profile(name: &'static str, adds: &'static [&'static str]) -> Profile {
    Profile { name, adds }
}

/// The profiles, lowest first.
pub const PROFILES: &[Profile] = &[
    profile("safe", &["fs.read", "git.read", "verify.run", "mcp.call", "memory.read"]),
    profile("dev", &["fs.write", "git.write", "python.exec", "shell.exec", "memory.write"]),
    profile("research", &["http.read"]),
    profile("ops", &["git.push", "git.fetch", "pip.install", "fs.delete", "audio.output"]),
    profile("god", &["*"]),
];

/// What a call of a tool of ours needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ToolScopes {
    /// The tool.
    pub tool: &'static str,
    /// The scopes, where they do not depend on what it is to do; all of them, where what it is to do is not known.
    pub scopes: &'static [&'static str],
    /// What its argument `action` says, and the scope that this needs instead.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub actions: &'static [(&'static str, &'static str)],
}

/// The tools of ours. A tool of a server needs `mcp.call`, `mission_result` needs nothing, any other tool needs every scope.
pub const TOOL_SCOPES: &[ToolScopes] = &[
    ToolScopes { tool: "run_shell_command", scopes: &["shell.exec"], actions: &[] },
    ToolScopes { tool: "run_python_code", scopes: &["python.exec"], actions: &[] },
    ToolScopes {
        tool: "fs",
        scopes: &["fs.read", "fs.write", "fs.delete"],
        actions: &[("read", "fs.read"), ("list", "fs.read"), ("stat", "fs.read"), ("write", "fs.write"), ("delete", "fs.delete")],
    },
];

/// The keys of a policy file, the keys of a rule, the keys of a condition.
pub const POLICY_FIELDS: &[Term] = &[
    term("version", "1."),
    term("default", "What holds where no rule does: `allow` unless stated, `gate` or `deny`."),
    term("rules", "The rules; their order says nothing."),
    term("id", "The rule's name, in every decision that it makes."),
    term("tools", "A glob, or several, over the tools' full names: `*`, `?`, `[a-c]`, `{one,two}`."),
    term("effect", "`allow`, `gate` or `deny`."),
    term("when", "Conditions that all hold; without any the rule holds for every call of its tools."),
    term("reason", "What the model and whoever decides a gate are told."),
    term("pointer", "The argument, by JSON Pointer."),
    term("exists", "Whether it is there: true or false."),
    term("equals", "It is this very value."),
    term("one_of", "It is one of these."),
    term("matches", "It is a text in which this regular expression is found."),
    term("at_least", "It is a number that is this or more."),
    term("at_most", "It is a number that is this or less."),
    term("not", "true turns the condition round."),
];

/// What a rule does with a call, mildest first: the strictest of those that hold decides.
pub const POLICY_EFFECTS: &[Term] = &[
    term("allow", "It may be made, as far as the profile and the gates go."),
    term("gate", "A person has to allow it."),
    term("deny", "It is not made."),
];

/// The rules that are no rules of a file: what a decision names when none of those made it.
pub const POLICY_RULES: &[Term] = &[
    term("profile", "The profile grants what the call needs, or does not."),
    term("grant", "A scope that was granted besides lets it through."),
    term("gate", "A gate of the command line holds it."),
    term("default", "No rule of the policy file holds: its default decides."),
    term("policy", "The policy of the run cannot be read: nothing is called."),
    term("catalogue", "It is not offered, or the program answers it itself."),
];

/// Fields of a line of an audit file, in their order; `sum` stands behind them as in the log.
pub const AUDIT_FIELDS: &[Term] = &[
    term("seq", "Number of the line in its file, from 1."),
    term("timestamp", "When it was written, RFC 3339 UTC with milliseconds."),
    term("prev", "`sum` of the line before; 64 zeros on the first."),
    term("event_type", "`tool_intent`: about to be called; `tool_dispatch`: what became of it."),
    term("session_id", "The run."),
    term("tool_name", "The tool's full name; as the model spelt it where there is none."),
    term("action", "What the tool was to do, where its scopes depend on that."),
    term("scopes", "The scopes that the call needs."),
    term("profile", "The profile."),
    term("verdict", "What became of it."),
    term("rule", "The rule that decided."),
    term("reason", "Why it was refused or failed."),
    term("step", "The model turn in which it was proposed, from 0."),
    term("key", "The idempotency key of a call that goes out; the log's intent has the same."),
    term("approval_id", "The approval by which it goes out, or was refused."),
    term("decided_by", "Who decided that."),
    term("arguments_digest", "SHA-256 of the canonical arguments."),
    term("exit_code", "As in `tool_result`."),
    term("duration_ms", "How long it took, in milliseconds."),
    term("bytes_out", "Bytes of the result's text."),
    term("result_digest", "SHA-256 of that text."),
];

/// Which line of a call it is.
pub const AUDIT_EVENTS: &[Term] =
    &[term("tool_intent", "The call is about to go out."), term("tool_dispatch", "What became of it.")];

/// What an audit file says became of a call.
pub const AUDIT_VERDICTS: &[Term] = &[
    term("allowed", "It was made and came back, well or not; or is about to be made."),
    term("denied", "It was not made."),
    term("unknown_tool", "There is no such tool."),
    term("error", "It was made and came to no end of its own."),
];
