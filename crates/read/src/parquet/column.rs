//! A column of one row group, read page by page and a few rows at a time: memory holds no more than one packed
//! page and the current rows.

use std::borrow::Cow;

use super::bits::Hybrid;
use super::footer::{Chunk, Description, Physical};
use super::page::{Header, Sort, codec};
use super::values::{Origin, Values, at_place};
use crate::codec::{Codec, Spending};
use crate::table::{TableError, Value};

const WHAT: &str = "a page";

/// A column and its current rows.
#[derive(Debug)]
pub(super) struct Column<'f> {
    of: &'f Description,
    codec: Option<Codec>,
    /// The pages not yet read.
    rest: &'f [u8],
    /// Remaining rows of these pages and the current one, according to the file.
    left: u64,
    dictionary: Vec<u64>,
    /// The bytes of the dictionary's texts.
    dictionary_page: Cow<'f, [u8]>,
    page: Option<Page<'f>>,
    /// The current rows: values, and whether they exist.
    values: Vec<u64>,
    present: Vec<bool>,
    /// Values without gaps, before they are spread over rows.
    dense: Vec<u64>,
}

#[derive(Debug)]
struct Page<'f> {
    content: Cow<'f, [u8]>,
    /// Which rows have a value, and the bytes that say so if they are not in the content.
    levels: Option<(Hybrid, Option<&'f [u8]>)>,
    values: Values,
    left: usize,
}

impl<'f> Column<'f> {
    /// The column in one row group of `file`.
    pub fn open(file: &'f [u8], of: &'f Description, chunk: &Chunk) -> Result<Self, TableError> {
        let end = chunk.start.checked_add(chunk.bytes).and_then(|end| usize::try_from(end).ok());
        let rest = end.and_then(|end| file.get(chunk.start as usize..end));
        Ok(Column {
            of,
            codec: codec(chunk.codec)?,
            rest: rest.ok_or(TableError::Short("a column"))?,
            left: chunk.values,
            dictionary: Vec::new(),
            dictionary_page: Cow::Borrowed(&[]),
            page: None,
            values: Vec::new(),
            present: Vec::new(),
            dense: Vec::new(),
        })
    }

    /// Remaining rows of the current page; opens the next page if there are none. 0 at the end.
    pub fn ready(&mut self, spending: &Spending<'_>) -> Result<usize, TableError> {
        loop {
            match &self.page {
                Some(page) if page.left > 0 => return Ok(page.left),
                _ if self.left == 0 => return Ok(0),
                _ => self.next_page(spending)?,
            }
        }
    }

    fn next_page(&mut self, spending: &Spending<'_>) -> Result<(), TableError> {
        if self.rest.is_empty() {
            return Err(TableError::Short("a column"));
        }
        let (header, len) = Header::read(self.rest)?;
        let behind = self.rest.get(len..).unwrap_or_default();
        let (packed, rest) = behind.split_at_checked(header.packed).ok_or(TableError::Short(WHAT))?;
        self.rest = rest;
        self.page = None;
        match header.sort {
            Sort::Dictionary => self.read_dictionary(&header, packed, spending),
            Sort::Data | Sort::DataV2 => {
                let page = self.open_page(&header, packed, spending)?;
                self.left =
                    self.left.checked_sub(page.left as u64).ok_or(TableError::Wrong("a page's rows"))?;
                self.page = Some(page);
                Ok(())
            }
            Sort::Other => Ok(()),
        }
    }

    fn read_dictionary(
        &mut self,
        header: &Header,
        packed: &'f [u8],
        spending: &Spending<'_>,
    ) -> Result<(), TableError> {
        /// Encodings of a dictionary itself: both mean plain values.
        const PLAIN: [i64; 2] = [0, 2];
        if !PLAIN.contains(&header.encoding) {
            return Err(TableError::Unknown("encoding", header.encoding));
        }
        let content = header.content(packed, self.codec, spending)?;
        // A value takes at least one bit; values without any bytes would be free.
        if header.values > content.len() as u64 * 8 {
            return Err(TableError::Short("a dictionary"));
        }
        self.dictionary.clear();
        let mut values = Values::Plain { at: 0, bit: 0 };
        let (physical, unsigned) = (self.of.physical, self.of.unsigned);
        let from = Origin { page: &content, physical, unsigned, dictionary: &[] };
        values.read(&from, header.values as usize, &mut self.dictionary)?;
        self.dictionary_page = content;
        Ok(())
    }

    fn open_page(
        &self,
        header: &Header,
        packed: &'f [u8],
        spending: &Spending<'_>,
    ) -> Result<Page<'f>, TableError> {
        /// The encoding of levels: runs and groups.
        const RLE: i64 = 3;
        let content = header.content(packed, self.codec, spending)?;
        let rows = header.values as usize;
        let mut at = 0;
        let mut levels = None;
        if self.of.optional && header.sort == Sort::DataV2 {
            let bytes = header.levels_in_front(packed)?;
            levels = Some((Hybrid::new(0, bytes.len(), 1)?, Some(bytes)));
        } else if self.of.optional && rows > 0 {
            if header.levels != RLE {
                return Err(TableError::Unknown("encoding of levels", header.levels));
            }
            let len = content.first_chunk::<4>().ok_or(TableError::Short(WHAT))?;
            at = (u32::from_le_bytes(*len) as usize).saturating_add(4);
            levels = Some((Hybrid::new(4, at, 1)?, None));
        }
        let values = Values::new(header.encoding, self.of.physical, &content, at, rows)?;
        Ok(Page { content, levels, values, left: rows })
    }

    /// Makes the next `rows` rows of the current page the current rows.
    pub fn take(&mut self, rows: usize) -> Result<(), TableError> {
        let Some(page) = &mut self.page else { return Err(TableError::Short(WHAT)) };
        page.left = page.left.checked_sub(rows).ok_or(TableError::Short(WHAT))?;
        self.present.clear();
        let mut there = rows;
        if let Some((levels, bytes)) = &mut page.levels {
            let bytes = bytes.unwrap_or(&page.content);
            levels.read(bytes, rows, |level| self.present.push(level == 1))?;
            there = self.present.iter().filter(|present| **present).count();
        }
        let whole = there == rows;
        let out = if whole { &mut self.values } else { &mut self.dense };
        out.clear();
        let (physical, unsigned) = (self.of.physical, self.of.unsigned);
        let from = Origin { page: &page.content, physical, unsigned, dictionary: &self.dictionary };
        page.values.read(&from, there, out)?;
        if whole {
            self.present.clear();
        } else {
            let mut dense = self.dense.iter().copied();
            let spread = |&present: &bool| if present { dense.next().unwrap_or(0) } else { 0 };
            self.values.clear();
            self.values.extend(self.present.iter().map(spread));
        }
        Ok(())
    }

    /// A field of the current rows.
    pub fn value(&self, row: usize) -> Value<'_> {
        if self.present.get(row) == Some(&false) {
            return Value::Nothing;
        }
        let Some(&bits) = self.values.get(row) else { return Value::Nothing };
        match self.of.physical {
            Physical::Boolean | Physical::Int32 | Physical::Int64 => Value::Int(bits as i64),
            Physical::Float | Physical::Double => Value::Real(f64::from_bits(bits)),
            Physical::Bytes | Physical::Fixed(_) => Value::Text(at_place(self.bytes(), bits)),
        }
    }

    /// The bytes of the current texts.
    fn bytes(&self) -> &[u8] {
        match &self.page {
            Some(Page { values: Values::Positions(_), .. }) => &self.dictionary_page,
            Some(page) => &page.content,
            None => &[],
        }
    }
}
