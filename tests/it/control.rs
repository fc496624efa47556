//! A run is spoken to while it goes on: where the words come from, what becomes of them, what is answered.

use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::support::model::{Model, Turn, answer, call, held};
use crate::support::model_server::{ModelServer, answers};
use crate::support::needs;
use crate::support::run::{Finished, Live, Mission, write};
use crate::support::servers;

fn inject(text: &str) -> Value {
    json!({"control": "inject", "text": text})
}

fn steer(text: &str) -> Value {
    json!({"control": "steer", "text": text})
}

fn acked(live: &Live, id: &str) -> String {
    let ack = live.wait_for(id, |record| record["event"] == "control_ack" && record["id"] == id);
    ack["disposition"].as_str().unwrap().to_owned()
}

/// What the steps were begun with.
fn injected(finished: &Finished) -> Vec<Value> {
    finished.named("step_started").into_iter().map(|step| step["injected"].clone()).collect()
}

/// The words in the log.
fn words(finished: &Finished) -> Vec<String> {
    let words = finished.log().of_kind("control").into_iter();
    words.map(|control| format!("{} {}", control["source"].as_str().unwrap(), control["word"].as_str().unwrap())).collect()
}

#[test]
fn what_is_injected_reaches_the_model_with_its_next_question() {
    let server = needs!(servers::misbehaving(&[]));
    let model = Model::says([held(call("mcp.add", json!({"a": 2, "b": 3}))), answer("Five.")]);
    let mut live = Mission::objective("add").model(&model).mcp_stdio("mcp", &server).control().arg("--control-acks").spawn();
    model.wait_for_request(1);
    assert_eq!(live.wait_for_event("mission_started")["control"], true);
    live.say(&json!({"control": "inject", "text": "In words.", "id": "a"}));
    live.say(&json!({"control": "inject", "text": "In French.", "id": 2}));
    assert_eq!((acked(&live, "a").as_str(), acked(&live, "2").as_str()), ("queued", "queued"));
    model.let_go();
    let finished = live.finish();
    finished.exits(0).ends("answered").replays();
    assert_eq!(injected(&finished), [Value::Null, json!(["In words.", "In French."])]);
    let messages = model.requests()[1]["messages"].as_array().unwrap().clone();
    let last: Vec<&Value> = messages.iter().rev().take(2).map(|message| &message["content"]).collect();
    assert_eq!(last, ["In French.", "In words."]);
    assert_eq!(words(&finished), ["channel inject", "channel inject"]);
    assert!(!finished.log().lines().iter().any(|line| line.to_string().contains("control_ack")), "answers are not journaled");
}

#[test]
fn a_model_that_is_steered_is_interrupted_and_keeps_what_it_had_said() {
    for protocol in ["json", "native"] {
        let reply = answers(&"One more sum that nobody wants to hear about. ".repeat(20)).in_fragments_of(20);
        let model = ModelServer::start().reply(reply.stalling_after(3000)).reply(answers("Nine."));
        let mut live = Mission::objective("add")
            .args(["--provider", "local", "--protocol", protocol])
            .env("LOCAL_API_BASE", model.base_url())
            .env("LOCAL_MODEL", "scripted")
            .control()
            .spawn();
        live.wait_for_event("answer_delta");
        live.say(&inject("Be brief."));
        live.say(&steer("Say the last one."));
        // The server would be silent for ever: it is hung up on.
        model.wait_for_hang_up(1);
        let finished = live.finish();
        finished.exits(0).ends("answered").replays();
        assert_eq!(injected(&finished), [Value::Null, json!(["Say the last one.", "Be brief."])]);
        assert_eq!(finished.only("answer")["text"], "Nine.");
        let parts: Vec<(u64, u64)> = finished
            .named("answer_delta")
            .iter()
            .map(|delta| (delta["index"].as_u64().unwrap(), delta["part"].as_u64().unwrap()))
            .collect();
        assert!(parts.contains(&(0, 0)) && parts.contains(&(1, 0)), "the new answer is another step's: {parts:?}");
        let request = model.requests()[1].body.clone();
        if protocol == "json" {
            let said = request["messages"][2].clone();
            assert_eq!(said["role"], "assistant", "{request:#}");
            assert!(said["content"].as_str().unwrap().starts_with("{\"answer\""), "{said}");
        }
        assert_eq!(finished.log().of_kind("reply")[0]["end"], "interrupted");
    }
}

