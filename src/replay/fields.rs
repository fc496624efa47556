//! Which records decide something, and which of their fields do.

use super::recording::Source;

/// What a record is to a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// It says what was decided.
    Decides,
    /// It tells what an operator should see; only its words can drift.
    Tells,
    /// It is not replayed, or nothing can be said about it.
    Neither,
}

/// What an event is to the comparison with a recording of `source`. What this build does not know decides nothing here.
pub(super) fn part(event: &str, source: Source) -> Part {
    match event {
        // What was checked stands in a skill that a foreign recording does not hold.
        "grounding" if source == Source::Seed2 => Part::Neither,
        "mission_started" | "step_started" | "reply_rejected" | "tool_call" | "tool_result" | "gate_requested" | "grounding"
        | "answer" | "mission_finished" => Part::Decides,
        // Neither journaled nor replayed.
        "answer_delta" | "tick" => Part::Neither,
        _ => Part::Tells,
    }
}

/// The fields of an event in which a decision stands, as JSON Pointers; the others are words about it.
pub(super) fn deciding(event: &str, source: Source) -> &'static [&'static str] {
    match (event, source) {
        ("mission_started", Source::Mission) => &["/objective", "/catalogue", "/gated", "/max_steps", "/history", "/protocol"],
        ("mission_started", Source::Seed2) => &["/objective", "/protocol"],
        ("step_started", Source::Mission) => &["/index", "/catalogue", "/review/verdict"],
        ("step_started", Source::Seed2) => &["/index"],
        ("reply_rejected", _) => &["/index", "/tool"],
        ("tool_call", _) => &["/index", "/tool", "/arguments", "/call"],
        ("tool_result", Source::Mission) => {
            &["/index", "/tool", "/arguments", "/ok", "/exit_code", "/handle", "/truncated", "/call"]
        }
        // Where a text is cut depends on its words.
        ("tool_result", Source::Seed2) => &["/index", "/tool", "/arguments", "/ok", "/exit_code", "/handle", "/call"],
        ("gate_requested", _) => &["/index", "/tool", "/arguments"],
        ("grounding", _) => &["/ran", "/grounded", "/verified", "/repairs", "/repairing", "/unsupported", "/silent", "/uncited"],
        ("answer", Source::Mission) => &["/outcome", "/text"],
        ("answer", Source::Seed2) => &["/outcome"],
        ("mission_finished", Source::Mission) => &["/outcome", "/steps", "/max_steps", "/budget", "/reason"],
        ("mission_finished", Source::Seed2) => &["/outcome", "/steps", "/budget/which", "/reason"],
        _ => &[],
    }
}

/// Where the caveat of an answer begins: two newlines, three dashes, a newline.
const CAVEAT: &str = "\n\n---\n";

/// An answer without its caveat: the rest is the model's, and the caveat is ours.
pub(super) fn without_caveat(text: &str) -> &str {
    text.rfind(CAVEAT).and_then(|at| text.get(..at)).unwrap_or(text)
}
