//! The tool plane behind one trait: discovery, structural check of definitions, calling.
//!
//! * [`address`]: where a server is on the network, and what may be shown of it.
//! * [`namespaces`]: what the command line says about servers, as requests.
//! * [`definition`]: one tool as its server defines it, read and checked alone.
//! * [`structure`]: the structural check of a schema, without compiling it.
//! * [`wording`]: what a definition says in words.
//! * [`mcp`]: servers of the Model Context Protocol; the only room that knows `rmcp`.

pub mod address;
pub mod definition;
pub mod mcp;
pub mod namespaces;
pub mod structure;
pub mod wording;

use futures_util::future::BoxFuture;
use mission_contract::log::{CallResult, Observed, ServerState, ToolDefinition};
use tokio_util::sync::CancellationToken;

use crate::engine::request::ToolDispatch;

/// The servers and their tools at one moment.
#[derive(Clone, Debug, Default)]
pub struct Discovery {
    /// The servers in the order of the command line; one that did not come up is there too, with its reason.
    pub servers: Vec<ServerState>,
    /// Their tools by full name. What is refused is not among them.
    pub tools: Vec<ToolDefinition>,
    /// What an operator should see: refused definitions, noise.
    pub observed: Vec<Observed>,
}

/// What a plane reports by itself.
#[derive(Clone, Debug)]
pub enum PlaneEvent {
    /// The stream must tell it.
    Observed(Observed),
    /// A server says that its list is another one now, or is back after its death.
    Stale {
        /// Its namespace.
        server: String,
    },
}

/// The tools.
pub trait ToolPlane: Send + Sync {
    /// Makes a call, and returns how it ended; it never fails otherwise. The caller fills in `of`. When `cancel` fires the
    /// server is told (`notifications/cancelled`), and the result says so without waiting for it.
    fn call(&self, dispatch: ToolDispatch, cancel: CancellationToken) -> BoxFuture<'static, CallResult>;

    /// Lists every server again.
    fn list(&self) -> BoxFuture<'static, Discovery>;

    /// Lists those servers again that do not tell when their list changes: for the boundaries of steps. Nothing when there are none, or
    /// nothing is different. What it returns is whole: the other servers are in it as they were.
    fn list_unheard(&self) -> BoxFuture<'static, Option<Discovery>> {
        Box::pin(std::future::ready(None))
    }

    /// Sees to it that a server which was left alone for as long as a person thought still knows us: one that forgot its session gets a
    /// new one. Takes no longer than a moment, and fails nothing.
    fn wake(&self, _server: &str) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Ends the servers: end of input, a moment, TERM, a moment, KILL; always the whole group.
    fn close(&self) -> BoxFuture<'static, ()>;
}

/// What is wrong with the tool servers as they were asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToolsError {
    /// A command cannot be split into words.
    #[error("{place} `{given}`: {why}")]
    Command {
        /// The flag or the variable.
        place: &'static str,
        /// As it was given.
        given: String,
        /// What is wrong, and the fix.
        why: &'static str,
    },
    /// What is no URL.
    #[error("{place} `{given}`: {why}")]
    Url {
        /// The flag or the variable.
        place: &'static str,
        /// What may be shown of it.
        given: String,
        /// What is wrong, and the fix.
        why: String,
    },
    /// Two servers have one name.
    #[error("{place} `{given}`: the name `{name}` is given to two servers; give each its own")]
    DuplicateName {
        /// The flag or the variable.
        place: &'static str,
        /// The name.
        name: String,
        /// The second of them, as it was given.
        given: String,
    },
    /// More servers than a run may have.
    #[error("--mcp-stdio, --mcp-url: {given} servers are asked for, {cap} are allowed; leave some out")]
    TooMany {
        /// How many there are.
        given: usize,
        /// How many there may be.
        cap: u64,
    },
}
