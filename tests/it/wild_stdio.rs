//! Servers over stdio as they are in the field: they print what is no message, mark their bytes, flood, start slowly or never,
//! name versions that nobody knows, write lines without end. Each field case stands for its whole kind.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::each::each;
use crate::support::model::{Model, Turn, answer, call};
use crate::support::needs;
use crate::support::player::{Script, answering, echo, field_json, initialized, join, listed, probed};
use crate::support::run::{Finished, Mission};
use crate::support::servers;

/// A run whose model calls `echo` so many times.
fn calls(script: &Script, times: usize, arguments: &[&str]) -> Finished {
    let turns: Vec<Turn> = (0..times).map(|number| call("srv.echo", json!({"text": number.to_string()}))).collect();
    let model = Model::says(turns.into_iter().chain([answer("done")]));
    Mission::objective("call it").model(&model).mcp_stdio("srv", &script.line()).args(arguments).run()
}

/// It worked: each call had this output, nothing was called twice, and the server was told nothing but requests.
#[track_caller]
fn worked(script: &Script, finished: &Finished, outputs: &[&str]) {
    finished.exits(0).ends("answered");
    let results = finished.named("tool_result");
    let seen: Vec<&str> = results.iter().map(|result| result["output"].as_str().unwrap()).collect();
    assert_eq!(seen, outputs, "{finished}");
    assert!(results.iter().all(|result| result["ok"] == true), "{finished}");
    assert_eq!(script.recorded("tools/call").len(), outputs.len(), "each call is made once");
    assert!(!script.methods().contains(&String::new()), "nothing is answered to noise: {:?}", script.record());
    assert_eq!(finished.log().problems(), Vec::<String>::new());
}

/// The codes of the notices.
fn codes(finished: &Finished) -> Vec<String> {
    finished.named("notice").iter().map(|notice| notice["code"].as_str().unwrap().to_owned()).collect()
}

/// It did not come up, the run says why, and the model was not asked.
#[track_caller]
fn did_not_come_up(script: &Script, arguments: &[&str], naming: &[&str]) {
    let model = Model::says([answer("never asked")]);
    let line = script.line();
    let finished = Mission::objective("call it").model(&model).mcp_stdio("srv", &line).args(arguments).run();
    finished.exits(1).ends("incomplete");
    assert_eq!(finished.names(), ["mission_started", "notice", "mission_finished"], "{finished}");
    let notice = finished.only("notice");
    assert_eq!((&notice["code"], &notice["server"]), (&json!("server_failed"), &json!("srv")), "{finished}");
    for word in naming {
        assert!(notice["detail"].as_str().unwrap().contains(word), "the notice does not name {word:?}\n{finished}");
    }
    assert_eq!(model.requests().len(), 0);
}

/// Where a case differs from the others of its kind.
type Steps = fn() -> Value;

