//! `mission replay`: a verdict a recording, for whoever has to decide whether a change changed a decision.

use std::io::Write;
use std::path::Path;

use mission_contract::replay::{ReplayReport, ReplayVerdict, ReplayedRecording};
use mission_contract::vocabulary::exit;

use super::arguments::ReplayArguments;
use super::environment::{Environment, Stated};
use super::error::{CliError, quoted};
use super::recordings::Variation;
use super::replay::place;
use super::run::Exit;
use super::{junit, recordings};
use crate::journal::RunStore;
use crate::replay::{Player, Recording};
use crate::stream::console::visible::one_line as harmless;
use crate::sys::files::{Durability, replace_file};

/// Replays recordings and says what differs. Exit code 1 when a decision does, when a recording is broken, and under `--strict` when a
/// text does.
///
/// # Errors
/// What is asked wrongly, and output that cannot be written. A recording that cannot be replayed is a verdict.
pub(super) fn replay(arguments: &ReplayArguments, environment: &Environment, out: &mut dyn Write) -> Result<Exit, CliError> {
    let names: Vec<&str> = arguments.recordings.iter().map(|name| name.trim()).filter(|name| !name.is_empty()).collect();
    if names.is_empty() {
        let sentence = "there is no recording to replay; name runs by their ids, or their folders (see mission help replay)";
        return Err(CliError::Usage(sentence.to_owned()));
    }
    let (skill, policy) = (arguments.skill.as_deref(), arguments.policy.as_deref());
    let variation = Variation::of(skill, arguments.no_grounding, &arguments.gate_tool, &arguments.gate, policy)?;
    let directory = std::env::current_dir().map_err(|error| CliError::no_directory(&error))?;
    let runs = Stated::variable(environment, "MISSION_RUNS");
    let store = RunStore::of(runs.as_ref().map(|stated| stated.value.as_str()), &directory);
    let report = ReplayReport { recordings: names.into_iter().map(|name| verdict(name, &store, &variation)).collect() };
    if let Some(file) = arguments.junit.as_deref().filter(|file| !file.trim().is_empty()) {
        let text = junit::document(&report, arguments.strict).map_err(CliError::Output)?;
        replace_file(Path::new(file), text.as_bytes(), Durability::Atomic).map_err(|error| CliError::File {
            place: "--junit".to_owned(),
            file: quoted(file),
            problem: format!("it cannot be written ({error}); name a file in a folder where you may write"),
        })?;
    }
    let text = if arguments.json { as_json(&report) } else { as_text(&report) };
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(CliError::Output)?;
    let fails = report.recordings.iter().any(|recording| is_failure(recording.verdict, arguments.strict));
    Ok(Exit::Code(if fails { exit::FAILED } else { exit::FINE }))
}

/// Whether a verdict fails a build.
pub(super) fn is_failure(verdict: ReplayVerdict, strict: bool) -> bool {
    match verdict {
        ReplayVerdict::Same => false,
        ReplayVerdict::Text => strict,
        ReplayVerdict::Decision | ReplayVerdict::Broken => true,
    }
}

fn verdict(name: &str, store: &RunStore, variation: &Variation) -> ReplayedRecording {
    let broken = |problem: String| {
        let verdict = ReplayVerdict::Broken;
        ReplayedRecording { recording: name.to_owned(), verdict, problem: Some(problem), ..ReplayedRecording::default() }
    };
    match recordings::load(name, store) {
        Ok(recording) => replayed(&recording, variation).unwrap_or_else(|problem| ReplayedRecording {
            source: Some(recording.source.name().to_owned()),
            run_id: run_id(&recording),
            finished: recording.is_finished,
            ..broken(problem)
        }),
        Err(error) => broken(error.to_string()),
    }
}

fn run_id(recording: &Recording) -> Option<String> {
    Some(recording.open.run_id.clone()).filter(|run_id| !run_id.is_empty())
}

fn replayed(recording: &Recording, variation: &Variation) -> Result<ReplayedRecording, String> {
    let open = variation.of_recorded(recording).map_err(|error| error.to_string())?;
    let redactor = recordings::redactor(recording).map_err(|error| error.to_string())?;
    let mut player = Player::new(recording, open, redactor);
    while player.advance().map_err(|error| error.to_string())?.is_some() {}
    let replayed = player.replayed();
    Ok(ReplayedRecording {
        recording: recording.name.clone(),
        verdict: replayed.verdict,
        source: Some(recording.source.name().to_owned()),
        run_id: run_id(recording),
        steps: replayed.steps,
        finished: recording.is_finished,
        drift: replayed.drift,
        problem: None,
    })
}

fn as_json(report: &ReplayReport) -> String {
    serde_json::to_string_pretty(report).unwrap_or_default() + "\n"
}

fn as_text(report: &ReplayReport) -> String {
    let mut text = String::new();
    for recording in &report.recordings {
        let about = match &recording.problem {
            Some(problem) => format!(": {}", harmless(problem)),
            None => {
                let steps = if recording.steps == 1 { "step" } else { "steps" };
                let cut = if recording.finished { "" } else { ", the recording has no ending" };
                format!(" ({} {steps}{cut})", recording.steps)
            }
        };
        text.push_str(&format!("{:<9} {}{about}\n", recording.verdict.name(), harmless(&recording.recording)));
        for drift in &recording.drift {
            text.push_str(&format!("  {}: {}{}\n", drift.kind.name(), harmless(&drift.what), place(drift)));
            for (name, side) in [("recorded", &drift.recorded), ("replayed", &drift.replayed)] {
                let side = side.as_ref().map_or_else(|| "(nothing)".into(), |side| harmless(side));
                text.push_str(&format!("    {name}: {side}\n"));
            }
        }
    }
    let all = [ReplayVerdict::Same, ReplayVerdict::Text, ReplayVerdict::Decision, ReplayVerdict::Broken];
    let counted = all.into_iter().filter_map(|verdict| {
        let count = report.recordings.iter().filter(|recording| recording.verdict == verdict).count();
        (count > 0).then(|| format!("{count} {}", verdict.name()))
    });
    let counted = counted.collect::<Vec<_>>().join(", ");
    let recordings = if report.recordings.len() == 1 { "recording" } else { "recordings" };
    text.push_str(&format!("{} {recordings}: {counted}\n", report.recordings.len()));
    text
}
