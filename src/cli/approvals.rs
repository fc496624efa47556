//! `mission approvals`: what waits for a person is listed, shown and decided. Nothing that happens inside a run comes here.

use std::io::Write;
use std::path::Path;

use mission_contract::event::Arguments;
use mission_contract::vocabulary::exit;
use serde_json::{Value, json};

use super::arguments::{ApprovalsArguments, DecisionFlags, help, read_verb};
use super::environment::{Environment, Stated};
use super::error::{CliError, quoted};
use super::hiding;
use super::objective::Verb;
use super::run::Exit;
use crate::approvals::{Answer, ApprovalError, Approvals, Key, Kind, Record, Standing};
use crate::redact::Redactor;
use crate::stream::console::visible;
use crate::sys::clock::SystemClock;

/// The approvals of a working directory.
pub(super) fn opened(environment: &Environment, directory: &Path) -> Approvals {
    let word = Stated::variable(environment, "MISSION_APPROVALS");
    let key = Key::place(|name| environment.get(name).cloned()).ok();
    Approvals::of(word.as_ref().map(|stated| stated.value.as_str()), directory, key)
}

/// A decision that was asked for.
pub(super) struct Asked {
    id: String,
    answer: Answer,
    by: String,
    note: String,
}

/// The decision that a run's flags ask for instead of a run.
///
/// # Errors
/// When they ask for two, or for none and say who decides.
pub(super) fn asked(flags: &DecisionFlags) -> Result<Option<Asked>, CliError> {
    let given = |place, value: &Option<String>| Stated::flag(place, value.as_deref());
    let (approve, refuse) = (given("--approve", &flags.approve), given("--refuse", &flags.refuse));
    let (by, note) = (given("--decided-by", &flags.decided_by), given("--note", &flags.note));
    let (stated, answer) = match (approve, refuse) {
        (Some(stated), None) => (stated, Answer::Approve),
        (None, Some(stated)) => (stated, Answer::Refuse),
        (Some(_), Some(_)) => {
            return Err(CliError::Refused("--approve and --refuse say two things; give one of them".to_owned()));
        }
        (None, None) => {
            return match by.or(note) {
                Some(stated) => Err(stated.refuse("it goes with --approve or --refuse; give one of them, or leave it out")),
                None => Ok(None),
            };
        }
    };
    let text = |stated: Option<Stated>| stated.map(|stated| stated.value).unwrap_or_default();
    Ok(Some(Asked { id: stated.value.trim().to_owned(), answer, by: text(by), note: text(note) }))
}

/// Carries out a decision.
///
/// # Errors
/// Why it does not count.
pub(super) fn decide(asked: &Asked, environment: &Environment, out: &mut dyn Write) -> Result<Exit, CliError> {
    let directory = std::env::current_dir().map_err(|error| CliError::no_directory(&error))?;
    let approvals = opened(environment, &directory);
    let redactor = hiding::redactor()?;
    let (by, note) = (redactor.text(&asked.by), redactor.text(&asked.note));
    let record = approvals.decide(&asked.id, asked.answer, &by, &note, &SystemClock::start())?;
    let answer = record.answer.map_or("nothing", Answer::word);
    let next = if record.run_id.is_empty() {
        String::new()
    } else {
        format!("; carry its run on with mission --resume {}", visible::one_line(&record.run_id))
    };
    print(out, &format!("{}: {answer}, says {}{next}\n", record.approval_id, visible::one_line(&record.decided_by)))
}

/// Carries out `mission approvals …`.
///
/// # Errors
/// Words that it does not take, and what is in the way.
pub(super) fn approvals(words: &[String], environment: &Environment, out: &mut dyn Write) -> Result<Exit, CliError> {
    let Some((arguments, _)) = read_verb::<ApprovalsArguments>(Verb::Approvals, words)? else {
        return print(out, &help(Some(Verb::Approvals)));
    };
    let given: Vec<&str> = arguments.words.iter().map(String::as_str).collect();
    let decision = |id: &str, answer| Asked {
        id: id.to_owned(),
        answer,
        by: arguments.by.clone().unwrap_or_default(),
        note: arguments.note.clone().unwrap_or_default(),
    };
    match given.as_slice() {
        ["list"] => list(&arguments, environment, out),
        ["show", id] => show(id, &arguments, environment, out),
        ["approve", id] => decide(&decision(id, Answer::Approve), environment, out),
        ["refuse", id] => decide(&decision(id, Answer::Refuse), environment, out),
        ["answer", id, word] => match Answer::named(word) {
            Some(answer @ (Answer::Done | Answer::Retry | Answer::Abandon)) => decide(&decision(id, answer), environment, out),
            _ => Err(CliError::Usage(format!("{} is no answer; say done, retry or abandon", quoted(word)))),
        },
        _ => Err(CliError::Usage(
            "`mission approvals` takes list, show ID, answer ID done|retry|abandon, approve ID or refuse ID".to_owned(),
        )),
    }
}

