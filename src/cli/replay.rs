//! `--replay`: a recorded run streamed once more, as a run is: the same sinks, the same console, the same signals. Nothing is asked,
//! called, dialled or written.

use std::sync::Arc;
use std::time::Duration;

use mission_contract::event::{Event, MissionFinished, Outcome};
use mission_contract::replay::Drift;
use mission_contract::vocabulary::exit;
use tokio::sync::mpsc;

use super::arguments::RunArguments;
use super::configuration::{grace, refuse_flags};
use super::environment::{Environment, Stated};
use super::error::{CliError, quoted};
use super::recordings::{self, Variation};
use super::run::{Exit, say_faults};
use super::sinks::sinks;
use super::speaking;
use crate::engine::delivery::EventSink;
use crate::journal::{JournalFailed, Patience, RunLog, RunStore};
use crate::limits::CLOSING_MS;
use crate::redact::Redactor;
use crate::replay::{Player, Recording, Replayed};
use crate::stream::diagnostics;
use crate::sys::clock::{Clock, SystemClock};
use crate::sys::descriptors::Inherited;
use crate::sys::signals::{EndSignal, EndSignals};

/// The recording that a command line wants to see again, if it does.
pub(super) fn wanted(arguments: &RunArguments, environment: &Environment) -> Option<Stated> {
    Stated::either("--replay", arguments.flags.replay.replay.as_deref(), environment, "MISSION_REPLAY")
}

/// Replays it. Flags about the model, the servers and the limits say nothing here: the recorded ones hold.
///
/// # Errors
/// Whatever is refused at the door: a recording that cannot be taken up, or one of another objective.
pub(super) fn replay(
    wanted: &Stated,
    arguments: &RunArguments,
    environment: &Environment,
    inherited: &mut Inherited,
) -> Result<Exit, CliError> {
    refuse_flags(&arguments.later)?;
    let carry = &arguments.flags.carry;
    if carry.resume.is_some() || carry.start_or_resume {
        return Err(refused(wanted, "a run is replayed or carried on, not both; leave one of them out"));
    }
    let flags = &arguments.flags;
    let grace = grace(&flags.limits)?;
    let directory = std::env::current_dir().map_err(|error| CliError::no_directory(&error))?;
    let runs = Stated::variable(environment, "MISSION_RUNS");
    let store = RunStore::of(runs.as_ref().map(|stated| stated.value.as_str()), &directory);
    let recording = recordings::load(wanted.value.trim(), &store).map_err(|error| refused(wanted, &error.to_string()))?;
    if let Some(objective) = arguments.objective.as_ref().filter(|text| !text.trim().is_empty())
        && *objective != recording.open.spec.objective
    {
        let (given, recorded) = (quoted(objective), quoted(&recording.open.spec.objective));
        let problem = format!("its objective is {recorded}, and {given} is given; leave the objective out");
        return Err(refused(wanted, &problem));
    }
    let (skill, gates) = (flags.tools.skill.as_deref(), &flags.gates);
    let policy = flags.policy.policy.as_deref();
    let open = Variation::of(skill, flags.skill.no_grounding, &gates.gate_tool, &gates.gate, policy)?.of_recorded(&recording)?;
    let redactor = Arc::new(recordings::redactor(&recording)?);
    let tells_outcome = speaking::resolve(&flags.streams, environment)?.tells_outcome;
    let events = Stated::either("--events", flags.streams.events.as_deref(), environment, "MISSION_EVENTS");
    let events = events.map(|stated| inherited.output(stated.place, &stated.value)).transpose()?;
    say_faults(&redactor);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| CliError::system("a runtime", &error))?;
    runtime.block_on(async {
        let signals = EndSignals::catch().map_err(|error| CliError::system("the signals", &error))?;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
        // A reader that goes away is told about where that is seen; no run has to know of it.
        let (gone, _) = mpsc::unbounded_channel();
        let sinks = sinks(events, false, gone, &clock, &redactor, environment)?;
        let player = Player::new(&recording, open, redactor.as_ref().clone());
        let played = play(player, queue(&recording, clock, sinks)?, signals, grace).await;
        Ok(told(&played, tells_outcome, &redactor))
    })
}

fn refused(wanted: &Stated, problem: &str) -> CliError {
    CliError::Refused(format!("{}: {problem}", wanted.place))
}

