//! An audit file read again, line by line.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use mission_contract::audit::{AuditChain, LINE_START};
use mission_contract::line::LineProblem;

use crate::limits;

/// What an audit file is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Number of its last good line.
    pub lines: u64,
    /// That line's `sum`.
    pub head: String,
    /// The line at which it is not what was written, and what is wrong with it.
    pub fault: Option<(u64, LineProblem)>,
    /// A line that was to be in it is not.
    pub is_cut: bool,
}

/// Whether a file looks like an audit file: its first line is one.
pub fn is_audit_file(path: &Path) -> bool {
    let mut first = Vec::new();
    let read = crate::sys::files::open_regular(path)
        .and_then(|file| BufReader::new(file.take(limits::AUDIT_LINE_BYTES)).read_until(b'\n', &mut first));
    read.is_ok() && first.starts_with(LINE_START) && AuditChain::behind(&first).is_ok()
}

/// Follows its chain. `head`: the `sum` of a line that is known to have been written.
///
/// # Errors
/// When it cannot be read.
pub fn verify(path: &Path, head: Option<&str>) -> io::Result<Verdict> {
    let mut reader = BufReader::new(File::open(path)?);
    let mut chain = AuditChain::default();
    let mut bytes = Vec::new();
    let mut is_found = head.is_none();
    loop {
        bytes.clear();
        let most = limits::AUDIT_LINE_BYTES.saturating_add(1);
        if reader.by_ref().take(most).read_until(b'\n', &mut bytes)? == 0 {
            break;
        }
        let checked = if bytes.ends_with(b"\n") { chain.check(&bytes) } else { Err(LineProblem::NoSum) };
        if let Err(problem) = checked {
            let fault = Some((chain.seq().saturating_add(1), problem));
            return Ok(Verdict { lines: chain.seq(), head: chain.head().to_owned(), fault, is_cut: false });
        }
        is_found |= head == Some(chain.head());
    }
    Ok(Verdict { lines: chain.seq(), head: chain.head().to_owned(), fault: None, is_cut: !is_found })
}
