//! The statistics of a comparison: a deterministic source of chance, the block bootstrap, the rank test, and
//! how steps of one run hang together.
//!
//! Step times are skewed to the right, and a slow step is often followed by another: nothing in here assumes a
//! normal distribution or independent steps. All is deterministic: equal input gives equal output.

mod bootstrap;
mod confidence;
mod dependence;
mod random;
mod rank;

pub use bootstrap::{Deviation, Sample, interval};
pub use confidence::Confidence;
pub use dependence::{block_length, inflation, lag_one};
pub use random::Random;
pub use rank::{RankTest, rank_test};

/// The middle of unsorted values; `None` of none.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut values = values.to_vec();
    median_in_place(&mut values)
}

/// The same, with the values put into another order.
pub(crate) fn median_in_place(values: &mut [f64]) -> Option<f64> {
    let middle = values.len() / 2;
    if values.is_empty() {
        return None;
    }
    let even = values.len().is_multiple_of(2);
    let (below, upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    let lower = below.iter().copied().max_by(f64::total_cmp).filter(|_| even);
    Some(lower.map_or(*upper, |lower| f64::midpoint(lower, *upper)))
}

/// The arithmetic mean; `None` of none.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_needs_no_order() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), Some(2.5));
        assert_eq!(median(&[]), None);
    }
}
