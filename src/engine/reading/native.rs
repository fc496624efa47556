//! Replies of the `native` protocol: calls of functions, in their order. A required choice is best effort on real servers.

use std::collections::BTreeSet;

use mission_contract::log::{Reply, ReplyCall};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::Proposed;
use crate::engine::offer::Offer;
use crate::engine::words::{self, ANSWER_FUNCTION, quote};

/// What a reply decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NativeTurn {
    /// It answers: by the answer function, alone, or by text without a call.
    Answer(String),
    /// Neither a call nor a text that can be taken.
    Nothing(String),
    /// Answer calls that cannot be taken.
    Answers {
        /// The correction.
        problem: String,
        /// The calls' ids.
        ids: Vec<String>,
    },
    /// Calls of tools.
    Calls {
        /// Those that are not the answer, in their order.
        calls: Vec<Proposed>,
        /// Ids of answer calls beside them.
        ignored: Vec<String>,
    },
}

/// Reads a reply whose calls all have names. `index` is the step's.
pub fn read(reply: &Reply, calls: &[ReplyCall], index: u64) -> NativeTurn {
    let text = reply.text.as_str().trim();
    if calls.is_empty() {
        return match (text.is_empty(), reply.finish.as_deref()) {
            (false, Some("length")) => NativeTurn::Nothing(words::cut_before_call()),
            (false, _) => NativeTurn::Answer(text.to_owned()),
            (true, _) => NativeTurn::Nothing(words::no_call()),
        };
    }
    let ids = ids(calls, index);
    let (mut tools, mut answers) = (Vec::new(), Vec::new());
    for (call, id) in calls.iter().zip(ids) {
        if call.name == ANSWER_FUNCTION {
            answers.push((call, id));
        } else {
            let position = tools.len() as u64;
            tools.push(Proposed { name: call.name.clone(), arguments: arguments(call).to_owned(), position, call_id: Some(id) });
        }
    }
    if !tools.is_empty() {
        return NativeTurn::Calls { calls: tools, ignored: answers.into_iter().map(|(_, id)| id).collect() };
    }
    if answers.len() > 1 {
        let problem = words::several_answers(answers.len());
        return NativeTurn::Answers { problem, ids: answers.into_iter().map(|(_, id)| id).collect() };
    }
    let Some((call, id)) = answers.into_iter().next() else { return NativeTurn::Nothing(words::no_call()) };
    match answer_text(&call.arguments) {
        Ok(text) => NativeTurn::Answer(text),
        Err(problem) => NativeTurn::Answers { problem, ids: vec![id] },
    }
}

/// The id of every call; one that the provider left out, or gave twice, is minted.
pub fn ids(calls: &[ReplyCall], index: u64) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let mut ids = Vec::with_capacity(calls.len());
    for (position, call) in calls.iter().enumerate() {
        let given = !call.id.is_empty() && seen.insert(call.id.as_str());
        ids.push(if given { call.id.clone() } else { format!("call_{index}_{position}") });
    }
    ids
}

/// Arguments as they are read: some models send nothing where an empty object is meant.
pub fn arguments(call: &ReplyCall) -> &str {
    match call.arguments.trim() {
        "" | "null" => "{}",
        _ => &call.arguments,
    }
}

fn answer_text(arguments: &str) -> Result<String, String> {
    let value: Value =
        serde_json::from_str(arguments).map_err(|_| words::malformed_answer("its arguments are no JSON object"))?;
    match value.get("text") {
        Some(Value::String(text)) if !text.trim().is_empty() => Ok(text.clone()),
        Some(Value::String(_)) => Err(words::malformed_answer("`text` is empty")),
        Some(other) => Err(words::malformed_answer(&format!("`text` is {}", crate::engine::arguments::kind_of(other)))),
        None => Err(words::malformed_answer("`text` is missing")),
    }
}

/// A call as it is echoed to the model: a name that providers take, an id, arguments that are a JSON object.
pub fn echo(call: &ReplyCall, id: String, offer: &Offer) -> ReplyCall {
    let name = offer.resolve(&call.name).map_or_else(|| plain(&call.name), |tool| offer.function(&tool).to_owned());
    let raw = arguments(call);
    let arguments = match serde_json::from_str::<&RawValue>(raw) {
        Ok(object) if object.get().starts_with('{') => raw.to_owned(),
        _ => json!({"unreadable": quote(&call.arguments)}).to_string(),
    };
    ReplyCall { id, name, arguments, opaque: call.opaque.clone() }
}

/// A name that no provider refuses.
fn plain(name: &str) -> String {
    let plain: String = name.chars().take(64).map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect();
    if plain.is_empty() { "_".to_owned() } else { plain }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(id: &str, name: &str, arguments: &str) -> ReplyCall {
        ReplyCall { id: id.into(), name: name.into(), arguments: arguments.into(), opaque: None }
    }

    fn reply(text: &str, finish: &str) -> Reply {
        Reply { text: text.into(), finish: Some(finish.into()), ..Reply::default() }
    }

    #[test]
    fn text_without_a_call_answers_unless_it_was_cut() {
        assert_eq!(read(&reply("done", "stop"), &[], 0), NativeTurn::Answer("done".into()));
        assert_eq!(read(&reply("I will no", "length"), &[], 0), NativeTurn::Nothing(words::cut_before_call()));
        assert_eq!(read(&reply(" ", "stop"), &[], 0), NativeTurn::Nothing(words::no_call()));
    }

    #[test]
    fn an_answer_stands_alone() {
        let answer = call("a", ANSWER_FUNCTION, "{\"text\":\"done\"}");
        assert_eq!(read(&reply("", ""), std::slice::from_ref(&answer), 0), NativeTurn::Answer("done".into()));
        let twice = [answer.clone(), call("b", ANSWER_FUNCTION, "{}")];
        assert_eq!(
            read(&reply("", ""), &twice, 0),
            NativeTurn::Answers { problem: words::several_answers(2), ids: vec!["a".into(), "b".into()] }
        );
        let NativeTurn::Calls { calls, ignored } = read(&reply("", ""), &[answer, call("", "mcp_x", "{}")], 3) else {
            return assert_eq!("a call", "none");
        };
        assert_eq!((calls.len(), ignored), (1, vec!["a".to_owned()]));
        assert_eq!(calls.first().and_then(|call| call.call_id.as_deref()), Some("call_3_1"));
    }

    #[test]
    fn a_malformed_answer_is_corrected() {
        for (arguments, words) in
            [("{", "no JSON object"), ("{}", "missing"), ("{\"text\":1}", "a number"), ("{\"text\":\"\"}", "empty")]
        {
            assert!(answer_text(arguments).is_err_and(|problem| problem.contains(words)), "{arguments}");
        }
    }
}
