//! Chat completions as OpenAI published them and as hosted and local servers speak them, streamed and not.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use mission_contract::log::{Capabilities, ConstraintKind, Leg, Observed, Reply, ReplyEnd};
use reqwest::Response;
use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::mpsc::Sender;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::endpoint::Endpoint;
use super::failure::{FailureKind, Trouble, one_line};
use super::http::HttpClient;
use super::request::{Format, Renderer, Unsent};
use super::secret::Secret;
use super::settings::ModelError;
use super::stream::{Ending, ReplyFold, failed, observe, with_status};
use super::{Delta, ModelBackend, ModelReply};
use crate::engine::request::{FunctionChoice, ModelRequest};
use crate::limits::{
    MODEL_BODY_BYTES, MODEL_DRAIN_MS, MODEL_EVENT_BYTES, MODEL_IDLE_SECONDS, MODEL_PROBE_BYTES, MODEL_PROBE_SECONDS,
    MODEL_REUSE_MS, MODEL_TAIL_SECONDS,
};
use crate::sys::http::{header, status_text};
use crate::sys::sse::{SseItem, SseSplitter};

/// The model that is asked for where a local server lists none and none was named.
pub const UNNAMED_MODEL: &str = "local-model";

/// Which kind of server speaks this wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenAiKind {
    /// One's own: `--provider local`.
    Local,
    /// The hosted service: `--provider openai`.
    Hosted,
}

impl OpenAiKind {
    /// The provider's word.
    pub fn provider(self) -> &'static str {
        match self {
            OpenAiKind::Local => "local",
            OpenAiKind::Hosted => "openai",
        }
    }

    /// The variable with its key.
    pub fn key_variable(self) -> &'static str {
        match self {
            OpenAiKind::Local => "LOCAL_API_KEY",
            OpenAiKind::Hosted => "OPENAI_API_KEY",
        }
    }

    fn base_variable(self) -> Option<&'static str> {
        match self {
            OpenAiKind::Local => Some("LOCAL_API_BASE"),
            OpenAiKind::Hosted => None,
        }
    }
}

/// What a backend of this wire is made from.
#[derive(Clone, Debug)]
pub struct OpenAiSettings {
    /// Which kind of server it is.
    pub kind: OpenAiKind,
    /// Its base URL.
    pub base: Endpoint,
    /// The key to send, when there is one.
    pub key: Option<Secret>,
    /// The model; without one the first that the server lists.
    pub model: Option<String>,
}

/// A model behind a chat-completions server.
#[derive(Debug)]
pub struct OpenAiBackend {
    kind: OpenAiKind,
    http: HttpClient,
    model: String,
    window: Option<u64>,
    renderer: Renderer,
    /// What the server refused in this run.
    unsent: Mutex<Unsent>,
    tail: Mutex<Tail>,
}

/// The rest of the last reply, which is read off the critical path so that its connection can be used again.
#[derive(Debug, Default)]
struct Tail {
    reading: Option<JoinHandle<()>>,
    /// The server keeps replies open that are complete: waiting for their rest is no use.
    never_ends: bool,
}

impl OpenAiBackend {
    /// A backend. The server is asked only when no model is named: for its list, 5 s.
    ///
    /// # Errors
    /// When the client cannot be made, or the list is needed and the server cannot be reached or refuses it. No error holds a credential.
    pub async fn connect(settings: OpenAiSettings) -> Result<Self, ModelError> {
        let OpenAiSettings { kind, base, key, model } = settings;
        let http = HttpClient::new(base, key, kind.key_variable(), kind.base_variable())?;
        let (model, window) = match model {
            Some(model) => (model, None),
            None => first_model(&http).await?,
        };
        let format = match kind {
            OpenAiKind::Local => Format::Schema,
            OpenAiKind::Hosted => Format::Object,
        };
        let renderer = Renderer::new(&model, format);
        Ok(Self { kind, http, model, window, renderer, unsent: Mutex::default(), tail: Mutex::default() })
    }

