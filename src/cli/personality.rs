//! `--personality`: who the model is. A file of TOML, JSON or YAML, read once; and the file of variables that it names.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::environment::{Environment, Stated};
use super::error::{CliError, quoted};
use super::files::read_bounded;
use crate::limits;
use crate::skill::{Node, Problem, Value, read_yaml, shown};

/// Who the model is.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Personality {
    /// What the prompt begins with.
    pub system_message: String,
    /// Who answers, unless the command line says so.
    pub default_provider: Option<String>,
    /// The model of that provider.
    pub default_model: Option<String>,
    /// Variables about models, from its file of variables: they come before those of the environment. Some are credentials.
    variables: BTreeMap<String, String>,
}

impl std::fmt::Debug for Personality {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut debug = formatter.debug_struct("Personality");
        debug
            .field("default_provider", &self.default_provider)
            .field("default_model", &self.default_model)
            .finish_non_exhaustive()
    }
}

/// The variables that a personality's file of variables may set: those about models. Servers, policies and places are not its to say.
const VARIABLES: &[&str] =
    &["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "MISTRAL_API_KEY", "LOCAL_API_KEY", "LOCAL_API_BASE", "LOCAL_MODEL", "ELF_PROVIDER"];

/// Where it is looked for when the personality does not say.
const ENV_FILE: &str = ".elf_env";

impl Personality {
    /// Reads the personality that the command line names, if it does.
    ///
    /// # Errors
    /// A file that cannot be read, or is none.
    pub(super) fn of(typed: Option<&str>, environment: &Environment) -> Result<Option<Self>, CliError> {
        let stated = Stated::either("--personality", typed, environment, "MISSION_PERSONALITY");
        stated.map(|stated| Self::read(&stated, environment)).transpose()
    }

    fn read(stated: &Stated, environment: &Environment) -> Result<Self, CliError> {
        let path = Path::new(&stated.value);
        let text = text_of(stated, path, limits::PERSONALITY_BYTES)?;
        let form = path.extension().map(|extension| extension.to_string_lossy().to_lowercase()).unwrap_or_default();
        let problem = |problem: String| CliError::File { place: stated.place.to_owned(), file: quoted(&stated.value), problem };
        let file = parse(&form, &text).map_err(|place| problem(place.to_string()))?;
        let home = environment.get("HOME").map(String::as_str).unwrap_or_default();
        let variables = variables(&env_file(file.env_path.as_deref(), home)).map_err(problem)?;
        Ok(Self {
            system_message: file.system_message,
            default_provider: file.default_provider,
            default_model: file.default_model,
            variables,
        })
    }

    /// The environment as models see it.
    pub(super) fn over(&self, environment: &Environment) -> Environment {
        let mut environment = environment.clone();
        environment.extend(self.variables.clone());
        environment
    }

    /// The credentials among its variables, each with the name that stands in its place.
    pub fn secrets(&self) -> Vec<(String, String)> {
        let is_key = |(name, _): &(&String, &String)| name.ends_with("_KEY");
        self.variables.iter().filter(is_key).map(|(name, value)| (name.clone(), value.clone())).collect()
    }
}

/// A small text that a flag names.
pub(super) fn text_of(stated: &Stated, path: &Path, most: u64) -> Result<String, CliError> {
    let problem = |problem: String| CliError::File { place: stated.place.to_owned(), file: quoted(&stated.value), problem };
    let bytes =
        read_bounded(path, most).map_err(|error| problem(format!("it cannot be read ({error}); name a readable file")))?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > most {
        return Err(problem(format!("it is larger than {most} bytes; leave out what the model need not read")));
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text)),
        Err(error) => {
            let at = error.utf8_error().valid_up_to().saturating_add(1);
            Err(problem(format!("it is not UTF-8 (byte {at}); save it as UTF-8")))
        }
    }
}

/// The file as it is written.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(rename = "name")]
    name: String,
    system_message: String,
    // Read so that a file of the harness before passes, and used by no mission.
    #[serde(default, rename = "examples")]
    _examples: Vec<(String, String)>,
    #[serde(default, rename = "text_color")]
    _text_color: Option<String>,
    #[serde(default)]
    env_path: Option<String>,
    #[serde(default, rename = "rag_enhancement_style")]
    _rag_enhancement_style: Option<String>,
    #[serde(default)]
    default_provider: Option<String>,
    #[serde(default)]
    default_model: Option<String>,
}

