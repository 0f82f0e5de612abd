//! The memory in use and reserved over time as counter tracks, so that pages and exports show what a memory file recorded.

use std::collections::BTreeSet;

use stepscope_trace::memory::{MemoryLog, Owner, RoleUse};
use stepscope_trace::{ProcessKind, Time, TraceBuilder, TrackKind};

/// Points per track, at most. Each piece of a longer curve keeps its highest point.
const MOST_POINTS: usize = 20_000;

/// Gives the memory to the trace, with its counter tracks.
pub(crate) fn finish(mut builder: TraceBuilder, log: MemoryLog) -> TraceBuilder {
    for (owner, number) in log.owners.iter().zip(0_i64..) {
        tracks(&mut builder, owner, number);
    }
    builder.memory = Some(Box::new(log));
    builder
}

fn tracks(builder: &mut TraceBuilder, owner: &Owner, number: i64) {
    let name = builder.strings.intern(&owner.name);
    let process = builder.process(name, ProcessKind::Other, number);
    let mut add = |name: &str, points: Vec<(Time, i64)>| {
        if points.is_empty() {
            return;
        }
        let name = builder.strings.intern(name);
        let track = builder.track(process, name, TrackKind::Counter, number, TraceBuilder::ARENA);
        points.into_iter().for_each(|(time, value)| builder.sample(track, time, value as f64));
    };
    add("bytes in use", in_use(owner));
    add("bytes reserved", reserved(owner));
}

/// The bytes in use after each change. Empty without times.
fn in_use(owner: &Owner) -> Vec<(Time, i64)> {
    if !owner.roles.is_empty() {
        let sum =
            |(time, bytes): &(Time, RoleUse)| (*time, bytes.iter().copied().fold(0, i64::saturating_add));
        return thinned(owner.roles.iter().map(sum), owner.roles.len());
    }
    let mut change = vec![0_i64; owner.times.len() + 1];
    for block in &owner.blocks {
        let size = i64::try_from(block.size).unwrap_or(i64::MAX);
        for (moment, size) in [(block.born, size), (block.dies, -size)] {
            if let Some(slot) = change.get_mut(moment as usize) {
                *slot = slot.saturating_add(size);
            }
        }
    }
    let mut sum = change.first().copied().unwrap_or(0);
    let points = owner.times.iter().zip(change.iter().skip(1)).map(move |(&time, change)| {
        sum = sum.saturating_add(*change);
        (time, sum)
    });
    thinned(points, owner.times.len())
}

/// The bytes of all segments after each change of them, found backwards from the end.
fn reserved(owner: &Owner) -> Vec<(Time, i64)> {
    let size = |size: u64| i64::try_from(size).unwrap_or(i64::MAX);
    let mut sum = owner.segments.iter().map(|segment| size(segment.size)).fold(0, i64::saturating_add);
    let mut points = Vec::new();
    let mut seen = BTreeSet::new();
    for change in owner.segment_changes.iter().rev() {
        if let Some(time) = owner.time_of(change.moment)
            && seen.insert(change.moment)
        {
            points.push((time, sum));
        }
        let bytes = size(change.segment.size);
        sum = sum.saturating_sub(if change.taken { bytes } else { -bytes });
    }
    points.reverse();
    let len = points.len();
    thinned(points.into_iter(), len)
}

/// At most [`MOST_POINTS`] of the points, the highest of each piece.
fn thinned(points: impl Iterator<Item = (Time, i64)>, len: usize) -> Vec<(Time, i64)> {
    let piece = len.div_ceil(MOST_POINTS).max(1);
    let mut kept: Vec<(Time, i64)> = Vec::with_capacity(len.min(MOST_POINTS));
    for (at, point) in points.enumerate() {
        match kept.last_mut() {
            Some(last) if at % piece != 0 => {
                if point.1 > last.1 {
                    *last = point;
                }
            }
            _ => kept.push(point),
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_curves_keep_their_peaks() {
        let points = (0..200_000_i64).map(|at| (Time::from_ns(at), if at == 77_777 { 9 } else { at % 3 }));
        let kept = thinned(points, 200_000);
        assert!(kept.len() <= MOST_POINTS);
        assert!(kept.contains(&(Time::from_ns(77_777), 9)));
    }
}