/// What the records wait in for their readers: that of a run that is not kept.
fn queue(recording: &Recording, clock: Arc<dyn Clock>, sinks: Vec<Box<dyn EventSink>>) -> Result<RunLog, CliError> {
    Ok(RunLog::create(&RunStore::nowhere(), &recording.open.run_id, clock, sinks)?)
}

/// A replay that is over.
struct Played {
    replayed: Replayed,
    signal: Option<EndSignal>,
    /// What the engine could not take.
    broken: Option<String>,
    failed: Option<JournalFailed>,
    given_up: Vec<(String, u64)>,
}

async fn play(mut player: Player<'_>, mut log: RunLog, mut signals: EndSignals, grace: Duration) -> Played {
    let (mut signal, mut broken, mut failed) = (None, None, None);
    loop {
        let (failing, room) = (log.failed(), log.room());
        let told = tokio::select! {
            biased;
            failure = failing => {
                failed = Some(failure);
                break;
            }
            caught = signals.first(), if signal.is_none() => {
                signal = Some(caught);
                player.cancel(caught.name()).map(Some)
            }
            () = room => player.advance(),
        };
        match told {
            Ok(None) => break,
            Ok(Some(events)) => {
                for event in events {
                    log.record(player.ms(), event, None);
                }
            }
            Err(error) => {
                broken = Some(error.to_string());
                break;
            }
        }
    }
    let replayed = player.replayed();
    if replayed.ending.is_none() {
        let finished = MissionFinished { outcome: Outcome::Incomplete, steps: replayed.steps, ..MissionFinished::default() };
        match failed {
            None => {
                log.record(player.ms(), Event::MissionFinished(finished), None);
            }
            Some(_) => log.emergency(vec![Event::MissionFinished(finished)]),
        }
    }
    let patience = match signal {
        None => Patience::WhileTaken(grace),
        Some(_) => Patience::AtMost(grace.max(Duration::from_millis(CLOSING_MS))),
    };
    let close = log.close(patience);
    tokio::pin!(close);
    let closing = tokio::select! {
        closing = &mut close => closing,
        // It is over already: whoever asks a second time ends the process there and then.
        _ = signals.first(), if signal.is_none() => close.await,
    };
    Played { replayed, signal, broken, failed: failed.or(closing.failed), given_up: closing.given_up }
}

/// What the process says on stderr, and how it ends.
fn told(played: &Played, tells_outcome: bool, redactor: &Redactor) -> Exit {
    for (sink, left) in &played.given_up {
        diagnostics::say(redactor, &format!("The reader of {sink} took nothing any more; {left} records were not given to it."));
    }
    for drift in &played.replayed.drift {
        diagnostics::say(redactor, &format!("The replay drifts from its recording: {}.", sentence(drift)));
    }
    let wrong = played.broken.as_ref().or(played.replayed.ran_out.as_ref());
    if let Some(wrong) = wrong {
        diagnostics::say(redactor, wrong);
    }
    match (&played.failed, played.signal, wrong) {
        (Some(failed), ..) => {
            diagnostics::say(redactor, &failed.detail);
            Exit::Code(exit::JOURNAL_FAILED)
        }
        (None, Some(signal), _) => Exit::Signal(signal),
        (None, None, Some(_)) => Exit::Code(exit::FAILED),
        (None, None, None) if tells_outcome => {
            Exit::Code(speaking::status_of(played.replayed.ending.as_ref(), played.replayed.cancelled))
        }
        (None, None, None) => Exit::Code(exit::FINE),
    }
}

/// A drift in one sentence.
fn sentence(drift: &Drift) -> String {
    let side = |side: &Option<String>| side.as_ref().map_or_else(|| "nothing".to_owned(), |side| quoted(side));
    let (recorded, replayed) = (side(&drift.recorded), side(&drift.replayed));
    format!("{}: {}{}: recorded {recorded}, replayed {replayed}", drift.kind.name(), drift.what, place(drift))
}

/// Where it is.
pub(super) fn place(drift: &Drift) -> String {
    let step = drift.step.map(|step| format!(", step {step}")).unwrap_or_default();
    let seq = drift.seq.map(|seq| format!(", seq {seq}")).unwrap_or_default();
    format!("{step}{seq}")
}
