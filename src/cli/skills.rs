//! The skill that a command line names: a manifest, the folder of one, or the name of a skill that is shipped. Read once, bounded, a
//! regular file only, and one that lies where it seems to lie.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::environment::Stated;
use super::error::{CliError, quoted};
use super::files::read_bounded;
use crate::limits;
use crate::skill::packs::{PACKS, pack};
use crate::skill::{FILE_NAME, Manifest, SkillError};

/// A skill and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// It.
    pub manifest: Manifest,
    /// Its manifest's file; absent for one that is shipped.
    pub file: Option<PathBuf>,
}

impl Found {
    /// Whether a run under it can begin: it is refused where it would be less governed than its manifest asks.
    ///
    /// # Errors
    /// What it asks for and this build does not do.
    pub fn governed(self, without_grounding: bool) -> Result<Self, CliError> {
        match self.manifest.not_yet(without_grounding) {
            wishes if wishes.is_empty() => Ok(self),
            wishes => Err(SkillError::NotYet { skill: self.manifest.name, wishes }.into()),
        }
    }

    /// What is worth a look in it, a sentence each, those about its place last.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings: Vec<String> = self.manifest.warnings.iter().map(ToString::to_string).collect();
        let folder = self.file.as_deref().and_then(Path::parent).and_then(Path::file_name);
        if let Some(folder) = folder.map(|folder| folder.to_string_lossy()).filter(|folder| *folder != self.manifest.name) {
            let (name, folder) = (quoted(&self.manifest.name), quoted(&folder));
            warnings.push(format!("its name is {name}, and its folder's {folder}; other programs want them to be the same"));
        }
        warnings
    }
}

/// Reads the skill that a flag, a variable or a verb names. A path that is there comes before a shipped skill of that name.
///
/// # Errors
/// A path without a manifest, or a manifest that is not understood whole.
pub fn read(stated: &Stated) -> Result<Found, CliError> {
    let problem = |problem: String| CliError::File { place: stated.place.to_owned(), file: quoted(&stated.value), problem };
    let path = Path::new(&stated.value);
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if let Some(pack) = pack(stated.value.trim()) {
                let manifest = Manifest::parse(pack.name, pack.manifest.as_bytes())?;
                return Ok(Found { manifest, file: None });
            }
            let names = PACKS.iter().map(|pack| pack.name).collect::<Vec<_>>().join(", ");
            return Err(problem(format!(
                "there is no such file or folder, and no shipped skill of that name; name a {FILE_NAME}, the folder that holds one, or one of {names}"
            )));
        }
        Err(error) => return Err(problem(format!("it cannot be read ({error}); name a {FILE_NAME} that can"))),
    };
    let file = if metadata.is_dir() { manifest_in(path).map_err(problem)? } else { path.to_owned() };
    let unreadable = |error: io::Error| {
        problem(format!("{} cannot be read ({error}); name a readable {FILE_NAME}", quoted(&file.to_string_lossy())))
    };
    if let Some(elsewhere) = leads_out(&file).map_err(unreadable)? {
        return Err(problem(format!(
            "{} is a link that leaves its folder, to {}; put the manifest itself there",
            quoted(&file.to_string_lossy()),
            quoted(&elsewhere.to_string_lossy())
        )));
    }
    let bytes = read_bounded(&file, limits::SKILL_BYTES).map_err(unreadable)?;
    let manifest = Manifest::parse(&file.to_string_lossy(), &bytes)?;
    Ok(Found { manifest, file: Some(file) })
}

/// Where a link leads that leaves the folder in which it stands.
fn leads_out(file: &Path) -> io::Result<Option<PathBuf>> {
    if !fs::symlink_metadata(file)?.is_symlink() {
        return Ok(None);
    }
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let (folder, real) = (fs::canonicalize(folder)?, fs::canonicalize(file)?);
    Ok((!real.starts_with(folder)).then_some(real))
}

fn manifest_in(folder: &Path) -> Result<PathBuf, String> {
    let file = folder.join(FILE_NAME);
    if fs::symlink_metadata(&file).is_ok() {
        return Ok(file);
    }
    let entries: Vec<PathBuf> = fs::read_dir(folder)
        .map_err(|error| format!("the folder cannot be read ({error}); name its {FILE_NAME}"))?
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .take(LOOKED_AT)
        .collect();
    let name = |path: &PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if let Some(other) = entries.iter().map(name).find(|name| name.eq_ignore_ascii_case(FILE_NAME)) {
        return Err(format!("the folder holds {}, and a manifest is called {FILE_NAME}; rename it", quoted(&other)));
    }
    let mut skills: Vec<String> = entries.iter().filter(|path| path.join(FILE_NAME).exists()).map(name).take(LISTED).collect();
    skills.sort();
    Err(match skills.as_slice() {
        [] => format!("the folder holds no {FILE_NAME}; name a folder that does"),
        several => format!("the folder holds no {FILE_NAME} but folders that do; name one of {}", several.join(", ")),
    })
}

