//! What lies beside the recording: values that the program logged for TensorBoard, and the nodes of a classic TensorFlow
//! model. Without such files the tables are empty.

use std::path::PathBuf;
use std::sync::Arc;

use stepscope_read::discover::is_within;
use stepscope_session::model::{Keep, ModelFiles};
use stepscope_tfprof::{FlatRow, Options, Shown, View};
use stepscope_trace::Delivers;
use stepscope_trace::series::{RunLog, Series};

use super::recorded::owned;
use crate::cell::Cell;
use crate::rows::{Rows, Sheet};
use crate::schema::Holds::{Int, Real, Text};
use crate::schema::{Column, From, Table};
use crate::world::World;

/// No scope is deeper.
const DEEPEST: i64 = 10_000;

pub(crate) const SCALAR: Table = Table {
    name: "scalar",
    about: "Values that the program logged for TensorBoard, from event files beside the recording.",
    columns: &[
        Column::new("run", Text, "the run"),
        Column::new("tag", Text, "what was logged"),
        Column::new("step", Int, "step, as the program counts"),
        Column::new("wall_time", Real, "when, seconds since 1970"),
        Column::new("value", Real, "the value"),
    ],
    from: From::Rows(|world| Box::new(Scalars::of(world))),
};

/// The logs, and the first row of each series with its run and place; one entry more at the end.
struct Scalars {
    logs: Arc<[RunLog]>,
    starts: Vec<(usize, usize, usize)>,
}

impl Scalars {
    fn of(world: &World) -> Self {
        let logs = world.logs();
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

    fn cell<'a>(&'a self, _: &'a World, row: usize, column: usize) -> Cell<'a> {
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

pub(crate) const NODE: Table = Table {
    name: "node",
    about: "Nodes of a classic TensorFlow model by name scope, with the values of tfprof: means over the recorded runs.",
    columns: &[
        Column::new("id", Int, "number of the node"),
        Column::new("parent", Int, "the scope above it"),
        Column::new("name", Text, "its name"),
        Column::new("op", Text, "its operation type"),
        Column::new("device", Text, "the device it ran on"),
        Column::new("exec_micros", Int, "its own time, µs"),
        Column::new("accelerator_micros", Int, "its own time on accelerators, µs"),
        Column::new("cpu_micros", Int, "its own time on the host, µs"),
        Column::new("requested_bytes", Int, "memory it requested, bytes"),
        Column::new("peak_bytes", Int, "the most it held at once, bytes"),
        Column::new("output_bytes", Int, "memory of its outputs, bytes"),
        Column::new("parameters", Int, "its parameters"),
        Column::new("float_ops", Int, "its float operations"),
        Column::new("runs", Int, "number of runs"),
        Column::new("total_micros", Int, "time with everything below, µs"),
        Column::new("total_parameters", Int, "parameters with everything below"),
        Column::new("total_float_ops", Int, "float operations with everything below"),
    ],
    from: From::Rows(nodes),
};

fn nodes(world: &World) -> Box<dyn Rows> {
    let runs = world.profile().hosts.iter().filter(|loaded| loaded.format.delivers == Delivers::Runs);
    let runs: Vec<PathBuf> = runs.map(|loaded| PathBuf::from(&loaded.path)).collect();
    if runs.is_empty() {
        return Box::new(Sheet::default());
    }
    let files = ModelFiles::beside(&runs);
    let beside = [&files.saved, &files.graph, &files.op_log, &files.checkpoint].into_iter().flatten();
    // A checkpoint is the prefix of several names: its folder decides.
    let outside = |path: &PathBuf| !is_within(path.parent().unwrap_or(path), world.roots());
    if beside.chain(&files.runs).any(outside) {
        return Box::new(Sheet::default());
    }
    let model = files.load(Keep { values: false, calls: false });
    let options = Options { max_depth: DEEPEST, ..Options::default() };
    let rows =
        model.ok().and_then(|model| Some(Shown::new(&model.profile, View::Scope, &options).ok()?.flat()));
    Box::new(Sheet((0_usize..).zip(rows.unwrap_or_default()).map(|(id, row)| node(id, &row)).collect()))
}

fn node(id: usize, row: &FlatRow) -> Vec<Cell<'static>> {
    let (own, total) = (row.own, row.total);
    vec![
        id.into(),
        row.above.into(),
        owned(&row.name),
        owned(&row.op),
        owned(&row.device),
        own.exec_micros.into(),
        own.accelerator_micros.into(),
        own.cpu_micros.into(),
        own.requested_bytes.into(),
        own.peak_bytes.into(),
        own.output_bytes.into(),
        own.parameters.into(),
        own.float_ops.into(),
        own.runs.into(),
        total.exec_micros.into(),
        total.parameters.into(),
        total.float_ops.into(),
    ]
}
