//! Manifests as they are found in the field: read whole, or refused before anything is asked, and never read halfway.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::model::{Model, answer};
use crate::support::player::{Serving, field, field_json};
use crate::support::run::{Finished, Mission, write};
use crate::support::{needs, servers};

/// `mission skill check PATH --json`, and what it prints.
fn check(path: &Path) -> (Finished, Value) {
    let finished = Mission::verb(["skill".into(), "check".into(), path.as_os_str().to_owned(), "--json".into()]).run();
    let printed = serde_json::from_str(&finished.stdout).unwrap_or_else(|_| panic!("{finished}"));
    (finished, printed)
}

/// What the manifest of a case closes the set to; nothing when it is refused, with file and line where it has lines.
fn closes(path: &Path) -> Option<Vec<String>> {
    let (finished, printed) = check(path);
    let problems = printed["problems"].as_array().unwrap();
    match problems.as_slice() {
        [] => {
            finished.exits(0);
            let tools = printed["allowed_tools"].as_array().unwrap();
            Some(tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect())
        }
        [problem] => {
            finished.exits(1);
            let problem = problem.as_str().unwrap();
            assert!(problem.contains("SKILL.md") || problem.contains("no SKILL.md"), "{problem}");
            assert!(printed["skill"].is_null() && printed["prompt"].is_null(), "nothing of it counts: {printed}");
            None
        }
        several => panic!("{several:?}"),
    }
}

fn cases(case: &str) -> Vec<(String, Option<Vec<String>>)> {
    let mut names: Vec<String> = std::fs::read_dir(field(case))
        .unwrap()
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert!(!names.is_empty());
    names.into_iter().map(|name| (name.clone(), closes(&field(case).join(name)))).collect()
}

/// K04. Marks and blanks that nobody means are fine; what is not there is not made up.
#[test]
fn bytes_around_the_front_matter() {
    let expected = field_json("K04", "expect.json");
    let is = |list: &str, name: &str| expected[list].as_array().unwrap().iter().any(|listed| listed == name);
    for (name, closed) in cases("K04") {
        match closed {
            Some(tools) => {
                assert!(!is("error", &name), "{name} is no manifest");
                assert_eq!(tools, ["echo"], "{name}");
            }
            None => assert!(!is("ok", &name), "{name} is a manifest"),
        }
    }
}

/// K05. The front matter ends at the next fence; what stands behind is text.
#[test]
fn where_the_front_matter_ends() {
    let expected = field_json("K05", "expect.json");
    for (name, closed) in cases("K05") {
        match closed {
            Some(tools) => assert_eq!(json!(tools), expected["ok"][&name], "{name}"),
            None => assert!(expected["ok"][&name].is_null(), "{name} is a manifest"),
        }
    }
}

/// K06. What is written is what is meant: no number, no date, no yes.
#[test]
fn words_that_look_like_something_else() {
    for (name, closed) in cases("K06") {
        if ["nulln", "empty"].contains(&name.as_str()) {
            assert_eq!(closed, None, "{name}");
            continue;
        }
        let path = field("K06").join(&name);
        let text = std::fs::read_to_string(path.join("SKILL.md")).unwrap();
        let written = |key: &str| {
            let line = text.lines().find(|line| line.starts_with(key)).unwrap();
            line.split_once(": ").unwrap().1.trim_matches(['[', ']']).split(", ").map(str::to_owned).collect::<Vec<_>>()
        };
        // `.nan` has a dot before it and is a word all the same.
        assert_eq!(closed, Some(written("allowed-tools:")), "{name}");
        let (_, printed) = check(&path);
        assert_eq!(json!([printed["skill"]["name"]]), json!(written("name:")), "{name}");
    }
}

/// K08. The name is the skill's identity, and no path; one that differs from its folder's is a warning.
#[test]
fn a_name_and_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let tree = folder.path().join("skills");
    let made = Command::new("bash").arg(field("K08").join("tree.sh")).arg(&tree).env("LC_ALL", "C.UTF-8").output().unwrap();
    assert!(made.status.success());
    for (name, is_fine) in [
        ("good", true),
        ("dirx", true),
        (" blank", true),
        ("Upper", true),
        ("dup1", true),
        ("ünï", true),
        ("evil", false),
        ("long", false),
        ("lower", false),
    ] {
        assert_eq!(closes(&tree.join(name)).is_some(), is_fine, "{name}");
    }
    let warned = |name: &str| check(&tree.join(name)).1["warnings"].to_string();
    assert_eq!(warned("good"), "[]");
    for name in ["dirx", " blank", "dup1"] {
        assert!(warned(name).contains("its folder's"), "{}", warned(name));
    }
    for name in ["Upper", "ünï"] {
        assert!(warned(name).contains("not portable"), "{}", warned(name));
    }
    let finished = Mission::objective("x").skill(&tree).run();
    finished.refused(&["dup1", "dup2", "good"]);
}

/// K09. What is huge, binary, a link that leads away, or no file is refused at once, and never waited for.
#[test]
fn what_is_no_text_file() {
    let folder = tempfile::tempdir().unwrap();
    let made = Command::new("bash").arg(field("K09").join("mk.sh")).arg(folder.path().join("k09")).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let at = |name: &str| folder.path().join("k09").join(name);
    for (name, naming) in [
        ("big", "65536"),
        ("nul", "U+0000"),
        ("latin", "byte 32"),
        ("link", "/etc/passwd"),
        ("fifo", "no regular file"),
        ("dir", "no regular file"),
    ] {
        let model = Model::says([answer("never")]);
        let began = Instant::now();
        let finished = Mission::objective("x").model(&model).skill(&at(name)).run();
        finished.refused(&[naming]);
        assert!(began.elapsed() < Duration::from_secs(20), "{name}: it is not waited for");
        assert!(model.requests().is_empty() && !finished.stderr.contains("root:"), "{finished}");
    }
    // A link within the skill's folder is how some systems put files there.
    let good = folder.path().join("good");
    write(&good, "..data/SKILL.md", "---\nname: good\nallowed_tools: [echo]\n---\nx\n");
    symlink("..data/SKILL.md", good.join("SKILL.md")).unwrap();
    assert_eq!(closes(&good), Some(vec!["echo".to_owned()]));
}

