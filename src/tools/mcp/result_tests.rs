//! What answers to a call become.
#![allow(clippy::unwrap_used, clippy::panic)]

use mission_contract::log::CallEnd;
use serde_json::json;

use super::super::frame::{Shape, shape};
use super::*;

fn message(line: &[u8]) -> Message {
    match shape(line) {
        Shape::Object(outline) => Message::new(line.to_vec(), &outline),
        other => panic!("{other:?}"),
    }
}

fn answer(line: &str) -> Classified {
    classify(message(line.as_bytes()), "srv", "tool")
}

fn result(result: &str) -> CallResult {
    answer(&format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#)).result
}

fn ok(raw: &str) -> (String, Option<Value>) {
    let result = result(raw);
    assert_eq!((result.end, result.exit_code, result.error.as_str()), (CallEnd::Ok, 0, ""), "{raw}");
    (result.text.as_str().to_owned(), result.structured.map(std::sync::Arc::unwrap_or_clone))
}

#[test]
fn texts_are_joined_in_their_order() {
    assert_eq!(ok(r#"{"content":[{"type":"text","text":"a\n"},{"text":"\u00e9","type":"text"}],"isError":false}"#).0, "a\n\né");
    assert_eq!(ok(r#"{"content":[]}"#), (String::new(), None));
    assert_eq!(ok(r#"{"content":[{"type":"text","text":"x","annotations":{"audience":["user"]}}],"tools":[],"resources":[],"action":"accept","resultType":"complete"}"#).0, "x");
}

#[test]
fn typed_results_stand_beside_the_text_or_in_its_place() {
    assert_eq!(
        ok(r#"{"content":[{"type":"text","text":"t"}],"structuredContent":{"a":1}}"#),
        ("t".to_owned(), Some(json!({"a": 1})))
    );
    let alone = r#"{"structuredContent":{"ä":18446744073709551617}}"#;
    assert_eq!(ok(alone).0, r#"{"ä":18446744073709551617}"#);
    assert_eq!(ok(r#"{"content":[],"structuredContent":[1,"x"]}"#), (r#"[1,"x"]"#.to_owned(), Some(json!([1, "x"]))));
    assert_eq!(ok(r#"{"structuredContent":null}"#), ("null".to_owned(), Some(Value::Null)));
    let deep =
        format!(r#"{{"content":[{{"type":"text","text":"t"}}],"structuredContent":{}{}}}"#, "[".repeat(200), "]".repeat(200));
    let classified = answer(&format!(r#"{{"id":1,"result":{deep}}}"#));
    assert_eq!(classified.result.structured, None);
    assert!(classified.result.text.as_str().starts_with("t\n[[["));
    assert_eq!(classified.notices.first().unwrap().0, "structured_dropped");
}

#[test]
fn what_is_not_text_is_named_with_type_and_size() {
    let classified = answer(
        r#"{"id":1,"result":{"content":[{"type":"image","data":"AAECAwQ=","mimeType":"image/png"},{"type":"audio","data":"AAEC"},
        {"type":"resource_link","uri":"file:///a","name":"A","size":7,"mimeType":"text/x"},
        {"type":"resource","resource":{"uri":"mem:1","text":"inside"}},{"type":"resource","resource":{"uri":"mem:2","blob":"AAEC","mimeType":"a/b"}},
        {"type":"hologram","beams":3},{"type":"text","text":7},{"type":"image"},{"kind":"x"}]}}"#,
    );
    assert_eq!(classified.notices.first().unwrap().0, "content_unknown");
    let result = classified.result;
    insta::assert_snapshot!(result.text.as_str(), @r"
    [image image/png, 5 bytes]
    [audio of an unknown type, 3 bytes]
    [resource_link file:///a]
    [resource mem:1]
    inside
    [resource mem:2 a/b, 3 bytes]
    [hologram]
    [text]
    [image]
    [unknown]
    ");
    assert_eq!(
        json!(result.blocks),
        json!([
            {"kind": "image", "mime_type": "image/png", "bytes": 5},
            {"kind": "audio", "mime_type": "of an unknown type", "bytes": 3},
            {"kind": "resource_link", "uri": "file:///a", "name": "A", "bytes": 7, "mime_type": "text/x"},
            {"kind": "resource", "uri": "mem:1", "bytes": 6},
            {"kind": "resource", "uri": "mem:2", "mime_type": "a/b", "bytes": 3},
            {"kind": "hologram"}, {"kind": "text"}, {"kind": "image"}, {"kind": "unknown"},
        ])
    );
}

#[test]
fn only_a_tool_that_says_so_has_failed() {
    let failed = result(r#"{"content":[{"type":"text","text":"no such file"}],"isError":true,"structuredContent":{"code":2}}"#);
    assert_eq!((failed.end, failed.exit_code), (CallEnd::Error, 1));
    assert_eq!((failed.text.as_str(), failed.error.as_str()), ("", "no such file"));
    assert_eq!(failed.structured.as_deref(), Some(&json!({"code": 2})));
    insta::assert_snapshot!(result(r#"{"content":[],"isError":true}"#).error, @"The tool `tool` says that it failed, and not why.");
    insta::assert_snapshot!(result(r#"{"isError":true}"#).error, @"The tool `tool` says that it failed, and not why.");
    assert_eq!(ok(r#"{"content":[{"type":"text","text":"Error: none found"}]}"#).0, "Error: none found");
}

#[test]
fn what_is_no_result_is_told_apart_from_a_failure() {
    let protocol = |raw: &str| {
        let result = answer(raw).result;
        assert_eq!((result.end, result.exit_code, result.text.as_str()), (CallEnd::Protocol, -1, ""), "{raw}");
        result.error
    };
    insta::assert_snapshot!(protocol(r#"{"id":1,"result":{}}"#), @"The server `srv` answered the call of `tool` with a result that has neither content nor structuredContent.");
    insta::assert_snapshot!(protocol(r#"{"id":1,"result":{"foo":1}}"#), @"The server `srv` answered the call of `tool` with a result that has neither content nor structuredContent.");
    insta::assert_snapshot!(protocol(r#"{"id":1,"result":{"content":"x"}}"#), @r#"The server `srv` answered the call of `tool` with something that is no result of a call: invalid type: string "x", expected a sequence at line 1 column 14."#);
    insta::assert_snapshot!(protocol(r#"{"id":1,"result":["complete",[]]}"#), @"The server `srv` answered the call of `tool` with something that is no result of a call: it is no object.");
    insta::assert_snapshot!(protocol(r#"{"id":1,"result":{"content":[],"isError":"true"}}"#), @r#"The server `srv` answered the call of `tool` with a result that does not say whether it is an error: isError is "true"."#);
    insta::assert_snapshot!(protocol(r#"{"id":1,"result":{"content":[{"type":"text","text":NaN}]}}"#), @"The server `srv` answered the call of `tool` with something that is no result of a call: expected value at line 1 column 35.");
    insta::assert_snapshot!(protocol(r#"{"id":1,"result":{"content":[],"resultType":"later"}}"#), @r#"The server `srv` answered the call of `tool` with a result of the type "later", which is not known."#);
    insta::assert_snapshot!(protocol(r#"{"id":1,"result":{"content":[{"type":"hologram","beams":3}]}}"#), @r#"The server `srv` answered the call of `tool` with content of the type "hologram", which is not known, and with nothing else."#);
    insta::assert_snapshot!(protocol(r#"{"id":1,"result":{"content":[]},"error":{"code":1,"message":"m"}}"#), @"The server `srv` answered the call of `tool` with a result and with an error in one; neither is taken.");
    insta::assert_snapshot!(protocol(r#"{"id":1,"jsonrpc":"2.0"}"#), @"The server `srv` answered the call of `tool` with neither a result nor an error.");
    insta::assert_snapshot!(protocol(r#"{"id":1,"error":{"code":-99999999999,"message":"b\u00f6se","data":{"why":1}}}"#), @r#"The server `srv` answered the call of `tool` with error -99999999999: böse (data: {"why":1})"#);
    insta::assert_snapshot!(protocol(r#"{"id":1,"error":{"code":-32000.0,"message":5}}"#), @"The server `srv` answered the call of `tool` with error -32000.0: 5");
    insta::assert_snapshot!(protocol(r#"{"id":1,"error":"no"}"#), @r#"The server `srv` answered the call of `tool` with an error that is no error object: "no""#);
}

#[test]
fn a_question_and_a_task_are_declined_and_told() {
    let asked = answer(r#"{"id":1,"result":{"resultType":"input_required","inputRequests":{},"requestState":"s"}}"#);
    assert_eq!(asked.result.end, CallEnd::Protocol);
    assert_eq!(asked.notices.first().unwrap().0, "elicitation_declined");
    for raw in [
        r#"{"id":1,"result":{"resultType":"task","taskId":"T-1","status":"working"}}"#,
        r#"{"id":1,"result":{"task":{"taskId":"T-1","status":"working"}}}"#,
    ] {
        let task = answer(raw);
        assert_eq!(task.notices.first().unwrap().0, "task_refused");
        assert!(task.result.error.contains("T-1"), "{}", task.result.error);
    }
}

#[test]
fn bytes_that_are_no_text_do_not_cost_the_result() {
    let mut line = br#"{"id":1,"result":{"content":[{"type":"text","text":""#.to_vec();
    line.extend_from_slice(b"caf\xe9 \xb0\xa1");
    line.extend_from_slice(br#""}]}}"#);
    let classified = classify(message(&line), "srv", "tool");
    assert_eq!(classified.result.text.as_str(), "caf\u{fffd} \u{fffd}\u{fffd}");
    assert_eq!(classified.notices.first().unwrap().0, "result_repaired");
}

#[test]
fn samples_are_bounded_and_printable() {
    assert_eq!(sample(b"ready\x1b[2J\xff"), "ready\\u{1b}[2J\u{fffd}");
    let long = sample(&[b'x'; 5_000]);
    assert_eq!(long.chars().count(), 201);
    assert_eq!(cut("äöü", 3), "ä…");
}
