//! Every sentence that the engine says to a model. Words are data of the run: what was said is in the log's `ask` lines.

use super::signal::Signal;
use crate::limits::{NAMES_LISTED, QUOTED_CHARACTERS};

/// The name under which kept results are read.
pub const RESULT_TOOL: &str = "mission_result";

/// The function with which a native run is finished.
pub const ANSWER_FUNCTION: &str = "mission_answer";

/// What stands in an assistant's turn that was empty: servers refuse an empty one.
pub const NOTHING_SAID: &str = "(nothing)";

const SHAPES: &str =
    r#"Send one JSON object: {"tool": "<name>", "arguments": {...}} to call a tool, or {"answer": "<text>"} to finish."#;

/// An empty reply in the `json` protocol.
pub fn empty_reply() -> String {
    format!("Your reply was empty. {SHAPES}")
}

/// A reply that holds no JSON object.
pub fn no_object(problem: &str) -> String {
    format!("Your reply holds no JSON object that can be read ({problem}). {SHAPES}")
}

/// A reply that is JSON, but no object.
pub fn not_an_object(kind: &str) -> String {
    format!("Your reply is {kind}, not a JSON object. {SHAPES}")
}

/// An object with neither key.
pub fn neither_key(keys: &[&str]) -> String {
    if keys.is_empty() {
        return format!("Your object is empty: it needs `tool` or `answer`. {SHAPES}");
    }
    format!("Your object has neither `tool` nor `answer` (it has {}). {SHAPES}", quoted_list(keys))
}

/// An answer without text.
pub fn blank_answer() -> String {
    "Your answer is empty. Put the whole answer into it as text, or call a tool.".to_owned()
}

/// Arguments that are no object.
pub fn arguments_not_object(tool: &str, kind: &str) -> String {
    format!("`{tool}` was not called: its `arguments` are {kind}, not an object. Send them again as a JSON object.")
}

/// Arguments that cannot be taken as they stand.
pub fn arguments_unreadable(tool: &str, pointer: &str, problem: &str) -> String {
    let place = if pointer.is_empty() {
        "its arguments".to_owned()
    } else {
        format!("the value at `{}` in its arguments", quote(pointer))
    };
    format!("`{tool}` was not called: {place} cannot be taken: {}. Correct that and send the call again.", quote(problem))
}

/// A tool that is not offered.
pub fn unknown_tool(name: &str, offered: &[&str], near: Option<&str>) -> String {
    if name.is_empty() {
        return format!("Your call names no tool. Offered are: {}.", quoted_list(offered));
    }
    let hint = near.map_or_else(String::new, |near| format!(" Its exact name here is `{near}`: use that spelling."));
    format!("There is no tool `{}`.{hint} Offered are: {}.", quote(name), quoted_list(offered))
}

/// A tool that cannot be used in this run.
pub fn unusable_tool(tool: &str, problem: &str) -> String {
    format!("`{tool}` was not called: it cannot be used in this run, because {problem}. Go another way.")
}

/// Arguments that break the tool's schema.
pub fn schema_violation(tool: &str, problem: &str, summary: &str) -> String {
    let takes = if summary.is_empty() { "no arguments".to_owned() } else { summary.to_owned() };
    format!("`{tool}` was not called: {problem}. It takes: {takes}. Correct the arguments and send the call again.")
}

/// A native reply without a call and without text.
pub fn no_call() -> String {
    format!("Your reply called no function. Call the tools you need, or finish by calling `{ANSWER_FUNCTION}` with your answer.")
}

/// A native reply that was cut before it called anything.
pub fn cut_before_call() -> String {
    format!(
        "Your reply reached its length limit before it called a function. Do not explain: call the tools you need, or finish by \
         calling `{ANSWER_FUNCTION}` with a shorter answer."
    )
}

