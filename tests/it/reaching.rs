//! Runs of the program with servers over HTTP: proxies, certificates, what becomes of a token, lists that are read again, and results that
//! are not what their tool promises.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::support::model::{Model, answer, call};
use crate::support::planes::{Player, tool};
use crate::support::remote::{Remote, Said, body, error, events, result, status};
use crate::support::run::{Finished, Mission};
use crate::support::{needs, servers};

fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

/// A server of the handshake era that answers every call by this.
fn answering(said: Value) -> Remote {
    Remote::handshake(json!([tool("echo")]), move |heard, _| match heard.method() {
        "tools/call" => body(result(heard, said.clone())),
        _ => status(405),
    })
}

fn one_call(remote: &Remote) -> Mission {
    let model = Model::says([call("docs.echo", json!({})), answer("done")]);
    let mission = Mission::objective("ask once").model(&model).arg("--mcp-url").arg(format!("docs={}", remote.url()));
    // It lives as long as the process.
    std::mem::forget(model);
    mission
}

fn tools(url: &str) -> Mission {
    Mission::verb(["tools", "--mcp-url", url])
}

#[test]
fn a_run_calls_a_tool_over_http_in_either_era() {
    let handshake = answering(text("twelve lamps"));
    let stateless =
        Remote::stateless(json!([tool("echo")]), |heard, _| events(format!("data: {}\n\n", result(heard, text("twelve lamps")))));
    for (remote, era, version) in [(&handshake, "handshake", "2025-06-18"), (&stateless, "stateless", "2026-07-28")] {
        let finished = one_call(remote).run();
        finished.exits(0).ends("answered");
        assert_eq!(finished.only("tool_result")["output"], "twelve lamps");
        let started = &finished.only("mission_started")["servers"][0];
        assert_eq!((&started["transport"], &started["era"], &started["version"]), (&json!("http"), &json!(era), &json!(version)));
        let kept = &finished.log().of_kind("catalogue")[0]["servers"][0];
        assert_eq!((&kept["era"], &kept["version"]), (&json!(era), &json!(version)));
        assert_eq!(finished.log().of_kind("open")[0]["spec"]["servers"][0]["url"], remote.url());
    }
}

#[test]
fn a_server_that_cannot_be_reached_fails_the_run_by_name() {
    let finished = Mission::objective("x")
        .arg("--provider")
        .arg("local")
        .env("LOCAL_MODEL", "m")
        .args(["--mcp-url", "docs=http://127.0.0.1:9/mcp"])
        .run();
    finished.exits(1).ends("incomplete");
    let notice = finished.only("notice");
    assert_eq!((&notice["code"], &notice["server"]), (&json!("server_failed"), &json!("docs")));
    assert!(notice["detail"].as_str().unwrap().contains("http://127.0.0.1:9/mcp"), "{finished}");
}

/// Everything that a run leaves for others to see: the stream, both outputs, and the log's own words.
fn told(finished: &Finished) -> String {
    let open = finished.log().of_kind("open")[0].to_string();
    let catalogue = finished.log().of_kind("catalogue")[0].to_string();
    format!("{}{}{}{open}{catalogue}", finished.stream, finished.stdout, finished.stderr)
}

#[test]
fn a_token_goes_to_its_server_and_nowhere_else() {
    const TOKEN: &str = "tok-abcdef-0001";
    let remote = Remote::handshake(json!([tool("echo")]), |heard, _| match heard.method() {
        // The server says it back, in an error and in the list's refusal.
        "tools/call" => body(error(heard, -32000, &format!("the key {TOKEN} is wrong"))),
        _ => status(405),
    });
    let other = Remote::handshake(json!([tool("other")]), |_, _| status(405));
    for by_variable in [true, false] {
        let mut mission = one_call(&remote);
        mission = if by_variable {
            mission.env("MCP_TOKEN", format!("{TOKEN}\n"))
        } else {
            let second = format!("other={}", other.url());
            mission.args(["--mcp-url", &second, "--mcp-token", TOKEN, "--mcp-token", ""])
        };
        let finished = mission.run();
        finished.exits(0);
        assert!(!told(&finished).contains(TOKEN), "{finished}");
        assert_eq!(finished.log().of_kind("open")[0]["spec"]["servers"][0]["masked"], true);
    }
    let bearer = format!("Bearer {TOKEN}");
    assert!(remote.heard().iter().all(|heard| heard.header("authorization") == Some(&bearer)));
    assert!(!other.heard().is_empty() && other.heard().iter().all(|heard| heard.header("authorization").is_none()));
    let refused = Mission::objective("x").args(["--mcp-url", "http://127.0.0.1:9/", "--mcp-token", "to ken-0001"]).run();
    refused.refused(&["--mcp-token"]);
    assert!(!refused.stderr.contains("ken-0001"), "{refused}");
}

