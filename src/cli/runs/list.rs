//! `mission runs list`: a line a run, the newest first.

use std::io::Write;

use mission_contract::vocabulary::exit;
use serde_json::{Map, Value, json};

use super::Runs;
use crate::cli::arguments::ListArguments;
use crate::cli::error::CliError;
use crate::cli::run::Exit;
use crate::journal::{ListedRun, RunState};
use crate::limits;
use crate::redact::Redactor;
use crate::stream::console::visible;

/// Prints the runs that are there.
///
/// # Errors
/// When they cannot be looked at, or nobody reads.
pub fn list(runs: &Runs, arguments: &ListArguments, out: &mut dyn Write) -> Result<Exit, CliError> {
    let names = runs.store.names()?;
    if !arguments.json {
        let heading = if names.is_empty() {
            let place = runs.store.folder().map(|folder| folder.display().to_string()).unwrap_or_default();
            format!("no runs in {}\n", visible::one_line(&place))
        } else {
            line("RUN", "STATE", "STEPS", "TOKENS", "BEGUN", "OBJECTIVE")
        };
        out.write_all(heading.as_bytes()).map_err(CliError::Output)?;
    }
    for name in names {
        let run = runs.store.listed(&name);
        let text = if arguments.json { as_json(&run, &runs.redactor) } else { as_text(&run, &runs.redactor) };
        out.write_all(text.as_bytes()).map_err(CliError::Output)?;
    }
    out.flush().map_err(CliError::Output)?;
    Ok(Exit::Code(exit::FINE))
}

fn line(run: &str, state: &str, steps: &str, tokens: &str, begun: &str, objective: &str) -> String {
    format!("{run:<28}  {state:<20}  {steps:>5}  {tokens:>8}  {begun:<16}  {objective}\n")
}

fn as_text(run: &ListedRun, redactor: &Redactor) -> String {
    let state = match &run.state {
        RunState::Running(_) => "running",
        RunState::Open => "open",
        RunState::Ended(outcome) => outcome.word(),
        RunState::Unknown(_) => "unknown",
    };
    let name = visible::one_line(&run.run_id);
    let about = match &run.state {
        RunState::Unknown(problem) => format!("({problem})"),
        _ => run.meta.as_ref().map(|meta| meta.objective.clone()).unwrap_or_default(),
    };
    let about = redactor.text(&about);
    let about = visible::shortened(&about, limits::size(limits::LIST_OBJECTIVE_CHARACTERS));
    let Some(meta) = &run.meta else { return line(&name, state, "", "", "", &about) };
    let tokens = meta.usage.as_ref().map(|usage| usage.total_tokens.to_string()).unwrap_or_default();
    let begun: String = meta.created_at.chars().take(16).map(|each| if each == 'T' { ' ' } else { each }).collect();
    line(&name, state, &meta.steps.to_string(), &tokens, &visible::one_line(&begun), &about)
}

