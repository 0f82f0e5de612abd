//! How fast runs were, by their curves, and what is wrong with them: sentences for people, members for programs.

use std::io::{self, Write};

use serde_json::{Value, json};
use stepscope_analyze::curves::RunCurves;
use stepscope_analyze::curves::pace::{Pace, PaceSource, Pause, Unit, Why};
use stepscope_diagnose::runs::{Change, Course};
use stepscope_diagnose::{RunVerdict, Severity};

use crate::format::{duration_ms, listed, plural, printable, share, short};
use crate::report::{Found, wrapped};
use crate::style::Style;

/// So many runs are described in text; `--json` has all.
const RUNS: usize = 8;
/// So many findings are shown in text.
const FINDINGS: usize = 12;
/// So many pauses of a run are listed.
const PAUSES: usize = 1000;
/// A rate that differs by more from the typical step's is shown beside it.
const DIFFERS: f64 = 0.02;
/// Maximum line length, even on wider terminals.
const WIDEST: usize = 100;

/// The pace of runs as a member of the document.
pub fn pace_json(runs: &[RunCurves], verdicts: &[RunVerdict]) -> Value {
    let rows = runs.iter().zip(verdicts).filter_map(|(run, verdict)| {
        let pace = run.pace.as_ref()?;
        Some(one(&run.name, pace, &verdict.course))
    });
    rows.collect()
}

fn one(run: &str, pace: &Pace, course: &Course) -> Value {
    let pause = |pause: &Pause| json!({"step": pause.step, "wall_time": pause.from_s, "seconds": pause.seconds, "why": why(pause.why)});
    let change = |change: &Change| {
        json!({
            "step": change.step, "wall_time": change.at_s, "before_s": change.before_s, "after_s": change.after_s,
        })
    };
    let drift = course.drift.map(|drift| {
        json!({"first_step": drift.from_step, "last_step": drift.step, "first_s": drift.first_s, "last_s": drift.last_s})
    });
    json!({
        "run": run, "tag": pace.tag, "source": source(pace.source), "unit": unit(pace.unit),
        "seconds_per_step": pace.typical_s, "p10": pace.fast_s, "p90": pace.slow_s, "stretches": pace.stretches,
        "paused_s": pace.pauses.iter().map(|pause| pause.seconds).sum::<f64>(),
        "pauses": pace.pauses.iter().take(PAUSES).map(pause).collect::<Vec<_>>(),
        "changes": course.changes.iter().map(change).collect::<Vec<_>>(), "drift": drift,
    })
}

/// Findings as a member of the document: those of a report, each with its run.
pub fn findings_json(runs: &[RunCurves], verdicts: &[RunVerdict]) -> Value {
    let all = runs.iter().zip(verdicts).flat_map(|(run, verdict)| {
        verdict.findings.iter().map(move |finding| {
            let mut value = serde_json::to_value(Found::of(finding)).unwrap_or_default();
            value["run"] = json!(run.name);
            value
        })
    });
    all.collect()
}

/// The pace of a run in one sentence.
pub fn sentence(run: &RunCurves) -> Option<String> {
    let pace = run.pace.as_ref()?;
    let times = [pace.typical_s, pace.fast_s, pace.slow_s].map(|seconds| duration_ms(seconds * 1e3));
    let by = match pace.source {
        PaceSource::Clock => "by the times of",
        PaceSource::Logged => "as logged in",
    };
    let mut said = format!(
        "{}: one {} takes {} (most: {} to {}), {by} `{}`",
        run.name,
        unit(pace.unit),
        times[0],
        times[1],
        times[2],
        pace.tag
    );
    let (from, until) = pace.covers_s();
    if !pace.pauses.is_empty() && until > from {
        let paused: f64 = pace.pauses.iter().map(|pause| pause.seconds).sum();
        let (all, part) = (pauses(&pace.pauses), share(paused / (until - from)));
        let take = if pace.pauses.len() == 1 { "takes" } else { "take" };
        said.push_str(&format!("; {all} {take} {part} of the time"));
    }
    said.extend(overall(run, pace));
    said.push('.');
    Some(said)
}

/// The rate over the whole curve, as the table has it, where pauses and slow stretches make it another figure.
fn overall(run: &RunCurves, pace: &Pace) -> Option<String> {
    let curve = run.curves.iter().find(|curve| curve.tag == pace.tag)?;
    let rate = curve
        .curve
        .steps_per_second
        .filter(|_| pace.source == PaceSource::Clock && pace.unit == Unit::Step)?;
    let differs = (rate * pace.typical_s - 1.0).abs() > DIFFERS;
    differs.then(|| {
        let each = duration_ms(1e3 / rate);
        format!("; with all of that, {} steps/s ({each} per step)", short(rate))
    })
}

