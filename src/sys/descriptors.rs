//! Descriptors that the caller gave us (`-`, `fd:N`, a path): checked at the door, closed to every child.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::inputs::{self, Input};
use super::standard;
use crate::limits;

/// Why a descriptor or a path cannot be used: what, where, and the fix. Every one is a refusal at the door.
#[derive(Debug, thiserror::Error)]
pub enum DescriptorError {
    /// The word is none of the three forms.
    #[error("{flag} {word}: {problem}; write `-` for {stream}, `fd:N` for a descriptor, or a path")]
    Form {
        /// The flag.
        flag: String,
        /// What was given.
        word: String,
        /// What is wrong with it.
        problem: &'static str,
        /// What `-` is there.
        stream: &'static str,
    },
    /// A descriptor that has another purpose.
    #[error("{flag} fd:{number}: {what}; use descriptor 3 or above, `-` for {stream}, or a path")]
    Reserved {
        /// The flag.
        flag: String,
        /// The descriptor.
        number: RawFd,
        /// What it is for.
        what: &'static str,
        /// What `-` is there.
        stream: &'static str,
    },
    /// Nothing is open there.
    #[error(
        "{flag} fd:{number}: descriptor {number} is not open in this process; open it when mission is started \
         (in a shell: `{number}>FILE`; in a program: pass it on explicitly), or name a path"
    )]
    Closed {
        /// The flag.
        flag: String,
        /// The descriptor.
        number: RawFd,
    },
    /// It was opened for the other direction.
    #[error("{flag} fd:{number}: descriptor {number} is open for reading only; give the end of the pipe that is written to")]
    ReadOnly {
        /// The flag.
        flag: String,
        /// The descriptor.
        number: RawFd,
    },
    /// It was opened for the other direction.
    #[error("{flag} fd:{number}: descriptor {number} is open for writing only; give the end of the pipe that is read from")]
    WriteOnly {
        /// The flag.
        flag: String,
        /// The descriptor.
        number: RawFd,
    },
    /// It cannot be opened for reading.
    #[error("{flag} {word}: it cannot be opened for reading ({source}); {fix}")]
    OpenInput {
        /// The flag.
        flag: String,
        /// What was given.
        word: String,
        /// What helps.
        fix: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// It is a folder.
    #[error("{flag} {word}: that is a folder; name a file in it, or a descriptor")]
    Folder {
        /// The flag.
        flag: String,
        /// What was given.
        word: String,
    },
    /// It cannot be opened.
    #[error("{flag} {word}: it cannot be opened for writing ({source}); {fix}")]
    Open {
        /// The flag.
        flag: String,
        /// What was given.
        word: String,
        /// What helps.
        fix: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// A FIFO that nobody reads.
    #[error("{flag} {word}: nobody opened this FIFO for reading within {seconds} s; start its reader, or name a file")]
    NoReader {
        /// The flag.
        flag: String,
        /// What was given.
        word: String,
        /// How long was waited.
        seconds: u64,
    },
    /// Two flags name the same thing.
    #[error("{flag} {word}: {other} uses it already; give each its own descriptor or file")]
    Taken {
        /// The flag.
        flag: String,
        /// What was given.
        word: String,
        /// The flag that came first.
        other: String,
    },
}

/// What a word names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// `-`, and `fd:1`: standard output.
    Standard,
    /// `fd:N`.
    Descriptor(RawFd),
    /// Anything else.
    Path(PathBuf),
}

/// Reads `-|fd:N|PATH` as it is typed behind a flag that is written to; opens nothing. A path that is another name of a
/// descriptor of this process (`/dev/stdout`, `/dev/fd/N`) is that descriptor.
pub fn parse_output(flag: &str, word: &str) -> Result<Target, DescriptorError> {
    const STREAM: &str = "standard output";
    if word.trim() == "-" {
        return Ok(Target::Standard);
    }
    let Some(number) = number(flag, word, STREAM)? else { return Ok(Target::Path(PathBuf::from(word))) };
    let what = match number {
        0 => "descriptor 0 is standard input",
        1 => return Ok(Target::Standard),
        2 => "descriptor 2 is for diagnostics",
        _ => return Ok(Target::Descriptor(number)),
    };
    Err(DescriptorError::Reserved { flag: flag.to_owned(), number, what, stream: STREAM })
}

