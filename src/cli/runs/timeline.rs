//! A run as a timeline: what each step took, and what came of it. A fold over the lines of a log; it holds one step at a time.

use std::collections::VecDeque;

use mission_contract::event::{Event, MissionFinished, MissionStarted, ToolResult, Usage};
use mission_contract::log::{Closed, Decision, Entry, Line, Open, ReplyEnd, Writer};
use serde::Serialize;

use crate::limits;

/// One step, from its `step_started` to the next.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Step {
    /// Its number on the wire, from 0.
    pub index: u64,
    /// The branch that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// When it began, in milliseconds of the run's work time.
    pub at_ms: u64,
    /// How long the model took.
    pub model_ms: u64,
    /// How long tools took.
    pub tool_ms: u64,
    /// How long a person was waited for.
    pub waiting_ms: u64,
    /// What the replies cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// What happened, in its order.
    pub events: Vec<Moment>,
    /// Things that happened and are not listed: there were too many.
    #[serde(skip_serializing_if = "is_zero")]
    pub left_out: u64,
    /// What the model said in it, word for word.
    #[serde(skip)]
    pub replies: Vec<String>,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde asks for a reference
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Something that happened in a step.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum Moment {
    /// A tool was called.
    Call {
        /// The tool.
        tool: String,
        /// Its arguments, as JSON.
        arguments: String,
        /// How long it took; absent while no result is there.
        #[serde(skip_serializing_if = "Option::is_none")]
        ms: Option<u64>,
        /// How it came back.
        #[serde(skip_serializing_if = "Option::is_none")]
        exit_code: Option<i64>,
        /// Where the result is kept.
        #[serde(skip_serializing_if = "Option::is_none")]
        handle: Option<String>,
        /// How large its output is.
        bytes: u64,
        /// What went wrong.
        #[serde(skip_serializing_if = "String::is_empty")]
        error: String,
        /// Its output: only for a step that is shown by itself.
        #[serde(skip_serializing_if = "String::is_empty")]
        output: String,
    },
    /// A reply could not be used, and why.
    Rejected {
        /// The correction.
        problem: String,
    },
    /// A reply did not come to its end.
    Broken {
        /// How.
        end: ReplyEnd,
        /// Why.
        detail: String,
    },
    /// A call waits for a person.
    Gate {
        /// The tool.
        tool: String,
        /// Why.
        reason: String,
        /// The approval.
        #[serde(skip_serializing_if = "Option::is_none")]
        approval_id: Option<String>,
    },
    /// A person answered.
    Decided {
        /// What.
        answer: String,
        /// Who.
        by: String,
        /// In their words.
        #[serde(skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// The answer was held against the results.
    Grounding {
        /// Whether all of it is supported.
        grounded: bool,
        /// What is not.
        unsupported: Vec<String>,
    },
    /// The model was told something.
    Told {
        /// What.
        text: String,
    },
    /// Something that an operator should see.
    Notice {
        /// What kind of thing.
        code: String,
        /// In words.
        detail: String,
    },
    /// Another process took over.
    Resumed {
        /// Number of the stretch.
        epoch: u64,
        /// The process.
        pid: u32,
        /// Its host.
        host: String,
    },
    /// The run was closed from outside.
    Closed {
        /// By whom.
        by: String,
    },
    /// The answer.
    Answer {
        /// Its text.
        text: String,
    },
}

/// What is known once all lines were seen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Total {
    /// The last end of a stretch.
    pub ending: Option<MissionFinished>,
    /// Steps begun.
    pub steps: u64,
    /// Work time in all.
    pub ms: u64,
    /// The model's part.
    pub model_ms: u64,
    /// The tools' part.
    pub tool_ms: u64,
    /// The part in which a person was waited for.
    pub waiting_ms: u64,
    /// Number of stretches.
    pub epoch: u64,
}

/// What a line completes.
#[derive(Clone, Debug, PartialEq)]
pub enum Shown {
    /// What was asked, and when.
    Opened(Box<Open>, String),
    /// What the run began with.
    Started(Box<MissionStarted>),
    /// A step is over.
    Step(Box<Step>),
}

/// The fold.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    step: Option<Step>,
    /// What happened before the first step.
    early: Vec<Moment>,
    asked_ms: Option<u64>,
    /// Calls whose result has not come: when each was made.
    called_ms: VecDeque<u64>,
    /// How long the last call took.
    took_ms: Option<u64>,
    gated_ms: Option<u64>,
    /// The step whose texts are held whole.
    wanted: Option<u64>,
    total: Total,
}

impl Timeline {
    /// A fold that holds the texts of one step: its index, from 0.
    pub fn of(wanted: Option<u64>) -> Self {
        Self { wanted, ..Self::default() }
    }

