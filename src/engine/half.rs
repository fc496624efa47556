//! The answer in a reply that did not come to its end.

use mission_contract::log::Reply;
use mission_contract::spec::Protocol;

use super::fragments::AnswerDecoder;

/// The part of an answer that a reply holds; nothing where it was none yet.
pub fn half_answer(reply: &Reply, protocol: Protocol) -> Option<String> {
    let mut decoder = AnswerDecoder::new(protocol);
    let mut half = decoder.text(reply.text.as_str());
    for (position, call) in reply.calls.iter().enumerate() {
        half.extend(decoder.call_name(position, &call.name));
        half.extend(decoder.call_arguments(position, &call.arguments));
    }
    half.extend(decoder.finish());
    // Where functions are called, a text without a call is the answer.
    if protocol == Protocol::Native && reply.calls.is_empty() {
        half.push(reply.text.as_str().to_owned());
    }
    let half = half.concat().trim_end().to_owned();
    (!half.trim().is_empty()).then_some(half)
}

#[cfg(test)]
mod tests {
    use mission_contract::log::{ReplyCall, ReplyEnd};

    use super::*;

    fn json(text: &str) -> Option<String> {
        half_answer(&Reply { text: text.into(), end: ReplyEnd::Interrupted, ..Reply::default() }, Protocol::Json)
    }

    #[test]
    fn what_is_there_of_an_answer_is_found() {
        assert_eq!(json(r#"{"answer": "There are tw"#).as_deref(), Some("There are tw"));
        assert_eq!(json(r#"{"answer": "#), None);
        assert_eq!(json(r#"{"tool": "mcp.add", "arg"#), None);
        assert_eq!(json(""), None);
        let call = |name: &str| ReplyCall { name: name.into(), arguments: r#"{"text": "There a"#.into(), ..ReplyCall::default() };
        let native = |name| half_answer(&Reply { calls: vec![call(name)], ..Reply::default() }, Protocol::Native);
        assert_eq!(native("mission_answer").as_deref(), Some("There a"));
        assert_eq!(native("mcp_add"), None);
    }
}
