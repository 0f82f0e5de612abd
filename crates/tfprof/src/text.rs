//! Rows as printed by tfprof, byte for byte.

use std::collections::BTreeMap;

use stepscope_tfgraph::{Values, Variable};

use crate::numbers::{bytes, count, shape, time};
use crate::options::{Column, Options};
use crate::profile::Profile;
use crate::rows::{Members, Of, Row};
use crate::view::View;

/// A variable's values are cut off after this many characters.
const LONGEST_VALUE: usize = 10_000;

/// The line above the rows.
pub(crate) fn legend(view: View, options: &Options) -> String {
    use Column::{AcceleratorMicros, CpuMicros, FloatOps, Micros, Params};
    let memory = [
        (Column::Bytes, "requested bytes"),
        (Column::PeakBytes, "peak bytes"),
        (Column::ResidualBytes, "residual bytes"),
        (Column::OutputBytes, "output bytes"),
    ];
    let size = [(Params, "# parameters"), (FloatOps, "# float_ops")];
    let (first, last): (&[_], &[_]) = if view.is_single() { (&size, &[]) } else { (&[], &size) };
    let mut legends = Vec::new();
    let mut add = |list: &[(Column, &'static str)]| {
        legends.extend(list.iter().filter(|(column, _)| options.shows(*column)).map(|(_, legend)| *legend));
    };
    add(first);
    add(&memory);
    let accelerator = "accelerator execution time";
    if options.shows(Micros) {
        add(&[(Micros, "total execution time"), (Micros, accelerator), (Micros, "cpu execution time")]);
    } else {
        add(&[(AcceleratorMicros, accelerator), (CpuMicros, "cpu execution time")]);
    }
    add(last);
    let occurrence = if view.is_single() { "op count (run|defined)" } else { "op occurrence (run|defined)" };
    add(&[
        (Column::Device, "assigned devices"),
        (Column::OpTypes, "op types"),
        (Column::Occurrence, occurrence),
        (Column::InputShapes, "input shapes"),
    ]);
    format!("node name | {}\n", legends.join(" | "))
}

/// A row of the scope or graph view.
pub(crate) fn single(profile: &Profile, options: &Options, row: &Row) -> String {
    let (own, total) = (&row.own, &row.total);
    let pair = |own: i64, total: i64, format: fn(i64) -> String| own_and_total(row, own, total, format);
    let mut cells = Vec::new();
    if options.shows(Column::Params) {
        let dims = row.node(profile).map(|node| shape(&node.shape)).unwrap_or_default();
        cells.extend((!dims.is_empty()).then_some(dims));
        cells.push(pair(own.parameters, total.parameters, count) + " params");
    }
    if options.shows(Column::FloatOps) {
        cells.push(pair(own.float_ops, total.float_ops, count) + " flops");
    }
    cells.extend(memory_and_time(options, row));
    let node = row.node(profile);
    if options.shows(Column::Device) {
        let device = node.map(|node| node.device.clone());
        cells.extend(device.filter(|device| !device.is_empty()));
    }
    if options.shows(Column::OpTypes) {
        let types = node.map(|node| join(node.types.iter(), "|"));
        cells.push(types.unwrap_or_else(|| type_of(row).to_owned()));
    }
    if options.shows(Column::Occurrence) {
        let runs = pair(own.runs, total.runs, count);
        let defined = pair(1, total.definitions, count);
        cells.push(format!("{runs}|{defined}"));
    }
    if options.shows(Column::InputShapes) {
        let shapes = node.map(|node| profile.input_shapes(node)).unwrap_or_default();
        cells.push(input_shapes(&shapes).join("|"));
    }
    let mut text = format!("{:indent$}{} ({})\n", "", row.name, cells.join(", "), indent = row.indent);
    if options.shows(Column::TensorValue)
        && let Some(variable) = profile.variables.get(&row.name)
    {
        text += &values(variable);
    }
    text
}

/// A row of the code view.
pub(crate) fn code(options: &Options, row: &Row) -> String {
    let (own, total) = (&row.own, &row.total);
    let mut cells = memory_and_time(options, row);
    if options.shows(Column::Params) {
        cells.push(own_and_total(row, own.parameters, total.parameters, count) + " params");
    }
    if options.shows(Column::FloatOps) {
        cells.push(own_and_total(row, own.float_ops, total.float_ops, count) + " flops");
    }
    let none = Members::default();
    let members = members(row).unwrap_or(&none);
    if options.shows(Column::Device) && !members.devices.is_empty() {
        cells.push(join(members.devices.iter(), "|"));
    }
    if options.shows(Column::OpTypes) {
        cells.push(join(members.types.iter(), "|"));
    }
    for column in [Column::Occurrence, Column::InputShapes] {
        if options.shows(column) {
            cells.push(format!("{} N/A in code view", column.name()));
        }
    }
    format!("{:indent$}{} ({})\n", "", row.name, cells.join(", "), indent = row.indent)
}

/// A row of the op view; shares are of the root.
pub(crate) fn op(profile: &Profile, options: &Options, row: &Row, root: &Row) -> String {
    let (own, total, whole) = (&row.own, &row.total, &root.total);
    let cell = |text: String, own: i64, total: i64, whole: i64, any: bool| {
        let share = |value: i64| if any { 100.0 * value as f64 / whole as f64 } else { 0.0 };
        format!("{:>30}", format!("{text} ({:.2}%, {:.2}%)", share(total), share(own)))
    };
    let memory = |own: i64, total: i64, whole: i64| cell(bytes(own), own, total, whole, own > 0);
    let other = |text: String, own: i64, total: i64, whole: i64| cell(text, own, total, whole, total > 0);
    let mut cells = Vec::new();
    let mut add = |column: Column, cell: &dyn Fn() -> String| {
        if options.shows(column) {
            cells.push(cell());
        }
    };
    add(Column::Bytes, &|| memory(own.requested_bytes, total.requested_bytes, whole.requested_bytes));
    add(Column::PeakBytes, &|| memory(own.peak_bytes, total.peak_bytes, whole.peak_bytes));
    add(Column::ResidualBytes, &|| memory(own.residual_bytes, total.residual_bytes, whole.residual_bytes));
    add(Column::OutputBytes, &|| memory(own.output_bytes, total.output_bytes, whole.output_bytes));
    let accelerator = || {
        let micros = own.accelerator_micros;
        other(time(micros), micros, total.accelerator_micros, whole.accelerator_micros)
    };
    let cpu = || other(time(own.cpu_micros), own.cpu_micros, total.cpu_micros, whole.cpu_micros);
    add(Column::Micros, &|| {
        other(time(own.exec_micros), own.exec_micros, total.exec_micros, whole.exec_micros)
    });
    if options.shows(Column::Micros) {
        add(Column::Micros, &accelerator);
        add(Column::Micros, &cpu);
    } else {
        add(Column::AcceleratorMicros, &accelerator);
        add(Column::CpuMicros, &cpu);
    }
    add(Column::Params, &|| {
        let text = count(own.parameters) + " params";
        other(text, own.parameters, total.parameters, whole.parameters)
    });
    add(Column::FloatOps, &|| {
        let text = count(own.float_ops) + " float_ops";
        other(text, own.float_ops, total.float_ops, whole.float_ops)
    });
    let none = Members::default();
    let members = members(row).unwrap_or(&none);
    add(Column::Device, &|| join(members.devices.iter(), "|"));
    add(Column::OpTypes, &|| join(members.types.iter(), "|"));
    add(Column::Occurrence, &|| {
        let runs = members.nodes.iter().map(|&index| profile.nodes[index].measures(options.step).runs);
        format!("{:>10}", format!("{}|{}", crate::exec::sum(runs), members.nodes.len()))
    });
    let mut text = format!("{:<25}{}\n", row.name, cells.join(", "));
    if options.shows(Column::InputShapes) && !members.nodes.is_empty() {
        text = format!("{text}\n{}\n\n", input_types(profile, options, members));
    }
    text
}

/// `own/total`, or `--/total` if the row itself does not count.
fn own_and_total(row: &Row, own: i64, total: i64, format: fn(i64) -> String) -> String {
    match row.accounted {
        true => format!("{}/{}", format(own), format(total)),
        false => format!("--/{}", format(total)),
    }
}

/// The columns that scope, graph and code view share.
fn memory_and_time(options: &Options, row: &Row) -> Vec<String> {
    let (own, total) = (&row.own, &row.total);
    let pair = |own: i64, total: i64, format: fn(i64) -> String| own_and_total(row, own, total, format);
    let mut cells = Vec::new();
    let memory = [
        (Column::Bytes, own.requested_bytes, total.requested_bytes),
        (Column::PeakBytes, own.peak_bytes, total.peak_bytes),
        (Column::ResidualBytes, own.residual_bytes, total.residual_bytes),
        (Column::OutputBytes, own.output_bytes, total.output_bytes),
    ];
    for (column, own, total) in memory {
        cells.extend(options.shows(column).then(|| pair(own, total, bytes)));
    }
    let all = options.shows(Column::Micros);
    if all {
        cells.push(pair(own.exec_micros, total.exec_micros, time));
    }
    if all || options.shows(Column::AcceleratorMicros) {
        cells.push(pair(own.accelerator_micros, total.accelerator_micros, time));
    }
    if all || options.shows(Column::CpuMicros) {
        cells.push(pair(own.cpu_micros, total.cpu_micros, time));
    }
    cells
}

/// `0:64x128`, `1:unknown`, …
pub(crate) fn input_shapes(shapes: &BTreeMap<i64, Vec<i64>>) -> Vec<String> {
    let one = |(at, dims): (&i64, &Vec<i64>)| match dims.is_empty() {
        true => format!("{at}:unknown"),
        false => format!("{at}:{}", shape(dims)),
    };
    shapes.iter().map(one).collect()
}

/// The shapes with which an operation type was used: how often, for how long.
fn input_types(profile: &Profile, options: &Options, members: &Members) -> String {
    let mut types: BTreeMap<String, (i64, i64, i64)> = BTreeMap::new();
    for &index in &members.nodes {
        let node = &profile.nodes[index];
        let text = format!("input_type: {}", input_shapes(&profile.input_shapes(node)).join(",\t"));
        let measures = node.measures(options.step);
        let (defined, runs, micros) = types.entry(text).or_default();
        *defined += 1;
        *runs = runs.saturating_add(measures.runs);
        *micros = micros.saturating_add(measures.exec_micros);
    }
    let mut lines: Vec<(String, (i64, i64, i64))> = types.into_iter().collect();
    lines.sort_by_key(|(_, (_, runs, _))| std::cmp::Reverse(*runs));
    let line = |(text, (defined, runs, micros)): &(String, (i64, i64, i64))| {
        format!("{text}\t(run*{runs}|defined*{defined})\texec_time: {}", time(*micros))
    };
    lines.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// A variable's values, one bracket per dimension.
fn values(variable: &Variable) -> String {
    let mut text = String::new();
    match &variable.values {
        None => return text,
        Some(Values::Floats(values)) => {
            let mut values = values.iter().map(|value| format!("{:.2} ", rounded(*value)));
            nested(&mut values, &variable.shape, &mut text);
        }
        Some(Values::Ints(values)) => {
            let mut values = values.iter().map(|value| format!("{value} "));
            nested(&mut values, &variable.shape, &mut text);
        }
    }
    if text.len() >= LONGEST_VALUE {
        text += "...omitted from display\n\n";
    }
    text
}

/// tfprof prints a value with six digits and reads it back before it prints it again.
fn rounded(value: f64) -> f64 {
    crate::numbers::general(value).parse().unwrap_or(value)
}

fn nested(values: &mut impl Iterator<Item = String>, dims: &[i64], text: &mut String) {
    text.push('[');
    match dims {
        [] | [_] => {
            let count = dims.first().map_or(1, |size| usize::try_from(*size).unwrap_or(0));
            values.take(count).for_each(|value| text.push_str(&value));
        }
        [size, inner @ ..] => {
            for _ in 0..(*size).max(0) {
                nested(values, inner, text);
            }
        }
    }
    if text.len() > LONGEST_VALUE {
        text.truncate(LONGEST_VALUE);
    }
    text.push_str("],\n");
}

fn members(row: &Row) -> Option<&Members> {
    match &row.of {
        Of::Nodes(members) => Some(members),
        _ => None,
    }
}

fn type_of(row: &Row) -> &'static str {
    match row.of {
        Of::Name(name) => name,
        _ => "",
    }
}

fn join<'a>(parts: impl Iterator<Item = &'a String>, with: &str) -> String {
    parts.map(String::as_str).collect::<Vec<_>>().join(with)
}
