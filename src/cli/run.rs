//! A mission: everything is opened here, in the order in which it can be refused, and handed to the driver.

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mission_contract::LOG_FORMAT;
use mission_contract::log::{Observed, Open, ServerCondition};
use mission_contract::spec::{PromptText, ServerSpec, Spec, Texts};
use mission_contract::vocabulary::exit;
use tokio::sync::mpsc;

use super::configuration::RunConfiguration;
use super::environment::Environment;
use super::error::CliError;
use crate::driver::{self, Ended, Opening, Parts};
use crate::engine::delivery::EventSink;
use crate::engine::texts;
use crate::engine::words::RESULT_TOOL;
use crate::journal::{RunLog, RunStore};
use crate::redact::Redactor;
use crate::stream::console::{Console, Look};
use crate::stream::diagnostics;
use crate::stream::sink::LineSink;
use crate::sys::clock::{Clock, SystemClock};
use crate::sys::descriptors::{Inherited, Output};
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

/// Carries out a mission.
///
/// # Errors
/// Whatever is refused at the door: nothing has been written then, and no record has gone out.
pub fn run(configuration: RunConfiguration, environment: &Environment, inherited: &mut Inherited) -> Result<Done, CliError> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
    let redactor = Arc::new(Redactor::from_environment(configuration.servers.secrets())?);
    let directory = std::env::current_dir().map_err(|error| CliError::no_directory(&error))?;
    let store = RunStore::of(configuration.runs.as_ref().map(|stated| stated.value.as_str()), &directory);
    store.check()?;
    let events = configuration.events.as_ref().map(|stated| inherited.output(stated.place, &stated.value)).transpose()?;
    say_faults(&redactor);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| CliError::system("a runtime", &error))?;
    let opened = Opened { clock, redactor, store, events };
    let exit = runtime.block_on(mission(configuration, environment, opened));
    // A name that is still being looked up holds a thread for as long as it likes.
    runtime.shutdown_background();
    exit
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
    events: Option<Output>,
}

async fn mission(configuration: RunConfiguration, environment: &Environment, opened: Opened) -> Result<Done, CliError> {
    let Opened { clock, redactor, store, events } = opened;
    let mut signals = EndSignals::catch().map_err(|error| CliError::system("the signals", &error))?;
    let options = PlaneOptions { client_name: configuration.servers.client_name.clone(), ..PlaneOptions::default() };
    let plan = configuration.model.clone();
    let discover = async { tokio::join!(connect(configuration.servers.requests.clone(), options), plan.open()) };
    let ((tools, discovery, reports), model) = tokio::select! {
        both = discover => both,
        signal = signals.first() => return Ok(Done { exit: Exit::Signal(signal), folder: None }),
    };
    let (gone, sink_reports) = mpsc::unbounded_channel();
    // Whatever is refused here: the servers are up already, and are ended in good order.
    let opening = || {
        let model = model?;
        let allowed = close_set(&configuration, &discovery)?;
        let run_id = store.mint(clock.as_ref())?;
        let sinks = sinks(events, gone, &clock, &redactor, environment)?;
        let log = RunLog::create(&store, &run_id, Arc::clone(&clock), sinks)?;
        Ok::<_, CliError>((model, allowed, log))
    };
    let (model, allowed, log) = match opening() {
        Ok(opening) => opening,
        Err(refusal) => {
            tools.close().await;
            return Err(refusal);
        }
    };
    let leg = model.leg();
    let folder = log.folder().map(Path::to_owned);
    let spec = spec(&configuration, allowed, store.is_kept(), &redactor);
    let open = Open {
        format: LOG_FORMAT,
        behaviours: Vec::new(),
        build: env!("CARGO_PKG_VERSION").to_owned(),
        run_id: log.run_id().to_owned(),
        spec,
    };
    let parts = Parts {
        log,
        model: Arc::from(model),
        tools: Arc::new(tools),
        reports,
        sinks: sink_reports,
        redactor: Arc::clone(&redactor),
        clock,
        signals,
        grace: configuration.grace,
    };
    let ended = driver::drive(Opening { open, leg, discovery, observed: Vec::new() }, parts).await;
    Ok(Done { exit: exit_of(&ended, &redactor), folder })
}

