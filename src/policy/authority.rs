//! What decides about the calls of a run: its profile and grants, then its policy file, then its gates.

use mission_contract::spec::Spec;
use serde_json::{Map, Value};

use super::file::{Effect, Policy};
use super::scopes::{Grants, Needs, needs};
use super::{BY_GATE, BY_GRANT, BY_PROFILE};

/// See the module's doc.
#[derive(Clone, Debug, Default)]
pub struct Authority {
    /// Absent in a run that was begun before scopes were asked for.
    grants: Option<Grants>,
    policy: Option<Policy>,
}

/// What is decided about a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judgement {
    /// What happens to it.
    pub effect: Effect,
    /// The rule that says so.
    pub rule: String,
    /// What that rule says of itself.
    pub reason: Option<String>,
    /// What the call needs.
    pub needs: Needs,
    /// The scopes that it needs and is not granted: why it is denied, where it is denied for that.
    pub missing: Vec<String>,
}

impl Authority {
    /// That of a run. `asks_scopes`: the run was begun by a build that asks for scopes. A policy that cannot be read any more denies
    /// everything.
    pub fn of(spec: &Spec, asks_scopes: bool) -> Self {
        let grants = asks_scopes.then(|| Grants::new(spec.profile.as_deref().unwrap_or_default(), &spec.grants));
        Self { grants, policy: spec.policy.as_ref().map(|text| Policy::parse(text).unwrap_or_else(|_| Policy::closed())) }
    }

    /// That of a profile, grants and a policy by themselves.
    pub fn new(grants: Grants, policy: Option<Policy>) -> Self {
        Self { grants: Some(grants), policy }
    }

    /// The policy.
    pub fn policy(&self) -> Option<&Policy> {
        self.policy.as_ref()
    }

    /// Decides about a call of a tool. `server` is empty for a tool of ours; `gated`: a gate of the command line holds it.
    pub fn judge(&self, server: &str, name: &str, arguments: &Map<String, Value>, gated: bool) -> Judgement {
        let needs = needs(server, name, arguments);
        let missing = self.grants.as_ref().map_or_else(Vec::new, |grants| grants.missing(&needs));
        if !missing.is_empty() {
            return Judgement { effect: Effect::Deny, rule: BY_PROFILE.to_owned(), reason: None, needs, missing };
        }
        let suffices = self.grants.as_ref().is_none_or(|grants| grants.suffices(&needs));
        let mut judgement = Judgement {
            effect: Effect::Allow,
            rule: if suffices { BY_PROFILE } else { BY_GRANT }.to_owned(),
            reason: None,
            needs,
            missing,
        };
        if let Some(policy) = &self.policy {
            let full = if server.is_empty() { name.to_owned() } else { format!("{server}.{name}") };
            let matched = policy.ruling(&full, arguments);
            (judgement.effect, judgement.rule) = (matched.effect, matched.rule.to_owned());
            judgement.reason = matched.reason.map(str::to_owned);
        }
        if gated && judgement.effect < Effect::Gate {
            (judgement.effect, judgement.rule, judgement.reason) = (Effect::Gate, BY_GATE.to_owned(), None);
        }
        judgement
    }

    /// Why a call was refused for want of scopes.
    pub fn refusal(&self, tool: &str, missing: &[String]) -> String {
        self.grants.as_ref().map_or_else(String::new, |grants| grants.refusal(tool, missing))
    }

    /// Whether the policy holds every call of a tool for a person.
    pub fn gates(&self, tool: &str) -> bool {
        self.policy.as_ref().is_some_and(|policy| policy.at_least(tool) == Effect::Gate)
    }
}
