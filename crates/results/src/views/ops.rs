//! `stepscope ops`: which ops the time goes to.

use stepscope_analyze::window::Window;
use stepscope_analyze::work::ops::{OpRow, Ops, OpsPartial, Where};
use stepscope_analyze::work::programs::{Origin, Origins, Programs, ProgramsPartial};
use stepscope_analyze::{Analysis, Context};

use super::{Group, Grouping, Hosts, View, all_hosts, covers, describe_window, window_members};
use crate::format::{duration_ms, percent, prefixed};
use crate::table::{Field, Table, columns, described};

pub(super) const VIEW: View = View {
    name: "ops",
    title: "Ops",
    group: Group::Time,
    question: "Which ops does the time go to?",
    about: "Show which ops the time goes to, on the host and on devices",
    after_help: "Examples:\n  \
        stepscope ops logs/                    most expensive ops first\n  \
        stepscope ops logs/ --by type          MatMul, Conv2D, … instead of every single op\n  \
        stepscope ops logs/ --filter conv      only ops with `conv` in their name or type\n  \
        stepscope ops logs/ --sort count --csv for a spreadsheet",
    record: &[
        "TensorFlow: profile steps that run inside a `tf.function`; ops are recorded by default",
        "PyTorch: `torch.profiler.profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])`",
    ],
    events: Some("name"),
    recording: false,
    sql: Some(("op", "Ops of the model and of the input pipeline, over the counted steps.")),
    columns: || described(columns()),
    members: window_members!(),
    table: |hosts| {
        let (ops, programs) = both(hosts);
        table(&ops, &programs)
    },
    groupings: &[Grouping { by: "type", table: by_type }],
};

/// An op, and what its totals are over.
struct Line<'a> {
    op: &'a OpRow,
    window: Window,
    origin: Option<Origin<'a>>,
}

fn columns<'a>() -> Vec<Field<Line<'a>>> {
    columns! { line: Line<'a>;
        name.known: Name "op", "name of the op" => line.op.key.name.as_str();
        type.optional: Text "type", "type of the op" => line.op.key.kind.as_str();
        label.optional: Name "what", "scopes of the model and operation of the framework, of an instruction of a compiled program" => line.origin.and_then(|origin| some(origin.label));
        source.optional: Name "source", "its file and line" => line.origin.and_then(|origin| some(origin.source));
        scope.hidden: Name "scope", "its scopes of the model" => line.origin.and_then(|origin| some(origin.scope));
        where.known.one_of(&["host", "device"]).sql("side"): Text "where", "host or device" => side(line.op);
        part.drawn: Text "" => if line.op.key.input { "input" } else { "" };
        count.known: Count "count", "number of runs" => line.op.count;
        total_ms.known.optional: Ms "total", "time with nested ops" => line.op.total_ms;
        self_ms.known: Ms "self", "time without nested ops" => line.op.self_ms;
        fraction: Percent "share", "share of the self time of all ops on that side" => line.op.fraction;
        mean_ms.optional: Ms "mean", "mean duration" => line.op.mean_ms();
        self_ms_per_step.optional: Ms "self/step", "self time per step" => line.window.per_step(line.op.self_ms);
        cumulative.optional: Percent "cumulative", "share of this op and all larger ones" => line.op.cumulative;
        eager.hidden: Flag "eager", "it ran eagerly" => line.op.eager;
        input.hidden: Flag "input", "it belongs to the input pipeline" => line.op.key.input;
        shapes.hidden: Text "shapes", "shapes of its inputs" => line.op.shapes.clone();
        flops.hidden.real: Count "FLOP", "floating-point operations, from the profile or from recorded shapes" => line.op.flops;
        flops_per_s.hidden: Short "FLOP/s", "FLOP per second of self time" => line.op.flops_per_s;
        flops_shown.drawn.optional: Text "FLOP/s" => line.op.flops_per_s.map(prefixed);
        bytes_per_s.hidden.real: Bytes "bytes/s", "bytes per second" => line.op.bytes_per_s;
    }
}

fn some(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

/// Ops, and the programs that some of them belong to.
fn both(hosts: &dyn Hosts) -> (Ops, Programs) {
    let of = |context: &Context<'_>| (OpsPartial::of(context), ProgramsPartial::of(context));
    let merge = |all: &mut (OpsPartial, ProgramsPartial), (ops, programs)| {
        all.0.merge(ops);
        all.1.merge(programs);
    };
    let (ops, programs) = all_hosts(hosts, of, merge);
    (ops.finish(), programs.finish())
}

/// For `--by type`.
fn by_type(hosts: &dyn Hosts) -> Table {
    let ops = all_hosts(hosts, OpsPartial::of, OpsPartial::merge).finish();
    let mut table = table(&ops.by_type(), &Programs::default());
    table.entitle("name", "type");
    table.hide(&["type"]);
    table
}

/// One row per op, longest self time first, wherever it runs: the culprit may be an op of the input pipeline.
fn table(ops: &Ops, programs: &Programs) -> Table {
    let origins = Origins::of(programs);
    let mut lines: Vec<Line<'_>> = Vec::with_capacity(ops.rows.len());
    for op in &ops.rows {
        lines.push(Line { op, window: ops.window, origin: origins.find(&op.key.name) });
    }
    lines.sort_by(|a, b| b.op.self_ms.total_cmp(&a.op.self_ms));
    let mut table = Table::of("ops", &columns(), &lines);
    table.top = Some(20);
    table.headline = Some(headline(ops));
    describe_window(&mut table, ops.window);
    if !ops.rows.is_empty() {
        table.note(
            "self: time without nested ops, summed over threads and devices; share: of the self time of all ops on that side (host or device).",
        );
    }
    if let Some(known) = ops.known_flops() {
        table.note(format!("FLOP/s: known for {} of the model's op time.", percent(known)));
    }
    if ops.rows.iter().any(|row| row.key.input) {
        table.note(
            "Rows marked `input` are ops of the input pipeline, which runs beside the step; their share is of its time. \
             `stepscope input` shows them as a tree.",
        );
    } else {
        table.hide(&["part"]);
    }
    table
}

/// The public word for where an op ran.
fn side(row: &OpRow) -> &'static str {
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
