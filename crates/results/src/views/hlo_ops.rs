//! `stepscope hlo ops`: which instructions of compiled programs the time goes to, what they are and what they cost.

use stepscope_analyze::work::programs::{Bound, BoundTime, GroupBy, GroupRow, Peaks, ProgramOp, Programs};

use super::hlo_modules::{RECORD, describe_peaks, peaks_members, programs};
use super::{Group, Grouping, Hosts, View, describe_window, window_members};
use crate::format::{duration_ms, percent, prefixed};
use crate::table::{Field, Table, columns, described};

pub(super) const VIEW: View = View {
    name: "hlo_ops",
    title: "Program ops",
    group: Group::Time,
    question: "Which instructions of compiled programs does the time go to?",
    about: "Show the instructions that ran: time, executions, FLOPs, bytes, scope and source line",
    after_help: "Examples:\n  \
        stepscope hlo ops logs/                     most expensive first, with the line of Python\n  \
        stepscope hlo ops logs/ --by source         time per line of source\n  \
        stepscope hlo ops logs/ --by phase          forward, backward, recompute, optimizer\n  \
        stepscope hlo ops logs/ --peak 989T,3.35T   with the peaks of the device, in FLOP/s and bytes/s",
    record: RECORD,
    events: Some("op"),
    recording: false,
    sql: Some(("hlo_op", "Instructions of compiled programs that ran, over the counted steps.")),
    columns: || described(columns()),
    members: concat!(window_members!(), peaks_members!()),
    table: |hosts| ops(hosts, None, None),
    groupings: &[
        Grouping { by: "category", table: |hosts| ops(hosts, Some(GroupBy::Category), None) },
        Grouping { by: "scope", table: |hosts| ops(hosts, Some(GroupBy::Scope), None) },
        Grouping { by: "source", table: |hosts| ops(hosts, Some(GroupBy::Source), None) },
        Grouping { by: "phase", table: |hosts| ops(hosts, Some(GroupBy::Phase), None) },
        Grouping { by: "module", table: |hosts| ops(hosts, Some(GroupBy::Module), None) },
    ],
};

fn columns<'a>() -> Vec<Field<Line<'a>>> {
    columns! { line: Line<'a>;
        module.hidden: Name "program", "name of the program" => line.op.map(|op| op.program.name.as_str());
        program_id.hidden: Id "id", "number of the program in the profile" => line.op.and_then(|op| op.program.id);
        op.known: Name "op", "name of the instruction, or of the group" => line.name();
        label: Name "what", "scopes of the model and operation of the framework" => line.text(|op| &op.facts.label);
        source.optional: Name "source", "file and line" => line.text(|op| &op.facts.source);
        category.optional: Text "category", "kind of work" => line.text(|op| &op.facts.category);
        phase.optional: Text "phase", "forward, backward, recompute or optimizer" => line.op.filter(|op| op.facts.known).map(|op| op.facts.phase.name());
        scope.hidden: Name "scope", "scopes of the model" => line.text(|op| &op.facts.scope);
        opcode.hidden: Text "opcode", "the instruction's own kind" => line.text(|op| &op.facts.opcode);
        time_ms.known: Ms "time", "time without nested instructions" => line.time_ms();
        fraction: Percent "share", "share of the time in programs" => (line.all > 0.0).then(|| line.time_ms() / line.all);
        time_ms_per_step.hidden: Ms "time/step", "time per step" => line.programs.window.per_step(line.time_ms());
        background_ms.hidden: Ms "background", "part of the time in which it went on after its events, on threads that are not recorded" => line.op.map(|op| op.totals.background.ms());
        executions.known: Count "executions", "how often it ran" => line.executions();
        events.hidden: Count "events", "recorded events; more than executions if one runs several kernels" => line.op.map(|op| op.totals.events);
        ops.hidden: Count "ops", "number of instructions" => line.group.map_or(1, |group| group.ops);
        flops.hidden: Count "FLOPs", "operations of all executions" => line.flops();
        flops_shown.drawn.optional: Text "FLOPs" => line.flops().map(|flops| prefixed(flops as f64));
        bytes.optional: Bytes "bytes", "bytes read and written by all executions" => line.bytes();
        transcendentals.hidden: Count "transcendentals", "exponentials, roots and the like of all executions" => line.op.and_then(ProgramOp::cost).map(|cost| cost.transcendentals);
        flops_per_execution.hidden: Count "FLOPs each", "operations of one execution" => line.each(ProgramOp::flops);
        bytes_per_execution.hidden: Bytes "bytes each", "bytes of one execution" => line.each(ProgramOp::bytes);
        flops_per_s.hidden: Short "FLOP/s", "operations per second" => line.rate(line.flops());
        flops_per_s_shown.drawn.optional: Text "FLOP/s" => line.rate(line.flops()).map(prefixed);
        bytes_per_s.optional.real: Bytes "bytes/s", "bytes per second" => line.rate(line.bytes());
        matrix_type.hidden: Text "type", "type of numbers that matrix units multiply" => line.matrix_type();
        link_bytes.hidden: Bytes "link bytes", "bytes that all executions send to other devices at least" => line.link_bytes();
        bound: Text "bound", "what limits it at best: compute, memory, network or host" => line.bound().map(Bound::name);
        efficiency.optional: Percent "of peak", "share of the peak that it reaches; above 1 if caches served part of the bytes" => line.limit().map(|limit| limit.efficiency);
        waste_ms.optional: Ms "waste", "time above the least possible" => line.waste_ms();
        waste_ms_per_step.hidden: Ms "waste/step", "time above the least possible, per step" => line.waste_ms().and_then(|waste| line.programs.window.per_step(waste));
        unknown_ms.hidden: Ms "unknown", "time in instructions of unknown cost" => line.unknown_ms();
        matched.hidden: Text "matched", "how events were joined: recorded, or by the name or the source line of a kernel that a graph launched" => line.op.map(|op| op.totals.matched.name());
    }
}

