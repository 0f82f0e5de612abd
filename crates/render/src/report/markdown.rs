//! The report as compact Markdown for GitHub and GitLab pull requests.
//!
//! Text from a trace never becomes markup: sentences put it in code spans, tables escape it.

use std::io::{self, Write};

use stepscope_diagnose::Severity;
use stepscope_results::report::Report;

use super::{answer, words};
use crate::format::{decimal, duration_ms, name_cut, percent, printable, thousands};
use crate::report::words::promise;

/// Number of ops shown.
const OPS: usize = 5;
/// Width of a bar in characters.
const BAR: usize = 20;

/// Writes the report.
pub fn write_markdown(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "### {}\n", sentence(&answer(report)))?;
    if let Some(caution) = answer::caution(report) {
        writeln!(out, "{}\n", sentence(&caution))?;
    }
    let mut facts = words::step_line(report);
    facts.extend(words::covers(report).map(|covers| format!("covers {covers}")));
    facts.extend(words::in_run(report));
    facts.extend(words::slowest(report).map(|(what, name)| format!("{what} {name}")));
    writeln!(out, "{}\n", sentence(&facts.join(" · ")))?;
    breakdown(report, out)?;
    findings(report, out)?;
    ops(report, out)?;
    samples(report, out)?;
    health(report, out)
}

fn breakdown(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let rows = report.by_share();
    let Some(&(_, _, largest)) = rows.first() else { return Ok(()) };
    writeln!(out, "| {} | time | share | |\n|:--|--:|--:|:--|", report.breakdown_of())?;
    for (category, ms, share) in rows {
        let filled = if largest > 0.0 { (share / largest * BAR as f64).round() as usize } else { 0 };
        let bar = "█".repeat(filled.min(BAR));
        writeln!(out, "| {} | {} | {} | {bar} |", category.key(), duration_ms(ms), percent(share))?;
    }
    writeln!(out)?;
    if report.ranges.is_empty() {
        return Ok(());
    }
    writeln!(out, "| range | time | share |\n|:--|--:|--:|")?;
    for range in &report.ranges {
        let (time, share) = (duration_ms(range.ms_per_step), percent(range.fraction));
        writeln!(out, "| {} | {time} | {share} |", cell(&range.name))?;
    }
    writeln!(out)
}

fn findings(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    for (place, finding) in report.findings.iter().enumerate() {
        let mark = match finding.severity {
            Severity::Critical => "🔴",
            Severity::Warning => "🟠",
            Severity::Info => "🔵",
        };
        let words = finding.words();
        let promise = promise(finding).map_or(String::new(), |promise| format!(" — {promise}"));
        let open = if place == 0 { " open" } else { "" };
        writeln!(out, "<details{open}><summary>{mark} <b>{}</b>{promise}</summary>\n", finding.id())?;
        writeln!(out, "{}\n", sentence(&words.summary))?;
        words.evidence.iter().try_for_each(|fact| writeln!(out, "- {}", sentence(fact)))?;
        writeln!(out)?;
        let numbered = words.advice.iter().enumerate();
        numbered.into_iter().try_for_each(|(n, advice)| writeln!(out, "{}. {}", n + 1, sentence(advice)))?;
        writeln!(out, "\n</details>\n")?;
    }
    Ok(())
}

fn ops(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    if report.ops.is_empty() {
        return Ok(());
    }
    writeln!(out, "| op | type | where | count | self | share |\n|:--|:--|:--|--:|--:|--:|")?;
    for op in report.ops.iter().take(OPS) {
        writeln!(
            out,
            "| {} | {} | {} | {} | {} ms | {} |",
            cell(&op.name),
            cell(&op.op_type),
            op.place(),
            thousands(op.count),
            decimal(op.self_ms, 3),
            percent(op.fraction)
        )?;
    }
    writeln!(out)
}

fn samples(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let lines = words::sampled(report);
    if lines.is_empty() {
        return Ok(());
    }
    lines.iter().try_for_each(|line| writeln!(out, "- {}", sentence(line)))?;
    writeln!(out)
}

fn health(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let troubles: Vec<_> = report
        .health
        .iter()
        .filter(|row| row.severity != "info" && !words::said_above(report, row))
        .take(5)
        .collect();
    for row in &troubles {
        writeln!(out, "- recording, {}: {}", row.severity, escaped(&row.message))?;
    }
    if troubles.is_empty() { Ok(()) } else { writeln!(out) }
}

/// A sentence with names from the trace in code spans. Nothing outside the spans may become markup.
fn sentence(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    // An odd number of backticks leaves a span open; then nothing is a span.
    if parts.len().is_multiple_of(2) {
        return escaped(text);
    }
    let mut out = String::with_capacity(text.len());
    for (place, part) in parts.iter().enumerate() {
        if place % 2 == 1 {
            out.push_str(&format!("`{}`", printable(part)));
        } else {
            out.push_str(&escaped(part));
        }
    }
    out
}

/// Escapes text so that no character has a special meaning.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in printable(text).chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' | '~' => {
                out.push('\\');
                out.push(c);
            }
            // Prevents notifications to users with that name.
            '@' => out.push_str("&#64;"),
            c => out.push(c),
        }
    }
    out
}

/// A name in a table cell: a code span, in which only the bar must be escaped.
fn cell(name: &str) -> String {
    let clean = printable(name).replace('`', "'").replace('|', "\\|");
    format!("`{}`", name_cut(&clean, 60))
}
