//! A text in pieces is shown as the whole is, whatever the text, the pieces and the secrets; and never more is held than is said.
#![allow(clippy::unwrap_used, clippy::string_slice, clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use proptest::prelude::*;

use super::*;
use crate::limits::{REDACTOR_HELD_BYTES, size};

/// Values in which everything that a form can be is in play: escapes, quotes, line breaks, what looks like a shape.
const VALUES: [&str; 7] = [
    "s3cret-Value_1",
    "tab\tquote\"back\\slash",
    "line1\nline2xxxxxxxx",
    "100%41abcdefg",
    "pässwörd-ünïcode",
    "aaaaaaaab",
    "sk-4f9aB7cD1eF2gH3iJ4kL",
];

fn redactor() -> Redactor {
    let named = VALUES.iter().enumerate().map(|(number, value)| (format!("K{number}_KEY"), (*value).to_owned()));
    Redactor::new([], named).unwrap()
}

fn percent(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02x}")).collect()
}

fn unicode(text: &str) -> String {
    text.encode_utf16().map(|unit| format!("\\u{unit:04X}")).collect()
}

fn json(text: &str) -> String {
    let quoted = serde_json::to_string(text).unwrap();
    quoted[1..quoted.len() - 1].to_owned()
}

fn wrapped(text: &str, column: usize, between: &str) -> String {
    let characters: Vec<char> = text.chars().collect();
    characters.chunks(column).map(|line| line.iter().collect::<String>()).collect::<Vec<_>>().join(between)
}

