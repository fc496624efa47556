#![allow(clippy::unwrap_used)]

use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::sys::clock::ManualClock;

fn clock() -> ManualClock {
    ManualClock::at("2026-12-01T02:03:04Z".parse().unwrap())
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn what_mission_runs_says() {
    let here = Path::new("/here");
    for blank in [None, Some(""), Some("  ")] {
        assert_eq!(RunStore::of(blank, here).folder(), Some(Path::new("/here/.mission/runs")));
    }
    for none in ["none", "OFF", " None "] {
        assert!(!RunStore::of(Some(none), here).is_kept());
    }
    assert_eq!(RunStore::of(Some("kept"), here).folder(), Some(Path::new("/here/kept")));
    assert_eq!(RunStore::of(Some("/there"), here).folder(), Some(Path::new("/there")));
}

#[test]
fn an_id_has_the_moment_and_a_number() {
    let folder = tempfile::tempdir().unwrap();
    let store = RunStore::of(None, folder.path());
    let run_id = store.mint(&clock()).unwrap();
    assert!(is_run_id(&run_id));
    let number = run_id.strip_prefix("run_20261201T020304-").unwrap();
    assert!(number.len() == 8 && number.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')));
    assert_ne!(store.mint(&clock()).unwrap(), run_id);
    for wrong in ["run_", "run_a-", "run_a-b-c", "run_../x", "walk_a", "run_a/b"] {
        assert!(!is_run_id(wrong), "{wrong}");
    }
}

#[test]
fn a_run_is_made_private_and_marked_open() {
    let folder = tempfile::tempdir().unwrap();
    let store = RunStore::of(None, folder.path());
    store.check().unwrap();
    assert!(names(folder.path()).is_empty(), "looking makes nothing");
    let held = store.create("run_1-1", &clock()).unwrap();
    let state = folder.path().join(".mission");
    let runs = state.join("runs");
    assert_eq!(names(&state), [".gitignore", "runs"]);
    assert_eq!(std::fs::read_to_string(state.join(".gitignore")).unwrap(), "*\n");
    assert_eq!(names(&runs), ["open", "run_1-1"]);
    assert_eq!(names(&runs.join("open")), ["run_1-1"]);
    assert_eq!(names(&runs.join("run_1-1")), ["lock", "log.ndjson"]);
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    for path in [&state, &runs, &runs.join("open"), &runs.join("run_1-1")] {
        assert_eq!(mode(path), 0o700, "{path:?}");
    }
    for name in ["lock", "log.ndjson"] {
        assert_eq!(mode(&runs.join("run_1-1").join(name)), 0o600);
    }
    for synced in [folder.path(), &state, &runs, &runs.join("open"), &runs.join("run_1-1")] {
        assert!(held.unsynced.iter().any(|folder| folder == synced), "{synced:?} is not synced");
    }
}

#[test]
fn a_taken_id_is_replaced_by_another() {
    let folder = tempfile::tempdir().unwrap();
    let store = RunStore::of(Some("kept"), folder.path());
    let first = store.create("run_1-1", &clock()).unwrap();
    let second = store.create("run_1-1", &clock()).unwrap();
    assert_eq!(first.run_id, "run_1-1");
    assert!(second.run_id.starts_with("run_20261201T020304-"), "{}", second.run_id);
    assert!(!folder.path().join("kept/.gitignore").exists(), "a named folder is not ours to ignore");
}

#[test]
fn a_second_writer_is_refused_naming_the_first() {
    let folder = tempfile::tempdir().unwrap();
    let store = RunStore::of(None, folder.path());
    let held = store.create("run_1-1", &clock()).unwrap();
    let refusal = store.hold("run_1-1").unwrap_err();
    assert!(matches!(refusal, JournalError::Held { .. }));
    let wanted = format!("run run_1-1 is being written by process {} on ", std::process::id());
    assert!(refusal.to_string().starts_with(&wanted), "{refusal}");
    drop(held);
    store.hold("run_1-1").unwrap();
}

#[test]
fn a_run_that_is_not_there_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let store = RunStore::of(None, folder.path());
    for run_id in ["run_1-1", "../../etc", ""] {
        let refusal = store.hold(run_id).unwrap_err();
        assert!(matches!(&refusal, JournalError::NoSuchRun { .. }), "{refusal}");
        assert!(refusal.to_string().starts_with(&format!("there is no run {run_id} in ")));
    }
    assert!(matches!(RunStore::of(Some("none"), folder.path()).hold("run_1-1"), Err(JournalError::NotKept)));
    assert!(names(folder.path()).is_empty());
}

#[test]
fn what_is_in_the_way_is_named_and_nothing_is_left_behind() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), "").unwrap();
    for word in ["file", "file/below"] {
        let store = RunStore::of(Some(word), folder.path());
        for refusal in [store.check().unwrap_err(), store.create("run_1-1", &clock()).unwrap_err()] {
            let text = refusal.to_string();
            assert!(text.contains("file") && text.contains("something there is not a folder"), "{text}");
        }
    }
    assert!(matches!(
        RunStore::of(Some("/proc/none"), folder.path()).create("run_1-1", &clock()),
        Err(JournalError::Place { .. })
    ));

    // Half of a run is made when it turns out that the rest cannot be.
    let store = RunStore::of(None, folder.path());
    let runs = folder.path().join(".mission/runs");
    std::fs::create_dir_all(runs.join("open/run_1-1")).unwrap();
    store.create("run_1-1", &clock()).unwrap_err();
    assert_eq!(names(&runs), ["open"]);
}

#[test]
fn too_many_open_files_are_not_the_folder_s_fault() {
    let error = JournalError::place(Path::new("runs"), io::Error::from_raw_os_error(libc::EMFILE));
    assert!(error.to_string().contains("raise the limit on open files"), "{error}");
}

#[test]
fn a_run_that_is_not_kept_makes_no_folder() {
    let folder = tempfile::tempdir().unwrap();
    let store = RunStore::of(Some("none"), folder.path());
    store.check().unwrap();
    let held = store.create("run_1-1", &clock()).unwrap();
    assert!(held.place.is_none() && store.run_folder("run_1-1").is_none());
    assert!(names(folder.path()).is_empty());
}
