//! Arguments that travel as headers too (`x-mcp-header`), in the stateless era over HTTP: which they are, and how a value is written there.
//! Pure.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

/// The annotation of a property: the end of its header's name.
const ANNOTATION: &str = "x-mcp-header";

/// What stands before it.
const PREFIX: &str = "Mcp-Param-";

/// Integers beyond it are not the same number everywhere.
const EXACT: i64 = 9_007_199_254_740_991;

/// Keywords whose value maps names to schemas.
const NAMED: &[&str] = &["$defs", "definitions", "dependentSchemas", "patternProperties", "properties"];

/// Keywords whose value is data.
const DATA: &[&str] = &["const", "default", "enum", "example", "examples"];

/// An argument that travels as a header.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mirrored {
    header: String,
    /// Where it stands in the arguments.
    path: Vec<String>,
}

/// The arguments that this schema wants as headers.
///
/// # Errors
/// Why the schema must not be used: the end of a sentence that begins with it.
pub(crate) fn read(schema: &Value) -> Result<Vec<Mirrored>, String> {
    let mut walk = Walk { seen: BTreeSet::new(), found: Vec::new(), path: Vec::new() };
    if let Value::Object(root) = schema {
        if root.contains_key(ANNOTATION) {
            return Err(format!("has {ANNOTATION} on its root, and only an argument can be a header"));
        }
        walk.schema(root, true)?;
    }
    Ok(walk.found)
}

struct Walk {
    seen: BTreeSet<String>,
    found: Vec<Mirrored>,
    path: Vec<String>,
}

impl Walk {
    /// `is_reached` while nothing but `properties` lies between here and the root. Depth is bounded by the check that comes before.
    fn schema(&mut self, schema: &Map<String, Value>, is_reached: bool) -> Result<(), String> {
        for (keyword, value) in schema {
            match value {
                Value::Object(named) if NAMED.contains(&keyword.as_str()) => {
                    for (name, child) in named {
                        let Value::Object(child) = child else { continue };
                        let is_reached = is_reached && keyword == "properties";
                        self.path.push(name.clone());
                        if let Some(annotation) = child.get(ANNOTATION) {
                            self.annotated(annotation, child, is_reached)?;
                        }
                        self.schema(child, is_reached)?;
                        self.path.pop();
                    }
                }
                _ if DATA.contains(&keyword.as_str()) => {}
                value => self.below(value)?,
            }
        }
        Ok(())
    }

    /// Schemas that stand anywhere else.
    fn below(&mut self, value: &Value) -> Result<(), String> {
        match value {
            Value::Object(schema) => {
                if let Some(annotation) = schema.get(ANNOTATION) {
                    self.annotated(annotation, schema, false)?;
                }
                self.schema(schema, false)
            }
            Value::Array(items) => items.iter().try_for_each(|item| self.below(item)),
            _ => Ok(()),
        }
    }

    fn annotated(&mut self, annotation: &Value, schema: &Map<String, Value>, is_reached: bool) -> Result<(), String> {
        let at = format!("`/{}`", self.path.join("/"));
        let Some(name) = annotation.as_str().filter(|name| is_token(name)) else {
            return Err(format!("has an {ANNOTATION} at {at} that is no name of a header"));
        };
        if !is_reached {
            return Err(format!("has an {ANNOTATION} where no argument is fixed (header {name:?})"));
        }
        if !self.seen.insert(name.to_ascii_lowercase()) {
            return Err(format!("wants two arguments as the header {name:?}"));
        }
        if !is_plain(schema.get("type")) {
            return Err(format!("wants {at} as a header, which is neither string nor integer nor boolean"));
        }
        let is_secret = schema.get("writeOnly") == Some(&Value::Bool(true))
            || schema.get("format").and_then(Value::as_str) == Some("password");
        if is_secret {
            return Err(format!("wants {at} as a header, which is a secret"));
        }
        self.found.push(Mirrored { header: format!("{PREFIX}{name}"), path: self.path.clone() });
        Ok(())
    }
}

