//! Steady-state throughput of batches, without the time to the first batch and the warm-up.

use std::time::Duration;

use super::input::Batch;
use super::latencies::{Distribution, Recorder};

/// With fewer gaps than this, the throughput is unknown.
const LEAST: usize = 5;
/// A gap this many times as long as the median is a stall, if it is longer than `LEAST_STALL`.
const STALL: f64 = 10.0;
const LEAST_STALL: Duration = Duration::from_millis(1);
/// The warm-up must differ from the rest by this factor to be excluded.
const DIFFERS: f64 = 1.2;

/// The throughput of a pipeline.
#[derive(Clone, Debug)]
pub struct Pace {
    /// Number of excluded gaps at the start.
    pub warmup: usize,
    /// `false` if half of the gaps had to be excluded, so that the rest may not be steady, or if the rest still
    /// becomes faster or slower.
    pub settled: bool,
    /// The counted gaps.
    pub gaps: Distribution,
    /// Batches per second, including stalls.
    pub per_second: f64,
    /// Examples per second; `None` if batches do not say.
    pub examples_per_second: Option<f64>,
    /// Number of stalls.
    pub stalls: usize,
    /// Time lost in stalls, beyond the usual gap.
    pub stalled: Duration,
}

/// The throughput of the batches; `None` if there are too few, or they came all at once.
pub fn pace(batches: &[Batch]) -> Option<Pace> {
    let gaps: Vec<Duration> = batches.windows(2).map(|pair| pair[1].at.saturating_sub(pair[0].at)).collect();
    if gaps.len() < LEAST {
        return None;
    }
    let (warmup, in_time) = cut(&gaps);
    let steady = gaps.get(warmup..)?;
    let settled = in_time && !drifts(steady);
    let middle = middle(steady);
    let total: Duration = steady.iter().sum();
    let seconds = Some(total.as_secs_f64()).filter(|seconds| *seconds > 0.0)?;
    let longest = Duration::from_secs_f64(middle.as_secs_f64() * STALL).max(LEAST_STALL);
    let stalls: Vec<Duration> = steady.iter().filter(|gap| **gap > longest).copied().collect();
    // The batch at the end of a gap is the one that the gap was spent on.
    let examples = batches.get(warmup + 1..)?.iter().map(|batch| batch.examples).sum::<Option<u64>>();
    let mut recorder = Recorder::default();
    steady.iter().for_each(|gap| recorder.record(*gap));
    Some(Pace {
        warmup,
        settled,
        gaps: recorder.finish(),
        per_second: steady.len() as f64 / seconds,
        examples_per_second: examples.map(|examples| examples as f64 / seconds),
        stalls: stalls.len(),
        stalled: stalls.iter().map(|stall| stall.saturating_sub(middle)).sum(),
    })
}

fn middle(gaps: &[Duration]) -> Duration {
    let mut gaps = gaps.to_vec();
    let place = gaps.len() / 2;
    gaps.sort_unstable();
    gaps.get(place).copied().unwrap_or_default()
}

/// Whether the last third is faster or slower than the first. A few gaps cannot show this.
fn drifts(gaps: &[Duration]) -> bool {
    let third = gaps.len() / 3;
    let (Some(first), Some(last)) = (gaps.get(..third), gaps.get(gaps.len() - third..)) else { return false };
    let ratio = middle(first).as_secs_f64() / middle(last).as_secs_f64().max(f64::MIN_POSITIVE);
    third >= LEAST && !(1.0 / DIFFERS..DIFFERS).contains(&ratio)
}

/// The end of the warm-up, and whether it comes before half of the gaps: the cut after which the mean of the
/// rest is known best (White's marginal standard error rule). Single stalls are clipped first; otherwise the
/// cut would fall after the last of them.
fn cut(gaps: &[Duration]) -> (usize, bool) {
    let bound = middle(gaps).as_secs_f64() * STALL;
    let clipped: Vec<f64> = gaps.iter().map(|gap| gap.as_secs_f64().min(bound)).collect();
    let n = clipped.len();
    let (mut sum, mut squares, mut best) = (0.0, 0.0, (0, f64::INFINITY));
    for (place, gap) in clipped.iter().enumerate().rev() {
        sum += gap;
        squares += gap * gap;
        let left = (n - place) as f64;
        let error = (squares - sum * sum / left).max(0.0) / (left * left);
        if place <= n / 2 && error <= best.1 {
            best = (place, error);
        }
    }
    let mean = |gaps: &[f64]| gaps.iter().sum::<f64>() / gaps.len().max(1) as f64;
    let (before, after) = clipped.split_at(best.0);
    let ratio = if before.is_empty() { 1.0 } else { mean(before) / mean(after).max(f64::MIN_POSITIVE) };
    if (1.0 / DIFFERS..DIFFERS).contains(&ratio) { (0, true) } else { (best.0, best.0 < n / 2) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batches(gaps: impl IntoIterator<Item = u64>) -> Vec<Batch> {
        let mut at = 500_000;
        let later = gaps.into_iter().map(|gap| {
            at += gap;
            at
        });
        let times: Vec<u64> = std::iter::once(500_000).chain(later).collect();
        times.iter().map(|us| Batch { at: Duration::from_micros(*us), examples: Some(32) }).collect()
    }

    #[test]
    fn a_slow_beginning_is_set_apart() {
        let pace =
            pace(&batches((0..100).map(|i| if i < 12 { 30_000 } else { 2_000 + i % 3 * 100 }))).unwrap();
        assert_eq!((pace.warmup, pace.settled), (12, true));
        assert!((pace.per_second - 476.0).abs() < 2.0, "{}", pace.per_second);
        assert!((pace.examples_per_second.unwrap() / pace.per_second - 32.0).abs() < 1e-9);
        assert_eq!(pace.gaps.percentile(0.5), Some(Duration::from_micros(2_100)));
    }

    #[test]
    fn a_full_buffer_at_the_beginning_is_set_apart_too() {
        let pace = pace(&batches((0..80).map(|i| if i < 10 { 20 } else { 5_000 }))).unwrap();
        assert_eq!(pace.warmup, 10);
        assert!((pace.per_second - 200.0).abs() < 0.1);
    }

    #[test]
    fn stalls_count_and_do_not_pass_for_a_warm_up() {
        let pace =
            pace(&batches((0..200).map(|i| if i == 60 || i == 150 { 102_000 } else { 2_000 }))).unwrap();
        assert_eq!((pace.warmup, pace.stalls), (0, 2));
        assert_eq!(pace.stalled, Duration::from_millis(200));
    }

    #[test]
    fn a_pace_that_never_settles_is_told() {
        let pace = pace(&batches((0..100).map(|i| 1_000 + i * i * 20))).unwrap();
        assert!(!pace.settled);
    }

    #[test]
    fn few_batches_have_no_pace() {
        assert!(pace(&batches([1, 1])).is_none());
        assert!(pace(&[]).is_none());
        assert!(pace(&batches([0; 20])).is_none());
    }

    #[test]
    fn examples_that_one_batch_hides_are_not_known() {
        let mut some = batches([1_000; 20]);
        some[10].examples = None;
        assert_eq!(pace(&some).unwrap().examples_per_second, None);
    }
}
