//! The bytes of a file: mapped if it is large, in memory if it is small, inflated if it is compressed. Or the
//! bytes of all files in a folder that is one profile.

use std::io::{self, Read, Seek};
use std::ops::{Deref, Range};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flate2::read::MultiGzDecoder;

use crate::budget::{Budget, OverBudget};
use crate::codec::{ZSTD_MAGIC, Zstd};
use crate::error::ReadError;
use crate::files;
use crate::folder::{self, TableFile};
use crate::map::{Map, Stamp};

/// Files up to this size are read instead of mapped: it is as fast, and later changes do not matter.
const MAP_FROM: u64 = 4 << 20;

/// A file that is written to while it is read is read again this often.
const ATTEMPTS: usize = 4;

/// Shared bytes, for decoding on demand later.
#[derive(Clone, Debug)]
pub struct Bytes(Arc<Storage>);

#[derive(Debug)]
enum Storage {
    Mapped(Map),
    Held(Vec<u8>),
    /// As held, but of a file that was written to meanwhile.
    Torn(Vec<u8>),
    Static(&'static [u8]),
}

impl Bytes {
    /// Bytes held in memory.
    pub fn held(bytes: Vec<u8>) -> Self {
        Bytes(Arc::new(Storage::Held(bytes)))
    }

    /// Bytes that are part of the binary.
    pub fn fixed(bytes: &'static [u8]) -> Self {
        Bytes(Arc::new(Storage::Static(bytes)))
    }

    /// Heap memory in use.
    pub fn heap_bytes(&self) -> usize {
        match &*self.0 {
            Storage::Held(bytes) | Storage::Torn(bytes) => bytes.capacity(),
            Storage::Mapped(_) | Storage::Static(_) => 0,
        }
    }

    /// Whether the file was written to while it was read, or since then if it is mapped: its parts may not fit each
    /// other.
    pub fn has_changed(&self) -> bool {
        match &*self.0 {
            Storage::Mapped(map) => map.has_changed(),
            Storage::Torn(_) => true,
            Storage::Held(_) | Storage::Static(_) => false,
        }
    }
}

impl Bytes {
    /// Takes the pages of a mapped range out of this process's memory; they stay in the system's cache, and a later read
    /// brings them back. Without it, a process that has read a file counts all of it as its own.
    pub(crate) fn release(&self, range: Range<usize>) {
        if let Storage::Mapped(map) = &*self.0 {
            map.release(range);
        }
    }
}

impl Deref for Bytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &*self.0 {
            Storage::Mapped(map) => map,
            Storage::Held(bytes) | Storage::Torn(bytes) => bytes,
            Storage::Static(bytes) => bytes,
        }
    }
}

/// A file to be read.
#[derive(Clone, Debug)]
pub struct Input {
    path: PathBuf,
    raw: Bytes,
    tables: Vec<TableFile>,
    parts: Vec<Input>,
    budget: Arc<Budget>,
}

/// A stream of inflated bytes, within the file's budget.
pub(crate) struct Inflating<'a> {
    decoder: Decoder<'a>,
    budget: &'a Budget,
    inflated: u64,
}

enum Decoder<'a> {
    /// One or several gzip members.
    Gzip(Box<MultiGzDecoder<&'a [u8]>>),
    /// One or several Zstandard frames.
    Zstd(Zstd<'a>),
}

impl Inflating<'_> {
    /// Number of bytes of the file not yet read.
    pub(crate) fn left(&self) -> usize {
        match &self.decoder {
            Decoder::Gzip(decoder) => decoder.get_ref().len(),
            Decoder::Zstd(decoder) => decoder.left(),
        }
    }
}

impl Read for Inflating<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = match &mut self.decoder {
            Decoder::Gzip(decoder) => decoder.read(out),
            Decoder::Zstd(decoder) => decoder.read(out),
        }?;
        self.inflated += count as u64;
        self.budget.inflated(self.inflated)?;
        Ok(count)
    }
}

impl Input {
    /// Number of inflated bytes that a reader sees to recognise its format.
    pub const HEAD: usize = 64 << 10;

