//! `stepscope gate`: a comparison that can fail a CI job.

mod again;
#[cfg(unix)]
mod paired;

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use stepscope_analyze::Category;
use stepscope_diagnose::compare::{ComparedRun, Comparison, Work};
use stepscope_diagnose::gate::{Gate, Limits, Metric, Outcome, gate, gate_by_default};
use stepscope_diagnose::rules::RULES;
use stepscope_render::gate::{self as render, Judgement};
use stepscope_session::{Cause, Problem};

use crate::exit::Exit;

use super::compare::{Sides, SidesArgs, percent};
use crate::failure::Failure;
use crate::near::near;
use crate::output::Terminal;
use crate::write_file::{append, save, unwritable};

/// What to do about a file that cannot be written.
const TODO: &str = "choose a file in an existing folder";
/// Default limit for how much slower NEW may be.
const DEFAULT_LIMIT: f64 = 0.05;

/// Compare two profiles in CI: exit code 1 on a significant regression beyond the limit.
///
/// The decision is the same as in `stepscope compare`. If the result is too noisy to decide, the outcome is unclear:
/// the gate passes with a warning unless --on-unclear says otherwise. If the sides cannot be compared, it fails, unless
/// --allow-incomparable is given.
#[derive(Debug, Args)]
#[command(
    after_help = "Metrics: step.mean, step.median, step.p90, breakdown.CATEGORY, op:NAME, finding:ID,\n\
    cpu, instructions, device, launches, copied, ops (work: certain where time is noisy, but blind to waiting)\n\n\
    Examples:\n  \
    stepscope gate main/ branch/                                       mean step at most 5 % slower\n  \
    stepscope gate main/ branch/ --max-regression 10% --junit gate.xml write a JUnit report\n  \
    stepscope gate main/ branch/ --metric step.p90 --metric op:MatMul  other metrics\n  \
    stepscope gate main/ branch/ --metric finding:retracing            fail if the finding is new\n  \
    stepscope gate main/ branch/ --retries './record.sh'               record more runs while unclear\n  \
    stepscope gate --paired --base-dir ../main --new-dir . -- python train.py   take turns step by step"
)]
pub(crate) struct GateArgs {
    #[command(flatten)]
    sides: SidesArgs,
    /// Largest allowed increase of a metric, relative to BASE [default: 5%].
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    max_regression: Option<f64>,
    /// Largest allowed increase of a metric, in milliseconds; if given alone, it replaces the relative limit.
    #[arg(long, value_name = "MS", value_parser = milliseconds)]
    max_ms: Option<f64>,
    /// Metric to check; repeatable [default: step.mean, and the work of a step beside it].
    #[arg(long, value_name = "METRIC", value_parser = metric)]
    metric: Vec<Metric>,
    /// What to do when the result is too noisy to decide [default: pass, or retry with --retries].
    #[arg(long, value_enum, value_name = "WHAT")]
    on_unclear: Option<OnUnclear>,
    /// Also fail when the result is too noisy to decide; with `--on-unclear retry`, if it still is afterwards.
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    again: again::AgainArgs,
    #[cfg(unix)]
    #[command(flatten)]
    paired: paired::PairedArgs,
    /// Do not fail when the sides cannot be compared.
    #[arg(long)]
    allow_incomparable: bool,
    /// Write JSON (schema stepscope.gate.v1).
    #[arg(long)]
    json: bool,
    /// Write a JUnit report to this file as well.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Append Markdown to FILE as well [default FILE: $GITHUB_STEP_SUMMARY].
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    github_summary: Option<Option<PathBuf>>,
}

/// What to do when the result is too noisy to decide.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
enum OnUnclear {
    /// Pass with a warning.
    Pass,
    /// Fail.
    Fail,
    /// Record more runs with the command of --retries, then pass with a warning.
    Retry,
}

fn milliseconds(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches("ms").trim().parse::<f64>().ok();
    number
        .filter(|number| number.is_finite() && *number >= 0.0)
        .ok_or_else(|| "give milliseconds, e.g. 0.5".to_owned())
}

fn metric(text: &str) -> Result<Metric, String> {
    Metric::parse(text).ok_or_else(|| {
        let findings = || RULES.iter().map(|rule| rule.id);
        let categories = || Category::ALL.into_iter().map(Category::key);
        if let Some(id) = text.strip_prefix("finding:") {
            unknown("finding", near(id, findings()), "run `stepscope explain` for all ids")
        } else if let Some(key) = text.strip_prefix("breakdown.") {
            unknown("category", near(key, categories()), &categories().collect::<Vec<_>>().join(", "))
        } else {
            let work = Work::ALL.map(Work::key).join(", ");
            format!("give step.mean, step.median, step.p90, breakdown.CATEGORY, op:NAME, finding:ID, {work}")
        }
    })
}

fn unknown(what: &str, near: Vec<&str>, else_see: &str) -> String {
    match &near[..] {
        [] => format!("unknown {what}; {else_see}"),
        near => format!("unknown {what}; did you mean {}?", near.join(" or ")),
    }
}

