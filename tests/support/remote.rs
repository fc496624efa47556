//! A tool server over HTTP that does what a test says: a function from what it hears to what it says, byte by byte where that matters.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};

use serde_json::{Value, json};

use super::PATIENCE;

/// What it heard.
#[derive(Clone, Debug)]
pub struct Heard {
    /// The HTTP method.
    pub verb: String,
    /// What stands in the request line.
    pub path: String,
    /// Names in small letters.
    pub headers: BTreeMap<String, String>,
    /// The body as JSON; null when it is none.
    pub body: Value,
}

impl Heard {
    /// The method of the message; empty for what is none.
    pub fn method(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }

    /// The message's id, as JSON.
    pub fn id(&self) -> &Value {
        &self.body["id"]
    }

    /// A header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }
}

/// What it says.
#[derive(Clone, Debug)]
pub struct Said {
    status: u16,
    headers: Vec<(String, String)>,
    /// Pieces, each sent by itself; without an end where the next part is not the end.
    pieces: Vec<Vec<u8>>,
    is_chunked: bool,
    end: End,
}

/// What comes behind the last piece.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    /// The body is over as it should be.
    Clean,
    /// The connection is closed in the middle of the body.
    Cut,
    /// Nothing, for as long as the client holds on.
    Hang,
}

/// A status and nothing more.
pub fn status(status: u16) -> Said {
    Said { status, headers: Vec::new(), pieces: vec![Vec::new()], is_chunked: false, end: End::Clean }
}

/// A body of JSON.
pub fn body(value: Value) -> Said {
    status(200).with("content-type", "application/json").saying(value.to_string())
}

/// A stream of events.
pub fn events(text: impl Into<String>) -> Said {
    let mut said = status(200).with("content-type", "text/event-stream").saying(text);
    said.is_chunked = true;
    said
}

/// The event of a message.
pub fn event(message: &Value) -> String {
    format!("data: {message}\n\n")
}

/// The answer to a request.
pub fn result(heard: &Heard, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": heard.id(), "result": result})
}

/// The error in answer to a request.
pub fn error(heard: &Heard, code: i64, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": heard.id(), "error": {"code": code, "message": message}})
}

impl Said {
    /// One more header.
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// This body.
    pub fn saying(mut self, text: impl Into<String>) -> Self {
        self.pieces = vec![text.into().into_bytes()];
        self
    }

    /// The body in these pieces.
    pub fn in_pieces(mut self, pieces: Vec<Vec<u8>>) -> Self {
        self.pieces = pieces;
        self.is_chunked = true;
        self
    }

    /// The connection is closed in the middle of the body.
    pub fn cut(mut self) -> Self {
        self.end = End::Cut;
        self
    }

    /// The body has no end.
    pub fn hanging(mut self) -> Self {
        self.end = End::Hang;
        self.is_chunked = true;
        self
    }
}

#[derive(Default)]
struct Known {
    heard: Vec<Heard>,
    hung_up: usize,
}

type Says = dyn Fn(&Heard, usize) -> Said + Send + Sync;

/// A server. It listens on loopback for as long as the process lives.
pub struct Remote {
    address: SocketAddr,
    known: Arc<(Mutex<Known>, Condvar)>,
}