    /// Opens a file, or a folder that is one profile; any file of such a folder stands for the whole.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        match folder::meant_by(path) {
            Some(folder) => Ok(Self::from_tables(&folder, folder::open(&folder)?)),
            None => Ok(Self::from_bytes(path, bytes_of(path)?)),
        }
    }

    /// Bytes that are not from a file; messages refer to them as `path`.
    pub fn from_bytes(path: impl Into<PathBuf>, bytes: Bytes) -> Self {
        let budget = Arc::new(Budget::of(bytes.len() as u64));
        Input { path: path.into(), raw: bytes, tables: Vec::new(), parts: Vec::new(), budget }
    }

    /// Tables that form one profile; messages refer to them as `path`.
    pub fn from_tables(path: impl Into<PathBuf>, tables: Vec<TableFile>) -> Self {
        let raw = tables.first().map_or_else(|| Bytes::fixed(&[]), |table| table.bytes.clone());
        let size = tables.iter().map(|table| table.bytes.len() as u64).sum();
        Input { path: path.into(), raw, tables, parts: Vec::new(), budget: Arc::new(Budget::of(size)) }
    }

    /// Its path, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The bytes as they are on disk; for a folder, those of its first file.
    pub fn raw(&self) -> &Bytes {
        &self.raw
    }

    /// The tables of a folder; empty for a file.
    pub fn tables(&self) -> &[TableFile] {
        &self.tables
    }

    /// The same input with further files that belong to it.
    pub fn with_parts(mut self, parts: Vec<Input>) -> Self {
        self.parts = parts;
        self
    }

    /// Further files of the same recording.
    pub fn parts(&self) -> &[Input] {
        &self.parts
    }

    /// The same input with another budget.
    pub fn with_budget(mut self, budget: Budget) -> Self {
        self.budget = Arc::new(budget);
        self
    }

    /// What it may cost.
    pub(crate) fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    /// The limit that was met while it was read.
    pub(crate) fn over_budget(&self) -> Option<OverBudget> {
        self.budget.met().or_else(|| self.parts.iter().find_map(Input::over_budget))
    }

    /// Whether one of its files was written to while it was read.
    pub fn has_changed(&self) -> bool {
        self.raw.has_changed()
            || self.tables.iter().any(|table| table.bytes.has_changed())
            || self.parts.iter().any(Input::has_changed)
    }

    /// Its size on disk in bytes.
    pub fn size(&self) -> u64 {
        let file = || self.raw.len() as u64;
        let tables = || self.tables.iter().map(|table| table.bytes.len() as u64).sum();
        let own: u64 = if self.tables.is_empty() { file() } else { tables() };
        own + self.parts.iter().map(Input::size).sum::<u64>()
    }

    /// Whether the whole file is compressed.
    pub(crate) fn is_compressed(&self) -> bool {
        self.is_gzip() || self.raw.starts_with(&ZSTD_MAGIC)
    }

    fn is_gzip(&self) -> bool {
        self.raw.starts_with(&[0x1f, 0x8b])
    }

    /// The first [`Input::HEAD`] bytes, inflated; fewer if the file is shorter or its compression is broken.
    pub fn head(&self) -> Vec<u8> {
        let mut head = Vec::new();
        if let Some(inflating) = self.inflating() {
            // On an error, what was inflated before it is enough here.
            let _ = inflating.take(Self::HEAD as u64).read_to_end(&mut head);
        } else {
            head.extend_from_slice(&self.raw[..self.raw.len().min(Self::HEAD)]);
        }
        head
    }

    /// A stream of the inflated bytes; `None` if the file is not compressed.
    pub(crate) fn inflating(&self) -> Option<Inflating<'_>> {
        if !self.is_compressed() {
            return None;
        }
        let decoder = match self.is_gzip() {
            true => Decoder::Gzip(Box::new(MultiGzDecoder::new(&self.raw))),
            false => Decoder::Zstd(Zstd::new(&self.raw)),
        };
        Some(Inflating { decoder, budget: &self.budget, inflated: 0 })
    }

    /// All bytes, inflated. Broken compression yields what came before it, and the error.
    pub fn inflated(&self) -> (Bytes, Option<io::Error>) {
        let Some(mut inflating) = self.inflating() else { return (self.raw.clone(), None) };
        let mut bytes = Vec::new();
        let error = inflating.read_to_end(&mut bytes).err();
        bytes.shrink_to_fit();
        (Bytes::held(bytes), error)
    }
}