fn as_json(run: &ListedRun, redactor: &Redactor) -> String {
    let mut row = Map::new();
    let mut put = |name: &str, value: Value| {
        if !value.is_null() {
            row.insert(name.to_owned(), value);
        }
    };
    put("run_id", json!(run.run_id));
    let (state, outcome) = match &run.state {
        RunState::Running(holder) => {
            put("holder", json!(holder.as_ref().map(|holder| json!({"pid": holder.pid, "host": holder.host}))));
            ("running", None)
        }
        RunState::Open => ("open", None),
        RunState::Ended(outcome) => ("finished", Some(outcome.word())),
        RunState::Unknown(problem) => {
            put("problem", json!(problem));
            ("unknown", None)
        }
    };
    put("state", json!(state));
    put("resumable", json!(run.is_resumable()));
    put("outcome", json!(outcome));
    if let Some(meta) = &run.meta {
        put("objective", json!(redactor.text(&meta.objective)));
        put("created_at", json!(meta.created_at));
        put("updated_at", json!(meta.updated_at));
        put("steps", json!(meta.steps));
        put("provider", json!(meta.provider));
        put("model", json!(meta.model));
        put("protocol", json!(meta.protocol));
        put("usage", json!(meta.usage));
    }
    format!("{}\n", Value::Object(row))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use mission_contract::event::{Outcome, UsageTotal};
    use mission_contract::vocabulary::{RUN_FIELDS, RUN_STATES};

    use super::*;
    use crate::journal::RunMeta;
    use crate::sys::lock::Holder;

    fn run(state: RunState) -> ListedRun {
        let meta = RunMeta {
            run_id: "run_20261201T020304-0a1b2c3d".into(),
            created_at: "2026-12-01T02:03:04.000Z".into(),
            updated_at: "2026-12-01T02:03:09.000Z".into(),
            objective: "read the\n\x1b[31mkey 0123456789".into(),
            steps: 3,
            provider: "local".into(),
            usage: Some(UsageTotal { total_tokens: 915, ..UsageTotal::default() }),
            ..RunMeta::default()
        };
        ListedRun { run_id: meta.run_id.clone(), state, meta: Some(meta) }
    }

    fn all() -> [ListedRun; 4] {
        let holder = Holder { pid: 7, host: "here".into(), boot_id: String::new(), epoch: 1 };
        let unknown = ListedRun { run_id: "run_x".into(), state: RunState::Unknown("it is a symbolic link".into()), meta: None };
        [run(RunState::Running(Some(holder))), run(RunState::Open), run(RunState::Ended(Outcome::AnsweredWithCaveat)), unknown]
    }

    #[test]
    fn a_run_is_a_line() {
        let redactor = Redactor::new([("A_KEY".into(), "0123456789".into())], []).unwrap();
        let text: String = all().iter().map(|run| as_text(run, &redactor)).collect();
        insta::assert_snapshot!(text, @r"
        run_20261201T020304-0a1b2c3d  running                   3       915  2026-12-01 02:03  read the \u{1b}[31mkey <redacted:A_KEY>
        run_20261201T020304-0a1b2c3d  open                      3       915  2026-12-01 02:03  read the \u{1b}[31mkey <redacted:A_KEY>
        run_20261201T020304-0a1b2c3d  answered_with_caveat      3       915  2026-12-01 02:03  read the \u{1b}[31mkey <redacted:A_KEY>
        run_x                         unknown                                                  (it is a symbolic link)
        ");
        for run in all() {
            let row: Map<String, Value> = serde_json::from_str(&as_json(&run, &redactor)).unwrap();
            assert!(row.keys().all(|key| RUN_FIELDS.iter().any(|field| field.name == key)), "{row:?}");
            assert!(RUN_STATES.iter().any(|state| state.name == row["state"]), "{row:?}");
        }
        let text: String = all().iter().map(|run| as_json(run, &redactor)).collect();
        insta::assert_snapshot!(text, @r#"
        {"created_at":"2026-12-01T02:03:04.000Z","holder":{"host":"here","pid":7},"objective":"read the\n\u001b[31mkey <redacted:A_KEY>","protocol":"json","provider":"local","resumable":false,"run_id":"run_20261201T020304-0a1b2c3d","state":"running","steps":3,"updated_at":"2026-12-01T02:03:09.000Z","usage":{"calls":0,"completion_tokens":0,"prompt_tokens":0,"total_tokens":915}}
        {"created_at":"2026-12-01T02:03:04.000Z","objective":"read the\n\u001b[31mkey <redacted:A_KEY>","protocol":"json","provider":"local","resumable":true,"run_id":"run_20261201T020304-0a1b2c3d","state":"open","steps":3,"updated_at":"2026-12-01T02:03:09.000Z","usage":{"calls":0,"completion_tokens":0,"prompt_tokens":0,"total_tokens":915}}
        {"created_at":"2026-12-01T02:03:04.000Z","objective":"read the\n\u001b[31mkey <redacted:A_KEY>","outcome":"answered_with_caveat","protocol":"json","provider":"local","resumable":false,"run_id":"run_20261201T020304-0a1b2c3d","state":"finished","steps":3,"updated_at":"2026-12-01T02:03:09.000Z","usage":{"calls":0,"completion_tokens":0,"prompt_tokens":0,"total_tokens":915}}
        {"problem":"it is a symbolic link","resumable":false,"run_id":"run_x","state":"unknown"}
        "#);
    }
}
