//! `CONTRACT.md` and the code name the same things.

use std::collections::BTreeSet;

use mission_contract::schema;
use mission_contract::vocabulary::{self, Field, Kind, Shape, Status, Term};
use serde_json::Value;

/// Names that the page uses and that are no part of the vocabulary.
const BESIDES: &[&str] = &["mission", "mission_result", "direct", "ap_", "--"];

fn page() -> String {
    std::fs::read_to_string(crate::workspace().join("CONTRACT.md")).unwrap()
}

/// Everything between backticks, fenced blocks apart (the page has none).
fn spans(page: &str) -> BTreeSet<String> {
    assert!(!page.contains("```"), "the page has no fenced blocks: a name in one would not be checked");
    page.lines()
        .flat_map(|line| {
            let parts: Vec<&str> = line.split('`').collect();
            assert!(parts.len() % 2 == 1, "a backtick is left open: {line}");
            parts.into_iter().skip(1).step_by(2).map(|span| span.replace("\\|", "|")).collect::<Vec<String>>()
        })
        .collect()
}

fn field_names(fields: &[Field], names: &mut BTreeSet<String>) {
    for field in fields {
        names.insert(field.name.to_string());
        match field.kind {
            Kind::Word { words } => names.extend(words.iter().map(ToString::to_string)),
            Kind::Record { fields } | Kind::Records { fields } => field_names(fields, names),
            _ => {}
        }
    }
}

/// Every name that a consumer may depend on.
fn vocabulary_names() -> BTreeSet<String> {
    let all = vocabulary::VOCABULARY;
    let mut names: BTreeSet<String> = ["event", "control"].into_iter().map(String::from).collect();
    for Shape { name, fields, .. } in all.events.iter().chain(all.control_words) {
        names.insert((*name).to_string());
        field_names(fields, &mut names);
    }
    let lists: [&[Term]; 24] = [
        all.run_fields,
        all.run_states,
        all.outcomes,
        all.reasons,
        all.budgets,
        all.model_states,
        all.grounding_verdicts,
        all.review_signals,
        all.review_verdicts,
        all.notice_codes,
        all.control_dispositions,
        all.tick_states,
        all.exit_clauses,
        all.approval_fields,
        all.approval_states,
        all.log_envelope,
        all.drift_kinds,
        all.replay_verdicts,
        all.policy_fields,
        all.policy_effects,
        all.policy_rules,
        all.audit_fields,
        all.audit_events,
        all.audit_verdicts,
    ];
    field_names(all.replay_report, &mut names);
    names.extend(lists.into_iter().flatten().map(|term| term.name.to_string()));
    names.extend(all.exit_codes.iter().map(|code| code.code.to_string()));
    for verb in all.verbs {
        names.insert(verb.name.to_string());
        names.extend(verb.words.iter().map(|word| word.name.to_string()));
    }
    for flag in all.verb_flags {
        names.insert(flag.name.to_string());
        names.extend(flag.value.iter().chain(flag.words).map(ToString::to_string));
    }
    for profile in all.profiles {
        names.extend(std::iter::once(profile.name).chain(profile.adds.iter().copied()).map(String::from));
    }
    names.extend(all.tool_scopes.iter().map(|scopes| scopes.tool.to_string()));
    names.extend(all.volatile_keys.iter().map(ToString::to_string));
    names.extend(all.bounds.iter().map(|bound| bound.name.to_string()));
    for flag in all.flags {
        names.extend([flag.name].iter().chain(flag.words).chain(flag.later_words).map(ToString::to_string));
        names.extend(flag.value.map(ToString::to_string));
    }
    for variable in all.variables {
        names.extend([variable.name].iter().chain(variable.aliases).chain(variable.accepts).map(ToString::to_string));
    }
    let log = schema::one("log-line").unwrap();
    for kind in all.log_kinds {
        names.insert(kind.name.to_string());
        if let Some(Value::Object(fields)) = log["properties"][kind.name].get("properties") {
            names.extend(fields.keys().cloned());
        }
    }
    names
}

#[test]
fn the_page_names_everything_in_the_code() {
    let spans = spans(&page());
    let missing: Vec<String> = vocabulary_names().into_iter().filter(|name| !spans.contains(name)).collect();
    assert!(missing.is_empty(), "CONTRACT.md does not name in backticks: {missing:?}");
}

