//! A run that is over, told again to whoever starts it once more: its opening, its answer and its ending, as they went out.

use std::sync::Arc;

use mission_contract::event::{Event, Outcome};
use mission_contract::log::Entry;
use mission_contract::vocabulary::exit;
use tokio::sync::mpsc;

use super::environment::{Environment, Stated};
use super::error::CliError;
use super::hiding;
use super::resume::Held;
use super::run::{Done, Exit};
use super::sinks::sinks;
use crate::engine::delivery::Delivery;
use crate::sys::clock::{Clock, SystemClock};
use crate::sys::descriptors::Inherited;

/// Tells it. Nothing is started, asked or written. The exit status tells the outcome where one is given.
///
/// # Errors
/// When there is nowhere to tell it, or the log cannot be read again.
pub(super) fn retell(
    held: &Held,
    outcome: Option<Outcome>,
    events: Option<Stated>,
    environment: &Environment,
    inherited: &mut Inherited,
) -> Result<Done, CliError> {
    let redactor = hiding::redactor()?;
    let events = events.map(|stated| inherited.output(stated.place, &stated.value)).transpose()?;
    let (mut opening, mut answer, mut ending) = (None, None, None);
    for line in held.held.reader().map_err(|error| CliError::Refused(error.to_string()))? {
        let line = line.map_err(|error| CliError::Refused(error.to_string()))?;
        let Entry::Record(record) = &line.entry else { continue };
        let Ok(event) = serde_json::from_str::<Event>(record.get()) else { continue };
        let text = record.get().to_owned();
        match event {
            Event::MissionStarted(_) => opening = Some((event, text)),
            Event::Answer(_) => answer = Some((event, text)),
            Event::MissionFinished(_) => ending = Some((event, text)),
            _ => {}
        }
    }
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
    let (gone, _reports) = mpsc::unbounded_channel();
    let mut sinks = sinks(events, false, gone, &clock, &redactor, environment)?;
    for (event, text) in [opening, answer, ending].into_iter().flatten() {
        let delivery = Delivery::with_line(Arc::new(event), text);
        sinks.iter_mut().for_each(|sink| sink.deliver(&delivery));
    }
    sinks.iter_mut().for_each(|sink| sink.finish());
    let code = outcome.map_or(exit::FINE, |outcome| exit::of_outcome(outcome, false));
    Ok(Done { exit: Exit::Code(code), folder: held.held.folder().map(std::path::Path::to_owned) })
}
