//! The statistics of a comparison: a deterministic source of chance, the block bootstrap, the rank test, and
//! how steps of one run hang together.
//!
//! Step times are skewed to the right, and a slow step is often followed by another: nothing in here assumes a
//! normal distribution or independent steps. All is deterministic: equal input gives equal output.

mod bootstrap;
mod dependence;
mod random;
mod rank;

pub use bootstrap::{Deviation, Sample, interval};
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

/// The two-sided 95 % quantile of Student's distribution with `freedom` degrees of freedom, by Cornish and
/// Fisher's expansion around the normal one; within 3 % from three degrees on, below which it is held.
pub fn student_95(freedom: f64) -> f64 {
    const Z: f64 = 1.959_964;
    let freedom = freedom.max(3.0);
    let first = (Z.powi(3) + Z) / 4.0;
    let second = (5.0 * Z.powi(5) + 16.0 * Z.powi(3) + 3.0 * Z) / 96.0;
    let third = (3.0 * Z.powi(7) + 19.0 * Z.powi(5) + 17.0 * Z.powi(3) - 15.0 * Z) / 384.0;
    Z + first / freedom + second / freedom.powi(2) + third / freedom.powi(3)
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

    #[test]
    fn students_quantiles_are_those_of_the_tables() {
        for (freedom, table) in [(3.0, 3.182), (5.0, 2.571), (10.0, 2.228), (30.0, 2.042), (1e9, 1.960)] {
            assert!((student_95(freedom) / table - 1.0).abs() < 0.03, "{freedom}: {}", student_95(freedom));
        }
    }
}
