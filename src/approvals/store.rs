//! The folder of approvals: each file is replaced whole, and only by whoever holds the folder's lock.

use std::io::{ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::{Answer, ApprovalError, Key, Kind, Record, Spent, Standing, State};
use crate::limits;
use crate::sys::clock::{Clock, rfc3339};
use crate::sys::files::{Durability, create_folders, ignore_all, remove_leftovers, replace_file, sync_folder};
use crate::sys::lock::{Lock, LockError};

/// The state folder of a working directory.
const STATE_FOLDER: &str = ".mission";
/// Its lock.
const LOCK_FILE: &str = "lock";

/// An approval as its file has it and what it comes to, or why it cannot be read.
pub type Looked = Result<(Record, Standing), ApprovalError>;

/// What a folder of approvals holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// The ids, those first that were asked for first.
    pub ids: Vec<String>,
    /// True when there are more.
    pub more: bool,
}

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

    /// Asks for an approval; it is durable when this returns. One that is there for the same call stays as it is, decided or not. One
    /// that is about another call, or cannot be read, was changed since it was written: whoever asks knows the truth, and asks anew.
    ///
    /// # Errors
    /// When it cannot be written, or another call has spent its id.
    pub fn propose(&self, record: Record, clock: &dyn Clock) -> Result<(), ApprovalError> {
        let folder = self.folder()?;
        let mut touched = create_folders(folder).map_err(|source| ApprovalError::io(folder, source))?;
        let state = self.workspace.join(STATE_FOLDER);
        if folder.starts_with(&state) && ignore_all(&state).map_err(|source| ApprovalError::io(&state, source))? {
            touched.push(state);
        }
        touched.iter().try_for_each(|folder| sync_folder(folder)).map_err(|source| ApprovalError::io(folder, source))?;
        let path = self.path(&record.approval_id)?;
        let _held = self.lock(folder)?;
        // What a killed writer left takes up room and does no harm: where it cannot be removed it stays.
        let _ = remove_leftovers(folder, limits::size(limits::APPROVALS_LISTED));
        let mut record = Record { requested_at: rfc3339(clock.utc()), ..record.asked() };
        record.digest = record.digest_of_what_is_shown();
        match self.read(&record.approval_id) {
            Ok(there) if there.is_same(&record) => return Ok(()),
            Ok(Record { state: State::Spent, .. }) => {
                let problem = "it is about another call, which has spent it".to_owned();
                return Err(ApprovalError::Unreadable { path, problem });
            }
            Ok(_) | Err(ApprovalError::Missing { .. } | ApprovalError::Unreadable { .. }) => {}
            Err(error) => return Err(error),
        }
        self.write(&record)
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
        if record.approval_id != id {
            return Err(unreadable(format!("it says that it is {}", record.approval_id)));
        }
        // A person decides about what they see, and the run acts upon the digest: they are one or nothing.
        if record.digest != record.digest_of_what_is_shown() {
            return Err(unreadable("the call in it is not the one that was asked about: its digest is another".to_owned()));
        }
        Ok(record)
    }

    /// What an approval comes to now.
    ///
    /// # Errors
    /// When there is none, or it cannot be read. A key that cannot be used is no error: no decision counts then.
    pub fn look(&self, id: &str, clock: &dyn Clock) -> Looked {
        let record = self.read(id)?;
        let standing = record.standing(|| self.key(), &rfc3339(clock.utc()));
        Ok((record, standing))
    }

    /// The ids of all of them, those first that were asked for first. Whoever shows them looks at one after the other: each may be large.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn list(&self) -> Result<Listing, ApprovalError> {
        let folder = self.folder()?;
        let entries = match std::fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Listing::default()),
            Err(source) => return Err(ApprovalError::io(folder, source)),
        };
        let most = limits::size(limits::APPROVALS_LISTED);
        let mut listing = Listing::default();
        let mut all = Vec::new();
        for entry in entries {
            let name = entry.map_err(|source| ApprovalError::io(folder, source))?.file_name();
            let Some(id) = name.to_str().and_then(|name| name.strip_suffix(".json")).filter(|id| is_id(id)) else { continue };
            if all.len() >= most {
                listing.more = true;
                break;
            }
            all.push((self.read(id).map(|record| record.requested_at).unwrap_or_default(), id.to_owned()));
        }
        all.sort();
        listing.ids = all.into_iter().map(|(_, id)| id).collect();
        Ok(listing)
    }

    /// Writes down what a person said. Once.
    ///
    /// # Errors
    /// When it is decided, spent or over, the answer does not fit, nobody is named, or it cannot be signed or written.
    pub fn decide(&self, id: &str, answer: Answer, by: &str, note: &str, clock: &dyn Clock) -> Result<Record, ApprovalError> {
        let (by, note) = (by.trim(), note.trim());
        if by.is_empty() {
            return Err(ApprovalError::Nobody);
        }
        within(by, "the name of whoever decides", limits::APPROVAL_BY_CHARACTERS)?;
        within(note, "the note", limits::APPROVAL_NOTE_CHARACTERS)?;
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
        record.decide(answer, by, note, &rfc3339(clock.utc()), &key);
        self.write(&record)?;
        Ok(record)
    }

    /// Acts upon an answer: from here on it is this run's and this call's; durable when this returns. Doing it again for the same call is
    /// no error: whether that was made, its run's log says. `digest` is that of the call.
    ///
    /// # Errors
    /// When nobody has decided, it is over, it is about another call, or another call has spent it: then nothing is done.
    pub fn spend(&self, id: &str, spent: &Spent, digest: &str, clock: &dyn Clock) -> Result<Record, ApprovalError> {
        let _held = self.lock_for(id)?;
        let (mut record, standing) = self.look(id, clock)?;
        if record.digest != digest {
            return Err(ApprovalError::OtherCall { id: id.to_owned() });
        }
        match standing {
            Standing::Decided(_) => {
                record.state = State::Spent;
                record.spent_at = rfc3339(clock.utc());
                record.spent_by = Some(spent.clone());
            }
            // Written again: it may be that it never became durable.
            Standing::Spent(_, by) if by == *spent => {}
            Standing::Spent(_, by) => return Err(ApprovalError::Spent { id: id.to_owned(), run: by.run }),
            Standing::Pending => return Err(ApprovalError::Pending { id: id.to_owned(), why: String::new() }),
            Standing::Unsigned(why) => return Err(ApprovalError::Pending { id: id.to_owned(), why: format!("; {why}") }),
            Standing::Expired => return Err(ApprovalError::Over { id: id.to_owned(), state: "expired" }),
            Standing::Abandoned => {
                return Err(ApprovalError::Over { id: id.to_owned(), state: State::Abandoned.word() });
            }
        }
        self.write(&record)?;
        Ok(record)
    }

    /// Gives an approval up, since its run ended for good. One that was refused or acted upon stays as it is.
    ///
    /// # Errors
    /// When there is none, or it cannot be read or written.
    pub fn void(&self, id: &str, clock: &dyn Clock) -> Result<(), ApprovalError> {
        let _held = self.lock_for(id)?;
        let (record, standing) = self.look(id, clock)?;
        let stays = match standing {
            Standing::Pending | Standing::Unsigned(_) | Standing::Expired => false,
            Standing::Decided(answer) => !answer.permits(),
            Standing::Spent(..) | Standing::Abandoned => true,
        };
        if stays { Ok(()) } else { self.write(&Record { state: State::Abandoned, ..record }) }
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
        if u64::try_from(text.len()).unwrap_or(u64::MAX) > limits::APPROVAL_BYTES {
            return Err(ApprovalError::TooLarge { most: limits::APPROVAL_BYTES });
        }
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

fn within(text: &str, what: &'static str, most: u64) -> Result<(), ApprovalError> {
    if text.chars().count() > limits::size(most) { Err(ApprovalError::TooLong { what, most }) } else { Ok(()) }
}

/// `ap_` with letters and digits: a name that leads nowhere else.
fn is_id(word: &str) -> bool {
    word.strip_prefix("ap_")
        .is_some_and(|rest| (1..=64).contains(&rest.len()) && rest.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