/// The tools that the skill allows, by their full names. A required server that is away ends the run by itself, and refuses nothing here.
fn close_set(configuration: &RunConfiguration, discovery: &Discovery) -> Result<Option<Vec<String>>, CliError> {
    let Some(skill) = &configuration.skill else { return Ok(None) };
    if discovery.servers.iter().any(|server| server.state == ServerCondition::Failed && !server.optional) {
        return Ok(Some(Vec::new()));
    }
    // What the engine answers itself is always on offer: a manifest may name it, and need not.
    let results = std::iter::once(RESULT_TOOL.to_owned());
    let offered: Vec<String> = discovery.tools.iter().map(|tool| tool.full_name()).chain(results).collect();
    let mut allowed = skill.close(&offered)?;
    allowed.retain(|name| name != RESULT_TOOL);
    Ok(Some(allowed))
}

/// Where the records of this command line go.
pub(super) fn sinks(
    events: Option<Output>,
    gone: mpsc::UnboundedSender<Observed>,
    clock: &Arc<dyn Clock>,
    redactor: &Arc<Redactor>,
    environment: &Environment,
) -> Result<Vec<Box<dyn EventSink>>, CliError> {
    let mut sinks: Vec<Box<dyn EventSink>> = Vec::new();
    let quiet = events.as_ref().is_some_and(|output| output.standard);
    if let Some(output) = events {
        let redactor = Arc::clone(redactor);
        let sink = LineSink::start(output, move |away| {
            if !away.by_reader {
                diagnostics::say(&redactor, &format!("{away}."));
            }
            let observed = Observed { what: "reader_gone".to_owned(), detail: away.to_string(), ..Observed::default() };
            // The run may be over by then.
            let _ = gone.send(observed);
        });
        sinks.push(Box::new(sink.map_err(|error| CliError::system("a thread", &error))?));
    }
    if !quiet && let Ok(out) = std::io::stdout().as_fd().try_clone_to_owned() {
        let look = Look::of(&out, |name| environment.get(name).cloned());
        sinks.push(Box::new(
            Console::start(out, look, Arc::clone(clock), Arc::clone(redactor))
                .map_err(|error| CliError::system("a thread", &error))?,
        ));
    }
    Ok(sinks)
}

fn spec(configuration: &RunConfiguration, allowed_tools: Option<Vec<String>>, recorded: bool, redactor: &Redactor) -> Spec {
    let skill = configuration.skill.as_ref();
    Spec {
        objective: configuration.objective.clone(),
        protocol: configuration.protocol,
        texts: Texts {
            persona: text(texts::PERSONA),
            skill: text(&skill.map(|skill| skill.prompt()).unwrap_or_default()),
            protocol: text(texts::protocol(configuration.protocol)),
            conduct: text(texts::CONDUCT),
            history: Vec::new(),
        },
        sampling: configuration.sampling.clone(),
        provider: configuration.model.provider.to_owned(),
        model: configuration.model.model.clone(),
        base_url: configuration.model.base_url.clone(),
        stream: configuration.stream,
        limits: configuration.limits.clone(),
        skill: skill.map(|skill| skill.reference()),
        allowed_tools,
        profile: Some(configuration.profile.to_owned()),
        sandbox: Some("none".to_owned()),
        servers: configuration.servers.requests.iter().map(|request| server_spec(request, redactor)).collect(),
        recorded,
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
            spec.argv = argv.iter().map(|word| redactor.text(word).into_owned()).collect();
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
fn exit_of(ended: &Ended, redactor: &Redactor) -> Exit {
    for (sink, left) in &ended.given_up {
        diagnostics::say(redactor, &format!("The reader of {sink} took nothing any more; {left} records were not given to it."));
    }
    if let Some(failed) = &ended.journal {
        diagnostics::say(redactor, &failed.to_string());
        return Exit::Code(exit::JOURNAL_FAILED);
    }
    let failure = ended.internal.as_ref().or_else(|| ended.ending.as_ref().and_then(|ending| ending.failure.as_ref()));
    if let Some(failure) = failure {
        diagnostics::say(redactor, failure);
    }
    match (ended.signal, failure) {
        (Some(signal), _) => Exit::Signal(signal),
        (None, Some(_)) => Exit::Code(exit::FAILED),
        (None, None) => Exit::Code(exit::FINE),
    }
}
