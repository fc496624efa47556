//! What a session gives to a wire. A wire with headers needs to know more of a message than its bytes.

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::frame::Id;

/// A message for a server.
#[derive(Debug)]
pub(crate) struct Outgoing {
    /// Its bytes: one JSON object, without an end of line.
    pub(crate) line: Vec<u8>,
    /// What it is.
    pub(crate) what: What,
}

/// What a message is.
#[derive(Debug)]
pub(crate) enum What {
    /// A request: its answer goes to whoever waits for this id.
    Request {
        /// Its id.
        id: Id,
        /// What it asks.
        asked: Asked,
        /// Fires when nobody waits for the answer any more.
        given_up: CancellationToken,
    },
    /// A notification. Whoever waits is told when the server has taken it, or why it did not: the second half of a sentence about it.
    Notification(Option<oneshot::Sender<Result<(), String>>>),
    /// An answer to a request of the server's.
    Reply,
}

/// What a request asks, as far as headers repeat it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    /// Its method.
    pub(crate) method: &'static str,
    /// The tool that it is about.
    pub(crate) tool: Option<String>,
    /// Arguments that travel as headers too: header → value.
    pub(crate) mirrored: Vec<(String, String)>,
    /// The call that it is, by the number of its intent.
    pub(crate) call: Option<u64>,
    /// It is answered over and over, for as long as the server likes.
    pub(crate) is_standing: bool,
}

impl Asked {
    /// A request of this method and nothing more to say.
    pub(crate) fn of(method: &'static str) -> Self {
        Self { method, ..Self::default() }
    }
}
