//! What the test server can answer, and how it is worded for a request.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::Request;

/// What the server does with one request.
#[derive(Clone, Debug)]
pub struct Answer {
    pub(super) content: Content,
    /// Pause before the first byte.
    pub(super) delay: Duration,
    /// Bytes sent at once; all of them when absent.
    pub(super) segment: Option<usize>,
    /// Pause between segments, or between events where there are no segments.
    pub(super) pause: Duration,
    /// Only so many bytes of the body are sent.
    pub(super) stop_after: Option<usize>,
    /// Not given before the server lets it go.
    pub(super) held: bool,
    pub(super) end: End,
}

#[derive(Clone, Debug)]
pub(super) enum Content {
    /// A completion, worded for the request.
    Completion { said: Said, finish: Option<String>, usage: Option<Value>, fragment: usize, done: bool },
    /// An event stream with these data.
    Events(Vec<String>),
    /// Any status, headers and body.
    Page { status: u16, headers: Vec<(String, String)>, body: Vec<u8> },
    /// A whole HTTP answer to the letter.
    Recorded(Vec<u8>),
    /// Nothing at all.
    Nothing,
}

#[derive(Clone, Debug)]
pub(super) enum Said {
    Text(String),
    Answer(String),
    Calls(Vec<(String, Value)>),
}

/// What happens to the connection when everything was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Keep,
    Close,
    Reset,
    /// Nothing more, until the client hangs up.
    Stall,
}

fn answer(content: Content) -> Answer {
    Answer { content, delay: Duration::ZERO, segment: None, pause: Duration::ZERO, stop_after: None, held: false, end: End::Keep }
}

fn completion(said: Said) -> Answer {
    answer(Content::Completion { said, finish: None, usage: None, fragment: 8, done: true })
}

/// The model says this text, as it stands.
pub fn says(text: &str) -> Answer {
    completion(Said::Text(text.to_owned()))
}

/// The model finishes the run with this answer.
pub fn answers(text: &str) -> Answer {
    completion(Said::Answer(text.to_owned()))
}

/// The model calls these tools. Where no function is declared only the first call is said.
pub fn calls<Name: Into<String>>(calls: impl IntoIterator<Item = (Name, Value)>) -> Answer {
    completion(Said::Calls(calls.into_iter().map(|(name, arguments)| (name.into(), arguments)).collect()))
}

/// An event stream whose events hold these data.
pub fn events<'a>(data: impl IntoIterator<Item = &'a str>) -> Answer {
    answer(Content::Events(data.into_iter().map(str::to_owned).collect()))
}

/// A status and a JSON body.
pub fn status(status: u16, body: &Value) -> Answer {
    page(status, &[("Content-Type", "application/json")], body.to_string().as_bytes())
}

/// A status, headers and a body.
pub fn page(status: u16, headers: &[(&str, &str)], body: &[u8]) -> Answer {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    answer(Content::Page { status, headers, body: body.to_vec() })
}

/// A file of `tests/fixtures/wire`: the answer of a real server, with its head and its chunks.
pub fn recorded(name: &str) -> Answer {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/wire").join(name);
    answer(Content::Recorded(std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))).closing()
}

/// The request is read and never answered.
pub fn stalls() -> Answer {
    Answer { end: End::Stall, ..answer(Content::Nothing) }
}

/// The request is read, and the connection closed.
pub fn hangs_up() -> Answer {
    answer(Content::Nothing).closing()
}

/// The connection is reset while the request is not read to its end.
pub fn resets() -> Answer {
    Answer { end: End::Reset, ..answer(Content::Nothing) }
}

impl Answer {
    /// With this reason for stopping.
    pub fn finishing(mut self, reason: &str) -> Self {
        if let Content::Completion { finish, .. } = &mut self.content {
            *finish = Some(reason.to_owned());
        }
        self
    }

    /// With this usage; in a stream only when the request asks for it, as servers do.
    pub fn costing(mut self, reported: Value) -> Self {
        if let Content::Completion { usage, .. } = &mut self.content {
            *usage = Some(reported);
        }
        self
    }

    /// So many bytes of text or arguments in one event.
    pub fn in_fragments_of(mut self, bytes: usize) -> Self {
        if let Content::Completion { fragment, .. } = &mut self.content {
            *fragment = bytes;
        }
        self
    }

    /// Without `[DONE]`.
    pub fn without_done(mut self) -> Self {
        if let Content::Completion { done, .. } = &mut self.content {
            *done = false;
        }
        self
    }

    /// So many bytes in one write: TCP segments of that size, when the reader keeps up.
    pub fn in_segments_of(mut self, bytes: usize) -> Self {
        self.segment = Some(bytes);
        self
    }

    /// Only once [`super::ModelServer::let_go`] was called.
    pub fn held(mut self) -> Self {
        self.held = true;
        self
    }

    /// Pauses before the first byte.
    pub fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Pauses between the writes.
    pub fn pausing(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }

    /// Sends only so many bytes (of the body; of everything, where the answer is recorded) and then nothing, until the client hangs up.
    pub fn stalling_after(mut self, bytes: usize) -> Self {
        self.stop_after = Some(bytes);
        self.end = End::Stall;
        self
    }

    /// Sends only so many bytes and closes the connection.
    pub fn cut_after(mut self, bytes: usize) -> Self {
        self.stop_after = Some(bytes);
        self.end = End::Close;
        self
    }

    /// Sends everything and then nothing more, until the client hangs up: the body never ends.
    pub fn never_ending(mut self) -> Self {
        self.stop_after = Some(usize::MAX);
        self.end = End::Stall;
        self
    }

