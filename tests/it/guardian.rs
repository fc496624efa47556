//! The guardian: no process of a child tree stays, whatever ends us, and how the server ended is known.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use mission::sys::guardian::End;
use mission::sys::spawn::{ChildTree, GuardianProgram};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, dup};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt};

/// Longer than anything here takes, however busy the machine; a hang is a failure, not a hang.
const LONG: Duration = Duration::from_secs(60);

fn environment() -> BTreeMap<OsString, OsString> {
    BTreeMap::from([(OsString::from("PATH"), std::env::var_os("PATH").unwrap())])
}

fn shell(script: &str) -> Vec<String> {
    ["sh", "-c", script].map(str::to_owned).to_vec()
}

fn spawn(argv: &[String]) -> ChildTree {
    let program = GuardianProgram(env!("CARGO_BIN_EXE_mission").into());
    ChildTree::spawn(&program, argv, &environment(), None).unwrap()
}

fn is_there(pid: &str) -> bool {
    Path::new(&format!("/proc/{}", pid.trim())).exists()
}

/// The first lines that a server writes: numbers of processes.
async fn lines(tree: &mut ChildTree, count: usize) -> Vec<String> {
    let mut output = tokio::io::BufReader::new(tree.stdout.take().unwrap()).lines();
    let mut lines = Vec::new();
    while lines.len() < count {
        lines.push(tokio::time::timeout(LONG, output.next_line()).await.expect("the server writes").unwrap().unwrap());
    }
    // Kept open: a server that writes on must not be killed by a closed pipe.
    tree.stdout = Some(output.into_inner().into_inner());
    lines
}

/// A shell that runs a shell that runs `sleep`, each of which says its number.
const CHAIN: &str = r#"echo $$; sh -c 'echo $$; sleep 1000 & echo $!; wait' & wait"#;

#[tokio::test]
async fn a_chain_is_gone_after_close() {
    let mut tree = spawn(&shell(CHAIN));
    let pids = lines(&mut tree, 3).await;
    assert!(pids.iter().all(|pid| is_there(pid)));
    let end = tokio::time::timeout(LONG, tree.close()).await.unwrap();
    assert_eq!(end, End::Signalled(15));
    assert!(!pids.iter().any(|pid| is_there(pid)), "{pids:?}");
}

#[tokio::test]
async fn a_chain_is_gone_after_the_tree_is_dropped() {
    let mut tree = spawn(&shell(CHAIN));
    let pids = lines(&mut tree, 3).await;
    let mut output = tree.stdout.take().unwrap();
    drop(tree);
    // Every process of the chain holds this pipe: its end is the end of the last of them.
    tokio::time::timeout(LONG, output.read_to_end(&mut Vec::new())).await.expect("the chain ends").unwrap();
    assert_eq!(pids.len(), 3);
}

#[tokio::test]
async fn a_server_that_ends_at_the_end_of_its_input_is_let_end() {
    let mut tree = spawn(&shell("cat; echo bye >&2; exit 3"));
    tree.stdin.take().unwrap().write_all(b"x").await.unwrap();
    let stderr = tree.stderr();
    let end = tokio::time::timeout(LONG, tree.close()).await.unwrap();
    assert_eq!(end, End::Exited(3));
    stderr.settle().await;
    assert_eq!(stderr.quoted().unwrap(), "bye");
}

#[tokio::test]
async fn a_server_that_ignores_end_of_input_and_term_is_killed() {
    let mut tree = spawn(&shell("trap '' TERM INT HUP; echo $$; while :; do sleep 1000; done"));
    let pids = lines(&mut tree, 1).await;
    let end = tokio::time::timeout(LONG, tree.close()).await.unwrap();
    assert_eq!(end, End::Signalled(9));
    assert!(!pids.iter().any(|pid| is_there(pid)));
}

/// Starts a process in a session of its own, away from all pipes, twice removed, ignoring TERM; says its number.
const DAEMON: &str = r#"(setsid sh -c 'trap "" TERM; echo $$; exec sleep 1000 </dev/null >/dev/null 2>&1' &) ;"#;

#[tokio::test]
async fn what_daemonises_itself_is_gone_too() {
    let mut tree = spawn(&shell(&format!("{DAEMON} cat")));
    let pids = lines(&mut tree, 1).await;
    assert!(is_there(pids.first().unwrap()));
    let end = tokio::time::timeout(LONG, tree.close()).await.unwrap();
    assert_eq!(end, End::Exited(0), "cat ended with its input");
    assert!(!pids.iter().any(|pid| is_there(pid)));
}

#[tokio::test]
async fn what_a_server_leaves_behind_is_ended_when_it_exits() {
    let mut tree = spawn(&shell(&format!("{DAEMON} sleep 1000 & read line; exit 7")));
    let pids = lines(&mut tree, 1).await;
    tree.stdin.as_mut().unwrap().write_all(b"now\n").await.unwrap();
    let end = tokio::time::timeout(LONG, tree.ended()).await.unwrap();
    assert_eq!(end, End::Exited(7));
    assert_eq!(tokio::time::timeout(LONG, tree.close()).await.unwrap(), End::Exited(7));
    assert!(!pids.iter().any(|pid| is_there(pid)));
}

