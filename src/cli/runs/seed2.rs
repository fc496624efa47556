//! A run as the harness before would have recorded it: `events.jsonl`, `model.jsonl`, `tools.jsonl` and `meta.json`.
//!
//! The records are the wire lines, credentials replaced as they were on the wire. In the recordings they are replaced
//! everywhere: those files leave the log, and nothing in them is a record.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use mission_contract::canonical;
use mission_contract::event::ToolResult;
use mission_contract::log::{Ask, Catalogue, Entry, Line, Message, Purpose, Reply, ReplyCall, ReplyEnd, Role};
use mission_contract::spec::{Protocol, Spec};
use mission_contract::visit::in_value;
use serde_json::{Map, Value, json};

use super::conversation::Conversation;
use crate::engine::offer::Offer;
use crate::engine::summary;
use crate::engine::words::RESULT_TOOL;
use crate::limits;
use crate::redact::Redactor;
use crate::sys::files::create_file;

/// How the records begin that are looked into.
const RESULT: &str = "{\"event\":\"tool_result\"";

/// The files, while the lines of a log go by.
pub struct Seed2<'r> {
    folder: PathBuf,
    redactor: &'r Redactor,
    events: BufWriter<File>,
    model: BufWriter<File>,
    tools: BufWriter<File>,
    run_id: String,
    spec: Spec,
    offer: Offer,
    /// The servers have said what they offer.
    offered: bool,
    /// The tools as they were written last.
    listed: Value,
    begun: Option<String>,
    updated: String,
    records: u64,
    model_calls: u64,
    tool_calls: u64,
    conversation: Conversation,
    /// Questions to reviewers: each a conversation of its own.
    reviews: Conversation,
    /// What the next reply answers.
    purpose: Purpose,
    /// Typed results whose records have not come.
    structured: Value,
}

impl<'r> Seed2<'r> {
    /// Makes the files.
    ///
    /// # Errors
    /// When they cannot be made.
    pub fn new(folder: &Path, redactor: &'r Redactor) -> io::Result<Self> {
        let file = |name: &str| {
            let file = create_file(&folder.join(name))?;
            io::Result::Ok(BufWriter::with_capacity(limits::size(limits::SINK_WRITE_BYTES), file))
        };
        Ok(Self {
            folder: folder.to_owned(),
            redactor,
            events: file("events.jsonl")?,
            model: file("model.jsonl")?,
            tools: file("tools.jsonl")?,
            run_id: String::new(),
            spec: Spec::default(),
            offer: Offer::default(),
            offered: false,
            listed: Value::Null,
            begun: None,
            updated: String::new(),
            records: 0,
            model_calls: 0,
            tool_calls: 0,
            conversation: Conversation::new()?,
            reviews: Conversation::new()?,
            purpose: Purpose::Step,
            structured: Value::Null,
        })
    }

