//! An input pipeline, in words.

use std::io::{self, Write};

use super::rate;
use crate::format::{duration_ms, percent, plural, short, thousands};
use crate::style::Style;
use crate::table::{Column, Format, Table};

/// The pace once batches come steadily.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Steady {
    /// Batches before it, without the first.
    pub warmup: u64,
    /// Did the pace settle?
    pub settled: bool,
    /// Batches a second.
    pub per_second: f64,
    /// Examples a second.
    pub examples_per_second: Option<f64>,
    /// The middle gap between two batches, in milliseconds.
    pub gap_p50_ms: Option<f64>,
    /// 99 % are below.
    pub gap_p99_ms: Option<f64>,
    /// The longest.
    pub gap_max_ms: Option<f64>,
    /// Gaps that are stalls.
    pub stalls: u64,
    /// Time lost in them.
    pub stalled_ms: f64,
    /// The share of time lost in them.
    pub stalled_fraction: f64,
}

/// All that was measured of a pipeline.
#[derive(Clone, Debug)]
pub struct Input {
    /// The program.
    pub command: String,
    /// Batches that came.
    pub batches: u64,
    /// Examples in them.
    pub examples: Option<u64>,
    /// From the program's start to the first batch.
    pub first_ms: f64,
    /// `None` where too few batches came.
    pub steady: Option<Steady>,
    /// From start to end.
    pub wall_ms: f64,
    /// Processors kept busy on average.
    pub cpus: f64,
    /// Processors there are.
    pub cpus_there: u64,
    /// The share of batches that came in one piece with the one before.
    pub bunched_fraction: f64,
    /// Batches were told through the pipe.
    pub by_pipe: bool,
    /// What the program ended with; `None` where it was ended, or a signal did.
    pub exit_code: Option<i32>,
    /// It ended by itself, and not well.
    pub failed: bool,
    /// A training step that is to be fed, in milliseconds.
    pub step_ms: Option<f64>,
    /// Ended early by the user.
    pub stopped: bool,
}

/// So many batches in one piece mean that their times are lost.
const BUNCHED: f64 = 0.5;

/// The answer in one line.
pub fn headline(input: &Input) -> String {
    let Some(steady) = &input.steady else {
        let came = plural(input.batches, "batch came", "batches came");
        return format!("{came}, the first after {}: too few for a pace", duration_ms(input.first_ms));
    };
    let examples =
        steady.examples_per_second.map_or(String::new(), |rated| format!(" ({} examples/s)", rate(rated)));
    let each_ms = 1e3 / steady.per_second;
    let delivers = format!("delivers {} batches/s{examples}", rate(steady.per_second));
    match input.step_ms {
        None => format!("{delivers}; a step of {} would keep it just busy", duration_ms(each_ms)),
        Some(step) if each_ms <= step => {
            format!(
                "{delivers}: enough for a step of {} ({} of its time)",
                duration_ms(step),
                percent(each_ms / step)
            )
        }
        Some(step) => format!(
            "{delivers}: too slow for a step of {}, which would wait {} for each batch",
            duration_ms(step),
            duration_ms(each_ms - step)
        ),
    }
}

/// Writes the text.
pub fn write_text(input: &Input, style: Style, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}\n", style.bold(&headline(input)))?;
    let mut row = |name: &str, value: String| writeln!(out, "{name:<18} {value}");
    row("first batch", format!("after {}, the program's start included", duration_ms(input.first_ms)))?;
    if let Some(steady) = &input.steady {
        let gaps = [
            steady.gap_p50_ms.map(|ms| format!("p50 {}", duration_ms(ms))),
            steady.gap_p99_ms.map(|ms| format!("p99 {}", duration_ms(ms))),
            steady.gap_max_ms.map(|ms| format!("max {}", duration_ms(ms))),
        ];
        row("between batches", gaps.into_iter().flatten().collect::<Vec<_>>().join("   "))?;
        if steady.warmup > 0 {
            row("warm-up", format!("{}, set apart", plural(steady.warmup, "batch", "batches")))?;
        }
        let lost =
            format!("{} ({} of the time)", duration_ms(steady.stalled_ms), percent(steady.stalled_fraction));
        let stalls =
            if steady.stalls == 0 { "none".to_owned() } else { format!("{}, {lost}", steady.stalls) };
        row("stalls", stalls)?;
    }
    let examples = input.examples.map_or(String::new(), |all| format!(", {} examples", thousands(all)));
    let batches = plural(input.batches, "batch", "batches");
    row("in all", format!("{batches}{examples} in {}", duration_ms(input.wall_ms)))?;
    let there = plural(input.cpus_there, "processor", "processors");
    row("processors", format!("{} of {there} busy on average", short(input.cpus)))?;
    let remarks = remarks(input);
    if !remarks.is_empty() {
        writeln!(out)?;
    }
    remarks.iter().try_for_each(|remark| writeln!(out, "{remark}"))
}

