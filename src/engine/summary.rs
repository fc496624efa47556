//! A tool's arguments in one line, as the catalogue and the corrections show them.

use serde_json::Value;

use crate::limits::ENUM_VALUES_LISTED;

/// `name (type[: values][, required])`, joined by commas; empty for a schema without properties.
pub fn arguments(schema: &Value) -> String {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return String::new() };
    let required: Vec<&str> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    properties
        .iter()
        .map(|(name, property)| {
            let mut about = kind(property);
            if let Some(values) = property.get("enum").and_then(Value::as_array) {
                about.push_str(": ");
                about.push_str(&enumeration(values));
            }
            if required.contains(&name.as_str()) {
                about.push_str(", required");
            }
            format!("{name} ({about})")
        })
        .collect::<Vec<_>>()
        .join(", ")
}

fn kind(property: &Value) -> String {
    match property.get("type") {
        Some(Value::String(kind)) => return kind.clone(),
        Some(Value::Array(kinds)) => return without_null(kinds.iter().filter_map(Value::as_str).map(str::to_owned)),
        _ => {}
    }
    for keyword in ["anyOf", "oneOf"] {
        if let Some(choices) = property.get(keyword).and_then(Value::as_array) {
            return without_null(choices.iter().filter_map(|choice| choice.get("type").and_then(Value::as_str)).map(str::to_owned));
        }
    }
    if property.get("enum").is_some() || property.get("const").is_some() { "value".to_owned() } else { "any".to_owned() }
}

fn without_null(kinds: impl Iterator<Item = String>) -> String {
    let kinds: Vec<String> = kinds.filter(|kind| kind != "null").collect();
    if kinds.is_empty() { "any".to_owned() } else { kinds.join("|") }
}

fn enumeration(values: &[Value]) -> String {
    let limit = usize::try_from(ENUM_VALUES_LISTED).unwrap_or(usize::MAX);
    let mut listed = values.iter().take(limit).map(word).collect::<Vec<_>>().join("|");
    let rest = values.len().saturating_sub(limit);
    if rest > 0 {
        listed.push_str(&format!(" +{rest} more"));
    }
    listed
}

fn word(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_line_names_types_values_and_what_is_required() {
        let schema = json!({"type": "object", "required": ["sku", "mode"], "properties": {
            "sku": {"type": "string"},
            "mode": {"enum": ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"]},
            "limit": {"type": ["integer", "null"]},
            "since": {"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "null"}]},
            "extra": {}
        }});
        assert_eq!(
            arguments(&schema),
            "extra (any), limit (integer), mode (value: a|b|c|d|e|f|g|h +2 more, required), since (string|number), sku (string, required)"
        );
        assert_eq!(arguments(&json!({"type": "object"})), "");
    }
}
