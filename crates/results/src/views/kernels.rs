//! `stepscope kernels`: which kernels run on the GPUs, how they were launched and by which op.

use std::borrow::Cow;

use stepscope_analyze::Analysis;
use stepscope_analyze::Context;
use stepscope_analyze::vocabulary::names::kernel_short_name;
use stepscope_analyze::work::counters::{Counters, CountersPartial, KernelCounters, PeakSource, Waste};
use stepscope_analyze::work::kernels::{
    KernelRow, Kernels, KernelsPartial, OccupancySource, uses_tensor_cores,
};
use stepscope_analyze::work::programs::{Origin, Origins, Programs, ProgramsPartial};

use super::{Group, Hosts, View, all_hosts, counted, covers, describe_window, window_members};
use crate::format::{duration_ms, percent, plural, printable};
use crate::table::{Cell, Field, Table, columns, described};

/// Number of kernels whose counters get a line below the table.
const DESCRIBED: usize = 3;

pub(super) const VIEW: View = View {
    name: "kernels",
    title: "Kernels",
    group: Group::Time,
    question: "What ran on the GPUs, and how well?",
    about: "Show which kernels run on the GPUs, how they were launched and by which op",
    after_help: "Examples:\n  \
        stepscope kernels logs/                     longest first\n  \
        stepscope kernels logs/ --sort occupancy:asc lowest occupancy first\n  \
        stepscope kernels logs/ --csv               with launch delay, waves, tail and limiter\n  \
        stepscope kernels run.sqlite gemm.ncu-rep   with the hardware counters of Nsight Compute",
    record: &[
        "Kernels are only recorded on GPUs. On CPUs, see the Ops page",
        "TensorFlow: CUPTI must be on the library path (`LD_LIBRARY_PATH`)",
        "PyTorch: add `ProfilerActivity.CUDA` to the activities",
        "Any CUDA program: `nsys profile --trace=cuda,nvtx --export sqlite python train.py`",
    ],
    events: Some("name"),
    recording: false,
    sql: Some(("kernel", "Kernels on GPUs, over the counted steps.")),
    columns: || described(columns()),
    members: window_members!(),
    table: |hosts| {
        let (kernels, counters, programs) = recorded(hosts);
        table(&kernels, &counters, &programs)
    },
    groupings: &[],
};

fn columns<'a>() -> Vec<Field<Line<'a>>> {
    let mut columns = columns! { line: Line<'a>;
        name.known: Name "kernel", "name of the kernel" => line.kernel.name.as_str();
        count.known: Count "count", "number of launches" => line.kernel.count;
        total_ms: Ms "total", "total time" => line.timed(line.kernel.total_ms);
        fraction: Percent "share", "share of all kernel time" => line.timed(line.kernel.fraction);
        mean_ms: Ms "mean", "mean duration" => line.timed(line.kernel.mean_ms());
        min_ms.hidden: Ms "min", "shortest" => line.timed(line.kernel.min_ms);
        max_ms.hidden: Ms "max", "longest" => line.timed(line.kernel.max_ms);
        occupancy: Percent "occupancy", "occupancy, 0 to 1" => line.kernel.occupancy;
        tensor_core: Flag "tensor core", "it uses matrix units" => line.kernel.tensor_core;
        op.optional: Name "op", "the op that launched it" => line.kernel.op.clone();
        label.optional: Name "what", "scopes of the model and operation of the framework, of an instruction of a compiled program" => line.origin.and_then(|origin| some(origin.label));
        source.optional: Name "source", "its file and line" => line.origin.and_then(|origin| some(origin.source));
        scope.hidden: Name "scope", "its scopes of the model" => line.origin.and_then(|origin| some(origin.scope));
        grid.optional: Text "grid", "blocks: x,y,z" => dimensions(line.kernel.launch.grid);
        block.optional: Text "block", "threads per block: x,y,z" => dimensions(line.kernel.launch.block);
        registers.optional: Count "regs", "registers per thread" => line.kernel.launch.registers;
        shared_bytes.optional: Bytes "shared", "shared memory per block" => line.kernel.launch.shared_bytes;
        launch_delay_ms.optional: Ms "delay", "from the call's start to the kernel's" => line.kernel.launch_delay_ms;
        occupancy_source.hidden: Text "source", "reported or computed" => line.kernel.occupancy_source.map(source);
        limiter.hidden: Text "limiter", "what limits the occupancy" => line.kernel.limiter.map(|limiter| limiter.key());
        waves.hidden: Short "waves", "waves of blocks" => line.kernel.waves;
        tail.hidden: Percent "tail", "share of the last wave that is empty" => line.kernel.tail;
        configurations.hidden: Count "configurations", "number of launch configurations" => line.kernel.configurations;
        queue_ms.hidden: Ms "queue", "time between call and start" => line.kernel.queue_ms;
        stream.hidden: Id "stream", "the stream, if all launches share one" => line.kernel.stream;
        device.hidden: Text "device", "the device" => line.kernel.device.clone();
    };
    columns.extend(counters());
    columns
}