    async fn exchange(&self, request: ModelRequest, deltas: Sender<Delta>, cancel: CancellationToken) -> ModelReply {
        let mut observed = Vec::new();
        tokio::select! {
            biased;
            () = cancel.cancelled() => return interrupted(observed),
            () = self.settle() => {}
        }
        // Each further round leaves out at least one member of five.
        for _ in 0..6 {
            let unsent = self.unsent();
            let body = self.renderer.body(&request, unsent);
            let answer = tokio::select! {
                biased;
                () = cancel.cancelled() => return interrupted(observed),
                answer = self.http.post("chat/completions", body) => answer,
            };
            let mut reply = match answer {
                Ok(response) => self.read(response, request.stream, &deltas, &cancel).await,
                Err(trouble) => {
                    let refused = refused_members(&request, unsent, &trouble);
                    if refused != unsent {
                        observed.extend(tell(&self.http.server(), unsent, refused));
                        *self.unsent.lock().unwrap_or_else(PoisonError::into_inner) = refused;
                        continue;
                    }
                    failed(trouble)
                }
            };
            observed.append(&mut reply.observed);
            return ModelReply { observed, ..reply };
        }
        let detail = format!("{} keeps refusing parts of the request.", self.http.server());
        ModelReply { observed, ..failed(Trouble::new(FailureKind::Status, detail)) }
    }

    /// Gives the rest of the last reply a moment, unless this server never ends one.
    async fn settle(&self) {
        let reading = {
            let mut tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
            tail.reading.take().filter(|reading| !tail.never_ends && !reading.is_finished())
        };
        if let Some(reading) = reading
            && timeout(Duration::from_millis(MODEL_REUSE_MS), reading).await.is_err()
        {
            self.tail.lock().unwrap_or_else(PoisonError::into_inner).never_ends = true;
        }
    }

    fn unsent(&self) -> Unsent {
        *self.unsent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads an answer whose status is fine.
    async fn read(&self, mut response: Response, stream: bool, deltas: &Sender<Delta>, cancel: &CancellationToken) -> ModelReply {
        let mut reading = Reading::of(&response);
        if let Some(problem) = reading.problem.take() {
            return failed(self.odd(&response, &problem, b""));
        }
        let server = self.http.server();
        let ending = loop {
            let seconds = if reading.fold.is_finished() { MODEL_TAIL_SECONDS } else { MODEL_IDLE_SECONDS };
            let chunk = tokio::select! {
                biased;
                () = cancel.cancelled() => break Ending::Interrupted,
                chunk = timeout(Duration::from_secs(seconds), response.chunk()) => chunk,
            };
            match chunk {
                Ok(Ok(Some(bytes))) => {
                    if let Err(problem) = reading.take(&bytes) {
                        break Ending::Broken(Trouble::new(FailureKind::TooLarge, problem));
                    }
                }
                Ok(Ok(None)) => {
                    reading.finish();
                    break Ending::Complete;
                }
                Ok(Err(error)) => {
                    reading.finish();
                    break Ending::Broken(self.http.transport(&error).without_server(&server));
                }
                Err(_) => break Ending::Broken(self.http.silent(seconds).without_server(&server)),
            }
            if stream && !send(deltas, cancel, reading.fold.take_deltas()).await {
                break Ending::Interrupted;
            }
            if reading.fold.is_over() {
                break Ending::Complete;
            }
        };
        if let (Ending::Complete, Some(words)) = (&ending, reading.no_completion()) {
            return failed(self.odd(&response, words, &reading.whole));
        }
        if reading.fold.is_done() {
            self.tail.lock().unwrap_or_else(PoisonError::into_inner).reading = Some(drain(response));
        }
        let (mut reply, rest) = reading.fold.end(&server, ending);
        if stream && reply.reply.end != ReplyEnd::Interrupted {
            send(deltas, cancel, rest).await;
        }
        reply.reply.detail = reply.reply.detail.map(|detail| self.http.scrub(&detail));
        reply
    }

    /// A fine status with something that is no completion.
    fn odd(&self, response: &Response, problem: &str, body: &[u8]) -> Trouble {
        let kind = header(response.headers(), &CONTENT_TYPE).map_or_else(String::new, |kind| format!(", {}", one_line(&kind)));
        let body = self.http.scrub(&String::from_utf8_lossy(body));
        let words = one_line(&body);
        let words = if words.is_empty() { String::new() } else { format!(" It begins: {words}") };
        let detail = format!("{} answered {}{kind}, {problem}.{words}", self.http.server(), status_text(response.status()));
        with_status(FailureKind::Unreadable, response.status().as_u16(), None, detail, body)
    }
}

impl ModelBackend for OpenAiBackend {
    fn leg(&self) -> Leg {
        Leg {
            provider: self.kind.provider().to_owned(),
            model: self.model.clone(),
            window: self.window,
            capabilities: Capabilities {
                stream: true,
                tools: true,
                parallel_calls: true,
                required_choice: true,
                constraint: match self.kind {
                    OpenAiKind::Local => ConstraintKind::JsonSchema,
                    OpenAiKind::Hosted => ConstraintKind::JsonObject,
                },
            },
        }
    }

