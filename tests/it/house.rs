//! The shape of the house: which room may know which, what is pure, what stands where, and what the lock file may hold.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Which rooms a room may know; `*` is every room above it. `limits` is for everybody; the contract is a crate of its own.
const ARROWS: &[(&str, &[&str])] = &[
    ("limits", &[]),
    ("sys", &[]),
    ("redact", &["sys"]),
    ("skill", &[]),
    ("policy", &[]),
    ("grounding", &[]),
    ("engine", &["skill", "policy", "grounding"]),
    ("model", &["engine", "sys", "redact"]),
    ("tools", &["engine", "sys", "redact"]),
    ("journal", &["engine", "sys", "redact"]),
    ("approvals", &["engine", "sys", "redact"]),
    ("audit", &["engine", "sys", "redact"]),
    ("stream", &["engine", "sys", "redact"]),
    ("sandbox", &["engine", "sys", "redact"]),
    ("control", &["engine", "sys", "redact"]),
    (
        "driver",
        &["engine", "skill", "model", "tools", "journal", "approvals", "audit", "stream", "sandbox", "control", "sys", "redact"],
    ),
    ("replay", &["engine", "sys", "redact"]),
    ("demo", &["*"]),
    ("cli", &["*"]),
];

/// Rooms that decide and do nothing else.
const PURE: &[&str] = &["engine", "skill", "policy", "grounding"];

/// What a pure room does not touch: a runtime, files, the network, processes, the environment, a clock, chance, the tool protocol.
const IMPURE: &[&str] = &[
    "tokio",
    "std::fs",
    "std::net",
    "std::process",
    "std::env",
    "std::thread",
    "std::time",
    "std::io",
    "Instant",
    "SystemTime",
    "HashMap",
    "HashSet",
    "rand::",
    "chrono",
    "reqwest",
    "rmcp",
    "nix::",
    "libc::",
];

/// A file past this many lines is two subjects.
const LINES: usize = 500;

pub struct Source {
    /// Its path in the project.
    pub name: String,
    /// Its text without tests.
    pub text: String,
    /// Its code without comments, strings and tests.
    pub code: String,
    /// Lines that are not tests.
    lines: usize,
}

impl Source {
    /// The room it stands in; none for the crate's root.
    pub fn room(&self) -> Option<&str> {
        let inside = self.name.strip_prefix("src/")?;
        let room = inside.split('/').next()?;
        let room = room.strip_suffix(".rs").unwrap_or(room);
        (!matches!(room, "lib" | "main")).then_some(room)
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn files(folder: &Path, all: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, all);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            all.push(path);
        }
    }
}

/// The sources of the program and the contract; files of tests are left out.
pub fn sources() -> Vec<Source> {
    let mut all = Vec::new();
    files(&root().join("src"), &mut all);
    files(&root().join("contract/src"), &mut all);
    all.sort();
    all.iter()
        .filter(|path| !path.file_stem().unwrap().to_str().unwrap().ends_with("tests"))
        .map(|path| {
            let text = std::fs::read_to_string(path).unwrap();
            let own = without_tests(&text);
            Source {
                name: path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned(),
                lines: own.lines().count(),
                code: bare(own),
                text: own.to_owned(),
            }
        })
        .collect()
}

/// The file up to its module of tests, which stands last.
fn without_tests(text: &str) -> &str {
    let mut from = 0;
    while let Some(found) = text[from..].find("#[cfg(test)]") {
        let at = from + found;
        let after = text[at..].lines().nth(1).unwrap_or_default().trim();
        if after.starts_with("mod ") && after.ends_with('{') || after.is_empty() {
            return &text[..at];
        }
        from = at + 1;
    }
    text
}

