//! Servers over HTTP as they are in the field: odd acknowledgements, redirects that would carry a credential away, streams with
//! everything in them but an answer, logins in a headless run, proxies that cut and trickle. Each field case stands for its kind.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::each::each;
use crate::support::http::{HttpScript, again, answers, body, handshake_era, on, on_every, result, stateless_era, status};
use crate::support::model::{Model, answer, call};
use crate::support::needs;
use crate::support::player::field_json;
use crate::support::run::{Finished, Mission};
use crate::support::servers;
use crate::support::wild::codes;

const TOKEN: &str = "t0k3n-0f-the-house-of-lamps";

/// A run whose model calls `echo` so many times; what it is given is looked for everywhere afterwards.
fn calls(script: &HttpScript, times: usize, more: impl FnOnce(Mission) -> Mission) -> Finished {
    let turns: Vec<_> = (0..times).map(|number| call("srv.echo", json!({"text": number.to_string()}))).collect();
    let model = Model::says(turns.into_iter().chain([answer("done")]));
    let mission = Mission::objective("call it").model(&model).args(["--mcp-url", &format!("srv={}", script.url())]);
    let finished = more(mission.args(["--mcp-timeout", "20"]).env("MCP_TOKEN", TOKEN)).run();
    for place in [&finished.stream, &finished.stdout, &finished.stderr] {
        assert!(!place.contains(TOKEN), "the credential is out\n{finished}");
    }
    let log = std::fs::read_to_string(finished.run_dir().join("log.ndjson")).unwrap();
    assert!(!log.contains(TOKEN), "the credential is in the log");
    finished
}

/// It worked: each call had this output and was posted once.
#[track_caller]
fn worked(script: &HttpScript, finished: &Finished, outputs: &[&str]) {
    finished.exits(0).ends("answered");
    let results = finished.named("tool_result");
    let seen: Vec<&str> = results.iter().map(|result| result["output"].as_str().unwrap()).collect();
    assert_eq!(seen, outputs, "{finished}");
    let posted = script.record().iter().filter(|asked| asked["rpc"] == "tools/call" && asked["path"] == "/mcp").count();
    assert_eq!(posted, outputs.len(), "{:#?}", script.record());
    assert_eq!(finished.only("mission_started")["servers"][0]["transport"], "http");
}

/// It did not come up, in time, and the run says why.
#[track_caller]
fn did_not_come_up(finished: &Finished, naming: &[&str]) {
    finished.exits(1).ends("incomplete");
    let notice = finished.only("notice");
    assert_eq!(notice["code"], "server_failed", "{finished}");
    for word in naming {
        assert!(notice["detail"].as_str().unwrap().contains(word), "the notice does not name {word:?}\n{finished}");
    }
    assert!(finished.only("mission_finished")["elapsed_s"].as_f64().unwrap() < 15.0, "{finished}");
}

/// H01. Whatever says yes to a notification is a yes; what says no is an error.
#[test]
fn an_acknowledgement_may_look_like_anything() {
    needs!(servers::python());
    let recorded = field_json("H01", "acks.json");
    let more = json!([
        {"status": 202, "headers": {"content-type": "text/html"}, "body": "<p>ok</p>"},
        {"status": 200, "headers": {"content-type": "text/event-stream"}, "body": ": nothing\n\n"},
        {"status": 200, "headers": {"content-type": "text/event-stream"}, "body": ""},
        {"status": 201, "body": "{\"half\":"},
        {"status": 200, "headers": {"content-type": "application/json"}, "body": "x".repeat(200_000)},
    ]);
    let both: Vec<Value> = recorded.as_array().unwrap().iter().chain(more.as_array().unwrap()).cloned().collect();
    let names: Vec<String> = both.iter().enumerate().map(|(at, ack)| format!("{at}: {:.60}", ack.to_string())).collect();
    let table: Vec<(&str, &Value)> = names.iter().map(String::as_str).zip(&both).collect();
    each(&table, |ack| {
        let script = HttpScript::field("H01", "http.json", |rules| rules[2] = on("notifications/initialized", (*ack).clone()));
        worked(&script, &calls(&script, 1, |mission| mission), &["ok"]);
    });
    for refused in [400, 404, 500] {
        let script =
            HttpScript::field("H01", "http.json", |rules| rules[2] = again(on("notifications/initialized", status(refused))));
        did_not_come_up(&calls(&script, 0, |mission| mission), &["srv", &refused.to_string()]);
    }
}

