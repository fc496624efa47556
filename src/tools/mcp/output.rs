//! Typed results held against what their tools promise: offline, and bounded like arguments. A result that breaks the promise is taken
//! all the same, and the model and the operator are told.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use mission_contract::log::{CallEnd, ToolDefinition};
use serde_json::Value;

use super::result::Classified;
use crate::engine::arguments::{Compiled, compile_for};
use crate::limits;

/// The compiled promises of a server's tools.
#[derive(Debug, Default)]
pub(crate) struct Outputs(Mutex<BTreeMap<String, Promise>>);

/// What a tool's `outputSchema` came to.
#[derive(Clone, Debug)]
struct Promise {
    schema: Value,
    compiled: Result<Arc<Compiled>, String>,
}

impl Outputs {
    /// Checks the result of a call of this tool. What failed has promised nothing.
    pub(crate) fn check(&self, definition: &ToolDefinition, classified: &mut Classified) {
        let Some(schema) = &definition.output_schema else { return };
        if classified.result.end != CallEnd::Ok {
            return;
        }
        let name = &definition.name;
        let compiled = match self.promise(name, schema) {
            Ok(compiled) => compiled,
            Err(Told(true, _)) => return,
            Err(Told(false, why)) => {
                let detail = format!("The results of the tool `{name}` are not checked: {why}.");
                return classified.notices.push(("output_unchecked", detail));
            }
        };
        let fault = match &classified.result.structured {
            Some(value) => compiled.fault_of("the typed result", value),
            None => Some("the typed result is missing".to_owned()),
        };
        if let Some(fault) = fault {
            classified.result.remark = format!("[This result breaks what its tool promises (outputSchema): {fault}.]");
            classified
                .notices
                .push(("output_mismatch", format!("A result of the tool `{name}` breaks its outputSchema: {fault}.")));
        }
    }

    fn promise(&self, name: &str, schema: &Value) -> Result<Arc<Compiled>, Told> {
        let mut promises = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(promise) = promises.get(name).filter(|promise| promise.schema == *schema) {
            return promise.compiled.clone().map_err(|why| Told(true, why));
        }
        if u64::try_from(promises.len()).unwrap_or(u64::MAX) >= limits::MCP_TOOLS {
            promises.clear();
        }
        let compiled = compile_for("their schema", schema).map(Arc::new);
        promises.insert(name.to_owned(), Promise { schema: schema.clone(), compiled: compiled.clone() });
        compiled.map_err(|why| Told(false, why))
    }
}

/// Why a promise cannot be held against anything, and whether that was told already.
struct Told(bool, String);

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use mission_contract::log::CallResult;
    use serde_json::json;

    use super::*;

    fn checked(outputs: &Outputs, schema: Value, structured: Option<Value>) -> (String, Vec<&'static str>) {
        let definition = ToolDefinition { name: "t".to_owned(), output_schema: Some(schema), ..ToolDefinition::default() };
        let result = CallResult { structured: structured.map(Arc::new), ..CallResult::default() };
        let mut classified = Classified { result, notices: Vec::new() };
        outputs.check(&definition, &mut classified);
        (classified.result.remark, classified.notices.into_iter().map(|(code, _)| code).collect())
    }

    #[test]
    fn a_broken_promise_is_told_and_a_kept_one_is_not() {
        let outputs = Outputs::default();
        let schema = json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}});
        assert_eq!(checked(&outputs, schema.clone(), Some(json!({"n": 1}))), (String::new(), vec![]));
        let (remark, notices) = checked(&outputs, schema.clone(), Some(json!({"n": "1"})));
        insta::assert_snapshot!(remark, @r#"[This result breaks what its tool promises (outputSchema): the value at `/n` must be of type integer, and is a string ("1").]"#);
        assert_eq!(notices, ["output_mismatch"]);
        insta::assert_snapshot!(checked(&outputs, schema.clone(), Some(json!({}))).0, @"[This result breaks what its tool promises (outputSchema): the typed result lacks the required `n`.]");
        insta::assert_snapshot!(checked(&outputs, schema, None).0, @"[This result breaks what its tool promises (outputSchema): the typed result is missing.]");
    }

    #[test]
    fn null_is_a_value_and_absent_is_none() {
        let outputs = Outputs::default();
        let schema = json!({"type": ["object", "null"]});
        assert_eq!(checked(&outputs, schema.clone(), Some(Value::Null)), (String::new(), vec![]));
        assert_eq!(checked(&outputs, schema, None).1, ["output_mismatch"]);
    }

    #[test]
    fn a_promise_that_cannot_be_compiled_is_told_once() {
        let outputs = Outputs::default();
        let schema = json!({"type": "object", "properties": {"n": {"pattern": "("}}});
        assert_eq!(checked(&outputs, schema.clone(), Some(json!({}))).1, ["output_unchecked"]);
        assert_eq!(checked(&outputs, schema, Some(json!({}))).1, Vec::<&str>::new());
        let remote = json!({"type": "object", "properties": {"n": {"$ref": "http://127.0.0.1:1/x"}}});
        assert_eq!(checked(&outputs, remote, Some(json!({}))).1, ["output_unchecked"]);
    }
}
