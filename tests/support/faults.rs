//! Disks that fail: a small or read-only file system for one process, and system calls that fail as if the disk had.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::servers::program;

/// A script for `Mission::by_shell` that gives the process a file system of its own on `$MISSION_RUNS`, mounted with these options.
/// What it held is copied to `$KEPT` afterwards. Or what this host lacks.
pub fn on_file_system(options: &str) -> Result<String, String> {
    let unshare = program("unshare")?;
    let tried = Command::new(&unshare).args(["-rm", "mount", "-t", "tmpfs", "none", "/mnt"]).output();
    match tried {
        Ok(output) if output.status.success() => {}
        Ok(output) => {
            return Err(format!("no file system may be mounted here: {}", String::from_utf8_lossy(&output.stderr).trim()));
        }
        Err(error) => return Err(error.to_string()),
    }
    let inside = format!(
        r#"mount -t tmpfs -o {options} none "$MISSION_RUNS" && "$0" "$@"; code=$?; cp -r "$MISSION_RUNS/." "$KEPT"; exit $code"#
    );
    Ok(format!("exec unshare -rm sh -c '{inside}' \"$0\" \"$@\""))
}

/// A script for `Mission::by_shell` under which a system call fails from the first time on. Or what this host lacks.
pub fn failing(call: &str, error: &str) -> Result<String, String> {
    traceable()?;
    Ok(format!("exec strace -f -o /dev/null -e trace={call} -e inject={call}:error={error} \"$0\" \"$@\""))
}

/// Whether processes can be traced here.
pub fn traceable() -> Result<PathBuf, String> {
    let strace = program("strace")?;
    let mut idle = Command::new("sleep").arg("60").spawn().map_err(|error| error.to_string())?;
    let tried = Tracing::attach(idle.id(), &["-e", "trace=none"], Path::new("/dev/null"));
    let _ = idle.kill(); // it may be over
    idle.wait().map_err(|error| error.to_string())?;
    tried.map(|tracing| {
        tracing.end();
        strace
    })
}

/// The thread of a process that has this name.
pub fn thread(process: u32, name: &str) -> u32 {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    tasks
        .map(|task| task.unwrap().path())
        .find(|task| std::fs::read_to_string(task.join("comm")).is_ok_and(|comm| comm.trim() == name))
        .and_then(|task| task.file_name()?.to_str()?.parse().ok())
        .unwrap_or_else(|| panic!("process {process} has no thread {name}"))
}

/// A thread that is traced.
pub struct Tracing {
    strace: Child,
}

impl Tracing {
    /// Traces what a thread does to a file, and waits until that has begun. It is written to `output`, with the paths of files.
    pub fn file(thread: u32, file: &Path, options: &[&str], output: &Path) -> Result<Self, String> {
        let path = ["-P", file.to_str().ok_or("the path is no text")?];
        Self::attach(thread, &[&path, options].concat(), output)
    }

    fn attach(thread: u32, options: &[&str], output: &Path) -> Result<Self, String> {
        let mut command = Command::new("strace");
        command.args(["-y", "-p", &thread.to_string(), "-o"]).arg(output).args(options);
        let mut strace = command.stderr(Stdio::piped()).stdin(Stdio::null()).spawn().map_err(|error| error.to_string())?;
        let mut said = String::new();
        let read = BufReader::new(strace.stderr.take().unwrap()).read_line(&mut said);
        let tracing = Self { strace };
        match read {
            Ok(_) if said.contains("attached") => Ok(tracing),
            _ => {
                tracing.end();
                Err(format!("nothing can be traced here: {}", said.trim()))
            }
        }
    }

    /// Waits for its end, which comes with that of the thread, or is brought about.
    pub fn end(mut self) {
        let _ = self.strace.kill(); // it is over when the thread is
        self.strace.wait().unwrap();
    }

    /// Waits until the thread is gone and all of it is written.
    pub fn finish(mut self) {
        self.strace.wait().unwrap();
    }
}