fn remarks(input: &Input) -> Vec<String> {
    let mut remarks = Vec::new();
    let mut say = |when: bool, what: &str| {
        if when {
            remarks.push(what.to_owned());
        }
    };
    say(input.stopped, "Ended early: these are the figures so far.");
    say(
        input.bunched_fraction > BUNCHED,
        "Most batches came several at once: the program keeps its output back, so gaps and stalls cannot be trusted. \
         Flush after each line, or write to the pipe that STEPSCOPE_BATCHES names.",
    );
    say(
        input.steady.is_some_and(|steady| !steady.settled),
        "The pace changed until the end: let it run longer for a figure to rely on.",
    );
    let cpus_there = input.cpus_there as f64;
    let busy = input.steady.is_some() && input.wall_ms > 0.0;
    say(
        busy && input.cpus > 0.9 * cpus_there,
        "All processors are busy: only less work per example or more processors make it faster.",
    );
    say(
        busy && cpus_there > 1.0 && (0.9..1.15).contains(&input.cpus),
        "One processor is busy: parallel reading and mapping (num_parallel_calls, num_workers) may make it faster.",
    );
    say(
        busy && input.cpus < 0.5,
        "The processors are mostly idle: it waits for a disk, a network or a lock. Read more at once, and ahead.",
    );
    if input.failed {
        let code = input.exit_code.map_or("a signal".to_owned(), |code| format!("exit code {code}"));
        remarks.push(format!("The program ended with {code}."));
    }
    remarks
}

/// One row.
pub fn table(input: &Input) -> Table {
    let steady = input.steady;
    let columns = [
        ("batches", input.batches.into()),
        ("examples", input.examples.into()),
        ("first_batch_ms", input.first_ms.into()),
        ("batches_per_s", steady.map(|it| it.per_second).into()),
        ("examples_per_s", steady.and_then(|it| it.examples_per_second).into()),
        ("gap_p50_ms", steady.and_then(|it| it.gap_p50_ms).into()),
        ("gap_p99_ms", steady.and_then(|it| it.gap_p99_ms).into()),
        ("gap_max_ms", steady.and_then(|it| it.gap_max_ms).into()),
        ("stalls", steady.map(|it| it.stalls).into()),
        ("stalled_ms", steady.map(|it| it.stalled_ms).into()),
        ("warmup_batches", steady.map(|it| it.warmup).into()),
        ("settled", steady.map(|it| it.settled).into()),
        ("wall_ms", input.wall_ms.into()),
        ("cpus", input.cpus.into()),
        ("bunched_fraction", input.bunched_fraction.into()),
        ("exit_code", input.exit_code.into()),
        ("command", input.command.as_str().into()),
    ];
    let (keys, cells): (Vec<_>, Vec<_>) = columns.into_iter().unzip();
    let mut table =
        Table::new("bench", keys.into_iter().map(|key| Column::new(key, key, Format::Short)).collect());
    table.headline = Some(headline(input));
    table.push(cells);
    table.member("bench", "input");
    table.member("by", if input.by_pipe { "pipe" } else { "stdout" });
    table.member("stopped_early", input.stopped);
    table.member("step_ms", input.step_ms);
    remarks(input).into_iter().for_each(|remark| table.note(remark));
    table
}
