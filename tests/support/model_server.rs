//! A model server that plays a story: what it says to each request, in order, byte for byte, over plain TCP on loopback.
//!
//! ```text
//! let server = ModelServer::start()
//!     .reply(calls([("mcp.add", json!({"a": 1, "b": 2}))]))
//!     .reply(answers("Three."))
//!     .reply(stalls());
//! run_against(server.base_url());
//! assert_eq!(server.wait_for_request(1).body["model"], "m");
//! ```
//!
//! A reply is streamed when its request asks for a stream, and one JSON text otherwise. Calls and answers are said in the protocol of the request: with the
//! declared function whose name fits, or as JSON text where no function is declared. Nothing here sleeps to wait for anything: waiting is for
//! events, and bounded.
#![allow(
    dead_code,
    unused_imports,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

#[path = "model_server/answer.rs"]
mod answer;

pub use answer::{Answer, answers, calls, events, hangs_up, page, recorded, resets, says, stalls, status};
use answer::{End, bytes_of};

/// How long anything is waited for before a test fails.
/// Generous: a loaded machine must not fail a test.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A request as it came.
#[derive(Clone, Debug)]
pub struct Request {
    /// `POST`, …
    pub method: String,
    /// The path, with its query.
    pub path: String,
    /// The headers, names in lower case, in their order.
    pub headers: Vec<(String, String)>,
    /// The body's bytes.
    pub bytes: Vec<u8>,
    /// The body as JSON; null when it is none.
    pub body: Value,
    /// Number of the connection it came on, from 1.
    pub connection: usize,
    /// When all of it was here.
    pub at: Instant,
}

impl Request {
    /// A header's value.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The messages of the conversation.
    pub fn messages(&self) -> &[Value] {
        self.body["messages"].as_array().map_or(&[], Vec::as_slice)
    }

    /// The names of the declared functions.
    pub fn functions(&self) -> Vec<&str> {
        let tools = self.body["tools"].as_array().map_or(&[][..], Vec::as_slice);
        tools.iter().filter_map(|tool| tool["function"]["name"].as_str()).collect()
    }

    fn asks_for_usage(&self) -> bool {
        self.body["stream_options"]["include_usage"] == json!(true)
    }

    fn asks_for_stream(&self) -> bool {
        self.body["stream"] == json!(true)
    }
}

/// Says what a request is answered.
type ByRequest = dyn Fn(&Request) -> Answer + Send + Sync;

#[derive(Default)]
struct State {
    story: VecDeque<Answer>,
    /// The last answer of the story, where it is given again and again.
    last: Option<Answer>,
    repeats: bool,
    /// What is said to a request, whatever was said before.
    by_request: Option<Arc<ByRequest>>,
    let_go: bool,
    models: Option<Answer>,
    requests: Vec<Request>,
    others: Vec<Request>,
    connections: Vec<(usize, TcpStream)>,
    opened: usize,
    hung_up: usize,
    stopping: bool,
}

impl State {
    fn next(&mut self) -> Answer {
        let next = self.story.pop_front().or_else(|| self.last.clone()).unwrap_or_else(exhausted);
        if self.repeats {
            self.last = Some(next.clone());
        }
        next
    }
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn wait_until<T>(&self, what: &str, mut found: impl FnMut(&State) -> Option<T>) -> T {
        let deadline = Instant::now() + PATIENCE;
        let mut state = self.lock();
        loop {
            if let Some(found) = found(&state) {
                return found;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "waited {PATIENCE:?} for {what}; requests so far: {}", state.requests.len());
            state = self.changed.wait_timeout(state, left).unwrap().0;
        }
    }
}

/// A model server on a port of its own. It ends when it is dropped.
pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

