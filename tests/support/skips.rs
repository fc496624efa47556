//! Tests that this host cannot run: named in a file that `tests/run` prints at its end. They never pass in silence.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;

/// Records that a test did not run. `here` is the path of an item inside the test's function.
pub fn skip(here: &str, why: &str) {
    let name = here.trim_end_matches("::here").trim_start_matches("it::");
    let line = format!("skipped: {name}: {why}\n");
    eprint!("{line}");
    let path =
        std::env::var_os("MISSION_TEST_SKIPS").map_or_else(|| super::servers::target().join("test-skips.txt"), PathBuf::from);
    let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
    file.write_all(line.as_bytes()).unwrap();
}
