//! Rules of decision that came after the first format of the log, by their numbers: a run that is decided by one says so in its first line.

use mission_contract::spec::Spec;

/// A call is held against the profile, the grants and the policy before it is made.
pub const SCOPES: u32 = 3;

/// Those by which a run is decided.
pub fn of(_: &Spec) -> Vec<u32> {
    vec![SCOPES]
}

/// The first one that this build does not know.
pub fn unknown(behaviours: &[u32]) -> Option<u32> {
    behaviours.iter().copied().find(|number| *number != SCOPES)
}
