//! The report for the terminal: the first line is the verdict, and everything fits on one screen.

use std::io::{self, Write};

use stepscope_analyze::Category;
use stepscope_diagnose::{Finding, Severity};
use stepscope_results::report::{HealthRow, OpRow, Report};
use stepscope_results::table::{Select, Table, columns};
use stepscope_results::words::terms;
use stepscope_trace::Delivers;

use super::palette;
use super::{answer, words};
use crate::format::{self, duration_ms, printable, thousands};
use crate::report::words::promise;
use crate::style::Style;
use crate::table::write_text as write_table;

/// Maximum line length, even on wider terminals, because longer lines are hard to read.
const WIDEST: usize = 100;
/// Number of ops shown.
const OPS: usize = 5;
/// Number of findings shown after the verdict.
const OTHERS: usize = 5;
/// Number of health problems shown.
const TROUBLES: usize = 3;
/// Number of facts and fixes shown for the verdict.
const FACTS: usize = 4;
/// Length of the longest bar.
const BAR: usize = 28;
/// Width of a range's name, so that its figures stand below those of the categories.
const NAMES: usize = 15 + BAR - 1;
/// Smaller shares are summed up in one line.
const SMALL: f64 = 0.005;

/// Writes the report.
pub fn write_text(report: &Report, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let mut page = Page { width: style.width.map_or(WIDEST, |width| width.clamp(40, WIDEST)), style, out };
    page.answer(report)?;
    page.steps(report)?;
    page.breakdown(report)?;
    page.ops(report)?;
    page.findings(report)?;
    page.samples(report)?;
    page.health(report)?;
    page.next(report)
}

struct Page<'a> {
    width: usize,
    style: Style,
    out: &'a mut dyn Write,
}

