//! `meta.json`: what a list of runs shows, so that it reads no log; and the last synced line, as a witness.

use std::io::{self, Read};
use std::path::Path;

use mission_contract::event::{Event, Outcome, UsageTotal};
use mission_contract::log::Entry;
use mission_contract::spec::Protocol;
use serde::{Deserialize, Serialize};

use crate::limits;
use crate::sys::files::{Durability, open_regular, replace_file};

/// A run as a list shows it. A cache: everything in it stands in the log.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunMeta {
    /// The run.
    pub run_id: String,
    /// When it was begun, RFC 3339 UTC.
    pub created_at: String,
    /// When this was written.
    pub updated_at: String,
    /// The objective, or its beginning.
    pub objective: String,
    /// How its last stretch ended; absent while it runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// Steps recorded.
    pub steps: u64,
    /// The model's provider.
    pub provider: String,
    /// The model, when known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How the model is spoken to.
    pub protocol: Protocol,
    /// What its replies cost, when its last stretch ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<UsageTotal>,
    /// The last line known to be durable when this was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<Witness>,
}

/// A line that was durable: a log that lacks it was cut.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Witness {
    /// Number of the line.
    pub seq: u64,
    /// Its `sum`.
    pub sum: String,
}

impl RunMeta {
    /// Takes up what an input says about the run.
    pub(super) fn note_entry(&mut self, entry: &Entry) {
        match entry {
            Entry::Open(open) => {
                let bound = limits::size(limits::META_OBJECTIVE_CHARACTERS);
                self.objective = open.spec.objective.chars().take(bound).collect();
                self.provider.clone_from(&open.spec.provider);
                self.model.clone_from(&open.spec.model);
                self.protocol = open.spec.protocol;
            }
            Entry::Writer(_) => self.outcome = None,
            Entry::Leg(leg) => {
                self.provider.clone_from(&leg.provider);
                self.model = Some(leg.model.clone());
            }
            _ => {}
        }
    }

    /// Takes up what a record says about the run.
    pub(super) fn note_event(&mut self, event: &Event) {
        match event {
            Event::StepStarted(step) => self.steps = self.steps.max(step.index.saturating_add(1)),
            Event::MissionFinished(finished) => {
                self.outcome = Some(finished.outcome);
                self.steps = finished.steps;
                self.usage.clone_from(&finished.usage);
            }
            _ => {}
        }
    }

    /// Reads it; nothing when it is missing or not readable, as a cache may be.
    pub fn read(path: &Path) -> Option<Self> {
        let mut text = Vec::new();
        let bound = limits::META_BYTES.saturating_add(1);
        open_regular(path).ok()?.take(bound).read_to_end(&mut text).ok()?;
        if u64::try_from(text.len()).is_ok_and(|length| length > limits::META_BYTES) {
            return None;
        }
        serde_json::from_slice(&text).ok()
    }

    /// Writes it whole.
    pub(super) fn write(&self, path: &Path, durability: Durability) -> io::Result<()> {
        let mut text = serde_json::to_vec(self)?;
        text.push(b'\n');
        replace_file(path, &text, durability)
    }
}
