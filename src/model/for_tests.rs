#![allow(clippy::unwrap_used)]
//! What the tests of the backends share.

use std::sync::Arc;

use mission_contract::log::{Message, Role};
use tokio::sync::mpsc::channel;
use tokio_util::sync::CancellationToken;

use super::{Delta, ModelBackend, ModelReply};
use crate::engine::request::ModelRequest;

/// A message that says this.
pub fn message(role: Role, text: &str) -> Arc<Message> {
    Arc::new(Message { role, content: text.into(), ..Message::default() })
}

/// Asks, and takes the pieces as they come.
pub async fn ask(backend: &dyn ModelBackend, request: ModelRequest) -> (ModelReply, Vec<Delta>) {
    // One place only: a reader that does not keep up slows the reply and loses nothing.
    let (sender, mut receiver) = channel(1);
    let collect = async {
        let mut deltas = Vec::new();
        while let Some(delta) = receiver.recv().await {
            deltas.push(delta);
        }
        deltas
    };
    tokio::join!(backend.ask(request, sender, CancellationToken::new()), collect)
}
