//! Results of analyses, with the columns of the views of the same kind, host by host.

use rayon::prelude::*;
use stepscope_analyze::Context;
use stepscope_analyze::input::InputPartial;
use stepscope_analyze::memory::MemoryPartial;
use stepscope_analyze::time::inference::InferencePartial;
use stepscope_analyze::work::counters::CountersPartial;
use stepscope_analyze::work::functions::FunctionsPartial;
use stepscope_analyze::work::kernels::KernelsPartial;
use stepscope_analyze::work::ops::OpsPartial;
use stepscope_analyze::work::scopes::ScopesPartial;
use stepscope_render::{Cell as Shown, Style, Table as View, views};
use stepscope_session::report::report;

use crate::cell::Cell;
use crate::rows::{Rows, Sheet};
use crate::schema::Holds::{Int, Real, Text};
use crate::schema::{Column, From, Table};
use crate::world::World;

const HOST: Column = Column::new("host", Text, "its host");

/// The rows of a view of each host, under the names of a table's columns.
fn per_host(world: &World, table: &Table, view: fn(&Context<'_>) -> View) -> Box<dyn Rows> {
    let of_host = |loaded: &stepscope_session::HostProfile| {
        let shown = view(&loaded.context());
        let place = |column: &Column| shown.columns().iter().position(|known| known.key == column.key);
        let places: Vec<Option<usize>> = table.columns.iter().map(place).collect();
        let cell = |row: &Vec<Shown>, (column, place): (&Column, &Option<usize>)| match place {
            _ if column.name == HOST.name => Cell::from(loaded.host.clone()),
            Some(place) => row.get(*place).map_or(Cell::Null, taken),
            None => Cell::Null,
        };
        let row = |row: &Vec<Shown>| table.columns.iter().zip(&places).map(|both| cell(row, both)).collect();
        shown.rows().iter().map(row).collect::<Vec<Vec<Cell<'static>>>>()
    };
    let rows: Vec<Vec<Vec<Cell<'static>>>> = world.profile().hosts.par_iter().map(of_host).collect();
    Box::new(Sheet(rows.into_iter().flatten().collect()))
}

fn taken(cell: &Shown) -> Cell<'static> {
    match cell {
        Shown::Null => Cell::Null,
        Shown::Int(value) => i64::try_from(*value).map_or_else(|_| Cell::from(value.to_string()), Cell::Int),
        Shown::Float(value) => Cell::from(*value),
        Shown::Bool(value) => Cell::from(*value),
        Shown::Text(text) => Cell::from(text.clone()),
        Shown::Map(_) => serde_json::to_string(cell).map_or(Cell::Null, Cell::from),
    }
}

pub(crate) const OP: Table = Table {
    name: "op",
    about: "Ops of the model and of the input pipeline, over the counted steps.",
    columns: &[
        Column::new("name", Text, "name of the op"),
        Column::new("type", Text, "type of the op"),
        Column::new("side", Text, "host or device").of("where"),
        Column::new("count", Int, "number of runs"),
        Column::new("total_ms", Real, "time with nested ops, ms"),
        Column::new("self_ms", Real, "time without nested ops, ms"),
        Column::new("fraction", Real, "share of the self time of all ops on that side"),
        Column::new("mean_ms", Real, "mean duration, ms"),
        Column::new("self_ms_per_step", Real, "self time per step, ms"),
        Column::new("cumulative", Real, "share of this op and all larger ones"),
        Column::new("eager", Int, "1 if it ran eagerly"),
        Column::new("input", Int, "1 if it belongs to the input pipeline"),
        Column::new("shapes", Text, "shapes of its inputs"),
        Column::new("flops_per_s", Real, "FLOP per second"),
        Column::new("bytes_per_s", Real, "bytes per second"),
        HOST,
    ],
    from: From::Rows(|world| {
        per_host(world, &OP, |context| views::ops::table(&OpsPartial::of(context).finish()))
    }),
};

