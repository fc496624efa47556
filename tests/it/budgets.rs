//! Limits that a run is given, and what watches over its progress, seen from outside.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::model::{Model, Turn, answer, call, text};
use crate::support::model_server::{ModelServer, says};
use crate::support::needs;
use crate::support::run::{Finished, Mission, run_dirs, write};
use crate::support::servers;

fn add() -> Turn {
    call("mcp.add", json!({"a": 2, "b": 3}))
}

fn spent(finished: &Finished, which: &str) -> Value {
    finished.exits(0).ends("budget_exhausted");
    let budget = finished.only("mission_finished")["budget"].clone();
    assert_eq!(budget["which"], which, "{finished}");
    assert_eq!(finished.log().problems(), Vec::<String>::new());
    budget
}

fn run_dir(finished: &Finished) -> PathBuf {
    run_dirs(&finished.directory).pop().unwrap()
}

#[test]
fn the_clock_interrupts_a_model_that_says_nothing() {
    let model = Model::says([Turn::Stall]);
    let finished = Mission::objective("add").model(&model).args(["--mission-seconds", "0.3"]).run();
    let budget = spent(&finished, "seconds");
    assert_eq!(budget["limit"], 0.3);
    assert!(budget["spent"].as_f64().unwrap() >= 0.3, "{budget}");
    model.wait_for_hang_up();
    let told = Mission::objective("add").model(&model).args(["--mission-seconds", "0.3", "--exit-codes", "outcome"]).run();
    told.exits(12);
    let from_variable = Mission::objective("add").model(&model).env("MISSION_SECONDS", "0.3").run();
    spent(&from_variable, "seconds");
}

#[test]
fn the_clock_interrupts_a_tool_and_a_server_that_does_not_come_up() {
    let note = tempfile::NamedTempFile::new().unwrap();
    let server = needs!(servers::misbehaving(&["--note", note.path().to_str().unwrap()]));
    let model = Model::says([Turn::Call(vec![("mcp.hang".into(), json!({})), ("mcp.add".into(), json!({"a": 2, "b": 3}))])]);
    let finished = Mission::objective("add")
        .model(&model)
        .protocol("native")
        .mcp_stdio("mcp", &server)
        .args(["--mission-seconds", "1"])
        .run();
    spent(&finished, "seconds");
    let lived = std::fs::read_to_string(note.path()).unwrap();
    assert!(lived.contains("\"cancelled\""), "the server is told: {lived}");
    assert_eq!(finished.named("tool_result").len(), 1, "{finished}");
    let mute = Mission::objective("add").model(&model).mcp_stdio("mute", "sleep 100").args(["--mission-seconds", "0.3"]).run();
    mute.exits(1).ends("incomplete");
}

#[test]
fn half_an_answer_is_not_lost_with_the_time() {
    let half = r#"{"answer": "There are twelve lamps in the"#;
    let model = ModelServer::start().reply(says(half).without_done().never_ending());
    let finished = Mission::objective("count")
        .args(["--provider", "local", "--model", "m", "--mission-seconds", "1"])
        .env("LOCAL_API_BASE", model.base_url())
        .run();
    spent(&finished, "seconds");
    let answer = finished.only("answer");
    assert_eq!(answer["outcome"], "answered_with_caveat");
    let text = answer["text"].as_str().unwrap();
    assert!(text.starts_with("There are twelve lamps in the\n\n---\n") && text.contains("not whole"), "{text}");
}

#[test]
fn tokens_are_counted_before_they_are_spent() {
    let server = needs!(servers::misbehaving(&[]));
    let run = |limit: &str| {
        let model = Model::says([add(), add(), answer("Five.")]);
        let mission = Mission::objective("add").model(&model).mcp_stdio("mcp", &server);
        (mission.args(["--max-tokens-total", limit]).run(), model)
    };
    // 107 and 207, and the third question takes 200 at least.
    let (finished, model) = run("500");
    assert_eq!(spent(&finished, "tokens"), json!({"which": "tokens", "limit": 500, "spent": 314}));
    assert_eq!(model.requests().len(), 2);
    assert_eq!(model.requests()[1]["max_tokens"], 500 - 107 - 100, "what is left is the most that a reply may take");
    assert_eq!(finished.only("mission_started")["limits"]["tokens"], 500);
    let (finished, model) = run("100000");
    finished.exits(0).ends("answered");
    assert!(model.requests().iter().all(|request| request.get("max_tokens").is_none()));
}

