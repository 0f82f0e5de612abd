//! Named ranges around time of which nothing else is known: where a program was recorded by its ranges alone, they are what
//! shows where the step goes. If a device's work was recorded, [`crate::devices::bottleneck`] names them instead.

use stepscope_trace::{Dur, Span, Track, TrackKind};

use crate::analysis::Analysis;
use crate::breakdown::{Category, owner};
use crate::context::Context;
use crate::host_trace::merged;
use crate::states::ranges::holding;
use crate::states::timeline::Timeline;

/// Ranges around unexplained time.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct NamedRanges {
    /// Their names with the time in each, but not in a nested one, longest first.
    pub ranges: Vec<(String, Dur)>,
    /// Counted steps.
    pub steps: u64,
}

impl Analysis for NamedRanges {
    type Output = Self;

    /// Of one host.
    fn of(context: &Context) -> Self {
        let (trace, breakdown) = (context.trace, context.breakdown());
        let unexplained = [Category::Unknown, Category::Idle];
        let known = |(_, shares): (_, &crate::breakdown::StepShares)| {
            unexplained.iter().all(|&category| shares.shares.get(category).is_zero())
        };
        if context.states().has_device || breakdown.counted().all(known) {
            return NamedRanges::default();
        }
        let (host, none) = (merged(context, None), Timeline::default());
        let (mut gaps, mut steps): (Vec<Span>, u64) = (Vec::new(), 0);
        for (_, shares) in breakdown.counted() {
            steps += 1;
            host.sweep(&none, shares.window, |span, host, device| {
                if unexplained.contains(&owner(host, device, &breakdown.ground, span.start)) {
                    gaps.push(span);
                }
            });
        }
        let held = |track: &Track| holding(trace, context.vocabulary(), [track].into_iter(), &gaps);
        let total = |ranges: &[(String, Dur)]| ranges.iter().map(|(_, time)| *time).sum::<Dur>();
        // Ranges of several threads overlap; those of the thread that has the steps, or the most time in ranges, count.
        let threads = trace.tracks().iter().filter(|track| track.kind == TrackKind::Thread);
        let marked =
            breakdown.steps.track.map(|id| held(trace.track(id))).filter(|ranges| !ranges.is_empty());
        let ranges = marked.or_else(|| threads.map(held).max_by_key(|ranges| total(ranges)));
        NamedRanges { ranges: ranges.unwrap_or_default(), steps }
    }

    /// Another host's count if this one has none.
    fn merge(&mut self, other: NamedRanges) {
        if self.ranges.is_empty() {
            *self = other;
        }
    }

    fn finish(self) -> Self {
        self
    }
}

impl NamedRanges {
    /// Milliseconds per step in each.
    pub fn ms_per_step(&self) -> Vec<(String, f64)> {
        let steps = self.steps.max(1) as f64;
        self.ranges.iter().map(|(name, time)| (name.clone(), time.ms() / steps)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sketch::Sketch;

    #[test]
    fn ranges_own_the_time_of_which_nothing_else_is_known() {
        let mut sketch = Sketch::new();
        let thread = sketch.thread("main");
        for frame in 0..10 {
            let at = frame * 130_000;
            sketch.event(thread, "frame", at, 120_000, &[]);
            sketch.event(thread, "backbone", at, 40_000, &[]);
            sketch.event(thread, "find_centers", at + 45_000, 68_000, &[]);
        }
        let trace = sketch.finish();
        let found = NamedRanges::of(&Context::new(&trace, "host"));
        let named: Vec<(&str, f64)> =
            found.ranges.iter().map(|(name, time)| (name.as_str(), time.ms())).collect();
        assert_eq!(named, [("find_centers", 680.0), ("backbone", 400.0), ("frame", 120.0)]);
        let per_step = found.ms_per_step();
        assert!((per_step[0].1 - 680.0 / found.steps as f64).abs() < 1e-9, "{found:?}");
    }
}
