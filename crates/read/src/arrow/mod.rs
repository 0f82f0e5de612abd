//! Arrow's interprocess format: a stream of messages. The first describes a table; each of the others contains
//! some of its rows. A file with one table is such a stream in a frame; a file with many tables is a sequence
//! of streams.
//!
//! ```text
//! flat     the encoding of all metadata
//! column   a column of one record batch
//! ```
//!
//! As in `parquet`, nothing here panics, and no length allocates more memory than the file's bytes justify.
//!
//! By hand, because a few flat columns are all that is wanted, and Arrow's own crates take longer to build than all of
//! this one.

mod column;
mod flat;
#[cfg(test)]
mod tests;

use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::budget::Budget;
use crate::codec::Spending;
use crate::input::Bytes;
use crate::table::{TableError, Value};
use column::{Batch, Column, Kind};
use flat::Flat;

/// First bytes of a file with one table.
const FRAME: &[u8] = b"ARROW1";
/// First bytes of every message.
const MESSAGE: [u8; 4] = [0xff; 4];
const WHAT: &str = "a message";
/// The kinds of messages.
const SCHEMA: u8 = 1;
const DICTIONARY: u8 = 2;
const ROWS: u8 = 3;

/// Whether a file that starts like this may contain streams.
pub(crate) fn recognises(head: &[u8]) -> bool {
    head.starts_with(&MESSAGE) || head.starts_with(FRAME)
}

/// A table.
#[derive(Debug)]
pub(crate) struct Table {
    file: Bytes,
    /// The name given by its writer.
    pub name: Option<String>,
    columns: Vec<Description>,
    /// Messages with rows: location of their metadata and buffers.
    batches: Vec<Message>,
    dictionaries: FxHashMap<i64, Message>,
    /// What ended the stream early.
    broken: Option<TableError>,
}

/// Description of a column.
#[derive(Clone, Debug)]
struct Description {
    name: String,
    kind: Kind,
    /// If rows contain positions in a dictionary: its number, and the kind of the positions.
    dictionary: Option<(i64, Kind)>,
}

impl Description {
    fn read(field: Flat<'_>) -> Result<Self, TableError> {
        let dictionary = field.table(4).map(|encoding| {
            let positions = encoding.table(1).map_or(Ok(Kind::Int { bytes: 4, signed: true }), Kind::int);
            positions.map(|kind| (encoding.long(0), kind))
        });
        Ok(Description {
            name: String::from_utf8_lossy(field.text(0)).into_owned(),
            kind: Kind::of(field)?,
            dictionary: dictionary.transpose()?,
        })
    }

    /// How it is stored in record batches.
    fn stored(&self) -> Kind {
        self.dictionary.map_or(self.kind, |(_, positions)| positions)
    }
}

#[derive(Clone, Debug)]
struct Message {
    metadata: Range<usize>,
    body: Range<usize>,
}

impl Message {
    /// The message at `at`; `None` at the end of a stream.
    fn read(file: &[u8], at: usize) -> Result<(Option<Self>, usize), TableError> {
        let four = |at: usize| file.get(at..).and_then(|rest| rest.first_chunk::<4>()).copied();
        let first = four(at).ok_or(TableError::Short(WHAT))?;
        // Old writers omitted the mark.
        let mark = if first == MESSAGE { 4 } else { 0 };
        let len = u32::from_le_bytes(four(at + mark).ok_or(TableError::Short(WHAT))?) as usize;
        let start = at + mark + 4;
        if len == 0 {
            return Ok((None, start));
        }
        let metadata = start..start.saturating_add(len);
        let message = file.get(metadata.clone()).ok_or(TableError::Short(WHAT))?;
        let body = Flat::root(message).ok_or(TableError::Wrong(WHAT))?.long(3);
        let body = usize::try_from(body).map_err(|_| TableError::Wrong(WHAT))?;
        let body = metadata.end..metadata.end.checked_add(body).ok_or(TableError::Short(WHAT))?;
        if body.end > file.len() {
            return Err(TableError::Short(WHAT));
        }
        let next = body.end;
        Ok((Some(Message { metadata, body }), next))
    }

    fn root<'f>(&self, file: &'f [u8]) -> Option<Flat<'f>> {
        Flat::root(file.get(self.metadata.clone())?)
    }

    fn batch<'f>(&self, file: &'f [u8]) -> Result<Batch<'f>, TableError> {
        let header = self.root(file).and_then(|message| message.table(2)).ok_or(TableError::Wrong(WHAT))?;
        // A dictionary is a record batch with one column.
        let dictionary = self.root(file).is_some_and(|message| message.byte(1) == DICTIONARY);
        let of = if dictionary { header.table(1) } else { Some(header) };
        let body = file.get(self.body.clone()).unwrap_or_default();
        Ok(Batch { of: of.ok_or(TableError::Wrong(WHAT))?, body })
    }
}

/// All tables of a file, each with its own problems. A broken stream also hides the streams after it.
pub(crate) fn tables(file: &Bytes) -> Vec<Result<Table, TableError>> {
    let framed = file.starts_with(FRAME);
    let mut at = if framed { 8 } else { 0 };
    let mut tables = Vec::new();
    while at < file.len() {
        let (table, next) = Table::read(file, at);
        let ended = next.is_none() || framed;
        tables.push(table);
        at = next.unwrap_or(at);
        if ended {
            break;
        }
    }
    tables
}