    /// Takes the next line of the log.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn take(&mut self, line: &Line) -> io::Result<()> {
        let at = time(&line.at);
        self.updated.clone_from(&at);
        if self.begun.is_none() {
            self.begun = Some(at.clone());
        }
        match &line.entry {
            Entry::Open(open) => {
                self.run_id.clone_from(&open.run_id);
                self.spec = open.spec.clone();
            }
            Entry::Catalogue(catalogue) => self.catalogue(catalogue, &at)?,
            Entry::Ask(ask) => self.ask(ask)?,
            Entry::Reply(reply) if reply.end == ReplyEnd::Whole => self.reply(reply, &at)?,
            Entry::Result(result) => self.structured = result.structured.as_deref().cloned().unwrap_or_default(),
            Entry::Record(record) => {
                self.records = self.records.saturating_add(1);
                let record = record.get();
                writeln!(self.events, "{{\"seq\": {}, \"at\": \"{at}\", \"record\": {}}}", self.records, spaced(record))?;
                if record.starts_with(RESULT)
                    && let Ok(result) = serde_json::from_str::<ToolResult>(record)
                {
                    self.result(&result, &at)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Writes what is known once all lines were seen.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn finish(mut self) -> io::Result<()> {
        for file in [&mut self.events, &mut self.model, &mut self.tools] {
            file.flush()?;
            file.get_ref().sync_all()?;
        }
        let mut flags = Map::new();
        let mut flag = |name: &str, value: Value| {
            if !value.is_null() {
                flags.insert(name.to_owned(), value);
            }
        };
        flag("mission_steps", json!(self.spec.limits.steps));
        flag("provider", json!(self.spec.provider));
        flag("model", json!(self.spec.model));
        flag("profile", json!(self.spec.profile));
        flag("skill", json!(self.spec.skill.as_ref().map(|skill| &skill.name)));
        flag("gate_tool", if self.spec.gates.is_empty() { Value::Null } else { json!(self.spec.gates) });
        flag("temperature", json!(self.spec.sampling.temperature));
        flag("top_p", json!(self.spec.sampling.top_p));
        flag("seed", json!(self.spec.sampling.seed));
        let mut names = self.offer.catalogue();
        names.retain(|name| name != RESULT_TOOL);
        let mut meta = json!({"objective": self.spec.objective, "flags": flags, "catalogue": names});
        self.redact(&mut meta);
        let text = format!(
            "{{\"run_id\": {}, \"created_at\": \"{}\", \"updated_at\": \"{}\", \"last_seq\": {}, \"meta\": {}}}\n",
            json!(self.run_id),
            self.begun.unwrap_or_default(),
            self.updated,
            self.records,
            spaced(&meta.to_string())
        );
        let mut file = create_file(&self.folder.join("meta.json"))?;
        file.write_all(text.as_bytes())?;
        file.sync_all()
    }

    fn catalogue(&mut self, change: &Catalogue, at: &str) -> io::Result<()> {
        if std::mem::replace(&mut self.offered, true) {
            self.offer.apply(change);
        } else {
            self.offer = Offer::new(&change.tools, self.spec.allowed_tools.clone());
        }
        let mut tools = Vec::new();
        for name in self.offer.catalogue() {
            if let Some(tool) = self.offer.tool(&name) {
                let definition = &tool.definition;
                tools.push(json!({
                    "name": name, "description": definition.description, "arguments": summary::arguments(&definition.input_schema),
                    "input_schema": definition.input_schema, "required_scopes": ["mcp.call"], "requires_network": false,
                }));
            }
        }
        let tools = Value::Array(tools);
        if tools == self.listed {
            // They were asked again, and said the same.
            return Ok(());
        }
        let mut line = json!({"call": 0, "at": at, "catalogue": tools});
        self.listed = tools;
        self.redact(&mut line);
        writeln!(self.tools, "{}", canonical::of_value(&line))
    }

    fn ask(&mut self, ask: &Ask) -> io::Result<()> {
        self.purpose = ask.purpose;
        let (redactor, offer) = (self.redactor, &self.offer);
        let conversation = match ask.purpose {
            Purpose::Step => &mut self.conversation,
            Purpose::Review => &mut self.reviews,
        };
        conversation.take(ask, |message| {
            let mut value = as_message(message, offer);
            redact(&mut value, redactor);
            canonical::of_value(&value).into_bytes()
        })
    }

    fn reply(&mut self, reply: &Reply, at: &str) -> io::Result<()> {
        self.model_calls = self.model_calls.saturating_add(1);
        let calls: Vec<Value> = reply
            .calls
            .iter()
            .map(|call| {
                let mut value = json!({"id": call.id, "name": self.tool_name(&call.name)});
                match serde_json::from_str::<Map<String, Value>>(&call.arguments) {
                    Ok(arguments) => put(&mut value, "arguments", Value::Object(arguments)),
                    Err(_) => {
                        put(&mut value, "arguments", json!({}));
                        put(&mut value, "arguments_raw", json!(call.arguments));
                    }
                }
                value
            })
            .collect();
        let mut said = json!({"content": reply.text.as_str(), "tool_calls": calls, "usage": reply.usage});
        self.redact(&mut said);
        let mut extra = json!({"stream": self.spec.stream});
        if self.spec.protocol == Protocol::Native && self.purpose == Purpose::Step {
            put(&mut extra, "tools", self.functions());
            put(&mut extra, "tool_choice", json!("required"));
            put(&mut extra, "parallel_tool_calls", json!(true));
        }
        self.redact(&mut extra);
        let kind = match self.purpose {
            Purpose::Step => "mission",
            Purpose::Review => "plain",
        };
        write!(
            self.model,
            "{{\"at\":\"{at}\",\"call\":{},\"kind\":\"{kind}\",\"reply\":{},\"request\":{{\"extra\":{},\"messages\":[",
            self.model_calls,
            canonical::of_value(&said),
            canonical::of_value(&extra)
        )?;
        let conversation = match self.purpose {
            Purpose::Step => &mut self.conversation,
            Purpose::Review => &mut self.reviews,
        };
        conversation.write(&mut self.model, b",")?;
        self.model.write_all(b"]}}\n")
    }

    fn functions(&self) -> Value {
        let functions = self.offer.functions();
        let declared = functions.iter().map(|function| {
            json!({"type": "function", "function": {
                "name": self.tool_name(&function.name), "description": function.description, "parameters": function.parameters,
            }})
        });
        Value::Array(declared.collect())
    }

    /// That harness calls functions by the names of their tools.
    fn tool_name(&self, function: &str) -> String {
        self.offer.resolve(function).unwrap_or_else(|| function.to_owned())
    }

    fn result(&mut self, result: &ToolResult, at: &str) -> io::Result<()> {
        self.tool_calls = self.tool_calls.saturating_add(1);
        // What the run answers by itself has no typed part.
        let structured = std::mem::take(&mut self.structured);
        let mut line = json!({
            "call": self.tool_calls, "at": at, "tool": result.tool, "arguments": {"args": [], "kwargs": result.arguments},
            "result": {
                "exit_code": result.exit_code, "stdout": result.output.as_str(), "stderr": result.error, "structured": structured,
            },
        });
        self.redact(&mut line);
        writeln!(self.tools, "{}", canonical::of_value(&line))
    }

    fn redact(&self, value: &mut Value) {
        redact(value, self.redactor);
    }
}

fn redact(value: &mut Value, redactor: &Redactor) {
    in_value(value, &mut |text| {
        if let Cow::Owned(shown) = redactor.text(text) {
            *text = shown;
        }
    });
}

/// Adds a member to an object.
fn put(object: &mut Value, name: &str, value: Value) {
    if let Value::Object(members) = object {
        members.insert(name.to_owned(), value);
    }
}

/// A message in the form that chat servers take.
fn as_message(message: &Message, offer: &Offer) -> Value {
    let role = match message.role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    };
    let mut value = json!({"role": role, "content": message.content.as_str()});
    if !message.calls.is_empty() {
        let call = |call: &ReplyCall| {
            let name = offer.resolve(&call.name).unwrap_or_else(|| call.name.clone());
            json!({"id": call.id, "type": "function", "function": {"name": name, "arguments": call.arguments}})
        };
        let calls = message.calls.iter().map(call).collect();
        put(&mut value, "tool_calls", Value::Array(calls));
    }
    if let Some(id) = &message.call_id {
        put(&mut value, "tool_call_id", json!(id));
    }
    value
}

/// A time with its offset in digits, as that harness writes and reads it.
fn time(at: &str) -> String {
    match at.strip_suffix('Z') {
        Some(time) => format!("{time}+00:00"),
        None => at.to_owned(),
    }
}

/// JSON without spaces, with one behind each comma and colon. Strings stay as they are.
fn spaced(json: &str) -> String {
    let mut text = String::with_capacity(json.len().saturating_add(json.len() >> 3));
    let (mut inside, mut escaped) = (false, false);
    for each in json.chars() {
        text.push(each);
        match each {
            _ if escaped => escaped = false,
            '\\' if inside => escaped = true,
            '"' => inside = !inside,
            ',' | ':' if !inside => text.push(' '),
            _ => {}
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spaces_stand_behind_commas_and_colons_and_in_no_string() {
        assert_eq!(spaced(r#"{"a":[1,2],"b":"x,y:\",z","c":{}}"#), r#"{"a": [1, 2], "b": "x,y:\",z", "c": {}}"#);
        assert_eq!(spaced(r#"{"ä":"\\","b":"\\\""}"#), r#"{"ä": "\\", "b": "\\\""}"#);
    }

    #[test]
    fn a_time_has_its_offset_in_digits() {
        assert_eq!(time("2026-12-01T02:03:04.000Z"), "2026-12-01T02:03:04.000+00:00");
    }
}
