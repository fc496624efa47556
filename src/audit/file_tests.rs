#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::os::unix::fs::PermissionsExt;

use super::super::{is_audit_file, verify};
use super::*;
use crate::sys::clock::SystemClock;

fn clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock::start())
}

fn open(path: &Path) -> Result<AuditFile, AuditError> {
    AuditFile::open(Place::File(path.to_owned()), clock()).map(Option::unwrap)
}

fn line(tool: &str) -> AuditLine {
    AuditLine { tool_name: tool.to_owned(), ..AuditLine::default() }
}

#[test]
fn lines_are_chained_over_openings_and_whoever_writes_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/audit.jsonl");
    let (mut one, mut two) = (open(&path).unwrap(), open(&path).unwrap());
    for number in 0..5 {
        one.append(line(&format!("one{number}"))).unwrap();
        two.append(line(&format!("two{number}"))).unwrap();
        two.append(line("again")).unwrap();
    }
    one.close().unwrap();
    two.close().unwrap();
    let mut three = open(&path).unwrap();
    three.append(line("three")).unwrap();
    three.close().unwrap();
    let verdict = verify(&path, None).unwrap();
    assert_eq!((verdict.lines, verdict.fault.is_none(), verdict.is_cut), (16, true, false));
    assert!(!verify(&path, Some(&verdict.head)).unwrap().is_cut && verify(&path, Some(&"ab".repeat(32))).unwrap().is_cut);
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(is_audit_file(&path));
    // A line changed, taken out, or cut is seen.
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let fault_of = |text: String| {
        std::fs::write(&path, text).unwrap();
        verify(&path, None).unwrap().fault.map(|(at, _)| at)
    };
    assert_eq!(fault_of(text.replace("one3", "one9")), Some(10));
    assert_eq!(fault_of([&lines[..3], &lines[4..]].concat().concat()), Some(4));
    assert_eq!(fault_of(text.strip_suffix("\"}\n").unwrap().to_owned()), Some(16));
}

#[test]
fn a_line_that_a_crash_cut_is_moved_aside_and_what_is_no_audit_file_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let mut file = open(&path).unwrap();
    file.append(line("one")).unwrap();
    file.close().unwrap();
    let whole = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, format!("{whole}{{\"seq\":2,\"time")).unwrap();
    let mut file = open(&path).unwrap();
    file.append(line("two")).unwrap();
    file.close().unwrap();
    assert_eq!(verify(&path, None).unwrap().lines, 2);
    assert_eq!(std::fs::read_to_string(folder.path().join("audit.jsonl.torn-2")).unwrap(), "{\"seq\":2,\"time");
    // One that holds only that.
    std::fs::write(&path, "{\"seq\":1").unwrap();
    open(&path).unwrap().close().unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"");
    for foreign in [
        "a letter to somebody\n".to_owned(),
        format!("{whole}and more\n"),
        format!("{}\n", "x".repeat(300_000)),
        "x".repeat(300_000),
    ] {
        std::fs::write(&path, &foreign).unwrap();
        let refused = open(&path).err().unwrap().to_string();
        assert!(refused.contains("does not end like an audit file") && refused.contains("MISSION_AUDIT"), "{refused}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), foreign);
    }
    assert!(open(folder.path()).is_err() && open(Path::new("/dev/null")).is_err());
}

#[test]
fn a_file_that_is_gone_takes_no_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit.jsonl");
    let mut file = open(&path).unwrap();
    file.append(line("one")).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert!(file.append(line("two")).unwrap_err().to_string().contains("it was removed"));
    open(&path).unwrap().discard();
    assert!(!path.exists(), "a new one that holds nothing is removed again");
}

#[test]
fn a_place_is_a_new_file_or_a_named_one_or_none() {
    let folder = tempfile::tempdir().unwrap();
    let of = |word: Option<&str>| Place::of(word, folder.path());
    assert_eq!((of(Some("None")), of(Some(" off "))), (Place::Nowhere, Place::Nowhere));
    assert_eq!(of(Some("a.jsonl")), Place::File(folder.path().join("a.jsonl")));
    let one = AuditFile::open(of(None), clock()).unwrap().unwrap();
    let two = AuditFile::open(of(Some(" ")), clock()).unwrap().unwrap();
    assert_ne!(one.path(), two.path());
    assert!(one.path().starts_with(folder.path().join(".mission/audit")));
    assert!(folder.path().join(".mission/.gitignore").exists());
}
