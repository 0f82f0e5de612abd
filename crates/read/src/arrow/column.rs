//! A column of one record batch, read in place.

use std::borrow::Cow;

use super::flat::{Flat, pair};
use crate::codec::{Codec, Spending};
use crate::table::{TableError, Value};

const WHAT: &str = "a record batch";
/// Buffers may inflate to this size, or to [`RATIO`] times their packed size.
const LARGEST: usize = 16 << 20;
const RATIO: usize = 256;

/// How values are stored.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Null,
    Truth,
    Int {
        bytes: usize,
        signed: bool,
    },
    Float,
    Double,
    /// The end of each text is a 32-bit or 64-bit number.
    Text {
        wide: bool,
    },
    Fixed(usize),
}

impl Kind {
    /// The kind that a field's type describes.
    pub fn of(field: Flat<'_>) -> Result<Self, TableError> {
        let number = field.byte(2);
        let unknown = Err(TableError::Unknown("type of column", i64::from(number)));
        let Some(details) = field.table(3) else { return unknown };
        let wide = |wide| Ok(Kind::Text { wide });
        match (number, details.short(0)) {
            (1, _) => Ok(Kind::Null),
            (2, _) => Self::int(details),
            (3, 1) => Ok(Kind::Float),
            (3, 2) => Ok(Kind::Double),
            (4 | 5, _) => wide(false),
            (6, _) => Ok(Kind::Truth),
            // Timestamps and durations.
            (10 | 18, _) => Ok(Kind::Int { bytes: 8, signed: true }),
            (15, _) => usize::try_from(details.int(0)).map_or(unknown, |len| Ok(Kind::Fixed(len))),
            (19 | 20, _) => wide(true),
            _ => unknown,
        }
    }

    /// An integer with the width given in `details`.
    pub fn int(details: Flat<'_>) -> Result<Self, TableError> {
        match details.int(0) {
            bits @ (8 | 16 | 32 | 64) => {
                Ok(Kind::Int { bytes: bits as usize / 8, signed: details.byte(1) != 0 })
            }
            bits => Err(TableError::Unknown("width of numbers", i64::from(bits))),
        }
    }

    /// Number of buffers of a column of this kind.
    pub fn buffers(self) -> usize {
        match self {
            Kind::Null => 0,
            Kind::Text { .. } => 3,
            _ => 2,
        }
    }
}

/// A record batch: its metadata and its buffers.
#[derive(Copy, Clone, Debug)]
pub(super) struct Batch<'a> {
    pub of: Flat<'a>,
    pub body: &'a [u8],
}

impl<'a> Batch<'a> {
    pub fn rows(self) -> Result<u64, TableError> {
        u64::try_from(self.of.long(0)).map_err(|_| TableError::Wrong(WHAT))
    }

    fn buffer(self, index: usize, spending: &Spending<'_>) -> Result<Cow<'a, [u8]>, TableError> {
        let (start, len) = pair(self.of.pairs(2).get(index).ok_or(TableError::Short(WHAT))?);
        let start = usize::try_from(start).map_err(|_| TableError::Wrong(WHAT))?;
        let len = usize::try_from(len).map_err(|_| TableError::Wrong(WHAT))?;
        let bytes = self.body.get(start..).and_then(|rest| rest.get(..len)).ok_or(TableError::Short(WHAT))?;
        let Some(compression) = self.of.table(3).filter(|_| len > 0) else { return Ok(Cow::Borrowed(bytes)) };
        let codec = match compression.byte(0) {
            0 => Codec::Lz4Frame,
            1 => Codec::Zstd,
            other => return Err(TableError::Unknown("compression", i64::from(other))),
        };
        let (size, packed) = bytes.split_first_chunk::<8>().ok_or(TableError::Short(WHAT))?;
        match i64::from_le_bytes(*size) {
            // The writer found compression not worthwhile.
            -1 => Ok(Cow::Borrowed(packed)),
            size => {
                let most = LARGEST.max(packed.len().saturating_mul(RATIO));
                let size = usize::try_from(size).ok().filter(|&size| size <= most);
                Ok(Cow::Owned(spending.inflate(codec, packed, size.ok_or(TableError::Wrong(WHAT))?)?))
            }
        }
    }

    /// The column at position `node`, whose buffers start at `first`.
    pub fn column(
        self,
        kind: Kind,
        node: usize,
        first: usize,
        spending: &Spending<'_>,
    ) -> Result<Column<'a>, TableError> {
        let (_, absent) = pair(self.of.pairs(1).get(node).ok_or(TableError::Short(WHAT))?);
        let mut column = Column { kind, present: None, values: Cow::Borrowed(&[]), ends: Cow::Borrowed(&[]) };
        if kind.buffers() > 0 && absent != 0 {
            column.present = Some(self.buffer(first, spending)?).filter(|bits| !bits.is_empty());
        }
        match kind {
            Kind::Null => {}
            Kind::Text { .. } => {
                column.ends = self.buffer(first + 1, spending)?;
                column.values = self.buffer(first + 2, spending)?;
            }
            _ => column.values = self.buffer(first + 1, spending)?,
        }
        Ok(column)
    }
}

/// A column of one record batch.
#[derive(Debug)]
pub(super) struct Column<'a> {
    kind: Kind,
    /// One bit per row; `None` if every row has a value.
    present: Option<Cow<'a, [u8]>>,
    values: Cow<'a, [u8]>,
    /// Start and end of each text.
    ends: Cow<'a, [u8]>,
}

impl Column<'_> {
    /// A field, or `None` if the column is shorter.
    pub fn value(&self, row: usize) -> Option<Value<'_>> {
        if let Some(present) = &self.present
            && present.get(row / 8)? >> (row % 8) & 1 == 0
        {
            return Some(Value::Nothing);
        }
        Some(match self.kind {
            Kind::Null => Value::Nothing,
            Kind::Truth => Value::Int(i64::from(self.values.get(row / 8)? >> (row % 8) & 1)),
            Kind::Int { bytes, signed } => Value::Int(whole(&self.values, row, bytes, signed)?),
            Kind::Float => Value::Real(f64::from(f32::from_bits(whole(&self.values, row, 4, false)? as u32))),
            Kind::Double => Value::Real(f64::from_bits(whole(&self.values, row, 8, false)? as u64)),
            Kind::Text { wide } => {
                let bytes = if wide { 8 } else { 4 };
                let start = usize::try_from(whole(&self.ends, row, bytes, true)?).ok()?;
                let end = usize::try_from(whole(&self.ends, row + 1, bytes, true)?).ok()?;
                Value::Text(self.values.get(start..end)?)
            }
            Kind::Fixed(len) => {
                let start = row.checked_mul(len)?;
                Value::Text(self.values.get(start..start.checked_add(len)?)?)
            }
        })
    }
}

/// The integer at `index`, with this many bytes.
#[inline]
fn whole(values: &[u8], index: usize, bytes: usize, signed: bool) -> Option<i64> {
    let rest = values.get(index.checked_mul(bytes)?..)?;
    Some(match (bytes, signed) {
        (8, _) => i64::from_le_bytes(*rest.first_chunk()?),
        (4, true) => i64::from(i32::from_le_bytes(*rest.first_chunk()?)),
        (4, false) => i64::from(u32::from_le_bytes(*rest.first_chunk()?)),
        (2, true) => i64::from(i16::from_le_bytes(*rest.first_chunk()?)),
        (2, false) => i64::from(u16::from_le_bytes(*rest.first_chunk()?)),
        (_, true) => i64::from(i8::from_le_bytes(*rest.first_chunk()?)),
        (_, false) => i64::from(*rest.first()?),
    })
}