/// Several answers in one native reply.
pub fn several_answers(count: usize) -> String {
    format!("You called `{ANSWER_FUNCTION}` {count} times. Call it once, alone, with the whole answer.")
}

/// An answer beside calls of tools.
pub fn answer_beside_tools() -> String {
    format!(
        "This answer was ignored, because the same reply called tools; those ran. When you have what you need, call `{ANSWER_FUNCTION}` alone."
    )
}

/// An answer call whose arguments do not fit.
pub fn malformed_answer(problem: &str) -> String {
    format!(
        "Your call of `{ANSWER_FUNCTION}` cannot be taken: {problem}. It takes one string, `text`, and nothing else is needed."
    )
}

/// Calls beside the one that was taken, in the `json` protocol.
pub fn not_run(names: &[&str]) -> String {
    format!("Only the first call of your reply was taken; not run: {}. Send one call a reply.", quoted_list(names))
}

/// A call that was not made because the run ends.
pub fn stopped_before_call(tool: &str, why: &str) -> String {
    format!("`{}` was proposed and not called: {why}.", quote(tool))
}

/// Why the calls of a step are skipped.
pub const STEP_CANCELLED: &str = "the operator cancelled this step";

/// Why the calls that are left of a step are skipped.
pub const STEERED: &str = "the operator has something to say first";

/// A step that was to be skipped had nothing left to skip.
pub const STEP_CANCELLED_LATE: &str =
    "The operator wanted to cancel the step before this one. It was too late: nothing of it was left to skip.";

/// Heading of a result that came back well.
pub fn result_heading(tool: &str, handle: &str) -> String {
    format!("Result of {tool}, ok ({handle}):")
}

/// Stands in place of an empty result.
pub const NO_OUTPUT: &str = "(no output)";

/// A result that says the call failed.
pub fn failed_result(tool: &str, exit_code: i64, body: &str) -> String {
    let body = if body.trim().is_empty() { NO_OUTPUT } else { body };
    format!("{tool} failed (exit code {exit_code}):\n{body}\nDo not send the same call again unchanged.")
}

/// Why a call was not made any more.
pub const CANCELLED: &str = "the run was cancelled";

/// Stands where a call did not come to its end and nobody said why.
pub const EFFECT_UNKNOWN: &str = "The call did not come to its end: whether it took effect is unknown, and it is not repeated.";

/// Why a call waits to be allowed, `by` the rule of the policy that says so and what it says of itself; `left` calls of the same reply
/// wait with it.
pub fn gated(tool: &str, by: Option<(&str, Option<&str>)>, left: usize) -> String {
    let by = by.map_or_else(String::new, |(rule, reason)| format!(" The policy says so (rule {rule}).{}", after(reason)));
    format!(
        "`{tool}` needs a person's approval: it was proposed with these arguments and not called.{by}{}",
        waiting_behind(left)
    )
}

/// A rule of the policy does not let a call through.
pub fn denied(tool: &str, rule: &str, reason: Option<&str>) -> String {
    format!("`{tool}` was not called: the policy of this run denies it (rule {rule}).{}", after(reason))
}

fn after(reason: Option<&str>) -> String {
    reason.map_or_else(String::new, |reason| format!(" {reason}"))
}

/// A person does not allow a call.
pub fn refused(tool: &str, by: &str, note: Option<&str>) -> String {
    format!("`{tool}` was not called: {} refused it.{} Go another way.", quote(by), noted(note))
}

/// A run begins with a call that a person has allowed.
pub fn approved_before(tool: &str, arguments: &str, approval_id: &str) -> String {
    format!(
        "A person has approved this one call ({approval_id}): `{tool}` with exactly these arguments: {arguments}. It may be made once."
    )
}

fn waiting_behind(left: usize) -> String {
    match left {
        0 => String::new(),
        1 => " One more call of the same reply waits behind it.".to_owned(),
        left => format!(" {left} more calls of the same reply wait behind it."),
    }
}

