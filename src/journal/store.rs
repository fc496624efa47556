//! Where runs live: one folder a run, 0700, its files 0600; made whole or not at all.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};

use super::{JournalError, LogReader, ReadError, RunMeta};
use crate::limits;
use crate::sys::clock::Clock;
use crate::sys::files::{create_file, create_folder, create_folders, ignore_all, random};
use crate::sys::lock::{Holder, Lock, LockError};

/// The state folder of a working directory.
const STATE_FOLDER: &str = ".mission";
/// The log of a run, in its folder.
pub(super) const LOG_FILE: &str = "log.ndjson";
/// Its lock.
pub(super) const LOCK_FILE: &str = "lock";
/// Its facts for lists.
pub(super) const META_FILE: &str = "meta.json";
/// Among the runs: one empty file for each run that has begun and not ended.
pub(super) const OPEN_FOLDER: &str = "open";

/// Where runs are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunStore {
    place: Place,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    Folder {
        /// Holds one folder a run.
        runs: PathBuf,
        /// The state folder above it, where it is ours.
        state: Option<PathBuf>,
    },
    Nowhere,
}

impl RunStore {
    /// What `MISSION_RUNS` says: a folder; `none` or `off` for none; unset or blank for `.mission/runs` in `folder`, the
    /// working directory.
    pub fn of(word: Option<&str>, folder: &Path) -> Self {
        let word = word.map(str::trim).unwrap_or_default();
        let place = match word.to_ascii_lowercase().as_str() {
            "" => {
                let state = folder.join(STATE_FOLDER);
                Place::Folder { runs: state.join("runs"), state: Some(state) }
            }
            "none" | "off" => Place::Nowhere,
            _ => Place::Folder { runs: folder.join(word), state: None },
        };
        Self { place }
    }

    /// No place: runs are not kept.
    pub fn nowhere() -> Self {
        Self { place: Place::Nowhere }
    }

    /// Whether a run leaves a log behind.
    pub fn is_kept(&self) -> bool {
        self.place != Place::Nowhere
    }

    /// The folder that holds the runs; nothing where none are kept.
    pub fn folder(&self) -> Option<&Path> {
        match &self.place {
            Place::Folder { runs, .. } => Some(runs),
            Place::Nowhere => None,
        }
    }

    /// The folder of a run; nothing where none are kept.
    pub fn run_folder(&self, run_id: &str) -> Option<PathBuf> {
        Some(self.folder()?.join(run_id))
    }

    /// What a list shows of a run; nothing when there is no such run, or its file cannot be read.
    pub fn meta(&self, run_id: &str) -> Option<RunMeta> {
        RunMeta::read(&self.run_folder(run_id)?.join(META_FILE))
    }

    /// Looks whether a run could be made here, and makes nothing: a refusal at the door leaves no trace.
    ///
    /// # Errors
    /// What is in the way.
    pub fn check(&self) -> Result<(), JournalError> {
        let Some(runs) = self.folder() else { return Ok(()) };
        for path in runs.ancestors() {
            let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
            match std::fs::metadata(path) {
                Ok(facts) if facts.is_dir() => {
                    access(path, AccessFlags::W_OK | AccessFlags::X_OK)
                        .map_err(|errno| JournalError::place(path, errno.into()))?;
                    // A folder is opened to be synced.
                    return access(path, AccessFlags::R_OK).map_err(|errno| JournalError::Place {
                        path: path.to_path_buf(),
                        problem: "it may not be read, so that nothing made in it could be made durable",
                        fix: "run where you may read and write, or set MISSION_RUNS to such a folder or to `none`",
                        source: errno.into(),
                    });
                }
                Ok(_) => return Err(JournalError::place(path, io::ErrorKind::NotADirectory.into())),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                // Below a file there is nothing: the file itself is what is in the way, further up.
                Err(error) if error.kind() == io::ErrorKind::NotADirectory => {}
                Err(error) => return Err(JournalError::place(path, error)),
            }
        }
        Ok(())
    }

    /// A run id that no run here has: `run_<UTC YYYYmmddTHHMMSS>-<8 hex>`.
    ///
    /// # Errors
    /// When the system has no random bytes.
    pub fn mint(&self, clock: &dyn Clock) -> Result<String, JournalError> {
        let moment = clock.utc().format("%Y%m%dT%H%M%S").to_string();
        let mut run_id = String::new();
        for _ in 0..limits::RUN_ID_ATTEMPTS {
            let number =
                u32::from_be_bytes(random::<4>().map_err(|source| JournalError::place(Path::new("/dev/urandom"), source))?);
            run_id = format!("run_{moment}-{number:08x}");
            if !self.run_folder(&run_id).is_some_and(|folder| folder.exists()) {
                break;
            }
        }
        Ok(run_id)
    }