/// H03. No redirect leads to another origin, with or without a header; within the origin 307 and 308 are followed, three times at most.
#[test]
fn no_redirect_leads_to_another_origin() {
    needs!(servers::python());
    let recorded = HttpScript::field("H03", "http.json", |_| {});
    did_not_come_up(&calls(&recorded, 0, |mission| mission), &["srv", "another origin"]);
    assert!(recorded.record().iter().all(|asked| asked["origin"] == 1), "{:#?}", recorded.record());
    let same = HttpScript::field("H03", "same.json", |rules| {
        rules.swap(0, 1); // the probe is sent on, too
    });
    worked(&same, &calls(&same, 1, |mission| mission), &["ok"]);
    // Away from each request there is, by each status and to each kind of other origin.
    let elsewhere =
        ["http://127.0.0.1:$PORT2/steal", "http://localhost:$PORT/mcp", "https://127.0.0.1:$PORT/mcp", "//127.0.0.1:$PORT2/x"];
    let away = |status: u16, to: &str| json!({"status": status, "headers": {"location": to}, "body": "", "repeat": true});
    let mut table: Vec<(String, (Option<&str>, Value))> = Vec::new();
    for (at, rpc) in ["server/discover", "initialize", "notifications/initialized", "tools/list"].into_iter().enumerate() {
        table.push((format!("{rpc} to {}", elsewhere[at]), (None, on(rpc, away(307, elsewhere[at])))));
    }
    for status in [301, 302, 303, 307, 308] {
        table.push((format!("a call by {status}"), (Some("tools/call"), on("tools/call", away(status, elsewhere[0])))));
    }
    table.push(("a stream of changes".into(), (Some(""), on_every("GET", away(307, elsewhere[0])))));
    table.push(("the end of a session".into(), (Some(""), on_every("DELETE", away(308, elsewhere[0])))));
    let table: Vec<(&str, &(Option<&str>, Value))> = table.iter().map(|(name, case)| (name.as_str(), case)).collect();
    each(&table, |(place, rule)| {
        let steal = json!({"origin": 2, "match": {}, "status": 200, "body": "stolen", "repeat": true});
        let session = json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {"listChanged": true}}, "serverInfo": {"name": "f", "version": "0"}});
        let mut initialize = on("initialize", result(session));
        initialize["headers"]["mcp-session-id"] = json!("s-1");
        let script = HttpScript::new(Value::Array(
            [rule.clone(), steal, initialize].into_iter().chain(handshake_era([again(answers("ok"))])).collect(),
        ));
        let finished = calls(&script, usize::from(place.is_some()), |mission| mission);
        match place {
            None => did_not_come_up(&finished, &["srv", "another origin"]),
            Some("tools/call") => {
                finished.exits(0);
                assert!(finished.only("tool_result")["error"].as_str().unwrap().contains("redirect"), "{finished}");
            }
            Some(_) => worked(&script, &finished, &["ok"]),
        }
        let record = script.record();
        assert!(record.iter().all(|asked| asked["origin"] == 1), "another origin was asked: {record:#?}");
        assert!(record.iter().all(|asked| !asked["path"].as_str().unwrap().contains("steal")));
    });
    let hop = |from: &str, to: &str| json!({"match": {"path": from}, "status": 308, "headers": {"location": to}, "body": "", "repeat": true});
    for (rules, naming) in [
        (vec![hop("/mcp", "/a"), hop("/a", "/b"), hop("/b", "/c"), hop("/c", "/d")], "3"),
        (vec![hop("/mcp", "/mcp")], "3"),
        (vec![json!({"match": {}, "status": 307, "body": "", "repeat": true})], "307"),
        (vec![hop("/mcp", "http://")], "308"),
    ] {
        let script = HttpScript::new(Value::Array(rules));
        did_not_come_up(&calls(&script, 0, |mission| mission), &["srv", naming]);
        assert!(script.record().len() < 20, "it is not tried for ever");
    }
}

