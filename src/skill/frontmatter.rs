//! The front matter of a manifest: found in the file, and its keys told apart.

use super::error::Problem;
use super::yaml::{self, Node, Placed};

/// The two halves of a file.
#[derive(Debug, PartialEq, Eq)]
pub struct Halves<'t> {
    /// The YAML between the fences. It begins on line 2.
    pub yaml: &'t str,
    /// The Markdown behind them.
    pub body: &'t str,
}

/// Splits a manifest at its fences: a first line `---`, YAML, a line `---`, Markdown. Blanks behind a fence count for nothing,
/// and a byte order mark in front of the first neither.
///
/// # Errors
/// What is no such file, and where it goes wrong.
pub fn split(text: &str) -> Result<Halves<'_>, Problem> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    if !is_fence(first) {
        return Err(Problem::at(1, 1, "a manifest begins with a line `---`, and nothing stands before it"));
    }
    let mut length = 0usize;
    let mut line = 1u64;
    for piece in rest.split_inclusive('\n') {
        line = line.saturating_add(1);
        if is_fence(piece.strip_suffix('\n').unwrap_or(piece)) {
            let (yaml, fence_and_body) = rest.split_at_checked(length).unwrap_or((rest, ""));
            return Ok(Halves { yaml, body: fence_and_body.strip_prefix(piece).unwrap_or_default() });
        }
        length = length.saturating_add(piece.len());
    }
    Err(Problem::at(line, 1, "the front matter has no end: close it with a line `---`"))
}

fn is_fence(line: &str) -> bool {
    line.strip_prefix("---").is_some_and(|rest| rest.trim_end_matches([' ', '\t', '\r']).is_empty())
}

/// The keys of a manifest in the order of the file. Those of a nested `skill:` mapping stand in the place of outer ones of the same name.
///
/// # Errors
/// What is no YAML, is past a budget or is no mapping, and where.
pub fn read(yaml: &str) -> Result<Vec<(Placed, Node)>, Problem> {
    let whole = yaml::read(yaml, 1)?;
    let outer = whole.map("the front matter")?;
    let mut inner: &[(Placed, Node)] = &[];
    if let Some((_, nested)) = outer.iter().find(|(key, _)| key.text == "skill") {
        inner = nested.map("the value of `skill`")?;
        if let Some((key, _)) = inner.iter().find(|(key, _)| key.text == "skill") {
            return Err(key.problem("`skill` stands inside `skill`; write its keys one level higher"));
        }
    }
    let is_beaten = |key: &Placed| key.text == "skill" || inner.iter().any(|(nested, _)| nested.text == key.text);
    let mut keys: Vec<(Placed, Node)> = outer.iter().filter(|(key, _)| !is_beaten(key)).chain(inner).cloned().collect();
    keys.sort_by_key(|(key, _)| (key.line, key.column));
    Ok(keys)
}