/// Most skills of a folder that a refusal lists.
const LISTED: usize = 20;
/// Most entries of a folder that are looked at for them.
const LOOKED_AT: usize = 10_000;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const GOOD: &str = "---\nname: lamps\nallowed_tools: [a]\n---\nbody\n";

    fn skill(path: &Path) -> Result<Found, String> {
        let stated = Stated { value: path.to_str().unwrap().to_owned(), place: "--skill" };
        let folder = path.parent().unwrap().to_str().unwrap().to_owned();
        read(&stated).map_err(|error| error.to_string().replace(&folder, "…"))
    }

    #[test]
    fn a_skill_is_a_file_its_folder_or_a_name() {
        let folder = tempfile::tempdir().unwrap();
        let pack = folder.path().join("pack");
        fs::create_dir(&pack).unwrap();
        fs::write(pack.join(FILE_NAME), GOOD).unwrap();
        assert_eq!(skill(&pack).unwrap(), skill(&pack.join(FILE_NAME)).unwrap());
        assert_eq!(
            skill(&pack).unwrap().warnings(),
            ["its name is `lamps`, and its folder's `pack`; other programs want them to be the same"]
        );
        fs::write(folder.path().join("lamps.md"), GOOD).unwrap();
        assert_eq!(skill(&folder.path().join("lamps.md")).unwrap().manifest.name, "lamps");
        let shipped = read(&Stated { value: "analyst".to_owned(), place: "--skill" }).unwrap();
        assert_eq!((shipped.manifest.name.as_str(), shipped.file.as_ref(), shipped.warnings()), ("analyst", None, vec![]));
        let refusal = shipped.governed(true).unwrap_err().to_string();
        insta::assert_snapshot!(refusal, @"the skill analyst asks for code tools in a sandbox (`sandbox: bwrap`), and this build confines no code tools yet: none is run unconfined");
    }

    #[test]
    fn what_is_no_skill_is_refused_and_never_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in ["packs/one", "packs/two", "empty", "folder/SKILL.md", "lower", "link", "near"] {
            fs::create_dir_all(path(name)).unwrap();
        }
        fs::write(path("packs/one/SKILL.md"), GOOD).unwrap();
        fs::write(path("packs/two/SKILL.md"), GOOD).unwrap();
        fs::write(path("lower/skill.md"), GOOD).unwrap();
        fs::write(path("near/real.md"), GOOD).unwrap();
        fs::write(path("large"), "x".repeat(70_000)).unwrap();
        std::os::unix::fs::symlink("../near/real.md", path("link/SKILL.md")).unwrap();
        std::os::unix::fs::symlink("real.md", path("near/SKILL.md")).unwrap();
        std::os::unix::fs::symlink("gone", path("dangling")).unwrap();
        nix::unistd::mkfifo(&path("fifo"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        insta::assert_snapshot!(skill(&path("absent")).unwrap_err(), @"--skill `…/absent`: there is no such file or folder, and no shipped skill of that name; name a SKILL.md, the folder that holds one, or one of analyst, parts-desk");
        insta::assert_snapshot!(skill(&path("empty")).unwrap_err(), @"--skill `…/empty`: the folder holds no SKILL.md; name a folder that does");
        insta::assert_snapshot!(skill(&path("lower")).unwrap_err(), @"--skill `…/lower`: the folder holds `skill.md`, and a manifest is called SKILL.md; rename it");
        insta::assert_snapshot!(skill(&path("packs")).unwrap_err(), @"--skill `…/packs`: the folder holds no SKILL.md but folders that do; name one of one, two");
        insta::assert_snapshot!(skill(&path("folder")).unwrap_err(), @"--skill `…/folder`: `…/folder/SKILL.md` cannot be read (it is no regular file); name a readable SKILL.md");
        insta::assert_snapshot!(skill(&path("large")).unwrap_err(), @"the skill …/large: it is larger than 65536 bytes; what the model need not read belongs into a tool");
        insta::assert_snapshot!(skill(&path("fifo")).unwrap_err(), @"--skill `…/fifo`: `…/fifo` cannot be read (it is no regular file); name a readable SKILL.md");
        insta::assert_snapshot!(skill(&path("link")).unwrap_err(), @"--skill `…/link`: `…/link/SKILL.md` is a link that leaves its folder, to `…/near/real.md`; put the manifest itself there");
        assert_eq!(skill(&path("near")).unwrap().manifest.name, "lamps", "a link within its folder is fine");
    }
}
