//! `mission policy explain`: which rule decides about a call, and what it says. Nothing is called.

use std::io::Write;

use mission_contract::event::Arguments;
use mission_contract::vocabulary::exit;
use serde::Serialize;
use serde_json::Value;

use super::arguments::PolicyArguments;
use super::environment::{Environment, Stated};
use super::error::{CliError, quoted};
use super::governing::{self, Governance};
use super::run::Exit;
use crate::engine::words::RESULT_TOOL;
use crate::policy::{Authority, BY_CATALOGUE, Effect, Grants, Judgement, Policy};
use crate::stream::console::visible::one_line as harmless;

/// What is said of a call.
#[derive(Serialize)]
struct Explained {
    tool: String,
    effect: &'static str,
    rule: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    profile: String,
    granted: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    action: Option<String>,
    scopes: Vec<String>,
    missing_scopes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<String>,
    /// Every rule of the file that holds, the one that decides first.
    rules: Vec<Holding>,
}

#[derive(Serialize)]
struct Holding {
    id: String,
    effect: &'static str,
    line: u64,
}

/// Explains what happens to a call. The exit status is 0 whatever that is.
///
/// # Errors
/// Words that it does not take; arguments that are none; a profile, a scope or a policy file that is none.
pub(super) fn policy(arguments: &PolicyArguments, environment: &Environment, out: &mut dyn Write) -> Result<Exit, CliError> {
    match arguments.words.iter().map(|word| word.trim()).collect::<Vec<_>>().as_slice() {
        ["explain"] => {}
        [] => return Err(CliError::Usage("`mission policy` needs a word: explain".to_owned())),
        words => {
            let word = quoted(&words.join(" "));
            return Err(CliError::Usage(format!("{word} is nothing that `mission policy` does; it does explain")));
        }
    }
    let tool = Stated::flag("--tool", arguments.tool.as_deref());
    let tool =
        tool.ok_or_else(|| CliError::Usage("`mission policy explain` needs a tool; name it with --tool mcp.NAME".to_owned()))?;
    let called = called(arguments.args.as_deref())?;
    let governance = governing::resolve(&arguments.flags, environment)?;
    let explained = explain(tool.value.trim(), &called, &governance)?;
    let text = if arguments.json {
        serde_json::to_string(&explained).unwrap_or_default() + "\n"
    } else {
        as_text(&explained, governance.policy.as_ref().map(|policy| policy.file.as_str()))
    };
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(CliError::Output)?;
    Ok(Exit::Code(exit::FINE))
}

fn called(typed: Option<&str>) -> Result<Arguments, CliError> {
    let Some(stated) = Stated::flag("--args", typed) else { return Ok(Arguments::new()) };
    let canonical = mission_contract::canonical::from_raw(&stated.value)
        .map_err(|problem| stated.refuse(format!("these are no arguments: {}", problem.problem)))?;
    match canonical.value {
        Value::Object(arguments) => Ok(arguments),
        _ => Err(stated.refuse("arguments are one JSON object; give one like {\"path\": \"/srv/x\"}")),
    }
}

fn explain(tool: &str, called: &Arguments, governance: &Governance) -> Result<Explained, CliError> {
    let Governance { profile, grants, policy, .. } = governance;
    let parsed = policy.as_ref().map(Policy::parse).transpose()?;
    let authority = Authority::new(Grants::new(profile, grants), parsed);
    let (server, name) = tool.split_once('.').unwrap_or(("", tool));
    let is_ours = tool == RESULT_TOOL;
    let judged = match is_ours {
        true => Judgement { rule: BY_CATALOGUE.to_owned(), ..Judgement::default() },
        false => authority.judge(server, name, called, false),
    };
    let reason = match judged.effect {
        Effect::Deny if !judged.missing.is_empty() => Some(authority.refusal(tool, &judged.missing)),
        _ if is_ours => Some("The program answers it itself; no rule is about it.".to_owned()),
        _ => judged.reason,
    };
    let holding = authority.policy().filter(|_| !is_ours).map_or_else(Vec::new, |policy| policy.matching(tool, called));
    let rules = holding.into_iter().map(|matched| Holding {
        id: matched.rule.to_owned(),
        effect: matched.effect.word(),
        line: matched.line.unwrap_or_default(),
    });
    Ok(Explained {
        tool: tool.to_owned(),
        effect: judged.effect.word(),
        rule: judged.rule,
        reason,
        profile: profile.clone(),
        granted: grants.clone(),
        action: judged.needs.action,
        scopes: judged.needs.scopes,
        missing_scopes: judged.missing,
        policy: policy.as_ref().map(|policy| policy.digest.clone()),
        rules: rules.collect(),
    })
}

fn as_text(explained: &Explained, file: Option<&str>) -> String {
    let Explained { effect, rule, reason, profile, granted, scopes, rules, .. } = explained;
    let place = rules.iter().find(|holding| holding.id == *rule).zip(file);
    let place = place.map_or_else(String::new, |(holding, file)| format!(" ({}, line {})", harmless(file), holding.line));
    let mut text = format!("{effect} {} by rule {rule}{place}\n", harmless(&explained.tool));
    if let Some(reason) = reason {
        text.push_str(&format!("  {}\n", harmless(reason)));
    }
    for holding in rules.iter().filter(|holding| holding.id != *rule) {
        text.push_str(&format!("  {} {} holds too (line {})\n", holding.effect, holding.id, holding.line));
    }
    let needs = if scopes.is_empty() { "nothing".to_owned() } else { scopes.join(", ") };
    let besides = if granted.is_empty() { String::new() } else { format!(", granted besides: {}", granted.join(", ")) };
    text.push_str(&format!("  it needs {needs}; the profile is {profile}{besides}\n"));
    text
}
