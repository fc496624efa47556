#![allow(clippy::unwrap_used, clippy::panic)]
//! Streams as real servers sent them, however they are cut.

use std::path::Path;

use mission_contract::log::ReplyEnd;

use super::stream::{Ending, ReplyFold};
use super::{Delta, FailureKind, ModelReply};
use crate::sys::sse::{SseItem, SseSplitter};

fn stream(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/wire/odd").join(format!("{name}.sse"))).unwrap()
}

fn fold(bytes: &[u8], piece: usize, ending: Ending) -> (ModelReply, Vec<Delta>) {
    let mut splitter = SseSplitter::new(1 << 20);
    let mut fold = ReplyFold::default();
    let mut deltas = Vec::new();
    let give = |fold: &mut ReplyFold, item: SseItem<'_>| match item {
        SseItem::Event { name, data } => fold.event(name, data),
        SseItem::Stray(line) => fold.stray(line),
    };
    for piece in bytes.chunks(piece) {
        splitter.push(piece, &mut |item| give(&mut fold, item)).unwrap();
        deltas.extend(fold.take_deltas());
    }
    splitter.finish(&mut |item| give(&mut fold, item));
    let (reply, rest) = fold.end("The server", ending);
    deltas.extend(rest);
    (reply, deltas)
}

/// Reads the same stream in pieces of many sizes and asserts that it is the same reply each time.
fn read(bytes: &[u8]) -> (ModelReply, Vec<Delta>) {
    let whole = fold(bytes, usize::MAX, Ending::Complete);
    for piece in [1, 2, 3, 7, 64] {
        let (reply, deltas) = fold(bytes, piece, Ending::Complete);
        assert_eq!(reply.reply, whole.0.reply, "in pieces of {piece}");
        assert_eq!(deltas, whole.1, "in pieces of {piece}");
    }
    whole
}

/// A reply on one line: its end, finish, text and calls.
fn shown(reply: &ModelReply) -> String {
    let calls: Vec<String> = reply.reply.calls.iter().map(|call| format!("{}:{}({})", call.id, call.name, call.arguments)).collect();
    let finish = reply.reply.finish.as_deref().unwrap_or("-");
    format!("{:?} {finish} {:?} [{}]", reply.reply.end, reply.reply.text.as_str(), calls.join(", "))
}

fn odd(name: &str) -> String {
    shown(&read(&stream(name)).0)
}

fn of(events: &[&str]) -> Vec<u8> {
    events.iter().map(|event| format!("data: {event}\n\n")).collect::<String>().into_bytes()
}

fn text_of(deltas: &[Delta]) -> String {
    deltas.iter().filter_map(|delta| if let Delta::Text(text) = delta { Some(text.as_str()) } else { None }).collect()
}