/// A person says that a call took effect.
pub fn confirmed(by: &str, note: Option<&str>) -> String {
    format!(
        "The call was interrupted before its result came back; {} has confirmed that it took effect.{}",
        quote(by),
        noted(note)
    )
}

/// A person gives a call up.
pub fn given_up(by: &str, note: Option<&str>) -> String {
    format!(
        "The call was interrupted before its result came back, and {} decided that it is not to be made again; whether it took effect \
         is unknown.{}",
        quote(by),
        noted(note)
    )
}

fn noted(note: Option<&str>) -> String {
    note.filter(|note| !note.trim().is_empty()).map_or_else(String::new, |note| format!(" Their note: {note}"))
}

/// The same call, proposed again after a person gave it up.
pub fn given_up_before(tool: &str) -> String {
    format!("`{tool}` was not called: a person decided that this very call is not to be made again. Go another way.")
}

/// Why a call whose effect is unknown waits for a person; `left` calls of the same reply wait with it.
pub fn in_doubt(tool: &str, left: usize) -> String {
    let waiting = waiting_behind(left);
    format!(
        "`{tool}` was called with these arguments and no result came back: whether it took effect is unknown. Look, then say done (it did; \
         the run goes on), retry (it did not; make the call again) or abandon (leave it).{waiting}"
    )
}

/// A result that is the same as an earlier one.
pub fn repeated_result(tool: &str, handle: &str) -> String {
    format!(
        "Result of {tool}, ok: the very same as {handle}, which you already have. Read parts of it with {RESULT_TOOL} and \
         {{\"handle\": \"{handle}\"}}. The same call will keep returning this."
    )
}

/// Stands in the middle of a result that is shown in part.
pub fn truncation(handle: &str, head: usize, tail: usize, total: usize) -> String {
    format!(
        "[… shown are the first {head} and the last {tail} of {total} bytes; the middle is missing. The whole is kept as {handle}: \
         read it with {RESULT_TOOL} and {{\"handle\": \"{handle}\"}} plus `path` (a field), `lines` (\"10-40\"), `offset` or `grep` …]"
    )
}

/// A typed result beside a text; `cut` when not all of it is shown.
pub fn typed_result(handle: &str, value: &str, cut: bool) -> String {
    let rest = if cut {
        format!(" (its beginning; read fields of it with {RESULT_TOOL} and {{\"handle\": \"{handle}\"}} plus `path`)")
    } else {
        String::new()
    };
    format!("Typed result beside this text{rest}:\n{value}")
}

/// The tools on offer changed.
pub fn plane_change(joined: &[String], left: &[String]) -> String {
    let limit = usize::try_from(NAMES_LISTED).unwrap_or(usize::MAX);
    let changes = joined.iter().map(|name| format!("+{name}")).chain(left.iter().map(|name| format!("-{name}")));
    let mut list = changes.take(limit).collect::<Vec<_>>().join(", ");
    let rest = joined.len().saturating_add(left.len()).saturating_sub(limit);
    if rest > 0 {
        list.push_str(&format!(" and {rest} more"));
    }
    format!("The catalogue changed: {list}. The list above is up to date.")
}

/// The catalogue's placeholder when nothing is on offer.
pub const NO_TOOLS: &str = "(no tools)";

/// A quote from outside, bounded.
pub fn quote(text: &str) -> String {
    let limit = usize::try_from(QUOTED_CHARACTERS).unwrap_or(usize::MAX);
    let mut quoted: String = text.chars().take(limit).collect();
    if quoted.len() < text.len() {
        quoted.push('…');
    }
    quoted
}

/// Names in backticks, bounded.
pub fn quoted_list(names: &[&str]) -> String {
    let limit = usize::try_from(NAMES_LISTED).unwrap_or(usize::MAX);
    let mut list = names.iter().take(limit).map(|name| format!("`{}`", quote(name))).collect::<Vec<_>>().join(", ");
    let rest = names.len().saturating_sub(limit);
    if rest > 0 {
        list.push_str(&format!(" and {rest} more"));
    }
    if list.is_empty() { "none".to_owned() } else { list }
}

