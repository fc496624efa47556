//! A small tool server over standard input and output: the Model Context Protocol with a handshake, revision 2025-11-25.

use std::io::{self, BufRead, Read, Write};

use serde_json::{Value, json};

use crate::limits::DEMO_LINE_BYTES;

/// Revisions that it speaks, the one that it proposes first.
const VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// Parts listed at most.
const LISTED: usize = 10;

/// Answers every message until its input ends. `parts` is the store, as JSON.
///
/// # Errors
/// When the input cannot be read, the output cannot be written, or the store is no JSON.
pub fn serve(input: &mut impl BufRead, output: &mut impl Write, parts: &str) -> io::Result<()> {
    let store: Value = serde_json::from_str(parts)?;
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = input.by_ref().take(DEMO_LINE_BYTES).read_until(b'\n', &mut line)?;
        if read == 0 {
            return Ok(());
        }
        let answer = match serde_json::from_slice::<Value>(&line) {
            Ok(message) => answer(&store, &message),
            Err(_) => Some(json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32700, "message": "this line is no JSON"}})),
        };
        if let Some(answer) = answer {
            serde_json::to_writer(&mut *output, &answer)?;
            output.write_all(b"\n")?;
            output.flush()?;
        }
    }
}

fn answer(store: &Value, message: &Value) -> Option<Value> {
    let id = message.get("id")?;
    let outcome = match message.get("method").and_then(Value::as_str)? {
        "initialize" => Ok(initialize(message)),
        "ping" => Ok(json!({})),
        "tools/list" => Ok(json!({"tools": tools()})),
        "tools/call" => call(store, message),
        method => Err((-32601, format!("there is no method {method} here"))),
    };
    Some(match outcome {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err((code, words)) => json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": words}}),
    })
}

fn initialize(message: &Value) -> Value {
    let asked = message.pointer("/params/protocolVersion").and_then(Value::as_str).unwrap_or_default();
    let version = VERSIONS.into_iter().find(|version| *version == asked).unwrap_or("2025-11-25");
    json!({
        "protocolVersion": version,
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "mission-demo", "version": env!("CARGO_PKG_VERSION")}
    })
}

fn tools() -> Value {
    let sku = json!({"type": "string", "description": "the part's number, such as BR-608"});
    let read_only = json!({"readOnlyHint": true, "openWorldHint": false});
    json!([
        {
            "name": "search_parts",
            "description": "Find parts by the words of their name. The best match comes first.",
            "inputSchema": {
                "type": "object",
                "properties": {"query": {"type": "string"}, "limit": {"type": "integer", "minimum": 1, "maximum": LISTED}},
                "required": ["query"],
                "additionalProperties": false
            },
            "annotations": read_only
        },
        {
            "name": "stock_of",
            "description": "One part with its bin, its stock and its reorder point.",
            "inputSchema": {"type": "object", "properties": {"sku": sku}, "required": ["sku"], "additionalProperties": false},
            "annotations": read_only
        },
        {
            "name": "history",
            "description": "What went in and out of a part's bin, oldest first.",
            "inputSchema": {"type": "object", "properties": {"sku": sku}, "required": ["sku"], "additionalProperties": false},
            "annotations": read_only
        }
    ])
}

fn call(store: &Value, message: &Value) -> Result<Value, (i64, String)> {
    let name = message.pointer("/params/name").and_then(Value::as_str).unwrap_or_default();
    let text = |field: &str| message.pointer(&format!("/params/arguments/{field}")).and_then(Value::as_str).unwrap_or_default();
    let found = match name {
        "search_parts" => {
            let limit =
                message.pointer("/params/arguments/limit").and_then(Value::as_u64).and_then(|limit| usize::try_from(limit).ok());
            Ok(search(store, text("query"), limit.unwrap_or(LISTED).min(LISTED)))
        }
        "stock_of" => part(store, text("sku")).cloned(),
        "history" => part(store, text("sku")).map(|part| history(store, part)),
        _ => return Err((-32602, format!("there is no tool {name} here"))),
    };
    Ok(match found {
        Ok(found) => json!({"content": [{"type": "text", "text": found.to_string()}], "structuredContent": found}),
        Err(words) => json!({"content": [{"type": "text", "text": words}], "isError": true}),
    })
}

