//! Statistics of small samples: the mean, the median and other quantiles, here and nowhere else.

use crate::Dur;

/// The arithmetic mean; `None` of none.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The middle of unsorted values; `None` of none.
pub fn median(values: &[f64]) -> Option<f64> {
    median_in_place(&mut values.to_vec())
}

/// The same, with the values put into another order.
pub fn median_in_place(values: &mut [f64]) -> Option<f64> {
    let middle = values.len() / 2;
    if values.is_empty() {
        return None;
    }
    let even = values.len().is_multiple_of(2);
    let (below, upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    let lower = below.iter().copied().max_by(f64::total_cmp).filter(|_| even);
    Some(lower.map_or(*upper, |lower| f64::midpoint(lower, *upper)))
}

/// The middle duration, the longer of the two middle ones of an even number; zero if there are none.
pub fn median_duration(all: impl Iterator<Item = Dur>) -> Dur {
    let mut all: Vec<Dur> = all.collect();
    if all.is_empty() {
        return Dur::ZERO;
    }
    let middle = all.len() / 2;
    *all.select_nth_unstable(middle).1
}

/// The quantile `q` (0 to 1) of the sorted values, interpolated; `None` if there are none.
pub fn quantile(sorted: &[f64], q: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let place = q.clamp(0.0, 1.0) * last as f64;
    let below = place.floor() as usize;
    let above = (below + 1).min(last);
    Some(sorted[below] + (sorted[above] - sorted[below]) * (place - below as f64))
}

/// Summary statistics of a sample.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Moments {
    /// The arithmetic mean.
    pub mean: f64,
    /// The median.
    pub median: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 99th percentile.
    pub p99: f64,
    /// The sample's standard deviation; `None` for a single value.
    pub stddev: Option<f64>,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

impl Moments {
    /// The statistics of `values`; `None` if there are none. Values must be finite.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len() as f64;
        let mean = sorted.iter().sum::<f64>() / n;
        let squares = sorted.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
        Some(Moments {
            mean,
            median: quantile(&sorted, 0.5)?,
            p90: quantile(&sorted, 0.9)?,
            p99: quantile(&sorted, 0.99)?,
            stddev: (sorted.len() > 1).then(|| (squares / (n - 1.0)).sqrt()),
            min: *sorted.first()?,
            max: *sorted.last()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_sample_lies_between_the_middle_two() {
        let moments = Moments::of([4.0, 1.0, 3.0, 2.0]).unwrap();
        assert_eq!(moments.median, 2.5);
        assert_eq!(moments.mean, 2.5);
        assert!((moments.stddev.unwrap() - 1.290_994).abs() < 1e-6);
    }

    #[test]
    fn the_median_needs_no_order() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), Some(2.5));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn one_value_has_no_spread_and_none_has_nothing() {
        assert_eq!(Moments::of([7.0]).unwrap().stddev, None);
        assert_eq!(Moments::of([]), None);
        assert_eq!(quantile(&[], 0.5), None);
    }
}