/// The same behind a flag that is read from.
pub fn parse_input(flag: &str, word: &str) -> Result<Target, DescriptorError> {
    const STREAM: &str = "standard input";
    if word.trim() == "-" {
        return Ok(Target::Standard);
    }
    let Some(number) = number(flag, word, STREAM)? else { return Ok(Target::Path(PathBuf::from(word))) };
    let what = match number {
        0 => return Ok(Target::Standard),
        1 => "descriptor 1 is standard output",
        2 => "descriptor 2 is for diagnostics",
        _ => return Ok(Target::Descriptor(number)),
    };
    Err(DescriptorError::Reserved { flag: flag.to_owned(), number, what, stream: STREAM })
}

/// The descriptor that a word names; nothing when it is a path. `stream` is what `-` is there.
fn number(flag: &str, word: &str, stream: &'static str) -> Result<Option<RawFd>, DescriptorError> {
    let form = |problem| DescriptorError::Form { flag: flag.to_owned(), word: word.to_owned(), problem, stream };
    let trimmed = word.trim();
    let digits = match trimmed {
        "" => return Err(form("it is empty")),
        "/dev/stdin" => "0",
        "/dev/stdout" => "1",
        "/dev/stderr" => "2",
        _ => {
            let folders = ["fd:", "/dev/fd/", "/proc/self/fd/"];
            match folders.into_iter().find_map(|folder| trimmed.strip_prefix(folder)) {
                Some(digits) => digits,
                None if trimmed.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("fd:")) => {
                    return Err(form("a descriptor is written `fd:` and its number (a file of that name is `./FD:…`)"));
                }
                None => return Ok(None),
            }
        }
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(form("behind `fd:` stands a number (a file of that name is `./fd:…`)"));
    }
    digits.parse().map(Some).map_err(|_| form("that number is too large for a descriptor"))
}

/// Something opened for writing. It is closed to every child.
#[derive(Debug)]
pub struct Output {
    /// How the command line names it: for messages.
    pub name: String,
    /// The descriptor; ours alone.
    pub descriptor: OwnedFd,
    /// True for standard output, whatever it was called by, and for the file or pipe behind it: the console is silent then.
    pub standard: bool,
}

/// The descriptors that this process was started with, and what they were given out for.
#[derive(Debug)]
pub struct Inherited {
    open: BTreeSet<RawFd>,
    taken: BTreeMap<RawFd, String>,
    files: BTreeMap<(u64, u64), String>,
}

impl Inherited {
    /// Looks at what is open, and closes all of it above 2 to children. To be called first thing in `main`: what is opened
    /// later by ourselves must not pass for something that we were given.
    pub fn guard() -> Self {
        let open = open_descriptors().into_iter().filter(|number| close_on_exec(*number) && !standard::was_closed(*number));
        let open: BTreeSet<RawFd> = open.collect();
        Self { open, taken: BTreeMap::new(), files: BTreeMap::new() }
    }

    /// Opens what a flag names for writing: a path is appended to. Each descriptor and each file is given out once.
    pub fn output(&mut self, flag: &str, word: &str) -> Result<Output, DescriptorError> {
        let target = parse_output(flag, word)?;
        let descriptor = match &target {
            Target::Standard => {
                self.inspect(flag, word, 1)?;
                self.take(flag, word, 1)?;
                io::stdout()
                    .as_fd()
                    .try_clone_to_owned()
                    .map_err(|_| DescriptorError::Closed { flag: flag.to_owned(), number: 1 })?
            }
            Target::Descriptor(number) => self.adopt(flag, word, *number)?,
            Target::Path(path) => self.open_path(flag, word, path)?,
        };
        let standard = target == Target::Standard || self.is_behind_standard(&descriptor);
        Ok(Output { name: word.to_owned(), descriptor, standard })
    }

