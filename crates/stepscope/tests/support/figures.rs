//! Figures that occur in two places, compared: the breakdown, the steps, SQL, and the sentences of findings.
#![allow(clippy::unwrap_used, dead_code, reason = "what helps a test may fail it")]

use std::sync::atomic::{AtomicUsize, Ordering};

use regex::Regex;
use stepscope_analyze::Category;
use stepscope_diagnose::Finding;
use stepscope_query::{Database, Value};
use stepscope_render::report::{write_json, write_text};
use stepscope_render::{Style, format};
use stepscope_results::report::Report;

/// Rounding of what is computed in two ways.
const SAME: f64 = 1e-3;

/// Figures in sentences that were compared: a pattern that matches nothing finds no fault either.
pub static COMPARED: AtomicUsize = AtomicUsize::new(0);

/// What disagrees within a report.
pub fn contradictions(report: &Report) -> Vec<String> {
    let mut faults = steps(report);
    faults.extend(report.findings.iter().flat_map(|finding| of_finding(report, finding)));
    faults.extend(text(report));
    faults
}

fn apart(a: f64, b: f64) -> bool {
    (a - b).abs() > SAME * a.abs().max(b.abs()).max(1e-6)
}

/// The mean of the steps, their categories and the breakdown are one figure; evidence is a step.
fn steps(report: &Report) -> Vec<String> {
    let mut faults = Vec::new();
    let (Some(moments), Some(host)) = (report.summary.step_ms, report.bound()) else { return faults };
    if apart(moments.mean, report.summary.length_ms()) {
        faults.push(format!(
            "steps take {} ms, their categories {}",
            moments.mean,
            report.summary.length_ms()
        ));
    }
    for step in host.counted().filter(|step| apart(step.shares.total().ms(), step.span.dur().ms())) {
        faults.push(format!("step {} is not what its categories sum to", step.number));
    }
    for finding in &report.findings {
        let Some(place) = &finding.place else { continue };
        let inside = host
            .steps
            .iter()
            .any(|step| step.span.start <= place.span.start && place.span.end <= step.span.end);
        if !inside {
            faults.push(format!("the evidence of {} lies in no step", finding.id()));
        }
    }
    faults
}

/// The figures of a finding and of its sentences.
fn of_finding(report: &Report, finding: &Finding) -> Vec<String> {
    let (step, id) = (report.summary.length_ms(), finding.id());
    let mut faults = Vec::new();
    if let (Some(about), Some(fraction)) = (finding.about_ms, finding.fraction)
        && step > 0.0
        && apart(about / step, fraction)
    {
        faults.push(format!("{id} is about {about} of {step} ms and {fraction} of the step"));
    }
    if let (Some(gain), Some(about), Some(share)) =
        (finding.gain_ms, finding.about_ms, finding.gain_fraction())
        && apart(gain / about, share)
    {
        faults.push(format!("{id} saves {gain} of {about} ms, and {share} of it"));
    }
    let words = finding.words();
    let sentences = std::iter::once(words.summary).chain(words.evidence).chain(words.advice);
    for sentence in sentences {
        faults.extend(in_sentence(report, finding, &sentence));
    }
    faults
}

const TIME: &str = r"\d[\d,]*(?:\.\d+)? (?:ns|µs|ms|s|min|h)";

/// Times of categories are those of the breakdown, or said to be a part of them; times of the step are the step.
fn in_sentence(report: &Report, finding: &Finding, sentence: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let named = Regex::new(&format!("`([a-z_]+)` ({TIME})(?: of ({TIME}))?")).unwrap();
    for found in named.captures_iter(sentence) {
        let Some(row) = Category::ALL.iter().find(|category| category.key() == &found[1]) else { continue };
        COMPARED.fetch_add(1, Ordering::Relaxed);
        let of = report.summary.breakdown_ms.iter().find(|(category, _)| category == row);
        let expected = of.map(|(_, ms)| format::duration_ms(*ms));
        let shown = found.get(3).or_else(|| found.get(2)).map(|text| text.as_str().to_owned());
        if shown != expected {
            faults.push(format!(
                "{} says {:?} where the breakdown has {expected:?}: {sentence}",
                finding.id(),
                &found[0]
            ));
        }
    }
    let share = Regex::new(&format!(r"({TIME}) of ({TIME}) \(([\d.<]+ ?%)\)")).unwrap();
    for found in share.captures_iter(sentence) {
        COMPARED.fetch_add(1, Ordering::Relaxed);
        let step = format::duration_ms(report.summary.length_ms());
        if found[2] != step {
            faults.push(format!(
                "{} speaks of a step of {} where it takes {step}: {sentence}",
                finding.id(),
                &found[2]
            ));
        }
        let fraction = finding.fraction.map(format::share).unwrap_or_default();
        if found[3] != fraction {
            faults.push(format!("{} owns {} and says {}", finding.id(), fraction, &found[3]));
        }
    }
    faults
}

/// The text shows the figures that the document for programs has.
fn text(report: &Report) -> Vec<String> {
    let (mut text, mut json) = (Vec::new(), Vec::new());
    write_text(report, Style::PLAIN, &mut text).unwrap();
    write_json(report, &mut json).unwrap();
    let text = String::from_utf8(text).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    let mut faults = Vec::new();
    let Some(mean) = json["steps"]["mean_ms"].as_f64() else { return faults };
    let line = text.lines().find(|line| line.starts_with("step  ")).unwrap_or_default();
    if !line.contains(&format::duration_ms(mean)) {
        faults.push(format!("the text says {line:?} for a mean step of {mean} ms"));
    }
    faults
}

/// The steps and their categories as SQL lists them.
pub fn by_sql(report: &Report, database: &Database) -> Vec<String> {
    let mut faults = Vec::new();
    let Some(host) = report.bound().filter(|host| !host.whole_capture) else { return faults };
    let name = host.host.replace('\'', "''");
    let asked = format!("SELECT number, ts, dur FROM step WHERE host = '{name}' ORDER BY ts");
    let rows = database.query(&asked).unwrap().rows;
    let number = |value: &Value| value.text().parse::<f64>().unwrap_or(f64::NAN);
    let origin = rows.first().map_or(0.0, |row| number(&row[1]) / 1e6)
        - host.steps.first().map_or(0.0, |step| step.span.start.ms());
    for (row, step) in rows.iter().zip(&host.steps) {
        let (start, length) = (number(&row[1]) / 1e6 - origin, number(&row[2]) / 1e6);
        let same =
            (start - step.span.start.ms()).abs() < 2e-6 && (length - step.span.dur().ms()).abs() < 2e-6;
        if number(&row[0]) as i64 != step.number || !same {
            faults.push(format!(
                "SQL has step {} at {start} for {length} ms, the report {step:?}",
                row[0].text()
            ));
        }
    }
    if rows.len() != host.steps.len() {
        faults.push(format!("SQL has {} steps, the report {}", rows.len(), host.steps.len()));
    }
    faults
}
