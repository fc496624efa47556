//! Lines of an audit file: what was called, what was not, and by which rule. They hold digests, never arguments or results.
//!
//! A call that goes out has two lines: `tool_intent` before it does, `tool_dispatch` once it has come back. Whatever is answered or refused
//! here has the second alone. Each line is chained to the one before as those of a log are: `prev` is its `sum`.

use serde::{Deserialize, Serialize};

use crate::digest::{self, Digest, sha256_hex};
use crate::line::LineProblem;
use crate::seal::{seal, split_sum};

/// How every line of an audit file begins.
pub const LINE_START: &[u8] = b"{\"seq\":";

/// A line of an audit file. Its `sum` stands behind these, as in a log.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AuditLine {
    /// Number of the line in its file, from 1.
    pub seq: u64,
    /// When it was written, RFC 3339 UTC with milliseconds.
    pub timestamp: String,
    /// `sum` of the line before; 64 zeros at first.
    pub prev: Digest,
    /// Which of the two it is.
    pub event_type: AuditEvent,
    /// The run.
    pub session_id: String,
    /// The tool's full name, as the model spelt it where there is no such tool.
    pub tool_name: String,
    /// What the tool was to do, where its scopes depend on that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// The scopes that the call needs.
    pub scopes: Vec<String>,
    /// The profile.
    pub profile: String,
    /// What became of it.
    pub verdict: Verdict,
    /// The rule that decided: one of the policy file by its id, or `profile`, `grant`, `gate`, `default`, `policy`, `catalogue`.
    pub rule: String,
    /// Why it was refused or failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The model turn in which it was proposed, from 0.
    pub step: u64,
    /// The idempotency key of a call that goes out: the log's intent has the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Digest>,
    /// The approval by which it goes out, or was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_id: Option<String>,
    /// Who decided that approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<String>,
    /// SHA-256 of the canonical arguments.
    pub arguments_digest: Digest,
    /// 0 fine; 1 the tool says it failed; -1 it could not be called, or came to no end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i64>,
    /// How long it took, in milliseconds of the run's work time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// Bytes of the result's text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_out: Option<u64>,
    /// SHA-256 of the result's text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_digest: Option<Digest>,
}

/// Which line of a call it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AuditEvent {
    /// The call is about to go out.
    ToolIntent,
    /// What became of it.
    #[default]
    ToolDispatch,
}

/// What became of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It was made and came back, well or not; or is about to be made.
    Allowed,
    /// It was not made.
    #[default]
    Denied,
    /// There is no such tool.
    UnknownTool,
    /// It was made and came to no end of its own.
    Error,
}

/// An audit file, line by line: its writer's place, and its reader's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditChain {
    seq: u64,
    head: Digest,
}

impl Default for AuditChain {
    fn default() -> Self {
        Self { seq: 0, head: digest::ZERO.to_owned() }
    }
}

impl AuditChain {
    /// Number of the last line; 0 before the first.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// `sum` of the last line.
    pub fn head(&self) -> &str {
        &self.head
    }

    /// Appends a line, its newline included, to `out`; its number and its place in the chain are set here.
    ///
    /// # Errors
    /// [`LineProblem::Unwritable`] when it does not serialise; `out` and the chain are then as before.
    pub fn write(&mut self, mut line: AuditLine, out: &mut Vec<u8>) -> Result<(), LineProblem> {
        line.seq = self.seq.saturating_add(1);
        line.prev.clone_from(&self.head);
        let start = out.len();
        if let Err(error) = serde_json::to_writer(&mut *out, &line) {
            out.truncate(start);
            return Err(LineProblem::Unwritable { detail: error.to_string() });
        }
        // The brace at its end: the sum stands before it.
        out.pop();
        self.head = seal(start, out);
        self.seq = line.seq;
        Ok(())
    }

    /// Reads the next line, with or without its newline, and checks that it follows the one before.
    ///
    /// # Errors
    /// The first thing that is wrong with it; the chain then still stands at the last good line.
    pub fn check(&mut self, bytes: &[u8]) -> Result<AuditLine, LineProblem> {
        let (line, sum) = read(bytes)?;
        let expected = self.seq.saturating_add(1);
        if line.seq != expected {
            return Err(LineProblem::SeqJumps { expected, found: line.seq });
        }
        if line.prev != self.head {
            return Err(LineProblem::PrevDiffers { expected: self.head.clone(), found: line.prev });
        }
        (self.seq, self.head) = (line.seq, sum);
        Ok(line)
    }

    /// The chain behind a line that stands at the end of a file.
    ///
    /// # Errors
    /// What is wrong with that line by itself.
    pub fn behind(bytes: &[u8]) -> Result<Self, LineProblem> {
        read(bytes).map(|(line, sum)| Self { seq: line.seq, head: sum })
    }
}

fn read(bytes: &[u8]) -> Result<(AuditLine, Digest), LineProblem> {
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let (summed, stated) = split_sum(bytes).ok_or(LineProblem::NoSum)?;
    let found = sha256_hex(summed);
    if found.as_bytes() != stated {
        return Err(LineProblem::SumDiffers { stated: String::from_utf8_lossy(stated).into_owned(), found });
    }
    let line = serde_json::from_slice(bytes)
        .map_err(|error| LineProblem::Malformed { column: error.column(), detail: error.to_string() })?;
    Ok((line, found))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use super::*;

    fn three() -> Vec<Vec<u8>> {
        let mut chain = AuditChain::default();
        let line = |tool: &str| AuditLine { tool_name: tool.to_owned(), ..AuditLine::default() };
        ["mcp.add", "mcp.echo", "x"]
            .map(|tool| {
                let mut out = Vec::new();
                chain.write(line(tool), &mut out).unwrap();
                out
            })
            .to_vec()
    }

    #[test]
    fn a_line_has_seed2_s_names_and_its_place_in_the_chain() {
        let line = String::from_utf8(three().remove(0)).unwrap();
        assert!(line.starts_with(r#"{"seq":1,"timestamp":"","prev":"0000"#), "{line}");
        assert!(line.contains(r#""event_type":"tool_dispatch","session_id":"","tool_name":"mcp.add","scopes":[],"profile":"","verdict":"denied""#), "{line}");
        assert!(line.ends_with("\"}\n"), "{line}");
    }

    #[test]
    fn a_chain_is_followed_and_every_change_of_it_is_seen() {
        let lines = three();
        let follow = |lines: &[Vec<u8>]| {
            let mut chain = AuditChain::default();
            lines.iter().try_for_each(|line| chain.check(line).map(drop)).map(|()| chain)
        };
        let whole = follow(&lines).unwrap();
        assert_eq!((whole.seq(), AuditChain::behind(&lines[2]).unwrap()), (3, whole.clone()));
        assert!(matches!(follow(&[lines[0].clone(), lines[2].clone()]), Err(LineProblem::SeqJumps { expected: 2, found: 3 })));
        let mut chain = AuditChain::default();
        let mut other = Vec::new();
        chain.write(AuditLine::default(), &mut other).unwrap();
        assert!(matches!(follow(&[other, lines[1].clone()]), Err(LineProblem::PrevDiffers { .. })));
        for at in 0..lines[1].len() {
            let mut changed = lines.clone();
            changed[1][at] ^= 1;
            assert!(follow(&changed).is_err(), "byte {at}");
        }
        assert!(follow(&[lines[0][..20].to_vec()]).is_err());
    }
}
