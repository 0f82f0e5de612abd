//! Repeated runs of commands as text and tables.

use std::io::{self, Write};

use serde_json::json;
use stepscope_diagnose::compare::{Measured, Verdict};
use stepscope_diagnose::statistics::RankTest;
use stepscope_results::table::{Field, Table, columns};

use super::write_rows;
use crate::compare::words::{change, range, rank_test};
use crate::format::{duration_ms, percent, plural, printable};
use crate::style::Style;

/// One run.
#[derive(Clone, Debug)]
pub struct CommandRun {
    /// From start to end, in milliseconds.
    pub wall_ms: f64,
    /// User processor time.
    pub user_ms: f64,
    /// System processor time.
    pub system_ms: f64,
    /// Peak memory of its largest process; `None` if it is too small to measure.
    pub max_rss_bytes: Option<u64>,
    /// The exit code; `None` if a signal ended the run.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
}

impl CommandRun {
    fn failure(&self) -> Option<String> {
        match (self.exit_code, self.signal) {
            (Some(0), _) => None,
            (Some(code), _) => Some(format!("exit code {code}")),
            (None, signal) => Some(format!("signal {}", signal.unwrap_or(0))),
        }
    }
}

/// Summary of a set of values, in their own unit.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Summary {
    /// The median.
    pub median: f64,
    /// The lower quartile.
    pub q1: f64,
    /// The upper quartile.
    pub q3: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// The arithmetic mean.
    pub mean: f64,
    /// Outliers: values more than three interquartile ranges away.
    pub outliers: u64,
}

/// One command.
#[derive(Clone, Debug)]
pub struct Side {
    /// The command line as given.
    pub command: String,
    /// Its runs.
    pub runs: Vec<CommandRun>,
    /// Summary of the wall times; `None` if there was no run.
    pub wall: Option<Summary>,
    /// Median user processor time.
    pub user_ms: Option<f64>,
    /// Median system processor time.
    pub system_ms: Option<f64>,
}

/// Comparison of two commands, the second relative to the first.
#[derive(Clone, Debug)]
pub struct Compared {
    /// The median wall time.
    pub measured: Option<Measured>,
    /// Rank test over all runs.
    pub ranks: Option<RankTest>,
    /// The verdict.
    pub verdict: Verdict,
    /// Number of runs of each that would give an answer, if there is none yet.
    pub needed: Option<u64>,
}

/// Everything that was measured.
#[derive(Clone, Debug)]
pub struct Commands {
    /// One command or two.
    pub sides: Vec<Side>,
    /// The comparison, if there are two commands.
    pub compared: Option<Compared>,
    /// The same of their CPU time, which load on the machine hardly changes, and which does not include waiting.
    pub work: Option<Compared>,
    /// Warm-up runs of each command.
    pub warmup: u64,
    /// True if the measurement ended early.
    pub stopped: bool,
}

/// `A`, `B`.
fn name(place: usize) -> &'static str {
    ["A", "B"].get(place).copied().unwrap_or("?")
}

/// Writes the text.
pub fn write_text(commands: &Commands, style: Style, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}\n", style.bold(&headline(commands)))?;
    if commands.sides.len() > 1 {
        for (place, side) in commands.sides.iter().enumerate() {
            writeln!(out, "{}  {}", name(place), style.dim(&printable(&side.command)))?;
        }
        writeln!(out)?;
    }
    let mut rows = table(commands);
    rows.headline = None;
    write_rows(&rows, style, out)
}

/// The result in one line.
pub fn headline(commands: &Commands) -> String {
    let failed = failures(commands);
    let failed = if failed.is_empty() { failed } else { format!("; {failed}") };
    if let Some(compared) = &commands.compared {
        // CPU time only matters for the first line where wall time says nothing.
        let work = commands.work.as_ref().filter(|_| compared.verdict == Verdict::Unclear);
        let work = work.and_then(work_headline).unwrap_or_default();
        return format!("{}{work}{failed}", compared_headline(compared));
    }
    let Some(side) = commands.sides.first() else { return "nothing was run".to_owned() };
    let Some(wall) = &side.wall else { return "no run finished".to_owned() };
    let runs = plural(side.runs.len() as u64, "run", "runs");
    format!(
        "takes {} (median of {runs}; half of them took {} to {}){failed}",
        duration_ms(wall.median),
        duration_ms(wall.q1),
        duration_ms(wall.q3)
    )
}

fn compared_headline(compared: &Compared) -> String {
    let Some(ratio) = compared.measured.and_then(|measured| measured.ratio) else {
        return "not comparable: a command has no runs".to_owned();
    };
    let range = range(&ratio);
    match compared.verdict {
        Verdict::Slower => {
            format!("B is slower: it takes {} longer than A{range}", percent(ratio.value - 1.0))
        }
        Verdict::Faster => {
            format!("B is faster: it takes {} less time than A{range}", percent(1.0 - ratio.value))
        }
        Verdict::Same => format!("no difference: B takes {} of A's time{range}", percent(ratio.value)),
        Verdict::Unclear | Verdict::NotComparable => {
            format!("too noisy to decide: B takes {} of A's time{range}", percent(ratio.value))
        }
    }
}

/// What is certain about the CPU time.
fn work_headline(work: &Compared) -> Option<String> {
    let ratio = work.measured.and_then(|measured| measured.ratio)?;
    let certain = matches!(work.verdict, Verdict::Slower | Verdict::Faster);
    certain.then(|| format!("; CPU time {} for certain{}", change(ratio.value), range(&ratio)))
}

