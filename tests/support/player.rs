//! Tool servers that play a script over stdio (`tests/fixtures/players/fake_mcp_stdio.py`), the scripts of the field cases, and a
//! server that serves any list (`tests/support/serving.py`).

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::servers;

/// The folder of a field case.
pub fn field(case: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/field").join(case)
}

/// A file of a field case, as JSON.
pub fn field_json(case: &str, file: &str) -> Value {
    serde_json::from_slice(&std::fs::read(field(case).join(file)).unwrap()).unwrap()
}

/// A server that plays a script, and writes down what it is told.
pub struct Script {
    folder: tempfile::TempDir,
}

impl Script {
    /// These steps and no others.
    pub fn new(steps: Value) -> Self {
        let script = Self { folder: tempfile::Builder::new().prefix("mission-script-").tempdir().unwrap() };
        script.replace(steps);
        script
    }

    /// A field case exactly as it was recorded: it does not know the probe, and is silent about it.
    pub fn recorded_as(case: &str, file: &str) -> Self {
        Self::new(field_json(case, file)["steps"].take())
    }

    /// A field case with other steps in front of it.
    pub fn field(case: &str, file: &str, before: Value) -> Self {
        Self::new(join([before, field_json(case, file)["steps"].take()]))
    }

    /// The steps that follow a probe that was not understood.
    pub fn after_probe(steps: Value) -> Self {
        Self::new(join([probed(), steps]))
    }

    /// The steps that follow a handshake.
    pub fn after_initialize(steps: Value) -> Self {
        Self::after_probe(join([initialized("2025-06-18"), steps]))
    }

    /// The steps that follow a handshake and a list of these tools.
    pub fn after_list(tools: Value, steps: Value) -> Self {
        Self::after_initialize(join([listed(tools), steps]))
    }

    /// The steps that follow a handshake and a list of the tool `echo`, once it is called.
    pub fn after_call(steps: Value) -> Self {
        Self::after_list(json!([echo()]), join([json!([{"expect": "tools/call"}]), steps]))
    }

    /// From its next life on it plays these steps.
    pub fn replace(&self, steps: Value) {
        std::fs::write(self.folder.path().join("server.json"), json!({ "steps": steps }).to_string()).unwrap();
    }

    /// Its words for `--mcp-stdio`.
    pub fn words(&self) -> Vec<PathBuf> {
        let player = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/players/fake_mcp_stdio.py");
        vec![PathBuf::from("python3"), player, self.folder.path().join("server.json"), self.folder.path().join("record")]
    }

    /// The command line that starts it.
    pub fn line(&self) -> String {
        servers::line(self.words())
    }

    /// Its folder: what a step sends by name lies there.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// What was written to it, over all its lives.
    pub fn record(&self) -> Vec<Value> {
        recorded(&self.folder.path().join("record"))
    }

    /// The messages with this method that were written to it.
    pub fn recorded(&self, method: &str) -> Vec<Value> {
        self.record().into_iter().filter(|message| message["method"] == method).collect()
    }

    /// The methods of the messages that were written to it; `""` for an answer.
    pub fn methods(&self) -> Vec<String> {
        self.record().iter().map(|message| message["method"].as_str().unwrap_or_default().to_owned()).collect()
    }
}

fn recorded(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).expect("what we write is JSON")).collect()
}

/// A server that serves a list and answers every call with its arguments.
pub struct Serving {
    folder: tempfile::TempDir,
}

impl Serving {
    /// Serves a result of `tools/list`, or pages of them.
    pub fn new(list: &Value) -> Self {
        let serving = Self { folder: tempfile::Builder::new().prefix("mission-serving-").tempdir().unwrap() };
        serving.list(list);
        serving
    }

    /// Serves these tools.
    pub fn tools(tools: &Value) -> Self {
        Self::new(&json!({ "tools": tools }))
    }

    /// From now on it serves this list.
    pub fn list(&self, list: &Value) {
        let (path, new) = (self.folder.path().join("list"), self.folder.path().join("new"));
        std::fs::write(&new, list.to_string()).unwrap();
        std::fs::rename(new, path).unwrap();
    }

    /// The command line that starts it.
    pub fn line(&self) -> String {
        let server = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/serving.py");
        servers::line([PathBuf::from("python3"), server, self.folder.path().join("list")])
    }

    /// The messages with this method that were written to it.
    pub fn recorded(&self, method: &str) -> Vec<Value> {
        recorded(&self.folder.path().join("list.record")).into_iter().filter(|message| message["method"] == method).collect()
    }
}

/// Lists of steps as one.
pub fn join(parts: impl IntoIterator<Item = Value>) -> Value {
    Value::Array(parts.into_iter().flat_map(|part| part.as_array().cloned().expect("steps are a list")).collect())
}

/// The probe comes and is not understood.
pub fn probed() -> Value {
    json!([{"expect": "server/discover"}, {"send": {"jsonrpc": "2.0", "id": "$ID", "error": {"code": -32601, "message": "no"}}}])
}

/// A handshake in this version. The server says that it tells its changes: it is not listed again at every step.
pub fn initialized(version: &str) -> Value {
    let result = json!({"protocolVersion": version, "capabilities": {"tools": {"listChanged": true}}, "serverInfo": {"name": "player", "version": "1"}});
    json!([
        {"expect": "initialize"},
        {"send": {"jsonrpc": "2.0", "id": "$ID", "result": result}},
        {"expect": "notifications/initialized"},
    ])
}

/// A list of these tools.
pub fn listed(tools: Value) -> Value {
    json!([{"expect": "tools/list"}, {"send": {"jsonrpc": "2.0", "id": "$ID", "result": {"tools": tools}}}])
}

/// A call comes and is answered with this text.
pub fn answered(text: &str) -> Value {
    join([json!([{"expect": "tools/call"}]), answering(text)])
}

/// The call that came is answered with this text.
pub fn answering(text: &str) -> Value {
    json!([{"send": {"jsonrpc": "2.0", "id": "$ID", "result": {"content": [{"type": "text", "text": text}]}}}])
}

/// A tool that takes any object.
pub fn tool(name: &str) -> Value {
    json!({"name": name, "description": format!("Does {name}."), "inputSchema": {"type": "object"}})
}

/// The tool of most field cases.
pub fn echo() -> Value {
    json!({"name": "echo", "description": "Echo text back.", "inputSchema": {
        "type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}})
}
