//! What one file may cost: bytes once inflated, rows, and time. Related to the size of the file, with a generous
//! floor, so that a few kilobytes cannot claim gigabytes of content and real profiles never meet a limit.
//!
//! Readers ask before they go on. The first limit that is met stays in the budget; [`crate::open_input`] turns
//! it into a note, so that no reader has to report it. Stopping a reading ([`crate::Progress::stop`]) uses up its
//! time, so that tables and streams end too, which count no progress of their own.

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::progress::StopFlag;

/// Inflated bytes per byte of the file. Real traces reach 20 to 40.
const RATIO: u64 = 64;
/// Inflated bytes that every file may have, however small it is.
const FLOOR: u64 = 256 << 20;
/// Inflated bytes per row: a row with its times, its name and its arguments takes about this much once it is read.
const BYTES_PER_ROW: u64 = 64;
/// A single value, such as a text or one event with its arguments, may take one part in this many of the bytes.
const SHARE_OF_A_VALUE: u64 = 4;
/// Time that every file may take, and the inflated bytes per second that are expected beyond that: a tenth of what a
/// slow machine reaches.
const PATIENCE: Duration = Duration::from_secs(30);
const BYTES_PER_SECOND: u64 = 16 << 20;

/// The bytes that the user allows per file; 0 means that the size of the file decides.
static ALLOWED: AtomicU64 = AtomicU64::new(0);

/// Lets every file that is opened from now on inflate to this many bytes, whatever its size. Rows and time follow.
///
/// A setting of the process, as the number of threads is: it comes from the command line, and files are opened in many
/// places.
pub fn allow_inflated_bytes(bytes: u64) {
    ALLOWED.store(bytes, Ordering::Relaxed);
}

/// What a limit counts.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Bytes, once inflated.
    Bytes,
    /// Bytes of a single value.
    Value,
    /// Rows of tables.
    Rows,
    /// Events.
    Events,
    /// Seconds.
    Time,
}

impl Limit {
    /// What it counts, in words.
    pub fn counts(self) -> &'static str {
        match self {
            Limit::Bytes => "inflated bytes",
            Limit::Value => "bytes of a single value",
            Limit::Rows => "rows",
            Limit::Events => "events",
            Limit::Time => "seconds",
        }
    }
}

/// A limit that was met, and its value.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("reading stopped after {at} {}, the limit for this file", limit.counts())]
pub struct OverBudget {
    /// The limit.
    pub limit: Limit,
    /// Its value.
    pub at: u64,
}

impl From<OverBudget> for io::Error {
    fn from(over: OverBudget) -> Self {
        io::Error::other(over)
    }
}

/// The budget of one file, or of all files of a folder that is one profile.
#[derive(Debug)]
pub struct Budget {
    bytes: u64,
    /// Events that a file may have however short they are.
    few_events: u64,
    /// Rows read so far.
    rows: AtomicU64,
    /// Set by the first question.
    began: OnceLock<Instant>,
    met: OnceLock<OverBudget>,
    /// Set once reading is cancelled.
    stop: OnceLock<StopFlag>,
}

impl Budget {
    /// The budget of a file of `size` bytes.
    pub fn of(size: u64) -> Self {
        match ALLOWED.load(Ordering::Relaxed) {
            0 => {
                let few_events = FLOOR / BYTES_PER_ROW;
                Budget { few_events, ..Self::new(size.saturating_mul(RATIO).max(FLOOR)) }
            }
            allowed => Self::new(allowed),
        }
    }

    /// The limit that a file of this size is above, if the user set one: even without compression it cannot be read.
    pub(crate) fn refuses(size: u64) -> Option<OverBudget> {
        let allowed = ALLOWED.load(Ordering::Relaxed);
        (allowed > 0 && size > allowed).then_some(OverBudget { limit: Limit::Bytes, at: allowed })
    }

    /// A budget for a number of inflated bytes.
    pub fn new(bytes: u64) -> Self {
        let few_events = bytes / BYTES_PER_ROW;
        Budget {
            bytes,
            few_events,
            rows: AtomicU64::new(0),
            began: OnceLock::new(),
            met: OnceLock::new(),
            stop: OnceLock::new(),
        }
    }

    /// Ends with this flag. A file is read once per budget, so that the first reading decides.
    pub(crate) fn stops_with(&self, flag: StopFlag) {
        self.stop.get_or_init(|| flag);
    }