#[test]
fn bytes_of_results_end_the_calls() {
    let server = needs!(servers::misbehaving(&[]));
    let big = || call("mcp.big", json!({"kib": 4}));
    let model = Model::says([big(), big(), answer("Enough.")]);
    let mission = || Mission::objective("read").model(&model).mcp_stdio("mcp", &server);
    let finished = mission().args(["--max-bytes", "4000"]).run();
    assert_eq!(spent(&finished, "bytes"), json!({"which": "bytes", "limit": 4000, "spent": 4096}));
    assert_eq!(finished.named("tool_call").len(), 1);
}

#[test]
fn money_needs_a_price_and_is_counted_in_it() {
    let server = needs!(servers::misbehaving(&[]));
    let model = Model::says([add(), add(), answer("Five.")]);
    let folder = tempfile::tempdir().unwrap();
    let mission = || Mission::objective("add").model(&model).mcp_stdio("mcp", &server).directory(folder.path());
    mission().args(["--max-cost", "1"]).run().refused(&["--max-cost", "`scripted`", "local", "pricing"]);
    assert!(run_dirs(folder.path()).is_empty());
    write(
        folder.path(),
        ".mission/config.yaml",
        "pricing:\n  local:\n    scripted: {prompt_per_1k: 0.001, completion_per_1k: 0.01, currency: EUR}\n",
    );
    mission().args(["--max-cost", "-1"]).run().refused(&["--max-cost `-1`"]);
    let finished = mission().args(["--max-cost", "0.0005"]).run();
    // 100 and 7 tokens, then 200 and 7; 200 more would be too much.
    assert_eq!(spent(&finished, "cost"), json!({"which": "cost", "limit": 0.0005, "spent": 0.00044}));
    let usage = finished.only("mission_finished")["usage"].clone();
    assert_eq!(usage["cost"], json!({"amount": 0.00044, "currency": "EUR"}));
    // Without a limit the price only tells.
    let model = Model::says([answer("Five.")]);
    let finished = Mission::objective("add").model(&model).directory(folder.path()).run();
    assert_eq!(finished.only("mission_finished")["usage"]["cost"]["amount"], 0.00017);
    // A model that nobody named is the one that its server lists.
    let model = Model::says([answer("Five.")]);
    let unnamed =
        || Mission::objective("add").model(&model).env("LOCAL_MODEL", "").directory(folder.path()).args(["--max-cost", "1"]);
    unnamed().run().refused_beside(&["--max-cost", "`scripted-server`"]);
    write(
        folder.path(),
        ".mission/config.yaml",
        "pricing: {local: {scripted-server: {prompt_per_1k: 0.01, completion_per_1k: 0}}}\n",
    );
    assert_eq!(unnamed().run().only("mission_finished")["usage"]["cost"]["amount"], 0.001);
}

#[test]
fn what_is_no_limit_is_refused() {
    for (flag, value) in [
        ("--mission-seconds", "soon"),
        ("--mission-seconds", "1e99"),
        ("--max-tokens-total", "many"),
        ("--max-bytes", "1.5"),
        ("--supervisor", "sometimes"),
    ] {
        Mission::objective("add").args([flag, value]).run().refused(&[&format!("{flag} `{value}`")]);
    }
    let model = Model::says([answer("never asked")]);
    let finished = Mission::objective("add").model(&model).args(["--mission-seconds", "0"]).run();
    spent(&finished, "seconds");
    assert_eq!(model.requests().len(), 0);
}

