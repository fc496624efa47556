//! The two directions of a server's pipes: lines in, one by one; lines out, in their order.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::exchange::Exchange;
use super::incoming::dispatch;
use super::outgoing::{Outgoing, What};
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
    mut outgoing: mpsc::Receiver<Outgoing>,
    exchange: Arc<Exchange>,
    done: CancellationToken,
) {
    loop {
        let next = tokio::select! {
            biased;
            next = outgoing.recv() => next,
            () = done.cancelled() => break,
        };
        let Some(Outgoing { mut line, what }) = next else { break };
        line.push(b'\n');
        let written = tokio::select! {
            written = input.write_all(&line) => written.is_ok(),
            // What is being written to a server that does not read is not waited for.
            () = async { done.cancelled().await; tokio::time::sleep(Duration::from_millis(limits::MCP_CANCEL_MS)).await } => false,
        };
        if !written {
            break;
        }
        if let What::Notification(Some(taken)) = what {
            let _ = taken.send(Ok(()));
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
        Line::Whole(line) => dispatch(exchange, line, None),
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

#[cfg(test)]
#[path = "pump_tests.rs"]
mod tests;
