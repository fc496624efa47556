//! One writer: a lock file that is held for the life of a process, and says who holds it.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use serde::{Deserialize, Serialize};

use crate::limits;
use crate::sys::files::FILE_MODE;

/// Who holds a lock, as its file says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Process id.
    pub pid: u32,
    /// Host name.
    pub host: String,
    /// The kernel's id of this boot: a process id of another one means nothing.
    pub boot_id: String,
    /// Number of the holder's stretch of the run, from 1.
    pub epoch: u64,
}

impl Holder {
    /// This process, in the given stretch.
    pub fn this_process(epoch: u64) -> Self {
        Self {
            pid: std::process::id(),
            host: host_name(),
            boot_id: std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
                .map(|text| text.trim().to_owned())
                .unwrap_or_default(),
            epoch,
        }
    }
}

impl std::fmt::Display for Holder {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "process {} on {}", self.pid, self.host)
    }
}

/// This host's name.
pub fn host_name() -> String {
    nix::unistd::gethostname().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Why a lock was not taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Somebody else holds it.
    #[error("it is held by {}", .0.as_ref().map_or_else(|| "another process".to_owned(), ToString::to_string))]
    Held(Option<Holder>),
    /// The file system has no locks.
    #[error("its file system cannot lock files ({0})")]
    Unsupported(io::Error),
    /// The lock file could not be opened or written.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// What a look at a lock sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Look {
    /// Nobody holds it.
    Free,
    /// Somebody does, and has signed or not yet.
    Held(Option<Holder>),
}

/// A lock that is held until this value, or the process, is gone. The kernel frees it: no crash leaves one behind.
#[derive(Debug)]
pub struct Lock {
    file: Flock<File>,
}

impl Lock {
    /// Takes the lock, at once or not at all. The file is made (0600) when it is missing.
    pub fn take(path: &Path) -> Result<Self, LockError> {
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(FILE_MODE).open(path)?;
        let mut looks = 0;
        let taken = loop {
            match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
                // Somebody may only be looking, which is over in a moment.
                Err((busy, Errno::EWOULDBLOCK)) if looks < limits::LOCK_LOOKS => {
                    looks = looks.saturating_add(1);
                    file = busy;
                    std::thread::sleep(Duration::from_millis(limits::LOCK_LOOK_MS));
                }
                taken => break taken,
            }
        };
        match taken {
            Ok(file) => Ok(Self { file }),
            Err((mut file, Errno::EWOULDBLOCK)) => Err(LockError::Held(read_holder(&mut file))),
            Err((_, errno @ (Errno::ENOLCK | Errno::EOPNOTSUPP | Errno::ENOSYS | Errno::EINVAL))) => {
                Err(LockError::Unsupported(errno.into()))
            }
            Err((_, errno)) => Err(LockError::Io(errno.into())),
        }
    }

    /// Looks whether somebody holds it. Nothing is made, and whoever wants the lock is not kept from it for longer than the look.
    pub fn look(path: &Path) -> io::Result<Look> {
        let file = match OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW).open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Look::Free),
            file => file?,
        };
        match Flock::lock(file, FlockArg::LockSharedNonblock) {
            Ok(_) => Ok(Look::Free),
            Err((mut file, Errno::EWOULDBLOCK)) => Ok(Look::Held(read_holder(&mut file))),
            Err((_, errno)) => Err(errno.into()),
        }
    }

    /// Who signed it last, this process or one before it.
    pub fn holder(&mut self) -> Option<Holder> {
        self.file.seek(SeekFrom::Start(0)).ok()?;
        read_holder(&mut self.file)
    }

    /// Writes who holds it, for whoever is refused.
    pub fn sign(&mut self, holder: &Holder) -> io::Result<()> {
        let text = serde_json::to_vec(holder)?;
        self.file.set_len(0)?;
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(&text)
    }
}

/// Who holds it; nothing when the holder has not signed yet.
fn read_holder(file: &mut File) -> Option<Holder> {
    let mut text = String::new();
    file.take(limits::LOCK_FILE_BYTES).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_second_taker_is_told_who_holds_it_and_the_end_of_the_holder_frees_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let mut lock = Lock::take(&path).unwrap();
        assert!(matches!(Lock::take(&path), Err(LockError::Held(None))));
        lock.sign(&Holder { epoch: 10, ..Holder::this_process(10) }).unwrap();
        lock.sign(&Holder::this_process(3)).unwrap();
        assert_eq!(lock.holder(), Some(Holder::this_process(3)));
        match Lock::take(&path) {
            Err(LockError::Held(Some(holder))) => {
                assert_eq!((holder.pid, holder.epoch), (std::process::id(), 3));
                assert!(!holder.boot_id.is_empty());
            }
            other => assert!(matches!(other, Err(LockError::Held(Some(_)))), "{other:?}"),
        }
        drop(lock);
        Lock::take(&path).unwrap();
    }

    #[test]
    fn a_look_sees_the_holder_and_keeps_nobody_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        assert_eq!(Lock::look(&path).unwrap(), Look::Free);
        assert!(!path.exists(), "nothing is made");
        let mut lock = Lock::take(&path).unwrap();
        lock.sign(&Holder::this_process(2)).unwrap();
        assert_eq!(Lock::look(&path).unwrap(), Look::Held(Some(Holder::this_process(2))));
        drop(lock);
        assert_eq!(Lock::look(&path).unwrap(), Look::Free);
        // Whoever takes it waits for the end of a look.
        let looking = Flock::lock(File::open(&path).unwrap(), FlockArg::LockSharedNonblock).unwrap();
        let (begins, begun) = std::sync::mpsc::channel();
        let taking = std::thread::spawn(move || {
            begins.send(()).unwrap();
            Lock::take(&path).map(drop)
        });
        begun.recv().unwrap();
        drop(looking);
        taking.join().unwrap().unwrap();
    }
}
