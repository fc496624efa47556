//! Which era of the protocol a server speaks, over whatever wire, and the agreement with it. On the wire itself, before the client gets
//! it: the class of an answer decides, never one code, and an answer that comes late must be harmless.
//!
//! The probe (`server/discover`) is the first message, always. A foreign answer means a server of the handshake era; after
//! silence `initialize` is sent beside it, for a cold start may take longer than any patience. A status of HTTP that says nothing about
//! the era (a login, a server that is busy) decides nothing.

use std::time::Duration;

use mission_contract::log::Era;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::exchange::{Answer, Awaited, Exchange, Message, Refused, waiter};
use super::frame::Id;
use super::outgoing::Asked;
use super::result::{cut, error_in_words, quoted, result_type};
use super::versions;
use crate::limits;

/// Errors that only a server of the stateless era gives: headers that differ, a missing capability, a version it does not speak.
const STATELESS_ERRORS: &[i64] = &[HEADER_MISMATCH, -32021, UNSUPPORTED_VERSION];
/// The code for headers that are not those that the server wants.
pub(crate) const HEADER_MISMATCH: i64 = -32020;
/// The code for a version that is not spoken.
pub(crate) const UNSUPPORTED_VERSION: i64 = -32022;

/// Our own id of a handshake, out of the way of the client's, which counts from 0. Some servers take numbers only, once they are
/// initialised.
const HANDSHAKE_ID: i64 = 2_000_000_000;

/// What a server and we have agreed upon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Agreement {
    /// The era.
    pub(crate) era: Era,
    /// The version.
    pub(crate) version: String,
    /// The server's own name and version.
    pub(crate) implementation: Option<String>,
    /// Whether it says that it has tools.
    pub(crate) declares_tools: bool,
    /// Whether it says that it tells when their list changes.
    pub(crate) declares_changes: bool,
}

/// Why there is none.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// In words: the second half of a sentence about the server.
    Because(String),
    /// The server is gone.
    Gone,
}

fn because<T>(why: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal::Because(why.into()))
}

/// How long silence after the probe is borne.
pub(crate) const PATIENCE: Duration = Duration::from_millis(limits::MCP_PROBE_MS);

/// Finds the era of a server and comes to an agreement with it. Has no deadline of its own.
pub(crate) async fn agree(exchange: &Exchange, client: &str, patience: Duration) -> Result<Agreement, Refusal> {
    let mut wait = Duration::from_millis(limits::MCP_RETRY_MS);
    let mut was_renegotiated = false;
    for attempt in 1..=limits::MCP_PROBES {
        let id = Id::Text(format!("probe-{attempt}"));
        let mut probe = ask(exchange, id.clone(), "server/discover", &discover(&id, client)).answer;
        let found = match timeout(patience, &mut probe).await {
            Ok(answer) => discovered(answer.ok()),
            Err(_) => {
                let agreed = beside(exchange, client, patience, probe).await;
                exchange.give_up(&id);
                return agreed;
            }
        };
        match found {
            Discovered::Speaks(discovery) => return discovery.take_up(exchange, client).await,
            Discovered::Refuses { code: UNSUPPORTED_VERSION, versions, .. }
                if !was_renegotiated && versions::newest_common(versions::STATELESS, &versions).is_some() =>
            {
                // It speaks what it was asked for, and was not ready to say so: it is asked once more.
                was_renegotiated = true;
            }
            Discovered::Refuses { code: UNSUPPORTED_VERSION, versions, .. }
                if versions::newest_common(versions::HANDSHAKE, &versions).is_some() =>
            {
                return handshake(exchange, client).await;
            }
            Discovered::Refuses { code: UNSUPPORTED_VERSION, versions, .. } => return because(no_common(&versions)),
            Discovered::Refuses { words, .. } => {
                return because(format!("speaks the stateless era and refuses to be asked what it can do, with {words}"));
            }
            Discovered::Foreign => return handshake(exchange, client).await,
            Discovered::Gone => return Err(Refusal::Gone),
            Discovered::Busy(refused) if attempt < limits::MCP_PROBES => {
                sleep(refused.retry_after.unwrap_or(wait)).await;
                wait = wait.saturating_mul(4);
            }
            // Whatever it fails at, a handshake may be another thing.
            Discovered::Busy(Refused { status: 500, .. }) => return handshake(exchange, client).await,
            Discovered::Busy(Refused { why, .. }) | Discovered::Because(why) => return because(why),
        }
    }
    because("refuses over and over to be asked what it can do")
}