/// An instruction, or a group of them.
struct Line<'a> {
    programs: &'a Programs,
    all: f64,
    op: Option<&'a ProgramOp>,
    group: Option<&'a GroupRow>,
}

impl<'a> Line<'a> {
    fn name(&self) -> &'a str {
        match (self.op, self.group) {
            (Some(op), _) => &op.op,
            (None, Some(group)) if !group.name.is_empty() => &group.name,
            _ => "(none)",
        }
    }

    fn text(&self, of: fn(&'a ProgramOp) -> &'a String) -> Option<&'a str> {
        self.op.map(|op| of(op).as_str()).filter(|text| !text.is_empty())
    }

    fn time_ms(&self) -> f64 {
        self.op.map(|op| op.totals.own.ms()).or(self.group.map(|group| group.time_ms)).unwrap_or(0.0)
    }

    fn executions(&self) -> u64 {
        self.op.map(|op| op.totals.executions).or(self.group.map(|group| group.executions)).unwrap_or(0)
    }

    /// Of a group, those of the instructions whose cost is known.
    fn flops(&self) -> Option<u64> {
        self.op.map_or_else(|| self.priced().map(|group| group.flops), ProgramOp::flops)
    }

    fn bytes(&self) -> Option<u64> {
        self.op.map_or_else(|| self.priced().map(|group| group.bytes), ProgramOp::bytes)
    }

    fn priced(&self) -> Option<&'a GroupRow> {
        self.group.filter(|group| group.time_ms > group.unknown_ms)
    }

    fn unknown_ms(&self) -> f64 {
        match (self.op, self.group) {
            (Some(op), _) if is_unknown(op) => op.totals.own.ms(),
            (None, Some(group)) => group.unknown_ms,
            _ => 0.0,
        }
    }

    fn each(&self, of: fn(&ProgramOp) -> Option<u64>) -> Option<u64> {
        of(self.op?)?.checked_div(self.executions())
    }

    /// Per second of the time whose cost is known.
    fn rate(&self, amount: Option<u64>) -> Option<f64> {
        let time = self.time_ms() - self.unknown_ms();
        let starts = self.op.is_some_and(ProgramOp::only_starts);
        amount.filter(|_| time > 0.0 && !starts).map(|amount| amount as f64 / time * 1e3)
    }

    fn matrix_type(&self) -> Option<&'static str> {
        let op = self.op.filter(|op| op.facts.known && !op.facts.container)?;
        op.facts.cost.matrix_type().map(|kind| kind.name())
    }

    fn link_bytes(&self) -> Option<u64> {
        let op = self.op?;
        op.facts.link_bytes.map(|bytes| bytes.saturating_mul(op.totals.executions))
    }

    fn bound(&self) -> Option<Bound> {
        self.op?.bound(self.programs.peaks.as_ref())
    }

    fn limit(&self) -> Option<BoundTime> {
        self.op?.bound_time(self.programs.peaks.as_ref()?)
    }

    fn waste_ms(&self) -> Option<f64> {
        self.limit().map(|limit| limit.waste_ms).or(self.group.and_then(|group| group.waste_ms))
    }
}

