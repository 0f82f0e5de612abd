//! The border to SQLite's virtual tables, and the only file here that is `unsafe`.
//!
//! SQLite allocates nothing for a virtual table: it gets a pointer to a C structure, `sqlite3_vtab` for a table and
//! `sqlite3_vtab_cursor` for a walk over its rows, and hands it back with every call. rusqlite casts that pointer to our
//! type. This is sound if, and only if, our types are `#[repr(C)]` and begin with that structure. Rust cannot check this,
//! therefore rusqlite's traits are `unsafe` to implement. The two types below keep the promise for all tables: what a
//! table is ([`Source`]) and how it is walked ([`Walk`]) is safe code behind them.
//!
//! rusqlite copies every text that a table hands over. A name of an event is handed over millions of times and lives as
//! long as the recording, so the function that hands over values is our own: text that is borrowed from the recording
//! stays where it is.

#![allow(unsafe_code)]

use std::borrow::Cow;
use std::ffi::{CStr, CString, c_int};
use std::sync::Arc;

use rusqlite::ffi::{self, sqlite3_context, sqlite3_module};
use rusqlite::vtab::{
    Context, Filters, IndexInfo, Module, VTab, VTabConfig, VTabConnection, VTabCursor, sqlite3_vtab,
    sqlite3_vtab_cursor,
};
use rusqlite::{Connection, Error, Result};

use crate::cell::Cell;
use crate::running::RunningQuery;

/// A table.
pub(crate) trait Source: Send + Sync + 'static {
    /// How its rows are walked.
    type Walk: Walk;

    /// Its columns, as `CREATE TABLE x(…)`.
    fn declaration(&self) -> String;

    /// How rows that a query wants are found, and what that costs.
    fn plan(&self, info: &mut IndexInfo) -> Result<()>;

    /// The query that asks.
    fn query(&self) -> &Arc<RunningQuery>;

    /// A walk over its rows, which starts with [`Walk::filter`].
    fn walk(&self) -> Self::Walk;
}

/// A walk over the rows of a table.
pub(crate) trait Walk {
    /// Starts with the first row that fits what was planned.
    fn filter(&mut self, plan: &str, values: &Filters<'_>) -> Result<()>;

    /// Goes to the next row.
    fn next(&mut self) -> Result<()>;

    /// Whether there is no row.
    fn eof(&self) -> bool;

    /// A value of the row. Its text is borrowed from the recording, never from the walk, or it is owned.
    fn cell<'w>(&self, query: &'w RunningQuery, column: usize) -> Result<Cell<'w>>;

    /// The number of the row.
    fn rowid(&self) -> i64;
}

/// A table as SQLite sees it.
#[repr(C)]
struct Table<S: Source> {
    base: sqlite3_vtab,
    source: Arc<S>,
}

/// A walk as SQLite sees it.
#[repr(C)]
struct Cursor<W: Walk> {
    base: sqlite3_vtab_cursor,
    walk: W,
    query: Arc<RunningQuery>,
}

/// Makes a table known to a connection.
pub(crate) fn register<S: Source>(connection: &Connection, name: &str, source: S) -> Result<()> {
    connection.create_module(name, const { &module::<S>() }, Some(Arc::new(source)))
}

