//! The seam to `rmcp`: its requests go out through the exchange, and it is told when they are answered. The answers themselves
//! it never sees: they are taken from their bytes.

use std::future::{Future, ready};
use std::sync::Arc;

use rmcp::RoleClient;
use rmcp::handler::client::ClientHandler;
use rmcp::model::{
    ClientConfig, ClientJsonRpcMessage, ClientRequest, EmptyResult, GetExtensions, GetMeta, JsonRpcMessage, NumberOrString,
    ServerJsonRpcMessage, ServerResult,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::sync::mpsc;

use super::exchange::{Exchange, Waiter};
use super::frame::Id;

/// What `rmcp` writes to and reads from.
#[derive(Debug)]
pub(crate) struct Tap {
    pub(crate) exchange: Arc<Exchange>,
    pub(crate) answered: mpsc::Receiver<Id>,
}

/// Why something could not be written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TapError {
    /// It has no form on the wire.
    #[error("a message cannot be written as JSON: {0}")]
    Unwritable(#[from] serde_json::Error),
    /// The server does not take it.
    #[error("the server {0}")]
    NotTaken(&'static str),
}

impl Tap {
    fn take(&self, message: &ClientJsonRpcMessage) -> Result<(), TapError> {
        let line = serde_json::to_vec(message)?;
        let JsonRpcMessage::Request(request) = message else {
            return self.exchange.notify(line).map_err(TapError::NotTaken);
        };
        // All requests are ours: `rmcp` makes none by itself.
        let Some(waiter) = request.request.extensions().get::<Waiter>() else {
            return Err(TapError::NotTaken("is not asked that"));
        };
        let token = request.request.get_meta().get_progress_token().map(|token| id_of(&token.0));
        self.exchange.send(id_of(&request.id), token, line, waiter);
        Ok(())
    }
}

impl Transport<RoleClient> for Tap {
    type Error = TapError;

    fn send(&mut self, message: TxJsonRpcMessage<RoleClient>) -> impl Future<Output = Result<(), TapError>> + Send + 'static {
        // Now, not when the future is polled: the order of the calls is the order on the wire.
        ready(self.take(&message))
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        tokio::select! {
            biased;
            id = self.answered.recv() => id.map(|id| {
                ServerJsonRpcMessage::response(ServerResult::EmptyResult(EmptyResult {}), request_id(id))
            }),
            () = self.exchange.closed().cancelled() => None,
        }
    }

    fn close(&mut self) -> impl Future<Output = Result<(), TapError>> + Send {
        self.answered.close();
        ready(Ok(()))
    }
}

/// The same id in our terms.
pub(crate) fn id_of(id: &NumberOrString) -> Id {
    match id {
        NumberOrString::Number(number) => Id::Number(*number),
        NumberOrString::String(text) => Id::Text(text.to_string()),
    }
}

fn request_id(id: Id) -> NumberOrString {
    match id {
        Id::Number(number) => NumberOrString::Number(number),
        Id::Text(text) => NumberOrString::String(text.into()),
    }
}

/// Requests and notifications of a server never reach `rmcp`: the pump answers them. So nothing of its defaults (an empty list of
/// roots among them) is ever sent.
#[derive(Clone, Debug)]
pub(crate) struct Silent(pub(crate) ClientConfig);

impl ClientHandler for Silent {
    fn get_info(&self) -> ClientConfig {
        self.0.clone()
    }
}

/// A request that carries its waiter.
pub(crate) fn carrying(mut request: ClientRequest, waiter: Waiter) -> ClientRequest {
    request.extensions_mut().insert(waiter);
    request
}
