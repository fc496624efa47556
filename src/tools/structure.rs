//! The structural check of a schema: root, depth, dialect, references. Nothing is compiled and nothing is fetched; what only a
//! compiler finds is found at the tool's first use.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::limits;

/// The dialects of JSON Schema that arguments can be checked in, by what `$schema` says, without scheme, fragment and slash at
/// the end.
const DIALECTS: &[&str] = &[
    "json-schema.org/draft-04/schema",
    "json-schema.org/draft-06/schema",
    "json-schema.org/draft-07/schema",
    "json-schema.org/draft/2019-09/schema",
    "json-schema.org/draft/2020-12/schema",
];

/// Keywords whose value maps names to schemas: a name there is no keyword.
const NAMED: &[&str] = &["$defs", "definitions", "dependentSchemas", "patternProperties", "properties"];

/// Keywords whose value is data: nothing in it is a keyword.
const DATA: &[&str] = &["const", "default", "enum", "example", "examples"];

/// Checks a schema of arguments or of a result.
///
/// # Errors
/// Why it cannot be used, as the second half of a sentence that names it.
pub fn check(schema: &Value) -> Result<(), String> {
    let Value::Object(root) = schema else { return Err("is no object".to_owned()) };
    match root.get("type") {
        None => {}
        Some(Value::String(one)) if one == "object" => {}
        Some(Value::Array(several)) if several.iter().any(|one| one == "object") => {}
        Some(other) => return Err(format!("is of type {other}, and arguments are an object")),
    }
    let depth = limits::size(limits::MCP_DEFINITION_DEPTH);
    if is_deeper(schema, depth) {
        return Err(format!("is nested more than {depth} levels deep"));
    }
    let mut named = Names::default();
    named.collect(root);
    References { names: &named, document: schema }.check(root, schema)
}

/// Whether a value is nested deeper than this. Called on what a parser with a limit of its own has read.
fn is_deeper(value: &Value, levels: usize) -> bool {
    let Some(below) = levels.checked_sub(1) else {
        return matches!(value, Value::Array(_) | Value::Object(_));
    };
    match value {
        Value::Array(items) => items.iter().any(|item| is_deeper(item, below)),
        Value::Object(map) => map.values().any(|item| is_deeper(item, below)),
        _ => false,
    }
}

