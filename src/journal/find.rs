//! From a word on a command line to a run: an id among the runs here, a run's folder, or its log.

use std::io;
use std::path::{Path, PathBuf};

use super::store::{LOG_FILE, META_FILE, is_run_id};
use super::{JournalError, LogReader, ReadError, RunMeta, RunStore};
use crate::sys::lock::{Lock, Look};

/// What the harness before kept in the folder of a run.
const OLDER_LOG: &str = "events.jsonl";

/// Where a run lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunPlace {
    /// What it is called in messages: its id, else the path as it was given.
    pub name: String,
    /// Its folder; nothing where a log was named by itself.
    pub folder: Option<PathBuf>,
    /// Its log.
    pub log: PathBuf,
}

impl RunPlace {
    fn of_folder(name: &str, folder: PathBuf) -> Self {
        Self { name: name.to_owned(), log: folder.join(LOG_FILE), folder: Some(folder) }
    }

    /// What a list shows of it; nothing when there is no such file, or it cannot be read.
    pub fn meta(&self) -> Option<RunMeta> {
        RunMeta::read(&self.folder.as_ref()?.join(META_FILE))
    }

    /// Where its facts for lists stand, if they do.
    pub fn meta_path(&self) -> Option<PathBuf> {
        Some(self.folder.as_ref()?.join(META_FILE))
    }

    /// Whether a process holds it.
    ///
    /// # Errors
    /// When that cannot be known.
    pub fn look(&self) -> io::Result<Look> {
        match &self.folder {
            Some(folder) => look(folder),
            None => Ok(Look::Free),
        }
    }

    /// Reads its log from the beginning.
    ///
    /// # Errors
    /// When the log cannot be opened.
    pub fn reader(&self) -> Result<LogReader, ReadError> {
        LogReader::open(&self.log)
    }
}

/// Whether a process holds the run in a folder.
pub(super) fn look(folder: &Path) -> io::Result<Look> {
    Lock::look(&folder.join(super::store::LOCK_FILE))
}

impl RunStore {
    /// The run that a word means: an id of the runs here, else the folder of a run or a log, as a path from `directory`.
    ///
    /// # Errors
    /// When there is no such run, or something else stands there.
    pub fn find(&self, word: &str, directory: &Path) -> Result<RunPlace, JournalError> {
        let no_run = |problem: &str| JournalError::NotARun { name: word.to_owned(), problem: problem.to_owned() };
        if is_run_id(word)
            && let Some(folder) = self.run_folder(word)
            && let Ok(facts) = std::fs::symlink_metadata(&folder)
        {
            // A run is made here or it is none: a link may lead anywhere.
            return if facts.is_symlink() {
                Err(no_run("it is a symbolic link; name the folder that it leads to"))
            } else if facts.is_dir() {
                in_folder(RunPlace::of_folder(word, folder))
            } else {
                Err(no_run("a run is a folder, and this is a file"))
            };
        }
        let path = directory.join(word);
        match std::fs::metadata(&path) {
            Ok(facts) if facts.is_dir() => in_folder(RunPlace::of_folder(word, path)),
            Ok(facts) if facts.is_file() => {
                let beside = path.file_name().is_some_and(|name| name == LOG_FILE);
                let folder = path.parent().filter(|folder| beside && folder.join(META_FILE).exists()).map(Path::to_owned);
                Ok(RunPlace { name: word.to_owned(), folder, log: path })
            }
            Ok(_) => Err(no_run("it is neither a folder nor a file")),
            Err(error) if is_absent(&error) => Err(match self.folder() {
                Some(runs) => JournalError::NoSuchRun { run_id: word.to_owned(), path: runs.to_path_buf() },
                None => JournalError::NotKept,
            }),
            Err(error) => Err(no_run(&format!("it cannot be looked at ({error})"))),
        }
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::InvalidFilename)
}

/// A folder is that of a run when a log stands in it.
fn in_folder(place: RunPlace) -> Result<RunPlace, JournalError> {
    let problem = match std::fs::symlink_metadata(&place.log) {
        Ok(facts) if facts.is_file() => return Ok(place),
        Ok(_) => format!("its {LOG_FILE} is no regular file"),
        Err(_) if place.folder.as_ref().is_some_and(|folder| folder.join(OLDER_LOG).exists()) => {
            format!("it is a recording of the harness before: it has {OLDER_LOG} and no {LOG_FILE}")
        }
        Err(error) if is_absent(&error) => format!("no {LOG_FILE} stands in its folder"),
        Err(error) => format!("its {LOG_FILE} cannot be looked at ({error})"),
    };
    Err(JournalError::NotARun { name: place.name, problem })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::fs;

    use super::*;

    #[test]
    fn a_word_is_an_id_a_folder_or_a_log() {
        let home = tempfile::tempdir().unwrap();
        let store = RunStore::of(None, home.path());
        let folder = home.path().join(".mission/runs/run_1-1");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(LOG_FILE), "").unwrap();
        let found = store.find("run_1-1", home.path()).unwrap();
        assert_eq!((found.name.as_str(), found.folder.as_ref()), ("run_1-1", Some(&folder)));
        assert_eq!(store.find(".mission/runs/run_1-1", home.path()).unwrap().log, folder.join(LOG_FILE));
        let alone = store.find(".mission/runs/run_1-1/log.ndjson", home.path()).unwrap();
        assert_eq!((alone.folder, &alone.log), (None, &folder.join(LOG_FILE)), "nothing stands beside it");
        fs::write(folder.join(META_FILE), "{}").unwrap();
        assert_eq!(store.find(".mission/runs/run_1-1/log.ndjson", home.path()).unwrap().folder, Some(folder));
    }

    #[test]
    fn what_is_no_run_is_told_with_its_reason() {
        let home = tempfile::tempdir().unwrap();
        let store = RunStore::of(None, home.path());
        let runs = home.path().join(".mission/runs");
        for name in ["run_empty", "run_older", "run_pipe", "elsewhere"] {
            fs::create_dir_all(runs.join(name)).unwrap();
        }
        fs::write(runs.join("run_older").join(OLDER_LOG), "").unwrap();
        fs::write(runs.join("run_file"), "").unwrap();
        fs::write(runs.join("elsewhere").join(LOG_FILE), "").unwrap();
        std::os::unix::fs::symlink("elsewhere", runs.join("run_link")).unwrap();
        nix::unistd::mkfifo(&runs.join("run_pipe").join(LOG_FILE), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let said = |word: &str| {
            let text = store.find(word, home.path()).unwrap_err().to_string();
            text.replace(home.path().to_str().unwrap(), "…")
        };
        insta::assert_snapshot!(said("run_empty"), @"run_empty is no run: no log.ndjson stands in its folder");
        insta::assert_snapshot!(said("run_older"), @"run_older is no run: it is a recording of the harness before: it has events.jsonl and no log.ndjson");
        insta::assert_snapshot!(said("run_file"), @"run_file is no run: a run is a folder, and this is a file");
        insta::assert_snapshot!(said("run_link"), @"run_link is no run: it is a symbolic link; name the folder that it leads to");
        insta::assert_snapshot!(said("run_pipe"), @"run_pipe is no run: its log.ndjson is no regular file");
        insta::assert_snapshot!(said("run_none"), @"there is no run run_none in …/.mission/runs; a run's id is the name of its folder there");
        insta::assert_snapshot!(said("../../etc/no-such-file"), @"there is no run ../../etc/no-such-file in …/.mission/runs; a run's id is the name of its folder there");
        insta::assert_snapshot!(said("/dev/null"), @"/dev/null is no run: it is neither a folder nor a file");
    }
}
