//! A comparison as text: the verdict, what changed, other differences.

use std::io::{self, Write};

use stepscope_diagnose::compare::{
    CategoryDelta, Comparison, FindingKey, Measured, OpDelta, PartDelta, ScopeDelta, Verdict,
};
use stepscope_results::table::{Select, Table, columns};

use super::headline::headline;
use super::words;
use crate::format::thousands;
use crate::style::Style;
use crate::table;

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
    writeln!(out, "{}", style.bold(&headline(comparison)))?;
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
    section(&parts(comparison), style, out)?;
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
    let fields = columns! { it: (&'static str, &Measured);
        figure: Text "figure" => it.0;
        base_ms: Ms "BASE" => it.1.base_ms;
        new_ms: Ms "NEW" => it.1.new_ms;
        change: Text "change" => it.1.ratio.map(|ratio| words::change(ratio.value));
        interval: Text "95 % interval" => it.1.ratio.as_ref().and_then(words::interval);
    };
    Table::of("compare", &fields, &words::figures(comparison))
}

/// The breakdown of both sides.
pub(super) fn breakdown(comparison: &Comparison) -> Table {
    let fields = columns! { delta: CategoryDelta;
        category: Text "category" => delta.category.key();
        base_ms: Ms "BASE" => delta.measured.base_ms;
        new_ms: Ms "NEW" => delta.measured.new_ms;
        delta_ms: Ms "change" => delta.measured.delta_ms.value;
        proven: Text "significant" => if delta.proven() { "yes" } else { "no" };
    };
    let mut table = Table::of("compare", &fields, &comparison.breakdown);
    table.headline = Some("Breakdown of the mean step".to_owned());
    table
}

/// The ops of both sides, without the unchanged ones.
pub(super) fn ops(comparison: &Comparison) -> Table {
    let fields = columns! { op: OpDelta;
        name: Name "op" => op.name.as_str();
        type.optional: Name "type" => words::op_type(op);
        where.optional: Text "where" => words::side(op);
        base_ms: Ms "BASE" => op.base_ms;
        new_ms: Ms "NEW" => op.new_ms;
        delta_ms: Ms "change" => op.delta_ms();
        count.optional: Text "count" => words::counts(op);
    };
    let changed = comparison.ops.iter().filter(|op| op.delta_ms() != 0.0);
    let mut table = Table::of("compare", &fields, changed);
    table.headline = Some(format!("Largest changes in op self time, {}", words::per_unit(comparison.unit)));
    table.top = Some(TOP_OPS);
    table
}

/// The name scopes of both sides, without the unchanged ones.
pub(super) fn scopes(comparison: &Comparison) -> Table {
    let fields = columns! { scope: ScopeDelta;
        name: Name "scope" => scope.name.as_str();
        base_ms: Ms "BASE" => scope.base_ms;
        new_ms: Ms "NEW" => scope.new_ms;
        delta_ms: Ms "change" => scope.delta_ms();
    };
    let changed = comparison.scopes.iter().filter(|scope| scope.delta_ms() != 0.0);
    let mut table = Table::of("compare", &fields, changed);
    table.headline = Some("Largest changes by scope, per step".to_owned());
    table.top = Some(TOP_SCOPES);
    table
}

/// Parts of the model in compiled programs, with why their time differs.
pub(super) fn parts(comparison: &Comparison) -> Table {
    let fields = columns! { part: PartDelta;
        name: Name "part" => part.name();
        phase.optional: Text "phase" => part.phase();
        source.optional: Name "source" => Some(part.source()).filter(|source| !source.is_empty());
        base_ms: Ms "BASE" => part.ms().0;
        new_ms: Ms "NEW" => part.ms().1;
        delta_ms: Ms "change" => part.delta_ms();
        why: Text "why" => words::part_change(part.change());
    };
    let changed = comparison.parts.iter().filter(|part| part.delta_ms() != 0.0);
    let mut table = Table::of("compare", &fields, changed);
    table.headline = Some("Largest changes in compiled programs, per step".to_owned());
    table.top = Some(TOP_SCOPES);
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
