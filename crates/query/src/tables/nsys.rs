//! The tables of `nsys export`, so that queries written for those run on any format.
//!
//! Of an export itself, each table has the rows, the columns and the values of the original. Of other formats, rows are
//! made of events; identifiers that Nsight Systems builds from numbers of process and thread are built the same way. What a
//! recording does not hold is NULL.

mod columns;
mod made;

use std::path::Path;
use std::sync::OnceLock;

use rustc_hash::FxHashMap;
use stepscope_read::nsys::ExportTables;
use stepscope_session::HostProfile;
use stepscope_trace::StrId;

use crate::cell::Cell;
use crate::recording::{Recording, id};
use crate::rows::Rows;
use crate::schema::Table;
use columns::{Values, Writer};
use made::{Made, Sort};

pub(crate) use columns::all;

/// The rows of a table: those of each host, one behind the other.
struct Nsight {
    table: &'static Table,
    /// The first row of each part, and one entry more.
    starts: Vec<usize>,
    parts: Vec<Part>,
}

/// The rows of one host.
enum Part {
    /// As exported, column by column.
    Original { columns: Vec<Values>, rows: usize, sort: Sort, events: OnceLock<Vec<i64>> },
    /// Made of events and what surrounds them.
    Made(Made),
}

/// The rows of a table.
fn rows(recording: &Recording, table: &'static Table, sort: Sort) -> Box<dyn Rows> {
    let one = |(number, (loaded, _)): (usize, (&HostProfile, _))| {
        original(loaded, table, sort).unwrap_or_else(|| Part::Made(Made::of(recording, number, sort)))
    };
    let parts: Vec<Part> = recording.each_host().enumerate().map(one).collect();
    let mut starts = vec![0];
    for part in &parts {
        let rows = match part {
            Part::Original { rows, .. } => *rows,
            Part::Made(made) => made.len(),
        };
        starts.push(starts.last().copied().unwrap_or(0) + rows);
    }
    Box::new(Nsight { table, starts, parts })
}

/// The table of an export; `None` if the recording is none.
fn original(loaded: &HostProfile, table: &Table, sort: Sort) -> Option<Part> {
    let export = ExportTables::of(loaded.format, Path::new(&loaded.path))?;
    let names: Vec<&str> =
        table.columns.iter().filter(|column| !column.hidden).map(|column| column.name).collect();
    let mut columns: Vec<Writer> = names.iter().map(|_| Writer::default()).collect();
    let mut rows = 0;
    export.rows(table.name, &names, &mut |values| {
        rows += 1;
        columns.iter_mut().zip(values).for_each(|(column, value)| column.push(*value));
    });
    let columns = columns.into_iter().map(Writer::finish).collect();
    Some(Part::Original { columns, rows, sort, events: OnceLock::new() })
}

impl Rows for Nsight {
    fn len(&self) -> usize {
        self.starts.last().copied().unwrap_or(0)
    }

    fn has_key(&self) -> bool {
        // Two exports number their texts alike.
        self.parts.len() < 2
    }

    fn cell<'a>(&'a self, recording: &'a Recording, row: usize, column: usize) -> Cell<'a> {
        let Some(number) = self.starts.partition_point(|&first| first <= row).checked_sub(1) else {
            return Cell::Null;
        };
        let at = row - self.starts.get(number).copied().unwrap_or(0);
        let Some((part, name)) = self.parts.get(number).zip(self.table.columns.get(column)) else {
            return Cell::Null;
        };
        match (part, name.name) {
            (_, "host") if name.hidden => {
                recording.profile().hosts.get(number).map(|loaded| loaded.host.as_str()).into()
            }
            (Part::Original { columns, sort, events, .. }, "event_id") if name.hidden => {
                let times = columns.first().zip(columns.get(1));
                let make = || times.map_or_else(Vec::new, |times| events_of(recording, number, *sort, times));
                events.get_or_init(make).get(at).copied().filter(|id| *id >= 0).into()
            }
            (Part::Original { columns, .. }, _) => columns.get(column).map_or(Cell::Null, |it| it.get(at)),
            (Part::Made(made), name) => made.cell(recording, number, at, name),
        }
    }
}

/// The event that was made of each row, by its times; -1 if there is none.
fn events_of(
    recording: &Recording,
    number: usize,
    sort: Sort,
    (starts, ends): (&Values, &Values),
) -> Vec<i64> {
    let Some((loaded, host)) = recording.each_host().nth(number) else { return Vec::new() };
    let trace = &loaded.trace;
    let is_meant = |category: StrId| sort.categories().contains(&trace.str(category));
    let wanted: Vec<bool> = trace.kinds().iter().map(|kind| is_meant(kind.category)).collect();
    let mut known: FxHashMap<(i64, i64), Vec<i64>> = FxHashMap::default();
    for (place, track) in (0_u32..).zip(trace.tracks()) {
        for index in (0..track.len()).rev() {
            if wanted.get(track.kind_of(index).index()).copied().unwrap_or(false) {
                let times = (track.start(index).ps() / 1_000, track.end(index).ps() / 1_000);
                known.entry(times).or_default().push(id(host.first_track.saturating_add(place), index));
            }
        }
    }
    let rows = (0..).map_while(|row| (row < starts.len()).then(|| (starts.int(row), ends.int(row))));
    let found = rows.map(|(start, end)| {
        let times = start.map(|start| (start, end.unwrap_or(start)));
        times.and_then(|times| known.get_mut(&times)?.pop()).unwrap_or(-1)
    });
    found.collect()
}