    fn ask<'a>(&'a self, request: ModelRequest, deltas: Sender<Delta>, cancel: CancellationToken) -> BoxFuture<'a, ModelReply> {
        self.exchange(request, deltas, cancel).boxed()
    }
}

/// How a body is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// Not yet known: only blanks have come.
    Unknown,
    /// Events.
    Events,
    /// One JSON text.
    Json,
    /// A page for people.
    Page,
}

/// A body while it comes.
struct Reading {
    form: Form,
    splitter: SseSplitter,
    fold: ReplyFold,
    /// The body, where it is read as a whole.
    whole: Vec<u8>,
    read: u64,
    problem: Option<String>,
    is_completion: bool,
}

impl Reading {
    fn of(response: &Response) -> Self {
        let kind = header(response.headers(), &CONTENT_TYPE).unwrap_or_default().to_ascii_lowercase();
        let encoding = header(response.headers(), &CONTENT_ENCODING).unwrap_or_default();
        let problem = if response.status() == reqwest::StatusCode::NO_CONTENT {
            Some("which holds no completion".to_owned())
        } else if !encoding.is_empty() && !encoding.eq_ignore_ascii_case("identity") {
            Some(format!("compressed ({}) although that was not asked for", one_line(&encoding)))
        } else {
            None
        };
        Self {
            form: if kind.starts_with("text/html") { Form::Page } else { Form::Unknown },
            splitter: SseSplitter::new(crate::limits::size(MODEL_EVENT_BYTES)),
            fold: ReplyFold::default(),
            whole: Vec::new(),
            read: 0,
            problem,
            is_completion: true,
        }
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.read = self.read.saturating_add(bytes.len() as u64);
        if self.read > MODEL_BODY_BYTES {
            return Err(format!("sent more than {MODEL_BODY_BYTES} bytes in one reply"));
        }
        let held;
        let mut bytes = bytes;
        if self.form == Form::Unknown {
            self.whole.extend_from_slice(bytes);
            // Servers label streams as JSON and JSON as streams: what comes says what it is.
            let first = self.whole.iter().find(|byte| !byte.is_ascii_whitespace() && !matches!(byte, 0xEF | 0xBB | 0xBF));
            self.form = match first {
                None => return Ok(()),
                Some(b'{' | b'[') => Form::Json,
                Some(b'<') => Form::Page,
                Some(_) => Form::Events,
            };
            held = std::mem::take(&mut self.whole);
            bytes = &held;
        }
        let fold = &mut self.fold;
        match self.form {
            Form::Events => {
                self.splitter.push(bytes, &mut |item| give(fold, item)).map_err(|error| format!("sent too much: {error}"))
            }
            Form::Json | Form::Page | Form::Unknown => {
                self.whole.extend_from_slice(bytes);
                Ok(())
            }
        }
    }

    fn finish(&mut self) {
        match self.form {
            Form::Events => {
                let fold = &mut self.fold;
                self.splitter.finish(&mut |item| give(fold, item));
            }
            Form::Json => {
                let body = String::from_utf8_lossy(&self.whole);
                self.is_completion = self.fold.whole(body.trim_start_matches('\u{FEFF}'));
            }
            Form::Page | Form::Unknown => self.is_completion = false,
        }
    }

    /// What came in place of a completion, once all of it is here.
    fn no_completion(&self) -> Option<&'static str> {
        if self.is_completion {
            return None;
        }
        Some(match self.form {
            Form::Page => "with a page for people in place of a completion: something else than a model server answers there",
            Form::Json => "with JSON that is no completion",
            Form::Unknown | Form::Events => "with an empty body",
        })
    }
}

fn give(fold: &mut ReplyFold, item: SseItem<'_>) {
    match item {
        SseItem::Event { name, data } => fold.event(name, data),
        SseItem::Stray(line) => fold.stray(line),
    }
}

/// Hands pieces on. False when the request was given up meanwhile. A receiver that went away does not end a reply.
async fn send(deltas: &Sender<Delta>, cancel: &CancellationToken, pieces: Vec<Delta>) -> bool {
    for piece in pieces {
        tokio::select! {
            biased;
            () = cancel.cancelled() => return false,
            sent = deltas.send(piece) => if sent.is_err() { return true },
        }
    }
    true
}

/// Reads what is left of a complete reply.
fn drain(mut response: Response) -> JoinHandle<()> {
    tokio::spawn(async move {
        let rest = async { while let Ok(Some(_)) = response.chunk().await {} };
        let _ = timeout(Duration::from_millis(MODEL_DRAIN_MS), rest).await;
    })
}

