//! Holding a replay against its recording, output by output as they come.
//!
//! Both are taken step by step: what one step has too many or too few does not make the next one differ. Within a step the records that
//! decide something stand in one line, those that only tell something in another, the asks in a third, the calls in a fourth. Only the
//! first drift of each kind is kept: what follows from it would only repeat it.

use mission_contract::event::Event;
use mission_contract::log::{Ask, Intent, Message};
use mission_contract::replay::{Drift, DriftKind, ReplayVerdict};
use mission_contract::vocabulary::{drop_volatile, event as shape};
use serde_json::{Map, Value};

use super::fields::{Part, deciding, part, without_caveat};
use super::recording::{Group, Recording, Source, Told};
use crate::limits::{self, DRIFT_BEFORE_CHARACTERS, DRIFT_CHARACTERS};
use crate::redact::Redactor;

/// How far a step has been compared.
#[derive(Debug, Default)]
struct Cursors {
    decisions: usize,
    told: usize,
    asks: usize,
    intents: usize,
}

/// A comparison that goes on.
#[derive(Debug)]
pub(super) struct Comparison<'r> {
    recording: &'r Recording,
    redactor: Redactor,
    group: usize,
    at: Cursors,
    /// Nothing is compared any more: the recording ends here, or the replay was ended from outside.
    is_over: bool,
    drift: Vec<Drift>,
}

impl<'r> Comparison<'r> {
    pub(super) fn new(recording: &'r Recording, redactor: Redactor) -> Self {
        Self { recording, redactor, group: 0, at: Cursors::default(), is_over: false, drift: Vec::new() }
    }

    /// The first drift of each kind so far, in the order in which they came.
    pub(super) fn drift(&self) -> &[Drift] {
        &self.drift
    }

    /// What all of it comes to.
    pub(super) fn verdict(&self) -> ReplayVerdict {
        match self.drift.iter().map(|drift| drift.kind).max() {
            None => ReplayVerdict::Same,
            Some(DriftKind::Text) => ReplayVerdict::Text,
            Some(DriftKind::Decision) => ReplayVerdict::Decision,
        }
    }

    /// What comes from here on has nothing in the recording to be held against.
    pub(super) fn stop(&mut self) {
        self.is_over = true;
    }

    /// The replay is over: whatever the recording has besides is missing in it.
    pub(super) fn end(&mut self) {
        self.close_group();
        let further = self.recording.groups.iter().skip(self.group.saturating_add(1)).find_map(|group| group.decisions.first());
        if let Some(told) = further {
            self.missing(told, DriftKind::Decision, step_of(told));
        }
        self.is_over = true;
    }

