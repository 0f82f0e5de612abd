//! Durations in four bytes per event.
//!
//! Nearly all events of a profile are shorter than two milliseconds, which fits 31 bits of picoseconds. The few
//! longer ones are in a side table, and the column contains their index with the top bit set. This saves four
//! bytes per event: 36 MB for nine million.

use crate::time::Dur;

const LONG: u32 = 1 << 31;

/// A column of durations; none is negative.
#[derive(Debug, Default, Clone)]
pub(crate) struct DurationColumn {
    packed: Vec<u32>,
    long: Vec<i64>,
}

impl DurationColumn {
    pub(crate) fn with_capacity(events: usize) -> Self {
        DurationColumn { packed: Vec::with_capacity(events), long: Vec::new() }
    }

    /// Durations that are set one by one later.
    pub(crate) fn of_packed(packed: Vec<u32>) -> Self {
        DurationColumn { packed, long: Vec::new() }
    }

    /// The column's value for a duration that fits.
    #[inline]
    pub(crate) fn pack_short(dur: Dur) -> Option<u32> {
        u32::try_from(dur.ps().max(0)).ok().filter(|&short| short < LONG)
    }

    #[inline]
    pub(crate) fn push(&mut self, dur: Dur) {
        let packed = self.pack(dur);
        self.packed.push(packed);
    }

    pub(crate) fn set(&mut self, index: usize, dur: Dur) {
        self.packed[index] = self.pack(dur);
    }

    /// For filling in place; only values from [`DurationColumn::pack_short`].
    pub(crate) fn packed_mut(&mut self) -> &mut [u32] {
        &mut self.packed
    }

    #[inline]
    fn pack(&mut self, dur: Dur) -> u32 {
        Self::pack_short(dur).unwrap_or_else(|| {
            let number = u32::try_from(self.long.len()).unwrap_or(u32::MAX).min(LONG - 1);
            self.long.push(dur.ps());
            LONG | number
        })
    }

    #[inline]
    pub(crate) fn get(&self, index: usize) -> Dur {
        let packed = self.packed[index];
        if packed < LONG {
            Dur::from_ps(i64::from(packed))
        } else {
            Dur::from_ps(self.long[(packed & !LONG) as usize])
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.packed.len()
    }

    pub(crate) fn append(&mut self, other: &DurationColumn) {
        if other.long.is_empty() {
            self.packed.extend_from_slice(&other.packed);
        } else {
            self.packed.reserve(other.len());
            (0..other.len()).for_each(|i| self.push(other.get(i)));
        }
    }

    /// The same durations in the given order.
    pub(crate) fn permuted(&self, order: &[u32]) -> Self {
        let mut out = DurationColumn::with_capacity(order.len());
        order.iter().for_each(|&i| out.push(self.get(i as usize)));
        out
    }

    pub(crate) fn shrink(&mut self) {
        self.packed.shrink_to_fit();
        self.long.shrink_to_fit();
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.packed.capacity() * 4 + self.long.capacity() * 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_long_durations_come_back_exactly() {
        let all = [0, 1, (1 << 31) - 1, 1 << 31, 1 << 40, i64::MAX];
        let mut a = DurationColumn::default();
        all.iter().for_each(|&ps| a.push(Dur::from_ps(ps)));
        let mut b = a.clone();
        b.append(&a);
        for (i, &ps) in all.iter().chain(&all).enumerate() {
            assert_eq!(b.get(i), Dur::from_ps(ps));
        }
        let c = a.permuted(&[5, 0]);
        assert_eq!((c.get(0).ps(), c.get(1).ps()), (i64::MAX, 0));
    }
}