    /// Takes the next line, and gives out what it completes.
    pub fn take(&mut self, line: &Line) -> Option<Shown> {
        self.total.ms = line.ms;
        match &line.entry {
            Entry::Open(open) => {
                self.total.epoch = 1;
                return Some(Shown::Opened(open.clone(), line.at.clone()));
            }
            Entry::Writer(writer) => self.resumed(writer),
            Entry::Closed(Closed { by, .. }) => self.push(Moment::Closed { by: by.clone() }),
            Entry::Ask(_) => self.asked_ms = Some(line.ms),
            Entry::Reply(reply) => {
                let ms = self.asked_ms.take().map_or(0, |asked| line.ms.saturating_sub(asked));
                self.total.model_ms = self.total.model_ms.saturating_add(ms);
                if let Some(step) = &mut self.step {
                    step.model_ms = step.model_ms.saturating_add(ms);
                    step.usage = reply.usage.clone().or(step.usage.take());
                    if self.wanted == Some(step.index) {
                        step.replies.push(said(reply));
                    }
                }
                if reply.end != ReplyEnd::Whole {
                    let detail = reply.detail.clone().unwrap_or_default();
                    self.push(Moment::Broken { end: reply.end, detail });
                }
            }
            Entry::Intent(_) => self.called_ms.push_back(line.ms),
            Entry::Result(_) => {
                let ms = self.called_ms.pop_front().map_or(0, |called| line.ms.saturating_sub(called));
                self.took_ms = Some(ms);
                self.total.tool_ms = self.total.tool_ms.saturating_add(ms);
                if let Some(step) = &mut self.step {
                    step.tool_ms = step.tool_ms.saturating_add(ms);
                }
            }
            Entry::Decision(Decision { answer, by, note, .. }) => {
                let ms = self.gated_ms.take().map_or(0, |gated| line.ms.saturating_sub(gated));
                self.total.waiting_ms = self.total.waiting_ms.saturating_add(ms);
                if let Some(step) = &mut self.step {
                    step.waiting_ms = step.waiting_ms.saturating_add(ms);
                }
                self.push(Moment::Decided { answer: answer.clone(), by: by.clone(), note: note.clone() });
            }
            Entry::Record(record) => {
                // A record of a later version is left out.
                let event: Event = serde_json::from_str(record.get()).ok()?;
                return self.record(event, line.ms);
            }
            Entry::Leg(_) | Entry::Catalogue(_) | Entry::Control(_) | Entry::Timer(_) | Entry::Observed(_) => {}
        }
        None
    }

    /// What is left when the log is over: the last step, and the totals.
    pub fn finish(mut self) -> (Option<Step>, Total) {
        (self.step.take(), self.total)
    }

    fn record(&mut self, event: Event, ms: u64) -> Option<Shown> {
        match event {
            Event::MissionStarted(started) => return Some(Shown::Started(Box::new(started))),
            Event::StepStarted(started) => {
                self.total.steps = self.total.steps.max(started.index.saturating_add(1));
                let before = self.step.take();
                let mut events = std::mem::take(&mut self.early);
                events.extend(started.injected.into_iter().map(|text| Moment::Told { text }));
                self.step = Some(Step { index: started.index, branch: started.branch, at_ms: ms, events, ..Step::default() });
                return before.map(|step| Shown::Step(Box::new(step)));
            }
            Event::ReplyRejected(rejected) => self.push(Moment::Rejected { problem: rejected.problem }),
            Event::ToolCall(call) => {
                let arguments = bounded(&serde_json::Value::Object(call.arguments).to_string());
                self.took_ms = None;
                self.push(Moment::Call {
                    tool: call.tool,
                    arguments,
                    ms: None,
                    exit_code: None,
                    handle: None,
                    bytes: 0,
                    error: String::new(),
                    output: String::new(),
                });
            }
            Event::ToolResult(result) => self.returned(result),
            Event::GateRequested(gate) => {
                self.gated_ms = Some(ms);
                self.push(Moment::Gate { tool: gate.tool, reason: gate.reason, approval_id: gate.approval_id });
            }
            Event::Grounding(found) if found.ran => {
                self.push(Moment::Grounding { grounded: found.grounded, unsupported: found.unsupported });
            }
            Event::Answer(answer) => self.push(Moment::Answer { text: answer.text }),
            Event::Notice(notice) => self.push(Moment::Notice { code: notice.code, detail: notice.detail }),
            Event::MissionFinished(finished) => self.total.ending = Some(finished),
            Event::Grounding(_) | Event::AnswerDelta(_) | Event::ModelState(_) | Event::ControlAck(_) | Event::Tick(_) => {}
        }
        None
    }

    fn returned(&mut self, result: ToolResult) {
        let (took, index) = (self.took_ms.take(), result.index);
        let open = self.step.as_mut().and_then(|step| {
            step.events
                .iter_mut()
                .rev()
                .find(|moment| matches!(moment, Moment::Call { tool, exit_code: None, .. } if *tool == result.tool))
        });
        if let Some(Moment::Call { ms, exit_code, handle, bytes, error, output, .. }) = open {
            let text = result.output.as_str();
            *ms = took;
            *exit_code = Some(result.exit_code);
            *handle = Some(result.handle);
            *bytes = u64::try_from(text.len()).unwrap_or(u64::MAX);
            *error = result.error;
            if self.wanted.is_some_and(|wanted| wanted == index) {
                *output = bounded(text);
            }
        }
    }

    fn resumed(&mut self, writer: &Writer) {
        self.total.epoch = writer.epoch;
        self.total.ending = None;
        // What was in flight came to no end that could be timed.
        self.asked_ms = None;
        self.called_ms.clear();
        self.push(Moment::Resumed { epoch: writer.epoch, pid: writer.pid, host: writer.host.clone() });
    }

    fn push(&mut self, moment: Moment) {
        let events = match &mut self.step {
            Some(step) => &mut step.events,
            None => &mut self.early,
        };
        if events.len() < limits::size(limits::SHOW_EVENTS) {
            events.push(moment);
        } else if let Some(step) = &mut self.step {
            step.left_out = step.left_out.saturating_add(1);
        }
    }
}

/// What is held of a text: enough to be read by a person.
fn bounded(text: &str) -> String {
    let bound = limits::size(limits::SHOW_TEXT_BYTES);
    if text.len() <= bound {
        return text.to_owned();
    }
    let shown = text.get(..text.floor_char_boundary(bound)).unwrap_or_default();
    format!("{shown}… ({} of {} bytes)", shown.len(), text.len())
}

/// A reply as the model made it.
fn said(reply: &mission_contract::log::Reply) -> String {
    let mut text = reply.text.as_str().to_owned();
    for call in &reply.calls {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&format!("{}({})", call.name, call.arguments));
    }
    bounded(&text)
}
