//! The log is the run: strip every output from a recorded log, fold the inputs again, and the outputs come back byte for byte
//! (the envelope and `log_head` apart).

use mission::engine::effect::Effect;
use mission::engine::fold::{Fold, Folded};
use mission::engine::run::{Run, is_resumable};
use mission::redact::Redactor;
use mission_contract::event::Event;
use mission_contract::log::{Entry, Line, parse_line};
use mission_contract::text::{DEDUPLICATED_BYTES, Text};
use serde_json::json;

use crate::support::model::{Model, Turn, answer, call, text};
use crate::support::needs;
use crate::support::run::{Finished, Mission};
use crate::support::servers;

/// A credential that a model repeats and that the run's redactor knows.
const CREDENTIAL: &str = "credential-of-the-test-0123456789";

fn lines(finished: &Finished) -> Vec<Line> {
    finished.log().bytes.split_inclusive(|byte| *byte == b'\n').map(|line| parse_line(line).unwrap()).collect()
}

fn is_output(entry: &Entry) -> bool {
    matches!(entry, Entry::Ask(_) | Entry::Intent(_) | Entry::Record(_))
}

/// The body of an output, as it stands in a line.
fn body(entry: &Entry) -> String {
    match entry {
        Entry::Record(record) => match serde_json::from_str(record.get()).unwrap() {
            Event::MissionFinished(mut finished) => {
                finished.log_head = None;
                Event::MissionFinished(finished).to_line()
            }
            _ => record.get().to_owned(),
        },
        Entry::Ask(ask) => serde_json::to_string(ask).unwrap(),
        Entry::Intent(intent) => serde_json::to_string(intent).unwrap(),
        other => panic!("{} is no output", other.kind()),
    }
}

/// What the engine wants written for an input.
fn derived(effects: Vec<Effect>, redactor: &Redactor) -> Vec<String> {
    let written = |effect| match effect {
        Effect::Emit { mut event, repeats } => {
            redactor.event(&mut event);
            if let (Event::ToolResult(result), Some(seq)) = (event.as_mut(), repeats)
                && result.output.as_str().len() > DEDUPLICATED_BYTES
            {
                result.output = Text::Of { seq };
            }
            Some(event.to_line())
        }
        Effect::Ask { ask, .. } => Some(serde_json::to_string(&ask).unwrap()),
        Effect::Dispatch { intent, .. } => Some(serde_json::to_string(&intent).unwrap()),
        Effect::AbortAsk
        | Effect::CutAsk
        | Effect::LeaveGate
        | Effect::CancelCall
        | Effect::OpenGate(_)
        | Effect::AwaitDecision { .. }
        | Effect::Claim { .. }
        | Effect::Arm { .. }
        | Effect::ListAgain
        | Effect::Audit(_)
        | Effect::Finish(_) => None,
    };
    effects.into_iter().filter_map(written).collect()
}

/// The first place where folding the first `count` inputs again gives other outputs than the log holds before the next input.
fn difference(lines: &[Line], count: usize) -> Option<String> {
    let redactor = Redactor::new([("LOCAL_API_KEY".into(), CREDENTIAL.into())], []).unwrap();
    let mut run = Run::default();
    let (mut recorded, mut again) = (Vec::new(), Vec::new());
    let mut inputs = 0;
    for line in lines {
        if is_output(&line.entry) {
            recorded.push(body(&line.entry));
            continue;
        }
        if inputs == count {
            break;
        }
        inputs += 1;
        match run.apply(line.seq, line.ms, &line.entry) {
            Ok(effects) => again.extend(derived(effects, &redactor)),
            Err(problem) => return Some(problem.to_string()),
        }
    }
    let at = recorded.iter().zip(&again).position(|(recorded, again)| recorded != again);
    match at {
        Some(at) => Some(format!("output {at}: the log has\n{}\nand the fold gives\n{}", recorded[at], again[at])),
        None if recorded.len() != again.len() => {
            Some(format!("the log has {} outputs, the fold gives {}", recorded.len(), again.len()))
        }
        None => None,
    }
}

/// The first place where a log that ends there does not give back what a crash at that point loses: the records and asks between the
/// last line and the next input.
fn loss(lines: &[Line]) -> Option<String> {
    let redactor = Redactor::new([("LOCAL_API_KEY".into(), CREDENTIAL.into())], []).unwrap();
    for cut in 1..=lines.len() {
        let mut fold = Fold::default();
        for line in &lines[..cut] {
            if let Err(problem) = fold.line(line.seq, line.ms, &line.entry) {
                return Some(format!("line {}: {problem}", line.seq));
            }
        }
        let Folded { run, lost, .. } = fold.finish();
        let goes_on = run.outcome().is_none_or(is_resumable);
        let missing = lines[cut..].iter().take_while(|line| is_output(&line.entry)).filter(|line| match &line.entry {
            Entry::Intent(_) => false,
            Entry::Record(record) => !(goes_on && record.get().starts_with("{\"event\":\"mission_finished\"")),
            _ => true,
        });
        let missing: Vec<String> = missing.map(|line| body(&line.entry)).collect();
        let lost = derived(lost, &redactor);
        if missing != lost {
            return Some(format!("after line {cut} the log has\n{missing:?}\nand the fold gives\n{lost:?}"));
        }
    }
    None
}

