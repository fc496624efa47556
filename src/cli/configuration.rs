//! The configuration of a run: what the flags and the variables mean together, and the files that they name.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use mission_contract::spec::{HistoryTurn, Limits, Protocol, Sampling, Supervision};

use super::arguments::{Asked, LimitFlags, ModelFlags, RunArguments, StreamFlags};
use super::closing::Closing;
use super::environment::{self, Environment, Stated};
use super::error::CliError;
use super::gates::{self, GatePlan};
use super::governing::{self, Governance};
use super::personality::Personality;
use super::servers::{self, Servers};
use super::speaking::{self, Speaking};
use super::{ceilings, history, prices, skills};
use crate::limits;
use crate::model::settings::{self, ModelChoice, ModelPlan};

/// Everything that is decided about a run before something is opened, started or asked.
#[derive(Clone, Debug)]
pub struct RunConfiguration {
    /// What it is to do, verbatim.
    pub objective: String,
    /// How the model is spoken to.
    pub protocol: Protocol,
    /// Sampling values; what is absent is not sent.
    pub sampling: Sampling,
    /// Who is asked; holds credentials. Nobody, where a run that is taken up needs no model.
    pub model: Option<ModelPlan>,
    /// Whether replies are streamed.
    pub stream: bool,
    /// How far it may go.
    pub limits: Limits,
    /// Who the model is.
    pub personality: Option<Personality>,
    /// Earlier turns.
    pub history: Vec<HistoryTurn>,
    /// What closes the set of tools.
    pub closing: Closing,
    /// The tool servers, and what they are told about us.
    pub servers: Servers,
    /// Servers whose word about their tools counts.
    pub trusted: Vec<String>,
    /// What models cost, where that is known.
    pub prices: prices::Prices,
    /// What watches over the progress.
    pub supervisor: Supervision,
    /// Which calls need a person.
    pub gates: GatePlan,
    /// Where the records go, not looked at yet: `-`, `fd:N` or a path, and the flag or variable that says so.
    pub events: Option<Stated>,
    /// How it is spoken to.
    pub speaking: Speaking,
    /// Whether outputs and arguments of tools are redacted too.
    pub redact_evidence: bool,
    /// Where runs are kept, a folder, or `none` or `off`; absent for the usual place.
    pub runs: Option<Stated>,
    /// How long what is in flight may resist when the run ends.
    pub grace: Duration,
    /// What may be called.
    pub governance: Governance,
    /// False when `NO_COLOR` forbids colours.
    pub colours: bool,
}

impl RunConfiguration {
    /// The credentials that were given to it, each with the name that stands in its place.
    pub(super) fn secrets(&self) -> Vec<(String, String)> {
        let personality = self.personality.as_ref().map(Personality::secrets).unwrap_or_default();
        self.servers.secrets().into_iter().chain(personality).collect()
    }
}

