//! The guardian: this program re-executed as the parent of a child tree, so that no process of the tree outlives us, however
//! we end.
//!
//! It is single-threaded, does nothing but wait, and forwards nothing: the server inherits its standard streams. It holds one
//! end of a pipe (the *lifeline*) whose other end only we hold; when that is closed, which the kernel does too when we are
//! killed, the guardian ends the tree: TERM to the server's group, a moment, KILL to the group and to every descendant left. It
//! is a child subreaper, so that what daemonises itself comes back to it. When the server ends by itself, what it left behind
//! is ended in the same way. How the server ended goes down a second pipe (the *status*), as one line.
//!
//! `main` calls [`run_if_asked`] before anything else.

use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::prctl;
use nix::sys::signal::{SigSet, Signal, kill, killpg};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{Pid, getppid, setsid};

use crate::limits;
use crate::sys::signals;

/// The first argument of the program when it is to be a guardian. Two descriptors follow (lifeline, status), then `--`, then
/// the server's command.
pub const MARK: &str = "__guardian";

/// How a child ended, as the guardian says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// It exited with this status.
    Exited(i32),
    /// This signal killed it.
    Signalled(i32),
    /// It was never started, for this reason.
    NotStarted(String),
    /// The guardian is gone and said nothing.
    Unknown,
}

impl End {
    /// The line for the status pipe, without its end.
    fn to_line(&self) -> String {
        match self {
            End::Exited(status) => format!("exit:{status}"),
            End::Signalled(signal) => format!("signal:{signal}"),
            End::NotStarted(why) => format!("exec:{}", why.replace('\n', " ")),
            End::Unknown => String::new(),
        }
    }

    /// What a line of the status pipe says.
    pub(crate) fn from_line(line: &str) -> End {
        let number = |text: &str| text.trim().parse::<i32>().ok();
        match line.trim_end().split_once(':') {
            Some(("exit", status)) => number(status).map_or(End::Unknown, End::Exited),
            Some(("signal", signal)) => number(signal).map_or(End::Unknown, End::Signalled),
            Some(("exec", why)) => End::NotStarted(why.to_owned()),
            _ => End::Unknown,
        }
    }

    /// The status that a shell would give it.
    fn code(&self) -> i32 {
        match self {
            End::Exited(status) => *status,
            End::Signalled(signal) => signal.saturating_add(128),
            End::NotStarted(_) => 127,
            End::Unknown => 1,
        }
    }
}

impl std::fmt::Display for End {
    /// The second half of a sentence whose first half names the process.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            End::Exited(status) => write!(formatter, "exited with status {status}"),
            End::Signalled(signal) => match Signal::try_from(*signal) {
                Ok(name) => write!(formatter, "was killed by {name}"),
                Err(_) => write!(formatter, "was killed by signal {signal}"),
            },
            End::NotStarted(why) => write!(formatter, "could not be started: {why}"),
            End::Unknown => formatter.write_str("ended, and nobody knows how"),
        }
    }
}

/// Guards, when this process was started to do so, and returns the code to exit with; else nothing, at once.
///
/// Must be called first thing in `main`: no thread may have been started, and nothing is initialised that would cost memory.
pub fn run_if_asked() -> Option<i32> {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next()? != MARK {
        return None;
    }
    let lifeline = descriptor(&arguments.next()?)?;
    let status = descriptor(&arguments.next()?)?;
    if arguments.next()? != "--" {
        return None;
    }
    let program = arguments.next()?;
    Some(guard(lifeline, status.into(), &program, arguments.collect()))
}

/// The descriptor that a number in our arguments names, if it is open.
#[allow(unsafe_code)]
fn descriptor(number: &OsStr) -> Option<OwnedFd> {
    let number: RawFd = number.to_str()?.parse().ok()?;
    if number <= 2 {
        return None;
    }
    // SAFETY: fcntl with F_SETFD touches no memory; on a number that is no open descriptor it fails and changes nothing.
    if unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) } == -1 {
        return None;
    }
    // SAFETY: it is open, as fcntl just said; it was given to this process for this purpose, and nothing else in it owns it.
    Some(unsafe { OwnedFd::from_raw_fd(number) })
}

fn guard(lifeline: OwnedFd, mut status: File, program: &OsStr, arguments: Vec<OsString>) -> i32 {
    close_all_but(lifeline.as_raw_fd(), status.as_raw_fd());
    let prepared = prepare();
    let deaths = match prepared {
        Ok(deaths) => deaths,
        Err(errno) => return report(&mut status, End::NotStarted(format!("its guardian cannot work: {}", errno.desc()))),
    };
    let server = match start(program, arguments) {
        Ok(server) => server,
        Err(error) => return report(&mut status, End::NotStarted(reason(&error))),
    };
    let_go_of_streams();
    let mut tree = Tree { server, ended: None, status, deaths };
    let mut lifeline = File::from(lifeline);
    loop {
        let (cut, _) = tree.wait(Some(lifeline.as_fd()), None);
        if cut && is_cut(&mut lifeline) {
            break;
        }
        if tree.reap() || tree.ended.is_some() {
            break;
        }
    }
    tree.end();
    tree.ended.map_or(1, |end| end.code())
}

