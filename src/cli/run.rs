//! A mission: everything is opened here, in the order in which it can be refused, and handed to the driver.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use mission_contract::LOG_FORMAT;
use mission_contract::event::Outcome;
use mission_contract::log::{Open, ToolDefinition};
use mission_contract::spec::{PromptText, ServerSpec, Spec, Texts};
use mission_contract::vocabulary::exit;
use serde_json::Value;
use tokio::sync::mpsc;

use super::arguments::RunArguments;
use super::awaited::{self, Waiting};
use super::ceilings;
use super::configuration::{self, RunConfiguration};
use super::discover::is_short;
use super::environment::{Environment, Stated};
use super::error::CliError;
use super::orphans::{self, Closer};
use super::resume::{self, Held};
use super::{approvals, closing, governing, hiding, retell, sinks, speaking};
use crate::approvals::Approvals;
use crate::audit::AuditFile;
use crate::driver::{self, Auditing, Beginning, Desk, Ended, Opening, Parts};
use crate::engine::behaviours;
use crate::engine::texts;
use crate::journal::{RunLog, RunStore, is_run_id};
use crate::model::ModelBackend;
use crate::redact::Redactor;
use crate::stream::diagnostics;
use crate::sys::clock::{Clock, SystemClock};
use crate::sys::descriptors::{Inherited, Output};
use crate::sys::inputs::Input;
use crate::sys::signals::{EndSignal, EndSignals};
use crate::tools::mcp::{PlaneOptions, Reach, ServerRequest, connect};
use crate::tools::{Discovery, ToolPlane};

/// How the process is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// With a code.
    Code(u8),
    /// By the signal that wound the run up.
    Signal(EndSignal),
}

/// A run that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// How the process is to end.
    pub exit: Exit,
    /// Where the run lies, when it was kept.
    pub folder: Option<PathBuf>,
}

/// Carries out a mission: a new one, or one that is taken up.
///
/// # Errors
/// Whatever is refused at the door: nothing has been written then, and no record has gone out.
pub fn run(arguments: RunArguments, environment: &Environment, inherited: &mut Inherited) -> Result<Done, CliError> {
    let carry = Carry::of(&arguments, environment)?;
    let directory = std::env::current_dir().map_err(|error| CliError::no_directory(&error))?;
    let approvals = approvals::opened(environment, &directory);
    let runs = configuration::runs(environment);
    let store = RunStore::of(runs.as_ref().map(|stated| stated.value.as_str()), &directory);
    let held = match &carry {
        Carry::Begin => None,
        Carry::Resume(stated) => Some(Held::take(&store, stated)?),
        Carry::Either(stated) if store.holds(stated.value.trim())? => Some(Held::take(&store, stated)?),
        Carry::Either(_) => None,
    };
    let (configuration, stretch) = match (held, carry) {
        (None, carry) => {
            let run_id = carry.run_id();
            let configuration = configuration::resolve(arguments, environment)?;
            store.check()?;
            (configuration, Stretch::First { run_id })
        }
        (Some(held), carry) => match (held.over(), carry) {
            (Some(outcome), Carry::Either(_)) => {
                let streams = &arguments.flags.streams;
                let told = speaking::resolve(streams, environment)?.tells_outcome.then_some(outcome);
                let events = configuration::events(streams, environment);
                // A process that was killed when all was written left the mark of a run that goes on.
                store.unmark(&held.held);
                return retell::retell(&held, told, events, environment, inherited);
            }
            (Some(outcome), _) => return Err(resume::is_over(&held, outcome)),
            (None, _) => {
                let waiting = awaited::waiting(&held, &approvals)?;
                let resumed = resume::resolve(arguments, environment, &held, waiting.decision.as_ref())?;
                (resumed.configuration, Stretch::Later(Box::new(Later { held, changed: resumed.changed, waiting })))
            }
        },
    };
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::from(stretch.ms()));
    hiding::add(configuration.secrets());
    let redactor = Arc::new(hiding::redactor()?.as_ref().clone().with_evidence(configuration.redact_evidence));
    let events = configuration.events.as_ref().map(|stated| inherited.output(stated.place, &stated.value)).transpose()?;
    let control = configuration.speaking.control.as_ref();
    let control = control.map(|stated| inherited.input(stated.place, &stated.value)).transpose()?;
    say_faults(&redactor);
    hiding::say_too_short(&redactor);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| CliError::system("a runtime", &error))?;
    let opened = Opened { clock, redactor, store, approvals, events, control };
    let exit = runtime.block_on(mission(configuration, stretch, environment, opened));
    // A name that is still being looked up holds a thread for as long as it likes.
    runtime.shutdown_background();
    exit
}

