#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::arithmetic_side_effects, clippy::panic)]
//! One script, both protocols.

use std::sync::Arc;
use std::time::Duration;

use mission_contract::log::{Message, Purpose, ReplyEnd, Role};
use mission_contract::spec::Sampling;
use serde_json::json;
use tokio::sync::mpsc::channel;
use tokio_util::sync::CancellationToken;

use super::for_tests::{ask, message};
use super::script::Script;
use super::scripted::ScriptedBackend;
use super::{Delta, FailureKind, ModelBackend};
use crate::engine::request::{Constraint, FunctionChoice, FunctionDeclaration, ModelRequest};

fn backend(script: &serde_json::Value) -> ScriptedBackend {
    ScriptedBackend::new(Script::parse(&script.to_string()).unwrap(), "demos/demo.json", None)
}

const CATALOGUE: &str = "Tools:\n- shop.search: finds things {query}\n- shop.read: reads one\n- notes.search_notes: notes\n";

/// A conversation that carries a run through both protocols as the engine does.
struct Talk {
    is_native: bool,
    stream: bool,
    messages: Vec<Arc<Message>>,
}

impl Talk {
    fn new(is_native: bool, stream: bool) -> Self {
        Self { is_native, stream, messages: vec![message(Role::System, CATALOGUE), message(Role::User, "Look.")] }
    }

    fn request(&self) -> ModelRequest {
        let declare =
            |name: &str| FunctionDeclaration { name: name.to_owned(), description: String::new(), parameters: json!({}) };
        let functions =
            ["shop_search", "shop_read", "notes_search_notes", "mission_result", "mission_answer"].map(declare).to_vec();
        ModelRequest {
            ordinal: 1,
            purpose: Purpose::Step,
            messages: self.messages.clone(),
            functions: Arc::new(if self.is_native { functions } else { Vec::new() }),
            choice: if self.is_native { FunctionChoice::Required } else { FunctionChoice::None },
            constraint: None,
            sampling: Sampling::default(),
            stream: self.stream,
            reply_tokens: None,
        }
    }

    /// Asks, and answers every call with the next of `results`.
    async fn turn(&mut self, backend: &ScriptedBackend, results: &[&str]) -> String {
        let (reply, deltas) = ask(backend, self.request()).await;
        assert_eq!(reply.reply.end, ReplyEnd::Whole, "{:?}", reply.reply.detail);
        let mut pieces = vec![String::new()];
        for delta in deltas {
            match delta {
                Delta::Text(text) => pieces[0].push_str(&text),
                Delta::CallName { name, .. } => pieces.push(format!("{name} ")),
                Delta::CallArguments { position, fragment } => pieces[position + 1].push_str(&fragment),
            }
        }
        let mut shown = vec![reply.reply.text.as_str().to_owned()];
        shown.extend(reply.reply.calls.iter().map(|call| format!("{} {}", call.name, call.arguments)));
        if self.stream {
            assert_eq!(pieces, shown);
        }
        self.messages.push(Arc::new(Message {
            role: Role::Assistant,
            content: reply.reply.text.clone(),
            calls: reply.reply.calls.clone(),
            ..Message::default()
        }));
        let role = if self.is_native { Role::Tool } else { Role::User };
        for result in results {
            self.messages.push(message(role, &format!("Result of shop.search, ok (r1):\n{result}")));
        }
        shown.retain(|piece| !piece.is_empty());
        shown.join("\n")
    }
}

fn demo() -> serde_json::Value {
    json!({"steps": [
        {"text": "Let me look.", "calls": [{"name": "search", "arguments": {"query": "é pump"}}, {"name": "shop.read", "arguments": {"id": 1}}], "fragment_bytes": 3},
        {"calls": [{"name": "read", "arguments": {"id": "{{result.1#/hits/0}}", "all": "{{result.1#/hits|length}} hits"}}]},
        {"answer": "{{result.1#/hits|length}} hits; the last text is \"{{result}}\"."},
    ]})
}

/// What the demo says, streamed and not, to these results.
async fn played(is_native: bool, results: &[&[&str]]) -> String {
    let mut said = Vec::new();
    for stream in [false, true] {
        let backend = backend(&demo());
        let mut talk = Talk::new(is_native, stream);
        let mut turns = Vec::new();
        for results in results {
            turns.push(talk.turn(&backend, results).await);
        }
        said.push(turns.join("\n\n"));
    }
    assert_eq!(said[0], said[1]);
    said.remove(0)
}

