//! Steps of two kinds: batches that are ready and batches that are not, short sequences and long ones. One figure describes
//! neither.

use stepscope_trace::statistics::quantile;

/// Fewer steps show no two kinds.
const STEPS: usize = 8;
/// Each kind has at least this share of the steps: fewer are exceptions.
const EACH: f64 = 0.2;
/// The long kind takes at least this many times as long.
const APART: f64 = 1.5;
/// The share of the variance that the difference between both kinds explains. Of evenly spread values it explains 75 %,
/// of a normal distribution 64 %.
const EXPLAINED: f64 = 0.85;
/// If neighbours are of different kinds in at least this share of all pairs, the kinds alternate.
const ALTERNATE: f64 = 0.9;

/// The two kinds of steps.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Peaks {
    /// The median of the short ones in milliseconds.
    pub short_ms: f64,
    /// The median of the long ones in milliseconds.
    pub long_ms: f64,
    /// The share of long ones.
    pub long_share: f64,
    /// Whether a short one follows a long one and so on.
    pub alternate: bool,
}

impl Peaks {
    /// From durations in milliseconds, in order; `None` if they are of one kind.
    pub fn of(steps: &[f64]) -> Option<Self> {
        let mut sorted: Vec<f64> = steps.iter().copied().filter(|ms| *ms > 0.0).collect();
        sorted.sort_by(f64::total_cmp);
        if sorted.len() < STEPS {
            return None;
        }
        let logs: Vec<f64> = sorted.iter().map(|ms| ms.ln()).collect();
        let (split, explained) = best_split(&logs)?;
        let (short, long) = sorted.split_at(split);
        let long_share = long.len() as f64 / sorted.len() as f64;
        let (short_ms, long_ms) = (quantile(short, 0.5)?, quantile(long, 0.5)?);
        let two = explained >= EXPLAINED && long_ms >= APART * short_ms;
        let is_long = |ms: f64| long.first().is_some_and(|first| ms >= *first);
        let changes = steps.windows(2).filter(|pair| is_long(pair[0]) != is_long(pair[1])).count();
        let alternate = changes as f64 >= ALTERNATE * (steps.len() - 1) as f64;
        (two && (EACH..=1.0 - EACH).contains(&long_share)).then_some(Peaks {
            short_ms,
            long_ms,
            long_share,
            alternate,
        })
    }
}

/// Where to split sorted values so that the difference between both parts explains most of the variance, and how much
/// (Otsu 1979).
fn best_split(sorted: &[f64]) -> Option<(usize, f64)> {
    let n = sorted.len() as f64;
    let sum: f64 = sorted.iter().sum();
    let variance: f64 = sorted.iter().map(|value| (value - sum / n).powi(2)).sum();
    let (mut below, mut best) = (0.0, None);
    for (index, value) in sorted.iter().enumerate().take(sorted.len() - 1) {
        below += value;
        let (left, right) = ((index + 1) as f64, n - (index + 1) as f64);
        let between = left * right / n * (below / left - (sum - below) / right).powi(2);
        if variance > 0.0 && best.is_none_or(|(_, most)| between / variance > most) {
            best = Some((index + 1, between / variance));
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_that_alternate_are_described_as_such() {
        let steps: Vec<f64> = (0..20).map(|step| if step % 2 == 0 { 20.0 } else { 130.0 }).collect();
        let peaks = Peaks::of(&steps).unwrap();
        assert_eq!((peaks.short_ms, peaks.long_ms, peaks.alternate), (20.0, 130.0, true));
        let runs: Vec<f64> = (0..20).map(|step| if step % 10 < 6 { 20.0 } else { 130.0 }).collect();
        let peaks = Peaks::of(&runs).unwrap();
        assert!(!peaks.alternate && (peaks.long_share - 0.4).abs() < 1e-9, "{peaks:?}");
    }

    #[test]
    fn even_steps_spread_steps_and_exceptions_are_of_one_kind() {
        assert_eq!(Peaks::of(&[5.0; 20]), None);
        assert_eq!(Peaks::of(&[]), None);
        let spread: Vec<f64> = (0..40).map(|step| 10.0 * 1.05_f64.powi(step)).collect();
        assert_eq!(Peaks::of(&spread), None);
        let exceptions: Vec<f64> = (0..20).map(|step| if step % 10 == 9 { 130.0 } else { 20.0 }).collect();
        assert_eq!(Peaks::of(&exceptions), None);
    }
}
