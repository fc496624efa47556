//! Why there is no audit file.

use std::io;
use std::path::PathBuf;

use mission_contract::line::LineProblem;

/// Why an audit file cannot be used. Nothing is called without one, unless there is to be none.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// The file cannot be made, opened, read, written or synced.
    #[error("the audit file {} cannot be written ({source}); name another one with MISSION_AUDIT, or none", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Its end is no line of an audit file.
    #[error("the file {} does not end like an audit file ({problem}); move it away, or name another one with MISSION_AUDIT", .path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What is wrong with its last line.
        problem: LineProblem,
    },
    /// Its last line is longer than any of ours.
    #[error("the file {} does not end like an audit file (its last line is longer than {most} bytes); move it away, or name another one with MISSION_AUDIT", .path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
        /// The most that a line has.
        most: u64,
    },
    /// Another process holds it all the time.
    #[error("the audit file {} is held by another process for more than {} ms", .path.display(), crate::limits::AUDIT_LOCK_MS)]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// A line could not be put into JSON.
    #[error("a line of the audit file {} could not be made: {problem}", .path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Why.
        problem: LineProblem,
    },
}
