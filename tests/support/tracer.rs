//! Runs a program under a tracer of our own and kills it at a system call: counted over all of its threads, and nothing but its own
//! process is traced, so that what it started lives on as it would after any other death.
//!
//! `strace` could inject the signal, but it counts for each thread by itself and follows every child.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use nix::errno::Errno;
use nix::libc;
use nix::sys::ptrace;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

/// A write, or a sync, or something else that leaves a trace outside of the process.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Call {
    /// Name of the system call.
    pub name: &'static str,
    /// What it is about: the last part of a path, `pipe`, `socket`.
    pub target: String,
    /// It is the one of this number with this name and target, from 1.
    pub count: usize,
}

/// How a traced process went.
#[derive(Debug)]
pub struct Traced {
    /// Its calls in order, the one at which it was killed included.
    pub calls: Vec<Call>,
    /// True when it was killed by us.
    pub killed: bool,
    /// Its exit status, when it ended by itself.
    pub code: Option<i32>,
}

/// Where the target of a call is found.
#[derive(Clone, Copy)]
enum At {
    /// A descriptor, in this argument.
    Descriptor(usize),
    /// A path, in this argument.
    Path(usize),
    /// A path in the second argument, where the third has `O_CREAT` or `O_TRUNC`.
    Opened,
}

/// Every call by which a process changes a file, a name, or what another process reads.
const CALLS: &[(libc::c_long, &str, At)] = &[
    (libc::SYS_write, "write", At::Descriptor(0)),
    (libc::SYS_writev, "writev", At::Descriptor(0)),
    (libc::SYS_pwrite64, "pwrite64", At::Descriptor(0)),
    (libc::SYS_pwritev, "pwritev", At::Descriptor(0)),
    (libc::SYS_pwritev2, "pwritev2", At::Descriptor(0)),
    (libc::SYS_sendto, "sendto", At::Descriptor(0)),
    (libc::SYS_sendmsg, "sendmsg", At::Descriptor(0)),
    (libc::SYS_sendfile, "sendfile", At::Descriptor(0)),
    (libc::SYS_splice, "splice", At::Descriptor(2)),
    (libc::SYS_copy_file_range, "copy_file_range", At::Descriptor(2)),
    (libc::SYS_fdatasync, "fdatasync", At::Descriptor(0)),
    (libc::SYS_fsync, "fsync", At::Descriptor(0)),
    (libc::SYS_syncfs, "syncfs", At::Descriptor(0)),
    (libc::SYS_sync_file_range, "sync_file_range", At::Descriptor(0)),
    (libc::SYS_ftruncate, "ftruncate", At::Descriptor(0)),
    (libc::SYS_fallocate, "fallocate", At::Descriptor(0)),
    (libc::SYS_openat, "openat", At::Opened),
    (libc::SYS_mkdirat, "mkdirat", At::Path(1)),
    (libc::SYS_unlinkat, "unlinkat", At::Path(1)),
    (libc::SYS_linkat, "linkat", At::Path(3)),
    (libc::SYS_renameat2, "renameat2", At::Path(3)),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_renameat, "renameat", At::Path(3)),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_rename, "rename", At::Path(1)),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_link, "link", At::Path(1)),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mkdir, "mkdir", At::Path(0)),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_unlink, "unlink", At::Path(0)),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_rmdir, "rmdir", At::Path(0)),
];

/// Runs a command and kills its process, at once and with nothing of the call done, before the first call for which `kills` says so.
///
/// # Errors
/// When nothing can be traced here.
pub fn trace(command: Command, kills: impl FnMut(&Call) -> bool + Send) -> Result<Traced, String> {
    // A thread of its own has no other child that could be waited for.
    std::thread::scope(|scope| scope.spawn(|| in_this_thread(command, kills)).join().unwrap())
}

/// Whether processes can be traced here.
pub fn traceable() -> Result<(), String> {
    let command = Command::new("true");
    let traced = trace(command, |_| false)?;
    if traced.code == Some(0) { Ok(()) } else { Err(format!("a traced process went astray: {traced:?}")) }
}

