//! A child tree under a guardian: spawned, watched, and ended as a whole.

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::net::unix::pipe;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::watch;

use super::guardian::{self, End};
use crate::limits;

/// Where the program of the guardian is: ours, even when the file has been replaced since we were started.
const OWN_PROGRAM: &str = "/proc/self/exe";

/// The program that guards: this one, unless a test says otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuardianProgram(pub PathBuf);

impl Default for GuardianProgram {
    fn default() -> Self {
        Self(PathBuf::from(OWN_PROGRAM))
    }
}

/// Why a child tree could not be spawned. That the command itself could not be executed is not known here yet: it is the
/// tree's [`End::NotStarted`].
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// There is no command.
    #[error("there is no command to start")]
    Empty,
    /// No pipe could be made.
    #[error("no pipe could be made for a child process: {0}; too many descriptors may be open")]
    Pipe(#[source] std::io::Error),
    /// The guardian could not be started.
    #[error("the guardian of a child process could not be started from {program}: {error}")]
    Guardian {
        /// Its program.
        program: PathBuf,
        /// Why.
        #[source]
        error: std::io::Error,
    },
}

/// A child tree. When it is dropped, the whole tree is ended.
///
/// It is to be spawned from a thread that lives as long as the process.
#[derive(Debug)]
pub struct ChildTree {
    /// The server's standard input; taken by whoever writes to it. Dropping it is the end of input.
    pub stdin: Option<ChildStdin>,
    /// The server's standard output; taken by whoever reads it.
    pub stdout: Option<ChildStdout>,
    stderr: StderrTail,
    state: watch::Receiver<State>,
    /// Closing it ends the tree.
    lifeline: Option<OwnedFd>,
}

#[derive(Clone, Debug, Default)]
struct State {
    /// How the server ended.
    end: Option<End>,
    /// The guardian has ended too: nothing of the tree is left.
    gone: bool,
}

impl ChildTree {
    /// Starts a command under a guardian, with exactly this environment. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// No command, no pipes, no guardian.
    pub fn spawn(
        guardian_program: &GuardianProgram,
        argv: &[String],
        environment: &BTreeMap<OsString, OsString>,
        working_directory: Option<&Path>,
    ) -> Result<Self, SpawnError> {
        if argv.first().is_none_or(String::is_empty) {
            return Err(SpawnError::Empty);
        }
        let (lifeline_end, lifeline) = std::io::pipe().map_err(SpawnError::Pipe)?;
        let (status, status_end) = std::io::pipe().map_err(SpawnError::Pipe)?;
        // Copies that are not closed on exec: only the guardian gets them, and it closes what else came along.
        let inherited = |end: &dyn AsFd| nix::unistd::dup(end.as_fd()).map_err(|errno| SpawnError::Pipe(errno.into()));
        let lifeline_end = inherited(&lifeline_end)?;
        let status_end = inherited(&status_end)?;

        let mut command = Command::new(&guardian_program.0);
        command
            .arg(guardian::MARK)
            .arg(lifeline_end.as_raw_fd().to_string())
            .arg(status_end.as_raw_fd().to_string())
            .arg("--")
            .args(argv)
            .env_clear()
            .envs(environment)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A ^C at the terminal is for us; we wind up.
            .process_group(0);
        if let Some(directory) = working_directory {
            command.current_dir(directory);
        }
        let mut child = command.spawn().map_err(|error| SpawnError::Guardian { program: guardian_program.0.clone(), error })?;
        drop((lifeline_end, status_end));

        let stderr = StderrTail::default();
        if let Some(stream) = child.stderr.take() {
            tokio::spawn(stderr.clone().drain(stream));
        }
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let status = pipe::Receiver::from_owned_fd(OwnedFd::from(status)).map_err(SpawnError::Pipe)?;
        let (sender, state) = watch::channel(State::default());
        tokio::spawn(watch_over(child, status, sender));
        Ok(Self { stdin, stdout, stderr, state, lifeline: Some(OwnedFd::from(lifeline)) })
    }

    /// How the server ended, once it has; the guardian may still be ending what it left behind. May be waited for after the tree
    /// itself was closed or dropped.
    pub fn ended(&self) -> impl Future<Output = End> + Send + Sync + 'static {
        let mut state = self.state.clone();
        async move {
            let end = match state.wait_for(|state| state.end.is_some()).await {
                Ok(state) => state.end.clone(),
                Err(_) => None,
            };
            end.unwrap_or(End::Unknown)
        }
    }

    /// What the server said last on its standard error.
    pub fn stderr(&self) -> StderrTail {
        self.stderr.clone()
    }

    /// Ends the tree: end of input, a moment, TERM to the group, a moment, KILL to the group and to whatever else is left;
    /// then reaps. Whoever has taken `stdin` drops it before. Bounded: [`limits::CHILD_END_OF_INPUT_MS`],
    /// [`limits::CHILD_TERM_MS`], [`limits::CHILD_KILL_MS`].
    pub async fn close(mut self) -> End {
        drop(self.stdin.take());
        let ended = self.ended();
        let _ = tokio::time::timeout(Duration::from_millis(limits::CHILD_END_OF_INPUT_MS), ended).await;
        drop(self.lifeline.take());
        let wind_up = limits::CHILD_TERM_MS.saturating_add(limits::CHILD_KILL_MS).saturating_add(limits::GUARDIAN_SLACK_MS);
        let gone = self.state.wait_for(|state| state.gone);
        let _ = tokio::time::timeout(Duration::from_millis(wind_up), gone).await;
        let end = self.state.borrow().end.clone();
        end.unwrap_or(End::Unknown)
    }
}