/// Hardware counters, if there are any. Speed-of-light values are shares of a unit's peak.
fn counters<'a>() -> Vec<Field<Line<'a>>> {
    let hidden = columns! { line: Line<'a>;
        sol_dram: Percent "sol_dram", "device memory, share of the peak" => line.counter(|it| it.dram);
        dram_peak_from: Text "dram_peak_from", "where that peak comes from" => line.counter(|it| it.dram_peak.map(peak_source));
        sheet_fp32: Percent "sheet_fp32", "32-bit arithmetic, share of the data sheet's peak" => line.counter(|it| it.sheet_fp32);
        sol_l1: Percent "sol_l1", "L1 cache, share of the peak" => line.counter(|it| it.l1);
        sol_l2: Percent "sol_l2", "L2 cache, share of the peak" => line.counter(|it| it.l2);
        achieved_occupancy: Percent "achieved_occupancy", "measured occupancy" => line.counter(|it| it.achieved);
        theoretical_occupancy: Percent "theoretical_occupancy", "highest possible occupancy" => line.counter(|it| it.theoretical);
        sectors_per_load: Short "sectors_per_load", "sectors per load request" => line.counter(|it| it.loads.sectors_per_request);
        sectors_per_store: Short "sectors_per_store", "sectors per store request" => line.counter(|it| it.stores.sectors_per_request);
        bytes_per_load_sector: Short "bytes_per_load_sector", "bytes used per loaded sector" => line.counter(|it| it.loads.bytes_per_sector);
        bytes_per_store_sector: Short "bytes_per_store_sector", "bytes used per stored sector" => line.counter(|it| it.stores.bytes_per_sector);
        bank_conflicts: Percent "bank_conflicts", "share of shared-memory wavefronts that are conflicts" => line.counter(|it| it.bank_conflicts);
        spills: Short "spills", "spill requests per launch" => line.counter(|it| it.spills);
        issue: Percent "issue", "share of cycles that issue an instruction" => line.counter(|it| it.issue);
        l1_hits: Percent "l1_hits", "L1 hit rate" => line.counter(|it| it.l1_hits);
        l2_hits: Percent "l2_hits", "L2 hit rate" => line.counter(|it| it.l2_hits);
        dram_bytes_per_s.real: Bytes "dram_bytes_per_s", "traffic of device memory per second" => line.counter(|it| it.dram_bytes_per_s);
        tensor_busy: Percent "tensor_busy", "share of time in which tensor cores work" => line.counter(|it| it.tensor);
        flops_per_s: Short "flops_per_s", "FLOP per second" => line.counter(|it| it.flops_per_s);
        flops_per_byte: Short "flops_per_byte", "FLOP per byte of device memory" => line.counter(KernelCounters::intensity);
        profiled_launches: Count "profiled_launches", "launches that were profiled" => line.counter(|it| Some(it.launches));
        peak_flops_per_s: Short "peak_flops_per_s", "peak of 32-bit arithmetic by the device's data sheet, FLOP per second" => line.counter(|it| it.peak_flops_per_s);
        peak_bytes_per_s.real: Bytes "peak_bytes_per_s", "peak of device memory, bytes per second" => line.counter(|it| it.peak_bytes_per_s);
        stalls: Map "stalls", "what warps wait for: each reason's share of the time between two instructions of a warp" => line.counted.map_or(Cell::Null, |it| named(&it.stalls));
        traffic_bytes: Map "traffic_bytes", "bytes per launch: `load` and `store` between the kernel and its caches, `dram_read` and `dram_write`, or `dram` for both" => line.counted.map_or(Cell::Null, |it| named(&it.traffic));
    };
    let shown = columns! { line: Line<'a>;
        sol_compute: Percent "compute", "compute, share of the peak (Nsight Compute, as all below)" => line.counter(|it| it.compute);
        sol_memory: Percent "memory", "memory, share of the peak" => line.counter(|it| it.memory);
        excess_sectors.optional: Percent "excess sectors", "share of excess sectors" => line.counter(|it| it.excess_sectors);
        stall.optional: Text "main stall", "main stall reason" => line.counter(|it| it.stall.map(|(reason, _)| reason));
        stall_share.optional: Percent "stall share", "its share" => line.counter(|it| it.stall.map(|(_, part)| part));
        headroom.optional: Percent "headroom", "share of the time that could be saved" => line.counter(|it| it.headroom(Waste::None));
    };
    let hidden = hidden.into_iter().map(|field| field.hidden());
    shown.into_iter().chain(hidden).map(Field::sometimes).collect()
}

