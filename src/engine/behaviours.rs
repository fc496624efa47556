//! Rules of decision that came after the first format of the log, by their numbers: a run that is decided by one says so in its first line.

use mission_contract::spec::{Limits, Spec};

/// Limits besides that on steps end a run, and what counts against them is an estimate where nothing is reported.
pub const LIMITS: u32 = 1;

/// Steps are watched for progress.
pub const SUPERVISOR: u32 = 2;

/// A call is held against the profile, the grants and the policy before it is made.
pub const SCOPES: u32 = 3;

/// Those by which a run is decided.
pub fn of(spec: &Spec) -> Vec<u32> {
    let is_limited = Limits { steps: None, ..spec.limits.clone() } != Limits::default();
    let all = [(LIMITS, is_limited), (SUPERVISOR, !spec.supervisor.is_off()), (SCOPES, true)];
    all.into_iter().filter(|(_, is)| *is).map(|(number, _)| number).collect()
}

/// The first one that this build does not know.
pub fn unknown(behaviours: &[u32]) -> Option<u32> {
    behaviours.iter().copied().find(|number| ![LIMITS, SUPERVISOR, SCOPES].contains(number))
}
