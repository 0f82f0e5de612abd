//! Finds the start of the steady state. The first steps trace, compile, and fill caches and pipelines; a mean
//! over everything would mix two different things.
//!
//! The series is split where its level changes: the split that explains most of the variance is used as long as
//! it explains more than chance, each time with a penalty (the usual one for change points, a multiple of the
//! logarithm of the length). Single slow steps are clipped first, so that a checkpoint is not a change of
//! level. The final level is the steady state, if it is long enough.

use stepscope_trace::statistics::median;

/// A stretch of observations at one level.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Level {
    /// The first observation.
    pub from: usize,
    /// The one after the last.
    pub to: usize,
    /// The median in between.
    pub median: f64,
}

/// Where a series is steady.
#[derive(Clone, Debug, PartialEq)]
pub struct Steady {
    /// The first observation of the steady state; `None` if there is none.
    pub from: Option<usize>,
    /// All levels, in order.
    pub levels: Vec<Level>,
}

/// Levels that differ by less count as the same.
const SAME: f64 = 0.10;
/// The steady state must cover this share of all observations, and at least this many.
const LEAST_SHARE: f64 = 0.4;
const LEAST: usize = 5;
/// Stretches shorter than this share of all observations do not end a steady state.
const EPISODE: f64 = 0.05;
/// Longer series are processed in blocks.
const MOST_BLOCKS: usize = 512;
/// Values beyond this many robust deviations are clipped.
const CLIP: f64 = 3.0;
/// Cost of a further level, in variances times the logarithm of the length. Twice the usual value: step times
/// are correlated, so chance creates longer waves than with independent values.
const PRICE: f64 = 6.0;

/// Finds the steady state.
pub fn steady(values: &[f64]) -> Steady {
    let block = values.len().div_ceil(MOST_BLOCKS).max(1);
    let blocks: Vec<f64> = values.chunks(block).filter_map(median).collect();
    let mut cuts = vec![0, blocks.len()];
    split(&clipped(&blocks), &mut cuts);
    cuts.sort_unstable();
    without_episodes(&blocks, &mut cuts);
    let bounds = cuts.windows(2).filter_map(|pair| match *pair {
        [from, to] if from < to => Some((from * block, (to * block).min(values.len()))),
        _ => None,
    });
    let levels: Vec<Level> = bounds
        .filter_map(|(from, to)| Some(Level { from, to, median: median(values.get(from..to)?)? }))
        .collect();
    Steady { from: begin(values, &levels), levels }
}

/// A short stretch is an episode, not a level, and is merged with the more similar neighbour; only at the start
/// is it a warm-up.
fn without_episodes(values: &[f64], cuts: &mut Vec<usize>) {
    let least = LEAST.max((values.len() as f64 * EPISODE) as usize);
    loop {
        let length = |place: usize| Some(cuts.get(place + 1)? - cuts.get(place)?);
        let level = |place: usize| median(values.get(*cuts.get(place)?..*cuts.get(place + 1)?)?);
        let short = (1..cuts.len()).filter(|&place| length(place).is_some_and(|length| length < least));
        let Some(place) = short.min_by_key(|&place| length(place)) else { return };
        let away = |other: usize| Some((level(other)? - level(place)?).abs());
        // Removes its own first edge, or that of the next stretch.
        let to_next = away(place + 1).zip(away(place - 1)).is_some_and(|(next, last)| next < last);
        cuts.remove(if to_next { place + 1 } else { place });
    }
}

/// Where the final level starts.
fn begin(values: &[f64], levels: &[Level]) -> Option<usize> {
    let last = levels.last()?;
    let same = |level: &&Level| (level.median / last.median - 1.0).abs() <= SAME;
    let first = levels.iter().rev().take_while(same).last()?;
    let mut from = first.from;
    // Slow first steps that were too few to form a level.
    let middle = median(values.get(first.from..)?)?;
    let spread = deviation(values.get(first.from..)?, middle);
    let slow = |value: &f64| *value > middle * (1.0 + SAME) + 5.0 * spread;
    while values.get(from).is_some_and(slow) {
        from += 1;
    }
    let left = values.len() - from;
    (left >= LEAST && left as f64 >= LEAST_SHARE * values.len() as f64).then_some(from)
}

