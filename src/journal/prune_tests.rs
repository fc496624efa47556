#![allow(clippy::unwrap_used)]

use std::fs;

use mission_contract::digest;
use mission_contract::event::GateRequested;
use mission_contract::line::{Envelope, LineWriter};
use mission_contract::log::{CallResult, Decision, Intent};

use super::*;
use crate::journal::store::OPEN_FOLDER;
use crate::sys::lock::{Holder, Lock};

struct Home {
    _folder: tempfile::TempDir,
    store: RunStore,
}

impl Home {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = RunStore::of(None, folder.path());
        fs::create_dir_all(store.folder().unwrap().join(OPEN_FOLDER)).unwrap();
        Self { _folder: folder, store }
    }

    fn run(&self, run_id: &str, outcome: Option<Outcome>, entries: &[Entry]) -> ListedRun {
        let folder = self.store.run_folder(run_id).unwrap();
        fs::create_dir_all(&folder).unwrap();
        let meta = RunMeta { run_id: run_id.into(), outcome, ..RunMeta::default() };
        fs::write(folder.join(META_FILE), serde_json::to_vec(&meta).unwrap()).unwrap();
        let mut writer = LineWriter::new(digest::ZERO.to_owned());
        let mut bytes = Vec::new();
        for (seq, entry) in (1..).zip(entries) {
            writer.line(Envelope { seq, group: seq, at: "", ms: 0, branch: None }, entry, &mut bytes).unwrap();
        }
        fs::write(folder.join(LOG_FILE), bytes).unwrap();
        self.store.listed(run_id)
    }

    fn left(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.store.folder().unwrap())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

#[test]
fn a_run_that_has_ended_is_removed_with_all_that_is_its() {
    let home = Home::new();
    let run = home.run("run_1", Some(Outcome::Answered), &[]);
    fs::write(home.store.run_folder("run_1").unwrap().join("log.torn-3"), "x").unwrap();
    home.run("run_2", Some(Outcome::Answered), &[]);
    assert_eq!(home.store.kept(&run), None);
    home.store.remove("run_1").unwrap();
    assert_eq!(home.left(), ["open", "run_2"]);
    assert!(matches!(home.store.remove("run_1"), Err(JournalError::NoSuchRun { .. })));
    assert!(matches!(home.store.remove("../runs"), Err(JournalError::NoSuchRun { .. })));
}

#[test]
fn what_is_held_or_has_not_ended_stays_even_when_it_is_asked_for() {
    let home = Home::new();
    home.run("run_1", Some(Outcome::Answered), &[]);
    let mut lock = Lock::take(&home.store.run_folder("run_1").unwrap().join("lock")).unwrap();
    lock.sign(&Holder::this_process(1)).unwrap();
    assert!(matches!(home.store.remove("run_1"), Err(JournalError::Held { .. })));
    drop(lock);
    fs::write(home.store.folder().unwrap().join(OPEN_FOLDER).join("run_1"), "").unwrap();
    assert_eq!(home.store.kept(&home.store.listed("run_1")), Some(Kept::Open));
    assert!(matches!(home.store.remove("run_1"), Err(JournalError::NotARun { .. })));
    let open = home.run("run_2", None, &[]);
    assert_eq!(home.store.kept(&open), Some(Kept::Open));
    assert!(home.store.remove("run_2").is_err());
    let running =
        ListedRun { state: RunState::Running(Some(Holder { pid: 7, host: "here".into(), ..Holder::default() })), ..open };
    assert_eq!(home.store.kept(&running).unwrap().to_string(), "it is being written by process 7 on here");
    assert_eq!(home.left(), ["open", "run_1", "run_2"]);
}

#[test]
fn what_somebody_has_still_to_settle_stays() {
    let home = Home::new();
    let gate = GateRequested { approval_id: Some("ap_1".into()), ..GateRequested::default() };
    let gate = Entry::Record(serde_json::value::to_raw_value(&Event::GateRequested(gate)).unwrap());
    let decided = Entry::Decision(Decision { approval_id: "ap_1".into(), ..Decision::default() });
    let intent = Entry::Intent(Intent::default());
    let result = |of| Entry::Result(CallResult { of, ..CallResult::default() });
    let kept = |entries: &[Entry]| home.store.kept(&home.run("run_1", Some(Outcome::Incomplete), entries));
    assert_eq!(kept(&[]), None);
    assert_eq!(kept(&[intent.clone(), result(1)]), None);
    assert_eq!(kept(&[intent.clone(), result(1), intent.clone()]), Some(Kept::InDoubt));
    assert_eq!(kept(std::slice::from_ref(&gate)), Some(Kept::Waiting));
    assert_eq!(kept(&[gate, decided]), None);
    fs::remove_file(home.store.run_folder("run_1").unwrap().join(LOG_FILE)).unwrap();
    assert!(matches!(home.store.kept(&home.store.listed("run_1")), Some(Kept::Unreadable(_))));
    let waiting = home.run("run_2", Some(Outcome::AwaitingApproval), &[]);
    assert_eq!(home.store.kept(&waiting), Some(Kept::Waiting));
}

#[test]
fn a_link_is_never_followed() {
    let home = Home::new();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("precious"), "x").unwrap();
    let link = home.store.run_folder("run_link").unwrap();
    std::os::unix::fs::symlink(outside.path(), &link).unwrap();
    assert!(matches!(home.store.kept(&home.store.listed("run_link")), Some(Kept::Unknown(_))));
    assert!(home.store.remove("run_link").is_err());
    // Neither is one inside a run.
    home.run("run_1", Some(Outcome::Answered), &[]);
    std::os::unix::fs::symlink(outside.path(), home.store.run_folder("run_1").unwrap().join("inside")).unwrap();
    home.store.remove("run_1").unwrap();
    assert!(outside.path().join("precious").exists() && link.is_symlink());
}

#[test]
fn a_removal_that_was_interrupted_is_completed() {
    let home = Home::new();
    fs::create_dir_all(home.store.folder().unwrap().join(".removing-run_1/deep")).unwrap();
    fs::create_dir_all(home.store.folder().unwrap().join(".removing-else")).unwrap();
    home.run("run_1", Some(Outcome::Answered), &[]);
    home.store.sweep().unwrap();
    assert_eq!(home.left(), [".removing-else", "open", "run_1"], "what is not ours stays");
    fs::create_dir_all(home.store.folder().unwrap().join(".removing-run_1/deep")).unwrap();
    home.store.remove("run_1").unwrap();
    assert_eq!(home.left(), [".removing-else", "open"]);
}
