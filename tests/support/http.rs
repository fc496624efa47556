//! Tool servers over HTTP: one that plays a script (`tests/fixtures/players/fake_http.py`), and real ones on loopback.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;

use serde_json::{Value, json};

use super::player::{field, field_json};
use super::{PATIENCE, servers};

/// A process that serves, for as long as this value lives.
pub struct Serves {
    child: Child,
    folder: tempfile::TempDir,
    first: String,
}

impl Serves {
    /// Starts it, and waits for the first line of its output that `fits`.
    fn start(mut command: Command, folder: tempfile::TempDir, fits: fn(&str) -> bool) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let _ = sender.send(line); // what comes after the first is nobody's
            }
        });
        let first = loop {
            let line = lines.recv_timeout(PATIENCE).expect("the server says where it listens");
            if fits(&line) {
                break line;
            }
        };
        Self { child, folder, first }
    }

    /// A real server's URL.
    pub fn url(&self) -> String {
        let said: Value = serde_json::from_str(&self.first).unwrap();
        said["url"].as_str().unwrap().to_owned()
    }
}

impl Drop for Serves {
    fn drop(&mut self) {
        // It may be over already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `tests/servers/lamps.py` on the Python SDK or on FastMCP.
pub fn lamps(options: &[&str]) -> Result<Serves, String> {
    let python = servers::fetched("MISSION_TEST_PYTHON", "python", "bin/python")?;
    servers::fetched("MISSION_TEST_PYTHON", "python", "bin/fastmcp")?;
    let mut command = Command::new(python);
    command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/lamps.py")).args(options);
    Ok(Serves::start(command, tempfile::tempdir().unwrap(), |line| line.starts_with("{\"url\"")))
}

/// npm `server-everything` over streamable HTTP.
pub fn everything() -> Result<Serves, String> {
    let script =
        servers::fetched("MISSION_TEST_NPM", "npm", "node_modules/@modelcontextprotocol/server-everything/dist/index.js")?;
    let mut command = Command::new(servers::program("node")?);
    command.arg("--require").arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/loopback.cjs"));
    command.arg(script).arg("streamableHttp");
    Ok(Serves::start(command, tempfile::tempdir().unwrap(), |line| line.starts_with("{\"url\"")))
}

/// A server that plays a script, on two origins.
pub struct HttpScript(Serves);

impl HttpScript {
    /// These answers, in their order: the first unused one that fits.
    pub fn new(responses: Value) -> Self {
        Self::with_files(responses, None)
    }

    fn with_files(responses: Value, from: Option<PathBuf>) -> Self {
        let folder = tempfile::Builder::new().prefix("mission-http-").tempdir().unwrap();
        for entry in from.iter().flat_map(|from| std::fs::read_dir(from).unwrap()) {
            let path = entry.unwrap().path();
            std::fs::copy(&path, folder.path().join(path.file_name().unwrap())).unwrap();
        }
        let script = folder.path().join("script.json");
        std::fs::write(&script, json!({ "responses": responses }).to_string()).unwrap();
        let player = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/players/fake_http.py");
        let mut command = Command::new(servers::python().unwrap());
        command.args([player.as_path(), &script, Path::new("0"), &folder.path().join("record")]);
        Self(Serves::start(command, folder, |_| true))
    }

    /// A field case, whose server does not know the probe.
    pub fn field(case: &str, file: &str, change: impl FnOnce(&mut Vec<Value>)) -> Self {
        let Value::Array(mut responses) = field_json(case, file)["responses"].take() else { panic!("responses are a list") };
        responses.insert(0, unknown_probe());
        change(&mut responses);
        Self::with_files(Value::Array(responses), Some(field(case)))
    }

    fn ports(&self) -> (u16, u16) {
        let mut ports = self.0.first.split_whitespace().map(|port| port.parse().unwrap());
        (ports.next().unwrap(), ports.next().unwrap())
    }

    /// The port of its first origin.
    pub fn port(&self) -> u16 {
        self.ports().0
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port())
    }

    /// What was asked of it: `origin`, `method`, `path`, `headers`, `rpc`, `id`, `rule`.
    pub fn record(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.0.folder.path().join("record")).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// How often a method of the protocol was asked for.
    pub fn count(&self, rpc: &str) -> usize {
        self.record().iter().filter(|asked| asked["rpc"] == rpc).count()
    }
}

/// How a server answers that does not know the probe.
pub fn unknown_probe() -> Value {
    let body = json!({"jsonrpc": "2.0", "id": "$ID", "error": {"code": -32601, "message": "Method not found"}});
    on(
        "server/discover",
        json!({"status": 400, "headers": {"content-type": "application/json"}, "body_json": body, "repeat": true}),
    )
}

/// An answer to this method of the protocol.
pub fn on(rpc: &str, mut answer: Value) -> Value {
    answer["match"] = json!({"method": "POST", "rpc": rpc});
    answer
}

/// An answer to every request by this method of HTTP.
pub fn on_every(method: &str, mut answer: Value) -> Value {
    answer["match"] = json!({ "method": method });
    answer["repeat"] = json!(true);
    answer
}

/// A result as JSON.
pub fn result(result: Value) -> Value {
    let body = json!({"jsonrpc": "2.0", "id": "$ID", "result": result});
    json!({"status": 200, "headers": {"content-type": "application/json"}, "body_json": body})
}

/// A status and nothing in it.
pub fn status(status: u16) -> Value {
    json!({"status": status, "body": ""})
}

/// A body of this type.
pub fn body(kind: &str, body: &str) -> Value {
    json!({"status": 200, "headers": {"content-type": kind}, "body": body})
}

/// The start of a server of the handshake era: the probe, the handshake and a list of `echo`; what it answers otherwise comes behind.
pub fn handshake_era(more: impl IntoIterator<Item = Value>) -> Vec<Value> {
    let shaken =
        json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "f", "version": "0"}});
    let mut all = vec![
        unknown_probe(),
        again(on("initialize", result(shaken))),
        again(on("notifications/initialized", status(202))),
        again(on("tools/list", result(json!({"tools": [super::player::echo()]})))),
    ];
    all.extend(more);
    all.extend([on_every("GET", status(405)), on_every("DELETE", status(405))]);
    all
}

/// The start of a server of the stateless era: what it can do and a list of `echo`.
pub fn stateless_era(more: impl IntoIterator<Item = Value>) -> Vec<Value> {
    let discovered = json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
        "serverInfo": {"name": "f", "version": "0"}, "ttlMs": 0, "cacheScope": "private"});
    let list = json!({"resultType": "complete", "tools": [super::player::echo()], "ttlMs": 0, "cacheScope": "private"});
    let mut all = vec![again(on("server/discover", result(discovered))), again(on("tools/list", result(list)))];
    all.extend(more);
    all
}

/// The same as often as it is asked for.
pub fn again(mut answer: Value) -> Value {
    answer["repeat"] = json!(true);
    answer
}

/// A call is answered with this text.
pub fn answers(text: &str) -> Value {
    on("tools/call", result(json!({"content": [{"type": "text", "text": text}]})))
}
