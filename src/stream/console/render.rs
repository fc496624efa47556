//! Records in words, for people. Pure: what is printed depends on the records and on when they came.

use std::borrow::Cow;
use std::fmt::Write;
use std::sync::Arc;

use anstyle::{AnsiColor, Style};
use mission_contract::event::{
    Answer, AnswerDelta, Event, GateRequested, Grounding, MissionFinished, MissionStarted, ModelState, Notice, Outcome,
    ReplyRejected, StepStarted, ToolCall, ToolResult,
};

use super::figures::{plural, short_json, size, time};
use super::visible;
use crate::limits;
use crate::redact::Redactor;

/// What the console keeps of a record: never a whole tool result, nor all of a call's arguments.
#[derive(Clone, Debug)]
pub(super) enum Item {
    /// A record, as it is.
    Event(Arc<Event>),
    /// A `tool_call`, shortened.
    Call(Box<Called>),
    /// A `tool_result` without its output.
    Result(Box<Returned>),
}

/// A `tool_call`, shortened.
#[derive(Clone, Debug, Default)]
pub(super) struct Called {
    tool: String,
    arguments: String,
    branch: Option<String>,
}

/// A `tool_result` without its output.
#[derive(Clone, Debug, Default)]
pub(super) struct Returned {
    handle: String,
    exit_code: i64,
    bytes: u64,
    error: String,
    truncated: bool,
    branch: Option<String>,
}

impl Item {
    /// What is shown of a record; nothing for what is meant for programs only.
    pub(super) fn of(event: &Arc<Event>, redactor: &Redactor) -> Option<Self> {
        match &**event {
            Event::ControlAck(_) | Event::Tick(_) => None,
            Event::ToolCall(call) => Some(Self::Call(Box::new(Called::of(call, redactor)))),
            Event::GateRequested(gate) => {
                let mut gate = gate.clone();
                redactor.arguments(&mut gate.arguments);
                Some(Self::Event(Arc::new(Event::GateRequested(gate))))
            }
            Event::ToolResult(result) => Some(Self::Result(Box::new(Returned::of(result)))),
            _ => Some(Self::Event(Arc::clone(event))),
        }
    }

    /// Whether it may be left out when the console is behind. The answer and the ending never are.
    pub(super) fn may_be_left_out(&self) -> bool {
        !matches!(self, Self::Event(event) if matches!(**event, Event::Answer(_) | Event::MissionFinished(_)))
    }
}

impl Called {
    fn of(call: &ToolCall, redactor: &Redactor) -> Self {
        let mut arguments = call.arguments.clone();
        redactor.arguments(&mut arguments);
        Self { tool: text_of(&call.tool).into_owned(), arguments: short_json(&arguments), branch: call.branch.clone() }
    }
}

impl Returned {
    fn of(result: &ToolResult) -> Self {
        Self {
            handle: result.handle.clone(),
            exit_code: result.exit_code,
            bytes: u64::try_from(result.output.as_str().len()).unwrap_or(u64::MAX),
            error: text_of(&result.error).into_owned(),
            truncated: result.truncated,
            branch: result.branch.clone(),
        }
    }
}

/// What a run is waiting for, since when.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Waiting {
    what: String,
    since_ms: u64,
}

/// Turns records into lines.
#[derive(Clone, Debug)]
pub(super) struct Renderer {
    colours: bool,
    waiting: Option<Waiting>,
    /// When the call that is running was made.
    called_ms: Option<u64>,
    /// The fragments of the answer that stand on the screen, as they came.
    streamed: Option<String>,
}

const HEADING: Style = Style::new().bold();
const QUIET: Style = Style::new().dimmed();
const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default();
const ATTENTION: Style = AnsiColor::Yellow.on_default();

impl Renderer {
    pub(super) fn new(colours: bool) -> Self {
        Self { colours, waiting: None, called_ms: None, streamed: None }
    }

