//! Free memory inside segments: how much, in which pieces, and which lines keep segments from being given back.

use std::collections::BTreeMap;

use stepscope_trace::memory::{Block, Owner, Segment};

use super::super::{FreeMemory, Pin};

/// A segment with a smaller share of live bytes is pinned by them.
const PINNED: f64 = 0.25;
/// Rows of the result.
const MOST_PINS: usize = 16;

/// The segments at a moment, found backwards from the end.
pub(super) fn segments_at(owner: &Owner, moment: u32) -> Vec<Segment> {
    let mut segments: BTreeMap<u64, Segment> =
        owner.segments.iter().map(|segment| (segment.address, *segment)).collect();
    for change in owner.segment_changes.iter().rev().take_while(|change| change.moment > moment) {
        let segment = change.segment;
        match (change.taken, segment.expandable) {
            (true, true) => cut(&mut segments, &segment),
            (true, false) => drop(segments.remove(&segment.address)),
            (false, _) => drop(segments.insert(segment.address, segment)),
        }
    }
    segments.into_values().collect()
}

/// Takes a part out of the segment that grew by it.
fn cut(segments: &mut BTreeMap<u64, Segment>, part: &Segment) {
    let Some((_, whole)) = segments.range(..=part.address).next_back() else { return };
    let (whole, end) = (*whole, part.address.saturating_add(part.size));
    let whole_end = whole.address.saturating_add(whole.size);
    if part.address >= whole_end {
        return;
    }
    segments.remove(&whole.address);
    let before = Segment { size: part.address - whole.address, ..whole };
    let behind = Segment { address: end, size: whole_end.saturating_sub(end), ..whole };
    for rest in [before, behind].into_iter().filter(|rest| rest.size > 0) {
        segments.insert(rest.address, rest);
    }
}

/// The bytes of segments at a moment; `None` if the file has no segments.
pub(super) fn reserved_at(owner: &Owner, moment: u32) -> Option<u64> {
    let known = !owner.segments.is_empty() || !owner.segment_changes.is_empty();
    known.then(|| segments_at(owner, moment).iter().map(|segment| segment.size).sum())
}

/// The free memory at a moment; `None` if the file has no segments.
pub(super) fn free_at(owner: &Owner, moment: u32, line: impl Fn(&Block) -> String) -> Option<FreeMemory> {
    let segments = segments_at(owner, moment);
    if segments.is_empty() {
        return None;
    }
    let mut live: Vec<&Block> = owner.blocks.iter().filter(|block| block.is_live_at(moment)).collect();
    live.sort_by_key(|block| block.address);
    let mut free = FreeMemory::default();
    let mut pins: BTreeMap<String, Pin> = BTreeMap::new();
    for segment in &segments {
        let end = segment.address.saturating_add(segment.size);
        let first = live.partition_point(|block| block.address < segment.address);
        let last = live.partition_point(|block| block.address < end);
        let inside = live.get(first..last).unwrap_or_default();
        let bytes = inside.iter().map(|block| block.size).sum::<u64>().min(segment.size);
        let rest = segment.size - bytes;
        if inside.is_empty() {
            free.releasable += rest;
            continue;
        }
        if segment.private {
            free.private += rest;
            continue;
        }
        free.bytes += rest;
        free.largest = free.largest.max(largest_gap(segment, inside));
        if rest > 0 && (bytes as f64) < PINNED * segment.size as f64 {
            pin(&mut pins, inside, rest, &line);
        }
    }
    free.pins = pins.into_values().collect();
    free.pins.sort_by(|a, b| b.free_bytes.cmp(&a.free_bytes).then_with(|| a.line.cmp(&b.line)));
    free.pins.truncate(MOST_PINS);
    Some(free)
}

fn largest_gap(segment: &Segment, inside: &[&Block]) -> u64 {
    let end = segment.address.saturating_add(segment.size);
    let mut at = segment.address;
    let mut largest = 0;
    for block in inside {
        largest = largest.max(block.address.saturating_sub(at));
        at = at.max(block.address.saturating_add(block.size));
    }
    largest.max(end.saturating_sub(at))
}

/// The free bytes of a segment count for the line that holds most of the rest.
fn pin(
    pins: &mut BTreeMap<String, Pin>,
    inside: &[&Block],
    free_bytes: u64,
    line: &impl Fn(&Block) -> String,
) {
    let mut by_line: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for block in inside {
        let sums = by_line.entry(line(block)).or_default();
        sums.0 += block.size;
        sums.1 += 1;
    }
    let Some((line, (bytes, blocks))) = by_line.into_iter().max_by_key(|(_, sums)| sums.0) else { return };
    let pin = pins.entry(line.clone()).or_insert_with(|| Pin { line, ..Pin::default() });
    pin.free_bytes += free_bytes;
    pin.bytes += bytes;
    pin.blocks += blocks;
    pin.segments += 1;
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepscope_trace::memory::{BEFORE, NEVER, SegmentChange, StackId};

    fn segment(address: u64, size: u64) -> Segment {
        Segment { address, size, private: false, expandable: false }
    }

    #[test]
    fn free_memory_is_what_blocks_leave_of_segments_that_cannot_be_given_back() {
        let block = |address, size| Block {
            address,
            size,
            requested: size,
            born: BEFORE,
            dies: NEVER,
            stack: StackId(1),
            count: 1,
            role: None,
            pending: false,
        };
        let owner = Owner {
            blocks: vec![block(140, 10), block(300, 90)],
            segments: vec![segment(100, 100), segment(300, 100), segment(500, 100)],
            ..Owner::default()
        };
        let free = free_at(&owner, 0, |_| "cache".to_owned()).unwrap();
        assert_eq!((free.bytes, free.largest, free.releasable), (100, 50, 100));
        let [pin] = &free.pins[..] else { panic!("one pins") };
        assert_eq!((pin.line.as_str(), pin.free_bytes, pin.bytes, pin.segments), ("cache", 90, 10, 1));
    }

    #[test]
    fn segments_are_found_backwards() {
        let grown = Segment { expandable: true, ..segment(100, 100) };
        let change = |moment, segment, taken| SegmentChange { moment, segment, taken };
        let owner = Owner {
            changes: 3,
            segments: vec![grown],
            segment_changes: vec![
                change(1, segment(900, 50), false),
                change(2, Segment { size: 40, ..grown }, true),
                change(3, Segment { address: 140, size: 60, ..grown }, true),
            ],
            ..Owner::default()
        };
        let bytes: Vec<u64> = (0..=3).filter_map(|moment| reserved_at(&owner, moment)).collect();
        assert_eq!(bytes, [50, 0, 40, 100]);
    }
}
