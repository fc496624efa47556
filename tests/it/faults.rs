//! Disks that fail. Whatever they do: nothing is called whose intent is not durable, nothing is shown that is lost, the run ends by
//! itself and says so, and what is left is a log.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::faults::{Tracing, failing, on_file_system, thread, traceable};
use crate::support::log::Log;
use crate::support::model::{Model, Turn, answer, call, held};
use crate::support::needs;
use crate::support::run::{Finished, Live, Mission, records, run_dirs};
use crate::support::servers;

/// Two small calls around a large one, and an answer.
fn turns() -> Vec<Turn> {
    let add = || call("mcp.add", json!({"a": 2, "b": 3}));
    vec![held(add()), call("mcp.big", json!({"kib": 100})), add(), answer("5.")]
}

/// How often the server was called.
fn called(note: &Path) -> usize {
    let noted = std::fs::read_to_string(note).unwrap_or_default();
    records(&noted).iter().filter(|each| each["what"] == "called").count()
}

/// What must hold of a run whose journal failed.
#[track_caller]
fn holds(finished: &Finished, run_dir: &Path, note: &Path, what: &str) {
    let events = finished.events();
    let names = finished.names();
    assert_eq!(names.iter().filter(|name| *name == "mission_finished").count(), 1, "{what}\n{finished}");
    // The whole lines of what is left; the rest is a torn tail.
    let bytes = Log::read(run_dir).bytes;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.split_inclusive('\n').filter(|line| line.ends_with("\"}\n")).collect();
    if finished.code() == 4 {
        finished.ends("incomplete");
        assert_eq!(names[names.len() - 2], "notice", "{what}\n{finished}");
        assert_eq!(events[events.len() - 2]["code"], "journal_failed", "{what}\n{finished}");
        assert!(!text.contains("\"event\":\"mission_finished\"") || names.len() <= lines.len(), "{what}\n{finished}");
        // Everything shown before is in the log, word for word (a large output stands there once).
        for line in finished.stream.lines().take(names.len() - 2).filter(|line| !line.contains("\"answer_delta\"")) {
            let large = line.len() > 64 * 1024;
            assert!(large || text.contains(&format!("\"record\":{line}")), "{what}: shown and lost: {line}");
        }
    } else {
        finished.exits(0).ends("answered");
    }
    // A call was made only where its intent is durable.
    let intents = lines.iter().filter(|line| line.contains("\"intent\":{")).count();
    assert!(called(note) <= intents, "{what}: {} calls, {intents} intents\n{finished}", called(note));
    let verified = Mission::verb(["verify"]).arg(run_dir).run();
    if lines.is_empty() {
        return;
    }
    verified.exits(0);
}

#[test]
fn a_disk_that_is_full_ends_the_run_wherever_it_is() {
    needs!(on_file_system("size=64k"));
    let folder = tempfile::tempdir().unwrap();
    let mut codes = Vec::new();
    for pages in [1, 2, 3, 4, 5, 6, 8, 12, 24, 30, 36, 64, 256] {
        let place = |name: &str| {
            let path = folder.path().join(format!("{name}-{pages}"));
            std::fs::create_dir(&path).unwrap();
            path
        };
        let (runs, kept) = (place("runs"), place("kept"));
        let note = folder.path().join(format!("note-{pages}"));
        let server = needs!(servers::misbehaving(&["--note", note.to_str().unwrap()]));
        let model = Model::says(turns());
        model.let_go();
        let script = on_file_system(&format!("size={}k", pages * 4)).unwrap();
        let finished = Mission::objective("add two and three")
            .model(&model)
            .mcp_stdio("mcp", &server)
            .env("MISSION_RUNS", &runs)
            .env("KEPT", &kept)
            .by_shell(&script)
            .run();
        codes.push(finished.code());
        if finished.code() == 2 {
            // Not even its folder could be made.
            assert_eq!((finished.stream.as_str(), called(&note)), ("", 0), "{finished}");
            assert!(finished.stderr.contains("its disk is full"), "{finished}");
            continue;
        }
        let run = std::fs::read_dir(&kept)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .find(|path| path.file_name().unwrap().to_str().unwrap().starts_with("run_"))
            .unwrap_or_else(|| panic!("{pages} pages: no run\n{finished}"));
        holds(&finished, &run, &note, &format!("{pages} pages"));
    }
    assert!(codes.contains(&4) && codes.last() == Some(&0), "{codes:?}");
}

