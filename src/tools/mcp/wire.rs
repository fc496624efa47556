//! What carries messages between a session and its server. The session knows requests, raw answers and their order; the wire knows
//! pipes or HTTP. Either era goes over either.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;

use tokio::sync::mpsc;

use super::child::ChildWire;
use super::exchange::Exchange;
use super::http::HttpWire;
use super::http::client::Clients;
use super::outgoing::Outgoing;
use super::request::Reach;
use crate::sys::spawn::GuardianProgram;

/// What every wire of a run needs.
#[derive(Clone, Debug)]
pub(crate) struct Start {
    /// The name that we give to servers.
    pub(crate) client_name: String,
    /// The program that guards process trees.
    pub(crate) guardian_program: GuardianProgram,
    /// What a child sees of our environment.
    pub(crate) environment: BTreeMap<OsString, OsString>,
    /// The HTTP clients of the run.
    pub(crate) clients: Arc<Clients>,
}

/// One of the two.
#[derive(Debug)]
pub(crate) enum Wire {
    /// The pipes of a child.
    Child(Box<ChildWire>),
    /// HTTP.
    Http(HttpWire),
}

impl Wire {
    /// Opens it. What comes from the server goes to the exchange.
    ///
    /// # Errors
    /// Why not: the second half of a sentence about the server.
    pub(crate) fn open(
        reach: &Reach,
        start: &Start,
        exchange: &Arc<Exchange>,
        outgoing: mpsc::Receiver<Outgoing>,
    ) -> Result<Self, String> {
        match reach {
            Reach::Stdio { argv, .. } => ChildWire::start(&start.guardian_program, argv, &start.environment, exchange, outgoing)
                .map(|child| Wire::Child(Box::new(child))),
            Reach::Http { address, token } => {
                let client = start.clients.for_address(address)?;
                HttpWire::open(client, address, token.as_ref(), exchange, outgoing).map(Wire::Http)
            }
        }
    }

    /// Ends it, and what stands behind it.
    pub(crate) async fn close(&self) {
        match self {
            Wire::Child(child) => child.close().await,
            Wire::Http(http) => http.close().await,
        }
    }

    /// How it came to its end, with what the exchange knows of it: the second half of a sentence about the server.
    pub(crate) async fn end_in_words(&self, exchange: &Exchange) -> String {
        match (exchange.over(), self) {
            (Some(why), _) => why.to_owned(),
            (None, Wire::Child(child)) => child.end_in_words().await,
            (None, Wire::Http(_)) => "is no longer asked anything".to_owned(),
        }
    }

    /// What more is known of a server that does not do as it should, as the end of a sentence.
    pub(crate) fn last_words(&self) -> String {
        match self {
            Wire::Child(child) => child.last_words(),
            Wire::Http(_) => String::new(),
        }
    }

    /// Whether the server has given us a session.
    pub(crate) fn has_session(&self) -> bool {
        matches!(self, Wire::Http(http) if http.has_session())
    }

    /// Whether a request is taken back by closing the stream of its answer, and not by a message.
    pub(crate) fn closes_to_cancel(&self, is_stateless: bool) -> bool {
        is_stateless && matches!(self, Wire::Http(_))
    }
}