    /// What is printed for a record that came at `at_ms`.
    pub(super) fn item(&mut self, item: &Item, at_ms: u64) -> String {
        let event = match item {
            Item::Event(event) => event,
            Item::Result(result) => {
                let mut out = self.new_line();
                self.waiting = None;
                self.result(&mut out, result, at_ms);
                return out;
            }
            Item::Call(call) => {
                let mut out = self.new_line();
                self.called_ms = Some(at_ms);
                self.waiting = Some(Waiting { what: call.tool.clone(), since_ms: at_ms });
                let branch = self.branch(call.branch.as_deref());
                line(&mut out, &format!("{branch}  {} {}", call.tool, self.paint(QUIET, &call.arguments)));
                return out;
            }
        };
        if let Event::AnswerDelta(delta) = &**event {
            self.waiting = None;
            return self.fragment(delta);
        }
        let mut out = match &**event {
            // Whether it was shown already is decided there.
            Event::Answer(_) => String::new(),
            _ => self.new_line(),
        };
        match &**event {
            Event::MissionStarted(record) => self.started(&mut out, record),
            Event::StepStarted(record) => {
                self.step(&mut out, record);
                self.waiting = Some(Waiting { what: "asking the model".to_owned(), since_ms: at_ms });
            }
            Event::ReplyRejected(record) => {
                self.waiting = None;
                self.rejected(&mut out, record);
            }
            Event::GateRequested(record) => {
                self.waiting = None;
                self.gate(&mut out, record);
            }
            Event::Grounding(record) => self.grounding(&mut out, record),
            Event::Answer(record) => {
                self.waiting = None;
                self.answer(&mut out, record);
            }
            Event::MissionFinished(record) => {
                self.waiting = None;
                self.finished(&mut out, record);
            }
            Event::ModelState(record) => self.model_state(&mut out, record),
            Event::Notice(record) => self.notice(&mut out, record),
            Event::AnswerDelta(_) | Event::ToolCall(_) | Event::ToolResult(_) | Event::ControlAck(_) | Event::Tick(_) => {}
        }
        out
    }

    /// What stands on the live line at `now_ms`; nothing while nothing is waited for.
    pub(super) fn live(&self, now_ms: u64, columns: usize) -> Option<String> {
        let waiting = self.waiting.as_ref()?;
        let seconds = now_ms.saturating_sub(waiting.since_ms).checked_div(1000).unwrap_or_default();
        let line = match seconds {
            0 => format!("{}…", waiting.what),
            _ => format!("{}… {seconds} s", waiting.what),
        };
        // A line that wraps could not be erased as one.
        Some(self.paint(QUIET, &visible::shortened(&line, columns.saturating_sub(2))))
    }

    /// Says that the console was too slow for so many records.
    pub(super) fn left_out(&mut self, records: u64) -> String {
        let mut out = self.new_line();
        let what = plural(records, "record");
        line(&mut out, &self.paint(QUIET, &format!("({what} left out here: the run does not wait for this output)")));
        out
    }

    /// Ends the streamed text, if there is one: a record of another kind begins on a line of its own.
    fn new_line(&mut self) -> String {
        match self.streamed.take() {
            Some(text) if !text.ends_with('\n') => "\n".to_owned(),
            _ => String::new(),
        }
    }

    fn fragment(&mut self, delta: &AnswerDelta) -> String {
        let mut out = String::new();
        if delta.part == 0 {
            // Another draft begins: the one before stays where it is.
            out = self.new_line();
        }
        let streamed = self.streamed.get_or_insert_with(|| {
            out.push('\n');
            String::new()
        });
        streamed.push_str(&delta.text);
        out.push_str(&visible::text(&delta.text));
        out
    }

