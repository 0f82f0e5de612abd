//! How results are written to files where the derived form would not do: hash maps in the order of their keys, so that
//! equal results have equal bytes, and arrays whose length may grow with a new version.

/// A hash map as a list of pairs, sorted by key.
pub(crate) mod sorted {
    use std::hash::Hash;

    use hashbrown::HashMap;
    use rustc_hash::FxBuildHasher;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<K, V, S>(map: &HashMap<K, V, FxBuildHasher>, to: S) -> Result<S::Ok, S::Error>
    where
        K: Ord + Serialize,
        V: Serialize,
        S: Serializer,
    {
        let mut pairs: Vec<(&K, &V)> = map.iter().collect();
        pairs.sort_by(|a, b| a.0.cmp(b.0));
        to.collect_seq(pairs)
    }

    pub(crate) fn deserialize<'de, K, V, D>(from: D) -> Result<HashMap<K, V, FxBuildHasher>, D::Error>
    where
        K: Eq + Hash + Deserialize<'de>,
        V: Deserialize<'de>,
        D: Deserializer<'de>,
    {
        Ok(Vec::<(K, V)>::deserialize(from)?.into_iter().collect())
    }
}

/// An array as a list: a shorter list leaves the rest as it is by default, a longer one loses what is not known.
pub(crate) mod array {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<T: Serialize, S: Serializer, const N: usize>(
        array: &[T; N],
        to: S,
    ) -> Result<S::Ok, S::Error> {
        to.collect_seq(array)
    }

    pub(crate) fn deserialize<'de, T, D, const N: usize>(from: D) -> Result<[T; N], D::Error>
    where
        T: Copy + Default + Deserialize<'de>,
        D: Deserializer<'de>,
    {
        let mut array = [T::default(); N];
        array.iter_mut().zip(Vec::<T>::deserialize(from)?).for_each(|(place, value)| *place = value);
        Ok(array)
    }
}

/// Where [`mixed`] begins.
pub(crate) const FNV_START: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a. Ranks that were analysed on different machines, by different builds, must agree on what they exchanged; a
/// hasher for tables in memory promises that for one build only.
pub(crate) fn mixed(start: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(start, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Keeps at most `most` elements in runs of neighbours that lie evenly apart, so that what recurs every few elements is
/// still seen to do so.
pub(crate) fn thin<T>(all: &mut Vec<T>, most: usize) {
    const RUNS: usize = 8;
    let count = all.len();
    if count <= most || most < RUNS {
        all.truncate(most);
        return;
    }
    let (run, apart) = (most / RUNS, count / RUNS);
    let mut at = 0;
    all.retain(|_| {
        let kept = at % apart < run && at / apart < RUNS;
        at += 1;
        kept
    });
}

/// Keys with their values.
type Pairs<K, V> = Vec<(K, V)>;

/// The `most` largest pairs by a weight and then by their key; the rest are returned.
pub(crate) fn keep_largest<K: Ord, V, W: Ord>(
    pairs: impl Iterator<Item = (K, V)>,
    most: usize,
    weight: impl Fn(&V) -> W,
) -> (Pairs<K, V>, Pairs<K, V>) {
    let mut all: Pairs<K, V> = pairs.collect();
    all.sort_by(|a, b| weight(&b.1).cmp(&weight(&a.1)).then_with(|| a.0.cmp(&b.0)));
    let rest = all.split_off(most.min(all.len()));
    (all, rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_neighbours_from_everywhere() {
        let mut few: Vec<u32> = (0..10).collect();
        thin(&mut few, 16);
        assert_eq!(few.len(), 10);
        let mut many: Vec<u32> = (0..1_600).collect();
        thin(&mut many, 16);
        assert_eq!(many.len(), 16);
        assert_eq!(many[..4], [0, 1, 200, 201]);
    }

    #[test]
    fn the_largest_stay_and_ties_go_by_name() {
        let pairs = [("c", 1), ("a", 1), ("b", 5)];
        let (kept, rest) = keep_largest(pairs.into_iter(), 2, |value| *value);
        assert_eq!((kept, rest), (vec![("b", 5), ("a", 1)], vec![("c", 1)]));
    }
}