/// A kernel, with its hardware counters if they were collected.
struct Line<'a> {
    kernel: Cow<'a, KernelRow>,
    counted: Option<&'a KernelCounters>,
    origin: Option<Origin<'a>>,
}

fn some(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

impl Line<'_> {
    /// A time, or a share of it. Launches that were profiled alone may have none.
    fn timed(&self, figure: f64) -> Option<f64> {
        Some(figure).filter(|_| self.kernel.total_ms > 0.0 || !matches!(self.kernel, Cow::Owned(_)))
    }

    fn counter<T>(&self, of: impl Fn(&KernelCounters) -> Option<T>) -> Option<T> {
        self.counted.and_then(of)
    }
}

/// One row per kernel, longest first, with its hardware counters if they were collected. Without a timeline,
/// the rows are the profiled launches.
fn table(kernels: &Kernels, counters: &Counters, programs: &Programs) -> Table {
    let origins = Origins::of(programs);
    let mut fields = columns();
    fields.retain(|field| !field.column.sometimes || !counters.kernels.is_empty());
    let alone = kernels.rows.is_empty() && !counters.kernels.is_empty();
    let join = counters.join();
    let lines: Vec<Line<'_>> = if alone {
        let own = |kernel| Line { kernel: Cow::Owned(as_row(kernel)), counted: Some(kernel), origin: None };
        counters.kernels.iter().map(own).collect()
    } else {
        let joined = |row: &'_ KernelRow| join.of_launch(&row.name, &row.launch);
        let origin = |row: &KernelRow| row.op.as_deref().and_then(|op| origins.find(op));
        let line = |row| Line { kernel: Cow::Borrowed(row), counted: joined(row), origin: origin(row) };
        kernels.rows.iter().map(line).collect()
    };
    let mut table = Table::of("kernels", &fields, &lines);
    table.top = Some(20);
    table.headline = Some(if alone { profiled_headline(counters) } else { headline(kernels) });
    let described = lines.iter().filter_map(|line| line.counted.and_then(counted::line)).take(DESCRIBED);
    described.for_each(|line| table.note(line));
    if alone {
        table.note(
            "Launches were profiled one at a time, without a timeline: their share of a step is unknown.",
        );
        return table;
    }
    describe_window(&mut table, kernels.window);
    if kernels.rows.iter().any(|row| row.configurations > 1) {
        table.note("Grid, block and derived values are those of the launches that take the most time.");
    }
    table
}