    /// Opens what a flag names for reading. A socket that is written to already may be read from too: it has two directions.
    pub fn input(&mut self, flag: &str, word: &str) -> Result<Input, DescriptorError> {
        let target = parse_input(flag, word)?;
        let closed = |number| DescriptorError::Closed { flag: flag.to_owned(), number };
        let (number, path) = match &target {
            Target::Standard => (0, None),
            Target::Descriptor(number) => (*number, None),
            Target::Path(path) => {
                let descriptor = inputs::open_path(flag, word, path)?;
                self.take_file(flag, word, &File::from(descriptor.try_clone().map_err(|_| closed(-1))?))?;
                return Ok(Input::of(word.to_owned(), descriptor, Some(path)));
            }
        };
        let status = self.look(flag, word, number)?;
        if status & OFlag::O_ACCMODE == OFlag::O_WRONLY || status.contains(OFlag::O_PATH) {
            return Err(DescriptorError::WriteOnly { flag: flag.to_owned(), number });
        }
        let is_socket = nix::sys::stat::fstat(borrow(number)).is_ok_and(|facts| facts.st_mode & libc::S_IFMT == libc::S_IFSOCK);
        if !is_socket || !self.taken.contains_key(&number) {
            self.take(flag, word, number)?;
        }
        let descriptor = borrow(number).try_clone_to_owned().map_err(|_| closed(number))?;
        Ok(Input::of(word.to_owned(), descriptor, path))
    }

    /// Whether something is the very file, pipe, socket or terminal that standard output is.
    fn is_behind_standard(&self, descriptor: &OwnedFd) -> bool {
        let identity = |facts: nix::sys::stat::FileStat| (facts.st_dev, facts.st_ino, facts.st_rdev);
        let (here, there) = (nix::sys::stat::fstat(descriptor), nix::sys::stat::fstat(io::stdout()));
        self.open.contains(&1) && matches!((here, there), (Ok(here), Ok(there)) if identity(here) == identity(there))
    }

    fn take(&mut self, flag: &str, word: &str, number: RawFd) -> Result<(), DescriptorError> {
        match self.taken.get(&number) {
            Some(other) => Err(DescriptorError::Taken { flag: flag.to_owned(), word: word.to_owned(), other: other.clone() }),
            None => {
                self.taken.insert(number, format!("{flag} {word}"));
                Ok(())
            }
        }
    }

    fn adopt(&mut self, flag: &str, word: &str, number: RawFd) -> Result<OwnedFd, DescriptorError> {
        self.inspect(flag, word, number)?;
        self.take(flag, word, number)?;
        Ok(own(number))
    }

    /// Whether a descriptor was given to us and can be written to.
    fn inspect(&self, flag: &str, word: &str, number: RawFd) -> Result<(), DescriptorError> {
        let status = self.look(flag, word, number)?;
        if status & OFlag::O_ACCMODE == OFlag::O_RDONLY || status.contains(OFlag::O_PATH) {
            return Err(DescriptorError::ReadOnly { flag: flag.to_owned(), number });
        }
        Ok(())
    }

    /// Whether a descriptor was given to us, and how it is open.
    fn look(&self, flag: &str, word: &str, number: RawFd) -> Result<OFlag, DescriptorError> {
        if !self.open.contains(&number) {
            return Err(DescriptorError::Closed { flag: flag.to_owned(), number });
        }
        let borrowed = borrow(number);
        let status = fcntl(borrowed, FcntlArg::F_GETFL)
            .map(OFlag::from_bits_retain)
            .map_err(|_| DescriptorError::Closed { flag: flag.to_owned(), number })?;
        let facts = nix::sys::stat::fstat(borrowed).map_err(|_| DescriptorError::Closed { flag: flag.to_owned(), number })?;
        if facts.st_mode & libc::S_IFMT == libc::S_IFDIR {
            return Err(DescriptorError::Folder { flag: flag.to_owned(), word: word.to_owned() });
        }
        Ok(status)
    }

    /// Notes a file: each is given out once.
    fn take_file(&mut self, flag: &str, word: &str, file: &File) -> Result<(), DescriptorError> {
        let Ok(facts) = file.metadata() else { return Ok(()) };
        if facts.is_file() {
            let identity = (facts.dev(), facts.ino());
            if let Some(other) = self.files.get(&identity) {
                return Err(DescriptorError::Taken { flag: flag.to_owned(), word: word.to_owned(), other: other.clone() });
            }
            self.files.insert(identity, format!("{flag} {word}"));
        }
        Ok(())
    }