fn parse(form: &str, text: &str) -> Result<Written, Problem> {
    let written = match form {
        "toml" => toml::from_str(text).map_err(|error| {
            let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
            let line = u64::try_from(before.matches('\n').count()).unwrap_or(u64::MAX).saturating_add(1);
            let column = before.rsplit('\n').next().map_or(0, |last| last.chars().count()).saturating_add(1);
            Problem::at(line, u64::try_from(column).unwrap_or(u64::MAX), first_line(error.message()))
        }),
        // A list would be taken for the values in their order.
        "json" if !text.trim_start().starts_with('{') => {
            Err(Problem::at(1, 1, "a personality is an object with `name` and `system_message`"))
        }
        "json" => serde_json::from_str(text).map_err(|error| at(&error)),
        "yaml" | "yml" => read_yaml(text, 0).and_then(|node| of_yaml(&node)),
        _ => Err(Problem::at(
            0,
            0,
            "its name ends in none of .toml, .json, .yaml and .yml, and so its form is not known; rename it",
        )),
    }?;
    for (key, value) in [("name", &written.name), ("system_message", &written.system_message)] {
        if value.trim().is_empty() {
            return Err(Problem::at(0, 0, format!("`{key}` is empty; write something")));
        }
    }
    Ok(written)
}

/// An error of the JSON parser with its place apart.
pub(super) fn at(error: &serde_json::Error) -> Problem {
    let place = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
    let words = error.to_string();
    let bare = words.split(" at line ").next().unwrap_or_default();
    Problem::at(place(error.line()), place(error.column()).max(1), first_line(bare))
}

fn first_line(words: &str) -> String {
    let first = words.lines().next().unwrap_or_default();
    first
        .chars()
        .flat_map(char::escape_debug)
        .take(limits::size(limits::QUOTED_CHARACTERS))
        .collect::<String>()
        .replace("\\\"", "\"")
}

fn of_yaml(node: &Node) -> Result<Written, Problem> {
    let mut written = Written::default();
    let (mut name, mut message) = (None, None);
    for (key, node) in node.map("the file")? {
        let what = format!("the value of `{}`", shown(&key.text));
        let text = || match node.value {
            Value::Nothing => Ok(None),
            _ => node.text(&what).map(|text| Some(text.to_owned())),
        };
        match key.text.as_str() {
            "name" => name = Some(node.text(&what)?.to_owned()),
            "system_message" => message = Some(node.text(&what)?.to_owned()),
            "examples" => written._examples = node.list(&what)?.iter().map(pair).collect::<Result<_, _>>()?,
            "text_color" => written._text_color = text()?,
            "env_path" => written.env_path = text()?,
            "rag_enhancement_style" => written._rag_enhancement_style = text()?,
            "default_provider" => written.default_provider = text()?,
            "default_model" => written.default_model = text()?,
            other => return Err(key.problem(format!("the key `{}` is unknown; remove it", shown(other)))),
        }
    }
    let missing = |key: &str| Problem::at(1, 1, format!("the key `{key}` is missing; write it"));
    written.name = name.ok_or_else(|| missing("name"))?;
    written.system_message = message.ok_or_else(|| missing("system_message"))?;
    Ok(written)
}

fn pair(node: &Node) -> Result<(String, String), Problem> {
    match node.list("each example")? {
        [one, other] => Ok((one.text("an example's first half")?.to_owned(), other.text("an example's second half")?.to_owned())),
        _ => Err(node.problem("each example has two halves, `[said, answered]`")),
    }
}

/// Where the variables are: the file that is named, or the one in the folder that is.
fn env_file(named: Option<&str>, home: &str) -> PathBuf {
    let named = named.map(str::trim).filter(|named| !named.is_empty()).unwrap_or("~/.elf_env");
    let path = match named.strip_prefix("~/") {
        Some(rest) => Path::new(home).join(rest),
        None => PathBuf::from(named),
    };
    if path.is_dir() { path.join(ENV_FILE) } else { path }
}

/// The variables about models in a file of them; none where there is no such file, since most deployments set them in the environment.
fn variables(path: &Path) -> Result<BTreeMap<String, String>, String> {
    let shown_path = || quoted(&path.to_string_lossy());
    let bytes = match read_bounded(path, limits::PERSONALITY_BYTES) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(BTreeMap::new());
        }
        Err(error) => return Err(format!("its file of variables {} cannot be read ({error})", shown_path())),
        Ok(bytes) if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > limits::PERSONALITY_BYTES => {
            return Err(format!("its file of variables {} is larger than {} bytes", shown_path(), limits::PERSONALITY_BYTES));
        }
        Ok(bytes) => bytes,
    };
    let text = String::from_utf8(bytes).map_err(|_| format!("its file of variables {} is not UTF-8", shown_path()))?;
    Ok(text.lines().filter_map(assignment).filter(|(name, _)| VARIABLES.contains(&name.as_str())).collect())
}

