//! The key that signs decisions: one a user, made when it is first needed, never below a workspace.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

use hmac::{Hmac, KeyInit, Mac};
use mission_contract::digest::hex;
use nix::unistd::geteuid;
use sha2::Sha256;

use super::ApprovalError;
use crate::sys::files::{FILE_MODE, create_folders, random, sync_folder};

/// Bytes of a key: what HMAC-SHA256 takes without hashing it first, and as strong as its result.
const KEY_BYTES: usize = 32;

/// A key.
#[derive(Clone)]
pub struct Key([u8; KEY_BYTES]);

impl std::fmt::Debug for Key {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Key")
    }
}

impl Key {
    /// Where the key of this user lies: `mission/key` below `XDG_STATE_HOME`, else below `.local/state` in `HOME`.
    ///
    /// # Errors
    /// When neither variable is an absolute path.
    pub fn place(variable: impl Fn(&str) -> Option<String>) -> Result<PathBuf, ApprovalError> {
        let absolute = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let state = absolute("XDG_STATE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/state")));
        state.map(|state| state.join("mission/key")).ok_or(ApprovalError::NoPlaceForKey)
    }

    /// Reads it; nothing when there is none yet.
    ///
    /// # Errors
    /// When it lies below `workspace`, others may read it, or it is no key.
    pub fn read(path: &Path, workspace: &Path) -> Result<Option<Self>, ApprovalError> {
        let refused = |problem: String| ApprovalError::Key { path: path.to_path_buf(), problem };
        outside(path, workspace).map_err(refused)?;
        let file = std::fs::OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path);
        let mut file = match file {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(refused(format!("it cannot be read ({error}); make it a file of yours with the mode 600"))),
        };
        let facts = file.metadata().map_err(|error| refused(format!("it cannot be looked at ({error})")))?;
        if !facts.is_file() || facts.uid() != geteuid().as_raw() {
            return Err(refused("it is not a file of yours; remove it, and a new one is made".to_owned()));
        }
        if facts.mode() & 0o077 != 0 {
            return Err(refused(
                "others may read it: what it signed proves nothing; remove it, and a new one is made".to_owned(),
            ));
        }
        let mut key = [0; KEY_BYTES];
        let whole = file.read_exact(&mut key).is_ok() && facts.len() == KEY_BYTES as u64;
        if !whole {
            return Err(refused(format!("it does not hold {KEY_BYTES} bytes; remove it, and a new one is made")));
        }
        Ok(Some(Self(key)))
    }

    /// Reads it, or makes it.
    ///
    /// # Errors
    /// Those of [`Key::read`], and when it cannot be written.
    pub fn read_or_make(path: &Path, workspace: &Path) -> Result<Self, ApprovalError> {
        if let Some(key) = Self::read(path, workspace)? {
            return Ok(key);
        }
        let refused = |error: std::io::Error| ApprovalError::Key {
            path: path.to_path_buf(),
            problem: format!("it cannot be made ({error}); set XDG_STATE_HOME to a folder of yours"),
        };
        let folder = path.parent().unwrap_or(path);
        let touched = create_folders(folder).map_err(refused)?;
        let key = random::<KEY_BYTES>().map_err(refused)?;
        // Whole or not at all, and never over one that another process has just made: a link to a finished file.
        let mut file = tempfile::Builder::new().prefix(".key-").tempfile_in(folder).map_err(refused)?;
        file.write_all(&key).and_then(|()| file.as_file().sync_all()).map_err(refused)?;
        match std::fs::hard_link(file.path(), path) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(refused(error)),
            _ => {}
        }
        for folder in touched.iter().map(PathBuf::as_path).chain([folder]) {
            sync_folder(folder).map_err(refused)?;
        }
        debug_assert_eq!(FILE_MODE, 0o600, "the mode that a temporary file has");
        Self::read(path, workspace)?.ok_or_else(|| refused(ErrorKind::NotFound.into()))
    }

    fn code(&self, bytes: &[u8]) -> Option<Hmac<Sha256>> {
        let mut code = Hmac::<Sha256>::new_from_slice(&self.0).ok()?;
        code.update(bytes);
        Some(code)
    }

    /// The signature of some bytes, in hex digits.
    pub(super) fn sign(&self, bytes: &[u8]) -> String {
        // A key of any length is one: this does not fail.
        self.code(bytes).map(|code| hex(&code.finalize().into_bytes())).unwrap_or_default()
    }

    /// Whether these bytes were signed so. Takes as long for a wrong one as for the right one.
    pub(super) fn signed(&self, bytes: &[u8], signature: &str) -> bool {
        let Some(code) = self.code(bytes) else { return false };
        let digits = signature.as_bytes();
        let byte = |pair: &[u8]| std::str::from_utf8(pair).ok().and_then(|pair| u8::from_str_radix(pair, 16).ok());
        let wanted: Option<Vec<u8>> = digits.chunks(2).map(byte).collect();
        wanted.is_some_and(|wanted| code.verify_slice(&wanted).is_ok())
    }
}

/// A key that code tools could read would sign for them.
fn outside(path: &Path, workspace: &Path) -> Result<(), String> {
    let real = |path: &Path| {
        let path = std::path::absolute(path).ok()?;
        let (folder, mut real) = path.ancestors().find_map(|folder| Some((folder, folder.canonicalize().ok()?)))?;
        // What is not there yet holds no links: its way up is the way that it is written.
        for part in path.strip_prefix(folder).ok()?.components() {
            match part {
                Component::ParentDir => drop(real.pop()),
                part => real.push(part),
            }
        }
        Some(real)
    };
    match (real(path), real(workspace)) {
        (Some(key), Some(workspace)) if key.starts_with(&workspace) => Err(format!(
            "it lies below the workspace {}, where tools could read it; set XDG_STATE_HOME to a folder outside",
            workspace.display()
        )),
        (Some(_), Some(_)) => Ok(()),
        _ => Err("its folder cannot be looked up".to_owned()),
    }
}
