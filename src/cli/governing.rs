//! What may be called, as the command line says it: the profile, the grants, the policy file; and where it is written down what was.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use mission_contract::digest::sha256_hex;
use mission_contract::spec::{PolicyText, Spec};
use serde_json::{Value, json};

use super::arguments::PolicyFlags;
use super::environment::{Environment, Stated};
use super::error::{CliError, quoted};
use crate::audit::{AuditFile, Place};
use crate::engine::run::CHANGED_AUDIT;
use crate::limits;
use crate::policy::{Grants, Policy, profile_named};
use crate::sys::clock::Clock;
use crate::sys::files::open_regular;

/// The profile where nobody states one.
const LOWEST: &str = "safe";

/// See the module's doc.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Governance {
    /// The profile.
    pub profile: String,
    /// Scopes granted besides, sorted.
    pub grants: Vec<String>,
    /// The policy file.
    pub policy: Option<PolicyText>,
    /// Where the audit file goes.
    pub audit: Place,
}

/// Reads the flags and variables of a new run, and the policy file.
///
/// # Errors
/// A profile or a scope that is none; a policy file that is not understood.
pub fn resolve(flags: &PolicyFlags, environment: &Environment) -> Result<Governance, CliError> {
    let profile = Stated::either("--profile", flags.profile.as_deref(), environment, "MISSION_PROFILE");
    Ok(Governance {
        profile: profile.map_or_else(|| Ok(LOWEST.to_owned()), |stated| profile_of(&stated))?,
        grants: Grants::read(&flags.grant).map_err(|error| CliError::Refused(format!("--grant: {error}")))?,
        policy: policy_of(flags.policy.as_deref())?,
        audit: audit_of(environment)?,
    })
}

fn profile_of(stated: &Stated) -> Result<String, CliError> {
    profile_named(&stated.value).map(str::to_owned).map_err(|error| stated.refuse(error.to_string()))
}

fn audit_of(environment: &Environment) -> Result<Place, CliError> {
    let directory = std::env::current_dir().map_err(|error| CliError::no_directory(&error))?;
    let word = Stated::variable(environment, "MISSION_AUDIT");
    Ok(Place::of(word.as_ref().map(|stated| stated.value.as_str()), &directory))
}

/// Reads the policy file that `--policy` names, and holds it to its form.
///
/// # Errors
/// A file that cannot be read, is too large, is no text, or is not understood.
pub(super) fn policy_of(typed: Option<&str>) -> Result<Option<PolicyText>, CliError> {
    let Some(stated) = Stated::flag("--policy", typed) else { return Ok(None) };
    let problem = |problem: String| CliError::File { place: "--policy".to_owned(), file: quoted(&stated.value), problem };
    let most = limits::POLICY_BYTES;
    let mut bytes = Vec::new();
    open_regular(Path::new(&stated.value))
        .and_then(|file| file.take(most.saturating_add(1)).read_to_end(&mut bytes))
        .map_err(|error| problem(format!("it cannot be read ({error}); name a readable file")))?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > most {
        return Err(problem(format!("it is larger than {most} bytes; write rules that say more with fewer words")));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to().saturating_add(1);
        problem(format!("it is not UTF-8 (byte {valid}); save it as UTF-8"))
    })?;
    let policy = PolicyText { file: stated.value.clone(), digest: sha256_hex(text.as_bytes()), text };
    Policy::parse(&policy)?;
    Ok(Some(policy))
}

/// What the command line says of a run that is taken up is what the run began with; only the audit file may be another one.
///
/// # Errors
/// What differs, both values named.
pub(super) fn same(
    flags: &PolicyFlags,
    environment: &Environment,
    spec: &Spec,
    changed: &mut BTreeMap<String, Value>,
) -> Result<Governance, CliError> {
    let recorded = spec.profile.clone().unwrap_or_else(|| LOWEST.to_owned());
    // A variable is for new runs.
    if let Some(stated) = Stated::flag("--profile", flags.profile.as_deref()) {
        agrees("--profile", &profile_of(&stated)?, &recorded)?;
    }
    let grants = Grants::read(&flags.grant).map_err(|error| CliError::Refused(format!("--grant: {error}")))?;
    if !grants.is_empty() {
        agrees("--grant", &grants.join(","), &shown(&spec.grants.join(",")))?;
    }
    if let Some(policy) = policy_of(flags.policy.as_deref())? {
        let digest = spec.policy.as_ref().map_or("none", |policy| policy.digest.as_str());
        agrees("the digest of --policy", &policy.digest, digest)?;
    }
    let audit = match Stated::variable(environment, "MISSION_AUDIT") {
        Some(_) => audit_of(environment)?,
        None => spec.audit_ref.as_ref().map_or(Place::Nowhere, |path| Place::File(path.into())),
    };
    let path = match &audit {
        Place::File(path) => Some(path.to_string_lossy().into_owned()),
        Place::New(_) | Place::Nowhere => None,
    };
    if path != spec.audit_ref {
        changed.insert(CHANGED_AUDIT.to_owned(), json!(path));
    }
    Ok(Governance { profile: recorded, grants: spec.grants.clone(), policy: spec.policy.clone(), audit })
}

fn shown(text: &str) -> String {
    if text.is_empty() { "none".to_owned() } else { text.to_owned() }
}

fn agrees(place: &str, given: &str, recorded: &str) -> Result<(), CliError> {
    if given == recorded {
        return Ok(());
    }
    Err(CliError::Refused(format!(
        "{place} is {} here and {} in the run; leave it out to carry the run on, or begin a new one",
        quoted(given),
        quoted(recorded)
    )))
}

impl Governance {
    /// Writes into a run's specification what may be called.
    pub(super) fn write(&self, spec: &mut Spec) {
        spec.profile = Some(self.profile.clone());
        spec.grants.clone_from(&self.grants);
        spec.policy.clone_from(&self.policy);
    }

    /// Opens the audit file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn audit(&self, clock: &Arc<dyn Clock>) -> Result<Option<AuditFile>, CliError> {
        AuditFile::open(self.audit.clone(), Arc::clone(clock)).map_err(|error| CliError::Refused(error.to_string()))
    }
}

/// Where an audit file is, as a run says it.
pub(super) fn audit_ref(file: Option<&AuditFile>) -> Option<String> {
    file.map(|file| file.path().to_string_lossy().into_owned())
}