    fn current(&self) -> Option<&'r Group> {
        self.recording.groups.get(self.group)
    }

    fn step(&self) -> Option<u64> {
        self.current().and_then(|group| group.step).or_else(|| u64::try_from(self.group.checked_sub(1)?).ok())
    }

    /// Whether a run that was killed may have lost what comes now: its log ends here.
    fn may_be_lost(&self) -> bool {
        !self.recording.is_finished && self.group.saturating_add(1) >= self.recording.groups.len()
    }

    /// Compares a record, redacted.
    pub(super) fn record(&mut self, event: &Event) {
        if self.is_over {
            return;
        }
        if let Event::StepStarted(_) = event {
            self.close_group();
            self.group = self.group.saturating_add(1);
            self.at = Cursors::default();
        }
        let group = self.current();
        let (told, kind) = match part(event.name(), self.recording.source) {
            Part::Neither => return,
            Part::Decides => (group.and_then(|group| group.decisions.get(self.at.decisions)), DriftKind::Decision),
            Part::Tells => (group.and_then(|group| group.told.get(self.at.told)), DriftKind::Text),
        };
        if kind == DriftKind::Decision {
            self.at.decisions = self.at.decisions.saturating_add(1);
        } else {
            self.at.told = self.at.told.saturating_add(1);
        }
        match told {
            Some(told) => self.records(told, event),
            None if self.may_be_lost() => {}
            None => {
                let replayed = self.side(&Value::Object(fields(event)));
                self.add(kind, format!("`{}` is in the replay only", event.name()), self.step(), None, None, Some(replayed));
            }
        }
    }

    fn records(&mut self, told: &Told, event: &Event) {
        let name = event.name();
        let (mut recorded, mut replayed) = (redacted(told, &self.redactor), fields(event));
        drop_volatile(&mut recorded);
        drop_volatile(&mut replayed);
        if recorded != replayed {
            // One of them may have had its evidence redacted, and the other not.
            let redactor = self.redactor.clone().with_evidence(true);
            (recorded, replayed) = (redacted(told, &redactor), hidden(event.clone(), &redactor));
            drop_volatile(&mut recorded);
            drop_volatile(&mut replayed);
        }
        let step = self.step();
        if recorded.get("event").and_then(Value::as_str) != Some(name) {
            let kind = if part(name, self.recording.source) == Part::Decides { DriftKind::Decision } else { DriftKind::Text };
            let other = recorded.get("event").and_then(Value::as_str).unwrap_or_default();
            let what = format!("`{other}` in the recording is `{name}` in the replay");
            let (recorded, replayed) = (Value::Object(recorded), Value::Object(replayed));
            return self.differ(kind, what, step, Some(told.seq), Some(&recorded), Some(&replayed));
        }
        if recorded == replayed {
            return;
        }
        let source = self.recording.source;
        let (recorded, replayed) = (Value::Object(recorded), Value::Object(replayed));
        for pointer in deciding(name, source) {
            let (mine, theirs) = (recorded.pointer(pointer), replayed.pointer(pointer));
            if mine != theirs && !(name == "answer" && same_answer(mine, theirs)) {
                let what = format!("`{}` of `{name}`", pointer.trim_start_matches('/'));
                return self.differ(DriftKind::Decision, what, step, Some(told.seq), mine, theirs);
            }
        }
        if source == Source::Seed2 {
            return;
        }
        let order = shape(name).map(|shape| shape.fields).unwrap_or_default().iter().map(|field| field.name);
        for field in order.filter(|field| recorded.get(field) != replayed.get(field)) {
            let what = format!("`{field}` of `{name}`");
            self.differ(DriftKind::Text, what, step, Some(told.seq), recorded.get(field), replayed.get(field));
        }
    }

    /// Compares an ask.
    pub(super) fn ask(&mut self, ask: &Ask) {
        if self.is_over || self.recording.source == Source::Seed2 {
            return;
        }
        let recorded = self.current().and_then(|group| group.asks.get(self.at.asks));
        self.at.asks = self.at.asks.saturating_add(1);
        let step = self.step();
        let Some((seq, recorded)) = recorded else {
            if !self.may_be_lost() {
                self.add(DriftKind::Decision, "the model is asked in the replay only".to_owned(), step, None, None, None);
            }
            return;
        };
        if recorded.purpose != ask.purpose {
            let of = |ask: &Ask| Some(format!("{:?}", ask.purpose).to_lowercase());
            let what = "what the model is asked for".to_owned();
            return self.add(DriftKind::Decision, what, step, Some(*seq), of(recorded), of(ask));
        }
        if recorded.digest != ask.digest && !self.has(DriftKind::Text) {
            self.prompts(*seq, recorded, ask);
        }
    }

    fn prompts(&mut self, seq: u64, recorded: &Ask, ask: &Ask) {
        let step = self.step();
        let differs = |(_, (recorded, ask)): &(usize, (&Message, &Message))| recorded != ask;
        let both = recorded.adds.iter().zip(&ask.adds);
        if let Some((at, (theirs, ours))) = both.enumerate().find(differs) {
            let what = format!("message {} of what the model is asked", at.saturating_add(1));
            let (theirs, ours) = (message(theirs), message(ours));
            return self.differ(DriftKind::Text, what, step, Some(seq), Some(&theirs), Some(&ours));
        }
        if recorded.adds.len() != ask.adds.len() || recorded.keeps != ask.keeps {
            let of = |ask: &Ask| {
                let kept = ask.keeps.map(|keeps| format!(", {keeps} of those before kept")).unwrap_or_default();
                Some(format!("{} messages{kept}", ask.adds.len()))
            };
            let what = "number of the messages that an ask adds".to_owned();
            return self.add(DriftKind::Text, what, step, Some(seq), of(recorded), of(ask));
        }
        let what = "the functions, the sampling or the shape asked for; the messages are the same".to_owned();
        let of = |ask: &Ask| Some(format!("digest {}", ask.digest));
        self.add(DriftKind::Text, what, step, Some(seq), of(recorded), of(ask));
    }

    /// Compares an intent.
    pub(super) fn intent(&mut self, intent: &Intent) {
        if self.is_over || self.recording.source == Source::Seed2 {
            return;
        }
        let recorded = self.current().and_then(|group| group.intents.get(self.at.intents));
        self.at.intents = self.at.intents.saturating_add(1);
        let step = self.step();
        let plain = |intent: &Intent| serde_json::to_value(intent).unwrap_or_default();
        match recorded {
            Some((_, recorded)) if recorded == intent => {}
            Some((seq, recorded)) => {
                let (recorded, intent) = (plain(recorded), plain(intent));
                let fields = ["tool", "server", "arguments", "definition", "digest", "key", "idempotent"];
                let field = fields.into_iter().find(|field| recorded.get(field) != intent.get(field)).unwrap_or("tool");
                let what = format!("`{field}` of the call's intent");
                self.differ(DriftKind::Decision, what, step, Some(*seq), recorded.get(field), intent.get(field));
            }
            None if self.may_be_lost() => {}
            None => {
                let what = "a call is made in the replay only".to_owned();
                self.differ(DriftKind::Decision, what, step, None, None, Some(&plain(intent)));
            }
        }
    }

    /// A step is over: what the recording has besides is missing.
    fn close_group(&mut self) {
        if self.is_over {
            return;
        }
        let Some(group) = self.current() else { return };
        let step = self.step();
        if let Some(told) = group.decisions.get(self.at.decisions) {
            self.missing(told, DriftKind::Decision, step);
        }
        let is_own = self.recording.source == Source::Mission;
        if let Some((seq, ask)) = group.asks.get(self.at.asks).filter(|_| is_own) {
            let purpose = Some(format!("{:?}", ask.purpose).to_lowercase());
            self.add(DriftKind::Decision, "the model is asked in the recording only".into(), step, Some(*seq), purpose, None);
        }
        if let Some((seq, intent)) = group.intents.get(self.at.intents).filter(|_| is_own) {
            let call = serde_json::to_value(intent).unwrap_or_default();
            let what = "a call is made in the recording only".to_owned();
            self.differ(DriftKind::Decision, what, step, Some(*seq), Some(&call), None);
        }
        if let Some(told) = group.told.get(self.at.told).filter(|_| is_own) {
            self.missing(told, DriftKind::Text, step);
        }
    }

    fn missing(&mut self, told: &Told, kind: DriftKind, step: Option<u64>) {
        let recorded = redacted(told, &self.redactor);
        let name = recorded.get("event").and_then(Value::as_str).unwrap_or_default().to_owned();
        let recorded = Value::Object(recorded);
        self.differ(kind, format!("`{name}` is in the recording only"), step, Some(told.seq), Some(&recorded), None);
    }

    fn has(&self, kind: DriftKind) -> bool {
        self.drift.iter().any(|drift| drift.kind == kind)
    }

    fn differ(
        &mut self,
        kind: DriftKind,
        what: String,
        step: Option<u64>,
        seq: Option<u64>,
        recorded: Option<&Value>,
        replayed: Option<&Value>,
    ) {
        if self.has(kind) {
            return;
        }
        let (recorded, replayed) = (recorded.map(|side| self.side(side)), replayed.map(|side| self.side(side)));
        self.add(kind, what, step, seq, recorded, replayed);
    }

    fn add(
        &mut self,
        kind: DriftKind,
        what: String,
        step: Option<u64>,
        seq: Option<u64>,
        recorded: Option<String>,
        replayed: Option<String>,
    ) {
        // The texts of a foreign recording are others.
        if self.is_over || self.has(kind) || (kind == DriftKind::Text && self.recording.source == Source::Seed2) {
            return;
        }
        let from = match (&recorded, &replayed) {
            (Some(recorded), Some(replayed)) => {
                let same = recorded.chars().zip(replayed.chars()).take_while(|(recorded, replayed)| recorded == replayed).count();
                same.saturating_sub(limits::size(DRIFT_BEFORE_CHARACTERS))
            }
            _ => 0,
        };
        let (recorded, replayed) = (recorded.map(|side| excerpt(&side, from)), replayed.map(|side| excerpt(&side, from)));
        self.drift.push(Drift { kind, what, step, seq, recorded, replayed });
    }

    /// One side of a drift as a text.
    fn side(&self, side: &Value) -> String {
        let text = match side {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        self.redactor.text(&text).into_owned()
    }
}

