//! One condition on the arguments of a call.

use mission_contract::canonical;
use regex::{Regex, RegexBuilder};
use serde_json::{Map, Number, Value};

use crate::limits;

/// A condition.
#[derive(Clone, Debug)]
pub(super) struct Condition {
    /// The tokens of its pointer, unescaped; at least one.
    pub(super) pointer: Vec<String>,
    pub(super) test: Test,
    /// It holds where the test does not.
    pub(super) is_turned: bool,
}

/// What is asked of the argument.
#[derive(Clone, Debug)]
pub(super) enum Test {
    Exists(bool),
    /// In their canonical form: `1` and `1.0` are the same.
    OneOf(Vec<String>),
    Matches(Regex),
    AtLeast(Number),
    AtMost(Number),
}

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holds {
    Yes,
    No,
    /// The argument is of a kind that the test says nothing about.
    Unknown,
}

/// The tokens of a JSON Pointer (RFC 6901); nothing where it is none, or names the whole.
pub(super) fn tokens(pointer: &str) -> Option<Vec<String>> {
    let unescaped = |token: &str| {
        let mut text = String::new();
        let mut signs = token.chars();
        while let Some(sign) = signs.next() {
            text.push(match sign {
                '~' => match signs.next()? {
                    '0' => '~',
                    '1' => '/',
                    _ => return None,
                },
                sign => sign,
            });
        }
        Some(text)
    };
    pointer.strip_prefix('/')?.split('/').map(unescaped).collect()
}

/// Compiles a regular expression. Its time is linear in the text, whatever it says.
///
/// # Errors
/// What is wrong with it.
pub(super) fn regex(text: &str) -> Result<Regex, String> {
    RegexBuilder::new(text).size_limit(limits::size(limits::POLICY_REGEX_BYTES)).build().map_err(|error| match error {
        regex::Error::CompiledTooBig(bytes) => format!("it takes more than {bytes} bytes when it is compiled; write it shorter"),
        error => error.to_string().lines().last().unwrap_or_default().trim().trim_start_matches("error: ").to_owned(),
    })
}

impl Condition {
    /// Whether it holds for these arguments.
    pub(super) fn holds(&self, arguments: &Map<String, Value>) -> Holds {
        let holds = match (self.found(arguments), &self.test) {
            (found, Test::Exists(there)) => found.is_some() == *there,
            // What is not there is none of anything.
            (None, _) => false,
            (Some(value), Test::OneOf(values)) => values.contains(&canonical::of_value(value)),
            (Some(Value::String(text)), Test::Matches(regex)) => regex.is_match(text),
            (Some(Value::Number(number)), Test::AtLeast(least)) => order(number, least).is_ge(),
            (Some(Value::Number(number)), Test::AtMost(most)) => order(number, most).is_le(),
            (Some(_), Test::Matches(_) | Test::AtLeast(_) | Test::AtMost(_)) => return Holds::Unknown,
        };
        if holds != self.is_turned { Holds::Yes } else { Holds::No }
    }

    fn found<'a>(&self, arguments: &'a Map<String, Value>) -> Option<&'a Value> {
        let (first, rest) = self.pointer.split_first()?;
        rest.iter().try_fold(arguments.get(first)?, |value, token| match value {
            Value::Object(members) => members.get(token),
            Value::Array(items) => index(token).and_then(|index| items.get(index)),
            _ => None,
        })
    }
}

/// An index of an array as a pointer writes it: digits, without a zero in front.
fn index(token: &str) -> Option<usize> {
    let is_plain = token == "0" || !token.starts_with('0');
    token.bytes().all(|digit| digit.is_ascii_digit()).then(|| token.parse().ok()).flatten().filter(|_| is_plain)
}

/// Whole numbers by their digits: a float would take two neighbours for the same.
fn order(left: &Number, right: &Number) -> std::cmp::Ordering {
    let whole = |number: &Number| number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
    match (whole(left), whole(right)) {
        (Some(left), Some(right)) => left.cmp(&right),
        _ => left.as_f64().unwrap_or_default().total_cmp(&right.as_f64().unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    fn holds(pointer: &str, test: Test, is_turned: bool, arguments: Value) -> Holds {
        let Value::Object(arguments) = arguments else { unreachable!() };
        Condition { pointer: tokens(pointer).unwrap(), test, is_turned }.holds(&arguments)
    }

    #[test]
    fn a_pointer_finds_what_it_names_and_nothing_else() {
        let arguments = json!({"a/b": {"~": [10, {"": 20}]}, "list": [1], "zero": {"0": true}});
        for (pointer, there) in [
            ("/a~1b", true),
            ("/a~1b/~0/1/", true),
            ("/a~1b/~0/2", false),
            ("/list/0", true),
            ("/list/00", false),
            ("/list/-", false),
            ("/list/+0", false),
            ("/list/0/0", false),
            ("/zero/0", true),
            ("/", false),
        ] {
            assert_eq!(holds(pointer, Test::Exists(there), false, arguments.clone()), Holds::Yes, "{pointer}");
            assert_eq!(holds(pointer, Test::Exists(there), true, arguments.clone()), Holds::No, "{pointer}");
        }
        for wrong in ["", "a", "/~", "/a~2"] {
            assert_eq!(tokens(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn numbers_are_compared_by_their_digits() {
        let least = || Test::AtLeast(json!(9_007_199_254_740_993_u64).as_number().unwrap().clone());
        assert_eq!(holds("/n", least(), false, json!({"n": 9_007_199_254_740_992_u64})), Holds::No);
        assert_eq!(holds("/n", least(), false, json!({"n": 9_007_199_254_740_993_u64})), Holds::Yes);
        let most = || Test::AtMost(json!(-0.5).as_number().unwrap().clone());
        for (number, holding) in
            [(json!(-1), Holds::Yes), (json!(-0.5), Holds::Yes), (json!(0), Holds::No), (json!("1"), Holds::Unknown)]
        {
            assert_eq!(holds("/n", most(), false, json!({"n": number})), holding);
        }
        assert_eq!(holds("/n", Test::OneOf(vec![canonical::of_value(&json!(1))]), false, json!({"n": 1.0})), Holds::Yes);
    }

    #[test]
    fn what_a_test_says_nothing_about_is_neither_and_what_is_missing_is_not() {
        let test = || Test::Matches(regex("^/etc").unwrap());
        assert_eq!(holds("/p", test(), false, json!({"p": "/etc/passwd"})), Holds::Yes);
        assert_eq!(holds("/p", test(), true, json!({"p": "/etc/passwd"})), Holds::No);
        assert_eq!(holds("/p", test(), false, json!({"p": ["/etc/passwd"]})), Holds::Unknown);
        assert_eq!(holds("/p", test(), true, json!({"p": ["/etc/passwd"]})), Holds::Unknown);
        assert_eq!(holds("/p", test(), false, json!({})), Holds::No);
        assert_eq!(holds("/p", test(), true, json!({})), Holds::Yes);
    }

    #[test]
    fn a_regular_expression_that_is_none_or_too_large_is_refused() {
        insta::assert_snapshot!(regex("a(").unwrap_err(), @"unclosed group");
        insta::assert_snapshot!(regex(r"(\w{1000}){1000}").unwrap_err(), @"it takes more than 1048576 bytes when it is compiled; write it shorter");
    }
}
