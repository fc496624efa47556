//! A reply in the words of each API: chat completions, responses, messages; streamed or whole.
use serde_json::{json, Value};

use super::{Body, Out};

pub struct Reply {
    pub sse: bool,
    pub events: Vec<String>, // whole frames when sse, else one JSON body
}

fn chunks(s: &str, n: usize) -> Vec<&str> {
    let (mut out, mut i) = (vec![], 0);
    while i < s.len() {
        let mut j = (i + n).min(s.len());
        while !s.is_char_boundary(j) {
            j += 1;
        }
        out.push(&s[i..j]);
        i = j;
    }
    out
}

fn usage(nbytes: usize) -> Value {
    json!({"prompt_tokens": nbytes / 4, "completion_tokens": 16, "total_tokens": nbytes / 4 + 16})
}

pub fn chat(b: &Body, o: &Out, id: &str, nbytes: usize) -> Reply {
    let model = b.model.clone().unwrap_or("scripted".into());
    let calls: Vec<Value> = o
        .calls
        .iter()
        .enumerate()
        .map(|(i, (n, _, a))| json!({"id": format!("call_{id}_{i}"), "type":"function","function":{"name":n,"arguments":a.to_string()}}))
        .collect();
    let fin = if calls.is_empty() { "stop" } else { "tool_calls" };
    if !b.stream {
        let mut m = json!({"role":"assistant","content":o.text});
        if !calls.is_empty() {
            m["tool_calls"] = json!(calls);
        }
        let v = json!({"id":format!("chatcmpl-{id}"),"object":"chat.completion","created":1700000000,"model":model,
            "choices":[{"index":0,"message":m,"finish_reason":fin}],"usage":usage(nbytes)});
        return Reply { sse: false, events: vec![v.to_string()] };
    }
    let mut ev = vec![];
    let mut push = |delta: Value, fin: Value| {
        ev.push(format!(
            "data: {}\n\n",
            json!({"id":format!("chatcmpl-{id}"),"object":"chat.completion.chunk","created":1700000000,"model":model,
              "choices":[{"index":0,"delta":delta,"finish_reason":fin}]})
        ))
    };
    push(json!({"role":"assistant","content":""}), Value::Null);
    for c in chunks(o.text.as_deref().unwrap_or(""), 24) {
        push(json!({"content":c}), Value::Null);
    }
    for (i, (n, _, a)) in o.calls.iter().enumerate() {
        push(json!({"tool_calls":[{"index":i,"id":format!("call_{id}_{i}"),"type":"function","function":{"name":n,"arguments":""}}]}), Value::Null);
        for c in chunks(&a.to_string(), 48) {
            push(json!({"tool_calls":[{"index":i,"function":{"arguments":c}}]}), Value::Null);
        }
    }
    push(json!({}), json!(fin));
    if b.stream_options.as_ref().map_or(false, |s| s["include_usage"] == true) {
        ev.push(format!(
            "data: {}\n\n",
            json!({"id":format!("chatcmpl-{id}"),"object":"chat.completion.chunk","created":1700000000,"model":model,"choices":[],"usage":usage(nbytes)})
        ));
    }
    ev.push("data: [DONE]\n\n".into());
    Reply { sse: true, events: ev }
}