impl GateArgs {
    pub(crate) fn run(&self, terminal: &Terminal) -> Result<Exit, Failure> {
        let (gate, comparison, exit) = match self.by_pairs(terminal)? {
            Some((gate, comparison)) => (gate, comparison, Exit::Done),
            None => {
                self.again.can_retry(self.on_unclear == Some(OnUnclear::Retry))?;
                let mut sides = self.sides.load(terminal)?;
                let (gate, comparison) = self.decide(&mut sides, terminal)?;
                (gate, comparison, sides.exit)
            }
        };
        let worst = gate.worst();
        let comparable = gate.comparable || self.allow_incomparable;
        let strict = self.strict || self.on_unclear == Some(OnUnclear::Fail);
        let within = comparable && (worst < Outcome::Failed) && !(strict && worst == Outcome::Unclear);
        // On damaged input the exit code is 4: the checks may have seen half of a recording.
        let damaged = exit != Exit::Done;
        let passed = within && !damaged;
        let judgement = Judgement { gate: &gate, comparison: &comparison, passed, damaged };
        // The files come first: where one cannot be written, nothing says that the gate passed.
        self.write_files(&judgement)?;
        let mut out = terminal.stdout_as(self.json);
        if self.json {
            render::write_json(&judgement, &mut out)?;
        } else {
            render::write_text(&judgement, terminal.out, &mut out)?;
        }
        out.flush()?;
        if gate.comparable && worst == Outcome::Missing {
            return Err(missing(&gate.checks).into());
        }
        Ok(if within { exit } else { Exit::GateFailed })
    }

    /// Runs both programs in turn; `None` without --paired.
    #[cfg(unix)]
    fn by_pairs(&self, terminal: &Terminal) -> Result<Option<(Gate, Comparison)>, Problem> {
        if !self.paired.wanted() {
            return Ok(None);
        }
        let judge = |comparison: &Comparison| self.judge(&[], &[], comparison);
        let (commands, margins) = (self.sides.named(), self.sides.margins());
        self.paired.decide(commands, margins, self.again.budget(), &judge, terminal).map(Some)
    }

    #[cfg(not(unix))]
    fn by_pairs(&self, _: &Terminal) -> Result<Option<(Gate, Comparison)>, Problem> {
        Ok(None)
    }

    /// Holds what was asked for against the limits: the mean step and the work beside it, if nothing else was.
    fn judge(&self, base: &[ComparedRun], new: &[ComparedRun], comparison: &Comparison) -> Gate {
        if self.metric.is_empty() {
            gate_by_default(base, new, comparison, self.limits())
        } else {
            gate(base, new, comparison, &self.metric, self.limits())
        }
    }

    /// Judges the sides; where the result is unclear and a command is given for it, records more runs first.
    fn decide(&self, sides: &mut Sides, terminal: &Terminal) -> Result<(Gate, Comparison), Problem> {
        let retry = matches!(self.on_unclear, None | Some(OnUnclear::Retry));
        let mut again = self.again.ready(sides.base.len().max(sides.new.len()))?.filter(|_| retry);
        if let Some(again) = &again {
            sides.margins.confidence = again.confidence();
        }
        loop {
            let comparison = sides.compare();
            let gate = self.judge(&sides.base, &sides.new, &comparison);
            let decided = !gate.comparable || gate.worst() != Outcome::Unclear;
            let more = match &mut again {
                Some(again) if !decided => again.round(sides, terminal)?,
                _ => false,
            };
            if !more {
                return Ok((gate, comparison));
            }
        }
    }

    fn limits(&self) -> Limits {
        let relative = self.max_regression.or(self.max_ms.is_none().then_some(DEFAULT_LIMIT));
        Limits { relative, absolute_ms: self.max_ms }
    }

    fn write_files(&self, judgement: &Judgement<'_>) -> Result<(), Problem> {
        if let Some(path) = &self.junit {
            save(path, Cause::Usage, TODO, |out| render::write_junit(judgement, out))?;
        }
        if let Some(path) = &self.github_summary {
            let path = path.clone().or_else(|| std::env::var_os("GITHUB_STEP_SUMMARY").map(PathBuf::from));
            let path = path.ok_or_else(|| {
                Problem::new(Cause::Usage, "no file for --github-summary")
                    .then("GITHUB_STEP_SUMMARY is not set")
                    .then("give a file: --github-summary=FILE")
            })?;
            // Others append to it as well, so it is not replaced.
            let mut text = Vec::new();
            let made = render::write_markdown(judgement, &mut text);
            made.and_then(|()| append(&path, &text))
                .map_err(|error| unwritable(&path, Cause::Usage, &error, TODO))?;
        }
        Ok(())
    }
}

/// A misspelt metric must not pass forever.
fn missing(checks: &[stepscope_diagnose::gate::Check]) -> Problem {
    let names: Vec<String> =
        checks.iter().filter(|it| it.outcome == Outcome::Missing).map(|it| it.metric.key()).collect();
    Problem::new(Cause::Usage, format!("neither side has {}", names.join(", ")))
        .then("no measurement has that name")
        .then("list the names with `stepscope ops --by type`")
}
