//! `stepscope bench command`: runs one command repeatedly, or two in alternation.

use std::ffi::OsString;

use clap::Args;
use stepscope_capture::bench::command::{End, Outcome, Plan, TimedRun, measure};
use stepscope_diagnose::compare::noise::{self, Statistic};
use stepscope_diagnose::compare::{Margins, Next, RunToRun, Verdict, verdict};
use stepscope_diagnose::statistics::{mean, median};
use stepscope_render::bench::command as render;
use stepscope_session::{Cause, Problem};

use crate::exit::Exit;

use super::infer::ms;
use super::{FormArgs, Watched, problem, quantity, stop_on_interrupt};
use crate::commands::compare::percent;
use crate::failure::Failure;
use crate::output::Terminal;

/// Values farther out than this many times the interquartile range are outliers.
const FAR: f64 = 3.0;

/// Run a command repeatedly and report its wall time, processor time and memory, or compare two commands.
///
/// Each run starts a new process. With --against, the two commands alternate (A B, B A, …), so that background
/// load affects both equally. Ctrl-C shows the results so far.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    stepscope bench command -- python train.py --steps 20\n  \
    stepscope bench command --runs 30 --against 'python train.py --steps 20 --xla' -- python train.py --steps 20\n  \
    stepscope bench command --against ./new --max-regression 5% -- ./old      exit 1 if ./new is slower\n  \
    stepscope bench command --json -- sh -c 'sort data | uniq > /dev/null'")]
pub(super) struct CommandArgs {
    /// The program and its arguments, after --.
    #[arg(required = true, last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
    /// Second command line to compare with (B), in quotes.
    #[arg(long, value_name = "COMMAND")]
    against: Option<String>,
    /// With --against: exit 1 if B takes longer than A by more than this, beyond noise.
    #[arg(long, value_name = "PERCENT", requires = "against", value_parser = percent)]
    max_regression: Option<f64>,
    /// Number of runs of each command.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    runs: u32,
    /// Uncounted runs beforehand, to fill caches.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(0..=100_000))]
    warmup: u32,
    /// Show the output of the commands.
    #[arg(long, conflicts_with_all = ["json", "csv"])]
    show_output: bool,
    #[command(flatten)]
    form: FormArgs,
}

impl CommandArgs {
    pub(super) fn run(&self, terminal: &Terminal) -> Result<Exit, Failure> {
        let mut commands = vec![self.command.clone()];
        if let Some(line) = &self.against {
            commands.push(quantity::words(line).map_err(|error| {
                Problem::new(Cause::Usage, format!("cannot read the command {line:?}"))
                    .then(error)
                    .then("quote it once, as you would in a shell")
            })?);
        }
        let plan =
            Plan { commands, runs: self.runs as usize, warmup: self.warmup as usize, show: self.show_output };
        let stop = stop_on_interrupt()?;
        let watched = Watched::new();
        let all = (plan.runs + plan.warmup) * plan.commands.len();
        let outcome = measure(&plan, &stop, &|done| watched.say(format!("run {} of {all}", done + 1)));
        drop(watched);
        let outcome = outcome.map_err(problem)?;
        if let Some(problem) = nothing_measured(&plan, &outcome) {
            return Err(problem.into());
        }
        let figures = self.figures(&plan, &outcome);
        self.form.write(
            terminal,
            || render::table(&figures),
            |out| render::write_text(&figures, terminal.out, out),
        )?;
        let regressed = self.max_regression.is_some_and(|limit| slower_than(&figures, limit));
        Ok(if regressed { Exit::GateFailed } else { Exit::Done })
    }

    fn figures(&self, plan: &Plan, outcome: &Outcome) -> render::Commands {
        let sides: Vec<render::Side> =
            plan.commands.iter().zip(&outcome.runs).map(|(command, runs)| side(command, runs)).collect();
        let compared = match &sides[..] {
            [base, new] => Some(compare(&walls(base), &walls(new))),
            _ => None,
        };
        let work = match &sides[..] {
            [base, new] => Some(compare(&cpu_times(base), &cpu_times(new))),
            _ => None,
        };
        render::Commands { sides, compared, work, warmup: u64::from(self.warmup), stopped: outcome.stopped }
    }
}

