//! Recordings that are kept for ever: one log a feature, each as the build wrote it that brought the feature, and a small set of the
//! harness before. They go on verifying, and replaying without a decision that drifts.
//!
//! To add one, name it in [`FEATURES`] with what makes it, and record it:
//! `MISSION_RECORD_LOGS=1 cargo test --test it recordings::`. Only what is missing is written: a log that is there is never written again.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use mission_contract::digest::sha256_hex;
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::doubt::wait_for_line;
use crate::support::log::Log;
use crate::support::needs;
use crate::support::run::{Finished, Mission, run_dirs, write};
use crate::support::servers;

/// The digests of the logs, as `sha256sum` writes them.
const SUMS: &str = "SHA256SUMS";

fn fixtures(kind: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(kind)
}

/// A recording of a feature: how its run is made, in a folder that holds `server.py` and `script.json`.
struct Feature {
    name: &'static str,
    /// What the model says, as `--script` takes it.
    steps: fn() -> Value,
    /// The rest of the command line.
    words: &'static [&'static str],
    /// The event after which the run gets this signal.
    signal: Option<(&'static str, Signal)>,
    /// What is done once its process is over.
    then: &'static [Then],
}

/// What becomes of a run whose first process is over.
enum Then {
    /// A person says so about the call that waits: a verb of `approvals`, its answer where it takes one, and a note.
    Person(&'static str, Option<&'static str>, &'static str),
    /// It is taken up.
    Resumed,
}

const SERVER: &str = "--mcp-stdio=mcp=python3 server.py";
const NATIVE: &str = "--protocol=native";

const fn feature(name: &'static str, steps: fn() -> Value, words: &'static [&'static str]) -> Feature {
    Feature { name, steps, words, signal: None, then: &[] }
}

const FEATURES: &[Feature] = &[
    feature(
        "json-calls",
        || {
            json!([
                {"calls": [{"name": "add", "arguments": {"a": 2, "b": 3}}]},
                {"calls": [{"name": "add", "arguments": {"a": 2, "b": 3}}]},
                {"calls": [{"name": "fail", "arguments": {"why": "no reason"}}]},
                {"calls": [{"name": "mission_result", "arguments": {}}]},
                {"answer": "5, after all.", "usage": {"prompt_tokens": 40, "completion_tokens": 2, "total_tokens": 42}},
            ])
        },
        &[SERVER],
    ),
    feature(
        "native-two-calls",
        || {
            let calls = json!([
                {"name": "add", "arguments": {"a": 2, "b": 3}},
                {"name": "nothing", "arguments": {}},
                {"name": "add", "arguments": {"a": 5, "b": 3}},
            ]);
            json!([{"text": "Both at once.", "calls": calls}, {"answer": "5 and 8."}])
        },
        &[SERVER, NATIVE],
    ),
    feature(
        "rejected-replies",
        || {
            json!([
                {"text": "no object here"},
                {"calls": [{"name": "mcp.weigh", "arguments": {}}]},
                {"calls": [{"name": "add", "arguments": {"a": "one", "b": 2}}]},
                {"raw": "{\"tool\": \"mcp.add\", \"arguments\": {\"a\": 18446744073709551617, \"b\": 1}}"},
                {"raw": "Let me answer: {\"answer\": \"No.\"} So be it."},
            ])
        },
        &[SERVER],
    ),
    feature(
        "large-result",
        || {
            json!([
                {"calls": [{"name": "big", "arguments": {"kib": 66}}]},
                {"calls": [{"name": "mission_result", "arguments": {"handle": "r1", "lines": "1-2"}}]},
                {"answer": "Long."},
            ])
        },
        &[SERVER],
    ),
    feature("server-died", || json!([{"calls": [{"name": "die", "arguments": {}}]}, {"answer": "It died."}]), &[SERVER]),
    feature("server-missing", || json!([{"answer": "never asked"}]), &["--mcp-stdio=mcp=no-such-program-anywhere"]),
    feature(
        "server-optional",
        || json!([{"calls": [{"name": "mcp.add", "arguments": {"a": 2, "b": 3}}]}, {"answer": "5"}]),
        &[SERVER, "--mcp-stdio=gone=no-such-program-anywhere", "--mcp-optional=gone"],
    ),
    feature(
        "call-timed-out",
        || json!([{"calls": [{"name": "mcp.hang", "arguments": {}}]}, {"answer": "It hangs."}]),
        &[SERVER, "--mcp-timeout=1"],
    ),
    feature(
        "steps-spent",
        || json!([{"calls": [{"name": "add", "arguments": {"a": 2, "b": 3}}]}, {"text": "I go on."}, {"answer": "never asked"}]),
        &[SERVER, "--mission-steps=2"],
    ),
    feature(
        "policy",
        || {
            json!([
                {"calls": [{"name": "add", "arguments": {"a": 2, "b": 3}}]},
                {"calls": [{"name": "add", "arguments": {"a": 2, "b": 4}}, {"name": "add", "arguments": {"a": 2000, "b": 4}}]},
            ])
        },
        &[SERVER, NATIVE, "--policy=policy.yaml", "--profile=dev", "--grant=http.read"],
    ),
    feature("model-failed", || json!([{"fail": {"status": 400, "message": "no"}}]), &[SERVER]),
    feature(
        "tools-changed",
        || json!([{"calls": [{"name": "mcp.new", "arguments": {}}]}, {"calls": [{"name": "mcp.new", "arguments": {}}]}, {"answer": "fresh"}]),
        &["--mcp-stdio=mcp=python3 player.py growing.json record"],
    ),
    feature(
        "skill",
        || json!([{"calls": [{"name": "look", "arguments": {}}]}, {"calls": [{"name": "add", "arguments": {"a": 2, "b": 3}}]}, {"answer": "5"}]),
        &[SERVER, "--skill=lamps"],
    ),
    Feature {
        signal: Some(("step_started", Signal::SIGTERM)),
        ..feature("cancelled-while-asking", || json!([{"text": "I am thinking", "stall": true}]), &[SERVER])
    },
    Feature {
        signal: Some(("tool_call", Signal::SIGINT)),
        ..feature(
            "cancelled-in-a-call",
            || json!([{"calls": [{"name": "mcp.hang", "arguments": {}}]}, {"answer": "never asked"}]),
            &[SERVER, NATIVE],
        )
    },
    // Of two gated calls of a reply the second waits once the first was made.
    gate(
        "gate-approved",
        &[SERVER, NATIVE, "--gate-tool=mcp.add"],
        &[
            Then::Person("approve", None, "fine"),
            Then::Resumed,
            Then::Resumed,
            Then::Person("approve", None, "that one too"),
            Then::Resumed,
        ],
    ),
    gate(
        "gate-refused",
        &[SERVER, "--gate=all-writes"],
        &[
            Then::Person("refuse", None, "too risky"),
            Then::Resumed,
            Then::Person("approve", None, "well, that one"),
            Then::Resumed,
        ],
    ),
    Feature {
        signal: Some(("tool_call", Signal::SIGKILL)),
        then: &[Then::Resumed, Then::Person("answer", Some("done"), "seen in the ledger"), Then::Resumed],
        ..feature(
            "call-in-doubt",
            || {
                let calls = json!([{"name": "mcp.hang", "arguments": {}}, {"name": "add", "arguments": {"a": 2, "b": 3}}]);
                json!([{"calls": calls}, {"answer": "Done, and 5."}])
            },
            &[SERVER, NATIVE],
        )
    },
    Feature {
        signal: Some(("tool_call", Signal::SIGKILL)),
        then: &[Then::Resumed, Then::Person("answer", Some("abandon"), "leave it"), Then::Resumed],
        ..feature(
            "call-given-up",
            || {
                let hang = json!({"calls": [{"name": "mcp.hang", "arguments": {}}]});
                json!([hang, hang, {"answer": "I leave it."}])
            },
            &[SERVER],
        )
    },
    Feature {
        signal: Some(("tool_call", Signal::SIGKILL)),
        then: &[Then::Resumed],
        ..feature(
            "call-made-again",
            || json!([{"calls": [{"name": "mcp.read_hang", "arguments": {}}]}, {"answer": "It says nothing."}]),
            &[SERVER, "--trust-annotations=mcp", "--mcp-timeout=2"],
        )
    },
    Feature {
        signal: Some(("tool_call", Signal::SIGTERM)),
        then: &[Then::Resumed],
        ..feature(
            "resumed",
            || json!([{"calls": [{"name": "mcp.hang", "arguments": {}}]}, {"calls": [{"name": "add", "arguments": {"a": 2, "b": 3}}]}, {"answer": "5"}]),
            &[SERVER],
        )
    },
];

/// A call that waits for a person, and what is said about it.
const fn gate(name: &'static str, words: &'static [&'static str], then: &'static [Then]) -> Feature {
    let steps = || {
        json!([
            {"calls": [{"name": "add", "arguments": {"a": 2, "b": 3}}, {"name": "add", "arguments": {"a": 5, "b": 3}}]},
            {"answer": "That is all."},
        ])
    };
    Feature { then, ..feature(name, steps, words) }
}

/// A server that offers another tool once it is asked again.
fn growing() -> Value {
    let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
    let list = |names: [&str; 2]| json!({"send": {"jsonrpc": "2.0", "id": "$ID", "result": {"tools": names.map(tool)}}});
    let shake =
        json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "player", "version": "1"}});
    json!({"steps": [
        {"expect": "server/discover"}, {"send": {"jsonrpc": "2.0", "id": "$ID", "error": {"code": -32601, "message": "no"}}},
        {"expect": "initialize"}, {"send": {"jsonrpc": "2.0", "id": "$ID", "result": shake}},
        {"expect": "notifications/initialized"},
        {"expect": "tools/list"}, list(["old", "other"]),
        {"expect": "tools/list"}, list(["new", "other"]),
        {"expect": "tools/call"},
        {"send": {"jsonrpc": "2.0", "id": "$ID", "result": {"content": [{"type": "text", "text": "fresh"}]}}},
    ]})
}

