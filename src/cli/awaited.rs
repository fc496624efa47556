//! The call that a run waits for, when it is taken up: what a person has said about it by now.

use mission_contract::log::{Decision, Observed};

use super::error::CliError;
use super::resume::Held;
use crate::approvals::{Answer, ApprovalError, Approvals, Kind, Spent, Standing};
use crate::driver::decision;
use crate::sys::clock::SystemClock;

/// What a person said about the call that a run waits for.
#[derive(Default)]
pub(super) struct Waiting {
    /// The decision, when there is one that counts.
    pub(super) decision: Option<Decision>,
    /// What is spent before it is acted upon.
    pub(super) spend: Option<Spending>,
    /// What is to be told about one that does not count.
    pub(super) observed: Option<Observed>,
}

/// The approval that is to be spent: its id, by whom, and the digest of the call that it has to be about.
pub(super) type Spending = (String, Spent, String);

/// Looks at the approval of a run that waits for one. One that cannot be read, or is about another call than the run waits for, was changed
/// since it was written: it counts as pending, and the run asks anew.
///
/// # Errors
/// When the folder of approvals cannot be read.
pub(super) fn waiting(held: &Held, approvals: &Approvals) -> Result<Waiting, CliError> {
    let Some(awaited) = held.folded.run.awaits() else { return Ok(Waiting::default()) };
    let id = awaited.approval_id;
    let spent = Spent { run: held.held.run_id().to_owned(), key: awaited.key };
    let pending = |why: &str| {
        let detail = format!("The approval {id} holds a decision that does not count, because {why}: it is pending.");
        let observed = Some(Observed { what: "approval_unsigned".to_owned(), detail, ..Observed::default() });
        Ok(Waiting { observed, ..Waiting::default() })
    };
    let (record, standing) = match approvals.look(&id, &SystemClock::start()) {
        Ok(looked) => looked,
        // It was never noted, or nothing is: the run asks again.
        Err(ApprovalError::Missing { .. } | ApprovalError::NotKept) => return Ok(Waiting::default()),
        Err(error @ ApprovalError::Unreadable { .. }) => return pending(&error.to_string()),
        Err(error) => return Err(CliError::Refused(error.to_string())),
    };
    if record.digest != awaited.digest {
        return pending("it is about another call than the run waits for");
    }
    match standing {
        Standing::Spent(_, by) if by == spent => Ok(Waiting { decision: Some(decision(&record)), ..Waiting::default() }),
        // Another run made the call that was approved: this one does not.
        Standing::Spent(_, by) => {
            let note = Some(format!("the approval was spent by run {}", by.run));
            let decision = Decision { answer: Answer::Refuse.word().to_owned(), note, ..decision(&record) };
            Ok(Waiting { decision: Some(decision), ..Waiting::default() })
        }
        Standing::Decided(_) => {
            let decision = Some(decision(&record));
            Ok(Waiting { decision, spend: Some((id, spent, awaited.digest)), observed: None })
        }
        Standing::Unsigned(why) => pending(&why),
        Standing::Expired if record.kind == Kind::Gate => {
            let decision = Decision {
                approval_id: id,
                answer: Answer::Refuse.word().to_owned(),
                by: "mission".to_owned(),
                note: Some("its time is over".to_owned()),
                content: None,
            };
            Ok(Waiting { decision: Some(decision), ..Waiting::default() })
        }
        Standing::Pending | Standing::Expired | Standing::Abandoned => Ok(Waiting::default()),
    }
}
