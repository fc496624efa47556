//! The two directions of a server's pipes: lines in, classified one by one; lines out, in their order.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::exchange::{Answer, Exchange, Message};
use super::frame::{Damaged, Id, Outline, Shape, part, shape};
use super::result::sample;
use crate::limits;
use crate::sys::lines::{Line, LineSplitter};

/// Reads a server's output to its end, then closes the exchange.
pub(crate) async fn read(mut output: impl AsyncRead + Unpin, exchange: Arc<Exchange>) {
    let mut buffer = Vec::with_capacity(limits::size(limits::MCP_READ_BYTES));
    let mut lines = LineSplitter::for_messages();
    // A line over the cap whose requests were failed already.
    let mut failed = false;
    loop {
        buffer.clear();
        let read = output.read_buf(&mut buffer);
        let read = if lines.over_cap().is_some() {
            // Nothing can come before its end: what is asked meanwhile fails as well, when the server says no more for a while.
            let patience = if failed { limits::MCP_STUCK_LINE_MS } else { limits::MCP_OVERLONG_MS };
            match tokio::time::timeout(Duration::from_millis(patience), read).await {
                Ok(read) => read,
                Err(_) => {
                    overlong(&exchange, lines.over_cap().unwrap_or_default(), true);
                    failed = true;
                    continue;
                }
            }
        } else {
            read.await
        };
        if !read.is_ok_and(|read| read > 0) {
            break;
        }
        for line in lines.push(&buffer) {
            take(&exchange, line, &mut failed);
        }
        if lines.over_cap().is_some_and(|bytes| bytes > limits::MCP_LINE_SKIPPED_BYTES) {
            let most = limits::MCP_LINE_SKIPPED_BYTES;
            return exchange.close_because(format!("wrote more than {most} bytes without an end of line and was given up"));
        }
    }
    if let Some(line) = lines.finish() {
        take(&exchange, line, &mut failed);
    }
    exchange.close();
}

/// Writes to a server's input until the exchange is gone, or `done` fires and what was queued is written; then its input ends.
pub(crate) async fn write(
    mut input: impl AsyncWrite + Unpin,
    mut lines: mpsc::Receiver<Vec<u8>>,
    exchange: Arc<Exchange>,
    done: CancellationToken,
) {
    loop {
        let line = tokio::select! {
            biased;
            line = lines.recv() => line,
            () = done.cancelled() => break,
        };
        let Some(line) = line else { break };
        let written = tokio::select! {
            written = input.write_all(&line) => written.is_ok(),
            // What is being written to a server that does not read is not waited for.
            () = async { done.cancelled().await; tokio::time::sleep(Duration::from_millis(limits::MCP_CANCEL_MS)).await } => false,
        };
        if !written {
            break;
        }
    }
    if !done.is_cancelled() {
        // It took its input away: what was asked may not have reached it, and nothing more can be asked. What it said last may still be
        // on its way.
        let heard_out = exchange.closed().cancelled();
        let _ = tokio::time::timeout(Duration::from_millis(limits::MCP_LAST_ANSWERS_MS), heard_out).await;
        exchange.close();
    }
}

fn take(exchange: &Arc<Exchange>, line: Line<'_>, failed: &mut bool) {
    match line {
        Line::Whole(line) => dispatch(exchange, line),
        Line::Overlong { bytes } => {
            if !std::mem::take(failed) {
                overlong(exchange, bytes, false);
            }
        }
    }
}

fn overlong(exchange: &Exchange, bytes: u64, so_far: bool) {
    let cap = limits::MCP_LINE_BYTES;
    let bytes = if so_far { format!("more than {bytes} bytes") } else { format!("{bytes} bytes") };
    exchange.fail_all(&format!("sent a line of {bytes}, and {cap} are allowed"));
}