fn step_of(told: &Told) -> Option<u64> {
    told.fields().get("index").and_then(Value::as_u64)
}

fn fields(event: &Event) -> Map<String, Value> {
    match serde_json::to_value(event) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}

/// A recorded record as it would go out now: a credential that is known now is one in both.
fn redacted(told: &Told, redactor: &Redactor) -> Map<String, Value> {
    match serde_json::from_str::<Event>(told.record.get()) {
        Ok(event) => hidden(event, redactor),
        Err(_) => told.fields(),
    }
}

fn hidden(mut event: Event, redactor: &Redactor) -> Map<String, Value> {
    redactor.event(&mut event);
    fields(&event)
}

/// Whether two answers say the same before their caveats.
fn same_answer(recorded: Option<&Value>, replayed: Option<&Value>) -> bool {
    let text = |side: Option<&Value>| side.and_then(Value::as_str).map(|text| without_caveat(text).to_owned());
    text(recorded).is_some_and(|recorded| Some(recorded) == text(replayed))
}

fn message(message: &Message) -> Value {
    if message.calls.is_empty() && message.opaque.is_none() {
        return Value::String(format!("{}: {}", format!("{:?}", message.role).to_lowercase(), message.content.as_str()));
    }
    serde_json::to_value(message).unwrap_or_default()
}

/// A bounded piece of a text, from a character on.
fn excerpt(text: &str, from: usize) -> String {
    let most = limits::size(DRIFT_CHARACTERS);
    let mut piece: String = text.chars().skip(from).take(most).collect();
    if from > 0 {
        piece.insert(0, '…');
    }
    if text.chars().nth(from.saturating_add(most)).is_some() {
        piece.push('…');
    }
    piece
}

#[cfg(test)]
#[path = "drift_tests.rs"]
mod tests;
