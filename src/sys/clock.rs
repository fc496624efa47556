//! What time it is: one trait, so that a test decides.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use chrono::{DateTime, SecondsFormat, Utc};

/// A clock. Decisions are made on its monotonic reading only; the other one informs people.
pub trait Clock: Send + Sync {
    /// Milliseconds since some fixed moment of this process; never goes back.
    fn monotonic_ms(&self) -> u64;

    /// The time of day.
    fn utc(&self) -> DateTime<Utc>;
}

/// A moment as every file and record writes it: RFC 3339, UTC, milliseconds, `Z`.
pub fn rfc3339(moment: DateTime<Utc>) -> String {
    moment.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// The clock of the machine.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    start: Instant,
    /// Its reading at that moment, in milliseconds.
    from: u64,
}

impl SystemClock {
    /// A clock whose monotonic reading starts at zero now.
    pub fn start() -> Self {
        Self::from(0)
    }

    /// A clock whose monotonic reading starts at so many milliseconds now: the work time of a run is carried over.
    pub fn from(ms: u64) -> Self {
        Self { start: Instant::now(), from: ms }
    }
}

impl Clock for SystemClock {
    fn monotonic_ms(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX).saturating_add(self.from)
    }

    fn utc(&self) -> DateTime<Utc> {
        Utc::now()
    }
}

/// A clock that stands still until it is told to move: for tests and for replays.
#[derive(Debug)]
pub struct ManualClock {
    now: Mutex<(u64, DateTime<Utc>)>,
}

impl ManualClock {
    /// A clock that stands at `utc`, with a monotonic reading of zero.
    pub fn at(utc: DateTime<Utc>) -> Self {
        Self { now: Mutex::new((0, utc)) }
    }

    /// Moves both readings on.
    pub fn advance(&self, by: Duration) {
        let mut now = self.now.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        now.0 = now.0.saturating_add(u64::try_from(by.as_millis()).unwrap_or(u64::MAX));
        if let Some(later) = chrono::TimeDelta::from_std(by).ok().and_then(|delta| now.1.checked_add_signed(delta)) {
            now.1 = later;
        }
    }

    /// Sets the time of day, back or forth, as an administrator does.
    pub fn set_utc(&self, utc: DateTime<Utc>) {
        self.now.lock().unwrap_or_else(std::sync::PoisonError::into_inner).1 = utc;
    }

    fn read(&self) -> (u64, DateTime<Utc>) {
        *self.now.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Clock for ManualClock {
    fn monotonic_ms(&self) -> u64 {
        self.read().0
    }

    fn utc(&self) -> DateTime<Utc> {
        self.read().1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_have_milliseconds_and_a_z() {
        let clock = ManualClock::at(DateTime::<Utc>::UNIX_EPOCH);
        clock.advance(Duration::from_millis(1_234_567));
        assert_eq!(rfc3339(clock.utc()), "1970-01-01T00:20:34.567Z");
        assert_eq!(clock.monotonic_ms(), 1_234_567);
    }

    #[test]
    fn the_machine_s_clock_never_goes_back() {
        let clock = SystemClock::start();
        let readings: Vec<u64> = (0..1000).map(|_| clock.monotonic_ms()).collect();
        assert!(readings.is_sorted());
    }
}
