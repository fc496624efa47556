//! `mission verify RUN…`: a sentence a run, exit code 1 when one of them is not what was written.

use std::io::Write;
use std::path::Path;

use mission_contract::digest;
use mission_contract::vocabulary::exit;

use super::arguments::VerifyArguments;
use super::environment::{Environment, Stated};
use super::error::{CliError, quoted};
use super::run::Exit;
use super::runs::Runs;
use crate::audit;
use crate::journal::{RunPlace, Verdict, verify as verify_log};
use crate::stream::console::visible::one_line as harmless;

/// Verifies the logs of some runs and prints what they are.
///
/// # Errors
/// Words that name no run, and logs that cannot be read at all.
pub fn verify(arguments: &VerifyArguments, environment: &Environment, out: &mut dyn Write) -> Result<Exit, CliError> {
    let runs = Runs::open(environment)?;
    if arguments.runs.is_empty() {
        return Err(CliError::Usage("`mission verify` needs a run: its id, its folder or its log; or an audit file".to_owned()));
    }
    let head = Stated::flag("--head", arguments.head.as_deref()).map(|stated| sum(&stated)).transpose()?;
    if head.is_some() && arguments.runs.len() > 1 {
        return Err(CliError::Usage("--head names a line of one log; verify that run by itself".to_owned()));
    }
    // All of them are there before the first is read: a wrong word is found out at once.
    let find = |word: &String| match audit::is_audit_file(Path::new(word)) {
        true => Ok(Named::Audit(word.clone())),
        false => runs.find(word).map(Named::Run),
    };
    let places = arguments.runs.iter().map(find).collect::<Result<Vec<_>, _>>()?;
    let mut code = exit::FINE;
    for place in &places {
        let (text, is_fine) = match place {
            Named::Run(place) => {
                let verdict = verify_log(place, head.as_deref())?;
                (said(&place.name, &verdict), verdict.fault.is_none())
            }
            Named::Audit(file) => {
                let verdict = audit::verify(Path::new(file), head.as_deref())
                    .map_err(|error| CliError::Failed(format!("the audit file {} cannot be read: {error}", quoted(file))))?;
                (said_of_audit(file, &verdict), verdict.fault.is_none() && !verdict.is_cut)
            }
        };
        if !is_fine {
            code = exit::FAILED;
        }
        let text = runs.redactor.text(&text).into_owned();
        out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(CliError::Output)?;
    }
    Ok(Exit::Code(code))
}

/// What a word names.
enum Named {
    Run(RunPlace),
    Audit(String),
}

fn said_of_audit(file: &str, verdict: &audit::Verdict) -> String {
    let file = harmless(file);
    match &verdict.fault {
        Some((line, problem)) => {
            format!("{file}: NOT what was written: line {line}: {}\n", harmless(&problem.to_string()))
        }
        None if verdict.is_cut => {
            format!("{file}: NOT what was written: it holds no line with that sum: its end was cut\n")
        }
        None => format!("{file}: fine, {}, head {}\n", counted(verdict.lines, "line"), verdict.head),
    }
}

fn said(name: &str, verdict: &Verdict) -> String {
    let name = harmless(name);
    let mut text = match &verdict.fault {
        Some(fault) => format!("{name}: NOT what was written: {}\n", harmless(&fault.to_string())),
        None if verdict.seq == 0 => format!("{name}: fine, no lines\n"),
        None => format!(
            "{name}: fine, {}, {}, head {}\n",
            counted(verdict.seq, "line"),
            counted(verdict.epoch, "stretch"),
            verdict.head
        ),
    };
    for note in &verdict.notes {
        text.push_str(&format!("  {}\n", harmless(note)));
    }
    text
}

fn counted(number: u64, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        _ if what.ends_with("ch") => format!("{number} {what}es"),
        _ => format!("{number} {what}s"),
    }
}

/// A `sum` as it was typed.
fn sum(stated: &Stated) -> Result<String, CliError> {
    let typed = stated.value.trim().to_ascii_lowercase();
    if typed.len() == digest::ZERO.len() && typed.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(typed);
    }
    Err(stated.refuse("that is no SHA-256; give the 64 hex digits of a `sum` or a `log_head`"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use mission_contract::line::LineProblem;

    use super::*;
    use crate::journal::{Fault, LogFault};

    #[test]
    fn a_verdict_is_a_line_and_its_notes() {
        let fine = Verdict { seq: 12, epoch: 2, head: "ab".repeat(32), notes: vec!["a note".into()], ..Verdict::default() };
        insta::assert_snapshot!(said("run_1-1", &fine), @"
        run_1-1: fine, 12 lines, 2 stretches, head abababababababababababababababababababababababababababababababab
          a note
        ");
        insta::assert_snapshot!(said("run_1-1", &Verdict { seq: 1, epoch: 1, ..fine.clone() }), @"
        run_1-1: fine, 1 line, 1 stretch, head abababababababababababababababababababababababababababababababab
          a note
        ");
        let fault = LogFault { seq: 13, fault: Fault::Line(LineProblem::SeqJumps { expected: 13, found: 15 }) };
        insta::assert_snapshot!(said("a\x1b[31m", &Verdict { fault: Some(fault), notes: vec![], ..fine }), @r"a\u{1b}[31m: NOT what was written: line 13: line 13 is missing: `seq` is 15 here");
    }

    #[test]
    fn a_sum_is_64_hex_digits() {
        let read = |value: &str| sum(&Stated { value: value.into(), place: "--head" });
        assert_eq!(read(&"AB".repeat(32)).unwrap(), "ab".repeat(32));
        assert!(read("ab").is_err() && read(&"xy".repeat(32)).is_err());
    }
}
