//! Pieces of a track that can be walked in parallel: it is split where nothing is open, so that a walk with a
//! stack starts each piece with an empty one.
//!
//! A long profile of a loop has nearly all its events on one thread, which would keep one core busy while the
//! others idle.

use std::ops::Range;

use stepscope_trace::{Block, Time, Track};

/// Smaller tracks are not worth splitting.
const WORTH_CUTTING: usize = 1 << 18;

/// About `wanted` pieces that cover the track in order. No event of one piece reaches into the next.
pub(crate) fn chunks(track: &Track, wanted: usize) -> Vec<Range<usize>> {
    let len = track.len();
    if len < WORTH_CUTTING || wanted < 2 {
        return std::iter::once(0..len).collect();
    }
    // At the edges of blocks: what a block knows as a whole need not be looked up event by event.
    let edge = |piece: usize| (len * piece / wanted).next_multiple_of(Block::EVENTS).min(len);
    let edges: Vec<usize> = (0..=wanted).map(edge).collect();
    let parts: Vec<Range<usize>> = edges.windows(2).map(|edge| edge[0]..edge[1]).collect();
    let mut cuts = vec![0];
    let mut open_until = Time::MIN;
    for part in parts {
        let end = track.latest_end(part.clone());
        if part.start > 0 {
            cuts.extend(track.first_quiet(part, open_until));
        }
        open_until = open_until.max(end);
    }
    cuts.push(len);
    cuts.windows(2).map(|cut| cut[0]..cut[1]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepscope_trace::{Dur, Kind, ProcessKind, TraceBuilder, TrackKind};

    #[test]
    fn nothing_reaches_from_one_piece_into_the_next() {
        let mut builder = TraceBuilder::new();
        let name = builder.strings.intern("e");
        let kind = builder.kind(Kind::slice(name));
        let process = builder.process(name, ProcessKind::Host, 0);
        let track = builder.track(process, name, TrackKind::Thread, 0, TraceBuilder::ARENA);
        for step in 0..3_000_i64 {
            let start = step * 1_000;
            builder.event(track, Time::from_ps(start), Dur::from_ps(999), kind, None);
            for child in 0..99 {
                builder.event(track, Time::from_ps(start + child * 10), Dur::from_ps(9), kind, None);
            }
        }
        let trace = builder.finish();
        let track = &trace.tracks()[0];
        let pieces = chunks(track, 4);
        assert_eq!(pieces.len(), 4);
        assert_eq!((pieces[0].start, pieces[3].end), (0, 300_000));
        for pair in pieces.windows(2) {
            assert_eq!(pair[0].end, pair[1].start);
            let latest = pair[0].clone().map(|index| track.end(index)).max().unwrap();
            assert!(latest <= track.start(pair[1].start));
        }
    }
}
