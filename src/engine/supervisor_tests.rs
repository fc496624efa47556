#![allow(clippy::unwrap_used, clippy::arithmetic_side_effects)]

use proptest::prelude::*;

use super::*;

/// One step with one call: which, and what came back.
fn step(watch: &mut Watch, call: &str, result: &str) {
    watch.acted("mcp.look", call, result, true, result);
    watch.step_over();
}

fn rejected(watch: &mut Watch) {
    watch.rejected();
    watch.step_over();
}

fn review(watch: &mut Watch, reply: &str) -> Reviewed {
    let signal = watch.signal().unwrap();
    watch.reviewed(signal, Some(reply))
}

const PROGRESSING: &str = r#"{"verdict": "progressing", "note": "fine"}"#;

#[test]
fn each_pattern_is_seen_when_it_is_there_and_not_before() {
    let mut watch = Watch::default();
    for (call, result) in [("a", "1"), ("b", "2"), ("a", "1"), ("c", "3")] {
        step(&mut watch, call, result);
    }
    assert_eq!(watch.signal(), None);
    step(&mut watch, "a", "1");
    assert_eq!(watch.signal(), Some(Signal::RepeatedCall));

    // The same call with other results is no repetition.
    let mut watch = Watch::default();
    for result in ["1", "2", "3", "4", "5"] {
        step(&mut watch, "a", result);
    }
    assert_eq!(watch.signal(), None);

    let mut watch = Watch::default();
    rejected(&mut watch);
    rejected(&mut watch);
    assert_eq!(watch.signal(), None);
    rejected(&mut watch);
    assert_eq!(watch.signal(), Some(Signal::RejectedReplies));

    let mut watch = Watch::default();
    for (call, result) in [("a", "1"), ("b", "2"), ("a", "3"), ("b", "4")] {
        assert_eq!(watch.signal(), None);
        step(&mut watch, call, result);
    }
    assert_eq!(watch.signal(), Some(Signal::Oscillation));

    let mut watch = Watch::default();
    for (call, result) in [("a", "1"), ("b", "2"), ("c", "3"), ("d", "4"), ("a", "1"), ("b", "2"), ("c", "3")] {
        step(&mut watch, call, result);
    }
    assert_eq!(watch.signal(), None);
    step(&mut watch, "d", "4");
    assert_eq!(watch.signal(), Some(Signal::NoNewEvidence));
}

#[test]
fn a_review_looks_back_no_further_than_the_one_before() {
    let mut watch = Watch::default();
    for _ in 0..3 {
        step(&mut watch, "a", "1");
    }
    let reviewed = review(&mut watch, "It is fine: {\"verdict\": \"Nudge\", \"note\": \" look elsewhere \"} I think.");
    let note = Some("look elsewhere".to_owned());
    assert_eq!(reviewed, Reviewed { signal: Signal::RepeatedCall, verdict: Verdict::Nudge, left: 2, note });
    assert_eq!(watch.signal(), None);
    step(&mut watch, "a", "1");
    step(&mut watch, "a", "1");
    assert_eq!(watch.signal(), None);
    step(&mut watch, "a", "1");
    assert_eq!(watch.signal(), Some(Signal::RepeatedCall));
}

#[test]
fn who_gets_on_is_not_asked_about_again_so_soon() {
    let mut watch = Watch::default();
    for _ in 0..3 {
        step(&mut watch, "a", "1");
    }
    assert_eq!(review(&mut watch, PROGRESSING).verdict, Verdict::Progressing);
    for _ in 0..3 {
        step(&mut watch, "a", "1");
    }
    assert_eq!(watch.signal(), None, "six times now");
    for _ in 0..3 {
        step(&mut watch, "a", "1");
    }
    assert!(watch.signal().is_some());
}

#[test]
fn reviews_are_spent_and_the_last_one_may_not_put_it_off() {
    let mut watch = Watch::default();
    let mut verdicts = Vec::new();
    for _ in 0..7 {
        for _ in 0..12 {
            if watch.signal().is_some() {
                break;
            }
            rejected(&mut watch);
        }
        let signal = watch.signal().unwrap();
        let asked = watch.question(signal, "Count.");
        let may_progress = asked.as_ref().map(|(frame, _)| frame.contains("progressing:"));
        let reviewed = watch.reviewed(signal, Some(PROGRESSING));
        verdicts.push((may_progress, reviewed.verdict.word(), reviewed.left));
    }
    assert_eq!(
        verdicts,
        [
            (Some(true), "progressing", 2),
            // Steps without a call bring nothing new either: that review is given back.
            (Some(true), "progressing", 2),
            (Some(true), "progressing", 1),
            (Some(true), "progressing", 1),
            (Some(false), "stuck", 0),
            (None, "stuck", 0),
            (None, "stuck", 0)
        ]
    );
}

#[test]
fn reading_on_without_news_is_given_back_twice() {
    let mut watch = Watch::default();
    let mut left = Vec::new();
    for round in 0..5u64 {
        while watch.signal().is_none() {
            // Other calls each time, so that nothing but the news is missing.
            step(&mut watch, "known", "1");
            watch.floor = watch.acts.len();
        }
        assert_eq!(watch.signal(), Some(Signal::NoNewEvidence), "{round}");
        left.push(review(&mut watch, PROGRESSING).left);
    }
    assert_eq!(left, [3, 3, 2, 1, 0]);
}

#[test]
fn what_cannot_be_read_lets_it_go_on() {
    for reply in ["", "I cannot say.", "{\"verdict\": \"perhaps\"}", "{\"note\": \"x\"}", "[1, 2"] {
        let mut watch = Watch::default();
        (0..3).for_each(|_| rejected(&mut watch));
        let reviewed = review(&mut watch, reply);
        assert_eq!((reviewed.verdict, reviewed.left), (Verdict::Progressing, 2), "{reply}");
    }
}

#[test]
fn a_shape_is_demanded_once_for_the_same_nothing() {
    let mut watch = Watch::default();
    for reply in ["hm", "", "", ""] {
        assert!(!watch.demands_shape(), "{reply:?}");
        watch.unreadable(reply);
        rejected(&mut watch);
    }
    assert!(watch.demands_shape());
    assert_eq!(watch.signal(), None, "the demand comes before a review");
    watch.unreadable("");
    assert!(!watch.demands_shape(), "once");
    step(&mut watch, "a", "1");
    for _ in 0..3 {
        watch.unreadable("");
    }
    assert!(watch.demands_shape(), "and once more after it went on");
}

proptest! {
    /// However long a run goes on, what is kept of it for its patterns is bounded, and reviews come to an end.
    #[test]
    fn what_is_kept_is_bounded(acts in proptest::collection::vec((0u8..3, 0u8..3, any::<bool>()), 0..300)) {
        let mut watch = Watch::default();
        let mut asked = 0;
        for (call, result, is_rejected) in acts {
            if is_rejected {
                rejected(&mut watch);
            } else {
                step(&mut watch, &call.to_string(), &result.to_string());
            }
            if let Some(signal) = watch.signal() {
                asked += u64::from(watch.question(signal, "Count.").is_some());
                watch.reviewed(signal, Some(PROGRESSING));
            }
            prop_assert!(watch.acts.len() <= 64 && watch.steps.len() <= 64 && watch.floor <= watch.acts.len());
        }
        prop_assert!(asked <= REVIEWS + REVIEW_REFUNDS);
    }
}
