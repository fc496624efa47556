#![allow(clippy::unwrap_used, clippy::arithmetic_side_effects)]

use proptest::prelude::*;

use super::*;

fn usage(prompt_tokens: u64, completion_tokens: u64) -> Usage {
    let total_tokens = prompt_tokens + completion_tokens;
    Usage { prompt_tokens, completion_tokens, total_tokens, ..Usage::default() }
}

fn sizes() -> Sizes {
    Sizes { request: 301, reply: 30 }
}

fn price() -> Pricing {
    Pricing { prompt_micros: 150_000, completion_micros: 600_000, currency: "USD".to_owned() }
}

#[test]
fn what_was_reported_and_what_counts_are_two_things() {
    let mut ledger = Ledger::default();
    assert_eq!(ledger.total(None), None);
    assert!(ledger.settle(None, sizes, true), "it is news once");
    assert!(!ledger.settle(None, sizes, true));
    assert!(!ledger.settle(Some(&usage(100, 7)), sizes, true));
    let total = ledger.total(Some(&price())).unwrap();
    assert_eq!((total.calls, total.total_tokens), (1, 107));
    assert!((total.cost.unwrap().amount - 0.000_020).abs() < 1e-9, "19.2 millionths, rounded up");
    assert_eq!(ledger.spent(None), (2 * (101 + 10) + 107, 0, 0));
}

#[test]
fn a_question_that_cannot_be_paid_is_not_asked() {
    let limits = Limits { tokens: Some(1000), ..Limits::default() };
    let mut ledger = Ledger::default();
    assert_eq!(ledger.no_ask(&limits, None), None);
    ledger.settle(Some(&usage(400, 50)), sizes, true);
    assert_eq!(ledger.no_ask(&limits, None), None, "400 more are 850");
    ledger.settle(Some(&usage(450, 50)), sizes, true);
    let spent = ledger.no_ask(&limits, None).unwrap();
    assert_eq!((spent.which.as_str(), spent.limit, spent.spent), ("tokens", 1000.into(), 950.into()));
    // A review is no part of the conversation: it says nothing about the next question.
    let mut ledger = Ledger::default();
    ledger.settle(Some(&usage(600, 50)), sizes, false);
    assert_eq!(ledger.no_ask(&limits, None), None);
}

#[test]
fn money_is_counted_in_whole_millionths() {
    let limits = Limits { cost_micros: Some(100), ..Limits::default() };
    let mut ledger = Ledger::default();
    ledger.settle(Some(&usage(200, 0)), sizes, true);
    assert_eq!(ledger.no_ask(&limits, Some(&price())), None, "30, and 30 more are 60");
    ledger.settle(Some(&usage(300, 0)), sizes, true);
    assert_eq!(ledger.no_ask(&limits, Some(&price())).unwrap().which, "cost", "75, and 45 more are 120");
    assert_eq!(ledger.no_ask(&limits, None), None, "without a price nothing is counted");
}

#[test]
fn calls_end_with_the_bytes() {
    let limits = Limits { bytes: Some(10), ..Limits::default() };
    let mut ledger = Ledger::default();
    ledger.returned(9);
    assert_eq!(ledger.no_call(&limits, None), None);
    ledger.returned(5);
    assert_eq!(ledger.no_call(&limits, None).unwrap().spent, 14.into());
    assert_eq!(ledger.no_call(&Limits::default(), None), None);
}

proptest! {
    /// Whatever was asked was still within the limit when it was asked, and could be: what is known of a question is reserved.
    #[test]
    fn no_limit_is_passed_knowingly(limit in 1u64..5000, grows in proptest::collection::vec((0u64..400, 0u64..100), 1..40)) {
        let limits = Limits { tokens: Some(limit), ..Limits::default() };
        let (mut ledger, mut prompt) = (Ledger::default(), 0);
        for (more, said) in grows {
            let (before, last) = (ledger.spent(None).0, prompt);
            prompt += more;
            if ledger.no_ask(&limits, None).is_some() {
                prop_assert!(before >= limit || before + last > limit);
                break;
            }
            prop_assert!(before < limit && before + last <= limit);
            ledger.settle(Some(&usage(prompt, said)), sizes, true);
        }
    }
}
