//! Removing runs: one that has ended for good, under its lock, whole or not at all.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use mission_contract::event::{Event, Outcome};
use mission_contract::log::Entry;

use super::list::{ListedRun, RunState};
use super::store::{LOG_FILE, META_FILE, is_run_id, take_lock};
use super::{JournalError, LogReader, ReadError, RunMeta, RunStore};
use crate::sys::files::sync_folder;

/// What stands before the name of a run that is being removed.
const ASIDE: &str = ".removing-";

/// Why a run is not removed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Kept {
    /// A process writes it.
    #[error("it is being written{}", .0.as_ref().map(|holder| format!(" by {holder}")).unwrap_or_default())]
    Running(Option<String>),
    /// It has not come to its end.
    #[error("it has not ended; it can be carried on")]
    Open,
    /// A person has not answered yet.
    #[error("it waits for an approval")]
    Waiting,
    /// A call was made, and what came of it is not known.
    #[error("it ended with a call in doubt: nobody knows whether that was carried out")]
    InDoubt,
    /// Its log cannot be read.
    #[error("{0}")]
    Unreadable(String),
    /// It is no run, or not known to be one.
    #[error("{0}")]
    Unknown(String),
}

impl RunStore {
    /// Why a run must not be removed; nothing when it may be.
    pub fn kept(&self, run: &ListedRun) -> Option<Kept> {
        match &run.state {
            RunState::Running(holder) => Some(Kept::Running(holder.as_ref().map(ToString::to_string))),
            RunState::Open => Some(Kept::Open),
            RunState::Unknown(problem) => Some(Kept::Unknown(problem.clone())),
            RunState::Ended(Outcome::AwaitingApproval) => Some(Kept::Waiting),
            RunState::Ended(Outcome::Incomplete) => {
                let log = self.run_folder(&run.run_id)?.join(LOG_FILE);
                unsettled(&log).unwrap_or_else(|error| Some(Kept::Unreadable(error.to_string())))
            }
            RunState::Ended(Outcome::Answered | Outcome::AnsweredWithCaveat | Outcome::BudgetExhausted) => None,
        }
    }

    /// Removes a run that has ended: it is moved aside under its lock first, so that it is there whole or not at all.
    ///
    /// # Errors
    /// When somebody holds it, it has not ended after all, or it cannot be moved. Files that stay behind once it was moved are
    /// removed by [`RunStore::sweep`].
    pub fn remove(&self, run_id: &str) -> Result<(), JournalError> {
        let Some(runs) = self.folder() else { return Err(JournalError::NotKept) };
        let folder = runs.join(run_id);
        let not_ended = || JournalError::NotARun { name: run_id.to_owned(), problem: "it has not ended".to_owned() };
        if !is_run_id(run_id) || !std::fs::symlink_metadata(&folder).is_ok_and(|facts| facts.is_dir()) {
            return Err(JournalError::NoSuchRun { run_id: run_id.to_owned(), path: runs.to_path_buf() });
        }
        let lock = take_lock(run_id, &folder)?;
        // Somebody may have carried it on before the lock was ours.
        let ended = RunMeta::read(&folder.join(META_FILE)).is_some_and(|meta| meta.outcome.is_some());
        if !ended || self.is_marked_open(run_id) {
            return Err(not_ended());
        }
        let aside = runs.join(format!("{ASIDE}{run_id}"));
        remove_all(&aside).map_err(|source| JournalError::removing(&aside, source))?;
        std::fs::rename(&folder, &aside).map_err(|source| JournalError::removing(&folder, source))?;
        sync_folder(runs).map_err(|source| JournalError::removing(runs, source))?;
        remove_all(&aside).map_err(|source| JournalError::removing(&aside, source))?;
        drop(lock);
        Ok(())
    }

    /// Removes what is left of runs whose removal was interrupted.
    ///
    /// # Errors
    /// When something cannot be removed.
    pub fn sweep(&self) -> Result<(), JournalError> {
        let Some(runs) = self.folder() else { return Err(JournalError::NotKept) };
        let entries = match std::fs::read_dir(runs) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            entries => entries.map_err(|source| JournalError::reading(runs, source))?,
        };
        for entry in entries {
            let entry = entry.map_err(|source| JournalError::reading(runs, source))?;
            if entry.file_name().to_str().and_then(|name| name.strip_prefix(ASIDE)).is_some_and(is_run_id) {
                remove_all(&entry.path()).map_err(|source| JournalError::removing(&entry.path(), source))?;
            }
        }
        Ok(())
    }
}

impl JournalError {
    fn removing(path: &Path, source: io::Error) -> Self {
        Self::Unreadable {
            path: path.to_path_buf(),
            problem: "something in it cannot be removed",
            fix: "remove it as the user that it belongs to",
            source,
        }
    }
}

/// Removes a folder with all that is in it, following no link. One that is not there is removed.
fn remove_all(folder: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// What of a run that was cut short somebody has still to settle.
fn unsettled(log: &Path) -> Result<Option<Kept>, ReadError> {
    let (mut calls, mut gates) = (BTreeSet::new(), BTreeSet::new());
    let mut intents = 0_u64;
    for line in LogReader::open(log)? {
        match line?.entry {
            Entry::Intent(_) => {
                intents = intents.saturating_add(1);
                calls.insert(intents);
            }
            Entry::Result(result) => drop(calls.remove(&result.of)),
            Entry::Decision(decision) => drop(gates.remove(&decision.approval_id)),
            Entry::Record(record) if record.get().starts_with("{\"event\":\"gate_requested\"") => {
                if let Ok(Event::GateRequested(gate)) = serde_json::from_str(record.get()) {
                    gates.extend(gate.approval_id);
                }
            }
            _ => {}
        }
    }
    Ok(match (calls.is_empty(), gates.is_empty()) {
        (false, _) => Some(Kept::InDoubt),
        (true, false) => Some(Kept::Waiting),
        (true, true) => None,
    })
}

#[cfg(test)]
#[path = "prune_tests.rs"]
mod tests;