impl ModelServer {
    /// Starts a server that has nothing to say yet. Past the end of its story it answers 500.
    pub fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared::default());
        let for_thread = Arc::clone(&shared);
        let accepting = std::thread::spawn(move || accept(&listener, &for_thread));
        Self { address, shared, accepting: Some(accepting) }
    }

    /// Then it answers so.
    #[must_use]
    pub fn reply(self, answer: Answer) -> Self {
        self.add(answer);
        self
    }

    /// At the end of its story it gives the last answer again.
    #[must_use]
    pub fn repeating(self) -> Self {
        self.shared.lock().repeats = true;
        self
    }

    /// Says to every request what this says to it, however often and in whatever order it is asked.
    pub fn saying(self, by_request: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> Self {
        self.shared.lock().by_request = Some(Arc::new(by_request));
        self
    }

    /// Gives the answers that are held.
    pub fn let_go(&self) {
        self.shared.lock().let_go = true;
        self.shared.changed.notify_all();
    }

    /// Adds an answer while it runs.
    pub fn add(&self, answer: Answer) {
        self.shared.lock().story.push_back(answer);
    }

    /// What it answers to every `GET …/models`; a list of one, `scripted-server`, unless stated.
    #[must_use]
    pub fn listing(self, answer: Answer) -> Self {
        self.shared.lock().models = Some(answer);
        self
    }

    /// What `LOCAL_API_BASE` is set to.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The port it listens on.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// The requests for completions so far, in the order in which they arrived.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.lock().requests.clone()
    }

    /// All other requests so far.
    pub fn other_requests(&self) -> Vec<Request> {
        self.shared.lock().others.clone()
    }

    /// Waits until the `count`-th request for a completion is here, counted from 1.
    pub fn wait_for_request(&self, count: usize) -> Request {
        self.shared.wait_until(&format!("request {count}"), |state| state.requests.get(count - 1).cloned())
    }

    /// Waits until `count` clients hung up on an answer that had not ended.
    pub fn wait_for_hang_up(&self, count: usize) {
        self.shared.wait_until(&format!("{count} clients to hang up"), |state| (state.hung_up >= count).then_some(()));
    }

    /// How many clients hung up so far on an answer that had not ended.
    pub fn hung_up(&self) -> usize {
        self.shared.lock().hung_up
    }

    /// How many connections were opened so far.
    pub fn connections(&self) -> usize {
        self.shared.lock().opened
    }

    /// How many answers were not asked for yet.
    pub fn left(&self) -> usize {
        self.shared.lock().story.len()
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        let connections = {
            let mut state = self.shared.lock();
            state.stopping = true;
            std::mem::take(&mut state.connections)
        };
        self.shared.changed.notify_all();
        for (_, connection) in connections {
            let _ = connection.shutdown(Shutdown::Both);
        }
        let _ = TcpStream::connect(self.address);
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        let Ok(stream) = stream else { continue };
        let number = {
            let mut state = shared.lock();
            if state.stopping {
                return;
            }
            let _ = stream.set_nodelay(true);
            state.opened += 1;
            let number = state.opened;
            state.connections.extend(stream.try_clone().map(|clone| (number, clone)));
            number
        };
        let shared = Arc::clone(shared);
        std::thread::spawn(move || serve(stream, number, &shared));
    }
}

fn serve(stream: TcpStream, number: usize, shared: &Shared) {
    let Ok(clone) = stream.try_clone() else { return };
    let mut reader = BufReader::with_capacity(1, clone);
    let mut stream = stream;
    while let Some((mut request, has_body)) = read_request(&mut reader, number) {
        let is_chat = request.path.split('?').next().is_some_and(|path| path.ends_with("/chat/completions"));
        let answer = {
            let mut state = shared.lock();
            if is_chat { state.next() } else { state.models.clone().unwrap_or_else(one_model) }
        };
        // Bytes that were not read when a socket is closed make it a reset: the last one stays where it is.
        if has_body {
            let mut last = [0];
            let is_read =
                if answer.end == End::Reset { stream.peek(&mut last).is_ok() } else { reader.read_exact(&mut last).is_ok() };
            if !is_read {
                return;
            }
            request.bytes.extend(last);
        }
        request.body = serde_json::from_slice(&request.bytes).unwrap_or_default();
        let by_request = shared.lock().by_request.clone().filter(|_| is_chat);
        let answer = by_request.map_or(answer, |by_request| by_request(&request));
        request.at = Instant::now();
        {
            let mut state = shared.lock();
            if is_chat { state.requests.push(request.clone()) } else { state.others.push(request.clone()) }
        }
        shared.changed.notify_all();
        if !give(&mut stream, &answer, &request, shared) {
            break;
        }
    }
}

