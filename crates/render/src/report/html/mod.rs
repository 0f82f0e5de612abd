//! The report as one self-contained HTML file: verdict, key figures, step chart, a typical step, breakdown, findings,
//! sortable tables, facts about the run, health.
//!
//! [`page`] holds the safe, general parts; [`chart`] and [`parts`] hold the pieces. Other pages use them too.

pub mod chart;
mod curves;
pub mod notebook;
pub mod page;
pub mod parts;
mod timeline;

use std::io::{self, Write};

use stepscope_analyze::time::summary::HostSummary;
use stepscope_results::report::Report;
use stepscope_results::words::{quoted, share, step_times, terms};

use self::chart::Bar;
use self::page::{Html, tag, text};
use self::parts::{Value, figures, table};
use crate::format::{bytes, duration_ms, plural, thousands};
use crate::report::words::STEPS_FOR_P90;
use crate::report::{answer, words};

pub use page::{Section, html_page};

/// Number of ops listed.
const OPS: usize = 200;
/// Number of health problems listed.
const TROUBLES: usize = 100;

/// Writes the page.
pub fn write_html(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let sections = [
        Section::new("", overview(report)),
        Section::new(format!("Where the {} goes", report.breakdown_of()), breakdown(report)),
        Section::new("Steps", steps(report)),
        Section::new("One step", timeline::timeline(report)),
        Section::new("What to do", report.findings.iter().map(parts::finding).collect()),
        Section::new("Ops", ops(report)),
        Section::new("Devices", devices(report)),
        Section::new("Training curves", report.run.as_ref().map(curves::curves).unwrap_or_default()),
        Section::new("Run", run(report)),
        Section::new("Recording health", health(report)),
    ];
    let mut kicker = "stepscope report".to_owned();
    if !report.targets.is_empty() {
        kicker.push_str(&format!(" · {}", report.targets.join(" ")));
    }
    if !report.targets.iter().any(|target| target.contains(&report.session)) {
        kicker.push_str(&format!(" · {}", report.session));
    }
    out.write_all(html_page(&answer(report), &kicker, &sections).as_bytes())
}

fn breakdown(report: &Report) -> Html {
    [chart::breakdown(&report.by_share()), chart::ranges(&report.ranges)].into_iter().collect()
}

fn overview(report: &Report) -> Html {
    let mut all = Vec::new();
    let mut add = |value: String, label: String| all.push((value, label));
    match (report.summary.step_ms, report.bound()) {
        (Some(moments), Some(host)) => {
            let (one, many) = terms::step_kind(host.kind);
            add(duration_ms(moments.mean), format!("mean {one}"));
            if let Some(median) = step_times::median_if_different(&moments) {
                let why = step_times::shape(host).map_or(String::new(), |why| format!(", {why}"));
                add(duration_ms(median), format!("median {one}{why}"));
            }
            let longest = duration_ms(moments.max);
            match report.summary.count {
                0..STEPS_FOR_P90 => add(longest, format!("longest {one}")),
                _ => add(duration_ms(moments.p90), format!("90th percentile, longest {longest}")),
            }
            add(thousands(report.summary.count as u64), format!("{many} {}", terms::how(&host.how)));
        }
        _ => add(duration_ms(report.summary.length_ms()), words::step_line(report).join(" · ")),
    }
    let winning = report.findings.iter().filter_map(|finding| Some((finding, finding.gain_ms?)));
    if let Some((finding, gain)) = winning.into_iter().find(|(_, gain)| *gain > 0.0) {
        let length = report.summary.length_ms();
        let part = if length > 0.0 { format!(" ({})", share(gain / length)) } else { String::new() };
        add(
            format!("−{}", duration_ms(gain)),
            format!("{} at most, by fixing `{}`{part}", finding.per(), finding.id()),
        );
    }
    let mut body = figures(&all);
    if let Some(covers) = words::covers(report) {
        let sentence = Html::sentence(&format!("The report covers {covers}."));
        body.push(&tag("p", &[("class", "soft"), ("style", "margin:12px 0 0")], sentence));
    }
    if let Some(place) = words::in_run(report) {
        let sentence = Html::sentence(&format!("This profile: {place}."));
        body.push(&tag("p", &[("class", "soft"), ("style", "margin:12px 0 0")], sentence));
    }
    if let Some((what, name)) = words::slowest(report) {
        let sentence = Html::sentence(&format!("The {what} {name}."));
        body.push(&tag("p", &[("class", "soft"), ("style", "margin:12px 0 0")], sentence));
    }
    if let Some(caution) = answer::caution(report) {
        body.push(&tag("p", &[("style", "margin:12px 0 0")], Html::sentence(&caution)));
    }
    body
}

