//! Who the model is, and what was said before: files that are read at the door and stand in the run's first prompt.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::model::{Model, answer};
use crate::support::run::{Mission, write};

fn messages(model: &Model) -> Vec<Value> {
    model.requests()[0]["messages"].as_array().unwrap().clone()
}

#[test]
fn a_personality_begins_the_prompt_in_each_of_its_forms() {
    let folder = tempfile::tempdir().unwrap();
    let files = [
        write(folder.path(), "a.toml", "name = \"tai\"\nsystem_message = \"You count lamps.\"\ntext_color = \"cyan\"\n"),
        write(folder.path(), "a.json", r#"{"name": "tai", "system_message": "You count lamps.", "examples": [["a", "b"]]}"#),
        write(folder.path(), "a.yaml", "name: tai\nsystem_message: You count lamps.\n"),
    ];
    for file in &files {
        for way in ["--personality", "MISSION_PERSONALITY", "TAI_PERSONALITY", "ELF_PERSONALITY"] {
            let model = Model::says([answer("twelve")]);
            let mission = Mission::objective("count").model(&model);
            let mission = if way.starts_with('-') { mission.arg(way).arg(file) } else { mission.env(way, file.as_os_str()) };
            let finished = mission.run();
            finished.exits(0).ends("answered");
            let system = messages(&model)[0]["content"].as_str().unwrap().to_owned();
            assert!(system.starts_with("You count lamps.\n\n"), "{way}: {system}");
            let persona = finished.log().of_kind("open")[0]["spec"]["texts"]["persona"]["text"].clone();
            assert_eq!(persona, "You count lamps.");
        }
    }
}

#[test]
fn a_personality_names_provider_model_and_a_file_of_variables() {
    let folder = tempfile::tempdir().unwrap();
    let model = Model::says([answer("twelve"), answer("twelve")]);
    let secret = "sk-test-0123456789abcdef";
    write(
        folder.path(),
        "keys/.elf_env",
        &format!("export LOCAL_API_KEY='{secret}'\nLOCAL_API_BASE={}\nMISSION_SKILL=/no/such\n", model.base_url()),
    );
    let keys = folder.path().join("keys");
    let text = format!(
        "name: tai\nsystem_message: The key is {secret}.\nenv_path: {}\ndefault_provider: local\ndefault_model: brass\n",
        keys.display()
    );
    let file = write(folder.path(), "tai.yml", &text);
    let finished = Mission::objective("count").arg("--personality").arg(&file).run();
    finished.exits(0).ends("answered");
    assert_eq!(model.requests()[0]["model"], "brass");
    assert!(!finished.stdout.contains(secret) && !finished.stderr.contains(secret), "{finished}");
    // What is typed comes first.
    let finished = Mission::objective("count").arg("--personality").arg(&file).args(["--model", "tin"]).run();
    finished.exits(0);
    assert_eq!(model.requests()[1]["model"], "tin");
}

#[test]
fn earlier_turns_stand_before_the_objective() {
    let folder = tempfile::tempdir().unwrap();
    let turns = json!([{"role": "user", "content": "How many?", "at": 1}, {"role": "assistant", "content": "Twelve."}]);
    let file = write(folder.path(), "history.json", &turns.to_string());
    for way in ["--history", "MISSION_HISTORY"] {
        for protocol in ["json", "native"] {
            let model = Model::says([answer("twelve")]);
            let mission = Mission::objective("And today?").model(&model).protocol(protocol);
            let mission = if way.starts_with('-') { mission.arg(way).arg(&file) } else { mission.env(way, file.as_os_str()) };
            let finished = mission.run();
            finished.exits(0).ends("answered");
            assert_eq!(finished.only("mission_started")["history"], 2);
            let said: Vec<(Value, Value)> =
                messages(&model)[1..].iter().map(|message| (message["role"].clone(), message["content"].clone())).collect();
            let expected = [("user", "How many?"), ("assistant", "Twelve."), ("user", "And today?")]
                .map(|(role, text)| (json!(role), json!(text)));
            assert_eq!(said, expected);
        }
    }
}

#[test]
fn what_is_no_such_file_is_refused_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str, text: &str| write(folder.path(), name, text);
    let missing = folder.path().join("missing.toml");
    let pipe = folder.path().join("pipe.json");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let table: Vec<(&str, std::path::PathBuf, &[&str])> = vec![
        ("--personality", path("a.toml", "name = \"a\"\nsystem_message = \"b\"\nmood = \"c\"\n"), &["a.toml", "line 3", "mood"]),
        ("--personality", path("b.json", "{\"name\": \"a\",\n\"name\": \"b\"}"), &["b.json", "line 2", "name"]),
        ("--personality", path("c.yaml", "name: a\n\tsystem_message: b\n"), &["c.yaml", "line 2", "tab"]),
        ("--personality", path("d.txt", "name: a\n"), &["d.txt", ".toml"]),
        ("--personality", path("e.yaml", "name: a\nsystem_message: b\ndefault_provider: grok\n"), &["grok", "the personality"]),
        ("--personality", missing, &["missing.toml"]),
        (
            "--history",
            path("f.json", "[{\"role\": \"user\", \"content\": \"a\"},\n{\"role\": \"system\", \"content\": \"b\"}]"),
            &["f.json", "line 2", "turn 1", "system"],
        ),
        ("--history", path("g.json", "{}"), &["g.json", "line 1"]),
        ("--history", path("h.json", "[{\"role\": \"user\", \"content\": \"\n"), &["h.json"]),
        ("--history", pipe, &["pipe.json", "no regular file"]),
    ];
    for (flag, file, naming) in table {
        let model = Model::says([answer("never")]);
        let finished =
            Mission::objective("count").env("LOCAL_API_BASE", model.base_url()).env("LOCAL_MODEL", "m").arg(flag).arg(&file);
        let finished = if naming.contains(&"grok") { finished } else { finished.arg("--provider=local") };
        let finished = finished.run();
        finished.refused(naming);
        assert!(model.requests().is_empty());
    }
}

