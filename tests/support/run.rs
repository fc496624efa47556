//! A builder for runs of the built binary, a handle on a live one, and what is left of a finished one.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

use mission_contract::conforms::conforms_line;
use mission_contract::vocabulary::NOTICE_CODES;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::Pid;
use serde_json::Value;

use super::PATIENCE;
use super::feed::{Feed, Reading};
use super::log::Log;
use super::model::Model;

/// The binary under test.
pub const BINARY: &str = env!("CARGO_BIN_EXE_mission");

/// What stands on descriptor 3 of the process, and what `--events` says.
#[derive(Debug, Default)]
enum Stream {
    /// A pipe on descriptor 3, `--events fd:3`.
    #[default]
    Pipe,
    /// Nothing on descriptor 3; `--events` as given, if at all.
    Word(Option<String>),
    /// The reading end of a pipe on descriptor 3, `--events fd:3`.
    WrongWay,
}

/// A run that is being described.
#[derive(Debug, Default)]
pub struct Mission {
    arguments: Vec<OsString>,
    environment: BTreeMap<String, OsString>,
    directory: Option<PathBuf>,
    stream: Stream,
    reading: Reading,
    pipe_bytes: Option<i32>,
    inherits: Vec<fn()>,
    shell: Option<String>,
    control: Control,
}

/// Where the process takes words from.
#[derive(Debug, Default)]
enum Control {
    /// From nowhere.
    #[default]
    None,
    /// From a pipe on descriptor 4 that we write to.
    Pipe,
    /// From this, on its descriptor 4; nobody writes to it any more.
    Given(OwnedFd),
}

impl Mission {
    /// `mission --mission TEXT`, with the event stream on descriptor 3.
    pub fn objective(text: &str) -> Self {
        Self::default().arg("--mission").arg(text)
    }

    /// `mission --resume RUN`, with the event stream on descriptor 3.
    pub fn resume(run: &str) -> Self {
        Self::default().arg("--resume").arg(run)
    }

    /// `mission WORD…`, without an event stream.
    pub fn verb<Word: Into<OsString>>(words: impl IntoIterator<Item = Word>) -> Self {
        let mut mission = Self { stream: Stream::Word(None), ..Self::default() };
        mission.arguments.extend(words.into_iter().map(Into::into));
        mission
    }