fn steps(report: &Report) -> Html {
    let Some(host) = report.bound().filter(|host| !host.whole_capture) else { return Html::new() };
    chart::steps(&bars(host))
}

fn bars(host: &HostSummary) -> Vec<Bar> {
    let (one, _) = terms::step_kind(host.kind);
    host.counted()
        .map(|step| Bar {
            label: format!("{one} {}", step.number),
            owners: step.shares.owners().map(|(category, time)| (category, time.ms())).collect(),
        })
        .collect()
}

fn ops(report: &Report) -> Html {
    let rows: Vec<Vec<Value>> = report
        .ops
        .iter()
        .take(OPS)
        .map(|op| {
            vec![
                Value::Name(op.name.clone()),
                Value::Text(op.op_type.clone()),
                Value::Text(op.place().to_owned()),
                Value::Count(op.count),
                Value::Ms(op.total_ms),
                Value::Ms(op.self_ms),
                Value::Share(Some(op.fraction).filter(|share| share.is_finite())),
            ]
        })
        .collect();
    let mut body = table(&["op", "type", "where", "count", "total ms", "self ms", "share"], &rows);
    let more = report.ops.len().saturating_sub(OPS) as u64;
    if more > 0 {
        body.push(&text("p", "soft", &format!("… and {}.", plural(more, "more op", "more ops"))));
    }
    body
}

fn devices(report: &Report) -> Html {
    let rows: Vec<Vec<Value>> = report
        .summary
        .hosts
        .iter()
        .flat_map(|host| host.devices.iter().map(move |device| (host, device)))
        .map(|(host, device)| {
            vec![
                Value::Text(host.host.clone()),
                Value::Text(device.id.clone()),
                Value::Text(device.name.clone()),
                Value::Text(terms::device_kind(device.kind).to_owned()),
                Value::Share(device.busy_fraction),
                Value::Count(device.steps_seen as u64),
            ]
        })
        .collect();
    let table = table(&["host", "device", "model", "kind", "busy", "steps seen"], &rows);
    let sampled = words::sampled(report);
    let sampled = sampled.iter().map(|line| tag("p", &[("class", "soft")], Html::sentence(line)));
    [table].into_iter().chain(sampled).collect()
}

fn run(report: &Report) -> Html {
    let rows: Vec<Vec<Value>> = report
        .sources
        .iter()
        .map(|source| {
            vec![
                Value::Text(source.host.clone()),
                Value::Name(source.path.clone()),
                Value::Text(source.format.name.to_owned()),
                Value::Text(bytes(source.bytes as f64)),
                Value::Count(source.events),
            ]
        })
        .collect();
    let framework = report.bound().map(|host| terms::framework(host.framework));
    let mut facts: Vec<String> = framework.into_iter().map(str::to_owned).collect();
    facts.push(format!("session {}", quoted(&report.session)));
    facts.push(plural(report.summary.hosts.len() as u64, "host", "hosts"));
    let facts = tag("p", &[("class", "soft")], Html::sentence(&facts.join(" · ")));
    [facts, table(&["host", "file", "format", "size", "events"], &rows)].into_iter().collect()
}

fn health(report: &Report) -> Html {
    let rows: Vec<Vec<Value>> = report
        .health
        .iter()
        .take(TROUBLES)
        .map(|row| {
            let texts = [row.severity, row.id, row.message.as_str()];
            texts.map(|text| Value::Text(text.to_owned())).to_vec()
        })
        .collect();
    if rows.is_empty() {
        return Html::text("No problems found.");
    }
    table(&["severity", "id", "what"], &rows)
}
