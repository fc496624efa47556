//! `mission runs show RUN`: a run as a timeline, one step of it, or what the model was asked in a step.

use std::io::{BufWriter, Write};

use mission_contract::event::MissionStarted;
use mission_contract::log::{Entry, Message, Open, Purpose};
use mission_contract::vocabulary::exit;
use serde_json::{Value, json};

use super::conversation::Conversation;
use super::timeline::{Moment, Shown, Step, Timeline, Total};
use super::{Runs, number};
use crate::cli::arguments::{RunsVerb, ShowArguments};
use crate::cli::environment::Stated;
use crate::cli::error::CliError;
use crate::cli::run::Exit;
use crate::journal::{LogReader, ReadError, RunPlace};
use crate::limits;
use crate::redact::Redactor;
use crate::stream::console::figures::{plural, size, time};
use crate::stream::console::visible;

/// Shows a run.
///
/// # Errors
/// When there is no such run or step, the log is damaged, or nobody reads.
pub fn show(runs: &Runs, arguments: &ShowArguments, out: &mut dyn Write) -> Result<Exit, CliError> {
    let stated = Stated::flag("--step", arguments.step.as_deref());
    let step = stated.as_ref().map(|stated| {
        let step = number(stated)?;
        step.checked_sub(1).ok_or_else(|| stated.refuse("steps are counted from 1"))
    });
    let step = step.transpose()?;
    let place = runs.named(RunsVerb::Show, arguments.run.as_deref())?;
    let mut out = BufWriter::with_capacity(limits::size(limits::SINK_WRITE_BYTES), out);
    let seen = match (arguments.prompt, arguments.json) {
        (true, json) => prompt(&place, step, json, &runs.redactor, &mut out)?,
        (false, true) => as_json(&place, step, &runs.redactor, &mut out)?,
        (false, false) => as_text(&place, step, &runs.redactor, &mut out)?,
    };
    out.flush().map_err(CliError::Output)?;
    match (&stated, step) {
        (Some(stated), Some(step)) if step >= seen => Err(stated.refuse(match seen {
            0 => "the run has no steps".to_owned(),
            _ => format!("the run has steps 1 to {seen}"),
        })),
        _ => Ok(Exit::Code(exit::FINE)),
    }
}

/// Reads a log to its end and gives out what its lines complete. Returns what is known then, and the sentence about a torn tail.
fn fold(
    place: &RunPlace,
    wanted: Option<u64>,
    mut shown: impl FnMut(Shown) -> std::io::Result<()>,
) -> Result<(Total, Option<String>), CliError> {
    let mut reader = place.reader()?;
    let mut timeline = Timeline::of(wanted);
    for line in &mut reader {
        if let Some(complete) = timeline.take(&line?) {
            shown(complete).map_err(CliError::Output)?;
        }
    }
    let torn = torn(&reader, place)?;
    let (last, total) = timeline.finish();
    if let Some(step) = last {
        shown(Shown::Step(Box::new(step))).map_err(CliError::Output)?;
    }
    Ok((total, torn))
}

/// What stands behind the last good line, in words. A log without a good line is no run.
fn torn(reader: &LogReader, place: &RunPlace) -> Result<Option<String>, ReadError> {
    let tail = reader.tail();
    if tail.seq == 0 {
        return Err(ReadError::Empty { path: place.log.display().to_string() });
    }
    Ok(tail.torn.as_ref().map(|torn| format!("{} bytes behind line {} were being written when it stopped", torn.bytes, tail.seq)))
}

fn as_text(place: &RunPlace, wanted: Option<u64>, redactor: &Redactor, out: &mut dyn Write) -> Result<u64, CliError> {
    let (total, torn) = fold(place, wanted, |shown| {
        let text = match (shown, wanted) {
            (Shown::Opened(open, at), None) => opened(&open, &at, redactor),
            (Shown::Started(started), None) => begun(&started),
            (Shown::Step(step), None) => step_text(&step, redactor, false),
            (Shown::Step(step), Some(wanted)) if step.index == wanted => step_text(&step, redactor, true),
            _ => return Ok(()),
        };
        out.write_all(text.as_bytes())
    })?;
    if wanted.is_none() {
        out.write_all(ended(&total, torn.as_deref()).as_bytes()).map_err(CliError::Output)?;
    }
    Ok(total.steps)
}