/// Which run a command line is about.
enum Carry {
    /// A new one.
    Begin,
    /// One that is there.
    Resume(Stated),
    /// One that may be there.
    Either(Stated),
}

impl Carry {
    fn of(arguments: &RunArguments, environment: &Environment) -> Result<Self, CliError> {
        let flags = &arguments.flags.carry;
        let run_id = Stated::flag("--run-id", flags.run_id.as_deref());
        let typed = Stated::flag("--resume", flags.resume.as_deref());
        if flags.start_or_resume {
            if typed.is_some() {
                let sentence =
                    "--start-or-resume and --resume say two things; give --start-or-resume with --run-id, or --resume alone";
                return Err(CliError::Refused(sentence.to_owned()));
            }
            let stated = run_id.ok_or_else(|| {
                CliError::Refused("--start-or-resume needs to know which run; name it with --run-id run_NAME".to_owned())
            })?;
            if !is_run_id(stated.value.trim()) {
                return Err(stated.refuse(
                    "that is no run id; give `run_` with up to 32 letters and digits, and as many again behind a hyphen",
                ));
            }
            return Ok(Carry::Either(stated));
        }
        if let Some(stated) = run_id {
            return Err(stated.refuse("a run id is only given with --start-or-resume; leave it out for a new one"));
        }
        Ok(match typed.or_else(|| Stated::variable(environment, "MISSION_RESUME")) {
            Some(stated) => Carry::Resume(stated),
            None => Carry::Begin,
        })
    }

    fn run_id(self) -> Option<String> {
        match self {
            Carry::Begin => None,
            Carry::Resume(stated) | Carry::Either(stated) => Some(stated.value.trim().to_owned()),
        }
    }
}

/// The stretch of a run that begins now.
enum Stretch {
    /// The first one, of a run with a certain id or any.
    First { run_id: Option<String> },
    /// A later one.
    Later(Box<Later>),
}

/// A run that is taken up.
struct Later {
    held: Held,
    changed: BTreeMap<String, Value>,
    waiting: Waiting,
}

impl Stretch {
    /// Work time of the run so far, in milliseconds.
    fn ms(&self) -> u64 {
        match self {
            Stretch::First { .. } => 0,
            Stretch::Later(later) => later.held.tail.ms,
        }
    }
}

/// From here on a fault inside is a diagnostic like any other: redacted, and one sentence.
pub(super) fn say_faults(redactor: &Arc<Redactor>) {
    let redactor = Arc::clone(redactor);
    std::panic::set_hook(Box::new(move |fault| {
        let place = fault.location().map_or_else(|| "an unknown place".to_owned(), ToString::to_string);
        let words = fault.payload_as_str().unwrap_or("no words");
        diagnostics::say(&redactor, &format!("A fault at {place}: {words}"));
    }));
}

/// What was opened at the door.
struct Opened {
    clock: Arc<dyn Clock>,
    redactor: Arc<Redactor>,
    store: RunStore,
    approvals: Approvals,
    events: Option<Output>,
    control: Option<Input>,
}