#[allow(unsafe_code)]
fn in_this_thread(mut command: Command, mut kills: impl FnMut(&Call) -> bool) -> Result<Traced, String> {
    command.stdin(Stdio::null());
    // SAFETY: between fork and exec only ptrace is called, which is async-signal-safe.
    unsafe {
        command.pre_exec(|| ptrace::traceme().map_err(Into::into));
    }
    let process = command.spawn().map_err(|error| format!("no process can be traced here: {error}"))?;
    let process = Pid::from_raw(process.id().cast_signed());
    let of_ours = WaitPidFlag::__WALL | WaitPidFlag::__WNOTHREAD;
    assert_eq!(waitpid(process, Some(of_ours)), Ok(WaitStatus::Stopped(process, Signal::SIGTRAP)), "it stops when it begins");
    let options = ptrace::Options::PTRACE_O_TRACESYSGOOD | ptrace::Options::PTRACE_O_TRACECLONE;
    ptrace::setoptions(process, options | ptrace::Options::PTRACE_O_EXITKILL).map_err(|error| error.to_string())?;
    go_on(process, None);
    let mut traced = Traced { calls: Vec::new(), killed: false, code: None };
    let mut counts = BTreeMap::new();
    loop {
        match waitpid(None, Some(of_ours)).unwrap() {
            WaitStatus::Exited(thread, code) if thread == process => {
                traced.code = Some(code);
                return Ok(traced);
            }
            WaitStatus::Signaled(thread, ..) if thread == process => return Ok(traced),
            WaitStatus::PtraceSyscall(thread) => {
                if !traced.killed
                    && let Some((name, target)) = entered(process, thread)
                {
                    let count = counts.entry((name, target.clone())).or_insert(0);
                    *count += 1;
                    let call = Call { name, target, count: *count };
                    traced.killed = kills(&call);
                    traced.calls.push(call);
                    if traced.killed {
                        kill(process, Signal::SIGKILL).unwrap();
                        continue;
                    }
                }
                go_on(thread, None);
            }
            // How a new thread begins, and what a thread that is traced is not to see.
            WaitStatus::Stopped(thread, Signal::SIGSTOP | Signal::SIGTRAP) | WaitStatus::PtraceEvent(thread, ..) => {
                go_on(thread, None);
            }
            WaitStatus::Stopped(thread, signal) => go_on(thread, signal),
            _ => {}
        }
    }
}

/// Lets a thread run to its next system call. It may be gone by now.
fn go_on(thread: Pid, signal: impl Into<Option<Signal>>) {
    match ptrace::syscall(thread, signal) {
        Ok(()) | Err(Errno::ESRCH) => {}
        Err(error) => panic!("thread {thread} cannot go on: {error}"),
    }
}

/// The call that a thread is about to make, if it is one of [`CALLS`] and somebody outside could see it.
#[allow(unsafe_code)]
fn entered(process: Pid, thread: Pid) -> Option<(&'static str, String)> {
    let about = ptrace::syscall_info(thread).ok()?;
    if about.op != libc::PTRACE_SYSCALL_INFO_ENTRY {
        return None;
    }
    // SAFETY: `op` says which member of the union was filled in.
    let entry = unsafe { about.u.entry };
    let number = libc::c_long::try_from(entry.nr).ok()?;
    let (_, name, at) = CALLS.iter().find(|(known, ..)| *known == number)?;
    let target = match at {
        At::Descriptor(argument) => {
            let link = std::fs::read_link(format!("/proc/{process}/fd/{}", entry.args[*argument])).ok()?;
            link.to_str()?.to_owned()
        }
        At::Path(argument) => path_at(process, entry.args[*argument])?,
        At::Opened => {
            let makes = libc::O_CREAT | libc::O_TRUNC;
            if entry.args[2] & u64::from(makes.cast_unsigned()) == 0 {
                return None;
            }
            path_at(process, entry.args[1])?
        }
    };
    // What one thread tells another, and what nobody reads.
    if target.starts_with("anon_inode:") || target == "/dev/null" {
        return None;
    }
    Some((name, last_part(&target)))
}

/// A path in the memory of a process.
fn path_at(process: Pid, address: u64) -> Option<String> {
    let memory = File::open(format!("/proc/{process}/mem")).ok()?;
    let mut bytes = [0; 512];
    let got = memory.read_at(&mut bytes, address).ok()?;
    let text = bytes[..got].split(|byte| *byte == 0).next()?;
    Some(String::from_utf8_lossy(text).into_owned())
}

/// The last part of a path, without what is random in it.
fn last_part(path: &str) -> String {
    let part = path.rsplit('/').next().unwrap_or(path);
    let random = if part.starts_with('.') { part.find('-') } else { part.find([':', '_']) };
    part[..random.unwrap_or(part.len())].to_owned()
}
