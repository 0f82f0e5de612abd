//! How likely it is that something happens this often by chance alone.

/// The probability that an event of probability `p` happens at least `hits` times in `of` independent tries.
pub fn at_least(hits: usize, of: usize, p: f64) -> f64 {
    if hits == 0 {
        return 1.0;
    }
    if hits > of || p <= 0.0 {
        return 0.0;
    }
    if p >= 1.0 {
        return 1.0;
    }
    // Logarithms: the terms of thousands of tries are too small for a product.
    let (yes, no) = (p.ln(), (1.0 - p).ln());
    let (mut choose, mut sum) = (0.0, 0.0);
    for number in 0..=of {
        if number > 0 {
            choose += ((of - number + 1) as f64 / number as f64).ln();
        }
        if number >= hits {
            sum += (choose + number as f64 * yes + (of - number) as f64 * no).exp();
        }
    }
    f64::min(sum, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coins_behave_as_coins_do() {
        assert!((at_least(10, 10, 0.5) - 1.0 / 1_024.0).abs() < 1e-12);
        assert!((at_least(8, 10, 0.5) - 56.0 / 1_024.0).abs() < 1e-12);
        assert!((at_least(0, 10, 0.5) - 1.0).abs() < 1e-12);
        assert!(at_least(11, 10, 0.5) == 0.0 && at_least(4_000, 4_000, 0.5) < 1e-100);
        assert!((at_least(2_000, 4_000, 0.5) - 0.5).abs() < 0.01);
    }
}