/// H04, H09. An answer is found in a stream, whatever stands around it and however its bytes are cut.
#[test]
fn an_answer_is_found_in_any_stream() {
    needs!(servers::python());
    let script = HttpScript::field("H04", "http.json", |_| {});
    worked(&script, &calls(&script, 1, |mission| mission), &["ok"]);
    let script = HttpScript::field("H09", "http.json", |_| {});
    worked(&script, &calls(&script, 1, |mission| mission), &["한글"]);
    let message = "{\"jsonrpc\":\"2.0\",\"id\":\"$ID\",\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"한글 ok\"}]}}";
    let log =
        "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":\"x\"}}\n\n";
    let table: Vec<(&str, String)> = vec![
        ("plain", format!("data: {message}\n\n")),
        ("no blank behind the colon", format!("data:{message}\n\n")),
        ("returns for line ends", format!("event: message\rid: 4\rdata: {message}\r\r")),
        ("both for line ends", format!(": hi\r\n\r\nevent: message\r\ndata: {message}\r\n\r\n")),
        ("a mark at the start", format!("\u{feff}data: {message}\n\n")),
        ("a priming event", format!("id: 0\nretry: 10\ndata: \n\ndata: {message}\n\n")),
        ("an event without data", format!("event: ping\n\nid: 9\n\ndata\n\ndata: {message}\n\n")),
        ("log lines before it", format!("{}data: {message}\n\n", log.repeat(50))),
        (
            "what is no message before it",
            format!("data: hello\n\ndata: 42\n\ndata: {{\"a\":1}}\n\ndata: [DONE]\n\ndata: {message}\n\n"),
        ),
        ("another event's kind", format!("event: endpoint\ndata: /messages\n\nevent: message\ndata: {message}\n\n")),
        ("unknown fields", format!("x-a: 1\nretry: soon\nid: a\u{0}b\ndata: {message}\n\n")),
        ("spread over lines", format!("data: {}\n\n", message.replace(',', ",\ndata: "))),
        (
            "an answer to nobody before it",
            format!("data: {{\"jsonrpc\":\"2.0\",\"id\":4711,\"result\":{{}}}}\n\ndata: {message}\n\n"),
        ),
        ("an answer twice", format!("data: {message}\n\ndata: {message}\n\n")),
        ("a batch", format!("data: [{message}]\n\n")),
    ];
    each(&table, |stream| {
        for chunks in [1, 7] {
            let mut rule = on("tools/call", body("text/event-stream", stream));
            if chunks > 1 {
                // Each few characters come by themselves; the player replaces what is whole in a piece only.
                let pieces: Vec<String> = match stream.split_once("\"$ID\"") {
                    Some((head, tail)) => {
                        let cut = |text: &str| -> Vec<String> {
                            text.chars().collect::<Vec<_>>().chunks(chunks).map(|piece| piece.iter().collect()).collect()
                        };
                        [cut(head), vec!["\"$ID\"".to_owned()], cut(&tail.replace("\"$ID\"", "$CALLID"))].concat()
                    }
                    None => continue,
                };
                if pieces.len() > 400 || stream.matches("\"$ID\"").count() > 1 {
                    continue;
                }
                rule = on(
                    "tools/call",
                    json!({"status": 200, "headers": {"content-type": "text/event-stream"}, "cut": true,
                    "chunks": pieces.iter().map(|piece| json!({"data": piece})).collect::<Vec<_>>()}),
                );
            }
            let script = HttpScript::new(Value::Array(handshake_era([rule])));
            worked(&script, &calls(&script, 1, |mission| mission), &["한글 ok"]);
        }
    });
}