    /// One more argument.
    pub fn arg(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// More arguments.
    pub fn args<Word: Into<OsString>>(mut self, arguments: impl IntoIterator<Item = Word>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// One more variable.
    pub fn env(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.environment.insert(name.to_owned(), value.into());
        self
    }

    /// Answered by a scripted model server.
    pub fn model(self, model: &Model) -> Self {
        self.arg("--provider").arg("local").env("LOCAL_API_BASE", model.base_url()).env("LOCAL_MODEL", "scripted")
    }

    /// With a tool server over stdio.
    pub fn mcp_stdio(self, name: &str, command: &str) -> Self {
        self.arg("--mcp-stdio").arg(format!("{name}={command}"))
    }

    /// `--protocol`.
    pub fn protocol(self, protocol: &str) -> Self {
        self.arg("--protocol").arg(protocol)
    }

    /// `--mission-steps`.
    pub fn steps(self, steps: u64) -> Self {
        self.arg("--mission-steps").arg(steps.to_string())
    }

    /// `--skill`.
    pub fn skill(self, path: &Path) -> Self {
        self.arg("--skill").arg(path)
    }

    /// Runs in this folder instead of a fresh one.
    pub fn directory(mut self, directory: &Path) -> Self {
        self.directory = Some(directory.to_owned());
        self
    }

    /// `--events WORD`, and nothing on descriptor 3.
    pub fn events(mut self, word: &str) -> Self {
        self.stream = Stream::Word(Some(word.to_owned()));
        self
    }

    /// `--events fd:3`, where descriptor 3 can only be read.
    pub fn wrong_way_stream(mut self) -> Self {
        self.stream = Stream::WrongWay;
        self
    }

    /// Reads the stream only when told to ([`Live::read_now`]), in small bites, through a pipe that holds 4 KiB.
    pub fn slow_reader(mut self) -> Self {
        self.reading = Reading::Held;
        self.pipe_bytes = Some(4096);
        self
    }

    /// Takes words from us: a pipe on its descriptor 4, and `--control fd:4`.
    pub fn control(mut self) -> Self {
        self.control = Control::Pipe;
        self.args(["--control", "fd:4"])
    }

    /// Finds this on its descriptor 4.
    pub fn descriptor_4(mut self, given: impl Into<OwnedFd>) -> Self {
        // Away from the numbers that it is to have there.
        let above = nix::fcntl::fcntl(given.into(), nix::fcntl::FcntlArg::F_DUPFD_CLOEXEC(16)).unwrap();
        self.control = Control::Given(owned(above));
        self
    }

    /// Started by a shell with this script; the program and its words are `$0` and `$@`.
    pub fn by_shell(mut self, script: &str) -> Self {
        self.shell = Some(script.to_owned());
        self
    }

    /// What the process finds in place when it starts: called between fork and exec, so only async-signal-safe calls may stand in it.
    pub fn inherits(mut self, left_behind: fn()) -> Self {
        self.inherits.push(left_behind);
        self
    }

    /// The command line and environment, for a program that is to start it by itself. The stream is to be on descriptor 3.
    pub fn command_line(&self) -> Vec<OsString> {
        let mut words = vec![OsString::from(BINARY)];
        words.extend(self.arguments.iter().cloned());
        match &self.stream {
            Stream::Pipe | Stream::WrongWay => words.extend(["--events".into(), "fd:3".into()]),
            Stream::Word(Some(word)) => words.extend(["--events".into(), word.into()]),
            Stream::Word(None) => {}
        }
        words
    }

    /// The command, in its folder and with its environment and nothing of ours.
    pub fn command(&self, home: &Path, program: &std::ffi::OsStr, words: &[OsString]) -> Command {
        let mut command = Command::new(program);
        command.args(words).current_dir(home).env_clear().envs(&self.environment);
        if !self.environment.contains_key("PATH") {
            command.env("PATH", std::env::var_os("PATH").unwrap());
        }
        if !self.environment.contains_key("HOME") {
            command.env("HOME", home);
        }
        command
    }

    /// The folder it is to run in: the one that was given, else a fresh one that lives as long as the second value.
    pub fn place(&self) -> (PathBuf, Option<tempfile::TempDir>) {
        match &self.directory {
            Some(directory) => (directory.clone(), None),
            None => {
                let fresh = tempfile::Builder::new().prefix("mission-it-").tempdir().unwrap();
                (fresh.path().canonicalize().unwrap(), Some(fresh))
            }
        }
    }

    /// Starts it.
    pub fn spawn(mut self) -> Live {
        reserve();
        let (directory, fresh) = self.place();
        let mut words = self.command_line();
        if let Some(script) = &self.shell {
            words.splice(0..0, ["sh".into(), "-c".into(), script.into()]);
        }
        let mut command = self.command(&directory, &words[0], &words[1..]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let (reading, given) = self.pipe();
        let given = given.map(high);
        hand_over(&mut command, given.as_ref().map(AsRawFd::as_raw_fd), 3);
        let (control, words) = match std::mem::take(&mut self.control) {
            Control::None => (None, None),
            Control::Given(given) => (None, Some(given)),
            Control::Pipe => {
                let (reading, writing) = std::io::pipe().unwrap();
                (Some(writing), Some(reading.into()))
            }
        };
        let words = words.map(high);
        hand_over(&mut command, words.as_ref().map(AsRawFd::as_raw_fd), 4);
        leave_behind(&mut command, self.inherits.clone());
        let mut child = command.spawn().unwrap();
        drop((command, given, words));
        let pid = Pid::from_raw(child.id().cast_signed());
        let (ended, end) = channel();
        std::thread::spawn(move || {
            waitid(Id::Pid(pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT).unwrap();
            let _ = ended.send(()); // nobody waits any more when a test failed
        });
        Live {
            feed: reading.map(|source| Feed::start(source, self.reading)),
            stdout: Some(collect(child.stdout.take().unwrap())),
            stderr: Some(collect(child.stderr.take().unwrap())),
            child,
            pid,
            end,
            ended: false,
            control,
            directory,
            fresh,
        }
    }

    /// Starts it and waits for its end.
    pub fn run(self) -> Finished {
        self.spawn().finish()
    }

    /// What we read from, and what stands on the process's descriptor 3.
    fn pipe(&self) -> (Option<PipeReader>, Option<OwnedFd>) {
        match self.stream {
            Stream::Word(_) => (None, None),
            Stream::WrongWay => (None, Some(std::io::pipe().unwrap().0.into())),
            Stream::Pipe => {
                let (reading, writing) = std::io::pipe().unwrap();
                if let Some(bytes) = self.pipe_bytes {
                    nix::fcntl::fcntl(&writing, nix::fcntl::FcntlArg::F_SETPIPE_SZ(bytes)).unwrap();
                }
                (Some(reading), Some(writing.into()))
            }
        }
    }
}

#[allow(unsafe_code)]
fn owned(number: RawFd) -> OwnedFd {
    // SAFETY: it was made a moment ago, and nobody else knows of it.
    unsafe { std::os::fd::FromRawFd::from_raw_fd(number) }
}

/// Keeps the low numbers of this process taken, so that no pipe of ours, and none of the standard library's, ever has one that a process
/// is given. What somebody else had when it was asked for is taken the next time.
fn reserve() {
    static TAKEN: Mutex<Vec<File>> = Mutex::new(Vec::new());
    let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        let file = File::open("/dev/null").unwrap();
        if file.as_raw_fd() > RESERVED {
            return;
        }
        taken.push(file);
    }
}

/// The numbers up to this one are kept free for processes that are started.
const RESERVED: RawFd = 8;

/// The same descriptor under a number that no process is given.
fn high(descriptor: OwnedFd) -> OwnedFd {
    if descriptor.as_raw_fd() > RESERVED {
        return descriptor;
    }
    owned(nix::fcntl::fcntl(&descriptor, nix::fcntl::FcntlArg::F_DUPFD_CLOEXEC(RESERVED + 1)).unwrap())
}

/// Puts a descriptor of ours on a number of the process that is to be started.
#[allow(unsafe_code)]
fn hand_over(command: &mut Command, given: Option<RawFd>, number: RawFd) {
    let Some(given) = given else { return };
    assert!(given > 4, "the numbers are reserved");
    // SAFETY: between fork and exec only dup2 is called, which is async-signal-safe; both numbers are plain integers.
    unsafe {
        command.pre_exec(move || if libc::dup2(given, number) == -1 { Err(std::io::Error::last_os_error()) } else { Ok(()) });
    }
}

#[allow(unsafe_code)]
fn leave_behind(command: &mut Command, all: Vec<fn()>) {
    // SAFETY: whoever gives them keeps to calls that are async-signal-safe.
    unsafe {
        command.pre_exec(move || {
            all.iter().for_each(|each| each());
            Ok(())
        });
    }
}

fn collect(mut source: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut all = Vec::new();
        source.read_to_end(&mut all).unwrap();
        all
    })
}

/// A run that goes on.
pub struct Live {
    child: Child,
    pid: Pid,
    end: Receiver<()>,
    ended: bool,
    feed: Option<Feed>,
    control: Option<PipeWriter>,
    stdout: Option<JoinHandle<Vec<u8>>>,
    stderr: Option<JoinHandle<Vec<u8>>>,
    directory: PathBuf,
    fresh: Option<tempfile::TempDir>,
}

impl Live {
    /// Waits until a record of the stream fits, and gives it.
    pub fn wait_for(&self, what: &str, fits: impl Fn(&Value) -> bool) -> Value {
        self.feed.as_ref().unwrap().wait_for(what, fits)
    }

