//! A model that plays a [`script`](super::script): for the demo and for tests. It says on every occasion that it is scripted, and what it answers
//! is computed from what the tools of the run really returned.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use mission_contract::log::{Capabilities, ConstraintKind, Leg, Message, Reply, ReplyCall, ReplyEnd, Role};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc::Sender;
use tokio_util::sync::CancellationToken;

use super::failure::{FailureKind, Trouble, is_context_overflow, server_words};
use super::script::{Script, ScriptedCall, Step};
use super::settings::ModelError;
use super::stream::{failed, with_status};
use super::usage::read_usage;
use super::{Delta, ModelBackend, ModelReply, template};
use crate::engine::request::ModelRequest;

/// The function with which a native run is finished.
const ANSWER_FUNCTION: &str = "mission_answer";
/// Bytes in a piece of a streamed reply, unless a step states another size.
const FRAGMENT_BYTES: usize = 16;

/// A model that plays a script.
#[derive(Debug)]
pub struct ScriptedBackend {
    file: String,
    model: String,
    steps: Vec<Step>,
    next: Mutex<Next>,
}

/// What is played next.
#[derive(Clone, Copy, Debug, Default)]
struct Next {
    step: usize,
    /// How many of the step's calls were made: the `json` protocol takes one a reply.
    calls: usize,
}

/// What a reply says.
#[derive(Debug, Default)]
struct Said {
    text: String,
    calls: Vec<ReplyCall>,
}

impl ScriptedBackend {
    /// Reads a script. The model goes by `model`, else by the name in the script, else by the file's.
    ///
    /// # Errors
    /// When the script cannot be played: file, place, what is wrong and the fix.
    pub fn open(file: &Path, model: Option<String>) -> Result<Self, ModelError> {
        let script = Script::read(file)?;
        Ok(Self::new(script, &file.display().to_string(), model))
    }

    /// Plays a script that was read already. `file` is how sentences name it.
    pub fn new(script: Script, file: &str, model: Option<String>) -> Self {
        let stem = || Path::new(file).file_stem().map_or_else(|| file.to_owned(), |stem| stem.to_string_lossy().into_owned());
        let model = model.or(script.model).unwrap_or_else(stem);
        Self { file: file.to_owned(), model, steps: script.steps, next: Mutex::default() }
    }

    /// Goes on behind so many replies, which an earlier stretch of the run got.
    pub fn skip(&self, replies: u64, is_native: bool) {
        for _ in 0..replies {
            self.advance(is_native);
        }
    }

    async fn play(&self, request: ModelRequest, deltas: Sender<Delta>, cancel: CancellationToken) -> ModelReply {
        let is_native = !request.functions.is_empty();
        let (number, call) = self.advance(is_native);
        let Some(step) = self.steps.get(number) else {
            let steps = self.steps.len();
            return self
                .broken(&format!("it has {steps} step(s), and reply {} was asked for: add a step", number.saturating_add(1)));
        };
        let said = match say(step, call, number, &request) {
            Ok(said) => said,
            Err(problem) => return self.broken(&format!("step {}: {problem}", number.saturating_add(1))),
        };
        if !wait(step.delay_ms, &cancel).await {
            return over(ReplyEnd::Interrupted, Said::default(), step);
        }
        if let Some(fail) = &step.fail {
            let words = server_words(&fail.message);
            let separator = if words.is_empty() { "" } else { ": " };
            let detail =
                format!("The scripted model {} answered {}{separator}{}.", self.model, fail.status, words.trim_end_matches('.'));
            let kind = if is_context_overflow(&fail.message) { FailureKind::ContextOverflow } else { FailureKind::Status };
            return failed(with_status(kind, fail.status, None, detail, fail.message.clone()));
        }
        let mut shown = Said::default();
        if request.stream {
            for piece in cut(&said, step.fragment_bytes.unwrap_or(FRAGMENT_BYTES)) {
                shown.add(&piece, &said);
                let is_sent = tokio::select! {
                    biased;
                    () = cancel.cancelled() => false,
                    _ = deltas.send(piece) => true,
                };
                if !is_sent || !wait(step.fragment_ms, &cancel).await {
                    return over(ReplyEnd::Interrupted, shown, step);
                }
            }
        }
        if step.stall {
            cancel.cancelled().await;
            return over(ReplyEnd::Interrupted, shown, step);
        }
        if step.cut {
            let is_empty = said.text.is_empty() && said.calls.is_empty();
            let mut reply = over(if is_empty { ReplyEnd::Failed } else { ReplyEnd::Cut }, said, step);
            reply.reply.finish = None;
            let trouble =
                Trouble::new(FailureKind::Broken, format!("The scripted model {} broke off, as its script says.", self.model));
            reply.reply.detail = Some(trouble.detail);
            reply.failure = Some(trouble.failure);
            return reply;
        }
        over(ReplyEnd::Whole, said, step)
    }

