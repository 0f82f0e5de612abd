//! A comparison as text: the verdict, what changed, other differences.

use std::io::{self, Write};

use stepscope_diagnose::compare::{Comparison, FindingKey, Verdict};

use super::words;
use crate::format::{short, thousands};
use crate::style::Style;
use crate::table::{self, Cell, Column, Format, Select, Table};

/// Number of ops shown.
const TOP_OPS: usize = 10;
/// Number of scopes shown.
const TOP_SCOPES: usize = 5;

/// Writes the comparison; with `explain`, also how the verdict was reached.
pub fn write_text(
    comparison: &Comparison,
    explain: bool,
    style: Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "{}", style.bold(&words::headline(comparison)))?;
    writeln!(out)?;
    for (name, side) in [("BASE", &comparison.base), ("NEW ", &comparison.new)] {
        writeln!(
            out,
            "{name}  {}  {}",
            words::amount(side, comparison.unit),
            style.dim(&side.runs.join(", "))
        )?;
    }
    section(&figures(comparison), style, out)?;
    section(&breakdown(comparison), style, out)?;
    section(&scopes(comparison), style, out)?;
    section(&ops(comparison), style, out)?;
    findings(comparison, style, out)?;
    let mut remarks = words::remarks(comparison);
    if explain {
        remarks.extend(words::explanation(comparison));
    }
    if !remarks.is_empty() {
        writeln!(out)?;
    }
    remarks.iter().try_for_each(|remark| writeln!(out, "{remark}"))
}

fn section(table: &Table, style: Style, out: &mut dyn Write) -> io::Result<()> {
    if table.rows().is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    let mut picked = table.pick(&Select::default(), table.top).map_err(io::Error::other)?;
    let cut = std::mem::take(&mut picked.cut) as u64;
    table::write_text(table, &picked, style, out)?;
    if cut > 0 {
        writeln!(out, "{}", style.dim(&format!("… and {} more; --json lists all", thousands(cut))))?;
    }
    Ok(())
}

/// The figures of both sides, each with its interval.
fn figures(comparison: &Comparison) -> Table {
    let columns = vec![
        Column::new("figure", "figure", Format::Text),
        Column::new("base_ms", "BASE", Format::Ms),
        Column::new("new_ms", "NEW", Format::Ms),
        Column::new("change", "change", Format::Text),
        Column::new("interval", "95 % interval", Format::Text),
    ];
    let mut table = Table::new("compare", columns);
    for (name, measured) in words::figures(comparison) {
        table.push([
            name.into(),
            measured.base_ms.into(),
            measured.new_ms.into(),
            measured.ratio.map(|ratio| words::change(ratio.value)).into(),
            measured.ratio.as_ref().and_then(words::interval).into(),
        ]);
    }
    table
}

/// The breakdown of both sides.
pub(super) fn breakdown(comparison: &Comparison) -> Table {
    let columns = vec![
        Column::new("category", "category", Format::Text),
        Column::new("base_ms", "BASE", Format::Ms),
        Column::new("new_ms", "NEW", Format::Ms),
        Column::new("delta_ms", "change", Format::Ms),
        Column::new("proven", "significant", Format::Text),
    ];
    let mut table = Table::new("compare", columns);
    table.headline = Some("Breakdown of the mean step".to_owned());
    for delta in &comparison.breakdown {
        let measured = &delta.measured;
        table.push([
            delta.category.key().into(),
            measured.base_ms.into(),
            measured.new_ms.into(),
            measured.delta_ms.value.into(),
            if delta.proven() { "yes" } else { "no" }.into(),
        ]);
    }
    table
}

/// The ops of both sides, without the unchanged ones.
pub(super) fn ops(comparison: &Comparison) -> Table {
    let columns = vec![
        Column::new("name", "op", Format::Name),
        Column::new("type", "type", Format::Name).optional(),
        Column::new("base_ms", "BASE", Format::Ms),
        Column::new("new_ms", "NEW", Format::Ms),
        Column::new("delta_ms", "change", Format::Ms),
        Column::new("count", "count", Format::Text).optional(),
    ];
    let mut table = Table::new("compare", columns);
    table.headline = Some(format!("Largest changes in op self time, {}", words::per_unit(comparison.unit)));
    table.top = Some(TOP_OPS);
    for op in comparison.ops.iter().filter(|op| op.delta_ms() != 0.0) {
        table.push([
            op.name.as_str().into(),
            words::op_type(op).into(),
            op.base_ms.into(),
            op.new_ms.into(),
            op.delta_ms().into(),
            Cell::from(format!("{} → {}", short(op.base_count), short(op.new_count))),
        ]);
    }
    table
}

/// The name scopes of both sides, without the unchanged ones.
pub(super) fn scopes(comparison: &Comparison) -> Table {
    let columns = vec![
        Column::new("name", "scope", Format::Name),
        Column::new("base_ms", "BASE", Format::Ms),
        Column::new("new_ms", "NEW", Format::Ms),
        Column::new("delta_ms", "change", Format::Ms),
    ];
    let mut table = Table::new("compare", columns);
    table.headline = Some("Largest changes by scope, per step".to_owned());
    table.top = Some(TOP_SCOPES);
    for scope in comparison.scopes.iter().filter(|scope| scope.delta_ms() != 0.0) {
        let (base, new, change) = (scope.base_ms, scope.new_ms, scope.delta_ms());
        table.push([scope.name.as_str().into(), base.into(), new.into(), change.into()]);
    }
    table
}

fn findings(comparison: &Comparison, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let changes = &comparison.findings;
    let all: [(&str, &[FindingKey]); 3] =
        [("solved", &changes.solved), ("new", &changes.new), ("left", &changes.left)];
    // Nothing is solved by running something else.
    if comparison.verdict == Verdict::NotComparable || all.iter().all(|(_, findings)| findings.is_empty()) {
        return Ok(());
    }
    writeln!(out, "\n{}", style.bold("Findings"))?;
    for (word, findings) in all.iter().filter(|(_, findings)| !findings.is_empty()) {
        let names: Vec<String> = findings.iter().map(words::finding).collect();
        writeln!(out, "{word}: {}", names.join(", "))?;
    }
    Ok(())
}