pub fn responses(b: &Body, o: &Out, id: &str, nbytes: usize) -> Reply {
    let model = b.model.clone().unwrap_or("scripted".into());
    let mut items = vec![];
    if let Some(t) = o.text.as_ref().filter(|t| !t.is_empty()) {
        items.push(json!({"type":"message","id":format!("msg_{id}"),"status":"completed","role":"assistant",
            "content":[{"type":"output_text","text":t,"annotations":[]}]}));
    }
    for (i, (n, ns, a)) in o.calls.iter().enumerate() {
        let mut it = json!({"type":"function_call","id":format!("fc_{id}_{i}"),"call_id":format!("call_{id}_{i}"),
            "name":n,"arguments":a.to_string(),"status":"completed"});
        if let Some(ns) = ns {
            it["namespace"] = json!(ns);
        }
        items.push(it);
    }
    let resp = |status: &str, out: Value, us: Value| {
        json!({"id":format!("resp_{id}"),"object":"response","created_at":1700000000,"status":status,"model":model,
            "output":out,"parallel_tool_calls":true,"tool_choice":"auto","tools":[],"error":null,"incomplete_details":null,
            "instructions":null,"metadata":{},"temperature":1.0,"top_p":1.0,"usage":us})
    };
    let us = json!({"input_tokens":nbytes/4,"input_tokens_details":{"cached_tokens":0},"output_tokens":16,
        "output_tokens_details":{"reasoning_tokens":0},"total_tokens":nbytes/4+16});
    if !b.stream {
        return Reply { sse: false, events: vec![resp("completed", json!(items), us).to_string()] };
    }
    let (mut ev, mut seq) = (vec![], 0);
    let mut push = |t: &str, mut v: Value| {
        v["type"] = json!(t);
        v["sequence_number"] = json!(seq);
        seq += 1;
        ev.push(format!("event: {t}\ndata: {v}\n\n"));
    };
    push("response.created", json!({"response": resp("in_progress", json!([]), Value::Null)}));
    for (i, it) in items.iter().enumerate() {
        let mut open = it.clone();
        open["status"] = json!("in_progress");
        if it["type"] == "message" {
            open["content"] = json!([]);
            push("response.output_item.added", json!({"output_index":i,"item":open}));
            push("response.content_part.added", json!({"output_index":i,"item_id":it["id"],"content_index":0,"part":{"type":"output_text","text":"","annotations":[]}}));
            let t = it["content"][0]["text"].as_str().unwrap_or("");
            for c in chunks(t, 24) {
                push("response.output_text.delta", json!({"output_index":i,"item_id":it["id"],"content_index":0,"delta":c}));
            }
            push("response.output_text.done", json!({"output_index":i,"item_id":it["id"],"content_index":0,"text":t}));
            push("response.content_part.done", json!({"output_index":i,"item_id":it["id"],"content_index":0,"part":it["content"][0]}));
        } else {
            open["arguments"] = json!("");
            push("response.output_item.added", json!({"output_index":i,"item":open}));
            let a = it["arguments"].as_str().unwrap_or("");
            for c in chunks(a, 48) {
                push("response.function_call_arguments.delta", json!({"output_index":i,"item_id":it["id"],"delta":c}));
            }
            push("response.function_call_arguments.done", json!({"output_index":i,"item_id":it["id"],"arguments":a}));
        }
        push("response.output_item.done", json!({"output_index":i,"item":it}));
    }
    push("response.completed", json!({"response": resp("completed", json!(items), us)}));
    Reply { sse: true, events: ev }
}

pub fn messages(b: &Body, o: &Out, id: &str, nbytes: usize) -> Reply {
    let model = b.model.clone().unwrap_or("scripted".into());
    let mut blocks = vec![];
    if let Some(t) = o.text.as_ref().filter(|t| !t.is_empty()) {
        blocks.push(json!({"type":"text","text":t}));
    }
    for (i, (n, _, a)) in o.calls.iter().enumerate() {
        blocks.push(json!({"type":"tool_use","id":format!("toolu_{id}_{i}"),"name":n,"input":a}));
    }
    let stop = if o.calls.is_empty() { "end_turn" } else { "tool_use" };
    let us = json!({"input_tokens":nbytes/4,"output_tokens":16,"cache_creation_input_tokens":0,"cache_read_input_tokens":0});
    let head = |content: Value, stop: Value| {
        json!({"id":format!("msg_{id}"),"type":"message","role":"assistant","model":model,"content":content,
            "stop_reason":stop,"stop_sequence":null,"usage":us})
    };
    if !b.stream {
        return Reply { sse: false, events: vec![head(json!(blocks), json!(stop)).to_string()] };
    }
    let mut ev = vec![];
    let mut push = |t: &str, mut v: Value| {
        v["type"] = json!(t);
        ev.push(format!("event: {t}\ndata: {v}\n\n"));
    };
    push("message_start", json!({"message": head(json!([]), Value::Null)}));
    for (i, bl) in blocks.iter().enumerate() {
        if bl["type"] == "text" {
            push("content_block_start", json!({"index":i,"content_block":{"type":"text","text":""}}));
            for c in chunks(bl["text"].as_str().unwrap_or(""), 24) {
                push("content_block_delta", json!({"index":i,"delta":{"type":"text_delta","text":c}}));
            }
        } else {
            push("content_block_start", json!({"index":i,"content_block":{"type":"tool_use","id":bl["id"],"name":bl["name"],"input":{}}}));
            for c in chunks(&bl["input"].to_string(), 48) {
                push("content_block_delta", json!({"index":i,"delta":{"type":"input_json_delta","partial_json":c}}));
            }
        }
        push("content_block_stop", json!({"index":i}));
    }
    push("message_delta", json!({"delta":{"stop_reason":stop,"stop_sequence":null},"usage":{"output_tokens":16}}));
    push("message_stop", json!({}));
    Reply { sse: true, events: ev }
}

// ---------- serving ----------
