//! The view `kernels`: what runs on GPUs and how it was launched.

use stepscope_analyze::kernels::{KernelRow, Kernels, OccupancySource};

use super::{covers, describe_window};
use crate::format::{duration_ms, percent};
use crate::table::{Cell, Column, Format, Table};

/// One row a kernel, longest first.
pub fn table(kernels: &Kernels) -> Table {
    let columns = vec![
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
    let mut table = Table::new("kernels", columns);
    table.top = Some(20);
    table.headline = Some(headline(kernels));
    kernels.rows.iter().for_each(|row| table.push(cells(row)));
    describe_window(&mut table, kernels.window);
    if kernels.rows.iter().any(|row| row.configurations > 1) {
        table.note("Grid, block and what follows from them: of the launches that take the most time.");
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

fn source(source: OccupancySource) -> &'static str {
    match source {
        OccupancySource::Reported => "reported",
        OccupancySource::Computed => "computed",
    }
}

fn headline(kernels: &Kernels) -> String {
    let total: f64 = kernels.rows.iter().map(|row| row.total_ms).sum();
    let Some(first) = kernels.rows.first() else {
        return "no kernel was recorded".to_owned();
    };
    let time = kernels.window.per_step(total).unwrap_or(total);
    let of = covers(kernels.window);
    format!("kernels take {} {of}; the longest, {}", duration_ms(time), percent(first.fraction))
        + &format!(" of that, is {}", stepscope_analyze::names::kernel_short_name(&first.name))
}
