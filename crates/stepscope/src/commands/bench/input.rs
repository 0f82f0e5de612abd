//! `stepscope bench input`: measures how fast an input pipeline delivers.

use std::ffi::OsString;
use std::thread;
use std::time::Duration;

use clap::Args;
use regex::Regex;
use stepscope_capture::bench::command::End;
use stepscope_capture::bench::input::{Line, Outcome, Plan, leading_number, measure};
use stepscope_capture::bench::pace::{Pace, pace};
use stepscope_render::bench::input as render;
use stepscope_render::format::plural;
use stepscope_session::{Cause, Problem};

use crate::exit::Exit;

use super::infer::ms;
use super::{FormArgs, Watched, problem, stop_on_interrupt};
use crate::failure::Failure;
use crate::output::Terminal;
use crate::quantity::some_time;

/// Measure an input pipeline: batches and examples per second, time to the first batch, stalls.
///
/// The program fetches batches and prints one line per batch. If the line starts with a number, that is the
/// number of examples in the batch. If standard output is used for something else, write the lines to the file
/// named in the environment variable STEPSCOPE_BATCHES. Ctrl-C shows the results so far.
#[derive(Debug, Args)]
#[command(after_help = "In the program:\n  \
    for batch in dataset:            # tf.data, a torch DataLoader, any iterable\n      \
        print(len(batch[0]))\n\n\
Examples:\n  \
    stepscope bench input -- python pipeline.py\n  \
    stepscope bench input --batches 500 --step 12ms -- python pipeline.py     is it fast enough?\n  \
    stepscope bench input --line 'batch of (\\d+)' -- python train.py --dry-run")]
pub(super) struct InputArgs {
    /// The program and its arguments, after --.
    #[arg(required = true, last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
    /// Count only matching lines as batches; a numeric group gives the number of examples.
    #[arg(long, value_name = "REGEX", value_parser = |text: &str| Regex::new(text))]
    line: Option<Regex>,
    /// Number of examples per batch, if the lines do not contain it.
    #[arg(long, value_name = "N")]
    batch_size: Option<u64>,
    /// Stop the program after N batches.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    batches: Option<u64>,
    /// Stop the program after this time.
    #[arg(long, value_name = "TIME", value_parser = some_time)]
    duration: Option<Duration>,
    /// Duration of the training step to feed: is the pipeline fast enough for it?
    #[arg(long, value_name = "TIME", value_parser = some_time)]
    step: Option<Duration>,
    #[command(flatten)]
    form: FormArgs,
}

impl InputArgs {
    pub(super) fn run(&self, terminal: &Terminal) -> Result<Exit, Failure> {
        let plan = Plan { command: self.command.clone(), batches: self.batches, duration: self.duration };
        let stop = stop_on_interrupt()?;
        let watched = Watched::new();
        watched.say("counting batches".to_owned());
        let outcome = measure(&plan, &|line| self.read(line), &stop);
        drop(watched);
        let outcome = outcome.map_err(problem)?;
        if outcome.batches.is_empty() {
            return Err(no_batches(&outcome).into());
        }
        let figures = self.figures(outcome);
        self.form.write(
            terminal,
            || render::table(&figures),
            |out| render::write_text(&figures, terminal.out, out),
        )?;
        Ok(Exit::Done)
    }

    /// Checks whether a line is a batch, and how large the batch is.
    fn read(&self, line: &str) -> Option<Line> {
        let Some(regex) = &self.line else { return Some(Line { examples: leading_number(line) }) };
        let found = regex.captures(line)?;
        let numbers = found.iter().skip(1).flatten().find_map(|group| group.as_str().trim().parse().ok());
        Some(Line { examples: numbers })
    }

    fn figures(&self, mut outcome: Outcome) -> render::Input {
        for batch in &mut outcome.batches {
            batch.examples = batch.examples.or(self.batch_size);
        }
        let batches = &outcome.batches;
        let count = batches.len() as u64;
        let steady = pace(batches).map(|pace| steady(&pace));
        render::Input {
            command: self.command.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" "),
            batches: count,
            examples: batches.iter().map(|batch| batch.examples).sum(),
            first_ms: batches.first().map_or(0.0, |first| ms(first.at)),
            steady,
            wall_ms: ms(outcome.wall),
            cpus: outcome.cpu.as_secs_f64() / outcome.wall.as_secs_f64().max(f64::MIN_POSITIVE),
            cpus_there: thread::available_parallelism().map_or(1, |it| it.get() as u64),
            bunched_fraction: outcome.bunched as f64 / count.max(1) as f64,
            by_pipe: outcome.by_pipe,
            exit_code: match outcome.end {
                Some(End::Code(code)) => Some(code),
                _ => None,
            },
            failed: outcome.end.is_some_and(|end| end != End::Code(0)),
            step_ms: self.step.map(ms),
            stopped: outcome.stopped,
        }
    }
}

fn steady(pace: &Pace) -> render::Steady {
    let all = pace.gaps.count() as f64 / pace.per_second;
    render::Steady {
        warmup: pace.warmup as u64,
        settled: pace.settled,
        per_second: pace.per_second,
        examples_per_second: pace.examples_per_second,
        gap_p50_ms: pace.gaps.percentile(0.5).map(ms),
        gap_p99_ms: pace.gaps.percentile(0.99).map(ms),
        gap_max_ms: pace.gaps.most().map(ms),
        stalls: pace.stalls as u64,
        stalled_ms: ms(pace.stalled),
        stalled_fraction: pace.stalled.as_secs_f64() / all.max(f64::MIN_POSITIVE),
    }
}

fn no_batches(outcome: &Outcome) -> Problem {
    let ended = match outcome.end {
        Some(End::Code(0)) => "the program finished".to_owned(),
        Some(End::Code(code)) => format!("the program ended with exit code {code}"),
        Some(End::Signal(signal)) => format!("signal {signal} ended the program"),
        None => "the program was stopped before the first batch".to_owned(),
    };
    let lines = match outcome.other_lines {
        0 => "it printed no lines".to_owned(),
        others => format!("{} did not match --line", plural(others, "line", "lines")),
    };
    Problem::new(Cause::Nothing, "no batches received")
        .then(format!("{ended}, {lines}"))
        .then("print one line per batch, or write it to $STEPSCOPE_BATCHES")
}
