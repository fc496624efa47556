//! Real tool servers, as `tests/run` fetches them, and one of our own that misbehaves on request.
//!
//! Each function gives a command line for `--mcp-stdio`, or says what this host lacks.

use std::path::{Path, PathBuf};

/// The folder that cargo builds into.
pub fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("target"), PathBuf::from)
}

/// Finds a program on the path.
pub fn program(name: &str) -> Result<PathBuf, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|candidate| candidate.is_file())
        .ok_or_else(|| format!("no {name} on this host"))
}

/// A Python interpreter.
pub fn python() -> Result<PathBuf, String> {
    program("python3")
}

/// Joins words into one line that the program's own word splitting takes apart again.
pub fn line<Word: AsRef<Path>>(words: impl IntoIterator<Item = Word>) -> String {
    let words: Vec<String> = words.into_iter().map(|word| word.as_ref().to_str().unwrap().to_owned()).collect();
    shlex::try_join(words.iter().map(String::as_str)).unwrap()
}

/// A file that `tests/run` fetches.
pub fn fetched(variable: &str, folder: &str, inside: &str) -> Result<PathBuf, String> {
    let root = std::env::var_os(variable).map_or_else(|| target().join("test-servers").join(folder), PathBuf::from);
    let path = root.join(inside);
    if path.is_file() { Ok(path) } else { Err(format!("{inside} is not there: `tests/run --servers` fetches it")) }
}

fn npm(package: &str) -> Result<Vec<PathBuf>, String> {
    let script = fetched("MISSION_TEST_NPM", "npm", &format!("node_modules/@modelcontextprotocol/{package}/dist/index.js"))?;
    Ok(vec![program("node")?, script])
}

fn python_server(name: &str) -> Result<Vec<PathBuf>, String> {
    Ok(vec![fetched("MISSION_TEST_PYTHON", "python", &format!("bin/{name}"))?])
}

/// npm `server-everything`.
pub fn everything() -> Result<String, String> {
    npm("server-everything").map(line)
}

/// npm `server-everything` behind `npx`, which asks no registry.
pub fn npx_everything() -> Result<String, String> {
    let script = fetched("MISSION_TEST_NPM", "npm", "node_modules/@modelcontextprotocol/server-everything/dist/index.js")?;
    let root = script.ancestors().nth(5).unwrap_or(&script).to_owned();
    let words = [program("npx")?, "--prefix".into(), root, "--no-install".into(), "mcp-server-everything".into()];
    Ok(line(words))
}

/// npm `server-filesystem` over one folder.
pub fn filesystem(folder: &Path) -> Result<String, String> {
    let mut words = npm("server-filesystem")?;
    words.push(folder.to_owned());
    Ok(line(words))
}

/// npm `server-memory`; it keeps its graph in `file`.
pub fn memory(file: &Path) -> Result<String, String> {
    let mut words = vec![program("env")?, PathBuf::from(format!("MEMORY_FILE_PATH={}", file.display()))];
    words.extend(npm("server-memory")?);
    Ok(line(words))
}

/// PyPI `mcp-server-time`.
pub fn time() -> Result<String, String> {
    python_server("mcp-server-time").map(|mut words| {
        words.push("--local-timezone=UTC".into());
        line(words)
    })
}

/// PyPI `mcp-server-git` over one repository.
pub fn git(repository: &Path) -> Result<String, String> {
    program("git")?;
    let mut words = python_server("mcp-server-git")?;
    words.push("--repository".into());
    words.push(repository.to_owned());
    Ok(line(words))
}

/// Our own server (`tests/support/misbehaving.py`), with its options.
pub fn misbehaving(options: &[&str]) -> Result<String, String> {
    let mut words = vec![python()?, Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/misbehaving.py")];
    words.extend(options.iter().map(PathBuf::from));
    Ok(line(words))
}

/// The interpreter itself, where `python3` on the path is a script that looks for it each time.
pub fn python_itself() -> Result<PathBuf, String> {
    let output = std::process::Command::new(python()?).args(["-c", "import sys; print(sys.executable)"]).output();
    let output = output.map_err(|error| error.to_string())?;
    Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()))
}

/// Our own server that counts (`tests/support/counting.py`), in whatever folder its run has.
pub fn counting() -> Result<String, String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/counting.py");
    Ok(line([python_itself()?, "-I".into(), "-S".into(), script]))
}
