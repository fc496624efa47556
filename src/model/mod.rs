//! Models behind one trait, one file a wire format.

use futures_util::future::BoxFuture;
use mission_contract::log::{Leg, Observed, Reply};
use tokio::sync::mpsc::Sender;
use tokio_util::sync::CancellationToken;

use crate::engine::request::ModelRequest;

/// A piece of a reply while it streams, in the order in which it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delta {
    /// More of the text.
    Text(String),
    /// The name of the call at this position became known.
    CallName {
        /// Position of the call in the reply, from 0.
        position: usize,
        /// The function's name.
        name: String,
    },
    /// More of the arguments of the call at this position.
    CallArguments {
        /// Position of the call in the reply, from 0.
        position: usize,
        /// The next piece of their raw text.
        fragment: String,
    },
}

/// What came of a question.
#[derive(Clone, Debug, Default)]
pub struct ModelReply {
    /// The reply. The driver fills in `of` and `shown`.
    pub reply: Reply,
    /// What an operator should see besides.
    pub observed: Vec<Observed>,
}

/// A model.
pub trait ModelBackend: Send + Sync {
    /// Who answers, and what its server can do.
    fn leg(&self) -> Leg;

    /// Asks, and returns how it ended; it never fails otherwise. When `cancel` fires the request is aborted at once, and
    /// what had been said by then comes back as [`mission_contract::log::ReplyEnd::Interrupted`]. Pieces go to `deltas`
    /// while they come, if the request asks for a stream.
    fn ask<'a>(&'a self, request: ModelRequest, deltas: Sender<Delta>, cancel: CancellationToken) -> BoxFuture<'a, ModelReply>;
}