#[test]
fn a_run_that_is_taken_up_has_what_is_left_or_what_it_is_given() {
    let server = needs!(servers::misbehaving(&[]));
    let model = Model::says([add(), Turn::Status(500)]);
    let mission = Mission::objective("add").model(&model).mcp_stdio("mcp", &server);
    let failed = mission.args(["--max-tokens-total", "300", "--mission-seconds", "1000"]).run();
    failed.exits(1).ends("incomplete");
    let run = run_dir(&failed).file_name().unwrap().to_str().unwrap().to_owned();
    let resume = |model: &Model, words: &[&str]| {
        Mission::resume(&run).directory(&failed.directory).model(model).args(words.iter().copied()).run()
    };
    let model = Model::says([add(), answer("Five.")]);
    let again = resume(&model, &["--max-tokens-total", "1000", "--mission-seconds", "5"]);
    again.exits(0).ends("answered");
    let changed = again.log().of_kind("writer")[0]["changed"].clone();
    let counted = changed["max_tokens_total"].as_u64().unwrap() - 1000;
    assert!(counted >= 107, "what was spent, and that much more: {changed}");
    assert!(changed["mission_seconds"].as_f64().unwrap() > 5.0, "{changed}");
}

#[test]
fn a_run_that_goes_round_in_circles_is_nudged_and_ended() {
    let server = needs!(servers::misbehaving(&[]));
    let stuck = || text(r#"{"verdict": "stuck", "note": "It adds the same numbers."}"#);
    let model = Model::says([add(), add(), add(), stuck(), answer("Five, as before.")]);
    let finished = Mission::objective("add").model(&model).mcp_stdio("mcp", &server).run();
    finished.exits(0).ends("answered");
    assert_eq!(finished.only("mission_finished")["reason"], "stuck");
    let step = finished.named("step_started").pop().unwrap();
    assert_eq!(step["review"]["signal"], "repeated_call");
    assert_eq!(step["review"]["verdict"], "stuck");
    assert!(step["injected"][0].as_str().unwrap().contains("The work stops here"), "{step}");
    let requests = model.requests();
    assert_eq!(requests.len(), 5);
    assert_eq!(requests[3]["messages"].as_array().unwrap().len(), 2, "a review is no part of the conversation");
    assert!(
        requests[4]["response_format"].to_string().contains("answer")
            && !requests[4]["response_format"].to_string().contains("tool")
    );
    // All of it can be replayed, and shown.
    let run = run_dir(&finished);
    let replayed = Mission::verb(["replay", "--strict"]).arg(&run).run();
    assert!(replayed.stdout.contains("1 same"), "{replayed}");
    for (word, asked) in [("off", 5), ("warn", 5)] {
        let model = Model::says([add(), add(), add(), add(), answer("Five.")]);
        let finished = Mission::objective("add").model(&model).mcp_stdio("mcp", &server).args(["--supervisor", word]).run();
        finished.exits(0).ends("answered");
        assert_eq!(model.requests().len(), asked);
        assert_eq!(finished.named("notice").len(), usize::from(word == "warn"), "{finished}");
    }
}

#[test]
fn a_model_that_says_nothing_three_times_is_held_to_a_shape() {
    let server = needs!(servers::misbehaving(&[]));
    let model = Model::says([
        text(""),
        text(""),
        text(""),
        text(r#"{"tool": "mcp.add", "arguments": {"a": 2, "b": 3}}"#),
        answer("Five."),
    ]);
    let finished = Mission::objective("add").model(&model).mcp_stdio("mcp", &server).protocol("native").run();
    finished.exits(0).ends("answered");
    let requests = model.requests();
    assert!(requests[2].get("tools").is_some() && requests[3].get("tools").is_none(), "{}", requests[3]);
    assert!(requests[3]["response_format"].to_string().contains("mcp.add"), "{}", requests[3]);
    assert_eq!(finished.named("tool_result").len(), 1);
    assert!(requests[4].get("tools").is_some(), "from there on as before");
}