fn interrupted(observed: Vec<Observed>) -> ModelReply {
    ModelReply { reply: Reply { end: ReplyEnd::Interrupted, ..Reply::default() }, observed, failure: None }
}

/// Which members of the request the server's refusal names, added to those that are not sent any more.
fn refused_members(request: &ModelRequest, unsent: Unsent, trouble: &Trouble) -> Unsent {
    if !matches!(trouble.failure.status, Some(400 | 422)) {
        return unsent;
    }
    let names = |words: &[&str]| words.iter().any(|word| trouble.body.contains(word));
    // Room for the reply counts as context on many servers: without it the request may fit.
    let overflows = trouble.failure.kind == FailureKind::ContextOverflow;
    let reply_tokens =
        unsent.reply_tokens || (request.reply_tokens.is_some() && (overflows || names(&["max_tokens", "max_completion_tokens"])));
    if overflows {
        return Unsent { reply_tokens, ..unsent };
    }
    let declares = !request.functions.is_empty();
    Unsent {
        constraint: unsent.constraint
            || (request.constraint.is_some() && names(&["response_format", "json_schema", "json_object"])),
        stream_options: unsent.stream_options || (request.stream && names(&["stream_options", "include_usage"])),
        parallel_calls: unsent.parallel_calls || (declares && names(&["parallel_tool_calls"])),
        required_choice: unsent.required_choice
            || (declares && request.choice == FunctionChoice::Required && names(&["tool_choice"])),
        reply_tokens,
    }
}

fn tell(server: &str, before: Unsent, after: Unsent) -> Vec<Observed> {
    let mut observed = Vec::new();
    if after.constraint && !before.constraint {
        let detail = format!("{server} refuses `response_format`: replies are not held to a shape in this run.");
        observed.push(observe("constraint_refused", detail));
    }
    for (name, was, is, then) in [
        ("stream_options", before.stream_options, after.stream_options, "streamed replies may come without usage"),
        ("parallel_tool_calls", before.parallel_calls, after.parallel_calls, "it is left out"),
        ("tool_choice", before.required_choice, after.required_choice, "a call is asked for and not required"),
        ("max_tokens", before.reply_tokens, after.reply_tokens, "a reply may go past what is left of a limit"),
    ] {
        if is && !was {
            observed.push(observe("parameter_refused", format!("{server} refuses `{name}`: in this run {then}.")));
        }
    }
    observed
}

/// The first model that a server lists, and its window where it says so.
async fn first_model(http: &HttpClient) -> Result<(String, Option<u64>), ModelError> {
    let list = async {
        let mut response = http.get("models").await?;
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| http.transport(&error))? {
            body.extend_from_slice(&chunk);
            if body.len() as u64 > MODEL_PROBE_BYTES {
                let detail = format!("{} sent a list of models larger than {MODEL_PROBE_BYTES} bytes.", http.server());
                return Err(Trouble::new(FailureKind::TooLarge, detail));
            }
        }
        Ok(body)
    };
    let body = match timeout(Duration::from_secs(MODEL_PROBE_SECONDS), list).await {
        Ok(Ok(body)) => body,
        // Not every server has a list; it may take any name.
        Ok(Err(trouble)) if matches!(trouble.failure.status, Some(404 | 405 | 501)) => {
            return Ok((UNNAMED_MODEL.to_owned(), None));
        }
        Ok(Err(trouble)) => return Err(ModelError::NoModel { problem: trouble.detail, kind: trouble.failure.kind }),
        Err(_) => {
            return Err(ModelError::NoModel { problem: http.silent(MODEL_PROBE_SECONDS).detail, kind: FailureKind::Silent });
        }
    };
    Ok(named_first(&body).unwrap_or_else(|| (UNNAMED_MODEL.to_owned(), None)))
}

#[derive(Deserialize)]
struct ModelList {
    data: Vec<Value>,
}

fn named_first(body: &[u8]) -> Option<(String, Option<u64>)> {
    let list: ModelList = serde_json::from_slice(body).ok()?;
    list.data.iter().find_map(|entry| {
        let id = entry.get("id")?.as_str().filter(|id| !id.trim().is_empty())?;
        let window = ["/max_model_len", "/meta/n_ctx", "/max_context_length", "/context_length"]
            .iter()
            .find_map(|place| entry.pointer(place)?.as_u64().filter(|tokens| *tokens > 0));
        Some((id.to_owned(), window))
    })
}
