//! Which calls of a run need a person: the names are held against what is offered, an approval that was given before against its call.

use std::time::Duration;

use mission_contract::digest::{call_digest, definition_digest};
use mission_contract::log::{Observed, ToolDefinition};
use mission_contract::spec::{ApprovedCall, GateRule, Spec};
use serde_json::Value;

use super::arguments::GateFlags;
use super::environment::{Environment, Stated};
use super::error::{CliError, quoted};
use crate::approvals::{Answer, Approvals, Kind, Standing};
use crate::limits;
use crate::policy::{Effect, Policy};
use crate::skill::same_tool;
use crate::sys::clock::Clock;

/// What was said about gates, not held against anything yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GatePlan {
    /// Names of tools, as given.
    pub tools: Vec<String>,
    /// Rules.
    pub rules: Vec<GateRule>,
    /// How long the run waits at a gate; not at all where nobody said so.
    pub wait: Option<Duration>,
    /// Nobody said so: the run can be spoken to.
    pub is_wait_implied: bool,
    /// Waiting is no time of the run.
    pub is_free: bool,
    /// How long an approval can be decided and spent.
    pub expiry: Option<Duration>,
    /// The approved call that the run may make.
    pub approval: Option<Stated>,
}

/// Reads the flags about gates and their variables. A run that can be spoken to waits by itself, where nobody says how long.
///
/// # Errors
/// A word that is none, a time that is none.
pub fn resolve(flags: &GateFlags, has_control: bool, environment: &Environment) -> Result<GatePlan, CliError> {
    let wait = Stated::either("--gate-wait", flags.gate_wait.as_deref(), environment, "MISSION_GATE_WAIT");
    let is_free = match Stated::flag("--gate-time", flags.gate_time.as_deref()) {
        None => false,
        Some(stated) if stated.value.trim().eq_ignore_ascii_case("free") => true,
        Some(stated) => return Err(stated.refuse("that is no such word; say free, or leave it out to have waiting counted")),
    };
    let expiry = Stated::flag("--gate-expires", flags.gate_expires.as_deref());
    Ok(GatePlan {
        tools: names(&flags.gate_tool),
        rules: rules(&flags.gate)?,
        is_wait_implied: wait.is_none() && has_control,
        wait: match wait {
            Some(stated) => Some(waiting(&stated)?).filter(|wait| !wait.is_zero()),
            None => has_control.then(|| Duration::from_secs(limits::GATE_WAIT_SECONDS)),
        },
        is_free,
        expiry: expiry.map(|stated| seconds(&stated)).transpose()?,
        approval: Stated::either("--approval", flags.approval.as_deref(), environment, "MISSION_APPROVAL"),
    })
}

/// The values of a flag that may be given again and again.
pub(super) fn names(values: &[String]) -> Vec<String> {
    values.iter().map(|value| value.trim().to_owned()).filter(|value| !value.is_empty()).collect()
}

/// The rules of `--gate`.
pub(super) fn rules(words: &[String]) -> Result<Vec<GateRule>, CliError> {
    let rule = |word: String| match word.to_lowercase().as_str() {
        "destructive" => Ok(GateRule::Destructive),
        "open-world" => Ok(GateRule::OpenWorld),
        "all-writes" => Ok(GateRule::AllWrites),
        _ => Err(CliError::value("--gate", &word, "that is no rule; say destructive, open-world or all-writes")),
    };
    names(words).into_iter().map(rule).collect()
}

/// The tools that are meant, in the order of the offer.
pub(super) fn resolved(tools: &[String], offered: &[String]) -> Result<Vec<String>, CliError> {
    let meant = tools.iter().map(|name| the_one(name, offered)).collect::<Result<Vec<_>, _>>()?;
    Ok(offered.iter().filter(|name| meant.contains(name)).cloned().collect())
}

/// What is no time in the variable is the default; typed it is refused.
fn waiting(stated: &Stated) -> Result<Duration, CliError> {
    match seconds(stated) {
        Err(_) if stated.place != "--gate-wait" => Ok(Duration::from_secs(limits::GATE_WAIT_SECONDS)),
        time => time,
    }
}

fn seconds(stated: &Stated) -> Result<Duration, CliError> {
    let most = Duration::from_secs(limits::GATE_WAIT_SECONDS_MOST);
    let time = stated.value.trim().parse::<f64>().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    time.filter(|time| *time <= most)
        .ok_or_else(|| stated.refuse(format!("that is no time between 0 and {} seconds", limits::GATE_WAIT_SECONDS_MOST)))
}

impl GatePlan {
    /// Writes into a run's specification what needs a person, where its tools are not known: the run ends before it begins, and whoever
    /// carries it on is held to the same.
    pub fn keep(&self, spec: &mut Spec, approvals: &Approvals) {
        spec.gates.clone_from(&self.tools);
        spec.gates_as_given = !self.tools.is_empty();
        self.note(spec, approvals);
    }

