//! `mission runs follow RUN`: the records of a run as they become durable, until the run ends.

use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd;
use std::time::Duration;

use mission_contract::log::{Entry, Line};
use mission_contract::vocabulary::exit;

use super::{Runs, number};
use crate::cli::arguments::{FollowArguments, RunsVerb};
use crate::cli::environment::Stated;
use crate::cli::error::CliError;
use crate::cli::run::Exit;
use crate::journal::{LogReader, RunPlace};
use crate::limits;
use crate::sys::lock::Look;
use crate::sys::watch::{Watch, Woken};

/// How the record that ends a run begins.
const ENDING: &str = "{\"event\":\"mission_finished\"";

/// Prints the wire lines of a run, those of a run that goes on as they come.
///
/// # Errors
/// When the log is damaged, the run was killed, or nobody reads.
pub fn follow(runs: &Runs, arguments: &FollowArguments, out: &mut dyn Write) -> Result<Exit, CliError> {
    let from = Stated::flag("--from", arguments.from.as_deref()).map(|stated| number(&stated)).transpose()?;
    let place = runs.named(RunsVerb::Follow, arguments.run.as_deref())?;
    let mut follower = Follower {
        reader: place.reader()?,
        out: BufWriter::with_capacity(limits::size(limits::SINK_WRITE_BYTES), out),
        from: from.unwrap_or_default(),
        envelope: arguments.envelope,
        durable: 0,
        ended: false,
    };
    let watched = place.folder.as_ref().map(|folder| folder.join("lock"));
    let watch = Watch::on([place.log.as_path()].into_iter().chain(watched.as_deref()));
    let mut woken = Woken::Nothing;
    loop {
        // Looked at first: what a process wrote before it let go of the run is read afterwards.
        let look = place.look().map_err(|error| CliError::system("a look at the run's lock", &error))?;
        let before = follower.reader.tail().bytes;
        follower.catch_up()?;
        if follower.is_over(&look) {
            break;
        }
        let grew = follower.reader.tail().bytes > before;
        // Whoever closes a run lets go of it a moment later.
        let pause = if woken == Woken::Changed && !grew { limits::FOLLOW_SETTLE_MS } else { limits::FOLLOW_LOOK_MS };
        woken = watch
            .wait(io::stdout().as_fd(), Duration::from_millis(pause))
            .map_err(|error| CliError::system("a wait for the log", &error))?;
        if woken == Woken::ReaderGone {
            return Err(CliError::Output(io::ErrorKind::BrokenPipe.into()));
        }
    }
    follower.said(&place)
}

struct Follower<'o> {
    reader: LogReader,
    out: BufWriter<&'o mut dyn Write>,
    /// The first line whose record is printed.
    from: u64,
    envelope: bool,
    /// Bytes of the log that are known to be durable.
    durable: u64,
    /// The last line is the end of a stretch.
    ended: bool,
}

impl Follower<'_> {
    /// Prints what is there by now.
    fn catch_up(&mut self) -> Result<(), CliError> {
        self.reader.again();
        while let Some(line) = self.reader.next().transpose()? {
            self.ended = false;
            let Entry::Record(record) = &line.entry else { continue };
            self.ended = record.get().starts_with(ENDING);
            if line.seq >= self.from {
                self.make_durable()?;
                self.print(&line, record.get()).map_err(CliError::Output)?;
            }
        }
        self.out.flush().map_err(CliError::Output)
    }

    /// What stands in the log is shown only once no crash can take it back. Its writer is about to see to that, or has.
    fn make_durable(&mut self) -> Result<(), CliError> {
        if self.reader.tail().bytes > self.durable {
            self.durable = self.reader.sync()?;
        }
        Ok(())
    }

    fn print(&mut self, line: &Line, record: &str) -> io::Result<()> {
        if !self.envelope {
            return writeln!(self.out, "{record}");
        }
        writeln!(self.out, "{{\"seq\":{},\"at\":\"{}\",\"record\":{record}}}", line.seq, line.at)
    }

    /// Whether nothing more comes: nobody holds the run, or whoever does has written its end.
    fn is_over(&self, look: &Look) -> bool {
        match look {
            Look::Free => true,
            Look::Held(holder) => self.ended && holder.as_ref().is_some_and(|holder| holder.epoch <= self.reader.tail().epoch),
        }
    }

    /// How following ended.
    fn said(&self, place: &RunPlace) -> Result<Exit, CliError> {
        if self.ended {
            return Ok(Exit::Code(exit::FINE));
        }
        let (name, seq) = (&place.name, self.reader.tail().seq);
        Err(CliError::Failed(match place.log.exists() {
            true => {
                format!("{name} has not come to its end and no process writes it: it was stopped after line {seq} of its log")
            }
            false => format!("{name} was removed while it was followed; line {seq} was the last that was read"),
        }))
    }
}
