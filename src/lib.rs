//! `mission`: carries out one objective with a language model and MCP tools, under governance.
//!
//! The architecture on one page. Arrows point one way:
//! `contract ← {policy, skill} ← engine ← {driver, replay} ← cli`; the adapters know `contract`, the engine's types, `sys` and `redact`,
//! never each other and never the driver.
//!
//! * [`engine`]: the core, sans I/O. A fold over inputs; everything it decides can be derived again from the log.
//! * [`skill`]: what a manifest allows; pure.
//! * [`policy`]: what a profile grants and a policy file narrows; pure.
//! * [`driver`]: the only loop that does I/O: carries out the engine's effects, feeds back inputs.
//! * [`replay`]: the engine against a recording, and what differs; it knows no adapter and nothing of the driver.
//! * [`journal`]: one writer, group commit, chain, reader, lock, the store of runs.
//! * [`audit`]: what was called and what was not, by which rule; chained.
//! * [`approvals`]: what waits for a person, and what a person said; signed.
//! * [`model`]: backends behind one trait, one file a wire format.
//! * [`tools`]: the tool plane behind one trait; `tools::mcp` is the only room that knows `rmcp`.
//! * [`control`]: the channel in: words of whoever started a run.
//! * [`stream`]: where records go: descriptor, file, console.
//! * [`redact`]: what never leaves.
//! * [`sys`]: descriptors, processes, locks, files, clock: the only place for unsafe code.
//! * [`demo`]: the tool server, the data and the script of `mission demo`.
//! * [`cli`]: arguments as typed, configuration as opened, one file a verb.
//! * [`limits`]: every bound, with its unit and reason.

pub mod approvals;
pub mod audit;
pub mod cli;
pub mod control;
pub mod demo;
pub mod driver;
pub mod engine;
pub mod journal;
pub mod limits;
pub mod model;
pub mod policy;
pub mod redact;
pub mod replay;
pub mod skill;
pub mod stream;
pub mod sys;
pub mod tools;
