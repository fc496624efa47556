//! Where a run meets the people who decide: it notes what waits, hears what they said, and spends it.

use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use mission_contract::log::{Control, Decision, Observed};
use tokio::sync::{mpsc, oneshot};

use crate::approvals::{Answer, ApprovalError, Approvals, Kind, Record, Spent, Standing};
use crate::engine::effect::GateRequest;
use crate::limits;
use crate::redact::Redactor;
use crate::sys::clock::{Clock, rfc3339};
use crate::sys::watch::{Watch, Woken};

/// See the module's doc.
pub struct Desk {
    /// Where approvals are kept.
    pub approvals: Approvals,
    /// What the run was asked, redacted.
    pub objective: String,
    /// The run.
    pub run_id: String,
    /// How long an approval can be decided and spent; for ever where absent.
    pub expiry: Option<Duration>,
    /// What never leaves.
    pub redactor: Arc<Redactor>,
    /// The time.
    pub clock: Arc<dyn Clock>,
}

/// What is heard from the desk.
#[derive(Debug)]
pub(super) enum Heard {
    /// A decision that is spent on this run.
    Decision(Decision),
    /// Something to be told.
    Observed(Observed),
}

/// A run that listens. When it is dropped, nobody does any more.
#[derive(Debug)]
pub(super) struct Listening {
    pub(super) heard: mpsc::Receiver<Heard>,
    /// Its other end is at the listener: closing this one ends it.
    _end: Option<std::io::PipeReader>,
}

impl Desk {
    /// Notes a call that waits. The error is a sentence.
    pub(super) fn note(&self, request: &GateRequest) -> Result<(), String> {
        if !self.approvals.is_kept() {
            return Ok(());
        }
        let expires = self.expiry.and_then(|expiry| chrono::TimeDelta::from_std(expiry).ok());
        let expires_at = expires.and_then(|expiry| self.clock.utc().checked_add_signed(expiry)).map(rfc3339);
        let record = Record {
            approval_id: request.approval_id.clone(),
            tool: request.intent.tool.clone(),
            arguments: request.intent.arguments.clone(),
            objective: self.objective.clone(),
            run_id: self.run_id.clone(),
            reason: self.redactor.text(&request.reason).into_owned(),
            kind: if request.is_doubt { Kind::Reconcile } else { Kind::Gate },
            definition: request.intent.definition.clone(),
            digest: request.intent.digest.clone(),
            key: if request.is_doubt { request.intent.key.clone() } else { String::new() },
            index: request.index,
            // What became of a call is asked for as long as nobody knows.
            expires_at: expires_at.filter(|_| !request.is_doubt),
            ..Record::default()
        };
        let noted = self.approvals.propose(record, &*self.clock);
        noted.map_err(|error| format!("The call waits for a person, and that could not be written down: {error}."))
    }

    /// Writes down what a person said on the control channel about a call that the run waits for: the only place inside a run where that
    /// is done. It may wait for others who write, so a thread does it; the error is the end of a sentence.
    pub(super) fn sign(&self, control: &Control) -> oneshot::Receiver<Result<(), String>> {
        let (sender, written) = oneshot::channel();
        let (approvals, clock) = (self.approvals.clone(), Arc::clone(&self.clock));
        let text = |text: &Option<String>| self.redactor.text(text.as_deref().unwrap_or_default()).into_owned();
        let (id, by, note) = (control.approval_id.clone().unwrap_or_default(), text(&control.by), text(&control.note));
        let answer = control.answer.as_deref().and_then(Answer::named);
        let sign = move || {
            let signed = match answer {
                Some(answer) => approvals.decide(&id, answer, &by, &note, &*clock).map(drop).map_err(|error| error.to_string()),
                None => Err("it holds no answer".to_owned()),
            };
            // The run may be over by then: the decision counts all the same.
            let _ = sender.send(signed);
        };
        // Where there is no thread, whoever waits hears that at once.
        let _ = std::thread::Builder::new().name("decision".to_owned()).spawn(sign);
        written
    }