fn list(arguments: &ApprovalsArguments, environment: &Environment, out: &mut dyn Write) -> Result<Exit, CliError> {
    let directory = std::env::current_dir().map_err(|error| CliError::no_directory(&error))?;
    let redactor = hiding::redactor()?;
    let mut shown = 0_u64;
    let mut unreadable = 0_u64;
    let approvals = opened(environment, &directory);
    let listing = approvals.list()?;
    for id in &listing.ids {
        match approvals.look(id, &SystemClock::start()) {
            // It was removed while we looked.
            Err(ApprovalError::Missing { .. }) => {}
            Ok((_, standing)) if !arguments.all && !matches!(standing, Standing::Pending | Standing::Unsigned(_)) => {}
            Ok((record, standing)) => {
                shown = shown.saturating_add(1);
                let text =
                    if arguments.json { as_json(&record, &standing, &redactor) } else { row(&record, &standing, &redactor) };
                print(out, &text)?;
            }
            Err(error) => {
                unreadable = unreadable.saturating_add(1);
                super::say(&error.to_string());
            }
        }
    }
    if listing.more {
        super::say(&format!("There are more approvals than the {} that were looked at.", crate::limits::APPROVALS_LISTED));
    }
    if shown == 0 && !arguments.json {
        print(out, if arguments.all { "no approvals\n" } else { "nothing waits for a person\n" })?;
    }
    Ok(Exit::Code(if unreadable == 0 { exit::FINE } else { exit::FAILED }))
}

fn show(id: &str, arguments: &ApprovalsArguments, environment: &Environment, out: &mut dyn Write) -> Result<Exit, CliError> {
    let directory = std::env::current_dir().map_err(|error| CliError::no_directory(&error))?;
    let redactor = hiding::redactor()?;
    let (record, standing) = opened(environment, &directory).look(id, &SystemClock::start())?;
    if arguments.json {
        return print(out, &as_json(&record, &standing, &redactor));
    }
    let clean = |text: &str| visible::text(&redactor.text(text)).into_owned();
    let pretty = serde_json::to_string_pretty(&record.arguments).unwrap_or_default();
    let mut text = format!("{}  {}\n", record.approval_id, state(&standing));
    let mut field = |name: &str, value: &str| {
        if !value.is_empty() {
            text.push_str(&format!("{name:<11} {}\n", clean(value).replace('\n', "\n            ")));
        }
    };
    field("tool", &record.tool);
    field("arguments", &pretty);
    field("asks", &record.reason);
    field("run", &record.run_id);
    field("objective", &record.objective);
    field("since", &record.requested_at);
    field("expires", record.expires_at.as_deref().unwrap_or_default());
    field("decided by", &record.decided_by);
    field("at", &record.decided_at);
    field("note", &record.note);
    let id = &record.approval_id;
    if matches!(standing, Standing::Pending | Standing::Unsigned(_)) {
        field(
            "decide",
            &match record.kind {
                Kind::Reconcile => format!("mission approvals answer {id} done|retry|abandon --by WHO"),
                Kind::Gate => format!("mission approvals approve {id} --by WHO, or refuse"),
            },
        );
    }
    print(out, &text)
}

fn state(standing: &Standing) -> String {
    match standing {
        Standing::Pending => "pending".to_owned(),
        Standing::Unsigned(why) => format!("pending ({})", visible::one_line(why)),
        Standing::Decided(answer) => format!("decided: {}", answer.word()),
        Standing::Spent(answer, spent) => format!("spent: {}, by {}", answer.word(), visible::one_line(&spent.run)),
        Standing::Expired => "expired".to_owned(),
        Standing::Abandoned => "abandoned".to_owned(),
    }
}

fn row(record: &Record, standing: &Standing, redactor: &Redactor) -> String {
    let asks = if record.kind == Kind::Reconcile { "what became of" } else { "may it call" };
    let call = format!("{} {}", record.tool, Value::from(record.arguments.clone()));
    let call = redactor.text(&call);
    let call = visible::shortened(&call, crate::limits::size(crate::limits::LIST_OBJECTIVE_CHARACTERS));
    let run = visible::one_line(&record.run_id);
    format!("{}  {:<10}  {run}  {asks} {call}\n", record.approval_id, state(standing))
}

/// The record as it stands, what is free text in it redacted, and what it comes to.
fn as_json(record: &Record, standing: &Standing, redactor: &Redactor) -> String {
    let clean = |text: &str| redactor.text(text).into_owned();
    let record = Record {
        arguments: clean_arguments(&record.arguments, redactor),
        objective: clean(&record.objective),
        reason: clean(&record.reason),
        note: clean(&record.note),
        decided_by: clean(&record.decided_by),
        ..record.clone()
    };
    let mut value = serde_json::to_value(&record).unwrap_or_default();
    if let Value::Object(fields) = &mut value {
        fields.insert("standing".to_owned(), json!(state(standing)));
    }
    format!("{value}\n")
}

fn clean_arguments(arguments: &Arguments, redactor: &Redactor) -> Arguments {
    let text = Value::from(arguments.clone()).to_string();
    serde_json::from_str(&redactor.text(&text)).unwrap_or_default()
}

fn print(out: &mut dyn Write, text: &str) -> Result<Exit, CliError> {
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(CliError::Output)?;
    Ok(Exit::Code(exit::FINE))
}