    /// Whether there is such a run with at least a line in its log.
    ///
    /// # Errors
    /// When no runs are kept.
    pub fn holds(&self, run_id: &str) -> Result<bool, JournalError> {
        match self.run_folder(run_id) {
            None => Err(JournalError::NotKept),
            Some(folder) => Ok(LogReader::open(&folder.join(LOG_FILE)).is_ok_and(|mut reader| reader.next().is_some())),
        }
    }

    /// Runs that began and were not seen to end, in no order, at most so many: some may be going on.
    pub fn marked_open(&self, most: usize) -> Vec<String> {
        let Some(runs) = self.folder() else { return Vec::new() };
        let Ok(entries) = std::fs::read_dir(runs.join(OPEN_FOLDER)) else { return Vec::new() };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        names.filter(|name| is_run_id(name)).take(most).collect()
    }

    /// Takes the mark of a run away that has ended, or never began.
    pub fn unmark(&self, held: &HeldRun) {
        if let Some(place) = &held.place {
            // What stays is found again.
            let _ = std::fs::remove_file(&place.marker);
        }
    }

    /// Makes a run and takes its lock. Where the id is taken by now, another one is minted.
    pub(super) fn create(&self, run_id: &str, clock: &dyn Clock) -> Result<HeldRun, JournalError> {
        let Place::Folder { runs, .. } = &self.place else {
            let log = tempfile::tempfile().map_err(|source| JournalError::place(&std::env::temp_dir(), source))?;
            return Ok(HeldRun { run_id: run_id.to_owned(), log, place: None, unsynced: Vec::new() });
        };
        let unsynced = self.create_places()?;
        let (run_id, folder) = self.create_folder(runs, run_id, clock)?;
        let marker = runs.join(OPEN_FOLDER).join(&run_id);
        let lock = take_lock(&run_id, &folder).inspect_err(|_| undo(&folder, &marker))?;
        Self::furnish(run_id, HeldPlace { folder, marker, lock }, unsynced)
    }

    /// The same with just this id. A folder without a line of a log is what a process left that died early, and is taken over.
    pub(super) fn create_exactly(&self, run_id: &str) -> Result<HeldRun, JournalError> {
        let Some(runs) = self.folder() else { return Err(JournalError::NotKept) };
        let unsynced = self.create_places()?;
        let folder = runs.join(run_id);
        match create_folder(&folder) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(JournalError::place(&folder, error)),
            _ => {}
        }
        let marker = runs.join(OPEN_FOLDER).join(run_id);
        let lock = take_lock(run_id, &folder)?;
        let log = folder.join(LOG_FILE);
        if log.exists() {
            match LogReader::open(&log).and_then(LogReader::into_tail) {
                // Nothing in it was ever durable.
                Err(ReadError::Empty { .. }) => {
                    std::fs::remove_file(&log).map_err(|source| JournalError::place(&log, source))?;
                }
                _ => return Err(JournalError::Held { run_id: run_id.to_owned(), holder: None }),
            }
        }
        let _ = std::fs::remove_file(&marker);
        Self::furnish(run_id.to_owned(), HeldPlace { folder, marker, lock }, unsynced)
    }

    /// Makes the folders above the runs. Gives those in which something was made that is not durable yet.
    fn create_places(&self) -> Result<Vec<PathBuf>, JournalError> {
        let Place::Folder { runs, state } = &self.place else { return Ok(Vec::new()) };
        let open_folder = runs.join(OPEN_FOLDER);
        let mut unsynced = create_folders(&open_folder).map_err(|source| JournalError::place(runs, source))?;
        if let Some(state) = state
            && ignore_all(state).map_err(|source| JournalError::place(state, source))?
        {
            unsynced.push(state.clone());
        }
        unsynced.extend([runs.clone(), open_folder]);
        Ok(unsynced)
    }

    /// Makes the files of a run whose lock is held: all of them, or nothing of the run is left.
    fn furnish(run_id: String, mut place: HeldPlace, mut unsynced: Vec<PathBuf>) -> Result<HeldRun, JournalError> {
        let HeldPlace { folder, marker, lock } = &mut place;
        let made = create_file(&folder.join(LOG_FILE)).and_then(|log| {
            create_file(marker)?;
            lock.sign(&Holder::this_process(1))?;
            Ok(log)
        });
        let log = made.map_err(|source| {
            undo(folder, marker);
            JournalError::place(folder, source)
        })?;
        unsynced.push(folder.clone());
        Ok(HeldRun { run_id, log, place: Some(place), unsynced })
    }

    fn create_folder(&self, runs: &Path, run_id: &str, clock: &dyn Clock) -> Result<(String, PathBuf), JournalError> {
        let mut run_id = run_id.to_owned();
        let mut attempts = 0;
        loop {
            let folder = runs.join(&run_id);
            match create_folder(&folder) {
                Ok(()) => return Ok((run_id, folder)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempts < limits::RUN_ID_ATTEMPTS => {
                    attempts = attempts.saturating_add(1);
                    run_id = self.mint(clock)?;
                }
                Err(source) => return Err(JournalError::place(&folder, source)),
            }
        }
    }

    /// Takes the lock of a run that is there: from here on nobody else writes it.
    ///
    /// # Errors
    /// When there is no such run, or somebody else holds it.
    pub fn hold(&self, run_id: &str) -> Result<HeldRun, JournalError> {
        let Some(runs) = self.folder() else { return Err(JournalError::NotKept) };
        let no_such_run = || JournalError::NoSuchRun { run_id: run_id.to_owned(), path: runs.to_path_buf() };
        if !is_run_id(run_id) {
            return Err(no_such_run());
        }
        let folder = runs.join(run_id);
        let path = folder.join(LOG_FILE);
        let log = OpenOptions::new().read(true).append(true).open(&path).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => no_such_run(),
            _ => JournalError::place(&path, source),
        })?;
        let mut lock = take_lock(run_id, &folder)?;
        // Reading the log and starting servers takes its time: whoever is refused meanwhile is told who is at it.
        let epoch = lock.holder().map_or(0, |before| before.epoch).saturating_add(1);
        lock.sign(&Holder::this_process(epoch)).map_err(|source| JournalError::place(&folder, source))?;
        let marker = runs.join(OPEN_FOLDER).join(run_id);
        Ok(HeldRun { run_id: run_id.to_owned(), log, place: Some(HeldPlace { folder, marker, lock }), unsynced: Vec::new() })
    }
}

