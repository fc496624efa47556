//! Where a run is started: what it finds on standard input, in its environment, below its feet. Nothing of it is read unasked or falls over.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use nix::sys::signal::Signal;
use serde_json::json;

use crate::support::model::{Model, Turn, answer, call, held};
use crate::support::needs;
use crate::support::run::Mission;
use crate::support::servers;

/// A pipe that somebody holds open and writes nothing to: this very process, so that its end never comes.
#[allow(unsafe_code)]
fn open_pipe() {
    let mut ends = [0; 2];
    // SAFETY: both calls are async-signal-safe; the array lives until they return.
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    // SAFETY: the same.
    assert_eq!(unsafe { libc::dup2(ends[0], 0) }, 0);
}

#[allow(unsafe_code)]
fn closed() {
    // SAFETY: async-signal-safe; nobody here owns the number after that.
    unsafe { libc::close(0) };
}

#[allow(unsafe_code)]
fn a_folder() {
    // SAFETY: async-signal-safe; the path is a constant that ends in a zero.
    let folder = unsafe { libc::open(c"/".as_ptr(), libc::O_RDONLY) };
    // SAFETY: async-signal-safe.
    assert_eq!(unsafe { libc::dup2(folder, 0) }, 0);
}

#[allow(unsafe_code)]
fn no_terminal() {
    // SAFETY: async-signal-safe; a process that was just forked leads no group.
    unsafe { libc::setsid() };
}

/// Field case P01: whatever stands on descriptor 0, it is not read unless that is asked for.
#[test]
fn standard_input_is_not_read_unless_it_is_the_channel() {
    let server = needs!(servers::misbehaving(&[]));
    for (input, readable) in [(open_pipe as fn(), true), (closed, false), (a_folder, false), (|| (), true)] {
        for term in [None, Some("dumb")] {
            let model = Model::says([call("mcp.look", json!({})), answer("Seen.")]);
            let mut mission = Mission::objective("look").model(&model).mcp_stdio("mcp", &server);
            if let Some(term) = term {
                mission = mission.env("TERM", term);
            }
            mission.inherits(no_terminal).inherits(input).run().exits(0).ends("answered").replays();
        }
        let model = Model::says([answer("Twelve.")]);
        let asked = Mission::objective("count").model(&model).args(["--control", "-"]).inherits(input).run();
        match readable {
            true => asked.exits(0).ends("answered").replays(),
            false => asked.refused(&["--control"]),
        };
    }
}

/// Field case P12: no home or an odd one, an odd locale, bytes that are no text.
#[test]
fn an_odd_environment_is_nothing_to_fall_over() {
    let server = needs!(servers::misbehaving(&[]));
    let odd = OsString::from_vec(b"caf\xe9".to_vec());
    for home in ["", "/proc", "/", "/nonexistent"] {
        let model = Model::says([call("mcp.look", json!({})), answer("Seen.")]);
        let finished = Mission::objective("look")
            .model(&model)
            .mcp_stdio("mcp", &server)
            .env("HOME", home)
            .env("LC_ALL", "C")
            .env("TMPDIR", "/nonexistent")
            .env("X", odd.clone())
            .run();
        finished.exits(0).ends("answered").replays();
        assert_eq!(finished.stderr, "", "{home}");
    }
    // What is read has to be text, and is refused by its name.
    let refused = Mission::objective("count").env("MISSION_CONTROL", odd.clone()).run();
    refused.refused(&["MISSION_CONTROL"]);
    let refused = Mission::objective("count").arg("--events").arg(odd).run();
    refused.refused(&[]);
}

/// Field case P12: the folder that a run is started in is gone.
#[test]
fn a_folder_that_is_gone_is_refused_in_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let script = format!("mkdir {0} && cd {0} && rmdir {0} && exec \"$0\" \"$@\"", folder.path().join("gone").display());
    let model = Model::says([answer("Never.")]);
    let finished = Mission::objective("count").model(&model).by_shell(&script).run();
    finished.refused(&["directory"]);
    assert_eq!(model.requests().len(), 0);
}

/// Field case P06: a run that is stopped for a while and let go again has lost nothing.
#[test]
fn a_run_that_is_stopped_for_a_while_goes_on() {
    let server = needs!(servers::misbehaving(&[]));
    let model = Model::says([held(call("mcp.add", json!({"a": 2, "b": 3}))), answer("Five.")]);
    let mut live = Mission::objective("add").model(&model).mcp_stdio("mcp", &server).control().arg("--control-acks").spawn();
    model.wait_for_request(1);
    live.signal(Signal::SIGSTOP);
    live.say(&json!({"control": "inject", "text": "Slowly.", "id": "i"}));
    model.let_go();
    live.signal(Signal::SIGCONT);
    let finished = live.finish();
    finished.exits(0).ends("answered").replays();
    assert_eq!(finished.only("control_ack")["id"], "i");
}

/// Field case P06: whoever started the run is killed; the channel and the stream are all that tells.
#[test]
fn the_death_of_whoever_reads_ends_a_run_that_is_to_end_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let model = Model::says([Turn::Stall]);
    let mut live =
        Mission::objective("wait").model(&model).directory(folder.path()).control().args(["--on-reader-gone", "stop"]).spawn();
    model.wait_for_request(1);
    live.hang_up();
    live.close_reader();
    let finished = live.finish();
    finished.exits(0).replays();
    assert_eq!(finished.log().of_kind("control")[0]["source"], "reader_gone");
}