#[test]
fn credentials_in_a_url_are_sent_and_masked() {
    let remote = answering(text("fine"));
    let url = remote.url().replace("http://", "http://me:pa55word-1@") + "?api_key=key-abcdef-1";
    let model = Model::says([call("docs.echo", json!({})), answer("done")]);
    let finished = Mission::objective("ask once").model(&model).arg("--mcp-url").arg(format!("docs={url}")).run();
    finished.exits(0).ends("answered");
    assert!(remote.heard().iter().all(|heard| heard.path == "/mcp?api_key=key-abcdef-1"));
    assert!(remote.heard().iter().all(|heard| heard.header("authorization") == Some("Basic bWU6cGE1NXdvcmQtMQ==")));
    let told = told(&finished);
    assert!(!told.contains("pa55word-1") && !told.contains("key-abcdef-1"), "{finished}");
}

/// A proxy that answers for everybody.
fn proxy() -> Remote {
    Remote::handshake(json!([tool("behind")]), |_, _| status(405))
}

#[test]
fn a_proxy_is_honoured_and_never_for_this_machine() {
    let proxy = proxy();
    let at = format!("http://127.0.0.1:{}", proxy.port());
    let listed = tools("there=http://tools.test/mcp").env("http_proxy", &at).run();
    listed.exits(0);
    assert!(listed.stdout.contains("there.behind"), "{listed}");
    assert!(proxy.heard().iter().all(|heard| heard.path == "http://tools.test/mcp"), "{:?}", proxy.heard());
    let heard = proxy.heard().len();
    let here = answering(text("x"));
    for url in [here.url(), here.url().replace("127.0.0.1", "localhost")] {
        let listed = tools(&format!("here={url}")).env("HTTP_PROXY", &at).env("http_proxy", &at).env("ALL_PROXY", &at).run();
        listed.exits(0);
        assert!(listed.stdout.contains("here.echo"), "{listed}");
    }
    let spared = tools("there=http://tools.test/mcp").env("http_proxy", &at).env("no_proxy", "tools.test").run();
    spared.exits(1);
    assert_eq!(proxy.heard().len(), heard);
}

/// A program that takes TLS connections and passes them on.
struct TlsFront {
    child: Child,
    port: u16,
}

impl TlsFront {
    fn start(folder: &Path, behind: u16) -> Result<Self, String> {
        let (openssl, python) = (servers::program("openssl")?, servers::python()?);
        std::fs::write(folder.join("names"), "subjectAltName=DNS:localhost,IP:127.0.0.1\n").unwrap();
        let key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout"];
        let commands: [Vec<&str>; 3] = [
            [&["req", "-x509", "-days", "2", "-subj", "/CN=tests", "-out", "authority.pem"], &key[..], &["authority.key"]]
                .concat(),
            [&["req", "-subj", "/CN=localhost", "-out", "server.csr"], &key[..], &["server.key"]].concat(),
            [
                "x509",
                "-req",
                "-days",
                "2",
                "-in",
                "server.csr",
                "-CA",
                "authority.pem",
                "-CAkey",
                "authority.key",
                "-CAcreateserial",
                "-extfile",
                "names",
                "-out",
                "server.pem",
            ]
            .to_vec(),
        ];
        for words in commands {
            let made = Command::new(&openssl).args(words).current_dir(folder).stderr(Stdio::null()).status().unwrap();
            assert!(made.success());
        }
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/tls_front.py");
        let mut child = Command::new(python)
            .arg(script)
            .args(["server.pem", "server.key", &behind.to_string()])
            .current_dir(folder)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Ok(Self { child, port: line.trim().parse().unwrap() })
    }
}

impl Drop for TlsFront {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn an_authority_of_ones_own_is_trusted_where_it_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let remote = answering(text("x"));
    let front = needs!(TlsFront::start(folder.path(), remote.port()));
    let url = format!("safe=https://localhost:{}/mcp", front.port);
    let untrusted = tools(&url).run();
    untrusted.exits(1);
    assert!(untrusted.stdout.contains("cannot be trusted over TLS") && untrusted.stdout.contains("SSL_CERT_FILE"), "{untrusted}");
    assert!(remote.heard().is_empty(), "nothing was said");
    let trusted = tools(&url).env("SSL_CERT_FILE", folder.path().join("authority.pem")).run();
    trusted.exits(0);
    assert!(trusted.stdout.contains("safe.echo"), "{trusted}");
    let plain = tools(&format!("plain=https://127.0.0.1:{}/mcp", remote.port())).run();
    plain.exits(1);
    assert!(plain.stdout.contains("does not speak TLS its URL begins with http://"), "{plain}");
}

/// A machine without any certificates: nothing panics, what is not encrypted needs none, and what is says so.
#[test]
fn a_machine_without_certificates_reaches_what_is_not_encrypted() {
    let none = tempfile::tempdir().unwrap();
    let bare = |mission: Mission| mission.env("SSL_CERT_FILE", none.path().join("none")).env("SSL_CERT_DIR", none.path());
    let remote = answering(text("x"));
    let plain = bare(tools(&format!("plain={}", remote.url()))).run();
    plain.exits(0);
    assert!(plain.stdout.contains("plain.echo"), "{plain}");
    let safe = bare(tools(&format!("safe=https://127.0.0.1:{}/mcp", remote.port()))).run();
    safe.exits(1);
    assert!(safe.stdout.contains("No CA certificates") && safe.stdout.contains("SSL_CERT_FILE"), "{safe}");
    assert!(!safe.stderr.contains("panicked"), "{safe}");
}