    /// Inflated bytes that may be held at a time.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Largest single value in bytes.
    pub(crate) fn value_bytes(&self) -> u64 {
        (self.bytes / SHARE_OF_A_VALUE).max(1)
    }

    fn most_rows(&self) -> u64 {
        (self.bytes / BYTES_PER_ROW).max(1)
    }

    fn most_seconds(&self) -> u64 {
        PATIENCE.as_secs() + self.bytes / BYTES_PER_SECOND
    }

    /// The first limit that was met.
    pub fn met(&self) -> Option<OverBudget> {
        self.met.get().copied()
    }

    fn over(&self, limit: Limit, at: u64) -> OverBudget {
        *self.met.get_or_init(|| OverBudget { limit, at })
    }

    /// Whether one stream may have inflated to `so_far` bytes.
    pub(crate) fn inflated(&self, so_far: u64) -> Result<(), OverBudget> {
        if so_far > self.bytes {
            return Err(self.over(Limit::Bytes, self.bytes));
        }
        self.in_time()
    }

    /// Whether a single value may have this many bytes.
    pub(crate) fn value(&self, bytes: u64) -> Result<(), OverBudget> {
        let most = self.value_bytes();
        if bytes > most { Err(self.over(Limit::Value, most)) } else { Ok(()) }
    }

    /// Counts rows of all tables of the file.
    #[inline]
    pub(crate) fn rows(&self, more: u64) -> Result<(), OverBudget> {
        /// The clock is read once per this many rows.
        const ROWS_PER_LOOK: u64 = 4_096;
        let before = self.rows.fetch_add(more, Ordering::Relaxed);
        let now = before.saturating_add(more);
        if now > self.most_rows() {
            return Err(self.over(Limit::Rows, self.most_rows()));
        }
        if before / ROWS_PER_LOOK == now / ROWS_PER_LOOK { Ok(()) } else { self.in_time() }
    }

    /// How many events a file of this size may have. An event without content takes two bytes in a file, and twenty
    /// in memory; real ones take more than ten.
    pub(crate) fn most_events(&self, file_bytes: usize) -> usize {
        const BYTES_PER_EVENT: usize = 8;
        (file_bytes / BYTES_PER_EVENT).max(usize::try_from(self.few_events).unwrap_or(usize::MAX))
    }

    /// More events than a file may have.
    pub(crate) fn over_events(&self, most: usize) {
        self.over(Limit::Events, most as u64);
    }

    /// Whether a database may run this many instructions over all its queries: 64 per row.
    pub(crate) fn instructions(&self, so_far: u64) -> Result<(), OverBudget> {
        if so_far > self.bytes {
            return Err(self.over(Limit::Rows, self.most_rows()));
        }
        self.in_time()
    }

    /// Whether there is time left, and somebody who waits.
    pub(crate) fn in_time(&self) -> Result<(), OverBudget> {
        if self.stop.get().is_some_and(StopFlag::is_set) {
            return Err(self.over(Limit::Time, 0));
        }
        let began = self.began.get_or_init(Instant::now);
        if began.elapsed().as_secs() > self.most_seconds() {
            return Err(self.over(Limit::Time, self.most_seconds()));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_files_get_the_floor_and_large_ones_a_multiple_of_their_size() {
        assert_eq!(Budget::of(20 << 10).bytes(), FLOOR);
        assert_eq!(Budget::of(300 << 20).bytes(), 64 * (300 << 20), "far above honest compression");
        assert_eq!(Budget::of(u64::MAX).bytes(), u64::MAX);
    }

    #[test]
    fn a_stopped_reading_has_no_time_left() {
        let (budget, progress) = (Budget::new(6_400), crate::Progress::new());
        budget.stops_with(progress.stop_flag());
        assert!(budget.inflated(1).is_ok() && budget.instructions(1).is_ok());
        progress.stop();
        assert!(budget.inflated(1).is_err() && budget.instructions(1).is_err());
    }

    #[test]
    fn the_first_limit_that_is_met_is_kept() {
        let budget = Budget::new(6_400);
        assert!(budget.inflated(6_400).is_ok() && budget.rows(100).is_ok() && budget.value(1_600).is_ok());
        assert_eq!(budget.met(), None);
        let rows = OverBudget { limit: Limit::Rows, at: 100 };
        assert_eq!(budget.rows(1), Err(rows));
        assert!(budget.inflated(6_401).is_err() && budget.value(1_601).is_err());
        assert_eq!(budget.met(), Some(rows));
        assert_eq!(rows.to_string(), "reading stopped after 100 rows, the limit for this file");
    }
}
