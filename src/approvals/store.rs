//! The folder of approvals: each file is replaced whole, and only by whoever holds the folder's lock.

use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::{Answer, ApprovalError, Key, Kind, Record, Spent, Standing, State};
use crate::limits;
use crate::sys::clock::{Clock, rfc3339};
use crate::sys::files::{Durability, create_folders, replace_file, sync_folder};
use crate::sys::lock::{Lock, LockError};

/// The state folder of a working directory.
const STATE_FOLDER: &str = ".mission";
/// Its lock.
const LOCK_FILE: &str = "lock";

/// An approval as its file has it and what it comes to, or why it cannot be read.
pub type Looked = Result<(Record, Standing), ApprovalError>;

/// Where approvals are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approvals {
    folder: Option<PathBuf>,
    workspace: PathBuf,
    key: Option<PathBuf>,
}

impl Approvals {
    /// What `MISSION_APPROVALS` says: a folder; `none` or `off` for none; unset or blank for `.mission/approvals` in the working
    /// directory, which is the workspace. `key` is where [`Key::place`] has it.
    pub fn of(word: Option<&str>, workspace: &Path, key: Option<PathBuf>) -> Self {
        let word = word.map(str::trim).unwrap_or_default();
        let folder = match word.to_ascii_lowercase().as_str() {
            "" => Some(workspace.join(STATE_FOLDER).join("approvals")),
            "none" | "off" => None,
            _ => Some(workspace.join(word)),
        };
        Self { folder, workspace: workspace.to_path_buf(), key }
    }

    /// Whether any are kept.
    pub fn is_kept(&self) -> bool {
        self.folder.is_some()
    }

    fn folder(&self) -> Result<&Path, ApprovalError> {
        self.folder.as_deref().ok_or(ApprovalError::NotKept)
    }

    fn key(&self) -> Result<Option<Key>, ApprovalError> {
        self.key.as_ref().map_or(Ok(None), |path| Key::read(path, &self.workspace))
    }

    /// Asks for an approval. One that is there for the same call stays as it is, decided or not.
    ///
    /// # Errors
    /// When it cannot be written, or its id is taken by another call.
    pub fn propose(&self, record: Record, clock: &dyn Clock) -> Result<(), ApprovalError> {
        let folder = self.folder()?;
        let touched = create_folders(folder).map_err(|source| ApprovalError::io(folder, source))?;
        let path = self.path(&record.approval_id)?;
        let _held = self.lock(folder)?;
        match self.read(&record.approval_id) {
            Ok(there) if there.is_same(&record) => return Ok(()),
            Ok(_) => {
                let problem = "it is about another call".to_owned();
                return Err(ApprovalError::Unreadable { path, problem });
            }
            Err(ApprovalError::Missing { .. }) => {}
            Err(error) => return Err(error),
        }
        let record = Record { requested_at: rfc3339(clock.utc()), ..record.asked() };
        self.write(&record)?;
        touched.iter().try_for_each(|folder| sync_folder(folder)).map_err(|source| ApprovalError::io(folder, source))
    }

    /// An approval as its file has it.
    ///
    /// # Errors
    /// When there is none, or it cannot be read.
    pub fn read(&self, id: &str) -> Result<Record, ApprovalError> {
        let path = self.path(id)?;
        let unreadable = |problem: String| ApprovalError::Unreadable { path: path.clone(), problem };
        let file = std::fs::OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(&path);
        let file = file.map_err(|error| match error.kind() {
            ErrorKind::NotFound => ApprovalError::Missing { id: id.to_owned(), folder: self.folder.clone().unwrap_or_default() },
            _ => unreadable(error.to_string()),
        })?;
        let facts = file.metadata().map_err(|error| unreadable(error.to_string()))?;
        if !facts.is_file() || facts.len() > limits::APPROVAL_BYTES {
            return Err(unreadable(format!("it is no file of at most {} bytes", limits::APPROVAL_BYTES)));
        }
        let mut bytes = Vec::new();
        file.take(limits::APPROVAL_BYTES).read_to_end(&mut bytes).map_err(|error| unreadable(error.to_string()))?;
        let record: Record = serde_json::from_slice(&bytes).map_err(|error| unreadable(error.to_string()))?;
        if record.approval_id == id { Ok(record) } else { Err(unreadable(format!("it says that it is {}", record.approval_id))) }
    }

    /// What an approval comes to now.
    ///
    /// # Errors
    /// When there is none, or it or the key cannot be read.
    pub fn look(&self, id: &str, clock: &dyn Clock) -> Looked {
        let record = self.read(id)?;
        let standing = record.standing(self.key()?.as_ref(), &rfc3339(clock.utc()));
        Ok((record, standing))
    }

