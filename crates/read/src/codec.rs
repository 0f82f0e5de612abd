//! Compression inside formats or around files, in pure Rust and always bounded: the output never exceeds the
//! caller's limit, whatever the bytes claim.

use std::cell::Cell;
use std::io::{self, Read};

use flate2::read::MultiGzDecoder;
use lz4_flex::frame::FrameDecoder as Lz4Frame;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};

use crate::budget::Budget;
use crate::table::TableError;

/// What reading the rows of one table has inflated so far, within the budget of the file.
#[derive(Debug)]
pub(crate) struct Spending<'b> {
    pub(crate) budget: &'b Budget,
    inflated: Cell<u64>,
}

impl<'b> Spending<'b> {
    /// Nothing is inflated yet.
    pub(crate) fn new(budget: &'b Budget) -> Self {
        Spending { budget, inflated: Cell::new(0) }
    }

    /// Inflates a block whose size the file states, which must not exceed `limit` bytes.
    pub(crate) fn inflate(&self, codec: Codec, packed: &[u8], limit: usize) -> Result<Vec<u8>, TableError> {
        // Counted before it is inflated: the claim of a block is what it may take.
        let inflated = self.inflated.get().saturating_add(limit as u64);
        self.inflated.set(inflated);
        self.budget.inflated(inflated)?;
        inflate(codec, packed, limit)
    }
}

/// Compression of a block of bytes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Codec {
    /// Snappy without a frame.
    Snappy,
    /// One or several gzip members.
    Gzip,
    /// LZ4 block without a frame.
    Lz4,
    /// LZ4 blocks in a frame.
    Lz4Frame,
    /// One or several Zstandard frames.
    Zstd,
}

/// The first bytes of a Zstandard frame.
pub(crate) const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Inflates `packed` to at most `limit` bytes.
fn inflate(codec: Codec, packed: &[u8], limit: usize) -> Result<Vec<u8>, TableError> {
    const WHAT: &str = "compressed block";
    let inflated = match codec {
        Codec::Snappy => return snappy(packed, limit),
        Codec::Lz4 => return lz4(packed, limit),
        Codec::Lz4Frame => read_up_to(Lz4Frame::new(packed), limit),
        Codec::Gzip => read_up_to(MultiGzDecoder::new(packed), limit),
        Codec::Zstd => read_up_to(Zstd::new(packed), limit),
    };
    let inflated = inflated.map_err(|_| TableError::Wrong(WHAT))?;
    if inflated.len() > limit { Err(TableError::Wrong(WHAT)) } else { Ok(inflated) }
}

fn read_up_to(source: impl Read, limit: usize) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    source.take(limit as u64 + 1).read_to_end(&mut out)?;
    Ok(out)
}

/// Snappy stores its length at the front; three bytes make at most 64, so it cannot be far off.
fn snappy(packed: &[u8], limit: usize) -> Result<Vec<u8>, TableError> {
    const WHAT: &str = "snappy block";
    let len = snap::raw::decompress_len(packed).map_err(|_| TableError::Wrong(WHAT))?;
    if len > limit || len > packed.len().saturating_mul(64) {
        return Err(TableError::Wrong(WHAT));
    }
    snap::raw::Decoder::new().decompress_vec(packed).map_err(|_| TableError::Wrong(WHAT))
}

/// A block of LZ4 does not say how long it gets; one byte makes 255 at most.
fn lz4(packed: &[u8], limit: usize) -> Result<Vec<u8>, TableError> {
    let mut out = vec![0; limit.min(packed.len().saturating_mul(255))];
    let len = lz4_flex::block::decompress_into(packed, &mut out);
    out.truncate(len.map_err(|_| TableError::Wrong("LZ4 block"))?);
    Ok(out)
}

/// A stream of inflated bytes from consecutive Zstandard frames.
pub(crate) struct Zstd<'a> {
    rest: &'a [u8],
    frame: Option<Box<StreamingDecoder<&'a [u8], FrameDecoder>>>,
}

impl<'a> Zstd<'a> {
    /// Nothing is inflated yet.
    pub(crate) fn new(packed: &'a [u8]) -> Self {
        Zstd { rest: packed, frame: None }
    }

    /// Number of packed bytes not yet read.
    pub(crate) fn left(&self) -> usize {
        self.frame.as_ref().map_or(self.rest.len(), |frame| frame.get_ref().len())
    }

    /// Opens the next frame; false if there is none.
    fn next_frame(&mut self) -> io::Result<bool> {
        while !self.rest.is_empty() {
            match StreamingDecoder::new(self.rest) {
                Ok(frame) => {
                    self.frame = Some(Box::new(frame));
                    return Ok(true);
                }
                // Skippable frames with data of other tools: magic, length, content.
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let whole = 8_usize.saturating_add(length as usize);
                    self.rest = self.rest.get(whole..).unwrap_or_default();
                }
                Err(error) => return Err(io::Error::other(error.to_string())),
            }
        }
        Ok(false)
    }
}

impl Read for Zstd<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.frame.is_none() && !self.next_frame()? {
                return Ok(0);
            }
            let Some(frame) = &mut self.frame else { return Ok(0) };
            let count = frame.read(out)?;
            if count > 0 || out.is_empty() {
                return Ok(count);
            }
            self.rest = frame.get_ref();
            self.frame = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    #[test]
    fn lz4_copies_overlap_their_own_end() {
        // "ab", then ten bytes from two back, then the literal "!".
        let packed = [0x26, b'a', b'b', 2, 0, 0x10, b'!'];
        assert_eq!(inflate(Codec::Lz4, &packed, 100).unwrap(), b"abababababab!");
        assert!(inflate(Codec::Lz4, &packed, 12).is_err(), "more than allowed");
        assert!(inflate(Codec::Lz4, &[0x26, b'a', b'b', 3, 0], 100).is_err(), "from before the beginning");
        assert!(inflate(Codec::Lz4, &[0xf0, 255, 255], 100).is_err(), "a length without an end");
    }

    #[test]
    fn zstd_frames_follow_one_another_and_foreign_ones_are_passed_over() {
        let frame = |text: &[u8]| compress_to_vec(text, CompressionLevel::Fastest);
        let note = [&[0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"abc"].concat();
        let packed = [frame(b"one "), note, frame(b"two")].concat();
        assert_eq!(inflate(Codec::Zstd, &packed, 100).unwrap(), b"one two");
        assert!(inflate(Codec::Zstd, &packed, 6).is_err(), "more than allowed");
        assert!(inflate(Codec::Zstd, &packed[..packed.len() - 2], 100).is_err());
    }

    #[test]
    fn snappy_may_not_claim_more_than_it_can_hold() {
        let packed = snap::raw::Encoder::new().compress_vec(&[7; 1_000]).unwrap();
        assert_eq!(inflate(Codec::Snappy, &packed, 1_000).unwrap(), [7; 1_000]);
        assert!(inflate(Codec::Snappy, &packed, 999).is_err());
        assert!(inflate(Codec::Snappy, &[0xff, 0xff, 0xff, 0xff, 0x0f, 0], usize::MAX).is_err());
    }
}
