//! A manifest: read whole, or refused with everything that is wrong with it.
//!
//! It comes in two forms. Ours has `allowed_tools`, at the top or below `skill:`, and fields that rule a run. The public form of Agent
//! Skills has `allowed-tools`, a text or a list, and `metadata`, `license` and `compatibility`, which no model reads.

use std::collections::BTreeSet;

use mission_contract::digest::sha256_hex;
use mission_contract::event::SkillRef;

use super::error::{Problem, SkillError};
use super::frontmatter;
use super::grounding::{self, Grounding};
use super::names::{same_tool, tool_key};
use super::render::{self, one_line};
use super::spelling;
use super::yaml::{Node, Placed, Value, shown};
use crate::limits;

/// The file's name in a skill's folder.
pub const FILE_NAME: &str = "SKILL.md";

/// The fields that say how to work, in the order in which the model reads them.
const OPERATIONAL: [&str; 6] = ["when_to_use", "inputs", "retrieval_strategy", "ranking", "policy", "evidence_requirements"];

/// Tools of the program's own that run code.
const CODE_TOOLS: [&str; 3] = ["run_shell_command", "run_python_code", "install_project"];

/// A skill that was understood whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    /// Its name.
    pub name: String,
    /// Its version, as it says.
    pub version: Option<String>,
    /// What it is for, in one line.
    pub description: Option<String>,
    /// The tools that a run under it may use, in the manifest's order; never empty.
    pub allowed_tools: Vec<AllowedTool>,
    /// How an answer has to be held against the results.
    pub grounding: Option<Grounding>,
    /// The module by which code reaches the tools in a staged run.
    pub sdk_import: Option<String>,
    /// What it asks of the sandbox.
    pub sandbox: Option<SandboxWish>,
    /// The licence, as the public form says it.
    pub license: Option<String>,
    /// What it needs around it, as the public form says it.
    pub compatibility: Option<String>,
    /// Facts for other programs, as the public form says them.
    pub metadata: Vec<(String, String)>,
    /// Fields of the prompt behind the description: the operational ones in their order, then the others in the file's.
    pub fields: Vec<String>,
    /// What the model is told, as Markdown; empty only where a field says how to work.
    pub body: String,
    /// The last part of the prompt: what an answer looks like.
    pub output_format: Option<String>,
    /// What is no mistake and worth a look.
    pub warnings: Vec<Problem>,
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

/// What a manifest asks of the sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SandboxWish {
    /// Code tools are confined.
    Bwrap,
    /// It has no code tools.
    None,
}

impl Manifest {
    /// Reads a manifest; `source_name` is what refusals call it.
    ///
    /// # Errors
    /// Everything that is wrong with it, in one refusal: nothing of a manifest counts unless all of it is understood.
    pub fn parse(source_name: &str, bytes: &[u8]) -> Result<Self, SkillError> {
        read(bytes).map_err(|problems| SkillError::Manifest { file: source_name.to_owned(), problems })
    }

    /// What a prompt says about it, a blank line between the parts: name, description, the fields that say how to work, the fields that
    /// nobody here knows, the text, and what an answer looks like.
    pub fn prompt(&self) -> String {
        let name = format!("Skill: {}", self.name);
        let parts = [Some(name.as_str()), self.description.as_deref()].into_iter().flatten();
        let parts = parts.chain(self.fields.iter().map(String::as_str));
        let parts = parts.chain(Some(self.body.as_str()).filter(|body| !body.is_empty())).chain(self.output_format.as_deref());
        parts.collect::<Vec<_>>().join("\n\n")
    }

    /// Its name and content, as records show it.
    pub fn reference(&self) -> SkillRef {
        SkillRef { name: self.name.clone(), digest: self.digest.clone() }
    }

