//! Files and folders that only their owner may read, replaced whole or not at all.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Mode of every folder that we make: its owner's alone.
pub const FOLDER_MODE: u32 = 0o700;

/// Mode of every file that we make: its owner's alone.
pub const FILE_MODE: u32 = 0o600;

/// Makes one folder (0700). An error of kind `AlreadyExists` means that something of that name is there.
pub fn create_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(FOLDER_MODE).create(path)
}

/// Makes a folder (0700) and those above it that are missing. Returns the folders in which something was made: each of
/// them must be synced before the new one can be relied on.
pub fn create_folders(path: &Path) -> io::Result<Vec<PathBuf>> {
    let missing: Vec<&Path> = path
        .ancestors()
        .take_while(|folder| !folder.as_os_str().is_empty() && std::fs::symlink_metadata(folder).is_err())
        .collect();
    let mut touched = Vec::new();
    for folder in missing.iter().rev() {
        match create_folder(folder) {
            Ok(()) => touched.push(parent_of(folder)),
            // Another process was quicker: its folder is as good.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    if std::fs::metadata(path)?.is_dir() { Ok(touched) } else { Err(io::Error::from(io::ErrorKind::NotADirectory)) }
}

/// Opens a regular file for reading, and nothing else: a FIFO is not waited for, a device is not read without end.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is no regular file")) }
}

/// Opens a file for appending that must not be there yet (0600).
pub fn create_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).append(true).create_new(true).mode(FILE_MODE).open(path)
}

/// Makes what was created, renamed or removed in a folder durable.
pub fn sync_folder(path: &Path) -> io::Result<()> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    File::open(path)?.sync_all()
}

/// Whether a replaced file must have reached the disk when the call returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// File and folder are synced: after a crash it is the old one or the new one.
    Synced,
    /// Only other processes never see a half: enough for what can be made again.
    Atomic,
}

/// Replaces a file whole (0600): readers see the old bytes or the new ones, never a mixture.
pub fn replace_file(path: &Path, bytes: &[u8], durability: Durability) -> io::Result<()> {
    let folder = parent_of(path);
    // `tempfile` makes its files 0600 and removes them when something fails on the way.
    let mut file = tempfile::Builder::new().prefix(TEMPORARY).tempfile_in(&folder)?;
    file.write_all(bytes)?;
    if durability == Durability::Synced {
        file.as_file().sync_all()?;
    }
    file.persist(path).map_err(|error| error.error)?;
    if durability == Durability::Synced {
        sync_folder(&folder)?;
    }
    Ok(())
}

/// What the name of a file begins with that is not whole yet.
const TEMPORARY: &str = ".new-";

/// Removes what writers left behind that were killed between a temporary file and its name, looking at `most` files at most. Only for
/// whoever keeps all other writers of the folder out.
pub fn remove_leftovers(folder: &Path, most: usize) -> io::Result<()> {
    let left = std::fs::read_dir(folder)?.take(most).filter_map(Result::ok);
    let left = left.filter(|entry| entry.file_name().to_string_lossy().starts_with(TEMPORARY));
    left.for_each(|entry| drop(std::fs::remove_file(entry.path())));
    Ok(())
}

/// Keeps a folder of ours out of the version control of whoever runs there; false when it was so already.
pub fn ignore_all(folder: &Path) -> io::Result<bool> {
    match create_file(&folder.join(".gitignore")) {
        Ok(mut file) => file.write_all(b"*\n").map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

/// Random bytes from the operating system.
pub fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn parent_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
        _ => PathBuf::from("."),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn folders_are_made_private_and_the_touched_ones_are_named() {
        let root = tempfile::tempdir().unwrap();
        let deep = root.path().join("a/b");
        assert_eq!(create_folders(&deep).unwrap(), [root.path().to_path_buf(), root.path().join("a")]);
        assert_eq!((mode(&root.path().join("a")), mode(&deep)), (0o700, 0o700));
        assert!(create_folders(&deep).unwrap().is_empty());
    }

    #[test]
    fn a_file_in_the_way_is_not_taken_for_a_folder() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert_eq!(create_folders(&file).unwrap_err().kind(), io::ErrorKind::NotADirectory);
        assert_eq!(create_folders(&file.join("below")).unwrap_err().kind(), io::ErrorKind::NotADirectory);
    }

    #[test]
    fn a_replaced_file_is_private_and_leaves_no_temporary_one() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("meta.json");
        for (text, durability) in [("one", Durability::Atomic), ("two", Durability::Synced)] {
            replace_file(&path, text.as_bytes(), durability).unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
        assert_eq!(mode(&path), 0o600);
        assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_is_created_once() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("log");
        create_file(&path).unwrap();
        assert_eq!(mode(&path), 0o600);
        assert_eq!(create_file(&path).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    }
}
