//! What becomes of a reply of the model.

use mission_contract::event::{Answer, Event, Outcome, ReplyRejected};
use mission_contract::log::{Message, Observed, Reply, ReplyCall, ReplyEnd, Role};

use super::budgets::Stop;
use super::{Run, Turn, said, tool_message};
use crate::engine::reading::Proposed;
use crate::engine::reading::json::{self as json_reading, Decision};
use crate::engine::reading::native::{self, NativeTurn};
use crate::engine::words;

impl Run {
    pub(super) fn replied(&mut self, reply: &Reply) {
        self.settle_reply(reply, true);
        if self.is_steered_away(reply) {
            return;
        }
        match reply.end {
            ReplyEnd::Whole => {}
            // Whatever came of the question: the run was being ended.
            _ if self.stop.is_some() => {
                if self.stop == Some(Stop::Clock) {
                    self.keep_half(reply, true);
                }
                return self.stopped();
            }
            ReplyEnd::Cut | ReplyEnd::Failed | ReplyEnd::Interrupted => {
                let detail = reply.detail.clone().unwrap_or_else(|| "The model's reply did not come to its end.".to_owned());
                self.notice(Observed { what: "model_failed".into(), detail: detail.clone(), ..Observed::default() });
                return self.finish(Outcome::Incomplete, None, None, Some(detail));
            }
        }
        self.turn = Turn { usage: reply.usage.clone(), ..Turn::default() };
        if self.native() && !self.watch.is_constrained() { self.native_reply(reply) } else { self.json_reply(reply) }
    }

    fn json_reply(&mut self, reply: &Reply) {
        let spoken = &reply.text;
        let is_blank = spoken.as_str().trim().is_empty();
        let decision = json_reading::read(spoken.as_str(), &reply.calls);
        let content = match &decision {
            Decision::Call { tool, arguments, beside: true, .. } if is_blank => json_reading::written(tool, arguments).into(),
            Decision::Call { tool, arguments, beside: true, .. } => {
                format!("{}\n{}", spoken.as_str(), json_reading::written(tool, arguments)).into()
            }
            _ if is_blank => words::NOTHING_SAID.into(),
            _ => spoken.clone(),
        };
        let opaque = reply.opaque.clone();
        self.conversation.push(Message { role: Role::Assistant, content, opaque, ..Message::default() });
        match decision {
            Decision::Answer(text) => self.answer(text),
            Decision::Rejected { problem, tool } => {
                if tool.is_none() {
                    self.watch.watch.unreadable(spoken.as_str());
                }
                self.keep_half(reply, false);
                self.rejected(problem.clone(), tool);
                self.conversation.push(said(Role::User, &problem));
                self.step_over();
            }
            Decision::Call { tool, arguments, left, .. } => {
                if !left.is_empty() {
                    self.turn.remark = Some(words::not_run(&left.iter().map(String::as_str).collect::<Vec<_>>()));
                }
                self.turn.queue.push_back(Proposed { name: tool, arguments, position: 0, call_id: None });
                self.next_call();
            }
        }
    }

    fn native_reply(&mut self, reply: &Reply) {
        let calls: Vec<ReplyCall> = reply.calls.iter().filter(|call| !call.name.is_empty()).cloned().collect();
        let turn = native::read(reply, &calls, self.index);
        let ids = native::ids(&calls, self.index);
        let echo = calls.iter().zip(ids).map(|(call, id)| native::echo(call, id, &self.offer)).collect::<Vec<_>>();
        let content = if echo.is_empty() && reply.text.as_str().trim().is_empty() {
            words::NOTHING_SAID.into()
        } else {
            reply.text.clone()
        };
        self.conversation.push(Message {
            role: Role::Assistant,
            content,
            calls: echo,
            opaque: reply.opaque.clone(),
            call_id: None,
        });
        match turn {
            NativeTurn::Answer(text) => self.answer(text),
            NativeTurn::Nothing(problem) => {
                self.watch.watch.unreadable(reply.text.as_str());
                self.keep_half(reply, false);
                self.rejected(problem.clone(), None);
                self.conversation.push(said(Role::User, &problem));
                self.step_over();
            }
            NativeTurn::Answers { problem, ids } => {
                self.keep_half(reply, false);
                for id in ids {
                    self.rejected(problem.clone(), Some(words::ANSWER_FUNCTION.to_owned()));
                    self.conversation.push(tool_message(&id, &problem));
                }
                self.step_over();
            }
            NativeTurn::Calls { calls, ignored } => {
                for id in ignored {
                    self.conversation.push(tool_message(&id, &words::answer_beside_tools()));
                }
                self.turn.queue.extend(calls);
                self.next_call();
            }
        }
    }

    fn answer(&mut self, text: String) {
        self.count_step();
        let usage = self.turn.usage.take();
        self.emit(Event::Answer(Answer { text, outcome: Outcome::Answered, usage, structured: None, branch: None }));
        self.finish(Outcome::Answered, None, None, None);
    }

    pub(super) fn rejected(&mut self, problem: String, tool: Option<String>) {
        self.watch.watch.rejected();
        let usage = self.turn.usage.take();
        self.emit(Event::ReplyRejected(ReplyRejected { index: self.index, problem, tool, usage, branch: None }));
    }

    pub(super) fn step_over(&mut self) {
        self.count_step();
        self.next_step();
    }

    pub(super) fn count_step(&mut self) {
        self.steps = self.steps.saturating_add(1);
        self.watch.watch.step_over();
    }
}