    /// What it asks for and this build does not do yet, a sentence each: a run under it is refused rather than left ungoverned.
    /// `without_grounding` when the operator does without its checks.
    pub fn not_yet(&self, without_grounding: bool) -> Vec<String> {
        let mut wishes = Vec::new();
        if self.sandbox == Some(SandboxWish::Bwrap) {
            wishes.push(
                "asks for code tools in a sandbox (`sandbox: bwrap`), and this build confines no code tools yet: none is run unconfined"
                    .to_owned(),
            );
        }
        if !without_grounding && self.grounding.as_ref().is_some_and(Grounding::checks) {
            wishes.push(
                "asks for its answers to be held against the results (`grounding`), and this build does not do that yet; --no-grounding does without"
                    .to_owned(),
            );
        }
        wishes
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
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > limits::SKILL_BYTES {
        let what = format!("it is larger than {} bytes; what the model need not read belongs into a tool", limits::SKILL_BYTES);
        return Err(vec![Problem::at(0, 0, what)]);
    }
    let text = std::str::from_utf8(bytes).map_err(|error| vec![not_utf8(bytes, error.valid_up_to())])?;
    let halves = frontmatter::split(text).map_err(|problem| vec![problem])?;
    let keys = frontmatter::read(halves.yaml).map_err(|problem| vec![problem])?;
    let mut reading = Reading {
        manifest: Manifest { body: halves.body.trim().to_owned(), digest: sha256_hex(bytes), ..Manifest::default() },
        ..Reading::default()
    };
    for (key, node) in &keys {
        reading.take(key, node);
    }
    reading.finish(text)
}

/// A manifest while it is read.
#[derive(Default)]
struct Reading<'k> {
    manifest: Manifest,
    problems: Vec<Problem>,
    name: Option<(&'k Placed, &'k Node)>,
    skill_id: Option<(&'k Placed, &'k Node)>,
    tools: Option<&'k Placed>,
    operational: [Option<String>; OPERATIONAL.len()],
    others: Vec<String>,
}

impl<'k> Reading<'k> {
    fn take(&mut self, key: &'k Placed, node: &'k Node) {
        let what = format!("the value of `{}`", shown(&key.text));
        let text = |node: &Node| node.text(&what).map(|text| Some(one_line(text)).filter(|text| !text.is_empty()));
        let manifest = &mut self.manifest;
        let read = match key.text.as_str() {
            "name" => {
                self.name = Some((key, node));
                Ok(())
            }
            "skill_id" => {
                self.skill_id = Some((key, node));
                Ok(())
            }
            "version" => text(node).map(|text| manifest.version = text),
            "license" => text(node).map(|text| manifest.license = text),
            "compatibility" => text(node).map(|text| manifest.compatibility = text),
            "metadata" => metadata(node).map(|pairs| manifest.metadata = pairs),
            "description" => match node.text(&what).map(|text| (one_line(text), control(text))) {
                Ok((_, Some(sign))) => Err(node.problem(format!("{what} holds a control character (U+{sign:04X}); remove it"))),
                Ok((text, None)) => {
                    manifest.description = Some(text).filter(|text| !text.is_empty());
                    Ok(())
                }
                Err(problem) => Err(problem),
            },
            "allowed_tools" | "allowed-tools" if self.tools.is_some() => {
                Err(key.problem("the tools are listed twice, under `allowed_tools` and `allowed-tools`; keep one of them"))
            }
            "allowed_tools" => {
                self.tools = Some(key);
                let entries = node.list(&what).and_then(|items| {
                    let placed = |item: &Node| Ok(at(item, item.text("each entry of `allowed_tools`")?));
                    items.iter().map(placed).collect::<Result<Vec<_>, _>>()
                });
                entries.map(|entries| manifest.allowed_tools = tools(key, &entries, &mut self.problems))
            }
            "allowed-tools" => {
                self.tools = Some(key);
                listed(node, &what).map(|entries| manifest.allowed_tools = tools(key, &entries, &mut self.problems))
            }
            "grounding" => {
                manifest.grounding = Some(grounding::read(node, &mut self.problems));
                Ok(())
            }
            "sdk_import" => module(node, &what).map(|module| manifest.sdk_import = Some(module)),
            "sandbox" => {
                self.others.extend(render::field("Sandbox", node));
                sandbox(node, &what).map(|wish| manifest.sandbox = Some(wish))
            }
            "output_format" => {
                manifest.output_format = render::field("Output format", node);
                Ok(())
            }
            other => match (OPERATIONAL.iter().zip(&mut self.operational).find(|(name, _)| **name == other), spelling::meant(other)) {
                (Some((_, place)), _) => {
                    *place = render::field(&render::label(other), node);
                    Ok(())
                }
                (None, Some(known)) => Err(key.problem(format!(
                    "the key `{}` is none, and looks like `{known}`, without which the skill would not be governed as it seems; write `{known}`, or name the key otherwise",
                    shown(other)
                ))),
                (None, None) => {
                    self.others.extend(render::field(&render::label(other), node));
                    Ok(())
                }
            },
        };
        self.problems.extend(read.err());
    }