#[tokio::test]
async fn a_command_that_is_not_there_is_no_exit_127() {
    let absent = spawn(&["/nowhere/server".to_owned()]);
    let end = tokio::time::timeout(LONG, absent.ended()).await.unwrap();
    assert_eq!(end, End::NotStarted("No such file or directory".to_owned()));
    assert_eq!(end.to_string(), "could not be started: No such file or directory");
    let forbidden = spawn(&["/etc".to_owned()]);
    let end = tokio::time::timeout(LONG, forbidden.ended()).await.unwrap();
    assert_eq!(end, End::NotStarted("Permission denied".to_owned()));
    let present = spawn(&shell("exit 127"));
    assert_eq!(tokio::time::timeout(LONG, present.ended()).await.unwrap(), End::Exited(127));
    let killed = spawn(&shell("kill -9 $$"));
    let end = tokio::time::timeout(LONG, killed.ended()).await.unwrap();
    assert_eq!(end.to_string(), "was killed by SIGKILL");
}

#[tokio::test]
async fn a_server_sees_the_environment_it_was_given_and_its_own_session() {
    let mut tree = spawn(&shell("env; echo session $(ps -o sid= -p $$) $$"));
    let mut text = String::new();
    tree.stdout.take().unwrap().read_to_string(&mut text).await.unwrap();
    let mut names: Vec<&str> = text.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
    // What a shell sets by itself.
    names.retain(|name| !["PWD", "OLDPWD", "SHLVL", "_"].contains(name));
    assert_eq!(names, ["PATH"]);
    let session: Vec<&str> = text.lines().last().unwrap().split_whitespace().collect();
    assert_eq!(session.get(1), session.get(2), "{text}");
}

/// A guardian started by hand, as [`ChildTree`] does it, so that a test holds its pipes and its number.
struct Guarded {
    guardian: Child,
    lifeline: PipeWriter,
    status: PipeReader,
}

fn guard(argv: &[String]) -> Guarded {
    let (lifeline_end, lifeline) = std::io::pipe().unwrap();
    let (status, status_end) = std::io::pipe().unwrap();
    let (lifeline_end, status_end) = (dup(lifeline_end).unwrap(), dup(status_end).unwrap());
    let guardian = Command::new(env!("CARGO_BIN_EXE_mission"))
        .args([mission::sys::guardian::MARK, &lifeline_end.as_raw_fd().to_string(), &status_end.as_raw_fd().to_string(), "--"])
        .args(argv)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    Guarded { guardian, lifeline, status }
}

/// Does something that may hang, on a thread of its own.
fn in_time<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || sender.send(work()));
    receiver.recv_timeout(LONG).expect("it comes to an end")
}

#[test]
fn a_chain_is_gone_when_whoever_holds_it_is_killed() {
    let Guarded { mut guardian, lifeline, mut status } = guard(&shell(CHAIN));
    let mut output = BufReader::new(guardian.stdout.take().unwrap());
    let (pids, mut output) = in_time(move || {
        let mut pids = Vec::new();
        while pids.len() < 3 {
            let mut line = String::new();
            output.read_line(&mut line).unwrap();
            pids.push(line);
        }
        (pids, output)
    });
    // Another process holds the only other end, as a runner does, and is killed without a chance to do anything.
    let inherited = dup(&lifeline).unwrap();
    let mut holder = Command::new("sleep").arg("1000").spawn().unwrap();
    drop((inherited, lifeline));
    assert!(pids.iter().all(|pid| is_there(pid)));
    kill(Pid::from_raw(holder.id().try_into().unwrap()), Signal::SIGKILL).unwrap();
    holder.wait().unwrap();
    let code = in_time(move || guardian.wait().unwrap().code());
    assert_eq!(code, Some(128 + 15));
    assert!(!pids.iter().any(|pid| is_there(pid)), "{pids:?}");
    let mut line = String::new();
    status.read_to_string(&mut line).unwrap();
    assert_eq!(line, "signal:15\n");
    in_time(move || output.read_to_end(&mut Vec::new()).unwrap());
}

#[test]
fn a_signal_for_our_group_does_not_end_a_server() {
    let Guarded { mut guardian, lifeline, status } = guard(&shell("exec cat"));
    let mut input = guardian.stdin.take().unwrap();
    let mut output = BufReader::new(guardian.stdout.take().unwrap());
    let mut echo = move |text: &str| {
        writeln!(input, "{text}").unwrap();
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        line
    };
    let pid = Pid::from_raw(guardian.id().try_into().unwrap());
    let (before, after) = in_time(move || {
        let before = echo("before");
        for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
            kill(pid, signal).unwrap();
        }
        (before, echo("after"))
        // The input ends here.
    });
    assert_eq!((before.as_str(), after.as_str()), ("before\n", "after\n"));
    assert_eq!(in_time(move || guardian.wait().unwrap().code()), Some(0));
    drop((lifeline, status));
}

#[test]
fn a_server_inherits_nothing_but_its_standard_streams() {
    let (reader, writer) = std::io::pipe().unwrap();
    // Not closed on exec: as a descriptor that a platform gave us would be, had we forgotten it.
    let (stray, other) = (dup(reader).unwrap(), dup(writer).unwrap());
    let Guarded { mut guardian, lifeline, status } = guard(&shell("ls -l /proc/$$/fd"));
    let mut output = guardian.stdout.take().unwrap();
    let text = in_time(move || {
        let mut text = String::new();
        output.read_to_string(&mut text).unwrap();
        text
    });
    let open: Vec<&str> = text.lines().filter_map(|line| line.split(" -> ").next()?.split_whitespace().last()).collect();
    assert!(open.starts_with(&["0", "1", "2"]) || open.get(1..) == Some(&["0", "1", "2"]), "{text}");
    assert!(!open.contains(&stray.as_raw_fd().to_string().as_str()), "{text}");
    assert!(!open.contains(&other.as_raw_fd().to_string().as_str()), "{text}");
    assert_eq!(in_time(move || guardian.wait().unwrap().code()), Some(0));
    drop((lifeline, status));
}
