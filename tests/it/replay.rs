//! Recorded runs, run again: byte for byte where nothing changed, and named where something did. No model, no server, no network, no
//! credential is there any more when they are.

use std::path::{Path, PathBuf};

use mission::journal::LogReader;
use mission_contract::line::{Envelope, LineWriter};
use mission_contract::log::{Entry, Line};
use nix::sys::signal::Signal;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::support::model::{Model, Turn, answer, call, text};
use crate::support::needs;
use crate::support::run::{Finished, Mission, run_dirs, write};
use crate::support::servers;

/// A credential that a model repeats and that the recording's redactor knew.
const CREDENTIAL: &str = "credential-of-the-test-0123456789";

/// The stream as a replay has it: without fragments, and without the head of a log that a replay does not write.
fn comparable(stream: &str) -> Vec<String> {
    let lines = stream.lines().filter(|line| !line.starts_with(r#"{"event":"answer_delta""#));
    lines
        .map(|line| match line.split_once(r#","log_head":""#) {
            Some((before, head)) => format!("{before}{}", head.split_once('"').unwrap().1),
            None => line.to_owned(),
        })
        .collect()
}

fn run_id(finished: &Finished) -> String {
    finished.run_dir().file_name().unwrap().to_str().unwrap().to_owned()
}

/// `mission replay … --json` in a folder: the report, and the exit status.
fn report(directory: &Path, words: &[&str]) -> (Value, i32) {
    let finished = Mission::verb(["replay", "--json"]).args(words.iter().copied()).directory(directory).run();
    let report = serde_json::from_str(&finished.stdout).unwrap_or_else(|problem| panic!("{problem}\n{finished}"));
    (report, finished.code())
}

/// Replays a run in both ways, and holds it against what it was.
#[track_caller]
fn replays(finished: &Finished) {
    let id = run_id(finished);
    let before = finished.log().bytes;
    let again = Mission::default().args(["--mission", "--replay", &id]).directory(&finished.directory).run();
    again.exits(0);
    assert_eq!(again.stderr, "", "nothing drifts\n{again}");
    assert_eq!(comparable(&finished.stream), comparable(&again.stream), "{finished}\n{again}");
    let (report, code) = report(&finished.directory, &["--strict", &id]);
    assert_eq!((&report["recordings"][0]["verdict"], code), (&json!("same"), 0), "{report:#}");
    assert_eq!(run_dirs(&finished.directory).len(), 1, "a replay leaves no run behind");
    assert_eq!(finished.log().bytes, before);
}

fn recorded(protocol: &str, turns: Vec<Turn>, server: &str) -> Finished {
    let model = Model::says(turns);
    let mission = Mission::objective("add two and three").model(&model).env("LOCAL_API_KEY", CREDENTIAL);
    mission.mcp_stdio("mcp", server).protocol(protocol).run()
}

fn add(a: i64) -> Turn {
    call("mcp.add", json!({"a": a, "b": 3}))
}

#[test]
fn a_run_in_the_json_protocol_with_repeated_failed_and_large_results_replays() {
    let server = needs!(servers::misbehaving(&[]));
    let turns = vec![
        add(2),
        add(2),
        call("mcp.fail", json!({"why": "no reason"})),
        call("mcp.big", json!({"kib": 200})),
        call("mission_result", json!({"handle": "r4", "lines": "1-2"})),
        answer("5, after all."),
    ];
    let finished = recorded("json", turns, &server);
    finished.exits(0).ends("answered");
    replays(&finished);
}

#[test]
fn a_native_turn_of_two_calls_replays() {
    let server = needs!(servers::misbehaving(&[]));
    let both = Turn::Call(vec![
        ("mcp.add".to_owned(), json!({"a": 2, "b": 3})),
        ("mcp.nothing".to_owned(), json!({})),
        ("mcp.add".to_owned(), json!({"a": 5, "b": 3})),
    ]);
    let finished = recorded("native", vec![both, answer("5 and 8.")], &server);
    finished.exits(0).ends("answered");
    assert_eq!(finished.named("tool_result").len(), 2);
    replays(&finished);
}

#[test]
fn rejected_replies_and_unknown_tools_replay() {
    let server = needs!(servers::misbehaving(&[]));
    let turns = vec![
        text("no object here"),
        call("add_it", json!({})),
        call("add", json!({"a": 1})),
        text(r#"{"verdict": "progressing", "note": "It learns."}"#),
        call("mcp.add", json!({"a": "one", "b": 2})),
        answer("No."),
    ];
    let finished = recorded("json", turns, &server);
    finished.exits(0).ends("answered");
    assert_eq!(finished.named("reply_rejected").len(), 4);
    replays(&finished);
}

#[test]
fn servers_that_fail_die_and_never_answer_replay() {
    let dying = needs!(servers::misbehaving(&[]));
    let absent = needs!(servers::misbehaving(&["--refuse-to-start"]));
    let finished = recorded("json", vec![call("mcp.die", json!({})), add(2), answer("It died.")], &dying);
    finished.exits(0).ends("answered");
    replays(&finished);
    let finished = recorded("json", vec![answer("never asked")], &absent);
    finished.exits(1).ends("incomplete");
    replays(&finished);
    let model = Model::says([call("mcp.hang", json!({})), answer("It hangs.")]);
    let mission = Mission::objective("hang").model(&model).mcp_stdio("mcp", &dying).mcp_stdio("gone", &absent);
    let finished = mission.args(["--mcp-timeout", "1", "--mcp-optional", "gone"]).run();
    finished.exits(0).ends("answered");
    replays(&finished);
}

#[test]
fn a_run_that_spent_its_steps_replays() {
    let server = needs!(servers::misbehaving(&[]));
    let model = Model::says((0..9).map(add));
    let finished = Mission::objective("add").model(&model).mcp_stdio("mcp", &server).steps(2).run();
    finished.exits(0).ends("budget_exhausted");
    replays(&finished);
}

#[test]
fn a_model_that_fails_replays() {
    let model = Model::says([Turn::Status(500)]);
    let finished = Mission::objective("add").model(&model).run();
    finished.exits(1).ends("incomplete");
    replays(&finished);
}

#[test]
fn a_run_that_was_cancelled_while_it_waited_replays() {
    let model = Model::says([Turn::Stall]);
    let live = Mission::objective("wait").model(&model).spawn();
    model.wait_for_request(1);
    live.signal(Signal::SIGTERM);
    let finished = live.finish();
    finished.exits(143).ends("incomplete");
    replays(&finished);
    let server = needs!(servers::misbehaving(&[]));
    let model = Model::says([call("mcp.hang", json!({})), answer("never asked")]);
    let live = Mission::objective("wait").model(&model).mcp_stdio("mcp", &server).spawn();
    live.wait_for_event("tool_call");
    live.signal(Signal::SIGINT);
    let finished = live.finish();
    finished.exits(130).ends("incomplete");
    replays(&finished);
}

/// A server that offers another tool once it is asked again.
fn growing(folder: &Path) -> Result<String, String> {
    let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
    let list = |names: &[&str]| json!({"send": {"jsonrpc": "2.0", "id": "$ID", "result": {"tools": names.iter().map(|name| tool(name)).collect::<Vec<_>>()}}});
    let said = json!({"send": {"jsonrpc": "2.0", "id": "$ID", "result": {"content": [{"type": "text", "text": "fresh"}]}}});
    let steps = json!([
        {"expect": "server/discover"},
        {"send": {"jsonrpc": "2.0", "id": "$ID", "error": {"code": -32601, "message": "no"}}},
        {"expect": "initialize"},
        {"send": {"jsonrpc": "2.0", "id": "$ID", "result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "player", "version": "1"}}}},
        {"expect": "notifications/initialized"},
        {"expect": "tools/list"}, list(&["old", "other"]),
        {"expect": "tools/list"}, list(&["new", "other"]),
        {"expect": "tools/call"}, said,
    ]);
    let script = write(folder, "server.json", &json!({ "steps": steps }).to_string());
    let player = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/players/fake_mcp_stdio.py");
    Ok(servers::line([servers::python()?, player, script, folder.join("record")]))
}

#[test]
fn tools_that_come_and_go_replay() {
    let folder = tempfile::tempdir().unwrap();
    let server = needs!(growing(folder.path()));
    let finished = recorded("json", vec![call("mcp.new", json!({})), call("mcp.new", json!({})), answer("fresh")], &server);
    finished.exits(0).ends("answered");
    let changed: Vec<Value> = finished.named("step_started").into_iter().filter(|step| step.get("catalogue").is_some()).collect();
    assert_eq!(changed[0]["catalogue"], json!(["mcp.new", "mcp.other", "mission_result"]), "{finished}");
    replays(&finished);
}

fn lamps(folder: &Path, name: &str, words: &str) -> PathBuf {
    write(folder, &format!("{name}/SKILL.md"), &format!("---\nname: {name}\nallowed_tools: [mcp.look, mcp.add]\n---\n{words}\n"))
}

#[test]
fn a_run_under_a_skill_replays_with_it_and_drifts_with_another() {
    let server = needs!(servers::misbehaving(&[]));
    let folder = tempfile::tempdir().unwrap();
    let skill = lamps(folder.path(), "lamps", "Count lamps, never chairs.");
    let model = Model::says([add(2), answer("5")]);
    let finished = Mission::objective("add").model(&model).mcp_stdio("mcp", &server).skill(&skill).run();
    finished.exits(0).ends("answered");
    std::fs::remove_file(&skill).unwrap();
    replays(&finished);
    let id = run_id(&finished);
    // Other words only: a text.
    let chairs = lamps(folder.path(), "lamps", "Count chairs, never lamps.");
    let other = chairs.to_str().unwrap();
    let (seen, code) = report(&finished.directory, &["--skill", other, &id]);
    assert_eq!((&seen["recordings"][0]["verdict"], code), (&json!("text"), 0), "{seen:#}");
    let drift = &seen["recordings"][0]["drift"][0];
    assert_eq!((&drift["kind"], drift["recorded"].is_string()), (&json!("text"), true));
    assert_eq!(report(&finished.directory, &["--skill", other, "--strict", &id]).1, 1);
    let again = Mission::default().args(["--replay", &id, "--skill", other]).directory(&finished.directory).run();
    again.exits(0).ends("answered");
    assert!(again.stderr.contains("text: "), "{again}");
    // A smaller set: the call is refused, and every step is another one from there on.
    let fewer = write(folder.path(), "fewer/SKILL.md", "---\nname: fewer\nallowed_tools: [mcp.look]\n---\nLook.\n");
    let (seen, code) = report(&finished.directory, &["--skill", fewer.to_str().unwrap(), &id]);
    assert_eq!((&seen["recordings"][0]["verdict"], code), (&json!("decision"), 1), "{seen:#}");
    let kinds: Vec<&Value> = seen["recordings"][0]["drift"].as_array().unwrap().iter().map(|drift| &drift["kind"]).collect();
    assert_eq!(kinds, [&json!("decision"), &json!("text")], "the first of each kind, and the replay went on: {seen:#}");
    // A set that the recorded servers do not have is refused before anything is streamed.
    let none = write(folder.path(), "none/SKILL.md", "---\nname: none\nallowed_tools: [weigh]\n---\nWeigh.\n");
    let refused = Mission::default().args(["--replay", &id, "--skill", none.to_str().unwrap()]).directory(&finished.directory);
    let refused = refused.run();
    refused.exits(2);
    assert!(refused.stream.is_empty() && refused.stderr.contains("weigh"), "{refused}");
}

#[test]
fn a_credential_that_was_held_back_then_is_held_back_in_a_replay() {
    let server = needs!(servers::misbehaving(&[]));
    let turns = vec![text(&format!("I know {CREDENTIAL}.")), add(2), answer(&format!("5, says {CREDENTIAL}."))];
    let finished = recorded("json", turns, &server);
    finished.exits(0).ends("answered");
    assert!(finished.only("answer")["text"].as_str().unwrap().contains("<redacted:LOCAL_API_KEY>"), "{finished}");
    replays(&finished);
    // Also where the replay takes another way, and in what is said about that.
    let folder = tempfile::tempdir().unwrap();
    let fewer = write(folder.path(), "fewer/SKILL.md", "---\nname: fewer\nallowed_tools: [mcp.look]\n---\nLook.\n");
    let again = Mission::default().args(["--replay", &run_id(&finished), "--skill", fewer.to_str().unwrap()]);
    let again = again.directory(&finished.directory).run();
    again.exits(0);
    assert!(!format!("{again}").contains(CREDENTIAL), "{again}");
}

/// Whether a network namespace of one's own can be had here.
fn no_network() -> Result<PathBuf, String> {
    let unshare = servers::program("unshare")?;
    match std::process::Command::new(&unshare).args(["-rn", "true"]).output() {
        Ok(output) if output.status.success() => Ok(unshare),
        Ok(output) => Err(format!("no network namespace: {}", String::from_utf8_lossy(&output.stderr).trim())),
        Err(problem) => Err(format!("no network namespace: {problem}")),
    }
}

#[test]
fn without_network_servers_model_and_credentials_a_run_replays_all_the_same() {
    let unshare = needs!(no_network());
    let folder = tempfile::tempdir().unwrap();
    let script = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/misbehaving.py")).unwrap();
    let program = write(folder.path(), "server.py", &script);
    let server = servers::line([needs!(servers::python()), program]);
    let finished = recorded("json", vec![add(2), answer("5")], &server);
    finished.exits(0).ends("answered");
    // The server's program and the model are gone, and so is every other address.
    drop(folder);
    let id = run_id(&finished);
    let inside = |mission: Mission| {
        let unshared = format!("exec {} -rn \"$0\" \"$@\"", unshare.display());
        mission.by_shell(&unshared).directory(&finished.directory).run()
    };
    let again = inside(Mission::default().args(["--mission", "--replay", &id]));
    again.exits(0);
    assert_eq!(comparable(&finished.stream), comparable(&again.stream));
    inside(Mission::verb(["replay", "--strict", &id])).exits(0);
}

/// The lines of a log, one of them changed, and the chain mended behind it.
fn rewritten(log: &Path, change: &dyn Fn(&mut Vec<Line>)) -> Vec<u8> {
    let mut lines: Vec<Line> = LogReader::open(log).unwrap().map(Result::unwrap).collect();
    change(&mut lines);
    let mut writer = LineWriter::new(mission_contract::digest::ZERO.to_owned());
    let mut bytes = Vec::new();
    for (seq, line) in (1..).zip(lines) {
        let envelope = Envelope { seq, group: seq, at: &line.at, ms: line.ms, branch: line.branch.as_deref() };
        writer.line(envelope, &line.entry, &mut bytes).unwrap();
    }
    bytes
}

fn with_record(lines: &mut Vec<Line>, event: &str, change: &dyn Fn(&mut Value)) {
    for line in lines {
        if let Entry::Record(record) = &mut line.entry {
            let mut value: Value = serde_json::from_str(record.get()).unwrap();
            if value["event"] == event {
                change(&mut value);
                *record = RawValue::from_string(value.to_string()).unwrap();
            }
        }
    }
}

fn without(lines: &mut Vec<Line>, event: &str) {
    lines.retain(|line| !matches!(&line.entry, Entry::Record(record) if record.get().contains(&format!(r#""event":"{event}""#))));
}

/// What a recording was changed in, and what a replay is to say of it.
type Case = (&'static str, &'static dyn Fn(&mut Vec<Line>));

#[test]
fn what_differs_is_named_with_both_sides_and_its_place() {
    let server = needs!(servers::misbehaving(&[]));
    let turns = vec![text("no object here"), add(2), call("mcp.big", json!({"kib": 40})), answer("5, after all.")];
    let finished = recorded("json", turns, &server);
    finished.exits(0).ends("answered");
    let log = finished.run_dir().join("log.ndjson");
    let cases: &[Case] = &[
        ("text `problem` of `reply_rejected` 0", &|lines| {
            with_record(lines, "reply_rejected", &|record| record["problem"] = json!("Say it again."));
        }),
        ("text message 1 of what the model is asked 0", &|lines| {
            let first =
                lines.iter_mut().find_map(|line| if let Entry::Ask(ask) = &mut line.entry { Some(ask) } else { None }).unwrap();
            first.digest = "0".repeat(64);
            first.adds[0].content = "Another prompt.".into();
        }),
        ("decision `arguments` of `tool_call` 1", &|lines| {
            with_record(lines, "tool_call", &|record| {
                if record["tool"] == "mcp.add" {
                    record["arguments"]["a"] = json!(7);
                }
            });
        }),
        ("decision `reply_rejected` is in the replay only 0", &|lines| without(lines, "reply_rejected")),
        ("decision `outcome` of `mission_finished` 3", &|lines| {
            with_record(lines, "mission_finished", &|record| record["outcome"] = json!("incomplete"));
        }),
        ("decision `truncated` of `tool_result` 2", &|lines| {
            with_record(lines, "tool_result", &|record| {
                record["truncated"] = json!(record["index"] == 2 && !record["truncated"].as_bool().unwrap())
            });
        }),
        ("decision `text` of `answer` 3", &|lines| with_record(lines, "answer", &|record| record["text"] = json!("6."))),
        ("decision `key` of the call's intent 1", &|lines| {
            for line in lines {
                if let Entry::Intent(intent) = &mut line.entry {
                    intent.key = "0".repeat(64);
                }
            }
        }),
        ("decision `tool_call` in the recording is `answer` in the replay 1", &|lines| {
            let said =
                lines.iter_mut().filter_map(|line| if let Entry::Reply(reply) = &mut line.entry { Some(reply) } else { None });
            said.skip(1).take(1).for_each(|reply| reply.text = r#"{"answer": "at once"}"#.into());
        }),
        ("decision the model is asked in the recording only 2", &|lines| {
            let last = lines.iter().rposition(|line| matches!(line.entry, Entry::Ask(_))).unwrap();
            let Entry::Ask(ask) = lines[last].entry.clone() else { unreachable!() };
            // The reply needs an ask to answer: it stands in another step.
            lines.remove(last);
            let mut line = lines[last - 3].clone();
            line.entry = Entry::Ask(ask);
            lines.insert(last - 3, line);
        }),
    ];
    for (expected, change) in cases {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("log.ndjson"), rewritten(&log, change)).unwrap();
        let (report, code) = report(folder.path(), &["."]);
        let drifts: Vec<String> = report["recordings"][0]["drift"]
            .as_array()
            .unwrap_or_else(|| panic!("{expected}: {report:#}"))
            .iter()
            .map(|drift| format!("{} {} {}", drift["kind"].as_str().unwrap(), drift["what"].as_str().unwrap(), drift["step"]))
            .collect();
        assert!(drifts.iter().any(|drift| drift == expected), "{expected} is not among {drifts:?}: {report:#}");
        assert_eq!(code, i32::from(drifts.iter().any(|drift| drift.starts_with("decision"))), "{report:#}");
    }
}

#[test]
fn a_run_that_was_killed_replays_to_where_its_log_ends() {
    let server = needs!(servers::misbehaving(&[]));
    let finished = recorded("json", vec![add(2), answer("5")], &server);
    let log = finished.run_dir().join("log.ndjson");
    let whole = std::fs::read(&log).unwrap();
    let ends: Vec<usize> = whole.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1).collect();
    for (count, end) in (1..).zip(&ends[..ends.len() - 1]) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("log.ndjson"), &whole[..*end]).unwrap();
        let (report, code) = report(folder.path(), &["--strict", "."]);
        let recording = &report["recordings"][0];
        assert_eq!(
            (&recording["verdict"], &recording["finished"], code),
            (&json!("same"), &json!(false), 0),
            "{count} lines: {report:#}"
        );
        let again = Mission::default().args(["--replay", "."]).directory(folder.path()).run();
        let is_answered = String::from_utf8_lossy(&whole[..*end]).contains(r#""reply":{"of":2,"#);
        again.exits(i32::from(!is_answered)).ends(if is_answered { "answered" } else { "incomplete" });
    }
}

#[test]
fn a_bad_recording_does_not_stop_the_others_and_the_report_is_readable() {
    let server = needs!(servers::misbehaving(&[]));
    let finished = recorded("json", vec![add(2), answer("5")], &server);
    let id = run_id(&finished);
    let folder = &finished.directory;
    let log = finished.run_dir().join("log.ndjson");
    let mut bytes = std::fs::read(&log).unwrap();
    write(
        folder,
        "changed/log.ndjson",
        &String::from_utf8(rewritten(&log, &|lines| {
            with_record(lines, "mission_finished", &|record| record["outcome"] = json!("incomplete"));
        }))
        .unwrap(),
    );
    let at = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 40;
    bytes[at] ^= 1;
    write(folder, "damaged/log.ndjson", &String::from_utf8(bytes).unwrap());
    write(folder, "none/notes.txt", "nothing");
    let words = ["replay", "--junit", "junit.xml", "changed", "damaged", "none", "nowhere", "run_1-1", ".mission/runs", &id];
    let seen = Mission::verb(words).directory(folder).run();
    seen.exits(1);
    assert_eq!(seen.stderr, "");
    let shown = seen.stdout.replace(folder.to_str().unwrap(), "…").replace(&id, "RUN");
    let shown = regex::Regex::new("[0-9a-f]{64}").unwrap().replace_all(&shown, "SUM").into_owned();
    insta::assert_snapshot!(shown, @"
    decision  changed (2 steps)
      decision: `outcome` of `mission_finished`, step 1, seq 16
        recorded: incomplete
        replayed: answered
    broken    damaged: the log damaged/log.ndjson is damaged at line 2, which had been made durable: the line's bytes were changed: `sum` says SUM, they have SUM
    broken    none: the folder `none` holds neither log.ndjson nor events.jsonl; name the folder of a recorded run
    broken    nowhere: there is no run, folder or log `nowhere`; name a run by its id, or a recording by its path
    broken    run_1-1: there is no run `run_1-1` in …/.mission/runs, and no folder or log of that name here; name a run by its id, or a recording by its path
    broken    .mission/runs: the folder `.mission/runs` is no recording but holds some (RUN); name them: .mission/runs/*
    same      RUN (2 steps)
    7 recordings: 1 same, 1 decision, 5 broken
    ");
    let xml = std::fs::read_to_string(folder.join("junit.xml")).unwrap();
    assert!(xml.contains(r#"tests="7" failures="1" errors="5""#), "{xml}");
}

#[test]
fn what_is_asked_wrongly_is_refused() {
    let nothing = Mission::verb(["replay"]).run();
    nothing.exits(2);
    assert!(nothing.stderr.contains("no recording"), "{nothing}");
    Mission::default().args(["--replay", "nowhere"]).run().refused(&["--replay", "nowhere"]);
    Mission::default().arg("--mission").env("MISSION_REPLAY", "nowhere").run().refused(&["MISSION_REPLAY", "nowhere"]);
    Mission::default().args(["--replay", "x", "--no-grounding"]).run().refused(&["--replay", "`x`"]);
    Mission::default().args(["--replay", "x", "--policy", "p"]).run().refused(&["--replay", "`x`"]);
    Mission::default().args(["--replay", "x", "--gate-tool", "mcp.add"]).run().refused(&["--replay", "`x`"]);
    Mission::default().args(["--replay", "x", "--replay-tools", "live"]).run().refused(&["--replay-tools live"]);
}

#[test]
fn an_objective_beside_a_recording_has_to_be_its_own() {
    let model = Model::says([answer("Twelve.")]);
    let finished = Mission::objective("how many lamps?").model(&model).run();
    let id = run_id(&finished);
    let replay = |objective: &str| Mission::objective(objective).directory(&finished.directory);
    replay("how many lamps?").env("MISSION_REPLAY", &id).run().exits(0).ends("answered");
    let other = replay("how many chairs?").args(["--replay", &id]).run();
    other.exits(2);
    assert!(other.stderr.contains("lamps") && other.stderr.contains("chairs"), "{other}");
    // What says who answers, what is called and how far says nothing here, and needs nothing.
    let ignored = ["--provider", "openai", "--mcp-stdio", "no-such-program", "--mission-steps", "1", "--protocol", "native"];
    replay("how many lamps?").args(ignored).args(["--replay", &id, "--replay-tools", "recorded"]).run().exits(0).ends("answered");
}

#[test]
fn a_replay_is_ended_by_a_signal_as_a_run_is() {
    let server = needs!(servers::misbehaving(&[]));
    let finished = recorded(
        "json",
        vec![call("mcp.big", json!({"kib": 4000})), call("mcp.big", json!({"kib": 4001})), answer("much")],
        &server,
    );
    finished.exits(0).ends("answered");
    // Its reader takes nothing at first: it stands in the middle when the signal comes.
    let live = Mission::default()
        .args(["--replay", &run_id(&finished), "--grace", "0"])
        .directory(&finished.directory)
        .slow_reader()
        .spawn();
    live.signal(Signal::SIGTERM);
    live.read_now();
    let again = live.finish();
    assert_eq!(again.code(), 143, "{}", again.stderr);
}