    /// Number of the step to play and, in the `json` protocol, of the call in it; the next ask gets what follows.
    fn advance(&self, is_native: bool) -> (usize, usize) {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let now = *next;
        let calls = self.steps.get(now.step).and_then(|step| step.calls.as_ref()).map_or(1, Vec::len);
        next.calls = next.calls.saturating_add(1);
        if is_native || next.calls >= calls {
            *next = Next { step: now.step.saturating_add(1), calls: 0 };
        }
        (now.step, now.calls)
    }

    fn broken(&self, problem: &str) -> ModelReply {
        failed(Trouble::new(FailureKind::Script, format!("The script {} does not work out: {problem}.", self.file)))
    }
}

impl ModelBackend for ScriptedBackend {
    fn leg(&self) -> Leg {
        Leg {
            provider: "scripted".to_owned(),
            model: self.model.clone(),
            window: None,
            capabilities: Capabilities {
                stream: true,
                tools: true,
                parallel_calls: true,
                required_choice: true,
                constraint: ConstraintKind::JsonSchema,
            },
        }
    }

    fn ask<'a>(&'a self, request: ModelRequest, deltas: Sender<Delta>, cancel: CancellationToken) -> BoxFuture<'a, ModelReply> {
        self.play(request, deltas, cancel).boxed()
    }
}

/// Waits. False when the request was given up meanwhile.
async fn wait(milliseconds: u64, cancel: &CancellationToken) -> bool {
    if milliseconds == 0 {
        return !cancel.is_cancelled();
    }
    tokio::select! {
        biased;
        () = cancel.cancelled() => false,
        () = tokio::time::sleep(Duration::from_millis(milliseconds)) => true,
    }
}

fn over(end: ReplyEnd, said: Said, step: &Step) -> ModelReply {
    let is_whole = end == ReplyEnd::Whole;
    let finish = step.finish.clone().unwrap_or_else(|| if said.calls.is_empty() { "stop" } else { "tool_calls" }.to_owned());
    let usage = step.usage.as_ref().filter(|_| is_whole).and_then(|usage| read_usage(&Value::Object(usage.clone()).to_string()));
    let reply =
        Reply { end, text: said.text.into(), calls: said.calls, finish: is_whole.then_some(finish), usage, ..Reply::default() };
    ModelReply { reply, ..ModelReply::default() }
}

/// What a step says in the protocol of the request.
fn say(step: &Step, call: usize, number: usize, request: &ModelRequest) -> Result<Said, String> {
    let results = results(&request.messages.iter().map(AsRef::as_ref).collect::<Vec<_>>(), !request.functions.is_empty());
    let is_native = !request.functions.is_empty();
    let mut said = Said::default();
    if let Some(answer) = &step.answer {
        let answer = template::fill(answer, &results)?;
        if !is_native {
            said.text = json!({ "answer": answer }).to_string();
        } else if request.functions.iter().any(|function| function.name == ANSWER_FUNCTION) {
            said.calls.push(scripted_call(number, 0, ANSWER_FUNCTION.to_owned(), &json!({ "text": answer })));
        } else {
            said.text = answer;
        }
    }
    if let Some(text) = step.text.as_ref().filter(|_| is_native || step.calls.is_none()) {
        said.text = template::fill(text, &results)?;
    }
    if let Some(raw) = &step.raw {
        said.text.clone_from(raw);
    }
    let filled = |call: &ScriptedCall| -> Result<Value, String> {
        call.arguments
            .iter()
            .map(|(name, value)| Ok((name.clone(), template::fill_value(value, &results)?)))
            .collect::<Result<Map<String, Value>, String>>()
            .map(Value::Object)
    };
    for (position, scripted) in step.calls.iter().flatten().enumerate() {
        if is_native {
            let names: Vec<&str> = request.functions.iter().map(|function| function.name.as_str()).collect();
            let name = offered(&scripted.name, &names)?;
            said.calls.push(scripted_call(number, position, name, &filled(scripted)?));
        } else if position == call {
            let name = offered(&scripted.name, &listed(request))?;
            // The name first, as models write it.
            said.text = format!("{{\"tool\":{},\"arguments\":{}}}", Value::from(name), filled(scripted)?);
        }
    }
    Ok(said)
}