/// H06. The stream of changes is a wish: refused, silent or broken, it holds nothing up; nor does a session that cannot be ended.
#[test]
fn a_stream_of_changes_that_is_not_there_holds_nothing_up() {
    needs!(servers::python());
    let recorded: Vec<Value> = field_json("H06", "get_variants.json").as_array().unwrap().clone();
    let mut variants: Vec<(String, Option<Value>)> = vec![("as it was recorded".into(), None)];
    variants.extend(
        recorded
            .iter()
            .filter_map(Value::as_u64)
            .map(|code| (format!("status {code}"), Some(json!({"status": code, "body": ""})))),
    );
    variants.extend([
        ("a page".to_owned(), Some(json!({"status": 200, "headers": {"content-type": "text/html"}, "body": "<html>"}))),
        ("a reset".to_owned(), Some(json!({"reset": true}))),
        ("no head".to_owned(), Some(json!({"status": 200, "delay_ms": 8_000, "body": ""}))),
        ("an end at once".to_owned(), Some(json!({"status": 200, "headers": {"content-type": "text/event-stream"}, "body": ""}))),
        ("a login".to_owned(), Some(json!({"status": 302, "headers": {"location": "/login"}, "body": ""}))),
    ]);
    let table: Vec<(&str, &Option<Value>)> = variants.iter().map(|(name, variant)| (name.as_str(), variant)).collect();
    each(&table, |variant| {
        let script = HttpScript::field("H06", "http.json", |rules| {
            rules[1]["body_json"]["result"]["capabilities"]["tools"]["listChanged"] = json!(true);
            if let Some(variant) = variant {
                rules.insert(0, on_every("GET", variant.clone()));
            }
        });
        let finished = calls(&script, 1, |mission| mission);
        worked(&script, &finished, &["ok"]);
        assert!(finished.only("mission_finished")["elapsed_s"].as_f64().unwrap() < 3.0, "{finished}");
        assert!(!finished.stream.contains("login") && !finished.stderr.contains("auth"), "{finished}");
        let gets = script.record().iter().filter(|asked| asked["method"] == "GET").count();
        assert!(gets < 10, "it is not asked for over and over: {gets}");
    });
}