/// M01. What is no message is skipped and told once; nothing is written back for it.
#[test]
fn what_is_no_message_costs_nothing() {
    needs!(servers::python());
    let noisy = |lines: &str| {
        let noise = || json!([{ "send_raw": lines }]);
        let script = Script::new(join([
            noise(),
            probed(),
            noise(),
            initialized("2025-11-25"),
            noise(),
            listed(json!([echo()])),
            noise(),
            json!([{"expect": "tools/call"}]),
            noise(),
            answering("ok"),
            noise(),
        ]));
        (calls(&script, 1, &[]), script)
    };
    let kinds: &[(&str, String)] = &[
        ("a banner", "Server v1.2 on stdio\n".into()),
        ("colours", "\u{1b}[32m✔\u{1b}[0m ready\n".into()),
        ("a logger's objects", "{\"level\":30,\"msg\":\"x\",\"id\":1}\n{\"level\":\"error\",\"error\":null}\n".into()),
        ("an object of ours without an end", "{\"jsonrpc\":\"2.0\",\"method\":\n".into()),
        ("values that are no object", "42\n\"text\"\nnull\ntrue\n[]\n[1,2]\n{}\n".into()),
        (
            "wrong shapes",
            "{\"jsonrpc\":\"2.0\"}\n{\"jsonrpc\":\"1.0\",\"method\":\"x\"}\n{\"method\":7}\n{\"id\":null,\"result\":1}\n".into(),
        ),
        (
            "answers to nobody",
            "{\"jsonrpc\":\"2.0\",\"id\":77777,\"result\":{}}\n{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"error\":{}}\n".into(),
        ),
        ("a line of a megabyte", format!("{}\n", "x".repeat(1 << 20))),
        ("many lines", "DEBUG tick\n".repeat(5_000)),
        ("blank lines", "\n\r\n  \t\n".into()),
        ("bare returns", "10%\r20%\r100%\n".into()),
    ];
    let tables: Vec<(&str, &str)> = kinds.iter().map(|(name, lines)| (*name, lines.as_str())).collect();
    each(&tables, |lines| {
        let (finished, script) = noisy(lines);
        worked(&script, &finished, &["ok"]);
        let told = codes(&finished);
        let is_noise = lines.trim().len() > 1 && !lines.contains("77777");
        assert_eq!(told, vec!["server_noise"; usize::from(is_noise)], "{finished}");
    });
    // Bytes that are no text at all.
    let script = Script::new(join([
        probed(),
        initialized("2025-11-25"),
        json!([{"send_b64": "//4A/wqAgYKDCg=="}]),
        listed(json!([echo()])),
        json!([{"expect": "tools/call"}, {"send_b64": "wK+A/wo="}]),
        answering("ok"),
    ]));
    let finished = calls(&script, 1, &[]);
    worked(&script, &finished, &["ok"]);
    assert_eq!(codes(&finished), ["server_noise"]);
    assert!(finished.only("notice")["server"] == "srv", "{finished}");
}

/// M02. A byte order mark before the first frame, line ends of another system, white space inside a frame.
#[test]
fn marks_and_line_ends_of_another_system_are_read() {
    needs!(servers::python());
    let mark = json!([{"send_b64": "77u/"}]);
    let rest = || join([initialized("2025-06-18"), listed(json!([echo()])), json!([{"expect": "tools/call"}]), answering("ok")]);
    let spread = r#"{ "jsonrpc" : "2.0" ,  "id":$ID, "result" :{"content":[ {"type":"text","text":"ok"}]} }"#;
    let loose = |blank: &str| {
        let raw = format!("{}\r\n", spread.replace("  ", blank));
        join([
            probed(),
            initialized("2025-06-18"),
            listed(json!([echo()])),
            json!([{"expect": "tools/call"}, { "send_raw": raw }]),
        ])
    };
    let table = [
        ("a mark before the answer to the probe", join([mark.clone(), probed(), rest()])),
        ("a mark and other line ends", join([json!([{"eol": "\r\n"}]), mark.clone(), probed(), rest()])),
        ("a mark before a banner", join([mark, json!([{"send_raw": "ready\r\n"}]), probed(), rest()])),
        ("other line ends from the middle on", join([probed(), json!([{"eol": "\r\n"}]), rest()])),
        ("a bare return between two members", loose("\r")),
        ("a tab between two members", loose("\t")),
    ];
    each(&table, |steps| {
        let script = Script::new(steps.clone());
        worked(&script, &calls(&script, 1, &[]), &["ok"]);
    });
}

/// M04. Standard error is drained all the time, in lines and without.
#[test]
fn a_flood_on_standard_error_holds_nothing_up() {
    needs!(servers::python());
    let flood = || json!([{"stderr_fill": 1_048_576}, {"stderr": "E".repeat(1_048_576)}]);
    let table: [(&str, Steps); 3] = [
        ("before the probe", || json!([])),
        ("in the call", || json!([{"stderr": "ok\n"}])),
        ("with noise beside it", || json!([{"send_raw": "noise\n"}])),
    ];
    each(&table, |more| {
        let script = Script::new(join([
            flood(),
            probed(),
            initialized("2025-06-18"),
            listed(json!([echo()])),
            json!([{"expect": "tools/call"}]),
            more(),
            flood(),
            answering("ok"),
        ]));
        worked(&script, &calls(&script, 1, &["--mcp-timeout", "20"]), &["ok"]);
    });
    let last_words = Script::new(join([flood(), json!([{"stderr": "\nfatal: no licence\n"}, {"exit": 4}])]));
    did_not_come_up(&last_words, &[], &["status 4", "fatal: no licence"]);
}

