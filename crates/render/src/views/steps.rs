//! The steps, one per row: duration, breakdown, and which steps stand out.

use stepscope_analyze::steps::{How, Origin};
use stepscope_analyze::time::summary::{HostSummary, StepRow, Summary};
use stepscope_trace::statistics::{Moments, quantile};

use crate::format::duration_ms;
use crate::words::{step_times, terms};
use crate::{Cell, Column, Format, Table};

/// Width of the bars in text.
const BAR: usize = 24;
/// A step farther from the median than this many times the usual distance is an outlier.
const OUTLIER: f64 = 5.0;

/// The table of the host that limits the session.
pub fn table(summary: &Summary) -> Table {
    let mut table = Table::new(
        "steps",
        vec![
            Column::new("index", "step", Format::Id),
            Column::new("name", "found by", Format::Name).hidden(),
            Column::new("start_ms", "start", Format::Ms).optional(),
            Column::new("duration_ms", "time", Format::Ms),
            Column::new("bar", "", Format::Text).drawn(),
            Column::new("mostly", "largest share", Format::Text).drawn(),
            Column::new("remark", "remark", Format::Text).optional(),
            Column::new("breakdown", "breakdown", Format::Text).hidden(),
        ],
    );
    table.headline = Some(headline(summary));
    table.top = Some(40);
    let Some(host) = summary.bound() else { return table };
    members(&mut table, summary, host);
    if host.whole_capture {
        return table;
    }
    let longest = host.steps.iter().map(|step| step.span.dur().ms()).fold(0.0, f64::max);
    let bounds = ordinary(host);
    for step in &host.steps {
        table.push(row(step, host, longest, bounds));
    }
    if let Some(note) = terms::all_excluded(host) {
        table.note(note);
    }
    table
}

fn row(step: &StepRow, host: &HostSummary, longest: f64, ordinary: Option<(f64, f64)>) -> Vec<Cell> {
    let length = step.span.dur().ms();
    let mostly = step.shares.owners().max_by_key(|(_, time)| *time);
    let mostly = mostly.map(|(owner, time)| {
        format!("{} {:.0} %", owner.key(), 100.0 * time.fraction_of(step.shares.total()))
    });
    let breakdown = step.shares.owners().map(|(owner, time)| (owner.key().to_owned(), time.ms())).collect();
    let outlier = ordinary.is_some_and(|(low, high)| length < low || length > high);
    let remark = match step.excluded {
        Some(reason) => Some(format!("{}, not counted", terms::excluded(reason))),
        None => outlier.then(|| "stands out".to_owned()),
    };
    vec![
        step.number.into(),
        terms::step_name(&host.how).into(),
        step.span.start.ms().into(),
        length.into(),
        bar(length, longest).into(),
        mostly.into(),
        remark.into(),
        Cell::Map(breakdown),
    ]
}

fn bar(length: f64, longest: f64) -> String {
    let filled = if longest > 0.0 { (length / longest * BAR as f64).round() as usize } else { 0 };
    "█".repeat(filled.clamp(usize::from(length > 0.0), BAR))
}

/// The range of ordinary durations: the median plus or minus a multiple of the median distance from it.
fn ordinary(host: &HostSummary) -> Option<(f64, f64)> {
    let mut lengths: Vec<f64> = host.counted().map(|step| step.span.dur().ms()).collect();
    lengths.sort_by(f64::total_cmp);
    let middle = quantile(&lengths, 0.5)?;
    let mut distances: Vec<f64> = lengths.iter().map(|length| (length - middle).abs()).collect();
    distances.sort_by(f64::total_cmp);
    // If steps hardly differ, all would stand out, so one in fifty is always tolerated.
    let usual = quantile(&distances, 0.5)?.max(middle / 50.0);
    Some((middle - OUTLIER * usual, middle + OUTLIER * usual))
}

fn headline(summary: &Summary) -> String {
    match (summary.step_ms, summary.bound()) {
        (Some(moments @ Moments { median, p90, p99, stddev, .. }), Some(host)) => {
            let mean = step_times::mean_beside(&moments)
                .map_or(String::new(), |mean| format!("mean {}, ", duration_ms(mean)));
            let spread = stddev
                .map_or(String::new(), |spread| format!(", standard deviation {}", duration_ms(spread)));
            format!(
                "{} per step (median of {}; {mean}p90 {}, p99 {}{spread}), {}",
                duration_ms(median),
                summary.count,
                duration_ms(p90),
                duration_ms(p99),
                terms::how(&host.how)
            )
        }
        (None, Some(host)) if !host.whole_capture => {
            "No counted steps: none was recorded completely".to_owned()
        }
        (None, Some(host)) if host.origin != Origin::None => {
            format!("No step within {}", host.covers.span.map_or("it".to_owned(), crate::covers::time))
        }
        (None, Some(HostSummary { how: how @ How::Unclear { .. }, .. })) => {
            format!("No steps found: {}", terms::how(how))
        }
        _ => "No steps found: there are no step markers, and nothing repeats".to_owned(),
    }
}

fn members(table: &mut Table, summary: &Summary, host: &HostSummary) {
    table.member("origin", terms::origin(host.origin));
    table.member("count", summary.count as u64);
    table.member("dropped", summary.dropped as u64);
    table.member("mean_ms", summary.step_ms.map(|moments| moments.mean));
    table.member("median_ms", summary.step_ms.map(|moments| moments.median));
    table.member("p90_ms", summary.step_ms.map(|moments| moments.p90));
    table.member("p99_ms", summary.step_ms.map(|moments| moments.p99));
    table.member("stddev_ms", summary.step_ms.and_then(|moments| moments.stddev));
    table.member("host", host.host.as_str());
}
