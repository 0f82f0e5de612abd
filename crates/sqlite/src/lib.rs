//! SQLite's memory, counted per thread, so that one query cannot take what another one needs.
//!
//! SQLite itself limits memory per process only. If two people ask at the same time, a greedy query would make an honest
//! one fail. Here SQLite's allocator is wrapped: the bytes of a thread are counted, and an allocation beyond the thread's
//! limit fails. A query opens its connection, runs and closes it on one thread, so that the limit of a thread is the limit
//! of a query. Threads without a limit, such as those that read exports, are only counted.
//!
//! SQLite takes an allocator only before its first use. Everyone who opens a connection calls [`prepare`] first.
#![expect(unsafe_code, reason = "SQLite takes an allocator as C functions")]

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::sync::OnceLock;

use rusqlite::ffi::{
    SQLITE_CONFIG_GETMALLOC, SQLITE_CONFIG_MALLOC, SQLITE_OK, sqlite3_config, sqlite3_mem_methods,
};

/// What a thread holds, and the most that it may hold, in bytes. Memory that another thread allocated may be freed here,
/// so that the first can be negative.
#[derive(Copy, Clone)]
struct Account {
    held: i64,
    most: i64,
}

const UNLIMITED: Account = Account { held: 0, most: i64::MAX };

thread_local! {
    static ACCOUNT: Cell<Account> = const { Cell::new(UNLIMITED) };
}

/// SQLite's own functions.
#[derive(Copy, Clone)]
struct Inner {
    malloc: unsafe extern "C" fn(c_int) -> *mut c_void,
    free: unsafe extern "C" fn(*mut c_void),
    realloc: unsafe extern "C" fn(*mut c_void, c_int) -> *mut c_void,
    size: unsafe extern "C" fn(*mut c_void) -> c_int,
}

/// `None` if SQLite was in use before it could be told.
static INNER: OnceLock<Option<Inner>> = OnceLock::new();

/// Makes SQLite count its memory. Returns whether it does: if somebody used SQLite before the first call, it does not.
pub fn prepare() -> bool {
    INNER.get_or_init(install).is_some()
}

/// A limit for this thread, until it is dropped.
#[derive(Debug)]
pub struct MemoryLimit {
    before: (i64, i64),
}

impl MemoryLimit {
    /// Lets this thread hold this many bytes more than it does. A limit inside another one counts for itself: a thread that
    /// waits for a part of one query may run another one meanwhile.
    pub fn of(bytes: u64) -> Self {
        let before = ACCOUNT.get();
        ACCOUNT.set(Account { held: 0, most: i64::try_from(bytes).unwrap_or(i64::MAX) });
        MemoryLimit { before: (before.held, before.most) }
    }
}

impl Drop for MemoryLimit {
    fn drop(&mut self) {
        let (held, most) = self.before;
        ACCOUNT.set(Account { held: held.saturating_add(ACCOUNT.get().held), most });
    }
}

fn install() -> Option<Inner> {
    let mut methods = sqlite3_mem_methods {
        xMalloc: None,
        xFree: None,
        xRealloc: None,
        xSize: None,
        xRoundup: None,
        xInit: None,
        xShutdown: None,
        pAppData: std::ptr::null_mut(),
    };
    let methods_at = std::ptr::from_mut(&mut methods);
    // SAFETY: both options take a pointer to this structure and copy it from or to SQLite's own. SQLite refuses the second
    // if it is in use.
    if unsafe { sqlite3_config(SQLITE_CONFIG_GETMALLOC, methods_at) } != SQLITE_OK {
        return None;
    }
    let inner = Inner {
        malloc: methods.xMalloc?,
        free: methods.xFree?,
        realloc: methods.xRealloc?,
        size: methods.xSize?,
    };
    methods.xMalloc = Some(malloc);
    methods.xFree = Some(free);
    methods.xRealloc = Some(realloc);
    let methods_at = std::ptr::from_mut(&mut methods);
    // SAFETY: as above; the functions have the types that SQLite expects.
    (unsafe { sqlite3_config(SQLITE_CONFIG_MALLOC, methods_at) } == SQLITE_OK).then_some(inner)
}

/// SQLite calls the functions below only once [`install`] has returned; no connection is open before.
fn inner() -> Option<Inner> {
    INNER.get().copied().flatten()
}

/// Whether this thread may hold this many bytes more.
fn may_hold(more: i64) -> bool {
    let account = ACCOUNT.get();
    account.held.saturating_add(more) <= account.most
}

fn count(more: i64) {
    let account = ACCOUNT.get();
    ACCOUNT.set(Account { held: account.held.saturating_add(more), ..account });
}

unsafe extern "C" fn malloc(bytes: c_int) -> *mut c_void {
    let Some(inner) = inner().filter(|_| may_hold(bytes.into())) else { return std::ptr::null_mut() };
    // SAFETY: the arguments are SQLite's own, and so are the functions.
    unsafe {
        let at = (inner.malloc)(bytes);
        if !at.is_null() {
            count((inner.size)(at).into());
        }
        at
    }
}

unsafe extern "C" fn free(at: *mut c_void) {
    let Some(inner) = inner() else { return };
    // SAFETY: as above; SQLite frees only what it allocated with these functions.
    unsafe {
        count(-i64::from((inner.size)(at)));
        (inner.free)(at);
    }
}

unsafe extern "C" fn realloc(at: *mut c_void, bytes: c_int) -> *mut c_void {
    let Some(inner) = inner() else { return std::ptr::null_mut() };
    // SAFETY: as above.
    unsafe {
        let before = i64::from((inner.size)(at));
        if !may_hold(i64::from(bytes) - before) {
            return std::ptr::null_mut();
        }
        let moved = (inner.realloc)(at, bytes);
        if !moved.is_null() {
            count(i64::from((inner.size)(moved)) - before);
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_inside_another_one_counts_for_itself() {
        let outer = MemoryLimit::of(100);
        count(80);
        assert!(may_hold(20) && !may_hold(21));
        let inner = MemoryLimit::of(50);
        assert!(may_hold(50) && !may_hold(51));
        count(10);
        drop(inner);
        assert!(may_hold(10) && !may_hold(11), "what the inner one left behind is still held");
        drop(outer);
        assert!(may_hold(i64::MAX >> 1));
    }
}