/// M06. A batch is taken apart, whatever the version and whatever else is in it.
#[test]
fn batches_are_taken_apart() {
    needs!(servers::python());
    let list = || json!({"jsonrpc": "2.0", "id": "$ID", "result": {"tools": [echo()]}});
    let log = || json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}});
    let table = [
        ("the answer first", "2025-03-26", json!([list(), log()])),
        ("alone", "2025-03-26", json!([list()])),
        ("a later version", "2025-11-25", json!([log(), list()])),
        ("beside what is no message", "2025-03-26", json!([{"x": 1}, list(), {"jsonrpc": "2.0", "id": 4_000, "result": {}}])),
    ];
    let table: Vec<_> = table.into_iter().map(|(name, version, batch)| (name, (version, batch))).collect();
    each(&table, |(version, batch)| {
        let script = Script::new(join([
            probed(),
            initialized(version),
            json!([{"expect": "tools/list"}, {"send": batch}, {"expect": "tools/call"}]),
            json!([{"send": [{"jsonrpc": "2.0", "id": "$ID", "result": {"content": [{"type": "text", "text": "ok"}]}}]}]),
        ]));
        worked(&script, &calls(&script, 1, &[]), &["ok"]);
    });
}

/// What a server does instead of coming up, with these arguments of the run, and what the run says of it.
type NotUp = (Value, &'static [&'static str], &'static [&'static str]);

/// M07. A server that does not come up is given up in time, and the run says why.
#[test]
fn a_server_that_does_not_come_up_says_why() {
    needs!(servers::python());
    let within: &[&str] = &["--mcp-timeout", "1.5"];
    let table: Vec<(&str, NotUp)> = vec![
        ("it exits", (field_json("M07", "exit.json")["steps"].take(), &[], &["status 3", "cannot open /var/lib/demo.db"])),
        ("it exits and says nothing", (json!([{"exit": 0}]), &[], &["status 0"])),
        ("it exits at the handshake", (join([probed(), json!([{"expect": "initialize"}, {"exit": 7}])]), &[], &["status 7"])),
        (
            "it exits at its list",
            (
                join([
                    probed(),
                    initialized("2025-06-18"),
                    json!([{"stderr": "no db\n"}, {"expect": "tools/list"}, {"exit": 8}]),
                ]),
                &[],
                &["status 8", "no db"],
            ),
        ),
        ("it never says a word", (field_json("M07", "never.json")["steps"].take(), within, &["within 1.5 s"])),
        ("it closes its output", (json!([{"close_stdout": true}, {"hang": 1}]), within, &["closed its pipes"])),
        (
            "it hangs at its list",
            (
                join([probed(), initialized("2025-06-18"), json!([{"expect": "tools/list"}, {"hang": 1}])]),
                within,
                &["did not list"],
            ),
        ),
        (
            "it hangs between two pages",
            (
                join([
                    probed(),
                    initialized("2025-06-18"),
                    json!([
                        {"expect": "tools/list"},
                        {"send": {"jsonrpc": "2.0", "id": "$ID", "result": {"tools": [echo()], "nextCursor": "2"}}},
                        {"expect": "tools/list"}, {"hang": 1}]),
                ]),
                within,
                &["did not list"],
            ),
        ),
        (
            "it stays when it is told to go",
            (json!([{"ignore_sigterm": true}, {"expect": "server/discover"}, {"hang": 1}]), within, &["within 1.5 s"]),
        ),
    ];
    each(&table, |(steps, arguments, naming)| {
        let began = Instant::now();
        did_not_come_up(&Script::new(steps.clone()), arguments, naming);
        assert!(began.elapsed() < Duration::from_secs(20), "it is given up in time: {:?}", began.elapsed());
        // The same server beside a good one, and not needed: the run does without it.
        let (bad, good) = (Script::new(steps.clone()), Script::after_call(answering("ok")));
        let model = Model::says([call("good.echo", json!({"text": "x"})), answer("done")]);
        let mission = Mission::objective("call it").model(&model).mcp_stdio("bad", &bad.line()).mcp_stdio("good", &good.line());
        let finished = mission.args(["--mcp-optional", "bad"]).args(*arguments).run();
        finished.exits(0).ends("answered");
        assert_eq!(codes(&finished), ["server_failed"], "{finished}");
        assert_eq!(finished.only("mission_started")["catalogue"], json!(["good.echo", "mission_result"]));
    });
}