/// A token as headers have it.
fn is_token(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

fn is_plain(kind: Option<&Value>) -> bool {
    let plain = |kind: &Value| matches!(kind.as_str(), Some("string" | "integer" | "boolean"));
    match kind {
        Some(Value::Array(kinds)) => {
            kinds.iter().filter(|kind| plain(kind)).count() == 1 && kinds.iter().all(|kind| plain(kind) || kind == "null")
        }
        Some(kind) => plain(kind),
        None => false,
    }
}

/// The headers of a call: name → value. An argument that is absent or null has none.
///
/// # Errors
/// Why the call cannot be made, as a sentence's end.
pub(crate) fn headers(mirrored: &[Mirrored], arguments: &Map<String, Value>) -> Result<Vec<(String, String)>, String> {
    let mut headers = Vec::new();
    for Mirrored { header, path } in mirrored {
        let mut names = path.iter();
        let first = names.next().and_then(|name| arguments.get(name));
        let value = names.fold(first, |value, name| value?.get(name));
        let value = match value {
            None | Some(Value::Null) => continue,
            Some(Value::String(text)) => written(text),
            Some(Value::Bool(flag)) => flag.to_string(),
            Some(Value::Number(number)) => match number.as_i64().or_else(|| whole(number.as_f64()?)) {
                Some(number) if number.unsigned_abs() <= EXACT.unsigned_abs() => number.to_string(),
                _ => {
                    return Err(format!(
                        "its argument `/{}` is to travel as a header and is no integer within ±(2^53-1)",
                        path.join("/")
                    ));
                }
            },
            Some(_) => return Err(format!("its argument `/{}` is to travel as a header and has parts", path.join("/"))),
        };
        headers.push((header.clone(), value));
    }
    Ok(headers)
}

/// `3.0` as 3.
fn whole(number: f64) -> Option<i64> {
    // Within that bound a float without a fraction is exactly an i64.
    #[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)]
    (number.fract() == 0.0 && number.abs() <= EXACT as f64).then_some(number as i64)
}

/// A text as a header's value: as it is where that is unambiguous, else its base64 between marks.
fn written(text: &str) -> String {
    let is_plain = text.bytes().all(|byte| (0x20..=0x7e).contains(&byte));
    let is_trimmed = text.trim_matches([' ', '\t']).len() == text.len();
    let is_marked = text.starts_with("=?base64?") && text.ends_with("?=");
    if is_plain && is_trimmed && !is_marked { text.to_owned() } else { format!("=?base64?{}?=", STANDARD.encode(text)) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::json;

    use super::*;

    fn refused(schema: Value) -> String {
        read(&schema).unwrap_err()
    }

    fn property(schema: Value) -> Value {
        json!({"type": "object", "properties": {"a": schema}})
    }

    #[test]
    fn arguments_become_headers_and_the_rest_does_not() {
        let schema = json!({"type": "object", "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "x-mcp-header": {"type": "string"},
            "deep": {"type": "object", "properties": {"n": {"type": ["integer", "null"], "x-mcp-header": "N"}, "f": {"type": "boolean", "x-mcp-header": "F"}}},
            "plain": {"type": "number", "default": {"x-mcp-header": "no"}},
        }});
        let mirrored = read(&schema).unwrap();
        let of = |arguments: Value| headers(&mirrored, arguments.as_object().unwrap());
        let pairs =
            |pairs: &[(&str, &str)]| Ok(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect());
        assert_eq!(
            of(json!({"region": "eu", "deep": {"n": -7.0, "f": true}, "plain": 1.5})),
            pairs(&[("Mcp-Param-F", "true"), ("Mcp-Param-N", "-7"), ("Mcp-Param-Region", "eu")])
        );
        assert_eq!(of(json!({"region": null, "deep": {}})), pairs(&[]));
        assert_eq!(of(json!({"region": ""})), pairs(&[("Mcp-Param-Region", "")]));
        assert!(of(json!({"deep": {"n": 9_007_199_254_740_992i64}})).is_err());
        assert!(of(json!({"deep": {"n": 1.5}})).is_err());
        assert!(of(json!({"region": {"x": 1}})).is_err());
    }

    #[test]
    fn values_that_headers_cannot_hold_are_encoded() {
        for (text, header) in [
            ("a b", "a b"),
            (" a", "=?base64?IGE=?="),
            ("a\t", "=?base64?YQk=?="),
            ("a\nb", "=?base64?YQpi?="),
            ("é", "=?base64?w6k=?="),
            ("=?base64?YQ==?=", "=?base64?PT9iYXNlNjQ/WVE9PT89?="),
            ("=?base64?", "=?base64?"),
        ] {
            assert_eq!(written(text), header, "{text:?}");
        }
    }

    #[test]
    fn what_breaks_the_rules_costs_the_tool() {
        insta::assert_snapshot!(refused(property(json!({"type": "string", "x-mcp-header": ""}))), @"has an x-mcp-header at `/a` that is no name of a header");
        for wrong in [json!("a b"), json!("a:b"), json!("é"), json!(7), json!("a\r\nb")] {
            refused(property(json!({"type": "string", "x-mcp-header": wrong})));
        }
        for kind in [json!("number"), json!("object"), json!("array"), json!("null"), json!(["string", "integer"]), json!(null)] {
            insta::allow_duplicates! {
                insta::assert_snapshot!(refused(property(json!({"type": kind, "x-mcp-header": "A"}))), @"wants `/a` as a header, which is neither string nor integer nor boolean");
            }
        }
        let annotated = json!({"type": "string", "x-mcp-header": "A"});
        for schema in [
            property(json!({"type": "array", "items": annotated})),
            property(json!({"anyOf": [annotated]})),
            json!({"$defs": {"a": annotated}}),
            json!({"allOf": [property(annotated.clone())]}),
            json!({"patternProperties": {"a": annotated}}),
        ] {
            insta::allow_duplicates! {
                insta::assert_snapshot!(refused(schema), @r#"has an x-mcp-header where no argument is fixed (header "A")"#);
            }
        }
        insta::assert_snapshot!(refused(json!({"properties": {"a": annotated, "b": {"type": "string", "x-mcp-header": "a"}}})), @r#"wants two arguments as the header "a""#);
        insta::assert_snapshot!(refused(property(json!({"type": "string", "format": "password", "x-mcp-header": "A"}))), @"wants `/a` as a header, which is a secret");
        insta::assert_snapshot!(refused(json!({"x-mcp-header": "A"})), @"has x-mcp-header on its root, and only an argument can be a header");
    }
}