#[test]
fn calls_in_every_form_that_was_seen() {
    insta::assert_snapshot!(odd("two-calls-after-text"), @r#"Whole tool_calls "Let me check." [call_JQyCGn4Vuav7oxDN:get_weather({"city":"Oslo"}), call_pWhSNDNmM_aFa2Lf:get_time({"tz":"Europe/Oslo"})]"#);
    insta::assert_snapshot!(odd("call-without-index-and-id"), @r#"Whole tool_calls "" [:echo({"text":"x"})]"#);
    insta::assert_snapshot!(odd("name-in-second-fragment"), @r#"Whole tool_calls "" [c1:echo({"text":"x"})]"#);
    insta::assert_snapshot!(odd("arguments-null-then-text"), @r#"Whole tool_calls "" [c1:echo({"text":"x"})]"#);
    insta::assert_snapshot!(odd("call-without-name"), @r#"Whole tool_calls "" [:({"text":"x"})]"#);
    insta::assert_snapshot!(odd("one-id-for-two-calls"), @r#"Whole tool_calls "" [same:echo({"text":"1"}), :echo({"text":"2"})]"#);
    insta::assert_snapshot!(odd("arguments-cut-after-every-character"), @r#"Whole tool_calls "" [c1:echo({"text":"é\u00e9 \ud83d\ude00 \"q\""})]"#);
    insta::assert_snapshot!(odd("arguments-empty"), @r#"Whole tool_calls "" [c1:now()]"#);
    insta::assert_snapshot!(odd("arguments-absent"), @r#"Whole tool_calls "" [c1:now()]"#);
    insta::assert_snapshot!(odd("arguments-null-word"), @r#"Whole tool_calls "" [c1:now(null)]"#);
    insta::assert_snapshot!(odd("arguments-blank"), @r#"Whole tool_calls "" [c1:now(  )]"#);
    insta::assert_snapshot!(odd("arguments-truncated"), @r#"Whole length "" [c1:now({)]"#);
    insta::assert_snapshot!(odd("arguments-doubled"), @r#"Whole tool_calls "" [c1:echo({"text":"x"})]"#);
    insta::assert_snapshot!(odd("first-token-lost"), @r#"Whole tool_calls "" [c1:echo("text":"x"})]"#);
    insta::assert_snapshot!(odd("call-and-stop"), @r#"Whole stop "" [c1:echo({"text":"x"})]"#);
    insta::assert_snapshot!(odd("text-and-call"), @r#"Whole tool_calls "Done! The file is deleted." [c1:echo({"text":"x"})]"#);
    insta::assert_snapshot!(odd("unknown-tool"), @r#"Whole tool_calls "" [c1:rm_rf({})]"#);
    insta::assert_snapshot!(odd("empty-deltas"), @r#"Whole tool_calls "" [c1:echo({"text":"x"})]"#);
    insta::assert_snapshot!(odd("tool-calls-without-call"), @r#"Whole tool_calls "" []"#);
}

#[test]
fn reasoning_is_kept_out_of_the_text() {
    insta::assert_snapshot!(odd("think-cut"), @r#"Whole stop "Answer 4" []"#);
    insta::assert_snapshot!(odd("think-only-closed"), @r#"Whole stop "Answer 4" []"#);
    insta::assert_snapshot!(odd("think-never-closed"), @r#"Whole stop "<think>plan and Answer 4" []"#);
    insta::assert_snapshot!(odd("reasoning-field"), @r#"Whole stop "Answer 4" []"#);
    insta::assert_snapshot!(odd("thought-cut"), @r#"Whole stop "Answer 4" []"#);
    insta::assert_snapshot!(odd("think-mentioned"), @r#"Whole stop "Wrap it in `<think>` and `</think>` yourself." []"#);
    insta::assert_snapshot!(odd("think-with-call"), @r#"Whole tool_calls "" [c1:echo({"text":"yes"})]"#);
    let (reply, deltas) = read(&stream("think-cut"));
    assert_eq!(text_of(&deltas), reply.reply.text.as_str());
    let (unclosed, deltas) = read(&stream("think-never-closed"));
    assert_eq!(unclosed.observed.iter().map(|seen| seen.what.as_str()).collect::<Vec<_>>(), ["reasoning_unclosed"]);
    assert_eq!(text_of(&deltas), "");
}

#[test]
fn failures_inside_a_fine_answer_are_told() {
    for (name, end, kind, detail) in [
        ("error-after-text", ReplyEnd::Cut, FailureKind::Reported, "The server reported a failure in its reply: quota exceeded."),
        ("error-field", ReplyEnd::Failed, FailureKind::ContextOverflow, "The server reported a failure in its reply: the request exceeds the available context size."),
    ] {
        let (reply, _) = read(&stream(name));
        assert_eq!((reply.reply.end, reply.failure.unwrap().kind, reply.reply.detail.as_deref()), (end, kind, Some(detail)));
    }
    for event in [
        "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n",
        "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"error\",\"error\":{\"message\":\"Overloaded\"}}]}\n\n",
        "data: {\"object\":\"error\",\"message\":\"Overloaded\",\"code\":500}\n\n",
        "{\"error\":\"Overloaded\"}\n",
        "event: error\ndata: Overloaded\n\n",
    ] {
        let (reply, _) = read(event.as_bytes());
        assert_eq!(reply.reply.end, ReplyEnd::Failed, "{event}");
        assert_eq!(reply.reply.detail.unwrap(), "The server reported a failure in its reply: Overloaded.", "{event}");
    }
}

#[test]
fn an_empty_turn_is_whole_and_empty() {
    let (reply, deltas) = read(&stream("nothing-said"));
    assert_eq!(shown(&reply), "Whole stop \"\" []");
    assert_eq!(reply.reply.usage.unwrap().prompt_tokens, 36000);
    assert!(deltas.is_empty());
}

#[test]
fn usage_is_taken_from_the_last_chunk_that_has_it() {
    let (reply, _) = read(&stream("usage-in-odd-chunks"));
    assert_eq!(shown(&reply), "Whole stop \"hi\" []");
    let usage = reply.reply.usage.unwrap();
    assert_eq!((usage.prompt_tokens, usage.completion_tokens, usage.total_tokens), (7, 2, 9));
    let growing = of(&[
        r#"{"choices":[{"delta":{"content":"a"}}],"usage":{"prompt_tokens":5,"completion_tokens":1}}"#,
        r#"{"choices":[{"delta":{"content":"b"},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":2}}"#,
    ]);
    assert_eq!(read(&growing).0.reply.usage.unwrap().total_tokens, 7);
}

#[test]
fn how_a_stream_ends_says_whether_the_reply_is_whole() {
    let text = r#"{"choices":[{"index":0,"delta":{"content":"par"}}]}"#;
    let stop = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
    assert_eq!(shown(&read(&of(&[text, stop])).0), "Whole stop \"par\" []");
    assert_eq!(shown(&read(&of(&[text, "[DONE]"])).0), "Whole - \"par\" []");
    let (cut, _) = read(&of(&[text]));
    assert_eq!(shown(&cut), "Cut - \"par\" []");
    assert_eq!(cut.reply.detail.as_deref(), Some("The server ended its reply before it was finished."));
    for nothing in [&b""[..], b": hello\n\n", b"data: [DONE]\n\n", b"data: {}\n\n"] {
        let (reply, _) = read(nothing);
        assert_eq!((reply.reply.end, reply.failure.unwrap().kind), (ReplyEnd::Failed, FailureKind::Unreadable));
    }
    let (interrupted, _) = fold(&of(&[text]), 5, Ending::Interrupted);
    assert_eq!(shown(&interrupted), "Interrupted - \"par\" []");
    assert!(interrupted.failure.is_none());
}

#[test]
fn what_cannot_be_read_is_skipped_counted_and_bounded() {
    let noise = |count: usize| {
        let mut events = vec!["not json"; count];
        events.extend([r#"{"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}"#, "[DONE]"]);
        of(&events)
    };
    let (some, _) = read(&noise(3));
    assert_eq!(shown(&some), "Whole stop \"hi\" []");
    insta::assert_snapshot!(some.observed.first().unwrap().detail, @"The server sent 3 event(s) that are no part of a completion; they were skipped.");
    let (many, _) = read(&noise(300));
    assert_eq!(many.reply.end, ReplyEnd::Failed);
    insta::assert_snapshot!(many.reply.detail.unwrap(), @"The server sends events that are no part of a completion; the last one begins: not json.");
}

#[test]
fn odd_contents_are_read() {
    let reply = |delta: &str| {
        let chunk = format!(r#"{{"choices":[{{"index":0,"delta":{delta}}}]}}"#);
        shown(&read(&of(&[&chunk, r#"{"choices":[{"index":1,"delta":{"content":"other"}},{"index":0,"delta":{},"finish_reason":"stop"}]}"#])).0)
    };
    insta::assert_snapshot!(reply(r#"{"content":[{"type":"text","text":"a"},{"type":"image","url":"x"},{"type":"text","text":"b"}]}"#), @r#"Whole stop "ab" []"#);
    insta::assert_snapshot!(reply(r#"{"content":null,"refusal":"I cannot."}"#), @r#"Whole stop "I cannot." []"#);
    insta::assert_snapshot!(reply(r#"{"content":7,"tool_calls":"none"}"#), @r#"Whole stop "" []"#);
    insta::assert_snapshot!(reply(r#"{"function_call":{"name":"old","arguments":"{}"}}"#), @r#"Whole stop "" [:old({})]"#);
    insta::assert_snapshot!(reply(r#"{"content":"a\ud83d"}"#), @r#"Whole stop "a�" []"#);
}

#[test]
fn what_the_provider_wants_back_is_kept() {
    let (reply, _) = read(&of(&[
        r#"{"choices":[{"delta":{"content":"a","reasoning_details":[{"type":"x","n":1}],"unknown":1}}]}"#,
        r#"{"choices":[{"delta":{"reasoning_details":[{"n":2}],"extra_content":{"s":"t"}},"finish_reason":"stop"}]}"#,
    ]));
    assert_eq!(
        reply.reply.opaque.unwrap(),
        serde_json::json!({"reasoning_details": [{"type": "x", "n": 1}, {"n": 2}], "extra_content": {"s": "t"}})
    );
}

#[test]
fn a_reply_that_is_not_streamed_is_the_same() {
    let mut fold = ReplyFold::default();
    assert!(fold.whole(
        r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"<think>x</think>a","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}"#
    ));
    assert_eq!(shown(&fold.end("The server", Ending::Complete).0), "Whole tool_calls \"a\" [1:f({})]");
    for nothing in ["[]", "null", "{}", "{\"choices\":[]}", "hello"] {
        assert!(!ReplyFold::default().whole(nothing), "{nothing}");
    }
}