/// M08. Only versions that are known are spoken; a server that names what it speaks is asked for that once.
#[test]
fn versions_are_checked() {
    needs!(servers::python());
    let named = |version: Value| {
        let result =
            json!({"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": "f", "version": "0"}});
        join([
            probed(),
            json!([{"expect": "initialize"}, {"send": {"jsonrpc": "2.0", "id": "$ID", "result": result}}, {"expect": "notifications/initialized"}]),
            listed(json!([echo()])),
            json!([{"expect": "tools/call"}]),
            answering("ok"),
        ])
    };
    let good: Vec<(&str, &str)> =
        ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"].map(|version| (version, version)).to_vec();
    each(&good, |version| {
        let script = Script::new(named(json!(version)));
        let finished = calls(&script, 1, &[]);
        worked(&script, &finished, &["ok"]);
        assert_eq!(finished.only("mission_started")["servers"][0]["version"], *version);
        assert_eq!(finished.only("mission_started")["servers"][0]["era"], "handshake");
    });
    let long = "9".repeat(100_000);
    let bad: Vec<(&str, (Value, &str))> = vec![
        ("one before all", (json!("1999-01-01"), "1999-01-01")),
        ("one after all", (json!("2099-01-01"), "2099-01-01")),
        ("one of the other era", (json!("2026-07-28"), "2026-07-28")),
        ("one with a blank", (json!("2025-06-18 "), "2025-06-18 ")),
        ("no text", (json!(20_250_618), "names no protocol version")),
        ("null", (json!(null), "names no protocol version")),
        ("nothing", (json!(""), "\"\"")),
        ("a long one", (json!(long), "999…")),
    ];
    each(&bad, |(version, named_so)| {
        let script = Script::new(named(version.clone()));
        did_not_come_up(&script, &[], &[named_so, "2024-11-05", "2025-11-25"]);
        assert!(script.recorded("tools/list").is_empty(), "it is not spoken to any further");
    });
    let refused = |supported: Value| {
        let data = json!({"supported": supported, "requested": "?"});
        join([
            probed(),
            json!([{"expect": "initialize"}, {"send": {"jsonrpc": "2.0", "id": "$ID", "error": {"code": -32022, "message": "no", "data": data}}}]),
            initialized("2025-03-26"),
            listed(json!([echo()])),
            json!([{"expect": "tools/call"}]),
            answering("ok"),
        ])
    };
    let script = Script::new(refused(json!(["2024-11-05", "2025-03-26", "1999-01-01"])));
    worked(&script, &calls(&script, 1, &[]), &["ok"]);
    let asked: Vec<Value> = script.recorded("initialize").iter().map(|ask| ask["params"]["protocolVersion"].clone()).collect();
    assert_eq!(asked, ["2025-11-25", "2025-03-26"]);
    for nothing_common in [json!(["1999-01-01"]), json!([]), json!("2025-03-26"), json!(null)] {
        let script = Script::new(refused(nothing_common));
        did_not_come_up(&script, &[], &["refuses the handshake with error -32022"]);
        assert_eq!(script.recorded("initialize").len(), 1);
    }
}