/// Kernels, their hardware counters, and the compiled programs that they belong to.
fn recorded(hosts: &dyn Hosts) -> (Kernels, Counters, Programs) {
    type Partials = (KernelsPartial, CountersPartial, ProgramsPartial);
    let of = |context: &Context<'_>| -> Partials {
        (Analysis::of(context), Analysis::of(context), Analysis::of(context))
    };
    let merge = |all: &mut Partials, (kernels, counters, programs): Partials| {
        all.0.merge(kernels);
        all.1.merge(counters);
        all.2.merge(programs);
    };
    let (kernels, counters, programs) = all_hosts(hosts, of, merge);
    (kernels.finish(), counters.finish(), programs.finish())
}

fn dimensions(sides: Option<[u32; 3]>) -> Option<String> {
    sides.map(|[x, y, z]| format!("{x},{y},{z}"))
}

/// The headline of launches that were profiled without a timeline.
fn profiled_headline(counters: &Counters) -> String {
    let total: f64 = counters.kernels.iter().map(|kernel| kernel.total_ms).sum();
    let launches = counters.kernels.iter().map(|kernel| kernel.launches).fold(0, u64::saturating_add);
    if total > 0.0 {
        let together = if launches > 1 { " in total" } else { "" };
        let launches = plural(launches, "profiled launch takes", "profiled launches take");
        format!("{launches} {}{together}", duration_ms(total))
    } else {
        let launches = plural(launches, "profiled launch", "profiled launches");
        format!("{launches}; the time was not collected (`gpu__time_duration.sum`)")
    }
}

fn as_row(kernel: &KernelCounters) -> KernelRow {
    KernelRow {
        name: kernel.name.clone(),
        count: kernel.launches,
        total_ms: kernel.total_ms,
        min_ms: kernel.min_ms,
        max_ms: kernel.max_ms,
        fraction: kernel.fraction,
        launch: kernel.launch,
        configurations: 1,
        by_launch: Vec::new(),
        occupancy: kernel.achieved,
        occupancy_source: kernel.achieved.map(|_| OccupancySource::Reported),
        limiter: kernel.limiter,
        waves: kernel.waves,
        filled: None,
        tail: kernel.tail(),
        tensor_core: kernel.tensor.map(|busy| busy > 0.0).or_else(|| uses_tensor_cores(&kernel.name)),
        op: None,
        launch_delay_ms: None,
        queue_ms: None,
        stream: None,
        device: None,
        collective: false,
    }
}

fn named(figures: &[(&'static str, f64)]) -> Cell {
    if figures.is_empty() { Cell::Null } else { Cell::named(figures.iter().copied()) }
}

fn peak_source(source: PeakSource) -> &'static str {
    match source {
        PeakSource::Counted => "counters",
        PeakSource::Device => "device",
        PeakSource::DataSheet => "data sheet",
    }
}

fn source(source: OccupancySource) -> &'static str {
    match source {
        OccupancySource::Reported => "reported",
        OccupancySource::Computed => "computed",
    }
}

fn headline(kernels: &Kernels) -> String {
    let total: f64 = kernels.rows.iter().map(|row| row.total_ms).sum();
    let Some(first) = kernels.rows.first() else {
        return "no kernels were recorded".to_owned();
    };
    let of = covers(kernels.window);
    let each =
        if kernels.devices > 1 { format!(" on each of {} devices", kernels.devices) } else { String::new() };
    let time = duration_ms(kernels.on_each(total));
    format!("kernels take {time} {of}{each}; the longest, {}", percent(first.fraction))
        + &format!(" of that, is {}", printable(&kernel_short_name(&first.name)))
}
