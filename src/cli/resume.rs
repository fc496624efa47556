//! A run that is taken up: its log is read, what the command line repeats is held against it, and what is missing comes from it.

use std::collections::BTreeMap;
use std::time::Duration;

use mission_contract::event::Outcome;
use mission_contract::log::{Decision, Entry, Observed, Writer};
use mission_contract::spec::{Protocol, ServerSpec, Spec};
use serde_json::{Value, json};

use super::arguments::{GateFlags, ModelFlags, RunArguments};
use super::closing::Closing;
use super::configuration::{self, RunConfiguration};
use super::environment::{Environment, Stated};
use super::error::{CliError, quoted};
use super::gates::{self, GatePlan};
use super::governing;
use super::personality::Personality;
use super::same_texts;
use super::servers::{self, Servers};
use super::speaking;
use super::{ceilings, hiding};
use crate::audit::Place;
use crate::driver::{Known, Taken};
use crate::engine::behaviours;
use crate::engine::fold::{Fold, Folded};
use crate::engine::run::{CHANGED_GATE_WAIT, is_resumable};
use crate::journal::{HeldRun, RunStore, Tail};
use crate::redact::Redactor;
use crate::skill::same_tool;
use crate::sys::lock::host_name;
use crate::tools::address::Address;
use crate::tools::mcp::{Reach, ServerRequest};

/// A run that this process holds, as its log leaves it.
pub(super) struct Held {
    pub(super) held: HeldRun,
    pub(super) tail: Tail,
    pub(super) folded: Folded,
    known: Known,
    /// Replies that the model gave so far.
    replies: u64,
}

impl Held {
    /// Takes a run's lock and reads its log.
    ///
    /// # Errors
    /// When there is no such run, somebody else holds it, or its log is damaged or not one of this build.
    pub(super) fn take(store: &RunStore, stated: &Stated) -> Result<Self, CliError> {
        Self::of(store, stated.value.trim()).map_err(|error| match error {
            CliError::Refused(sentence) => CliError::Refused(format!("{}: {sentence}", stated.place)),
            error => error,
        })
    }

    /// The same for a run that nobody named.
    ///
    /// # Errors
    /// The same.
    pub(super) fn of(store: &RunStore, run_id: &str) -> Result<Self, CliError> {
        let held = store.hold(run_id)?;
        let mut reader = held.reader().map_err(|error| CliError::Refused(error.to_string()))?;
        let mut fold = Fold::default();
        let mut known = Known::default();
        let mut replies = 0_u64;
        for line in &mut reader {
            let line = line.map_err(|error| CliError::Refused(error.to_string()))?;
            match &line.entry {
                Entry::Open(open) => {
                    if let Some(flag) = behaviours::unknown(&open.behaviours) {
                        return Err(CliError::Refused(format!(
                            "run {run_id} follows rule {flag}, which mission {} does not know; resume it with mission {} or later",
                            env!("CARGO_PKG_VERSION"),
                            open.build
                        )));
                    }
                }
                Entry::Catalogue(catalogue) => known.note(catalogue),
                Entry::Reply(_) => replies = replies.saturating_add(1),
                _ => {}
            }
            fold.line(line.seq, line.ms, &line.entry).map_err(|error| {
                let build = env!("CARGO_PKG_VERSION");
                CliError::Refused(format!(
                    "line {} of the log of run {run_id}: {error}; mission {build} cannot carry it on",
                    line.seq
                ))
            })?;
        }
        let tail = reader.into_tail().map_err(|error| CliError::Refused(error.to_string()))?;
        Ok(Self { held, tail, folded: fold.finish(), known, replies })
    }

    /// What was asked.
    pub(super) fn spec(&self) -> &Spec {
        &self.folded.run.open().spec
    }

    /// How the run ended for good, with nothing left to tell or to write.
    pub(super) fn over(&self) -> Option<Outcome> {
        self.folded.run.outcome().filter(|outcome| !is_resumable(*outcome) && self.folded.lost.is_empty())
    }

    /// Whether somebody is asked or called: not where only the telling of its end was lost, nor while a person has to decide.
    fn goes_on(&self, decision: Option<&Decision>, changed: &BTreeMap<String, Value>) -> bool {
        let run = &self.folded.run;
        let waits_here = match changed.get(CHANGED_GATE_WAIT) {
            Some(wait) => wait.as_u64().is_some_and(|wait| wait > 0),
            None => run.open().spec.gate_wait_ms.is_some(),
        };
        run.outcome().is_none_or(is_resumable) && (waits_here || decision.is_some() || run.awaits().is_none())
    }

