//! Nsight Systems: the export of a report as an SQLite database (`nsys export --type sqlite`), as a folder with
//! one file per table (`parquetdir`, `arrowdir`) or as one file of Arrow streams (`arrow`), schemas 3.1 to
//! 3.25; and the report itself, if NVIDIA's tool is available to export it.
//!
//! ```text
//! database     the tables and columns that exist, row by row
//! sqlite       … from a database
//! files        … from Parquet and Arrow
//! names        numbers → strings; kinds of copies and waits → words
//! places       process, thread, device, stream → tracks
//! device_work  kernels, copies, fills, whole graphs
//! waits        of the host for a device, of one stream for another
//! host         calls, libraries, system calls, overhead, samples
//! nvtx         ranges and marks
//! payload      data that NCCL and others attach to a range
//! counters     sampled metrics, allocated memory, page faults
//! session      versions, options, messages, the wall clock; never the environment
//! devices      what the GPUs are
//! report       .nsys-rep → export in stepscope's cache
//! ```
//!
//! Names and arguments are spelt as in Kineto, so that everything that works for Kineto's traces also works
//! here.

mod counters;
pub(crate) mod database;
mod device_work;
mod devices;
mod files;
mod host;
mod names;
mod nvtx;
mod original;
mod payload;
mod places;
mod report;
mod session;
mod sqlite;
mod waits;

use stepscope_trace::{
    Datum, Delivers, Dur, Form, Format, Kind, KindId, NoteKind, StrId, Time, Trace, TraceBuilder, TrackId,
};

use crate::{Input, Progress, ReadError, Reader, Recorded};
use database::{Database, Outcome};
pub(crate) use files::is_other_export;
use names::Names;
pub use original::{ExportTables, ExportValue};
use places::Places;
pub use report::NsysReportReader;

/// Exports of Nsight Systems.
pub(crate) static FORMAT: Format = Format {
    endings: &[".sqlite", ".arrows", "_pqtdir", "_arwdir"],
    several_forms: true,
    // Nsight Systems numbers its runs: report1, report2.
    numbered: &["report"],
    ..Format::new("nsys", "nsys", Delivers::Timeline)
};

/// Reads exports of Nsight Systems.
#[derive(Debug)]
pub struct NsysReader;

/// Tables that no other database has. Exports write them first, so the head of the file shows them.
const SIGNS: [&[u8]; 5] = [
    b"TABLE StringIds",
    b"TABLE ENUM_NSYS",
    b"TABLE CUPTI_ACTIVITY",
    b"TABLE TARGET_INFO_",
    b"TABLE NVTX_EVENTS",
];

impl Reader for NsysReader {
    fn format(&self) -> &'static Format {
        &FORMAT
    }

    fn recognises(&self, head: &[u8]) -> bool {
        let shows = |sign: &[u8]| memchr::memmem::find(head, sign).is_some();
        // nvprof's databases have tables of the same names, but another table of strings.
        let database = head.starts_with(sqlite::MAGIC)
            && SIGNS.iter().any(|sign| shows(sign))
            && !shows(b"TABLE StringTable");
        database || files::recognises(head)
    }

    fn recorded(&self, input: &Input) -> Option<Recorded> {
        let (start_ns, length, _) = session::clock(&Database::open(input).ok()?);
        let start_ns = start_ns?;
        Some(Recorded { start_ns, end_ns: length.and_then(|length| start_ns.checked_add(length)) })
    }

    fn read(&self, input: &Input, progress: &Progress) -> Result<Trace, ReadError> {
        progress.expect(input.size());
        let database = Database::open(input)?;
        if !is_export(&database) && database.unreadable.is_empty() {
            return Err(ReadError::Foreign { path: input.path().to_owned(), found: found(&database) });
        }
        let mut import = Import::new(&database);
        import.run();
        if input.path().is_file() {
            import.note_unfinished(input);
        }
        let trace = import.builder.finish();
        progress.advance(input.size(), trace.events());
        Ok(trace)
    }
}

/// The reader for a database that is not recognised at once: it may still be an export, and if not, the reader
/// reports what was found instead.
pub(crate) fn for_any_database(input: &Input) -> Option<&'static dyn Reader> {
    input.head().starts_with(sqlite::MAGIC).then_some(&NsysReader)
}

/// Whether any table is specific to Nsight Systems.
fn is_export(database: &Database) -> bool {
    database.tables().into_iter().any(is_telling)
}

/// Prefixes of table names that no other tool uses.
const TELLING: [&str; 5] =
    ["StringIds", "CUPTI_ACTIVITY_KIND", "TARGET_INFO_", "NVTX_EVENTS", "META_DATA_EXPORT"];

/// Whether no other tool uses a table with this name.
pub(crate) fn is_telling(table: &str) -> bool {
    TELLING.iter().any(|start| table.starts_with(start))
}