async fn mission(
    configuration: RunConfiguration,
    stretch: Stretch,
    environment: &Environment,
    opened: Opened,
) -> Result<Done, CliError> {
    let Opened { clock, redactor, store, approvals, events, control } = opened;
    let mut signals = EndSignals::catch().map_err(|error| CliError::system("the signals", &error))?;
    let options = PlaneOptions { client_name: configuration.servers.client_name.clone(), ..PlaneOptions::default() };
    let plan = configuration.model.clone();
    let model = async {
        match plan {
            Some(plan) => plan.open().await.map(Some),
            None => Ok(None),
        }
    };
    // From here on somebody listens: what is said before the run has begun waits for that, but who ends it waits a moment only.
    let outside = speaking::outside(control, &configuration.speaking, &redactor);
    let discover = async { tokio::join!(connect(in_time(&configuration), options), model) };
    let ((tools, discovery, reports), model) = tokio::select! {
        both = discover => both,
        signal = signals.first() => return Ok(Done { exit: Exit::Signal(signal), folder: None }),
        () = outside.cancelled() => {
            diagnostics::say(&redactor, "The run was cancelled before it began: nothing was asked, called or written.");
            let code = if configuration.speaking.tells_outcome { exit::of_outcome(Outcome::Incomplete, true) } else { exit::FINE };
            return Ok(Done { exit: Exit::Code(code), folder: None });
        }
    };
    let (gone, sink_reports) = mpsc::unbounded_channel();
    let mut observed = Vec::new();
    let (witness, begins) = orphans::witness();
    // Whatever is refused here: the servers are up already, and are ended in good order.
    let opening = || {
        let model: Option<Arc<dyn ModelBackend>> = model?.map(Arc::from);
        let leg = model.as_ref().map(|model| model.leg());
        let mut sinks = sinks::sinks(events, configuration.speaking.ends_with_reader, gone, &clock, &redactor, environment)?;
        sinks.push(witness);
        let (beginning, leg, log, audit) = match stretch {
            Stretch::First { run_id } => {
                let (provider, name) = leg.as_ref().map(|leg| (leg.provider.as_str(), leg.model.as_str())).unwrap_or_default();
                let pricing = ceilings::check_price(&configuration.limits, &configuration.prices, provider, name)?;
                let mut spec =
                    Spec { pricing, approvals_off: !approvals.is_kept(), ..spec(&configuration, store.is_kept(), &redactor) };
                observed.extend(configuration.closing.close(&mut spec, &discovery)?);
                configuration.governance.write(&mut spec);
                if is_short(&discovery) {
                    configuration.gates.keep(&mut spec, &approvals);
                } else {
                    let offered = offered(&spec, &discovery);
                    observed.extend(configuration.gates.close(&mut spec, &offered, &approvals, &*clock)?);
                }
                let audit = configuration.governance.audit(&clock)?;
                spec.audit_ref = governing::audit_ref(audit.as_ref());
                let log = match run_id {
                    Some(run_id) => RunLog::create_exactly(&store, &run_id, Arc::clone(&clock), sinks),
                    None => {
                        let run_id = store.mint(clock.as_ref());
                        run_id.and_then(|run_id| RunLog::create(&store, &run_id, Arc::clone(&clock), sinks))
                    }
                };
                let (log, audit) = match (log, audit) {
                    (Ok(log), audit) => (log, audit),
                    (Err(error), audit) => {
                        audit.into_iter().for_each(AuditFile::discard);
                        return Err(error.into());
                    }
                };
                let open = Open {
                    format: LOG_FORMAT,
                    behaviours: behaviours::of(&spec),
                    build: env!("CARGO_PKG_VERSION").to_owned(),
                    run_id: log.run_id().to_owned(),
                    spec,
                };
                (Beginning::Fresh(Box::new(open)), leg, log, audit)
            }
            Stretch::Later(later) => {
                let Later { held, changed, waiting } = *later;
                let audit = configuration.governance.audit(&clock)?;
                let leg = leg.filter(|leg| leg != held.folded.run.leg());
                closing::still_locked(&held.folded.run, &discovery)?;
                observed.extend(waiting.observed);
                if let Some((id, spent, digest)) = &waiting.spend {
                    let spent = approvals.spend(id, spent, digest, clock.as_ref());
                    spent.map_err(|error| CliError::Refused(error.to_string()))?;
                }
                let (held, tail, taken) = held.into_taken(changed, waiting.decision);
                observed.extend(resume::torn(&tail));
                let log = RunLog::reopen(held, &tail, Arc::clone(&clock), sinks)?;
                (Beginning::Taken(Box::new(taken)), leg, log, audit)
            }
        };
        Ok::<_, CliError>((model, beginning, leg, log, audit))
    };
    let (model, beginning, leg, log, audit) = match opening() {
        Ok(opening) => opening,
        Err(refusal) => {
            tools.close().await;
            return Err(refusal);
        }
    };
    let folder = log.folder().map(Path::to_owned);
    let closer = Closer::start(&store, log.run_id(), &redactor, begins);
    let run_id = log.run_id().to_owned();
    let parts = Parts {
        log,
        model,
        tools: Arc::new(tools),
        reports,
        sinks: sink_reports,
        redactor: Arc::clone(&redactor),
        clock: Arc::clone(&clock),
        signals,
        grace: configuration.grace,
        desk: Desk {
            approvals,
            objective: redactor.text(&configuration.objective).into_owned(),
            run_id: run_id.clone(),
            expiry: configuration.gates.expiry,
            redactor: Arc::clone(&redactor),
            clock,
        },
        outside,
        auditing: Auditing { file: audit, run_id, profile: configuration.governance.profile.clone() },
    };
    let ended = driver::drive(Opening { beginning, leg, discovery, observed }, parts).await;
    if let Some(closer) = closer {
        closer.end();
    }
    Ok(Done { exit: exit_of(&ended, configuration.speaking.tells_outcome, &redactor), folder })
}