/// A run that this process alone writes, until this value is gone.
#[derive(Debug)]
pub struct HeldRun {
    pub(super) run_id: String,
    pub(super) log: File,
    /// Nothing where the run is not kept.
    pub(super) place: Option<HeldPlace>,
    /// Folders in which something was made that is not durable yet.
    pub(super) unsynced: Vec<PathBuf>,
}

/// The files of a held run.
#[derive(Debug)]
pub(super) struct HeldPlace {
    pub(super) folder: PathBuf,
    /// Its mark among the runs that have not ended.
    pub(super) marker: PathBuf,
    pub(super) lock: Lock,
}

impl HeldRun {
    /// The run.
    pub fn run_id(&self) -> &str {
        &self.run_id
    }

    /// Whether its log holds nothing at all.
    pub fn is_empty(&self) -> bool {
        self.log.metadata().is_ok_and(|facts| facts.len() == 0)
    }

    /// Its folder; nothing where the run is not kept.
    pub fn folder(&self) -> Option<&Path> {
        self.place.as_ref().map(|place| place.folder.as_path())
    }

    /// Reads its log from the beginning.
    ///
    /// # Errors
    /// When the log cannot be read at all.
    pub fn reader(&self) -> Result<LogReader, ReadError> {
        let name = self.log_name();
        let file = self.log.try_clone().map_err(|source| ReadError::Io { path: name.clone(), source })?;
        Ok(LogReader::new(file, name))
    }

    /// The log, as messages name it.
    pub(super) fn log_name(&self) -> String {
        match &self.place {
            Some(place) => place.folder.join(LOG_FILE).display().to_string(),
            None => "of a run that is not kept".to_owned(),
        }
    }
}

pub(super) fn take_lock(run_id: &str, folder: &Path) -> Result<Lock, JournalError> {
    Lock::take(&folder.join(LOCK_FILE)).map_err(|error| match error {
        LockError::Held(holder) => JournalError::Held { run_id: run_id.to_owned(), holder },
        LockError::Unsupported(source) => JournalError::NoLocks { path: folder.to_path_buf(), source },
        LockError::Io(source) => JournalError::place(folder, source),
    })
}

/// Removes what was made of a run that could not be made whole. What cannot be removed stays: there is nothing else to do.
fn undo(folder: &Path, marker: &Path) {
    let _ = std::fs::remove_file(marker);
    let _ = std::fs::remove_dir_all(folder);
}

/// Whether a word can be a run id: `run_`, up to 32 letters and digits, and as many again behind a hyphen.
pub fn is_run_id(word: &str) -> bool {
    let part = |part: &str| (1..=32).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let Some(rest) = word.strip_prefix("run_") else { return false };
    match rest.split_once('-') {
        Some((first, second)) => part(first) && part(second),
        None => part(rest),
    }
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
