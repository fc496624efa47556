//! Calls are held against the profile, the grants, the policy and the gates; and what an audit file is to say of each.

use mission_contract::audit::Verdict;
use mission_contract::digest::sha256_hex;
use mission_contract::log::ToolDefinition;
use serde::Serialize;

use super::Run;
use super::calls::Finished;
use super::phase::Pending;
use crate::engine::behaviours;
use crate::engine::effect::{Audited, Effect, Made};
use crate::engine::words;
use crate::policy::{Authority, BY_CATALOGUE, Judgement};

/// Why a call was refused, as `error` of its result has it.
#[derive(Serialize)]
struct Denial<'d> {
    error: &'static str,
    tool: &'d str,
    action: Option<&'d str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    missing_scopes: &'d [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<&'d str>,
    message: &'d str,
}

impl Run {
    /// Takes up what decides about this run's calls.
    pub(super) fn govern(&mut self) {
        let asks_scopes = self.open.behaviours.contains(&behaviours::SCOPES);
        self.authority = Authority::of(&self.open.spec, asks_scopes);
    }

    /// Decides about a call.
    pub(super) fn judge(&self, definition: &ToolDefinition, arguments: &mission_contract::event::Arguments) -> Judgement {
        self.authority.judge(&definition.server, &definition.name, arguments, self.is_gated_by_flags(definition))
    }

    /// Whether every call of a tool needs a person.
    pub(super) fn is_gated(&self, definition: &ToolDefinition) -> bool {
        self.is_gated_by_flags(definition) || self.authority.gates(&definition.full_name())
    }

    /// A call is not made: the stream and the model are told which rule says so.
    pub(super) fn deny(&mut self, mut call: Pending) {
        let Judgement { rule, reason, needs, missing, .. } = call.judged.clone();
        let tool = &call.proposed.name;
        let message = match missing.is_empty() {
            true => words::denied(tool, &rule, reason.as_deref()),
            false => self.authority.refusal(tool, &missing),
        };
        let denial = Denial {
            error: if missing.is_empty() { "policy_denied" } else { "capability_denied" },
            tool,
            action: needs.action.as_deref(),
            missing_scopes: &missing,
            rule: missing.is_empty().then_some(rule.as_str()),
            message: &message,
        };
        let error = serde_json::to_string(&denial).unwrap_or(message.clone());
        let audited = Audited { verdict: Verdict::Denied, reason: Some(message), ..self.audited(&call) };
        self.audit(audited);
        self.announce(&mut call);
        self.settle(call, Finished::failed(error));
        self.next_call();
    }

    /// A person does not allow a call.
    pub(super) fn audit_refused(&mut self, call: &Pending, why: &str) {
        let audited = Audited { verdict: Verdict::Denied, reason: Some(why.to_owned()), ..self.audited(call) };
        self.audit(audited);
    }

    /// A name that is not offered was to be called.
    pub(super) fn audit_unknown(&mut self, name: &str, arguments: &str) {
        let canonical = mission_contract::canonical::from_raw(arguments).map(|canonical| canonical.text);
        let audited = Audited {
            tool: name.to_owned(),
            rule: BY_CATALOGUE.to_owned(),
            verdict: Verdict::UnknownTool,
            step: self.index,
            arguments_digest: sha256_hex(canonical.as_deref().unwrap_or(arguments).as_bytes()),
            ..Audited::default()
        };
        self.audit(audited);
    }

    /// A call that the engine answers itself.
    pub(super) fn audit_answered(&mut self, call: &Pending, result: &Finished) {
        let text = if result.exit_code() == 0 { result.output() } else { result.error() };
        let made = Made {
            exit_code: result.exit_code(),
            bytes: u64::try_from(text.len()).unwrap_or(u64::MAX),
            digest: sha256_hex(text.as_bytes()),
        };
        let rule = BY_CATALOGUE.to_owned();
        let audited = Audited { verdict: Verdict::Allowed, rule, made: Some(made), ..self.audited(call) };
        self.audit(audited);
    }

    /// A call is about to go out.
    pub(super) fn audit_outgoing(&mut self, call: &Pending) {
        let key = Some(call.intent.key.clone());
        let audited = Audited { verdict: Verdict::Allowed, key, ..self.audited(call) };
        self.audit(audited);
    }

    fn audited(&self, call: &Pending) -> Audited {
        Audited {
            tool: call.proposed.name.clone(),
            action: call.judged.needs.action.clone(),
            scopes: call.judged.needs.scopes.clone(),
            rule: call.judged.rule.clone(),
            step: self.index,
            approval: call.decided_by.clone(),
            arguments_digest: sha256_hex(call.canonical.as_bytes()),
            ..Audited::default()
        }
    }

    fn audit(&mut self, audited: Audited) {
        self.effects.push(Effect::Audit(Box::new(audited)));
    }
}