    /// Spends an approval on a call of this run: the decision as the engine takes it. One that cannot be spent is a refusal.
    pub(super) fn claim(&self, approval_id: &str, key: &str, digest: &str) -> Decision {
        let spent = Spent { run: self.run_id.clone(), key: key.to_owned() };
        match self.approvals.spend(approval_id, &spent, digest, &*self.clock) {
            Ok(record) => decision(&record),
            Err(error) => Decision {
                approval_id: approval_id.to_owned(),
                answer: Answer::Refuse.word().to_owned(),
                by: "mission".to_owned(),
                note: Some(error.to_string()),
                content: None,
            },
        }
    }

    /// Listens for a decision, and spends it.
    pub(super) fn listen(&self, approval_id: &str, key: &str, digest: &str) -> Listening {
        let (sender, heard) = mpsc::channel(limits::size(limits::GATE_HEARD));
        let silent = || Listening { heard: mpsc::channel(1).1, _end: None };
        let Ok(path) = self.approvals.file(approval_id) else { return silent() };
        let Ok((end, here)) = std::io::pipe() else { return silent() };
        let listener = Listener {
            approvals: self.approvals.clone(),
            approval_id: approval_id.to_owned(),
            spent: Spent { run: self.run_id.clone(), key: key.to_owned() },
            digest: digest.to_owned(),
            clock: Arc::clone(&self.clock),
            sender,
            path,
        };
        let thread = std::thread::Builder::new().name("gate".to_owned()).spawn(move || listener.run(&here));
        match thread {
            Ok(_) => Listening { heard, _end: Some(end) },
            Err(_) => silent(),
        }
    }
}

/// What a record says, as the engine takes it.
pub fn decision(record: &Record) -> Decision {
    Decision {
        approval_id: record.approval_id.clone(),
        answer: record.answer.map(Answer::word).unwrap_or_default().to_owned(),
        by: record.decided_by.clone(),
        note: Some(record.note.clone()).filter(|note| !note.is_empty()),
        content: None,
    }
}

struct Listener {
    approvals: Approvals,
    approval_id: String,
    spent: Spent,
    digest: String,
    clock: Arc<dyn Clock>,
    sender: mpsc::Sender<Heard>,
    path: PathBuf,
}

impl Listener {
    fn run(self, end: &std::io::PipeWriter) {
        let mut told = None;
        loop {
            // A file that is replaced is another file: it is watched anew before it is looked at.
            let watch = Watch::on([self.path.as_path()]);
            if let Some(heard) = self.look(&mut told) {
                let is_over = matches!(heard, Heard::Decision(_));
                if self.sender.blocking_send(heard).is_err() || is_over {
                    return;
                }
            }
            match watch.wait(end.as_fd(), Duration::from_millis(limits::GATE_LOOK_MS)) {
                Ok(Woken::Changed | Woken::Nothing) => {}
                Ok(Woken::ReaderGone) | Err(_) => return,
            }
        }
    }

    fn look(&self, told: &mut Option<String>) -> Option<Heard> {
        let problem = match self.approvals.look(&self.approval_id, &*self.clock) {
            Ok((_, Standing::Decided(_))) => {
                match self.approvals.spend(&self.approval_id, &self.spent, &self.digest, &*self.clock) {
                    Ok(record) => return Some(Heard::Decision(decision(&record))),
                    Err(error) => error.to_string(),
                }
            }
            Ok((record, Standing::Spent(_, by))) if by == self.spent => return Some(Heard::Decision(decision(&record))),
            Ok((_, Standing::Unsigned(why))) => {
                format!("The approval {} holds a decision that does not count, because {why}: it is pending.", self.approval_id)
            }
            Ok(_) | Err(ApprovalError::Missing { .. } | ApprovalError::NotKept) => return None,
            Err(error) => error.to_string(),
        };
        // Told once, however often it is looked at.
        (told.as_ref() != Some(&problem)).then(|| {
            *told = Some(problem.clone());
            Heard::Observed(Observed { what: "approval_unsigned".to_owned(), detail: problem, ..Observed::default() })
        })
    }
}
