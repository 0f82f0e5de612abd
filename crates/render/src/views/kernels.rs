//! The view `kernels`: which kernels run on the GPUs, and how they were launched.

use stepscope_analyze::vocabulary::names::kernel_short_name;
use stepscope_analyze::work::counters::{Counters, KernelCounters, PeakSource, Waste};
use stepscope_analyze::work::kernels::{KernelRow, Kernels, OccupancySource, uses_tensor_cores};

use super::{counted, covers, describe_window};
use crate::format::{duration_ms, percent, plural, printable};
use crate::table::{Cell, Column, Format, Table};

/// Number of kernels whose counters get a line below the table.
const DESCRIBED: usize = 3;

/// One row per kernel, longest first, with its hardware counters if they were collected. Without a timeline,
/// the rows are the profiled launches.
pub fn table(kernels: &Kernels, counters: &Counters) -> Table {
    let mut columns = vec![
        Column::new("name", "kernel", Format::Name),
        Column::new("count", "count", Format::Count),
        Column::new("total_ms", "total", Format::Ms),
        Column::new("fraction", "share", Format::Percent),
        Column::new("mean_ms", "mean", Format::Ms),
        Column::new("min_ms", "min", Format::Ms).hidden(),
        Column::new("max_ms", "max", Format::Ms).hidden(),
        Column::new("occupancy", "occupancy", Format::Percent),
        Column::new("tensor_core", "tensor core", Format::Text),
        Column::new("op", "op", Format::Name).optional(),
        Column::new("grid", "grid", Format::Text).optional(),
        Column::new("block", "block", Format::Text).optional(),
        Column::new("registers", "regs", Format::Count).optional(),
        Column::new("shared_bytes", "shared", Format::Bytes).optional(),
        Column::new("launch_delay_ms", "delay", Format::Ms).optional(),
        Column::new("occupancy_source", "source", Format::Text).hidden(),
        Column::new("limiter", "limiter", Format::Text).hidden(),
        Column::new("waves", "waves", Format::Short).hidden(),
        Column::new("tail", "tail", Format::Percent).hidden(),
        Column::new("configurations", "configurations", Format::Count).hidden(),
        Column::new("queue_ms", "queue", Format::Ms).hidden(),
        Column::new("stream", "stream", Format::Id).hidden(),
        Column::new("device", "device", Format::Text).hidden(),
    ];
    if !counters.kernels.is_empty() {
        columns.extend(counter_columns());
    }
    let mut table = Table::new("kernels", columns);
    table.top = Some(20);
    if kernels.rows.is_empty() && !counters.kernels.is_empty() {
        profiled(&mut table, counters);
        return table;
    }
    table.headline = Some(headline(kernels));
    let join = counters.join();
    let mut described = Vec::new();
    for row in &kernels.rows {
        let counted = join.of_launch(&row.name, &row.launch);
        described.extend(counted.and_then(counted::line));
        let counted = counted.map(counter_cells);
        table.push(cells(row).into_iter().chain(counted.into_iter().flatten()));
    }
    described.truncate(DESCRIBED);
    described.into_iter().for_each(|line| table.note(line));
    describe_window(&mut table, kernels.window);
    if kernels.rows.iter().any(|row| row.configurations > 1) {
        table.note("Grid, block and derived values are those of the launches that take the most time.");
    }
    table
}

fn cells(row: &KernelRow) -> [Cell; 23] {
    let dimensions = |sides: Option<[u32; 3]>| sides.map(|[x, y, z]| format!("{x},{y},{z}"));
    [
        row.name.as_str().into(),
        row.count.into(),
        row.total_ms.into(),
        row.fraction.into(),
        row.mean_ms().into(),
        row.min_ms.into(),
        row.max_ms.into(),
        row.occupancy.into(),
        row.tensor_core.into(),
        row.op.clone().into(),
        dimensions(row.launch.grid).into(),
        dimensions(row.launch.block).into(),
        row.launch.registers.into(),
        row.launch.shared_bytes.into(),
        row.launch_delay_ms.into(),
        row.occupancy_source.map(source).into(),
        row.limiter.map(|limiter| limiter.key()).into(),
        row.waves.into(),
        row.tail.into(),
        row.configurations.into(),
        row.queue_ms.into(),
        row.stream.into(),
        row.device.clone().into(),
    ]
}

