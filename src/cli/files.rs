//! Files that are read whole, bounded, regular ones only; and the configuration, which is looked for.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::environment::Environment;
use super::error::{CliError, quoted};
use crate::limits;
use crate::sys::files::open_regular;

/// The bytes of a regular file, and one more than it may have when it is larger. It never waits for a FIFO's writer.
pub(super) fn read_bounded(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(path)?.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads the values that are to be hidden: one a line, white space around it and empty lines apart. Each is named after the flag.
///
/// # Errors
/// A file that cannot be read, or that is none of values: a refusal never repeats one.
pub fn read_values(place: &str, paths: &[String]) -> Result<Vec<(String, String)>, CliError> {
    let mut values = Vec::new();
    let mut left = limits::REDACT_FILE_BYTES;
    for path in paths {
        let problem = |problem: String| CliError::File { place: place.to_owned(), file: quoted(path), problem };
        let mut bytes = Vec::new();
        open_regular(Path::new(path))
            .and_then(|file| file.take(left.saturating_add(1)).read_to_end(&mut bytes))
            .map_err(|error| problem(format!("it cannot be read ({error}); name a readable file with one value a line")))?;
        let read = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        left = left.checked_sub(read).ok_or_else(|| {
            let most = limits::REDACT_FILE_BYTES;
            problem(format!(
                "the values in it and in the files before are larger than {most} bytes; leave out what this run cannot meet"
            ))
        })?;
        let text = std::str::from_utf8(&bytes).map_err(|error| {
            problem(format!("it is not UTF-8 (byte {}); save it as UTF-8", error.valid_up_to().saturating_add(1)))
        })?;
        for (number, line) in (1..).zip(text.strip_prefix('\u{feff}').unwrap_or(text).lines()) {
            let value = line.trim();
            let characters = u64::try_from(value.chars().count()).unwrap_or(u64::MAX);
            if (1..limits::SECRET_CHARACTERS).contains(&characters) {
                let least = limits::SECRET_CHARACTERS;
                return Err(problem(format!(
                    "line {number} has {characters} characters; a value of fewer than {least} would be hidden in every text: lengthen it, or remove the line"
                )));
            }
            if !value.is_empty() {
                values.push((OF_FILE.to_owned(), value.to_owned()));
            }
        }
    }
    Ok(values)
}

/// The name that stands in place of such a value.
const OF_FILE: &str = "redact-file";

/// The user's own configuration, where there may be one.
pub fn of_user(environment: &Environment) -> Option<PathBuf> {
    let folder = match stated(environment, "XDG_CONFIG_HOME") {
        Some(folder) => PathBuf::from(folder),
        None => Path::new(stated(environment, "HOME")?).join(".config"),
    };
    folder.is_absolute().then(|| folder.join("mission").join("config.yaml"))
}

/// The text of a configuration.
///
/// # Errors
/// A file that cannot be read, is too large or is no text.
pub fn settings(file: &Path) -> Result<String, CliError> {
    let problem = |problem: String| CliError::File {
        place: "the configuration".to_owned(),
        file: quoted(&file.to_string_lossy()),
        problem,
    };
    let bytes = read_bounded(file, limits::SKILL_BYTES)
        .map_err(|error| problem(format!("it cannot be read ({error}); make it readable, or remove it")))?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > limits::SKILL_BYTES {
        return Err(problem(format!("it is larger than {} bytes; remove what is not needed", limits::SKILL_BYTES)));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to().saturating_add(1);
        problem(format!("it is not UTF-8 (byte {at}); save it as UTF-8"))
    })?;
    Ok(text.strip_prefix('\u{feff}').map_or_else(|| text.clone(), str::to_owned))
}

fn stated<'e>(environment: &'e Environment, name: &str) -> Option<&'e str> {
    environment.get(name).map(String::as_str).filter(|value| !value.trim().is_empty())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::fs;

    use super::*;

    fn values(paths: &[&Path]) -> Result<Vec<String>, String> {
        let named: Vec<String> = paths.iter().map(|path| path.to_str().unwrap().to_owned()).collect();
        let folder = paths.first().unwrap().parent().unwrap().to_str().unwrap();
        let values = read_values("--redact-file", &named).map_err(|error| error.to_string().replace(folder, "…"))?;
        assert!(values.iter().all(|(name, _)| name == "redact-file"));
        Ok(values.into_iter().map(|(_, value)| value).collect())
    }

    #[test]
    fn values_to_hide_stand_one_a_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("one"), "\u{feff}first-value\r\n\n  second value \n").unwrap();
        fs::write(path("two"), "third-value").unwrap();
        assert_eq!(values(&[&path("one"), &path("two")]).unwrap(), ["first-value", "second value", "third-value"]);
        assert!(read_values("--redact-file", &[]).unwrap().is_empty());
    }

    #[test]
    fn what_is_no_file_of_values_is_refused_and_no_value_is_repeated() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::create_dir(path("folder")).unwrap();
        fs::write(path("short"), "first-value\nhunter2\n").unwrap();
        fs::write(path("large"), "0123456789\n".repeat(4000)).unwrap();
        fs::write(path("bytes"), b"first-value\n\xff\xfe").unwrap();
        nix::unistd::mkfifo(&path("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        insta::assert_snapshot!(values(&[&path("absent")]).unwrap_err(), @"--redact-file `…/absent`: it cannot be read (No such file or directory (os error 2)); name a readable file with one value a line");
        insta::assert_snapshot!(values(&[&path("folder")]).unwrap_err(), @"--redact-file `…/folder`: it cannot be read (it is no regular file); name a readable file with one value a line");
        insta::assert_snapshot!(values(&[&path("short")]).unwrap_err(), @"--redact-file `…/short`: line 2 has 7 characters; a value of fewer than 8 would be hidden in every text: lengthen it, or remove the line");
        insta::assert_snapshot!(values(&[&path("large"), &path("large")]).unwrap_err(), @"--redact-file `…/large`: the values in it and in the files before are larger than 65536 bytes; leave out what this run cannot meet");
        insta::assert_snapshot!(values(&[&path("bytes")]).unwrap_err(), @"--redact-file `…/bytes`: it is not UTF-8 (byte 13); save it as UTF-8");
        insta::assert_snapshot!(values(&[&path("fifo")]).unwrap_err(), @"--redact-file `…/fifo`: it cannot be read (it is no regular file); name a readable file with one value a line");
    }
}
