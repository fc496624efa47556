//! Renders a request into the body of a chat completion.
//!
//! A conversation only grows, so what was rendered for the request before is kept and only what is new is written: the work of a step is the same
//! at step 200 as at step 2. Nothing is built in between: messages are borrowed and written straight into the body.

use std::sync::{Arc, Mutex, PoisonError};

use mission_contract::log::{Message, ReplyCall, Role};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::engine::request::{FunctionChoice, FunctionDeclaration, ModelRequest};

/// What a server refused and is no longer sent in this run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unsent {
    /// `response_format`.
    pub constraint: bool,
    /// `stream_options`.
    pub stream_options: bool,
    /// `parallel_tool_calls`.
    pub parallel_calls: bool,
    /// `tool_choice: required`: `auto` is sent in its place.
    pub required_choice: bool,
    /// `max_tokens`, or `max_completion_tokens` where the service wants that.
    pub reply_tokens: bool,
}

/// How a reply is held to a shape on this server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// With the schema itself.
    Schema,
    /// Only to some JSON object.
    Object,
}

/// Renders requests for one model.
#[derive(Debug)]
pub struct Renderer {
    model: String,
    format: Format,
    rendered: Mutex<Rendered>,
}

/// What was rendered last.
#[derive(Debug, Default)]
struct Rendered {
    messages: Vec<Arc<Message>>,
    /// The messages, commas between them.
    bytes: Vec<u8>,
    /// Where each message ends in `bytes`.
    ends: Vec<usize>,
    functions: Option<Arc<Vec<FunctionDeclaration>>>,
    tools: Vec<u8>,
}

impl Renderer {
    /// A renderer for this model.
    pub fn new(model: &str, format: Format) -> Self {
        Self { model: model.to_owned(), format, rendered: Mutex::default() }
    }

    /// The body of the request, without what the server refused before.
    pub fn body(&self, request: &ModelRequest, unsent: Unsent) -> Vec<u8> {
        let mut rendered = self.rendered.lock().unwrap_or_else(PoisonError::into_inner);
        rendered.update(request);
        let mut body = Vec::with_capacity(rendered.bytes.len().saturating_add(rendered.tools.len()).saturating_add(1024));
        body.extend_from_slice(b"{\"model\":");
        write(&mut body, &self.model);
        body.extend_from_slice(b",\"messages\":[");
        body.extend_from_slice(&rendered.bytes);
        body.push(b']');
        if !request.functions.is_empty() {
            body.extend_from_slice(b",\"tools\":");
            body.extend_from_slice(&rendered.tools);
            let choice = match request.choice {
                FunctionChoice::None => "none",
                FunctionChoice::Required if !unsent.required_choice => "required",
                FunctionChoice::Auto | FunctionChoice::Required => "auto",
            };
            member(&mut body, "tool_choice", &choice);
            if !unsent.parallel_calls && request.choice != FunctionChoice::None {
                member(&mut body, "parallel_tool_calls", &true);
            }
        }
        if let Some(constraint) = request.constraint.as_ref().filter(|_| !unsent.constraint) {
            match self.format {
                Format::Schema => member(&mut body, "response_format", &SchemaFormat::new(constraint.name, &constraint.schema)),
                Format::Object => member(&mut body, "response_format", &ObjectFormat { kind: "json_object" }),
            }
        }
        optional(&mut body, "temperature", request.sampling.temperature.filter(|value| value.is_finite()));
        optional(&mut body, "top_p", request.sampling.top_p.filter(|value| value.is_finite()));
        optional(&mut body, "seed", request.sampling.seed);
        // The hosted service refuses the old name for its newer models.
        let most = match self.format {
            Format::Schema => "max_tokens",
            Format::Object => "max_completion_tokens",
        };
        optional(&mut body, most, request.reply_tokens.filter(|_| !unsent.reply_tokens));
        if request.stream {
            member(&mut body, "stream", &true);
            if !unsent.stream_options {
                body.extend_from_slice(b",\"stream_options\":{\"include_usage\":true}");
            }
        }
        body.push(b'}');
        body
    }
}

impl Rendered {
    fn update(&mut self, request: &ModelRequest) {
        let same = self.messages.iter().zip(&request.messages).take_while(|(old, new)| Arc::ptr_eq(old, new)).count();
        self.messages.truncate(same);
        self.ends.truncate(same);
        self.bytes.truncate(self.ends.last().copied().unwrap_or(0));
        for message in request.messages.iter().skip(same) {
            if !self.bytes.is_empty() {
                self.bytes.push(b',');
            }
            write(&mut self.bytes, &WireMessage(message));
            self.ends.push(self.bytes.len());
            self.messages.push(Arc::clone(message));
        }
        if !self.functions.as_ref().is_some_and(|old| Arc::ptr_eq(old, &request.functions)) {
            self.tools.clear();
            write(&mut self.tools, &request.functions.iter().map(WireFunction::new).collect::<Vec<_>>());
            self.functions = Some(Arc::clone(&request.functions));
        }
    }
}

