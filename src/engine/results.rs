//! The results of a run, each under its handle.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

/// One kept result.
#[derive(Clone, Debug)]
pub struct Kept {
    /// The tool.
    pub tool: String,
    /// The call's canonical arguments.
    pub arguments: Arc<str>,
    /// Whether it went well.
    pub ok: bool,
    /// The text.
    pub text: Arc<str>,
    /// The typed result.
    pub structured: Option<Arc<Value>>,
}

/// All kept results, in call order.
#[derive(Debug, Default)]
pub struct Results {
    kept: Vec<Kept>,
    /// The digest of a call → the places of its results that went well.
    by_call: BTreeMap<String, Vec<usize>>,
}

impl Results {
    /// Keeps a result. Returns its handle, and the handle of an earlier one that is the very same: the same call (by digest), both
    /// well, the same text and the same typed result.
    pub fn keep(&mut self, call_digest: &str, result: Kept) -> (String, Option<String>) {
        let place = self.kept.len();
        let mut same = None;
        if result.ok {
            let places = self.by_call.entry(call_digest.to_owned()).or_default();
            same = places
                .iter()
                .filter_map(|&place| self.kept.get(place).map(|earlier| (place, earlier)))
                .find(|(_, earlier)| earlier.text == result.text && earlier.structured == result.structured)
                .map(|(place, _)| handle(place));
            places.push(place);
        }
        self.kept.push(result);
        (handle(place), same)
    }

    /// The result under a handle.
    pub fn get(&self, wanted: &str) -> Option<&Kept> {
        let number: usize = wanted.strip_prefix('r')?.parse().ok()?;
        self.kept.get(number.checked_sub(1)?)
    }

    /// All of them, each with its handle.
    pub fn iter(&self) -> impl Iterator<Item = (String, &Kept)> {
        self.kept.iter().enumerate().map(|(place, kept)| (handle(place), kept))
    }

    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }
}

fn handle(place: usize) -> String {
    format!("r{}", place.saturating_add(1))
}