    /// As the driver takes it up.
    pub(super) fn into_taken(self, changed: BTreeMap<String, Value>, decision: Option<Decision>) -> (HeldRun, Tail, Taken) {
        let writer = Writer {
            epoch: self.tail.epoch.saturating_add(1),
            pid: std::process::id(),
            host: host_name(),
            build: env!("CARGO_PKG_VERSION").to_owned(),
            changed,
        };
        (self.held, self.tail, Taken { folded: self.folded, writer, known: self.known, decision })
    }
}

/// The configuration of a stretch that takes a run up, and what it changes.
pub(super) struct Resumed {
    pub(super) configuration: RunConfiguration,
    /// Name → new value, for the `writer` line.
    pub(super) changed: BTreeMap<String, Value>,
}

/// Holds a command line against the run that it takes up.
///
/// # Errors
/// What differs from what the run was asked, both values named; and what only the command line can give and does not.
pub(super) fn resolve(
    arguments: RunArguments,
    environment: &Environment,
    held: &Held,
    decision: Option<&Decision>,
) -> Result<Resumed, CliError> {
    let RunArguments { objective, flags, later } = arguments;
    configuration::refuse_later(&later, environment)?;
    let spec = held.spec();
    agrees("the objective", objective.as_deref().filter(|text| !text.trim().is_empty()), &spec.objective)?;
    same_model(&flags.model, held)?;
    let personality = Personality::of(flags.conversation.personality.as_deref(), environment)?;
    same_texts::check(&flags, environment, personality.as_ref(), spec)?;
    let mut changed = BTreeMap::new();
    let given = servers::resolve(&flags.tools.servers, environment)?;
    let typed = !(flags.tools.servers.mcp_stdio.is_empty() && flags.tools.servers.mcp_url.is_empty());
    let servers = same_servers(given, typed, spec, environment, &mut changed)?;
    let trusted = flags.tools.trust_annotations.iter().map(|name| name.trim()).filter(|name| !name.is_empty());
    for name in trusted {
        if !spec.trusted.iter().any(|known| known == name) {
            return Err(differs("--trust-annotations", name, &spec.trusted.join(", ")));
        }
    }
    let speaking = speaking::resolve(&flags.streams, environment)?;
    let gates = same_gates(&flags.gates, speaking.control.is_some(), environment, spec, &mut changed)?;
    let limits = ceilings::further(&flags.limits, &held.folded.run, &mut changed)?;
    let (spent, run) = (held.folded.run.seconds_spent(), held.held.run_id());
    if let (Some(seconds), true) = (limits.seconds, decision.is_some())
        && seconds <= spent
    {
        // A decision would be spent on a call that cannot be made any more.
        return Err(CliError::Refused(format!(
            "run {run} has used up its {seconds} s and cannot act on what was decided; give it more with --mission-seconds SECONDS"
        )));
    }
    if let Some(stated) = Stated::flag("--supervisor", flags.limits.supervisor.as_deref()) {
        let given = ceilings::supervisor(&flags.limits)?;
        if given != spec.supervisor {
            return Err(differs("--supervisor", &stated.value, &format!("{:?}", spec.supervisor).to_lowercase()));
        }
    }
    let mut governance = governing::same(&flags.policy, environment, spec, &mut changed)?;
    {}
    let mut variables = environment.clone();
    if let Some(base) = &spec.base_url {
        let ours = Stated::variable(environment, "LOCAL_API_BASE");
        if ours.is_none() {
            variables.insert("LOCAL_API_BASE".to_owned(), base.clone());
        }
    }
    let choice = ModelFlags {
        provider: Some(spec.provider.clone()),
        model: spec.model.clone().or_else(|| Some(held.folded.run.leg().model.clone()).filter(|model| !model.is_empty())),
        script: flags.model.script.clone(),
        ..ModelFlags::default()
    };
    // Where nobody is asked and nothing is called, nothing has to be there.
    let goes_on = held.goes_on(decision, &changed);
    if !goes_on {
        governance.audit = Place::Nowhere;
    }
    let servers = if goes_on { servers } else { Servers { requests: Vec::new(), ..servers } };
    let model = match goes_on {
        true => Some(
            configuration::model(&choice, &variables, personality.as_ref())?
                .behind(held.replies, spec.protocol == Protocol::Native),
        ),
        false => None,
    };
    let now = model.as_ref().and_then(|model| model.base_url.as_ref());
    if let (Some(now), Some(before)) = (now, &spec.base_url)
        && now != before
    {
        changed.insert("base_url".to_owned(), json!(now));
    }
    if flags.streams.redact_evidence && !spec.redact_evidence {
        changed.insert("redact_evidence".to_owned(), json!(true));
    }
    let configuration = RunConfiguration {
        objective: spec.objective.clone(),
        protocol: spec.protocol,
        sampling: spec.sampling.clone(),
        model,
        stream: spec.stream,
        limits,
        prices: super::prices::Prices::default(),
        supervisor: spec.supervisor,
        personality,
        history: Vec::new(),
        closing: Closing::default(),
        trusted: spec.trusted.clone(),
        gates,
        servers,
        events: configuration::events(&flags.streams, environment),
        // What began so stays so.
        redact_evidence: spec.redact_evidence || flags.streams.redact_evidence,
        speaking,
        runs: configuration::runs(environment),
        grace: configuration::grace(&flags.limits)?,
        governance,
        colours: Stated::variable(environment, "NO_COLOR").is_none(),
    };
    Ok(Resumed { configuration, changed })
}