/// Resolves a command line: flags beat variables, variables beat defaults, blanks are unset. Reads the skill and looks for a
/// configuration below the working directory; nothing else is read, opened or started.
///
/// # Errors
/// Whatever is refused at the door and can be told without opening something.
pub fn resolve(arguments: RunArguments, environment: &Environment) -> Result<RunConfiguration, CliError> {
    let RunArguments { objective, flags, later } = arguments;
    refuse_later(&later, environment)?;
    let objective = check_objective(objective)?;
    let protocol = protocol(&flags.model, environment)?;
    let sampling = sampling(&flags.model)?;
    let speaking = speaking::resolve(&flags.streams, environment)?;
    let gates = gates::resolve(&flags.gates, speaking.control.is_some(), environment)?;
    let grace = grace(&flags.limits)?;
    let governance = governing::resolve(&flags.policy, environment)?;
    let servers = servers::resolve(&flags.tools.servers, environment)?;
    let stream = !flags.model.no_stream
        && !Stated::variable(environment, "MISSION_STREAM").is_some_and(|stated| environment::is_off(&stated.value));
    let limits = ceilings::resolve(&flags.limits, environment)?;
    let supervisor = ceilings::supervisor(&flags.limits)?;
    let prices = prices::read(Path::new(""), environment)?;
    let skill = Stated::either("--skill", flags.tools.skill.as_deref(), environment, "MISSION_SKILL");
    let skill = skill.map(|stated| skills::read(&stated)).transpose()?;
    let closing = Closing::of(skill, flags.skill.locked, flags.skill.tool_limit.as_deref(), flags.skill.no_grounding)?;
    let personality = Personality::of(flags.conversation.personality.as_deref(), environment)?;
    let model = model(&flags.model, environment, personality.as_ref())?;
    // Which one it is, where nobody named it, its server says.
    if let Some(name) = &model.model {
        ceilings::check_price(&limits, &prices, model.provider, name)?;
    }
    Ok(RunConfiguration {
        objective,
        protocol,
        sampling,
        model: Some(model),
        history: history::of(flags.conversation.history.as_deref(), environment)?,
        personality,
        stream,
        limits,
        prices,
        supervisor,
        closing,
        trusted: trusted(&flags.tools.trust_annotations, &servers)?,
        gates,
        speaking,
        servers,
        events: events(&flags.streams, environment),
        redact_evidence: flags.streams.redact_evidence,
        runs: runs(environment),
        grace,
        governance,
        colours: Stated::variable(environment, "NO_COLOR").is_none(),
    })
}

/// Where the records go.
pub(super) fn events(flags: &StreamFlags, environment: &Environment) -> Option<Stated> {
    Stated::either("--events", flags.events.as_deref(), environment, "MISSION_EVENTS")
}

/// Where runs are kept.
pub(super) fn runs(environment: &Environment) -> Option<Stated> {
    Stated::variable(environment, "MISSION_RUNS")
}

/// Refuses what was asked for and has not landed, flags first.
pub(super) fn refuse_later(later: &[Asked], environment: &Environment) -> Result<(), CliError> {
    refuse_flags(later)?;
    let beaten: Vec<&str> = later.iter().filter_map(|asked| asked.flag.env).collect();
    environment::refuse_later(environment, &beaten)
}

/// Refuses flags that were typed and have not landed.
pub(super) fn refuse_flags(later: &[Asked]) -> Result<(), CliError> {
    for asked in later {
        let Some(wish) = asked.wish() else { continue };
        let flag = asked.flag;
        let what = flag.name.to_owned();
        let default = flag.default;
        let leave = if default.starts_with('(') { "leave it out".to_owned() } else { format!("leave it out, or say {default}") };
        if flag.words.is_empty() && flag.later_words.is_empty() {
            return Err(CliError::NotLanded { what, fix: leave });
        }
        let known = flag.later_words.iter().any(|word| word.eq_ignore_ascii_case(wish.trim()));
        return Err(if known {
            CliError::NotLanded { what: format!("{what} {}", wish.trim()), fix: leave }
        } else {
            CliError::value(what, wish, format!("that is no such word; {leave}"))
        });
    }
    Ok(())
}

pub(super) fn check_objective(objective: Option<String>) -> Result<String, CliError> {
    let objective = objective.filter(|text| !text.trim().is_empty()).ok_or_else(|| {
        CliError::Objective(
            "there is no objective; say what is to be done: mission --mission \"TEXT\" (see mission --help)".to_owned(),
        )
    })?;
    if u64::try_from(objective.len()).unwrap_or(u64::MAX) > limits::OBJECTIVE_BYTES {
        let sentence = format!(
            "the objective is larger than {} bytes; put what is long into a file that a tool can read",
            limits::OBJECTIVE_BYTES
        );
        return Err(CliError::Objective(sentence));
    }
    Ok(objective)
}

