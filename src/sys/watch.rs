//! Waiting until files change: the kernel says so where it can, and somebody looks from time to time in any case.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify};

/// What ended a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// Something happened to one of the files.
    Changed,
    /// Whoever reads our output went away.
    ReaderGone,
    /// Nothing happened for as long as was to be waited.
    Nothing,
}

/// Watches files. Where the kernel does not tell (a network file system, too many watches), every wait ends by its time.
#[derive(Debug)]
pub struct Watch {
    inotify: Option<Inotify>,
}

impl Watch {
    /// Watches these files from now on. One that is not there is left out.
    pub fn on<'p>(paths: impl IntoIterator<Item = &'p Path>) -> Self {
        let flags = AddWatchFlags::IN_MODIFY
            | AddWatchFlags::IN_CLOSE_WRITE
            | AddWatchFlags::IN_ATTRIB
            | AddWatchFlags::IN_MOVE_SELF
            | AddWatchFlags::IN_DELETE_SELF;
        let inotify = Inotify::init(InitFlags::IN_CLOEXEC | InitFlags::IN_NONBLOCK).ok();
        if let Some(inotify) = &inotify {
            for path in paths {
                // What cannot be watched is looked at when the time is over.
                let _ = inotify.add_watch(path, flags);
            }
        }
        Self { inotify }
    }

    /// Waits until one of the files changes, `reader` has nobody at its other end, or the time is over.
    ///
    /// # Errors
    /// When the system cannot wait.
    pub fn wait(&self, reader: BorrowedFd<'_>, time: Duration) -> io::Result<Woken> {
        let timeout = PollTimeout::try_from(time).unwrap_or(PollTimeout::MAX);
        let mut polled = vec![PollFd::new(reader, PollFlags::empty())];
        polled.extend(self.inotify.iter().map(|inotify| PollFd::new(inotify.as_fd(), PollFlags::POLLIN)));
        match poll(&mut polled, timeout) {
            Ok(0) => return Ok(Woken::Nothing),
            Ok(_) => {}
            Err(Errno::EINTR) => return Ok(Woken::Changed),
            Err(errno) => return Err(errno.into()),
        }
        let gone = PollFlags::POLLERR | PollFlags::POLLHUP | PollFlags::POLLNVAL;
        if polled.first().and_then(PollFd::revents).is_some_and(|events| events.intersects(gone)) {
            return Ok(Woken::ReaderGone);
        }
        if let Some(inotify) = &self.inotify {
            // All that is known by now is one change.
            while inotify.read_events().is_ok_and(|events| !events.is_empty()) {}
        }
        Ok(Woken::Changed)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::fs::File;
    use std::io::Write;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);
    const SHORT: Duration = Duration::from_millis(1);

    #[test]
    fn a_change_the_end_of_a_writer_and_of_a_reader_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut file = File::create(&path).unwrap();
        let (reader, writer) = nix::unistd::pipe().unwrap();
        let absent = folder.path().join("absent");
        let watch = Watch::on([path.as_path(), &absent]);
        assert_eq!(watch.wait(writer.as_fd(), SHORT).unwrap(), Woken::Nothing);
        file.write_all(b"x").unwrap();
        assert_eq!(watch.wait(writer.as_fd(), LONG).unwrap(), Woken::Changed);
        assert_eq!(watch.wait(writer.as_fd(), SHORT).unwrap(), Woken::Nothing, "told once");
        drop(file);
        assert_eq!(watch.wait(writer.as_fd(), LONG).unwrap(), Woken::Changed);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(watch.wait(writer.as_fd(), LONG).unwrap(), Woken::Changed);
        drop(reader);
        assert_eq!(watch.wait(writer.as_fd(), LONG).unwrap(), Woken::ReaderGone);
    }
}
