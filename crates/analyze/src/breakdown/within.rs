//! The breakdown of parts of the steps: what a cause on the host, such as a callback or a pipeline that is set
//! up in the loop, takes from each category.

use stepscope_trace::Span;

use super::{Breakdown, Category, Ground, Shares, is_inside, merged, owner, starving_waits};
use crate::context::Context;
use crate::states::State;
use crate::timeline::Timeline;

impl Breakdown {
    /// The breakdown of `spans` in the counted steps on the bottleneck device. The spans are in time order and
    /// do not overlap.
    pub(crate) fn owned_within(&self, context: &Context, spans: &[Span]) -> Shares {
        let mut shares = Shares::default();
        let Some(bound) = self.bound().filter(|_| !spans.is_empty()) else { return shares };
        let host = merged(context, None);
        let device = bound.process.map_or_else(Timeline::default, |process| merged(context, Some(process)));
        let starving = if bound.process.is_some() { starving_waits(&host, &device) } else { Vec::new() };
        let ground = &Ground::of(context, &host);
        for (_, step) in self.counted() {
            let first = spans.partition_point(|span| span.end <= step.window.start);
            let inside = spans[first..].iter().take_while(|span| span.start < step.window.end);
            for span in inside {
                host.sweep(&device, span.intersect(step.window), |piece, host, device| {
                    let starves = host.has(State::InputWait) && is_inside(&starving, piece.start);
                    let category =
                        if starves { Category::Input } else { owner(host, device, ground, piece.start) };
                    shares.add(category, piece.dur());
                });
            }
        }
        shares
    }
}

/// Spans in time order without overlaps: adjacent ones are merged.
pub(crate) fn united(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_unstable_by_key(|span| span.start);
    let mut all: Vec<Span> = Vec::with_capacity(spans.len());
    for span in spans {
        match all.last_mut().filter(|last| span.start <= last.end) {
            Some(last) => last.end = last.end.max(span.end),
            None => all.push(span),
        }
    }
    all
}