/// The schemas in a schema: each member's value where it stands as one.
fn children(schema: &Map<String, Value>) -> impl Iterator<Item = &Map<String, Value>> {
    fn spread<'a>(value: &'a Value, found: &mut Vec<&'a Map<String, Value>>) {
        match value {
            Value::Object(map) => found.push(map),
            Value::Array(items) => items.iter().for_each(|item| spread(item, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    for (keyword, value) in schema {
        if DATA.contains(&keyword.as_str()) {
            continue;
        }
        match value {
            Value::Object(map) if NAMED.contains(&keyword.as_str()) => {
                map.values().for_each(|value| spread(value, &mut found));
            }
            value => spread(value, &mut found),
        }
    }
    found.into_iter()
}

/// Every name that a reference in the document may use: ids and anchors.
#[derive(Default)]
struct Names {
    ids: BTreeSet<String>,
    anchors: BTreeSet<String>,
}

impl Names {
    fn collect(&mut self, schema: &Map<String, Value>) {
        for keyword in ["$id", "id"] {
            if let Some(Value::String(id)) = schema.get(keyword) {
                match id.split_once('#') {
                    // Before 2019-09 an anchor was an id that is a fragment.
                    Some((base, anchor)) if !anchor.is_empty() => {
                        self.anchors.insert(anchor.to_owned());
                        if !base.is_empty() {
                            self.ids.insert(base.to_owned());
                        }
                    }
                    _ => {
                        self.ids.insert(id.trim_end_matches('#').to_owned());
                    }
                }
            }
        }
        for keyword in ["$anchor", "$dynamicAnchor"] {
            if let Some(Value::String(anchor)) = schema.get(keyword) {
                self.anchors.insert(anchor.clone());
            }
        }
        for child in children(schema) {
            self.collect(child);
        }
    }

    /// Whether a document of this address is part of this one. Relative addresses are compared by their ends: at worst a
    /// reference passes here that the compiler refuses, which fetches nothing either.
    fn has_document(&self, address: &str) -> bool {
        let relative = address.trim_start_matches("./").trim_start_matches('/');
        self.ids
            .iter()
            .any(|id| id == address || id.strip_suffix(relative).is_some_and(|rest| rest.is_empty() || rest.ends_with('/')))
    }
}

struct References<'a> {
    names: &'a Names,
    document: &'a Value,
}

impl References<'_> {
    /// Checks the references of a schema and of all in it. `resource` is the nearest schema above that has an id of its own.
    fn check(&self, schema: &Map<String, Value>, resource: &Value) -> Result<(), String> {
        if let Some(Value::String(dialect)) = schema.get("$schema")
            && !is_known_dialect(dialect)
        {
            return Err(format!("is written in the dialect {dialect:?}, which is none of draft-04 to 2020-12"));
        }
        for keyword in ["$ref", "$dynamicRef", "$recursiveRef"] {
            if let Some(Value::String(reference)) = schema.get(keyword)
                && !self.resolves(reference, resource)
            {
                return Err(format!(
                    "has the reference {reference:?}, which leads nowhere in it; nothing is fetched for a reference"
                ));
            }
        }
        for child in children(schema) {
            let has_own_id = matches!(child.get("$id"), Some(Value::String(id)) if !id.starts_with('#'));
            if has_own_id {
                self.check(child, &Value::Object(child.clone()))?;
            } else {
                self.check(child, resource)?;
            }
        }
        Ok(())
    }

    fn resolves(&self, reference: &str, resource: &Value) -> bool {
        let (address, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        if !address.is_empty() {
            return self.names.has_document(address) || is_known_dialect(address);
        }
        if fragment.is_empty() {
            return true;
        }
        let Some(fragment) = percent_decoded(fragment) else { return false };
        if fragment.starts_with('/') {
            return resource.pointer(&fragment).or_else(|| self.document.pointer(&fragment)).is_some();
        }
        self.names.anchors.contains(&fragment)
    }
}

fn is_known_dialect(address: &str) -> bool {
    let bare = address.strip_prefix("https://").or_else(|| address.strip_prefix("http://")).unwrap_or(address);
    DIALECTS.contains(&bare.trim_end_matches(['#', '/']))
}

fn percent_decoded(text: &str) -> Option<String> {
    if !text.contains('%') {
        return Some(text.to_owned());
    }
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let digits = [bytes.next()?, bytes.next()?];
        let digits = std::str::from_utf8(&digits).ok()?;
        decoded.push(u8::from_str_radix(digits, 16).ok()?);
    }
    String::from_utf8(decoded).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    #[test]
    fn what_servers_send_passes() {
        for schema in [
            json!({}),
            json!({"type": "object"}),
            json!({"type": ["object", "null"]}),
            json!({"properties": {"$ref": {"type": "string"}, "$schema": {"type": "string"}, "default": {"$ref": "#"}}}),
            json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}),
            json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": {"a/b": {}}, "$ref": "#/$defs/a~1b"}),
            json!({"definitions": {"a b": {}}, "properties": {"x": {"$ref": "#/definitions/a%20b", "description": "sibling"}}}),
            json!({"properties": {"headers": {"type": "object"}, "x": {"$ref": "#/properties/headers"}}}),
            json!({"$defs": {"t": {"properties": {"child": {"$ref": "#"}}}}}),
            json!({"$id": "https://x.test/root.json", "$defs": {"t": {"$id": "t.json", "$defs": {"u": {}}, "items": {"$ref": "#/$defs/u"}}}, "allOf": [{"$ref": "t.json"}, {"$ref": "https://x.test/root.json#/$defs/t"}]}),
            json!({"$defs": {"t": {"$anchor": "here"}}, "allOf": [{"$ref": "#here"}]}),
            json!({"definitions": {"t": {"$id": "#there"}}, "allOf": [{"$ref": "#there"}]}),
            json!({"const": {"$ref": "http://x.test/data"}, "enum": [{"$ref": "gone"}]}),
            json!({"properties": {"schema": {"$ref": "http://json-schema.org/draft-07/schema#"}}}),
        ] {
            assert_eq!(check(&schema), Ok(()), "{schema}");
        }
    }

    #[test]
    fn what_cannot_be_checked_is_refused_with_its_reason() {
        let refused = |schema: Value| check(&schema).unwrap_err();
        insta::assert_snapshot!(refused(json!(true)), @"is no object");
        insta::assert_snapshot!(refused(json!({"type": "array"})), @r#"is of type "array", and arguments are an object"#);
        insta::assert_snapshot!(refused(json!({"type": "objekt"})), @r#"is of type "objekt", and arguments are an object"#);
        insta::assert_snapshot!(refused(json!({"$schema": "https://example.test/mine"})), @r#"is written in the dialect "https://example.test/mine", which is none of draft-04 to 2020-12"#);
        insta::assert_snapshot!(refused(json!({"properties": {"x": {"$ref": "#/$defs/gone"}}})), @r##"has the reference "#/$defs/gone", which leads nowhere in it; nothing is fetched for a reference"##);
        for reference in ["https://x.test/a.json", "file:///etc/passwd", "other.json#/a", "#nowhere", "#/%zz"] {
            let reason = refused(json!({"items": [{"anyOf": [{"$ref": reference}]}]}));
            assert!(reason.contains(reference), "{reason}");
        }
    }

    #[test]
    fn depth_has_a_bound() {
        let nested = |levels: usize| {
            let mut schema = json!({});
            for _ in 1..levels {
                schema = json!({ "not": schema });
            }
            schema
        };
        assert_eq!(check(&nested(64)), Ok(()));
        insta::assert_snapshot!(check(&nested(65)).unwrap_err(), @"is nested more than 64 levels deep");
    }
}
