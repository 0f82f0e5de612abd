//! Smoothed curves, exactly as TensorBoard draws them: an exponential moving average without the bias of its start.

/// Smooths values with a weight from 0 (not at all) to below 1. What is not finite passes through and does not count; a
/// constant series stays as it is.
pub fn smoothed(values: &[f64], weight: f64) -> Vec<f64> {
    let constant = values.first().is_some_and(|first| values.iter().all(|value| value == first));
    let (mut last, mut left) = (0.0, 1.0);
    let one = |&value: &f64| {
        if constant || !value.is_finite() {
            return value;
        }
        last = weight * last + (1.0 - weight) * value;
        // The weight that the start, which is zero, still has.
        left *= weight;
        if left < 1.0 { last / (1.0 - left) } else { value }
    };
    values.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_has_no_bias_and_odd_values_pass_through() {
        let smooth = smoothed(&[10.0, 0.0, f64::NAN, 4.0], 0.6);
        assert_eq!(smooth[0], 10.0, "the first value is itself");
        // last = 0.6·4 + 0 = 2.4, over 1 − 0.36.
        assert!((smooth[1] - 3.75).abs() < 1e-12 && smooth[2].is_nan());
        // last = 0.6·2.4 + 0.4·4 = 3.04, over 1 − 0.216.
        assert!((smooth[3] - 3.04 / 0.784).abs() < 1e-12);
        assert_eq!(smoothed(&[2.5; 3], 0.9), [2.5; 3]);
        assert_eq!(smoothed(&[1.0, 2.0], 0.0), [1.0, 2.0]);
        assert!(smoothed(&[], 0.5).is_empty());
    }
}