/// H07. A login is an error that names the server and the header, at once, without the credential and without the page.
#[test]
fn a_login_is_an_error_at_once() {
    needs!(servers::python());
    let page = "<!doctype html><title>Sign in</title><form>password</form>";
    let html = |status: u16| json!({"status": status, "headers": {"content-type": "text/html"}, "body": page, "repeat": true});
    let challenge = |scheme: &str| json!({"status": 401, "headers": {"www-authenticate": scheme}, "body": "", "repeat": true});
    let every = |answer: Value| on_every("POST", answer);
    let table: Vec<(&str, (Value, &[&str]))> = vec![
        ("recorded a", (field_json("H07", "a.json")["responses"].take(), &["401", "MCP_TOKEN"])),
        ("recorded b", (field_json("H07", "b.json")["responses"].take(), &["302"])),
        ("no challenge", (json!([every(status(401))]), &["401"])),
        ("basic", (json!([every(challenge("Basic realm=\"x\""))]), &["401"])),
        ("forbidden", (json!([every(status(403))]), &["403"])),
        ("a page", (json!([every(html(200))]), &["text/html"])),
        ("a page that is forbidden", (json!([every(html(403))]), &["403"])),
        ("a page that is not found", (json!([every(html(404))]), &["404"])),
        ("a proxy's", (json!([every(status(407))]), &["407"])),
    ];
    each(&table, |(rules, naming)| {
        let script = HttpScript::new(rules.clone());
        let finished = calls(&script, 0, |mission| mission);
        did_not_come_up(&finished, &[&["srv"], *naming].concat());
        assert!(script.record().len() < 8, "no loop: {:#?}", script.record());
        assert!(script.record().iter().all(|asked| asked["path"] == "/mcp"), "no login is looked for: {:#?}", script.record());
        let log = std::fs::read_to_string(finished.run_dir().join("log.ndjson")).unwrap();
        assert!(!log.contains("password"), "a page is not kept");
    });
    // In the middle of a run: the call fails, and the model is not given the page.
    for answer in [html(200), html(401), json!({"status": 302, "headers": {"location": "/login"}, "body": "", "repeat": true})] {
        let script = HttpScript::new(Value::Array(handshake_era([on("tools/call", answer), answers("ok")])));
        let finished = calls(&script, 1, |mission| mission);
        finished.exits(0).ends("answered");
        assert_eq!(script.count("tools/call"), 1, "it is not made again");
        assert!(finished.only("tool_result")["ok"] == false && !finished.stream.contains("password"), "{finished}");
    }
    // A line end behind a token is no part of it; one inside it is refused at the door, and the value is not repeated.
    let token = field_json("H07", "env.json")["DEMO_TOKEN"].as_str().unwrap().to_owned();
    let script = HttpScript::new(Value::Array(handshake_era([answers("ok")])));
    let model = Model::says([call("srv.echo", json!({"text": "x"})), answer("done")]);
    let url = format!("srv={}", script.url());
    let finished = Mission::objective("x").model(&model).args(["--mcp-url", &url]).env("MCP_TOKEN", &token).run();
    finished.exits(0).ends("answered");
    let bearer = format!("Bearer {}", token.trim());
    assert!(script.record().iter().all(|asked| asked["headers"]["authorization"] == bearer), "{:#?}", script.record());
    for bad in ["tok-abc\n-0001", "tok abc-0001", "tok-\u{e9}-0001", "tok-\u{1}abc-0001"] {
        let refused = Mission::objective("x").model(&model).args(["--mcp-url", &url]).env("MCP_TOKEN", bad).run();
        refused.refused(&["MCP_TOKEN"]);
        assert!(!refused.stderr.contains("0001"), "{refused}");
    }
}

/// H08. JSON or a stream is the server's choice for each answer; what it asks in between is answered; a missing type is told.
#[test]
fn the_server_chooses_how_it_answers() {
    needs!(servers::python());
    let script = HttpScript::field("H08", "http.json", |_| {});
    let finished = calls(&script, 2, |mission| mission);
    worked(&script, &finished, &["one", "two"]);
    let replied: Vec<Value> =
        script.record().into_iter().filter(|asked| asked["rpc"].is_null() && asked["method"] == "POST").collect();
    assert_eq!(replied.len(), 1, "the ping is answered by a post of its own");
    assert_eq!(replied[0]["id"], "srv-1");
    assert!(codes(&finished).contains(&"content_type_missing".to_owned()), "{:?}", codes(&finished));
    let good = "{\"jsonrpc\":\"2.0\",\"id\":\"$ID\",\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"x\"}]}}";
    let error = "{\"jsonrpc\":\"2.0\",\"id\":\"$ID\",\"error\":{\"code\":-32602,\"message\":\"no such lamp\"}}";
    let status = |code: u16, text: &str| json!({"status": code, "headers": {"content-type": "application/json"}, "body": text});
    let table: Vec<(&str, (Value, &str))> = vec![
        ("an error by its status", (status(400, error), "no such lamp")),
        ("an error with a good status", (body("application/json", error), "no such lamp")),
        ("a text", (body("text/plain", "all is well"), "text/plain")),
        ("half of it", (body("application/json", "{\"jsonrpc\":\"2.0\",\"id\":\"$ID\",\"result\":{\"con"), "no JSON")),
        ("nothing", (body("application/json", ""), "nothing in it")),
        (
            "another's answer",
            (body("application/json", "{\"jsonrpc\":\"2.0\",\"id\":99999,\"result\":{}}"), "none is the answer"),
        ),
        ("a notification's yes", (json!({"status": 202, "body": ""}), "202")),
        ("a server that is broken", (status(500, "{}"), "500")),
        (
            "a gateway's",
            (json!({"status": 502, "headers": {"content-type": "text/html"}, "body": "<h1>Bad gateway</h1>"}), "502"),
        ),
        ("a stream that ends", (body("text/event-stream", ": nothing\n\n"), "before it was complete")),
        (
            "a stream that is cut",
            (
                json!({"status": 200, "headers": {"content-type": "text/event-stream"}, "cut": true, "chunks": [{"data": "data: {\"jsonrpc\":"}]}),
                "before its answer was complete",
            ),
        ),
        ("a reset", (json!({"reset": true}), "")),
    ];
    each(&table, |(rule, naming)| {
        let script = HttpScript::new(Value::Array(handshake_era([
            on("tools/call", rule.clone()),
            on("tools/call", body("application/json", good)),
        ])));
        let finished = calls(&script, 2, |mission| mission);
        finished.exits(0).ends("answered");
        let results = finished.named("tool_result");
        assert_eq!(results[0]["ok"], false, "{finished}");
        let told = results[0]["error"].as_str().unwrap();
        assert!(told.contains(naming), "{naming:?} is not in {told:?}");
        assert_eq!(results[1]["output"], "x", "the next call works: {finished}");
        assert_eq!(script.count("tools/call"), 2, "no call is made twice");
        assert!(finished.only("mission_finished")["elapsed_s"].as_f64().unwrap() < 15.0, "{finished}");
    });
}

