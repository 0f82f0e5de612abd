//! The breakdown of parts of the steps: what a cause on the host, such as a callback or a pipeline that is set
//! up in the loop, takes from each category.

use stepscope_trace::Span;

use super::{Breakdown, Category, Shares, owner, starving_waits};
use crate::host_trace::HostTrace;
use crate::host_trace::merged;
use crate::states::State;
use crate::states::timeline::{Timeline, is_inside};

impl Breakdown {
    /// The breakdown of `spans` in the counted steps on the bottleneck device. The spans are in time order and
    /// do not overlap.
    pub(crate) fn owned_within(&self, recorded: &HostTrace, spans: &[Span]) -> Shares {
        let mut shares = Shares::default();
        let Some(bound) = self.bound().filter(|_| !spans.is_empty()) else { return shares };
        let host = merged(recorded, None);
        let device = bound.process.map_or_else(Timeline::default, |process| merged(recorded, Some(process)));
        let starving = if bound.process.is_some() { starving_waits(&host, &device) } else { Vec::new() };
        for (_, step) in self.counted() {
            let first = spans.partition_point(|span| span.end <= step.window.start);
            let inside = spans[first..].iter().take_while(|span| span.start < step.window.end);
            for span in inside {
                host.sweep(&device, span.intersect(step.window), |piece, host, device| {
                    let starves = host.has(State::InputWait) && is_inside(&starving, piece.start);
                    let category = if starves {
                        Category::Input
                    } else {
                        owner(host, device, &self.ground, piece.start)
                    };
                    shares.add(category, piece.dur());
                });
            }
        }
        shares
    }
}
