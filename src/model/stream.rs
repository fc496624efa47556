//! Folds what a chat-completions server sends into a reply: event by event, or all at once.

use std::collections::BTreeMap;

use mission_contract::log::{Observed, Reply, ReplyEnd};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::calls::{Calls, Members, text};
use super::json_text::JsonText;
use super::failure::{Failure, FailureKind, Trouble, is_context_overflow, server_words};
use super::think::{Rest, ThinkFilter, behind_lone_closing};
use super::usage::read_usage;
use super::{Delta, ModelReply};
use crate::limits::MODEL_UNREADABLE_EVENTS;

/// A completion, or a chunk of one. Whatever may have another type on some server is left unread here.
#[derive(Deserialize)]
struct Completion<'a> {
    #[serde(borrow, default)]
    choices: Option<Vec<Choice<'a>>>,
    #[serde(borrow, default)]
    usage: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
    /// `error` where the whole body is the report.
    #[serde(borrow, default)]
    object: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow, default)]
    index: Option<&'a RawValue>,
    #[serde(borrow, default)]
    delta: Option<Members<'a>>,
    #[serde(borrow, default)]
    message: Option<Members<'a>>,
    #[serde(borrow, default)]
    finish_reason: Option<&'a RawValue>,
    #[serde(borrow, default)]
    error: Option<&'a RawValue>,
}

/// What providers want to see again with a message: `reasoning_details` is how routers carry signed reasoning, `extra_content` how some models
/// carry signatures of their thoughts.
const ECHOED: [&str; 2] = ["reasoning_details", "extra_content"];

/// How the sending came to its end.
#[derive(Clone, Debug)]
pub enum Ending {
    /// The server closed the reply in good order.
    Complete,
    /// It broke.
    Broken(Trouble),
    /// We gave it up.
    Interrupted,
}

/// A reply while it comes.
#[derive(Debug, Default)]
pub struct ReplyFold {
    think: ThinkFilter,
    content: JsonText,
    text: String,
    refusal: String,
    calls: Calls,
    opaque: Map<String, Value>,
    finish: Option<String>,
    usage: Option<mission_contract::event::Usage>,
    deltas: Vec<Delta>,
    unreadable: u64,
    /// Something of a completion has come, if only its frame.
    begun: bool,
    /// `[DONE]` has come.
    done: bool,
    trouble: Option<Trouble>,
}

impl ReplyFold {
    /// An event of a streamed reply.
    pub fn event(&mut self, name: &str, data: &str) {
        let data = data.trim();
        if self.is_over() || data.is_empty() {
            return;
        }
        if data == "[DONE]" {
            self.done = true;
        } else if name == "error" {
            self.report(data);
        } else if !self.completion(data) {
            self.unreadable = self.unreadable.saturating_add(1);
            if self.unreadable > MODEL_UNREADABLE_EVENTS {
                let detail = format!("sends events that are no part of a completion; the last one begins: {}", server_words(data));
                self.trouble = Some(Trouble::new(FailureKind::Unreadable, detail));
            }
        }
    }

    /// A line of a streamed reply that belongs to no event: some servers report a failure in such a one.
    pub fn stray(&mut self, line: &str) {
        if self.is_over() {
            return;
        }
        if let Some(words) = line.strip_prefix("error:") {
            self.report(words.trim());
        } else if line.starts_with('{')
            && let Ok(Completion { error: Some(error), .. }) = serde_json::from_str(line)
        {
            self.report(error.get());
        }
    }

    /// A whole completion, or one chunk of it. False when it is none.
    pub fn completion(&mut self, body: &str) -> bool {
        let Ok(completion) = serde_json::from_str::<Completion<'_>>(body) else { return false };
        if let Some(error) = completion.error.filter(|error| !matches!(error.get(), "\"\"" | "false" | "{}")) {
            self.report(error.get());
            return true;
        }
        if completion.object.is_some_and(|object| object.get() == "\"error\"") {
            self.report(body);
            return true;
        }
        if let Some(usage) = completion.usage.and_then(|usage| read_usage(usage.get())) {
            self.begun = true;
            self.usage = Some(usage);
        }
        for choice in completion.choices.into_iter().flatten() {
            // Only one was asked for; a server that sends more numbers them.
            if choice.index.is_none_or(|index| matches!(index.get(), "0" | "null" | "\"0\"")) {
                self.choice(choice);
            }
        }
        true
    }