/// K10. A description in any shape is one line, and closes and opens nothing.
#[test]
fn descriptions_in_every_shape() {
    let expected = field_json("K10", "expect.json");
    for (name, closed) in cases("K10") {
        let is_wrong = expected["error"].as_array().unwrap().iter().any(|wrong| *wrong == name);
        assert_eq!(closed.is_none(), is_wrong, "{name}");
        let Some(tools) = closed else { continue };
        assert_eq!(json!(tools), expected["tools_always"], "{name}");
        let (_, printed) = check(&field("K10").join(&name));
        let prompt = printed["prompt"].as_str().unwrap();
        let described = prompt.split("\n\n").nth(1).unwrap();
        assert!(!described.contains('\n'), "{name}: {described:?}");
        if ["literal", "folded", "plainml"].contains(&name.as_str()) {
            assert_eq!(described, "one two", "{name}");
        }
        let warnings = printed["warnings"].to_string();
        assert_eq!(warnings.contains("1024"), name == "long", "{warnings}");
        assert_eq!(warnings.contains("nobody sees"), name == "zw", "{warnings}");
    }
    let printed = Mission::verb(["skill".into(), "check".into(), field("K10").join("zw").into_os_string()]).run();
    assert!(!printed.stdout.contains(['\u{200b}', '\u{202e}']) && printed.stdout.contains("\\u{200b}"), "{printed}");
}

fn manifest(folder: &Path, front: &str) -> PathBuf {
    write(folder, "lamps/SKILL.md", &format!("---\nname: lamps\n{front}---\nCount lamps.\n")).parent().unwrap().to_owned()
}

#[test]
fn a_check_says_what_is_closed_what_is_read_and_what_is_wrong() {
    needs!(servers::python());
    let folder = tempfile::tempdir().unwrap();
    let serving = Serving::tools(&json!([
        {"name": "look", "description": "Looks.", "inputSchema": {}},
        {"name": "erase", "description": "Erases.", "inputSchema": {}},
    ]));
    let path = manifest(folder.path(), "allowed_tools: [look, peek?]\nranking: newest first\n");
    let with = |path: &Path| {
        let words = ["skill".into(), "check".into(), path.as_os_str().to_owned()];
        Mission::verb(words).mcp_stdio("srv", &serving.line()).run()
    };
    let finished = with(&path);
    finished.exits(0);
    for part in [
        "skill lamps",
        "peek  (optional)",
        "in this order: srv.look\n",
        "Ranking: newest first",
        "Count lamps.",
        "1 tools that the servers offer are not in the set",
        "nothing is wrong",
    ] {
        assert!(finished.stdout.contains(part), "{part}: {finished}");
    }
    let finished = with(&manifest(folder.path(), "allowed_tools: [look, weigh]\n"));
    finished.exits(1);
    assert!(
        finished.stdout.contains("wrong: ") && finished.stdout.contains("weigh") && finished.stdout.contains("srv.erase"),
        "{finished}"
    );
    let finished = with(&manifest(folder.path(), "allowed_tools: [look]\ngrounding: {critic: true}\n"));
    finished.exits(1);
    assert!(finished.stdout.contains("--no-grounding") && finished.stdout.contains("closes the set to"), "{finished}");
    for (words, naming) in [
        (&["skill"][..], "check"),
        (&["skill", "prune"], "`prune`"),
        (&["skill", "check"], "PATH"),
        (&["skill", "check", "a", "b"], "`b`"),
        (&["lock"], "--skill"),
    ] {
        let finished = Mission::verb(words.iter().copied()).run();
        finished.exits(2);
        assert!(finished.stderr.contains(naming), "{finished}");
    }
    let finished = Mission::verb(["skill", "check", "no-such"]).run();
    finished.exits(1);
    assert!(finished.stdout.contains("analyst"), "{finished}");
}

/// What is shipped is found by its name, wherever the program stands; it is the file in `skills/`.
#[test]
fn a_shipped_skill_is_found_by_its_name() {
    let finished = Mission::verb(["skill", "check", "analyst", "--json"]).run();
    finished.exits(1);
    let printed: Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!(printed["skill"]["name"], "analyst");
    assert_eq!(
        printed["allowed_tools"],
        json!([{"name": "fs", "optional": false}, {"name": "run_python_code", "optional": false}])
    );
    assert!(printed["prompt"].as_str().unwrap().contains("\n\nWhen to use: "), "{printed}");
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("skills/analyst/SKILL.md");
    assert_eq!(check(&repository).1["skill"]["digest"], printed["skill"]["digest"]);
    // Its code tools cannot be confined yet: it is refused, and nothing runs unconfined.
    let model = Model::says([answer("never")]);
    let finished = Mission::objective("x").model(&model).arg("--skill=analyst").arg("--no-grounding").run();
    finished.refused(&["analyst", "bwrap", "confines"]);
    assert!(model.requests().is_empty());
    // A path of that name comes first.
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "analyst/SKILL.md", "---\nname: mine\nallowed_tools: [mission_result]\n---\nx\n");
    let model = Model::says([answer("fine")]);
    let finished = Mission::objective("x").model(&model).arg("--skill=analyst").directory(folder.path()).run();
    finished.exits(0);
    assert_eq!(finished.only("mission_started")["skill"]["name"], "mine");
}