/// Makes the run of a feature. Nothing in its command line says where on this machine it runs.
fn made(feature: &Feature) -> Finished {
    let folder = tempfile::tempdir().unwrap();
    let copy = |from: &str, to: &str| {
        std::fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(from), folder.path().join(to)).unwrap();
    };
    copy("support/misbehaving.py", "server.py");
    copy("fixtures/players/fake_mcp_stdio.py", "player.py");
    write(folder.path(), "growing.json", &growing().to_string());
    write(
        folder.path(),
        "lamps/SKILL.md",
        "---\nname: lamps\nallowed_tools: [mcp.add, mcp.big]\n---\nCount lamps, never chairs.\n",
    );
    write(
        folder.path(),
        "policy.yaml",
        "version: 1\nrules:\n- {id: no-threes, tools: mcp.*, effect: deny, reason: Not here., when: [{pointer: /b, equals: 3}]}\n- {id: large, tools: mcp.add, effect: gate, when: [{pointer: /a, at_least: 1000}]}\n",
    );
    write(folder.path(), "script.json", &json!({"model": "scripted", "steps": (feature.steps)()}).to_string());
    let state = tempfile::tempdir().unwrap();
    let at = |mission: Mission| mission.directory(folder.path()).env("XDG_STATE_HOME", state.path()).env("MISSION_AUDIT", "none");
    let scripted = |mission: Mission| at(mission).args(["--provider=scripted", "--script=script.json"]);
    let live = scripted(Mission::objective("Add two and three.").args(feature.words.iter().copied())).spawn();
    if let Some((event, signal)) = feature.signal {
        live.wait_for_event(event);
        if event == "tool_call" {
            wait_for_line(&run_dirs(folder.path())[0], "intent");
        }
        live.signal(signal);
    }
    let mut finished = live.finish();
    let run = finished.run_dir().file_name().unwrap().to_str().unwrap().to_owned();
    for then in feature.then {
        match then {
            Then::Resumed => finished = scripted(Mission::resume(&run).args(["--mcp-timeout=2"])).run(),
            Then::Person(verb, answer, note) => {
                let approval = finished.only("gate_requested")["approval_id"].as_str().unwrap().to_owned();
                let words = [Some(*verb), Some(&approval), *answer, Some("--by"), Some("ana"), Some("--note"), Some(note)];
                at(Mission::verb(["approvals"])).args(words.into_iter().flatten()).run().exits(0);
            }
        }
    }
    let log = finished.log();
    assert_eq!(log.problems(), Vec::<String>::new(), "{finished}");
    let kept = fixtures("logs").join(feature.name);
    std::fs::create_dir_all(&kept).unwrap();
    let path = kept.join("log.ndjson");
    // Only a new one: it fails when something is there.
    std::fs::File::create_new(&path).unwrap().write_all(&log.bytes).unwrap();
    let mut sums = std::fs::OpenOptions::new().create(true).append(true).open(fixtures("logs").join(SUMS)).unwrap();
    writeln!(sums, "{}  {}/log.ndjson", sha256_hex(&log.bytes), feature.name).unwrap();
    finished
}