#[test]
fn a_list_that_changes_unsaid_is_read_again_at_the_boundaries_of_steps() {
    let answered = |text_: &str| json!({"send": {"jsonrpc": "2.0", "id": "$ID", "result": text(text_)}});
    let listed = |tools: Value| json!({"send": {"jsonrpc": "2.0", "id": "$ID", "result": {"tools": tools}}});
    let player = Player::new(json!([
        {"expect": "server/discover"},
        {"send": {"jsonrpc": "2.0", "id": "$ID", "error": {"code": -32601, "message": "no"}}},
        {"expect": "initialize"},
        {"send": {"jsonrpc": "2.0", "id": "$ID", "result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}}},
        {"expect": "tools/list"}, listed(json!([tool("echo")])),
        {"expect": "tools/call"}, answered("one"),
        {"expect": "tools/list"}, listed(json!([tool("echo"), tool("late")])),
        {"expect": "tools/call"}, answered("two"),
        {"expect": "tools/list"}, listed(json!([tool("echo"), tool("late")])),
        {"expect": "tools/call"}, answered("three"),
    ]));
    let model = Model::says([
        call("mcp.echo", json!({"n": 1})),
        call("mcp.echo", json!({"n": 2})),
        call("mcp.late", json!({"n": 3})),
        answer("done"),
    ]);
    let command = shlex::try_join(player.argv().iter().map(String::as_str)).unwrap();
    let finished = Mission::objective("use what comes").model(&model).args(["--mcp-stdio", &command]).run();
    finished.exits(0).ends("answered");
    let outputs: Vec<Value> = finished.named("tool_result").into_iter().map(|result| result["output"].clone()).collect();
    assert_eq!(outputs, ["one", "two", "three"], "{finished}");
    let catalogues: Vec<Option<usize>> =
        finished.named("step_started").iter().map(|step| step["catalogue"].as_array().map(Vec::len)).collect();
    assert_eq!(catalogues, [None, None, Some(3), None], "{finished}");
    assert_eq!(finished.log().of_kind("catalogue").len(), 2, "what is the same is no change");
}

#[test]
fn a_server_that_tells_its_changes_is_not_asked_at_boundaries() {
    let remote = Remote::says(|heard, _| match heard.method() {
        "server/discover" => status(404),
        "initialize" => {
            body(result(heard, json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {"listChanged": true}}})))
        }
        "tools/list" => body(result(heard, json!({"tools": [tool("echo")]}))),
        "tools/call" => body(result(heard, text("x"))),
        _ if heard.verb == "GET" => events(": here\n\n").hanging(),
        _ => status(202),
    });
    let calls = (0..6).map(|number| call("docs.echo", json!({"n": number})));
    let model = Model::says(calls.chain([answer("done")]));
    let finished = Mission::objective("ask often").model(&model).arg("--mcp-url").arg(format!("docs={}", remote.url())).run();
    finished.exits(0).ends("answered");
    // Once more than at the start: for what may have changed before the stream was there.
    assert!((1..=2).contains(&remote.heard_method("tools/list").len()), "{:?}", remote.methods());
}

fn promising(said: impl Fn(&crate::support::remote::Heard) -> Said + Send + Sync + 'static) -> Remote {
    let promise = json!({"name": "echo", "description": "Echoes.", "inputSchema": {"type": "object"},
        "outputSchema": {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}});
    Remote::handshake(json!([promise]), move |heard, _| if heard.method() == "tools/call" { said(heard) } else { status(405) })
}

#[test]
fn a_result_that_breaks_its_promise_is_taken_and_told() {
    let remote = promising(|heard| {
        body(result(heard, json!({"content": [{"type": "text", "text": "n is many"}], "structuredContent": {"n": "many"}})))
    });
    let model = Model::says([call("docs.echo", json!({})), answer("done")]);
    let finished = Mission::objective("ask once").model(&model).arg("--mcp-url").arg(format!("docs={}", remote.url())).run();
    finished.exits(0).ends("answered");
    let notice = finished.only("notice");
    assert_eq!((&notice["code"], &notice["server"]), (&json!("output_mismatch"), &json!("docs")));
    assert!(notice["detail"].as_str().unwrap().contains("`/n` must be of type integer"), "{finished}");
    assert_eq!(finished.only("tool_result")["output"], "n is many", "the text stays as it is");
    let told = model.requests()[1].to_string();
    assert!(told.contains("n is many") && told.contains("breaks what its tool promises"), "{told}");
    assert_eq!(finished.log().problems(), Vec::<String>::new());
}
