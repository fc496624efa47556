//! Where the records of a run go: the stream that was asked for, and the console for people.

use std::os::fd::AsFd;
use std::sync::Arc;

use mission_contract::log::Observed;
use tokio::sync::mpsc;

use super::environment::Environment;
use super::error::CliError;
use crate::engine::delivery::EventSink;
use crate::redact::Redactor;
use crate::stream::console::{Console, Look};
use crate::stream::diagnostics;
use crate::stream::sink::LineSink;
use crate::sys::clock::Clock;
use crate::sys::descriptors::Output;
use crate::sys::inputs::is_gone;

/// Opens them. A reader that goes away is reported to `gone`; at once and whatever is written, where the run ends with it.
///
/// # Errors
/// When the system gives no thread.
pub(super) fn sinks(
    events: Option<Output>,
    ends_with_reader: bool,
    gone: mpsc::UnboundedSender<Observed>,
    clock: &Arc<dyn Clock>,
    redactor: &Arc<Redactor>,
    environment: &Environment,
) -> Result<Vec<Box<dyn EventSink>>, CliError> {
    let mut sinks: Vec<Box<dyn EventSink>> = Vec::new();
    let quiet = events.as_ref().is_some_and(|output| output.standard);
    if let Some(output) = events {
        let redactor = Arc::clone(redactor);
        let what_next = if ends_with_reader { "the run ends" } else { "the run goes on without it" };
        if ends_with_reader {
            watch(&output, gone.clone())?;
        }
        let sink = LineSink::start(output, move |away| {
            let detail = format!("{away}; {what_next}");
            if !away.by_reader {
                diagnostics::say(&redactor, &format!("{detail}."));
            }
            let observed = Observed { what: "reader_gone".to_owned(), detail, ..Observed::default() };
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

/// Tells of a reader that goes away while nothing is written. One that cannot be watched is missed at the next record.
fn watch(output: &Output, gone: mpsc::UnboundedSender<Observed>) -> Result<(), CliError> {
    let Ok(descriptor) = output.descriptor.try_clone() else { return Ok(()) };
    let name = output.name.clone();
    let watch = move || {
        if is_gone(descriptor.as_fd()) {
            let detail = format!("the event stream on {name} ended early: its reader went away; the run ends");
            // The run may be over by then.
            let _ = gone.send(Observed { what: "reader_gone".to_owned(), detail, ..Observed::default() });
        }
    };
    std::thread::Builder::new().name("reader".to_owned()).spawn(watch).map_err(|error| CliError::system("a thread", &error))?;
    Ok(())
}
