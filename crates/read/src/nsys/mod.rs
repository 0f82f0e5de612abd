//! Nsight Systems: the export of a report as an SQLite database (`nsys export --type sqlite`), as a folder with a file a
//! table (`parquetdir`, `arrowdir`) or as one file of Arrow streams (`arrow`), schemas 3.1 to 3.25; and the report itself,
//! where NVIDIA's own tool is there to export it.
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
//! payload      what NCCL and others write into a range
//! counters     sampled metrics, allocated memory, page faults
//! session      versions, options, complaints, the wall clock; never the environment
//! devices      what the GPUs are
//! report       .nsys-rep → export in a cache of ours
//! ```
//!
//! Names and arguments are spelt as Kineto spells them, so that what is known of Kineto's traces holds here.

mod counters;
mod database;
mod device_work;
mod devices;
mod files;
mod host;
mod names;
mod nvtx;
mod payload;
mod places;
mod report;
mod session;
mod sqlite;
mod waits;

use stepscope_trace::{Datum, Dur, Form, Kind, KindId, NoteKind, StrId, Time, Trace, TraceBuilder, TrackId};

use crate::{Input, Progress, ReadError, Reader};
use database::{Database, Outcome};
pub(crate) use files::is_other_export;
use names::Names;
use places::Places;
pub use report::NsysReportReader;

/// Reads the exports of Nsight Systems.
#[derive(Debug)]
pub struct NsysReader;

/// Tables that no other database has. Exports write them first, so that the head of the file shows them.
const SIGNS: [&[u8]; 5] = [
    b"TABLE StringIds",
    b"TABLE ENUM_NSYS",
    b"TABLE CUPTI_ACTIVITY",
    b"TABLE TARGET_INFO_",
    b"TABLE NVTX_EVENTS",
];

impl Reader for NsysReader {
    fn format(&self) -> &'static str {
        "nsys"
    }

    fn recognises(&self, head: &[u8]) -> bool {
        let shows = |sign: &[u8]| memchr::memmem::find(head, sign).is_some();
        let database = head.starts_with(sqlite::MAGIC) && SIGNS.iter().any(|sign| shows(sign));
        database || files::recognises(head)
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

/// The reader for a database that does not show at once what it is: it may be an export after all, and if it is
/// none, the reader says what was found instead.
pub(crate) fn for_any_database(input: &Input) -> Option<&'static dyn Reader> {
    input.head().starts_with(sqlite::MAGIC).then_some(&NsysReader)
}

/// Is there a single table that says so?
fn is_export(database: &Database) -> bool {
    database.tables().into_iter().any(is_telling)
}

/// How tables begin that nobody else has.
const TELLING: [&str; 5] =
    ["StringIds", "CUPTI_ACTIVITY_KIND", "TARGET_INFO_", "NVTX_EVENTS", "META_DATA_EXPORT"];

/// Does nobody else have a table of this name?
pub(crate) fn is_telling(table: &str) -> bool {
    TELLING.iter().any(|start| table.starts_with(start))
}

/// What a foreign database holds, for the message.
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

/// Everything that is needed while rows become events.
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
        let cut = "the file ends early; pages missing";
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

    /// Puts an event on a track.
    fn event(&mut self, track: TrackId, times: Times, kind: KindId, args: Option<u64>) {
        self.builder.event(track, times.start, times.dur, kind, args);
    }

    /// Notes what went wrong while a table was read.
    fn settle(&mut self, table: &str, outcome: Outcome) {
        if let Some(trouble) = outcome.broken {
            let detail = format!("table {table}, after {} rows: {}", outcome.rows, trouble.what);
            self.builder.note(trouble.kind, &detail, 1, None);
        }
    }

    /// Can the table be used? One without times cannot, and that is worth a word.
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

    /// An export that is still being written has its journal beside it.
    fn note_unfinished(&mut self, input: &Input) {
        for ending in ["-journal", "-wal"] {
            let mut beside = input.path().as_os_str().to_owned();
            beside.push(ending);
            if std::fs::metadata(&beside).is_ok_and(|data| data.len() > 0) {
                let detail = format!("a {} file lies beside it: the export is not finished", &ending[1..]);
                self.builder.note(NoteKind::Damaged, &detail, 1, None);
            }
        }
    }
}

/// When an event began and how long it took.
#[derive(Copy, Clone)]
struct Times {
    start: Time,
    dur: Dur,
}

/// Times that could not be taken as they are, by table.
#[derive(Default)]
struct OddTimes {
    missing: u64,
    unfinished: u64,
    reversed: u64,
    out_of_range: u64,
}

/// The furthest that a time may be from the origin, in nanoseconds: picoseconds must fit 64 bits.
const FURTHEST_NS: i64 = i64::MAX / 1_000;

impl OddTimes {
    /// The times of a row; `None` where it does not even say when it began.
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

/// An argument, where the row has it.
fn some_int(key: StrId, value: Option<i64>) -> Option<(StrId, Datum)> {
    value.map(|value| (key, Datum::Int(value)))
}
