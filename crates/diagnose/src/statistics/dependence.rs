//! How steps of one run hang together: a slow step is often followed by another (a busy neighbour, a hot chip,
//! a shard of large records), so `n` steps tell less than `n` independent ones would.

use stepscope_trace::statistics::quantile;

/// The correlation of each value with the one before it, from 0 to 0.95: never negative, since steps that
/// alternate must not make an interval narrower than independent ones would.
///
/// Outliers are pulled in to the quartiles' fences first: one spike would otherwise hide all dependence.
pub(crate) fn lag_one(values: &[f64]) -> f64 {
    let n = values.len();
    if n < 4 {
        return 0.0;
    }
    let values = within_fences(values);
    let mean = values.iter().sum::<f64>() / n as f64;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    if variance <= 0.0 {
        return 0.0;
    }
    let products = values.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum::<f64>();
    let raw = products / variance;
    // The estimate from a short series is too low by about this much (Kendall 1954).
    let correction = (1.0 + 3.0 * raw) / n as f64;
    // What chance alone gives independent steps is not dependence.
    if raw < 1.0 / (n as f64).sqrt() { 0.0 } else { (raw + correction).clamp(0.0, 0.95) }
}

fn within_fences(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (Some(q1), Some(q3)) = (quantile(&sorted, 0.25), quantile(&sorted, 0.75)) else { return sorted };
    let reach = 1.5 * (q3 - q1);
    values.iter().map(|value| value.clamp(q1 - reach, q3 + reach)).collect()
}

/// How many consecutive steps are drawn together: the length that is best for the circular block bootstrap of
/// a series with this correlation (Politis and White 2004, worked out for a series of the first order), at
/// most a third of the steps.
pub(crate) fn block_length(values: &[f64]) -> usize {
    let n = values.len() as f64;
    let rho = lag_one(values);
    let best = (6.0 * (rho / (1.0 - rho * rho)).powi(2)).cbrt() * n.cbrt();
    (best.ceil() as usize).clamp(1, (values.len() / 3).max(1))
}

/// By how much the variance of a mean is larger than if steps were independent.
pub(crate) fn inflation(values: &[f64]) -> f64 {
    let rho = lag_one(values);
    (1.0 + rho) / (1.0 - rho)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::Random;

    #[test]
    fn dependence_is_seen_and_chance_is_not() {
        let mut random = Random::new(3);
        let independent: Vec<f64> = (0..200).map(|_| random.unit()).collect();
        assert_eq!(block_length(&independent), 1);
        let mut level = 0.0;
        let dependent: Vec<f64> = (0..200)
            .map(|_| {
                level = 0.8 * level + random.unit();
                level
            })
            .collect();
        assert!((0.65..0.95).contains(&lag_one(&dependent)), "{}", lag_one(&dependent));
        assert!(block_length(&dependent) > 8);
    }

    #[test]
    fn few_or_equal_steps_do_no_harm() {
        assert_eq!(block_length(&[]), 1);
        assert_eq!(block_length(&[1.0, 2.0]), 1);
        assert_eq!(block_length(&[5.0; 40]), 1);
        assert_eq!(inflation(&[5.0; 40]), 1.0);
    }
}
