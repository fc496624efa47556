//! What a run has spent, and whether its limits leave something for what it is about to do.

use mission_contract::event::{BudgetSpent, Cost, Usage, UsageTotal};
use mission_contract::spec::{Limits, Pricing};
use serde_json::Number;

use crate::limits::{BYTES_A_TOKEN, REPLY_TOKENS_STATED, TOKENS_PRICED};

/// A running total. What replies reported and what limits count are two things: a reply that reported nothing counts all the same.
#[derive(Debug, Default)]
pub struct Ledger {
    reported: UsageTotal,
    /// Tokens as limits count them: of requests, of replies, in all.
    prompt: u64,
    completion: u64,
    tokens: u64,
    /// Tokens of the last request of the conversation. It only grows: the next one has no fewer.
    last_prompt: u64,
    /// Bytes of results.
    bytes: u64,
    /// A question is out, and its reply was not settled yet.
    is_out: bool,
    /// Nothing was reported once, and that was told.
    is_told: bool,
}

/// How large a question and its reply were, where nobody reported what they cost.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Bytes of the request's texts.
    pub request: u64,
    /// Bytes of the reply's texts.
    pub reply: u64,
}

impl Ledger {
    /// Settles a reply by what it reported, else by how large it was. True the first time that nothing was reported.
    pub fn settle(&mut self, usage: Option<&Usage>, sizes: impl FnOnce() -> Sizes, is_step: bool) -> bool {
        self.is_out = false;
        let (prompt, completion, total) = match usage {
            Some(usage) => {
                let total = &mut self.reported;
                total.prompt_tokens = total.prompt_tokens.saturating_add(usage.prompt_tokens);
                total.completion_tokens = total.completion_tokens.saturating_add(usage.completion_tokens);
                total.total_tokens = total.total_tokens.saturating_add(usage.total_tokens);
                total.calls = total.calls.saturating_add(1);
                (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens)
            }
            None => {
                let Sizes { request, reply } = sizes();
                let (prompt, completion) = (request.div_ceil(BYTES_A_TOKEN), reply.div_ceil(BYTES_A_TOKEN));
                (prompt, completion, prompt.saturating_add(completion))
            }
        };
        self.prompt = self.prompt.saturating_add(prompt);
        self.completion = self.completion.saturating_add(completion);
        self.tokens = self.tokens.saturating_add(total);
        if is_step {
            self.last_prompt = prompt;
        }
        usage.is_none() && !std::mem::replace(&mut self.is_told, true)
    }

    /// A question went out.
    pub fn asked(&mut self) {
        self.is_out = true;
    }

    /// A later stretch begins. A question that died with its process before its reply was there counts by its size: whether it was answered,
    /// nobody knows.
    pub fn taken_over(&mut self, request: impl FnOnce() -> u64) {
        if std::mem::take(&mut self.is_out) {
            let prompt = request().div_ceil(BYTES_A_TOKEN);
            self.prompt = self.prompt.saturating_add(prompt);
            self.tokens = self.tokens.saturating_add(prompt);
        }
    }

    /// Adds the bytes of a result.
    pub fn returned(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
    }

    /// What the replies reported, when any of them did; in money too where there is a price.
    pub fn total(&self, pricing: Option<&Pricing>) -> Option<UsageTotal> {
        let cost = |pricing: &Pricing| Cost {
            amount: units(micros(pricing, self.reported.prompt_tokens, self.reported.completion_tokens)),
            currency: pricing.currency.clone(),
        };
        (self.reported.calls > 0).then(|| UsageTotal { cost: pricing.map(cost), ..self.reported.clone() })
    }

    /// Reserves the next question of the conversation: which limit it would pass, if one. It costs no less than the last request did.
    pub fn no_ask(&self, limits: &Limits, pricing: Option<&Pricing>) -> Option<BudgetSpent> {
        let would_pass = |limit: u64, spent: u64, least: u64| spent >= limit || spent.saturating_add(least) > limit;
        if let Some(limit) = limits.tokens
            && would_pass(limit, self.tokens, self.last_prompt)
        {
            return Some(BudgetSpent { which: "tokens".into(), limit: limit.into(), spent: self.tokens.into() });
        }
        let (limit, pricing) = limits.cost_micros.zip(pricing)?;
        let (spent, least) = (micros(pricing, self.prompt, self.completion), micros(pricing, self.last_prompt, 0));
        would_pass(limit, spent, least).then(|| BudgetSpent {
            which: "cost".into(),
            limit: number(units(limit)),
            spent: number(units(spent)),
        })
    }

    /// Tokens that the next reply may have before a limit is passed, where few are left.
    pub fn reply_tokens(&self, limits: &Limits, pricing: Option<&Pricing>) -> Option<u64> {
        let tokens = limits.tokens.map(|limit| limit.saturating_sub(self.tokens).saturating_sub(self.last_prompt));
        let paid = limits.cost_micros.zip(pricing).and_then(|(limit, pricing)| {
            let left = limit.saturating_sub(micros(pricing, self.prompt.saturating_add(self.last_prompt), self.completion));
            let tokens =
                u128::from(left).saturating_mul(u128::from(TOKENS_PRICED)).checked_div(u128::from(pricing.completion_micros))?;
            u64::try_from(tokens).ok()
        });
        let least = tokens.into_iter().chain(paid).min()?;
        (least < REPLY_TOKENS_STATED).then_some(least.max(1))
    }

    /// Reserves a call: the limit on bytes, when nothing of it is left; those on tokens and money too, since nobody could be told any more
    /// what came of it.
    pub fn no_call(&self, limits: &Limits, pricing: Option<&Pricing>) -> Option<BudgetSpent> {
        if let Some(limit) = limits.tokens.filter(|limit| self.tokens >= *limit) {
            return Some(BudgetSpent { which: "tokens".into(), limit: limit.into(), spent: self.tokens.into() });
        }
        let paid = limits.cost_micros.zip(pricing).map(|(limit, pricing)| (limit, micros(pricing, self.prompt, self.completion)));
        if let Some((limit, spent)) = paid.filter(|(limit, spent)| spent >= limit) {
            return Some(BudgetSpent { which: "cost".into(), limit: number(units(limit)), spent: number(units(spent)) });
        }
        let limit = limits.bytes.filter(|limit| self.bytes >= *limit)?;
        Some(BudgetSpent { which: "bytes".into(), limit: limit.into(), spent: self.bytes.into() })
    }

    /// What limits count, for a later stretch that is given more: tokens, bytes, millionths of money.
    pub fn spent(&self, pricing: Option<&Pricing>) -> (u64, u64, u64) {
        (self.tokens, self.bytes, pricing.map_or(0, |pricing| micros(pricing, self.prompt, self.completion)))
    }
}

/// What tokens cost, in whole millionths, rounded up.
fn micros(pricing: &Pricing, prompt: u64, completion: u64) -> u64 {
    let of = |tokens: u64, price: u64| u128::from(tokens).saturating_mul(u128::from(price));
    let sum = of(prompt, pricing.prompt_micros).saturating_add(of(completion, pricing.completion_micros));
    u64::try_from(sum.div_ceil(u128::from(TOKENS_PRICED))).unwrap_or(u64::MAX)
}

/// Millionths as an amount.
fn units(micros: u64) -> f64 {
    micros as f64 / 1_000_000.0
}

/// A number of the wire. No amount here is infinite or none.
pub fn number(value: f64) -> Number {
    Number::from_f64(value).unwrap_or_else(|| 0.into())
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
