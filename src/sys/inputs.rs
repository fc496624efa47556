//! Descriptors that the caller gave us to read from (`-`, `fd:N`, a path): checked at the door, closed to every child.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::descriptors::DescriptorError;

/// Something opened for reading. It is closed to every child.
#[derive(Debug)]
pub struct Input {
    /// How the command line names it: for messages.
    pub name: String,
    descriptor: OwnedFd,
    /// Where another writer may come when the last one has gone: a FIFO.
    again: Option<PathBuf>,
}

/// What came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Came {
    /// So many bytes.
    Bytes(usize),
    /// The last writer went away; another one may come.
    WriterGone,
    /// Nothing more comes, or nobody waits for it any more.
    End,
}

impl Input {
    /// An input that was checked. A FIFO that others can open by a name is read anew for every writer.
    pub(super) fn of(name: String, descriptor: OwnedFd, path: Option<&Path>) -> Self {
        let facts = nix::sys::stat::fstat(&descriptor);
        let is_fifo = facts.is_ok_and(|facts| facts.st_mode & libc::S_IFMT == libc::S_IFIFO);
        let link = PathBuf::from(format!("/proc/self/fd/{}", descriptor.as_raw_fd()));
        let is_named = |link: &Path| std::fs::read_link(link).is_ok_and(|target| target.is_absolute());
        let again = match path {
            Some(path) => Some(path.to_path_buf()),
            None => Some(link).filter(|link| is_named(link)),
        };
        Self { name, descriptor, again: again.filter(|_| is_fifo) }
    }

    /// Waits for more, and reads it. Ends as well when nobody reads the other end of `end` any more.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read(&mut self, buffer: &mut [u8], end: BorrowedFd<'_>) -> io::Result<Came> {
        let mut polled = [PollFd::new(self.descriptor.as_fd(), PollFlags::POLLIN), PollFd::new(end, PollFlags::empty())];
        match poll(&mut polled, PollTimeout::NONE) {
            Ok(_) => {}
            Err(errno) => return Err(errno.into()),
        }
        let [_, ended] = polled;
        if ended.revents().is_some_and(|events| !events.is_empty()) {
            return Ok(Came::End);
        }
        match nix::unistd::read(&self.descriptor, buffer) {
            Ok(0) => self.writer_gone(),
            Ok(size) => Ok(Came::Bytes(size)),
            Err(Errno::EAGAIN) => Err(io::ErrorKind::Interrupted.into()),
            // The other end was closed with something unread in it, or the terminal is gone.
            Err(Errno::ECONNRESET | Errno::EIO) => Ok(Came::End),
            Err(errno) => Err(errno.into()),
        }
    }

    /// The FIFO is opened anew before the old one is closed: what the next writer has written meanwhile is kept, and nothing is told of the
    /// one that went.
    fn writer_gone(&mut self) -> io::Result<Came> {
        let Some(path) = &self.again else { return Ok(Came::End) };
        match open_fifo(path) {
            Ok(file) => {
                self.descriptor = OwnedFd::from(file);
                // The number may be another one now; the name is that of the same FIFO.
                if path.starts_with("/proc/self/fd") {
                    self.again = Some(PathBuf::from(format!("/proc/self/fd/{}", self.descriptor.as_raw_fd())));
                }
                Ok(Came::WriterGone)
            }
            // Nobody can come any more.
            Err(_) => Ok(Came::End),
        }
    }
}

/// Opens a FIFO without waiting for its writer.
fn open_fifo(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC).open(path)?;
    match file.metadata()?.file_type().is_fifo() {
        true => Ok(file),
        false => Err(io::ErrorKind::InvalidInput.into()),
    }
}

/// Opens what a path names for reading: a FIFO without waiting for its writer.
pub(super) fn open_path(flag: &str, word: &str, path: &Path) -> Result<OwnedFd, DescriptorError> {
    let refused = |source: io::Error| {
        let fix = match source.kind() {
            io::ErrorKind::NotFound => "make it first (`mkfifo`)",
            io::ErrorKind::PermissionDenied => "choose one that you may read",
            _ => "name a FIFO, a file or a descriptor",
        };
        DescriptorError::OpenInput { flag: flag.to_owned(), word: word.to_owned(), fix, source }
    };
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path).map_err(refused)?;
    if file.metadata().map_err(refused)?.is_dir() {
        return Err(DescriptorError::Folder { flag: flag.to_owned(), word: word.to_owned() });
    }
    Ok(OwnedFd::from(file))
}

/// Whether nobody is at the other end of a pipe any more, within this time.
pub fn is_gone_within(end: BorrowedFd<'_>, time: Duration) -> bool {
    let mut polled = [PollFd::new(end, PollFlags::empty())];
    let timeout = PollTimeout::try_from(time).unwrap_or(PollTimeout::MAX);
    // An interrupted wait is a shorter one.
    poll(&mut polled, timeout).is_ok_and(|ready| ready > 0)
}

/// Waits until nobody is at the other end of a pipe, a socket or a terminal. False for what has no other end: a file.
pub fn is_gone(end: BorrowedFd<'_>) -> bool {
    let gone = PollFlags::POLLERR | PollFlags::POLLHUP;
    let is_file = nix::sys::stat::fstat(end).is_ok_and(|facts| facts.st_mode & libc::S_IFMT == libc::S_IFREG);
    if is_file {
        return false;
    }
    loop {
        let mut polled = [PollFd::new(end, PollFlags::empty())];
        match poll(&mut polled, PollTimeout::NONE) {
            Ok(_) => return polled.iter().any(|each| each.revents().is_some_and(|events| events.intersects(gone))),
            Err(Errno::EINTR) => {}
            Err(_) => return false,
        }
    }
}
