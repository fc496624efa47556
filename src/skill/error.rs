//! Why a skill is refused.

use std::fmt;

/// Why a skill is refused. A manifest fails closed: nothing of it counts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SkillError {
    /// The manifest is not understood.
    #[error("the skill {file}{}", list(problems))]
    Manifest {
        /// Where it came from, as the caller names it.
        file: String,
        /// Everything that is wrong with it, in the order of the file; at least one.
        problems: Vec<Problem>,
    },
    /// The tools are not those of its lock.
    #[error("the skill {skill} is locked, and {}; look at what differs, then write the lock again with mission lock", drift.join("; "))]
    Drift {
        /// The skill's name.
        skill: String,
        /// What differs, a clause each; at least one.
        drift: Vec<String>,
    },
    /// It asks for what this build does not do.
    #[error("the skill {skill} {}", wishes.join("; it "))]
    NotYet {
        /// The skill's name.
        skill: String,
        /// What it asks for, a sentence each that begins with a verb; at least one.
        wishes: Vec<String>,
    },
    /// The tools that it names are not those that are there.
    #[error("the skill {skill} {}; offered: {}", unresolved(missing, ambiguous), names(offered))]
    Tools {
        /// The skill's name.
        skill: String,
        /// Names that no offered tool answers to.
        missing: Vec<String>,
        /// Names that several offered tools answer to, with those.
        ambiguous: Vec<(String, Vec<String>)>,
        /// What the tool servers offer.
        offered: Vec<String>,
    },
}

/// One thing that is wrong with a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The line, from 1; 0 when it is about the whole file.
    pub line: u64,
    /// The column in characters, from 1.
    pub column: u64,
    /// What is wrong, and the fix.
    pub what: String,
}

impl Problem {
    /// A problem at a place.
    pub fn at(line: u64, column: u64, what: impl Into<String>) -> Self {
        Self { line, column, what: what.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => formatter.write_str(&self.what),
            line => write!(formatter, "line {line}, column {}: {}", self.column, self.what),
        }
    }
}

fn list(problems: &[Problem]) -> String {
    let joined = problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
    match problems.first() {
        Some(first) if first.line > 0 => format!(", {joined}"),
        _ => format!(": {joined}"),
    }
}

fn unresolved(missing: &[String], ambiguous: &[(String, Vec<String>)]) -> String {
    let mut parts = Vec::new();
    if missing.is_empty() && ambiguous.is_empty() {
        parts.push("has only optional tools, and none of them is there; start the server that has one of them".to_owned());
    }
    if !missing.is_empty() {
        parts.push(format!(
            "needs tools that nobody offers: {} (start their server, or mark a name optional with `?`)",
            names(missing)
        ));
    }
    for (name, tools) in ambiguous {
        parts.push(format!("names `{name}`, which could be any of {} (write it with its server's name)", names(tools)));
    }
    parts.join("; it ")
}

fn names<S: AsRef<str>>(names: &[S]) -> String {
    if names.is_empty() {
        return "nothing".to_owned();
    }
    names.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(", ")
}
