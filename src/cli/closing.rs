//! The set of tools that a run offers: closed by its skill, held to its lock, counted.

use mission_contract::lock::{Lock, PinnedTool, set_digest};
use mission_contract::log::{Observed, ToolDefinition};
use mission_contract::spec::Spec;

use super::discover::is_short;
use super::environment::Stated;
use super::error::{CliError, quoted};
use super::files::read_bounded;
use super::skills::Found;
use crate::engine::run::Run;
use crate::engine::words::RESULT_TOOL;
use crate::limits;
use crate::skill::pins::{self, LOCK_FILE};
use crate::skill::{Manifest, SkillError};
use crate::tools::Discovery;

/// What closes the set, not held against any tool yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Closing {
    /// The skill.
    pub skill: Option<Manifest>,
    /// Its lock (`--locked`).
    pub lock: Option<Lock>,
    /// Most tools that may be offered.
    pub limit: Option<u64>,
    /// The operator does without the checks that the skill asks for.
    pub without_grounding: bool,
}

impl Closing {
    /// Puts together what a command line says.
    ///
    /// # Errors
    /// A skill that would be less governed than it asks; a lock without a skill, or one that cannot be read; a limit that is none.
    pub(super) fn of(found: Option<Found>, locked: bool, limit: Option<&str>, without_grounding: bool) -> Result<Self, CliError> {
        let found = found.map(|found| found.governed(without_grounding)).transpose()?;
        let lock = match (&found, locked) {
            (_, false) => None,
            (Some(found), true) => Some(lock_of(found)?),
            (None, true) => {
                return Err(CliError::Refused(
                    "--locked holds the tools to the lock of a skill, and there is none; name one with --skill".to_owned(),
                ));
            }
        };
        Ok(Self { skill: found.map(|found| found.manifest), lock, limit: tool_limit(limit)?, without_grounding })
    }

    /// Writes into a run's specification what closes it, once the servers have listed their tools.
    ///
    /// # Errors
    /// Names without a tool, tools that are not those of the lock, more tools than may be offered. A required server that is away ends
    /// the run by itself, and refuses nothing here.
    pub(super) fn close(&self, spec: &mut Spec, discovery: &Discovery) -> Result<Option<Observed>, CliError> {
        spec.tool_limit = self.limit;
        spec.locked = self.lock.as_ref().map(|lock| lock.set.clone());
        spec.grounding_off = self.without_grounding;
        let Some(skill) = &self.skill else {
            if !is_short(discovery) {
                self.count(discovery.tools.len())?;
            }
            return Ok(None);
        };
        spec.allowed_tools = Some(if is_short(discovery) { Vec::new() } else { self.allowed(skill, discovery)? });
        let asks = self.without_grounding && !skill.not_yet(false).is_empty();
        let detail = || {
            format!("The skill {} asks for its answers to be held against the results; --no-grounding does without.", skill.name)
        };
        Ok(asks.then(|| Observed { what: "grounding_off".to_owned(), detail: detail(), ..Observed::default() }))
    }

    fn allowed(&self, skill: &Manifest, discovery: &Discovery) -> Result<Vec<String>, CliError> {
        let closed = closed(skill, &discovery.tools);
        if let Some(lock) = &self.lock {
            // A tool that is gone is drift before it is a name that nobody answers to.
            let allowed = closed.as_deref().ok();
            pins::hold(lock, &skill.reference(), allowed, &discovery.tools, &discovery.servers)?;
        }
        let allowed = closed?;
        self.count(allowed.len())?;
        Ok(allowed)
    }

    fn count(&self, tools: usize) -> Result<(), CliError> {
        match self.limit {
            Some(limit) if u64::try_from(tools).unwrap_or(u64::MAX) > limit => Err(CliError::Refused(format!(
                "{tools} tools would be offered, and --tool-limit allows {limit}; name those that are needed in a skill (--skill), or allow more"
            ))),
            _ => Ok(()),
        }
    }
}

/// Holds a locked run that is taken up to the tools that it was locked to.
///
/// # Errors
/// Every tool that is another one now, or is gone. Where no server was started, nothing is called.
pub(super) fn still_locked(run: &Run, discovery: &Discovery) -> Result<(), CliError> {
    let spec = &run.open().spec;
    let (Some(set), Some(allowed)) = (&spec.locked, &spec.allowed_tools) else { return Ok(()) };
    if discovery.servers.is_empty() || is_short(discovery) {
        return Ok(());
    }
    let defined = |name: &String| discovery.tools.iter().find(|tool| tool.full_name() == *name);
    let now: Vec<PinnedTool> = allowed.iter().filter_map(defined).map(PinnedTool::of).collect();
    if set_digest(&now) == *set {
        return Ok(());
    }
    let mut drift: Vec<String> = Vec::new();
    for name in allowed {
        match now.iter().find(|tool| tool.name == *name) {
            None => drift.push(format!("{name} is gone")),
            Some(tool) if run.definition(name).is_some_and(|digest| digest != tool.digest) => {
                drift.push(format!("{name} changed"))
            }
            Some(_) => {}
        }
    }
    if drift.is_empty() {
        drift.push("its tools are another set than the one that the run began with".to_owned());
    }
    let skill = spec.skill.as_ref().map(|skill| skill.name.clone()).unwrap_or_default();
    Err(SkillError::Drift { skill, drift }.into())
}

/// The tools that a skill allows, by their full names.
///
/// # Errors
/// Names without a tool, or with several.
pub(super) fn closed(skill: &Manifest, tools: &[ToolDefinition]) -> Result<Vec<String>, SkillError> {
    // What the engine answers itself is always on offer: a manifest may name it, and need not.
    let results = std::iter::once(RESULT_TOOL.to_owned());
    let offered: Vec<String> = tools.iter().map(ToolDefinition::full_name).chain(results).collect();
    let mut allowed = skill.close(&offered)?;
    allowed.retain(|name| name != RESULT_TOOL);
    Ok(allowed)
}

fn lock_of(found: &Found) -> Result<Lock, CliError> {
    let Some(file) = &found.file else {
        return Err(CliError::Refused(format!(
            "--locked: the skill {} is shipped with the program and has no folder, where its lock would lie; name a skill in a folder",
            found.manifest.name
        )));
    };
    let path = file.with_file_name(LOCK_FILE);
    let problem =
        |problem: String| CliError::File { place: "--locked".to_owned(), file: quoted(&path.to_string_lossy()), problem };
    let bytes = read_bounded(&path, limits::LOCK_BYTES).map_err(|error| {
        problem(format!("it cannot be read ({error}); write it with mission lock, with the same --skill and servers"))
    })?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > limits::LOCK_BYTES {
        return Err(problem(format!("it is larger than {} bytes, and is no lock", limits::LOCK_BYTES)));
    }
    pins::read(&bytes).map_err(problem)
}

fn tool_limit(typed: Option<&str>) -> Result<Option<u64>, CliError> {
    let Some(stated) = Stated::flag("--tool-limit", typed) else { return Ok(None) };
    let limit = stated.value.trim().parse::<u64>().ok().filter(|limit| *limit > 0);
    limit.map(Some).ok_or_else(|| stated.refuse("that is no number of tools; give one from 1 on, or leave it out"))
}