/// Reads the status pipe to its end, then reaps the guardian.
async fn watch_over(mut guardian: Child, status: pipe::Receiver, state: watch::Sender<State>) {
    let mut line = Vec::new();
    let mut status = status.take(limits::GUARDIAN_STATUS_BYTES);
    // The first line is the only one; the guardian keeps the pipe open until the tree is gone.
    while !line.contains(&b'\n') && status.read_buf(&mut line).await.is_ok_and(|read| read > 0) {}
    let end = End::from_line(&String::from_utf8_lossy(&line));
    state.send_modify(|state| state.end = Some(end));
    let _ = guardian.wait().await;
    state.send_modify(|state| state.gone = true);
}

/// The end of what a child wrote to its standard error. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct StderrTail(Arc<StderrShared>);

#[derive(Debug, Default)]
struct StderrShared {
    tail: Mutex<VecDeque<u8>>,
    closed: tokio::sync::Notify,
}

impl StderrTail {
    /// Reads all of it, all the time, so that the child is never held up; keeps [`limits::STDERR_TAIL_BYTES`].
    async fn drain(self, stream: ChildStderr) {
        self.drain_from(stream).await;
        self.0.closed.notify_one();
    }

    async fn drain_from(&self, mut stream: impl AsyncRead + Unpin) {
        let mut buffer = Vec::with_capacity(8 * 1024);
        let cap = limits::size(limits::STDERR_TAIL_BYTES);
        while stream.read_buf(&mut buffer).await.is_ok_and(|read| read > 0) {
            let mut tail = self.0.tail.lock().unwrap_or_else(PoisonError::into_inner);
            tail.extend(&buffer);
            let excess = tail.len().saturating_sub(cap);
            tail.drain(..excess);
            drop(tail);
            buffer.clear();
        }
    }

    /// Waits a moment for the rest of it, once the child has ended: what it said last is the reason, and may be in the pipe.
    pub async fn settle(&self) {
        let moment = Duration::from_millis(limits::STDERR_SETTLE_MS);
        if tokio::time::timeout(moment, self.0.closed.notified()).await.is_ok() {
            // For whoever waits next.
            self.0.closed.notify_one();
        }
    }

    /// Its last lines as one line, at most [`limits::STDERR_QUOTED_BYTES`]; nothing when there were none.
    pub fn quoted(&self) -> Option<String> {
        let bytes: Vec<u8> = self.0.tail.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        let cap = limits::size(limits::STDERR_QUOTED_BYTES);
        let mut lines: Vec<&str> = Vec::new();
        let mut taken = 0usize;
        for line in text.lines().rev().map(str::trim_end).filter(|line| !line.is_empty()) {
            taken = taken.saturating_add(line.len()).saturating_add(3);
            if taken > cap && !lines.is_empty() {
                break;
            }
            lines.push(line);
        }
        lines.reverse();
        let quoted = lines.join(" / ");
        let excess = quoted.len().saturating_sub(cap);
        let from = quoted.char_indices().map(|(at, _)| at).find(|at| *at >= excess)?;
        let quoted: String = quoted.get(from..)?.chars().filter(|sign| !sign.is_control() || *sign == '\t').collect();
        (!quoted.is_empty()).then_some(quoted)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::arithmetic_side_effects)]
    use super::*;

    async fn tail_of(text: &[u8]) -> StderrTail {
        let tail = StderrTail::default();
        tail.drain_from(text).await;
        tail
    }

    #[tokio::test]
    async fn only_the_end_of_standard_error_is_kept() {
        let mut text = b"e".repeat(300_000);
        text.extend_from_slice(b"\nfirst\r\n\nboom: no key\n");
        let tail = tail_of(&text).await;
        assert_eq!(tail.0.tail.lock().unwrap().len(), limits::STDERR_TAIL_BYTES as usize);
        assert_eq!(tail.quoted().unwrap(), "first / boom: no key");
    }

    #[tokio::test]
    async fn a_quote_is_one_bounded_line_of_text() {
        assert_eq!(tail_of(b"").await.quoted(), None);
        assert_eq!(tail_of(b"\n \n").await.quoted(), None);
        assert_eq!(tail_of(b"\x1b[31mred\x1b[0m \xff").await.quoted().unwrap(), "[31mred[0m \u{fffd}");
        let long = "ä".repeat(5_000);
        let quoted = tail_of(long.as_bytes()).await.quoted().unwrap();
        assert!(quoted.len() <= limits::STDERR_QUOTED_BYTES as usize);
        assert!(quoted.chars().all(|sign| sign == 'ä'));
    }

    #[tokio::test]
    async fn nothing_to_start_is_an_error() {
        let spawned = ChildTree::spawn(&GuardianProgram::default(), &[], &BTreeMap::new(), None);
        assert!(matches!(spawned, Err(SpawnError::Empty)));
    }
}