/// A file of a store is copied before it is read: not even begun if it is larger than what the user allows.
fn within_budget(path: &Path, bytes: u64) -> Result<(), ReadError> {
    let over = files::is_url(path).then(|| Budget::refuses(bytes)).flatten();
    over.map_or(Ok(()), |over| Err(ReadError::OverBudget { path: path.to_owned(), over }))
}

/// The bytes of a file.
pub(crate) fn bytes_of(path: &Path) -> Result<Bytes, ReadError> {
    let failed = |error| ReadError::Io { path: path.to_owned(), error };
    // Opening a pipe blocks until a process writes to it, so check the kind first.
    let kind = files::data(path).map_err(failed)?;
    if !kind.is_file && !kind.is_folder {
        return Err(ReadError::NotAFile { path: path.to_owned() });
    }
    within_budget(path, kind.bytes)?;
    let read = || {
        let mut file = files::open(path)?;
        let mut before = Stamp::of(&file)?;
        if before.len >= MAP_FROM
            && let Some(map) = Map::of(file.try_clone()?, before)?
        {
            return Ok(Storage::Mapped(map));
        }
        let mut bytes = Vec::new();
        for _ in 0..ATTEMPTS {
            bytes.clear();
            file.rewind()?;
            file.read_to_end(&mut bytes)?;
            let after = Stamp::of(&file)?;
            if before == after {
                return Ok(Storage::Held(bytes));
            }
            before = after;
        }
        Ok(Storage::Torn(bytes))
    };
    let storage = read().map_err(failed)?;
    Ok(Bytes(Arc::new(storage)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};
    use std::io::Write;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn several_gzip_members_are_one_text() {
        let bytes = [gzip(b"one "), gzip(b"two")].concat();
        let input = Input::from_bytes("x", Bytes::held(bytes));
        let (all, error) = input.inflated();
        assert_eq!(&all[..], b"one two");
        assert!(error.is_none());
        assert_eq!(input.head(), b"one two");
    }

    #[test]
    fn zstd_around_a_file_is_taken_off_like_gzip() {
        let text = b"{\"traceEvents\": []}".repeat(1_000);
        let packed = compress_to_vec(&text[..], CompressionLevel::Fastest);
        let input = Input::from_bytes("x", Bytes::held(packed.clone()));
        assert!(input.is_compressed());
        assert_eq!(&input.inflated().0[..], text);
        assert_eq!(input.head(), text);
        let half = Input::from_bytes("x", Bytes::held(packed[..packed.len() / 2].to_vec()));
        assert!(half.inflated().1.is_some());
    }

    #[test]
    fn inflation_ends_at_the_budget_and_what_came_before_is_kept() {
        let text = b"{\"traceEvents\": []}".repeat(10_000);
        let zstd = compress_to_vec(&text[..], CompressionLevel::Fastest);
        for packed in [gzip(&text), zstd] {
            let input = Input::from_bytes("x", Bytes::held(packed)).with_budget(Budget::new(100_000));
            let (bytes, error) = input.inflated();
            assert!(bytes.len() <= 100_000 && text.starts_with(&bytes) && error.is_some());
            assert!(input.over_budget().is_some());
        }
        let input = Input::from_bytes("x", Bytes::held(gzip(&text)));
        assert_eq!(input.inflated().0.len(), text.len());
        assert_eq!(input.over_budget(), None);
    }

    #[test]
    fn released_bytes_are_read_again_from_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("large");
        let content: Vec<u8> = (0..MAP_FROM as usize + 999).map(|i| (i % 251) as u8).collect();
        std::fs::write(&path, &content).unwrap();
        let bytes = bytes_of(&path).unwrap();
        assert!(matches!(&*bytes.0, Storage::Mapped(_)));
        for range in [0..content.len() * 2, 70_000..70_001, 1..content.len() - 1, 5..5] {
            assert_eq!(&bytes[..], content);
            bytes.release(range);
            assert_eq!(&bytes[..], content);
        }
    }

    #[test]
    fn a_truncated_gzip_gives_what_came_before() {
        let text: Vec<u8> =
            (0..200_000u32).flat_map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
        let mut bytes = gzip(&text);
        bytes.truncate(bytes.len() / 2);
        let (all, error) = Input::from_bytes("x", Bytes::held(bytes)).inflated();
        assert!(error.is_some());
        assert!(!all.is_empty() && text.starts_with(&all));
    }
}
