//! An audit file that is open.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use mission_contract::audit::{AuditChain, AuditLine};
use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};

use super::{AuditError, Place};
use crate::limits;
use crate::sys::clock::{Clock, rfc3339};
use crate::sys::files::{FILE_MODE, create_file, sync_folder};

/// See the module's doc. Several processes may have it open: each line is written under the file's lock, behind whatever is there.
pub struct AuditFile {
    path: PathBuf,
    file: File,
    clock: Arc<dyn Clock>,
    chain: AuditChain,
    /// Length of the file behind our last line.
    length: u64,
    is_new: bool,
    /// Others may write into it too.
    is_shared: bool,
    /// Wakes the thread that syncs.
    wake: Option<SyncSender<()>>,
    /// Ends when that thread does.
    ended: Receiver<()>,
    failed: Arc<Mutex<Option<io::Error>>>,
}

impl AuditFile {
    /// Opens the file of a place (0600), or none. What a crash left of a line is moved aside.
    ///
    /// # Errors
    /// When it cannot be written, or is no audit file.
    pub fn open(place: Place, clock: Arc<dyn Clock>) -> Result<Option<Self>, AuditError> {
        // A new file is ours alone: it needs no lock, which not every file system has.
        let is_shared = matches!(place, Place::File(_));
        let Some(path) = place.file(clock.as_ref())? else { return Ok(None) };
        let failed = |source| AuditError::Io { path: path.clone(), source };
        let (file, is_new) = match create_file(&path) {
            Ok(file) => (file, true),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => (append_to(&path).map_err(failed)?, false),
            Err(error) => return Err(failed(error)),
        };
        let syncing = file.try_clone().map_err(failed)?;
        let (wake, woken) = sync_channel(1);
        let (ends, ended) = sync_channel(0);
        let folder = path.parent().filter(|_| is_new).map(Path::to_owned);
        let trouble = Arc::new(Mutex::new(None));
        let noted = Arc::clone(&trouble);
        std::thread::Builder::new()
            .name("audit".to_owned())
            .spawn(move || {
                if let Err(error) = sync_behind(&syncing, folder.as_deref(), &woken) {
                    *noted.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(error);
                }
                drop(ends);
            })
            .map_err(failed)?;
        let chain = AuditChain::default();
        let mut audit = Self { path, file, clock, chain, length: 0, is_new, is_shared, wake: Some(wake), ended, failed: trouble };
        audit.under_lock(|audit| audit.catch_up())?;
        Ok(Some(audit))
    }

    /// Where it is, as `audit_ref` says it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it, where it is new and holds nothing: the run was refused after all.
    pub fn discard(self) {
        if self.is_new && self.length == 0 {
            drop(std::fs::remove_file(&self.path));
        }
    }

    /// Writes a line; its number, time and place in the chain are set here. Nothing is waited for but other writers.
    ///
    /// # Errors
    /// When it is not written, or one before could not be synced.
    pub fn append(&mut self, mut line: AuditLine) -> Result<(), AuditError> {
        self.trouble()?;
        line.timestamp = rfc3339(self.clock.utc());
        self.under_lock(|audit| {
            audit.catch_up()?;
            let mut bytes = Vec::new();
            let mut chain = audit.chain.clone();
            chain.write(line, &mut bytes).map_err(|problem| AuditError::Line { path: audit.path.clone(), problem })?;
            if let Err(error) = audit.file.write_all(&bytes) {
                // Half a line is none.
                drop(audit.file.set_len(audit.length));
                return Err(audit.failed(error));
            }
            audit.chain = chain;
            audit.length = audit.length.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
            Ok(())
        })?;
        match self.wake.as_ref().map(|wake| wake.try_send(())) {
            // It is awake already, and will sync this line too.
            Some(Ok(()) | Err(TrySendError::Full(()))) => Ok(()),
            Some(Err(TrySendError::Disconnected(()))) | None => self.trouble(),
        }
    }

    /// Ends it: everything is synced.
    ///
    /// # Errors
    /// When it is not, or not in time.
    pub fn close(mut self) -> Result<(), AuditError> {
        self.wake = None;
        let wait = Duration::from_millis(limits::AUDIT_CLOSE_MS);
        if let Err(RecvTimeoutError::Timeout) = self.ended.recv_timeout(wait) {
            return Err(self.failed(io::Error::from(ErrorKind::TimedOut)));
        }
        self.trouble()
    }

