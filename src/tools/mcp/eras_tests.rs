//! What each kind of server makes of the probe and the handshake.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, clippy::arithmetic_side_effects)]

use super::super::exchange::tests::{Rig, rig};
use super::super::incoming::dispatch;
use super::super::outgoing::{Outgoing, What};
use super::*;

const RESULT: &str =
    r#""result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"n","version":"1"}}"#;
const NOT_FOUND: &str = r#""error":{"code":-32601,"message":"no"}"#;

/// Plays a server: what it says to each request, in their order. Nothing means silence.
async fn against(answers: &[Option<&str>]) -> (Result<Agreement, Refusal>, Vec<String>) {
    with_patience(answers, Duration::from_secs(60)).await
}

async fn with_patience(answers: &[Option<&str>], patience: Duration) -> (Result<Agreement, Refusal>, Vec<String>) {
    let Rig { exchange, mut outgoing, .. } = rig();
    let server = exchange.clone();
    let mut methods = Vec::new();
    let serving = async {
        let mut answers = answers.iter();
        while let Some(Outgoing { line, what }) = outgoing.recv().await {
            let line: Value = serde_json::from_slice(&line).unwrap();
            if let What::Notification(Some(taken)) = what {
                taken.send(Ok(())).unwrap();
            }
            methods.push(line.get("method").and_then(Value::as_str).unwrap().to_owned());
            if let (Some(id), Some(Some(answer))) = (line.get("id"), answers.next()) {
                if *answer == "die" {
                    server.close();
                } else {
                    dispatch(&server, format!(r#"{{"jsonrpc":"2.0","id":{id},{answer}}}"#).into_bytes().into(), None);
                }
            }
        }
    };
    let found = tokio::select! {
        biased;
        () = serving => panic!("the server ends first"),
        found = agree(&exchange, "client", patience) => found,
    };
    (found, methods)
}

fn why(found: Result<Agreement, Refusal>) -> String {
    match found {
        Err(Refusal::Because(why)) => why,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn the_class_of_an_answer_decides_and_not_its_code() {
    let shaken = Agreement {
        era: Era::Handshake,
        version: "2025-06-18".to_owned(),
        implementation: Some("n 1".to_owned()),
        declares_tools: true,
        declares_changes: false,
    };
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
    assert_eq!(why(found), "refuses the handshake with error -32601: no");
}

#[tokio::test]
async fn a_server_of_the_stateless_era_is_taken_at_its_word() {
    let discovered = r#""result":{"supportedVersions":["2025-11-25","2026-07-28"],"capabilities":{"tools":{"listChanged":true}},
        "ttlMs":-5,"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"n","version":"2"}}}"#;
    let (found, methods) = against(&[Some(discovered)]).await;
    let agreement = Agreement {
        era: Era::Stateless,
        version: "2026-07-28".to_owned(),
        implementation: Some("n 2".to_owned()),
        declares_tools: true,
        declares_changes: true,
    };
    assert_eq!((found, methods), (Ok(agreement), vec!["server/discover".to_owned()]));
    let (found, _) = against(&[Some(r#""result":{"resultType":"task","supportedVersions":["2026-07-28"]}"#)]).await;
    insta::assert_snapshot!(why(found), @r#"says what it can do in a result of the type "task", which is not known"#);
    let (found, methods) = against(&[Some(r#""result":{"supportedVersions":["2025-06-18"]}"#), Some(RESULT)]).await;
    assert_eq!(found.unwrap().era, Era::Handshake, "it says itself that it shakes hands");
    assert_eq!(methods, ["server/discover", "initialize", "notifications/initialized"]);
    let (found, methods) = against(&[Some(r#""result":{"supportedVersions":["2027-01-01"]}"#)]).await;
    insta::assert_snapshot!(why(found), @"speaks no version of the protocol that is known: it speaks 2027-01-01; known are 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25, 2026-07-28");
    assert_eq!(methods, ["server/discover"]);
}

#[tokio::test]
async fn an_error_of_the_stateless_era_is_never_answered_by_a_handshake() {
    for code in [-32020, -32021] {
        let error = format!(r#""error":{{"code":{code},"message":"m","data":{{"supported":["2025-11-25"]}}}}"#);
        let (found, methods) = against(&[Some(&error)]).await;
        assert!(why(found).contains(&code.to_string()));
        assert_eq!(methods, ["server/discover"]);
    }
    let unsupported = |versions: &str| format!(r#""error":{{"code":-32022,"message":"m","data":{{"supported":[{versions}]}}}}"#);
    let (found, methods) = against(&[Some(&unsupported(r#""2027-01-01""#))]).await;
    assert!(why(found).contains("it speaks 2027-01-01; known are"));
    assert_eq!(methods, ["server/discover"]);
    let again = unsupported(r#""2026-07-28""#);
    let (found, methods) = against(&[Some(&again), Some(r#""result":{"supportedVersions":["2026-07-28"]}"#)]).await;
    assert_eq!(found.unwrap().era, Era::Stateless);
    assert_eq!(methods, ["server/discover"; 2], "asked once more, and no more than that");
    let (found, methods) = against(&[Some(&again), Some(&again)]).await;
    assert!(found.is_err());
    assert_eq!(methods, ["server/discover"; 2]);
    let (found, _) = against(&[Some(&unsupported(r#""2025-11-25""#)), Some(RESULT)]).await;
    assert_eq!(found.unwrap().era, Era::Handshake, "it names none but versions with one");
}

#[tokio::test]
async fn an_answer_that_comes_late_decides_only_when_the_handshake_does_not() {
    let modern = r#""result":{"supportedVersions":["2026-07-28"]}"#;
    for (answers, era) in [([RESULT, modern], Era::Handshake), ([NOT_FOUND, modern], Era::Stateless)] {
        let Rig { exchange, mut outgoing, .. } = rig();
        let serving = async {
            let probe = outgoing.recv().await.unwrap();
            let initialize = outgoing.recv().await.unwrap();
            // The handshake is answered first.
            for (asked, answer) in [(initialize, answers[0]), (probe, answers[1])] {
                let asked: Value = serde_json::from_slice(&asked.line).unwrap();
                dispatch(&exchange, format!(r#"{{"jsonrpc":"2.0","id":{},{answer}}}"#, asked["id"]).into_bytes().into(), None);
            }
            while let Some(Outgoing { what, .. }) = outgoing.recv().await {
                if let What::Notification(Some(taken)) = what {
                    taken.send(Ok(())).unwrap();
                }
            }
        };
        let found = tokio::select! {
            biased;
            () = serving => panic!("the server ends first"),
            found = agree(&exchange, "client", Duration::from_millis(1)) => found,
        };
        assert_eq!(found.unwrap().era, era);
    }
}

/// What an HTTP wire says to each request in its turn.
async fn refused(statuses: &[u16]) -> (Result<Agreement, Refusal>, usize) {
    let Rig { exchange, mut outgoing, .. } = rig();
    let mut asked = 0;
    let serving = async {
        while let Some(Outgoing { what, .. }) = outgoing.recv().await {
            let What::Request { id, .. } = what else { continue };
            let status = statuses[asked];
            asked += 1;
            let retry_after = Some(Duration::from_millis(1));
            exchange.resolve(&id, Answer::Refused(Refused { status, why: format!("says {status}"), retry_after }));
        }
    };
    let found = tokio::select! {
        biased;
        () = serving => panic!("the server ends first"),
        found = agree(&exchange, "client", Duration::from_secs(60)) => found,
    };
    (found, asked)
}

#[tokio::test]
async fn a_status_that_says_nothing_about_the_era_decides_nothing() {
    for status in [401, 403, 302, 307, 200] {
        let (found, asked) = refused(&[status]).await;
        assert_eq!((why(found), asked), (format!("says {status}"), 1));
    }
    for status in [429, 502, 503, 504] {
        let (found, asked) = refused(&[status; 3]).await;
        assert_eq!((why(found), asked), (format!("says {status}"), 3), "the probe, and nothing else, is made again");
    }
    for status in [400, 404, 405] {
        let (found, asked) = refused(&[status; 2]).await;
        assert_eq!((why(found).contains("old transport"), asked), (true, 2), "a handshake is tried");
    }
    assert_eq!(refused(&[500, 500, 500, 500]).await.1, 4, "a handshake is tried in the end");
}

#[tokio::test]
async fn versions_are_checked() {
    let answered = async |result: &str| against(&[Some(NOT_FOUND), Some(result)]).await.0;
    for version in versions::HANDSHAKE {
        let result = format!(r#""result":{{"protocolVersion":"{version}","capabilities":{{}}}}"#);
        assert_eq!(answered(&result).await.unwrap().version, *version);
    }
    insta::assert_snapshot!(why(answered(r#""result":{"protocolVersion":"2099-01-01"}"#).await), @r#"names the protocol version "2099-01-01" in the handshake, which is not known; known are 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25"#);
    insta::assert_snapshot!(why(answered(r#""result":{}"#).await), @"names no protocol version in the handshake; known are 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25");
    insta::assert_snapshot!(why(answered(r#""result":["2025-11-25",{},{}]"#).await), @"names no protocol version in the handshake; known are 2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25");
    insta::assert_snapshot!(why(answered(r#""error":{"code":-32603,"message":"no key"}"#).await), @"refuses the handshake with error -32603: no key");
}

#[tokio::test]
async fn a_server_that_names_another_version_is_asked_for_it_once() {
    let unsupported = r#""error":{"code":-32022,"message":"m","data":{"supported":["2024-11-05","2025-03-26"]}}"#;
    let (found, methods) = against(&[Some(NOT_FOUND), Some(unsupported), Some(RESULT)]).await;
    assert!(found.is_ok());
    assert_eq!(methods.iter().filter(|method| *method == "initialize").count(), 2);
    let (found, methods) = against(&[Some(NOT_FOUND), Some(unsupported), Some(unsupported)]).await;
    assert_eq!(why(found), "refuses the handshake with error -32022: m (data: {\"supported\":[\"2024-11-05\",\"2025-03-26\"]})");
    assert_eq!(methods.iter().filter(|method| *method == "initialize").count(), 2);
}

#[tokio::test]
async fn death_is_no_era() {
    assert_eq!(against(&[Some("die")]).await.0, Err(Refusal::Gone));
    assert_eq!(against(&[Some(NOT_FOUND), Some("die")]).await.0, Err(Refusal::Gone));
}