    /// A reply that was not streamed: complete when it holds a choice. False when it is no completion.
    pub fn whole(&mut self, body: &str) -> bool {
        let is_read = self.completion(body);
        self.done = self.begun;
        is_read && (self.begun || self.trouble.is_some())
    }

    fn choice(&mut self, choice: Choice<'_>) {
        self.begun = true;
        if let Some(error) = choice.error {
            self.report(error.get());
            return;
        }
        if let Some(piece) = choice.delta.or(choice.message) {
            self.piece(&piece);
        }
        if let Some(reason) = choice.finish_reason.and_then(text)
            && !reason.is_empty()
        {
            self.finish = Some(reason);
        }
    }

    fn piece(&mut self, piece: &Members<'_>) {
        if let Some(said) = piece.get("content").and_then(|content| self.content.read(content.get()).or_else(|| parts_text(content))) {
            let before = self.text.len();
            self.think.push(&said, &mut self.text);
            if let Some(added) = self.text.get(before..)
                && !added.is_empty()
            {
                self.deltas.push(Delta::Text(added.to_owned()));
            }
        }
        if let Some(refusal) = piece.get("refusal").and_then(|refusal| text(refusal)) {
            self.refusal.push_str(&refusal);
        }
        let entries = piece.get("tool_calls").and_then(|entries| serde_json::from_str::<Vec<Members<'_>>>(entries.get()).ok());
        let mut taken = self.calls.entries(&entries.unwrap_or_default(), &mut self.deltas);
        if let Some(Ok(function)) = piece.get("function_call").map(|call| serde_json::from_str::<Members<'_>>(call.get())) {
            taken = taken.and(self.calls.function_call(&function, &mut self.deltas));
        }
        if let Err(bound) = taken {
            self.trouble = Some(Trouble::new(FailureKind::TooLarge, format!("sent {bound}")));
        }
        for name in ECHOED {
            if let Some(value) = piece.get(name).and_then(|value| serde_json::from_str::<Value>(value.get()).ok()) {
                self.echo(name, value);
            }
        }
    }

    /// Keeps what is to be sent again: lists grow, everything else is replaced.
    fn echo(&mut self, name: &str, value: Value) {
        match (self.opaque.get_mut(name), value) {
            (_, Value::Null) => {}
            (Some(Value::Array(list)), Value::Array(more)) => list.extend(more),
            (_, value) => {
                self.opaque.insert(name.to_owned(), value);
            }
        }
    }

    fn report(&mut self, words: &str) {
        let kind = if is_context_overflow(words) { FailureKind::ContextOverflow } else { FailureKind::Reported };
        let said = server_words(words);
        let said = if said.is_empty() { "no reason was given".to_owned() } else { said };
        self.trouble = Some(Trouble::new(kind, format!("reported a failure in its reply: {said}")));
    }

    /// True when nothing that still comes changes anything.
    pub fn is_over(&self) -> bool {
        self.done || self.trouble.is_some()
    }

    /// True once the server said that the reply is complete; its usage may follow.
    pub fn is_finished(&self) -> bool {
        self.finish.is_some()
    }

    /// True when it ended with the server's own word that it is done, so that its connection is in good order.
    pub fn is_done(&self) -> bool {
        self.done && self.trouble.is_none()
    }

    /// What became known since the last time.
    pub fn take_deltas(&mut self) -> Vec<Delta> {
        std::mem::take(&mut self.deltas)
    }

    /// The reply as it is now. `server` begins every sentence about it: "The model server at …".
    pub fn end(mut self, server: &str, ending: Ending) -> (ModelReply, Vec<Delta>) {
        let mut observed = Vec::new();
        self.close_text(&mut observed);
        self.calls.announce_rest(&mut self.deltas);
        let has_content = !self.text.is_empty() || !self.calls.is_empty();
        let was_interrupted = matches!(ending, Ending::Interrupted) && !self.done;
        let trouble = match (self.trouble.take(), ending) {
            (Some(trouble), _) => Some(trouble),
            // Complete but for the way in which its connection ended.
            (None, Ending::Broken(trouble)) => (!self.done && self.finish.is_none()).then_some(trouble),
            (None, Ending::Interrupted) => None,
            (None, Ending::Complete) if !self.begun => Some(Trouble::new(FailureKind::Unreadable, self.nothing())),
            (None, Ending::Complete) if self.finish.is_none() && !self.done => {
                Some(Trouble::new(FailureKind::Broken, "ended its reply before it was finished".to_owned()))
            }
            (None, Ending::Complete) => None,
        };
        let end = match &trouble {
            Some(_) if has_content => ReplyEnd::Cut,
            Some(_) => ReplyEnd::Failed,
            None if was_interrupted => ReplyEnd::Interrupted,
            None => ReplyEnd::Whole,
        };
        let (calls, doubled) = self.calls.finish();
        if doubled > 0 {
            observed.push(observe("arguments_doubled", format!("{server} sent the arguments of {doubled} call(s) twice; they were taken once.")));
        }
        if self.unreadable > 0 {
            let count = self.unreadable;
            observed.push(observe("stream_noise", format!("{server} sent {count} event(s) that are no part of a completion; they were skipped.")));
        }
        let reply = Reply {
            end,
            text: self.text.into(),
            calls,
            opaque: (!self.opaque.is_empty()).then_some(Value::Object(self.opaque)),
            finish: self.finish,
            usage: self.usage,
            detail: trouble.as_ref().map(|trouble| format!("{server} {}.", trouble.detail.trim_end_matches('.'))),
            ..Reply::default()
        };
        (ModelReply { reply, observed, failure: trouble.map(|trouble| trouble.failure) }, self.deltas)
    }

    fn close_text(&mut self, observed: &mut Vec<Observed>) {
        let half = self.content.finish();
        self.think.push(half, &mut self.text);
        match self.think.finish() {
            Rest::Text(rest) => {
                if !rest.is_empty() {
                    self.text.push_str(&rest);
                    self.deltas.push(Delta::Text(rest));
                }
            }
            Rest::Unclosed(rest) => {
                self.text.push_str(&rest);
                if self.finish.is_some() || self.done {
                    let detail = "The reply opens its reasoning with a tag and never closes it, so it is kept whole: its answer may be in it.";
                    observed.push(observe("reasoning_unclosed", detail.to_owned()));
                }
            }
        }
        if let Some(answer) = behind_lone_closing(&self.text) {
            self.text = answer.to_owned();
        }
        if self.text.is_empty() && !self.refusal.is_empty() {
            self.text = std::mem::take(&mut self.refusal);
            self.deltas.push(Delta::Text(self.text.clone()));
        }
    }

    fn nothing(&self) -> String {
        if self.unreadable > 0 || self.done {
            "sent a reply with nothing of a completion in it".to_owned()
        } else {
            "sent an empty reply".to_owned()
        }
    }
}

/// The failure of a reply that never began.
pub fn failed(trouble: Trouble) -> ModelReply {
    let reply = Reply { end: ReplyEnd::Failed, detail: Some(trouble.detail), ..Reply::default() };
    ModelReply { reply, observed: Vec::new(), failure: Some(trouble.failure) }
}

/// Something to be told.
pub fn observe(what: &str, detail: String) -> Observed {
    Observed { what: what.to_owned(), detail, server: None, of: None }
}

/// The text of a `content` that is a list of parts, of which those of text count.
fn parts_text(content: &RawValue) -> Option<String> {
    let parts: Vec<BTreeMap<String, Value>> = serde_json::from_str(content.get()).ok()?;
    let said: String =
        parts.iter().filter(|part| part.get("type").is_none_or(|kind| kind == "text")).filter_map(|part| part.get("text")?.as_str()).collect();
    Some(said)
}

/// How a failure that is not one of the server's own words is put into a trouble with a status.
pub fn with_status(kind: FailureKind, status: u16, retry_after: Option<String>, detail: String, body: String) -> Trouble {
    Trouble { failure: Failure { kind, status: Some(status), retry_after }, detail, body }
}
