//! Runs against one scripted server, whose calls are made and judged one by one.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::model::{Model, Turn, answer, call};
use super::player::{Script, Serving, initialized, join, listed, probed};
use super::run::{Finished, Mission};

/// A run that is over, its server and its model.
pub struct Played<Server = Script> {
    /// The run.
    pub finished: Finished,
    /// The server.
    pub server: Server,
    /// The model.
    pub model: Model,
    /// How long the run took.
    pub took: Duration,
}

/// Plays a script in a run whose model does these calls of `srv` and then answers.
pub fn play(script: Script, calls: &[(&str, Value)], arguments: &[&str]) -> Played<Script> {
    let line = script.line();
    run(script, &line, calls, arguments)
}

/// Does the same with a server that serves a list.
pub fn serve(serving: Serving, calls: &[(&str, Value)], arguments: &[&str]) -> Played<Serving> {
    let line = serving.line();
    run(serving, &line, calls, arguments)
}

fn run<Server>(server: Server, line: &str, calls: &[(&str, Value)], arguments: &[&str]) -> Played<Server> {
    let turns: Vec<Turn> = calls.iter().map(|(tool, arguments)| call(&format!("srv.{tool}"), arguments.clone())).collect();
    let model = Model::says(turns.into_iter().chain([answer("done")]));
    let began = Instant::now();
    let finished = Mission::objective("call it").model(&model).mcp_stdio("srv", line).args(arguments).run();
    Played { finished, server, model, took: began.elapsed() }
}

/// Calls a tool that takes anything once for each of these lists of steps, which answer it.
pub fn replies(steps: &[Value], files: &[(&str, &[u8])], arguments: &[&str]) -> Played {
    let each = steps.iter().map(|steps| join([json!([{"expect": "tools/call"}]), steps.clone()]));
    let start = [probed(), initialized("2025-06-18"), listed(json!([{"name": "t", "inputSchema": {}}]))];
    let script = Script::new(join(start.into_iter().chain(each)));
    for (name, bytes) in files {
        std::fs::write(script.folder().join(name), bytes).unwrap();
    }
    let calls: Vec<(&str, Value)> = (0..steps.len()).map(|number| ("t", json!({"number": number}))).collect();
    play(script, &calls, arguments)
}

/// The call that came is answered with this result.
pub fn result(result: &Value) -> Value {
    json!([{"send": {"jsonrpc": "2.0", "id": "$ID", "result": result}}])
}

/// The call that came is answered with this line.
pub fn raw(line: &str) -> Value {
    json!([{ "send_raw": format!("{line}\n") }])
}

impl<Server> Played<Server> {
    /// The results of its calls, in their order.
    pub fn results(&self) -> Vec<Value> {
        self.finished.named("tool_result")
    }

    /// How the log says that its calls ended.
    pub fn ends(&self) -> Vec<String> {
        self.finished.log().of_kind("result").iter().map(|result| result["end"].as_str().unwrap().to_owned()).collect()
    }

    /// The codes of its notices.
    pub fn codes(&self) -> Vec<String> {
        codes(&self.finished)
    }

    /// What the model was told of the call with this number.
    pub fn told(&self, number: usize) -> String {
        let request = self.model.requests()[number + 1].clone();
        request["messages"].as_array().unwrap().last().unwrap()["content"].as_str().unwrap().to_owned()
    }
}

/// The codes of the notices.
pub fn codes(finished: &Finished) -> Vec<String> {
    finished.named("notice").iter().map(|notice| notice["code"].as_str().unwrap().to_owned()).collect()
}