    /// Closes the connection behind the answer.
    pub fn closing(mut self) -> Self {
        self.end = End::Close;
        self
    }
}

/// The head, the pieces of the body, and whether they are to be sent as chunks.
pub(super) fn bytes_of(answer: &Answer, request: &Request) -> (Vec<u8>, Vec<Vec<u8>>, bool) {
    let connection = if answer.end == End::Close { "close" } else { "keep-alive" };
    let streamed = || {
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\nTransfer-Encoding: chunked\r\nConnection: {connection}\r\n\r\n"
        );
        head.into_bytes()
    };
    match &answer.content {
        Content::Nothing => (Vec::new(), Vec::new(), false),
        Content::Recorded(bytes) => (Vec::new(), vec![bytes.clone()], false),
        Content::Events(data) => (streamed(), data.iter().map(|data| event(data)).collect(), true),
        Content::Page { status, headers, body } => {
            let mut head = format!("HTTP/1.1 {status} Status\r\nContent-Length: {}\r\nConnection: {connection}\r\n", body.len());
            for (name, value) in headers {
                head.push_str(&format!("{name}: {value}\r\n"));
            }
            ((head + "\r\n").into_bytes(), vec![body.clone()], false)
        }
        Content::Completion { said, finish, usage, fragment, done } => {
            let (text, calls) = word(said, request);
            let finish = finish.clone().unwrap_or_else(|| if calls.is_empty() { "stop" } else { "tool_calls" }.to_owned());
            if request.asks_for_stream() {
                let mut events = chunks(&text, &calls, &finish, *fragment);
                if let Some(usage) = usage.as_ref().filter(|_| request.asks_for_usage()) {
                    events.push(json!({"id": "c", "object": "chat.completion.chunk", "choices": [], "usage": usage}).to_string());
                }
                if *done {
                    events.push("[DONE]".to_owned());
                }
                (streamed(), events.iter().map(|data| event(data)).collect(), true)
            } else {
                let content = if text.is_empty() && !calls.is_empty() { Value::Null } else { json!(text) };
                let mut message = json!({"role": "assistant", "content": content});
                if !calls.is_empty() {
                    message["tool_calls"] = calls.iter().map(|(id, name, arguments)| whole_call(id, name, arguments)).collect();
                }
                let mut body = json!({"id": "c", "object": "chat.completion", "choices": [{"index": 0, "message": message, "finish_reason": finish}]});
                if let Some(usage) = usage {
                    body["usage"] = usage.clone();
                }
                let body = body.to_string().into_bytes();
                let head = format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: {connection}\r\n\r\n",
                    body.len()
                );
                (head.into_bytes(), vec![body], false)
            }
        }
    }
}

fn event(data: &str) -> Vec<u8> {
    format!("data: {data}\n\n").into_bytes()
}

/// A call: id, function name, arguments as text.
type Call = (String, String, String);

/// What is said in the protocol of the request.
fn word(said: &Said, request: &Request) -> (String, Vec<Call>) {
    let functions = request.functions();
    let ordinal = request.messages().len();
    let call = |position: usize, name: &str, arguments: &Value| {
        (format!("call_{ordinal}_{position}"), spelled(name, &functions), arguments.to_string())
    };
    match said {
        Said::Text(text) => (text.clone(), Vec::new()),
        Said::Answer(text) if functions.is_empty() => (json!({"answer": text}).to_string(), Vec::new()),
        Said::Answer(text) => (String::new(), vec![call(0, "mission_answer", &json!({"text": text}))]),
        Said::Calls(calls) if functions.is_empty() => {
            let (name, arguments) = calls.first().expect("a call");
            (json!({"tool": name, "arguments": arguments}).to_string(), Vec::new())
        }
        Said::Calls(calls) => (
            String::new(),
            calls.iter().enumerate().map(|(position, (name, arguments))| call(position, name, arguments)).collect(),
        ),
    }
}

/// The declared function that a tool's name means; the name as it stands when there is none.
fn spelled(name: &str, functions: &[&str]) -> String {
    let plain = |text: &str| text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect::<String>();
    let wanted = plain(name);
    let fits = |function: &&&str| plain(function) == wanted || plain(function).ends_with(&format!("_{wanted}"));
    functions
        .iter()
        .find(|function| **function == name)
        .or_else(|| functions.iter().find(fits))
        .map_or(name, |function| function)
        .to_owned()
}

fn whole_call(id: &str, name: &str, arguments: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
}

fn chunks(text: &str, calls: &[Call], finish: &str, fragment: usize) -> Vec<String> {
    let chunk = |delta: Value, finish: Option<&str>| {
        json!({"id": "c", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
            .to_string()
    };
    let mut events = vec![chunk(json!({"role": "assistant", "content": null}), None)];
    events.extend(pieces(text, fragment).into_iter().map(|piece| chunk(json!({"content": piece}), None)));
    for (index, (id, name, arguments)) in calls.iter().enumerate() {
        let mut first = whole_call(id, name, "");
        first["index"] = json!(index);
        events.push(chunk(json!({"tool_calls": [first]}), None));
        for piece in pieces(arguments, fragment) {
            events.push(chunk(json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}), None));
        }
    }
    events.push(chunk(json!({}), Some(finish)));
    events
}

fn pieces(text: &str, bytes: usize) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    for character in text.chars() {
        match pieces.last_mut() {
            Some(piece) if piece.len() + character.len_utf8() <= bytes => piece.push(character),
            _ => pieces.push(character.to_string()),
        }
    }
    pieces
}
