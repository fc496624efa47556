//! Every string of every event is free text, evidence, or a word that nobody chooses freely; and the visitors see to it.

use std::collections::BTreeMap;

use mission_contract::event::Event;
use mission_contract::text::Text;
use mission_contract::visit::Evidence;
use mission_contract::vocabulary;

use crate::samples;

/// What is scrubbed always.
const FREE: &[&str] = &[
    "step_started/injected/0",
    "step_started/review/note",
    "reply_rejected/problem",
    "reply_rejected/tool",
    "reply_rejected/usage/extra/key",
    "tool_call/tool",
    "tool_call/usage/extra/key",
    "tool_result/tool",
    "tool_result/error",
    "gate_requested/tool",
    "gate_requested/reason",
    "answer_delta/text",
    "grounding/caveat",
    "grounding/unsupported/0",
    "grounding/checks/0/unsupported/0",
    "grounding/checks/0/detail",
    "answer/text",
    "answer/usage/extra/key",
    "answer/structured/key",
    "mission_finished/reason",
    "model_state/detail",
    "notice/detail",
    "notice/tool",
    "control_ack/word",
    "control_ack/disposition",
    "tick/state",
    "tick/waiting_on",
];

/// What is verbatim unless evidence is redacted.
const EVIDENCE: &[&str] = &[
    "mission_started/objective",
    "step_started/plan/0/goal",
    "step_started/artifacts/in/0",
    "step_started/artifacts/out/0",
    "tool_call/arguments/key",
    "tool_result/arguments/key",
    "tool_result/output",
    "gate_requested/arguments/key",
];

/// Closed words, names and numbers of ours: nothing to scrub.
const WORDS: &[&str] = &[
    "event",
    "branch",
    "mission_started/catalogue/0",
    "mission_started/gated/0",
    "mission_started/sandbox",
    "mission_started/audit_ref",
    "mission_started/run_id",
    "mission_started/protocol",
    "mission_started/profile",
    "mission_started/granted/0",
    "mission_started/version",
    "mission_started/skill/name",
    "mission_started/skill/digest",
    "mission_started/servers/0/name",
    "mission_started/servers/0/transport",
    "mission_started/servers/0/state",
    "mission_started/servers/0/era",
    "mission_started/servers/0/version",
    "mission_started/sandbox_layers/0",
    "mission_started/policy",
    "step_started/catalogue/0",
    "step_started/review/signal",
    "step_started/review/verdict",
    "step_started/compacted/profile",
    "step_started/plan/0/id",
    "step_started/plan/0/rung",
    "tool_result/handle",
    "gate_requested/approval_id",
    "gate_requested/kind",
    "grounding/silent/0",
    "grounding/uncited/0",
    "grounding/checks/0/check",
    "grounding/checks/0/verdict",
    "answer/outcome",
    "mission_finished/outcome",
    "mission_finished/budget/which",
    "mission_finished/usage/cost/currency",
    "mission_finished/log_head",
    "model_state/state",
    "model_state/provider",
    "model_state/model",
    "notice/code",
    "notice/server",
    "control_ack/id",
];

fn class(event: &str, pointer: &str) -> &'static str {
    let place = format!("{event}{pointer}");
    let name = pointer.trim_start_matches('/');
    let lists = [("free", FREE), ("evidence", EVIDENCE), ("word", WORDS)];
    let mut found = lists.iter().filter(|(_, list)| list.contains(&place.as_str()) || list.contains(&name));
    let class = found.next().unwrap_or_else(|| panic!("{place} is in no class")).0;
    assert!(found.next().is_none(), "{place} is in two classes");
    class
}

fn strings(event: &Event) -> BTreeMap<String, String> {
    let mut found = Vec::new();
    samples::strings(&serde_json::to_value(event).unwrap(), "", &mut found);
    found.into_iter().collect()
}

#[test]
fn every_string_has_one_class_and_the_visitors_keep_to_it() {
    let mut seen = 0;
    for shape in vocabulary::EVENTS {
        let full: Event = serde_json::from_value(samples::full(shape.name)).unwrap();
        let (mut free, mut evidence) = (full.clone(), full.clone());
        free.free_text(&mut |_, text| *text = scrubbed(text));
        evidence.evidence_text(&mut |piece| match piece {
            Evidence::String(_, text) => *text = scrubbed(text),
            Evidence::Text(_, text) => *text = Text::from(scrubbed(text.as_str())),
        });
        let (before, free, evidence) = (strings(&full), strings(&free), strings(&evidence));
        for (pointer, text) in &before {
            // Keys of anybody's objects are scrubbed too: there the place itself has changed.
            let changed = |after: &BTreeMap<String, String>| after.get(pointer) != Some(text);
            let class = class(shape.name, pointer);
            assert_eq!(changed(&free), class == "free", "{}{pointer} is of class {class}", shape.name);
            assert_eq!(changed(&evidence), class == "evidence", "{}{pointer} is of class {class}", shape.name);
            seen += 1;
        }
    }
    assert!(seen > FREE.len() + EVIDENCE.len() + WORDS.len() - 3, "some classified strings are in no sample");
}

/// What a redactor might make of a text.
fn scrubbed(text: &str) -> String {
    format!("<{text}>")
}

#[test]
fn the_names_of_the_fields_are_told() {
    let mut names = Vec::new();
    let mut event: Event = serde_json::from_value(samples::full("grounding")).unwrap();
    event.free_text(&mut |field, _| names.push(field));
    assert_eq!(names, ["caveat", "unsupported", "unsupported", "detail"]);
    let mut pieces = Vec::new();
    let mut event: Event = serde_json::from_value(samples::full("tool_result")).unwrap();
    event.evidence_text(&mut |piece| match piece {
        Evidence::String(field, text) => pieces.push((field, text.clone())),
        Evidence::Text(field, text) => pieces.push((field, text.as_str().to_string())),
    });
    let expected = [("arguments", "/arguments/key"), ("arguments", "key"), ("output", "/output")];
    assert_eq!(pieces, expected.map(|(field, text)| (field, text.to_string())));
}