/// Describes a foreign database for the message.
fn found(database: &Database) -> String {
    const SHOWN: usize = 5;
    let tables = database.tables();
    match tables.len() {
        0 => "an SQLite database without tables".to_owned(),
        count => {
            let more = if count > SHOWN { ", …" } else { "" };
            let first = tables.into_iter().take(SHOWN).collect::<Vec<_>>().join(", ");
            format!("an SQLite database with the tables {first}{more}")
        }
    }
}

/// State needed while rows become events.
struct Import<'d> {
    database: &'d Database,
    builder: TraceBuilder,
    names: Names,
    places: Places,
}

impl<'d> Import<'d> {
    fn new(database: &'d Database) -> Self {
        let mut builder = TraceBuilder::new();
        let (mut names, outcome) = Names::read(database, &mut builder);
        let places = Places::read(database, &mut names, &mut builder);
        builder.clock.resolution = Dur::from_ns(1);
        let cut = "the file is truncated; pages missing";
        builder.note(NoteKind::Damaged, cut, database.missing_pages, None);
        for (table, trouble) in &database.unreadable {
            builder.note(trouble.kind, &format!("table {table}: {}", trouble.what), 1, None);
        }
        let mut import = Import { database, builder, names, places };
        import.settle("StringIds", outcome);
        import
    }

    fn run(&mut self) {
        session::read(self);
        host::read(self);
        device_work::read(self);
        nvtx::read(self);
        counters::read(self);
        devices::read(self);
        self.names.note(&mut self.builder);
    }

    /// A kind of event by name and category.
    fn kind(&mut self, name: StrId, category: StrId, form: Form) -> KindId {
        self.builder.kind(Kind { category, form, ..Kind::slice(name) })
    }

    fn intern(&mut self, text: &str) -> StrId {
        self.builder.strings.intern(text)
    }

    /// Adds an event to a track.
    fn event(&mut self, track: TrackId, times: Times, kind: KindId, args: Option<u64>) {
        self.builder.event(track, times.start, times.dur, kind, args);
    }

    /// Notes what went wrong while reading a table.
    fn settle(&mut self, table: &str, outcome: Outcome) {
        if let Some(trouble) = outcome.broken {
            let detail = format!("table {table}, after {} rows: {}", outcome.rows, trouble.what);
            self.builder.note(trouble.kind, &detail, 1, None);
        }
    }

    /// Whether the table can be used. A table without times cannot, which is noted.
    fn has_times(&mut self, table: &str) -> bool {
        if !self.database.has(table) {
            return false;
        }
        let timed = self.database.has_column(table, "start");
        if !timed {
            self.builder.note(NoteKind::Unknown, &format!("table {table} without a column start"), 1, None);
        }
        timed
    }

    /// An export that is still being written has a journal file beside it.
    fn note_unfinished(&mut self, input: &Input) {
        for ending in ["-journal", "-wal"] {
            let mut beside = input.path().as_os_str().to_owned();
            beside.push(ending);
            if std::fs::metadata(&beside).is_ok_and(|data| data.len() > 0) {
                let detail =
                    format!("there is a {} file next to it: the export is not finished", &ending[1..]);
                self.builder.note(NoteKind::Damaged, &detail, 1, None);
            }
        }
    }
}

/// Start and duration of an event.
#[derive(Copy, Clone)]
struct Times {
    start: Time,
    dur: Dur,
}

/// Invalid times, by table.
#[derive(Default)]
struct OddTimes {
    missing: u64,
    unfinished: u64,
    reversed: u64,
    out_of_range: u64,
}

/// Largest distance from the origin in nanoseconds, so that picoseconds fit 64 bits.
const FURTHEST_NS: i64 = i64::MAX / 1_000;

impl OddTimes {
    /// The times of a row; `None` if it has no start.
    fn take(&mut self, start: Option<i64>, end: Option<i64>) -> Option<Times> {
        let Some(start) = start else {
            self.missing += 1;
            return None;
        };
        let end = end.unwrap_or_else(|| {
            self.unfinished += 1;
            start
        });
        self.out_of_range +=
            u64::from(start.abs_diff(0) > FURTHEST_NS as u64 || end.abs_diff(0) > FURTHEST_NS as u64);
        self.reversed += u64::from(end < start);
        Some(Times { start: Time::from_ns(start), dur: Dur::from_ns(end.saturating_sub(start).max(0)) })
    }

    /// The time of a row that marks a point.
    fn point(&mut self, at: Option<i64>) -> Option<Times> {
        self.take(at, at)
    }

    fn note(&self, table: &str, builder: &mut TraceBuilder) {
        builder.note(NoteKind::Damaged, &format!("table {table}: rows without a start"), self.missing, None);
        builder.note(NoteKind::Unpaired, table, self.unfinished, None);
        builder.note(NoteKind::NegativeDuration, table, self.reversed, None);
        builder.note(NoteKind::TimeOutOfRange, table, self.out_of_range, None);
    }
}

/// An argument, if the row has it.
fn some_int(key: StrId, value: Option<i64>) -> Option<(StrId, Datum)> {
    value.map(|value| (key, Datum::Int(value)))
}
