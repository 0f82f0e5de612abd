//! Statistics of small samples that analyses and comparisons share.

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
    fn one_value_has_no_spread_and_none_has_nothing() {
        assert_eq!(Moments::of([7.0]).unwrap().stddev, None);
        assert_eq!(Moments::of([]), None);
        assert_eq!(quantile(&[], 0.5), None);
    }
}
