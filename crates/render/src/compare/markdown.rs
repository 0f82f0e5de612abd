//! A comparison as Markdown, for pull requests.

use std::io::{self, Write};

use stepscope_diagnose::compare::{Comparison, Verdict};

use super::headline::headline;
use super::words;
use crate::format::{duration_ms, from_to_ms, name_cut, printable};

/// Number of categories and ops shown.
const TOP: usize = 8;

/// Writes the comparison.
pub fn write_markdown(comparison: &Comparison, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "### {}\n", escaped(&headline(comparison)))?;
    let sides = [("BASE", &comparison.base), ("NEW", &comparison.new)];
    for (name, side) in sides {
        writeln!(out, "- {name}: {}", words::amount(side, comparison.unit))?;
    }
    for (name, measured) in words::figures(comparison) {
        let times = from_to_ms(measured.base_ms, measured.new_ms);
        let change = measured.ratio.map_or_else(String::new, |ratio| {
            format!(", {}{}", words::change(ratio.value), words::range(&ratio))
        });
        writeln!(out, "- {name}: {times}{change}")?;
    }
    let categories = comparison.breakdown.iter().take(TOP).map(|delta| {
        let measured = &delta.measured;
        let name = delta.category.key().to_owned();
        (name, measured.base_ms, measured.new_ms, if delta.proven() { "yes" } else { "no" }.to_owned())
    });
    rows(("per step", "significant"), categories.collect(), out)?;
    let parts = comparison.parts.iter().filter(|part| part.delta_ms() != 0.0).take(TOP).map(|part| {
        let (base_ms, new_ms) = part.ms();
        let place = match part.source() {
            "" => part.name().to_owned(),
            source => format!("{} at {source}", part.name()),
        };
        (place, base_ms, new_ms, words::part_change(part.change()))
    });
    rows(("compiled programs, time per step", "why"), parts.collect(), out)?;
    let ops = comparison.ops.iter().filter(|op| op.delta_ms() != 0.0).take(TOP);
    let ops = ops.map(|op| {
        (op.name.clone(), op.base_ms, op.new_ms, words::op_type(op).unwrap_or_default().to_owned())
    });
    rows((&format!("op, self time {}", words::per_unit(comparison.unit)), "type"), ops.collect(), out)?;
    let changes = &comparison.findings;
    // Nothing is solved by running something else.
    let comparable = comparison.verdict != Verdict::NotComparable;
    let all = [("Solved", &changes.solved), ("New", &changes.new), ("Left", &changes.left)];
    for (word, findings) in all.into_iter().filter(|_| comparable) {
        let names: Vec<String> = findings.iter().map(|finding| escaped(&words::finding(finding))).collect();
        if !names.is_empty() {
            writeln!(out, "\n{word}: {}", names.join(", "))?;
        }
    }
    words::remarks(comparison).iter().try_for_each(|remark| writeln!(out, "\n> {}", escaped(remark)))
}

fn rows(titles: (&str, &str), rows: Vec<(String, f64, f64, String)>, out: &mut dyn Write) -> io::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n| {} | BASE | NEW | change | {} |\n|---|--:|--:|--:|---|", titles.0, titles.1)?;
    for (name, base, new, last) in rows {
        let name = escaped(&name_cut(&name, 80));
        let (base, new, change) = (duration_ms(base), duration_ms(new), words::change_ms(new - base));
        writeln!(out, "| {name} | {base} | {new} | {change} | {} |", escaped(&last))?;
    }
    Ok(())
}

/// Escapes text so that Markdown leaves it alone.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in printable(text).chars() {
        if matches!(c, '|' | '*' | '_' | '`' | '<' | '>' | '[' | ']' | '\\' | '#') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}
