//! The wire to a server that is a child: its process tree, and who serves its pipes.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OnceCell, mpsc};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::exchange::Exchange;
use super::outgoing::Outgoing;
use super::pump;
use crate::limits;
use crate::sys::guardian::End;
use crate::sys::spawn::{ChildTree, GuardianProgram, StderrTail};

/// A server's process tree, and who serves its pipes.
#[derive(Debug)]
pub(crate) struct ChildWire {
    tree: Mutex<Option<ChildTree>>,
    /// How it came to its end, once somebody has asked: what we do with the tree afterwards changes nothing in it.
    end: OnceCell<String>,
    stderr: StderrTail,
    program: String,
    /// Ends the server's input once what is queued is written.
    done: CancellationToken,
    pumps: Vec<JoinHandle<()>>,
}

impl ChildWire {
    /// Starts a server.
    ///
    /// # Errors
    /// Why it cannot be started: the second half of a sentence about it.
    pub(crate) fn start(
        guardian_program: &GuardianProgram,
        argv: &[String],
        environment: &BTreeMap<OsString, OsString>,
        exchange: &Arc<Exchange>,
        outgoing: mpsc::Receiver<Outgoing>,
    ) -> Result<Self, String> {
        let spawned = ChildTree::spawn(guardian_program, argv, environment, None);
        let mut tree = spawned.map_err(|error| format!("could not be started: {error}"))?;
        let done = CancellationToken::new();
        let mut pumps = Vec::new();
        if let Some(stdout) = tree.stdout.take() {
            pumps.push(tokio::spawn(pump::read(stdout, exchange.clone())));
        }
        if let Some(stdin) = tree.stdin.take() {
            pumps.push(tokio::spawn(pump::write(stdin, outgoing, exchange.clone(), done.clone())));
        }
        Ok(Self {
            stderr: tree.stderr(),
            tree: Mutex::new(Some(tree)),
            end: OnceCell::new(),
            program: argv.first().cloned().unwrap_or_default(),
            done,
            pumps,
        })
    }

    /// Ends the tree. A second call has nothing left to do.
    pub(crate) async fn close(&self) {
        self.done.cancel();
        let tree = self.tree.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(tree) = tree {
            tree.close().await;
        }
    }

    /// How the server came to its end, once its pipes are closed: the second half of a sentence about it.
    pub(crate) async fn end_in_words(&self) -> String {
        self.end.get_or_init(|| self.find_end()).await.clone()
    }

    /// What the server last said on its standard error, as the end of a sentence.
    pub(crate) fn last_words(&self) -> String {
        self.stderr.quoted().map(|last_words| format!("; it last said: {last_words}")).unwrap_or_default()
    }

    async fn find_end(&self) -> String {
        let ended = self.tree.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(ChildTree::ended);
        let words = match ended {
            None => "was ended by us".to_owned(),
            Some(ended) => match timeout(Duration::from_millis(limits::MCP_END_MS), ended).await {
                Ok(End::NotStarted(why)) => return format!("could not be started from `{}`: {why}", self.program),
                Ok(end) => end.to_string(),
                Err(_) => "closed its pipes and ran on".to_owned(),
            },
        };
        self.stderr.settle().await;
        words + &self.last_words()
    }
}

impl Drop for ChildWire {
    fn drop(&mut self) {
        for pump in &self.pumps {
            pump.abort();
        }
    }
}