#[test]
fn a_tool_that_runs_is_not_touched_by_what_is_said() {
    let server = needs!(servers::misbehaving(&[]));
    let turns = vec![("mcp.hang".to_owned(), json!({})), ("mcp.add".to_owned(), json!({"a": 2, "b": 3}))];
    let model = Model::says([Turn::Call(turns), answer("Done.")]);
    let mut live = Mission::objective("hang")
        .model(&model)
        .protocol("native")
        .mcp_stdio("mcp", &server)
        .args(["--mcp-timeout", "2", "--control-acks"])
        .control()
        .spawn();
    live.wait_for_event("tool_call");
    live.say(&json!({"control": "steer", "text": "Stop there.", "id": "s"}));
    assert_eq!(acked(&live, "s"), "queued");
    let finished = live.finish();
    finished.exits(0).ends("answered").replays();
    assert_eq!(finished.log().of_kind("result")[0]["end"], "timeout", "its own time ended it");
    assert_eq!(finished.named("tool_call").len(), 1, "what was left of the step is skipped\n{finished}");
    let skipped = finished.named("notice").into_iter().find(|notice| notice["code"] == "calls_skipped").unwrap();
    assert!(skipped["detail"].as_str().unwrap().contains("`mcp.add`") && skipped["index"] == 0, "{skipped}");
    assert_eq!(injected(&finished)[1], json!(["Stop there."]));
}

#[test]
fn a_step_is_cancelled_before_its_call() {
    let server = needs!(servers::misbehaving(&[]));
    let model = Model::says([held(call("mcp.add", json!({"a": 2, "b": 3}))), answer("Nothing.")]);
    let mut live = Mission::objective("add").model(&model).mcp_stdio("mcp", &server).control().arg("--control-acks").spawn();
    model.wait_for_request(1);
    live.say(&json!({"control": "cancel_step", "id": "c"}));
    assert_eq!(acked(&live, "c"), "applied");
    model.let_go();
    let finished = live.finish();
    finished.exits(0).ends("answered").replays();
    assert!(finished.named("tool_call").is_empty(), "{finished}");
    assert!(model.requests()[1].to_string().contains("the operator cancelled this step"));
}

/// Field case P15 and its kind: words that come in the same moment as what they are about.
#[test]
fn words_that_race_with_the_end_of_a_step_leave_one_outcome() {
    let server = needs!(servers::misbehaving(&[]));
    for (round, word) in ["cancel_step", "steer", "cancel_step", "inject", "cancel", "cancel_step"].into_iter().enumerate() {
        let turn = || Turn::Call((0..3).map(|a| ("mcp.add".to_owned(), json!({"a": a, "b": round}))).collect());
        let model = Model::says([turn(), turn(), turn(), answer("Done.")]);
        let mut live = Mission::objective("add")
            .model(&model)
            .protocol("native")
            .mcp_stdio("mcp", &server)
            .control()
            .arg("--control-acks")
            .spawn();
        live.wait_for_event("tool_call");
        let line = json!({"control": word, "text": "Now.", "id": "x"});
        // Twice, and once more when a result is there.
        live.say_raw(&format!("{line}\n{line}\n"));
        live.wait_for("a result or the end", |record| record["event"] == "tool_result" || record["event"] == "mission_finished");
        if word != "cancel" {
            live.say(&line);
        }
        let finished = live.finish();
        finished.exits(0).replays();
        let (calls, results) = (finished.named("tool_call"), finished.named("tool_result"));
        assert_eq!(calls.len(), results.len(), "{finished}");
        for (call, result) in calls.iter().zip(&results) {
            assert_eq!((&call["index"], &call["call"]), (&result["index"], &result["call"]), "{finished}");
        }
        assert_eq!(finished.log().of_kind("intent").len(), finished.log().of_kind("result").len());
        if word == "cancel" {
            assert_eq!(words(&finished), ["channel cancel"], "the second one is none");
            finished.ends("incomplete");
        } else {
            finished.ends("answered");
        }
    }
}

#[test]
fn what_was_said_and_not_heard_is_heard_by_whoever_takes_the_run_up() {
    let model = Model::says([Turn::Stall]);
    let folder = tempfile::tempdir().unwrap();
    let mut live = Mission::objective("wait").model(&model).directory(folder.path()).control().arg("--control-acks").spawn();
    model.wait_for_request(1);
    live.say(&json!({"control": "inject", "text": "Later.", "id": "i"}));
    assert_eq!(acked(&live, "i"), "queued");
    live.signal(Signal::SIGTERM);
    let first = live.finish();
    first.exits(143).ends("incomplete").replays();
    let id = first.run_dir().file_name().unwrap().to_str().unwrap().to_owned();
    let model = Model::says([answer("Then now.")]);
    let resumed = Mission::resume(&id).model(&model).directory(folder.path()).run();
    resumed.exits(0).ends("answered").replays();
    assert_eq!(resumed.named("step_started")[0]["injected"], json!(["Later."]));
}

