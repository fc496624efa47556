//! SIGTERM and SIGINT: the first one asks a run to wind up, the second one ends the process there and then.

use std::io;

use nix::sys::signal::{SigHandler, Signal as Number};
use tokio::signal::unix::{Signal as Stream, SignalKind, signal};

/// A signal that asks us to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndSignal {
    /// SIGTERM.
    Terminate,
    /// SIGINT.
    Interrupt,
}

impl EndSignal {
    /// Its name, as the journal and people write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Terminate => "SIGTERM",
            Self::Interrupt => "SIGINT",
        }
    }

    fn number(self) -> Number {
        match self {
            Self::Terminate => Number::SIGTERM,
            Self::Interrupt => Number::SIGINT,
        }
    }
}

/// Both signals, caught.
#[derive(Debug)]
pub struct EndSignals {
    terminate: Stream,
    interrupt: Stream,
}

impl EndSignals {
    /// Catches both from here on; they no longer end the process by themselves. Needs a runtime with I/O.
    pub fn catch() -> io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Catches neither: what another test sends to this process is not meant for this one.
    #[cfg(test)]
    pub fn deaf() -> io::Result<Self> {
        let other = SignalKind::user_defined2();
        Ok(Self { terminate: signal(other)?, interrupt: signal(other)? })
    }

    /// Waits for the first of them, then hands both back to the kernel: the next one ends the process, however busy it is.
    /// Safe to drop and call again before it returned.
    pub async fn first(&mut self) -> EndSignal {
        let caught = tokio::select! {
            _ = self.terminate.recv() => EndSignal::Terminate,
            _ = self.interrupt.recv() => EndSignal::Interrupt,
        };
        hand_back(EndSignal::Terminate);
        hand_back(EndSignal::Interrupt);
        caught
    }
}

/// Ends this process by the signal that it caught, so that its parent sees how it ended. Returns only if that failed; then
/// the caller exits with 128 + [`exit_number`].
pub fn end_by(signal: EndSignal) {
    hand_back(signal);
    // A failure leaves the process as it is; the caller exits by number then.
    let _ = nix::sys::signal::raise(signal.number());
}

/// The number of the signal.
pub fn exit_number(signal: EndSignal) -> i32 {
    signal.number() as i32
}

/// Gives a signal its default action, and says which one it had.
#[allow(unsafe_code)]
fn hand_back(signal: EndSignal) -> Option<SigHandler> {
    // SAFETY: the default action is no function of ours, so nothing runs in a signal's context.
    unsafe { nix::sys::signal::signal(signal.number(), SigHandler::SigDfl) }.ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[tokio::test]
    async fn the_first_signal_is_told_and_the_next_one_is_the_kernel_s() {
        let mut signals = EndSignals::catch().unwrap();
        nix::sys::signal::raise(Number::SIGTERM).unwrap();
        assert_eq!(signals.first().await, EndSignal::Terminate);
        // What was in place before is told by putting it back: the default action, so a second signal would end us here.
        for signal in [EndSignal::Terminate, EndSignal::Interrupt] {
            assert!(matches!(hand_back(signal), Some(SigHandler::SigDfl)), "{}", signal.name());
        }
        assert_eq!((exit_number(EndSignal::Terminate), exit_number(EndSignal::Interrupt)), (15, 2));
    }
}
