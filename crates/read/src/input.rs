//! The bytes of a file: mapped if it is large, in memory if it is small, inflated if it is compressed. Or the
//! bytes of all files in a folder that is one profile.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flate2::read::MultiGzDecoder;
use memmap2::Mmap;

use crate::codec::{ZSTD_MAGIC, Zstd};
use crate::error::ReadError;
use crate::folder::{self, TableFile};

/// Files up to this size are read instead of mapped: it is as fast, and safe if the file shrinks.
const MAP_FROM: u64 = 4 << 20;

/// Maximum inflation per compressed byte: the limit of gzip, which no profile comes near.
const INFLATION: u64 = 1_024;

/// Shared bytes, for decoding on demand later.
#[derive(Clone, Debug)]
pub struct Bytes(Arc<Storage>);

#[derive(Debug)]
enum Storage {
    Mapped(Mmap),
    Held(Vec<u8>),
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
            Storage::Held(bytes) => bytes.capacity(),
            Storage::Mapped(_) | Storage::Static(_) => 0,
        }
    }
}

impl Deref for Bytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &*self.0 {
            Storage::Mapped(map) => map,
            Storage::Held(bytes) => bytes,
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
}

/// A stream of inflated bytes.
pub(crate) enum Inflating<'a> {
    /// One or several gzip members.
    Gzip(Box<MultiGzDecoder<&'a [u8]>>),
    /// One or several Zstandard frames.
    Zstd(Zstd<'a>),
}

impl Inflating<'_> {
    /// Number of bytes of the file not yet read.
    pub(crate) fn left(&self) -> usize {
        match self {
            Inflating::Gzip(decoder) => decoder.get_ref().len(),
            Inflating::Zstd(decoder) => decoder.left(),
        }
    }
}

impl Read for Inflating<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            Inflating::Gzip(decoder) => decoder.read(out),
            Inflating::Zstd(decoder) => decoder.read(out),
        }
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
        Input { path: path.into(), raw: bytes, tables: Vec::new(), parts: Vec::new() }
    }

    /// Tables that form one profile; messages refer to them as `path`.
    pub fn from_tables(path: impl Into<PathBuf>, tables: Vec<TableFile>) -> Self {
        let raw = tables.first().map_or_else(|| Bytes::fixed(&[]), |table| table.bytes.clone());
        Input { path: path.into(), raw, tables, parts: Vec::new() }
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

    /// Its size on disk in bytes.
    pub fn size(&self) -> u64 {
        let file = || self.raw.len() as u64;
        let tables = || self.tables.iter().map(|table| table.bytes.len() as u64).sum();
        let own: u64 = if self.tables.is_empty() { file() } else { tables() };
        own + self.parts.iter().map(Input::size).sum::<u64>()
    }

    /// Whether the whole file is compressed.
    pub fn is_compressed(&self) -> bool {
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
        let most = (self.raw.len() as u64).saturating_mul(INFLATION);
        self.is_compressed().then(|| match self.is_gzip() {
            true => Inflating::Gzip(Box::new(MultiGzDecoder::new(&self.raw))),
            false => Inflating::Zstd(Zstd::new(&self.raw, most)),
        })
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

/// The bytes of a file.
pub(crate) fn bytes_of(path: &Path) -> Result<Bytes, ReadError> {
    let failed = |error| ReadError::Io { path: path.to_owned(), error };
    // To open a pipe waits for whoever writes to it, so its kind is asked first.
    let kind = std::fs::metadata(path).map_err(failed)?;
    if !kind.is_file() && !kind.is_dir() {
        return Err(ReadError::NotAFile { path: path.to_owned() });
    }
    let mut file = File::open(path).map_err(failed)?;
    let len = file.metadata().map_err(failed)?.len();
    if len >= MAP_FROM {
        return map(&file).map_err(failed);
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(failed)?;
    Ok(Bytes::held(bytes))
}

#[expect(
    unsafe_code,
    reason = "mapping a file needs it; nothing here writes to the file or keeps references beyond the map"
)]
fn map(file: &File) -> io::Result<Bytes> {
    // SAFETY: the map is read-only and private to this process. If another process truncates the file while it
    // is mapped, a read past the new end terminates the program; no memory of this process is ever
    // reinterpreted.
    let map = unsafe { Mmap::map(file)? };
    Ok(Bytes(Arc::new(Storage::Mapped(map))))
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
