//! The texts that a command line names beside a run that is taken up are those that the run began with.

use mission_contract::spec::{HistoryTurn, PromptText, Spec};

use super::arguments::RunFlags;
use super::environment::{Environment, Stated};
use super::error::CliError;
use super::personality::Personality;
use super::resume::{agrees, differs};
use super::{history, skills};

/// Holds the skill, the personality and the earlier turns of a command line to those of the run.
///
/// # Errors
/// What differs, both named.
pub(super) fn check(
    flags: &RunFlags,
    environment: &Environment,
    personality: Option<&Personality>,
    spec: &Spec,
) -> Result<(), CliError> {
    same_skill(flags, environment, spec)?;
    same_conversation(flags, environment, personality, spec)
}

/// A skill that is named again has the digest of the run's; how strictly it is taken is as it was.
fn same_skill(flags: &RunFlags, environment: &Environment, spec: &Spec) -> Result<(), CliError> {
    let strict = &flags.skill;
    if strict.locked && spec.locked.is_none() {
        return Err(differs("--locked", "on", "off"));
    }
    if strict.no_grounding && !spec.grounding_off {
        return Err(differs("--no-grounding", "on", "off"));
    }
    if let Some(stated) = Stated::flag("--tool-limit", strict.tool_limit.as_deref()) {
        let recorded = spec.tool_limit.map_or_else(|| "none".to_owned(), |limit| limit.to_string());
        agrees("--tool-limit", Some(stated.value.trim()), &recorded)?;
    }
    let stated = Stated::either("--skill", flags.tools.skill.as_deref(), environment, "MISSION_SKILL");
    let Some(stated) = stated else { return Ok(()) };
    let given = skills::read(&stated)?.manifest.reference();
    match &spec.skill {
        Some(recorded) if recorded.digest == given.digest => Ok(()),
        Some(recorded) => Err(differs(&format!("the digest of {}", stated.place), &given.digest, &recorded.digest)),
        None => Err(differs(stated.place, &given.name, "none")),
    }
}

/// A personality and earlier turns that are typed again are the run's. A personality that a variable names only gives its variables.
fn same_conversation(
    flags: &RunFlags,
    environment: &Environment,
    personality: Option<&Personality>,
    spec: &Spec,
) -> Result<(), CliError> {
    let typed = Stated::flag("--personality", flags.conversation.personality.as_deref());
    if let (Some(_), Some(personality)) = (typed, personality) {
        let given = PromptText::of(personality.system_message.trim());
        agrees("the digest of the system message of --personality", Some(&given.digest), &spec.texts.persona.digest)?;
    }
    if let Some(stated) = Stated::flag("--history", flags.conversation.history.as_deref()) {
        let given = history::of(Some(&stated.value), environment)?;
        if given != spec.texts.history {
            let turns = |turns: &[HistoryTurn]| format!("{} turns", turns.len());
            return Err(differs("what --history holds", &turns(&given), &format!("{}, others", turns(&spec.texts.history))));
        }
    }
    Ok(())
}
