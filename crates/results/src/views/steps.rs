//! `stepscope steps`: every step, its duration and its breakdown.

use stepscope_analyze::steps::{How, Origin};
use stepscope_analyze::time::summary::{HostSummary, StepRow, Summary};
use stepscope_trace::statistics::{Moments, quantile};

use super::{Group, View, each_host, step_by_step};
use crate::format::duration_ms;
use crate::table::{Cell, Field, Table, columns, described};
use crate::words::{step_times, terms};

/// Width of the bars in text.
const BAR: usize = 24;
/// A step farther from the median than this many times the usual distance is an outlier.
const OUTLIER: f64 = 5.0;

pub(super) const VIEW: View = View {
    name: "steps",
    title: "Steps",
    group: Group::Summary,
    question: "How long did each step take?",
    about: "Show every step: its time, its breakdown, and which steps stand out",
    after_help: "Examples:\n  \
        stepscope steps logs/                        all steps of the newest session\n  \
        stepscope steps logs/ --sort duration_ms     longest first\n  \
        stepscope steps logs/ --csv > steps.csv      for a spreadsheet",
    record: &[
        "TensorFlow: `with tf.profiler.experimental.Trace('train', step_num=step): …` around each step",
        "JAX: `with jax.profiler.StepTraceAnnotation('train', step_num=step): …`",
        "PyTorch: call `prof.step()` after each step",
    ],
    events: None,
    recording: false,
    sql: None,
    columns: || described(columns()),
    members: "
        origin?: 'marker' | 'inferred' | 'none' -- How the steps were found.
        count?: integer -- Steps that count.
        dropped?: integer -- Steps that do not count.
        mean_ms?: number? -- Mean step time.
        median_ms?: number? -- Median step time.
        p90_ms?: number? -- 90th percentile.
        p99_ms?: number? -- 99th percentile.
        stddev_ms?: number? -- Standard deviation.
        host?: string -- The host whose steps are listed.
    ",
    table: |hosts| {
        let summaries = each_host(hosts, |context| step_by_step(context, HostSummary::of));
        table(&Summary::finish(summaries))
    },
    groupings: &[],
};

fn columns<'a>() -> Vec<Field<Line<'a>>> {
    columns! { line: Line<'a>;
        index.known: Id "step", "its number" => line.step.number;
        name.known.hidden: Name "found by", "what marks it" => terms::step_name(&line.host.how);
        start_ms.optional: Ms "start", "when it starts" => line.step.span.start.ms();
        duration_ms.known: Ms "time", "how long it takes" => line.ms();
        bar.drawn: Text "" => bar(line.ms(), line.longest);
        mostly.drawn: Text "largest share" => line.mostly();
        remark.optional: Text "remark", "why it does not count, or what is unusual" => line.remark();
        breakdown.known.hidden: Map "breakdown", "where it goes: milliseconds per category; categories without time are left out" => Cell::named(line.step.shares.owners().map(|(owner, time)| (owner.key(), time.ms())));
    }
}

/// A step, and what it is compared with.
struct Line<'a> {
    step: &'a StepRow,
    host: &'a HostSummary,
    longest: f64,
    ordinary: Option<(f64, f64)>,
}

impl Line<'_> {
    fn ms(&self) -> f64 {
        self.step.span.dur().ms()
    }

    fn mostly(&self) -> Option<String> {
        let (owner, time) = self.step.shares.owners().max_by_key(|(_, time)| *time)?;
        Some(format!("{} {:.0} %", owner.key(), 100.0 * time.fraction_of(self.step.shares.total())))
    }

    fn remark(&self) -> Option<String> {
        let stands_out = || self.ordinary.is_some_and(|(low, high)| self.ms() < low || self.ms() > high);
        match self.step.excluded {
            Some(reason) => Some(format!("{}, not counted", terms::excluded(reason))),
            None => stands_out().then(|| "stands out".to_owned()),
        }
    }
}

/// The table of the host that limits the session.
fn table(summary: &Summary) -> Table {
    let bound = summary.bound();
    let lines = bound.filter(|host| !host.whole_capture).map_or_else(Vec::new, lines);
    let mut table = Table::of("steps", &columns(), &lines);
    table.headline = Some(headline(summary));
    table.top = Some(40);
    let Some(host) = bound else { return table };
    members(&mut table, summary, host);
    if let Some(note) = terms::all_excluded(host).filter(|_| !host.whole_capture) {
        table.note(note);
    }
    table
}

fn lines(host: &HostSummary) -> Vec<Line<'_>> {
    let longest = host.steps.iter().map(|step| step.span.dur().ms()).fold(0.0, f64::max);
    let ordinary = ordinary(host);
    host.steps.iter().map(|step| Line { step, host, longest, ordinary }).collect()
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
        (Some(moments @ Moments { mean, p90, p99, stddev, .. }), Some(host)) => {
            let median = step_times::median_if_different(&moments)
                .map_or(String::new(), |median| format!("median {}, ", duration_ms(median)));
            let spread = stddev
                .map_or(String::new(), |spread| format!(", standard deviation {}", duration_ms(spread)));
            format!(
                "{} per step (mean of {}; {median}p90 {}, p99 {}{spread}), {}",
                duration_ms(mean),
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
