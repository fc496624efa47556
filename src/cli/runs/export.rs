//! `mission runs export RUN`: the records as they went out, or the files that the harness before left in a run's folder.

use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use mission_contract::log::Entry;
use mission_contract::vocabulary::exit;

use super::Runs;
use super::seed2::Seed2;
use crate::cli::arguments::{ExportArguments, RunsVerb};
use crate::cli::environment::Stated;
use crate::cli::error::CliError;
use crate::cli::run::Exit;
use crate::journal::{ReadError, RunPlace};
use crate::limits;
use crate::sys::files::FOLDER_MODE;

/// In what form a run is exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Seed2,
    Ndjson,
}

/// Exports a run: all of it, or nothing is left behind.
///
/// # Errors
/// A format or an output that makes no sense, a log that is damaged, an output that cannot be written.
pub fn export(runs: &Runs, arguments: &ExportArguments, out: &mut dyn Write) -> Result<Exit, CliError> {
    let Some(stated) = Stated::flag("--format", arguments.format.as_deref()) else {
        let sentence = "`mission runs export` needs --format: ndjson for the records as they went out, seed2 for the files of the \
                        harness before";
        return Err(CliError::Usage(sentence.to_owned()));
    };
    let format = match stated.value.trim().to_lowercase().as_str() {
        "seed2" => Format::Seed2,
        "ndjson" => Format::Ndjson,
        _ => return Err(stated.refuse("that is no format; say seed2 or ndjson")),
    };
    let output = Stated::flag("--output", arguments.output.as_deref());
    let place = runs.named(RunsVerb::Export, arguments.run.as_deref())?;
    match (format, output) {
        (Format::Ndjson, Some(output)) if output.value != "-" => to_file(&place, runs, &output)?,
        (Format::Ndjson, _) => records(&place, out)?,
        (Format::Seed2, Some(output)) if output.value == "-" => {
            return Err(output.refuse("that format is a folder of files; name a new folder"));
        }
        (Format::Seed2, output) => to_folder(&place, runs, output)?,
    }
    Ok(Exit::Code(exit::FINE))
}

/// The wire lines of a run, byte for byte.
fn records(place: &RunPlace, out: &mut dyn Write) -> Result<(), CliError> {
    let mut out = BufWriter::with_capacity(limits::size(limits::SINK_WRITE_BYTES), out);
    let mut reader = place.reader()?;
    for line in &mut reader {
        if let Entry::Record(record) = line?.entry {
            out.write_all(record.get().as_bytes()).and_then(|()| out.write_all(b"\n")).map_err(CliError::Output)?;
        }
    }
    if reader.tail().seq == 0 {
        return Err(ReadError::Empty { path: place.log.display().to_string() }.into());
    }
    out.flush().map_err(CliError::Output)
}

fn to_file(place: &RunPlace, runs: &Runs, output: &Stated) -> Result<(), CliError> {
    let mut path = runs.directory.join(&output.value);
    if path.is_dir() {
        path.push(format!("{}.ndjson", name_of(place)));
    }
    let failed = |error: io::Error| output.refuse(problem(&error));
    let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(parent(&path)).map_err(failed)?;
    records(place, file.as_file_mut())?;
    file.as_file().sync_all().map_err(failed)?;
    file.persist_noclobber(&path).map_err(|error| failed(error.error))?;
    Ok(())
}

fn to_folder(place: &RunPlace, runs: &Runs, output: Option<Stated>) -> Result<(), CliError> {
    let output = output.unwrap_or_else(|| Stated { value: name_of(place), place: "--output" });
    let path = runs.directory.join(&output.value);
    let failed = |error: io::Error| output.refuse(problem(&error));
    match std::fs::read_dir(&path).map(|mut entries| entries.next().is_none()) {
        Ok(true) => {}
        Ok(false) => return Err(output.refuse("the folder holds something already; name a new one")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
    }
    let private = std::fs::Permissions::from_mode(FOLDER_MODE);
    let folder = tempfile::Builder::new().prefix(".new-").permissions(private).tempdir_in(parent(&path)).map_err(failed)?;
    let mut files = Seed2::new(folder.path(), &runs.redactor).map_err(failed)?;
    let mut reader = place.reader()?;
    for line in &mut reader {
        files.take(&line?).map_err(failed)?;
    }
    if reader.tail().seq == 0 {
        return Err(ReadError::Empty { path: place.log.display().to_string() }.into());
    }
    files.finish().map_err(failed)?;
    std::fs::rename(folder.path(), &path).map_err(failed)?;
    // It is no temporary one any more.
    drop(folder.keep());
    Ok(())
}

/// The last part of what a run is called: its id where it lies in a folder of that name.
fn name_of(place: &RunPlace) -> String {
    let folder = place.folder.as_deref().or_else(|| place.log.parent());
    let name = folder.and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    name.unwrap_or_else(|| "run".to_owned())
}

fn parent(path: &Path) -> PathBuf {
    path.parent().map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

fn problem(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::AlreadyExists => "something of that name is there already; name another one".to_owned(),
        io::ErrorKind::NotFound => "the folder above it is not there; make it first".to_owned(),
        io::ErrorKind::StorageFull => "its disk is full; nothing was left there".to_owned(),
        _ => format!("it cannot be written ({error}); name another place"),
    }
}
