//! The events of a host by kind. Grouping by name then needs no sorting, and a join by name no scan.

use rayon::prelude::*;
use stepscope_trace::{KindId, Trace, Track};

/// For each kind, its events track by track, in the order of time: four bytes per event.
#[derive(Debug)]
pub(crate) struct Postings {
    /// Ordered by kind, then track.
    runs: Vec<Run>,
    /// Places on their tracks.
    events: Vec<u32>,
}

/// All events of one kind on one track.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Run {
    pub(crate) kind: KindId,
    /// Number of the track within its trace.
    pub(crate) track: u32,
    /// Where they begin in [`Postings::event`], and how many they are.
    pub(crate) first: usize,
    pub(crate) len: usize,
}

impl Postings {
    /// Two passes over each track, on all cores: count, then place.
    pub(crate) fn of(trace: &Trace) -> Self {
        let tracks: Vec<(u32, &Track)> = (0..).zip(trace.tracks()).collect();
        let counted = tracks.par_iter().flat_map_iter(|&(number, track)| counts(trace, number, track));
        let mut runs: Vec<Run> = counted.collect();
        runs.par_sort_unstable_by_key(|run| (run.kind, run.track));
        let mut first = 0;
        for run in &mut runs {
            run.first = first;
            first += run.len;
        }
        let mut events = vec![0; first];
        // Each track gets the pieces that its events go to.
        let mut pieces: Vec<Vec<(KindId, &mut [u32])>> = tracks.iter().map(|_| Vec::new()).collect();
        let mut rest = &mut events[..];
        for run in &runs {
            let (piece, left) = rest.split_at_mut(run.len);
            rest = left;
            if let Some(pieces) = pieces.get_mut(run.track as usize) {
                pieces.push((run.kind, piece));
            }
        }
        tracks.par_iter().zip(pieces).for_each(|(&(_, track), pieces)| place(trace, track, pieces));
        Postings { runs, events }
    }

    /// The runs of a kind.
    pub(crate) fn runs(&self, kind: KindId) -> &[Run] {
        let from = self.runs.partition_point(|run| run.kind < kind);
        let to = self.runs.partition_point(|run| run.kind <= kind);
        self.runs.get(from..to).unwrap_or_default()
    }

    /// The place of an event on its track.
    #[inline]
    pub(crate) fn event(&self, at: usize) -> Option<u32> {
        self.events.get(at).copied()
    }
}

/// How many events of each kind a track has. A track with fewer events than there are kinds costs what its events do.
fn counts(trace: &Trace, number: u32, track: &Track) -> Vec<Run> {
    let run = |kind, len| Run { kind, track: number, first: 0, len };
    if track.len() < trace.kinds().len() {
        let mut kinds = track.kinds().to_vec();
        kinds.sort_unstable();
        return kinds.chunk_by(|a, b| a == b).map(|same| run(same[0], same.len())).collect();
    }
    let mut counts = vec![0_usize; trace.kinds().len()];
    for kind in track.kinds() {
        if let Some(count) = counts.get_mut(kind.index()) {
            *count += 1;
        }
    }
    let found = counts.into_iter().enumerate().filter(|&(_, len)| len > 0);
    found.map(|(kind, len)| run(KindId::from_index(kind), len)).collect()
}

/// Writes the places of a track's events into the piece of their kind. The pieces are ordered by kind.
fn place(trace: &Trace, track: &Track, pieces: Vec<(KindId, &mut [u32])>) {
    let (kinds, mut pieces): (Vec<KindId>, Vec<std::slice::IterMut<'_, u32>>) =
        pieces.into_iter().map(|(kind, piece)| (kind, piece.iter_mut())).unzip();
    let mut table = Vec::new();
    if track.len() >= trace.kinds().len() {
        table.resize(trace.kinds().len(), usize::MAX);
        (0..).zip(&kinds).for_each(|(piece, kind)| table[kind.index()] = piece);
    }
    for (index, kind) in (0_u32..).zip(track.kinds()) {
        let piece = match table.get(kind.index()) {
            Some(&piece) => piece,
            None => kinds.partition_point(|known| known < kind),
        };
        if let Some(slot) = pieces.get_mut(piece).and_then(Iterator::next) {
            *slot = index;
        }
    }
}
