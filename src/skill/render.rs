//! Values of a manifest as the model reads them.

use super::yaml::{Node, Value};

/// A field of the prompt: `Label: value`, or the label and the value's lines below it. Nothing where there is no value.
pub(super) fn field(label: &str, node: &Node) -> Option<String> {
    let lines = lines(node);
    match (&node.value, lines.as_slice()) {
        (_, []) => None,
        (Value::Text(_), [line]) => Some(format!("{label}: {line}")),
        (_, lines) => Some(format!("{label}:\n{}", lines.join("\n"))),
    }
}

/// A key as a label: blanks for underscores, a capital first.
pub(super) fn label(key: &str) -> String {
    let spaced = one_line(&key.replace('_', " "));
    let mut signs = spaced.chars();
    signs.next().map(|first| first.to_uppercase().chain(signs).collect()).unwrap_or_default()
}

/// A text in one line.
pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn lines(node: &Node) -> Vec<String> {
    match &node.value {
        Value::Nothing => Vec::new(),
        Value::Text(text) => Some(one_line(text)).filter(|text| !text.is_empty()).into_iter().collect(),
        Value::List(items) => items.iter().flat_map(item).collect(),
        Value::Map(pairs) => pairs.iter().flat_map(|(key, node)| entry(&one_line(&key.text), node)).collect(),
    }
}

/// An item of a list: its first line behind a hyphen, the others below it.
fn item(node: &Node) -> Vec<String> {
    lines(node)
        .into_iter()
        .zip(std::iter::once("- ").chain(std::iter::repeat("  ")))
        .map(|(line, lead)| format!("{lead}{line}"))
        .collect()
}

/// An entry of a mapping: `- key: value`, what has several lines below it.
fn entry(key: &str, node: &Node) -> Vec<String> {
    let below = lines(node);
    match (&node.value, below.as_slice()) {
        (_, []) => vec![format!("- {key}:")],
        (Value::Text(_), [line]) => vec![format!("- {key}: {line}")],
        (_, below) => std::iter::once(format!("- {key}:")).chain(below.iter().map(|line| format!("  {line}"))).collect(),
    }
}