/// rusqlite's functions, but for the one that hands over values.
const fn module<S: Source>() -> Module<'static, Table<S>> {
    let module = Module::<Table<S>>::eponymous_only_module();
    // SAFETY: `Module` is a transparent wrapper of `sqlite3_module`.
    let mut functions = unsafe { std::mem::transmute::<Module<'static, Table<S>>, sqlite3_module>(module) };
    functions.xColumn = Some(column::<S::Walk>);
    // SAFETY: as above; `column` expects the cursor that `Table::open` makes.
    unsafe { std::mem::transmute::<sqlite3_module, Module<'static, Table<S>>>(functions) }
}

/// SQLite's call for a value of the row at which a walk is.
unsafe extern "C" fn column<W: Walk>(
    cursor: *mut sqlite3_vtab_cursor,
    to: *mut sqlite3_context,
    column: c_int,
) -> c_int {
    // SAFETY: SQLite passes a cursor that `Table::open` made and that it has not closed. It is a `Cursor<W>`.
    let cursor = unsafe { &*cursor.cast::<Cursor<W>>() };
    match cursor.walk.cell(&cursor.query, usize::try_from(column).unwrap_or(usize::MAX)) {
        Ok(cell) => {
            // SAFETY: `to` is valid during this call. Text that the cell borrows belongs to the recording: the lifetime
            // of `query` says so. The module holds the recording for as long as the connection exists, and what a
            // recording has said once neither moves nor changes.
            unsafe { give(to, cell) };
            ffi::SQLITE_OK
        }
        Err(Error::SqliteFailure(error, _)) => error.extended_code,
        Err(_) => ffi::SQLITE_ERROR,
    }
}

/// Hands a value to SQLite.
///
/// # Safety
///
/// `to` must be valid, and borrowed text must live as long as the connection.
unsafe fn give(to: *mut sqlite3_context, cell: Cell<'_>) {
    // SAFETY: the caller promises it; SQLite copies what is `SQLITE_TRANSIENT` before the call returns.
    unsafe {
        match cell {
            Cell::Null => ffi::sqlite3_result_null(to),
            Cell::Int(value) => ffi::sqlite3_result_int64(to, value),
            Cell::Real(value) => ffi::sqlite3_result_double(to, value),
            Cell::Text(text) => {
                let kept = match &text {
                    Cow::Borrowed(_) => ffi::SQLITE_STATIC(),
                    Cow::Owned(_) => ffi::SQLITE_TRANSIENT(),
                };
                let (bytes, len) = (text.as_ptr().cast(), text.len() as u64);
                ffi::sqlite3_result_text64(to, bytes, len, kept, ffi::SQLITE_UTF8 as u8);
            }
        }
    }
}

// SAFETY: `Table` is `repr(C)` and begins with `sqlite3_vtab`.
unsafe impl<S: Source> VTab<'_> for Table<S> {
    type Aux = Arc<S>;
    type Cursor = Cursor<S::Walk>;

    fn connect(
        db: &mut VTabConnection,
        aux: Option<&Self::Aux>,
        _module_name: &[u8],
        _database_name: &[u8],
        _table_name: &[u8],
        _args: &[&[u8]],
    ) -> Result<(Cow<'static, CStr>, Self)> {
        let source = aux.cloned().ok_or_else(|| Error::ModuleError("the table has no source".to_owned()))?;
        // Views may read it: it changes nothing.
        db.config(VTabConfig::Innocuous)?;
        let declaration = CString::new(source.declaration())?;
        Ok((Cow::Owned(declaration), Table { base: sqlite3_vtab::default(), source }))
    }

    fn best_index(&self, info: &mut IndexInfo) -> Result<bool> {
        self.source.plan(info).map(|()| true)
    }

    fn open(&mut self) -> Result<Self::Cursor> {
        let (walk, query) = (self.source.walk(), self.source.query().clone());
        Ok(Cursor { base: sqlite3_vtab_cursor::default(), walk, query })
    }
}

// SAFETY: `Cursor` is `repr(C)` and begins with `sqlite3_vtab_cursor`.
unsafe impl<W: Walk> VTabCursor for Cursor<W> {
    fn filter(&mut self, _idx_num: c_int, idx_str: Option<&str>, args: &Filters<'_>) -> Result<()> {
        self.walk.filter(idx_str.unwrap_or_default(), args)
    }

    fn next(&mut self) -> Result<()> {
        self.walk.next()
    }

    fn eof(&self) -> bool {
        self.walk.eof()
    }

    /// Never called: `module` has put `column` into its place.
    fn column(&self, _: &mut Context, _: c_int) -> Result<()> {
        Ok(())
    }

    fn rowid(&self) -> Result<i64> {
        Ok(self.walk.rowid())
    }
}