/// Is B slower than A by more than the limit, beyond noise? Where that is too noisy to decide, its CPU time decides.
fn slower_than(figures: &render::Commands, limit: f64) -> bool {
    let beyond = |compared: &render::Compared| {
        let ratio = compared.measured.as_ref().and_then(|measured| measured.ratio);
        compared.verdict == Verdict::Slower && ratio.is_some_and(|ratio| ratio.value > 1.0 + limit)
    };
    let unclear = figures.compared.as_ref().is_some_and(|wall| wall.verdict == Verdict::Unclear);
    figures.compared.as_ref().is_some_and(beyond) || (unclear && figures.work.as_ref().is_some_and(beyond))
}

/// An error where a command never ran to its end, or failed every time: its times mean nothing then.
fn nothing_measured(plan: &Plan, outcome: &Outcome) -> Option<Problem> {
    for (command, runs) in plan.commands.iter().zip(&outcome.runs) {
        let Some(last) = runs.last() else {
            return Some(
                Problem::new(Cause::Nothing, format!("no run of {:?} finished", line(command)))
                    .then("the measurement ended early")
                    .then("let it run longer, or use a shorter workload"),
            );
        };
        if runs.iter().all(|run| run.end != End::Code(0)) {
            let end = match last.end {
                End::Code(code) => format!("exit code {code}"),
                End::Signal(signal) => format!("signal {signal}"),
            };
            let said = last.said.lines().last().unwrap_or_default();
            let found = if said.is_empty() { end } else { format!("{end}: {said}") };
            return Some(
                Problem::new(Cause::Nothing, format!("every run of {:?} failed", line(command)))
                    .then(found)
                    .then("try the command on its own, or add --show-output to see its messages"),
            );
        }
    }
    None
}

fn line(command: &[OsString]) -> String {
    command.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

fn side(command: &[OsString], runs: &[TimedRun]) -> render::Side {
    let rows = runs.iter().map(|run| {
        let (exit_code, signal) = match run.end {
            End::Code(code) => (Some(code), None),
            End::Signal(signal) => (None, Some(signal)),
        };
        render::CommandRun {
            wall_ms: ms(run.wall),
            user_ms: ms(run.user),
            system_ms: ms(run.system),
            max_rss_bytes: run.max_rss,
            exit_code,
            signal,
        }
    });
    let middle = |of: fn(&TimedRun) -> f64| median(&runs.iter().map(of).collect::<Vec<_>>());
    render::Side {
        command: line(command),
        runs: rows.collect(),
        wall: summary(&runs.iter().map(|run| ms(run.wall)).collect::<Vec<_>>()),
        user_ms: middle(|run| ms(run.user)),
        system_ms: middle(|run| ms(run.system)),
    }
}

fn walls(side: &render::Side) -> Vec<f64> {
    side.runs.iter().map(|run| run.wall_ms).collect()
}

fn cpu_times(side: &render::Side) -> Vec<f64> {
    side.runs.iter().map(|run| run.user_ms + run.system_ms).collect()
}

fn summary(values: &[f64]) -> Option<render::Summary> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |q| stepscope_trace::statistics::quantile(&sorted, q);
    let (q1, q3) = (at(0.25)?, at(0.75)?);
    let far = FAR * (q3 - q1);
    let outliers = values.iter().filter(|value| **value < q1 - far || **value > q3 + far).count();
    Some(render::Summary {
        median: at(0.5)?,
        q1,
        q3,
        min: at(0.0)?,
        max: at(1.0)?,
        mean: mean(values)?,
        // Quartiles of very few values are too uncertain to call another value an outlier.
        outliers: if values.len() < 5 { 0 } else { outliers as u64 },
    })
}

/// The statistics of `compare`, with each run as a step. The commands alternate, so differences between
/// sessions favour neither, and differences between starts are already part of the scatter. Nothing is added
/// for either.
fn compare(base: &[f64], new: &[f64]) -> render::Compared {
    let margins = Margins::default();
    let (base, new) = (&[base.to_vec()], &[new.to_vec()]);
    let measured = noise::measure(base, new, Statistic::Median, RunToRun::none());
    let ranks = verdict::ranks(base, new);
    let said = measured.as_ref().map_or(Verdict::Unclear, |it| verdict::verdict(it, &margins));
    let runs = base[0].len().min(new[0].len());
    let needed = measured.filter(|_| said == Verdict::Unclear);
    let needed = needed.and_then(|it| match verdict::next(&it, runs, 1, RunToRun::none(), &margins) {
        Next::LongerRuns(runs) => Some(runs),
        Next::MoreRuns(_) | Next::QuieterMachine => None,
    });
    render::Compared { measured, ranks, verdict: said, needed }
}