    /// All of them, those first that were asked for first; a file that cannot be read is given as its error.
    ///
    /// # Errors
    /// When the folder or the key cannot be read.
    pub fn list(&self, clock: &dyn Clock) -> Result<Vec<Looked>, ApprovalError> {
        let folder = self.folder()?;
        let entries = match std::fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(ApprovalError::io(folder, source)),
        };
        let (key, now) = (self.key()?, rfc3339(clock.utc()));
        let mut all = Vec::new();
        for entry in entries.take(limits::size(limits::APPROVALS_LISTED)) {
            let name = entry.map_err(|source| ApprovalError::io(folder, source))?.file_name();
            let Some(id) = name.to_str().and_then(|name| name.strip_suffix(".json")).filter(|id| is_id(id)) else { continue };
            all.push(self.read(id).map(|record| {
                let standing = record.standing(key.as_ref(), &now);
                (record, standing)
            }));
        }
        all.sort_by_key(|one| one.as_ref().map_or_else(|_| String::new(), |(record, _)| record.requested_at.clone()));
        Ok(all)
    }

    /// Writes down what a person said. Once.
    ///
    /// # Errors
    /// When it is decided, spent or over, the answer does not fit, nobody is named, or it cannot be signed or written.
    pub fn decide(&self, id: &str, answer: Answer, by: &str, note: &str, clock: &dyn Clock) -> Result<Record, ApprovalError> {
        let by = by.trim();
        if by.is_empty() {
            return Err(ApprovalError::Nobody);
        }
        let _held = self.lock_for(id)?;
        let (mut record, standing) = self.look(id, clock)?;
        match standing {
            Standing::Pending | Standing::Unsigned(_) => {}
            Standing::Decided(answer) | Standing::Spent(answer, _) => {
                return Err(ApprovalError::Decided {
                    id: id.to_owned(),
                    state: record.state.word(),
                    by: record.decided_by,
                    answer: answer.word().to_owned(),
                    at: record.decided_at,
                });
            }
            Standing::Expired => return Err(ApprovalError::Over { id: id.to_owned(), state: "expired" }),
            Standing::Abandoned => return Err(ApprovalError::Over { id: id.to_owned(), state: State::Abandoned.word() }),
        }
        let answer = match (record.kind, answer) {
            (Kind::Reconcile, Answer::Refuse) => Answer::Abandon,
            (Kind::Reconcile, Answer::Approve) => {
                return Err(ApprovalError::NoSuchAnswer { id: id.to_owned(), answer: answer.word() });
            }
            (Kind::Gate, Answer::Done | Answer::Retry | Answer::Abandon) => {
                return Err(ApprovalError::NotAsked { id: id.to_owned(), answer: answer.word() });
            }
            (_, answer) => answer,
        };
        let path = self.key.as_ref().ok_or(ApprovalError::NoPlaceForKey)?;
        let key = Key::read_or_make(path, &self.workspace)?;
        record.spent_by = None;
        record.decide(answer, by, note.trim(), &rfc3339(clock.utc()), &key);
        self.write(&record)?;
        Ok(record)
    }

    /// Acts upon an answer: from here on it is this run's and this call's. Doing it again for the same call is no error.
    ///
    /// # Errors
    /// When nobody has decided, it is over, or another call has spent it.
    pub fn spend(&self, id: &str, spent: &Spent, clock: &dyn Clock) -> Result<Record, ApprovalError> {
        let _held = self.lock_for(id)?;
        let (mut record, standing) = self.look(id, clock)?;
        match standing {
            Standing::Decided(_) => {
                record.state = State::Spent;
                record.spent_at = rfc3339(clock.utc());
                record.spent_by = Some(spent.clone());
                self.write(&record)?;
                Ok(record)
            }
            Standing::Spent(_, by) if by == *spent => Ok(record),
            Standing::Spent(_, by) => Err(ApprovalError::Spent { id: id.to_owned(), run: by.run }),
            Standing::Pending => Err(ApprovalError::Pending { id: id.to_owned(), why: String::new() }),
            Standing::Unsigned(why) => Err(ApprovalError::Pending { id: id.to_owned(), why: format!("; {why}") }),
            Standing::Expired => Err(ApprovalError::Over { id: id.to_owned(), state: "expired" }),
            Standing::Abandoned => Err(ApprovalError::Over { id: id.to_owned(), state: State::Abandoned.word() }),
        }
    }

    /// The file of an approval, whether it is there or not.
    ///
    /// # Errors
    /// When none are kept, or the word is no id.
    pub fn file(&self, id: &str) -> Result<PathBuf, ApprovalError> {
        self.path(id)
    }

    fn path(&self, id: &str) -> Result<PathBuf, ApprovalError> {
        if !is_id(id) {
            return Err(ApprovalError::NoId { id: id.chars().take(limits::size(limits::APPROVAL_ID_SHOWN)).collect() });
        }
        Ok(self.folder()?.join(format!("{id}.json")))
    }

    fn write(&self, record: &Record) -> Result<(), ApprovalError> {
        let path = self.path(&record.approval_id)?;
        let mut text = serde_json::to_vec(record).map_err(|error| ApprovalError::io(&path, error.into()))?;
        text.push(b'\n');
        replace_file(&path, &text, Durability::Synced).map_err(|source| ApprovalError::io(&path, source))
    }

    fn lock_for(&self, id: &str) -> Result<Lock, ApprovalError> {
        let folder = self.folder()?;
        // Without a folder there is nothing to lock, and no such approval.
        self.read(id)?;
        self.lock(folder)
    }

    /// Takes the folder's lock: from looking to writing nobody else does either.
    fn lock(&self, folder: &Path) -> Result<Lock, ApprovalError> {
        let path = folder.join(LOCK_FILE);
        let until = Instant::now().checked_add(Duration::from_millis(limits::APPROVALS_LOCK_MS));
        loop {
            match Lock::take(&path) {
                Ok(lock) => return Ok(lock),
                Err(LockError::Held(_)) if until.is_some_and(|until| Instant::now() < until) => {
                    std::thread::sleep(Duration::from_millis(limits::APPROVALS_LOCK_PAUSE_MS));
                }
                Err(LockError::Held(_)) => return Err(ApprovalError::Busy { folder: folder.to_path_buf() }),
                Err(LockError::Unsupported(source) | LockError::Io(source)) => return Err(ApprovalError::io(&path, source)),
            }
        }
    }
}

/// `ap_` with letters and digits: a name that leads nowhere else.
fn is_id(word: &str) -> bool {
    word.strip_prefix("ap_")
        .is_some_and(|rest| (1..=64).contains(&rest.len()) && rest.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
