//! A run that is killed without warning, at any moment, leaves no process behind: not the guardian, not the server, nothing that a
//! server started, not one that ignores every gentle end.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::each::each;
use crate::support::model::{Model, answer, call};
use crate::support::needs;
use crate::support::run::Mission;
use crate::support::servers;

/// When a run is killed, and which servers it has.
struct Kill {
    after: &'static str,
    milliseconds: u64,
    servers: Vec<String>,
}

/// Kills a run, and says what became of it.
fn kill(kill: &Kill) -> Value {
    let model = Model::says([
        call("a.spawn", json!({"session": true})),
        call("a.spawn", json!({"session": false})),
        call("a.big", json!({"kib": 64})),
        answer("done"),
    ]);
    let mut mission = Mission::objective("start two").model(&model).args(["--mcp-timeout", "50"]);
    for (name, server) in ["a", "b", "c"].into_iter().zip(&kill.servers) {
        mission = mission.mcp_stdio(name, server);
    }
    let (directory, _fresh) = mission.place();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/kill.py");
    let mut words = vec![script.into(), kill.after.into(), kill.milliseconds.to_string().into()];
    words.extend(mission.command_line());
    let mut command: Command = mission.command(&directory, "python3".as_ref(), &words);
    let output = command.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&said).unwrap_or_else(|problem| panic!("{problem}: {said}\n{}", String::from_utf8_lossy(&output.stderr)))
}

/// The next number of a sequence that is the same every time.
fn next(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *seed >> 33
}

/// Moments all over a run: while it starts, while it lists, in a call, while it ends.
const PHASES: &[(&str, &str, u64)] = &[
    ("start", "start", 60),
    ("listing", "start", 400),
    ("call", "tool_call", 40),
    ("call, later", "tool_result", 60),
    ("end", "mission_finished", 900),
];

#[test]
fn a_run_that_is_killed_at_any_moment_leaves_nothing() {
    let stubborn = needs!(servers::misbehaving(&["--ignore-end"]));
    needs!(servers::program("setsid"));
    let shell = servers::line([Path::new("sh"), Path::new("-c"), Path::new(&format!("sh -c '{stubborn}; true'; true"))]);
    let away = r#"sh -c '(trap "" TERM HUP; exec setsid sleep 1000 </dev/null >/dev/null 2>&1) & exec sleep 1000'"#;
    let mut seed = 20_261_201;
    let mut moments = Vec::new();
    for round in 0..4 {
        for (phase, after, most) in PHASES {
            let milliseconds = next(&mut seed) % most;
            // A server that never answers beside it holds a run in its start.
            let mut servers = vec![if round % 2 == 0 { stubborn.clone() } else { shell.clone() }];
            if *phase == "listing" {
                servers.push(away.to_owned());
            }
            moments.push((format!("{phase} + {milliseconds} ms"), Kill { after, milliseconds, servers }));
        }
    }
    let table: Vec<(&str, &Kill)> = moments.iter().map(|(name, kill)| (name.as_str(), kill)).collect();
    assert_eq!(table.len(), 20);
    let in_time = std::sync::atomic::AtomicUsize::new(0);
    each(&table, |moment| {
        let said = kill(moment);
        assert_eq!(said["left"], json!([]), "{said}");
        assert!(moment.after == "start" || said["seen"].as_array().unwrap().contains(&json!(moment.after)), "{said}");
        if said["killed"] == true {
            in_time.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
    });
    let in_time = in_time.into_inner();
    assert!(in_time >= 16, "most runs were killed, and not over: {in_time}");
}

/// The real chain: `npx` is a process of node that starts a shell that starts another node.
#[test]
fn nothing_is_left_of_npx_and_what_it_starts() {
    let stubborn = needs!(servers::misbehaving(&["--ignore-end"]));
    let npx = needs!(servers::npx_everything());
    let plain = needs!(servers::everything());
    let behind = format!("sh -c '{plain}; true'");
    let table: Vec<(&str, Kill)> = [
        ("while npx starts", "start", 700),
        ("when all are up", "mission_started", 0),
        ("in a call", "tool_call", 5),
        ("while it ends", "mission_finished", 100),
    ]
    .into_iter()
    .map(|(name, after, milliseconds)| {
        (name, Kill { after, milliseconds, servers: vec![stubborn.clone(), npx.clone(), behind.clone()] })
    })
    .collect();
    each(&table, |moment| {
        let said = kill(moment);
        assert_eq!((&said["killed"], &said["left"]), (&json!(true), &json!([])), "{said}");
    });
}
