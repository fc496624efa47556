//! For tests: a run that is told input by input, and what it does about each, as text.
#![allow(clippy::unwrap_used, clippy::panic, clippy::arithmetic_side_effects)]

use mission_contract::event::{Event, Usage};
use mission_contract::log::{
    CallEnd, CallResult, Catalogue, Closed, Control, ControlSource, Decision, Entry, Intent, Leg, Message, Observed, Open,
    Purpose, Reply, ReplyCall, ReplyEnd, ServerState, ToolDefinition, Writer,
};
use mission_contract::spec::{PromptText, Protocol, Spec};
use serde_json::{Value, json};

use super::effect::{Audited, Effect};
use super::request::ModelRequest;
use super::run::{FoldError, Run};

/// A run and what came of it so far.
#[derive(Default)]
pub struct Story {
    pub run: Run,
    /// What it is opened with.
    pub spec: Spec,
    pub tools: Vec<ToolDefinition>,
    pub servers: Vec<ServerState>,
    pub events: Vec<Event>,
    pub request: Option<ModelRequest>,
    pub intents: Vec<Intent>,
    /// What the last ask adds.
    pub adds: Vec<Message>,
    pub keeps: Option<u64>,
    pub digests: Vec<String>,
    /// Work time at the next inputs, in milliseconds.
    pub ms: u64,
    /// The number of the last question to a reviewer.
    reviews: u64,
    /// What an audit file is told.
    pub audited: Vec<Audited>,
    /// The rules of decision that it is opened with.
    pub behaviours: Vec<u32>,
    seq: u64,
}

/// A tool of the server `mcp` with these properties, all of them required.
pub fn tool(name: &str, properties: Value) -> ToolDefinition {
    let required: Vec<&String> = properties.as_object().unwrap().keys().collect();
    let input_schema = json!({"type": "object", "properties": properties, "required": required});
    let (server, name, description) = ("mcp".to_owned(), name.to_owned(), format!("Does {name}."));
    ToolDefinition { server, name, description, input_schema, ..ToolDefinition::default() }
}

/// The arguments of `mcp.add`.
pub fn add_properties() -> Value {
    json!({"a": {"type": "integer"}, "b": {"type": "integer", "minimum": 0}})
}

/// A decision of the `json` protocol to call it.
pub const ADD: &str = r#"{"tool": "mcp.add", "arguments": {"a": 2, "b": 3}}"#;