/// M10. A large line is read, one over the cap fails its call at once and names the cap, the last one needs no end.
#[test]
fn lines_have_a_cap_and_need_no_end() {
    needs!(servers::python());
    let last = |raw: &str| json!([{ "send_raw": raw }, {"exit": 0}]);
    let result = r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"last"}]}}"#;
    let table = [
        ("no end", last(result)),
        ("half an end", last(&format!("{result}\r"))),
        ("blanks at the end", last(&format!("{result}   \n\n"))),
    ];
    each(&table, |steps| {
        let script = Script::after_call(steps.clone());
        worked(&script, &calls(&script, 1, &[]), &["last"]);
    });
    let filled = |count: u64, suffix: &str, after: Value| {
        let prefix = r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":""#;
        let fill = json!([{"send_fill": {"prefix": prefix, "char": "a", "count": count, "suffix": suffix}}]);
        let script = Script::after_call(join([fill, after, json!([{"expect": "tools/call"}]), answering("next")]));
        let began = Instant::now();
        (calls(&script, 2, &["--mcp-timeout", "40"]), script, began.elapsed())
    };
    // Over the cap by its size, with and without an end: told at once, and the session goes on where it can.
    for (suffix, after) in [("\"}]}}\n", json!([])), ("\"", json!([{"sleep_ms": 500}, {"send_raw": "\n"}]))] {
        let (finished, script, took) = filled(34_000_000, suffix, after);
        finished.exits(0);
        let results = finished.named("tool_result");
        let error = results[0]["error"].as_str().unwrap();
        assert!(error.contains("bytes, and 33554432 are allowed"), "{finished}");
        assert!(took < Duration::from_secs(30), "{took:?}");
        assert_eq!(results[1]["output"], "next", "{finished}");
        assert_eq!(script.recorded("initialize").len(), 1, "the session goes on");
    }
}

/// A call that is made while a line without an end is being written does not wait for it.
#[test]
fn a_line_without_an_end_holds_no_later_call_up() {
    needs!(servers::python());
    let script = Script::field("M10", "endless.json", probed());
    let began = Instant::now();
    let finished = calls(&script, 2, &["--mcp-timeout", "40"]);
    finished.exits(0);
    let results = finished.named("tool_result");
    assert_eq!(results[0]["output"], "first", "{finished}");
    assert!(results[1]["error"].as_str().unwrap().contains("33554432 are allowed"), "{finished}");
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
}

/// The scripts as they were recorded: none of these servers knows the probe, and all are silent about it.
#[test]
fn the_field_cases_work_as_they_were_recorded() {
    needs!(servers::python());
    let table: Vec<(&str, (&str, &str, usize))> = vec![
        ("slow start", ("M07", "slow.json", 1)),
        ("noise", ("M01", "server.json", 1)),
        ("marks", ("M02", "server.json", 1)),
        ("flood", ("M04", "server.json", 1)),
        ("batch", ("M06", "server.json", 1)),
        ("an old version", ("M08", "older.json", 1)),
        ("a version refused", ("M08", "err.json", 1)),
        ("a large line", ("M10", "big.json", 1)),
        ("no end of line", ("M10", "notail.json", 1)),
    ];
    each(&table, |(case, file, times)| {
        let script = Script::recorded_as(case, file);
        let finished = calls(&script, *times, &[]);
        finished.exits(0).ends("answered");
        assert!(finished.named("tool_result").iter().all(|result| result["ok"] == true), "{finished}");
        let methods = script.methods();
        assert_eq!(methods[..2], ["server/discover", "initialize"], "first the probe, then the handshake beside it");
        assert!(!methods.contains(&String::new()), "{methods:?}");
    });
    let bad: Vec<(&str, (&str, &[&str]))> = vec![
        ("weird.json", ("weird.json", &["1999-01-01"])),
        ("future.json", ("future.json", &["2099-01-01"])),
        ("missing.json", ("missing.json", &["names no protocol version"])),
        ("empty.json", ("empty.json", &["names no protocol version"])),
    ];
    each(&bad, |(file, naming)| did_not_come_up(&Script::recorded_as("M08", file), &[], naming));
}
