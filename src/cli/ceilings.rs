//! How far a run may go, as it is asked for: and how much further, where it is taken up again.

use std::collections::BTreeMap;

use mission_contract::spec::{Limits, Pricing, Supervision};
use serde_json::{Value, json};

use super::arguments::LimitFlags;
use super::environment::{Environment, Stated};
use super::error::{CliError, quoted};
use super::prices::{Prices, micros};
use crate::engine::run::{CHANGED_BYTES, CHANGED_COST, CHANGED_SECONDS, CHANGED_STEPS, CHANGED_TOKENS, Run};
use crate::limits;

/// Refuses a limit on money where the model has no price.
///
/// # Errors
/// That.
pub(super) fn check_price(limits: &Limits, prices: &Prices, provider: &str, model: &str) -> Result<Option<Pricing>, CliError> {
    let pricing = prices.of(provider, Some(model));
    if limits.cost_micros.is_some() && pricing.is_none() {
        return Err(no_price(&format!("the model {} of the provider {provider}", quoted(model))));
    }
    Ok(pricing)
}

fn no_price(whose: &str) -> CliError {
    CliError::Refused(format!(
        "--max-cost: {whose} has no price; give it one under `pricing` in .mission/config.yaml (prompt_per_1k, completion_per_1k), or \
         leave the limit out"
    ))
}

/// Reads the limits.
///
/// # Errors
/// What is no number.
pub(super) fn resolve(flags: &LimitFlags, environment: &Environment) -> Result<Limits, CliError> {
    let cost = Stated::flag("--max-cost", flags.max_cost.as_deref());
    let seconds = Stated::either("--mission-seconds", flags.mission_seconds.as_deref(), environment, "MISSION_SECONDS");
    Ok(Limits {
        steps: whole("--mission-steps", flags.mission_steps.as_deref())?,
        seconds: seconds.map(|stated| self::seconds(&stated)).transpose()?.flatten(),
        tokens: whole("--max-tokens-total", flags.max_tokens_total.as_deref())?,
        bytes: whole("--max-bytes", flags.max_bytes.as_deref())?,
        cost_micros: cost.map(|stated| money(&stated)).transpose()?,
    })
}

/// The limits of a later stretch. What is stated is that much further than what was spent; the rest is as it was.
///
/// # Errors
/// As [`resolve`].
pub(super) fn further(flags: &LimitFlags, run: &Run, changed: &mut BTreeMap<String, Value>) -> Result<Limits, CliError> {
    let spec = &run.open().spec;
    // A variable is for new runs.
    let stated = resolve(flags, &Environment::new())?;
    if stated.cost_micros.is_some() && spec.pricing.is_none() {
        return Err(no_price("the model of the run"));
    }
    let mut limits = spec.limits.clone();
    let is = |place: &'static str, value: &Option<String>| Stated::flag(place, value.as_deref()).is_some();
    let (tokens, bytes, cost) = run.spent();
    let mut go_on = |name: &str, given: bool, further: Option<u64>, spent: u64, limit: &mut Option<u64>| {
        if given {
            *limit = further.map(|further| further.saturating_add(spent));
            changed.insert(name.to_owned(), json!(limit.unwrap_or(0)));
        }
    };
    go_on(CHANGED_STEPS, is("--mission-steps", &flags.mission_steps), stated.steps, run.steps_begun(), &mut limits.steps);
    go_on(CHANGED_TOKENS, is("--max-tokens-total", &flags.max_tokens_total), stated.tokens, tokens, &mut limits.tokens);
    go_on(CHANGED_BYTES, is("--max-bytes", &flags.max_bytes), stated.bytes, bytes, &mut limits.bytes);
    go_on(CHANGED_COST, is("--max-cost", &flags.max_cost), stated.cost_micros, cost, &mut limits.cost_micros);
    if is("--mission-seconds", &flags.mission_seconds) {
        limits.seconds = stated.seconds.map(|seconds| seconds + run.seconds_spent());
        changed.insert(CHANGED_SECONDS.to_owned(), json!(limits.seconds));
    }
    Ok(limits)
}

/// What watches over the progress.
///
/// # Errors
/// A word that is none.
pub(super) fn supervisor(flags: &LimitFlags) -> Result<Supervision, CliError> {
    let Some(stated) = Stated::flag("--supervisor", flags.supervisor.as_deref()) else { return Ok(Supervision::On) };
    match stated.value.trim().to_lowercase().as_str() {
        "off" => Ok(Supervision::Off),
        "warn" => Ok(Supervision::Warn),
        "on" => Ok(Supervision::On),
        _ => Err(stated.refuse("that is no such word; say off, warn or on")),
    }
}

/// Zero and less are no ceiling.
fn whole(place: &'static str, value: Option<&str>) -> Result<Option<u64>, CliError> {
    let Some(stated) = Stated::flag(place, value) else { return Ok(None) };
    let number = stated.value.trim().parse::<i64>();
    let number = number.map_err(|_| stated.refuse("that is no whole number; give one like 20, or 0 for no ceiling"))?;
    Ok(u64::try_from(number).ok().filter(|number| *number > 0))
}

/// A variable that is no time, or none above zero, is no ceiling; a flag is taken at its word.
fn seconds(stated: &Stated) -> Result<Option<f64>, CliError> {
    let seconds = stated.value.trim().parse::<f64>().ok().filter(|seconds| seconds.is_finite());
    if stated.place != "--mission-seconds" {
        return Ok(seconds.filter(|seconds| *seconds > 0.0));
    }
    let most = limits::MISSION_SECONDS_MOST;
    let seconds = seconds.filter(|seconds| *seconds <= most as f64);
    let seconds =
        seconds.ok_or_else(|| stated.refuse(format!("that is no number of seconds up to {most}; give one like 600")))?;
    Ok(Some(seconds.max(0.0)))
}

fn money(stated: &Stated) -> Result<u64, CliError> {
    let amount = stated.value.trim().parse::<f64>().ok().and_then(micros).filter(|micros| *micros > 0);
    amount.ok_or_else(|| stated.refuse(format!("that is no amount above 0 and up to {}; give one like 0.50", limits::MONEY_MOST)))
}
