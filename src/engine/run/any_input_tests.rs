//! Whatever comes in whatever order: nothing brings a run down, and it ends once.
#![allow(clippy::unwrap_used, clippy::panic, clippy::arithmetic_side_effects)]

use std::collections::BTreeMap;

use mission_contract::event::Event;
use mission_contract::log::{CallEnd, CallResult, Decision, Entry, Leg, Reply, ReplyCall, ReplyEnd, Role, Timer, Writer};
use mission_contract::spec::Protocol;
use proptest::prelude::*;
use serde_json::json;

use crate::engine::run_story::{Story, call, control, tool};

/// One thing that happens.
#[derive(Clone, Debug)]
enum Happens {
    Open,
    Catalogue,
    Reply { end: ReplyEnd, text: String, calls: Vec<ReplyCall>, of: u64 },
    Result { end: CallEnd, text: String, of: u64 },
    Cancel,
    Say(&'static str),
    Observe,
    Change { joined: bool, changed: bool, name: &'static str },
    Close,
    Other(u8),
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        Just(r#"{"answer": "5"}"#.to_owned()),
        Just(r#"{"tool": "mcp.add", "arguments": {"a": 2, "b": 3}}"#.to_owned()),
        Just(r#"{"tool": "mission_result", "arguments": {"handle": "r1"}}"#.to_owned()),
        Just(r#"{"tool": "add", "arguments": {"a": 2}}"#.to_owned()),
        "[ -~\\n]{0,40}",
    ]
}

fn calls() -> impl Strategy<Value = Vec<ReplyCall>> {
    let name = prop_oneof![
        Just("mcp_add"),
        Just("mcp.echo"),
        Just("mission_result"),
        Just("mission_answer"),
        Just("nope"),
        Just("mcp_look"),
        Just("")
    ];
    let arguments = prop_oneof![
        Just(r#"{"a": 2, "b": 3}"#),
        Just(r#"{"text": "x"}"#),
        Just("{}"),
        Just(""),
        Just("null"),
        Just("{\"a\":"),
        Just("[]")
    ];
    let one = (prop_oneof![Just(""), Just("a"), Just("b")], name, arguments)
        .prop_map(|(id, name, arguments)| call(id, name, arguments));
    proptest::collection::vec(one, 0..4)
}

fn happens() -> impl Strategy<Value = Happens> {
    // Mostly the number that is waited for.
    let of = prop_oneof![9 => Just(0u64), 1 => 1..4u64];
    let end = prop_oneof![
        9 => Just(ReplyEnd::Whole), 1 => Just(ReplyEnd::Cut), 1 => Just(ReplyEnd::Failed), 1 => Just(ReplyEnd::Interrupted)
    ];
    let call_end = prop_oneof![
        4 => Just(CallEnd::Ok),
        1 => Just(CallEnd::Error),
        1 => Just(CallEnd::Protocol),
        1 => Just(CallEnd::Timeout),
        1 => Just(CallEnd::Died),
        1 => Just(CallEnd::Cancelled)
    ];
    let name = prop_oneof![Just("add"), Just("echo"), Just("look")];
    prop_oneof![
        1 => Just(Happens::Open),
        1 => Just(Happens::Catalogue),
        12 => (end, text(), calls(), of.clone()).prop_map(|(end, text, calls, of)| Happens::Reply { end, text, calls, of }),
        12 => (call_end, text(), of).prop_map(|(end, text, of)| Happens::Result { end, text, of }),
        1 => Just(Happens::Cancel),
        3 => prop_oneof![Just("inject"), Just("steer"), Just("cancel_step"), Just("gate_decision")].prop_map(Happens::Say),
        2 => Just(Happens::Observe),
        3 => (any::<bool>(), any::<bool>(), name)
            .prop_map(|(joined, changed, name)| Happens::Change { joined, changed, name }),
        1 => Just(Happens::Close),
        1 => (0..6u8).prop_map(Happens::Other),
    ]
}

/// Tells it, whether it fits or not.
fn tell(story: &mut Story, what: Happens) {
    let entry = match what {
        Happens::Open => return drop(story.try_open()),
        Happens::Catalogue => story.whole_catalogue(),
        Happens::Reply { end, text, calls, of } => {
            let of = if of == 0 { story.asked() } else { of };
            Entry::Reply(Reply { of, end, text: text.into(), calls, ..Reply::default() })
        }
        Happens::Result { end, text, of } => {
            let of = if of == 0 { story.intents.len() as u64 } else { of };
            Entry::Result(CallResult { of, end, text: text.clone().into(), error: text, ..CallResult::default() })
        }
        Happens::Cancel => control("cancel", Some("SIGTERM")),
        Happens::Say(word) => control(word, None),
        Happens::Observe => Entry::Observed(Default::default()),
        Happens::Change { joined, changed, name } => {
            let properties = if changed { json!({"z": {"type": "string"}}) } else { json!({}) };
            let removed = if joined { vec![] } else { vec![format!("mcp.{name}")] };
            let tools = if joined { vec![tool(name, properties.clone())] } else { vec![] };
            let changed = if changed { vec![tool(name, properties)] } else { vec![] };
            let Entry::Catalogue(whole) = story.whole_catalogue() else { return };
            Entry::Catalogue(mission_contract::log::Catalogue { servers: whole.servers, tools, changed, removed })
        }
        Happens::Close => Entry::Closed(Default::default()),
        Happens::Other(0) => Entry::Leg(Leg::default()),
        Happens::Other(1) => Entry::Writer(Writer { epoch: 2, ..Writer::default() }),
        Happens::Other(2) => Entry::Timer(Timer::default()),
        Happens::Other(3) => Entry::Decision(Decision {
            approval_id: story.run.awaits().map(|awaited| awaited.approval_id).unwrap_or_default(),
            answer: match story.events.len() % 3 {
                0 => "done",
                1 => "retry",
                _ => "abandon",
            }
            .to_owned(),
            ..Decision::default()
        }),
        Happens::Other(4) => Entry::Ask(Default::default()),
        Happens::Other(_) => Entry::Timer(Timer::default()),
    };
    let _ = story.try_input(&entry);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn nothing_brings_a_run_down_and_it_ends_once(
        native in any::<bool>(), begun in prop::bool::weighted(0.9), skill in any::<bool>(), steps in prop::option::of(1..5u64),
        all in proptest::collection::vec(happens(), 0..40)
    ) {
        let mut story = Story::new(if native { Protocol::Native } else { Protocol::Json });
        story.spec.limits.steps = steps;
        story.spec.allowed_tools = skill.then(|| vec!["mcp.add".to_owned(), "mcp.look".to_owned()]);
        if begun {
            story = story.begun();
        }
        let mut stretches = vec![0];
        for what in all {
            if matches!(what, Happens::Other(1)) {
                stretches.push(story.events.len());
            }
            tell(&mut story, what);
        }
        let names = story.names();
        stretches.push(names.len());
        for stretch in stretches.windows(2) {
            let [from, to] = stretch else { unreachable!() };
            let names = names.get(*from..*to).unwrap();
            if let Some(at) = names.iter().position(|name| *name == "mission_finished") {
                prop_assert_eq!(at + 1, names.len(), "{:?}", names);
            }
        }
        prop_assert!(names.iter().filter(|name| **name == "mission_started").count() <= 1);
        // A call is followed by its result, and by nothing else but what was seen meanwhile.
        let calls = story.events.iter().filter(|event| !matches!(event, Event::Notice(_))).collect::<Vec<_>>();
        for pair in calls.windows(2) {
            let [before, after] = pair else { unreachable!() };
            let is_result = matches!(after, Event::ToolResult(_));
            // One that nobody knows the result of waits for a person, and is answered by a later stretch.
            let is_left = matches!(after, Event::MissionFinished(_) | Event::GateRequested(_));
            let was_left = matches!(before, Event::MissionFinished(_));
            prop_assert!(!matches!(before, Event::ToolCall(_)) || is_result || is_left, "{:?}", names);
            prop_assert!(!is_result || was_left || matches!(before, Event::ToolCall(_)), "{:?}", names);
        }
        // Every call that a model is shown has one answer.
        if let Some(request) = &story.request {
            let mut open: BTreeMap<&str, u64> = BTreeMap::new();
            for message in &request.messages {
                if message.role == Role::Tool {
                    let id = message.call_id.as_deref().unwrap();
                    prop_assert_eq!(open.insert(id, 0), Some(1), "one answer for {}", id);
                } else {
                    prop_assert!(open.values().all(|waiting| *waiting == 0), "{:?}", open);
                }
                for call in &message.calls {
                    prop_assert_eq!(open.insert(&call.id, 1).unwrap_or(0), 0, "{} twice in a turn", call.id);
                    prop_assert!(serde_json::from_str::<serde_json::Map<_, _>>(&call.arguments).is_ok(), "{}", call.arguments);
                }
            }
        }
    }
}
