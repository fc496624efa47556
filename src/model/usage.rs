//! What a server says a reply cost.

use std::collections::BTreeMap;

use mission_contract::event::Usage;
use serde_json::Value;

/// Reads a server's `usage` object. A missing total is the sum; what else stands there is kept as it is; nothing when none of the three
/// counts is a count (a boolean is none).
pub fn read_usage(reported: &str) -> Option<Usage> {
    let mut extras: BTreeMap<String, Value> = serde_json::from_str(reported).ok()?;
    let mut take = |name: &str| extras.remove(name).and_then(|value| count(&value));
    let (prompt, completion, total) = (take("prompt_tokens"), take("completion_tokens"), take("total_tokens"));
    if prompt.is_none() && completion.is_none() && total.is_none() {
        return None;
    }
    let (prompt, completion) = (prompt.unwrap_or(0), completion.unwrap_or(0));
    Some(Usage {
        prompt_tokens: prompt,
        completion_tokens: completion,
        total_tokens: total.unwrap_or_else(|| prompt.saturating_add(completion)),
        extras,
    })
}

/// A whole number that is not negative, also where a server writes it with a decimal point.
fn count(value: &Value) -> Option<u64> {
    const LARGEST_EXACT: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Number(number) => number.as_u64().or_else(|| {
            let float = number.as_f64()?;
            (float.fract() == 0.0 && (0.0..=LARGEST_EXACT).contains(&float)).then_some(float as u64)
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn counts(text: &str) -> Option<(u64, u64, u64)> {
        read_usage(text).map(|usage| (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens))
    }

    #[test]
    fn a_missing_total_is_the_sum_and_a_stated_one_stays() {
        assert_eq!(counts(r#"{"prompt_tokens": 7, "completion_tokens": 2}"#), Some((7, 2, 9)));
        assert_eq!(counts(r#"{"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 40}"#), Some((7, 2, 40)));
        assert_eq!(counts(r#"{"total_tokens": 40.0}"#), Some((0, 0, 40)));
    }

    #[test]
    fn what_is_no_count_is_none() {
        assert_eq!(counts(r#"{"prompt_tokens": true, "completion_tokens": "3", "total_tokens": null}"#), None);
        assert_eq!(counts(r#"{"prompt_tokens": -1, "completion_tokens": 1.5}"#), None);
        assert_eq!(counts("{}"), None);
        assert_eq!(counts("[]"), None);
        assert_eq!(counts(r#"{"prompt_tokens": true, "completion_tokens": 3}"#), Some((0, 3, 3)));
    }

    #[test]
    fn the_rest_is_kept_verbatim() {
        let usage = read_usage(r#"{"prompt_tokens": 1, "prompt_tokens_details": {"cached_tokens": 0}, "cost": 0.1}"#).unwrap();
        assert_eq!(serde_json::to_string(&usage.extras).unwrap(), r#"{"cost":0.1,"prompt_tokens_details":{"cached_tokens":0}}"#);
    }
}
