//! A run whose process is gone, closed by another one: what was decided is written, and how it ended is said. Nobody is asked, nothing is
//! called, and it can be taken up afterwards as before.

use std::sync::Arc;

use mission_contract::log::{Closed, Entry};

use super::Taken;
use crate::engine::effect::Effect;
use crate::engine::run::FoldError;
use crate::journal::{JournalFailed, Patience, RunLog};
use crate::redact::Redactor;
use crate::sys::clock::Clock;

/// Why a run could not be closed.
#[derive(Debug, thiserror::Error)]
pub enum CloseError {
    /// Its log holds what this build would not have written.
    #[error(transparent)]
    Fold(#[from] FoldError),
    /// It could not be written.
    #[error("{}", .0.detail)]
    Journal(JournalFailed),
}

/// Closes it. `by` is the run that does.
///
/// # Errors
/// When it cannot be taken up, or not be written.
pub async fn close(
    mut log: RunLog,
    taken: Taken,
    by: &str,
    redactor: &Redactor,
    clock: &Arc<dyn Clock>,
) -> Result<(), CloseError> {
    let mut engine = taken.folded.run;
    let redactor = redactor.clone().with_evidence(engine.open().spec.redact_evidence);
    let ms = clock.monotonic_ms();
    let write = |log: &mut RunLog, effect| match effect {
        Effect::Emit { mut event, repeats } => {
            let changed = redactor.event(&mut event);
            log.record(ms, *event, repeats.filter(|_| !changed));
        }
        Effect::Ask { ask, .. } => drop(log.append(ms, Entry::Ask(*ask))),
        _ => {}
    };
    let mut take = |log: &mut RunLog, line: Entry| {
        let line = Arc::new(line);
        let seq = log.append(ms, Arc::clone(&line));
        let effects = engine.apply(seq, ms, &line)?;
        effects.into_iter().for_each(|effect| write(log, effect));
        Ok::<_, FoldError>(engine.outcome().is_some())
    };
    let was_over = take(&mut log, Entry::Writer(taken.writer))?;
    taken.folded.lost.into_iter().for_each(|effect| write(&mut log, effect));
    if !was_over {
        take(&mut log, Entry::Closed(Closed { by: by.to_owned(), detail: None }))?;
    }
    match log.close(Patience::AtMost(std::time::Duration::from_millis(crate::limits::CLOSING_MS))).await.failed {
        None => Ok(()),
        Some(failed) => Err(CloseError::Journal(failed)),
    }
}