fn write(body: &mut Vec<u8>, value: &impl Serialize) {
    // Plain data into memory: it cannot fail.
    let _ = serde_json::to_writer(body, value);
}

fn member(body: &mut Vec<u8>, name: &str, value: &impl Serialize) {
    body.extend_from_slice(b",\"");
    body.extend_from_slice(name.as_bytes());
    body.extend_from_slice(b"\":");
    write(body, value);
}

fn optional(body: &mut Vec<u8>, name: &str, value: Option<impl Serialize>) {
    if let Some(value) = value {
        member(body, name, &value);
    }
}

#[derive(Serialize)]
struct ObjectFormat {
    #[serde(rename = "type")]
    kind: &'static str,
}

#[derive(Serialize)]
struct SchemaFormat<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    json_schema: NamedSchema<'a>,
}

#[derive(Serialize)]
struct NamedSchema<'a> {
    name: &'a str,
    strict: bool,
    schema: &'a Value,
}

impl<'a> SchemaFormat<'a> {
    fn new(name: &'a str, schema: &'a Value) -> Self {
        Self { kind: "json_schema", json_schema: NamedSchema { name, strict: true, schema } }
    }
}

#[derive(Serialize)]
struct WireFunction<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    function: Declaration<'a>,
}

#[derive(Serialize)]
struct Declaration<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
}

impl<'a> WireFunction<'a> {
    fn new(function: &'a FunctionDeclaration) -> Self {
        let FunctionDeclaration { name, description, parameters } = function;
        Self { kind: "function", function: Declaration { name, description, parameters } }
    }
}

struct WireMessage<'a>(&'a Message);

impl Serialize for WireMessage<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let message = self.0;
        let content = message.content.as_str();
        let mut map = serializer.serialize_map(None)?;
        let role = match message.role {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
        };
        map.serialize_entry("role", role)?;
        if let Some(id) = &message.call_id {
            map.serialize_entry("tool_call_id", id)?;
        }
        // An assistant that only calls says null: the published form, and what servers' templates are tested with.
        if message.calls.is_empty() || !content.is_empty() {
            map.serialize_entry("content", content)?;
        } else {
            map.serialize_entry("content", &None::<&str>)?;
        }
        if !message.calls.is_empty() {
            map.serialize_entry("tool_calls", &message.calls.iter().map(WireCall).collect::<Vec<_>>())?;
        }
        echo(&mut map, message.opaque.as_ref(), &["role", "tool_call_id", "content", "tool_calls"])?;
        map.end()
    }
}

struct WireCall<'a>(&'a ReplyCall);

impl Serialize for WireCall<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let call = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &call.id)?;
        map.serialize_entry("type", "function")?;
        map.serialize_entry("function", &WireCalled(call))?;
        echo(&mut map, call.opaque.as_ref(), &["id", "type", "function", "index"])?;
        map.end()
    }
}

struct WireCalled<'a>(&'a ReplyCall);

impl Serialize for WireCalled<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let call = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("name", &call.name)?;
        // A call without arguments may have come as nothing, blanks or null; servers that read them again want an object.
        let arguments = match call.arguments.trim() {
            "" | "null" => "{}",
            _ => call.arguments.as_str(),
        };
        map.serialize_entry("arguments", arguments)?;
        echo(&mut map, call.opaque.as_ref().and_then(|opaque| opaque.get("function")), &["name", "arguments"])?;
        map.end()
    }
}