/// Signals are read, not delivered: what is sent to our group is not for us, and the tree is ended by the lifeline alone.
fn prepare() -> Result<SignalFd, Errno> {
    // Whoever started the run may ignore the deaths of children, which is inherited: the kernel would reap them then, and
    // tell nobody. What the run itself ignores is not for the server to inherit.
    for signal in [Signal::SIGCHLD, Signal::SIGXFSZ] {
        signals::restore(signal);
    }
    let mut blocked = SigSet::empty();
    for signal in [
        Signal::SIGTERM,
        Signal::SIGINT,
        Signal::SIGHUP,
        Signal::SIGQUIT,
        Signal::SIGUSR1,
        Signal::SIGUSR2,
        Signal::SIGALRM,
        Signal::SIGTSTP,
        Signal::SIGTTIN,
        Signal::SIGTTOU,
        Signal::SIGCHLD,
    ] {
        blocked.add(signal);
    }
    blocked.thread_block()?;
    let mut deaths = SigSet::empty();
    deaths.add(Signal::SIGCHLD);
    let deaths = SignalFd::with_flags(&deaths, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
    prctl::set_child_subreaper(true)?;
    Ok(deaths)
}

/// Starts the server in a session and group of its own, with no signal blocked.
#[allow(unsafe_code)]
fn start(program: &OsStr, arguments: Vec<OsString>) -> std::io::Result<Pid> {
    let guardian = Pid::this();
    let mut command = Command::new(program);
    command.args(arguments);
    // SAFETY: between fork and exec only system calls are made (setsid, sigprocmask, prctl, getppid); nothing allocates,
    // nothing locks.
    unsafe {
        command.pre_exec(move || {
            setsid()?;
            SigSet::empty().thread_set_mask()?;
            // If even the guardian is killed, the server itself does not stay.
            prctl::set_pdeathsig(Signal::SIGKILL)?;
            if getppid() != guardian {
                return Err(Errno::ESRCH.into());
            }
            Ok(())
        });
    }
    let child = command.spawn()?;
    let id = i32::try_from(child.id()).map_err(|_| ErrorKind::InvalidData)?;
    Ok(Pid::from_raw(id))
}

fn reason(error: &std::io::Error) -> String {
    match error.raw_os_error() {
        Some(number) => Errno::from_raw(number).desc().to_owned(),
        None => error.to_string(),
    }
}

fn report(status: &mut File, end: End) -> i32 {
    // Nobody may be there to read it any more.
    let _ = writeln!(status, "{}", end.to_line());
    end.code()
}

/// The ends of the server's pipes that we inherited are not ours to hold: while we have them, nobody sees them closed.
#[allow(unsafe_code)]
fn let_go_of_streams() {
    let null = OpenOptions::new().read(true).write(true).open("/dev/null");
    for stream in 0..=2 {
        match &null {
            // SAFETY: dup2 and close on the standard streams touch no memory, and nothing in this process uses them again.
            Ok(null) => unsafe { libc::dup2(null.as_raw_fd(), stream) },
            // SAFETY: as above.
            Err(_) => unsafe { libc::close(stream) },
        };
    }
}

/// Closes every descriptor that came along besides the standard streams and these two.
#[allow(unsafe_code)]
fn close_all_but(one: RawFd, other: RawFd) {
    let mut from: RawFd = 3;
    for kept in [one.min(other), one.max(other)] {
        if kept > from {
            close_range(from, kept.saturating_sub(1));
        }
        from = kept.saturating_add(1);
    }
    close_range(from, RawFd::MAX);
}

#[allow(unsafe_code)]
fn close_range(first: RawFd, last: RawFd) {
    // SAFETY: nothing in this process owns a descriptor in the range: it has opened none itself so far.
    let closed = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
    if closed == 0 {
        return;
    }
    // A kernel before 5.9, or a filter that does not know the call.
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else { return };
    let open: Vec<RawFd> = entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|number| (first..=last).contains(number))
        .collect();
    for number in open {
        // SAFETY: as above; the one that read the directory is closed already, and closing it again only fails.
        unsafe { libc::close(number) };
    }
}

/// Whether the lifeline is at its end. Bytes on it mean nothing.
fn is_cut(lifeline: &mut File) -> bool {
    match lifeline.read(&mut [0; 64]) {
        Ok(read) => read == 0,
        Err(error) => error.kind() != ErrorKind::Interrupted,
    }
}

struct Tree {
    server: Pid,
    ended: Option<End>,
    status: File,
    deaths: SignalFd,
}

