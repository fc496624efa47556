//! What the tests stand on: a builder for runs, a scripted model, real tool servers, a reader of logs.
//!
//! Everything drives the built binary as a platform would: a subprocess with its own working directory, its own environment and
//! real descriptors. Every wait is bounded by [`PATIENCE`] and ends with the event it waits for.

pub mod each;
pub mod faults;
pub mod feed;
pub mod http;
pub mod log;
pub mod model;
pub mod model_server;
pub mod planes;
pub mod player;
pub mod remote;
pub mod run;
pub mod servers;
pub mod skips;
pub mod tracer;
pub mod wild;

pub use model_server::PATIENCE;

/// Takes what a test needs from the host, or says by name that the test cannot run here and leaves it.
macro_rules! needs {
    ($what:expr) => {
        match $what {
            Ok(value) => value,
            Err(why) => {
                fn here() {}
                $crate::support::skips::skip(std::any::type_name_of_val(&here), &why);
                return;
            }
        }
    };
}
pub(crate) use needs;
