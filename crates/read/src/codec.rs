//! Compression inside formats or around files, in pure Rust and always bounded: the output never exceeds the
//! caller's limit, whatever the bytes claim.

use std::io::{self, Read};

use flate2::read::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};

use crate::table::TableError;

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
pub(crate) fn inflate(codec: Codec, packed: &[u8], limit: usize) -> Result<Vec<u8>, TableError> {
    const WHAT: &str = "compressed block";
    let inflated = match codec {
        Codec::Snappy => return snappy(packed, limit),
        Codec::Lz4 => {
            let mut out = Vec::new();
            return lz4(packed, &mut out, limit).map(|()| out);
        }
        Codec::Lz4Frame => return lz4_frame(packed, limit),
        Codec::Gzip => read_up_to(MultiGzDecoder::new(packed), limit),
        Codec::Zstd => read_up_to(Zstd::new(packed, limit as u64), limit),
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

/// LZ4: literals, then a copy of earlier output, repeatedly; the last sequence has literals only.
fn lz4(packed: &[u8], out: &mut Vec<u8>, limit: usize) -> Result<(), TableError> {
    const WHAT: &str = "LZ4 block";
    let mut rest = packed;
    let take = |rest: &mut &[u8]| -> Result<u8, TableError> {
        let (&first, after) = rest.split_first().ok_or(TableError::Short(WHAT))?;
        *rest = after;
        Ok(first)
    };
    let length = |rest: &mut &[u8], short: u8| -> Result<usize, TableError> {
        let mut length = usize::from(short);
        let mut more = short == 15;
        while more {
            let byte = take(rest)?;
            length += usize::from(byte);
            more = byte == 255;
        }
        Ok(length)
    };
    while !rest.is_empty() {
        let token = take(&mut rest)?;
        let literals = length(&mut rest, token >> 4)?;
        let (copied, after) = rest.split_at_checked(literals).ok_or(TableError::Short(WHAT))?;
        if out.len() + literals > limit {
            return Err(TableError::Wrong(WHAT));
        }
        out.extend_from_slice(copied);
        rest = after;
        if rest.is_empty() {
            break;
        }
        let back = usize::from(u16::from_le_bytes([take(&mut rest)?, take(&mut rest)?]));
        let count = length(&mut rest, token & 15)? + 4;
        let from = out.len().checked_sub(back).filter(|_| back > 0).ok_or(TableError::Wrong(WHAT))?;
        if out.len() + count > limit {
            return Err(TableError::Wrong(WHAT));
        }
        // A copy may overlap its own end: copies as much at a time as exists already.
        let mut left = count;
        while left > 0 {
            let piece = left.min(out.len() - from);
            out.extend_from_within(from..from + piece);
            left -= piece;
        }
    }
    Ok(())
}

/// LZ4 blocks, each after its length; copies may refer to earlier blocks.
fn lz4_frame(packed: &[u8], limit: usize) -> Result<Vec<u8>, TableError> {
    const WHAT: &str = "LZ4 frame";
    let (&[magic @ .., flags, _], rest) = packed.split_first_chunk::<6>().ok_or(TableError::Short(WHAT))?;
    if magic != [0x04, 0x22, 0x4d, 0x18] {
        return Err(TableError::Wrong(WHAT));
    }
    let has = |bit: u8| flags & bit != 0;
    // After the flags: the size, a dictionary id, and a checksum; after each block: a checksum.
    let head = if has(8) { 8 } else { 0 } + if has(1) { 4 } else { 0 } + 1;
    let checksum = if has(16) { 4 } else { 0 };
    let mut rest = rest.get(head..).ok_or(TableError::Short(WHAT))?;
    let mut out = Vec::new();
    loop {
        let (size, after) = rest.split_first_chunk::<4>().ok_or(TableError::Short(WHAT))?;
        let size = u32::from_le_bytes(*size);
        let (stored, len) = (size >> 31 == 1, (size & 0x7fff_ffff) as usize);
        if size == 0 {
            return Ok(out);
        }
        let (block, after) = after.split_at_checked(len).ok_or(TableError::Short(WHAT))?;
        match stored {
            true if out.len() + len > limit => return Err(TableError::Wrong(WHAT)),
            true => out.extend_from_slice(block),
            false => lz4(block, &mut out, limit)?,
        }
        rest = after.get(checksum..).ok_or(TableError::Short(WHAT))?;
    }
}

/// A stream of inflated bytes from consecutive Zstandard frames.
pub(crate) struct Zstd<'a> {
    rest: &'a [u8],
    /// Number of bytes that may still come out.
    allowed: u64,
    frame: Option<Box<StreamingDecoder<&'a [u8], FrameDecoder>>>,
}

impl<'a> Zstd<'a> {
    /// At most `allowed` bytes come out; more is an error.
    pub(crate) fn new(packed: &'a [u8], allowed: u64) -> Self {
        Zstd { rest: packed, allowed, frame: None }
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
                let left = self.allowed.checked_sub(count as u64);
                self.allowed = left.ok_or_else(|| io::Error::other("inflates to more than the limit"))?;
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
