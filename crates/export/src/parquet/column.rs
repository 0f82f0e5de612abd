//! The columns of one row group in Parquet's layout: plain numbers, dictionary-encoded text if it repeats,
//! plain text otherwise. Pages are compressed with gzip, which every reader of Parquet knows: arguments repeat, so that they
//! become ten times smaller.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use rustc_hash::FxHashMap;

use stepscope_read::parquet::layout::encoding::{PLAIN, RLE, RLE_DICTIONARY};
use stepscope_read::parquet::layout::physical::{BYTE_ARRAY, DOUBLE, INT32, INT64};

use super::thrift::{Struct, varint};

/// The values of one column.
#[derive(Debug)]
pub(super) enum Values {
    Int32(Vec<u8>),
    Int64(Vec<u8>),
    Double(Vec<u8>),
    /// Text that repeats.
    Names(Dictionary),
    /// Text that does not.
    Text(Vec<u8>),
}

/// Distinct texts and, for each row, the index of its text.
#[derive(Debug, Default)]
pub(super) struct Dictionary {
    lookup: FxHashMap<String, u32>,
    /// The texts in Parquet's plain encoding.
    plain: Vec<u8>,
    rows: Vec<u32>,
}

impl Dictionary {
    pub(super) fn push(&mut self, text: &str) {
        let number = match self.lookup.get(text) {
            Some(&number) => number,
            None => {
                let number = u32::try_from(self.lookup.len()).unwrap_or(u32::MAX);
                self.lookup.insert(text.to_owned(), number);
                push_text(&mut self.plain, text);
                number
            }
        };
        self.rows.push(number);
    }

    /// The rows' indices: the width in bits, then one bit-packed run.
    fn packed(&self) -> Vec<u8> {
        let largest = u32::try_from(self.lookup.len().saturating_sub(1)).unwrap_or(u32::MAX);
        let width = (32 - largest.leading_zeros()).max(1);
        let mut out = vec![width as u8];
        varint(&mut out, (self.rows.len().div_ceil(8) as u64) << 1 | 1);
        pack(&mut out, &self.rows, width);
        out
    }
}

/// Writes numbers of `width` bits, lowest bit first, padded to a multiple of eight numbers.
fn pack(out: &mut Vec<u8>, numbers: &[u32], width: u32) {
    let (mut held, mut bits) = (0_u64, 0);
    let filling = std::iter::repeat_n(0, numbers.len().next_multiple_of(8) - numbers.len());
    for number in numbers.iter().copied().chain(filling) {
        held |= u64::from(number) << bits;
        bits += width;
        while bits >= 8 {
            out.push(held as u8);
            held >>= 8;
            bits -= 8;
        }
    }
}

