//! A scripted model behind a real server: what each turn says, in whatever protocol and form the request asks for.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Instant;

use serde_json::{Value, json};

use super::PATIENCE;

/// One turn of the model.
#[derive(Clone, Debug)]
pub enum Turn {
    /// Calls tools, by their full names: one in the `json` protocol, any number in `native`.
    Call(Vec<(String, Value)>),
    /// Answers.
    Answer(String),
    /// Says exactly this, whatever the protocol.
    Text(String),
    /// Fails with this HTTP status.
    Status(u16),
    /// Says nothing and keeps the connection.
    Stall,
    /// Says that, once [`Model::let_go`] was called.
    Held(Box<Turn>),
}

/// Calls one tool.
pub fn call(tool: &str, arguments: Value) -> Turn {
    Turn::Call(vec![(tool.to_owned(), arguments)])
}

/// Answers.
pub fn answer(text: &str) -> Turn {
    Turn::Answer(text.to_owned())
}

/// Says exactly this.
pub fn text(text: &str) -> Turn {
    Turn::Text(text.to_owned())
}

/// Says that, once it is let go.
pub fn held(turn: Turn) -> Turn {
    Turn::Held(Box::new(turn))
}

#[derive(Default)]
struct Seen {
    requests: Vec<Value>,
    let_go: bool,
    hung_up: usize,
}

/// The server. It listens on loopback for as long as the test's process lives.
pub struct Model {
    address: String,
    seen: Arc<(Mutex<Seen>, Condvar)>,
}

impl Model {
    /// A model whose turns are these; the last one repeats.
    pub fn says(turns: impl IntoIterator<Item = Turn>) -> Self {
        let turns: Arc<Vec<Turn>> = Arc::new(turns.into_iter().collect());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let seen = Arc::new((Mutex::new(Seen::default()), Condvar::new()));
        let shared = Arc::clone(&seen);
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let (turns, shared) = (Arc::clone(&turns), Arc::clone(&shared));
                // a client that goes away in the middle is what some tests are about
                std::thread::spawn(move || serve(connection, &turns, &shared).unwrap_or_default());
            }
        });
        Self { address, seen }
    }

    /// What `LOCAL_API_BASE` is to be.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The bodies of the requests so far.
    pub fn requests(&self) -> Vec<Value> {
        self.seen.0.lock().unwrap().requests.clone()
    }

    /// Waits until there were so many requests, and gives the last of them.
    pub fn wait_for_request(&self, number: usize) -> Value {
        self.wait(|seen| seen.requests.len() >= number).requests[number - 1].clone()
    }

    /// Lets all held turns be said.
    pub fn let_go(&self) {
        self.seen.0.lock().unwrap().let_go = true;
        self.seen.1.notify_all();
    }

    /// Waits until a client has hung up on a turn that stalls.
    pub fn wait_for_hang_up(&self) {
        drop(self.wait(|seen| seen.hung_up > 0));
    }

    fn wait(&self, enough: impl Fn(&Seen) -> bool) -> std::sync::MutexGuard<'_, Seen> {
        let until = Instant::now() + PATIENCE;
        let mut seen = self.seen.0.lock().unwrap();
        while !enough(&seen) {
            let left = until.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "the model was not asked as expected; it saw {:#?}", seen.requests);
            seen = self.seen.1.wait_timeout(seen, left).unwrap().0;
        }
        seen
    }
}

/// One connection, any number of requests.
fn serve(connection: TcpStream, turns: &[Turn], seen: &(Mutex<Seen>, Condvar)) -> std::io::Result<()> {
    connection.set_nodelay(true)?;
    let mut reader = BufReader::new(connection.try_clone()?);
    let mut writer = connection;
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head)? == 0 {
                return Ok(());
            }
        }
        let length = head
            .lines()
            .filter_map(|line| line.split_once(':'))
            .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
            .map_or(0, |(_, value)| value.trim().parse().unwrap());
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        if head.starts_with("GET ") {
            respond(&mut writer, 200, "application/json", br#"{"object":"list","data":[{"id":"scripted","object":"model"}]}"#)?;
            continue;
        }
        let request: Value = serde_json::from_slice(&body)?;
        let number = {
            let mut seen_now = seen.0.lock().unwrap();
            seen_now.requests.push(request.clone());
            seen.1.notify_all();
            seen_now.requests.len()
        };
        let mut turn = turns.get(number - 1).or(turns.last()).unwrap();
        if let Turn::Held(then) = turn {
            turn = then;
            drop(seen.1.wait_while(seen.0.lock().unwrap(), |seen| !seen.let_go).unwrap());
        }
        match turn {
            Turn::Held(_) => unreachable!("a turn is held once"),
            Turn::Status(status) => {
                let body = json!({"error": {"message": format!("scripted status {status}"), "type": "server_error"}});
                respond(&mut writer, *status, "application/json", body.to_string().as_bytes())?;
            }
            Turn::Stall => {
                let _ = reader.read(&mut [0]); // nothing more comes but the end
                seen.0.lock().unwrap().hung_up += 1;
                seen.1.notify_all();
                return Ok(());
            }
            Turn::Call(_) | Turn::Answer(_) | Turn::Text(_) => {
                let message = message(turn, &request, number);
                if request["stream"] == true {
                    stream(&mut writer, &message, &request, number)?;
                } else {
                    let finish = if message.get("tool_calls").is_some() { "tool_calls" } else { "stop" };
                    let reply = json!({
                        "id": format!("reply-{number}"), "object": "chat.completion", "model": "scripted",
                        "choices": [{"index": 0, "message": message, "finish_reason": finish}], "usage": usage(number),
                    });
                    respond(&mut writer, 200, "application/json", reply.to_string().as_bytes())?;
                }
            }
        }
    }
}