/// Writes what the provider wants to see again, but for members that are written already.
fn echo<M: SerializeMap>(map: &mut M, opaque: Option<&Value>, taken: &[&str]) -> Result<(), M::Error> {
    for (key, value) in opaque.and_then(Value::as_object).into_iter().flatten() {
        if !taken.contains(&key.as_str()) {
            map.serialize_entry(key, value)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use mission_contract::log::Purpose;
    use mission_contract::spec::Sampling;
    use serde_json::json;

    use super::*;
    use crate::engine::request::Constraint;

    fn message(role: Role, text: &str) -> Arc<Message> {
        Arc::new(Message { role, content: text.into(), ..Message::default() })
    }

    fn request(messages: Vec<Arc<Message>>) -> ModelRequest {
        ModelRequest {
            ordinal: 1,
            purpose: Purpose::Step,
            messages,
            functions: Arc::default(),
            choice: FunctionChoice::None,
            constraint: None,
            sampling: Sampling::default(),
            stream: false,
            reply_tokens: None,
        }
    }

    fn rendered(renderer: &Renderer, request: &ModelRequest, unsent: Unsent) -> Value {
        serde_json::from_slice(&renderer.body(request, unsent)).unwrap()
    }

    #[test]
    fn the_smallest_request_holds_nothing_that_was_not_asked_for() {
        let renderer = Renderer::new("m", Format::Schema);
        let body = renderer.body(&request(vec![message(Role::System, "s\n\"é"), message(Role::User, "u")]), Unsent::default());
        assert_eq!(
            String::from_utf8(body).unwrap(),
            r#"{"model":"m","messages":[{"role":"system","content":"s\n\"é"},{"role":"user","content":"u"}]}"#
        );
    }

    #[test]
    fn everything_that_may_stand_in_one() {
        let renderer = Renderer::new("m", Format::Schema);
        let mut full = request(vec![message(Role::User, "u")]);
        full.functions = Arc::new(vec![FunctionDeclaration {
            name: "mcp_add".to_owned(),
            description: "Adds.".to_owned(),
            parameters: json!({"type": "object"}),
        }]);
        full.choice = FunctionChoice::Required;
        full.constraint = Some(Constraint { name: "decision", schema: Arc::new(json!({"type": "object"})) });
        full.sampling = Sampling { temperature: Some(0.0), top_p: Some(0.9), seed: Some(-3) };
        full.stream = true;
        full.reply_tokens = Some(40);
        assert_eq!(
            rendered(&renderer, &full, Unsent::default()),
            json!({
                "model": "m",
                "messages": [{"role": "user", "content": "u"}],
                "tools": [{"type": "function", "function": {"name": "mcp_add", "description": "Adds.", "parameters": {"type": "object"}}}],
                "tool_choice": "required",
                "parallel_tool_calls": true,
                "response_format": {"type": "json_schema", "json_schema": {"name": "decision", "strict": true, "schema": {"type": "object"}}},
                "temperature": 0.0, "top_p": 0.9, "seed": -3, "max_tokens": 40,
                "stream": true, "stream_options": {"include_usage": true},
            })
        );
        let refused =
            Unsent { constraint: true, stream_options: true, parallel_calls: true, required_choice: true, reply_tokens: true };
        let less = rendered(&renderer, &full, refused);
        assert_eq!(less.get("tool_choice"), Some(&json!("auto")));
        for name in ["response_format", "stream_options", "parallel_tool_calls", "max_tokens"] {
            assert_eq!(less.get(name), None, "{name}");
        }
        let object = rendered(&Renderer::new("m", Format::Object), &full, Unsent::default());
        assert_eq!(object.get("response_format"), Some(&json!({"type": "json_object"})));
        assert_eq!((object.get("max_tokens"), object.get("max_completion_tokens")), (None, Some(&json!(40))));
    }

    #[test]
    fn calls_are_echoed_as_they_came_with_what_the_provider_wants_to_see_again() {
        let said = Message {
            role: Role::Assistant,
            calls: vec![
                ReplyCall {
                    id: "a".to_owned(),
                    name: "mcp_add".to_owned(),
                    arguments: "{\"n\": 18446744073709551617, broken".to_owned(),
                    opaque: Some(
                        json!({"extra_content": {"signature": "s"}, "id": "no", "function": {"strict": true, "name": "no"}}),
                    ),
                },
                ReplyCall { id: "b".to_owned(), name: "now".to_owned(), arguments: " ".to_owned(), opaque: None },
            ],
            opaque: Some(json!({"reasoning_details": [1], "role": "no"})),
            ..Message::default()
        };
        let answered = Message { role: Role::Tool, content: "3".into(), call_id: Some("a".to_owned()), ..Message::default() };
        let body =
            rendered(&Renderer::new("m", Format::Schema), &request(vec![Arc::new(said), Arc::new(answered)]), Unsent::default());
        assert_eq!(
            body.get("messages").unwrap(),
            &json!([
                {
                    "role": "assistant", "content": null,
                    "tool_calls": [
                        {
                            "id": "a", "type": "function", "extra_content": {"signature": "s"},
                            "function": {"name": "mcp_add", "arguments": "{\"n\": 18446744073709551617, broken", "strict": true},
                        },
                        {"id": "b", "type": "function", "function": {"name": "now", "arguments": "{}"}},
                    ],
                    "reasoning_details": [1],
                },
                {"role": "tool", "tool_call_id": "a", "content": "3"},
            ])
        );
    }

    #[test]
    fn what_was_kept_from_the_last_request_gives_the_same_bytes() {
        let kept = Renderer::new("m", Format::Schema);
        let mut messages = vec![message(Role::System, "s")];
        for step in 0..5 {
            messages.push(message(Role::User, &format!("u{step}")));
            let request = request(messages.clone());
            assert_eq!(
                kept.body(&request, Unsent::default()),
                Renderer::new("m", Format::Schema).body(&request, Unsent::default())
            );
        }
        // The first message is replaced, and the conversation is another one.
        for other in [vec![message(Role::System, "s2"), message(Role::User, "u")], vec![], messages] {
            let request = request(other);
            assert_eq!(
                kept.body(&request, Unsent::default()),
                Renderer::new("m", Format::Schema).body(&request, Unsent::default())
            );
        }
    }
}
