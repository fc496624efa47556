//! What holds whatever a server does: a call in all, a list in all, messages under way, and what of its words nobody reads.

use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use mission::limits;
use mission_contract::log::{CallEnd, ServerCondition};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::support::PATIENCE;
use crate::support::needs;
use crate::support::planes::{Plane, Player, http, tool};
use crate::support::player::{initialized, join, listed, probed};
use crate::support::remote::{Heard, Remote, Said, body, error, event, events, result, status};
use crate::support::servers;

fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

fn handshaken(says: impl Fn(&Heard, usize) -> Said + Send + Sync + 'static) -> Remote {
    Remote::handshake(json!([tool("echo")]), says)
}

/// Progress moves the end of a call only so far: it has one in all, over either wire, and the server is told.
#[tokio::test]
async fn a_call_has_an_end_in_all_whatever_progress_it_reports() {
    needs!(servers::python());
    let most = Duration::from_millis(1_500);
    let progress = |token: Value, number: u64| json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token, "progress": number}});
    let endless = (0..200).map(|number| json!([{"send": progress(json!("$TOKEN"), number)}, {"sleep_ms": 50}]));
    let steps = [probed(), initialized("2025-06-18"), listed(json!([tool("echo")])), json!([{"expect": "tools/call"}])];
    let player = Player::new(join(steps.into_iter().chain(endless)));
    let mut request = player.request();
    request.call_limit = most;
    let mut plane = Plane::of(vec![request]).await;
    let over_pipes = plane.call("echo").await;
    plane.close().await;

    let remote = handshaken(move |heard, _| match heard.method() {
        "tools/call" => {
            let token = heard.body["params"]["_meta"]["progressToken"].clone();
            events((0..50).map(|number| event(&progress(token.clone(), number))).collect::<String>()).hanging()
        }
        _ => status(202),
    });
    let mut request = http("srv", &remote.url(), None);
    request.call_limit = most;
    let mut plane = Plane::of(vec![request]).await;
    let over_http = plane.call("echo").await;
    remote.wait_for(|heard| heard.method() == "notifications/cancelled").await;
    plane.close().await;
    for ended in [over_pipes, over_http] {
        assert_eq!(ended.end, CallEnd::Timeout, "{ended:?}");
        assert!(ended.error.contains("did not answer the call of `echo` within 1.5 s in all."), "{}", ended.error);
    }
}

/// A list that comes page by page and slowly has an end in all too.
#[tokio::test]
async fn a_list_has_an_end_in_all() {
    needs!(servers::python());
    let page = |number: u64| {
        let page = json!({"tools": [], "nextCursor": format!("c{number}")});
        json!([{"expect": "tools/list"}, {"sleep_ms": 300}, {"send": {"jsonrpc": "2.0", "id": "$ID", "result": page}}])
    };
    let steps = [probed(), initialized("2025-06-18")].into_iter().chain((0..90).map(page));
    let player = Player::new(join(steps));
    let mut request = player.request();
    request.timeout = Duration::from_secs(3);
    let began = Instant::now();
    let plane = Plane::of(vec![request]).await;
    assert_eq!(plane.server().state, ServerCondition::Failed);
    assert!(plane.failure().contains("did not list its tools within"), "{}", plane.failure());
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    plane.close().await;
}

/// So many messages to one server are under way at once; what comes beyond waits, and is made all the same.
#[tokio::test]
async fn so_many_messages_are_under_way_at_once() {
    /// How many are being answered, the most that ever were, and whether they are let go.
    type Gate = (Mutex<(usize, usize, bool)>, Condvar);
    let cap = usize::try_from(limits::MCP_POSTS).unwrap();
    let gate: Arc<Gate> = Arc::default();
    let served = gate.clone();
    let remote = handshaken(move |heard, _| {
        if heard.method() != "tools/call" {
            return status(405);
        }
        let (state, changed) = &*served;
        let mut now = state.lock().unwrap();
        now.0 += 1;
        now.1 = now.1.max(now.0);
        now.2 |= now.0 == cap;
        changed.notify_all();
        let (mut now, timed_out) = changed.wait_timeout_while(now, PATIENCE, |now| !now.2).unwrap();
        assert!(!timed_out.timed_out());
        now.0 -= 1;
        drop(now);
        body(result(heard, text("done")))
    });
    let mut plane = Plane::reaching(&remote).await;
    let calls: Vec<_> = (0..cap + 8)
        .map(|number| tokio::spawn(plane.begin("echo", json!({"number": number}), CancellationToken::new())))
        .collect();
    for call in calls {
        let ended = tokio::time::timeout(PATIENCE, call).await.unwrap().unwrap();
        assert_eq!(ended.end, CallEnd::Ok, "{ended:?}");
    }
    plane.close().await;
    assert_eq!(gate.0.lock().unwrap().1, cap);
    assert_eq!(remote.heard_method("tools/call").len(), cap + 8, "each once");
}

/// Credentials and sessions that a server repeats in its own words, wherever it does: nobody reads them there.
#[tokio::test]
async fn what_is_secret_is_not_read_in_a_servers_own_words() {
    const TOKEN: &str = "tok-abcdef-0001";
    const SESSION: &str = "s-1-very-secret";
    let words = format!("no {TOKEN} and no {SESSION}");
    let spoken = words.clone();
    let remote = Remote::says(move |heard, before| match heard.method() {
        "server/discover" => status(404),
        "initialize" => body(result(heard, json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}})))
            .with("mcp-session-id", SESSION),
        "tools/list" => {
            let wrong = json!({"name": words, "inputSchema": {}});
            body(result(heard, json!({"tools": [tool("echo"), wrong]})))
        }
        "tools/call" => match before {
            0 => body(error(heard, -32001, &words)),
            1 => status(400).saying(words.clone()),
            2 => events(format!("data: {words}\n\n{}", event(&result(heard, text("fine"))))),
            3 => body(json!([{"jsonrpc": "2.0", "id": "other", "error": {"code": 1, "message": words}}])),
            4 => status(200).with("content-type", "text/plain").saying(words.clone()),
            5 => status(500).saying(words.clone()),
            _ => body(result(heard, json!({"content": [], "resultType": words}))),
        },
        _ => status(202),
    });
    let mut plane = Plane::of(vec![http("srv", &remote.url(), Some(TOKEN))]).await;
    let mut told = format!("{:?}", plane.discovery);
    for _ in 0..7 {
        let ended = plane.call("echo").await;
        told.push_str(&ended.error);
    }
    told.push_str(&plane.event("server_noise").await.unwrap().detail);
    plane.close().await;
    assert!(told.matches("***").count() >= 8, "{told}");
    assert!(!told.contains(TOKEN) && !told.contains(SESSION), "{told}");
    assert!(remote.heard_method("tools/call").iter().all(|heard| heard.header("mcp-session-id") == Some(SESSION)), "{spoken}");
}