/// Takes one line for what it is.
pub(crate) fn dispatch(exchange: &Arc<Exchange>, line: Cow<'_, [u8]>) {
    match shape(&line) {
        Shape::Blank => {}
        Shape::Object(outline) => message(exchange, line, &outline),
        Shape::Batch(elements) => {
            for element in elements {
                let element = line.get(element).unwrap_or_default();
                match shape(element) {
                    Shape::Object(outline) => message(exchange, Cow::Borrowed(element), &outline),
                    Shape::Damaged(damaged) => broken(exchange, element, &damaged),
                    _ => exchange.noise(|| sample(element)),
                }
            }
        }
        Shape::Damaged(damaged) => broken(exchange, &line, &damaged),
        Shape::Other => exchange.noise(|| sample(&line)),
    }
}

fn message(exchange: &Arc<Exchange>, line: Cow<'_, [u8]>, outline: &Outline) {
    let id = part(&line, outline.id.as_ref());
    if let Some(method) = part(&line, outline.method.as_ref()) {
        let Some(method) = outline.is_protocol.then(|| serde_json::from_slice::<String>(method).ok()).flatten() else {
            // A log line that happens to have such a member.
            return exchange.noise(|| sample(&line));
        };
        let params = part(&line, outline.params.as_ref()).unwrap_or_default();
        match id {
            Some(id) => request(exchange, id, &method),
            None => notification(exchange, &method, params),
        }
        return;
    }
    let is_answer = outline.result.is_some() || outline.error.is_some();
    let id = id.and_then(Id::read);
    match id {
        Some(id) if is_answer || outline.is_protocol => {
            let message = Message::new(line.into_owned(), outline);
            // An answer that nobody waits for, or no longer: a second one, or one of a number that never was.
            exchange.answer(&id, message);
        }
        None if outline.error.is_some() && outline.is_protocol => {
            // A server that could not read the id.
            let message = Message::new(line.into_owned(), outline);
            exchange.answer_the_only_one(|| Answer::Message(message));
        }
        _ => exchange.noise(|| sample(&line)),
    }
}

/// A message that cannot be read whole. If it is an answer, whoever waits for it is not left waiting.
fn broken(exchange: &Exchange, line: &[u8], damaged: &Damaged) {
    let why = || format!("sent an answer that is no JSON (at byte {}: {})", damaged.at, sample(line));
    let outline = &damaged.outline;
    let taken = match part(line, outline.id.as_ref()).and_then(Id::read) {
        Some(id) if outline.method.is_none() => exchange.unreadable(&id, why()),
        None if outline.result.is_some() || outline.error.is_some() => exchange.answer_the_only_one(|| Answer::Unreadable(why())),
        _ => false,
    };
    if !taken {
        exchange.noise(|| sample(line));
    }
}

/// Answers a request of the server. Only `ping` is granted.
fn request(exchange: &Exchange, id: &[u8], method: &str) {
    let Ok(id) = serde_json::from_slice::<&RawValue>(id) else { return };
    let reply = match method {
        "ping" => r#""result":{}"#.to_owned(),
        "elicitation/create" => {
            exchange.declined("elicitation_declined", "The server asks for input from a person, which is declined.");
            r#""result":{"action":"decline"}"#.to_owned()
        }
        method => {
            if method == "sampling/createMessage" {
                exchange.declined("sampling_declined", "The server asks for an answer of the model, which is declined.");
            }
            let words = serde_json::Value::from(format!("{method} is not offered by this client"));
            format!(r#""error":{{"code":-32601,"message":{words}}}"#)
        }
    };
    let _ = exchange.write(format!(r#"{{"jsonrpc":"2.0","id":{id},{reply}}}"#).into_bytes());
}

fn notification(exchange: &Arc<Exchange>, method: &str, params: &[u8]) {
    #[derive(serde::Deserialize)]
    struct Progress<'a> {
        #[serde(borrow, rename = "progressToken")]
        token: &'a RawValue,
        progress: f64,
    }
    match method {
        "notifications/progress" => {
            if let Ok(progress) = serde_json::from_slice::<Progress<'_>>(params)
                && let Some(token) = Id::read(progress.token.get().as_bytes())
            {
                exchange.progress(&token, progress.progress);
            }
        }
        "notifications/tools/list_changed" => exchange.list_changed(),
        // Log messages, other lists, resources, cancellations of what was answered at once.
        _ => {}
    }
}

#[cfg(test)]
#[path = "pump_tests.rs"]
mod tests;
