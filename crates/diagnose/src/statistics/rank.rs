//! The Mann–Whitney rank test: are values of one sample larger than those of the other more often than chance
//! would have it? Asks for no distribution, and one wild step weighs no more than one rank.

use std::cmp::Ordering;

/// Up to so many values on the smaller side and without ties, the distribution is counted out, not
/// approximated. The count takes time with the product of both sizes, so the larger side is bounded too.
const EXACT_SMALL: usize = 20;
const EXACT_LARGE: usize = 60;

/// What the ranks say.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct RankTest {
    /// In how many pairs the second sample's value is the larger one; ties count half.
    pub u: f64,
    /// How likely ranks at least this uneven are by chance alone, from 0 to 1.
    pub p: f64,
    /// Cliff's delta: by how much more often the second sample's value is the larger one, −1 to 1.
    pub delta: f64,
    /// Was the distribution counted out?
    pub exact: bool,
}

/// Tests whether `second` differs from `first`; `None` where one has no values.
///
/// `inflation` says by how much the variance is larger than that of independent values (1 for those); with
/// anything above 1, the normal approximation is used.
pub fn rank_test(first: &[f64], second: &[f64], inflation: f64) -> Option<RankTest> {
    if first.is_empty() || second.is_empty() {
        return None;
    }
    let (n1, n2) = (first.len() as f64, second.len() as f64);
    let ranks = Ranks::of(first, second);
    let u = ranks.sum_of_second - n2 * (n2 + 1.0) / 2.0;
    let small = first.len().min(second.len()) <= EXACT_SMALL && first.len().max(second.len()) <= EXACT_LARGE;
    let exact = small && ranks.ties == 0.0 && inflation <= 1.0;
    let p = if exact {
        exact_p(first.len(), second.len(), u)
    } else {
        let n = n1 + n2;
        let variance = n1 * n2 / 12.0 * ((n + 1.0) - ranks.ties / (n * (n - 1.0)).max(1.0));
        normal_p(u - n1 * n2 / 2.0, variance * inflation.max(1.0))
    };
    Some(RankTest { u, p, delta: 2.0 * u / (n1 * n2) - 1.0, exact })
}

struct Ranks {
    sum_of_second: f64,
    /// Σ (t³ − t) over groups of equal values.
    ties: f64,
}

impl Ranks {
    fn of(first: &[f64], second: &[f64]) -> Self {
        let mut all: Vec<(f64, bool)> = first.iter().map(|&value| (value, false)).collect();
        all.extend(second.iter().map(|&value| (value, true)));
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (mut sum_of_second, mut ties, mut below) = (0.0, 0.0, 0.0);
        for group in all.chunk_by(|a, b| a.0.total_cmp(&b.0) == Ordering::Equal) {
            let size = group.len() as f64;
            let rank = below + (size + 1.0) / 2.0;
            sum_of_second += rank * group.iter().filter(|(_, second)| *second).count() as f64;
            ties += size.powi(3) - size;
            below += size;
        }
        Ranks { sum_of_second, ties }
    }
}

/// Counts in how many of all orders U is at least as far from its middle.
fn exact_p(n1: usize, n2: usize, u: f64) -> f64 {
    // ways[i][u]: orders of i values of the smaller sample among those of the larger one seen so far.
    let (small, large) = (n1.min(n2), n1.max(n2));
    let most = small * large;
    let mut ways = vec![vec![0.0_f64; most + 1]; small + 1];
    if let Some(none) = ways.first_mut().and_then(|row| row.first_mut()) {
        *none = 1.0;
    }
    // The generating function of U is the Gaussian binomial: parts of size up to `large`, at most `small` of
    // them. Adding the value `part` to the allowed sizes lets a row follow from the row before it.
    for part in 0..=large {
        for count in 1..=small {
            for sum in part..=most {
                ways[count][sum] += ways[count - 1][sum - part];
            }
        }
    }
    let orders = &ways[small];
    let all: f64 = orders.iter().sum();
    let middle = most as f64 / 2.0;
    let far = (u - middle).abs() - 1e-9;
    let extreme: f64 = orders
        .iter()
        .enumerate()
        .filter(|(sum, _)| (*sum as f64 - middle).abs() >= far)
        .map(|(_, w)| w)
        .sum();
    (extreme / all).min(1.0)
}

/// Two-sided, with the correction for continuity.
fn normal_p(off: f64, variance: f64) -> f64 {
    if variance <= 0.0 {
        return 1.0;
    }
    two_sided((off.abs() - 0.5).max(0.0) / variance.sqrt())
}

/// How likely a normal value is at least `z` standard deviations off, on either side.
pub(super) fn two_sided(z: f64) -> f64 {
    erfc(z / std::f64::consts::SQRT_2).min(1.0)
}

/// The complementary error function; relative error below 1.2e-7 everywhere (Numerical Recipes' Chebyshev fit).
fn erfc(x: f64) -> f64 {
    const C: [f64; 10] = [
        -1.265_512_23,
        1.000_023_68,
        0.374_091_96,
        0.096_784_18,
        -0.186_288_06,
        0.278_868_07,
        -1.135_203_98,
        1.488_515_87,
        -0.822_152_23,
        0.170_872_77,
    ];
    let t = 1.0 / (1.0 + 0.5 * x.abs());
    let polynomial = C.iter().rev().fold(0.0, |sum, c| sum * t + c);
    let tail = t * (-x * x + polynomial).exp();
    if x >= 0.0 { tail } else { 2.0 - tail }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-4
    }

    #[test]
    fn small_samples_are_counted_out() {
        // Two of three orders of magnitude apart: 2 of C(6,3) = 20 orders are as uneven.
        let test = rank_test(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0], 1.0).unwrap();
        assert!(test.exact && near(test.p, 0.1) && near(test.u, 9.0) && near(test.delta, 1.0), "{test:?}");
        // scipy.stats.mannwhitneyu([19, 22, 16, 29, 24], [20, 11, 17, 12]): U = 17, p = 0.1111.
        let test = rank_test(&[20.0, 11.0, 17.0, 12.0], &[19.0, 22.0, 16.0, 29.0, 24.0], 1.0).unwrap();
        assert!(test.exact && near(test.u, 17.0) && (test.p - 0.111_111).abs() < 1e-5, "{test:?}");
    }

    #[test]
    fn ties_lower_the_variance() {
        // scipy.stats.mannwhitneyu([1,2,2,3,4,4], [2,3,4,5,5,6], method="asymptotic"): U = 7.5 of the first.
        let test = rank_test(&[1.0, 2.0, 2.0, 3.0, 4.0, 4.0], &[2.0, 3.0, 4.0, 5.0, 5.0, 6.0], 1.0).unwrap();
        assert!(!test.exact && near(test.u, 28.5), "{test:?}");
        assert!((test.p - 0.103_095).abs() < 1e-5, "{test:?}");
    }

    #[test]
    fn dependence_makes_the_test_more_careful() {
        let first: Vec<f64> = (0..40).map(f64::from).collect();
        let second: Vec<f64> = first.iter().map(|value| value + 10.3).collect();
        let (plain, careful) =
            (rank_test(&first, &second, 1.0).unwrap(), rank_test(&first, &second, 4.0).unwrap());
        assert!(plain.p < 0.001 && careful.p > 10.0 * plain.p);
        assert_eq!(plain.delta, careful.delta);
    }

    #[test]
    fn equal_samples_do_not_differ() {
        assert_eq!(rank_test(&[5.0; 8], &[5.0; 9], 1.0).unwrap().p, 1.0);
        assert_eq!(rank_test(&[], &[1.0], 1.0), None);
    }
}