/// Silence and size have bounds over HTTP as over pipes.
#[test]
fn silence_and_size_have_bounds() {
    needs!(servers::python());
    let large = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":\"$ID\",\"result\":{{\"content\":[{{\"type\":\"text\",\"text\":\"{}\"}}]}}}}",
        "a".repeat(34_000_000)
    );
    let stream =
        json!({"status": 200, "headers": {"content-type": "text/event-stream"}, "body": "id: 1\ndata: \n\n", "hang": true});
    let table: Vec<(&str, (Value, &str))> = vec![
        ("no head", (json!({"status": 200, "delay_ms": 30_000, "body": ""}), "no sign of life")),
        (
            "a head and no body",
            (
                json!({"status": 200, "headers": {"content-type": "application/json"}, "body": "", "hang": true}),
                "no sign of life",
            ),
        ),
        ("a stream that says nothing", (stream, "no sign of life")),
        ("34 MB of JSON", (body("application/json", &large), "33554432")),
        ("34 MB in a stream", (body("text/event-stream", &format!("data: {large}\n\n")), "33554432")),
    ];
    each(&table, |(rule, naming)| {
        for era in [handshake_era([on("tools/call", rule.clone())]), stateless_era([on("tools/call", rule.clone())])] {
            let script = HttpScript::new(Value::Array(era));
            let finished = calls(&script, 1, |mission| mission.args(["--mcp-timeout", "3"]));
            finished.exits(0).ends("answered");
            let told = finished.only("tool_result")["error"].as_str().unwrap().to_owned();
            assert!(told.contains(naming), "{naming:?} is not in {told:?}");
            assert_eq!(script.count("tools/call"), 1);
        }
    });
}

/// A server that nobody can reach fails the run, in time and by name.
#[test]
fn a_server_that_cannot_be_reached_is_named() {
    needs!(servers::python());
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = format!("http://{}/mcp", listener.local_addr().unwrap());
    let closed = {
        let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}/mcp", gone.local_addr().unwrap())
    };
    for (url, naming) in
        [(closed.as_str(), "srv"), (silent.as_str(), "within 2 s"), ("http://lamps.invalid/mcp", "lamps.invalid")]
    {
        let model = Model::says([answer("never asked")]);
        let began = std::time::Instant::now();
        let finished =
            Mission::objective("x").model(&model).args(["--mcp-url", &format!("srv={url}"), "--mcp-timeout", "2"]).run();
        did_not_come_up(&finished, &[naming]);
        assert!(began.elapsed() < Duration::from_secs(15));
        assert_eq!(model.requests().len(), 0);
    }
}
