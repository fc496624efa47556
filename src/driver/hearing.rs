//! What is said to a run while it goes on, and what it says in silence: words of the control channel, answers to them, ticks.

use std::time::Duration;

use mission_contract::event::{ControlAck, Event, Tick};
use mission_contract::log::{Control, ControlSource, Entry, Observed};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::Driver;
use super::waiting::{Woke, at};
use crate::control::{ControlChannel, Heard};
use crate::engine::run::{Disposition, FoldError, Standing};
use crate::limits;
use crate::stream::diagnostics;

/// How a run is spoken to.
#[derive(Debug, Default)]
pub struct Outside {
    /// Where words come from.
    pub control: Option<ControlChannel>,
    /// Whether every line is answered.
    pub acks: bool,
    /// How long a silence lasts before a sign of life.
    pub tick: Option<Duration>,
    /// The run ends when nobody reads its stream any more.
    pub ends_with_reader: bool,
}

impl Outside {
    /// Resolves when somebody ends a run that has not begun, and it does not begin soon after. What was said stays in the channel.
    pub async fn cancelled(&self) {
        match &self.control {
            Some(channel) => channel.cancel_waits().await,
            None => std::future::pending().await,
        }
        tokio::time::sleep(Duration::from_millis(limits::EARLY_CANCEL_MS)).await;
    }
}

/// The same while the run goes on.
#[derive(Debug)]
pub(super) struct Hearing {
    outside: Outside,
    /// A decision that is being written down: until then nothing else is taken from the channel, and nothing from the gate.
    deciding: Option<Deciding>,
    /// When something was said last.
    said: Instant,
    /// What the run is doing, and since when.
    standing: Option<(Standing, Instant)>,
    /// Sentences that may still be said.
    sentences: u64,
}

#[derive(Debug)]
struct Deciding {
    control: Control,
    written: oneshot::Receiver<Result<(), String>>,
}

impl Hearing {
    pub(super) fn new(outside: Outside) -> Self {
        let (said, sentences) = (Instant::now(), limits::CONTROL_SENTENCES);
        Self { outside, deciding: None, said, standing: None, sentences }
    }

    /// Something goes out: the silence is over.
    pub(super) fn said(&mut self) {
        self.said = Instant::now();
    }

    /// Whether a decision is being written down.
    pub(super) fn is_deciding(&self) -> bool {
        self.deciding.is_some()
    }

    /// When the silence has lasted long enough.
    pub(super) fn tick_at(&self) -> Option<Instant> {
        self.outside.tick.and_then(|tick| self.said.checked_add(tick))
    }

    /// Those that can be waited for beside each other: any line, and one that ends the run.
    pub(super) fn ears(&mut self) -> (Lines<'_>, Option<&ControlChannel>) {
        let Self { outside, deciding, .. } = self;
        (Lines { control: outside.control.as_ref(), deciding }, outside.control.as_ref())
    }
}

/// The lines of the channel, one after the other.
pub(super) struct Lines<'h> {
    control: Option<&'h ControlChannel>,
    deciding: &'h mut Option<Deciding>,
}

impl Lines<'_> {
    pub(super) async fn next(self) -> Woke {
        if let Some(Deciding { control, written }) = self.deciding {
            let result = written.await.unwrap_or_else(|_| Err("whoever was to write it down has ended".to_owned()));
            return Woke::Written(control.clone(), result);
        }
        match self.control {
            Some(channel) => Woke::Heard(channel.next().await),
            None => std::future::pending().await,
        }
    }
}

/// A word that ends the run, past whatever stands before it.
pub(super) async fn cancel(channel: Option<&ControlChannel>) -> Woke {
    match channel {
        Some(channel) => Woke::Heard(channel.next_cancel().await),
        None => std::future::pending().await,
    }
}

/// A silence that has lasted long enough.
pub(super) async fn silence(until: Option<Instant>) -> Woke {
    at(until).await;
    Woke::Silence
}

