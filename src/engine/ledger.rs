//! What the replies of a run cost.

use mission_contract::event::{Usage, UsageTotal};

/// A running total; absent as long as no reply reported anything.
#[derive(Debug, Default)]
pub struct Ledger {
    total: UsageTotal,
}

impl Ledger {
    /// Adds what a reply reported.
    pub fn add(&mut self, usage: Option<&Usage>) {
        let Some(usage) = usage else { return };
        let total = &mut self.total;
        total.prompt_tokens = total.prompt_tokens.saturating_add(usage.prompt_tokens);
        total.completion_tokens = total.completion_tokens.saturating_add(usage.completion_tokens);
        total.total_tokens = total.total_tokens.saturating_add(usage.total_tokens);
        total.calls = total.calls.saturating_add(1);
    }

    /// The total, when any reply reported.
    pub fn total(&self) -> Option<UsageTotal> {
        (self.total.calls > 0).then(|| self.total.clone())
    }
}
