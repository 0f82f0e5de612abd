//! The view `ops`: which ops the time goes to.

use stepscope_analyze::window::Window;
use stepscope_analyze::work::ops::{OpRow, Ops, Where};

use super::{covers, describe_window};
use crate::format::{duration_ms, percent};
use crate::table::{Cell, Column, Format, Table};

/// One row per op: first the side that does the model's work, longest self time first.
pub fn table(ops: &Ops) -> Table {
    let named = Column::new("name", "op", Format::Name);
    let mut table = new_table(vec![named, Column::new("type", "type", Format::Text).optional()]);
    fill(&mut table, ops);
    table
}

/// One row per op type.
pub fn table_by_type(ops: &Ops) -> Table {
    let named = Column::new("name", "type", Format::Name);
    let mut table = new_table(vec![named, Column::new("type", "type", Format::Text).hidden()]);
    fill(&mut table, &ops.by_type());
    table
}

fn new_table(mut columns: Vec<Column>) -> Table {
    columns.extend([
        Column::new("where", "where", Format::Text),
        Column::new("count", "count", Format::Count),
        Column::new("total_ms", "total", Format::Ms).optional(),
        Column::new("self_ms", "self", Format::Ms),
        Column::new("fraction", "share", Format::Percent),
        Column::new("mean_ms", "mean", Format::Ms).optional(),
        Column::new("self_ms_per_step", "self/step", Format::Ms).optional(),
        Column::new("cumulative", "cumulative", Format::Percent).optional(),
        Column::new("eager", "eager", Format::Text).hidden(),
        Column::new("input", "input", Format::Text).hidden(),
        Column::new("shapes", "shapes", Format::Text).hidden(),
        Column::new("flops_per_s", "FLOP/s", Format::Short).hidden(),
        Column::new("bytes_per_s", "bytes/s", Format::Bytes).hidden(),
    ]);
    Table::new("ops", columns)
}

fn fill(table: &mut Table, ops: &Ops) {
    table.top = Some(20);
    table.headline = Some(headline(ops));
    for row in &ops.rows {
        table.push(cells(row, ops.window));
    }
    describe_window(table, ops.window);
    if !ops.rows.is_empty() {
        table.note(
            "self: time without nested ops, summed over threads and devices; share: of the self time of all ops on that side (host or device).",
        );
    }
    if ops.rows.iter().any(|row| row.key.input) {
        table.note("Ops of the input pipeline come last (input). `stepscope input` shows them as a tree.");
    }
}

fn cells(row: &OpRow, window: Window) -> [Cell; 15] {
    [
        row.key.name.as_str().into(),
        row.key.kind.as_str().into(),
        side(row).into(),
        row.count.into(),
        row.total_ms.into(),
        row.self_ms.into(),
        row.fraction.into(),
        row.mean_ms().into(),
        window.per_step(row.self_ms).into(),
        row.cumulative.into(),
        row.eager.into(),
        row.key.input.into(),
        row.shapes.clone().into(),
        row.flops_per_s.into(),
        row.bytes_per_s.into(),
    ]
}

/// The public word for where an op ran.
pub fn side(row: &OpRow) -> &'static str {
    match row.key.side {
        Where::Host => "host",
        Where::Device => "device",
    }
}

fn headline(ops: &Ops) -> String {
    let types = ops.by_type();
    let Some(first) = types.model().next() else {
        return "no ops were recorded".to_owned();
    };
    let where_ = match ops.side() {
        Where::Host => "host",
        Where::Device => "device",
    };
    let of = covers(ops.window);
    let together = match (ops.side(), ops.devices) {
        (Where::Device, devices @ 2..) => format!(" on {devices} devices together"),
        _ => String::new(),
    };
    let time = ops.window.per_step(first.self_ms).unwrap_or(first.self_ms);
    format!(
        "{} takes {} of {where_} op time: {} {of}{together}",
        first.key.name,
        percent(first.fraction),
        duration_ms(time)
    )
}