/// Code without comments and without what stands in strings.
fn bare(text: &str) -> String {
    let mut code = String::new();
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let skipped = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if let Some(raw) = raw_string(rest) {
            raw
        } else if next == '"' {
            let mut end = 1;
            let bytes = rest.as_bytes();
            while end < bytes.len() && bytes[end] != b'"' {
                end += if bytes[end] == b'\\' { 2 } else { 1 };
            }
            code.push('"');
            end + 1
        } else if rest.starts_with("'\"'") || rest.starts_with("b'\"'") {
            rest.find('"').unwrap() + 2
        } else {
            0
        };
        if skipped == 0 {
            code.push(next);
            rest = &rest[next.len_utf8()..];
        } else {
            rest = rest.get(skipped..).unwrap_or_default();
        }
    }
    code
}

/// The length of the raw string that begins here.
fn raw_string(rest: &str) -> Option<usize> {
    let after = rest.strip_prefix("r").or_else(|| rest.strip_prefix("br"))?;
    let hashes = after.len() - after.trim_start_matches('#').len();
    let body = after[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    Some(rest.len() - body.len() + body.find(&end)? + end.len())
}

/// The names that follow each `crate::` in a piece of code, groups taken apart.
fn rooms_named(code: &str) -> BTreeSet<String> {
    let mut named = BTreeSet::new();
    for (at, _) in code.match_indices("crate::") {
        if at > 0 && (code.as_bytes()[at - 1].is_ascii_alphanumeric() || matches!(code.as_bytes()[at - 1], b'_' | b'$')) {
            continue;
        }
        let rest = code[at + "crate::".len()..].trim_start();
        let word = |text: &str| text.chars().take_while(|each| each.is_ascii_alphanumeric() || *each == '_').collect::<String>();
        if let Some(group) = rest.strip_prefix('{') {
            let (mut depth, mut item) = (0, String::new());
            for each in group.chars() {
                match each {
                    '{' => depth += 1,
                    '}' if depth == 0 => break,
                    '}' => depth -= 1,
                    ',' if depth == 0 => {
                        named.insert(word(item.trim()));
                        item.clear();
                        continue;
                    }
                    _ => {}
                }
                item.push(each);
            }
            named.insert(word(item.trim()));
        } else {
            named.insert(word(rest));
        }
    }
    named.retain(|name| !name.is_empty());
    named
}

#[test]
fn the_arrows_point_one_way() {
    let above = |at: usize| ARROWS.iter().take(at).map(|(room, _)| *room).collect::<Vec<&str>>();
    let arrows: BTreeMap<&str, Vec<&str>> = (0..)
        .zip(ARROWS)
        .map(|(at, (room, allowed))| (*room, if *allowed == ["*"] { above(at) } else { allowed.to_vec() }))
        .collect();
    let mut wrong = Vec::new();
    for source in sources() {
        let Some(room) = source.room() else { continue };
        let Some(allowed) = arrows.get(room) else {
            wrong.push(format!("{}: {room} is no room of the house", source.name));
            continue;
        };
        for named in rooms_named(&source.code) {
            let own = named == room || named == "limits" || allowed.contains(&named.as_str());
            if !own && arrows.contains_key(named.as_str()) {
                wrong.push(format!("{}: {room} knows {named}", source.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_arrows_have_no_circle() {
    let mut seen: Vec<&str> = Vec::new();
    for (room, allowed) in ARROWS {
        for named in *allowed {
            assert!(*named == "*" || seen.contains(named), "{room} may know {named}, which stands above it");
        }
        seen.push(room);
    }
}

#[test]
fn the_reader_of_arrows_sees_what_it_should() {
    let code = "use crate::driver::Run;\nuse crate::{limits, model::{Delta, local}, sys};\nfn f() { crate::cli::main() }\nmission_contract::x";
    let names: Vec<String> = rooms_named(code).into_iter().collect();
    assert_eq!(names, ["cli", "driver", "limits", "model", "sys"]);
    let text = "let a = \"crate::cli \\\" // no\"; // crate::cli\nlet b = r#\"crate::cli \"quoted\" \"#; let c = '\"'; crate::sys\n#[cfg(test)]\nmod tests {\n crate::cli }";
    assert_eq!(rooms_named(&bare(without_tests(text))), BTreeSet::from(["sys".to_owned()]));
}

#[test]
fn what_decides_does_nothing_else() {
    let mut wrong = Vec::new();
    for source in sources().iter().filter(|source| source.room().is_some_and(|room| PURE.contains(&room))) {
        for (number, line) in (1..).zip(source.code.lines()) {
            for word in IMPURE.iter().filter(|word| has_word(line, word)) {
                wrong.push(format!("{}: {word} near line {number} of its code: {}", source.name, line.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

pub fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        let part = |each: Option<char>| each.is_some_and(|each| each.is_ascii_alphanumeric() || each == '_');
        !part(before) && (word.ends_with(':') || !part(after))
    })
}

#[test]
fn the_tool_protocol_is_known_in_one_room() {
    let wrong: Vec<String> = sources()
        .into_iter()
        .filter(|source| {
            !source.name.starts_with("src/tools/mcp/") && source.name != "src/tools/mcp.rs" && has_word(&source.code, "rmcp")
        })
        .map(|source| source.name)
        .collect();
    assert!(wrong.is_empty(), "rmcp outside src/tools/mcp: {wrong:?}");
}

#[test]
fn unsafe_code_stands_in_one_room() {
    let wrong: Vec<String> = sources()
        .into_iter()
        .filter(|source| {
            !source.name.starts_with("src/sys/") && (has_word(&source.code, "unsafe") || has_word(&source.code, "unsafe_code"))
        })
        .map(|source| source.name)
        .collect();
    assert!(wrong.is_empty(), "unsafe outside src/sys: {wrong:?}");
}

#[test]
fn a_file_has_one_subject() {
    let long: Vec<String> = sources()
        .into_iter()
        .filter(|source| source.lines > LINES)
        .map(|source| format!("{}: {} lines", source.name, source.lines))
        .collect();
    assert!(long.is_empty(), "{}", long.join("\n"));
}

#[test]
fn nothing_is_left_for_later() {
    let mut all = Vec::new();
    for folder in ["src", "contract", "tests", "bench"] {
        files(&root().join(folder), &mut all);
    }
    // put together here, so that this file does not find itself
    let words = [
        concat!("TO", "DO"),
        concat!("FIX", "ME"),
        concat!("XX", "X"),
        concat!("to", "do!"),
        concat!("unimplem", "ented!"),
        concat!("ig", "nore]"),
        concat!("ig", "nore ="),
    ];
    let mut wrong = Vec::new();
    for path in all.iter().filter(|path| !path.components().any(|part| part.as_os_str() == "target")) {
        let text = std::fs::read_to_string(path).unwrap();
        for (number, line) in (1..).zip(text.lines()) {
            if words.iter().any(|word| marked(line, word)) {
                wrong.push(format!("{}:{number}: {}", path.strip_prefix(root()).unwrap().display(), line.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Whether a line holds a mark as a word of its own: the digits in an escape are none.
fn marked(line: &str, mark: &str) -> bool {
    line.match_indices(mark).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + mark.len()..].chars().next();
        ![before, after].into_iter().flatten().any(|each| each.is_ascii_alphanumeric() || each == '_')
    })
}

/// Crates that must not be in the tree: C libraries that need more than a compiler, a second HTTP stack, parsers that are not sound.
const FORBIDDEN: &[&str] = &[
    "openssl-sys",
    "native-tls",
    "aws-lc-sys",
    "cmake",
    "libgit2-sys",
    "serde_yml",
    "libyml",
    "unsafe-libyaml",
    "unsafe-libyaml-norway",
    "serde_yaml",
    "process-wrap",
];

/// Features that change what a number, an order or a reference means in the whole program.
const FORBIDDEN_FEATURES: &[(&str, &[&str])] = &[
    ("jsonschema", &["resolve-http", "resolve-file"]),
    ("serde_json", &["preserve_order", "arbitrary_precision", "unbounded_depth"]),
    ("rmcp", &["transport-child-process", "auth"]),
];

#[test]
fn the_lock_file_holds_nothing_forbidden() {
    let lock = std::fs::read_to_string(root().join("Cargo.lock")).unwrap();
    let mut packages: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let field =
        |block: &'static str| move |line: &'_ str| line.strip_prefix(block).map(|value| value.trim_matches('"').to_owned());
    for block in lock.split("[[package]]").skip(1) {
        let name = block.lines().find_map(field("name = ")).unwrap();
        let version = block.lines().find_map(field("version = ")).unwrap();
        packages.entry(String::leak(name)).or_default().push(String::leak(version));
    }
    assert!(packages.contains_key("rmcp"), "the lock file was read");
    for name in FORBIDDEN {
        assert!(!packages.contains_key(name), "{name} is in the lock file");
    }
    assert_eq!(packages["nix"].len(), 1, "one nix");
    assert_eq!(packages["reqwest"].len(), 1, "one HTTP client");
    assert!(
        packages.get("hyper").is_none_or(|versions| versions.iter().all(|version| !version.starts_with("0."))),
        "no old hyper"
    );
    assert!(packages["rmcp"].len() == 1 && packages["jsonschema"].len() == 1);
}

#[test]
fn no_forbidden_feature_is_on() {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args([
            "tree",
            "--workspace",
            "--edges",
            "normal,build,dev",
            "--prefix",
            "none",
            "--format",
            "{p}|{f}",
            "--locked",
            "--offline",
        ])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8(output.stdout).unwrap();
    for (name, features) in FORBIDDEN_FEATURES {
        let lines: Vec<&str> = tree.lines().filter(|line| line.split(' ').next() == Some(name)).collect();
        assert!(!lines.is_empty(), "{name} is not in the tree");
        for line in lines {
            let on = line.split('|').nth(1).unwrap_or_default().trim_end_matches(" (*)");
            for feature in *features {
                assert!(!on.split(',').any(|each| each == *feature), "{name}/{feature} is on: {line}");
            }
        }
    }
}

#[test]
fn the_exact_versions_are_pinned() {
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    for name in ["rmcp", "jsonschema"] {
        let line = manifest.lines().find(|line| line.starts_with(&format!("{name} ="))).unwrap();
        assert!(line.contains("version = \"="), "{line}");
        assert!(line.contains("default-features = false"), "{line}");
    }
    assert!(!manifest.contains("panic = \"abort\""), "unwinding writes the last record");
}

/// The names below a heading of a manifest.
fn named_below<'m>(manifest: &'m str, heading: &str) -> Vec<&'m str> {
    let section = manifest.split(&format!("\n[{heading}]\n")).nth(1).unwrap_or_default();
    let lines = section.lines().take_while(|line| !line.starts_with('['));
    lines.filter_map(|line| Some(line.split_once([' ', '.'])?.0)).filter(|name| !name.is_empty() && *name != "#").collect()
}

#[test]
fn every_dependency_is_used() {
    let sources = sources();
    let mut wrong = Vec::new();
    for (manifest, folder) in [("Cargo.toml", "src/"), ("contract/Cargo.toml", "contract/src/")] {
        let text = std::fs::read_to_string(root().join(manifest)).unwrap();
        let names = named_below(&text, "dependencies");
        assert!(names.len() > 3, "{manifest} was read: {names:?}");
        for name in names {
            let word = name.replace('-', "_");
            if !sources.iter().any(|source| source.name.starts_with(folder) && has_word(&source.code, &word)) {
                wrong.push(format!("{manifest}: {name}"));
            }
        }
    }
    assert!(wrong.is_empty(), "nothing uses {wrong:?}");
}
