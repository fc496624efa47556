//! No server outlives a run, and nothing that a server started does: at a normal end, at a signal, and when the run is killed.

use std::fs::{File, OpenOptions};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use nix::sys::stat::Mode;
use serde_json::json;

use crate::support::model::{Model, Turn, answer, call};
use crate::support::needs;
use crate::support::run::Mission;
use crate::support::{PATIENCE, servers};

/// A named pipe that a server and everything it starts hold open: its end is the end of the last of them.
struct Holders {
    path: PathBuf,
    reading: File,
    _folder: tempfile::TempDir,
}

impl Holders {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("held");
        nix::unistd::mkfifo(&path, Mode::S_IRUSR | Mode::S_IWUSR).unwrap();
        let reading = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(&path).unwrap();
        Self { path, reading, _folder: folder }
    }

    fn path(&self) -> &Path {
        &self.path
    }

    /// Whether nobody holds it, after so many milliseconds at most.
    fn gone_within(&self, milliseconds: u16) -> bool {
        let mut polled = [PollFd::new(self.reading.as_fd(), PollFlags::POLLIN)];
        poll(&mut polled, PollTimeout::from(milliseconds)).unwrap();
        polled[0].revents().is_some_and(|events| events.contains(PollFlags::POLLHUP))
    }

    #[track_caller]
    fn wait_until_all_are_gone(&self) {
        assert!(self.gone_within(u16::try_from(PATIENCE.as_millis()).unwrap()), "a process that a server started is still there");
    }
}

/// Ways to end a run in which a server has started processes: one in its own group, one in a session of its own.
fn end_of(how: &str, options: &[&str]) -> Result<(), String> {
    let holders = Holders::new();
    let all: Vec<&str> = ["--hold", holders.path().to_str().unwrap()].into_iter().chain(options.iter().copied()).collect();
    let server = servers::misbehaving(&all)?;
    let last = if how == "end" { answer("done") } else { Turn::Stall };
    let model = Model::says([call("mcp.spawn", json!({"session": false})), call("mcp.spawn", json!({"session": true})), last]);
    let began = Instant::now();
    let live = Mission::objective("start two").model(&model).mcp_stdio("mcp", &server).spawn();
    model.wait_for_request(3);
    // a record goes out once it is durable: the request may be ahead of it
    live.wait_for("the second result", |record| record["event"] == "step_started" && record["index"] == 2);
    let signal = match how {
        "end" => None,
        "term" => Some(Signal::SIGTERM),
        _ => Some(Signal::SIGKILL),
    };
    if let Some(signal) = signal {
        assert!(!holders.gone_within(0), "they run while the run does");
        live.signal(signal);
    }
    let finished = live.finish();
    finished.exits(signal.map_or(0, |signal| 128 + signal as i32));
    assert_eq!(finished.named("tool_result").len(), 2, "{finished}");
    holders.wait_until_all_are_gone();
    eprintln!("{how} {options:?}: gone {:?} after the start", began.elapsed());
    Ok(())
}

#[test]
fn nothing_is_left_at_a_normal_end() {
    needs!(end_of("end", &[]));
}

#[test]
fn nothing_is_left_after_a_signal() {
    needs!(end_of("term", &[]));
}

#[test]
fn nothing_is_left_when_the_run_is_killed() {
    needs!(end_of("kill", &[]));
}

#[test]
fn nothing_is_left_of_a_server_that_ignores_its_end() {
    for how in ["end", "term", "kill"] {
        needs!(end_of(how, &["--ignore-end"]));
    }
}
