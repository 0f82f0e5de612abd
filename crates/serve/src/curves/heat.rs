//! Distributions over steps as a heat map: buckets of all kept steps, counted into the same bins.

use serde_json::{Value, json};
use stepscope_trace::series::{Bucket, Histogram};

use super::{Curves, read};
use crate::error::Refusal;
use crate::query::Query;

/// Bins of a heat map, from the lowest value to the highest.
const BINS: usize = 64;

/// The distributions of a tag in one run.
pub(crate) fn heat(curves: &Curves, query: &Query) -> Result<Value, Refusal> {
    let tag = query.text("tag").ok_or(Refusal::Missing("tag"))?;
    let id: usize = query.number("run")?;
    let run = curves.run(id).ok_or(Refusal::Missing("run"))?;
    let run = read(&run);
    let histograms = run.reader.histograms(tag).ok_or(Refusal::Missing("tag"))?;
    let Some((low, high)) = bounds(histograms) else {
        return Ok(
            json!({"run": id, "tag": tag, "steps": [], "wall_s": [], "low": null, "high": null, "rows": []}),
        );
    };
    let kept = histograms;
    Ok(json!({
        "run": id, "tag": tag, "low": low, "high": high,
        "steps": kept.iter().map(|it| it.step).collect::<Vec<_>>(),
        "wall_s": kept.iter().map(|it| it.wall_s).collect::<Vec<_>>(),
        "rows": kept.iter().map(|it| binned(&it.buckets, low, high)).collect::<Vec<_>>(),
    }))
}

/// The lowest and the highest value of all steps. Bounds without end say nothing about values.
fn bounds(histograms: &[Histogram]) -> Option<(f64, f64)> {
    let buckets = || histograms.iter().flat_map(|it| &it.buckets).filter(|bucket| bucket.count > 0.0);
    let low = buckets().map(|bucket| bucket.from).filter(|bound| bound.is_finite()).min_by(f64::total_cmp)?;
    let high = buckets().map(|bucket| bucket.to).filter(|bound| bound.is_finite()).max_by(f64::total_cmp)?;
    // A single value still needs a bin with a width.
    let margin = if high > low { 0.0 } else { low.abs().max(1.0) * 1e-3 };
    Some((low - margin, high + margin))
}

/// Counts per bin. A bucket that spans several bins gives each its part.
fn binned(buckets: &[Bucket], low: f64, high: f64) -> Vec<f64> {
    let mut bins = vec![0.0; BINS];
    let width = (high - low) / BINS as f64;
    let place = |value: f64| (((value - low) / width) as usize).min(BINS - 1);
    for bucket in buckets {
        let (from, to) = (bucket.from.max(low), bucket.to.min(high));
        let (first, last) = (place(from), place(to));
        let whole = to - from;
        for (number, bin) in bins.iter_mut().enumerate().take(last + 1).skip(first) {
            let (start, end) = (low + number as f64 * width, low + (number + 1) as f64 * width);
            let part = if whole > 0.0 { (to.min(end) - from.max(start)).max(0.0) / whole } else { 1.0 };
            *bin += bucket.count * part;
        }
    }
    bins
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histograms(buckets: &[(f64, f64, f64)]) -> Vec<Histogram> {
        let buckets = buckets.iter().map(|&(from, to, count)| Bucket { from, to, count }).collect();
        vec![Histogram { step: 1, wall_s: 0.0, buckets }]
    }

    #[test]
    fn every_value_is_in_one_bin() {
        let all = histograms(&[(0.0, 3.0, 30.0), (3.0, 3.0, 5.0), (3.0, 64.0, 61.0)]);
        let (low, high) = bounds(&all).unwrap();
        let bins = binned(&all[0].buckets, low, high);
        assert!((bins.iter().sum::<f64>() - 96.0).abs() < 1e-9);
        assert!((bins[0] - 10.0).abs() < 1e-9 && (bins[3] - 6.0).abs() < 1e-9, "{bins:?}");
    }

    #[test]
    fn a_single_value_and_bounds_without_end_have_a_bin() {
        let same = histograms(&[(2.0, 2.0, 7.0)]);
        let (low, high) = bounds(&same).unwrap();
        assert!(low < 2.0 && high > 2.0);
        assert_eq!(binned(&same[0].buckets, low, high).iter().sum::<f64>(), 7.0);
        let endless = histograms(&[(f64::NEG_INFINITY, 1.0, 1.0), (1.0, f64::INFINITY, 1.0)]);
        let (low, high) = bounds(&endless).unwrap();
        assert!((low, high) != (f64::NEG_INFINITY, f64::INFINITY) && low < high);
    }
}