impl Driver {
    pub(super) fn heard(&mut self, heard: Heard) -> Result<(), FoldError> {
        let control = match heard {
            Heard::Word(control) => control,
            Heard::Refused { id, word } => {
                self.acknowledge(id, word, Disposition::Refused);
                return Ok(());
            }
            Heard::Dropped { id, word } => {
                self.acknowledge(id, word, Disposition::Dropped);
                return Ok(());
            }
        };
        let verdict = self.engine.weigh(&control);
        if control.word == "gate_decision" && verdict.counts {
            let written = self.desk.sign(&control);
            self.hearing.deciding = Some(Deciding { control, written });
            return Ok(());
        }
        self.acknowledge(control.id.clone(), control.word.clone(), verdict.disposition);
        if !verdict.counts {
            let word = &control.word;
            let what = control.approval_id.as_deref().unwrap_or_default();
            self.complain(&match verdict.disposition {
                Disposition::Refused => {
                    format!("The control channel decides about {what}, which nothing waits for; it is dropped.")
                }
                Disposition::Dropped => {
                    format!(
                        "The control channel says `{word}`, and more is waiting for the model than it can be told; it is dropped."
                    )
                }
                _ => format!("The control channel says `{word}`, and there is nothing left that it could do."),
            });
            return Ok(());
        }
        if control.word == "cancel" {
            self.end_by();
        }
        self.input(Entry::Control(control))
    }

    /// A decision of the channel was written down, or does not count.
    pub(super) fn written(&mut self, control: Control, result: Result<(), String>) -> Result<(), FoldError> {
        self.hearing.deciding = None;
        let disposition = if result.is_ok() { Disposition::Applied } else { Disposition::Refused };
        self.acknowledge(control.id.clone(), control.word.clone(), disposition);
        match result {
            Ok(()) => self.input(Entry::Control(control)),
            Err(problem) => {
                let approval = control.approval_id.as_deref().unwrap_or_default();
                self.complain(&format!("The control channel's decision about {approval} does not count: {problem}."));
                Ok(())
            }
        }
    }

    /// Something was seen of a sink.
    pub(super) fn sink_told(&mut self, observed: Observed) -> Result<(), FoldError> {
        let ends = self.hearing.outside.ends_with_reader && observed.what == "reader_gone" && !self.engine.is_cancelled();
        self.input(Entry::Observed(observed))?;
        if !ends || self.ending.is_some() {
            return Ok(());
        }
        self.end_by();
        self.input(Entry::Control(Control { word: "cancel".to_owned(), source: ControlSource::ReaderGone, ..Control::default() }))
    }

    fn acknowledge(&mut self, id: Option<String>, word: String, disposition: Disposition) {
        if self.hearing.outside.acks {
            let id = id.map(|id| self.redactor.text(&id).into_owned());
            self.pass_on(Event::ControlAck(ControlAck { id, word, disposition: disposition.word().to_owned(), branch: None }));
        }
    }

    fn complain(&mut self, sentence: &str) {
        if self.hearing.sentences > 0 {
            self.hearing.sentences = self.hearing.sentences.saturating_sub(1);
            diagnostics::say(&self.redactor, sentence);
        }
    }

    /// Redacts something that is not journaled, and lets it out behind the records before it.
    fn pass_on(&mut self, mut event: Event) {
        self.redactor.event(&mut event);
        self.pass(event);
    }

    /// Notes what the run is doing after an input.
    pub(super) fn stands(&mut self) {
        if self.hearing.outside.tick.is_none() {
            return;
        }
        let standing = self.engine.standing();
        if self.hearing.standing.as_ref().is_none_or(|(before, _)| *before != standing) {
            self.hearing.standing = Some((standing, Instant::now()));
        }
    }

    pub(super) fn tick(&mut self) {
        self.stands();
        if let Some((standing, since)) = &self.hearing.standing {
            let milliseconds = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
            let tick = Tick {
                state: standing.state.to_owned(),
                waiting_on: standing.waiting_on.clone(),
                since_s: milliseconds as f64 / 1000.0,
                branch: None,
            };
            self.pass_on(Event::Tick(tick));
        }
        // Without a standing too: a silence is told once.
        self.hearing.said();
    }
}