impl Table {
    /// The table whose stream starts at `at`, and where the next one starts.
    fn read(file: &Bytes, at: usize) -> (Result<Self, TableError>, Option<usize>) {
        let (first, mut at) = match Message::read(file, at) {
            Ok((Some(message), next)) => (message, next),
            Ok((None, next)) => return (Err(TableError::Short("a stream")), Some(next)),
            Err(error) => return (Err(error), None),
        };
        let mut table = Self::described(file, &first);
        loop {
            let message = match Message::read(file, at) {
                Ok((Some(message), next)) => {
                    at = next;
                    message
                }
                Ok((None, next)) => return (table, Some(next)),
                Err(error) => {
                    let broken = table.map(|table| Table { broken: Some(error), ..table });
                    return (broken, None);
                }
            };
            if let Ok(table) = &mut table {
                table.add(message);
            }
        }
    }

    fn described(file: &Bytes, message: &Message) -> Result<Self, TableError> {
        let root = message.root(file).filter(|root| root.byte(1) == SCHEMA);
        let schema = root.and_then(|root| root.table(2)).ok_or(TableError::Wrong("a schema"))?;
        let mut pairs = schema.tables(2);
        let name = pairs.find(|pair| pair.text(0) == b"table_name").map(|pair| pair.text(1));
        Ok(Table {
            file: file.clone(),
            name: name.map(|name| String::from_utf8_lossy(name).into_owned()),
            columns: schema.tables(1).map(Description::read).collect::<Result<_, _>>()?,
            batches: Vec::new(),
            dictionaries: FxHashMap::default(),
            broken: None,
        })
    }

    fn add(&mut self, message: Message) {
        let Some(root) = message.root(&self.file) else { return };
        match root.byte(1) {
            ROWS => self.batches.push(message),
            DICTIONARY => {
                let id = root.table(2).map_or(0, |header| header.long(0));
                self.dictionaries.insert(id, message);
            }
            _ => {}
        }
    }

    /// The names of the columns.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|column| column.name.as_str())
    }

    /// Calls `each` for every row, with the fields in the order of `columns`; a missing column yields nothing.
    /// Only these columns are read.
    pub fn rows(
        &self,
        columns: &[&str],
        budget: &Budget,
        mut each: impl FnMut(&[Value<'_>]),
    ) -> Result<(), TableError> {
        let spending = Spending::new(budget);
        let wanted: Vec<Option<Wanted>> =
            columns.iter().map(|name| self.wanted(name, &spending).transpose()).collect::<Result<_, _>>()?;
        if wanted.iter().any(Option::is_some) {
            for message in &self.batches {
                self.batch_rows(message, &wanted, &spending, &mut each)?;
            }
        }
        self.broken.map_or(Ok(()), Err)
    }

    fn batch_rows(
        &self,
        message: &Message,
        wanted: &[Option<Wanted>],
        spending: &Spending<'_>,
        each: &mut impl FnMut(&[Value<'_>]),
    ) -> Result<(), TableError> {
        let batch = message.batch(&self.file)?;
        let open = |wanted: &Option<Wanted>| {
            let Some(Wanted { kind, node, first, .. }) = wanted else { return Ok(None) };
            batch.column(*kind, *node, *first, spending).map(Some)
        };
        let columns: Vec<Option<Column>> = wanted.iter().map(open).collect::<Result<_, _>>()?;
        let mut fields = Vec::with_capacity(columns.len());
        for row in 0..batch.rows()? as usize {
            spending.budget.rows(1)?;
            fields.clear();
            for (column, wanted) in columns.iter().zip(wanted) {
                let dictionary = wanted.as_ref().and_then(|wanted| wanted.dictionary.as_ref());
                let value =
                    column.as_ref().map_or(Some(Value::Nothing), |column| field(column, dictionary, row));
                fields.push(value.ok_or(TableError::Short("a column"))?);
            }
            each(&fields);
        }
        Ok(())
    }

    /// Where the column with this name is, with its dictionary, which all record batches share.
    fn wanted<'f>(&'f self, name: &str, spending: &Spending<'_>) -> Option<Result<Wanted<'f>, TableError>> {
        let node = self.columns.iter().position(|column| column.name == name)?;
        let (before, of) = (self.columns.get(..node)?, self.columns.get(node)?);
        let first = before.iter().map(|column| column.stored().buffers()).sum();
        let dictionary = of.dictionary.map(|(id, _)| {
            let message = self.dictionaries.get(&id).ok_or(TableError::Short("a dictionary"))?;
            message.batch(&self.file)?.column(of.kind, 0, 0, spending)
        });
        let kind = of.stored();
        Some(dictionary.transpose().map(|dictionary| Wanted { kind, node, first, dictionary }))
    }
}

/// A column that is read: how it is stored, its position among the columns, that of its first buffer, and the
/// dictionary it refers to.
struct Wanted<'f> {
    kind: Kind,
    node: usize,
    first: usize,
    dictionary: Option<Column<'f>>,
}

/// One field of a record batch.
fn field<'c>(column: &'c Column<'_>, dictionary: Option<&'c Column<'_>>, row: usize) -> Option<Value<'c>> {
    match (column.value(row)?, dictionary) {
        (Value::Int(position), Some(dictionary)) => dictionary.value(usize::try_from(position).ok()?),
        (value, _) => Some(value),
    }
}
