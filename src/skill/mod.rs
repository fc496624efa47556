//! What a manifest allows: which tools a run may use, and what the model is told about its work. Pure.
//!
//! A manifest is a file `SKILL.md`: YAML between two lines `---`, then Markdown. This build understands `name`, `description`
//! and `allowed_tools`, at the top or below `skill:`; any other key is refused by its name, never passed over.

mod error;
mod frontmatter;
mod names;

use std::collections::BTreeSet;

use mission_contract::digest::sha256_hex;
use mission_contract::event::SkillRef;

pub use error::{Problem, SkillError};
pub use frontmatter::{Placed, keys, settings};
pub use names::{near_match, same_tool, tool_key};

use crate::limits;
use frontmatter::FrontMatter;

/// The file's name in a skill's folder.
pub const FILE_NAME: &str = "SKILL.md";

/// A skill that was understood whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// Its name.
    pub name: String,
    /// What it is for, in one line.
    pub description: Option<String>,
    /// The tools that a run under it may use, in the manifest's order; never empty.
    pub allowed_tools: Vec<AllowedTool>,
    /// What the model is told, as Markdown; never empty.
    pub body: String,
    /// SHA-256 of the file's bytes, in hex.
    pub digest: String,
}

/// A tool that a manifest allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedTool {
    /// Its name as the manifest spells it.
    pub name: String,
    /// True when the skill does without it.
    pub optional: bool,
}

impl Manifest {
    /// Reads a manifest; `source_name` is what refusals call it.
    ///
    /// # Errors
    /// Everything that is wrong with it, in one refusal: nothing of a manifest counts unless all of it is understood.
    pub fn parse(source_name: &str, bytes: &[u8]) -> Result<Self, SkillError> {
        read(bytes).map_err(|problems| SkillError::Manifest { file: source_name.to_owned(), problems })
    }

    /// What a prompt says about it: its name, its description and its body, a blank line between them.
    pub fn prompt(&self) -> String {
        let name = format!("Skill: {}", self.name);
        [Some(name.as_str()), self.description.as_deref(), Some(self.body.as_str())]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join("\n\n")
    }

    /// Its name and content, as records show it.
    pub fn reference(&self) -> SkillRef {
        SkillRef { name: self.name.clone(), digest: self.digest.clone() }
    }

    /// The full names of the tools that it allows among those offered, in its order. A name that is spelt as an offered one
    /// means that one; any other means the one that is the [`same_tool`].
    ///
    /// # Errors
    /// Every name without a tool and every name with several, with what is offered; and a skill of which nothing is there.
    pub fn close<S: AsRef<str>>(&self, offered: &[S]) -> Result<Vec<String>, SkillError> {
        let offered: BTreeSet<&str> = offered.iter().map(AsRef::as_ref).collect();
        let (mut resolved, mut missing, mut ambiguous) = (Vec::<String>::new(), Vec::new(), Vec::new());
        for allowed in &self.allowed_tools {
            let found: Vec<&str> = match offered.get(allowed.name.as_str()) {
                Some(exact) => vec![exact],
                None => offered.iter().copied().filter(|tool| same_tool(&allowed.name, tool)).collect(),
            };
            match found.as_slice() {
                [] if allowed.optional => {}
                [] => missing.push(allowed.name.clone()),
                [one] if resolved.iter().any(|name| name == one) => {}
                [one] => resolved.push((*one).to_owned()),
                several => ambiguous.push((allowed.name.clone(), several.iter().map(|tool| (*tool).to_owned()).collect())),
            }
        }
        if missing.is_empty() && ambiguous.is_empty() && !resolved.is_empty() {
            return Ok(resolved);
        }
        let offered = offered.into_iter().map(str::to_owned).collect();
        Err(SkillError::Tools { skill: self.name.clone(), missing, ambiguous, offered })
    }
}

