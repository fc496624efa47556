//! What a stretch of a run begins with, and its first lines.

use std::sync::Arc;
use std::time::Duration;

use mission_contract::log::{Catalogue, Decision, Entry, Leg, Observed, Open, Writer};
use tokio::sync::mpsc;

use super::{Auditing, Desk, Driver, Known, Outside};
use crate::engine::effect::Effect;
use crate::engine::fold::Folded;
use crate::engine::run::FoldError;
use crate::journal::RunLog;
use crate::model::ModelBackend;
use crate::redact::Redactor;
use crate::sys::clock::Clock;
use crate::sys::signals::EndSignals;
use crate::tools::{Discovery, PlaneEvent, ToolPlane};

/// What a run is opened with.
#[derive(Debug)]
pub struct Opening {
    /// A run that begins, or one that is taken up.
    pub beginning: Beginning,
    /// Who answers; absent when that is as it was, or when nobody is asked.
    pub leg: Option<Leg>,
    /// What discovery found.
    pub discovery: Discovery,
    /// What was seen before the run began and the stream must tell.
    pub observed: Vec<Observed>,
}

/// Where a stretch of a run begins.
#[derive(Debug)]
pub enum Beginning {
    /// At its start.
    Fresh(Box<Open>),
    /// Where its log ends.
    Taken(Box<Taken>),
}

/// A run that is taken up.
#[derive(Debug)]
pub struct Taken {
    /// As its log leaves it.
    pub folded: Folded,
    /// Who takes it up.
    pub writer: Writer,
    /// The tools as its log knows them.
    pub known: Known,
    /// What a person said about the call that it waits for.
    pub decision: Option<Decision>,
}

/// What a run runs on.
pub struct Parts {
    /// Its log; the sinks hang on it.
    pub log: RunLog,
    /// The model; absent where nobody is going to be asked.
    pub model: Option<Arc<dyn ModelBackend>>,
    /// The tools.
    pub tools: Arc<dyn ToolPlane>,
    /// What the tools report by themselves.
    pub reports: mpsc::Receiver<PlaneEvent>,
    /// What the sinks report by themselves.
    pub sinks: mpsc::UnboundedReceiver<Observed>,
    /// What never leaves.
    pub redactor: Arc<Redactor>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// The signals that end a run.
    pub signals: EndSignals,
    /// How long what is in flight may resist when the run ends.
    pub grace: Duration,
    /// Where calls that wait for a person are noted, and decisions heard.
    pub desk: Desk,
    /// How it is spoken to while it goes on.
    pub outside: Outside,
    /// Where it is written down what is called.
    pub auditing: Auditing,
}

impl Driver {
    pub(super) fn begin(&mut self, opening: Opening) -> Result<(), FoldError> {
        let Opening { beginning, leg, discovery, observed } = opening;
        let known = match beginning {
            Beginning::Fresh(open) => {
                self.input(Entry::Open(open))?;
                None
            }
            Beginning::Taken(taken) => {
                let Taken { folded, writer, known, decision } = *taken;
                self.engine = folded.run;
                self.input(Entry::Writer(writer))?;
                for effect in folded.lost {
                    self.write_lost(effect);
                }
                if self.engine.outcome().is_some() {
                    // It had come to its end, and only the telling was lost.
                    self.ending = folded.ending;
                    return Ok(());
                }
                if let Some(decision) = decision {
                    self.input(Entry::Decision(decision))?;
                }
                (!self.engine.is_unannounced()).then_some(known)
            }
        };
        if let Some(leg) = leg {
            self.input(Entry::Leg(leg))?;
        }
        for observed in observed.into_iter().chain(discovery.observed) {
            self.input(Entry::Observed(observed))?;
        }
        let catalogue = match known {
            // Nothing was started, as nothing is to be called.
            Some(_) if discovery.servers.is_empty() => Catalogue::default(),
            None => Catalogue { servers: discovery.servers, tools: discovery.tools, ..Catalogue::default() },
            Some(mut known) => {
                let (catalogue, _) = known.compare(discovery.servers, discovery.tools);
                self.known = Some(known);
                catalogue
            }
        };
        let catalogue = Arc::new(Entry::Catalogue(catalogue));
        if self.known.is_none() {
            self.first = Some(Arc::clone(&catalogue));
        }
        self.input(catalogue)
    }

    /// Writes what the stretch before had decided and not written. Nobody is asked: whoever took the run up asks anew.
    fn write_lost(&mut self, effect: Effect) {
        let ms = self.clock.monotonic_ms();
        match effect {
            Effect::Ask { ask, .. } => drop(self.log.append(ms, Entry::Ask(*ask))),
            effect => self.carry_out(ms, effect),
        }
    }
}