#[test]
fn a_disk_that_takes_no_file_is_refused_at_the_door() {
    for (options, naming) in [("size=1m,nr_inodes=2", "its disk is full"), ("ro", "it is read-only")] {
        let script = needs!(on_file_system(options));
        let folder = tempfile::tempdir().unwrap();
        let (runs, kept) = (folder.path().join("runs"), folder.path().join("kept"));
        std::fs::create_dir(&runs).unwrap();
        std::fs::create_dir(&kept).unwrap();
        let model = Model::says([answer("never asked")]);
        let finished =
            Mission::objective("add").model(&model).env("MISSION_RUNS", &runs).env("KEPT", &kept).by_shell(&script).run();
        finished.exits(2);
        assert_eq!((finished.stream.as_str(), finished.stderr.lines().count()), ("", 1), "{finished}");
        assert!(finished.stderr.contains(naming) && finished.stderr.contains("MISSION_RUNS"), "{finished}");
        assert_eq!(model.requests().len(), 0);
        let left: Vec<String> =
            std::fs::read_dir(&kept).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        assert!(left.iter().all(|name| !name.starts_with("run_")), "{left:?}");
    }
}

#[test]
fn a_file_system_without_locks_is_refused_at_the_door() {
    for error in ["ENOLCK", "EOPNOTSUPP", "ENOSYS"] {
        let script = needs!(failing("flock", error));
        let model = Model::says([answer("never asked")]);
        let finished = Mission::objective("add").model(&model).by_shell(&script).run();
        finished.exits(2);
        assert_eq!((finished.stream.as_str(), finished.stderr.lines().count()), ("", 1), "{finished}");
        assert!(finished.stderr.contains("cannot lock files") && finished.stderr.contains("MISSION_RUNS"), "{finished}");
        assert_eq!((run_dirs(&finished.directory).len(), model.requests().len()), (0, 0));
        // Where nothing is kept, nothing is locked.
        let model = Model::says([answer("Twelve.")]);
        let unkept = Mission::objective("how many?").model(&model).env("MISSION_RUNS", "none").by_shell(&script).run();
        unkept.exits(0).ends("answered");
    }
}

/// The log of a run that goes on.
fn log_of(live: &Live) -> PathBuf {
    let directory = std::fs::read_link(format!("/proc/{}/cwd", live.id())).unwrap();
    run_dirs(&directory).remove(0).join("log.ndjson")
}

/// A run whose journal's thread is traced from the first reply on: the calls named fail from their `when`th time on as said.
fn traced(call: &str, when: usize, error: &str) -> (Finished, String, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let note = folder.path().join("note");
    let server = servers::misbehaving(&["--note", note.to_str().unwrap()]).unwrap();
    let model = Model::says(turns());
    let live = Mission::objective("add two and three").model(&model).mcp_stdio("mcp", &server).spawn();
    model.wait_for_request(1);
    live.wait_for_event("step_started");
    let output = folder.path().join("trace");
    let inject = format!("inject={call}:error={error}:when={when}");
    let options = ["-e", "trace=write,fdatasync,fsync", "-e", &inject];
    let log = log_of(&live);
    let tracing = Tracing::file(thread(live.id(), "journal"), &log, &options, &output).unwrap();
    model.let_go();
    let finished = live.finish();
    tracing.finish();
    (finished, std::fs::read_to_string(&output).unwrap(), folder)
}

#[test]
fn a_write_or_a_sync_that_fails_is_never_tried_again() {
    needs!(servers::misbehaving(&[]));
    needs!(traceable());
    for (call, error) in [("fdatasync", "EIO"), ("write", "EIO"), ("write", "ENOSPC"), ("fdatasync", "EDQUOT")] {
        let mut failed = 0;
        for when in 1..=9 {
            let (finished, trace, folder) = traced(call, when, error);
            let what = format!("{call} {when} {error}");
            holds(&finished, &finished.run_dir(), &folder.path().join("note"), &what);
            let Some((_, after)) = trace.split_once("(INJECTED)") else { continue };
            let log: Vec<&str> = after.lines().skip(1).filter(|line| line.contains("/log.ndjson>")).collect();
            if finished.code() == 4 {
                failed += 1;
                assert_eq!(log, Vec::<&str>::new(), "{what}: touched again\n{trace}");
                assert!(finished.stderr.contains("log.ndjson"), "{finished}");
                // The mark stays: the run can be carried on.
                let run = finished.run_dir();
                assert!(run.parent().unwrap().join("open").join(run.file_name().unwrap()).exists(), "{what}");
            }
        }
        assert!(failed >= 3, "{call} {error} failed {failed} runs");
    }
}

