//! Tables of cases: all are tried, several at once, and all that fail are named.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many cases are tried at once: most of the time they wait for processes.
const AT_ONCE: usize = 4;

/// Tries every case of a table.
#[track_caller]
pub fn each<Case: Sync>(table: &[(&str, Case)], check: impl Fn(&Case) + Sync) {
    assert!(!table.is_empty(), "a table without cases checks nothing");
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE.min(table.len()) {
            scope.spawn(|| {
                while let Some((name, case)) = table.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if catch_unwind(AssertUnwindSafe(|| check(case))).is_err() {
                        eprintln!("== the case `{name}` failed");
                        failed.lock().unwrap().push(*name);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "{} of {} cases failed: {failed:?}", failed.len(), table.len());
}
