//! The fleet report as one self-contained page.

use std::io::{self, Write};

use stepscope_results::fleet::{self, FleetReport};
use stepscope_results::table::{Cell, Format};

use super::words;
use crate::format::{bytes, duration_ms, percent, short, thousands};
use crate::report::html::page::{Html, tag, text};
use crate::report::html::parts::{Value, table};
use crate::report::html::{Section, html_page};

/// Rows of a table on the page; CSV and JSON have all.
const ROWS: usize = 500;

const SECTIONS: &[(&str, &str)] = &[
    ("jobs", "Jobs, by devices lost"),
    ("job_causes", "Causes in each job, with the fix"),
    ("hosts", "Hosts that are slower than their peers"),
    ("changes", "Jobs whose step time changed"),
    ("causes", "Causes over all jobs"),
    ("series", "Recordings"),
    ("communication", "Exposed communication, by number of devices"),
    ("memory", "Memory near its limit"),
    ("kernels", "Kernels over all jobs"),
    ("ops", "Ops over all jobs"),
    ("unusable", "Jobs without a usable profile"),
    ("failed", "Files that could not be read"),
    ("damaged", "Files that were read in part"),
];

/// Writes the page.
pub fn write_html(report: &FleetReport, out: &mut dyn Write) -> io::Result<()> {
    let mut overview = tag("p", &[], Html::text(&format!("Covers {}.", report.coverage())));
    if !report.missing_shards.is_empty() {
        let missing = format!("Missing shards: {}.", report.missing_shards.join(", "));
        overview.push(&tag("p", &[], Html::text(&missing)));
    }
    if let Some(note) = words::hours_note(report) {
        overview.push(&tag("p", &[], Html::sentence(&note)));
    }
    let mut sections = vec![Section::new("", overview)];
    for (name, title) in SECTIONS {
        if let Some(body) = body(report, name) {
            let title = if *name == "jobs" { words::jobs_title(report) } else { *title };
            sections.push(Section::new(title, body));
        }
    }
    out.write_all(html_page(&words::answer(report), "stepscope fleet report", &sections).as_bytes())
}

fn body(report: &FleetReport, name: &str) -> Option<Html> {
    let found = fleet::table(report, name).filter(|table| !table.rows().is_empty())?;
    let shown = |place: usize| found.columns().get(place).is_some_and(|it| !it.hidden || is_advice(&it.key));
    let titles: Vec<&str> = found
        .columns()
        .iter()
        .enumerate()
        .filter(|(place, _)| shown(*place))
        .map(|(_, it)| it.title.as_ref())
        .collect();
    let rows: Vec<Vec<Value>> = found
        .rows()
        .iter()
        .take(ROWS)
        .map(|row| {
            let cells = found.columns().iter().zip(row).enumerate().filter(|(place, _)| shown(*place));
            let shown = cells.map(|(_, (column, cell))| match cell {
                Cell::Text(text) if is_advice(&column.key) => Value::Sentence(text.clone()),
                _ => value(column.format, cell),
            });
            shown.collect()
        })
        .collect();
    let mut html = table(&titles, &rows);
    if found.rows().len() > ROWS {
        let more =
            format!("{} more rows are in --csv and --json.", thousands((found.rows().len() - ROWS) as i128));
        html.push(&text("p", "soft", &more));
    }
    Some(html)
}

fn is_advice(key: &str) -> bool {
    matches!(key, "fix" | "evidence")
}

fn value(format: Format, cell: &Cell) -> Value {
    let number = match cell {
        Cell::Int(value) => Some(*value as f64),
        Cell::Float(value) => Some(*value),
        _ => None,
    };
    match (number, cell) {
        (Some(number), _) => {
            let shown = match format {
                Format::Ms => duration_ms(number),
                Format::Bytes => bytes(number),
                Format::Percent => percent(number),
                Format::Count => thousands(number as i128),
                _ => short(number),
            };
            Value::Number(shown, number)
        }
        (None, Cell::Text(text)) => Value::Text(text.clone()),
        (None, Cell::Bool(value)) => Value::Text(if *value { "yes" } else { "no" }.to_owned()),
        (None, _) if format.is_number() => Value::Number(String::new(), -1.0),
        _ => Value::Text(String::new()),
    }
}