/// Writes a text after its length.
pub(super) fn push_text(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(&u32::try_from(text.len()).unwrap_or(u32::MAX).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

/// Location of a written column of a row group.
#[derive(Clone, Debug)]
pub(super) struct Chunk {
    pub(super) name: String,
    physical: i32,
    encodings: Vec<i32>,
    rows: i64,
    pub(super) bytes: i64,
    /// Before it was compressed.
    whole_bytes: i64,
    start: i64,
    dictionary: Option<i64>,
    data: i64,
}

impl Values {
    pub(super) fn is_text(&self) -> bool {
        matches!(self, Values::Names(_) | Values::Text(_))
    }

    pub(super) fn physical(&self) -> i32 {
        match self {
            Values::Int32(_) => INT32,
            Values::Int64(_) => INT64,
            Values::Double(_) => DOUBLE,
            Values::Names(_) | Values::Text(_) => BYTE_ARRAY,
        }
    }

    /// The column's pages, to be written at `start` in the file.
    pub(super) fn pages(&self, name: &str, rows: i32, start: i64) -> (Vec<u8>, Chunk) {
        let mut out = Vec::new();
        let (mut dictionary, mut whole) = (None, 0);
        let (encoding, data) = match self {
            Values::Int32(plain) | Values::Int64(plain) | Values::Double(plain) | Values::Text(plain) => {
                (PLAIN, plain.clone())
            }
            Values::Names(names) => {
                dictionary = Some(start);
                whole += dictionary_page(&mut out, &names.plain, names.lookup.len());
                (RLE_DICTIONARY, names.packed())
            }
        };
        let at = start + out.len() as i64;
        whole += data_page(&mut out, &data, rows, encoding);
        let chunk = Chunk {
            name: name.to_owned(),
            physical: self.physical(),
            encodings: if encoding == PLAIN { vec![PLAIN, RLE] } else { vec![PLAIN, RLE, RLE_DICTIONARY] },
            rows: i64::from(rows),
            bytes: out.len() as i64,
            whole_bytes: whole as i64,
            start,
            dictionary,
            data: at,
        };
        (out, chunk)
    }
}

/// Writes the page of a dictionary; returns its size before it was compressed.
fn dictionary_page(out: &mut Vec<u8>, plain: &[u8], values: usize) -> usize {
    page(out, 2, plain, |header| {
        header.nested(7, |page| {
            page.i32(1, i32::try_from(values).unwrap_or(i32::MAX));
            page.i32(2, PLAIN);
        });
    })
}

/// Writes a page of values; returns its size before it was compressed.
fn data_page(out: &mut Vec<u8>, data: &[u8], rows: i32, encoding: i32) -> usize {
    page(out, 0, data, |header| {
        header.nested(5, |page| {
            page.i32(1, rows);
            page.i32(2, encoding);
            page.i32(3, RLE);
            page.i32(4, RLE);
        });
    })
}

fn page(out: &mut Vec<u8>, sort: i32, content: &[u8], describe: impl FnOnce(&mut Struct<'_>)) -> usize {
    let packed = packed(content);
    let before = out.len();
    let size = |len: usize| i32::try_from(len).unwrap_or(i32::MAX);
    Struct::write(out, |header| {
        header.i32(1, sort);
        header.i32(2, size(content.len()));
        header.i32(3, size(packed.len()));
        describe(header);
    });
    let head = out.len() - before;
    out.extend_from_slice(&packed);
    head + content.len()
}

/// Parquet's number for gzip.
const GZIP: i32 = 2;

/// Compressed fast: most of what can be saved is saved by then.
fn packed(content: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(content.len() / 4), Compression::fast());
    // Memory can always be written to.
    let _ = encoder.write_all(content);
    encoder.finish().unwrap_or_default()
}

impl Chunk {
    /// The chunk's entry in the footer.
    pub(super) fn describe(&self, column: &mut Struct<'_>) {
        column.i64(2, self.start);
        column.nested(3, |data| {
            data.i32(1, self.physical);
            data.i32s(2, &self.encodings);
            data.texts(3, &[self.name.as_str()]);
            data.i32(4, GZIP);
            data.i64(5, self.rows);
            data.i64(6, self.whole_bytes);
            data.i64(7, self.bytes);
            data.i64(9, self.data);
            if let Some(at) = self.dictionary {
                data.i64(11, at);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_packed_as_the_format_shows() {
        let mut out = Vec::new();
        pack(&mut out, &[0, 1, 2, 3, 4, 5, 6, 7], 3);
        assert_eq!(out, [0b1000_1000, 0b1100_0110, 0b1111_1010]);
    }

    #[test]
    fn equal_names_are_stored_once() {
        let mut names = Dictionary::default();
        ["MatMul", "Add", "MatMul"].iter().for_each(|name| names.push(name));
        assert_eq!(names.rows, [0, 1, 0]);
        assert_eq!(names.plain, b"\x06\0\0\0MatMul\x03\0\0\0Add");
        assert_eq!(names.packed(), [1, 3, 0b010]);
    }
}
