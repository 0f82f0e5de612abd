//! The ranks of a host without devices: the process, or replicas and devices that its own processor plays.

use std::collections::BTreeMap;

use stepscope_trace::Span;

use super::{KEPT, Rank, Run, number};
use crate::context::Context;
use crate::states::host_collectives::{Inside, host_calls};

/// The ranks that take part in collectives in the counted steps.
pub(super) fn ranks(context: &Context) -> Vec<Rank> {
    let calls = host_calls(context.trace, context.vocabulary());
    if calls.is_empty() {
        return Vec::new();
    }
    let windows: Vec<(i64, Span)> =
        context.breakdown().counted().map(|(step, shares)| (step.number, shares.work)).collect();
    let mut found: BTreeMap<Inside, Vec<Run>> = BTreeMap::new();
    for call in calls {
        let after = windows.partition_point(|(_, window)| window.start <= call.arrived);
        let step = after.checked_sub(1).map(|at| &windows[at]).filter(|(_, w)| w.contains(call.arrived));
        let Some((step, _)) = step else { continue };
        let runs = found.entry(call.rank).or_default();
        if runs.len() < KEPT {
            let span = Span::new(call.arrived, call.ended.max(call.arrived));
            let setup = (call.began - call.arrived).at_least_zero().min(span.dur());
            let (event, elements) = (Some(call.event), call.elements);
            runs.push(Run {
                at: call.at,
                step: *step,
                what: call.what,
                nth: 0,
                span,
                setup,
                elements,
                event,
            });
        }
    }
    // A process that joins some collectives alone and others with several replicas has those replicas as its ranks.
    if found.len() > 1 {
        found.remove(&Inside::Process);
    }
    let several = found.len() > 1;
    let rank = |(inside, mut runs): (Inside, Vec<Run>)| {
        number(&mut runs);
        let inside = if several { inside.place() } else { String::new() };
        let host = context.host.clone();
        let name = if inside.is_empty() { host.clone() } else { format!("{host} {inside}") };
        let wall_ns = context.trace.clock().wall_ns_at_origin;
        Rank { name, inside, on_host: true, host, wall_ns, runs, steps: windows.len().max(1) }
    };
    found.into_iter().map(rank).collect()
}
