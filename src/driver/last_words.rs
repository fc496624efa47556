//! What is said of a run that can no longer end by itself: its journal failed, or something inside did.

use std::panic::AssertUnwindSafe;

use mission_contract::event::{Event, MissionFinished, Notice, Outcome};
use mission_contract::log::{Closed, Entry};

use super::Driver;
use crate::engine::effect::Effect;
use crate::journal::JournalFailed;

impl Driver {
    /// The journal is gone: what can still be told goes to the sinks only.
    pub(super) fn journal_failed(&mut self, failed: &JournalFailed) {
        let mut notice =
            Event::Notice(Notice { code: "journal_failed".to_owned(), detail: failed.to_string(), ..Notice::default() });
        self.redactor.event(&mut notice);
        // A run that had ended by then does not come here: the log's writer sees to the ending that it lost.
        let last = self.last_words();
        self.log.emergency(vec![notice, last]);
    }

    /// The run failed inside: the engine ends it if it still can.
    pub(super) fn close_after(&mut self, detail: &str) {
        if self.ending.is_some() {
            return;
        }
        let ms = self.clock.monotonic_ms();
        let entry = Entry::Closed(Closed { by: "driver".to_owned(), detail: Some(detail.to_owned()) });
        let seq = self.log.append(ms, entry.clone());
        let engine = &mut self.engine;
        let effects = std::panic::catch_unwind(AssertUnwindSafe(|| engine.apply(seq, ms, &entry)));
        let mut finished = false;
        if let Ok(Ok(effects)) = effects {
            for effect in effects {
                if let Effect::Emit { mut event, repeats } = effect {
                    finished |= matches!(*event, Event::MissionFinished(_));
                    let changed = self.redactor.event(&mut event);
                    self.log.record(ms, *event, repeats.filter(|_| !changed));
                }
            }
        }
        if !finished {
            let last = self.last_words();
            self.log.record(ms, last, None);
        }
    }

    /// An ending without the engine.
    fn last_words(&self) -> Event {
        let elapsed_s = Some(self.clock.monotonic_ms() as f64 / 1000.0);
        Event::MissionFinished(MissionFinished {
            outcome: Outcome::Incomplete,
            steps: self.engine.steps(),
            max_steps: self.engine.max_steps(),
            usage: self.engine.usage(),
            elapsed_s,
            ..MissionFinished::default()
        })
    }
}