/// Shakes hands beside a probe that is not answered yet, and waits for both.
async fn beside(
    exchange: &Exchange,
    client: &str,
    patience: Duration,
    mut probe: tokio::sync::oneshot::Receiver<Answer>,
) -> Result<Agreement, Refusal> {
    let mut late = None;
    let mut handshake = std::pin::pin!(handshake(exchange, client));
    let shaken = loop {
        tokio::select! {
            biased;
            answer = &mut probe, if late.is_none() => late = Some(discovered(answer.ok())),
            shaken = &mut handshake => break Some(shaken),
            // It has said what it speaks. That it says nothing to a handshake fits.
            () = sleep(patience), if matches!(late, Some(Discovered::Speaks(_))) => break None,
        }
    };
    if late.is_none() && matches!(shaken, Some(Err(Refusal::Because(_)))) {
        late = timeout(patience, &mut probe).await.ok().map(|answer| discovered(answer.ok()));
    }
    match (shaken, late) {
        (None | Some(Err(Refusal::Because(_))), Some(Discovered::Speaks(discovery))) => discovery.take_up(exchange, client).await,
        (Some(Err(Refusal::Because(why))), Some(Discovered::Refuses { words, .. })) => {
            because(format!("{why}; it answered the question for its era late, with {words}"))
        }
        (Some(shaken), _) => shaken,
        (None, _) => because("answered the question for its era late, and not the handshake"),
    }
}

/// Shakes hands. Has no deadline of its own.
async fn handshake(exchange: &Exchange, client: &str) -> Result<Agreement, Refusal> {
    let agreement = initialize(exchange, client).await?;
    exchange.agree(Era::Handshake, &agreement.version);
    let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let gone = |why| if exchange.closed().is_cancelled() { Refusal::Gone } else { Refusal::Because(why) };
    exchange.notify_surely(initialized.to_string().into_bytes()).await.map_err(gone)?;
    Ok(agreement)
}

/// What a server of the stateless era says about itself.
#[derive(Debug, PartialEq)]
struct Discovery {
    versions: Vec<String>,
    kind: Result<(), String>,
    about: About,
}

/// What a server says about itself, in either era.
#[derive(Debug, PartialEq)]
struct About {
    implementation: Option<String>,
    declares_tools: bool,
    declares_changes: bool,
}

impl About {
    fn read(result: &Value, implementation: Option<&Value>) -> Self {
        let text = |key: &str| {
            implementation?.get(key).and_then(Value::as_str).map(|text| cut(text, limits::size(limits::MCP_SAMPLE_BYTES)))
        };
        Self {
            implementation: match (text("name"), text("version")) {
                (Some(name), Some(version)) => Some(format!("{name} {version}")),
                (name, _) => name,
            },
            declares_tools: result.pointer("/capabilities/tools").is_some_and(|tools| !tools.is_null()),
            declares_changes: result.pointer("/capabilities/tools/listChanged") == Some(&Value::Bool(true)),
        }
    }

    fn with(self, era: Era, version: &str) -> Agreement {
        let About { implementation, declares_tools, declares_changes } = self;
        Agreement { era, version: version.to_owned(), implementation, declares_tools, declares_changes }
    }
}

impl Discovery {
    fn read(result: &Value) -> Option<Self> {
        let versions = result.get("supportedVersions")?.as_array()?;
        let info = result.get("_meta").and_then(|meta| meta.get("io.modelcontextprotocol/serverInfo"));
        Some(Self { versions: texts(versions), kind: result_type(result.get("resultType")), about: About::read(result, info) })
    }

    /// Takes up the newest version that both speak: one without a handshake before one with.
    async fn take_up(self, exchange: &Exchange, client: &str) -> Result<Agreement, Refusal> {
        if let Err(kind) = self.kind {
            return because(format!("says what it can do in a result of the type {kind}, which is not known"));
        }
        match versions::newest_common(versions::STATELESS, &self.versions) {
            Some(version) => {
                exchange.agree(Era::Stateless, version);
                Ok(self.about.with(Era::Stateless, version))
            }
            None if versions::newest_common(versions::HANDSHAKE, &self.versions).is_some() => handshake(exchange, client).await,
            None => because(no_common(&self.versions)),
        }
    }
}

/// What the answer to the probe says.
#[derive(Debug, PartialEq)]
enum Discovered {
    /// The server knows the stateless era.
    Speaks(Discovery),
    /// It knows that era, and says no in its way.
    Refuses { code: i64, versions: Vec<String>, words: String },
    /// It does not.
    Foreign,
    /// Nothing can be said now; perhaps in a while.
    Busy(Refused),
    /// Nothing can be said, for this reason.
    Because(String),
    /// There is no server any more.
    Gone,
}

fn discovered(answer: Option<Answer>) -> Discovered {
    let message = match answer {
        Some(Answer::Message(message)) => message,
        Some(Answer::Unreadable(_)) => return Discovered::Foreign,
        Some(Answer::Refused(refused)) if refused.is_passing() => return Discovered::Busy(refused),
        // Who may not ask, who is led elsewhere, who gets a web page: that says nothing about the era.
        Some(Answer::Refused(Refused { status: 200..=399 | 401 | 403, why, .. })) => return Discovered::Because(why),
        Some(Answer::Refused(_)) => return Discovered::Foreign,
        Some(Answer::Lost(why) | Answer::NotSent(why)) => return Discovered::Because(why),
        Some(Answer::Gone) | None => return Discovered::Gone,
    };
    if let Some(discovery) = Discovery::read(&value(message.result())) {
        return Discovered::Speaks(discovery);
    }
    match stateless_error(&message) {
        Some((code, versions)) => {
            let words = error_in_words(&String::from_utf8_lossy(message.error().unwrap_or_default()));
            Discovered::Refuses { code, versions, words }
        }
        None => Discovered::Foreign,
    }
}

