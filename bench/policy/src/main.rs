//! How long a policy takes to decide about a call, and to be read: 500 rules, some about every tool, some about a few, with conditions.
//!
//! `policy-bench [RUNS]` prints JSON: for each call its name, how many rules hold for it and the microseconds of each run; and the milliseconds that
//! reading the file took.
#![allow(dead_code, unused_imports)] // the program uses more of these rooms than this does

#[path = "../../../src/limits.rs"]
mod limits;
#[path = "../../../src/policy/mod.rs"]
mod policy;

use std::hint::black_box;
use std::time::Instant;

use mission_contract::spec::{PolicyText, Spec};
use policy::Authority;
use serde_json::{Map, Value, json};

const RULES: usize = 500;
const DECISIONS: u32 = 2_000;

/// A fifth of the rules is about every tool, a fifth about one server's, the others about a tool each.
fn text() -> String {
    let mut text = String::from("version: 1\ndefault: allow\nrules:\n");
    for number in 0..RULES {
        let tools = match number % 5 {
            0 => "'*'".to_owned(),
            1 => "'files.{read,write}_*'".to_owned(),
            _ => format!("shop.tool_{number}"),
        };
        let when = match number % 3 {
            0 => format!("{{pointer: /path, matches: '^/srv/secret{number}/.*[.]key$'}}"),
            1 => format!("{{pointer: /amount, at_least: {}}}", 1_000 + number),
            _ => format!("{{pointer: /region, one_of: [eu{number}, us{number}]}}"),
        };
        let effect = ["deny", "gate", "allow"][number % 3];
        text.push_str(&format!("  - {{id: rule-{number}, tools: {tools}, effect: {effect}, reason: Because., when: [{when}]}}\n"));
    }
    text
}

fn main() {
    let runs: usize = std::env::args().nth(1).and_then(|word| word.parse().ok()).unwrap_or(7);
    let policy = PolicyText { file: "bench".to_owned(), text: text(), digest: String::new() };
    let spec = Spec { profile: Some("safe".to_owned()), policy: Some(policy), ..Spec::default() };
    let reads: Vec<f64> = (0..runs)
        .map(|_| {
            let began = Instant::now();
            black_box(Authority::of(&spec, true));
            began.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    let authority = Authority::of(&spec, true);
    let bare = Authority::of(&Spec { policy: None, ..spec }, true);
    let long = json!({"path": format!("/srv/data/{}", "x".repeat(64 * 1024)), "amount": 5, "region": "eu"});
    let calls = [
        ("no policy", &bare, "shop", "tool_7", json!({"path": "/srv/x", "amount": 5})),
        ("one tool's rule and those about all", &authority, "shop", "tool_7", json!({"path": "/srv/x", "amount": 5})),
        ("a server's rules and those about all", &authority, "files", "read_text", json!({"path": "/srv/x", "amount": 5, "region": "eu"})),
        ("many that hold", &authority, "files", "write_text", json!({"path": "/srv/secret0/a.key", "amount": 100_000, "region": "eu5"})),
        ("an argument of 64 KB", &authority, "files", "read_text", long),
    ];
    let calls = calls.map(|(name, authority, server, tool, arguments)| {
        let Value::Object(arguments) = arguments else { unreachable!() };
        let full = format!("{server}.{tool}");
        let holding = authority.policy().map_or(0, |policy| policy.matching(&full, &arguments).len());
        let us: Vec<f64> = (0..runs).map(|_| decisions(authority, server, tool, &arguments)).collect();
        json!({ "call": name, "holding": holding, "us": us })
    });
    println!("{}", json!({ "rules": RULES, "read_ms": reads, "calls": calls }));
}

/// Microseconds a decision.
fn decisions(authority: &Authority, server: &str, tool: &str, arguments: &Map<String, Value>) -> f64 {
    let began = Instant::now();
    for _ in 0..DECISIONS {
        black_box(authority.judge(server, tool, black_box(arguments), false));
    }
    began.elapsed().as_secs_f64() * 1e6 / f64::from(DECISIONS)
}
