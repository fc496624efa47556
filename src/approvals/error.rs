//! What can go wrong in this room, each with what, where, and the fix.

use std::io;
use std::path::{Path, PathBuf};

/// Why an approval could not be read, decided or spent.
#[derive(Debug, thiserror::Error)]
pub enum ApprovalError {
    /// Approvals are not kept.
    #[error("no approval is kept: MISSION_APPROVALS is `none`; set it to the folder that holds them")]
    NotKept,
    /// There is no such approval.
    #[error("there is no approval {id} in {}; `mission approvals list` shows those that wait", folder.display())]
    Missing {
        /// What was asked for.
        id: String,
        /// Where approvals are kept.
        folder: PathBuf,
    },
    /// The word is no id.
    #[error("`{id}` is no approval's id; one is `ap_` with letters and digits")]
    NoId {
        /// The word, bounded.
        id: String,
    },
    /// Its file cannot be read as one.
    #[error("the approval {} cannot be read: {problem}; restore the file, or remove it to have the run ask again", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The answer does not fit what is asked.
    #[error(
        "{id} asks what became of a call: say done (it took effect), retry (it did not; make it again) or abandon; {answer} is none of them"
    )]
    NoSuchAnswer {
        /// The approval.
        id: String,
        /// The answer.
        answer: &'static str,
    },
    /// An answer about an effect, where a call waits to be allowed.
    #[error("{id} asks whether a call may be made: approve or refuse it; {answer} is neither")]
    NotAsked {
        /// The approval.
        id: String,
        /// The answer.
        answer: &'static str,
    },
    /// The call that is to be made is not the one that was asked about.
    #[error(
        "{id} is about another call: a yes is for one tool, as it was defined then, with exactly the arguments that were shown"
    )]
    OtherCall {
        /// The approval.
        id: String,
    },
    /// A text that is too long.
    #[error("{what} is longer than {most} characters; say it shorter")]
    TooLong {
        /// Which one.
        what: &'static str,
        /// Most characters.
        most: u64,
    },
    /// A call that is too large to be shown to a person.
    #[error("the call is too large to be kept for a person: its record would be larger than {most} bytes")]
    TooLarge {
        /// Most bytes.
        most: u64,
    },
    /// Nobody is named.
    #[error("somebody has to have decided: name them (--by, --decided-by)")]
    Nobody,
    /// It is decided already.
    #[error("{id} is {state}: {by} said {answer} at {at}")]
    Decided {
        /// The approval.
        id: String,
        /// Its state.
        state: &'static str,
        /// Who decided.
        by: String,
        /// What they said.
        answer: String,
        /// When.
        at: String,
    },
    /// Its call was dispatched already.
    #[error("{id} was spent by run {run} already; an approval is for one call")]
    Spent {
        /// The approval.
        id: String,
        /// Who spent it.
        run: String,
    },
    /// It cannot be decided any more.
    #[error("{id} is {state}, and cannot be decided any more")]
    Over {
        /// The approval.
        id: String,
        /// Its state.
        state: &'static str,
    },
    /// Nobody has decided.
    #[error("{id} is pending: nobody has decided{why}")]
    Pending {
        /// The approval.
        id: String,
        /// Why an answer in it does not count: empty, or the rest of the sentence.
        why: String,
    },
    /// The key cannot be used.
    #[error("decisions are signed with {}, and {problem}", path.display())]
    Key {
        /// The key's file.
        path: PathBuf,
        /// What is wrong with it, and the fix.
        problem: String,
    },
    /// There is no place for a key.
    #[error(
        "decisions are signed with a key below XDG_STATE_HOME or HOME, and neither is set; set one of them to an absolute path"
    )]
    NoPlaceForKey,
    /// Somebody else writes, and does not end.
    #[error("the approvals in {} are being written by another process; try again", folder.display())]
    Busy {
        /// Where approvals are kept.
        folder: PathBuf,
    },
    /// The folder or a file in it cannot be used.
    #[error("approvals cannot be kept in {}: {source}; set MISSION_APPROVALS to a folder of yours on a local disk", path.display())]
    Io {
        /// The folder or file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl ApprovalError {
    /// True when something was asked that could not be done however the approval stands.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            ApprovalError::NotKept
                | ApprovalError::NoId { .. }
                | ApprovalError::NoSuchAnswer { .. }
                | ApprovalError::NotAsked { .. }
                | ApprovalError::Nobody
                | ApprovalError::TooLong { .. }
        )
    }

    pub(super) fn io(path: &Path, source: io::Error) -> Self {
        ApprovalError::Io { path: path.to_path_buf(), source }
    }
}