    fn started(&self, out: &mut String, record: &MissionStarted) {
        let name = match &record.run_id {
            Some(run_id) => format!("run {}", visible::one_line(run_id)),
            None => "run (not recorded)".to_owned(),
        };
        let mut facts = vec![plural(length(&record.catalogue), "tool")];
        if !record.gated.is_empty() {
            facts.push(format!("{} behind an approval", record.gated.len()));
        }
        if let Some(skill) = &record.skill {
            facts.push(format!("skill {}", visible::one_line(&skill.name)));
        }
        if record.max_steps > 0 {
            facts.push(format!("at most {}", plural(record.max_steps, "step")));
        }
        if record.history > 0 {
            facts.push(format!("{} before it", plural(record.history, "turn")));
        }
        line(out, &format!("{}{}", self.branch(record.branch.as_deref()), self.paint(HEADING, &name)));
        line(out, &self.paint(QUIET, &format!("  {}", facts.join(", "))));
    }

    fn step(&self, out: &mut String, record: &StepStarted) {
        let mut heading = format!("step {}", record.index.saturating_add(1));
        if let Some(resumed) = &record.resumed {
            let _ = write!(heading, ", resumed after {}", plural(resumed.steps_replayed, "step"));
        }
        line(out, &format!("{}{}", self.branch(record.branch.as_deref()), self.paint(HEADING, &heading)));
        if let Some(catalogue) = &record.catalogue {
            line(out, &self.paint(QUIET, &format!("  the offer changed: {}", plural(length(catalogue), "tool"))));
        }
        for text in &record.injected {
            line(out, &format!("  told: {}", text_of(text)));
        }
        if let Some(review) = &record.review {
            let note = review.note.as_deref().map(|note| format!(": {}", text_of(note))).unwrap_or_default();
            line(out, &format!("  reviewed ({}){note}", visible::one_line(&review.verdict)));
        }
        if let Some(compacted) = &record.compacted {
            let what = plural(compacted.dropped_messages, "message");
            line(out, &self.paint(QUIET, &format!("  the conversation was shortened by {what}")));
        }
        for step in record.plan.iter().flatten() {
            line(out, &format!("  plan: {}: {}", visible::one_line(&step.id), text_of(&step.goal)));
        }
    }

    fn rejected(&self, out: &mut String, record: &ReplyRejected) {
        let text = self.paint(ATTENTION, "the reply was not usable");
        line(out, &format!("{}  {text}: {}", self.branch(record.branch.as_deref()), text_of(&record.problem)));
    }

    fn result(&mut self, out: &mut String, result: &Returned, at_ms: u64) {
        let verdict = match result.exit_code {
            0 => self.paint(GOOD, "ok"),
            1 => self.paint(BAD, "the tool failed"),
            _ => self.paint(BAD, "the call failed"),
        };
        let mut facts = vec![size(result.bytes)];
        facts.extend(self.called_ms.take().map(|called| time(at_ms.saturating_sub(called))));
        if !result.handle.is_empty() {
            facts.push(visible::one_line(&result.handle).into_owned());
        }
        if result.truncated {
            facts.push("more than the model was shown".to_owned());
        }
        let facts = self.paint(QUIET, &format!(", {}", facts.join(", ")));
        let error = if result.error.is_empty() { String::new() } else { format!(": {}", result.error) };
        line(out, &format!("{}    {verdict}{facts}{error}", self.branch(result.branch.as_deref())));
    }

    fn gate(&self, out: &mut String, record: &GateRequested) {
        let branch = self.branch(record.branch.as_deref());
        let what = self.paint(ATTENTION, "waits for a person");
        line(out, &format!("{branch}  {} {}", text_of(&record.tool), self.paint(QUIET, &short_json(&record.arguments))));
        line(out, &format!("    {what}: {}", text_of(&record.reason)));
        if let Some(approval_id) = &record.approval_id {
            line(out, &format!("    approval {}", visible::one_line(approval_id)));
        }
    }

