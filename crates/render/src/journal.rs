//! The journal of experiments as a table: one row per run, what it changed, and whether the change is
//! significant.

use stepscope_diagnose::compare::{Comparison, Verdict};
use stepscope_diagnose::journal::{Entry, Journal};
use stepscope_results::table::{Cell, Field, Table, columns};

use crate::compare::words;
use crate::format::{plural, short, utc};

/// Number of unreadable lines that are named.
const MOST_LINES: usize = 10;

/// A run, and how it compares to the one before it.
struct Line<'a> {
    entry: &'a Entry,
    comparison: Option<Comparison>,
}

impl Line<'_> {
    fn ratio(&self) -> Option<f64> {
        Some(self.comparison.as_ref()?.deciding()?.ratio?.value)
    }

    fn compared<T>(&self, of: impl Fn(&Comparison) -> T) -> Option<T> {
        self.comparison.as_ref().map(of)
    }
}

fn columns<'a>() -> Vec<Field<Line<'a>>> {
    columns! { line: Line<'a>;
        time: Text "recorded" => utc(line.entry.time_ms.saturating_mul(1_000_000));
        note: Name "note" => line.entry.note.as_str();
        step: Text "mean step ms" => step(line.entry);
        change: Text "change" => line.ratio().map(words::change);
        proven: Text "proven" => line.compared(|it| proven(it.verdict));
        verdict: Text "verdict" => line.entry.verdict.as_deref();
        also_changed.optional: Name "also changed" => line.compared(also_changed).flatten();
        mean_ms.hidden: Ms "mean" => line.entry.mean_ms;
        median_ms.hidden: Ms "median" => line.entry.median_ms;
        low_ms.hidden: Ms "low" => line.entry.low_ms;
        high_ms.hidden: Ms "high" => line.entry.high_ms;
        steps.hidden: Count "steps" => line.entry.steps;
        compared.hidden: Text "compared" => line.compared(|it| it.verdict.key());
        ratio.hidden: Short "ratio" => line.ratio();
        breakdown.hidden: Map "breakdown" => Cell::Map(line.entry.breakdown.clone());
        findings.hidden: Text "findings" => findings(line.entry);
        path.hidden: Name "path" => line.entry.path.as_str();
        fingerprint.hidden: Text "fingerprint" => line.entry.fingerprint.as_str();
    }
}

/// The journal's last rows, oldest first.
pub fn table(journal: &Journal, last: usize) -> Table {
    let compared = journal.compared(last).into_iter();
    let lines: Vec<Line<'_>> = compared.map(|(entry, comparison)| Line { entry, comparison }).collect();
    let mut table = Table::of("journal", &columns(), &lines);
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