    /// Waits for the first record with this name.
    pub fn wait_for_event(&self, name: &str) -> Value {
        self.wait_for(name, |record| record["event"] == name)
    }

    /// Says a line to it.
    pub fn say(&mut self, line: &Value) {
        self.say_raw(&format!("{line}\n"));
    }

    /// Says exactly this to it.
    pub fn say_raw(&mut self, text: &str) {
        self.control.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
    }

    /// Says nothing any more.
    pub fn hang_up(&mut self) {
        drop(self.control.take());
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        kill(self.pid, signal).unwrap();
    }

    /// Lets the slow reader begin.
    pub fn read_now(&self) {
        self.feed.as_ref().unwrap().release();
    }

    /// The reader of the stream goes away.
    pub fn close_reader(&mut self) {
        self.feed.as_mut().unwrap().close();
    }

    /// Waits for the end of the process.
    pub fn wait(&mut self) {
        if !self.ended {
            let waited = self.end.recv_timeout(PATIENCE);
            assert!(waited.is_ok(), "the process did not end; its stream:\n{}", self.so_far());
            self.ended = true;
        }
    }

    /// Waits for its end and gathers what is left.
    pub fn finish(mut self) -> Finished {
        self.wait();
        let status = self.child.wait().unwrap();
        let bytes = self.feed.as_mut().map(Feed::end).unwrap_or_default();
        let finished = Finished {
            stream: String::from_utf8(bytes).expect("the stream is UTF-8"),
            stdout: String::from_utf8(self.stdout.take().unwrap().join().unwrap()).expect("stdout is UTF-8"),
            stderr: String::from_utf8(self.stderr.take().unwrap().join().unwrap()).expect("stderr is UTF-8"),
            status,
            directory: self.directory.clone(),
            _fresh: self.fresh.take(),
        };
        assert_eq!(finished.faults(), Vec::<String>::new(), "the stream is not what the contract says\n{finished}");
        finished
    }