    fn grounding(&self, out: &mut String, record: &Grounding) {
        if !record.ran {
            return;
        }
        let verdict = match (record.grounded, record.verified) {
            (true, true) => self.paint(GOOD, "grounded"),
            (true, false) => self.paint(QUIET, "grounded, nothing to check"),
            (false, _) => self.paint(BAD, "not grounded"),
        };
        let more = if record.repairing { ", the model is asked to repair it" } else { "" };
        line(out, &format!("{}  {verdict}{more}", self.branch(record.branch.as_deref())));
        for claim in &record.unsupported {
            line(out, &format!("    without support: {}", text_of(claim)));
        }
        for check in &record.uncited {
            line(out, &format!("    too little cited: {}", text_of(check)));
        }
    }

    fn answer(&mut self, out: &mut String, record: &Answer) {
        let shown = self.streamed.as_ref().is_some_and(|streamed| *streamed == record.text);
        out.push_str(&self.new_line());
        if shown {
            return;
        }
        out.push('\n');
        out.push_str(&visible::text(&record.text));
        if !record.text.ends_with('\n') {
            out.push('\n');
        }
    }

    fn finished(&self, out: &mut String, record: &MissionFinished) {
        let (style, word) = match record.outcome {
            Outcome::Answered => (GOOD, "answered"),
            Outcome::AnsweredWithCaveat => (ATTENTION, "answered with a caveat"),
            Outcome::AwaitingApproval => (ATTENTION, "waits for an approval"),
            Outcome::BudgetExhausted => (BAD, "a limit was reached"),
            Outcome::Incomplete => (BAD, "not finished"),
        };
        let mut facts = Vec::new();
        if let Some(budget) = &record.budget {
            facts.push(format!("{}: {} of {}", visible::one_line(&budget.which), budget.spent, budget.limit));
        }
        if let Some(reason) = &record.reason {
            facts.push(text_of(reason).into_owned());
        }
        facts.push(plural(record.steps, "step"));
        if let Some(usage) = &record.usage {
            let (all, asked, said) = (usage.total_tokens, usage.prompt_tokens, usage.completion_tokens);
            facts.push(format!("{} ({asked} in, {said} out)", plural(all, "token")));
            if let Some(cost) = &usage.cost {
                facts.push(format!("{} {}", cost.amount, visible::one_line(&cost.currency)));
            }
        }
        if let Some(seconds) = record.elapsed_s {
            // Rounded to whole milliseconds; a negative or an absurd one is cut to what fits.
            facts.push(time((seconds * 1000.0).round() as u64));
        }
        let branch = self.branch(record.branch.as_deref());
        let facts = self.paint(QUIET, &format!(": {}", facts.join(", ")));
        line(out, &format!("\n{branch}{}{facts}", self.paint(style, word)));
    }

    fn model_state(&self, out: &mut String, record: &ModelState) {
        let branch = self.branch(record.branch.as_deref());
        let detail = record.detail.as_deref().map(|detail| format!(" ({})", text_of(detail))).unwrap_or_default();
        line(out, &format!("{branch}  model {}: {}{detail}", text_of(&record.model), visible::one_line(&record.state)));
    }

    fn notice(&self, out: &mut String, record: &Notice) {
        let branch = self.branch(record.branch.as_deref());
        let about = match (&record.tool, &record.server) {
            (Some(about), _) | (None, Some(about)) => format!(" ({})", text_of(about)),
            (None, None) => String::new(),
        };
        let code = self.paint(ATTENTION, &visible::one_line(&record.code));
        line(out, &format!("{branch}  {code}{about}: {}", text_of(&record.detail)));
    }

    fn branch(&self, branch: Option<&str>) -> String {
        branch.map(|name| self.paint(QUIET, &format!("[{}] ", visible::one_line(name)))).unwrap_or_default()
    }

    fn paint(&self, style: Style, text: &str) -> String {
        if self.colours { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }
}

fn line(out: &mut String, text: &str) {
    out.push_str(text);
    out.push('\n');
}

fn text_of(text: &str) -> Cow<'_, str> {
    visible::shortened(text, limits::size(limits::CONSOLE_TEXT_CHARACTERS))
}

fn length<T>(list: &[T]) -> u64 {
    u64::try_from(list.len()).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[path = "render_tests.rs"]
mod tests;
