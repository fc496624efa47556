//! `mission schema [NAME]`, `mission contract`, `mission conform [FILE]`: the contract printed, and applied.

use std::io::{self, BufRead, Read, Write};

use mission_contract::conforms::conforms_line;
use mission_contract::schema as schemas;
use mission_contract::vocabulary::{self, Vocabulary, exit};
use serde::Serialize;

use crate::limits;
use crate::redact::{self, PublishedRule};

/// Why one of these verbs could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum ContractVerbError {
    /// There is no schema of that name.
    #[error("there is no schema `{name}`; there are: {known}")]
    UnknownSchema {
        /// What was asked for.
        name: String,
        /// What there is, by commas.
        known: String,
    },
    /// What was to be judged could not be read.
    #[error("line {line} of the stream could not be read: {error}")]
    Read {
        /// The line, from 1.
        line: u64,
        /// Why.
        error: io::Error,
    },
    /// The result could not be written.
    #[error("the output could not be written: {0}")]
    Write(#[from] io::Error),
    /// The result could not be put into JSON.
    #[error("the contract could not be put into JSON: {0}")]
    Json(#[from] serde_json::Error),
}

impl ContractVerbError {
    /// The exit status that it ends the program with.
    pub fn exit_code(&self) -> u8 {
        match self {
            ContractVerbError::UnknownSchema { .. } => exit::REFUSED,
            ContractVerbError::Read { .. } | ContractVerbError::Write(_) | ContractVerbError::Json(_) => exit::FAILED,
        }
    }
}

/// Prints one JSON Schema, or the names of all of them, one a line.
///
/// # Errors
/// A name that is none, or an output that fails.
pub fn schema(name: Option<&str>, out: &mut dyn Write) -> Result<(), ContractVerbError> {
    let known = || schemas::all().into_keys();
    match name {
        Some(name) => match schemas::one(name) {
            Some(schema) => out.write_all(schemas::to_text(&schema).as_bytes())?,
            None => {
                let known = known().collect::<Vec<_>>().join(", ");
                return Err(ContractVerbError::UnknownSchema { name: name.to_string(), known });
            }
        },
        None => {
            for name in known() {
                writeln!(out, "{name}")?;
            }
        }
    }
    out.flush()?;
    Ok(())
}

/// What `mission contract` prints.
#[derive(Serialize)]
struct Whole {
    /// Version of the program.
    version: &'static str,
    #[serde(flatten)]
    vocabulary: Vocabulary,
    limits: &'static [limits::Limit],
    /// By what a secret is known that nobody named.
    redaction: Vec<PublishedRule>,
}

/// Prints the whole vocabulary and every limit as JSON.
///
/// # Errors
/// An output that fails.
pub fn contract(out: &mut dyn Write) -> Result<(), ContractVerbError> {
    let whole = Whole {
        version: env!("CARGO_PKG_VERSION"),
        vocabulary: vocabulary::VOCABULARY,
        limits: limits::TABLE,
        redaction: redact::rules().collect(),
    };
    let mut text = serde_json::to_string_pretty(&whole)?;
    text.push('\n');
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Holds a recorded stream to the contract: prints one line a problem, `line N: …`. Blank lines are passed over; a
/// stream without any record is a problem, since no event at all means failure.
///
/// Returns the exit status: 0 when everything conforms, 1 otherwise.
///
/// # Errors
/// An input or an output that fails.
pub fn conform(input: impl BufRead, out: &mut dyn Write) -> Result<u8, ContractVerbError> {
    conform_bounded(input, out, limits::CONFORM_LINE_BYTES)
}

fn conform_bounded(mut input: impl BufRead, out: &mut dyn Write, longest: u64) -> Result<u8, ContractVerbError> {
    let mut bytes = Vec::new();
    let (mut number, mut records, mut conforming): (u64, u64, bool) = (0, 0, true);
    loop {
        number = number.saturating_add(1);
        bytes.clear();
        let unreadable = |error| ContractVerbError::Read { line: number, error };
        // One byte more than a line may have, so that a line that is too long shows.
        let bound = longest.saturating_add(1);
        if input.by_ref().take(bound).read_until(b'\n', &mut bytes).map_err(unreadable)? == 0 {
            break;
        }
        let line = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        records = records.saturating_add(1);
        let problems = if line.len() == bytes.len() && u64::try_from(bytes.len()).unwrap_or(u64::MAX) > longest {
            input.skip_until(b'\n').map_err(unreadable)?;
            vec![format!("it is longer than {longest} bytes, more than this verb reads")]
        } else {
            match std::str::from_utf8(line) {
                Ok(line) => conforms_line(line).iter().map(ToString::to_string).collect(),
                Err(error) => vec![format!("this is not UTF-8 (byte {})", error.valid_up_to().saturating_add(1))],
            }
        };
        conforming &= problems.is_empty();
        report(number, &problems, out)?;
    }
    if records == 0 {
        writeln!(out, "line 1: the stream holds no record, and that means failure")?;
    }
    out.flush()?;
    Ok(if conforming && records > 0 { exit::FINE } else { exit::FAILED })
}

fn report(number: u64, problems: &[String], out: &mut dyn Write) -> io::Result<()> {
    let shown = usize::try_from(limits::CONFORM_PROBLEMS_SHOWN).unwrap_or(usize::MAX);
    for problem in problems.iter().take(shown) {
        writeln!(out, "line {number}: {problem}")?;
    }
    match problems.len().saturating_sub(shown) {
        0 => Ok(()),
        more => writeln!(out, "line {number}: and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

    use super::*;

    fn judged(stream: &[u8]) -> (u8, String) {
        let mut out = Vec::new();
        let status = conform(stream, &mut out).unwrap();
        (status, String::from_utf8(out).unwrap())
    }

    #[test]
    fn a_conforming_stream_is_passed_without_a_word() {
        let stream = b"{\"event\":\"step_started\",\"index\":0}\n\n{\"event\":\"step_started\",\"index\":1}";
        assert_eq!(judged(stream), (0, String::new()));
    }

    #[test]
    fn every_problem_has_its_line() {
        let stream =
            b"{\"event\":\"step_started\"}\n{\"event\":\"step_started\",\"index\":1}\nnope\n\xff\n{\"event\":\"dream\"}\n";
        let (status, text) = judged(stream);
        assert_eq!(status, 1);
        insta::assert_snapshot!(text, @r"
        line 1: /index: this required field is missing
        line 3: this is not valid JSON (column 2)
        line 4: this is not UTF-8 (byte 1)
        line 5: /event: the contract has no event `dream`
        ");
    }

    #[test]
    fn silence_is_a_problem() {
        assert_eq!(judged(b"").0, 1);
        assert_eq!(judged(b"\n \n"), (1, "line 1: the stream holds no record, and that means failure\n".into()));
    }

    #[test]
    fn a_line_that_is_too_long_is_passed_over_and_named() {
        let good = "{\"event\":\"step_started\",\"index\":1}";
        let stream = format!("{good}\n{}\n{good}\n{good}x", "x".repeat(100));
        let mut out = Vec::new();
        let longest = u64::try_from(good.len()).unwrap();
        assert_eq!(conform_bounded(stream.as_bytes(), &mut out, longest).unwrap(), 1);
        insta::assert_snapshot!(String::from_utf8(out).unwrap(), @r"
        line 2: it is longer than 34 bytes, more than this verb reads
        line 4: it is longer than 34 bytes, more than this verb reads
        ");
    }

    #[test]
    fn a_line_with_very_many_problems_is_cut_short() {
        let checks = vec!["{}"; 50].join(",");
        let (_, text) = judged(format!("{{\"event\":\"grounding\",\"checks\":[{checks}]}}").as_bytes());
        assert_eq!(text.lines().count(), 101);
        assert_eq!(text.lines().last(), Some("line 1: and 359 more"));
    }

    #[test]
    fn a_schema_is_printed_by_its_name() {
        let mut out = Vec::new();
        schema(Some("answer"), &mut out).unwrap();
        let printed: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(printed["properties"]["event"]["const"], "answer");
        let mut names = Vec::new();
        schema(None, &mut names).unwrap();
        assert!(String::from_utf8(names).unwrap().lines().any(|name| name == "log-line"));
        let error = schema(Some("dream"), &mut Vec::new()).unwrap_err();
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().starts_with("there is no schema `dream`; there are: answer, answer_delta, "));
    }

    #[test]
    fn the_contract_is_whole() {
        let mut out = Vec::new();
        contract(&mut out).unwrap();
        let printed: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(printed["schema_version"], 1);
        assert_eq!(printed["events"].as_array().unwrap().len(), 14);
        assert_eq!(printed["limits"].as_array().unwrap().len(), limits::TABLE.len());
        assert_eq!(
            printed["events"][0]["fields"][0],
            serde_json::json!({
                "name": "schema_version", "required": true, "origin": "seed2", "type": "count"
            })
        );
    }
}
