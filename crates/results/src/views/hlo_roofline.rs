//! `stepscope hlo roofline`: how close instructions come to what the device can do.

use stepscope_analyze::work::programs::{Bound, BoundTime, Level, Peaks, ProgramOp, Programs};

use super::hlo_modules::{RECORD, peaks_members, programs};
use super::hlo_ops::finish;
use super::{Group, View, window_members};
use crate::format::{percent, prefixed};
use crate::table::{Field, Table, columns, described};

pub(super) const VIEW: View = View {
    name: "hlo_roofline",
    title: "Roofline",
    group: Group::Hardware,
    question: "How close do instructions come to what the device can do?",
    about: "Compare each instruction with the peak of its unit and type, and of the memory",
    after_help: "Examples:\n  \
        stepscope hlo roofline logs/                     most time first\n  \
        stepscope hlo roofline logs/ --sort waste_ms     most time above the least possible\n  \
        stepscope hlo roofline logs/ --peak 1.5T,60G     for a CPU: FLOP/s and bytes/s",
    record: RECORD,
    events: Some("op"),
    recording: false,
    sql: None,
    columns: || described(columns()),
    members: concat!(window_members!(), peaks_members!()),
    table: |hosts| table(&programs(hosts, None)),
    groupings: &[],
};

fn columns<'a>() -> Vec<Field<Line<'a>>> {
    columns! { line: Line<'a>;
        module.known.hidden: Name "program", "name of the program" => line.op.program.name.as_str();
        op.known: Name "op", "name of the instruction" => line.op.op.as_str();
        label.optional: Name "what", "scopes of the model and operation of the framework" => line.text(&line.op.facts.label);
        source.hidden: Name "source", "file and line" => line.text(&line.op.facts.source);
        category.optional: Text "category", "kind of work" => line.text(&line.op.facts.category);
        time_ms.known: Ms "time", "time without nested instructions" => line.time_ms();
        fraction: Percent "share", "share of the time in programs" => (line.all > 0.0).then(|| line.time_ms() / line.all);
        flops_per_byte: Short "FLOP/byte", "operations per byte" => (line.bytes > 0).then(|| line.flops as f64 / line.bytes as f64);
        matrix_type: Text "type", "type of numbers that matrix units multiply" => line.op.facts.cost.matrix_type().map(|kind| kind.name());
        flops_per_s.hidden: Short "FLOP/s", "operations per second" => line.rate(line.flops);
        flops_per_s_shown.drawn: Text "FLOP/s" => line.rate(line.flops).map(prefixed);
        peak_flops_per_s.hidden: Short "peak FLOP/s", "peak of the unit and type" => line.peak();
        peak_shown.drawn: Text "peak FLOP/s" => line.peak().map(prefixed);
        bytes_per_s.real: Bytes "bytes/s", "bytes per second, of all levels of memory" => line.rate(line.bytes);
        level.optional: Text "level", "level of memory that serves it at best: VMEM if all its arrays lie there, L2 if one execution fits, else HBM" => line.level();
        main_bytes_per_s.real.hidden: Bytes "HBM bytes/s", "bytes per second to and from the device's memory" => line.op.main_bytes().and_then(|bytes| line.rate(bytes));
        peak_bytes_per_s.real: Bytes "peak bytes/s", "peak of the device's memory" => line.memory();
        on_chip_bytes_per_s.real.optional: Bytes "VMEM bytes/s", "bytes per second to and from memory on the chip" => line.on_chip();
        peak_on_chip_bytes_per_s.real.optional: Bytes "peak VMEM", "peak of memory on the chip, reading" => line.on_chip_peak();
        ridge_flops_per_byte.optional: Short "ridge", "operations per byte from which the unit is the limit" => line.peak().zip(line.memory()).map(|(peak, memory)| peak / memory);
        bound: Text "bound", "what limits it at best: compute, memory, vmem, network or host" => line.op.bound(line.programs.peaks.as_ref()).map(Bound::name);
        efficiency: Percent "of peak", "share of the peak that it reaches; above 1 if caches served part of the bytes" => line.limit().map(|limit| limit.efficiency);
        waste_ms: Ms "waste", "time above the least possible" => line.limit().map(|limit| limit.waste_ms);
    }
}

/// An instruction with a known cost.
struct Line<'a> {
    programs: &'a Programs,
    all: f64,
    op: &'a ProgramOp,
    flops: u64,
    bytes: u64,
}

impl<'a> Line<'a> {
    fn text(&self, text: &'a str) -> Option<&'a str> {
        (!text.is_empty()).then_some(text)
    }

    fn time_ms(&self) -> f64 {
        self.op.totals.own.ms()
    }

    fn rate(&self, amount: u64) -> Option<f64> {
        (self.time_ms() > 0.0 && !self.op.only_starts()).then(|| amount as f64 / self.time_ms() * 1e3)
    }

    fn peak(&self) -> Option<f64> {
        let peaks = self.programs.peaks.as_ref()?;
        self.op.facts.cost.matrix_type().map_or(peaks.vector, |kind| peaks.matrix(kind))
    }

    fn memory(&self) -> Option<f64> {
        self.peaks()?.memory
    }

    fn peaks(&self) -> Option<&'a Peaks> {
        self.programs.peaks.as_ref()
    }

    fn level(&self) -> Option<&'static str> {
        self.op.level(self.peaks()?).map(Level::name)
    }

    /// Bytes per second to and from memory on the chip, if it touches that.
    fn on_chip(&self) -> Option<f64> {
        Some(self.op.on_chip_bytes()).filter(|bytes| *bytes > 0).and_then(|bytes| self.rate(bytes))
    }

    fn on_chip_peak(&self) -> Option<f64> {
        self.on_chip().and(self.peaks()?.on_chip_read)
    }

    fn limit(&self) -> Option<BoundTime> {
        self.op.bound_time(self.peaks()?)
    }
}

/// One row per instruction with a known cost, the longest first.
pub fn table(programs: &Programs) -> Table {
    let all: f64 = programs.ops.iter().map(|op| op.totals.own.ms()).sum();
    let line = |op: &'_ ProgramOp| op.flops().zip(op.bytes()).filter(|cost| *cost != (0, 0));
    let lines: Vec<Line<'_>> = programs
        .ops
        .iter()
        .filter_map(|op| line(op).map(|(flops, bytes)| Line { programs, all, op, flops, bytes }))
        .collect();
    let mut table = Table::of("hlo_roofline", &columns(), &lines);
    table.headline = Some(headline(programs, all));
    finish(&mut table, programs);
    table
}

fn headline(programs: &Programs, all: f64) -> String {
    let Some(peaks) = &programs.peaks else {
        return "The peak of the device is unknown; state it with --peak".to_owned();
    };
    if all <= 0.0 {
        return "No instruction of a compiled program ran".to_owned();
    }
    let least: f64 =
        programs.ops.iter().filter_map(|op| op.bound_time(peaks)).map(|bound| bound.least_ms).sum();
    let by_memory = programs.ops.iter().filter(|op| op.bound(Some(peaks)) == Some(Bound::Memory));
    let memory: f64 = by_memory.map(|op| op.totals.own.ms()).sum();
    format!(
        "Programs reach {} of what {} can do; {} of their time is bound by memory",
        percent(least / all),
        peaks.device_name(),
        percent(memory / all)
    )
}