fn sums() -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(fixtures("logs").join(SUMS)).unwrap_or_default();
    text.lines().map(|line| line.split_once("  ").unwrap()).map(|(sum, name)| (name.to_owned(), sum.to_owned())).collect()
}

#[test]
fn every_feature_has_a_log_that_verifies_and_replays_for_ever() {
    if std::env::var_os("MISSION_RECORD_LOGS").is_some() {
        needs!(servers::python());
        for feature in FEATURES.iter().filter(|feature| !fixtures("logs").join(feature.name).join("log.ndjson").exists()) {
            eprintln!("recorded {}: {}", feature.name, made(feature).only("mission_finished"));
        }
    }
    let sums = sums();
    let mut names: Vec<String> = std::fs::read_dir(fixtures("logs"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != SUMS)
        .collect();
    names.sort();
    for feature in FEATURES {
        assert!(names.iter().any(|name| name == feature.name), "no log of {}: see the top of this file", feature.name);
    }
    for name in &names {
        let log = Log::read(&fixtures("logs").join(name));
        assert_eq!(log.problems(), Vec::<String>::new(), "{name}");
        assert_eq!(
            sums.get(&format!("{name}/log.ndjson")),
            Some(&sha256_hex(&log.bytes)),
            "{name} is another log than the one that was recorded"
        );
        let text = String::from_utf8(log.bytes).unwrap();
        for place in ["/work", "/home", "/root", "/tmp", "/Users", env!("CARGO_MANIFEST_DIR")] {
            assert!(!text.contains(place), "{name} names a place of the machine that it was recorded on: {place}");
        }
    }
    let words = ["replay", "--json"].map(str::to_owned).into_iter().chain(names.iter().cloned());
    let finished = Mission::verb(words).directory(&fixtures("logs")).run();
    let report: Value = serde_json::from_str(&finished.stdout).unwrap();
    for recording in report["recordings"].as_array().unwrap() {
        let verdict = recording["verdict"].as_str().unwrap();
        assert!(["same", "text"].contains(&verdict) && recording["finished"] == true, "{recording:#}");
    }
    finished.exits(0);
}

/// What is to be said of each recording of the harness before: a verdict, and words that its report has.
const SEED2: &[(&str, &str, &str)] = &[
    ("cancelled-after-a-call", "same", ""),
    ("cancelled-while-asking", "same", ""),
    // Ordinary gates come later: until then such a recording is refused by name.
    ("gate-requested", "broken", "line 3 of events.jsonl a call waits for a person"),
    ("gated-and-not-proposed", "same", ""),
    ("json-answered", "same", ""),
    ("native-two-calls", "same", ""),
    ("plane-grew", "same", ""),
    // A rule of ours differs: an object is taken from between prose.
    ("prose-around-an-object", "decision", "`reply_rejected` in the recording is `answer` in the replay"),
    ("rejected-replies", "same", ""),
    ("steps-spent", "same", ""),
];

#[test]
fn recordings_of_the_harness_before_replay() {
    let names = SEED2.iter().map(|(name, ..)| *name);
    let finished = Mission::verb(["replay", "--json", "--strict"].into_iter().chain(names)).directory(&fixtures("seed2")).run();
    finished.exits(1);
    let report: Value = serde_json::from_str(&finished.stdout).unwrap();
    let schema = jsonschema::validator_for(&mission_contract::schema::one("replay-report").unwrap()).unwrap();
    assert!(schema.is_valid(&report), "{report:#}");
    for ((name, verdict, words), recording) in SEED2.iter().zip(report["recordings"].as_array().unwrap()) {
        assert_eq!((&recording["recording"], &recording["verdict"]), (&json!(name), &json!(verdict)), "{recording:#}");
        assert_eq!(recording["source"].as_str(), (*verdict != "broken").then_some("seed2"));
        assert!(recording.to_string().contains(words), "{recording:#}");
    }
    assert_eq!(std::fs::read_dir(fixtures("seed2")).unwrap().count(), SEED2.len());
}

/// Given only what a kit for the harness before gives: the run's id, and where the records go.
#[test]
fn a_recording_of_the_harness_before_is_streamed_by_its_id() {
    let folder = tempfile::tempdir().unwrap();
    let id = "run_corpusjson-0001";
    std::fs::create_dir_all(folder.path().join("runs").join(id)).unwrap();
    for file in ["events.jsonl", "model.jsonl", "tools.jsonl"] {
        std::fs::copy(fixtures("seed2").join("json-answered").join(file), folder.path().join("runs").join(id).join(file))
            .unwrap();
    }
    let replay = Mission::default().args(["--mission", "--replay", id]).env("JUDAIS_LOBI_RUNS", folder.path().join("runs"));
    let finished = replay.run();
    finished.exits(0).ends("answered");
    assert_eq!(finished.stderr, "");
    let names = ["mission_started", "step_started", "tool_call", "tool_result", "step_started", "answer", "mission_finished"];
    assert_eq!(finished.names(), names);
    let started = finished.only("mission_started");
    assert_eq!((&started["history"], &started["sandbox"]), (&json!(2), &json!("bwrap")), "{started}");
    assert_eq!(finished.only("answer")["text"], "There are 31 of w-7 — see r1.");
    let fully = Mission::default().args(["--mission", "--replay"]).arg(folder.path().join("runs").join(id)).run();
    assert_eq!(fully.names(), names, "by its folder, too");
}
