//! Interned strings: each distinct text once, in one buffer, identified by a [`StrId`].
//!
//! Profiles repeat a few thousand names millions of times. Comparing ids means comparing integers, and an
//! analysis that needs one name looks it up once.

use std::hash::BuildHasher;

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

use crate::ids::StrId;

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
    /// A table with only the empty string.
    pub fn new() -> Self {
        let mut builder = StringTableBuilder(StringTable::default());
        builder.intern("");
        builder
    }

    /// The id of `text`, new or known.
    ///
    /// A trace can contain at most `u32::MAX` strings; later ones are interned as the empty string.
    pub fn intern(&mut self, text: &str) -> StrId {
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
    fn broken_utf8_is_interned_lossily() {
        let mut b = StringTableBuilder::new();
        let id = b.intern_bytes(b"caf\xe9");
        assert_eq!(b.get(id), "caf\u{fffd}");
    }
}