    fn finish(mut self, text: &str) -> Result<Manifest, Vec<Problem>> {
        let about_fence = |what: &str| Problem::at(1, 1, what);
        let mut identity = None;
        for (key, node) in [self.skill_id, self.name].into_iter().flatten() {
            match node.text(&format!("the value of `{}`", key.text)) {
                Ok(name) => {
                    self.problems.extend(name_problem(name).map(|what| node.problem(format!("`{}` {what}", key.text))));
                    identity.get_or_insert((name, node));
                }
                Err(problem) => self.problems.push(problem),
            }
        }
        match identity {
            Some((name, node)) => {
                name.clone_into(&mut self.manifest.name);
                let plain = |sign: char| sign.is_ascii_lowercase() || sign.is_ascii_digit() || sign == '-';
                if !name.chars().all(plain) {
                    self.manifest.warnings.push(
                        node.problem(
                            "the name is not portable: other programs take lower-case letters, digits and hyphens alone",
                        ),
                    );
                }
            }
            None if self.name.is_none() && self.skill_id.is_none() => {
                self.problems.push(about_fence("the key `name` is missing; give the skill a name"));
            }
            None => {}
        }
        if self.tools.is_none() {
            self.problems.push(about_fence("the key `allowed_tools` is missing; list the tools that the skill may use"));
        }
        let manifest = &mut self.manifest;
        let says_how = self.operational.iter().any(Option::is_some);
        if manifest.body.is_empty() && !says_how {
            self.problems.push(about_fence("nothing stands behind the front matter; tell the model there how to work"));
        }
        if manifest.sandbox != Some(SandboxWish::Bwrap)
            && let Some(key) = self.tools
        {
            let code =
                manifest.allowed_tools.iter().filter(|tool| CODE_TOOLS.iter().any(|code| tool_key(code) == tool_key(&tool.name)));
            let names: Vec<&str> = code.map(|tool| tool.name.as_str()).collect();
            if !names.is_empty() {
                self.problems.push(key.problem(format!(
                    "{} would run code, which needs `sandbox: bwrap`; a server's tool of that name is written with the server's name before it",
                    names.join(", ")
                )));
            }
        }
        if !self.problems.is_empty() {
            self.problems.sort_by_key(|problem| (problem.line, problem.column));
            return Err(self.problems);
        }
        manifest.fields = self.operational.into_iter().flatten().chain(self.others).collect();
        let described = manifest.description.as_ref().map_or(0, |text| text.chars().count());
        if described > limits::size(limits::SKILL_DESCRIPTION_CHARACTERS) {
            let most = limits::SKILL_DESCRIPTION_CHARACTERS;
            let what = format!("`description` has {described} characters; other programs take {most} at most");
            manifest.warnings.push(about_fence(&what));
        }
        manifest.warnings.extend(unseen(text));
        Ok(self.manifest)
    }
}

fn at(node: &Node, text: &str) -> Placed {
    Placed { line: node.line, column: node.column, text: text.to_owned() }
}

/// The tools as the public form lists them: a list, or a text with blanks or commas between the names.
fn listed(node: &Node, what: &str) -> Result<Vec<Placed>, Problem> {
    match &node.value {
        Value::List(items) => items.iter().map(|item| Ok(at(item, item.text("each entry of `allowed-tools`")?))).collect(),
        Value::Text(text) => {
            let names = text.split([' ', ',', '\n']).filter(|name| !name.is_empty());
            Ok(names.map(|name| at(node, name)).collect())
        }
        _ => Err(node.problem(format!("{what} has to be a list, or a text with blanks between the names"))),
    }
}