fn hexadecimal(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

fn base64(text: &str) -> String {
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut shown = String::new();
    for group in text.as_bytes().chunks(3) {
        let joined = (0..3).fold(0usize, |joined, at| joined << 8 | usize::from(group.get(at).copied().unwrap_or(0)));
        (0..4).for_each(|at| {
            shown.push(if at <= group.len() { char::from(alphabet[joined >> (18 - 6 * at) & 63]) } else { '=' });
        });
    }
    shown
}

#[test]
fn every_form_of_a_known_value_vanishes() {
    let redactor = redactor();
    for (number, value) in VALUES.iter().enumerate() {
        let placeholder = format!("<redacted:K{number}_KEY>");
        let in_base64 = |before: &str| base64(&format!("{before}{value}yyy"));
        let forms = [
            ("as it is", (*value).to_owned()),
            ("JSON", json(value)),
            ("JSON in JSON", json(&json(value))),
            ("percent", percent(value)),
            ("percent, capitals", percent(value).to_uppercase().replace("%5C", "%5c")),
            ("unicode", unicode(value)),
            ("hexadecimal", hexadecimal(value)),
            ("hexadecimal, capitals", hexadecimal(value).to_uppercase()),
            ("wrapped", wrapped(value, 5, "\n")),
            ("wrapped and indented", wrapped(value, 6, "\r\n    ")),
            ("base64", in_base64("")),
            ("base64, shifted", in_base64("x")),
            ("base64, shifted twice", in_base64("xx")),
            ("base64, for URLs", in_base64("").replace('+', "-").replace('/', "_")),
            ("base64, escaped", in_base64("").replace('+', "%2B").replace('/', "%2f").replace('=', "%3D")),
            ("base64, wrapped", wrapped(&in_base64("x"), 7, "\n")),
        ];
        for (name, form) in forms {
            let shown = redactor.text(&form).into_owned();
            assert!(shown.contains(&placeholder), "{name} of {value:?}: {form:?} is shown as {shown:?}");
            assert!(shown.len() <= placeholder.len() + 12, "{name} of {value:?}: {form:?} is shown as {shown:?}");
            assert_eq!(in_characters(&redactor, &form), shown, "{name} of {value:?}");
        }
    }
}

fn in_characters(redactor: &Redactor, text: &str) -> String {
    let mut stream = redactor.stream();
    let mut shown: String = text.chars().map(|each| stream.push(&each.to_string())).collect();
    shown.push_str(&stream.finish());
    shown
}

#[test]
fn values_that_overlap_are_hidden_as_one() {
    let redactor = Redactor::new([("A_KEY".into(), "abcdefgh".into()), ("B_KEY".into(), "efghijkl".into())], []).unwrap();
    assert_eq!(redactor.text("xabcdefghijklx abcdefgh efghijkl"), "x<redacted:A_KEY>x <redacted:A_KEY> <redacted:B_KEY>");
    assert_eq!(in_characters(&redactor, "xabcdefghijklx"), "x<redacted:A_KEY>x");
}

#[test]
fn a_long_value_vanishes_whole_and_is_named_once() {
    let value: String = (0..900).map(|number| format!("ä{number};\n")).collect();
    let redactor = Redactor::new([("LONG_SECRET".into(), value.clone().into())], []).unwrap();
    assert_eq!(redactor.text(&format!("<{}>", value.trim())), "<<redacted:LONG_SECRET>>");
    assert_eq!(redactor.text(&format!("<{}>", json(value.trim()))), "<<redacted:LONG_SECRET>>");
    assert_eq!(in_characters(&redactor, &format!("<{}>", value.trim())), "<<redacted:LONG_SECRET>>");
}

#[test]
fn a_known_value_names_what_looks_like_something_too() {
    let redactor = redactor();
    let key = VALUES[6];
    assert_eq!(redactor.text(&format!("use {key} now")), "use <redacted:K6_KEY> now");
    assert_eq!(redactor.text(&format!("use {key}MORE7 now")), "use <redacted:K6_KEY> now", "no end of another key is left");
    assert_eq!(redactor.text(&format!("OTHER_KEY={key}")), "OTHER_KEY=<redacted:K6_KEY>");
}

#[test]
fn a_large_text_is_read_as_one() {
    let redactor = redactor();
    // A secret over the end of every block, whatever the block begins with.
    let text: String = (0..30_000).map(|number| format!("{number} {} ", VALUES[number % VALUES.len()])).collect();
    let whole = redactor.text(&text);
    assert!(VALUES.iter().all(|value| !whole.contains(value)));
    assert_eq!(whole.matches("<redacted:").count(), 30_000);
    let mut stream = redactor.stream();
    let mut shown: String = wrapped(&text, 977, "\0").split('\0').map(|piece| stream.push(piece)).collect();
    shown.push_str(&stream.finish());
    assert!(shown == whole);
}

#[test]
fn what_was_cut_does_not_show_half_a_secret() {
    let redactor = redactor();
    for (text, expected) in [
        ("`use s3cret-Val…`", "`use <redacted:K0_KEY>…`"),
        ("`use s3cre…`", "`use s3cre…`"),
        ("`line1\nline2x…`", "`<redacted:K2_KEY>…`"),
        ("`sk-9f4aB7cD1e…`", "`<redacted:api-key>…`"),
        ("`sk-learning…`", "`sk-learning…`"),
        ("Bearer aB3dE5f…", "Bearer <redacted:bearer>…"),
    ] {
        assert_eq!(redactor.text(text), expected);
        assert_eq!(in_characters(&redactor, text), expected);
    }
}

#[test]
fn nothing_is_held_of_ordinary_text_but_the_beginning_of_a_word() {
    let mut stream = redactor().stream();
    assert_eq!(stream.push("The task is a risk, my key"), "The task is a risk, my key");
    assert_eq!(stream.push(" is sk"), " is ");
    assert_eq!(stream.push("y."), "sky.");
    assert_eq!(stream.push(" password: "), " password");
    assert_eq!(stream.push("hunter2x"), "", "it is not known yet whether code follows");
    assert_eq!(stream.push("yz"), "");
    assert_eq!(stream.push(" more"), ": <redacted:password> more");
    assert_eq!(stream.push(" sk-9f4aB7cD1eF2gH3iJ4kLm"), " <redacted:api-key>");
    for _ in 0..1000 {
        assert_eq!(stream.push("Ab3defghij"), "", "what goes on is swallowed");
    }
    assert_eq!(stream.held(), 0);
    assert_eq!(stream.push(" over"), " over");
}

#[test]
fn what_is_held_back_is_bounded() {
    let redactor = redactor();
    // and an escape of which the end is not there yet
    let most = size(REDACTOR_HELD_BYTES) + 32;
    let value = VALUES[0];
    let texts = [
        format!("{}{}", &value[..9], "\n".repeat(100_000)),
        wrapped(value, 1, &"\n".repeat(8000)),
        format!("{}{}", &value[..9], "\n        ".repeat(20_000)),
        format!("eyJ{}", "a".repeat(100_000)),
        format!("https://user:{}", "p".repeat(100_000)),
        format!("-----BEGIN {}", "A ".repeat(50_000)),
        "\\".repeat(100_000),
        "a".repeat(100_000),
        format!("password=\"{}", "p".repeat(100_000)),
        format!("sk-{}", "a".repeat(100_000)),
        format!("api_key{}", " ".repeat(100_000)),
        format!("Authorization: {}", "a".repeat(100_000)),
    ];
    for text in texts {
        let whole = redactor.text(&text).into_owned();
        let mut stream = redactor.stream();
        let mut shown = String::new();
        for piece in text.as_bytes().chunks(100) {
            shown.push_str(&stream.push(std::str::from_utf8(piece).unwrap()));
            assert!(stream.held() <= most, "{} bytes of {:?}…", stream.held(), &text[..20]);
        }
        shown.push_str(&stream.finish());
        assert!(shown == whole, "{:?}… is shown in pieces as {} bytes, whole as {}", &text[..20], shown.len(), whole.len());
    }
}

/// Words that secrets and what looks like them are made of, so that texts come near every rule.
fn pieces() -> impl Strategy<Value = String> {
    let known = proptest::sample::select(VALUES.to_vec());
    let part = (proptest::sample::select(VALUES.to_vec()), 0..20usize, 0..20usize)
        .prop_map(|(value, skip, take)| value.chars().skip(skip).take(take).collect::<String>());
    let form =
        (proptest::sample::select(VALUES.to_vec()), 0..8usize, "[xyz]{0,2}").prop_map(|(value, form, before)| match form {
            0 => json(value),
            1 => json(&json(value)),
            2 => percent(value),
            3 => unicode(value),
            4 => hexadecimal(value),
            5 => wrapped(value, 4, "\n  "),
            6 => base64(&format!("{before}{value}z")),
            _ => wrapped(&base64(&format!("{before}{value}z")), 9, "\r\n"),
        });
    let anchors: Vec<&'static str> = rules::RULES.iter().flat_map(|rule| rule.anchors.iter().copied()).collect();
    let anchor = proptest::sample::select(anchors).prop_map(str::to_owned);
    let drawn = "[A-Za-z0-9]{1,50}";
    let sign = proptest::sample::select(vec![
        "=",
        ": ",
        "\"",
        "'",
        "\\",
        "\\\"",
        "\n",
        " ",
        ".",
        "@",
        "/",
        "&",
        "?",
        "--",
        "-----",
        "\\n",
        "%",
        "%4",
        "\\u00",
        "<",
        "é",
        "…",
        "\r\n\t",
        "Authorization: Basic ",
        "PRIVATE KEY-----\n",
        "-----END X-----",
        "NAME_KEY=",
        "\"password\": \"",
        "Cookie: ",
        "]",
        "=>",
        "${",
        "<redacted:K0_KEY>",
    ]);
    prop_oneof![
        2 => known.prop_map(str::to_owned),
        1 => part,
        1 => form,
        2 => anchor,
        2 => drawn,
        3 => sign.prop_map(str::to_owned),
        1 => "[ -~\n]{0,6}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1024) })]

    #[test]
    fn any_text_in_any_pieces_is_shown_as_the_whole(words in proptest::collection::vec(pieces(), 0..24), cuts in proptest::collection::vec(0..30usize, 0..40)) {
        let redactor = redactor();
        let text = words.concat();
        let whole = redactor.text(&text).into_owned();
        for value in VALUES {
            prop_assert!(!whole.contains(value), "{value:?} is left in {whole:?} of {text:?}");
        }
        let mut stream = redactor.stream();
        let mut shown = String::new();
        let mut rest: Vec<char> = text.chars().collect();
        for cut in cuts {
            let later = rest.split_off(cut.min(rest.len()));
            shown.push_str(&stream.push(&rest.into_iter().collect::<String>()));
            prop_assert!(whole.starts_with(&shown), "{shown:?} is not how {whole:?} begins, of {text:?}");
            rest = later;
        }
        shown.push_str(&stream.push(&rest.into_iter().collect::<String>()));
        shown.push_str(&stream.finish());
        prop_assert_eq!(&shown, &whole);
        prop_assert_eq!(&in_characters(&redactor, &text), &whole);
    }

    #[test]
    fn any_string_at_all_is_read_to_its_end(text in "\\PC{0,200}") {
        let redactor = redactor();
        prop_assert_eq!(in_characters(&redactor, &text), redactor.text(&text).into_owned());
    }
}
