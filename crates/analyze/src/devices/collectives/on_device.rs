//! The ranks of a host that has devices: its devices, with the collectives on their streams.

use rustc_hash::FxHashMap;
use stepscope_trace::{Dur, Span, StrId, Trace, Track, TrackKind};

use super::{KEPT, Rank, Run, number};
use crate::context::Context;
use crate::stored::{FNV_START, mixed};
use crate::vocabulary::Role;
use crate::vocabulary::names::kernel_short_name;

/// The devices that take part in collectives in the counted steps.
pub(super) fn ranks(context: &Context) -> Vec<Rank> {
    let trace = context.trace;
    let breakdown = context.breakdown();
    let keys = Keys::of(trace);
    let mut ranks = Vec::new();
    for device in &breakdown.devices {
        let Some(process) = device.process else { continue };
        let steps = breakdown.steps.all.iter().zip(&device.steps);
        let windows: Vec<(i64, Span)> = steps
            .filter(|(step, _)| step.excluded.is_none())
            .map(|(step, shares)| (step.number, shares.work))
            .collect();
        let own = |track: &&Track| track.process == process && track.kind == TrackKind::Stream;
        let mut runs: Vec<Run> = trace
            .tracks()
            .iter()
            .filter(own)
            .flat_map(|track| collectives_on(context, track, &windows, &keys))
            .take(KEPT)
            .collect();
        if runs.is_empty() {
            continue;
        }
        number(&mut runs);
        let name = format!("{} {}", context.host, trace.str(trace.process(process).name));
        let (host, wall_ns) = (context.host.clone(), trace.clock().wall_ns_at_origin);
        ranks.push(Rank { name, host, wall_ns, runs, steps: windows.len().max(1), ..Rank::default() });
    }
    ranks
}

/// The keys under which Kineto describes a collective.
struct Keys {
    wanted: Vec<StrId>,
}

impl Keys {
    fn of(trace: &Trace) -> Self {
        let names = ["Process Group Name", "Collective name", "In msg nelems", "dtype"];
        Keys { wanted: names.iter().filter_map(|name| trace.strings().find(name)).collect() }
    }
}

fn collectives_on(context: &Context, track: &Track, windows: &[(i64, Span)], keys: &Keys) -> Vec<Run> {
    let trace = context.trace;
    let mut names: FxHashMap<u32, u64> = FxHashMap::default();
    let mut runs = Vec::new();
    for (index, &kind) in track.kinds().iter().enumerate() {
        if context.vocabulary().role(kind) != Role::Collective {
            continue;
        }
        let span = track.span_of(index);
        let after = windows.partition_point(|(_, window)| window.start <= span.start);
        let Some((step, _)) =
            after.checked_sub(1).map(|at| &windows[at]).filter(|(_, w)| w.contains(span.start))
        else {
            continue;
        };
        let name = *names
            .entry(kind.0)
            .or_insert_with(|| mixed(FNV_START, kernel_short_name(trace.kind_name(kind)).as_bytes()));
        let mut what = name;
        if !keys.wanted.is_empty() {
            trace.args_at(track, index).visit(|key, value| {
                if let Some(place) = keys.wanted.iter().position(|wanted| *wanted == key) {
                    what = mixed(what, &(place as u64).to_le_bytes());
                    what = mixed(what, &value.as_i64().unwrap_or_default().to_le_bytes());
                    what = mixed(what, value.as_str().unwrap_or_default().as_bytes());
                }
            });
        }
        let event = Some(track.event_id(index));
        runs.push(Run { at: None, step: *step, what, nth: 0, span, setup: Dur::ZERO, elements: None, event });
    }
    runs
}
