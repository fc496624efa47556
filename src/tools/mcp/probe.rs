//! Which era of the protocol a server speaks, and the handshake. On the wire itself, before the client gets it: the class of an
//! answer decides, never one code, and an answer that comes late must be harmless.
//!
//! The probe (`server/discover`) is the first message, always. A foreign answer means a server of the handshake era; after
//! silence `initialize` is sent beside it, for a cold start may take longer than any patience.

use std::time::Duration;

use serde_json::{Value, json};

use super::exchange::{Answer, Awaited, Exchange, Message, waiter};
use super::frame::Id;
use super::result::{cut, error_in_words, quoted};
use crate::limits;

/// The revisions with a handshake, oldest first. A server that answers with any other is let go.
const HANDSHAKE_VERSIONS: &[&str] = &["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// The revision that the probe names: the first without a handshake.
const STATELESS_VERSION: &str = "2026-07-28";

/// Errors that only a server of the stateless era gives: headers that differ, a missing capability, a version it does not speak.
const STATELESS_ERRORS: &[i64] = &[-32020, -32021, UNSUPPORTED_VERSION];
const UNSUPPORTED_VERSION: i64 = -32022;

/// Our own ids, out of the way of the client's, which counts from 0. Some servers take numbers only, once they are initialised.
const PROBE_ID: &str = "probe-1";
const HANDSHAKE_ID: i64 = 2_000_000_000;

/// What the handshake has found out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Handshake {
    /// The version agreed upon.
    pub(crate) version: String,
    /// The server's own name and version.
    pub(crate) implementation: Option<String>,
    /// Whether it says that it has tools.
    pub(crate) declares_tools: bool,
}

/// Why there is none.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The server answers in the stateless era, in these versions.
    Stateless {
        /// What it speaks.
        versions: Vec<String>,
        /// It may shake hands all the same, if that is the first thing it is asked: some servers speak both eras and hold a
        /// connection to the one it began with.
        may_speak_both: bool,
    },
    /// In words: the second half of a sentence about the server.
    Because(String),
    /// The server is gone.
    Gone,
}

/// How long silence after the probe is borne.
pub(crate) const PATIENCE: Duration = Duration::from_millis(limits::MCP_PROBE_MS);

/// Finds the era of a server and shakes hands. Has no deadline of its own.
pub(crate) async fn probe(exchange: &Exchange, client: &str, patience: Duration) -> Result<Handshake, Refusal> {
    let id = Id::Text(PROBE_ID.to_owned());
    let mut probe = ask(exchange, id.clone(), &discover(client)).answer;
    let outcome = match tokio::time::timeout(patience, &mut probe).await {
        Ok(answer) => match discovered(answer.ok()) {
            Discovered::Gone => Err(Refusal::Gone),
            Discovered::Foreign => handshake(exchange, client).await,
            // It says itself that it shakes hands.
            Discovered::Stateless { versions, .. } if newest_common(&versions).is_some() => handshake(exchange, client).await,
            Discovered::Stateless { versions, refused } => Err(Refusal::Stateless { versions, may_speak_both: !refused }),
        },
        Err(_) => {
            let mut late = None;
            let mut handshake = std::pin::pin!(handshake(exchange, client));
            let shaken = loop {
                tokio::select! {
                    shaken = &mut handshake => break shaken,
                    answer = &mut probe, if late.is_none() => late = Some(discovered(answer.ok())),
                }
            };
            match (shaken, late) {
                (Err(Refusal::Because(_)), Some(Discovered::Stateless { versions, refused })) => {
                    Err(Refusal::Stateless { versions, may_speak_both: !refused })
                }
                (shaken, _) => shaken,
            }
        }
    };
    exchange.give_up(&id);
    outcome
}

/// Shakes hands without asking for the era. Has no deadline of its own.
pub(crate) async fn handshake(exchange: &Exchange, client: &str) -> Result<Handshake, Refusal> {
    let shaken = initialize(exchange, client).await?;
    let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let gone = |why: &str| if exchange.closed().is_cancelled() { Refusal::Gone } else { Refusal::Because(why.to_owned()) };
    exchange.write(initialized.to_string().into_bytes()).map_err(gone)?;
    Ok(shaken)
}

/// What the answer to the probe says.
#[derive(Debug, PartialEq)]
enum Discovered {
    /// The server knows the stateless era, in these versions; `refused` when it says so by an error.
    Stateless { versions: Vec<String>, refused: bool },
    /// It does not.
    Foreign,
    /// There is no server any more.
    Gone,
}

fn discovered(answer: Option<Answer>) -> Discovered {
    let message = match answer {
        Some(Answer::Message(message)) => message,
        Some(Answer::Unreadable(_)) => return Discovered::Foreign,
        Some(Answer::Gone | Answer::NotSent(_)) | None => return Discovered::Gone,
    };
    if let Some(Value::Array(versions)) = value(message.result()).get("supportedVersions") {
        return Discovered::Stateless { versions: texts(versions), refused: false };
    }
    match stateless_error(&message) {
        Some((_, versions)) => Discovered::Stateless { versions, refused: true },
        None => Discovered::Foreign,
    }
}