impl Tree {
    /// Waits for the lifeline or for the death of a child; says which.
    fn wait(&mut self, lifeline: Option<BorrowedFd<'_>>, timeout: Option<Duration>) -> (bool, bool) {
        let timeout = match timeout {
            None => PollTimeout::NONE,
            // One more, so that a wait of less than a millisecond is not none at all.
            Some(timeout) => PollTimeout::try_from(timeout.as_millis().saturating_add(1)).unwrap_or(PollTimeout::MAX),
        };
        let mut waited = vec![PollFd::new(self.deaths.as_fd(), PollFlags::POLLIN)];
        waited.extend(lifeline.map(|lifeline| PollFd::new(lifeline, PollFlags::POLLIN)));
        if poll(&mut waited, timeout).is_err() {
            return (false, false);
        }
        let happened = |at: usize| waited.get(at).and_then(PollFd::any).unwrap_or(false);
        let (died, cut) = (happened(0), happened(1));
        if died {
            while matches!(self.deaths.read_signal(), Ok(Some(_))) {}
        }
        (cut, died)
    }

    /// Takes note of every child that has ended, adopted ones too. True when there is none left.
    fn reap(&mut self) -> bool {
        loop {
            match waitpid(None::<Pid>, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(pid, status)) => self.note(pid, End::Exited(status)),
                Ok(WaitStatus::Signaled(pid, signal, _)) => self.note(pid, End::Signalled(signal as i32)),
                Ok(WaitStatus::StillAlive) => return false,
                Ok(_) | Err(Errno::EINTR) => {}
                Err(_) => return true,
            }
        }
    }

    fn note(&mut self, pid: Pid, end: End) {
        if pid == self.server && self.ended.is_none() {
            report(&mut self.status, end.clone());
            self.ended = Some(end);
        }
    }

    /// Ends what is left: TERM to the server's group, a moment, KILL to it and to every descendant until none is left.
    fn end(&mut self) {
        if self.reap() {
            return;
        }
        let _ = killpg(self.server, Signal::SIGTERM);
        // A stopped process does not see a TERM.
        let _ = killpg(self.server, Signal::SIGCONT);
        if self.gone_within(Duration::from_millis(limits::CHILD_TERM_MS), |_| {}) {
            return;
        }
        let _ = killpg(self.server, Signal::SIGKILL);
        self.gone_within(Duration::from_millis(limits::CHILD_KILL_MS), |tree| {
            for pid in descendants(Pid::this()) {
                // The server itself was killed with its group; its number may be another's by now.
                if pid != tree.server || tree.ended.is_none() {
                    let _ = kill(pid, Signal::SIGKILL);
                }
            }
        });
    }

    /// Waits until there is no child left, and does something each time that one may still be there.
    fn gone_within(&mut self, time: Duration, mut each: impl FnMut(&Tree)) -> bool {
        // What died wakes us; a process that is born while the tree is read does not.
        let look_again = Duration::from_millis(limits::GUARDIAN_LOOK_MS);
        let begun = Instant::now();
        loop {
            if self.reap() {
                return true;
            }
            let left = time.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return false;
            }
            each(self);
            self.wait(None, Some(left.min(look_again)));
        }
    }
}

/// Every process below this one.
fn descendants(root: Pid) -> Vec<Pid> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let mut parents: Vec<(Pid, Pid)> = entries
        .filter_map(|entry| {
            let pid: i32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            Some((Pid::from_raw(pid), Pid::from_raw(parent_in(&stat)?)))
        })
        .collect();
    let mut found = vec![root];
    // A child may stand before its parent, so the list is gone through until nothing new is found.
    loop {
        let before = found.len();
        parents.retain(|(pid, parent)| {
            let is_below = found.contains(parent);
            if is_below {
                found.push(*pid);
            }
            !is_below
        });
        if found.len() == before {
            break;
        }
    }
    found.into_iter().skip(1).collect()
}

/// The parent's number in a line of `/proc/<pid>/stat`. The name before it may hold anything, brackets and spaces too.
fn parent_in(stat: &str) -> Option<i32> {
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_a_server_ended_survives_the_pipe() {
        for end in [End::Exited(0), End::Exited(127), End::Signalled(9), End::NotStarted("No such file or directory".to_owned())]
        {
            assert_eq!(End::from_line(&format!("{}\n", end.to_line())), end);
        }
        assert_eq!(End::from_line("exit:many"), End::Unknown);
        assert_eq!(End::from_line(""), End::Unknown);
    }

    #[test]
    fn a_process_may_have_any_name() {
        assert_eq!(parent_in("12 (a) S 1 (b) R) S 7 12 12 0"), Some(7));
        assert_eq!(parent_in("12 (sh) S"), None);
    }

    #[test]
    fn an_ordinary_start_is_no_guardian() {
        assert_eq!(run_if_asked(), None);
    }
}