fn opened(open: &Open, at: &str, redactor: &Redactor) -> String {
    let spec = &open.spec;
    let model = spec.model.as_deref().map(|model| format!(", {model}")).unwrap_or_default();
    let protocol = match spec.protocol {
        mission_contract::spec::Protocol::Json => "json",
        mission_contract::spec::Protocol::Native => "native",
    };
    let objective = redactor.text(&spec.objective);
    format!(
        "run {}\n  objective  {}\n  begun      {} by mission {}\n  model      {}{} ({protocol})\n",
        visible::one_line(&open.run_id),
        visible::shortened(&objective, limits::size(limits::META_OBJECTIVE_CHARACTERS)),
        visible::one_line(at),
        visible::one_line(&open.build),
        visible::one_line(&spec.provider),
        visible::one_line(&model),
    )
}

fn begun(started: &MissionStarted) -> String {
    let count = u64::try_from(started.catalogue.len()).unwrap_or(u64::MAX);
    let mut text = format!("  tools      {count} offered");
    for server in &started.servers {
        text.push_str(&format!("; {} ({}, {})", visible::one_line(&server.name), server.transport, server.state));
    }
    text.push('\n');
    if let Some(skill) = &started.skill {
        text.push_str(&format!("  skill      {}\n", visible::one_line(&skill.name)));
    }
    text
}

/// A step as lines. By itself it is shown with its texts as they are.
fn step_text(step: &Step, redactor: &Redactor, whole: bool) -> String {
    let short = |text: &str| {
        let text = redactor.text(text);
        visible::shortened(&text, limits::size(limits::CONSOLE_TEXT_CHARACTERS)).into_owned()
    };
    let branch = step.branch.as_deref().map(|branch| format!("[{}] ", visible::one_line(branch))).unwrap_or_default();
    let mut text = format!("{branch}step {} (index {}), at {}\n", step.index.saturating_add(1), step.index, time(step.at_ms));
    let mut facts = vec![format!("model {}", time(step.model_ms))];
    facts.extend((step.tool_ms > 0).then(|| format!("tools {}", time(step.tool_ms))));
    facts.extend((step.waiting_ms > 0).then(|| format!("waiting {}", time(step.waiting_ms))));
    if let Some(usage) = &step.usage {
        let (asked, said) = (usage.prompt_tokens, usage.completion_tokens);
        facts.push(format!("{} ({asked} in, {said} out)", plural(usage.total_tokens, "token")));
    }
    text.push_str(&format!("  {}\n", facts.join(", ")));
    let block =
        |text: &str| visible::text(&redactor.text(text)).lines().map(|line| format!("    | {line}\n")).collect::<String>();
    for reply in step.replies.iter().filter(|_| whole) {
        text.push_str(&format!("  the model said\n{}", block(reply)));
    }
    for moment in &step.events {
        text.push_str(&moment_text(moment, &short, &block, whole));
    }
    if step.left_out > 0 {
        text.push_str(&format!("  and {} more\n", step.left_out));
    }
    text
}