fn is_unknown(op: &ProgramOp) -> bool {
    !op.facts.container && op.flops().is_none()
}

/// Instructions one by one or summed up, the longest first. `peaks` replaces what is known about the device.
pub fn ops(hosts: &dyn Hosts, by: Option<GroupBy>, peaks: Option<Peaks>) -> Table {
    let programs = programs(hosts, peaks);
    match by {
        None => table(&programs),
        Some(by) => grouped(&programs, by),
    }
}

/// One row per instruction that ran.
fn table(programs: &Programs) -> Table {
    let all: f64 = programs.ops.iter().map(|op| op.totals.own.ms()).sum();
    let line = |op| Line { programs, all, op: Some(op), group: None };
    let lines: Vec<Line<'_>> = programs.ops.iter().map(line).collect();
    let mut table = Table::of("hlo_ops", &columns(), &lines);
    table.headline = Some(match programs.ops.first().filter(|_| all > 0.0) {
        None => "No instruction of a compiled program ran".to_owned(),
        Some(first) => {
            let share = percent(first.totals.own.ms() / all);
            format!("`{}` takes {share} of the time in programs: {}", first.op, first.title())
        }
    });
    finish(&mut table, programs);
    table
}

/// One row per group.
fn grouped(programs: &Programs, by: GroupBy) -> Table {
    let title = match by {
        GroupBy::Category => "category",
        GroupBy::Scope => "scope",
        GroupBy::Source => "source",
        GroupBy::Phase => "phase",
        GroupBy::Module => "program",
    };
    let rows = programs.grouped(by);
    let all: f64 = rows.iter().map(|row| row.time_ms).sum();
    let lines: Vec<Line<'_>> =
        rows.iter().map(|row| Line { programs, all, op: None, group: Some(row) }).collect();
    let mut table = Table::of("hlo_ops", &columns(), &lines);
    table.hide(&["label", "source", "category", "phase", "bound", "efficiency"]);
    table.entitle("op", title);
    if let Some(first) = rows.first().filter(|_| all > 0.0) {
        let share = percent(first.time_ms / all);
        table.headline = Some(match first.name.as_str() {
            "" => format!("{share} of the time in programs has no {title}"),
            name => format!("`{name}` takes {share} of the time in programs"),
        });
    }
    finish(&mut table, programs);
    table
}

/// Notes and members that all tables of instructions have.
pub(super) fn finish(table: &mut Table, programs: &Programs) {
    table.top = Some(25);
    describe_window(table, programs.window);
    describe_peaks(table, programs.peaks.as_ref());
    if programs.ops.is_empty() {
        return;
    }
    table.note("Times, FLOPs and bytes are totals over all executions, threads and devices; times exclude nested ops.");
    let unknown: f64 = programs.ops.iter().filter(|op| is_unknown(op)).map(|op| op.totals.own.ms()).sum();
    if unknown > 0.0 {
        table.note(format!(
            "The cost of {} is unknown: library calls whose configuration does not state it.",
            duration_ms(unknown)
        ));
    }
    match &programs.peaks {
        Some(peaks) => table.note(format!("Peaks of {}, {}.", peaks.device_name(), peaks.source.words())),
        None => table.note(
            "The peak of the device is unknown, so `bound` and `of peak` are too; state it with --peak.",
        ),
    }
}