/// The files of the formats are valid by their published schemas, and those that are refused are not, where a schema can tell.
#[test]
fn the_published_schemas_judge_files_as_the_program_does() {
    let schema = |name: &str| {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("schemas/{name}.json"));
        jsonschema::validator_for(&serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()).unwrap()
    };
    let (personality, history, skill) = (schema("personality"), schema("history"), schema("skill"));
    assert!(personality.is_valid(&json!({"name": "a", "system_message": "b", "examples": [["c", "d"]]})));
    for wrong in [
        json!({"name": "a"}),
        json!({"name": "a", "system_message": "b", "mood": 1}),
        json!({"name": " ", "system_message": "b"}),
        json!([]),
    ] {
        assert!(!personality.is_valid(&wrong), "{wrong}");
    }
    assert!(history.is_valid(&json!([{"role": "user", "content": "", "more": 1}])));
    for wrong in [
        json!({}),
        json!([{"role": "system", "content": ""}]),
        json!([{"role": "user"}]),
        json!(vec![json!({"role": "user", "content": ""}); 101]),
    ] {
        assert!(!history.is_valid(&wrong), "{wrong}");
    }
    for good in [
        json!({"name": "a", "allowed_tools": ["b", "c?"], "anything": {"x": 1}, "sandbox": "none"}),
        json!({"skill": {"name": "a", "allowed_tools": ["b"], "grounding": {"number_pattern": "x", "must_cite": {"figures": 1}}}}),
        json!({"name": "a", "description": "d", "allowed-tools": "b c", "metadata": {"k": "v"}}),
    ] {
        assert!(skill.is_valid(&good), "{good}");
    }
    for wrong in [
        json!({"name": "a", "allowed_tools": "b"}),
        json!({"name": "a", "allowed_tools": []}),
        json!({"name": "a", "allowed_tools": ["b"], "allowed-tools": "b"}),
        json!({"name": "a", "allowed_tools": ["b"], "sandbox": "docker"}),
        json!({"name": "a", "allowed_tools": ["b"], "grounding": {"pattern": "x"}}),
        json!({"name": "a", "allowed_tools": ["b"], "grounding": {"critic": "yes"}}),
        json!({"skill": {"skill": {}}}),
    ] {
        assert!(!skill.is_valid(&wrong), "{wrong}");
    }
    for name in ["analyst", "parts-desk"] {
        let text =
            std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("skills/{name}/SKILL.md"))).unwrap();
        let front: Value = serde_yaml::from_str(text.split("---\n").nth(1).unwrap()).unwrap();
        assert!(skill.is_valid(&front), "{name}: {front}");
    }
}