#[test]
fn a_write_that_is_interrupted_is_made_again() {
    needs!(servers::misbehaving(&[]));
    needs!(traceable());
    let folder = tempfile::tempdir().unwrap();
    let model = Model::says([held(answer("Twelve."))]);
    let live = Mission::objective("how many?").model(&model).directory(folder.path()).spawn();
    model.wait_for_request(1);
    live.wait_for_event("step_started");
    let options = ["-e", "trace=write", "-e", "inject=write:error=EINTR:when=1"];
    let log = log_of(&live);
    let tracing = Tracing::file(thread(live.id(), "journal"), &log, &options, &folder.path().join("trace")).unwrap();
    model.let_go();
    let finished = live.finish();
    tracing.finish();
    finished.exits(0).ends("answered");
    assert!(std::fs::read_to_string(folder.path().join("trace")).unwrap().contains("(INJECTED)"), "no write was interrupted");
    assert_eq!(finished.log().problems(), Vec::<String>::new());
}

#[test]
fn a_run_whose_folder_is_removed_calls_nothing_more() {
    let folder = tempfile::tempdir().unwrap();
    let note = folder.path().join("note");
    let server = needs!(servers::misbehaving(&["--note", note.to_str().unwrap()]));
    let model = Model::says(turns());
    let live = Mission::objective("add two and three").model(&model).mcp_stdio("mcp", &server).spawn();
    model.wait_for_request(1);
    live.wait_for_event("step_started");
    let state = std::fs::read_link(format!("/proc/{}/cwd", live.id())).unwrap().join(".mission");
    std::fs::remove_dir_all(&state).unwrap();
    model.let_go();
    let finished = live.finish();
    finished.exits(4).ends("incomplete");
    assert_eq!(called(&note), 0, "{finished}");
    let notice = finished.only("notice");
    assert_eq!(notice["code"], "journal_failed");
    assert!(notice["detail"].as_str().unwrap().contains("its file was removed"), "{finished}");
    assert!(!state.exists(), "nothing is made again");
}

