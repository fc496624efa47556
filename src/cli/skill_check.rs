//! `mission skill check PATH`: what a manifest closes, what the model reads of it, and what is wrong with it.

use std::io::Write;

use mission_contract::log::ToolDefinition;
use mission_contract::vocabulary::exit;
use serde_json::{Value, json};

use super::arguments::{Asked, SkillArguments};
use super::closing::closed;
use super::configuration::refuse_later;
use super::discover::{discover, is_short};
use super::environment::{Environment, Stated};
use super::error::{CliError, quoted};
use super::run::Exit;
use super::servers;
use super::skills::{self, Found};
use crate::skill::SkillError;
use crate::stream::console::visible;
use crate::tools::Discovery;

/// What was found out about a skill.
#[derive(Default)]
struct Checked {
    found: Option<Found>,
    /// The tools that it allows, where servers were asked.
    tools: Option<Vec<String>>,
    /// What is wrong: a run under it is refused.
    problems: Vec<String>,
    /// What is worth a look.
    warnings: Vec<String>,
}

/// Checks a skill. Exit code 1 when something is wrong with it.
///
/// # Errors
/// What is asked wrongly, and output that cannot be written.
pub(super) fn skill(
    arguments: &SkillArguments,
    later: &[Asked],
    environment: &Environment,
    out: &mut dyn Write,
) -> Result<Exit, CliError> {
    refuse_later(later, environment)?;
    let path = match arguments.words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["check", path] => (*path).to_owned(),
        ["check"] => return Err(CliError::Usage("`mission skill check` needs a skill: mission skill check PATH".to_owned())),
        ["check", _, more, ..] => {
            return Err(CliError::Usage(format!("`mission skill check` takes one skill, and {} is a second", quoted(more))));
        }
        [] => return Err(CliError::Usage("`mission skill` needs a word: check".to_owned())),
        [other, ..] => {
            return Err(CliError::Usage(format!("{} is nothing that `mission skill` does; it does check", quoted(other))));
        }
    };
    let servers = servers::resolve(&arguments.servers, environment)?;
    let mut checked = Checked::default();
    match skills::read(&Stated { value: path.clone(), place: "check" }) {
        Err(error @ (CliError::Skill(_) | CliError::File { .. })) => checked.problems.push(error.to_string()),
        Err(error) => return Err(error),
        Ok(found) => {
            checked.warnings = found.warnings();
            if !servers.requests.is_empty() {
                let discovery = match discover(servers)? {
                    Ok(discovery) => discovery,
                    Err(signal) => return Ok(Exit::Signal(signal)),
                };
                checked.ask(&found, &discovery);
            }
            let wishes = found.manifest.not_yet(false);
            if !wishes.is_empty() {
                let skill = found.manifest.name.clone();
                checked.problems.push(SkillError::NotYet { skill, wishes }.to_string());
            }
            checked.found = Some(found);
        }
    }
    let text = if arguments.json { checked.json(&path) } else { checked.text(&path) };
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(CliError::Output)?;
    Ok(Exit::Code(if checked.problems.is_empty() { exit::FINE } else { exit::FAILED }))
}

impl Checked {
    /// Holds the skill against what servers offer.
    fn ask(&mut self, found: &Found, discovery: &Discovery) {
        let failed = discovery.servers.iter().filter_map(|server| server.detail.clone());
        if is_short(discovery) {
            self.problems.extend(failed);
        } else {
            self.warnings.extend(failed);
        }
        match closed(&found.manifest, &discovery.tools) {
            Ok(tools) => {
                let is_allowed = |tool: &ToolDefinition| tools.contains(&tool.full_name());
                let left = discovery.tools.iter().filter(|tool| !is_allowed(tool)).count();
                if left > 0 {
                    self.warnings.push(format!("{left} tools that the servers offer are not in the set"));
                }
                self.tools = Some(tools);
            }
            Err(error) => self.problems.push(error.to_string()),
        }
        self.warnings.extend(discovery.observed.iter().map(|seen| format!("{}: {}", seen.what, seen.detail)));
    }

    fn text(&self, path: &str) -> String {
        let mut text = String::new();
        if let Some(found) = &self.found {
            let manifest = &found.manifest;
            let place = found.file.as_ref().map_or_else(|| "shipped".to_owned(), |file| file.to_string_lossy().into_owned());
            text.push_str(&format!("skill {}  ({})\n", visible::one_line(&manifest.name), visible::one_line(&place)));
            let facts = [
                ("digest", Some(&manifest.digest)),
                ("version", manifest.version.as_ref()),
                ("license", manifest.license.as_ref()),
                ("compatibility", manifest.compatibility.as_ref()),
                ("sdk_import", manifest.sdk_import.as_ref()),
            ];
            for (name, value) in facts.into_iter().filter_map(|(name, value)| Some((name, value?))) {
                text.push_str(&format!("  {name}: {}\n", visible::one_line(value)));
            }
            text.push_str("\ncloses the set to\n");
            for tool in &manifest.allowed_tools {
                let optional = if tool.optional { "  (optional)" } else { "" };
                text.push_str(&format!("  {}{optional}\n", visible::one_line(&tool.name)));
            }
            if let Some(tools) = &self.tools {
                text.push_str(&format!("which are, in this order: {}\n", visible::one_line(&tools.join(", "))));
            }
            text.push_str("\nthe model reads\n");
            for line in visible::text(&manifest.prompt()).lines() {
                text.push_str(if line.is_empty() { "\n" } else { "  " });
                if !line.is_empty() {
                    text.push_str(&format!("{line}\n"));
                }
            }
            text.push('\n');
        }
        for warning in &self.warnings {
            text.push_str(&format!("warning: {}\n", visible::one_line(warning)));
        }
        for problem in &self.problems {
            text.push_str(&format!("wrong: {}\n", visible::one_line(problem)));
        }
        if self.problems.is_empty() {
            text.push_str(&format!("{}: nothing is wrong\n", visible::one_line(path)));
        }
        text
    }

    fn json(&self, path: &str) -> String {
        let manifest = self.found.as_ref().map(|found| &found.manifest);
        let allowed = manifest.map(|manifest| {
            let tool = |tool: &crate::skill::AllowedTool| json!({"name": tool.name, "optional": tool.optional});
            manifest.allowed_tools.iter().map(tool).collect::<Vec<Value>>()
        });
        let metadata: Option<serde_json::Map<String, Value>> =
            manifest.map(|manifest| manifest.metadata.iter().map(|(key, value)| (key.clone(), json!(value))).collect());
        let whole = json!({
            "path": path,
            "skill": manifest.map(|manifest| json!(manifest.reference())),
            "version": manifest.and_then(|manifest| manifest.version.clone()),
            "metadata": metadata,
            "allowed_tools": allowed,
            "tools": self.tools,
            "prompt": manifest.map(|manifest| manifest.prompt()),
            "problems": self.problems,
            "warnings": self.warnings,
        });
        serde_json::to_string_pretty(&whole).unwrap_or_default() + "\n"
    }
}