#[test]
fn a_line_that_cannot_be_used_is_told_and_answered_and_nothing_else() {
    let model = Model::says([held(answer("Twelve."))]);
    let mut live = Mission::objective("count")
        .model(&model)
        .env("LOCAL_API_KEY", "sk-0123456789abcdef")
        .control()
        .arg("--control-acks")
        .spawn();
    model.wait_for_request(1);
    live.say_raw("the key is sk-0123456789abcdef\n[1]\n{\"control\":\"cancel\",\"control\":\"inject\"}\n");
    live.say_raw("{\"control\":\"halt\"}\n{\"control\":\"halt\"}\n{\"control\":\"inject\",\"text\":\"\",\"id\":\"b\"}\n\n");
    live.say_raw(
        "{\"control\":\"gate_decision\",\"approval_id\":\"ap_0\",\"approve\":true,\"decided_by\":\"ana\",\"id\":\"g\"}\n",
    );
    live.say_raw(&format!("{}\n", "x".repeat(3_000_000)));
    live.say_raw("{\"control\":\"inject\",\"text\":\"caf\u{e9}\",\"id\":\"last\"}");
    live.hang_up();
    assert_eq!(acked(&live, "last"), "queued");
    model.let_go();
    let finished = live.finish();
    finished.exits(0).ends("answered").replays();
    let acks: Vec<String> = finished
        .named("control_ack")
        .iter()
        .map(|ack| {
            format!(
                "{} {} {}",
                ack["id"].as_str().unwrap_or("-"),
                ack["word"].as_str().unwrap(),
                ack["disposition"].as_str().unwrap()
            )
        })
        .collect();
    assert_eq!(
        acks,
        [
            "-  refused",
            "-  refused",
            "-  refused",
            "- halt refused",
            "- halt refused",
            "b inject refused",
            "g gate_decision refused",
            "-  refused",
            "last inject queued"
        ]
    );
    assert_eq!(finished.stderr.lines().count(), 7, "one sentence each, and an unknown word once\n{finished}");
    assert!(!finished.stderr.contains("0123456789abcdef") && finished.stderr.contains("nothing waits for"), "{finished}");
    assert_eq!(words(&finished), ["channel inject"]);
}

#[test]
fn the_end_of_the_channel_is_no_cancel_and_its_last_line_needs_no_end() {
    let model = Model::says([held(answer("Twelve."))]);
    let mut live = Mission::objective("count").model(&model).control().spawn();
    model.wait_for_request(1);
    live.hang_up();
    model.let_go();
    live.finish().exits(0).ends("answered");
    let model = Model::says([Turn::Stall]);
    let mut live = Mission::objective("count").model(&model).control().spawn();
    model.wait_for_request(1);
    live.say_raw("{\"control\":\"cancel\"}");
    live.hang_up();
    live.finish().exits(0).ends("incomplete").replays();
}

#[test]
fn a_fifo_serves_one_writer_after_the_other() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("words");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let model = Model::says([held(answer("Twelve."))]);
    let live = Mission::objective("count").model(&model).env("MISSION_CONTROL", fifo.as_os_str()).arg("--control-acks").spawn();
    model.wait_for_request(1);
    for id in ["a", "b", "c"] {
        let mut writer = std::fs::OpenOptions::new().write(true).open(&fifo).unwrap();
        write!(writer, "{}", json!({"control": "inject", "text": id, "id": id})).unwrap();
        drop(writer);
        assert_eq!(acked(&live, id), "queued");
    }
    model.let_go();
    let finished = live.finish();
    finished.exits(0).ends("answered").replays();
    assert_eq!(finished.stderr, "");
}