/// The code of an error that only the stateless era has, and the versions that it names.
fn stateless_error(message: &Message) -> Option<(i64, Vec<String>)> {
    let error = value(message.error());
    let code = error.get("code").and_then(Value::as_i64).filter(|code| STATELESS_ERRORS.contains(code))?;
    let versions = error.pointer("/data/supported").and_then(Value::as_array);
    Some((code, versions.map(|versions| texts(versions)).unwrap_or_default()))
}

async fn initialize(exchange: &Exchange, client: &str) -> Result<Handshake, Refusal> {
    let newest = HANDSHAKE_VERSIONS.last().copied().unwrap_or_default();
    match initialize_with(exchange, client, HANDSHAKE_ID, newest).await? {
        Ok(shaken) => Ok(shaken),
        // It names what it speaks: asked for that once.
        Err((error, versions)) => match newest_common(&versions).filter(|version| *version != newest) {
            Some(version) => initialize_with(exchange, client, HANDSHAKE_ID.saturating_add(1), version)
                .await?
                .map_err(|(error, _)| Refusal::Because(error)),
            None => Err(Refusal::Because(error)),
        },
    }
}

/// One `initialize`. The inner error is a refusal of the version: in words, and what the server speaks.
async fn initialize_with(
    exchange: &Exchange,
    client: &str,
    id: i64,
    version: &str,
) -> Result<Result<Handshake, (String, Vec<String>)>, Refusal> {
    let request = json!({ "jsonrpc": "2.0", "id": id, "method": "initialize", "params": {
        "protocolVersion": version, "capabilities": {}, "clientInfo": client_info(client),
    }});
    let message = match ask(exchange, Id::Number(id), &request).answer.await {
        Ok(Answer::Message(message)) => message,
        Ok(Answer::Unreadable(why)) => return Err(Refusal::Because(format!("cannot be shaken hands with: it {why}"))),
        // How it went is known by whoever watches over the process.
        Ok(Answer::NotSent(_)) if exchange.closed().is_cancelled() => return Err(Refusal::Gone),
        Ok(Answer::NotSent(why)) => return Err(Refusal::Because(why.to_owned())),
        Ok(Answer::Gone) | Err(_) => return Err(Refusal::Gone),
    };
    if let Some(error) = message.error() {
        let words = format!("refuses the handshake with {}", error_in_words(&String::from_utf8_lossy(error)));
        return match stateless_error(&message) {
            Some((UNSUPPORTED_VERSION, versions)) => Ok(Err((words, versions))),
            _ => Err(Refusal::Because(words)),
        };
    }
    shaken(&message).map(Ok)
}

fn shaken(message: &Message) -> Result<Handshake, Refusal> {
    let result = value(message.result());
    let known = HANDSHAKE_VERSIONS.join(", ");
    let Some(version) = result.get("protocolVersion").and_then(Value::as_str) else {
        return Err(Refusal::Because(format!("names no protocol version in the handshake; known are {known}")));
    };
    if !HANDSHAKE_VERSIONS.contains(&version) {
        return Err(Refusal::Because(format!(
            "names the protocol version {:?} in the handshake, which is not known; known are {known}",
            quoted(version)
        )));
    }
    let text =
        |key: &str| result.pointer(key).and_then(Value::as_str).map(|text| cut(text, limits::size(limits::MCP_SAMPLE_BYTES)));
    let implementation = match (text("/serverInfo/name"), text("/serverInfo/version")) {
        (Some(name), Some(version)) => Some(format!("{name} {version}")),
        (name, _) => name,
    };
    Ok(Handshake { version: version.to_owned(), implementation, declares_tools: result.pointer("/capabilities/tools").is_some() })
}

fn ask(exchange: &Exchange, id: Id, request: &Value) -> Awaited {
    let (waiter, awaited) = waiter(None);
    exchange.send(id, None, request.to_string().into_bytes(), &waiter);
    awaited
}

fn discover(client: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": PROBE_ID, "method": "server/discover", "params": { "_meta": {
        "io.modelcontextprotocol/protocolVersion": STATELESS_VERSION,
        "io.modelcontextprotocol/clientInfo": client_info(client),
        "io.modelcontextprotocol/clientCapabilities": {},
    }}})
}

fn client_info(client: &str) -> Value {
    json!({ "name": client, "version": env!("CARGO_PKG_VERSION") })
}

/// The newest version with a handshake among those that a server names.
fn newest_common(versions: &[String]) -> Option<&'static str> {
    HANDSHAKE_VERSIONS.iter().rev().find(|known| versions.iter().any(|version| version == *known)).copied()
}

fn texts(values: &[Value]) -> Vec<String> {
    values.iter().filter_map(Value::as_str).map(quoted).collect()
}

fn value(bytes: Option<&[u8]>) -> Value {
    serde_json::from_slice(bytes.unwrap_or_default()).unwrap_or_default()
}

#[cfg(test)]
#[path = "probe_tests.rs"]
mod tests;