fn holds(finished: &Finished) -> Vec<Line> {
    let lines = lines(finished);
    assert_eq!(loss(&lines), None);
    let inputs = lines.iter().filter(|line| !is_output(&line.entry)).count();
    assert!(inputs >= 3, "{inputs}");
    for count in 0..=inputs {
        assert_eq!(difference(&lines, count), None, "the first {count} inputs");
    }
    lines
}

fn recorded(protocol: &str, turns: Vec<Turn>, server: &str) -> Finished {
    let model = Model::says(turns);
    Mission::objective("add two and three")
        .model(&model)
        .env("LOCAL_API_KEY", CREDENTIAL)
        .mcp_stdio("mcp", server)
        .protocol(protocol)
        .run()
}

#[test]
fn a_run_in_the_json_protocol_comes_back_from_its_inputs() {
    let server = needs!(servers::misbehaving(&[]));
    let finished = recorded(
        "json",
        vec![
            call("mcp.add", json!({"a": 2, "b": 3})),
            call("mcp.add", json!({"a": 2, "b": 3})),
            call("mcp.big", json!({"kib": 200})),
            call("mission_result", json!({"handle": "r3", "lines": "1-2"})),
            answer(&format!("5, says {CREDENTIAL}.")),
        ],
        &server,
    );
    finished.exits(0).ends("answered");
    let lines = holds(&finished);
    let of = lines.iter().any(|line| matches!(&line.entry, Entry::Record(record) if record.get().contains("{\"$of\":")));
    assert!(of, "the large result stands once in the log");
}

#[test]
fn a_native_turn_with_two_calls_comes_back_from_its_inputs() {
    let server = needs!(servers::misbehaving(&[]));
    let both = vec![("mcp.add".into(), json!({"a": 2, "b": 3})), ("mcp.add".into(), json!({"a": 5, "b": 1}))];
    let finished = recorded("native", vec![Turn::Call(both), answer("5 and 6.")], &server);
    finished.exits(0).ends("answered");
    holds(&finished);
}

#[test]
fn rejected_replies_come_back_from_their_inputs() {
    let server = needs!(servers::misbehaving(&[]));
    let turns = vec![
        text("no object here"),
        call("add_it", json!({})),
        call("add", json!({"a": 1})),
        // What the run's reviewer says: three steps in a row came to nothing.
        text(r#"{"verdict": "nudge", "note": "Read the catalogue."}"#),
        call("mcp.add", json!({"a": "one", "b": 2})),
        answer("No."),
    ];
    let finished = recorded("json", turns, &server);
    finished.exits(0).ends("answered");
    assert_eq!(finished.named("reply_rejected").len(), 4);
    holds(&finished);
}

#[test]
fn a_server_that_dies_comes_back_from_the_inputs() {
    let server = needs!(servers::misbehaving(&[]));
    let finished = recorded("json", vec![call("mcp.die", json!({})), answer("It died.")], &server);
    finished.exits(0).ends("answered");
    holds(&finished);
}

#[test]
fn another_input_gives_other_outputs() {
    let server = needs!(servers::misbehaving(&[]));
    let finished = recorded("json", vec![call("mcp.add", json!({"a": 2, "b": 3})), answer("5.")], &server);
    let whole = lines(&finished);
    let spoil = |spoil: &dyn Fn(&mut Entry) -> bool| {
        let mut lines = lines(&finished);
        assert!(lines.iter_mut().any(|line| spoil(&mut line.entry)));
        difference(&lines, usize::MAX)
    };
    assert_eq!(difference(&whole, usize::MAX), None);
    let kinds: [&dyn Fn(&mut Entry) -> bool; 5] = [
        &|entry| {
            if let Entry::Open(open) = entry {
                open.spec.objective.push('!');
                true
            } else {
                false
            }
        },
        &|entry| {
            if let Entry::Open(open) = entry {
                open.run_id.push('0');
                true
            } else {
                false
            }
        },
        &|entry| if let Entry::Catalogue(catalogue) = entry { catalogue.tools.pop().is_some() } else { false },
        &|entry| {
            if let Entry::Reply(reply) = entry {
                reply.text = "{}".into();
                true
            } else {
                false
            }
        },
        &|entry| {
            if let Entry::Result(result) = entry {
                result.text = "6".into();
                true
            } else {
                false
            }
        },
    ];
    for (at, kind) in kinds.iter().enumerate() {
        assert!(spoil(*kind).is_some(), "input {at} was changed and nothing differs");
    }
}
