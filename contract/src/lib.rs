//! The wire and the log of `mission`, and nothing else: a consumer can depend on this crate alone.
//!
//! * [`event`]: the records of the event stream (`--events`), one JSON object a line; [`visit`]: their texts.
//! * [`log`]: the lines of a run's journal (`log.ndjson`): envelope and kinds; [`mod@line`]: writing, reading and chaining them.
//! * [`audit`]: the lines of an audit file, chained in the same way.
//! * [`spec`]: what a run was asked to do, as the journal's `open` line keeps it.
//! * [`lock`]: the tools of a skill, written down.
//! * [`replay`]: what `mission replay --json` prints.
//! * [`text`]: the one string type that may be large and shared.
//! * [`vocabulary`]: events, words, exit codes, flags and variables as data; [`conforms`] holds a record to it.
//! * `schema` (behind the feature of that name): JSON Schemas of all of it.
//! * [`canonical`]: the one form of a JSON value that digests are taken over; [`digest`]: those digests.
//!
//! The crate does no I/O.
#![deny(missing_docs)]

pub mod audit;
pub mod canonical;
mod canonical_syntax;
pub mod conforms;
pub mod digest;
pub mod event;
#[cfg(feature = "schema")]
mod file_schemas;
pub mod line;
pub mod lock;
pub mod log;
#[cfg(feature = "schema")]
mod policy_schema;
pub mod replay;
#[cfg(feature = "schema")]
pub mod schema;
mod seal;
pub mod spec;
pub mod text;
pub mod visit;
pub mod vocabulary;

/// Version of the event stream: rides every `mission_started`. Only a breaking change raises it.
pub const SCHEMA_VERSION: u32 = 1;

/// Version of the journal's lines: rides every `open`.
pub const LOG_FORMAT: u32 = 1;
