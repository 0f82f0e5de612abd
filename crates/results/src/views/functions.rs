//! `stepscope functions`: how often compiled functions were called, traced and compiled, and what it cost.

use stepscope_analyze::Analysis;
use stepscope_analyze::work::functions::{FunctionRow, Functions, FunctionsPartial, Sign};

use super::{Group, View, all_hosts};
use crate::format::{duration_ms, plural};
use crate::table::{Field, Table, columns, described};

pub(super) const VIEW: View = View {
    name: "functions",
    title: "Functions",
    group: Group::Time,
    question: "Was anything retraced or recompiled?",
    about: "Show how often compiled functions were called, traced and compiled, and what it cost",
    after_help: "Examples:\n  \
        stepscope functions logs/          which functions are retraced or recompiled, and why\n  \
        stepscope functions logs/ --json   including the compiled XLA modules",
    record: &[
        "Calls of `tf.function` and of `jax.jit` are recorded by default, at host tracer level 2 or more",
        "PyTorch's eager ops do not count as such calls",
    ],
    events: Some("name"),
    recording: false,
    sql: Some(("function", "Compiled functions: calls, traces, compilations.")),
    columns: || described(columns()),
    members: "",
    table: |hosts| table(&all_hosts(hosts, FunctionsPartial::of, FunctionsPartial::merge).finish()),
    groupings: &[],
};

fn columns() -> Vec<Field<FunctionRow>> {
    columns! { row: FunctionRow;
        name.known: Name "function", "name of the function" => row.name.as_str();
        calls: Count "calls", "number of calls" => row.calls;
        traces: Count "traces", "number of traces" => row.traces;
        compiles: Count "compiles", "number of compilations" => row.compiles;
        total_ms: Ms "call time", "time of all calls" => row.total_ms;
        tracing_ms: Ms "tracing", "time of traces" => row.tracing_ms;
        compile_ms: Ms "compiling", "time of compilations" => row.compile_ms;
        lost_ms_per_step: Ms "lost/step", "lost per step" => row.lost_ms_per_step;
        sign: Text "sign", "how traces were recognised" => row.sign.map(Sign::key);
        slow_calls_ms.hidden: Ms "slow calls", "time of slow calls" => row.slow_calls_ms;
        concrete_functions.optional: Count "graphs", "number of graphs" => row.concrete_functions;
        modules.hidden: Text "modules", "its programs" => (!row.modules.is_empty()).then(|| row.modules.join(" "));
    }
}

/// One row per function, most lost time first.
fn table(functions: &Functions) -> Table {
    let mut table = Table::of("functions", &columns(), &functions.rows);
    table.top = Some(20);
    table.headline = Some(headline(functions));
    if !functions.rows.is_empty() {
        table.note("Calls cover the whole capture; lost/step covers the counted steps.");
    }
    table
}

fn headline(functions: &Functions) -> String {
    let Some(first) = functions.rows.first() else {
        return "no calls of compiled functions were recorded".to_owned();
    };
    let lost = first.tracing_ms + first.compile_ms;
    let calls = plural(first.calls, "call", "calls");
    match first.sign {
        Some(Sign::FirstCallOnly) | None if lost == 0.0 => {
            format!("{} in {calls}: no retracing or recompilation", name(first))
        }
        Some(Sign::FirstCallOnly) | None => {
            format!("{} spent {} on its first call, and nothing after that", name(first), duration_ms(lost))
        }
        Some(sign) => {
            format!("{} lost {} in {calls}: {}", name(first), duration_ms(lost), meaning(sign))
        }
    }
}

fn name(row: &FunctionRow) -> &str {
    &row.name
}

/// What a sign means for the program.
fn meaning(sign: Sign) -> &'static str {
    match sign {
        Sign::ArgumentsVary => "retraced because its arguments vary",
        Sign::Recreated => "retraced because the function is re-created each time",
        Sign::ShapesVary => "recompiled because shapes vary",
        Sign::ShapesVaryOrRecreated => "recompiled because shapes vary or the function is re-created",
        Sign::CompilesEachCall => "recompiled without retracing",
        Sign::FirstCallOnly => "traced or compiled once",
    }
}
