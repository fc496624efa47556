//! What can go wrong in this room, each with what, where, and the fix.

use std::io;
use std::path::{Path, PathBuf};

use mission_contract::line::LineProblem;

use crate::sys::lock::Holder;

/// Why a run could not be opened. Nothing was left half done.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Somebody else writes this run.
    #[error(
        "run {run_id} is being written by {}; wait until it has ended, or end it",
        holder.as_ref().map_or_else(|| "another process".to_owned(), ToString::to_string)
    )]
    Held {
        /// The run.
        run_id: String,
        /// Who holds it, when its lock says so.
        holder: Option<Holder>,
    },
    /// The file system has no locks: two writers could not be kept apart.
    #[error(
        "runs cannot be kept in {}: its file system cannot lock files ({source}); \
         set MISSION_RUNS to a folder on a local disk, or to `none`", path.display()
    )]
    NoLocks {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The place where runs are kept cannot be used.
    #[error("runs cannot be kept in {}: {problem} ({source}); {fix}", path.display())]
    Place {
        /// The file or folder.
        path: PathBuf,
        /// What is wrong with it.
        problem: &'static str,
        /// What helps.
        fix: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The runs that are there cannot be looked at.
    #[error("the runs in {} cannot be looked at: {problem} ({source}); {fix}", path.display())]
    Unreadable {
        /// Where they are kept.
        path: PathBuf,
        /// What is wrong with it.
        problem: &'static str,
        /// What helps.
        fix: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// There is no such run.
    #[error("there is no run {run_id} in {}; a run's id is the name of its folder there", path.display())]
    NoSuchRun {
        /// What was asked for.
        run_id: String,
        /// Where runs are kept.
        path: PathBuf,
    },
    /// Something else stands where a run was looked for.
    #[error("{name} is no run: {problem}")]
    NotARun {
        /// What was asked for.
        name: String,
        /// What stands there.
        problem: String,
    },
    /// Runs are not kept.
    #[error("no run was kept: MISSION_RUNS is `none`; set it to the folder that holds the run")]
    NotKept,
    /// The log cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A thread could not be started.
    #[error("the journal's writer could not be started ({0}); the limit on threads is too low")]
    Thread(io::Error),
}

impl JournalError {
    /// Puts what the system said about a path into words.
    pub(super) fn place(path: &Path, source: io::Error) -> Self {
        if matches!(source.raw_os_error(), Some(libc::EMFILE | libc::ENFILE)) {
            let (problem, fix) = ("too many files are open", "raise the limit on open files (ulimit -n)");
            return Self::Place { path: path.to_path_buf(), problem, fix, source };
        }
        let (problem, fix) = match source.kind() {
            io::ErrorKind::PermissionDenied => {
                ("it may not be written to", "run where you may write, or set MISSION_RUNS to such a folder or to `none`")
            }
            io::ErrorKind::ReadOnlyFilesystem => {
                ("it is read-only", "set MISSION_RUNS to a folder that can be written to, or to `none`")
            }
            io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
                ("something there is not a folder", "move it away, or set MISSION_RUNS to another folder")
            }
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                ("its disk is full", "free some space, or set MISSION_RUNS to a folder on another disk")
            }
            _ => ("it cannot be used", "set MISSION_RUNS to another folder, or to `none`"),
        };
        Self::Place { path: path.to_path_buf(), problem, fix, source }
    }
}

impl JournalError {
    /// Runs that cannot be looked at.
    pub(super) fn reading(path: &Path, source: io::Error) -> Self {
        let (problem, fix) = match source.kind() {
            io::ErrorKind::NotADirectory => ("it is no folder", "set MISSION_RUNS to the folder that holds the runs"),
            io::ErrorKind::PermissionDenied => ("it may not be read", "ask as the user that the runs belong to"),
            _ => ("it cannot be read", "set MISSION_RUNS to the folder that holds the runs"),
        };
        Self::Unreadable { path: path.to_path_buf(), problem, fix, source }
    }
}

/// Nothing is durable any more: what was appended since the last good sync counts as lost, and nothing is tried again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the journal {path} failed: {detail}; a resume carries on from what was durable before")]
pub struct JournalFailed {
    /// The log, as messages name it.
    pub path: String,
    /// What failed.
    pub detail: String,
}

/// Why a log cannot be read to its end.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It cannot be read at all.
    #[error("the log {path} cannot be read ({source})")]
    Io {
        /// The log.
        path: String,
        /// What the system said.
        source: io::Error,
    },
    /// A line that had been synced is damaged.
    #[error("the log {path} is damaged at line {line}, which had been made durable: {problem}")]
    Damaged {
        /// The log.
        path: String,
        /// The line, from 1.
        line: u64,
        /// What is wrong with it.
        problem: String,
    },
    /// A line is whole, but not one that this build understands.
    #[error("line {line} of the log {path} cannot be understood: {problem}; read it with the build that wrote it")]
    Foreign {
        /// The log.
        path: String,
        /// The line, from 1.
        line: u64,
        /// What is wrong with it.
        problem: LineProblem,
    },
    /// There is no good line in it.
    #[error("the log {path} holds no run: its first line was never made durable; start the run again")]
    Empty {
        /// The log.
        path: String,
    },
}
