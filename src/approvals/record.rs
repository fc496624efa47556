//! An approval's file: what is asked, where it stands, and what a person said. Pure.

use mission_contract::event::Arguments;
use mission_contract::{canonical, digest};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{ApprovalError, Key};

/// For whoever opens the file.
const WHY_GATED: &str = "This call was proposed by a model and waits for a person. Decide with `mission approvals`; editing this file decides nothing.";

/// What an approval is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Whether a call may be made.
    #[default]
    Gate,
    /// What became of a call.
    Reconcile,
}

/// Where an approval stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Nobody has decided.
    #[default]
    Pending,
    /// The call may be made, once; or the run may go on.
    Approved,
    /// It may not.
    Refused,
    /// The answer was acted upon.
    Spent,
    /// Its run ended for good.
    Abandoned,
}

impl State {
    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            State::Pending => "pending",
            State::Approved => "approved",
            State::Refused => "refused",
            State::Spent => "spent",
            State::Abandoned => "abandoned",
        }
    }
}

/// What a person says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The call may be made.
    Approve,
    /// It may not.
    Refuse,
    /// It took effect.
    Done,
    /// It did not: make it again.
    Retry,
    /// Leave it.
    Abandon,
}

impl Answer {
    /// All of them.
    pub const ALL: [Answer; 5] = [Answer::Approve, Answer::Refuse, Answer::Done, Answer::Retry, Answer::Abandon];

    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Answer::Approve => "approve",
            Answer::Refuse => "refuse",
            Answer::Done => "done",
            Answer::Retry => "retry",
            Answer::Abandon => "abandon",
        }
    }

    /// The answer of a word.
    pub fn named(word: &str) -> Option<Answer> {
        Answer::ALL.into_iter().find(|answer| answer.word() == word)
    }

    /// Whether it lets the call be made.
    pub fn permits(self) -> bool {
        matches!(self, Answer::Approve | Answer::Retry)
    }

    fn state(self) -> State {
        match self {
            Answer::Approve | Answer::Done | Answer::Retry => State::Approved,
            Answer::Refuse | Answer::Abandon => State::Refused,
        }
    }
}

/// Who acted upon an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// The run.
    pub run: String,
    /// The key of its call.
    pub key: String,
}

/// The file. The fields that seed 2's harness has are as it has them: a blank text where one does not apply.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// `ap_` and 16 hex digits.
    pub approval_id: String,
    /// The tool's full name.
    pub tool: String,
    /// The proposed arguments, verbatim.
    pub arguments: Arguments,
    /// What the run was asked.
    #[serde(default)]
    pub objective: String,
    /// The run.
    #[serde(default)]
    pub run_id: String,
    /// Why it waits.
    #[serde(default)]
    pub reason: String,
    /// Where it stands.
    pub state: State,
    /// When it was asked for.
    #[serde(default)]
    pub requested_at: String,
    /// When it was decided.
    #[serde(default)]
    pub decided_at: String,
    /// Who decided.
    #[serde(default)]
    pub decided_by: String,
    /// In their words.
    #[serde(default)]
    pub note: String,
    /// When the answer was acted upon.
    #[serde(default)]
    pub spent_at: String,
    /// For whoever opens the file.
    #[serde(default)]
    pub why_gated: String,
    /// What it is about.
    #[serde(default)]
    pub kind: Kind,
    /// Digest of the tool's definition.
    #[serde(default)]
    pub definition: String,
    /// Over the tool, its definition and the canonical arguments.
    #[serde(default)]
    pub digest: String,
    /// The idempotency key of the call that it is about; blank when it was not made.
    #[serde(default)]
    pub key: String,
    /// The step in which it was proposed.
    #[serde(default)]
    pub index: u64,
    /// Until when it can be decided and spent, RFC 3339 UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
    /// What was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Answer>,
    /// Over the decision, by [`Key`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// Who acted upon it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent_by: Option<Spent>,
}