/// A call of it in the `native` protocol.
pub fn add(id: &str) -> ReplyCall {
    call(id, "mcp_add", r#"{"a": 2, "b": 3}"#)
}

pub fn server(name: &str) -> ServerState {
    ServerState { name: name.to_owned(), transport: "stdio".to_owned(), ..ServerState::default() }
}

pub fn call(id: &str, name: &str, arguments: &str) -> ReplyCall {
    ReplyCall { id: id.to_owned(), name: name.to_owned(), arguments: arguments.to_owned(), opaque: None }
}

pub fn usage(prompt_tokens: u64, completion_tokens: u64) -> Usage {
    let total_tokens = prompt_tokens.saturating_add(completion_tokens);
    Usage { prompt_tokens, completion_tokens, total_tokens, ..Usage::default() }
}

pub fn control(word: &str, signal: Option<&str>) -> Entry {
    let source = if signal.is_some() { ControlSource::Signal } else { ControlSource::Channel };
    Entry::Control(Control { word: word.to_owned(), source, signal: signal.map(str::to_owned), ..Control::default() })
}

impl Story {
    /// A run that is not open yet, with `mcp.add` and `mcp.echo`.
    pub fn new(protocol: Protocol) -> Self {
        let text = |text: &str| PromptText { text: text.to_owned(), digest: String::new() };
        let mut spec = Spec { objective: "Count.".to_owned(), protocol, recorded: true, ..Spec::default() };
        spec.texts.persona = text("You count.");
        spec.texts.protocol = text("One decision a reply.");
        spec.texts.conduct = text("Be brief.");
        let tools = vec![tool("echo", json!({"text": {"type": "string"}})), tool("add", add_properties())];
        Self { spec, tools, servers: vec![server("mcp")], ms: 1500, ..Self::default() }
    }

    /// A run of the `json` protocol that has asked its first question.
    pub fn json() -> Self {
        Self::new(Protocol::Json).begun()
    }

    /// A run of the `native` protocol that has asked its first question.
    pub fn native() -> Self {
        Self::new(Protocol::Native).begun()
    }

    /// Opens it, and gives it its catalogue.
    pub fn begun(mut self) -> Self {
        self.open();
        self.catalogue();
        self
    }

    pub fn open(&mut self) -> String {
        let opened = self.try_open().unwrap();
        format!("{opened}{}", self.input(Entry::Leg(Leg::default())))
    }

    pub fn try_open(&mut self) -> Result<String, FoldError> {
        let (build, run_id, spec) = ("test".to_owned(), "run_1".to_owned(), self.spec.clone());
        let behaviours = self.behaviours.clone();
        self.try_input(&Entry::Open(Box::new(Open { format: 1, behaviours, build, run_id, spec })))
    }

    pub fn catalogue(&mut self) -> String {
        let catalogue = self.whole_catalogue();
        self.input(catalogue)
    }

    pub fn whole_catalogue(&self) -> Entry {
        Entry::Catalogue(Catalogue { servers: self.servers.clone(), tools: self.tools.clone(), ..Catalogue::default() })
    }

    /// Tells the next input; what the run does about it, a line each.
    pub fn input(&mut self, entry: Entry) -> String {
        self.try_input(&entry).unwrap()
    }

    pub fn try_input(&mut self, entry: &Entry) -> Result<String, FoldError> {
        self.seq += 1;
        let effects = self.run.apply(self.seq, self.ms, entry)?;
        let mut told = Vec::new();
        for effect in effects {
            match effect {
                Effect::Audit(audited) => self.audited.push(*audited),
                effect => told.push(self.told(effect)),
            }
        }
        Ok(told.join("\n"))
    }

    fn told(&mut self, effect: Effect) -> String {
        match effect {
            Effect::Emit { event, .. } => {
                let line = event.to_line();
                self.events.push(*event);
                line
            }
            Effect::Ask { ask, .. } => {
                let request = self.run.request();
                if ask.purpose == Purpose::Review {
                    assert_eq!(request.messages.len(), ask.adds.len());
                    self.adds = ask.adds;
                    self.reviews = request.ordinal;
                    return format!("review {}\n{}", request.ordinal, self.said());
                }
                assert_eq!(request.messages.len() as u64, self.kept(ask.keeps) + ask.adds.len() as u64);
                (self.keeps, self.adds) = (ask.keeps, ask.adds);
                self.digests.push(ask.digest);
                let said = format!("ask {}\n{}", request.ordinal, self.said());
                self.request = Some(request);
                said
            }
            Effect::AbortAsk => "abort the ask".to_owned(),
            Effect::CutAsk => "cut the ask".to_owned(),
            Effect::LeaveGate => "leave the gate".to_owned(),
            Effect::Arm { name, at } => format!("arm {name} {at:?}"),
            Effect::Dispatch { intent, dispatch } => {
                let arguments = Value::from(dispatch.arguments);
                let said = format!("dispatch {} {}.{} {arguments}", dispatch.ordinal, dispatch.server, dispatch.name);
                self.intents.push(*intent);
                // Its line is written at once.
                self.run.intended();
                said
            }
            Effect::CancelCall => "cancel the call".to_owned(),
            Effect::Audit(_) => "audit".to_owned(),
            Effect::OpenGate(gate) => {
                format!("gate {} {} {}", gate.approval_id, gate.intent.tool, Value::from(gate.intent.arguments))
            }
            Effect::AwaitDecision { approval_id, milliseconds, .. } => format!("await {approval_id} for {milliseconds} ms"),
            Effect::Claim { approval_id, .. } => format!("claim {approval_id}"),
            Effect::ListAgain => "list again".to_owned(),
            Effect::Finish(ending) => format!("finish {ending:?}"),
        }
    }

    fn kept(&self, keeps: Option<u64>) -> u64 {
        keeps.unwrap_or_else(|| self.request.as_ref().map_or(0, |request| request.messages.len() as u64))
    }

    /// What the last ask adds, a message a line.
    pub fn said(&self) -> String {
        let line = |message: &Message| {
            let calls: Vec<String> =
                message.calls.iter().map(|call| format!(" [{} {} {}]", call.id, call.name, call.arguments)).collect();
            let id = message.call_id.as_ref().map_or_else(String::new, |id| format!(" for {id}"));
            format!("{:?}{id}: {}{}", message.role, message.content.as_str(), calls.concat())
        };
        self.adds.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    /// The number of the last ask.
    pub fn asked(&self) -> u64 {
        self.request.as_ref().map_or(0, |request| request.ordinal)
    }

    /// The reviewer says a text.
    pub fn reviewer(&mut self, text: &str) -> String {
        self.input(Entry::Reply(Reply { of: self.reviews, text: text.into(), ..Reply::default() }))
    }

    /// The model says a text.
    pub fn says(&mut self, text: &str) -> String {
        self.replies(Reply { text: text.into(), ..Reply::default() })
    }

    /// The model calls functions.
    pub fn calls(&mut self, calls: Vec<ReplyCall>) -> String {
        self.replies(Reply { calls, ..Reply::default() })
    }

    pub fn replies(&mut self, reply: Reply) -> String {
        let of = self.asked();
        self.input(Entry::Reply(Reply { of, ..reply }))
    }

    pub fn ends(&mut self, end: ReplyEnd) -> String {
        self.replies(Reply { end, detail: Some(format!("It was {end:?}.")), ..Reply::default() })
    }

    /// The call in flight comes back well.
    pub fn returns(&mut self, text: &str) -> String {
        self.result(CallResult { text: text.into(), ..CallResult::default() })
    }

    /// The call in flight does not come back well.
    pub fn fails(&mut self, end: CallEnd, error: &str) -> String {
        self.result(CallResult { end, error: error.to_owned(), ..CallResult::default() })
    }

    pub fn result(&mut self, result: CallResult) -> String {
        let of = self.intents.len() as u64;
        self.input(Entry::Result(CallResult { of, ..result }))
    }

    pub fn cancel(&mut self) -> String {
        self.input(control("cancel", None))
    }

    pub fn observe(&mut self, what: &str) -> String {
        self.input(Entry::Observed(Observed { what: what.to_owned(), detail: "Seen.".to_owned(), ..Observed::default() }))
    }

    pub fn close(&mut self) -> String {
        self.input(Entry::Closed(Closed { by: "driver".to_owned(), detail: Some("It broke.".to_owned()) }))
    }

    /// The servers' lists changed.
    pub fn changes(&mut self, joined: Vec<ToolDefinition>, changed: Vec<ToolDefinition>, removed: &[&str]) -> String {
        let removed = removed.iter().map(|name| (*name).to_owned()).collect();
        self.input(Entry::Catalogue(Catalogue { servers: self.servers.clone(), tools: joined, changed, removed }))
    }

    /// Another process takes the run up; the servers are as they were.
    pub fn taken_up(&mut self) -> String {
        let writer = self.input(Entry::Writer(Writer { epoch: 2, ..Writer::default() }));
        let listed = self.input(Entry::Catalogue(Catalogue { servers: self.servers.clone(), ..Catalogue::default() }));
        format!("{writer}{listed}")
    }

    /// The same, after a person has said what became of the call in doubt.
    pub fn taken_up_with(&mut self, answer: &str) -> String {
        let approval_id = self.run.awaits().unwrap().approval_id;
        let writer = self.input(Entry::Writer(Writer { epoch: 2, ..Writer::default() }));
        let (by, note) = ("ana".to_owned(), Some("I looked.".to_owned()));
        let answer = answer.to_owned();
        let decided = self.input(Entry::Decision(Decision { approval_id, answer, by, note, content: None }));
        let listed = self.input(Entry::Catalogue(Catalogue { servers: self.servers.clone(), ..Catalogue::default() }));
        format!("{writer}{decided}{listed}")
    }

    /// The names of the records so far.
    pub fn names(&self) -> Vec<&'static str> {
        self.events.iter().map(Event::name).collect()
    }
}