#[test]
fn everything_on_the_page_is_in_the_code() {
    let mut known = vocabulary_names();
    known.extend(BESIDES.iter().map(ToString::to_string));
    // Defaults and the words that switch a variable off.
    known.extend(["off", "none", "false", "no"].map(String::from));
    let unknown: Vec<String> = spans(&page())
        .into_iter()
        .filter(|span| {
            let first = span.split_whitespace().next().unwrap_or_default();
            let verb = span.strip_prefix("mission ").and_then(|rest| rest.split_whitespace().next());
            let shaped = |allowed: fn(&char) -> bool| span.chars().all(|character| allowed(&character));
            let word = span.starts_with(|first: char| first.is_ascii_lowercase())
                && shaped(|character| character.is_ascii_lowercase() || character.is_ascii_digit() || *character == '_');
            let shouted = span.starts_with(|first: char| first.is_ascii_uppercase())
                && shaped(|character| character.is_ascii_uppercase() || character.is_ascii_digit() || *character == '_');
            match verb {
                Some(verb) => vocabulary::VERBS.iter().all(|known| known.name != verb),
                None if first.starts_with("--") && first != "--" => {
                    vocabulary::flag(first).is_none() && vocabulary::VERB_FLAGS.iter().all(|flag| flag.name != first)
                }
                None => (word || shouted) && !is_handle(span) && !known.contains(span),
            }
        })
        .collect();
    assert!(unknown.is_empty(), "CONTRACT.md names what the code does not have: {unknown:?}");
}

/// `r1`, `r2`, …
fn is_handle(span: &str) -> bool {
    span.strip_prefix('r').is_some_and(|digits| !digits.is_empty() && digits.chars().all(|digit| digit.is_ascii_digit()))
}

fn status(status: Status) -> &'static str {
    match status {
        Status::Landed => "landed",
        Status::Later => "later",
        Status::Unread => "unread",
    }
}

/// Each row says what the code says, not only its name.
#[test]
fn the_rows_say_what_the_code_says() {
    let page = page();
    let row = |name: &str, cells: &[&str]| {
        let found = page.lines().filter(|line| line.starts_with(&format!("| `{name}`"))).any(|line| {
            let line = line.replace("\\|", "/");
            cells.iter().all(|cell| {
                line.split('|').any(|part| {
                    let part = part.trim();
                    part == *cell || part.strip_suffix(", ours") == Some(cell) || part.starts_with(&format!("{cell} "))
                })
            })
        });
        assert!(found, "CONTRACT.md has no row for `{name}` with {cells:?}");
    };
    for flag in vocabulary::FLAGS {
        row(flag.name, &[flag.default, status(flag.status), flag.meaning]);
        if let Some(env) = flag.env {
            row(flag.name, &[&format!("`{env}`")]);
        }
    }
    for variable in vocabulary::VARIABLES {
        row(variable.name, &[variable.default, status(variable.status), variable.meaning]);
    }
    for verb in vocabulary::VERBS {
        row(verb.name, &[status(verb.status), verb.meaning]);
        for word in verb.words {
            row(&format!("{} {}", verb.name, word.name), &[word.meaning]);
        }
    }
    for flag in vocabulary::VERB_FLAGS {
        row(flag.name, &[flag.verb, flag.meaning]);
    }
    for shape in vocabulary::EVENTS {
        assert!(page.contains(&format!("\n### `{}`", shape.name)));
        let section = page.split(&format!("\n### `{}`", shape.name)).nth(1).unwrap();
        let section = section.split("\n### ").next().unwrap();
        for field in shape.fields.iter().filter(|field| field.name != "branch") {
            let line = section.lines().find(|line| line.starts_with(&format!("| `{}` |", field.name)));
            let line = line.unwrap_or_else(|| panic!("CONTRACT.md: {} has no row for `{}`", shape.name, field.name));
            assert_eq!(line.contains("| required |"), field.required, "{line}");
        }
    }
    for term in vocabulary::NOTICE_CODES
        .iter()
        .chain(vocabulary::OUTCOMES)
        .chain(vocabulary::CONTROL_DISPOSITIONS)
        .chain(vocabulary::TICK_STATES)
        .chain(vocabulary::EXIT_CLAUSES)
        .chain(vocabulary::RUN_FIELDS)
        .chain(vocabulary::RUN_STATES)
        .chain(vocabulary::REPLAY_VERDICTS)
    {
        row(term.name, &[term.meaning]);
    }
    for kind in vocabulary::LOG_KINDS {
        row(kind.name, &[kind.direction, kind.meaning]);
    }
    for code in vocabulary::EXIT_CODES.iter().filter(|code| code.of != "outcome") {
        row(code.code, &[code.meaning]);
    }
    for bound in vocabulary::BOUNDS {
        row(bound.name, &[&format!("{} {}", bound.value, bound.unit), bound.reason]);
    }
}
