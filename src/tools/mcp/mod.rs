//! Servers of the Model Context Protocol. The only room that knows `rmcp`.
//!
//! `rmcp` is the client: it numbers requests, writes them, cancels them. What a server says is read by us first, in order and
//! from its own bytes, because a typed decoding loses what it does not know. From the outside in:
//!
//! * [`plane`](self): [`connect`] starts the servers of a run; [`McpPlane`] is what the driver holds.
//! * `server`: one server over its lives: start, list, call, restart after a death.
//! * `session`: one life of a server: what was agreed upon, and its requests, in either era (`eras`, `versions`).
//! * `list`, `mirror`: its tools, page by page, one definition at a time; which arguments travel as headers.
//! * `result`, `text`, `output`: what came of a call, and whether it is what its tool promised.
//! * `secrets`: what of its words nobody is to read.
//! * `exchange`: who waits for which answer, in the order of the wire; `client`: its seam to `rmcp`.
//! * `outgoing`, `incoming`: messages to a server and from it, whatever the wire; `frame`: what a message is.
//! * `wire`: what carries them: the pipes of a `child` (`pump`), or `http`. Either era goes over either.

mod child;
mod client;
mod eras;
mod exchange;
mod frame;
mod http;
mod incoming;
mod list;
mod mirror;
mod outgoing;
mod output;
mod plane;
mod pump;
mod request;
mod result;
mod secrets;
mod server;
mod session;
mod text;
mod versions;
mod wire;

pub use plane::{McpPlane, PlaneOptions, connect};
pub use request::{Reach, ServerRequest};
