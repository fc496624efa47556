//! Inputs on which other programs of this kind showed a secret, whole and in every pair of pieces.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use serde::Deserialize;

use super::*;

macro_rules! field {
    ($file:literal) => {
        include_str!(concat!("../../tests/fixtures/field/", $file))
    };
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Expected {
    must_not_contain: Vec<String>,
    must_contain: Vec<String>,
    by_name_masked: Vec<String>,
    by_name_kept: Vec<String>,
}

fn knowing(secrets: &[String]) -> Redactor {
    Redactor::new([], secrets.iter().map(|secret| ("KEY".to_owned(), secret.clone()))).unwrap()
}

/// What is shown of a text, which is the same however it arrives.
fn shown(redactor: &Redactor, text: &str) -> String {
    let whole = redactor.text(text).into_owned();
    for cut in (0..=text.len()).filter(|cut| text.is_char_boundary(*cut)) {
        let mut stream = redactor.stream();
        let (first, second) = text.split_at(cut);
        let pieces = stream.push(first) + &stream.push(second) + &stream.finish();
        assert_eq!(pieces, whole, "cut at {cut}");
    }
    whole
}

fn held(shown: &str, expected: &Expected) {
    for gone in expected.must_not_contain.iter().chain(&expected.by_name_masked) {
        assert!(!shown.contains(gone.as_str()), "{gone} is left in\n{shown}");
    }
    for kept in expected.must_contain.iter().chain(&expected.by_name_kept) {
        assert!(shown.contains(kept.as_str()), "{kept} is lost from\n{shown}");
    }
}

#[test]
fn addresses_headers_and_command_lines() {
    let texts: Vec<String> = serde_json::from_str(field!("X02/strings.json")).unwrap();
    let redactor = knowing(&[]);
    let all: Vec<String> = texts.iter().map(|text| shown(&redactor, text)).collect();
    held(&all.join("\n"), &serde_json::from_str(field!("X02/expect.json")).unwrap());
}

#[test]
fn encoded_forms_of_a_known_value() {
    let secrets: Vec<String> = serde_json::from_str(field!("X03/secrets.json")).unwrap();
    let redactor = knowing(&secrets);
    for encoded in serde_json::from_str::<Vec<String>>(field!("X03/encoded.json")).unwrap() {
        let shown = shown(&redactor, &encoded);
        assert!(shown.contains("<redacted:KEY>") && shown.len() <= "<redacted:KEY>".len() + 8, "{encoded} is shown as {shown}");
    }
    held(&shown(&knowing(&[]), field!("X03/by_name.txt")), &serde_json::from_str(field!("X03/expect.json")).unwrap());
}

#[test]
fn private_keys_in_every_form_and_certificates() {
    held(&shown(&knowing(&[]), field!("X04/pem.txt")), &serde_json::from_str(field!("X04/expect.json")).unwrap());
}

#[test]
fn short_and_nested_and_literal_values() {
    let secrets: Vec<String> = serde_json::from_str(field!("X08/secrets.json")).unwrap();
    held(&shown(&knowing(&secrets), field!("X08/text.txt")), &serde_json::from_str(field!("X08/expect.json")).unwrap());
}
