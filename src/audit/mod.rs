//! The audit file: a line a dispatch, chained, appended by whichever processes share the file. A line is written before the call that it is
//! about goes out, and synced behind it with all that came meanwhile; where it cannot be written there is no call.
//!
//! [`Place`] is where it goes, [`AuditFile`] appends, [`verify`] reads it again.

mod error;
mod file;
mod place;
mod verify;

pub use error::AuditError;
pub use file::AuditFile;
pub use place::Place;
pub use verify::{Verdict, is_audit_file, verify};