    fn failed(&self, source: io::Error) -> AuditError {
        AuditError::Io { path: self.path.clone(), source }
    }

    /// What came of the syncs so far.
    fn trouble(&self) -> Result<(), AuditError> {
        let noted = self.failed.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match noted.as_ref() {
            None => Ok(()),
            Some(error) => Err(self.failed(io::Error::new(error.kind(), error.to_string()))),
        }
    }

    fn under_lock(&mut self, work: impl FnOnce(&mut Self) -> Result<(), AuditError>) -> Result<(), AuditError> {
        if !self.is_shared {
            return work(self);
        }
        let mut file = self.file.try_clone().map_err(|error| self.failed(error))?;
        let until = Instant::now().checked_add(Duration::from_millis(limits::AUDIT_LOCK_MS));
        let lock = loop {
            match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
                Ok(lock) => break lock,
                Err((busy, Errno::EWOULDBLOCK)) if until.is_some_and(|until| Instant::now() < until) => {
                    file = busy;
                    std::thread::sleep(Duration::from_millis(limits::AUDIT_LOCK_PAUSE_MS));
                }
                Err((_, Errno::EWOULDBLOCK)) => return Err(AuditError::Busy { path: self.path.clone() }),
                Err((_, errno)) => return Err(self.failed(errno.into())),
            }
        };
        let done = work(self);
        drop(lock);
        done
    }

    /// Takes up what others wrote, and moves aside what is left of a line that was not written whole.
    fn catch_up(&mut self) -> Result<(), AuditError> {
        let facts = self.file.metadata().map_err(|error| self.failed(error))?;
        if facts.nlink() == 0 {
            return Err(self.failed(io::Error::new(ErrorKind::NotFound, "it was removed")));
        }
        let length = facts.len();
        if length == self.length {
            return Ok(());
        }
        let most = limits::AUDIT_LINE_BYTES;
        // The last line whole, and what may follow it.
        let from = length.saturating_sub(most.saturating_mul(2));
        let mut tail = vec![0; limits::size(length.saturating_sub(from))];
        self.file.read_exact_at(&mut tail, from).map_err(|error| self.failed(error))?;
        let end = tail.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at.saturating_add(1));
        let (lines, torn) = tail.split_at_checked(end).unwrap_or((&tail, &[]));
        let whole = from.saturating_add(u64::try_from(end).unwrap_or(u64::MAX));
        let last = lines.strip_suffix(b"\n").unwrap_or(lines);
        let begins = last.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at.saturating_add(1));
        if !torn.is_empty() && from > 0 && end == 0 || begins == 0 && from > 0 {
            return Err(AuditError::TooLong { path: self.path.clone(), most });
        }
        let last = last.get(begins..).unwrap_or_default();
        self.chain = match last.is_empty() {
            true => AuditChain::default(),
            false => AuditChain::behind(last).map_err(|problem| AuditError::Foreign { path: self.path.clone(), problem })?,
        };
        if !torn.is_empty() {
            self.move_aside(torn).and_then(|()| self.file.set_len(whole)).map_err(|error| self.failed(error))?;
        }
        self.length = whole;
        Ok(())
    }

    fn move_aside(&self, torn: &[u8]) -> io::Result<()> {
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".torn-{}", self.chain.seq().saturating_add(1)));
        let mut aside = OpenOptions::new().append(true).create(true).mode(FILE_MODE).open(PathBuf::from(name))?;
        aside.write_all(torn)?;
        aside.sync_all()
    }
}

/// Opens a file that is there; only a regular one can be synced and locked.
fn append_to(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).append(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is no regular file")) }
}

/// Syncs what was written, a moment after it was, until nothing more comes; first the folder in which the file is new.
fn sync_behind(file: &File, mut folder: Option<&Path>, woken: &Receiver<()>) -> io::Result<()> {
    while woken.recv().is_ok() {
        // What comes meanwhile is synced with it; the end is not waited out.
        let is_over =
            matches!(woken.recv_timeout(Duration::from_millis(limits::AUDIT_SYNC_MS)), Err(RecvTimeoutError::Disconnected));
        if let Some(folder) = folder.take() {
            sync_folder(folder)?;
        }
        file.sync_data()?;
        if is_over {
            break;
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