/// Splits a part of the series where that explains most, and then its parts.
fn split(values: &[f64], cuts: &mut Vec<usize>) {
    // Sums of values and squares up to each position: the spread of a part is a difference of two of them.
    let mut sums = vec![(0.0, 0.0)];
    for value in values {
        let (sum, squares) = sums.last().copied().unwrap_or_default();
        sums.push((sum + value, squares + value * value));
    }
    let cost = |from: usize, to: usize| -> f64 {
        let (Some(a), Some(b)) = (sums.get(from), sums.get(to)) else { return 0.0 };
        let count = (to - from) as f64;
        let sum = b.0 - a.0;
        (b.1 - a.1 - sum * sum / count.max(1.0)).max(0.0)
    };
    // Neighbours differ by noise alone; the median difference is 0.954 standard deviations of a single value.
    // Steps are correlated, so distant ones differ by more without being another level.
    let differences = |apart: usize| -> Vec<f64> {
        values.iter().zip(values.iter().skip(apart)).map(|(a, b)| (a - b).abs()).collect()
    };
    let apart = |apart| median(&differences(apart)).unwrap_or(0.0) / 0.954;
    let noise = apart(1).max(apart(5));
    // With values that never differ, every rounding error would be a level.
    let floor = median(values).unwrap_or(0.0).abs() * 0.002;
    let price = PRICE * noise.max(floor).powi(2) * (values.len().max(2) as f64).ln();
    let mut todo = vec![(0, values.len())];
    while let Some((from, to)) = todo.pop() {
        let whole = cost(from, to);
        let best = (from + 1..to)
            .map(|at| (whole - cost(from, at) - cost(at, to), at))
            .max_by(|a, b| a.0.total_cmp(&b.0));
        if let Some((gain, at)) = best
            && gain > price
        {
            cuts.push(at);
            todo.extend([(from, at), (at, to)]);
        }
    }
}

/// The values with single outliers clipped to the usual range around them.
fn clipped(values: &[f64]) -> Vec<f64> {
    const AROUND: usize = 3;
    let one = |(place, &value): (usize, &f64)| {
        let near = values.get(place.saturating_sub(AROUND)..(place + AROUND + 1).min(values.len()));
        let Some((near, middle)) = near.and_then(|near| Some((near, median(near)?))) else { return value };
        let edge = CLIP * deviation(near, middle) + 0.02 * middle.abs();
        value.clamp(middle - edge, middle + edge)
    };
    values.iter().enumerate().map(one).collect()
}

/// A robust standard deviation.
fn deviation(values: &[f64], middle: f64) -> f64 {
    let away: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    median(&away).unwrap_or(0.0) * 1.4826
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Noise that is the same every time, within ±`size`.
    fn noisy(level: f64, count: usize, size: f64) -> Vec<f64> {
        let mut state = 0x2545_f491_4f6c_dd1d_u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1_u64 << 53) as f64 * 2.0 - 1.0
        };
        (0..count).map(|_| level * (1.0 + size * next())).collect()
    }

    #[test]
    fn a_steady_series_has_one_level() {
        let found = steady(&noisy(10.0, 300, 0.2));
        assert_eq!((found.from, found.levels.len()), (Some(0), 1));
    }

    #[test]
    fn warm_up_is_set_apart() {
        let values = [noisy(40.0, 12, 0.1), noisy(10.0, 200, 0.1)].concat();
        assert_eq!(steady(&values).from, Some(12));
        let values = [vec![900.0], noisy(10.0, 40, 0.1)].concat();
        assert_eq!(steady(&values).from, Some(1), "one slow step");
    }

    #[test]
    fn checkpoints_do_not_end_a_steady_state() {
        let mut values = noisy(10.0, 300, 0.05);
        for place in (49..300).step_by(50) {
            values[place] = 200.0;
        }
        assert_eq!(steady(&values).from, Some(0));
    }

    #[test]
    fn a_short_episode_does_not_end_a_steady_state() {
        let values = [noisy(10.0, 280, 0.1), noisy(25.0, 9, 0.1), noisy(10.0, 9, 0.1)].concat();
        assert_eq!(steady(&values).from, Some(0));
        let values = [noisy(10.0, 280, 0.1), noisy(25.0, 4, 0.1)].concat();
        assert_eq!(steady(&values).from, Some(0), "nor one at the end");
    }

    #[test]
    fn a_run_that_changes_until_the_end_is_not_steady() {
        let grows: Vec<f64> =
            noisy(10.0, 200, 0.02).iter().zip(0..).map(|(v, i)| v * (1.0 + f64::from(i) / 50.0)).collect();
        assert_eq!(steady(&grows).from, None);
        let late = [noisy(10.0, 90, 0.05), noisy(30.0, 20, 0.05)].concat();
        let found = steady(&late);
        assert_eq!(found.from, None);
        assert_eq!(found.levels.len(), 2, "it says what there was instead");
    }

    #[test]
    fn too_little_is_not_steady() {
        assert_eq!(steady(&[10.0, 10.0]).from, None);
        assert_eq!(steady(&[]).from, None);
        assert_eq!(steady(&[10.0; 20]).from, Some(0));
    }

    #[test]
    fn long_series_are_looked_at_in_blocks() {
        let values = [noisy(50.0, 3_000, 0.1), noisy(10.0, 97_000, 0.1)].concat();
        let from = steady(&values).from.unwrap();
        assert!((3_000..3_400).contains(&from), "{from}");
    }
}