fn tools(key: &Placed, entries: &[Placed], problems: &mut Vec<Problem>) -> Vec<AllowedTool> {
    let list = &key.text;
    if entries.is_empty() {
        problems.push(key.problem(format!("`{list}` is empty; list at least one tool")));
    }
    let mut names = BTreeSet::new();
    let mut tools = Vec::new();
    for entry in entries {
        let name = entry.text.trim();
        let (name, optional) = name.strip_suffix('?').map_or((name, false), |name| (name.trim_end(), true));
        if name.contains(['(', ')']) {
            problems.push(entry.problem(format!(
                "`{list}` has the entry `{}`, which allows only some arguments; such an entry is not understood, and a name alone allows them all",
                shown(&entry.text)
            )));
        } else if tool_key(name).is_empty() || name.chars().any(|sign| sign.is_whitespace() || sign.is_control()) {
            problems.push(entry.problem(format!("`{list}` has the entry `{}`, which is no tool's name", shown(&entry.text))));
        } else if !names.insert(name) {
            problems.push(entry.problem(format!("`{list}` has `{name}` twice; keep one of them")));
        } else {
            tools.push(AllowedTool { name: name.to_owned(), optional });
        }
    }
    tools
}

fn metadata(node: &Node) -> Result<Vec<(String, String)>, Problem> {
    let pairs = node.map("the value of `metadata`")?;
    let text =
        |(key, node): &(Placed, Node)| Ok((key.text.clone(), node.text(&format!("`metadata.{}`", shown(&key.text)))?.to_owned()));
    pairs.iter().map(text).collect()
}

fn module(node: &Node, what: &str) -> Result<String, Problem> {
    let text = node.words(what)?.trim();
    let is_part = |part: &str| {
        part.starts_with(|sign: char| sign.is_alphabetic() || sign == '_')
            && part.chars().all(|sign| sign.is_alphanumeric() || sign == '_')
    };
    match text.split('.').all(is_part) {
        true => Ok(text.to_owned()),
        false => Err(node.problem(format!("{what} is `{}`, which is no module's name", shown(text)))),
    }
}

fn sandbox(node: &Node, what: &str) -> Result<SandboxWish, Problem> {
    let text = node.text(what)?;
    match text.trim().to_lowercase().as_str() {
        "bwrap" => Ok(SandboxWish::Bwrap),
        "none" => Ok(SandboxWish::None),
        _ => Err(node.problem(format!("{what} is `{}`; it is bwrap or none", shown(text)))),
    }
}

/// The first control character that is no line break.
fn control(text: &str) -> Option<u32> {
    text.chars().find(|sign| sign.is_control() && !sign.is_whitespace()).map(u32::from)
}

fn name_problem(name: &str) -> Option<String> {
    let longest = limits::size(limits::SKILL_NAME_CHARACTERS);
    Some(if name.trim().is_empty() {
        "is empty; give the skill a name".to_owned()
    } else if name.trim() != name {
        "begins or ends with a blank; remove it".to_owned()
    } else if name.chars().count() > longest {
        format!("is too long; at most {longest} characters")
    } else if name.contains(['/', '\\']) || name == "." || name == ".." {
        "looks like a path; a name is no path".to_owned()
    } else if name.chars().any(|sign| sign.is_control() || is_unseen(sign)) {
        "holds a character that nobody sees; remove it".to_owned()
    } else {
        return None;
    })
}

/// Marks that nobody sees, or that turn the direction of what follows.
fn is_unseen(sign: char) -> bool {
    matches!(
        sign,
        '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}'
    )
}

/// A warning about marks that nobody sees: a text may say something else than it seems to.
fn unseen(text: &str) -> Option<Problem> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut found = (1u64..)
        .zip(text.split('\n'))
        .flat_map(|(line, text)| (1u64..).zip(text.chars()).map(move |(column, sign)| (line, column, sign)))
        .filter(|(_, _, sign)| is_unseen(*sign));
    let (line, column, sign) = found.next()?;
    let more = match found.count() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(Problem::at(
        line,
        column,
        format!("a mark that nobody sees (U+{:04X}){more}; see that the text says what it seems to", u32::from(sign)),
    ))
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

#[cfg(test)]
#[path = "manifest_tests.rs"]
mod manifest_tests;
