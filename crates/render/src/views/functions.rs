//! The view `functions`: how often compiled functions were called, traced and compiled, and what it cost.

use stepscope_analyze::work::functions::{FunctionRow, Functions, Sign};

use crate::format::{duration_ms, plural};
use crate::table::{Cell, Column, Format, Table};

/// One row per function, most lost time first.
pub fn table(functions: &Functions) -> Table {
    let columns = vec![
        Column::new("name", "function", Format::Name),
        Column::new("calls", "calls", Format::Count),
        Column::new("traces", "traces", Format::Count),
        Column::new("compiles", "compiles", Format::Count),
        Column::new("total_ms", "call time", Format::Ms),
        Column::new("tracing_ms", "tracing", Format::Ms),
        Column::new("compile_ms", "compiling", Format::Ms),
        Column::new("lost_ms_per_step", "lost/step", Format::Ms),
        Column::new("sign", "sign", Format::Text),
        Column::new("slow_calls_ms", "slow calls", Format::Ms).hidden(),
        Column::new("concrete_functions", "graphs", Format::Count).optional(),
        Column::new("modules", "modules", Format::Text).hidden(),
    ];
    let mut table = Table::new("functions", columns);
    table.top = Some(20);
    table.headline = Some(headline(functions));
    functions.rows.iter().for_each(|row| table.push(cells(row)));
    if !functions.rows.is_empty() {
        table.note("Calls cover the whole capture; lost/step covers the counted steps.");
    }
    table
}

fn cells(row: &FunctionRow) -> [Cell; 12] {
    [
        row.name.as_str().into(),
        row.calls.into(),
        row.traces.into(),
        row.compiles.into(),
        row.total_ms.into(),
        row.tracing_ms.into(),
        row.compile_ms.into(),
        row.lost_ms_per_step.into(),
        row.sign.map(Sign::key).into(),
        row.slow_calls_ms.into(),
        row.concrete_functions.into(),
        if row.modules.is_empty() { Cell::Null } else { row.modules.join(" ").into() },
    ]
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
pub fn meaning(sign: Sign) -> &'static str {
    match sign {
        Sign::ArgumentsVary => "retraced because its arguments vary",
        Sign::Recreated => "retraced because the function is re-created each time",
        Sign::ShapesVary => "recompiled because shapes vary",
        Sign::ShapesVaryOrRecreated => "recompiled because shapes vary or the function is re-created",
        Sign::CompilesEachCall => "recompiled without retracing",
        Sign::FirstCallOnly => "traced or compiled once",
    }
}
