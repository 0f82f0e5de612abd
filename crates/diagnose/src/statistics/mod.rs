//! The statistics of a comparison: a deterministic source of chance, the block bootstrap, the rank test, and
//! how steps of one run hang together.
//!
//! Step times are skewed to the right, and a slow step is often followed by another: nothing in here assumes a
//! normal distribution or independent steps. All is deterministic: equal input gives equal output.

mod bootstrap;
mod chance;
mod confidence;
mod dependence;
mod random;
mod rank;

pub use bootstrap::{Deviation, Sample, interval};
pub use chance::at_least;
pub use confidence::Confidence;
pub(crate) use dependence::inflation;
pub use random::Random;
pub use rank::{RankTest, rank_test};
pub(crate) use stepscope_trace::statistics::median_in_place;
pub use stepscope_trace::statistics::{mean, median};