fn moment_text(moment: &Moment, short: &dyn Fn(&str) -> String, block: &dyn Fn(&str) -> String, whole: bool) -> String {
    match moment {
        Moment::Call { tool, arguments, ms, exit_code, handle, bytes, error, output } => {
            let mut facts = vec![match exit_code {
                None => "no result".to_owned(),
                Some(0) => "ok".to_owned(),
                Some(1) => "the tool failed".to_owned(),
                Some(_) => "the call failed".to_owned(),
            }];
            facts.extend(ms.map(time));
            facts.push(size(*bytes));
            facts.extend(handle.clone());
            let mut text = match whole {
                true => format!("  {}\n{}", short(tool), block(arguments)),
                false => format!("  {} {}\n", short(tool), short(arguments)),
            };
            let error = if error.is_empty() { String::new() } else { format!(": {}", short(error)) };
            text.push_str(&format!("    {}{error}\n", facts.join(", ")));
            if whole {
                text.push_str(&block(output));
            }
            text
        }
        Moment::Answer { text } if whole => format!("  answer\n{}", block(text)),
        Moment::Rejected { problem } if whole => format!("  not usable\n{}", block(problem)),
        Moment::Answer { text } => format!("  answer     {}\n", short(text)),
        Moment::Rejected { problem } => format!("  not usable {}\n", short(problem)),
        Moment::Broken { end, detail } => {
            let end = serde_json::to_value(end).ok().and_then(|end| end.as_str().map(str::to_owned)).unwrap_or_default();
            format!("  reply {end}  {}\n", short(detail))
        }
        Moment::Gate { tool, reason, approval_id } => {
            let id = approval_id.as_deref().map(|id| format!(" ({})", visible::one_line(id))).unwrap_or_default();
            format!("  waits      {}{id}: {}\n", short(tool), short(reason))
        }
        Moment::Decided { answer, by, note } => {
            let note = note.as_deref().map(|note| format!(": {}", short(note))).unwrap_or_default();
            format!("  decided    {} by {}{note}\n", short(answer), short(by))
        }
        Moment::Grounding { grounded, unsupported } => {
            let claims = u64::try_from(unsupported.len()).unwrap_or(u64::MAX);
            match grounded {
                true => "  grounded\n".to_owned(),
                false => format!("  not grounded: {} without support\n", plural(claims, "claim")),
            }
        }
        Moment::Told { text } => format!("  told       {}\n", short(text)),
        Moment::Notice { code, detail } => format!("  {}: {}\n", short(code), short(detail)),
        Moment::Resumed { epoch, pid, host } => format!("  stretch {epoch}, process {pid} on {}\n", short(host)),
        Moment::Closed { by } => format!("  closed by {}\n", short(by)),
    }
}

fn ended(total: &Total, torn: Option<&str>) -> String {
    let mut text = match &total.ending {
        None => "not ended".to_owned(),
        Some(finished) => {
            let mut facts = vec![finished.outcome.word().to_owned()];
            facts.extend(finished.reason.as_deref().map(|reason| visible::one_line(reason).into_owned()));
            facts.extend(
                finished
                    .budget
                    .as_ref()
                    .map(|budget| format!("{}: {} of {}", visible::one_line(&budget.which), budget.spent, budget.limit)),
            );
            if let Some(usage) = &finished.usage {
                facts.push(format!(
                    "{} in {}",
                    plural(usage.total_tokens, "token"),
                    plural(usage.calls, "reply").replace("replys", "replies")
                ));
                facts.extend(usage.cost.as_ref().map(|cost| format!("{} {}", cost.amount, visible::one_line(&cost.currency))));
            }
            facts.join(", ")
        }
    };
    let own = total.ms.saturating_sub(total.model_ms).saturating_sub(total.tool_ms).saturating_sub(total.waiting_ms);
    text.push_str(&format!(
        "\n  {} in {}: model {}, tools {}, waiting {}, own {}\n",
        plural(total.steps, "step"),
        time(total.ms),
        time(total.model_ms),
        time(total.tool_ms),
        time(total.waiting_ms),
        time(own)
    ));
    if let Some(torn) = torn {
        text.push_str(&format!("  {torn}\n"));
    }
    text
}

fn as_json(place: &RunPlace, wanted: Option<u64>, redactor: &Redactor, out: &mut dyn Write) -> Result<u64, CliError> {
    let mut first = true;
    let mut write = |text: &str| out.write_all(text.as_bytes());
    let (total, torn) = fold(place, wanted, |shown| match shown {
        Shown::Opened(open, at) => {
            let facts = json!({
                "run_id": open.run_id, "objective": redactor.text(&open.spec.objective), "begun": at, "build": open.build,
                "provider": open.spec.provider, "model": open.spec.model, "protocol": open.spec.protocol,
            });
            write(&format!("{{\"run\":{facts},\n\"steps\":["))
        }
        Shown::Step(step) if wanted.is_none_or(|wanted| wanted == step.index) => {
            let mut value = serde_json::to_value(&step)?;
            redact(&mut value, redactor);
            let comma = if std::mem::take(&mut first) { "\n" } else { ",\n" };
            write(&format!("{comma}{value}"))
        }
        _ => Ok(()),
    })?;
    let mut end = json!({
        "ended": total.ending, "steps": total.steps, "stretches": total.epoch, "ms": total.ms, "model_ms": total.model_ms,
        "tool_ms": total.tool_ms, "waiting_ms": total.waiting_ms, "torn": torn,
    });
    redact(&mut end, redactor);
    write(&format!("],\n\"total\":{end}}}\n")).map_err(CliError::Output)?;
    Ok(total.steps)
}

