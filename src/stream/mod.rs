//! Where records go: a descriptor, a file, the console. The journal's writer delivers each record once it is durable, to
//! all sinks in one order.

pub mod console;
pub mod diagnostics;
mod queue;
pub mod sink;
