//! Maps the file's metadata ids to internal ids. The ids are normally 1, 2, 3, …, so a vector works; they may
//! also be hashes or damage, so the vector never grows beyond a small multiple of the number of entries.

use rustc_hash::FxHashMap;

/// A map from metadata ids. The last of equal ids wins, as in protobuf.
#[derive(Debug, Default)]
pub(super) struct IdMap {
    dense: Vec<u32>,
    sparse: FxHashMap<u64, u32>,
}

const NONE: u32 = u32::MAX;

impl IdMap {
    pub fn new(entries: &[(u64, u32)]) -> Self {
        let limit = entries.len() as u64 * 4 + 64;
        let largest = entries.iter().map(|&(id, _)| id).filter(|&id| id < limit).max();
        let mut map =
            IdMap { dense: vec![NONE; largest.map_or(0, |id| id as usize + 1)], ..IdMap::default() };
        for &(id, value) in entries {
            match usize::try_from(id).ok().and_then(|id| map.dense.get_mut(id)) {
                Some(slot) => *slot = value,
                None => {
                    map.sparse.insert(id, value);
                }
            }
        }
        map
    }

    #[inline]
    pub fn get(&self, id: u64) -> Option<u32> {
        match usize::try_from(id).ok().and_then(|id| self.dense.get(id)) {
            Some(&value) => (value != NONE).then_some(value),
            None => self.get_sparse(id),
        }
    }

    #[cold]
    fn get_sparse(&self, id: u64) -> Option<u32> {
        self.sparse.get(&id).copied()
    }

    pub fn heap_bytes(&self) -> usize {
        self.dense.capacity() * 4 + self.sparse.capacity() * 17
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absurd_ids_are_found_without_allocating_by_id() {
        let map = IdMap::new(&[(1, 10), (3, 30), (u64::MAX, 99), (1 << 40, 40), (3, 33)]);
        assert_eq!([1, 3, u64::MAX, 1 << 40].map(|id| map.get(id)), [Some(10), Some(33), Some(99), Some(40)]);
        assert_eq!([0, 2, 4, 1 << 41].map(|id| map.get(id)), [None; 4]);
        assert!(map.heap_bytes() < 1_000);
    }
}