pub(super) fn protocol(flags: &ModelFlags, environment: &Environment) -> Result<Protocol, CliError> {
    let Some(stated) = Stated::either("--protocol", flags.protocol.as_deref(), environment, "MISSION_PROTOCOL") else {
        return Ok(Protocol::Json);
    };
    match stated.value.trim().to_lowercase().as_str() {
        "json" => Ok(Protocol::Json),
        "native" => Ok(Protocol::Native),
        _ => Err(stated.refuse("that is no protocol; say json or native")),
    }
}

pub(super) fn sampling(flags: &ModelFlags) -> Result<Sampling, CliError> {
    let number = |place, value: &Option<String>| {
        Stated::flag(place, value.as_deref())
            .map(|stated| {
                let number = stated.value.trim().parse::<f64>().ok().filter(|number| number.is_finite());
                number.ok_or_else(|| stated.refuse("that is no number; give one like 0.7"))
            })
            .transpose()
    };
    let seed = Stated::flag("--seed", flags.seed.as_deref());
    let seed = seed.map(|stated| {
        stated.value.trim().parse::<i64>().map_err(|_| stated.refuse("that is no whole number of 64 bits; give one like 7"))
    });
    Ok(Sampling {
        temperature: number("--temperature", &flags.temperature)?,
        top_p: number("--top-p", &flags.top_p)?,
        seed: seed.transpose()?,
    })
}

/// The servers that are believed: each of them is one of the run's.
fn trusted(names: &[String], servers: &Servers) -> Result<Vec<String>, CliError> {
    let names = names.iter().map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect::<BTreeSet<_>>();
    let known: Vec<&str> = servers.requests.iter().map(|request| request.name.as_str()).collect();
    match names.iter().find(|name| !known.contains(&name.as_str())) {
        None => Ok(names.into_iter().collect()),
        Some(name) => {
            let there = if known.is_empty() { "none is given".to_owned() } else { format!("there are {}", known.join(", ")) };
            Err(CliError::value("--trust-annotations", name, format!("no server has that name; {there}")))
        }
    }
}

pub(super) fn grace(flags: &LimitFlags) -> Result<Duration, CliError> {
    let Some(stated) = Stated::flag("--grace", flags.grace.as_deref()) else {
        return Ok(Duration::from_secs(limits::GRACE_SECONDS));
    };
    let most = Duration::from_secs(limits::GRACE_SECONDS_MOST);
    let grace = stated.value.trim().parse::<f64>().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    grace
        .filter(|grace| *grace <= most)
        .ok_or_else(|| stated.refuse(format!("that is no time between 0 and {} seconds", limits::GRACE_SECONDS_MOST)))
}

pub(super) fn model(
    flags: &ModelFlags,
    environment: &Environment,
    personality: Option<&Personality>,
) -> Result<ModelPlan, CliError> {
    let environment = &personality.map_or_else(|| environment.clone(), |personality| personality.over(environment));
    let provider = Stated::either("--provider", flags.provider.as_deref(), environment, "MISSION_PROVIDER");
    if let Some(stated) = provider.as_ref().filter(|stated| stated.place == "MISSION_PROVIDER") {
        // The model's room knows the flag and seed 2's name; ours is told apart here.
        let landed = ["local", "openai", "scripted"];
        if !landed.contains(&stated.value.trim().to_lowercase().as_str()) {
            return Err(stated.refuse(format!("this build cannot ask that provider; name one of {}", landed.join(", "))));
        }
    }
    let script = Stated::flag("--script", flags.script.as_deref());
    let choice = ModelChoice {
        provider: provider.filter(|stated| stated.place != "ELF_PROVIDER").map(|stated| stated.value),
        model: flags.model.clone(),
        script: script.map(|stated| stated.value.into()),
        personality_provider: personality.and_then(|personality| personality.default_provider.clone()),
        personality_model: personality.and_then(|personality| personality.default_model.clone()),
        environment: environment.clone(),
    };
    Ok(settings::plan(&choice)?)
}

#[cfg(test)]
mod configuration_tests;
