//! What was said about how a run is spoken to and how it tells its end.

use std::sync::Arc;
use std::time::Duration;

use mission_contract::event::Outcome;
use mission_contract::vocabulary::exit;

use super::arguments::StreamFlags;
use super::environment::{Environment, Stated};
use super::error::CliError;
use crate::control::ControlChannel;
use crate::driver::Outside;
use crate::engine::effect::Ending;
use crate::limits;
use crate::redact::Redactor;
use crate::stream::diagnostics;
use crate::sys::inputs::Input;

/// See the module's doc.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Speaking {
    /// Where words come from, not looked at yet: `-`, `fd:N` or a path.
    pub control: Option<Stated>,
    /// Whether each line is answered.
    pub acks: bool,
    /// How long a silence lasts before a sign of life.
    pub tick: Option<Duration>,
    /// The run ends when nobody reads its stream any more.
    pub ends_with_reader: bool,
    /// The exit status tells the outcome.
    pub tells_outcome: bool,
}

/// Reads the flags and their variables.
///
/// # Errors
/// A word that is none, a time that is none, answers without a stream to write them to.
pub fn resolve(flags: &StreamFlags, environment: &Environment) -> Result<Speaking, CliError> {
    let control = Stated::either("--control", flags.control.as_deref(), environment, "MISSION_CONTROL");
    let tick = Stated::flag("--tick", flags.tick.as_deref()).map(|stated| seconds(&stated)).transpose()?;
    let word = |place, value: &Option<String>| {
        Stated::flag(place, value.as_deref()).map(|stated| (stated.value.trim().to_lowercase(), stated))
    };
    let ends_with_reader = match word("--on-reader-gone", &flags.on_reader_gone) {
        None => false,
        Some((word, _)) if word == "continue" => false,
        Some((word, _)) if word == "stop" => true,
        Some((_, stated)) => return Err(stated.refuse("that is no such word; say stop or continue")),
    };
    let tells_outcome = match word("--exit-codes", &flags.exit_codes) {
        None => false,
        Some((word, _)) if word == "outcome" => true,
        Some((_, stated)) => return Err(stated.refuse("that is no such word; say outcome, or leave it out")),
    };
    if flags.control_acks && control.is_none() {
        let sentence =
            "--control-acks answers the lines of the control channel, and there is none; give --control, or leave it out";
        return Err(CliError::Refused(sentence.to_owned()));
    }
    Ok(Speaking { control, acks: flags.control_acks, tick, ends_with_reader, tells_outcome })
}

fn seconds(stated: &Stated) -> Result<Duration, CliError> {
    let (least, most) = (Duration::from_millis(limits::TICK_MS_LEAST), Duration::from_secs(limits::TICK_SECONDS_MOST));
    let time = stated.value.trim().parse::<f64>().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    time.filter(|time| (least..=most).contains(time)).ok_or_else(|| {
        let least = least.as_secs_f64();
        stated.refuse(format!("that is no time between {least} and {} seconds", limits::TICK_SECONDS_MOST))
    })
}

/// The exit status of a run that came to an end of its own, where it tells the outcome.
pub fn status_of(ending: Option<&Ending>, cancelled: bool) -> u8 {
    match ending {
        Some(ending) => exit::of_outcome(ending.outcome, cancelled && ending.failure.is_none()),
        None => exit::of_outcome(Outcome::Incomplete, false),
    }
}

/// How a run is spoken to. A channel that the system gives nothing for is told: the run goes on without it.
pub fn outside(control: Option<Input>, speaking: &Speaking, redactor: &Arc<Redactor>) -> Outside {
    let start = |input| {
        let redactor = Arc::clone(redactor);
        ControlChannel::start(input, Box::new(move |sentence| diagnostics::say(&redactor, sentence)))
    };
    let control = control.map(start).transpose().unwrap_or_else(|error| {
        diagnostics::say(redactor, &format!("The control channel cannot be read ({error}); the run goes on without it."));
        None
    });
    Outside { control, acks: speaking.acks, tick: speaking.tick, ends_with_reader: speaking.ends_with_reader }
}
