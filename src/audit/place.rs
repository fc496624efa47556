//! Where the audit file of a process goes.

use std::path::{Path, PathBuf};

use super::AuditError;
use crate::sys::clock::Clock;
use crate::sys::files::{create_folders, ignore_all, random, sync_folder};

/// The state folder of a working directory.
const STATE_FOLDER: &str = ".mission";

/// See the module's doc.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Nothing is audited.
    Nowhere,
    /// Into this file, behind what stands in it.
    File(PathBuf),
    /// Into a new file of this folder.
    New(PathBuf),
}

impl Place {
    /// What `MISSION_AUDIT` says: a file; `none` or `off` for none; unset or blank for a new one in `.mission/audit` of the working
    /// directory.
    pub fn of(word: Option<&str>, directory: &Path) -> Self {
        let word = word.map(str::trim).unwrap_or_default();
        match word.to_ascii_lowercase().as_str() {
            "" => Place::New(directory.join(STATE_FOLDER).join("audit")),
            "none" | "off" => Place::Nowhere,
            _ => Place::File(directory.join(word)),
        }
    }

    /// The file, its folder made.
    ///
    /// # Errors
    /// When the folder cannot be made.
    pub(super) fn file(self, clock: &dyn Clock) -> Result<Option<PathBuf>, AuditError> {
        match self {
            Place::Nowhere => Ok(None),
            Place::File(path) => {
                if let Some(folder) = path.parent() {
                    make(folder).map_err(|source| AuditError::Io { path: path.clone(), source })?;
                }
                Ok(Some(path))
            }
            Place::New(folder) => {
                let failed = |source| AuditError::Io { path: folder.clone(), source };
                make(&folder).map_err(failed)?;
                if let Some(state) = folder.parent().filter(|state| state.ends_with(STATE_FOLDER)) {
                    ignore_all(state).map_err(failed)?;
                }
                let chance = mission_contract::digest::hex(&random::<4>().map_err(failed)?);
                Ok(Some(folder.join(format!("{}-{chance}.jsonl", clock.utc().format("%Y%m%dT%H%M%S")))))
            }
        }
    }
}

fn make(folder: &Path) -> std::io::Result<()> {
    create_folders(folder)?.iter().try_for_each(|touched| sync_folder(touched))
}