/// `3 of 10 runs of A failed (exit code 2)`; empty if none failed.
fn failures(commands: &Commands) -> String {
    let several = commands.sides.len() > 1;
    let sides = commands.sides.iter().enumerate().filter_map(|(place, side)| {
        let mut kinds: Vec<String> = side.runs.iter().filter_map(CommandRun::failure).collect();
        let failed = kinds.len();
        kinds.sort();
        kinds.dedup();
        let of = if several { format!(" of {}", name(place)) } else { String::new() };
        (failed > 0)
            .then(|| format!("{failed} of {} runs{of} failed ({})", side.runs.len(), kinds.join(", ")))
    });
    sides.collect::<Vec<_>>().join("; ")
}

/// A command and its name.
type Named<'a> = (&'static str, &'a Side);

fn columns<'a>() -> Vec<Field<Named<'a>>> {
    columns! { it: Named<'a>;
        name: Text "" => it.0;
        median_ms: Ms "wall" => it.1.wall.map(|wall| wall.median);
        q1_ms: Ms "from" => it.1.wall.map(|wall| wall.q1);
        q3_ms: Ms "to" => it.1.wall.map(|wall| wall.q3);
        min_ms: Ms "min" => it.1.wall.map(|wall| wall.min);
        max_ms: Ms "max" => it.1.wall.map(|wall| wall.max);
        user_ms: Ms "user" => it.1.user_ms;
        system_ms: Ms "sys" => it.1.system_ms;
        max_rss_bytes: Bytes "memory" => it.1.runs.iter().filter_map(|run| run.max_rss_bytes).max();
        outliers: Count "outliers" => it.1.wall.map(|wall| wall.outliers);
        failed: Count "failed" => it.1.runs.iter().filter(|run| run.failure().is_some()).count();
        mean_ms.hidden: Ms "mean" => it.1.wall.map(|wall| wall.mean);
        runs.hidden: Count "runs" => it.1.runs.len();
        command.hidden: Name "command" => it.1.command.as_str();
    }
}

/// One row per command.
pub fn table(commands: &Commands) -> Table {
    let sides: Vec<Named<'_>> =
        commands.sides.iter().enumerate().map(|(place, side)| (name(place), side)).collect();
    let mut table = Table::of("bench", &columns(), &sides);
    table.headline = Some(headline(commands));
    members(commands, &mut table);
    table
}

fn members(commands: &Commands, table: &mut Table) {
    table.member("bench", "command");
    table.member("warmup_runs", commands.warmup);
    table.member("stopped_early", commands.stopped);
    let runs = commands.sides.iter().map(|side| {
        let runs = side.runs.iter().map(|run| {
            json!({
                "wall_ms": run.wall_ms, "user_ms": run.user_ms, "system_ms": run.system_ms,
                "max_rss_bytes": run.max_rss_bytes, "exit_code": run.exit_code, "signal": run.signal,
            })
        });
        runs.collect::<Vec<_>>()
    });
    table.member("measurements", runs.collect::<Vec<_>>());
    if let Some(compared) = &commands.compared {
        let ratio = compared.measured.and_then(|measured| measured.ratio);
        table.member("verdict", compared.verdict.key());
        table.member(
            "ratio",
            json!({
                "median": ratio.map(|it| it.value), "low": ratio.and_then(|it| it.low),
                "high": ratio.and_then(|it| it.high),
            }),
        );
        table.member("needed_runs", compared.needed);
    }
    if let Some(work) = &commands.work {
        let ratio = work.measured.and_then(|measured| measured.ratio);
        table.member("cpu_verdict", work.verdict.key());
        table.member(
            "cpu_ratio",
            json!({
                "median": ratio.map(|it| it.value), "low": ratio.and_then(|it| it.low),
                "high": ratio.and_then(|it| it.high),
            }),
        );
    }
    for remark in remarks(commands) {
        table.note(remark);
    }
}

fn remarks(commands: &Commands) -> Vec<String> {
    let mut remarks = Vec::new();
    if commands.stopped {
        remarks.push("Ended early: these are the results so far.".to_owned());
    }
    if let Some(compared) = &commands.compared {
        if let Some(ranks) = &compared.ranks {
            let ratio = compared.measured.and_then(|measured| measured.ratio);
            let by = ratio.map_or(String::new(), |ratio| format!("{}; ", change(ratio.value)));
            remarks.push(format!("B relative to A: {by}rank test {}; runs alternated.", rank_test(ranks)));
        }
        let cpu = commands.work.as_ref().and_then(|work| work.measured).and_then(|measured| measured.ratio);
        remarks.extend(cpu.map(|ratio| {
            format!(
                "CPU time of B relative to A: {}{}. It cannot see waiting.",
                change(ratio.value),
                range(&ratio)
            )
        }));
        remarks.extend(compared.needed.map(|runs| {
            format!("To decide, about {} of each are needed (--runs).", plural(runs, "run", "runs"))
        }));
    }
    if commands.sides.iter().any(|side| side.wall.is_some_and(|wall| wall.outliers > 0)) {
        remarks.push(
            "Outliers are included: the machine was busy, or a cache was cold. They do not affect the median."
                .to_owned(),
        );
    }
    if commands.sides.iter().all(|side| side.runs.iter().all(|run| run.max_rss_bytes.is_none())) {
        remarks.push("Memory is unknown: the command uses less than stepscope itself.".to_owned());
    }
    remarks
}
