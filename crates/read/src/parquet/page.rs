//! Pages: header and inflated content.

use std::borrow::Cow;

use super::thrift::{FALSE, I32, STRUCT, Thrift};
use crate::codec::{Codec, Spending};
use crate::table::TableError;

const WHAT: &str = "a page";
/// Pages are about a megabyte; a larger one is only accepted as far as its packed bytes justify it.
const LARGEST: usize = 16 << 20;
/// Maximum compression ratio beyond [`LARGEST`].
const RATIO: usize = 256;

/// The kind of page.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    Dictionary,
    /// Levels and values are compressed together.
    Data,
    /// Levels come first and are never compressed.
    DataV2,
    /// Indexes and anything else.
    Other,
}

/// What a page's header says.
#[derive(Clone, Debug)]
pub(super) struct Header {
    pub sort: Sort,
    inflated: usize,
    /// Bytes in the file.
    pub packed: usize,
    /// Rows, including absent fields; or the entries of a dictionary.
    pub values: u64,
    /// The format's numbers for the encodings of values and levels.
    pub encoding: i64,
    pub levels: i64,
    /// Bytes of levels at the front.
    pub level_bytes: usize,
    repeat_bytes: usize,
    compressed: bool,
}

impl Header {
    /// Reads the header at the start of `bytes`, and returns its length.
    pub fn read(bytes: &[u8]) -> Result<(Self, usize), TableError> {
        let mut header = Header {
            sort: Sort::Other,
            inflated: 0,
            packed: 0,
            values: 0,
            encoding: 0,
            levels: 3,
            level_bytes: 0,
            repeat_bytes: 0,
            compressed: true,
        };
        let mut thrift = Thrift::new(bytes);
        thrift.structure(|thrift, number, kind| {
            match (number, kind) {
                (1, I32) => {
                    header.sort = match thrift.int()? {
                        0 => Sort::Data,
                        2 => Sort::Dictionary,
                        3 => Sort::DataV2,
                        _ => Sort::Other,
                    }
                }
                (2, I32) => header.inflated = length(thrift)?,
                (3, I32) => header.packed = length(thrift)?,
                (5 | 7 | 8, STRUCT) => header.read_details(thrift, number)?,
                _ => thrift.skip(kind)?,
            }
            Ok(())
        })?;
        Ok((header, thrift.position()))
    }

    /// The three kinds differ in the meaning of their fields.
    fn read_details(&mut self, thrift: &mut Thrift, sort: i64) -> Result<(), TableError> {
        thrift.structure(|thrift, number, kind| {
            match (sort, number, kind) {
                (_, 1, I32) => self.values = length(thrift)? as u64,
                (5 | 7, 2, I32) | (8, 4, I32) => self.encoding = thrift.int()?,
                (5, 3, I32) => self.levels = thrift.int()?,
                (8, 5, I32) => self.level_bytes = length(thrift)?,
                (8, 6, I32) => self.repeat_bytes = length(thrift)?,
                (8, 7, FALSE) => self.compressed = false,
                _ => thrift.skip(kind)?,
            }
            Ok(())
        })
    }

    /// The content after the header, inflated. In version 2, levels precede it.
    pub fn content<'f>(
        &self,
        packed: &'f [u8],
        codec: Option<Codec>,
        spending: &Spending<'_>,
    ) -> Result<Cow<'f, [u8]>, TableError> {
        let in_front = self.level_bytes.saturating_add(self.repeat_bytes);
        let values = packed.get(in_front..).ok_or(TableError::Short(WHAT))?;
        let Some(codec) = codec.filter(|_| self.compressed && !values.is_empty()) else {
            return Ok(Cow::Borrowed(values));
        };
        let expected = self.inflated.saturating_sub(in_front);
        if expected > LARGEST.max(values.len().saturating_mul(RATIO)) {
            return Err(TableError::Wrong("a page's size"));
        }
        Ok(Cow::Owned(spending.inflate(codec, values, expected)?))
    }

    /// The definition levels of version 2.
    pub(crate) fn levels_in_front<'f>(&self, packed: &'f [u8]) -> Result<&'f [u8], TableError> {
        let end = self.repeat_bytes.saturating_add(self.level_bytes);
        packed.get(self.repeat_bytes..end).ok_or(TableError::Short(WHAT))
    }
}

fn length(thrift: &mut Thrift) -> Result<usize, TableError> {
    let length = i32::try_from(thrift.int()?).ok().and_then(|length| usize::try_from(length).ok());
    length.ok_or(TableError::Wrong("a page's length"))
}

/// The compression of a chunk, by the format's number.
pub(super) fn codec(number: i64) -> Result<Option<Codec>, TableError> {
    Ok(match number {
        0 => None,
        1 => Some(Codec::Snappy),
        2 => Some(Codec::Gzip),
        6 => Some(Codec::Zstd),
        7 => Some(Codec::Lz4),
        other => return Err(TableError::Unknown("compression", other)),
    })
}