#[tokio::test]
async fn a_script_plays_natively() {
    insta::assert_snapshot!(played(true, &[&[r#"{"hits": [7, 9]}"#, "one"], &["a\nb"], &[]]).await, @r#"
    Let me look.
    shop_search {"query":"é pump"}
    shop_read {"id":1}
    
    shop_read {"all":"2 hits","id":7}
    
    mission_answer {"text":"2 hits; the last text is \"a\nb\"."}
    "#);
}

#[tokio::test]
async fn the_same_script_plays_as_json() {
    insta::assert_snapshot!(played(false, &[&[r#"{"hits": [7, 9]}"#], &["one"], &["a\nb"], &[]]).await, @r#"
    {"tool":"shop.search","arguments":{"query":"é pump"}}
    
    {"tool":"shop.read","arguments":{"id":1}}
    
    {"tool":"shop.read","arguments":{"all":"2 hits","id":7}}
    
    {"answer":"2 hits; the last text is \"a\nb\"."}
    "#);
}

#[tokio::test]
async fn names_are_found_in_a_constraint_too_and_unknown_ones_stay() {
    let backend = backend(
        &json!({"steps": [{"calls": [{"name": "weigh"}]}, {"calls": [{"name": "no_such"}]}, {"calls": [{"name": "look.up"}]}]}),
    );
    let schema = json!({"properties": {"tool": {"enum": ["scale.weigh", "mission_result"]}}});
    for expected in ["scale.weigh", "no_such", "look.up"] {
        let request = ModelRequest {
            constraint: Some(Constraint { name: "d", schema: Arc::new(schema.clone()) }),
            ..Talk::new(false, false).request()
        };
        let (reply, _) = ask(&backend, request).await;
        assert_eq!(reply.reply.text.as_str(), format!(r#"{{"tool":"{expected}","arguments":{{}}}}"#));
    }
}

#[tokio::test]
async fn it_fails_cuts_and_says_what_it_cost() {
    let backend = backend(&json!({"model": "actor", "steps": [
        {"fail": {"status": 503, "message": "Loading model"}},
        {"text": "half", "cut": true},
        {"raw": "{{result}} {", "usage": {"prompt_tokens": 3, "completion_tokens": 4}, "finish": "length"},
        {"answer": "{{result.9}}"},
    ]}));
    assert_eq!((backend.leg().provider.as_str(), backend.leg().model.as_str()), ("scripted", "actor"));
    let talk = Talk::new(false, true);
    let (reply, _) = ask(&backend, talk.request()).await;
    assert_eq!(reply.reply.detail.as_deref(), Some("The scripted model actor answered 503: Loading model."));
    assert_eq!(reply.failure.unwrap().status, Some(503));
    let (reply, _) = ask(&backend, talk.request()).await;
    assert_eq!((reply.reply.end, reply.reply.text.as_str(), reply.reply.finish), (ReplyEnd::Cut, "half", None));
    let (reply, _) = ask(&backend, talk.request()).await;
    assert_eq!((reply.reply.text.as_str(), reply.reply.finish.as_deref()), ("{{result}} {", Some("length")));
    assert_eq!(reply.reply.usage.unwrap().total_tokens, 7);
    for expected in [
        "The script demos/demo.json does not work out: step 4: the placeholder `{{result.9}}` cannot be filled: 0 result(s) came back so far.",
        "The script demos/demo.json does not work out: it has 4 step(s), and reply 5 was asked for: add a step.",
    ] {
        let (reply, _) = ask(&backend, talk.request()).await;
        assert_eq!((reply.reply.end, reply.reply.detail.as_deref()), (ReplyEnd::Failed, Some(expected)));
        assert_eq!(reply.failure.unwrap().kind, FailureKind::Script);
    }
}

#[tokio::test]
async fn it_can_be_given_up_while_it_waits_streams_or_stalls() {
    let backend = backend(&json!({"steps": [
        {"answer": "late", "delay_ms": 3_600_000},
        {"answer": "slow", "fragment_bytes": 1, "fragment_ms": 3_600_000},
        {"text": "said", "stall": true},
        {"stall": true},
    ]}));
    let talk = Talk::new(true, true);
    for (pieces, expected) in [(0, ""), (1, "mission_answer"), (1, "said"), (0, "")] {
        let cancel = CancellationToken::new();
        let (sender, mut receiver) = channel(8);
        let give_up = async {
            for _ in 0..pieces {
                tokio::time::timeout(Duration::from_secs(20), receiver.recv()).await.unwrap().unwrap();
            }
            cancel.cancel();
        };
        let (reply, ()) = tokio::join!(backend.ask(talk.request(), sender, cancel.clone()), give_up);
        assert_eq!(reply.reply.end, ReplyEnd::Interrupted);
        let said = reply.reply.calls.first().map_or(reply.reply.text.as_str(), |call| call.name.as_str());
        assert_eq!(said, expected);
    }
}
