//! Recordings that a command line names: found, read, and varied by what stands beside them.

use std::path::{Path, PathBuf};

use mission_contract::log::Open;
use mission_contract::spec::{GateRule, PolicyText, PromptText};

use super::environment::Stated;
use super::error::{CliError, quoted};
use super::{gates, governing, hiding, skills};
use crate::engine::words::RESULT_TOOL;
use crate::journal::{LogReader, RunStore};
use crate::limits::{LISTED_RECORDINGS, RECORDING_BYTES, size};
use crate::redact::Redactor;
use crate::replay::{Recording, RecordingError, learn, seed2};
use crate::skill::Manifest;

/// The log in a run's folder.
const LOG_FILE: &str = "log.ndjson";

/// What a word names.
enum Found {
    Log(PathBuf),
    Seed2(PathBuf),
}

/// Reads the recording that a word names: a run in `store`, the folder of one, or a log file.
///
/// # Errors
/// A word that names none, and a recording that cannot be taken up.
pub(super) fn load(word: &str, store: &RunStore) -> Result<Recording, RecordingError> {
    match find(word, store)? {
        Found::Seed2(folder) => seed2::read(word, &folder),
        Found::Log(path) => {
            let unreadable = |problem: String| RecordingError::Unreadable(format!("the log {} {problem}", path.display()));
            let facts = std::fs::metadata(&path).map_err(|error| unreadable(format!("cannot be read ({error})")))?;
            if !facts.is_file() {
                return Err(unreadable("is no regular file; name a run, its folder or its log".to_owned()));
            }
            if facts.len() > RECORDING_BYTES {
                return Err(unreadable(format!("is larger than {RECORDING_BYTES} bytes, the most that is replayed")));
            }
            let reader = LogReader::open(&path).map_err(|error| RecordingError::Unreadable(error.to_string()))?;
            Recording::from_log(word, reader)
        }
    }
}

fn find(word: &str, store: &RunStore) -> Result<Found, RecordingError> {
    let kept = store.run_folder(word).filter(|_| word.starts_with("run_") && !word.contains('/'));
    let place = Path::new(word);
    let path = kept.clone().filter(|folder| folder.is_dir()).unwrap_or_else(|| place.to_owned());
    if path.join(LOG_FILE).exists() {
        return Ok(Found::Log(path.join(LOG_FILE)));
    }
    if path.join(seed2::EVENTS_FILE).exists() {
        return Ok(Found::Seed2(path));
    }
    if path.is_dir() {
        let inside = recordings_in(&path);
        let problem = match inside.as_slice() {
            [] => format!("holds neither {LOG_FILE} nor {}; name the folder of a recorded run", seed2::EVENTS_FILE),
            some => format!("is no recording but holds some ({}); name them: {}/*", some.join(", "), word.trim_end_matches('/')),
        };
        return Err(RecordingError::Unreadable(format!("the folder {} {problem}", quoted(word))));
    }
    if path.file_name().is_some_and(|name| name == seed2::EVENTS_FILE) && path.exists() {
        return Ok(Found::Seed2(path.parent().map(Path::to_owned).unwrap_or_default()));
    }
    if path.exists() {
        return Ok(Found::Log(path));
    }
    let places = match kept.as_deref().and_then(Path::parent) {
        Some(runs) => format!("no run {} in {}, and no folder or log of that name here", quoted(word), runs.display()),
        None => format!("no run, folder or log {}", quoted(word)),
    };
    Err(RecordingError::Unreadable(format!("there is {places}; name a run by its id, or a recording by its path")))
}

fn recordings_in(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let is_recording = |path: &Path| path.join(LOG_FILE).exists() || path.join(seed2::EVENTS_FILE).exists();
    let mut names: Vec<String> = entries
        .filter_map(Result::ok)
        .filter(|entry| is_recording(&entry.path()))
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .take(size(LISTED_RECORDINGS))
        .collect();
    names.sort();
    names
}

/// What is typed beside a recording: each part replaces the recorded one.
#[derive(Debug, Default)]
pub(super) struct Variation {
    skill: Option<Manifest>,
    /// The tools and the rules of gates.
    gates: Option<(Vec<String>, Vec<GateRule>)>,
    policy: Option<PolicyText>,
}

impl Variation {
    /// Reads it.
    ///
    /// # Errors
    /// A skill that cannot be read or asks for more than this build does, a rule that is none.
    pub(super) fn of(
        skill: Option<&str>,
        without_grounding: bool,
        gate_tools: &[String],
        gate_rules: &[String],
        policy: Option<&str>,
    ) -> Result<Self, CliError> {
        let read = |stated: Stated| skills::read(&stated)?.governed(without_grounding);
        let skill = Stated::flag("--skill", skill).map(read).transpose()?.map(|found| found.manifest);
        let (tools, rules) = (gates::names(gate_tools), gates::rules(gate_rules)?);
        let gates = (!tools.is_empty() || !rules.is_empty()).then_some((tools, rules));
        Ok(Self { skill, gates, policy: governing::policy_of(policy)? })
    }

    /// What is asked of a replay: what the recording was asked, varied.
    ///
    /// # Errors
    /// A skill of which the recorded servers have too little, a gate at a tool that is not offered.
    pub(super) fn of_recorded(&self, recording: &Recording) -> Result<Open, CliError> {
        let mut open = recording.open.clone();
        let spec = &mut open.spec;
        if let Some(skill) = &self.skill {
            let mut offered = recording.tools();
            offered.push(RESULT_TOOL.to_owned());
            let mut allowed = skill.close(&offered)?;
            allowed.retain(|name| name != RESULT_TOOL);
            spec.allowed_tools = Some(allowed);
            spec.skill = Some(skill.reference());
            spec.texts.skill = PromptText::of(&skill.prompt());
        }
        if let Some((tools, rules)) = &self.gates {
            let offered = spec.allowed_tools.clone().unwrap_or_else(|| recording.tools());
            spec.gates = gates::resolved(tools, &offered)?;
            spec.gate_rules.clone_from(rules);
        }
        if let Some(policy) = &self.policy {
            spec.policy = Some(policy.clone());
        }
        Ok(open)
    }
}

/// What never leaves: what is a credential now, and what was one when the run was recorded.
///
/// # Errors
/// When the redactor cannot be built.
pub(super) fn redactor(recording: &Recording) -> Result<Redactor, CliError> {
    let redactor = hiding::redactor_with(learn(recording))?.as_ref().clone();
    Ok(redactor.with_evidence(recording.open.spec.redact_evidence))
}