/// The servers: none is waited for longer than the run may last, and a second.
fn in_time(configuration: &RunConfiguration) -> Vec<ServerRequest> {
    let mut requests = configuration.servers.requests.clone();
    let most = configuration.limits.seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    if let Some(most) = most {
        requests.iter_mut().for_each(|request| request.timeout = request.timeout.min(most.max(Duration::from_secs(1))));
    }
    requests
}

/// The tools that a run offers.
fn offered<'d>(spec: &Spec, discovery: &'d Discovery) -> Vec<&'d ToolDefinition> {
    match &spec.allowed_tools {
        Some(allowed) => {
            let of = |name: &String| discovery.tools.iter().find(|tool| tool.full_name() == *name);
            allowed.iter().filter_map(of).collect()
        }
        None => discovery.tools.iter().collect(),
    }
}

fn spec(configuration: &RunConfiguration, recorded: bool, redactor: &Redactor) -> Spec {
    let skill = configuration.closing.skill.as_ref();
    let personality = configuration.personality.as_ref();
    let model = configuration.model.as_ref();
    Spec {
        objective: configuration.objective.clone(),
        protocol: configuration.protocol,
        texts: Texts {
            persona: text(personality.map_or(texts::PERSONA, |personality| personality.system_message.trim())),
            skill: text(&skill.map(|skill| skill.prompt()).unwrap_or_default()),
            protocol: text(texts::protocol(configuration.protocol)),
            conduct: text(texts::CONDUCT),
            history: configuration.history.clone(),
        },
        sampling: configuration.sampling.clone(),
        provider: model.map(|model| model.provider.to_owned()).unwrap_or_default(),
        model: model.and_then(|model| model.model.clone()),
        base_url: model.and_then(|model| model.base_url.clone()),
        stream: configuration.stream,
        limits: configuration.limits.clone(),
        supervisor: configuration.supervisor,
        skill: skill.map(|skill| skill.reference()),
        trusted: configuration.trusted.clone(),
        sandbox: Some("none".to_owned()),
        servers: configuration.servers.requests.iter().map(|request| server_spec(request, redactor)).collect(),
        redact_evidence: configuration.redact_evidence,
        recorded,
        control: configuration.speaking.control.is_some(),
        ..Spec::default()
    }
}

fn text(text: &str) -> PromptText {
    PromptText::of(text)
}

fn server_spec(request: &ServerRequest, redactor: &Redactor) -> ServerSpec {
    let mut spec = ServerSpec {
        name: request.name.clone(),
        transport: request.reach.transport().to_owned(),
        argv: Vec::new(),
        url: None,
        masked: false,
        passes: BTreeMap::new(),
        optional: request.optional,
    };
    match &request.reach {
        Reach::Stdio { argv, passes } => {
            spec.argv = redactor.words(argv);
            spec.masked = spec.argv != *argv;
            spec.passes.clone_from(passes);
        }
        Reach::Http { address, token } => {
            let masked = address.masked();
            let shown = redactor.text(&masked).into_owned();
            // A token is given again with its URL.
            spec.masked = token.is_some() || address.is_masked() || shown != masked;
            spec.url = Some(shown);
        }
    }
    spec
}

/// What the process says on stderr, and how it ends.
fn exit_of(ended: &Ended, tells_outcome: bool, redactor: &Redactor) -> Exit {
    for (sink, left) in &ended.given_up {
        diagnostics::say(redactor, &format!("The reader of {sink} took nothing any more; {left} records were not given to it."));
    }
    if let Some(failed) = &ended.journal {
        diagnostics::say(redactor, &failed.to_string());
        return Exit::Code(exit::JOURNAL_FAILED);
    }
    let failure = ended
        .internal
        .as_ref()
        .or(ended.audit.as_ref())
        .or_else(|| ended.ending.as_ref().and_then(|ending| ending.failure.as_ref()));
    if let Some(failure) = failure {
        diagnostics::say(redactor, failure);
    }
    match (ended.signal, failure) {
        (Some(signal), _) => Exit::Signal(signal),
        (None, _) if tells_outcome && ended.internal.is_none() => {
            Exit::Code(speaking::status_of(ended.ending.as_ref(), ended.cancelled))
        }
        (None, Some(_)) => Exit::Code(exit::FAILED),
        (None, None) => Exit::Code(exit::FINE),
    }
}