#[test]
fn words_come_from_standard_input_a_file_or_a_socket_that_is_the_stream_as_well() {
    let folder = tempfile::tempdir().unwrap();
    let lines = format!("{}\n{}", inject("One."), json!({"control": "cancel"}));
    let file = write(folder.path(), "words", &lines);
    let from_file = Mission::objective("wait").model(&Model::says([Turn::Stall])).arg("--control").arg(&file).run();
    from_file.exits(0).ends("incomplete").replays();
    let script = format!("exec \"$0\" \"$@\" --control - < {}", file.display());
    let from_input = Mission::objective("wait").model(&Model::says([Turn::Stall])).by_shell(&script).run();
    from_input.exits(0).ends("incomplete").replays();
    for finished in [&from_file, &from_input] {
        assert_eq!(words(finished).last().unwrap(), "channel cancel");
    }
    let (ours, theirs) = UnixStream::pair().unwrap();
    let model = Model::says([held(answer("Twelve."))]);
    let mut live = Mission::objective("count")
        .model(&model)
        .descriptor_4(OwnedFd::from(theirs))
        .events("fd:4")
        .args(["--control", "fd:4", "--control-acks"])
        .spawn();
    model.wait_for_request(1);
    writeln!(&ours, "{}", json!({"control": "inject", "text": "Hello.", "id": "h"})).unwrap();
    let mut read = std::io::BufReader::new(&ours);
    let mut line = String::new();
    while !line.contains("control_ack") {
        line.clear();
        assert!(std::io::BufRead::read_line(&mut read, &mut line).unwrap() > 0, "the stream ended");
    }
    model.let_go();
    live.wait();
    live.finish().exits(0);
}

#[test]
fn a_channel_that_cannot_be_read_is_refused_at_the_door() {
    let folder = tempfile::tempdir().unwrap();
    let (reading, writing) = std::io::pipe().unwrap();
    let place = folder.path().to_str().unwrap().to_owned();
    let absent = format!("{place}/none");
    let door = |word: &str, given: OwnedFd| {
        Mission::objective("add").model(&Model::says([answer("No.")])).descriptor_4(given).args(["--control", word]).run()
    };
    let pipe = || reading.try_clone().unwrap();
    for (word, naming) in [
        ("fd:1", "standard output"),
        ("fd:2", "diagnostics"),
        ("fd:9", "not open"),
        ("fd:", "number"),
        ("fd:-1", "number"),
        ("fd:99999999999", "too large"),
        ("FD:4", "fd:"),
        ("fd:3", "writing only"),
        (place.as_str(), "folder"),
        (absent.as_str(), "mkfifo"),
    ] {
        door(word, pipe().into()).refused(&["--control", naming]);
    }
    door("fd:4", writing.into()).refused(&["--control fd:4", "writing only"]);
    let twice = Mission::objective("add").model(&Model::says([answer("No.")])).events("fd:4").args(["--control", "fd:4"]);
    twice.descriptor_4(std::fs::OpenOptions::new().read(true).write(true).open("/dev/null").unwrap()).run().refused(&["fd:4"]);
    // What is right is taken: 04 is 4.
    door("fd:04", pipe().into()).exits(0).ends("answered");
}

#[test]
fn a_silence_has_signs_of_life() {
    let server = needs!(servers::misbehaving(&[]));
    let model = Model::says([held(call("mcp.hang", json!({}))), answer("Never.")]);
    let mut live = Mission::objective("wait").model(&model).mcp_stdio("mcp", &server).args(["--tick", "0.05"]).control().spawn();
    let tick = |state: &'static str| {
        move |record: &Value| record["event"] == "tick" && record["state"] == state && record["since_s"].as_f64() > Some(0.04)
    };
    let asking = live.wait_for("a sign of life", tick("asking"));
    assert_eq!(asking["waiting_on"], "scripted", "{asking}");
    model.let_go();
    assert_eq!(live.wait_for("another one", tick("calling"))["waiting_on"], "mcp.hang");
    live.say(&json!({"control": "cancel"}));
    let finished = live.finish();
    finished.exits(0).ends("incomplete").replays();
    assert_eq!(finished.names()[0], "mission_started", "never before");
    assert!(!finished.log().lines().iter().any(|line| line.to_string().contains("\"tick\"")), "they are not journaled");
    // Whoever says enough is not asked for more.
    let quick = Mission::objective("count").model(&Model::says([answer("Twelve.")])).args(["--tick", "60"]).run();
    assert!(quick.named("tick").is_empty());
}

#[test]
fn no_child_holds_the_channel() {
    let server = needs!(servers::misbehaving(&[]));
    let model = Model::says([call("mcp.look", json!({})), answer("Seen.")]);
    let live = Mission::objective("look").model(&model).mcp_stdio("mcp", &server).control().spawn();
    let finished = live.finish();
    let seen = finished.only("tool_result")["output"].as_str().unwrap().to_owned();
    let seen: Value = serde_json::from_str(&seen).unwrap();
    assert_eq!(seen["descriptors"].as_object().unwrap().len(), 3, "{seen:#}");
}
