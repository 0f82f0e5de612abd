//! Interned strings: each distinct text once, in one buffer, identified by a [`StrId`].
//!
//! Profiles repeat a few thousand names millions of times. Comparing ids means comparing integers, and an
//! analysis that needs one name looks it up once.

use std::borrow::Cow;
use std::hash::BuildHasher;

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

use crate::ids::StrId;

/// Longer names are cut, in bytes. Instructions of compiled programs, with all their operands, reach half of it.
const LONGEST: usize = 64 << 10;
/// Once a trace has this much text, in bytes, all names above [`SHORT`] are cut.
const MUCH: usize = 32 << 20;
const SHORT: usize = 1 << 10;

/// A name of at most about `most` bytes. A cut one ends with a mark made of all of it.
fn shortened(name: &str, most: usize) -> Cow<'_, str> {
    if name.len() <= most {
        return Cow::Borrowed(name);
    }
    let start = name.get(..name.floor_char_boundary(most)).unwrap_or_default();
    Cow::Owned(format!("{start}… ({} bytes, {:016x})", name.len(), FxBuildHasher.hash_one(name)))
}

/// All strings of a trace. Id 0 is always the empty string.
#[derive(Debug, Default)]
pub struct StringTable {
    text: String,
    /// The end of each string in `text`; it starts where the previous one ends.
    ends: Vec<usize>,
    lookup: HashTable<u32>,
}

/// A growing string table.
#[derive(Debug)]
pub struct StringTableBuilder(StringTable);

impl StringTable {
    /// The text of `id`; empty if the id is not from this table.
    pub fn get(&self, id: StrId) -> &str {
        let Some(&end) = self.ends.get(id.index()) else { return "" };
        let start = if id.0 == 0 { 0 } else { self.ends[id.index() - 1] };
        &self.text[start..end]
    }

    /// The id of `text`, if the trace contains it.
    pub fn find(&self, text: &str) -> Option<StrId> {
        let hash = FxBuildHasher.hash_one(text);
        self.lookup.find(hash, |&id| self.get(StrId(id)) == text).map(|&id| StrId(id))
    }

    /// Number of distinct strings.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Never true: the empty string always exists.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Heap memory in bytes.
    pub fn heap_bytes(&self) -> usize {
        self.text.capacity() + self.ends.capacity() * size_of::<usize>() + self.lookup.capacity() * 5
    }
}

impl StringTableBuilder {
    /// Continues a finished table; all ids stay.
    pub(crate) fn of(table: StringTable) -> Self {
        StringTableBuilder(table)
    }

    /// A table with only the empty string.
    pub fn new() -> Self {
        let mut builder = StringTableBuilder(StringTable::default());
        builder.intern("");
        builder
    }

    /// The id of a name, new or known. Everything that looks at names costs what they are long, so that a name of megabytes
    /// is cut, and all long ones once there is too much text. What is cut ends with a mark of its own, so that two names
    /// stay two.
    pub fn intern(&mut self, name: &str) -> StrId {
        if name.len() <= SHORT {
            return self.intern_value(name);
        }
        let cut = shortened(name, LONGEST);
        let is_new = self.0.find(&cut).is_none();
        if is_new && self.0.text.len() > MUCH {
            return self.intern_value(&shortened(name, SHORT));
        }
        self.intern_value(&cut)
    }

    /// The id of a text of any length, new or known: the value of an argument.
    ///
    /// A trace can contain at most `u32::MAX` strings; later ones are interned as the empty string.
    pub fn intern_value(&mut self, text: &str) -> StrId {
        let hash = FxBuildHasher.hash_one(text);
        if let Some(&id) = self.0.lookup.find(hash, |&id| self.0.get(StrId(id)) == text) {
            return StrId(id);
        }
        let Ok(id) = u32::try_from(self.0.ends.len()) else { return StrId(0) };
        self.0.text.push_str(text);
        self.0.ends.push(self.0.text.len());
        let StringTable { text: all, ends, lookup } = &mut self.0;
        lookup.insert_unique(hash, id, |&id| {
            let start = if id == 0 { 0 } else { ends[id as usize - 1] };
            FxBuildHasher.hash_one(&all[start..ends[id as usize]])
        });
        StrId(id)
    }

    /// Interns bytes that should be UTF-8; invalid parts are replaced by U+FFFD.
    pub fn intern_bytes(&mut self, bytes: &[u8]) -> StrId {
        match std::str::from_utf8(bytes) {
            Ok(text) => self.intern(text),
            Err(_) => self.intern(&String::from_utf8_lossy(bytes)),
        }
    }

    /// The text of `id`.
    pub fn get(&self, id: StrId) -> &str {
        self.0.get(id)
    }

    /// The finished table.
    pub fn finish(mut self) -> StringTable {
        self.0.text.shrink_to_fit();
        self.0.ends.shrink_to_fit();
        self.0
    }
}

impl Default for StringTableBuilder {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_share_an_id_and_survive_growth() {
        let mut b = StringTableBuilder::new();
        let ids: Vec<_> = (0..1000).map(|i| b.intern(&format!("op{i}"))).collect();
        assert_eq!(b.intern("op7"), ids[7]);
        let table = b.finish();
        assert_eq!(table.len(), 1001);
        for (i, id) in ids.iter().enumerate() {
            assert_eq!(table.get(*id), format!("op{i}"));
            assert_eq!(table.find(&format!("op{i}")), Some(*id));
        }
        assert_eq!(table.find("nowhere"), None);
        assert_eq!(table.get(StrId(0)), "");
        assert_eq!(table.get(StrId(u32::MAX)), "");
    }

    #[test]
    fn long_names_are_cut_and_stay_apart() {
        let mut b = StringTableBuilder::new();
        let name = |i: usize, length: usize| format!("{}{i}", "é".repeat(length / 2));
        let ids: Vec<_> = (0..3).map(|i| b.intern(&name(i, 10 << 20))).collect();
        assert!(ids[0] != ids[1] && ids[1] != ids[2] && b.intern(&name(1, 10 << 20)) == ids[1]);
        assert!(ids.iter().all(|id| b.get(*id).len() < LONGEST + 64 && b.get(*id).starts_with('é')));
        let whole = name(7, 2 * LONGEST);
        let value = b.intern_value(&whole);
        assert_eq!(b.get(value), whole, "values are kept");
        let half = LONGEST / 2;
        let first = b.intern(&name(0, half));
        assert_eq!(b.get(first).len(), half + 1, "long, but not too long");
        for i in 1..2_000 {
            let _ = b.intern(&name(i, half));
        }
        assert!(b.0.text.len() < MUCH + (4 << 20), "{}", b.0.text.len());
        assert_eq!((b.intern(&name(0, half)), b.0.len()), (first, 2_005), "each once");
    }

    #[test]
    fn broken_utf8_is_interned_lossily() {
        let mut b = StringTableBuilder::new();
        let id = b.intern_bytes(b"caf\xe9");
        assert_eq!(b.get(id), "caf\u{fffd}");
    }
}
