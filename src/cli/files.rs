//! Files that are read whole, bounded, regular ones only; and the configuration, which is looked for.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::environment::Environment;
use super::error::{CliError, quoted};
use crate::limits;
use crate::skill::read_yaml;
use crate::sys::files::open_regular;

/// The bytes of a regular file, and one more than it may have when it is larger. It never waits for a FIFO's writer.
pub(super) fn read_bounded(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular(path)?.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Looks for a configuration: that of the working directory, else that of the user. No key of it has landed, so one that is
/// there holds none. Seed 2's file is read once a key of it has.
///
/// # Errors
/// A key, since it is unknown; and a file that cannot be read.
pub fn check_configuration(directory: &Path, environment: &Environment) -> Result<(), CliError> {
    let of_user = || {
        let folder = match stated(environment, "XDG_CONFIG_HOME") {
            Some(folder) => PathBuf::from(folder),
            None => Path::new(stated(environment, "HOME")?).join(".config"),
        };
        folder.is_absolute().then(|| folder.join("mission").join("config.yaml"))
    };
    let own = directory.join(".mission").join("config.yaml");
    let Some(file) = Some(own).filter(|file| file.exists()).or_else(|| of_user().filter(|file| file.exists())) else {
        return Ok(());
    };
    let problem = |problem: String| CliError::File {
        place: "the configuration".to_owned(),
        file: quoted(&file.to_string_lossy()),
        problem,
    };
    let bytes = read_bounded(&file, limits::SKILL_BYTES)
        .map_err(|error| problem(format!("it cannot be read ({error}); make it readable, or remove it")))?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > limits::SKILL_BYTES {
        return Err(problem(format!("it is larger than {} bytes; remove what is not needed", limits::SKILL_BYTES)));
    }
    let text = std::str::from_utf8(&bytes).map_err(|error| {
        problem(format!("it is not UTF-8 (byte {}); save it as UTF-8", error.valid_up_to().saturating_add(1)))
    })?;
    let whole = read_yaml(text.strip_prefix('\u{feff}').unwrap_or(text), 0).map_err(|place| problem(place.to_string()))?;
    match whole.map("the configuration").map_err(|place| problem(place.to_string()))?.first() {
        None => Ok(()),
        Some((key, _)) => {
            Err(problem(key.problem(format!("the key {} is unknown to this build; remove it", quoted(&key.text))).to_string()))
        }
    }
}

fn stated<'e>(environment: &'e Environment, name: &str) -> Option<&'e str> {
    environment.get(name).map(String::as_str).filter(|value| !value.trim().is_empty())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::fs;

    use super::*;

    #[test]
    fn a_configuration_without_keys_is_fine_and_any_key_is_unknown() {
        let folder = tempfile::tempdir().unwrap();
        let mut environment = Environment::from([("HOME".to_owned(), folder.path().join("home").to_str().unwrap().to_owned())]);
        let mut check = |directory: &str, xdg: &str| {
            environment.insert("XDG_CONFIG_HOME".to_owned(), xdg.to_owned());
            check_configuration(&folder.path().join(directory), &environment)
                .map_err(|error| error.to_string().replace(folder.path().to_str().unwrap(), "…"))
        };
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        check("none", "").unwrap();
        write("plain/.mission/config.yaml", "# nothing yet\n");
        check("plain", "").unwrap();
        write("home/.config/mission/config.yaml", "pricing: {}\n");
        insta::assert_snapshot!(check("none", "").unwrap_err(), @"the configuration `…/home/.config/mission/config.yaml`: line 1, column 1: the key `pricing` is unknown to this build; remove it");
        // ours alone is looked at when both are there
        check("plain", "").unwrap();
        check("none", folder.path().join("elsewhere").to_str().unwrap()).unwrap();
        write("keys/.mission/config.yaml", "# prices\n\nprizing: {}\nother: 1\n");
        insta::assert_snapshot!(check("keys", "").unwrap_err(), @"the configuration `…/keys/.mission/config.yaml`: line 3, column 1: the key `prizing` is unknown to this build; remove it");
        write("broken/.mission/config.yaml", "a: [\n");
        insta::assert_snapshot!(check("broken", "").unwrap_err(), @"the configuration `…/broken/.mission/config.yaml`: line 1, column 4: this cannot be read: unclosed bracket '['");
        write("list/.mission/config.yaml", "- a\n");
        insta::assert_snapshot!(check("list", "").unwrap_err(), @"the configuration `…/list/.mission/config.yaml`: line 1, column 1: the configuration has to be a mapping of keys to values");
        write("seed/.judais-lobi.yml", "anything: [goes]\n");
        check("seed", folder.path().join("elsewhere").to_str().unwrap()).unwrap();
    }
}
