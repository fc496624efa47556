//! Why a policy, a profile or a grant is refused.

use std::fmt;

/// Why a policy, a profile or a grant is refused. A policy fails closed: nothing of it counts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// The file is not understood.
    #[error("the policy {file}{}", list(problems))]
    File {
        /// Where it came from, as the caller names it.
        file: String,
        /// What is wrong with it, in the order of the file; at least one.
        problems: Vec<Problem>,
    },
    /// There is no such profile.
    #[error("that is no profile; there are {}", .known.join(", "))]
    Profile {
        /// Those that there are.
        known: Vec<String>,
    },
    /// There is no such scope.
    #[error("`{scope}` is no scope; there are {}", .known.join(", "))]
    Scope {
        /// What was said.
        scope: String,
        /// Those that there are.
        known: Vec<String>,
    },
    /// Every scope was to be granted.
    #[error("`*` is no scope that can be granted; the profile god has every scope (--profile god)")]
    EveryScope,
}

/// One thing that is wrong with a policy file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The line, from 1.
    pub line: u64,
    /// The column in characters, from 1.
    pub column: u64,
    /// The field: `rules[2].when[0].pointer`; empty for the file as a whole.
    pub field: String,
    /// What is wrong, and the fix.
    pub what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "line {}, column {}: ", self.line, self.column)?;
        if self.field.is_empty() { formatter.write_str(&self.what) } else { write!(formatter, "`{}`: {}", self.field, self.what) }
    }
}

fn list(problems: &[Problem]) -> String {
    format!(", {}", problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
}