impl Page<'_> {
    fn answer(&mut self, report: &Report) -> io::Result<()> {
        for line in wrapped(&printable(&answer(report)), self.width, 0) {
            writeln!(self.out, "{}", self.style.bold(&line))?;
        }
        match answer::caution(report) {
            Some(caution) => self.paragraph(&caution, "", ""),
            None => Ok(()),
        }
    }

    fn steps(&mut self, report: &Report) -> io::Result<()> {
        writeln!(self.out)?;
        let label = if report.summary.step_ms.is_some() { "step" } else { "time" };
        self.items(label, &words::step_line(report))?;
        if let Some(covers) = words::covers(report) {
            self.labelled("covers", &covers)?;
        }
        if let Some(place) = words::in_run(report) {
            self.labelled("run", &place)?;
        }
        if let Some((what, name)) = words::slowest(report) {
            self.labelled(what, &name)?;
        }
        if let Some(usage) = words::usage(report) {
            self.labelled("of peak", &usage)?;
        }
        if let Some(memory) = report.memory.as_ref().filter(|_| report.has_timeline()) {
            self.labelled("memory", memory)?;
        }
        match words::other_sessions(report) {
            Some(note) => self.labelled("session", &note),
            None => Ok(()),
        }
    }

    fn breakdown(&mut self, report: &Report) -> io::Result<()> {
        // Profiled kernels are nothing but compute.
        let rows = if report.only(Delivers::Counters) { Vec::new() } else { report.by_share() };
        let Some(&(_, _, largest)) = rows.first() else { return Ok(()) };
        self.heading(&format!("where the {} goes", report.breakdown_of()))?;
        let (shown, small): (Vec<_>, Vec<_>) = rows.into_iter().partition(|(_, _, share)| *share >= SMALL);
        for (category, ms, share) in shown {
            self.bar(category, ms, share, largest)?;
        }
        if !small.is_empty() {
            let names: Vec<&str> = small.iter().map(|(category, _, _)| category.key()).collect();
            let rest = format!("  below 0.5 % each: {}", names.join(", "));
            writeln!(self.out, "{}", self.style.dim(&rest))?;
        }
        self.ranges(report)
    }

    /// The program's ranges below the breakdown, with their figures below those of the categories.
    fn ranges(&mut self, report: &Report) -> io::Result<()> {
        if !report.ranges.is_empty() {
            writeln!(self.out, "{}", self.style.dim(&format!("  {}", words::RANGES)))?;
        }
        for range in &report.ranges {
            let figures =
                format!("{:>9} {:>7}", duration_ms(range.ms_per_step), format::percent(range.fraction));
            let name = format::name_cut(&range.name, NAMES);
            writeln!(self.out, "    {name:<NAMES$} {figures}")?;
        }
        Ok(())
    }

    fn bar(&mut self, category: Category, ms: f64, share: f64, largest: f64) -> io::Result<()> {
        // Name and figures need this much beside the bar.
        let room = BAR.min(self.width.saturating_sub(2 + 15 + 1 + 18)).max(4);
        let eighths = if largest > 0.0 { (share / largest * (room * 8) as f64).round() as usize } else { 0 };
        let bar = bar(eighths.clamp(1, room * 8));
        let padding = " ".repeat(room.saturating_sub(bar.chars().count()));
        let bar = if self.style.color {
            format!("\x1b[38;5;{}m{bar}\x1b[0m{padding}", palette::terminal(category))
        } else {
            format!("{bar}{padding}")
        };
        let figures = format!("{:>9} {:>7}", duration_ms(ms), format::percent(share));
        let line = format!("  {:<15} {bar} {figures}", category.key());
        let about = terms::category(category);
        // The explanation gets the space left by the name, the bar and the figures.
        if self.width >= 2 + 15 + BAR + 17 + 4 + about.chars().count() {
            writeln!(self.out, "{line}  {}", self.style.dim(about))
        } else {
            writeln!(self.out, "{line}")
        }
    }

    fn ops(&mut self, report: &Report) -> io::Result<()> {
        if report.ops.is_empty() {
            return Ok(());
        }
        self.heading("top ops")?;
        let fields = columns! { op: OpRow;
            name: Name "  op" => format!("  {}", op.name);
            type: Name "type" => op.op_type.as_str();
            label.optional: Name "what" => op.label.as_deref();
            source.optional: Name "source" => op.source.as_deref();
            where.optional: Text "where" => op.place();
            count: Count "count" => op.count;
            self_ms: Ms "self" => op.self_ms;
            fraction: Percent "share" => op.fraction;
        };
        let mut table = Table::of("ops", &fields, report.ops.iter().take(OPS));
        if report.ops.iter().take(OPS).all(|op| op.name == op.op_type) {
            table.hide(&["type"]);
        }
        let style = Style { width: Some(self.width), ..self.style };
        let picked = table.pick(&Select::default(), None).map_err(io::Error::other)?;
        write_table(&table, &picked, style, self.out)
    }

    fn findings(&mut self, report: &Report) -> io::Result<()> {
        let mut findings = report.findings.iter();
        let Some(answer) = findings.next() else { return Ok(()) };
        self.heading("what to do")?;
        self.tag(answer)?;
        let words = answer.words();
        for fact in words.evidence.iter().take(FACTS) {
            self.paragraph(fact, "    · ", "      ")?;
        }
        for advice in &words.advice {
            self.paragraph(advice, "    → ", "      ")?;
        }
        findings.by_ref().take(OTHERS).try_for_each(|finding| self.other(finding))?;
        match findings.count() {
            0 => Ok(()),
            more => {
                let rest = format!("  … and {} more; --json lists all", thousands(more as u64));
                writeln!(self.out, "{}", self.style.dim(&rest))
            }
        }
    }

    /// `  critical  input-bound · saves at most 34.9 ms per step`
    fn tag(&mut self, finding: &Finding) -> io::Result<()> {
        let promise = promise(finding).map_or(String::new(), |promise| format!(" · {promise}"));
        let id = finding.id();
        writeln!(self.out, "  {} {}{}", self.severity(finding), self.style.bold(id), self.style.dim(&promise))
    }

    fn other(&mut self, finding: &Finding) -> io::Result<()> {
        let words = finding.words();
        let label = self.severity(finding);
        let text = printable(&words.summary);
        for (place, line) in wrapped(&text, self.width, 12).iter().enumerate() {
            let label = if place == 0 { label.as_str() } else { "        " };
            writeln!(self.out, "  {label} {line}")?;
        }
        // How to record better is more than one thing to do, and every one may be what is missing.
        let advice = words.advice.iter().take(if finding.is_about_trust() { usize::MAX } else { 1 });
        advice.into_iter().try_for_each(|advice| self.paragraph(advice, "    → ", "      "))
    }

    /// The severity, always eight characters wide.
    fn severity(&self, finding: &Finding) -> String {
        let text = format!("{:<8}", finding.severity.key());
        match finding.severity {
            Severity::Critical => self.style.red(&text),
            Severity::Warning => self.style.yellow(&text),
            Severity::Info => self.style.cyan(&text),
        }
        .into_owned()
    }

    /// Problems of the recording. Equal messages of several hosts are shown once. Remarks are left to `health`.
    fn samples(&mut self, report: &Report) -> io::Result<()> {
        let lines = words::sampled(report);
        if !lines.is_empty() {
            self.heading("hardware samples")?;
        }
        lines.iter().try_for_each(|line| self.paragraph(line, "  ", "    "))
    }

    fn health(&mut self, report: &Report) -> io::Result<()> {
        let mut told: Vec<(&HealthRow, u64)> = Vec::new();
        for row in
            report.health.iter().filter(|row| row.severity != "info" && !words::said_above(report, row))
        {
            match told.iter_mut().find(|(known, _)| *known == row) {
                Some((_, times)) => *times += 1,
                None => told.push((row, 1)),
            }
        }
        if told.is_empty() {
            return Ok(());
        }
        self.heading("about the recording")?;
        for (row, times) in told.iter().take(TROUBLES) {
            let times = if *times > 1 { format!(" (on {times} hosts)") } else { String::new() };
            self.paragraph(&format!("{}: {}{times}", row.severity, row.message), "  ", "    ")?;
        }
        match told.len().saturating_sub(TROUBLES) {
            0 => Ok(()),
            more => writeln!(self.out, "  … and {more} more, see `stepscope health`"),
        }
    }

    fn next(&mut self, report: &Report) -> io::Result<()> {
        writeln!(self.out)?;
        self.items("next", &words::next_commands(report))
    }

    fn heading(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.out, "\n{}", self.style.bold(text))
    }

    /// Items after a label, as many per line as fit, none of them broken.
    fn items(&mut self, label: &str, items: &[String]) -> io::Result<()> {
        let mut lines: Vec<String> = Vec::new();
        for item in items.iter().map(|item| printable(item)) {
            match lines.last_mut() {
                Some(line) if line.chars().count() + item.chars().count() + 12 <= self.width => {
                    line.push_str(" · ");
                    line.push_str(&item);
                }
                _ => lines.push(item),
            }
        }
        for (place, line) in lines.iter().enumerate() {
            self.labelled(if place == 0 { label } else { "" }, line)?;
        }
        Ok(())
    }

    fn labelled(&mut self, label: &str, text: &str) -> io::Result<()> {
        let text = printable(text);
        for (place, line) in wrapped(&text, self.width, 9).iter().enumerate() {
            let label = format!("{:<8}", if place == 0 { label } else { "" });
            writeln!(self.out, "{} {line}", self.style.dim(&label))?;
        }
        Ok(())
    }

    fn paragraph(&mut self, text: &str, first: &str, later: &str) -> io::Result<()> {
        let text = printable(text);
        for (place, line) in wrapped(&text, self.width, later.chars().count()).iter().enumerate() {
            writeln!(self.out, "{}{line}", if place == 0 { first } else { later })?;
        }
        Ok(())
    }
}

