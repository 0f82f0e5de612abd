//! `stepscope hlo outside`: what TensorFlow runs outside of compiled programs, and what their borders cost.

use std::collections::BTreeSet;

use stepscope_analyze::Analysis;
use stepscope_analyze::work::ops::{Ops, OpsPartial, Where};
use stepscope_analyze::work::programs::{
    Borders, Handing, Place, Programs, ProgramsPartial, Uncompiled, place_of,
};

use super::{Group, View, all_hosts, describe_window, window_members};
use crate::format::{duration_ms, percent, plural};
use crate::table::{Field, Table, columns, described};

pub(super) const VIEW: View = View {
    name: "hlo_outside",
    title: "Not compiled",
    group: Group::Time,
    question: "What runs outside of compiled programs, and why?",
    about: "Show ops that ran outside of compiled programs, why, and what the borders of programs cost (TensorFlow)",
    after_help: "The reason is the type of the op: XLA leaves some types out on principle. If the type is not one of these, the \
        reason is\nunknown; TensorFlow logs it with TF_CPP_VMODULE=mark_for_compilation_pass=2.\n\nExamples:\n  \
        stepscope hlo outside logs/                      most time first\n  \
        stepscope hlo outside logs/ --filter border      what starting programs and passing values costs",
    record: &[
        "TensorFlow: `tf.function(jit_compile=True)`, or `TF_XLA_FLAGS=\"--tf_xla_auto_jit=2 --tf_xla_cpu_global_jit\"`, then `tf.profiler.experimental.start(\"logs\")`",
    ],
    events: Some("op"),
    recording: false,
    sql: None,
    columns: || described(columns()),
    members: window_members!(),
    table: |hosts| {
        let of = |context: &stepscope_analyze::Context<'_>| {
            (ProgramsPartial::of(context), OpsPartial::of(context), Borders::of(context))
        };
        let (programs, ops, borders) = all_hosts(hosts, of, |all, one| {
            all.0.merge(one.0);
            all.1.merge(one.1);
            all.2.merge(one.2);
        });
        table(&programs.finish(), &ops.finish(), &borders)
    },
    groupings: &[],
};

fn columns() -> Vec<Field<Line>> {
    columns! { line: Line;
        op.known: Name "op", "name of the op, or of the op that runs the program" => line.op.as_str();
        op_type.known: Text "type", "type of the op, or which way values go" => line.op_type.as_str();
        place.known.one_of(&["outside", "border"]): Text "place", "outside of programs, or at the border of one" => line.place;
        why.optional: Text "why", "why XLA does not compile it, if its type says so" => line.why;
        side.hidden.known: Text "where", "host or device" => line.side;
        count.known: Count "count", "how often it ran" => line.count;
        values.optional: Count "values", "values that were passed, if known" => line.values;
        time_ms.known: Ms "time", "time without nested ops" => line.time_ms;
        time_ms_per_step: Ms "time/step", "time per step" => line.per_step;
        fraction: Percent "share", "share of the time in all ops and programs" => (line.all > 0.0).then(|| line.time_ms / line.all);
    }
}

/// An op, or what is passed at a border.
struct Line {
    op: String,
    op_type: String,
    place: &'static str,
    why: Option<&'static str>,
    side: &'static str,
    count: u64,
    values: Option<u64>,
    time_ms: f64,
    per_step: Option<f64>,
    all: f64,
}

/// Without automatic clustering, nothing is compiled but what the user marks.
const NOT_MARKED: &str = "it stands outside of functions with jit_compile=True";

fn reason(why: Uncompiled) -> &'static str {
    match why {
        Uncompiled::Size => "the size of its result depends on values",
        Uncompiled::Text => "it works on text",
        Uncompiled::Python => "it calls Python",
        Uncompiled::Input => "it belongs to the input pipeline",
        Uncompiled::Lookup => "its table lives outside of programs",
        Uncompiled::Output => "it writes or prints something",
        Uncompiled::Exchange => "it exchanges data with other processes",
    }
}

/// One row per op outside of programs or at a border, the longest first.
fn table(programs: &Programs, ops: &Ops, borders: &Borders) -> Table {
    let inside: BTreeSet<&str> = programs.ops.iter().map(|op| op.op.as_str()).collect();
    let all: f64 = ops.rows.iter().filter(|row| !row.key.input).map(|row| row.self_ms).sum();
    let clusters = programs.programs.iter().any(|row| row.key.name.starts_with("cluster_"));
    let mut lines: Vec<Line> = Vec::new();
    // Instructions of programs are ops of the recording too; kernels without an op are nobody's.
    let beside = |name: &str, kind: &str| !inside.contains(name) && !kind.is_empty() && kind != "kernel";
    for row in ops.rows.iter().filter(|row| !row.key.input && beside(&row.key.name, &row.key.kind)) {
        if programs.programs.is_empty() {
            break;
        }
        let (place, why) = match place_of(&row.key.kind) {
            Place::Border => ("border", None),
            Place::Outside(Some(why)) => ("outside", Some(reason(why))),
            Place::Outside(None) => ("outside", (!clusters).then_some(NOT_MARKED)),
        };
        lines.push(Line {
            op: row.key.name.clone(),
            op_type: row.key.kind.clone(),
            place,
            why,
            side: if row.key.side == Where::Device { "device" } else { "host" },
            count: row.count,
            values: None,
            time_ms: row.self_ms,
            per_step: ops.window.per_step(row.self_ms),
            all,
        });
    }
    lines.extend(borders.handed.iter().map(|(key, handing)| handed(key, handing, ops, all)));
    lines.sort_by(|a, b| {
        b.time_ms.total_cmp(&a.time_ms).then_with(|| (&a.op, &a.op_type).cmp(&(&b.op, &b.op_type)))
    });
    let mut table = Table::of("hlo_outside", &columns(), &lines);
    table.top = Some(25);
    table.headline = Some(headline(programs, &lines));
    describe_window(&mut table, ops.window);
    if lines.iter().any(|line| line.place == "outside" && line.why.is_none()) {
        table.note(
            "Without a reason: the op's cluster may be too small (--tf_xla_min_cluster_size), or its type may not be registered \
             for XLA.",
        );
    }
    table
}

/// Values that are passed to a cluster or taken from it. They are part of the op that runs it.
fn handed((cluster, inward): &(String, bool), handing: &Handing, ops: &Ops, all: f64) -> Line {
    Line {
        op: cluster.clone(),
        op_type: if *inward { "values in" } else { "values out" }.to_owned(),
        place: "border",
        why: None,
        side: "host",
        count: handing.count,
        values: Some(handing.values),
        time_ms: handing.time.ms(),
        per_step: ops.window.per_step(handing.time.ms()),
        all,
    }
}

fn headline(programs: &Programs, lines: &[Line]) -> String {
    if programs.programs.is_empty() {
        return "The profile holds no compiled programs".to_owned();
    }
    let sum = |place: &str| {
        let here = lines.iter().filter(|line| line.place == place && line.values.is_none());
        here.map(|line| line.time_ms).sum::<f64>()
    };
    let mut outside = lines.iter().filter(|line| line.place == "outside");
    let Some(first) = outside.next() else {
        return "Everything that was recorded ran inside of compiled programs".to_owned();
    };
    let count = plural(1 + outside.count() as u64, "op", "ops");
    let share = if first.all > 0.0 { percent(sum("outside") / first.all) } else { "–".to_owned() };
    let borders = match sum("border") {
        0.0 => String::new(),
        ms => format!(". Borders take {}", duration_ms(ms)),
    };
    format!("{count} ran outside of compiled programs, {share} of the time; most in `{}`{borders}", first.op)
}