fn redact(value: &mut Value, redactor: &Redactor) {
    mission_contract::visit::in_value(value, &mut |text| {
        if let std::borrow::Cow::Owned(shown) = redactor.text(text) {
            *text = shown;
        }
    });
}

/// Prints what the model was asked in a step, or in the last one. Returns the number of steps that were seen.
fn prompt(place: &RunPlace, wanted: Option<u64>, json: bool, redactor: &Redactor, out: &mut dyn Write) -> Result<u64, CliError> {
    let temporary = |error| CliError::system("a temporary file", &error);
    let mut conversation = Conversation::new().map_err(temporary)?;
    let mut reader = place.reader()?;
    let (mut steps, mut step, mut found) = (0_u64, None, false);
    for line in &mut reader {
        match &line?.entry {
            Entry::Record(record) => {
                if let Some(index) = step_begun(record.get()) {
                    steps = steps.max(index.saturating_add(1));
                    step = Some(index);
                }
            }
            Entry::Ask(ask) if ask.purpose == Purpose::Step => {
                let form = |message: &Message| {
                    let mut value = serde_json::to_value(message).unwrap_or_default();
                    redact(&mut value, redactor);
                    value.to_string().into_bytes()
                };
                conversation.take(ask, form).map_err(temporary)?;
                found = wanted.is_none() || step == wanted;
                if found && wanted.is_some() {
                    break;
                }
            }
            _ => {}
        }
    }
    torn(&reader, place)?;
    let shown = wanted.or(step).unwrap_or_default();
    if !found {
        return Ok(steps);
    }
    let number = shown.saturating_add(1);
    if json {
        write!(out, "{{\"step\":{number},\"index\":{shown},\"messages\":[").map_err(CliError::Output)?;
        conversation.write(out, b",\n").map_err(CliError::Output)?;
        writeln!(out, "]}}").map_err(CliError::Output)?;
        return Ok(steps);
    }
    writeln!(out, "step {number} (index {shown}), {}", plural(u64::try_from(conversation.len()).unwrap_or(u64::MAX), "message"))
        .map_err(CliError::Output)?;
    for position in 0..conversation.len() {
        let bytes = conversation.message(position).map_err(temporary)?;
        let message: Message = serde_json::from_slice(&bytes).unwrap_or_default();
        out.write_all(message_text(&message).as_bytes()).map_err(CliError::Output)?;
    }
    Ok(steps)
}

/// The index of the step that a record begins.
fn step_begun(record: &str) -> Option<u64> {
    #[derive(serde::Deserialize)]
    struct Begun {
        index: u64,
    }
    let begun: Begun = record.starts_with("{\"event\":\"step_started\"").then(|| serde_json::from_str(record).ok())??;
    Some(begun.index)
}

fn message_text(message: &Message) -> String {
    let role = serde_json::to_value(message.role).ok().and_then(|role| role.as_str().map(str::to_owned)).unwrap_or_default();
    let answers = message.call_id.as_deref().map(|id| format!(" ({})", visible::one_line(id))).unwrap_or_default();
    let mut text = format!("\n--- {role}{answers}\n");
    let content = visible::text(message.content.as_str());
    text.push_str(&content);
    if !content.is_empty() && !content.ends_with('\n') {
        text.push('\n');
    }
    for call in &message.calls {
        let id = visible::one_line(&call.id);
        text.push_str(&format!("calls {}({}) ({id})\n", visible::one_line(&call.name), visible::one_line(&call.arguments)));
    }
    text
}

#[cfg(test)]
#[path = "show_tests.rs"]
mod tests;