/// A bar of this many eighths of a character.
fn bar(eighths: usize) -> String {
    const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    format!("{}{}", "█".repeat(eighths / 8), PARTS[eighths % 8])
}

/// Wraps text at spaces into lines of at most `width` minus `indent` characters.
pub(crate) fn wrapped(text: &str, width: usize, indent: usize) -> Vec<String> {
    let room = width.saturating_sub(indent).max(20);
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut length = 0;
    let mut words = text.split_whitespace().peekable();
    while let Some(word) = words.next() {
        let word_length = word.chars().count();
        let unit = words.peek().filter(|next| is_number(word) && is_unit(next));
        let needed = word_length + unit.map_or(0, |unit| 1 + unit.chars().count());
        if length > 0 && length + 1 + needed > room {
            lines.push(std::mem::take(&mut line));
            length = 0;
        }
        if length > 0 {
            line.push(' ');
            length += 1;
        }
        line.push_str(word);
        length += word_length;
    }
    if length > 0 {
        lines.push(line);
    }
    lines
}

fn is_number(word: &str) -> bool {
    word.ends_with(|c: char| c.is_ascii_digit())
}

/// A unit stays on the same line as its number.
fn is_unit(word: &str) -> bool {
    let bare = word.trim_end_matches([')', '.', ',', ';', ':']);
    matches!(bare, "%" | "ns" | "µs" | "ms" | "s" | "min" | "B" | "kB" | "MB" | "GB" | "TB")
}