    fn note(&self, spec: &mut Spec, approvals: &Approvals) {
        spec.gate_rules.clone_from(&self.rules);
        // Where approvals are not kept nobody can decide: only who says so waits.
        spec.gate_wait_ms = self.wait.filter(|_| approvals.is_kept() || !self.is_wait_implied).map(milliseconds);
        spec.gate_time_free = self.is_free;
    }

    /// Writes into a run's specification what needs a person, once its tools are known. `offered` are those that the run offers.
    ///
    /// # Errors
    /// A name that means no tool or two of them; an approval that is none, or of another call than the tools offer now.
    pub fn close(
        &self,
        spec: &mut Spec,
        offered: &[&ToolDefinition],
        approvals: &Approvals,
        clock: &dyn Clock,
    ) -> Result<Option<Observed>, CliError> {
        let names: Vec<String> = offered.iter().map(|tool| tool.full_name()).collect();
        spec.gates = resolved(&self.tools, &names)?;
        self.note(spec, approvals);
        let Some(stated) = &self.approval else { return Ok(None) };
        let approved = approved(stated, offered, approvals, clock)?;
        let by_policy = spec.policy.as_ref().and_then(|policy| Policy::parse(policy).ok());
        let by_policy = by_policy.is_some_and(|policy| policy.ruling(&approved.tool, &approved.arguments).effect == Effect::Gate);
        let is_gated = spec.gates.contains(&approved.tool) || !spec.gate_rules.is_empty() || by_policy;
        let detail = format!("The tool {} needs no approval in this run: {} is not spent.", approved.tool, approved.approval_id);
        spec.approval = Some(approved);
        Ok((!is_gated).then(|| Observed { what: "approval_not_needed".to_owned(), detail, ..Observed::default() }))
    }
}

/// A time as the log has it.
pub fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn the_one(name: &str, offered: &[String]) -> Result<String, CliError> {
    if offered.iter().any(|tool| tool == name) {
        return Ok(name.to_owned());
    }
    let meant: Vec<&String> = offered.iter().filter(|tool| same_tool(name, tool)).collect();
    let listed = |names: &[&String]| {
        let most = limits::size(limits::NAMES_LISTED);
        let rest = names.len().saturating_sub(most);
        let shown = names.iter().take(most).map(|name| name.as_str()).collect::<Vec<_>>().join(", ");
        if rest == 0 { shown } else { format!("{shown} and {rest} more") }
    };
    match meant.as_slice() {
        [one] => Ok((*one).clone()),
        [] if offered.is_empty() => Err(CliError::value("--gate-tool", name, "no tool is offered; give a server that offers it")),
        [] => {
            let all: Vec<&String> = offered.iter().collect();
            Err(CliError::value("--gate-tool", name, format!("no tool of that name is offered; there are {}", listed(&all))))
        }
        several => {
            Err(CliError::value("--gate-tool", name, format!("that may be {}; name one of them in full", listed(several))))
        }
    }
}

fn approved(
    stated: &Stated,
    offered: &[&ToolDefinition],
    approvals: &Approvals,
    clock: &dyn Clock,
) -> Result<ApprovedCall, CliError> {
    let id = stated.value.trim();
    let (record, standing) = approvals.look(id, clock).map_err(|error| stated.refuse(error.to_string()))?;
    let problem = match (record.kind, &standing) {
        (Kind::Gate, Standing::Decided(Answer::Approve)) => None,
        (Kind::Reconcile, _) => Some(format!("it asks what became of a call; resume its run {}", record.run_id)),
        (_, Standing::Pending) => Some(format!("it is pending; approve it with mission approvals approve {id} --by WHO")),
        (_, Standing::Unsigned(why)) => Some(format!("its decision does not count, because {why}")),
        (_, Standing::Decided(answer)) => Some(format!("{} said {}", record.decided_by, answer.word())),
        (_, Standing::Spent(_, spent)) => Some(format!("it was spent by run {} already; an approval is for one call", spent.run)),
        (_, Standing::Expired) => Some("its time is over".to_owned()),
        (_, Standing::Abandoned) => Some("its run ended for good".to_owned()),
    };
    if let Some(problem) = problem {
        return Err(stated.refuse(problem));
    }
    let Some(tool) = offered.iter().find(|tool| tool.full_name() == record.tool) else {
        return Err(stated.refuse(format!("it is for the tool {}, which this run does not offer", quoted(&record.tool))));
    };
    let arguments = mission_contract::canonical::of_value(&Value::from(record.arguments.clone()));
    if call_digest(&record.tool, &definition_digest(tool), &arguments) != record.digest {
        return Err(
            stated.refuse(format!("the tool {} is not defined as it was when the call was approved", quoted(&record.tool)))
        );
    }
    Ok(ApprovedCall { approval_id: record.approval_id, tool: record.tool, arguments: record.arguments, digest: record.digest })
}
