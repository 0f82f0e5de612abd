//! When a job became slower or faster, and which category moved.
//!
//! A job's recordings in order of time are cut in two where both sides are closest to their medians. The cut counts if
//! the medians differ by more than recordings on one side differ among themselves. One recording on the newer side is
//! enough if the step is far from anything before, so that a nightly check sees a regression on the first night.

use stepscope_diagnose::statistics::{median, rank_test};

use crate::record::Record;

/// Smaller changes are not reported.
const LEAST: f64 = 0.05;
/// The same for a change that only the newest recording shows.
const LEAST_ONCE: f64 = 0.10;
/// How many times larger than the usual deviation a change must be.
const NOISE: f64 = 4.0;
const NOISE_ONCE: f64 = 6.0;
/// Scales a median absolute deviation to a standard deviation.
const MAD: f64 = 1.4826;
/// Recordings that make a side.
const SIDE: usize = 2;

/// A change in the step time of a job.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Change {
    /// Index of the first recording after it.
    pub(crate) at: usize,
    pub(crate) before_ms: f64,
    pub(crate) after_ms: f64,
    /// The category that moved most in the same direction, and by how many milliseconds per step.
    pub(crate) category: Option<(String, f64)>,
    /// How likely ranks this uneven are by chance alone; `None` of single recordings.
    pub(crate) p: Option<f64>,
}

/// The largest change among recordings in order of time; all have steps.
pub(crate) fn change(records: &[&Record]) -> Option<Change> {
    let steps: Vec<f64> = records.iter().filter_map(|record| record.step_ms).collect();
    if steps.len() != records.len() || steps.len() <= SIDE {
        return None;
    }
    let cuts = (SIDE..=steps.len() - 1).filter(|&at| at >= SIDE);
    let at = cuts.min_by(|&a, &b| cost(&steps, a).total_cmp(&cost(&steps, b)).then(a.cmp(&b)))?;
    let (before, after) = steps.split_at(at);
    let (before_ms, after_ms) = (median(before)?, median(after)?);
    let once = after.len() < SIDE;
    // Two recordings cannot show how much recordings vary.
    if before.len() < 3 && once {
        return None;
    }
    let (least, noise) = if once { (LEAST_ONCE, NOISE_ONCE) } else { (LEAST, NOISE) };
    let usual = deviation(before).max(if once { 0.0 } else { deviation(after) }) * MAD;
    let moved = (after_ms - before_ms).abs();
    if before_ms <= 0.0 || moved < least * before_ms || moved < noise * usual {
        return None;
    }
    let (older, newer) = records.split_at(at);
    Some(Change {
        at,
        before_ms,
        after_ms,
        category: category(older, newer, after_ms > before_ms),
        p: if once { None } else { rank_test(before, after, 1.0).map(|test| test.p) },
    })
}

/// How far both sides are from their medians.
fn cost(steps: &[f64], at: usize) -> f64 {
    let (before, after) = steps.split_at(at);
    let side = |side: &[f64]| {
        let middle = median(side).unwrap_or(0.0);
        side.iter().map(|step| (step - middle).abs()).sum::<f64>()
    };
    side(before) + side(after)
}

fn deviation(side: &[f64]) -> f64 {
    let Some(middle) = median(side) else { return 0.0 };
    let apart: Vec<f64> = side.iter().map(|step| (step - middle).abs()).collect();
    median(&apart).unwrap_or(0.0)
}

/// The category whose mean moved most in the direction of the step.
fn category(older: &[&Record], newer: &[&Record], slower: bool) -> Option<(String, f64)> {
    let names =
        || older.iter().chain(newer).flat_map(|record| record.breakdown_ms.iter().map(|(name, _)| name));
    let mut known: Vec<&String> = names().collect();
    known.sort();
    known.dedup();
    let mean = |side: &[&Record], name: &str| {
        let of = |record: &&Record| {
            record.breakdown_ms.iter().find(|(own, _)| own == name).map_or(0.0, |(_, ms)| *ms)
        };
        side.iter().map(of).sum::<f64>() / side.len().max(1) as f64
    };
    let moved = known.into_iter().map(|name| (name.clone(), mean(newer, name) - mean(older, name)));
    let towards = moved.filter(|(_, ms)| if slower { *ms > 0.0 } else { *ms < 0.0 });
    towards.max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()).then_with(|| b.0.cmp(&a.0)))
}