/// The code of an error that only the stateless era has, and the versions that it names.
pub(crate) fn stateless_error(message: &Message) -> Option<(i64, Vec<String>)> {
    let error = value(message.error());
    let code = error.get("code").and_then(Value::as_i64).filter(|code| STATELESS_ERRORS.contains(code))?;
    let versions = error.pointer("/data/supported").and_then(Value::as_array);
    Some((code, versions.map(|versions| texts(versions)).unwrap_or_default()))
}

async fn initialize(exchange: &Exchange, client: &str) -> Result<Agreement, Refusal> {
    let newest = versions::newest_handshake();
    match initialize_with(exchange, client, HANDSHAKE_ID, newest).await? {
        Ok(shaken) => Ok(shaken),
        // It names what it speaks: asked for that once.
        Err((error, named)) => match versions::newest_common(versions::HANDSHAKE, &named).filter(|version| *version != newest) {
            Some(version) => initialize_with(exchange, client, HANDSHAKE_ID.saturating_add(1), version)
                .await?
                .map_err(|(error, _)| Refusal::Because(error)),
            None => because(error),
        },
    }
}

/// One `initialize`. The inner error is a refusal of the version: in words, and what the server speaks.
async fn initialize_with(
    exchange: &Exchange,
    client: &str,
    id: i64,
    version: &str,
) -> Result<Result<Agreement, (String, Vec<String>)>, Refusal> {
    let request = json!({ "jsonrpc": "2.0", "id": id, "method": "initialize", "params": {
        "protocolVersion": version, "capabilities": {}, "clientInfo": client_info(client),
    }});
    let message = match ask(exchange, Id::Number(id), "initialize", &request).answer.await {
        Ok(Answer::Message(message)) => message,
        Ok(Answer::Unreadable(why)) => return because(format!("cannot be shaken hands with: it {why}")),
        Ok(Answer::Refused(Refused { status: 400 | 404 | 405, why, .. })) => {
            return because(format!(
                "{why}; if it only speaks the old transport with a stream of its own (HTTP+SSE), that is not spoken here"
            ));
        }
        // How it went is known by whoever watches over the process.
        Ok(Answer::NotSent(_)) if exchange.closed().is_cancelled() => return Err(Refusal::Gone),
        Ok(Answer::Refused(Refused { why, .. }) | Answer::NotSent(why) | Answer::Lost(why)) => return because(why),
        Ok(Answer::Gone) | Err(_) => return Err(Refusal::Gone),
    };
    if let Some(error) = message.error() {
        let words = format!("refuses the handshake with {}", error_in_words(&String::from_utf8_lossy(error)));
        return match stateless_error(&message) {
            Some((UNSUPPORTED_VERSION, versions)) => Ok(Err((words, versions))),
            _ => because(words),
        };
    }
    shaken(&message).map(Ok)
}

fn shaken(message: &Message) -> Result<Agreement, Refusal> {
    let result = value(message.result());
    let known = versions::HANDSHAKE.join(", ");
    let Some(version) = result.get("protocolVersion").and_then(Value::as_str) else {
        return because(format!("names no protocol version in the handshake; known are {known}"));
    };
    if !versions::HANDSHAKE.contains(&version) {
        return because(format!(
            "names the protocol version {:?} in the handshake, which is not known; known are {known}",
            quoted(version)
        ));
    }
    Ok(About::read(&result, result.get("serverInfo")).with(Era::Handshake, version))
}

fn no_common(theirs: &[String]) -> String {
    let theirs = if theirs.is_empty() { "none that it names".to_owned() } else { theirs.join(", ") };
    format!("speaks no version of the protocol that is known: it speaks {theirs}; known are {}", versions::known())
}

fn ask(exchange: &Exchange, id: Id, method: &'static str, request: &Value) -> Awaited {
    let (waiter, awaited) = waiter(Asked::of(method));
    exchange.send(id, None, request.to_string().into_bytes(), &waiter);
    awaited
}

fn discover(id: &Id, client: &str) -> Value {
    let id = match id {
        Id::Number(number) => json!(number),
        Id::Text(text) => json!(text),
    };
    json!({ "jsonrpc": "2.0", "id": id, "method": "server/discover", "params": { "_meta": {
        "io.modelcontextprotocol/protocolVersion": versions::newest_stateless(),
        "io.modelcontextprotocol/clientInfo": client_info(client),
        "io.modelcontextprotocol/clientCapabilities": {},
    }}})
}

fn client_info(client: &str) -> Value {
    json!({ "name": client, "version": env!("CARGO_PKG_VERSION") })
}

fn texts(values: &[Value]) -> Vec<String> {
    /// So many versions are looked at; there are not that many.
    const VERSIONS: usize = 64;
    values.iter().filter_map(Value::as_str).take(VERSIONS).map(quoted).collect()
}

fn value(bytes: Option<&[u8]>) -> Value {
    serde_json::from_slice(bytes.unwrap_or_default()).unwrap_or_default()
}

#[cfg(test)]
#[path = "eras_tests.rs"]
mod tests;
