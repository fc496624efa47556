//! What runs there are and how each stands: from the facts beside a log, the marks of runs that have not ended, and the locks. No
//! log is read.

use std::io;

use mission_contract::event::Outcome;

use super::find::look;
use super::store::{META_FILE, OPEN_FOLDER, is_run_id};
use super::{JournalError, RunMeta, RunStore};
use crate::engine::run::is_resumable;
use crate::sys::lock::{Holder, Look};

/// A run as a list knows it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ListedRun {
    /// The name of its folder.
    pub run_id: String,
    /// How it stands.
    pub state: RunState,
    /// What is known of it; absent when its facts are missing or cannot be read.
    pub meta: Option<RunMeta>,
}

/// How a run stands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum RunState {
    /// A process writes it: the one that holds its lock, when that has signed.
    Running(Option<Holder>),
    /// It has not ended, and nobody writes it: its process was killed.
    #[default]
    Open,
    /// Its last stretch came to its end.
    Ended(Outcome),
    /// It cannot be known, and why; or it is no run.
    Unknown(String),
}

impl ListedRun {
    /// Whether it can be carried on: it has no end, or one that is none for good.
    pub fn is_resumable(&self) -> bool {
        match self.state {
            RunState::Open => true,
            RunState::Ended(outcome) => is_resumable(outcome),
            RunState::Running(_) | RunState::Unknown(_) => false,
        }
    }
}