/// Why the calls that are left are not made.
pub const OUT_OF_TIME: &str = "the run's time is over";

/// Why the calls that are left are not made.
pub const LIMIT_REACHED: &str = "a limit of the run is reached";

/// A model that does not say what it used.
pub const USAGE_MISSING: &str =
    "The model does not say what it used; the limits of this run count one token for every three bytes of text instead.";

/// Behind an answer: what is to be known about it.
pub fn caveat(sentence: &str) -> String {
    format!("\n\n---\n{sentence}")
}

/// About an answer that was being written when the time was over.
pub const HALF_AN_ANSWER: &str = "This answer is not whole: the run's time was over while it was being written.";

/// The reviewer's frame.
pub fn review_frame(may_progress: bool) -> String {
    let progressing = if may_progress { "- progressing: the work gets on, and is to go on as it does.\n" } else { "" };
    format!(
        "You watch over somebody who carries out an objective with tools. You do not do the work yourself. Judge from the calls whether it gets on, and reply with one JSON object and nothing else: {{\"verdict\": \"…\", \"note\": \"…\"}}. The verdicts:\n{progressing}- nudge: it is on a wrong track; the note says in one or two sentences what to do differently.\n- stuck: what there is will not become more; it is to answer now with what it has."
    )
}

/// One call, as a reviewer is shown it.
pub fn reviewed_act(tool: &str, ok: bool, excerpt: &str) -> String {
    let ended = if ok { "ok" } else { "failed" };
    let excerpt: Vec<&str> = excerpt.split_whitespace().collect();
    format!("- {} ({ended}): {}", quote(tool), if excerpt.is_empty() { NO_OUTPUT.to_owned() } else { excerpt.join(" ") })
}

/// What a reviewer is asked.
pub fn review_question(objective: &str, acts: &[String], rejections: u64, signal: Signal) -> String {
    let acts = if acts.is_empty() { "(none)".to_owned() } else { acts.join("\n") };
    format!(
        "Objective:\n{objective}\n\nThe last calls:\n{acts}\n\nReplies that could not be used so far: {rejections}.\nWhat was noticed: {}",
        pattern(signal)
    )
}

/// A pattern that shows no progress, as a sentence.
pub fn pattern(signal: Signal) -> &'static str {
    match signal {
        Signal::RepeatedCall => "the same call came back with the same result several times.",
        Signal::RejectedReplies => "no reply of the last steps could be used.",
        Signal::Oscillation => "two calls take turns again and again.",
        Signal::NoNewEvidence => "the last steps brought nothing that was not known before.",
    }
}

/// A nudge.
pub fn nudge(signal: Signal, note: Option<&str>) -> String {
    let note = note.map_or_else(String::new, |note| format!(" {}", note.trim()));
    format!(
        "You are not getting on: {}{note} Nothing is lost: every result is still there. Do something different now.",
        pattern(signal)
    )
}

/// The run is being wound up.
pub fn wind_up(signal: Signal) -> String {
    format!(
        "The work stops here: {} Give your best answer now, from the results that you have, and say what is missing. No tool can be called any more.",
        pattern(signal)
    )
}

/// A call where only an answer is taken.
pub const ONLY_AN_ANSWER: &str = "No tool is called any more: only an answer is taken now.";

/// Nothing could be read from the same reply several times: the shapes, once more.
pub fn demand(tools: &[&str]) -> String {
    format!(
        "Your last replies were the same, and nothing could be read from them. Reply with one JSON object and nothing else: {{\"tool\": NAME, \"arguments\": {{…}}}} to call a tool, or {{\"answer\": TEXT}} to finish. The tools: {}.",
        quoted_list(tools)
    )
}
