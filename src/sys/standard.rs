//! Which of the standard streams were open when this process was started. The runtime opens `/dev/null` in the place of those
//! that were not, before `main` is entered, so it is looked at before the runtime starts.

use std::os::fd::RawFd;
use std::sync::atomic::{AtomicU8, Ordering};

/// One bit a stream that was closed.
static CLOSED: AtomicU8 = AtomicU8::new(0);

/// Called by the loader, on the only thread, before the runtime and `main`.
#[allow(unsafe_code)]
#[used]
// SAFETY: the loader calls what stands in this section once, with arguments that are not read; it makes three system calls that
// touch no memory, and needs nothing of the runtime.
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

#[allow(unsafe_code)]
extern "C" fn look() {
    let mut closed = 0;
    for number in 0..3_u8 {
        // SAFETY: F_GETFD touches no memory; on a number that is not open it only fails.
        if unsafe { libc::fcntl(RawFd::from(number), libc::F_GETFD) } == -1 {
            closed |= 1 << number;
        }
    }
    CLOSED.store(closed, Ordering::Relaxed);
}

/// Whether one of the descriptors 0 to 2 was closed when this process was started.
pub fn was_closed(number: RawFd) -> bool {
    // Named here, so that no linker leaves it out.
    std::hint::black_box(&LOOK);
    u32::try_from(number).is_ok_and(|number| CLOSED.load(Ordering::Relaxed).checked_shr(number).is_some_and(|bits| bits & 1 == 1))
}