/// The profiled launches as rows.
fn profiled(table: &mut Table, counters: &Counters) {
    let total: f64 = counters.kernels.iter().map(|kernel| kernel.total_ms).sum();
    let launches = counters.kernels.iter().map(|kernel| kernel.launches).fold(0, u64::saturating_add);
    table.headline = Some(if total > 0.0 {
        let together = if launches > 1 { " in total" } else { "" };
        let launches = plural(launches, "profiled launch takes", "profiled launches take");
        format!("{launches} {}{together}", duration_ms(total))
    } else {
        let launches = plural(launches, "profiled launch", "profiled launches");
        format!("{launches}; the time was not collected (`gpu__time_duration.sum`)")
    });
    for kernel in &counters.kernels {
        let mut own = cells(&as_row(kernel));
        if kernel.total_ms <= 0.0 {
            // Total, share, mean, minimum and maximum.
            own.iter_mut().skip(2).take(5).for_each(|cell| *cell = Cell::Null);
        }
        table.push(own.into_iter().chain(counter_cells(kernel)));
    }
    let described = counters.kernels.iter().filter_map(counted::line).take(DESCRIBED);
    described.for_each(|line| table.note(line));
    table.note("Launches were profiled one at a time, without a timeline: their share of a step is unknown.");
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

/// Columns for hardware counters. Speed-of-light values are shares of a unit's peak.
fn counter_columns() -> Vec<Column> {
    let hidden = |key: &'static str, format| Column::new(key, key, format).hidden();
    vec![
        Column::new("sol_compute", "compute", Format::Percent),
        Column::new("sol_memory", "memory", Format::Percent),
        Column::new("excess_sectors", "excess sectors", Format::Percent).optional(),
        Column::new("stall", "main stall", Format::Text).optional(),
        Column::new("stall_share", "stall share", Format::Percent).optional(),
        Column::new("headroom", "headroom", Format::Percent).optional(),
        hidden("sol_dram", Format::Percent),
        hidden("dram_peak_from", Format::Text),
        hidden("sheet_fp32", Format::Percent),
        hidden("sol_l1", Format::Percent),
        hidden("sol_l2", Format::Percent),
        hidden("achieved_occupancy", Format::Percent),
        hidden("theoretical_occupancy", Format::Percent),
        hidden("sectors_per_load", Format::Short),
        hidden("sectors_per_store", Format::Short),
        hidden("bytes_per_load_sector", Format::Short),
        hidden("bytes_per_store_sector", Format::Short),
        hidden("bank_conflicts", Format::Percent),
        hidden("spills", Format::Short),
        hidden("issue", Format::Percent),
        hidden("l1_hits", Format::Percent),
        hidden("l2_hits", Format::Percent),
        hidden("dram_bytes_per_s", Format::Bytes),
        hidden("tensor_busy", Format::Percent),
        hidden("flops_per_s", Format::Short),
        hidden("flops_per_byte", Format::Short),
        hidden("profiled_launches", Format::Count),
        hidden("peak_flops_per_s", Format::Short),
        hidden("peak_bytes_per_s", Format::Bytes),
        hidden("stalls", Format::Text),
        hidden("traffic_bytes", Format::Text),
    ]
}

fn counter_cells(kernel: &KernelCounters) -> Vec<Cell> {
    let (loads, stores) = (kernel.loads, kernel.stores);
    vec![
        kernel.compute.into(),
        kernel.memory.into(),
        kernel.excess_sectors.into(),
        kernel.stall.map(|(reason, _)| reason).into(),
        kernel.stall.map(|(_, part)| part).into(),
        kernel.headroom(Waste::None).into(),
        kernel.dram.into(),
        kernel.dram_peak.map(peak_source).into(),
        kernel.sheet_fp32.into(),
        kernel.l1.into(),
        kernel.l2.into(),
        kernel.achieved.into(),
        kernel.theoretical.into(),
        loads.sectors_per_request.into(),
        stores.sectors_per_request.into(),
        loads.bytes_per_sector.into(),
        stores.bytes_per_sector.into(),
        kernel.bank_conflicts.into(),
        kernel.spills.into(),
        kernel.issue.into(),
        kernel.l1_hits.into(),
        kernel.l2_hits.into(),
        kernel.dram_bytes_per_s.into(),
        kernel.tensor.into(),
        kernel.flops_per_s.into(),
        kernel.intensity().into(),
        kernel.launches.into(),
        kernel.peak_flops_per_s.into(),
        kernel.peak_bytes_per_s.into(),
        named(&kernel.stalls),
        named(&kernel.traffic),
    ]
}

fn named(figures: &[(&'static str, f64)]) -> Cell {
    let owned = figures.iter().map(|(name, figure)| ((*name).to_owned(), *figure));
    if figures.is_empty() { Cell::Null } else { Cell::Map(owned.collect()) }
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