/// A run that has come to its end is not carried on.
pub(super) fn is_over(held: &Held, outcome: Outcome) -> CliError {
    CliError::Refused(format!(
        "run {} ended `{}`, and there is nothing to carry on; begin a new run, perhaps with what it answered as its history",
        held.held.run_id(),
        outcome.word()
    ))
}

/// What is told of a torn tail, which is moved aside.
pub(super) fn torn(tail: &Tail) -> Option<Observed> {
    let torn = tail.torn.as_ref()?;
    let next = tail.seq.saturating_add(1);
    let detail = format!(
        "The log ended in {} bytes that were not written whole ({}); they were moved to log.torn-{next}, and the run goes on behind line {}.",
        torn.bytes, torn.problem, tail.seq
    );
    Some(Observed { what: "torn_tail".to_owned(), detail, ..Observed::default() })
}

pub(super) fn differs(place: &str, given: &str, recorded: &str) -> CliError {
    CliError::Refused(format!(
        "{place} is {} here and {} in the run; leave it out to carry the run on, or begin a new one",
        quoted(given),
        quoted(recorded)
    ))
}

pub(super) fn agrees(place: &str, given: Option<&str>, recorded: &str) -> Result<(), CliError> {
    match given {
        Some(given) if given != recorded => Err(differs(place, given, recorded)),
        _ => Ok(()),
    }
}

/// What the command line says of the model is what the run began with.
fn same_model(flags: &ModelFlags, held: &Held) -> Result<(), CliError> {
    let spec = held.spec();
    let word =
        |place, value: &Option<String>| Stated::flag(place, value.as_deref()).map(|stated| stated.value.trim().to_lowercase());
    agrees("--provider", word("--provider", &flags.provider).as_deref(), &spec.provider)?;
    let protocol = if spec.protocol == Protocol::Native { "native" } else { "json" };
    agrees("--protocol", word("--protocol", &flags.protocol).as_deref(), protocol)?;
    let recorded = spec.model.as_deref().unwrap_or(&held.folded.run.leg().model);
    let model = Stated::flag("--model", flags.model.as_deref()).map(|stated| stated.value.trim().to_owned());
    if !recorded.is_empty() {
        agrees("--model", model.as_deref(), recorded)?;
    }
    let sampling = configuration::sampling(flags)?;
    let shown = |number: Option<f64>| number.map(|number| number.to_string());
    let unset = || "not set".to_owned();
    for (place, given, recorded) in [
        ("--temperature", shown(sampling.temperature), shown(spec.sampling.temperature)),
        ("--top-p", shown(sampling.top_p), shown(spec.sampling.top_p)),
        ("--seed", sampling.seed.map(|seed| seed.to_string()), spec.sampling.seed.map(|seed| seed.to_string())),
        ("--no-stream", flags.no_stream.then(|| "set".to_owned()), (!spec.stream).then(|| "set".to_owned())),
    ] {
        agrees(place, given.as_deref(), &recorded.unwrap_or_else(unset))?;
    }
    Ok(())
}

/// What the command line says of gates is what the run began with; how long it waits may be another time.
fn same_gates(
    flags: &GateFlags,
    has_control: bool,
    environment: &Environment,
    spec: &Spec,
    changed: &mut BTreeMap<String, Value>,
) -> Result<GatePlan, CliError> {
    let mut plan = gates::resolve(flags, has_control, environment)?;
    if let Some(name) = plan.tools.iter().find(|name| !spec.gates.iter().any(|gate| same_tool(name, gate))) {
        return Err(differs("--gate-tool", name, &spec.gates.join(", ")));
    }
    if plan.rules.iter().any(|rule| !spec.gate_rules.contains(rule)) {
        return Err(differs("--gate", &flags.gate.join(", "), &format!("{:?}", spec.gate_rules)));
    }
    if plan.is_free && !spec.gate_time_free {
        return Err(differs("--gate-time", "free", "counted"));
    }
    // A variable is for new runs.
    if let Some(stated) = Stated::flag("--approval", flags.approval.as_deref()) {
        let recorded = spec.approval.as_ref().map_or("none", |approved| approved.approval_id.as_str());
        agrees("--approval", Some(stated.value.trim()), recorded)?;
    }
    plan.approval = None;
    let wait = plan.wait.map(gates::milliseconds);
    let is_new = plan.is_wait_implied && spec.gate_wait_ms.is_none() && !spec.approvals_off;
    if is_new || (flags.gate_wait.is_some() && wait != spec.gate_wait_ms) {
        changed.insert(CHANGED_GATE_WAIT.to_owned(), json!(wait.unwrap_or(0)));
    }
    Ok(plan)
}

