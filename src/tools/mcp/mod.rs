//! Servers of the Model Context Protocol. The only room that knows `rmcp`.
//!
//! `rmcp` is the client: it numbers requests, writes them, cancels them. What a server says is read by us first, in order and
//! from its own bytes, because a typed decoding loses what it does not know. From the outside in:
//!
//! * [`plane`](self): [`connect`] starts the servers of a run; [`McpPlane`] is what the driver holds.
//! * `server`: one server over its lives: start, list, call, restart after a death.
//! * `session`: one life of a server: its process tree, its handshake, its requests.
//! * `probe`: which era of the protocol a server speaks, and the handshake.
//! * `list`: its tools, page by page, one definition at a time.
//! * `result`, `text`: what came of a call.
//! * `exchange`: who waits for which answer, in the order of the wire; `client`: its seam to `rmcp`.
//! * `pump`, `frame`: bytes to lines to messages; noise is skipped.

mod client;
mod exchange;
mod frame;
mod list;
mod plane;
mod probe;
mod pump;
mod request;
mod result;
mod server;
mod session;
mod text;

pub use plane::{McpPlane, PlaneOptions, connect};
pub use request::ServerRequest;