    fn open_path(&mut self, flag: &str, word: &str, path: &Path) -> Result<OwnedFd, DescriptorError> {
        let open_error = |source: io::Error| {
            let fix = match source.kind() {
                io::ErrorKind::NotFound => "make the folder first",
                io::ErrorKind::PermissionDenied => "choose a place that you may write to",
                io::ErrorKind::ReadOnlyFilesystem => "choose a place that is not read-only",
                io::ErrorKind::StorageFull => "free some space, or choose another place",
                _ => "choose another place",
            };
            match source.kind() {
                io::ErrorKind::IsADirectory => DescriptorError::Folder { flag: flag.to_owned(), word: word.to_owned() },
                _ => DescriptorError::Open { flag: flag.to_owned(), word: word.to_owned(), fix, source },
            }
        };
        let is_fifo = std::fs::metadata(path).is_ok_and(|facts| facts.file_type().is_fifo());
        let file = if is_fifo { open_fifo(flag, word, path)? } else { append(path) }.map_err(open_error)?;
        self.take_file(flag, word, &file)?;
        Ok(OwnedFd::from(file))
    }
}

fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).open(path)
}

/// Opening a FIFO waits for its reader: on a thread of its own, so that the wait has an end.
fn open_fifo(flag: &str, word: &str, path: &Path) -> Result<io::Result<File>, DescriptorError> {
    let (sender, opened) = mpsc::channel();
    let owned = path.to_path_buf();
    std::thread::spawn(move || sender.send(append(&owned)));
    opened.recv_timeout(Duration::from_millis(limits::FIFO_READER_MS)).map_err(|_| DescriptorError::NoReader {
        flag: flag.to_owned(),
        word: word.to_owned(),
        seconds: limits::FIFO_READER_MS / 1000,
    })
}

/// Numbers of what is open. Without `/proc` only the usual ones can be found.
fn open_descriptors() -> Vec<RawFd> {
    match std::fs::read_dir("/proc/self/fd") {
        // The listing's own descriptor is among them; it is closed again by the time they are looked at.
        Ok(entries) => entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect(),
        Err(_) => (0..256).collect(),
    }
}

/// Closes a descriptor above 2 to children; false when nothing is open there.
fn close_on_exec(number: RawFd) -> bool {
    let Ok(bits) = fcntl(borrow(number), FcntlArg::F_GETFD) else { return false };
    if number > 2 {
        let flags = FdFlag::from_bits_retain(bits) | FdFlag::FD_CLOEXEC;
        // It was open a moment ago; there is no other way for this to fail.
        let _ = fcntl(borrow(number), FcntlArg::F_SETFD(flags));
    }
    true
}

#[allow(unsafe_code)]
fn borrow(number: RawFd) -> BorrowedFd<'static> {
    // SAFETY: only handed to calls that answer EBADF for what is not open; nobody else owns these numbers, as they are
    // looked at before anything of ours is opened.
    unsafe { BorrowedFd::borrow_raw(number) }
}

#[allow(unsafe_code)]
fn own(number: RawFd) -> OwnedFd {
    // SAFETY: it was open when the process started, so no value of ours owns it, and `taken` gives it out once.
    unsafe { OwnedFd::from_raw_fd(number) }
}

/// Writes all of it, however slowly it is taken. Also waits where the other side made the descriptor non-blocking: that is a
/// property of the open file, which may not be ours alone, so it is left as it is.
pub fn write_fully(descriptor: BorrowedFd<'_>, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match nix::unistd::write(descriptor, bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(Errno::EINTR) => {}
            Err(Errno::EAGAIN) => {
                wait_writable(descriptor, PollTimeout::NONE)?;
            }
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}

/// Waits until something can be written; false when the time ran out.
pub fn wait_writable(descriptor: BorrowedFd<'_>, timeout: PollTimeout) -> io::Result<bool> {
    let mut set = [PollFd::new(descriptor, PollFlags::POLLOUT)];
    loop {
        match poll(&mut set, timeout) {
            Ok(ready) => return Ok(ready > 0),
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// Columns of a terminal; nothing when it is none or does not say.
#[allow(unsafe_code)]
pub fn terminal_columns(descriptor: BorrowedFd<'_>) -> Option<usize> {
    let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: the call fills the structure it is given, which lives until it returns.
    let answer = unsafe { libc::ioctl(descriptor.as_raw_fd(), libc::TIOCGWINSZ, &raw mut size) };
    (answer == 0 && size.ws_col > 0).then_some(usize::from(size.ws_col))
}

#[cfg(test)]
#[path = "descriptors_tests.rs"]
mod tests;
