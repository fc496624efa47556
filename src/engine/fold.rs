//! A run rebuilt from its log: inputs are applied again, outputs that the log holds are taken from there, and what a crash lost is left
//! over, to be written before anything new.

use std::collections::VecDeque;

use mission_contract::event::Event;
use mission_contract::log::Entry;

use super::effect::{Effect, Ending};
use super::run::{FoldError, Run, is_resumable};

/// See the module's doc.
#[derive(Debug, Default)]
pub struct Fold {
    run: Run,
    /// Outputs of the inputs so far that were not seen yet.
    due: VecDeque<Effect>,
    ending: Option<Ending>,
}

/// A run as its log leaves it.
#[derive(Debug)]
pub struct Folded {
    /// Its state.
    pub run: Run,
    /// Records and asks that are to be written before anything new. An ask among them is not to be asked.
    pub lost: Vec<Effect>,
    /// How its last stretch ended, if it came to an end.
    pub ending: Option<Ending>,
    /// Whether the log holds the record of that end.
    pub is_told: bool,
}

impl Fold {
    /// Takes the log's next line: its number, the run's work time in milliseconds, and what it holds.
    ///
    /// # Errors
    /// When an input does not fit the state: this build would not have written the log.
    pub fn line(&mut self, seq: u64, ms: u64, entry: &Entry) -> Result<(), FoldError> {
        match entry {
            Entry::Record(record) => {
                let name = event_name(record.get());
                self.seen(|effect| matches!(effect, Effect::Emit { event, .. } if Some(event.name()) == name));
            }
            Entry::Ask(ask) => {
                if self.seen(|effect| matches!(effect, Effect::Ask { .. })) {
                    self.run.asked(ask);
                }
            }
            Entry::Intent(_) => {
                if self.seen(|effect| matches!(effect, Effect::Dispatch { .. })) {
                    self.run.intended();
                }
            }
            input => {
                // What a stretch had not written when it ended is written by the next one; otherwise it stands before the next input.
                if !matches!(input, Entry::Writer(_)) {
                    self.due.clear();
                }
                for effect in self.run.apply(seq, ms, input)? {
                    match effect {
                        Effect::Emit { .. } | Effect::Ask { .. } | Effect::Dispatch { .. } => self.due.push_back(effect),
                        Effect::Finish(ending) => self.ending = Some(ending),
                        Effect::AbortAsk
                        | Effect::CutAsk
                        | Effect::CancelCall
                        | Effect::ListAgain
                        | Effect::LeaveGate
                        | Effect::Audit(_) => {}
                        Effect::OpenGate(_) | Effect::AwaitDecision { .. } | Effect::Claim { .. } | Effect::Arm { .. } => {}
                    }
                }
                if self.run.outcome().is_none() {
                    self.ending = None;
                }
            }
        }
        Ok(())
    }

    /// Takes an output that was due, with what stood before it: another build may have said less.
    fn seen(&mut self, is_it: impl Fn(&Effect) -> bool) -> bool {
        match self.due.iter().position(is_it) {
            Some(position) => {
                self.due.drain(..=position);
                true
            }
            None => false,
        }
    }

    /// The run at the end of its log.
    pub fn finish(self) -> Folded {
        let Fold { mut run, due, ending } = self;
        let is_end =
            |effect: &Effect| matches!(effect, Effect::Emit { event, .. } if matches!(**event, Event::MissionFinished(_)));
        let is_told = run.outcome().is_some() && !due.iter().any(is_end);
        // The end of a stretch that nobody was told of did not happen, when the run is to go on; and what waits for a person is told once.
        let goes_on = run.outcome().is_none_or(is_resumable);
        let is_gate =
            |effect: &Effect| matches!(effect, Effect::Emit { event, .. } if matches!(**event, Event::GateRequested(_)));
        if due.iter().any(is_gate) {
            run.untold_gate();
        }
        let is_lost = |effect: &Effect| match effect {
            Effect::Emit { .. } => !(is_gate(effect) || goes_on && is_end(effect)),
            effect => matches!(effect, Effect::Ask { .. }),
        };
        let lost = due.into_iter().filter(is_lost).collect();
        Folded { run, lost, ending, is_told }
    }
}

/// The name of a record, which stands first in it.
fn event_name(record: &str) -> Option<&str> {
    record.strip_prefix("{\"event\":\"")?.split('"').next()
}
