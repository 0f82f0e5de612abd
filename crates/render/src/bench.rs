//! Rendering of benchmark results: a model server, commands, an input pipeline.
//!
//! Each part has plain figures that the caller fills in, a text form, and a table for `--json` and `--csv`
//! (schema `stepscope.bench.v1`; the member `bench` names the part).

pub mod command;
pub mod infer;
pub mod input;

use std::io::{self, Write};

use stepscope_results::table::{Picked, Select, Table};

use crate::format::{decimal, duration_ms, percent, short, thousands};
use crate::style::Style;
use crate::table;

/// Length of the longest histogram bar, in characters.
const BAR: usize = 40;

/// Number of values in a range of time.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Bin {
    /// Start of the range, in milliseconds.
    pub from_ms: f64,
    /// End of the range, in milliseconds.
    pub to_ms: f64,
    /// Number of values.
    pub count: u64,
}

/// Writes a table as JSON.
pub fn write_json(table: &Table, out: &mut dyn Write) -> io::Result<()> {
    table::write_json(table, &all(table)?, out)
}

/// Writes a table as CSV.
pub fn write_csv(table: &Table, out: &mut dyn Write) -> io::Result<()> {
    table::write_csv(table, &all(table)?, out)
}

fn all(table: &Table) -> io::Result<Picked> {
    table.pick(&Select::default(), None).map_err(io::Error::other)
}

fn write_rows(table: &Table, style: Style, out: &mut dyn Write) -> io::Result<()> {
    table::write_text(table, &all(table)?, style, out)
}

/// Writes one row per range, from fast to slow. All ranges span the same factor. A single slow request must
/// stand out beside thousands of fast ones, so every non-empty range gets a mark.
fn write_histogram(bins: &[Bin], style: Style, out: &mut dyn Write) -> io::Result<()> {
    let most = bins.iter().map(|bin| bin.count).max().unwrap_or(0).max(1);
    let all: u64 = bins.iter().map(|bin| bin.count).sum();
    let edges: Vec<(String, String)> =
        bins.iter().map(|bin| (duration_ms(bin.from_ms), duration_ms(bin.to_ms))).collect();
    let width = edges.iter().flat_map(|(from, to)| [from, to]).map(|text| text.chars().count()).max();
    let (width, counts) = (width.unwrap_or(0), thousands(most).len());
    for (bin, (from, to)) in bins.iter().zip(&edges) {
        let bar = bar(bin.count as f64 / most as f64 * BAR as f64);
        let share =
            if bin.count == 0 { String::new() } else { percent(bin.count as f64 / all.max(1) as f64) };
        let line = format!("{from:>width$} – {to:>width$}  {:>counts$} {share:>8} ", thousands(bin.count));
        writeln!(out, "{line} {}", style.cyan(&bar).trim_end())?;
    }
    Ok(())
}

/// A bar in eighths of a block; any value above zero gets at least the thinnest one.
fn bar(length: f64) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = if length > 0.0 { (length * 8.0).round().max(1.0) as usize } else { 0 };
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS.get(eighths % 8).copied().unwrap_or_default())
}

/// Formats a rate: 1,234 and 12.3 and 0.52.
fn rate(per_second: f64) -> String {
    if per_second >= 1000.0 { decimal(per_second, 0) } else { short(per_second) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slow_request_shows_beside_thousands() {
        let bins = [
            Bin { from_ms: 1.0, to_ms: 10.0, count: 9_999 },
            Bin { from_ms: 10.0, to_ms: 100.0, count: 0 },
            Bin { from_ms: 100.0, to_ms: 1000.0, count: 1 },
        ];
        let mut out = Vec::new();
        write_histogram(&bins, Style::PLAIN, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].ends_with(&"█".repeat(40)), "{text}");
        assert!(!lines[1].contains(['█', '▏']), "{text}");
        assert!(lines[2].ends_with('▏'), "{text}");
    }
}
