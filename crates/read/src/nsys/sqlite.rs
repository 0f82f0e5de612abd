//! The export as an SQLite database, opened without writing anything next to the user's file.

use std::path::Path;

use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, MAIN_DB, OpenFlags};
use rustc_hash::FxHashMap;

use crate::map::Pinned;
use crate::{Bytes, Input, ReadError};

/// Databases up to this size are copied into memory; larger ones are read in place.
const COPY_BELOW: usize = 4 << 20;
/// How much of a database SQLite reads from the map without a copy; the rest is copied page by page.
const IN_PLACE: i64 = 4 << 30;
/// Maximum length of a text or blob field; exports contain nothing near it.
const LONGEST_FIELD: usize = 16 << 20;
/// The same for small files, in which no text can be longer than the file.
const SHORTEST_LIMIT: usize = 64 << 10;
/// Instructions of SQLite's machine between two looks at the budget.
const INSTRUCTIONS: u16 = 1_000;
/// The first bytes of every SQLite database.
pub(super) const MAGIC: &[u8] = b"SQLite format 3\0";
/// Position of the two versions in the header, and their value if the database has a write-ahead log.
const VERSIONS: std::ops::Range<usize> = 18..20;
const WITH_LOG: [u8; 2] = [2, 2];

/// An open database, with the bytes that it reads in place.
pub(super) type Opened = Pinned<Connection>;

/// Opens a file, or bytes that were never in one, and returns the number of missing pages.
///
/// Large files are read from the map: SQLite's own map would have no guard against a file that shrinks.
pub(super) fn open(input: &Input) -> Result<(Opened, u64), ReadError> {
    // SQLite takes its allocator before the first connection, which may be this one.
    stepscope_sqlite::prepare();
    let (raw, nothing) = (input.raw(), Bytes::fixed(&[]));
    let large = !input.is_compressed() && raw.len() >= COPY_BELOW && Pages::of(raw).missing() == 0;
    let opened = if large && raw.get(VERSIONS) != Some(&WITH_LOG) {
        Pinned::over(raw.clone(), |bytes| open_over(bytes, input)).map(|connection| (connection, 0))
    } else if large && input.path().is_file() {
        Pinned::over(nothing, |_| open_in_place(input)).map(|connection| (connection, 0))
    } else {
        let mut missing = 0;
        let copied = Pinned::over(nothing, |_| open_copy(input, &mut missing));
        copied.map(|connection| (connection, missing))
    };
    opened.map_err(|error| damaged(input, &error))
}

/// The columns of each table.
pub(super) fn tables(
    connection: &Connection,
    input: &Input,
) -> Result<FxHashMap<String, Vec<String>>, ReadError> {
    tables_of(connection).map_err(|error| damaged(input, &error))
}

fn damaged(input: &Input, error: &rusqlite::Error) -> ReadError {
    ReadError::Damaged { path: input.path().to_owned(), what: said(error), offset: 0 }
}

/// Opens bytes that outlive the connection.
fn open_over(bytes: &'static [u8], input: &Input) -> rusqlite::Result<Connection> {
    let mut connection = Connection::open_in_memory()?;
    connection.deserialize_bytes(MAIN_DB, bytes)?;
    prepare(&mut connection, input, bytes.len())?;
    connection.pragma_update(None, "mmap_size", IN_PLACE)?;
    Ok(connection)
}

/// `immutable` promises SQLite that the file does not change, so that it takes no lock and creates no journal. Pages are
/// read one by one: a file that shrinks is an error.
fn open_in_place(input: &Input) -> rusqlite::Result<Connection> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(address(input.path()), flags)?;
    prepare(&mut connection, input, input.raw().len())?;
    Ok(connection)
}

/// A path as a `file:` URI: special characters are escaped.
fn address(path: &Path) -> String {
    let full = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut address = String::from("file:");
    for byte in full.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => {
                address.push(char::from(*byte));
            }
            b'\\' => address.push('/'),
            other => address.push_str(&format!("%{other:02X}")),
        }
    }
    address + "?mode=ro&immutable=1"
}

/// The number of pages in the file, and the number stated in its header.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
struct Pages {
    size: u64,
    there: u64,
    stated: u64,
}