fn scripted_call(step: usize, position: usize, name: String, arguments: &Value) -> ReplyCall {
    ReplyCall { id: format!("scripted_{step}_{position}"), name, arguments: arguments.to_string(), opaque: None }
}

/// The texts of the results that came back so far, in order, without the heading under which the model is shown them.
fn results<'a>(messages: &[&'a Message], is_native: bool) -> Vec<&'a str> {
    let mut results = Vec::new();
    let mut is_called = false;
    for message in messages {
        let text = message.content.as_str();
        match message.role {
            Role::Tool if is_native => results.push(without_heading(text)),
            // In the `json` protocol what follows a call is what came of it.
            Role::User if !is_native && is_called => results.push(without_heading(text)),
            Role::System | Role::User | Role::Assistant | Role::Tool => {}
        }
        is_called = message.role == Role::Assistant
            && serde_json::from_str::<Value>(text).is_ok_and(|said| said.get("tool").is_some() && said.get("answer").is_none());
    }
    results
}

fn without_heading(text: &str) -> &str {
    match text.split_once('\n') {
        Some((heading, body)) if heading.ends_with("):") => body,
        _ => text,
    }
}

/// The spelling of a tool's name among those on offer: itself, else the one that is the same but for its punctuation, else the one that ends with it. As it
/// stands when there is none.
fn offered(name: &str, names: &[&str]) -> Result<String, String> {
    if names.contains(&name) {
        return Ok(name.to_owned());
    }
    let bare = |text: &str| {
        text.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' }).collect::<String>()
    };
    let wanted = bare(name);
    let same: Vec<&str> = names.iter().copied().filter(|offered| bare(offered) == wanted).collect();
    let ending = || {
        names
            .iter()
            .copied()
            .filter(|offered| bare(offered).strip_suffix(&wanted).is_some_and(|front| front.ends_with('_')))
            .collect()
    };
    let found = if same.is_empty() { ending() } else { same };
    match found.as_slice() {
        [] => Ok(name.to_owned()),
        [one] => Ok((*one).to_owned()),
        several => Err(format!("`{name}` may be {}: write the one that is meant", several.join(" or "))),
    }
}

/// The names of tools that a request of the `json` protocol may mean: words with a dot in them, in its schema and its first message.
fn listed(request: &ModelRequest) -> Vec<&str> {
    fn strings<'a>(value: &'a Value, names: &mut Vec<&'a str>) {
        match value {
            Value::String(text) => names.push(text),
            Value::Array(list) => list.iter().for_each(|value| strings(value, names)),
            Value::Object(object) => object.values().for_each(|value| strings(value, names)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    let mut names = Vec::new();
    if let Some(constraint) = &request.constraint {
        strings(&constraint.schema, &mut names);
    }
    if let Some(first) = request.messages.first() {
        names.extend(first.content.as_str().split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/'))));
    }
    names.retain(|name| name.contains('.') && !name.ends_with('.'));
    names.sort_unstable();
    names.dedup();
    names
}

/// A reply in pieces of about so many bytes.
fn cut(said: &Said, bytes: usize) -> Vec<Delta> {
    let mut pieces: Vec<Delta> = fragments(&said.text, bytes).map(|text| Delta::Text(text.to_owned())).collect();
    for (position, call) in said.calls.iter().enumerate() {
        pieces.push(Delta::CallName { position, name: call.name.clone() });
        pieces.extend(
            fragments(&call.arguments, bytes).map(|fragment| Delta::CallArguments { position, fragment: fragment.to_owned() }),
        );
    }
    pieces
}

fn fragments(text: &str, bytes: usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let mut end = bytes.max(1).min(rest.len());
        while !rest.is_char_boundary(end) {
            end = end.saturating_add(1);
        }
        let (piece, behind) = rest.split_at_checked(end)?;
        rest = behind;
        (!piece.is_empty()).then_some(piece)
    })
}

impl Said {
    /// Adds a piece that was streamed, of a reply that says `all` in the end.
    fn add(&mut self, piece: &Delta, all: &Said) {
        match piece {
            Delta::Text(text) => self.text.push_str(text),
            Delta::CallName { position, name } => {
                let id = all.calls.get(*position).map(|call| call.id.clone()).unwrap_or_default();
                self.calls.push(ReplyCall { id, name: name.clone(), ..ReplyCall::default() });
            }
            Delta::CallArguments { position, fragment } => {
                if let Some(call) = self.calls.get_mut(*position) {
                    call.arguments.push_str(fragment);
                }
            }
        }
    }
}
