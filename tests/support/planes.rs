//! A tool plane in this process, with the real guardian, for tests that want to see each result and each report.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::future::BoxFuture;
use mission::engine::request::ToolDispatch;
use mission::sys::spawn::GuardianProgram;
use mission::tools::address::{Address, Token};
use mission::tools::mcp::{McpPlane, PlaneOptions, Reach, ServerRequest, connect};
use mission::tools::{Discovery, PlaneEvent, ToolPlane};
use mission_contract::log::{CallResult, Observed, ServerState};
use serde_json::{Value, json};
use tokio::sync::mpsc::Receiver;
use tokio_util::sync::CancellationToken;

use super::PATIENCE;
use super::remote::Remote;

/// A tool without arguments.
pub fn tool(name: &str) -> Value {
    json!({"name": name, "description": format!("Does {name}."), "inputSchema": {"type": "object"}})
}

/// A server to start.
pub fn stdio(name: &str, argv: Vec<String>, timeout: Duration) -> ServerRequest {
    ServerRequest {
        name: name.to_owned(),
        reach: Reach::Stdio { argv, passes: BTreeMap::new() },
        optional: false,
        timeout,
        call_limit: PATIENCE,
    }
}

/// A server to reach.
pub fn http(name: &str, url: &str, token: Option<&str>) -> ServerRequest {
    let reach = Reach::Http { address: Address::parse(url).unwrap(), token: token.map(|token| Token::parse(token).unwrap()) };
    ServerRequest { name: name.to_owned(), reach, optional: false, timeout: PATIENCE, call_limit: PATIENCE }
}

/// A plane, and what came of it.
pub struct Plane {
    /// It.
    pub plane: McpPlane,
    /// What it found when it was connected.
    pub discovery: Discovery,
    events: Receiver<PlaneEvent>,
    calls: u64,
}

impl Plane {
    /// Connects to these servers.
    pub async fn of(requests: Vec<ServerRequest>) -> Self {
        let options = PlaneOptions {
            client_name: "tester".to_owned(),
            guardian_program: GuardianProgram(PathBuf::from(env!("CARGO_BIN_EXE_mission"))),
            ..PlaneOptions::default()
        };
        let (plane, discovery, events) = tokio::time::timeout(PATIENCE, connect(requests, options)).await.expect("it connects");
        Self { plane, discovery, events, calls: 0 }
    }

    /// Connects to one server over HTTP, called `srv`.
    pub async fn reaching(remote: &Remote) -> Self {
        Self::of(vec![http("srv", &remote.url(), None)]).await
    }

    /// The first server.
    pub fn server(&self) -> &ServerState {
        self.discovery.servers.first().unwrap()
    }

    /// Why the first server did not come up.
    pub fn failure(&self) -> String {
        let server = self.server();
        server.detail.clone().unwrap_or_else(|| panic!("it came up: {server:?}"))
    }

    /// The full names of the tools.
    pub fn tools(&self) -> Vec<String> {
        self.discovery.tools.iter().map(|definition| definition.full_name()).collect()
    }

    /// Begins a call of a tool of `srv`.
    pub fn begin(&mut self, name: &str, arguments: Value, cancel: CancellationToken) -> BoxFuture<'static, CallResult> {
        self.calls += 1;
        let dispatch = ToolDispatch {
            ordinal: self.calls,
            server: "srv".to_owned(),
            name: name.to_owned(),
            arguments: arguments.as_object().unwrap().clone(),
            key: format!("key-{}", self.calls),
        };
        self.plane.call(dispatch, cancel)
    }

    /// Calls a tool of `srv` with these arguments.
    pub async fn call_with(&mut self, name: &str, arguments: Value, cancel: CancellationToken) -> CallResult {
        let call = self.begin(name, arguments, cancel);
        tokio::time::timeout(PATIENCE, call).await.expect("the call ends")
    }

    /// Calls a tool of `srv`.
    pub async fn call(&mut self, name: &str) -> CallResult {
        self.call_with(name, json!({}), CancellationToken::new()).await
    }

    /// Waits for a report with this code; nothing for `stale`, which is none.
    pub async fn event(&mut self, code: &str) -> Option<Observed> {
        loop {
            match tokio::time::timeout(PATIENCE, self.events.recv()).await.expect("it is told").expect("the plane is there") {
                PlaneEvent::Observed(observed) if observed.what == code => return Some(observed),
                PlaneEvent::Stale { .. } if code == "stale" => return None,
                _ => {}
            }
        }
    }

    /// Closes it.
    pub async fn close(&self) {
        tokio::time::timeout(PATIENCE, self.plane.close()).await.expect("it closes");
    }
}

/// A server that plays a script over stdio.
pub struct Player {
    folder: tempfile::TempDir,
}

impl Player {
    /// These steps.
    pub fn new(steps: Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("server.json"), json!({ "steps": steps }).to_string()).unwrap();
        Self { folder }
    }

    /// How it is started.
    pub fn argv(&self) -> Vec<String> {
        let player = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/players/fake_mcp_stdio.py");
        let path = |file: &str| self.folder.path().join(file);
        [PathBuf::from("python3"), player, path("server.json"), path("record")]
            .map(|path| path.to_str().unwrap().to_owned())
            .to_vec()
    }

    /// The server, called `srv`.
    pub fn request(&self) -> ServerRequest {
        stdio("srv", self.argv(), PATIENCE)
    }

    /// What was written to it, over all its lives.
    pub fn record(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.folder.path().join("record")).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).expect("what we write is JSON")).collect()
    }
}