    fn so_far(&mut self) -> String {
        self.feed.as_mut().map(|feed| feed.so_far()).unwrap_or_default()
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        // Only a test that failed leaves a process behind. It has not been waited for, so that its id is still its own.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A run that is over.
pub struct Finished {
    /// Everything it wrote on descriptor 3.
    pub stream: String,
    /// What people see.
    pub stdout: String,
    /// Diagnostics.
    pub stderr: String,
    /// How the process ended.
    pub status: ExitStatus,
    /// The folder it ran in.
    pub directory: PathBuf,
    _fresh: Option<tempfile::TempDir>,
}

impl Finished {
    /// Everything in the stream that the contract does not have. A line that was cut is none of it: a process can be killed.
    fn faults(&self) -> Vec<String> {
        let lines = self.stream.split_inclusive('\n').filter_map(|line| line.strip_suffix('\n'));
        let mut faults: Vec<String> =
            lines.flat_map(|line| conforms_line(line).into_iter().map(move |fault| format!("{fault}: {line}"))).collect();
        let published = |code: &str| NOTICE_CODES.iter().any(|term| term.name == code);
        let notices = self.stream.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let codes =
            notices.filter(|record| record["event"] == "notice").filter_map(|record| record["code"].as_str().map(str::to_owned));
        faults.extend(codes.filter(|code| !published(code)).map(|code| format!("the code {code} is not published")));
        faults
    }

    /// The records of the stream.
    pub fn events(&self) -> Vec<Value> {
        records(&self.stream)
    }

    /// Those with this name.
    pub fn named(&self, event: &str) -> Vec<Value> {
        self.events().into_iter().filter(|record| record["event"] == event).collect()
    }

    /// The only one with this name.
    pub fn only(&self, event: &str) -> Value {
        let mut named = self.named(event);
        assert_eq!(named.len(), 1, "one {event} expected\n{self}");
        named.remove(0)
    }

    /// The names of the records, in their order.
    pub fn names(&self) -> Vec<String> {
        self.events().iter().map(|record| record["event"].as_str().unwrap().to_owned()).collect()
    }

    /// The exit status as a shell shows it: 128 + n for a signal.
    pub fn code(&self) -> i32 {
        self.status.code().or_else(|| self.status.signal().map(|signal| 128 + signal)).unwrap()
    }

    /// Checks the exit status.
    #[track_caller]
    pub fn exits(&self, code: i32) -> &Self {
        assert_eq!(self.code(), code, "another exit status expected\n{self}");
        self
    }

    /// Checks the outcome.
    #[track_caller]
    pub fn ends(&self, outcome: &str) -> &Self {
        let events = self.events();
        let last = events.last().unwrap_or_else(|| panic!("no events\n{self}"));
        assert_eq!(last["event"], "mission_finished", "{self}");
        assert_eq!(last["outcome"], outcome, "{self}");
        self
    }

    /// Checks that it was refused at the door: exit 2, no events, no run directory, one sentence that says all of this.
    #[track_caller]
    pub fn refused(&self, naming: &[&str]) -> &Self {
        assert!(!self.directory.join(".mission/runs").exists(), "a run directory of a refused run\n{self}");
        self.refused_beside(naming)
    }

    /// The same, in a folder in which runs are kept already.
    #[track_caller]
    pub fn refused_beside(&self, naming: &[&str]) -> &Self {
        self.exits(2);
        assert_eq!(self.stream, "", "events of a refused run\n{self}");
        assert_eq!(self.stderr.trim_end().lines().count(), 1, "one sentence on stderr\n{self}");
        for word in naming {
            assert!(self.stderr.contains(word), "stderr does not name {word:?}\n{self}");
        }
        self
    }

    /// Checks that its only run replays, and is the same.
    #[track_caller]
    pub fn replays(&self) -> &Self {
        let id = self.run_dir().file_name().unwrap().to_owned();
        let replayed = Mission::verb(["replay", "--strict", "--json"]).arg(id).directory(&self.directory).run();
        assert_eq!(replayed.code(), 0, "it does not replay\n{replayed}\n{self}");
        let report: Value = serde_json::from_str(&replayed.stdout).unwrap();
        assert_eq!(report["recordings"][0]["verdict"], "same", "{report:#}\n{self}");
        self
    }

    /// The directory of the only run.
    pub fn run_dir(&self) -> PathBuf {
        let mut runs = run_dirs(&self.directory);
        assert_eq!(runs.len(), 1, "one run directory expected\n{self}");
        runs.remove(0)
    }

    /// The log of the only run.
    pub fn log(&self) -> Log {
        Log::read(&self.run_dir())
    }
}

impl std::fmt::Display for Finished {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}\n-- stream\n{}-- stdout\n{}-- stderr\n{}", self.status, self.stream, self.stdout, self.stderr)
    }
}

/// The run directories below a working directory.
pub fn run_dirs(directory: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(directory.join(".mission/runs")) else {
        return Vec::new();
    };
    let mut runs: Vec<PathBuf> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("run_"))
        .collect();
    runs.sort();
    runs
}

/// The records of a text of lines.
pub fn records(lines: &str) -> Vec<Value> {
    lines.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|problem| panic!("{problem}: {line}"))).collect()
}

/// Writes a file into a folder, with the folders above it.
pub fn write(folder: &Path, name: &str, content: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    File::create(&path).unwrap().write_all(content.as_bytes()).unwrap();
    path
}
