//! Records profiles from running processes over gRPC: `tf.profiler.experimental.server.start`,
//! `jax.profiler.start_server` and everything else that offers `tensorflow.ProfilerService`.
//!
//! [`record`] asks one or several processes for the same time window and returns the bytes they send; [`place`]
//! writes them to a log directory, completely or not at all; [`keep`] limits what a long sampling run leaves
//! there. The profile itself is never decoded here: it stays bytes from the wire to the disk.

mod address;
mod client;
pub mod cluster;
mod error;
pub mod keep;
mod messages;
pub mod place;
mod probe;
pub mod record;

pub use address::{Address, AddressError};
pub use error::CaptureError;
pub use keep::{Keep, Limits};
pub use place::{SessionFolder, WrittenSession};
pub use record::{Event, Levels, Options, Outcome, Recorded, Recorder, Recording, Stopper};