/// `NAME=VALUE`, perhaps with `export` before it, quotes around the value or a comment behind it.
fn assignment(line: &str) -> Option<(String, String)> {
    let line = line.trim();
    let line = line.strip_prefix("export ").unwrap_or(line);
    let (name, value) = line.split_once('=').filter(|_| !line.starts_with('#'))?;
    let value = value.trim();
    let quoted = |sign: char| value.strip_prefix(sign).and_then(|rest| rest.split_once(sign)).map(|(inside, _)| inside);
    let value = quoted('"').or_else(|| quoted('\'')).unwrap_or_else(|| value.split(" #").next().unwrap_or_default().trim_end());
    Some((name.trim().to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const TOML: &str = "name = \"tai\"\nsystem_message = \"\"\"\nYou count lamps.\n\"\"\"\nexamples = [[\"a\", \"b\"]]\ntext_color = \"cyan\"\ndefault_provider = \"local\"\ndefault_model = \"m\"\n";
    const JSON: &str = "{\"name\": \"tai\", \"system_message\": \"You count lamps.\\n\", \"examples\": [[\"a\", \"b\"]], \"default_provider\": \"local\", \"default_model\": \"m\"}";
    const YAML: &str = "name: tai\nsystem_message: |\n  You count lamps.\nexamples:\n  - [a, b]\nenv_path: ~\ndefault_provider: local\ndefault_model: m\n";

    fn refused(form: &str, text: &str) -> String {
        parse(form, text).unwrap_err().to_string()
    }

    #[test]
    fn the_three_forms_say_the_same() {
        for (form, text) in [("toml", TOML), ("json", JSON), ("yaml", YAML), ("yml", YAML)] {
            let written = parse(form, text).unwrap();
            assert_eq!(written.system_message, "You count lamps.\n", "{form}");
            assert_eq!(
                (written.default_provider.as_deref(), written.default_model.as_deref()),
                (Some("local"), Some("m")),
                "{form}"
            );
            assert_eq!(written._examples.len(), 1, "{form}");
        }
    }

    #[test]
    fn what_is_no_personality_is_refused_with_its_place() {
        insta::assert_snapshot!(refused("toml", "name = \"a\"\nsystem_message = \"b\"\nmood = \"c\"\n"), @"line 3, column 1: unknown field `mood`, expected one of `name`, `system_message`, `examples`, `text_color`, `env_path`, `rag_enhancement_style`, `default_provider`, `default_model`");
        insta::assert_snapshot!(refused("toml", "name = \"a\"\nname = \"b\"\n"), @"line 2, column 1: duplicate key");
        insta::assert_snapshot!(refused("toml", "name = \"a\"\nsystem_message = \n"), @"line 2, column 18: string values must be quoted, expected literal string");
        insta::assert_snapshot!(refused("toml", "name = \"a\"\n"), @"line 1, column 1: missing field `system_message`");
        insta::assert_snapshot!(refused("json", "{\"name\": \"a\",\n \"system_message\": \"b\",\n \"mood\": 1}"), @"line 3, column 7: unknown field `mood`, expected one of `name`, `system_message`, `examples`, `text_color`, `env_path`, `rag_enhancement_style`, `default_provider`, `default_model`");
        insta::assert_snapshot!(refused("json", "{\"name\": \"a\",\n \"name\": \"b\"}"), @"line 2, column 7: duplicate field `name`");
        insta::assert_snapshot!(refused("json", "[1]"), @"line 1, column 1: a personality is an object with `name` and `system_message`");
        insta::assert_snapshot!(refused("yaml", "name: a\nsystem_message: b\nmood: c\n"), @"line 3, column 1: the key `mood` is unknown; remove it");
        insta::assert_snapshot!(refused("yaml", "name: a\nname: b\n"), @"line 2, column 1: the key `name` stands there twice; keep one of them");
        insta::assert_snapshot!(refused("yaml", "name: a\nsystem_message: [b]\n"), @"line 2, column 17: the value of `system_message` has to be a text, and is none");
        insta::assert_snapshot!(refused("yaml", "name: a\nsystem_message: b\nexamples: [[a]]\n"), @"line 3, column 12: each example has two halves, `[said, answered]`");
        insta::assert_snapshot!(refused("yaml", "name: a\n"), @"line 1, column 1: the key `system_message` is missing; write it");
        insta::assert_snapshot!(refused("yaml", "name: a\nsystem_message: ' '\n"), @"`system_message` is empty; write something");
        insta::assert_snapshot!(refused("txt", "name: a\n"), @"its name ends in none of .toml, .json, .yaml and .yml, and so its form is not known; rename it");
    }

    #[test]
    fn variables_are_read_as_a_shell_reads_them_and_only_those_about_models() {
        let folder = tempfile::tempdir().unwrap();
        let text = "# keys\nexport OPENAI_API_KEY='k 1'\nLOCAL_MODEL=\"m\" # mine\nLOCAL_API_BASE = http://h/v1 # there\nPATH=/x\nMISSION_SKILL=evil\nnonsense\n";
        std::fs::write(folder.path().join(ENV_FILE), text).unwrap();
        let found = variables(&env_file(folder.path().to_str(), "")).unwrap();
        let found: Vec<(&str, &str)> = found.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(found, [("LOCAL_API_BASE", "http://h/v1"), ("LOCAL_MODEL", "m"), ("OPENAI_API_KEY", "k 1")]);
        assert_eq!(env_file(None, "/home/a"), Path::new("/home/a/.elf_env"));
        assert!(variables(Path::new("/nowhere/at/all")).unwrap().is_empty());
    }
}
