//! The result of the gate: short text, JSON, JUnit, and Markdown for a job's summary page.

use std::io::{self, Write};

use serde_json::{Value, json};
use stepscope_diagnose::compare::Comparison;
use stepscope_diagnose::gate::{Check, Gate, Limits, Metric, Outcome};

use crate::compare::headline::headline;
use crate::compare::markdown::escaped;
use crate::compare::{json as compare_json, words};
use crate::format::{duration_ms, percent, printable};
use crate::style::Style;

/// Why a gate does not pass although its checks do.
const DAMAGED: &str = "a recording is damaged, so the checks may have seen only a part of it";

/// The gate with the comparison it is based on.
#[derive(Copy, Clone, Debug)]
pub struct Judgement<'a> {
    /// The checks.
    pub gate: &'a Gate,
    /// The comparison it is based on.
    pub comparison: &'a Comparison,
    /// Whether the gate passes.
    pub passed: bool,
    /// Whether a file was damaged, so that the checks may have seen half of a recording.
    pub damaged: bool,
}

impl Judgement<'_> {
    /// How it ended, in a word that CI and people can rely on: what is too noisy to decide is neither passed nor failed.
    fn word(&self) -> &'static str {
        if !self.passed {
            "failed"
        } else if self.gate.worst() == Outcome::Unclear {
            "unclear"
        } else {
            "passed"
        }
    }

    /// The answer in one line.
    fn first_line(&self, word: &str) -> String {
        let passes = if self.word() == "unclear" { ", passes" } else { "" };
        let limit = limits(&self.gate.limits);
        format!("gate {word}{passes} (limit {limit}). {}", headline(self.comparison))
    }

    /// What to do about checks that are too noisy to decide.
    fn next(&self) -> Option<String> {
        let unclear = self.gate.comparable && self.gate.worst() == Outcome::Unclear;
        let more = "give more time (--time-budget), or use longer steps";
        let next = self.comparison.next.map_or_else(
            || {
                if self.comparison.pairs.is_some() {
                    more.to_owned()
                } else {
                    "record more runs per side in turn, or run with `stepscope gate --paired`".to_owned()
                }
            },
            words::next_step,
        );
        let waits = self.gate.checks.iter().any(|check| matches!(check.metric, Metric::Work(_)));
        let next = if waits { format!("{next} (work metrics cannot see waiting)") } else { next };
        unclear.then_some(next)
    }

    /// Why the sides cannot be compared, if that is so.
    fn incomparable(&self) -> Option<String> {
        (!self.gate.comparable).then(|| headline(self.comparison))
    }

    /// What else differs between the sides, in one line: the checks may be about that.
    fn differs(&self) -> Option<String> {
        let all = self.comparison.comparability.differences.iter().filter(|it| !it.blocks());
        let all: Vec<String> = all.map(words::difference).collect();
        (!all.is_empty()).then(|| format!("also different: {}", all.join("; ")))
    }
}

/// One check in one line.
fn told(check: &Check) -> String {
    let name = check.metric.key();
    let Some(measured) = &check.measured else {
        return match check.outcome {
            Outcome::Failed => format!("{name} is new"),
            Outcome::Missing => format!("{name}: neither side has it"),
            _ => format!("{name} is not new"),
        };
    };
    let times = match check.metric {
        Metric::Work(work) => format!(
            "{} → {}",
            words::work_amount(work, measured.base_ms),
            words::work_amount(work, measured.new_ms)
        ),
        _ => format!("{} → {}", duration_ms(measured.base_ms), duration_ms(measured.new_ms)),
    };
    let change = match &measured.ratio {
        // The interval that is shown is the one that decided.
        Some(ratio) if check.by_mean => words::change(ratio.value),
        Some(ratio) => format!("{}{}", words::change(ratio.value), words::range(ratio)),
        None if matches!(check.metric, Metric::Work(_)) => "new".to_owned(),
        None => words::change_ms(measured.delta_ms.value),
    };
    let remark = match check.outcome {
        _ if check.by_mean => "; decided by the mean step",
        Outcome::Failed if check.advisory => "; more work, but the step is within the limit",
        _ if check.advisory => "",
        Outcome::Unclear => "; too noisy to rule out a regression beyond the limit",
        _ => "",
    };
    format!("{name} {times}, {change}{remark}")
}

fn limits(limits: &Limits) -> String {
    let relative = limits.relative.map(|limit| format!("+{}", percent(limit)));
    let absolute = limits.absolute_ms.map(|limit| format!("+{}", duration_ms(limit)));
    relative.into_iter().chain(absolute).collect::<Vec<_>>().join(" and ")
}

/// Writes short text: the answer, what else differs, then one line per check.
pub fn write_text(judgement: &Judgement<'_>, style: Style, out: &mut dyn Write) -> io::Result<()> {
    let word = match judgement.word() {
        "passed" => style.green("passed"),
        "unclear" => style.yellow("unclear"),
        _ => style.red("failed"),
    };
    writeln!(out, "{}", judgement.first_line(&word))?;
    if judgement.damaged {
        writeln!(out, "  {DAMAGED}")?;
    }
    if let Some(line) = judgement.differs() {
        writeln!(out, "  {}", printable(&line))?;
    }
    for check in &judgement.gate.checks {
        let label = match check.outcome {
            _ if check.advisory => style.dim("work   "),
            // Nothing is called passed in a gate that is not.
            Outcome::Passed if !judgement.passed => style.green("within "),
            Outcome::Passed => style.green("passed "),
            Outcome::Unclear => style.yellow("unclear"),
            Outcome::Failed => style.red("failed "),
            Outcome::Missing => style.red("missing"),
        };
        writeln!(out, "  {label} {}", printable(&told(check)))?;
    }
    judgement.next().map_or(Ok(()), |next| writeln!(out, "  next: {next}"))
}