fn list<'a>(store: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    store.get(name).and_then(Value::as_array).into_iter().flatten()
}

fn field<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Parts whose name holds words of the query, those that hold most of them first.
fn search(store: &Value, query: &str, limit: usize) -> Value {
    let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
    let mut found: Vec<(usize, &Value)> = list(store, "parts")
        .map(|part| {
            let name = field(part, "name").to_lowercase();
            (words.iter().filter(|word| name.contains(word.as_str())).count(), part)
        })
        .filter(|(hits, _)| *hits > 0)
        .collect();
    found.sort_by_key(|(hits, _)| std::cmp::Reverse(*hits));
    let total = found.len();
    let parts: Vec<Value> =
        found.into_iter().take(limit).map(|(_, part)| json!({"sku": field(part, "sku"), "name": field(part, "name")})).collect();
    json!({"parts": parts, "found": total})
}

fn part<'a>(store: &'a Value, sku: &str) -> Result<&'a Value, String> {
    list(store, "parts")
        .find(|part| field(part, "sku").eq_ignore_ascii_case(sku))
        .ok_or_else(|| format!("there is no part {sku}; search_parts finds the number of a part by its name"))
}

fn history(store: &Value, part: &Value) -> Value {
    let sku = field(part, "sku");
    let movements: Vec<&Value> = list(store, "movements").filter(|movement| field(movement, "sku") == sku).collect();
    let change = |movement: &Value| movement.get("change").and_then(Value::as_i64).unwrap_or(0);
    let mut out = movements.iter().filter(|movement| change(movement) < 0);
    let taken_out = out.clone().fold(0_i64, |sum, movement| sum.saturating_sub(change(movement)));
    let last = out.next_back().map(|movement| field(movement, "on"));
    json!({"sku": sku, "movements": movements, "taken_out": taken_out, "last_taken_out": last})
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn ask(lines: &str) -> Vec<Value> {
        let mut output = Vec::new();
        serve(&mut lines.as_bytes(), &mut output, super::super::PARTS).unwrap();
        String::from_utf8(output).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn result(name: &str, arguments: &Value) -> Value {
        let message =
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}});
        ask(&format!("{message}\n")).remove(0)
    }

    #[test]
    fn it_shakes_hands_and_answers_only_requests() {
        let answers = ask(concat!(
            "{\"jsonrpc\":\"2.0\",\"id\":\"p\",\"method\":\"server/discover\"}\n",
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-06-18\"}}\n",
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n",
            "noise\n",
        ));
        assert_eq!(answers.len(), 3);
        assert_eq!(answers.first().unwrap().pointer("/error/code"), Some(&json!(-32601)));
        assert_eq!(answers.get(1).unwrap().pointer("/result/protocolVersion"), Some(&json!("2025-06-18")));
        assert_eq!(answers.get(2).unwrap().pointer("/error/code"), Some(&json!(-32700)));
    }

    #[test]
    fn parts_are_found_read_and_followed() {
        let found = result("search_parts", &json!({"query": "Coolant pump seal"}));
        assert_eq!(found.pointer("/result/structuredContent/parts/0/sku"), Some(&json!("PS-204")));
        let stock = result("stock_of", &json!({"sku": "ps-204"}));
        assert_eq!(stock.pointer("/result/structuredContent/stock"), Some(&json!(6)));
        let history = result("history", &json!({"sku": "PS-204"}));
        assert_eq!(history.pointer("/result/structuredContent/taken_out"), Some(&json!(18)));
    }

    #[test]
    fn what_is_not_there_is_the_tools_own_failure() {
        assert_eq!(result("stock_of", &json!({"sku": "XX"})).pointer("/result/isError"), Some(&json!(true)));
        assert_eq!(result("nothing", &json!({})).pointer("/error/code"), Some(&json!(-32602)));
    }
}
