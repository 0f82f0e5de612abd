//! Memory snapshots as PyTorch pickles them: a small pickler for both of its writers, and a program with a known truth on a
//! simulated caching allocator.

mod pickler;
mod simulated;

pub use pickler::{Pickler, Py, Writer};
pub use simulated::{Change, Simulated};
