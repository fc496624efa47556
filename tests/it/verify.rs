//! `mission verify`: a log is what was written, or the line that is not is named.

use std::path::Path;

use serde_json::json;

use crate::endings::small_files;
use crate::support::log::Log;
use crate::support::model::{Model, Turn, answer, call};
use crate::support::needs;
use crate::support::run::{Finished, Mission};
use crate::support::servers;

/// A run with a call, a large result, and an answer.
fn run(server: &str) -> Finished {
    let turns = [call("mcp.add", json!({"a": 2, "b": 3})), call("mcp.big", json!({"kib": 200})), answer("5.")];
    let model = Model::says(turns);
    let finished = Mission::objective("add two and three").model(&model).mcp_stdio("mcp", server).run();
    finished.exits(0).ends("answered");
    finished
}

fn verify<Word: AsRef<str>>(directory: &Path, words: &[Word]) -> Finished {
    let words = ["verify"].into_iter().chain(words.iter().map(AsRef::as_ref));
    Mission::verb(words).directory(directory).run()
}

fn id(finished: &Finished) -> String {
    finished.run_dir().file_name().unwrap().to_str().unwrap().to_owned()
}

#[test]
fn a_run_is_what_was_written_by_its_id_its_folder_and_its_log() {
    let server = needs!(servers::misbehaving(&[]));
    let finished = run(&server);
    let last = finished.log().lines().pop().unwrap();
    let lines = finished.log().lines().len();
    let folder = format!(".mission/runs/{}", id(&finished));
    let log = format!("{folder}/log.ndjson");
    for word in [id(&finished), folder.clone(), log.clone()] {
        let verified = verify(&finished.directory, &[&word]);
        verified.exits(0);
        let head = last["sum"].as_str().unwrap();
        assert_eq!(verified.stdout, format!("{word}: fine, {lines} lines, 1 stretch, head {head}\n"));
    }
    verify(&finished.directory, &[&folder, &log, &id(&finished)]).exits(0);
    // Under the name of another run it is not what that one wrote.
    let (name, other) = (id(&finished), finished.run_dir().with_file_name("run_20261201T000000-00000000"));
    std::fs::create_dir(&other).unwrap();
    std::fs::copy(other.with_file_name(&name).join("log.ndjson"), other.join("log.ndjson")).unwrap();
    let verified = verify(&finished.directory, &["run_20261201T000000-00000000"]);
    verified.exits(1);
    assert!(verified.stdout.contains(&format!("this is the log of {name}")), "{verified}");
    std::fs::remove_dir_all(&other).unwrap();
    // What a platform kept: the last record names the line before it.
    let kept = finished.only("mission_finished")["log_head"].as_str().unwrap().to_owned();
    let verified = verify(&finished.directory, &[id(&finished), "--head".into(), kept]);
    verified.exits(0);
    assert!(verified.stdout.contains("1 more stand"), "{verified}");
}

#[test]
fn every_line_that_is_changed_or_gone_is_named() {
    let server = needs!(servers::misbehaving(&[]));
    let finished = run(&server);
    let path = finished.run_dir().join("log.ndjson");
    let whole = std::fs::read(&path).unwrap();
    let lines: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
    let said = |bytes: &[u8], line: usize| {
        std::fs::write(&path, bytes).unwrap();
        let verified = verify(&finished.directory, &[id(&finished)]);
        verified.exits(1);
        assert!(verified.stdout.contains(&format!("NOT what was written: line {line}: ")), "{verified}");
    };
    for at in 0..lines.len() {
        let mut changed = lines.concat();
        let start: usize = lines[..at].iter().map(|line| line.len()).sum();
        changed[start + lines[at].len() / 2] ^= 1;
        said(&changed, at + 1);
        let mut without = lines.clone();
        without.remove(at);
        // Where it was the last one, what stands beside the log knows of it.
        said(&without.concat(), at + 1);
        said(&lines[..at].concat(), lines.len());
    }
    std::fs::write(&path, &whole).unwrap();
    verify(&finished.directory, &[id(&finished)]).exits(0);
    // Without the witness, the head that somebody kept finds a cut tail.
    let kept = finished.only("mission_finished")["log_head"].as_str().unwrap().to_owned();
    std::fs::remove_file(finished.run_dir().join("meta.json")).unwrap();
    std::fs::write(&path, lines[..lines.len() - 2].concat()).unwrap();
    verify(&finished.directory, &[id(&finished)]).exits(0);
    let verified = verify(&finished.directory, &[&id(&finished), "--head", &kept]);
    verified.exits(1);
    assert!(verified.stdout.contains(&kept), "{verified}");
}

#[test]
fn a_run_that_was_killed_verifies_with_a_note() {
    let folder = tempfile::tempdir().unwrap();
    let model = Model::says([Turn::Stall]);
    let live = Mission::objective("wait").model(&model).directory(folder.path()).spawn();
    model.wait_for_request(1);
    live.wait_for_event("step_started");
    // It is verified while it goes on, too.
    let run = crate::support::run::run_dirs(folder.path()).remove(0);
    let name = run.file_name().unwrap().to_str().unwrap().to_owned();
    verify(folder.path(), &[&name]).exits(0);
    live.signal(nix::sys::signal::Signal::SIGKILL);
    live.finish();
    let verified = verify(folder.path(), &[&name]);
    verified.exits(0);
    assert!(verified.stdout.contains("the run has not come to its end"), "{verified}");
    let mut bytes = Log::read(&run).bytes;
    bytes.extend_from_slice(b"{\"seq\":9,\"group\":9,\"at\":\"20\0\0\0\0\0garbage");
    std::fs::write(run.join("log.ndjson"), bytes).unwrap();
    let verified = verify(folder.path(), &[&name]);
    verified.exits(0);
    assert!(verified.stdout.contains("a torn tail: 39 bytes"), "{verified}");
}

#[test]
fn a_run_whose_journal_failed_verifies_as_far_as_it_was_durable() {
    let model = Model::says([call("mission_result", json!({"handle": "x".repeat(80_000)})), answer("Twelve.")]);
    let finished = Mission::objective("much").model(&model).arg("--no-stream").inherits(small_files).run();
    finished.exits(4);
    let verified = verify(&finished.directory, &[id(&finished)]);
    verified.exits(0);
    assert!(verified.stdout.contains("a torn tail: "), "{verified}");
}

#[test]
fn what_is_asked_wrongly_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("text"), "# A text\n").unwrap();
    let refused = |words: &[&str], naming: &str| {
        let verified = verify(folder.path(), words);
        verified.exits(2);
        assert_eq!((verified.stdout.as_str(), verified.stderr.lines().count()), ("", 1), "{verified}");
        assert!(verified.stderr.contains(naming), "{verified}");
    };
    refused(&[], "needs a run");
    refused(&["run_20261201T000000-00000000"], "there is no run");
    refused(&["a/b/../c"], "a/b/../c");
    refused(&["text", "run_1"], "run_1");
    refused(&["."], "log.ndjson");
    refused(&["text", "--head", "abc"], "--head");
    refused(&["text", "text", "--head", &"0".repeat(64)], "--head");
    refused(&["text", "--tail"], "--tail");
    refused(&["/dev/null"], "neither a folder nor a file");
    let none = verify(folder.path(), &["text"]);
    none.exits(1);
    assert!(none.stdout.contains("no log of a run"), "{none}");
}
