//! A file's bytes: mapped where it is large, held in memory where it is small, inflated where it is gzip.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flate2::read::MultiGzDecoder;
use memmap2::Mmap;

use crate::error::ReadError;

/// Files up to this size are read rather than mapped: it is as fast, and safe if the file shrinks meanwhile.
const MAP_FROM: u64 = 4 << 20;

/// Bytes that can be shared with whoever decodes from them later.
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

    /// Bytes that are part of the program.
    pub fn fixed(bytes: &'static [u8]) -> Self {
        Bytes(Arc::new(Storage::Static(bytes)))
    }

    /// How much of the heap they take.
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
}

impl Input {
    /// How many inflated bytes a reader sees to recognise its format.
    pub const HEAD: usize = 64 << 10;

    /// Opens a file.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let failed = |error| ReadError::Io { path: path.to_owned(), error };
        let mut file = File::open(path).map_err(failed)?;
        let len = file.metadata().map_err(failed)?.len();
        let raw = if len >= MAP_FROM {
            map(&file).map_err(failed)?
        } else {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).map_err(failed)?;
            Bytes::held(bytes)
        };
        Ok(Input { path: path.to_owned(), raw })
    }

    /// Bytes that are not in a file; `path` is what messages call them.
    pub fn from_bytes(path: impl Into<PathBuf>, bytes: Bytes) -> Self {
        Input { path: path.into(), raw: bytes }
    }

    /// Where it lies, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The bytes as they are on disk.
    pub fn raw(&self) -> &Bytes {
        &self.raw
    }

    /// Is it compressed with gzip?
    pub fn is_gzip(&self) -> bool {
        self.raw.starts_with(&[0x1f, 0x8b])
    }

    /// The first [`Input::HEAD`] bytes, inflated; fewer where the file is shorter or its compression broken.
    pub fn head(&self) -> Vec<u8> {
        let mut head = Vec::new();
        if self.is_gzip() {
            // An error leaves what was inflated before it, which is all that is wanted here.
            let _ = self.inflating().take(Self::HEAD as u64).read_to_end(&mut head);
        } else {
            head.extend_from_slice(&self.raw[..self.raw.len().min(Self::HEAD)]);
        }
        head
    }

    /// A stream of the inflated bytes of a gzip file, also of several members.
    pub fn inflating(&self) -> MultiGzDecoder<&[u8]> {
        MultiGzDecoder::new(&self.raw)
    }

    /// All bytes, inflated. Broken compression gives what came before it, and the error.
    pub fn inflated(&self) -> (Bytes, Option<io::Error>) {
        if !self.is_gzip() {
            return (self.raw.clone(), None);
        }
        let mut bytes = Vec::new();
        let error = self.inflating().read_to_end(&mut bytes).err();
        bytes.shrink_to_fit();
        (Bytes::held(bytes), error)
    }
}

#[expect(
    unsafe_code,
    reason = "mapping a file needs it; nothing here writes to the file or keeps references beyond the map"
)]
fn map(file: &File) -> io::Result<Bytes> {
    // SAFETY: the map is read-only and private to this process. If another process truncates the file while it
    // is mapped, a read past the new end ends the program; no memory of ours is ever reinterpreted.
    let map = unsafe { Mmap::map(file)? };
    Ok(Bytes(Arc::new(Storage::Mapped(map))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};
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
