//! SIGTERM, SIGINT and SIGHUP: the first one asks a run to wind up, the second one ends the process there and then.

use std::io::{self, Read};
use std::os::fd::IntoRawFd;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal as Number};
use tokio::signal::unix::{Signal as Stream, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::limits;

/// A signal that asks us to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndSignal {
    /// SIGTERM.
    Terminate,
    /// SIGINT.
    Interrupt,
    /// SIGHUP: the terminal is gone.
    HangUp,
}

impl EndSignal {
    /// Its name, as the journal and people write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Terminate => "SIGTERM",
            Self::Interrupt => "SIGINT",
            Self::HangUp => "SIGHUP",
        }
    }

    fn number(self) -> Number {
        match self {
            Self::Terminate => Number::SIGTERM,
            Self::Interrupt => Number::SIGINT,
            Self::HangUp => Number::SIGHUP,
        }
    }
}

/// What whoever started us may have left behind in this process, put right. To be called first thing in `main`.
///
/// Blocked signals would never arrive, so those that wind a run up are let through. A file that would grow past the limit
/// (`ulimit -f`) is a write that fails, as a full disk is, and no signal.
pub fn prepare() {
    let mut ends = SigSet::empty();
    for signal in [EndSignal::Terminate, EndSignal::Interrupt, EndSignal::HangUp] {
        ends.add(signal.number());
    }
    // Neither can fail with signals that exist.
    let _ = ends.thread_unblock();
    let _ = set(Number::SIGXFSZ, SigHandler::SigIgn);
}

/// Gives a signal back its default action, for a child that must not inherit ours.
pub fn restore(signal: Number) {
    let _ = set(signal, SigHandler::SigDfl);
}

/// The signals that end a run, caught.
#[derive(Debug)]
pub struct EndSignals {
    terminate: Stream,
    /// Nothing where whoever started us ignores it: `nohup`, or a job in the background of a script.
    interrupt: Option<Stream>,
    hang_up: Option<Stream>,
}

impl EndSignals {
    /// Catches them from here on; they no longer end the process by themselves. SIGINT and SIGHUP stay ignored where they
    /// were. Needs a runtime with I/O.
    pub fn catch() -> io::Result<Self> {
        let unless_ignored = |number, kind| if is_ignored(number) { Ok(None) } else { signal(kind).map(Some) };
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: unless_ignored(Number::SIGINT, SignalKind::interrupt())?,
            hang_up: unless_ignored(Number::SIGHUP, SignalKind::hangup())?,
        })
    }

    /// Catches neither: what another test sends to this process is not meant for this one.
    #[cfg(test)]
    pub fn deaf() -> io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::user_defined2())?, interrupt: None, hang_up: None })
    }

    /// Waits for the first of them, then hands all back to the kernel: the next one ends the process, however busy it is.
    /// Safe to drop and call again before it returned.
    pub async fn first(&mut self) -> EndSignal {
        let Self { terminate, interrupt, hang_up } = self;
        let caught = tokio::select! {
            _ = terminate.recv() => EndSignal::Terminate,
            () = received(interrupt) => EndSignal::Interrupt,
            () = received(hang_up) => EndSignal::HangUp,
        };
        hand_back(EndSignal::Terminate);
        if interrupt.is_some() {
            hand_back(EndSignal::Interrupt);
        }
        if hang_up.is_some() {
            hand_back(EndSignal::HangUp);
        }
        caught
    }
}

/// Where the second signal leaves its number, and the descriptor by which it wakes whoever waits for it.
static CAME: AtomicI32 = AtomicI32::new(0);
static WAKES: AtomicI32 = AtomicI32::new(-1);

/// Runs in the signal's own context: only what is async-signal-safe stands here.
extern "C" fn note_second(number: libc::c_int) {
    CAME.store(number, Ordering::SeqCst);
    wake(WAKES.load(Ordering::SeqCst));
}

#[allow(unsafe_code)]
fn wake(descriptor: libc::c_int) {
    // SAFETY: write is async-signal-safe; the byte lives on this stack, and the descriptor is never closed once it stands there.
    let _ = unsafe { libc::write(descriptor, [0_u8].as_ptr().cast(), 1) };
}

/// The second signal, caught once the first one came: it is told, and the process ends by it a moment later, however busy it is. The
/// third one is the kernel's.
#[derive(Debug)]
pub struct Again {
    came: CancellationToken,
}

impl Again {
    /// Catches the next signal. Where the system gives no pipe or no thread, it stays the kernel's and ends the process at once.
    pub fn catch() -> Self {
        let came = CancellationToken::new();
        if let Ok((reader, writer)) = io::pipe() {
            let token = came.clone();
            let thread = std::thread::Builder::new().name("signals".to_owned()).spawn(move || end_after(reader, &token));
            if thread.is_ok() {
                WAKES.store(writer.into_raw_fd(), Ordering::SeqCst);
                for signal in [EndSignal::Terminate, EndSignal::Interrupt, EndSignal::HangUp] {
                    if !is_ignored(signal.number()) {
                        catch_once(signal.number());
                    }
                }
            }
        }
        Self { came }
    }

    /// Resolves when it comes.
    pub async fn came(&self) {
        self.came.cancelled().await;
    }
}

/// The same where the first one may not have come yet.
pub async fn came(again: &Option<Again>) {
    match again {
        Some(again) => again.came().await,
        None => std::future::pending().await,
    }
}

fn end_after(mut reader: io::PipeReader, came: &CancellationToken) {
    if reader.read_exact(&mut [0]).is_err() {
        return;
    }
    came.cancel();
    std::thread::sleep(Duration::from_millis(limits::SECOND_SIGNAL_MS));
    if let Ok(number) = Number::try_from(CAME.load(Ordering::SeqCst)) {
        let _ = set(number, SigHandler::SigDfl);
        // To the process, not to this thread: it ends either way.
        let _ = nix::sys::signal::kill(nix::unistd::getpid(), number);
    }
}

/// Notes a signal the next time it comes; after that it has its default action again.
#[allow(unsafe_code)]
fn catch_once(number: Number) {
    let flags = SaFlags::SA_RESETHAND | SaFlags::SA_RESTART;
    let action = SigAction::new(SigHandler::Handler(note_second), flags, SigSet::empty());
    // SAFETY: the handler does only what is async-signal-safe: two atomics and a write.
    let _ = unsafe { nix::sys::signal::sigaction(number, &action) };
}

async fn received(stream: &mut Option<Stream>) {
    match stream {
        Some(stream) => drop(stream.recv().await),
        None => std::future::pending().await,
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
fn hand_back(signal: EndSignal) -> Option<SigHandler> {
    set(signal.number(), SigHandler::SigDfl)
}

/// Whether a signal is ignored.
#[allow(unsafe_code)]
fn is_ignored(signal: Number) -> bool {
    let mut action = std::mem::MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: without a new action the call only writes the present one, whole, to the place that it is given.
    let asked = unsafe { libc::sigaction(signal as libc::c_int, std::ptr::null(), action.as_mut_ptr()) };
    // SAFETY: the call returned 0, so the whole structure was written.
    asked == 0 && unsafe { action.assume_init() }.sa_sigaction == libc::SIG_IGN
}

/// Sets what a signal does, and says what it did.
#[allow(unsafe_code)]
fn set(signal: Number, handler: SigHandler) -> Option<SigHandler> {
    // SAFETY: callers give the default action or none: no function of ours runs in a signal's context.
    unsafe { nix::sys::signal::signal(signal, handler) }.ok()
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
