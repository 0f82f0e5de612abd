//! The overview below the timeline: the breakdown over time, as shares by category.

use serde_json::{Map, Value, json};
use stepscope_analyze::time::over_time::shares_over;
use stepscope_analyze::{Category, Context, Shares};
use stepscope_trace::Dur;

use super::model::{Model, ns};

/// Number of pieces into which a host's trace is divided once; coarser overviews are built from them.
pub(crate) const FINE: usize = 4096;

/// The breakdown of each of [`FINE`] pieces of a trace.
pub fn fine(context: &Context) -> Vec<Shares> {
    context.trace.span().map_or_else(Vec::new, |span| shares_over(context, span, FINE))
}

/// The shares of each bucket, by category, averaged over hosts.
pub fn answer(model: &Model, buckets: usize) -> Value {
    let mut sums = vec![[0.0; Category::COUNT]; buckets];
    for (number, host) in model.hosts().iter().enumerate() {
        let Some(span) = model.trace(number).span() else { continue };
        let start = (span.start + host.shift).ps() as f64;
        let piece = span.dur().ps() as f64 / host.shares.len().max(1) as f64;
        let bucket = model.end as f64 / buckets.max(1) as f64;
        for (place, shares) in host.shares.iter().enumerate() {
            let from = start + place as f64 * piece;
            spread(&mut sums, shares, from, from + piece, bucket);
        }
    }
    let whole = Dur::from_ps(model.end).ps() as f64 / buckets.max(1) as f64 * model.hosts().len() as f64;
    let mut categories = Map::new();
    for category in Category::ALL {
        let share = |sums: &[f64; Category::COUNT]| {
            let share = if whole > 0.0 { sums[category as usize] / whole } else { 0.0 };
            // Four digits are more than a pixel can show.
            (share * 1e4).round() / 1e4
        };
        let shares: Vec<f64> = sums.iter().map(share).collect();
        if shares.iter().any(|&share| share > 0.0) {
            categories.insert(category.key().to_owned(), json!(shares));
        }
    }
    json!({
        "start_ns": 0, "end_ns": ns(Dur::from_ps(model.end)), "buckets": buckets, "categories": categories,
    })
}

/// Distributes a piece that reaches from `from` to `to` over the buckets.
fn spread(sums: &mut [[f64; Category::COUNT]], shares: &Shares, from: f64, to: f64, bucket: f64) {
    if bucket <= 0.0 || to <= from || sums.is_empty() {
        return;
    }
    let last = sums.len() - 1;
    let (first, end) = (((from / bucket) as usize).min(last), ((to / bucket) as usize).min(last));
    for (place, sum) in sums.iter_mut().enumerate().take(end + 1).skip(first) {
        let left = (place as f64 * bucket).max(from);
        let right = if place == last { to } else { ((place + 1) as f64 * bucket).min(to) };
        let part = ((right - left) / (to - from)).max(0.0);
        for (category, time) in shares.owners() {
            sum[category as usize] += time.ps() as f64 * part;
        }
    }
}