#[test]
fn a_size_limit_ends_the_run_and_its_signal_does_not() {
    #[allow(unsafe_code)]
    fn limited() {
        let limit = libc::rlimit { rlim_cur: 20_000, rlim_max: 20_000 };
        // SAFETY: both calls are async-signal-safe; the structure lives until its call returns.
        unsafe {
            libc::signal(libc::SIGXFSZ, libc::SIG_DFL);
            libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit);
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let note = folder.path().join("note");
    let server = needs!(servers::misbehaving(&["--note", note.to_str().unwrap()]));
    let model = Model::says(turns());
    model.let_go();
    let finished = Mission::objective("add two and three").model(&model).mcp_stdio("mcp", &server).inherits(limited).run();
    finished.exits(4);
    holds(&finished, &finished.run_dir(), &note, "RLIMIT_FSIZE");
    let model = Model::says([answer("never asked")]);
    let full = Mission::objective("add").model(&model).env("MISSION_RUNS", "/dev/full").run();
    full.refused(&["/dev/full", "MISSION_RUNS"]);
}

/// What is left when a record was being written: half a line, with a newline, with a blank one, cut within a character; garbage and
/// zeros; nothing at all; the first line alone.
#[test]
fn readers_say_what_a_crash_left_and_change_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let model = Model::says([Turn::Stall]);
    let live = Mission::objective("wait").model(&model).directory(folder.path()).spawn();
    model.wait_for_request(1);
    live.wait_for_event("step_started");
    live.signal(nix::sys::signal::Signal::SIGKILL);
    live.finish();
    let run = run_dirs(folder.path()).remove(0);
    let log = run.join("log.ndjson");
    let whole = Log::read(&run).bytes;
    let half = "{\"seq\":7,\"group\":7,\"at\":\"2026-12-01T00:00:00.000Z\",\"ms\":9,\"prev\":\"caf\u{e9}";
    let (text, cut) = (half.as_bytes(), &half.as_bytes()[..half.len() - 1]);
    let name = run.file_name().unwrap().to_str().unwrap();
    let mission = |words: &[&str]| Mission::verb(words.iter().copied()).directory(folder.path()).run();
    for left in [
        text.to_vec(),
        [text, b"\n"].concat(),
        [text, b"\n\n"].concat(),
        cut.to_vec(),
        [&text[..20], &[0; 5000], b"\xff\xfe old bytes\n{\"seq\":1,"].concat(),
        vec![0; 4096],
    ] {
        let damaged = [whole.as_slice(), &left].concat();
        std::fs::write(&log, &damaged).unwrap();
        let verified = mission(&["verify", name]);
        verified.exits(0);
        assert!(verified.stdout.contains(&format!("a torn tail: {} bytes behind line ", left.len())), "{verified}");
        let shown = mission(&["runs", "show", name]);
        shown.exits(0);
        assert!(shown.stdout.contains(&format!("{} bytes behind line ", left.len())), "{shown}");
        let exported = mission(&["runs", "export", name, "--format", "ndjson"]);
        exported.exits(0);
        assert_eq!(exported.stdout.lines().count(), 2, "{exported}");
        mission(&["runs", "follow", name]).exits(1);
        assert_eq!(std::fs::read(&log).unwrap(), damaged, "a reader changed the log");
        assert!(!run.join("log.torn-7").exists());
    }
    // Nothing, and the first line alone.
    std::fs::remove_file(run.join("meta.json")).ok();
    std::fs::write(&log, "").unwrap();
    let verified = mission(&["verify", name]);
    verified.exits(0);
    assert!(verified.stdout.contains("nothing of the run had become durable"), "{verified}");
    let shown = mission(&["runs", "show", name]);
    shown.exits(1);
    assert!(shown.stderr.contains("holds no run"), "{shown}");
    let first = whole.split_inclusive(|byte| *byte == b'\n').next().unwrap();
    std::fs::write(&log, first).unwrap();
    mission(&["verify", name]).exits(0);
    mission(&["runs", "show", name]).exits(0);
}

#[test]
fn where_the_monotonic_clock_begins_does_not_matter() {
    let uptime: f64 = std::fs::read_to_string("/proc/uptime").unwrap().split(' ').next().unwrap().parse().unwrap();
    let server = needs!(servers::misbehaving(&[]));
    for offset in [-(uptime as i64), 1_000_000_000] {
        let words = ["-rT", "--monotonic", &offset.to_string(), "--boottime", &offset.to_string(), "true"].map(str::to_owned);
        let tried = std::process::Command::new("unshare").args(&words).output();
        needs!(match tried {
            Ok(output) if output.status.success() => Ok(()),
            Ok(output) => Err(format!("no clock of one's own here: {}", String::from_utf8_lossy(&output.stderr).trim())),
            Err(error) => Err(error.to_string()),
        });
        let script = format!("exec unshare {} \"$0\" \"$@\"", words[..5].join(" "));
        let model = Model::says(turns());
        model.let_go();
        let finished = Mission::objective("add two and three").model(&model).mcp_stdio("mcp", &server).by_shell(&script).run();
        finished.exits(0).ends("answered");
        let seconds = finished.only("mission_finished")["elapsed_s"].as_f64().unwrap();
        assert!((0.0..60.0).contains(&seconds), "{offset}: {seconds} s");
        let ms: Vec<u64> = finished.log().lines().iter().map(|line| line["ms"].as_u64().unwrap()).collect();
        assert!(ms.is_sorted() && ms.last() < Some(&60_000), "{offset}: {ms:?}");
        // A call that never comes back is given up after its own time, whatever the clock says.
        let model = Model::says([call("mcp.hang", json!({})), answer("It hangs.")]);
        let hangs = Mission::objective("hang")
            .model(&model)
            .mcp_stdio("mcp", &server)
            .args(["--mcp-timeout", "2"])
            .by_shell(&script)
            .run();
        hangs.exits(0).ends("answered");
        assert_eq!(hangs.log().of_kind("result")[0]["end"], Value::from("timeout"));
    }
}
