//! A Parquet file of row groups: what every table has in common, whatever its columns.

use std::io::{self, Write};

use stepscope_read::parquet::layout::MAGIC;

use super::column::{Chunk, Values};
use super::thrift::Struct;

/// A named column.
pub(super) type Named<'n> = (&'n str, Values);

/// A row group that has been written.
struct RowGroup {
    chunks: Vec<Chunk>,
    rows: i64,
}

/// A file that is being written.
pub(super) struct Sheet<'a> {
    out: &'a mut dyn Write,
    at: i64,
    groups: Vec<RowGroup>,
}

impl<'a> Sheet<'a> {
    pub(super) fn new(out: &'a mut dyn Write) -> io::Result<Self> {
        out.write_all(MAGIC)?;
        Ok(Sheet { out, at: MAGIC.len() as i64, groups: Vec::new() })
    }

    /// Writes a row group.
    pub(super) fn row_group<'n>(
        &mut self,
        columns: impl IntoIterator<Item = Named<'n>>,
        rows: i32,
    ) -> io::Result<()> {
        let mut chunks = Vec::new();
        for (name, values) in columns {
            let (bytes, chunk) = values.pages(name, rows, self.at);
            self.out.write_all(&bytes)?;
            self.at += bytes.len() as i64;
            chunks.push(chunk);
        }
        self.groups.push(RowGroup { chunks, rows: i64::from(rows) });
        Ok(())
    }

    /// Writes the footer: what a row is called, and the columns, whose values do not matter here.
    pub(super) fn finish(self, row: &str, columns: &[Named<'_>]) -> io::Result<()> {
        let footer = footer(row, columns, &self.groups);
        self.out.write_all(&footer)?;
        self.out.write_all(&u32::try_from(footer.len()).unwrap_or(u32::MAX).to_le_bytes())?;
        self.out.write_all(MAGIC)
    }
}

fn footer(row: &str, columns: &[Named<'_>], groups: &[RowGroup]) -> Vec<u8> {
    let mut out = Vec::new();
    Struct::write(&mut out, |file| {
        file.i32(1, 1);
        // The first element is the root; its children follow.
        let elements: Vec<Option<&Named<'_>>> =
            std::iter::once(None).chain(columns.iter().map(Some)).collect();
        file.structs(2, &elements, |element, column| match column {
            None => {
                element.text(4, row);
                element.i32(5, i32::try_from(columns.len()).unwrap_or(i32::MAX));
            }
            Some((name, values)) => {
                element.i32(1, values.physical());
                element.i32(3, 0);
                element.text(4, name);
                if values.is_text() {
                    element.i32(6, 0);
                    element.nested(10, |logical| logical.nested(1, |_| {}));
                }
            }
        });
        file.i64(3, groups.iter().map(|group| group.rows).sum());
        file.structs(4, groups, |entry, group| {
            entry.structs(1, &group.chunks, |column, chunk| chunk.describe(column));
            entry.i64(2, group.chunks.iter().map(|chunk| chunk.bytes).sum());
            entry.i64(3, group.rows);
        });
        file.text(6, concat!("stepscope ", env!("CARGO_PKG_VERSION")));
    });
    out
}
