//! What waits for a person, and what a person said: one file an approval, which a program and people read and write at the same time.
//!
//! [`Record`] is the file and what may become of it (pure); [`Key`] signs decisions; [`Approvals`] is the folder. An answer counts only
//! when it is signed with the key of whoever runs missions here, so that nothing below a workspace can decide. It is spent by one
//! dispatch, whoever comes first.

mod error;
mod key;
mod record;
mod store;

pub use error::ApprovalError;
pub use key::Key;
pub use record::{Answer, Kind, Record, Spent, Standing, State};
pub use store::{Approvals, Listing, Looked};