fn read(bytes: &[u8]) -> Result<Manifest, Vec<Problem>> {
    let whole = |what: String| vec![Problem::at(0, 0, what)];
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > limits::SKILL_BYTES {
        return Err(whole(format!(
            "it is larger than {} bytes; what the model need not read belongs into a tool",
            limits::SKILL_BYTES
        )));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| vec![not_utf8(bytes, error.valid_up_to())])?;
    let halves = frontmatter::split(text).map_err(|problem| vec![problem])?;
    let FrontMatter { name, description, allowed_tools, others } =
        frontmatter::read(halves.yaml).map_err(|problem| vec![problem])?;
    let mut problems: Vec<Problem> = others.iter().map(|key| key.problem(not_understood(&key.text))).collect();
    let about_fence = |what: &str| Problem::at(1, 1, what);
    match &name {
        None => problems.push(about_fence("the key `name` is missing; give the skill a name")),
        Some(name) => problems.extend(name_problem(&name.text).map(|what| name.problem(what))),
    }
    if let Some(description) = &description
        && let Some(sign) = description.text.chars().find(|sign| sign.is_control() && !sign.is_whitespace())
    {
        problems
            .push(description.problem(format!("`description` holds a control character (U+{:04X}); remove it", u32::from(sign))));
    }
    let tools = match &allowed_tools {
        None => {
            problems.push(about_fence("the key `allowed_tools` is missing; list the tools that the skill may use"));
            Vec::new()
        }
        Some((key, entries)) => tools(key, entries, &mut problems),
    };
    let body = halves.body.trim();
    if body.is_empty() {
        problems.push(about_fence("nothing stands behind the front matter; tell the model there how to work"));
    }
    if !problems.is_empty() {
        problems.sort_by_key(|problem| (problem.line, problem.column));
        return Err(problems);
    }
    Ok(Manifest {
        name: name.map(|name| name.text).unwrap_or_default(),
        description: description.map(|text| one_line(&text.text)).filter(|text| !text.is_empty()),
        allowed_tools: tools,
        body: body.to_owned(),
        digest: sha256_hex(bytes),
    })
}

fn tools(key: &Placed, entries: &[Placed], problems: &mut Vec<Problem>) -> Vec<AllowedTool> {
    if entries.is_empty() {
        problems.push(key.problem("`allowed_tools` is empty; list at least one tool"));
    }
    let mut names = BTreeSet::new();
    let mut tools = Vec::new();
    for entry in entries {
        let name = entry.text.trim();
        let (name, optional) = name.strip_suffix('?').map_or((name, false), |name| (name.trim_end(), true));
        if tool_key(name).is_empty() || name.chars().any(|sign| sign.is_whitespace() || sign.is_control()) {
            problems.push(
                entry.problem(format!("`allowed_tools` has the entry `{}`, which is no tool's name", entry.text.escape_debug())),
            );
        } else if !names.insert(name) {
            problems.push(entry.problem(format!("`allowed_tools` has `{name}` twice; keep one of them")));
        } else {
            tools.push(AllowedTool { name: name.to_owned(), optional });
        }
    }
    tools
}

fn name_problem(name: &str) -> Option<String> {
    let longest = limits::size(limits::SKILL_NAME_CHARACTERS);
    let what = if name.trim().is_empty() {
        "is empty; give the skill a name"
    } else if name.trim() != name {
        "begins or ends with a blank; remove it"
    } else if name.chars().count() > longest {
        "is too long"
    } else if name.contains(['/', '\\']) || name == "." || name == ".." {
        "looks like a path; a name is no path"
    } else if name.chars().any(char::is_control) {
        "holds a control character; remove it"
    } else {
        return None;
    };
    let bound = if what == "is too long" { format!("; at most {longest} characters") } else { String::new() };
    Some(format!("`name` {what}{bound}"))
}

fn not_understood(key: &str) -> String {
    let shown: String = key.escape_debug().take(limits::size(limits::SKILL_KEY_CHARACTERS)).collect();
    let hint = match key {
        "allowed-tools" => "; the tools are listed under `allowed_tools`",
        "skill_id" => "; the name stands under `name`",
        _ => "; remove it",
    };
    format!("the key `{shown}` is not supported by this build yet{hint}")
}

fn not_utf8(bytes: &[u8], valid: usize) -> Problem {
    let front = String::from_utf8_lossy(bytes.get(..valid).unwrap_or_default());
    let line = front.matches('\n').count().saturating_add(1);
    let column = front.rsplit('\n').next().map_or(0, |last| last.chars().count()).saturating_add(1);
    let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    Problem::at(
        number(line),
        number(column),
        format!("this is not UTF-8 (byte {} of the file); save it as UTF-8", valid.saturating_add(1)),
    )
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod manifest_tests;
