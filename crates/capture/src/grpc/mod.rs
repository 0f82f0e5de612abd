//! Profiles taken from running processes over gRPC: `tf.profiler.experimental.server.start`,
//! `jax.profiler.start_server` and everything else that speaks `tensorflow.ProfilerService`.
//!
//! [`record`] asks one or several processes for the same window of time and hands back the bytes that they send;
//! [`place`] puts them into a log directory, whole or not at all; [`keep`] bounds what a long watch leaves there.
//! The profile itself is never decoded here: it is bytes from the wire to the disk.

mod address;
mod client;
mod error;
pub mod keep;
mod messages;
pub mod place;
mod probe;
pub mod record;

pub use address::{Address, AddressError};
pub use error::CaptureError;
pub use keep::{Keep, Limits};
pub use place::{Place, Session};
pub use record::{Event, Levels, Options, Outcome, Recorded, Recorder, Recording};
