//! `mission runs prune`: removes runs that have ended, and says of each what became of it and why.

use std::io::Write;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use mission_contract::vocabulary::exit;

use super::{Runs, number};
use crate::cli::arguments::PruneArguments;
use crate::cli::environment::Stated;
use crate::cli::error::CliError;
use crate::cli::run::Exit;
use crate::journal::{JournalError, ListedRun, RunState};
use crate::stream::console::visible;
use crate::sys::clock::{Clock, SystemClock};

/// Which runs that have ended stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// So many of the newest.
    Newest(u64),
    /// Those that ended no longer ago.
    Younger(Duration),
}

/// Removes runs. Exit code 1 when one that was to go could not be removed.
///
/// # Errors
/// A rule that makes no sense, runs that cannot be looked at, an output that nobody reads.
pub fn prune(runs: &Runs, arguments: &PruneArguments, out: &mut dyn Write) -> Result<Exit, CliError> {
    let keep = Stated::flag("--keep", arguments.keep.as_deref());
    let older = Stated::flag("--older", arguments.older.as_deref());
    let rule = match (keep, older) {
        (Some(stated), None) => Rule::Newest(number(&stated)?),
        (None, Some(stated)) => Rule::Younger(time(&stated)?),
        (Some(_), Some(_)) => return Err(CliError::Usage("--keep and --older are two rules; give one of them".to_owned())),
        (None, None) => {
            let sentence = "`mission runs prune` needs a rule: --keep N for the newest, or --older 7d for their age";
            return Err(CliError::Usage(sentence.to_owned()));
        }
    };
    let now = SystemClock::start().utc();
    let names = runs.store.names()?;
    if !arguments.dry_run {
        runs.store.sweep()?;
    }
    let (mut removed, mut kept, mut failed, mut newer) = (0_u64, 0_u64, 0_u64, 0_u64);
    for name in names {
        let run = runs.store.listed(&name);
        let reason = runs.store.kept(&run).map(|kept| kept.to_string()).or_else(|| {
            newer = newer.saturating_add(1);
            rule.keeps(newer, &run, now)
        });
        let about = about(&run);
        let line = match (reason, arguments.dry_run) {
            (Some(reason), _) => {
                kept = kept.saturating_add(1);
                format!("kept {name}{about}: {reason}")
            }
            (None, true) => {
                removed = removed.saturating_add(1);
                format!("would remove {name}{about}")
            }
            (None, false) => match runs.store.remove(&name) {
                Ok(()) => {
                    removed = removed.saturating_add(1);
                    format!("removed {name}{about}")
                }
                Err(error @ JournalError::Held { .. }) => {
                    kept = kept.saturating_add(1);
                    format!("kept {name}{about}: {error}")
                }
                Err(error) => {
                    failed = failed.saturating_add(1);
                    format!("could not remove {name}{about}: {error}")
                }
            },
        };
        say(out, runs, &line)?;
    }
    let verb = if arguments.dry_run { "would remove" } else { "removed" };
    let trouble = if failed > 0 { format!(", could not remove {failed}") } else { String::new() };
    say(out, runs, &format!("{verb} {removed}, kept {kept}{trouble}"))?;
    out.flush().map_err(CliError::Output)?;
    Ok(Exit::Code(if failed > 0 { exit::FAILED } else { exit::FINE }))
}

fn say(out: &mut dyn Write, runs: &Runs, line: &str) -> Result<(), CliError> {
    writeln!(out, "{}", visible::one_line(&runs.redactor.text(line))).map_err(CliError::Output)
}

fn about(run: &ListedRun) -> String {
    match &run.state {
        RunState::Ended(outcome) => format!(" ({})", outcome.word()),
        _ => String::new(),
    }
}

impl Rule {
    /// Why a run that has ended stays, the `position`th of them from the newest on; nothing when it is to go.
    fn keeps(self, position: u64, run: &ListedRun, now: DateTime<Utc>) -> Option<String> {
        match self {
            Rule::Newest(keep) => (position <= keep).then(|| format!("it is one of the {keep} newest")),
            Rule::Younger(age) => {
                let ended = run.meta.as_ref().and_then(|meta| DateTime::parse_from_rfc3339(&meta.updated_at).ok());
                let Some(ended) = ended else { return Some("it is not known when it ended".to_owned()) };
                let age = TimeDelta::from_std(age).unwrap_or(TimeDelta::MAX);
                let young = now.signed_duration_since(ended) <= age;
                young.then(|| "it ended more recently".to_owned())
            }
        }
    }
}

/// A span of time as it was typed: a whole number and its unit.
fn time(stated: &Stated) -> Result<Duration, CliError> {
    let typed = stated.value.trim();
    let digits = typed.trim_end_matches(|each: char| each.is_ascii_alphabetic());
    let unit = match typed.strip_prefix(digits) {
        Some("s") => Some(1),
        Some("m") => Some(60),
        Some("h") => Some(3600),
        Some("d") => Some(86_400),
        Some("w") => Some(604_800),
        _ => None,
    };
    let seconds = digits.parse::<u64>().ok().zip(unit).and_then(|(count, unit): (u64, u64)| count.checked_mul(unit));
    seconds.map(Duration::from_secs).ok_or_else(|| stated.refuse("that is no time; give one like 30s, 15m, 12h, 7d or 2w"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::journal::RunMeta;

    #[test]
    fn times_have_a_unit() {
        let read = |value: &str| time(&Stated { value: value.into(), place: "--older" }).map(|time| time.as_secs());
        for (typed, seconds) in [("30s", 30), ("15m", 900), ("12h", 43_200), (" 7d ", 604_800), ("2w", 1_209_600), ("0s", 0)] {
            assert_eq!(read(typed).unwrap(), seconds);
        }
        for typed in ["7", "d", "7 d", "-7d", "1.5h", "7days", "99999999999999999999d", "18446744073709551615w", ""] {
            assert!(read(typed).is_err(), "{typed}");
        }
    }

    #[test]
    fn age_counts_from_the_end_and_a_clock_that_went_back_makes_nothing_old() {
        let now: DateTime<Utc> = "2026-12-08T00:00:00Z".parse().unwrap();
        let ended =
            |at: &str| ListedRun { meta: Some(RunMeta { updated_at: at.into(), ..RunMeta::default() }), ..ListedRun::default() };
        let keeps = |at: &str, seconds| Rule::Younger(Duration::from_secs(seconds)).keeps(1, &ended(at), now).is_some();
        assert!(!keeps("2026-12-07T00:00:00.000Z", 86_399) && keeps("2026-12-07T00:00:00.000Z", 86_400));
        assert!(keeps("2026-12-09T00:00:00.000Z", 0), "it ended tomorrow");
        assert!(keeps("garbage", 0), "nobody knows when");
        assert!(keeps("2026-12-07T00:00:00.000Z", u64::MAX));
        assert!(Rule::Newest(2).keeps(2, &ended(""), now).is_some() && Rule::Newest(2).keeps(3, &ended(""), now).is_none());
    }
}
