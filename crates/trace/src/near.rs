//! Positions of arguments in one byte per event.
//!
//! The events of a track lie one after the other in most files, each a few dozen bytes after the one before it. So the
//! column keeps the distance from event to event, and a full position for every 32 events. A position is the sum of the
//! distances since the last full one: a few nanoseconds, which is little beside decoding the arguments there. Compared with
//! positions of four bytes, nine million events need 25 MB less to be written.

/// Number of events between two full positions.
const GROUP: usize = 32;
/// The distance of an event without arguments.
const NONE: u8 = 0;
/// The distance of an event whose position is in the list of far ones.
const FAR: u8 = u8::MAX;

/// A position that is far from all others.
const NOWHERE: u64 = u64::MAX / 2;

/// A column of positions, filled in order through [`NearChunk`]s.
#[derive(Clone, Debug, Default)]
pub(crate) struct NearColumn {
    steps: Vec<u8>,
    /// For every group, the last position before it.
    anchors: Vec<u64>,
    /// Positions that are no short step away from the one before: (event, position), ascending by event.
    far: Vec<(u32, u64)>,
}

impl NearColumn {
    /// Columns of zeros, to be filled through [`NearColumn::chunks`].
    pub(crate) fn of_zeros(steps: Vec<u8>) -> Self {
        let anchors = vec![0; steps.len().div_ceil(GROUP)];
        NearColumn { steps, anchors, far: Vec::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.steps.len()
    }

    pub(crate) fn get(&self, index: usize) -> Option<u64> {
        if *self.steps.get(index)? == NONE {
            return None;
        }
        let first = index / GROUP * GROUP;
        let mut at = self.anchors[index / GROUP];
        for (event, &step) in (first..=index).zip(&self.steps[first..]) {
            at = if step == FAR { self.far_at(event)? } else { at.wrapping_add(u64::from(step)) };
        }
        Some(at)
    }

    fn far_at(&self, index: usize) -> Option<u64> {
        let found = self.far.binary_search_by_key(&index, |&(event, _)| event as usize).ok()?;
        Some(self.far[found].1)
    }

    /// Pieces of these lengths.
    pub(crate) fn chunks(&mut self, lens: &[usize]) -> Vec<NearChunk<'_>> {
        let (mut steps, mut anchors) = (&mut self.steps[..], &mut self.anchors[..]);
        let mut first = 0;
        let cut = |&len: &usize| {
            let groups = (first + len).div_ceil(GROUP) - first.div_ceil(GROUP);
            let chunk = NearChunk {
                first,
                steps: super::columns::take(&mut steps, len),
                anchors: super::columns::take(&mut anchors, groups),
                at: NOWHERE,
                far: Vec::new(),
            };
            first += len;
            chunk
        };
        lens.iter().map(cut).collect()
    }

    /// Adds the far positions of the pieces, in their order.
    pub(crate) fn add_far(&mut self, far: Vec<(u32, u64)>) {
        self.far.extend(far);
    }

    pub(crate) fn shrink(&mut self) {
        self.steps.shrink_to_fit();
        self.anchors.shrink_to_fit();
        self.far.shrink_to_fit();
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.steps.capacity() + self.anchors.capacity() * 8 + self.far.capacity() * 16
    }
}

/// A piece of the column, to be filled on a separate core.
#[derive(Debug)]
pub(crate) struct NearChunk<'a> {
    first: usize,
    steps: &'a mut [u8],
    anchors: &'a mut [u64],
    /// The last position; at first [`NOWHERE`], because the piece before this one is filled at the same time.
    at: u64,
    far: Vec<(u32, u64)>,
}

impl NearChunk<'_> {
    /// Sets the `index`th event of the piece; to be called in order.
    #[inline(always)]
    pub(crate) fn set(&mut self, index: usize, args: Option<u64>) {
        let event = self.first + index;
        if event.is_multiple_of(GROUP) {
            let group = event / GROUP - self.first.div_ceil(GROUP);
            self.anchors[group] = self.at;
        }
        let Some(to) = args else {
            self.steps[index] = NONE;
            return;
        };
        let step = to.wrapping_sub(self.at);
        self.at = to;
        let near = (u64::from(NONE) + 1..u64::from(FAR)).contains(&step);
        self.steps[index] = if near { step as u8 } else { self.far_step(event, to) };
    }

    #[cold]
    fn far_step(&mut self, event: usize, to: u64) -> u8 {
        self.far.push((u32::try_from(event).unwrap_or(u32::MAX), to));
        FAR
    }

    /// The far positions of the piece.
    pub(crate) fn finish(self) -> Vec<(u32, u64)> {
        self.far
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn positions_come_back_whatever_their_distances_and_pieces(
            steps in prop::collection::vec((0u64..4, 0u64..300), 0..300),
            cuts in prop::collection::btree_set(0usize..300, 0..5),
        ) {
            let mut at = 7;
            let positions: Vec<Option<u64>> = steps
                .iter()
                .map(|&(form, step)| match form {
                    0 => None,
                    1 => { at = at * 3 % 10_007; Some(at) }
                    _ => { at += step; Some(at) }
                })
                .collect();
            let edges: Vec<usize> = cuts.into_iter().filter(|&cut| cut < steps.len()).collect();
            let edges: Vec<usize> = [0].into_iter().chain(edges).chain([steps.len()]).collect();
            let lens: Vec<usize> = edges.windows(2).map(|edge| edge[1] - edge[0]).collect();
            let mut column = NearColumn::of_zeros(vec![0; steps.len()]);
            let mut from = 0;
            let mut far = Vec::new();
            for (mut chunk, len) in column.chunks(&lens).into_iter().zip(&lens) {
                (0..*len).for_each(|index| chunk.set(index, positions[from + index]));
                from += len;
                far.extend(chunk.finish());
            }
            column.add_far(far);
            let found: Vec<Option<u64>> = (0..steps.len()).map(|index| column.get(index)).collect();
            prop_assert_eq!(found, positions);
        }
    }
}