fn exhausted() -> Answer {
    status(500, &json!({"error": {"message": "the story of this test server is over", "type": "story_over"}}))
}

fn one_model() -> Answer {
    status(200, &json!({"object": "list", "data": [{"id": "scripted-server", "object": "model"}]}))
}

/// Reads a request but for the last byte of its body; says whether it has one.
fn read_request(reader: &mut BufReader<TcpStream>, connection: usize) -> Option<(Request, bool)> {
    let mut line = String::new();
    if reader.read_line(&mut line).ok()? == 0 {
        return None;
    }
    let mut words = line.split_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length: usize = headers.iter().find(|(name, _)| name == "content-length").map_or(0, |(_, value)| value.parse().unwrap());
    let mut bytes = vec![0; length.saturating_sub(1)];
    reader.read_exact(&mut bytes).ok()?;
    Some((Request { method, path, headers, bytes, body: Value::Null, connection, at: Instant::now() }, length > 0))
}

/// Answers a request. False when its connection is over.
fn give(stream: &mut TcpStream, answer: &Answer, request: &Request, shared: &Shared) -> bool {
    std::thread::sleep(answer.delay);
    if answer.held {
        let let_go = |state: &mut State| !state.let_go && !state.stopping;
        drop(shared.changed.wait_while(shared.lock(), let_go).unwrap());
    }
    let (head, body, is_chunked) = bytes_of(answer, request);
    let pieces: Vec<Vec<u8>> = match (answer.segment, body) {
        (Some(size), body) => {
            let all: Vec<u8> = body.concat();
            cut(&all, answer.stop_after).chunks(size).map(<[u8]>::to_vec).collect()
        }
        (None, body) if answer.stop_after.is_some() => vec![cut(&body.concat(), answer.stop_after).to_vec()],
        (None, body) => body,
    };
    let mut is_written = stream.write_all(&head).is_ok();
    for piece in pieces {
        if answer.pause > Duration::ZERO {
            std::thread::sleep(answer.pause);
        }
        let framed = if is_chunked { chunk(&piece) } else { piece };
        is_written = is_written && stream.write_all(&framed).is_ok() && stream.flush().is_ok();
    }
    if is_chunked && answer.stop_after.is_none() {
        is_written = is_written && stream.write_all(b"0\r\n\r\n").is_ok();
    }
    match answer.end {
        _ if !is_written => {
            hung_up(shared);
            false
        }
        End::Keep => true,
        End::Close | End::Reset => {
            if answer.end == End::Close {
                let _ = stream.shutdown(Shutdown::Write);
            }
            // The clone that is kept for the end of the server must not hold the socket open.
            shared.lock().connections.retain(|(number, _)| *number != request.connection);
            false
        }
        End::Stall => {
            let mut byte = [0];
            loop {
                match stream.read(&mut byte) {
                    Ok(count) if count > 0 => {}
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    _ => break,
                }
            }
            hung_up(shared);
            false
        }
    }
}

fn hung_up(shared: &Shared) {
    let mut state = shared.lock();
    if !state.stopping {
        state.hung_up += 1;
    }
    drop(state);
    shared.changed.notify_all();
}

fn cut(bytes: &[u8], at: Option<usize>) -> &[u8] {
    &bytes[..at.unwrap_or(usize::MAX).min(bytes.len())]
}

fn chunk(bytes: &[u8]) -> Vec<u8> {
    let mut framed = format!("{:x}\r\n", bytes.len()).into_bytes();
    framed.extend_from_slice(bytes);
    framed.extend_from_slice(b"\r\n");
    framed
}
