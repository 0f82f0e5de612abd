//! What lies beside the recording: values that the program logged for TensorBoard, and the nodes of a classic TensorFlow
//! model. Without such files the tables are empty.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

use stepscope_read::discover::is_within;
use stepscope_session::model::{Keep, ModelFiles};
use stepscope_tfprof::{FlatRow, Options, Shown, View};
use stepscope_trace::Delivers;
use stepscope_trace::series::{RunLog, Series};

use super::recorded::owned;
use crate::cell::Cell;
use crate::recording::Recording;
use crate::rows::Rows;
use crate::schema::Holds::{Int, Real, Text};
use crate::schema::{Column, From, Table, table};

/// No scope is deeper.
const DEEPEST: i64 = 10_000;

/// The tables of this file.
pub(crate) fn all() -> [Table; 2] {
    [SCALAR, NODE]
}

const SCALAR: Table = Table {
    name: "scalar",
    about: "Values that the program logged for TensorBoard, from event files beside the recording.",
    columns: Cow::Borrowed(&[
        Column::new("run", Text, "the run"),
        Column::new("tag", Text, "what was logged"),
        Column::new("step", Int, "step, as the program counts"),
        Column::new("wall_time", Real, "when, seconds since 1970"),
        Column::new("value", Real, "the value"),
    ]),
    from: From::Rows(|recording| Box::new(Scalars::of(recording))),
};

/// The logs, and the first row of each series with its run and place; one entry more at the end.
struct Scalars {
    logs: Arc<[RunLog]>,
    starts: Vec<(usize, usize, usize)>,
}

impl Scalars {
    fn of(recording: &Recording) -> Self {
        let logs = recording.logs();
        let (mut starts, mut rows) = (Vec::new(), 0);
        for (run, log) in logs.iter().enumerate() {
            for (place, series) in
                log.series.iter().enumerate().filter(|(_, series)| !series.steps.is_empty())
            {
                starts.push((rows, run, place));
                rows += series.steps.len();
            }
        }
        starts.push((rows, usize::MAX, 0));
        Scalars { logs, starts }
    }

    fn series(&self, row: usize) -> Option<(&RunLog, &Series, usize)> {
        let after = self.starts.partition_point(|&(first, ..)| first <= row);
        let &(first, run, place) = self.starts.get(after.checked_sub(1)?)?;
        let log = self.logs.get(run)?;
        Some((log, log.series.get(place)?, row - first))
    }
}

impl Rows for Scalars {
    fn len(&self) -> usize {
        self.starts.last().map_or(0, |&(rows, ..)| rows)
    }

    fn cell<'a>(&'a self, _: &'a Recording, row: usize, column: usize) -> Cell<'a> {
        let Some((log, series, at)) = self.series(row) else { return Cell::Null };
        match column {
            0 => log.name.as_str().into(),
            1 => series.tag.as_str().into(),
            2 => series.steps.get(at).copied().into(),
            3 => series.wall_s.get(at).copied().into(),
            _ => series.values.get(at).copied().into(),
        }
    }
}

table! { NODE: "node", "Nodes of a classic TensorFlow model by name scope, with the values of tfprof: means over the recorded runs.", nodes => (id, row),
    id: Int "number of the node" => id;
    parent: Int "the scope above it" => row.above;
    name: Text "its name" => owned(&row.name);
    op: Text "its operation type" => owned(&row.op);
    device: Text "the device it ran on" => owned(&row.device);
    exec_micros: Int "its own time, µs" => row.own.exec_micros;
    accelerator_micros: Int "its own time on accelerators, µs" => row.own.accelerator_micros;
    cpu_micros: Int "its own time on the host, µs" => row.own.cpu_micros;
    requested_bytes: Int "memory it requested, bytes" => row.own.requested_bytes;
    peak_bytes: Int "the most it held at once, bytes" => row.own.peak_bytes;
    output_bytes: Int "memory of its outputs, bytes" => row.own.output_bytes;
    parameters: Int "its parameters" => row.own.parameters;
    float_ops: Int "its float operations" => row.own.float_ops;
    runs: Int "number of runs" => row.own.runs;
    total_micros: Int "time with everything below, µs" => row.total.exec_micros;
    total_parameters: Int "parameters with everything below" => row.total.parameters;
    total_float_ops: Int "float operations with everything below" => row.total.float_ops;
}

fn nodes(recording: &Recording) -> impl Iterator<Item = (usize, FlatRow)> {
    (0..).zip(rows_of(recording).unwrap_or_default())
}

fn rows_of(recording: &Recording) -> Option<Vec<FlatRow>> {
    let runs = recording.profile().hosts.iter().filter(|loaded| loaded.format.delivers == Delivers::Runs);
    let runs: Vec<PathBuf> = runs.map(|loaded| PathBuf::from(&loaded.path)).collect();
    if runs.is_empty() {
        return None;
    }
    let files = ModelFiles::found_near(&runs);
    let beside = [&files.saved, &files.graph, &files.op_log, &files.checkpoint].into_iter().flatten();
    // A checkpoint is the prefix of several names: its folder decides.
    let outside = |path: &PathBuf| !is_within(path.parent().unwrap_or(path), recording.roots());
    if beside.chain(&files.runs).any(outside) {
        return None;
    }
    let model = files.load(Keep { values: false, calls: false }).ok()?;
    let options = Options { max_depth: DEEPEST, ..Options::default() };
    Some(Shown::new(&model.profile, View::Scope, &options).ok()?.flat())
}