/// Writes JSON: schema `stepscope.gate.v1`; `comparison` is what `compare --json` writes.
pub fn write_json(judgement: &Judgement<'_>, out: &mut dyn Write) -> io::Result<()> {
    let gate = judgement.gate;
    let checks: Vec<Value> = gate.checks.iter().map(check_json).collect();
    let value = json!({
        "schema": "stepscope.gate.v1",
        "passed": judgement.passed,
        "outcome": judgement.word(),
        "summary": headline(judgement.comparison),
        "next": judgement.next(),
        "comparable": gate.comparable,
        "limits": {"max_regression": gate.limits.relative, "max_ms": gate.limits.absolute_ms},
        "checks": checks,
        "comparison": compare_json::compare_json(judgement.comparison),
    });
    serde_json::to_writer_pretty(&mut *out, &value)?;
    writeln!(out)
}

fn check_json(check: &Check) -> Value {
    let mut value = check.measured.as_ref().map_or_else(|| json!({}), compare_json::measured);
    value["metric"] = check.metric.key().into();
    value["outcome"] = check.outcome.key().into();
    value["advisory"] = check.advisory.into();
    value["message"] = told(check).into();
    value
}

/// Writes JUnit XML: one test case per check, and one for whether the sides can be compared.
pub fn write_junit(judgement: &Judgement<'_>, out: &mut dyn Write) -> io::Result<()> {
    let gate = judgement.gate;
    let failed =
        |check: &&Check| !check.advisory && matches!(check.outcome, Outcome::Failed | Outcome::Missing);
    // Only what fails the gate counts as a failure; a tolerated difference is reported but not counted.
    let unlike = judgement.incomparable().filter(|_| !judgement.passed);
    let strict = !judgement.passed
        && !judgement.damaged
        && unlike.is_none()
        && !gate.checks.iter().any(|check| failed(&check));
    let unclear = |check: &Check| !check.advisory && check.outcome == Outcome::Unclear;
    let stops = |check: &Check| failed(&check) || (strict && unclear(check));
    let failures = gate.checks.iter().filter(|check| stops(check)).count()
        + usize::from(unlike.is_some())
        + usize::from(judgement.damaged);
    writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
    let skips = |check: &Check| unclear(check) && !stops(check);
    let skipped = gate.checks.iter().filter(|check| skips(check)).count();
    writeln!(
        out,
        "<testsuite name=\"stepscope gate\" tests=\"{}\" failures=\"{failures}\" skipped=\"{skipped}\">",
        gate.checks.len() + 1 + usize::from(judgement.damaged)
    )?;
    case("comparable", unlike.as_deref().map(Case::Failure), out)?;
    if judgement.damaged {
        case("undamaged", Some(Case::Failure(DAMAGED)), out)?;
    }
    for check in &gate.checks {
        let mut told = told(check);
        if let Some(next) = judgement.next().filter(|_| skips(check)) {
            told = format!("{told}; next: {next}");
        }
        let content = match check {
            check if stops(check) => Case::Failure(&told),
            check if skips(check) => Case::Skipped(&told),
            _ => Case::Note(&told),
        };
        case(&check.metric.key(), Some(content), out)?;
    }
    writeln!(out, "</testsuite>")
}

/// What a test case says.
#[derive(Copy, Clone)]
enum Case<'a> {
    Failure(&'a str),
    Skipped(&'a str),
    Note(&'a str),
}

fn case(name: &str, content: Option<Case<'_>>, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "  <testcase classname=\"stepscope\" name=\"{}\">", xml(name))?;
    match content {
        Some(Case::Failure(text)) => write!(out, "<failure message=\"{}\"/>", xml(text))?,
        Some(Case::Skipped(text)) => write!(out, "<skipped message=\"{}\"/>", xml(text))?,
        Some(Case::Note(text)) => write!(out, "<system-out>{}</system-out>", xml(text))?,
        None => {}
    }
    writeln!(out, "</testcase>")
}

fn xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in printable(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
    }
    out
}

/// Writes Markdown for a job's summary page.
pub fn write_markdown(judgement: &Judgement<'_>, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "## stepscope gate {}\n", judgement.word())?;
    writeln!(out, "Limit: {}\n", limits(&judgement.gate.limits))?;
    if let Some(next) = judgement.next() {
        writeln!(out, "> [!WARNING]\n> Too noisy to decide. Next: {}\n", escaped(&next))?;
    }
    if judgement.damaged {
        writeln!(out, "- {DAMAGED}")?;
    }
    for check in &judgement.gate.checks {
        let word = if check.advisory { "work" } else { check.outcome.key() };
        writeln!(out, "- **{word}** {}", escaped(&told(check)))?;
    }
    writeln!(out)?;
    crate::compare::write_markdown(judgement.comparison, out)
}
