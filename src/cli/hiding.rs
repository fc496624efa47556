//! What this process hides: the credentials of its environment, and what its command line was given. Whoever says something asks here,
//! so that a refusal hides what a run would have.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::arguments::StreamFlags;
use super::environment::{Environment, Stated};
use super::error::CliError;
use super::files;
use crate::limits;
use crate::redact::{self, RedactError, Redactor};
use crate::stream::diagnostics;

/// What the command line was given.
struct Given {
    /// Values, each with the name that stands in its place.
    values: Vec<(String, String)>,
    /// Whether outputs and arguments of tools are redacted too.
    evidence: bool,
}

/// A process carries out one command line.
static GIVEN: Mutex<Given> = Mutex::new(Given { values: Vec::new(), evidence: false });

fn given() -> MutexGuard<'static, Given> {
    // It is whole between any two words of ours.
    GIVEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes up what is hidden from here on: the flags of a run, else the variable.
///
/// # Errors
/// A file of values that cannot be taken.
pub(super) fn take_up(flags: Option<&StreamFlags>, environment: &Environment) -> Result<(), CliError> {
    let typed: Vec<String> = flags.map(|flags| flags.redact_file.clone()).unwrap_or_default();
    let values = match Stated::variable(environment, "MISSION_REDACT_FILE") {
        Some(stated) if typed.is_empty() => files::read_values(stated.place, &[stated.value])?,
        _ => files::read_values("--redact-file", &typed)?,
    };
    add(values);
    given().evidence |= flags.is_some_and(|flags| flags.redact_evidence);
    Ok(())
}

/// Hides these values too, each with the name that stands in its place.
pub(super) fn add(values: impl IntoIterator<Item = (String, String)>) {
    given().values.extend(values);
}

/// The redactor of this process, as of now.
///
/// # Errors
/// When it cannot be built.
pub(super) fn redactor() -> Result<Arc<Redactor>, RedactError> {
    redactor_with([])
}

/// The same, and for these values.
///
/// # Errors
/// When it cannot be built.
pub(super) fn redactor_with(values: impl IntoIterator<Item = (String, String)>) -> Result<Arc<Redactor>, RedactError> {
    let (all, evidence) = {
        let given = given();
        (given.values.iter().cloned().chain(values).collect::<Vec<_>>(), given.evidence)
    };
    Ok(Arc::new(Redactor::from_environment(all)?.with_evidence(evidence)))
}

/// Says which credentials are not hidden by their values.
pub(super) fn say_too_short(redactor: &Redactor) {
    let names = redact::too_short(std::env::vars_os());
    let most = limits::size(limits::NAMES_LISTED);
    let rest = names.len().saturating_sub(most);
    let shown = names.iter().take(most).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = if rest == 0 { String::new() } else { format!(" and {rest} more") };
    if !names.is_empty() {
        let least = limits::SECRET_CHARACTERS;
        diagnostics::say(redactor, &format!("The value of {shown}{more} is not hidden: it has fewer than {least} characters."));
    }
}
