//! The result of the gate: short text, JSON, JUnit, and Markdown for a job's summary page.

use std::io::{self, Write};

use serde_json::{Value, json};
use stepscope_diagnose::compare::Comparison;
use stepscope_diagnose::gate::{Check, Gate, Limits, Outcome};

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
    fn word(&self) -> &'static str {
        if self.passed { "passed" } else { "failed" }
    }

    /// Why the sides cannot be compared, if that is so.
    fn incomparable(&self) -> Option<String> {
        (!self.gate.comparable).then(|| words::headline(self.comparison))
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
    let times = format!("{} → {}", duration_ms(measured.base_ms), duration_ms(measured.new_ms));
    let change = match &measured.ratio {
        Some(ratio) => format!("{}{}", words::change(ratio.value), words::range(ratio)),
        None => words::change_ms(measured.delta_ms.value),
    };
    let remark = if check.outcome == Outcome::Unclear {
        "; too noisy to rule out a regression beyond the limit"
    } else {
        ""
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
    let word = if judgement.passed { style.green("passed") } else { style.red("failed") };
    writeln!(out, "gate {word} (limit {})", limits(&judgement.gate.limits))?;
    if judgement.damaged {
        writeln!(out, "  {DAMAGED}")?;
    }
    for line in judgement.incomparable().into_iter().chain(judgement.differs()) {
        writeln!(out, "  {}", printable(&line))?;
    }
    for check in &judgement.gate.checks {
        let label = match check.outcome {
            // Nothing is called passed in a gate that is not.
            Outcome::Passed if !judgement.passed => style.green("within "),
            Outcome::Passed => style.green("passed "),
            Outcome::Unclear => style.yellow("unclear"),
            Outcome::Failed => style.red("failed "),
            Outcome::Missing => style.red("missing"),
        };
        writeln!(out, "  {label} {}", printable(&told(check)))?;
    }
    Ok(())
}

/// Writes JSON: schema `stepscope.gate.v1`; `comparison` is what `compare --json` writes.
pub fn write_json(judgement: &Judgement<'_>, out: &mut dyn Write) -> io::Result<()> {
    let gate = judgement.gate;
    let checks: Vec<Value> = gate.checks.iter().map(check_json).collect();
    let value = json!({
        "schema": "stepscope.gate.v1",
        "passed": judgement.passed,
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
    value["message"] = told(check).into();
    value
}

/// Writes JUnit XML: one test case per check, and one for whether the sides can be compared.
pub fn write_junit(judgement: &Judgement<'_>, out: &mut dyn Write) -> io::Result<()> {
    let gate = judgement.gate;
    let failed = |check: &&Check| matches!(check.outcome, Outcome::Failed | Outcome::Missing);
    // Only what fails the gate counts as a failure; a tolerated difference is reported but not counted.
    let unlike = judgement.incomparable().filter(|_| !judgement.passed);
    let strict = !judgement.passed
        && !judgement.damaged
        && unlike.is_none()
        && !gate.checks.iter().any(|check| failed(&check));
    let stops = |check: &Check| failed(&check) || (strict && check.outcome == Outcome::Unclear);
    let failures = gate.checks.iter().filter(|check| stops(check)).count()
        + usize::from(unlike.is_some())
        + usize::from(judgement.damaged);
    writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
    writeln!(
        out,
        "<testsuite name=\"stepscope gate\" tests=\"{}\" failures=\"{failures}\">",
        gate.checks.len() + 1 + usize::from(judgement.damaged)
    )?;
    case("comparable", unlike.as_deref(), None, out)?;
    if judgement.damaged {
        case("undamaged", Some(DAMAGED), None, out)?;
    }
    for check in &gate.checks {
        let told = told(check);
        let (failure, note) =
            if stops(check) { (Some(told.as_str()), None) } else { (None, Some(told.as_str())) };
        case(&check.metric.key(), failure, note, out)?;
    }
    writeln!(out, "</testsuite>")
}

fn case(name: &str, failure: Option<&str>, note: Option<&str>, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "  <testcase classname=\"stepscope\" name=\"{}\">", xml(name))?;
    if let Some(failure) = failure {
        write!(out, "<failure message=\"{}\"/>", xml(failure))?;
    }
    if let Some(note) = note {
        write!(out, "<system-out>{}</system-out>", xml(note))?;
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
    if judgement.damaged {
        writeln!(out, "- {DAMAGED}")?;
    }
    for check in &judgement.gate.checks {
        writeln!(out, "- **{}** {}", check.outcome.key(), escaped(&told(check)))?;
    }
    writeln!(out)?;
    crate::compare::write_markdown(judgement.comparison, out)
}