/// What an approval comes to now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Nobody has decided.
    Pending,
    /// The file holds an answer that counts for nothing: why.
    Unsigned(String),
    /// A person has said so.
    Decided(Answer),
    /// The answer was acted upon.
    Spent(Answer, Spent),
    /// Its time is over.
    Expired,
    /// Its run ended for good.
    Abandoned,
}

impl Record {
    /// An approval that is asked for.
    #[must_use]
    pub fn asked(self) -> Self {
        Self { state: State::Pending, why_gated: WHY_GATED.to_owned(), ..self }
    }

    /// The digest of the call that a person sees in the file. It is `digest` unless somebody changed what they see.
    pub(super) fn digest_of_what_is_shown(&self) -> String {
        digest::call_digest(&self.tool, &self.definition, &canonical::of_value(&Value::Object(self.arguments.clone())))
    }

    /// Whether it is asked for the same call.
    pub(super) fn is_same(&self, other: &Record) -> bool {
        let call = |record: &Record| (record.tool.clone(), record.digest.clone(), record.run_id.clone(), record.kind);
        call(self) == call(other) && self.arguments == other.arguments
    }

    /// The bytes that a decision signs, as a canonical JSON array: id, tool, digest, answer, who and when; and what else changes
    /// what the decision means: the note (a model reads it), the question, the run and the end of its time.
    fn signed(&self, answer: Answer) -> String {
        canonical::of_value(&json!([
            self.approval_id,
            self.tool,
            self.digest,
            answer.word(),
            self.decided_by,
            self.decided_at,
            self.note,
            self.kind,
            self.run_id,
            self.expires_at,
        ]))
    }

    /// Writes a decision into it.
    pub(super) fn decide(&mut self, answer: Answer, by: &str, note: &str, at: &str, key: &Key) {
        self.state = answer.state();
        self.answer = Some(answer);
        by.clone_into(&mut self.decided_by);
        note.clone_into(&mut self.note);
        at.clone_into(&mut self.decided_at);
        self.signature = Some(key.sign(self.signed(answer).as_bytes()));
    }

    /// What it comes to at a moment (RFC 3339 UTC). The key is asked for only where there is a decision to be held against it; without
    /// one none counts.
    pub fn standing(&self, key: impl FnOnce() -> Result<Option<Key>, ApprovalError>, now: &str) -> Standing {
        let unsigned = |why: &str| Standing::Unsigned(why.to_owned());
        match (self.state, self.answer, &self.spent_by) {
            (State::Abandoned, _, _) => return Standing::Abandoned,
            // What was acted upon stays so, whatever became of the key since.
            (State::Spent, Some(answer), Some(spent)) => return Standing::Spent(answer, spent.clone()),
            (State::Spent, _, _) => return unsigned("it says that it was spent, and not by whom or for what"),
            (State::Pending, _, _) if self.is_expired(now) => return Standing::Expired,
            (State::Pending, _, _) => return Standing::Pending,
            (State::Approved | State::Refused, _, _) => {}
        }
        let standing = match self.judged(key) {
            Ok(answer) => Standing::Decided(answer),
            Err(why) => Standing::Unsigned(why),
        };
        let lapses = !matches!(standing, Standing::Decided(answer) if !answer.permits());
        if lapses && self.is_expired(now) { Standing::Expired } else { standing }
    }

    /// The answer, if it counts; else why it does not.
    fn judged(&self, key: impl FnOnce() -> Result<Option<Key>, ApprovalError>) -> Result<Answer, String> {
        let answer = self.answer.ok_or("it says that it was decided, and not what was said")?;
        if self.state != answer.state() {
            return Err("its state is not that of its answer".to_owned());
        }
        let signature = self.signature.as_ref().ok_or("it bears no signature")?;
        let key = key().map_err(|error| error.to_string())?.ok_or("there is no key here that could have signed it")?;
        match key.signed(self.signed(answer).as_bytes(), signature) {
            true => Ok(answer),
            false => Err("its signature is not that of this decision".to_owned()),
        }
    }

    /// Moments of one form and one zone are in the order of their texts.
    fn is_expired(&self, now: &str) -> bool {
        self.expires_at.as_deref().is_some_and(|end| end <= now)
    }
}