impl RunStore {
    /// The names of all runs here, the newest first.
    ///
    /// # Errors
    /// When none are kept, or their folder cannot be read. One that is not there holds none.
    pub fn names(&self) -> Result<Vec<String>, JournalError> {
        let Some(runs) = self.folder() else { return Err(JournalError::NotKept) };
        let entries = match std::fs::read_dir(runs) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(|source| JournalError::reading(runs, source))?,
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|source| JournalError::reading(runs, source))?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            if is_run_id(&name) {
                // The name says when, unless somebody chose it.
                let begun = self.meta(&name).map(|meta| meta.created_at).unwrap_or_default();
                names.push((begun, name));
            }
        }
        names.sort_unstable_by(|left, right| right.cmp(left));
        Ok(names.into_iter().map(|(_, name)| name).collect())
    }

    /// How a run stands.
    pub fn listed(&self, run_id: &str) -> ListedRun {
        let run_id = run_id.to_owned();
        let unknown = |run_id, problem: String| ListedRun { run_id, state: RunState::Unknown(problem), meta: None };
        let Some(folder) = self.run_folder(&run_id) else { return unknown(run_id, JournalError::NotKept.to_string()) };
        match std::fs::symlink_metadata(&folder) {
            Ok(facts) if facts.is_symlink() => return unknown(run_id, "it is a symbolic link".to_owned()),
            Ok(facts) if !facts.is_dir() => return unknown(run_id, "it is no folder".to_owned()),
            Ok(_) => {}
            Err(error) => return unknown(run_id, format!("it cannot be looked at ({error})")),
        }
        let meta = RunMeta::read(&folder.join(META_FILE));
        let outcome = meta.as_ref().and_then(|meta| meta.outcome);
        let state = match outcome {
            Some(outcome) if !self.is_marked_open(&run_id) => RunState::Ended(outcome),
            _ => match look(&folder) {
                Ok(Look::Held(holder)) => RunState::Running(holder),
                Ok(Look::Free) if meta.is_some() || self.is_marked_open(&run_id) => RunState::Open,
                Ok(Look::Free) => RunState::Unknown(format!("its {META_FILE} is missing or cannot be read")),
                Err(error) => RunState::Unknown(format!("its lock cannot be looked at ({error})")),
            },
        };
        ListedRun { run_id, state, meta }
    }

    /// Whether a run stands among those that have begun and not ended.
    pub(super) fn is_marked_open(&self, run_id: &str) -> bool {
        self.folder().is_some_and(|runs| std::fs::symlink_metadata(runs.join(OPEN_FOLDER).join(run_id)).is_ok())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::fs;

    use super::*;
    use crate::sys::lock::Lock;

    fn run(store: &RunStore, run_id: &str, created_at: &str, outcome: Option<Outcome>) {
        let folder = store.run_folder(run_id).unwrap();
        fs::create_dir_all(&folder).unwrap();
        fs::create_dir_all(store.folder().unwrap().join(OPEN_FOLDER)).unwrap();
        let meta = RunMeta { run_id: run_id.into(), created_at: created_at.into(), outcome, ..RunMeta::default() };
        fs::write(folder.join(META_FILE), serde_json::to_vec(&meta).unwrap()).unwrap();
        if outcome.is_none() {
            fs::write(store.folder().unwrap().join(OPEN_FOLDER).join(run_id), "").unwrap();
        }
    }

    #[test]
    fn the_newest_stands_first_and_what_is_no_run_stands_nowhere() {
        let home = tempfile::tempdir().unwrap();
        let store = RunStore::of(None, home.path());
        assert_eq!(store.names().unwrap(), Vec::<String>::new());
        run(&store, "run_a", "2026-12-03", Some(Outcome::Answered));
        run(&store, "run_20261202T000000-00000000", "2026-12-02", None);
        run(&store, "run_c", "2026-12-01", Some(Outcome::Answered));
        fs::create_dir(store.folder().unwrap().join("something else")).unwrap();
        fs::write(store.folder().unwrap().join("note.txt"), "").unwrap();
        assert_eq!(store.names().unwrap(), ["run_a", "run_20261202T000000-00000000", "run_c"]);
        assert!(matches!(RunStore::of(Some("none"), home.path()).names(), Err(JournalError::NotKept)));
        fs::write(home.path().join("file"), "").unwrap();
        assert!(RunStore::of(Some("file"), home.path()).names().is_err());
    }

    #[test]
    fn a_state_is_told_from_the_facts_the_mark_and_the_lock() {
        let home = tempfile::tempdir().unwrap();
        let store = RunStore::of(None, home.path());
        run(&store, "run_1", "", Some(Outcome::Answered));
        run(&store, "run_2", "", None);
        run(&store, "run_3", "", Some(Outcome::Incomplete));
        let state = |run_id: &str| store.listed(run_id).state;
        assert_eq!(state("run_1"), RunState::Ended(Outcome::Answered));
        assert_eq!(state("run_2"), RunState::Open);
        assert!(!store.listed("run_1").is_resumable() && store.listed("run_2").is_resumable());
        assert!(store.listed("run_3").is_resumable());
        let mut lock = Lock::take(&store.run_folder("run_2").unwrap().join("lock")).unwrap();
        assert_eq!(state("run_2"), RunState::Running(None));
        lock.sign(&Holder::this_process(1)).unwrap();
        assert_eq!(state("run_2"), RunState::Running(Some(Holder::this_process(1))));
        assert!(!store.listed("run_2").is_resumable());
        // A run that is carried on has an outcome of before, and a mark.
        fs::write(store.folder().unwrap().join(OPEN_FOLDER).join("run_3"), "").unwrap();
        assert_eq!(state("run_3"), RunState::Open);
    }

    #[test]
    fn what_cannot_be_known_says_why() {
        let home = tempfile::tempdir().unwrap();
        let store = RunStore::of(None, home.path());
        let runs = store.folder().unwrap();
        fs::create_dir_all(runs.join("run_foreign")).unwrap();
        fs::create_dir_all(runs.join("run_garbage")).unwrap();
        fs::write(runs.join("run_garbage/meta.json"), "\0[").unwrap();
        fs::write(runs.join("run_file"), "").unwrap();
        std::os::unix::fs::symlink("/etc", runs.join("run_link")).unwrap();
        fs::create_dir_all(runs.join("run_pipe")).unwrap();
        nix::unistd::mkfifo(&runs.join("run_pipe/meta.json"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let said: Vec<String> =
            store.names().unwrap().iter().map(|name| format!("{name}: {:?}", store.listed(name).state)).collect();
        insta::assert_snapshot!(said.join("\n"), @r#"
        run_pipe: Unknown("its meta.json is missing or cannot be read")
        run_link: Unknown("it is a symbolic link")
        run_garbage: Unknown("its meta.json is missing or cannot be read")
        run_foreign: Unknown("its meta.json is missing or cannot be read")
        run_file: Unknown("it is no folder")
        "#);
    }
}
