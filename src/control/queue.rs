//! What was read and not taken yet.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;

use super::Heard;
use crate::limits;

/// See the module's doc.
#[derive(Debug, Default)]
pub(super) struct Queue {
    waiting: Mutex<Waiting>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    heard: VecDeque<Heard>,
    /// Of the texts in it.
    bytes: u64,
    /// Lines in it that are only to be answered.
    answers: u64,
}

fn bytes(heard: &Heard) -> u64 {
    match heard {
        Heard::Word(control) => {
            let texts = [&control.text, &control.note, &control.by].into_iter().flatten();
            texts.fold(0, |sum, text| sum.saturating_add(u64::try_from(text.len()).unwrap_or(u64::MAX)))
        }
        Heard::Refused { .. } | Heard::Dropped { .. } => 0,
    }
}

impl Queue {
    /// Puts a line behind the others. False when there is no room: it is then answered as dropped, as long as there is room for answers.
    /// A word that ends the run always has room.
    pub(super) fn push(&self, heard: Heard) -> bool {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let Waiting { heard: lines, bytes: held, answers } = &mut *waiting;
        let (heard, taken) = match heard {
            Heard::Word(control) => {
                let size = bytes(&Heard::Word(control.clone()));
                let words = u64::try_from(lines.len()).unwrap_or(u64::MAX).saturating_sub(*answers);
                let is_full = words >= limits::CONTROL_QUEUE || held.saturating_add(size) > limits::CONTROL_QUEUE_BYTES;
                let is_cancel = control.word == "cancel";
                let is_there = |heard: &Heard| matches!(heard, Heard::Word(control) if control.word == "cancel");
                if !is_full || (is_cancel && !lines.iter().any(is_there)) {
                    (Heard::Word(control), true)
                } else {
                    (Heard::Dropped { id: control.id, word: control.word }, false)
                }
            }
            answer => (answer, true),
        };
        if !matches!(heard, Heard::Word(_)) {
            if *answers >= limits::CONTROL_QUEUE {
                return false;
            }
            *answers = answers.saturating_add(1);
        }
        *held = held.saturating_add(bytes(&heard));
        lines.push_back(heard);
        drop(waiting);
        self.changed.notify_one();
        taken
    }

    fn take(&self, fits: impl Fn(&Heard) -> bool) -> Option<Heard> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let position = waiting.heard.iter().position(fits)?;
        let heard = waiting.heard.remove(position)?;
        waiting.bytes = waiting.bytes.saturating_sub(bytes(&heard));
        if !matches!(heard, Heard::Word(_)) {
            waiting.answers = waiting.answers.saturating_sub(1);
        }
        Some(heard)
    }

    /// Waits until a line is there that fits, and leaves it.
    pub(super) async fn wait_for(&self, fits: impl Fn(&Heard) -> bool) {
        while !self.waiting.lock().unwrap_or_else(PoisonError::into_inner).heard.iter().any(&fits) {
            self.changed.notified().await;
        }
        // Whoever takes it is not to wait for another one.
        self.changed.notify_one();
    }

    /// The first line that fits. One task takes them.
    pub(super) async fn next(&self, fits: impl Fn(&Heard) -> bool) -> Heard {
        loop {
            if let Some(heard) = self.take(&fits) {
                return heard;
            }
            // A line that came in between has left a permit.
            self.changed.notified().await;
        }
    }
}