/// The servers of the run, as its log keeps them; those of which something was masked as they are given again.
fn same_servers(
    given: Servers,
    typed: bool,
    spec: &Spec,
    environment: &Environment,
    changed: &mut BTreeMap<String, Value>,
) -> Result<Servers, CliError> {
    let Servers { requests: mut given, client_name, timeout } = given;
    if let Some(stranger) = given.iter().find(|request| typed && !spec.servers.iter().any(|server| server.name == request.name)) {
        let names: Vec<&str> = spec.servers.iter().map(|server| server.name.as_str()).collect();
        return Err(CliError::Refused(format!(
            "the run has no tool server {}; it has {}",
            quoted(&stranger.name),
            if names.is_empty() { "none".to_owned() } else { names.join(", ") }
        )));
    }
    let redactor = hiding::redactor_with(Servers { requests: given.clone(), client_name: String::new(), timeout }.secrets())?;
    let mut requests = Vec::new();
    for server in &spec.servers {
        let position = given.iter().position(|request| request.name == server.name && (typed || server.masked));
        requests.push(match position {
            Some(position) => {
                let request = ServerRequest { optional: server.optional, ..given.swap_remove(position) };
                same_server(&request, server, &redactor, environment, changed)?;
                request
            }
            None if server.masked => {
                let flag = if server.transport == "http" { "--mcp-url and --mcp-token" } else { "--mcp-stdio" };
                return Err(CliError::Refused(format!(
                    "the tool server {} was given a credential, which no log keeps; give it again with {flag} {}=…",
                    quoted(&server.name),
                    server.name
                )));
            }
            None => recorded_server(server, timeout, environment)?,
        });
    }
    Ok(Servers { requests, client_name, timeout })
}

/// A server that is given again is the one of the run; only an address may be another one.
fn same_server(
    request: &ServerRequest,
    server: &ServerSpec,
    redactor: &Redactor,
    environment: &Environment,
    changed: &mut BTreeMap<String, Value>,
) -> Result<(), CliError> {
    let place = format!("the tool server {}", server.name);
    agrees(&format!("the transport of {place}"), Some(request.reach.transport()), &server.transport)?;
    match &request.reach {
        Reach::Stdio { argv, passes } => {
            let shown = redactor.words(argv);
            agrees(&format!("the command of {place}"), Some(&shown.join(" ")), &server.argv.join(" "))?;
            // Variables that are not passed again are those of the run.
            if !passes.is_empty() && *passes != server.passes {
                let names = |passes: &BTreeMap<String, String>| passes.keys().cloned().collect::<Vec<_>>().join(", ");
                return Err(differs(&format!("what --mcp-env passes to {place}"), &names(passes), &names(&server.passes)));
            }
            unset_variable(server, environment)
        }
        Reach::Http { address, .. } => {
            let shown = redactor.text(&address.masked()).into_owned();
            if server.url.as_deref() != Some(&shown) {
                changed.insert(format!("url of {}", server.name), json!(shown));
            }
            Ok(())
        }
    }
}

fn unset_variable(server: &ServerSpec, environment: &Environment) -> Result<(), CliError> {
    match server.passes.values().find(|name| !environment.contains_key(*name)) {
        None => Ok(()),
        Some(unset) => Err(CliError::Refused(format!(
            "the tool server {} of the run is passed the variable {unset}, which is not set here; set it",
            quoted(&server.name)
        ))),
    }
}

/// A server as the log keeps it.
fn recorded_server(server: &ServerSpec, timeout: Duration, environment: &Environment) -> Result<ServerRequest, CliError> {
    unset_variable(server, environment)?;
    let reach = match &server.url {
        None => Reach::Stdio { argv: server.argv.clone(), passes: server.passes.clone() },
        Some(url) => {
            let address = Address::parse(url).map_err(|problem| {
                CliError::Refused(format!("the address of the tool server {} in the log: {problem}", server.name))
            })?;
            Reach::Http { address, token: None }
        }
    };
    Ok(ServerRequest {
        name: server.name.clone(),
        reach,
        optional: server.optional,
        timeout,
        call_limit: Duration::from_secs(crate::limits::MCP_CALL_SECONDS),
    })
}