/// `12 pauses (10 evaluations, 2 unknown)`.
fn pauses(all: &[Pause]) -> String {
    let kinds = [
        (Why::Evaluation, "evaluation", "evaluations"),
        (Why::Checkpoint, "checkpoint", "checkpoints"),
        (Why::Restart, "restart", "restarts"),
        (Why::Unknown, "of unknown cause", "of unknown cause"),
    ];
    let named = kinds.iter().filter_map(|(why, one, many)| {
        let count = all.iter().filter(|pause| pause.why == *why).count() as u64;
        (count > 0).then(|| plural(count, one, many))
    });
    let named: Vec<String> = named.collect();
    format!("{} ({})", plural(all.len() as u64, "pause", "pauses"), listed(&named))
}

/// Writes the pace of the first runs and all findings, below the table.
pub fn write_text(
    runs: &[RunCurves],
    verdicts: &[RunVerdict],
    style: Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    let width = style.width.map_or(WIDEST, |width| width.clamp(40, WIDEST));
    let sentences: Vec<String> = runs.iter().filter_map(sentence).collect();
    if !sentences.is_empty() {
        writeln!(out, "\n{}", style.bold("pace"))?;
    }
    for said in sentences.iter().take(RUNS) {
        paragraph(said, "  ", "    ", width, out)?;
    }
    if sentences.len() > RUNS {
        writeln!(
            out,
            "{}",
            style.dim(&format!("  … and {} more; --json lists all", sentences.len() - RUNS))
        )?;
    }
    let mut findings: Vec<_> = verdicts.iter().flat_map(|verdict| &verdict.findings).collect();
    findings.sort_by_key(|finding| finding.severity);
    if !findings.is_empty() {
        writeln!(out, "\n{}", style.bold("findings"))?;
    }
    for finding in findings.iter().take(FINDINGS) {
        let words = finding.words();
        let label = format!("{:<8}", finding.severity.key());
        let label = match finding.severity {
            Severity::Critical => style.red(&label),
            Severity::Warning => style.yellow(&label),
            Severity::Info => style.cyan(&label),
        };
        paragraph(&words.summary, &format!("  {label} "), "           ", width, out)?;
        words.evidence.iter().try_for_each(|fact| paragraph(fact, "    · ", "      ", width, out))?;
        words
            .advice
            .iter()
            .take(1)
            .try_for_each(|advice| paragraph(advice, "    → ", "      ", width, out))?;
    }
    if findings.len() > FINDINGS {
        writeln!(
            out,
            "{}",
            style.dim(&format!("  … and {} more; --json lists all", findings.len() - FINDINGS))
        )?;
    }
    Ok(())
}

fn paragraph(text: &str, first: &str, later: &str, width: usize, out: &mut dyn Write) -> io::Result<()> {
    for (place, line) in wrapped(&printable(text), width, later.chars().count()).iter().enumerate() {
        writeln!(out, "{}{line}", if place == 0 { first } else { later })?;
    }
    Ok(())
}

pub(crate) fn why(why: Why) -> &'static str {
    match why {
        Why::Evaluation => "evaluation",
        Why::Checkpoint => "checkpoint",
        Why::Restart => "restart",
        Why::Unknown => "unknown",
    }
}

pub(crate) fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Step => "step",
        Unit::Epoch => "epoch",
    }
}

fn source(source: PaceSource) -> &'static str {
    match source {
        PaceSource::Clock => "clock",
        PaceSource::Logged => "logged",
    }
}

#[cfg(test)]
mod tests {
    use stepscope_diagnose::diagnose_run;
    use stepscope_trace::series::{RunLog, Series};

    use super::*;

    fn run() -> RunCurves {
        let mut series = Series { tag: "loss".to_owned(), ..Series::default() };
        let mut at = 1_800_000_000.0;
        for place in 0..200_i64 {
            let slow = if place > 120 { 1.5 } else { 1.0 };
            at += if place % 50 == 49 { 12.0 } else { slow * (1.0 + (place * 7 % 5) as f64 / 100.0) };
            series.steps.push(100 * place);
            series.wall_s.push(at);
            series.values.push(1.0);
        }
        RunCurves::of(&RunLog { name: "a/train".to_owned(), series: vec![series], ..RunLog::default() })
    }

    #[test]
    fn pace_and_findings_are_put_into_words() {
        let runs = [run()];
        let verdicts = [diagnose_run(&runs[0])];
        let mut text = Vec::new();
        write_text(&runs, &verdicts, Style::PLAIN, &mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(
            text.contains("a/train: one step takes 10.") && text.contains("by the times of `loss`"),
            "{text}"
        );
        assert!(text.contains("pauses (") && text.contains("Throughput drop"), "{text}");
        let pace = pace_json(&runs, &verdicts);
        assert_eq!(
            (&pace[0]["run"], &pace[0]["changes"][0]["step"]),
            (&json!("a/train"), &json!(12_000)),
            "{pace}"
        );
        let findings = findings_json(&runs, &verdicts);
        assert_eq!((&findings[0]["id"], &findings[0]["run"]), (&json!("throughput-drop"), &json!("a/train")));
    }
}
