//! The journal of experiments as a table: one row per run, what it changed, and whether the change is
//! significant.

use stepscope_diagnose::compare::{Comparison, Verdict};
use stepscope_diagnose::journal::{Entry, Journal};

use crate::compare::words;
use crate::format::{plural, short, utc};
use crate::table::{Cell, Column, Format, Table};

/// Number of unreadable lines that are named.
const MOST_LINES: usize = 10;

/// The journal's last rows, oldest first.
pub fn table(journal: &Journal, last: usize) -> Table {
    let columns = vec![
        Column::new("time", "recorded", Format::Text),
        Column::new("note", "note", Format::Name),
        Column::new("step", "mean step ms", Format::Text),
        Column::new("change", "change", Format::Text),
        Column::new("proven", "proven", Format::Text),
        Column::new("verdict", "verdict", Format::Text),
        Column::new("also_changed", "also changed", Format::Name).optional(),
        Column::new("mean_ms", "mean", Format::Ms).hidden(),
        Column::new("median_ms", "median", Format::Ms).hidden(),
        Column::new("low_ms", "low", Format::Ms).hidden(),
        Column::new("high_ms", "high", Format::Ms).hidden(),
        Column::new("steps", "steps", Format::Count).hidden(),
        Column::new("compared", "compared", Format::Text).hidden(),
        Column::new("ratio", "ratio", Format::Short).hidden(),
        Column::new("breakdown", "breakdown", Format::Text).hidden(),
        Column::new("findings", "findings", Format::Text).hidden(),
        Column::new("path", "path", Format::Name).hidden(),
        Column::new("fingerprint", "fingerprint", Format::Text).hidden(),
    ];
    let mut table = Table::new("journal", columns);
    for (entry, comparison) in journal.compared(last) {
        table.push(row(entry, comparison.as_ref()));
    }
    if !journal.unreadable.is_empty() {
        let lines: Vec<String> =
            journal.unreadable.iter().take(MOST_LINES).map(ToString::to_string).collect();
        let more = match journal.unreadable.len().saturating_sub(MOST_LINES) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        table.note(format!("Skipped because unreadable: line {}{more}.", lines.join(", ")));
    }
    let earlier = journal.entries.len().saturating_sub(last);
    if earlier > 0 {
        let runs = plural(earlier as u64, "earlier run is", "earlier runs are");
        table.note(format!("{runs} not shown; --last N shows more."));
    }
    table
}

fn row(entry: &Entry, comparison: Option<&Comparison>) -> Vec<Cell> {
    let ratio = comparison.and_then(Comparison::deciding).and_then(|figure| figure.ratio);
    vec![
        utc(entry.time_ms.saturating_mul(1_000_000)).into(),
        entry.note.as_str().into(),
        step(entry).into(),
        ratio.map(|ratio| words::change(ratio.value)).into(),
        comparison.map(|it| proven(it.verdict)).into(),
        entry.verdict.as_deref().into(),
        comparison.and_then(also_changed).into(),
        entry.mean_ms.into(),
        entry.median_ms.into(),
        entry.low_ms.into(),
        entry.high_ms.into(),
        entry.steps.into(),
        comparison.map(|it| it.verdict.key()).into(),
        ratio.map(|ratio| ratio.value).into(),
        Cell::Map(entry.breakdown.clone()),
        findings(entry).into(),
        entry.path.as_str().into(),
        entry.fingerprint.as_str().into(),
    ]
}

/// The ids of all findings, the verdict first. Unknown for lines from before findings were stored.
fn findings(entry: &Entry) -> Option<String> {
    let ids: Vec<&str> = entry.findings.iter().map(|(id, _)| id.as_str()).collect();
    (!ids.is_empty()).then(|| ids.join(" "))
}

/// `42.1 (40.9 to 43.3)`.
fn step(entry: &Entry) -> Option<String> {
    // Lines from before the mean was stored have the median and its interval.
    let level = short(entry.mean_ms.or(entry.median_ms)?);
    let range = entry.low_ms.zip(entry.high_ms);
    Some(range.map_or(level.clone(), |(low, high)| format!("{level} ({} to {})", short(low), short(high))))
}

fn proven(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Faster => "yes, faster",
        Verdict::Slower => "yes, slower",
        Verdict::Same => "no difference",
        Verdict::Unclear => "no, too noisy",
        Verdict::NotComparable => "not comparable",
    }
}

fn also_changed(comparison: &Comparison) -> Option<String> {
    let all: Vec<String> = comparison.comparability.differences.iter().map(words::difference).collect();
    (!all.is_empty()).then(|| all.join("; "))
}