impl Remote {
    /// A server that says this. The function is given what was heard, and how often that message was heard before.
    pub fn says(says: impl Fn(&Heard, usize) -> Said + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let known: Arc<(Mutex<Known>, Condvar)> = Arc::default();
        let (says, shared): (Arc<Says>, _) = (Arc::new(says), known.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (says, known) = (says.clone(), shared.clone());
                // A client that goes away in the middle is no failure of the server.
                std::thread::spawn(move || serve(stream, says.as_ref(), &known));
            }
        });
        Self { address, known }
    }

    /// A server of the handshake era with these tools, which says this to everything else. It gives the session `s-1`, `s-2`, … .
    pub fn handshake(tools: Value, says: impl Fn(&Heard, usize) -> Said + Send + Sync + 'static) -> Self {
        Self::says(move |heard, before| {
            match heard.method() {
            "server/discover" => status(400).saying("what?"),
            "initialize" => body(result(
                heard,
                json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {"listChanged": true}}, "serverInfo": {"name": "remote", "version": "1"}}),
            ))
            .with("mcp-session-id", &format!("s-{}", before + 1)),
            "notifications/initialized" => status(202),
            "tools/list" => body(result(heard, json!({"tools": tools}))),
            _ if heard.verb == "DELETE" => status(405),
            _ => says(heard, before),
        }
        })
    }

    /// A server of the stateless era with these tools, which says this to everything else.
    pub fn stateless(tools: Value, says: impl Fn(&Heard, usize) -> Said + Send + Sync + 'static) -> Self {
        Self::says(move |heard, before| match heard.method() {
            "server/discover" => body(result(
                heard,
                json!({"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "ttlMs": 0, "cacheScope": "private",
                       "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "remote", "version": "2"}}}),
            )),
            "tools/list" => {
                body(result(heard, json!({"resultType": "complete", "tools": tools, "ttlMs": 0, "cacheScope": "private"})))
            }
            _ => says(heard, before),
        })
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// What it heard so far.
    pub fn heard(&self) -> Vec<Heard> {
        self.known.0.lock().unwrap().heard.clone()
    }

    /// What it heard so far with this method of a message.
    pub fn heard_method(&self, method: &str) -> Vec<Heard> {
        self.heard().into_iter().filter(|heard| heard.method() == method).collect()
    }

    /// What it heard so far with this method of HTTP.
    pub fn heard_verb(&self, verb: &str) -> Vec<Heard> {
        self.heard().into_iter().filter(|heard| heard.verb == verb).collect()
    }

    /// The methods of the messages in their order; those of HTTP for what is none.
    pub fn methods(&self) -> Vec<String> {
        let name = |heard: Heard| if heard.method().is_empty() { heard.verb.clone() } else { heard.method().to_owned() };
        self.heard().into_iter().map(name).collect()
    }

    /// Waits until it heard something that fits.
    pub async fn wait_for(&self, fits: impl Fn(&Heard) -> bool + Send + 'static) -> Heard {
        self.wait(move |known| known.heard.iter().find(|heard| fits(heard)).cloned()).await
    }

    /// Waits until a client has hung up on an answer without an end.
    pub async fn wait_for_hang_up(&self) {
        self.wait(|known| (known.hung_up > 0).then_some(())).await;
    }

    /// Waits, beside the runtime, until this is there.
    async fn wait<T: Send + 'static>(&self, there: impl Fn(&Known) -> Option<T> + Send + 'static) -> T {
        let shared = self.known.clone();
        let waiting = tokio::task::spawn_blocking(move || {
            let (known, changed) = &*shared;
            let (known, _) = changed.wait_timeout_while(known.lock().unwrap(), PATIENCE, |known| there(known).is_none()).unwrap();
            there(&known).unwrap_or_else(|| panic!("it did not come: {:?}", known.heard))
        });
        waiting.await.unwrap()
    }
}

fn serve(stream: TcpStream, says: &Says, known: &(Mutex<Known>, Condvar)) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut stream = stream;
    loop {
        let heard = hear(&mut reader)?;
        let before = {
            let mut known = known.0.lock().unwrap();
            let alike = |earlier: &&Heard| earlier.verb == heard.verb && earlier.method() == heard.method();
            let before = known.heard.iter().filter(alike).count();
            known.heard.push(heard.clone());
            before
        };
        known.1.notify_all();
        let said = says(&heard, before);
        let is_said = say(&mut stream, &said).is_some();
        match said.end {
            End::Clean if is_said => {}
            End::Clean | End::Cut => return None,
            End::Hang => {
                // It ends when the client does, who may not even have waited for the beginning.
                let _ = reader.read(&mut [0u8; 1]);
                known.0.lock().unwrap().hung_up += 1;
                known.1.notify_all();
                return None;
            }
        }
    }
}

fn hear(reader: &mut BufReader<TcpStream>) -> Option<Heard> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let mut words = line.split_whitespace();
    let (verb, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0u8; length];
    reader.read_exact(&mut body).ok()?;
    Some(Heard { verb, path, headers, body: serde_json::from_slice(&body).unwrap_or_default() })
}

fn say(stream: &mut TcpStream, said: &Said) -> Option<()> {
    let mut head = format!("HTTP/1.1 {} Said\r\n", said.status);
    for (name, value) in &said.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if said.is_chunked {
        head.push_str("transfer-encoding: chunked\r\n");
    } else {
        let length: usize = said.pieces.iter().map(Vec::len).sum();
        head.push_str(&format!("content-length: {}\r\n", length + usize::from(said.end == End::Cut)));
    }
    stream.write_all(format!("{head}\r\n").as_bytes()).ok()?;
    stream.set_nodelay(true).ok()?;
    for piece in &said.pieces {
        if said.is_chunked && piece.is_empty() {
            continue;
        }
        if said.is_chunked {
            stream.write_all(format!("{:x}\r\n", piece.len()).as_bytes()).ok()?;
        }
        stream.write_all(piece).ok()?;
        if said.is_chunked {
            stream.write_all(b"\r\n").ok()?;
        }
        stream.flush().ok()?;
    }
    if said.is_chunked && said.end == End::Clean {
        stream.write_all(b"0\r\n\r\n").ok()?;
    }
    Some(())
}
