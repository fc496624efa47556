//! What the audit file is told: a line before a call goes out, one once it has come back, one of whatever is not called.
//!
//! Where a line cannot be written nothing goes out any more: the run is closed, and can be carried on once the file can be written again.

use mission_contract::audit::{AuditEvent, AuditLine, Verdict};
use mission_contract::digest::sha256_hex;
use mission_contract::log::{CallEnd, CallResult};
use mission_contract::text::Text;

use crate::audit::AuditFile;
use crate::engine::effect::{Audited, Made};
use crate::limits;
use crate::redact::Redactor;

/// See the module's doc.
pub struct Auditing {
    /// Where the lines go; nothing where nothing is audited.
    pub file: Option<AuditFile>,
    /// The run.
    pub run_id: String,
    /// Its profile.
    pub profile: String,
}

/// Auditing while a run goes on.
pub(super) struct Auditor {
    auditing: Auditing,
    /// The call that is out, and when it went.
    out: Option<(Audited, u64)>,
    failed: Option<String>,
    is_told: bool,
}

impl Auditor {
    pub(super) fn new(auditing: Auditing) -> Self {
        Self { auditing, out: None, failed: None, is_told: false }
    }

    /// Whether nothing may go out any more.
    pub(super) fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    /// Why, once.
    pub(super) fn failure(&mut self) -> Option<String> {
        if self.is_told {
            return None;
        }
        self.is_told = self.failed.is_some();
        self.failed.clone()
    }

    /// Writes down what the engine says of a call.
    pub(super) fn note(&mut self, audited: Audited, ms: u64, redactor: &Redactor) {
        if audited.is_outgoing() {
            self.write(&audited, AuditEvent::ToolIntent, None, redactor);
            self.out = Some((audited, ms));
        } else {
            let made = audited.made.clone().map(|made| (made, 0));
            self.write(&audited, AuditEvent::ToolDispatch, made, redactor);
        }
    }

    /// Writes down how the call that is out came back.
    pub(super) fn returned(&mut self, result: &CallResult, ms: u64, redactor: &Redactor) {
        let Some((audited, since)) = self.out.take() else { return };
        let text = match &result.text {
            Text::Inline(text) if result.end == CallEnd::Ok || result.error.is_empty() => text,
            _ => result.error.as_str(),
        };
        let (verdict, exit_code) = match result.end {
            CallEnd::Ok => (Verdict::Allowed, result.exit_code),
            CallEnd::Error => (Verdict::Allowed, 1),
            CallEnd::Protocol | CallEnd::Timeout | CallEnd::Died | CallEnd::Cancelled => (Verdict::Error, -1),
        };
        let reason = (exit_code != 0).then(|| text.to_owned()).filter(|reason| !reason.is_empty());
        let bytes = u64::try_from(text.len()).unwrap_or(u64::MAX);
        let made = Made { exit_code, bytes, digest: sha256_hex(text.as_bytes()) };
        let audited = Audited { verdict, reason, ..audited };
        self.write(&audited, AuditEvent::ToolDispatch, Some((made, ms.saturating_sub(since))), redactor);
    }

    /// Ends it: everything is on the disk. The sentence says why it is not.
    pub(super) fn close(self) -> Option<String> {
        self.auditing.file.and_then(|file| file.close().err()).map(|error| sentence(&error.to_string()))
    }

    fn write(&mut self, audited: &Audited, event_type: AuditEvent, made: Option<(Made, u64)>, redactor: &Redactor) {
        if self.failed.is_some() {
            return;
        }
        let Some(file) = &mut self.auditing.file else { return };
        let bounded = |text: &str, most: u64| redactor.text(text).chars().take(limits::size(most)).collect::<String>();
        let (approval_id, decided_by) = audited.approval.clone().unzip();
        let (made, duration_ms) = made.unzip();
        let line = AuditLine {
            event_type,
            session_id: self.auditing.run_id.clone(),
            tool_name: bounded(&audited.tool, limits::AUDIT_NAME_CHARACTERS),
            action: audited.action.clone(),
            scopes: audited.scopes.clone(),
            profile: self.auditing.profile.clone(),
            verdict: audited.verdict,
            rule: audited.rule.clone(),
            reason: audited.reason.as_deref().map(|reason| bounded(reason, limits::AUDIT_REASON_CHARACTERS)),
            step: audited.step,
            key: audited.key.clone(),
            approval_id,
            decided_by: decided_by.map(|by| bounded(&by, limits::AUDIT_NAME_CHARACTERS)),
            arguments_digest: audited.arguments_digest.clone(),
            exit_code: made.as_ref().map(|made| made.exit_code),
            duration_ms,
            bytes_out: made.as_ref().map(|made| made.bytes),
            result_digest: made.map(|made| made.digest),
            ..AuditLine::default()
        };
        if let Err(error) = file.append(line) {
            self.failed = Some(sentence(&error.to_string()));
        }
    }
}

fn sentence(error: &str) -> String {
    let mut signs = error.chars();
    let first = signs.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}: nothing is called without its line there.", signs.as_str())
}
