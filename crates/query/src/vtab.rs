//! The border to SQLite's virtual tables, and the only file here that is `unsafe`.
//!
//! SQLite allocates nothing for a virtual table: it gets a pointer to a C structure, `sqlite3_vtab` for a table and
//! `sqlite3_vtab_cursor` for a walk over its rows, and hands it back with every call. rusqlite casts that pointer to our
//! type. This is sound if, and only if, our types are `#[repr(C)]` and begin with that structure. Rust cannot check this,
//! therefore rusqlite's traits are `unsafe` to implement. The two types below keep the promise for all tables: what a
//! table is ([`Source`]) and how it is walked ([`Walk`]) is safe code behind them.

#![allow(unsafe_code)]

use std::borrow::Cow;
use std::ffi::{CStr, CString, c_int};
use std::sync::Arc;

use rusqlite::vtab::{
    Context, Filters, IndexInfo, Module, VTab, VTabConfig, VTabConnection, VTabCursor, sqlite3_vtab,
    sqlite3_vtab_cursor,
};
use rusqlite::{Connection, Error, Result};

/// A table.
pub(crate) trait Source: Send + Sync + 'static {
    /// How its rows are walked.
    type Walk: Walk;

    /// Its columns, as `CREATE TABLE x(…)`.
    fn declaration(&self) -> String;

    /// How rows that a query wants are found, and what that costs.
    fn plan(&self, info: &mut IndexInfo) -> Result<()>;

    /// A walk over its rows, which starts with [`Walk::filter`].
    fn walk(&self) -> Self::Walk;
}

/// A walk over the rows of a table.
pub(crate) trait Walk {
    /// Starts with the first row that fits what was planned.
    fn filter(&mut self, plan: &str, values: &Filters<'_>) -> Result<()>;

    /// Goes to the next row.
    fn next(&mut self);

    /// Whether there is no row.
    fn eof(&self) -> bool;

    /// Hands over a value of the row.
    fn column(&self, to: &mut Context, column: usize) -> Result<()>;

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
}

/// Makes a table known to a connection.
pub(crate) fn register<S: Source>(connection: &Connection, name: &str, source: S) -> Result<()> {
    let module = const { &Module::<Table<S>>::eponymous_only_module() };
    connection.create_module(name, module, Some(Arc::new(source)))
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
        Ok(Cursor { base: sqlite3_vtab_cursor::default(), walk: self.source.walk() })
    }
}

// SAFETY: `Cursor` is `repr(C)` and begins with `sqlite3_vtab_cursor`.
unsafe impl<W: Walk> VTabCursor for Cursor<W> {
    fn filter(&mut self, _idx_num: c_int, idx_str: Option<&str>, args: &Filters<'_>) -> Result<()> {
        self.walk.filter(idx_str.unwrap_or_default(), args)
    }

    fn next(&mut self) -> Result<()> {
        self.walk.next();
        Ok(())
    }

    fn eof(&self) -> bool {
        self.walk.eof()
    }

    fn column(&self, ctx: &mut Context, i: c_int) -> Result<()> {
        self.walk.column(ctx, usize::try_from(i).unwrap_or(usize::MAX))
    }

    fn rowid(&self) -> Result<i64> {
        Ok(self.walk.rowid())
    }
}
