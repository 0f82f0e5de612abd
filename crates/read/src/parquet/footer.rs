//! The footer: the columns of a file, and their location in each row group.

use super::layout::MAGIC;
use super::thrift::{BINARY, FALSE, I32, I64, LIST, STRUCT, Thrift};
use crate::table::TableError;

/// The length of the footer and the magic after it.
const TAIL: usize = 8;

/// How values are stored.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Physical {
    Boolean,
    Int32,
    Int64,
    Float,
    Double,
    /// Each with its length in front.
    Bytes,
    /// All of one length.
    Fixed(usize),
}

/// Description of a column.
#[derive(Clone, Debug)]
pub(super) struct Description {
    pub name: String,
    pub physical: Physical,
    /// Unsigned integers.
    pub unsigned: bool,
    /// Whether rows may lack it.
    pub optional: bool,
    /// Index of its chunk in a row group.
    pub chunk: usize,
}

/// Location of a column in a row group.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Chunk {
    /// The format's number for the compression.
    pub codec: i64,
    /// Rows, including absent fields.
    pub values: u64,
    pub start: u64,
    pub bytes: u64,
}

/// A group of rows.
#[derive(Clone, Debug, Default)]
pub(super) struct Group {
    pub rows: u64,
    pub chunks: Vec<Chunk>,
}

/// What a file holds.
#[derive(Clone, Debug, Default)]
pub(super) struct Footer {
    pub columns: Vec<Description>,
    pub groups: Vec<Group>,
}

impl Footer {
    /// Reads it from the end of a file.
    pub fn read(file: &[u8]) -> Result<Self, TableError> {
        let whole = file.starts_with(MAGIC) && file.ends_with(MAGIC) && file.len() >= MAGIC.len() + TAIL;
        let tail = file.len().checked_sub(TAIL).filter(|_| whole).ok_or(TableError::Short("the file"))?;
        let len = file.get(tail..).and_then(|tail| tail.first_chunk::<4>());
        let len = len.map_or(0, |&len| u32::from_le_bytes(len)) as usize;
        let start = tail.checked_sub(len).ok_or(TableError::Wrong("the footer's length"))?;
        let mut thrift = Thrift::new(file.get(start..tail).unwrap_or_default());
        let mut elements = Vec::new();
        let mut groups = Vec::new();
        thrift.structure(|thrift, number, kind| match (number, kind) {
            (2, LIST) => thrift.list(STRUCT, |thrift| {
                elements.push(Element::read(thrift)?);
                Ok(())
            }),
            (4, LIST) => thrift.list(STRUCT, |thrift| {
                groups.push(read_group(thrift)?);
                Ok(())
            }),
            _ => thrift.skip(kind),
        })?;
        Ok(Footer { columns: columns_of(&elements), groups })
    }
}

/// One node of the schema; the first is the table itself.
#[derive(Debug, Default)]
struct Element {
    physical: Option<i64>,
    length: i64,
    repetition: i64,
    name: String,
    children: i64,
    converted: Option<i64>,
    unsigned: bool,
}

impl Element {
    fn read(thrift: &mut Thrift) -> Result<Self, TableError> {
        let mut element = Element::default();
        thrift.structure(|thrift, number, kind| {
            match (number, kind) {
                (1, I32) => element.physical = Some(thrift.int()?),
                (2, I32) => element.length = thrift.int()?,
                (3, I32) => element.repetition = thrift.int()?,
                (4, BINARY) => element.name = String::from_utf8_lossy(thrift.binary()?).into_owned(),
                (5, I32) => element.children = thrift.int()?,
                (6, I32) => element.converted = Some(thrift.int()?),
                (10, STRUCT) => element.unsigned = is_unsigned(thrift)?,
                _ => thrift.skip(kind)?,
            }
            Ok(())
        })?;
        // UINT_8 to UINT_64, as written before logical types existed.
        element.unsigned |= matches!(element.converted, Some(11..=14));
        Ok(element)
    }

    fn physical(&self) -> Option<Physical> {
        Some(match self.physical? {
            0 => Physical::Boolean,
            1 => Physical::Int32,
            2 => Physical::Int64,
            4 => Physical::Float,
            5 => Physical::Double,
            6 => Physical::Bytes,
            7 => Physical::Fixed(usize::try_from(self.length).ok()?),
            // 96-bit times, long deprecated.
            _ => return None,
        })
    }
}

/// Whether a logical type is an unsigned integer.
fn is_unsigned(thrift: &mut Thrift) -> Result<bool, TableError> {
    let mut unsigned = false;
    thrift.structure(|thrift, number, kind| match (number, kind) {
        (10, STRUCT) => thrift.structure(|thrift, number, kind| {
            unsigned |= (number, kind) == (2, FALSE);
            thrift.skip(kind)
        }),
        _ => thrift.skip(kind),
    })?;
    Ok(unsigned)
}

/// The columns directly below the table with one value per row. Nested columns are skipped, but counted,
/// because row groups list the leaves in schema order.
fn columns_of(elements: &[Element]) -> Vec<Description> {
    /// `repetition`.
    const OPTIONAL: i64 = 1;
    const REPEATED: i64 = 2;
    let mut columns = Vec::new();
    let mut chunk = 0;
    // Nodes left before the level directly below the table is reached again.
    let mut nested: u64 = 0;
    for element in elements.iter().skip(1) {
        let inside = nested > 0;
        nested = nested.saturating_sub(1).saturating_add(u64::try_from(element.children).unwrap_or(0));
        if element.children > 0 {
            continue;
        }
        if let Some(physical) = element.physical().filter(|_| !inside && element.repetition != REPEATED) {
            columns.push(Description {
                name: element.name.clone(),
                physical,
                unsigned: element.unsigned,
                optional: element.repetition == OPTIONAL,
                chunk,
            });
        }
        chunk += 1;
    }
    columns
}

fn read_group(thrift: &mut Thrift) -> Result<Group, TableError> {
    let mut group = Group::default();
    thrift.structure(|thrift, number, kind| match (number, kind) {
        (1, LIST) => thrift.list(STRUCT, |thrift| {
            group.chunks.push(read_chunk(thrift)?);
            Ok(())
        }),
        (3, I64) => {
            group.rows = unsigned(thrift)?;
            Ok(())
        }
        _ => thrift.skip(kind),
    })?;
    Ok(group)
}

fn read_chunk(thrift: &mut Thrift) -> Result<Chunk, TableError> {
    let mut chunk = Chunk::default();
    let (mut data, mut dictionary) = (0, None);
    thrift.structure(|thrift, number, kind| match (number, kind) {
        (3, STRUCT) => thrift.structure(|thrift, number, kind| {
            match (number, kind) {
                (4, I32) => chunk.codec = thrift.int()?,
                (5, I64) => chunk.values = unsigned(thrift)?,
                (7, I64) => chunk.bytes = unsigned(thrift)?,
                (9, I64) => data = unsigned(thrift)?,
                (11, I64) => dictionary = Some(unsigned(thrift)?),
                _ => thrift.skip(kind)?,
            }
            Ok(())
        }),
        _ => thrift.skip(kind),
    })?;
    // Some writers state a dictionary at 0, where the magic is, to mean that there is none.
    chunk.start = dictionary.filter(|&at| at > 0).map_or(data, |at| data.min(at));
    Ok(chunk)
}

fn unsigned(thrift: &mut Thrift) -> Result<u64, TableError> {
    u64::try_from(thrift.int()?).map_err(|_| TableError::Wrong("a negative length"))
}