pub(crate) const KERNEL: Table = Table {
    name: "kernel",
    about: "Kernels on GPUs, over the counted steps.",
    columns: &[
        Column::new("name", Text, "name of the kernel"),
        Column::new("count", Int, "number of launches"),
        Column::new("total_ms", Real, "total time, ms"),
        Column::new("fraction", Real, "share of all kernel time"),
        Column::new("mean_ms", Real, "mean duration, ms"),
        Column::new("min_ms", Real, "shortest, ms"),
        Column::new("max_ms", Real, "longest, ms"),
        Column::new("occupancy", Real, "occupancy, 0 to 1"),
        Column::new("tensor_core", Int, "1 if it uses matrix units"),
        Column::new("op", Text, "the op that launched it"),
        Column::new("grid", Text, "blocks: x,y,z"),
        Column::new("block", Text, "threads per block: x,y,z"),
        Column::new("registers", Int, "registers per thread"),
        Column::new("shared_bytes", Int, "shared memory per block, bytes"),
        Column::new("launch_delay_ms", Real, "from the call's start to the kernel's, ms"),
        Column::new("occupancy_source", Text, "reported or computed"),
        Column::new("limiter", Text, "what limits the occupancy"),
        Column::new("waves", Real, "waves of blocks"),
        Column::new("tail", Real, "share of the last wave that is empty"),
        Column::new("configurations", Int, "number of launch configurations"),
        Column::new("queue_ms", Real, "time between call and start, ms"),
        Column::new("stream", Int, "the stream"),
        Column::new("device", Text, "the device"),
        Column::new("sol_compute", Real, "compute, share of the peak (Nsight Compute)"),
        Column::new("sol_memory", Real, "memory, share of the peak (Nsight Compute)"),
        Column::new("stall", Text, "main stall reason (Nsight Compute)"),
        Column::new("stall_share", Real, "its share (Nsight Compute)"),
        Column::new("excess_sectors", Real, "share of excess sectors (Nsight Compute)"),
        Column::new("headroom", Real, "share of the time that could be saved (Nsight Compute)"),
        HOST,
    ],
    from: From::Rows(|world| {
        per_host(world, &KERNEL, |context| {
            let counters = CountersPartial::of(context.trace).finish();
            views::kernels::table(&KernelsPartial::of(context).finish(), &counters)
        })
    }),
};

pub(crate) const SCOPE: Table = Table {
    name: "scope",
    about: "Name scopes, as a tree.",
    columns: &[
        Column::new("id", Int, "number of the scope"),
        Column::new("parent", Int, "the scope around it"),
        Column::new("depth", Int, "number of scopes around it"),
        Column::new("name", Text, "its name"),
        Column::new("path", Text, "names from the root"),
        Column::new("count", Int, "number of runs"),
        Column::new("total_ms", Real, "time with what is inside, ms"),
        Column::new("self_ms", Real, "time without, ms"),
        Column::new("fraction", Real, "share of the total time"),
        Column::new("total_ms_per_step", Real, "time per step, ms"),
        HOST,
    ],
    from: From::Rows(|world| {
        let table =
            |context: &Context<'_>| views::scopes::table(&ScopesPartial::of(context).finish(), Style::PLAIN);
        per_host(world, &SCOPE, table)
    }),
};

pub(crate) const FUNCTION: Table = Table {
    name: "function",
    about: "Compiled functions: calls, traces, compilations.",
    columns: &[
        Column::new("name", Text, "name of the function"),
        Column::new("calls", Int, "number of calls"),
        Column::new("traces", Int, "number of traces"),
        Column::new("compiles", Int, "number of compilations"),
        Column::new("total_ms", Real, "time of all calls, ms"),
        Column::new("tracing_ms", Real, "time of traces, ms"),
        Column::new("compile_ms", Real, "time of compilations, ms"),
        Column::new("lost_ms_per_step", Real, "lost per step, ms"),
        Column::new("sign", Text, "how traces were recognised"),
        Column::new("slow_calls_ms", Real, "time of slow calls, ms"),
        Column::new("concrete_functions", Int, "number of graphs"),
        Column::new("modules", Text, "its programs"),
        HOST,
    ],
    from: From::Rows(|world| {
        per_host(world, &FUNCTION, |context| views::functions::table(&FunctionsPartial::of(context).finish()))
    }),
};

pub(crate) const INPUT_STAGE: Table = Table {
    name: "input_stage",
    about: "Stages of the input pipeline.",
    columns: &[
        Column::new("name", Text, "name of the stage"),
        Column::new("path", Text, "names from the consumer"),
        Column::new("depth", Int, "distance from the consumer"),
        Column::new("kind", Text, "what it does"),
        Column::new("source", Text, "tf.data or a loader"),
        Column::new("ms_per_batch", Real, "time per batch, ms"),
        Column::new("self_ms", Real, "time without stages before it, ms"),
        Column::new("function_ms", Real, "time of its function, ms"),
        Column::new("wait_ms", Real, "time it waits, ms"),
        Column::new("total_ms", Real, "total time, ms"),
        Column::new("calls", Int, "number of calls"),
        Column::new("parallelism", Int, "parallel calls"),
        Column::new("autotune", Int, "1 if the parallelism is tuned"),
        Column::new("deterministic", Int, "1 if the order is kept"),
        Column::new("buffer", Text, "its buffer"),
        Column::new("buffer_limit", Int, "size of its buffer"),
        Column::new("buffered", Real, "mean number of buffered elements"),
        Column::new("starved_fraction", Real, "share of calls that found the buffer empty"),
        Column::new("batch_size", Int, "size of its batches"),
        Column::new("bounds", Int, "1 if it limits the pipeline"),
        Column::new("runs_python", Int, "1 if it runs Python"),
        Column::new("dataset", Text, "its dataset"),
        Column::new("written", Text, "where it comes from"),
        Column::new("ops_ms", Text, "its ops as a JSON object, ms"),
        HOST,
    ],
    from: From::Rows(|world| {
        per_host(world, &INPUT_STAGE, |context| views::input::table(&InputPartial::of(context).finish()))
    }),
};