impl Pages {
    fn of(file: &[u8]) -> Self {
        let size = match file.get(16..18) {
            Some(&[0, 1]) => 65_536,
            Some(&[high, low]) => u64::from(u16::from_be_bytes([high, low])),
            _ => 0,
        };
        let stated = file.get(28..32).and_then(|count| count.first_chunk::<4>());
        let stated = stated.map_or(0, |&count| u64::from(u32::from_be_bytes(count)));
        Pages { size, there: (file.len() as u64).checked_div(size).unwrap_or(0), stated }
    }

    fn missing(self) -> u64 {
        self.stated.saturating_sub(self.there)
    }
}

/// Makes a truncated file readable for SQLite, and returns the number of missing pages. SQLite refuses a file
/// with fewer pages than its header states, and one whose tables start beyond its end. Empty pages replace the
/// missing ones, so that only reading one of them fails.
fn fill_up(copy: &mut Vec<u8>) -> u64 {
    /// A header that states more than this many times the actual pages is not trusted.
    const BELIEVED: u64 = 4;
    let pages = Pages::of(copy);
    if pages.missing() > 0 && pages.stated <= pages.there.saturating_mul(BELIEVED) {
        copy.resize(usize::try_from(pages.stated * pages.size).unwrap_or(copy.len()), 0);
    }
    pages.missing()
}

fn open_copy(input: &Input, missing: &mut u64) -> rusqlite::Result<Connection> {
    let (bytes, _) = input.inflated();
    let mut copy = bytes.to_vec();
    *missing = fill_up(&mut copy);
    // A database in memory cannot have a write-ahead log; the file's own pages are read as they are.
    if let Some(versions) = copy.get_mut(VERSIONS)
        && *versions == WITH_LOG
    {
        versions.fill(1);
    }
    let mut connection = Connection::open_in_memory()?;
    connection.deserialize_read_exact(MAIN_DB, copy.as_slice(), copy.len(), true)?;
    prepare(&mut connection, input, copy.len())?;
    Ok(connection)
}

/// Files come from anywhere: nothing in a schema may run, pages are checked before use, and pages that refer to each other
/// in circles end with the budget.
fn prepare(connection: &mut Connection, input: &Input, size: usize) -> rusqlite::Result<()> {
    let longest = size.clamp(SHORTEST_LIMIT, LONGEST_FIELD);
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, i32::try_from(longest).unwrap_or(i32::MAX))?;
    let (budget, mut done) = (input.budget().clone(), 0_u64);
    let look = move || {
        done += u64::from(INSTRUCTIONS);
        budget.instructions(done).is_err()
    };
    connection.progress_handler(i32::from(INSTRUCTIONS), Some(look))?;
    connection.execute_batch("PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON; PRAGMA query_only=ON;")
}

fn tables_of(connection: &Connection) -> rusqlite::Result<FxHashMap<String, Vec<String>>> {
    let mut statement = connection
        .prepare("SELECT name FROM sqlite_master WHERE type='table' AND sql NOT LIKE 'CREATE VIRTUAL%'")?;
    let mut names = Vec::new();
    let mut rows = statement.query(())?;
    while let Some(row) = rows.next()? {
        if let ValueRef::Text(name) = row.get_ref(0)? {
            names.push(String::from_utf8_lossy(name).into_owned());
        }
    }
    names.into_iter().map(|name| Ok((name.clone(), columns_of(connection, &name)?))).collect()
}

fn columns_of(connection: &Connection, table: &str) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare(&format!("PRAGMA table_info({})", quoted(table)))?;
    let mut rows = statement.query(())?;
    let mut columns = Vec::new();
    while let Some(row) = rows.next()? {
        if let ValueRef::Text(name) = row.get_ref(1)? {
            columns.push(String::from_utf8_lossy(name).into_owned());
        }
    }
    Ok(columns)
}

/// A name quoted for SQL.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// SQLite's own error message.
pub(super) fn said(error: &rusqlite::Error) -> String {
    match error {
        rusqlite::Error::SqliteFailure(code, None) => code.to_string(),
        rusqlite::Error::SqliteFailure(_, Some(text)) => text.clone(),
        other => other.to_string(),
    }
}
