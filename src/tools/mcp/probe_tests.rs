//! What each kind of server makes of the probe and the handshake.
#![allow(clippy::unwrap_used, clippy::panic)]

use super::super::exchange::tests::{Rig, rig};
use super::super::pump;
use super::*;

const RESULT: &str =
    r#""result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"n","version":"1"}}"#;
const NOT_FOUND: &str = r#""error":{"code":-32601,"message":"no"}"#;

/// Plays a server: what it says to each request, in their order. Nothing means silence.
async fn against(answers: &[Option<&str>]) -> (Result<Handshake, Refusal>, Vec<String>) {
    with_patience(answers, Duration::from_secs(60)).await
}

async fn with_patience(answers: &[Option<&str>], patience: Duration) -> (Result<Handshake, Refusal>, Vec<String>) {
    let Rig { exchange, mut lines, .. } = rig();
    let server = exchange.clone();
    let mut methods = Vec::new();
    let serving = async {
        let mut answers = answers.iter();
        while let Some(line) = lines.recv().await {
            let line: Value = serde_json::from_slice(&line).unwrap();
            methods.push(line.get("method").and_then(Value::as_str).unwrap().to_owned());
            if let (Some(id), Some(Some(answer))) = (line.get("id"), answers.next()) {
                if *answer == "die" {
                    server.close();
                } else {
                    pump::dispatch(&server, format!(r#"{{"jsonrpc":"2.0","id":{id},{answer}}}"#).into_bytes().into());
                }
            }
        }
    };
    let found = tokio::select! {
        biased;
        () = serving => panic!("the server ends first"),
        found = probe(&exchange, "client", patience) => found,
    };
    drop(exchange);
    while let Ok(line) = lines.try_recv() {
        let line: Value = serde_json::from_slice(&line).unwrap();
        methods.push(line.get("method").and_then(Value::as_str).unwrap().to_owned());
    }
    (found, methods)
}

fn because(found: Result<Handshake, Refusal>) -> String {
    match found {
        Err(Refusal::Because(why)) => why,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn the_class_of_an_answer_decides_and_not_its_code() {
    let shaken = Handshake { version: "2025-06-18".to_owned(), implementation: Some("n 1".to_owned()), declares_tools: true };
    for foreign in [
        NOT_FOUND,
        r#""error":{"code":-32602,"message":"no"}"#,
        r#""error":{"code":-32000,"message":"not initialized"}"#,
        r#""error":{"code":-99999999999999,"message":"no"}"#,
        r#""error":"no""#,
        r#""result":{}"#,
        r#""result":{"supportedVersions":"all"}"#,
        r#""result":"#,
    ] {
        let (found, methods) = against(&[Some(foreign), Some(RESULT)]).await;
        assert_eq!(found, Ok(shaken.clone()), "{foreign}");
        assert_eq!(methods, ["server/discover", "initialize", "notifications/initialized"]);
    }
}

#[tokio::test]
async fn silence_is_answered_by_a_handshake_beside_the_probe() {
    let moment = Duration::from_millis(1);
    let (found, methods) = with_patience(&[None, Some(RESULT)], moment).await;
    assert!(found.is_ok());
    assert_eq!(methods, ["server/discover", "initialize", "notifications/initialized"]);
    let (found, _) = with_patience(&[None, Some(NOT_FOUND)], moment).await;
    assert_eq!(because(found), "refuses the handshake with error -32601: no");
}

#[tokio::test]
async fn a_server_of_the_stateless_era_is_told_apart() {
    let stateless = |versions: &[&str], may_speak_both| {
        Err(Refusal::Stateless { versions: versions.iter().map(|version| (*version).to_owned()).collect(), may_speak_both })
    };
    let (found, methods) = against(&[Some(r#""result":{"supportedVersions":["2026-07-28"]}"#)]).await;
    assert_eq!(found, stateless(&["2026-07-28"], true));
    assert_eq!(methods, ["server/discover"]);
    for code in [-32020, -32021, -32022] {
        let error = format!(r#""error":{{"code":{code},"message":"m","data":{{"supported":["2027-01-01"]}}}}"#);
        let (found, methods) = against(&[Some(&error)]).await;
        assert_eq!(found, stateless(&["2027-01-01"], false));
        assert_eq!(methods, ["server/discover"], "no handshake after such an error");
    }
    let both = r#""result":{"supportedVersions":["2026-07-28","2025-11-25"]}"#;
    assert!(against(&[Some(both), Some(RESULT)]).await.0.is_ok());
}

#[tokio::test]
async fn versions_are_checked() {
    let answered = async |result: &str| against(&[Some(NOT_FOUND), Some(result)]).await.0;
    for version in HANDSHAKE_VERSIONS {
        let result = format!(r#""result":{{"protocolVersion":"{version}","capabilities":{{}}}}"#);
        assert_eq!(answered(&result).await.unwrap().version, *version);
    }
    insta::assert_snapshot!(because(answered(r#""result":{"protocolVersion":"2099-01-01"}"#).await), @r#"names the protocol version "2099-01-01" in the handshake, which is not known; known are 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25"#);
    insta::assert_snapshot!(because(answered(r#""result":{}"#).await), @"names no protocol version in the handshake; known are 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25");
    insta::assert_snapshot!(because(answered(r#""result":["2025-11-25",{},{}]"#).await), @"names no protocol version in the handshake; known are 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25");
    insta::assert_snapshot!(because(answered(r#""error":{"code":-32603,"message":"no key"}"#).await), @"refuses the handshake with error -32603: no key");
}

#[tokio::test]
async fn a_server_that_names_another_version_is_asked_for_it_once() {
    let unsupported = r#""error":{"code":-32022,"message":"m","data":{"supported":["2024-11-05","2025-03-26"]}}"#;
    let (found, methods) = against(&[Some(NOT_FOUND), Some(unsupported), Some(RESULT)]).await;
    assert!(found.is_ok());
    assert_eq!(methods.iter().filter(|method| *method == "initialize").count(), 2);
    let (found, methods) = against(&[Some(NOT_FOUND), Some(unsupported), Some(unsupported)]).await;
    assert_eq!(
        because(found),
        "refuses the handshake with error -32022: m (data: {\"supported\":[\"2024-11-05\",\"2025-03-26\"]})"
    );
    assert_eq!(methods.iter().filter(|method| *method == "initialize").count(), 2);
}

#[tokio::test]
async fn death_is_no_era() {
    assert_eq!(against(&[Some("die")]).await.0, Err(Refusal::Gone));
    assert_eq!(against(&[Some(NOT_FOUND), Some("die")]).await.0, Err(Refusal::Gone));
}