pub(crate) const ALLOCATION: Table = Table {
    name: "allocation",
    about: "What was live at the peak of each allocator.",
    columns: &[
        Column::new("allocator", Text, "the allocator"),
        Column::new("op", Text, "the op that allocated it"),
        Column::new("bytes", Int, "size, bytes"),
        Column::new("fraction", Real, "share of the peak"),
        Column::new("blocks", Int, "number of blocks"),
        Column::new("shape", Text, "shape of the tensor"),
        Column::new("data_type", Text, "type of its elements"),
        Column::new("region", Text, "kind of memory"),
        Column::new("requested_bytes", Int, "size as requested, bytes"),
        Column::new("before_capture", Int, "1 if it was allocated before the capture"),
        HOST,
    ],
    from: From::Rows(|world| {
        per_host(world, &ALLOCATION, |context| views::memory::table(&MemoryPartial::of(context).finish()))
    }),
};

pub(crate) const REQUEST: Table = Table {
    name: "request",
    about: "Latencies of inference requests.",
    columns: &[
        Column::new("name", Text, "the request"),
        Column::new("count", Int, "number of requests"),
        Column::new("p50_ms", Real, "median, ms"),
        Column::new("p90_ms", Real, "90th percentile, ms"),
        Column::new("p95_ms", Real, "95th percentile, ms"),
        Column::new("p99_ms", Real, "99th percentile, ms"),
        Column::new("max_ms", Real, "longest, ms"),
        Column::new("mean_ms", Real, "mean, ms"),
        Column::new("compute_ms", Real, "compute of the mean request, ms"),
        Column::new("transfer_ms", Real, "copies of the mean request, ms"),
        Column::new("input_ms", Real, "input of the mean request, ms"),
        Column::new("host_ms", Real, "the host's part of the mean request, ms"),
        Column::new("requests_per_second", Real, "throughput"),
        HOST,
    ],
    from: From::Rows(|world| {
        per_host(world, &REQUEST, |context| views::inference::table(&InferencePartial::of(context).finish()))
    }),
};

pub(crate) const COLLECTIVE: Table = Table {
    name: "collective",
    about: "Collectives of each rank per step, compared over all ranks that are open: time until the last rank arrived, and time after that. Hosts' clocks are aligned at the ends of common collectives. Needs two ranks.",
    columns: &[
        Column::new("rank", Text, "host and device"),
        Column::new("wait_ms", Real, "waiting per step, ms"),
        Column::new("transfer_ms", Real, "transfer per step, ms"),
        Column::new("last", Real, "share of collectives at which it arrived last"),
    ],
    from: From::Rows(collectives),
};

fn collectives(world: &World) -> Box<dyn Rows> {
    let ranks = world.ranks().waiting().map_or_else(Vec::new, |waiting| waiting.ranks);
    let row = |rank: stepscope_analyze::devices::collectives::RankWaiting| {
        vec![rank.name.into(), rank.waiting_ms.into(), rank.transfer_ms.into(), rank.last.into()]
    };
    Box::new(Sheet(ranks.into_iter().map(row).collect()))
}

pub(crate) const FINDING: Table = Table {
    name: "finding",
    about: "What stepscope reports, the verdict first.",
    columns: &[
        Column::new("rank", Int, "1 is the verdict"),
        Column::new("id", Text, "the finding; `stepscope explain ID` describes it"),
        Column::new("severity", Text, "critical, warning or info"),
        Column::new("subject", Text, "what it is about"),
        Column::new("fraction", Real, "share of the step that it owns"),
        Column::new("gain_ms_per_step", Real, "what a fix saves at most, ms per step"),
        Column::new("confidence", Real, "how sure it is, 0 to 1"),
        Column::new("summary", Text, "the finding in a sentence"),
        Column::new("evidence", Text, "what was measured, one fact per line"),
        Column::new("advice", Text, "what to do, one step per line"),
    ],
    from: From::Rows(findings),
};

fn findings(world: &World) -> Box<dyn Rows> {
    let findings = report(world.profile(), Vec::new()).map_or_else(|_| Vec::new(), |report| report.findings);
    let row = |(rank, finding): (i64, stepscope_diagnose::Finding)| {
        let words = finding.words();
        vec![
            rank.into(),
            finding.id().into(),
            finding.severity.key().into(),
            finding.subject.clone().into(),
            finding.fraction.into(),
            finding.gain_ms.into(),
            finding.confidence.into(),
            words.summary.into(),
            words.evidence.join("\n").into(),
            words.advice.join("\n").into(),
        ]
    };
    Box::new(Sheet((1..).zip(findings).map(row).collect()))
}
