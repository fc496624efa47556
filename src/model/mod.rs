//! Models behind one trait, one file a wire format.
//!
//! [`settings`] chooses; [`openai`] speaks chat completions (`request` renders, `stream` folds what comes, `http` carries, [`endpoint`] knows base
//! URLs); [`scripted`] plays a file.

mod calls;
pub mod endpoint;
pub mod failure;
#[cfg(test)]
mod for_tests;
mod http;
mod json_text;
#[cfg(test)]
#[path = "../../tests/support/model_server.rs"]
mod model_server;
pub mod openai;
#[cfg(test)]
mod openai_tests;
mod request;
pub mod script;
pub mod scripted;
#[cfg(test)]
mod scripted_tests;
pub mod secret;
pub mod settings;
mod stream;
#[cfg(test)]
mod stream_tests;
mod template;
mod think;
mod usage;

use futures_util::future::BoxFuture;
use mission_contract::log::{Leg, Observed, Reply};
use tokio::sync::mpsc::Sender;
use tokio_util::sync::CancellationToken;

use crate::engine::request::ModelRequest;

pub use failure::{Failure, FailureKind};
pub use secret::Secret;
pub use settings::{ModelChoice, ModelError, ModelPlan};

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
    /// Why there is no whole reply, for whoever decides whether to ask again. Absent when it is whole or was interrupted.
    pub failure: Option<Failure>,
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