/// What each request cost.
pub fn usage(number: usize) -> Value {
    json!({"prompt_tokens": 100 * number, "completion_tokens": 7, "total_tokens": 100 * number + 7})
}

/// What a turn is as a message, in the protocol that the request speaks.
fn message(turn: &Turn, request: &Value, number: usize) -> Value {
    let declared: Vec<&str> =
        request["tools"].as_array().into_iter().flatten().filter_map(|tool| tool["function"]["name"].as_str()).collect();
    let calls: Vec<(String, Value)> = match turn {
        Turn::Text(text) => return json!({"role": "assistant", "content": text}),
        Turn::Answer(text) if declared.is_empty() => {
            return json!({"role": "assistant", "content": json!({"answer": text}).to_string()});
        }
        Turn::Answer(text) => vec![("mission_answer".to_owned(), json!({"text": text}))],
        Turn::Call(calls) if declared.is_empty() => {
            let (tool, arguments) = &calls[0];
            return json!({"role": "assistant", "content": json!({"tool": tool, "arguments": arguments}).to_string()});
        }
        Turn::Call(calls) => calls.iter().map(|(tool, arguments)| (function(tool, &declared), arguments.clone())).collect(),
        Turn::Status(_) | Turn::Stall | Turn::Held(_) => unreachable!("these say nothing"),
    };
    let calls: Vec<Value> = calls
        .iter()
        .enumerate()
        .map(|(at, (name, arguments))| {
            json!({"id": format!("call_{number}_{at}"), "type": "function", "function": {"name": name, "arguments": arguments.to_string()}})
        })
        .collect();
    json!({"role": "assistant", "content": null, "tool_calls": calls})
}

/// The declared function that stands for a tool: a real model reads its description, this one compares letters.
fn function(tool: &str, declared: &[&str]) -> String {
    let letters = |name: &str| name.chars().filter(char::is_ascii_alphanumeric).collect::<String>();
    let remote = letters(tool.split_once('.').map_or(tool, |(_, remote)| remote));
    declared
        .iter()
        .filter(|name| letters(name).ends_with(&remote))
        .min_by_key(|name| (letters(name) != letters(tool), name.len()))
        .map_or_else(|| tool.to_owned(), |name| (*name).to_owned())
}

fn stream(writer: &mut TcpStream, message: &Value, request: &Value, number: usize) -> std::io::Result<()> {
    let mut deltas = vec![json!({"role": "assistant", "content": null})];
    if let Some(content) = message["content"].as_str() {
        let letters: Vec<char> = content.chars().collect();
        deltas.extend(letters.chunks(7).map(|piece| json!({"content": piece.iter().collect::<String>()})));
    }
    for (at, call) in message["tool_calls"].as_array().into_iter().flatten().enumerate() {
        let arguments: Vec<char> = call["function"]["arguments"].as_str().unwrap().chars().collect();
        let name = json!({"name": call["function"]["name"], "arguments": ""});
        deltas.push(json!({"tool_calls": [{"index": at, "id": call["id"], "type": "function", "function": name}]}));
        deltas.extend(
            arguments
                .chunks(5)
                .map(|piece| json!({"tool_calls": [{"index": at, "function": {"arguments": piece.iter().collect::<String>()}}]})),
        );
    }
    let finish = if message.get("tool_calls").is_some() { "tool_calls" } else { "stop" };
    let chunk = |choices: Value, usage: Value| {
        let mut chunk =
            json!({"id": format!("reply-{number}"), "object": "chat.completion.chunk", "model": "scripted", "choices": choices});
        if !usage.is_null() {
            chunk["usage"] = usage;
        }
        chunk
    };
    let mut chunks: Vec<Value> =
        deltas.iter().map(|delta| chunk(json!([{"index": 0, "delta": delta, "finish_reason": null}]), Value::Null)).collect();
    chunks.push(chunk(json!([{"index": 0, "delta": {}, "finish_reason": finish}]), Value::Null));
    if request["stream_options"]["include_usage"] == true {
        chunks.push(chunk(json!([]), usage(number)));
    }
    writer.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")?;
    for event in chunks.iter().map(Value::to_string).chain(["[DONE]".to_owned()]) {
        let event = format!("data: {event}\n\n");
        write!(writer, "{:x}\r\n{event}\r\n", event.len())?;
    }
    writer.write_all(b"0\r\n\r\n")
}

fn respond(writer: &mut TcpStream, status: u16, kind: &str, body: &[u8]) -> std::io::Result<()> {
    write!(writer, "HTTP/1.1 {status} Scripted\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n", body.len())?;
    writer.write_all(body)
}
