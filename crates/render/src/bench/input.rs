//! Results for an input pipeline, as text and table.

use std::io::{self, Write};

use stepscope_results::table::{Column, Format, Table};

use super::rate;
use crate::format::{duration_ms, percent, plural, short, thousands};
use crate::style::Style;

/// Throughput in steady state.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Steady {
    /// Number of warm-up batches, without the first.
    pub warmup: u64,
    /// True if the throughput settled.
    pub settled: bool,
    /// Batches per second.
    pub per_second: f64,
    /// Examples per second.
    pub examples_per_second: Option<f64>,
    /// Median gap between two batches, in milliseconds.
    pub gap_p50_ms: Option<f64>,
    /// 99th percentile of the gaps.
    pub gap_p99_ms: Option<f64>,
    /// The longest gap.
    pub gap_max_ms: Option<f64>,
    /// Number of stalls.
    pub stalls: u64,
    /// Time lost in stalls.
    pub stalled_ms: f64,
    /// Share of the time lost in stalls.
    pub stalled_fraction: f64,
}

/// Everything that was measured about a pipeline.
#[derive(Clone, Debug)]
pub struct Input {
    /// The program.
    pub command: String,
    /// Number of batches received.
    pub batches: u64,
    /// Number of examples in them.
    pub examples: Option<u64>,
    /// Time from program start to the first batch.
    pub first_ms: f64,
    /// Steady state; `None` if there were too few batches.
    pub steady: Option<Steady>,
    /// From start to end.
    pub wall_ms: f64,
    /// Average number of busy processors.
    pub cpus: f64,
    /// Number of available processors.
    pub cpus_there: u64,
    /// Share of batches that arrived together with the one before.
    pub bunched_fraction: f64,
    /// True if batches were reported through the pipe.
    pub by_pipe: bool,
    /// Exit code of the program; `None` if it was stopped or a signal ended it.
    pub exit_code: Option<i32>,
    /// True if the program ended on its own with an error.
    pub failed: bool,
    /// Duration of the training step to feed, in milliseconds.
    pub step_ms: Option<f64>,
    /// Ended early by the user.
    pub stopped: bool,
}

/// Above this share of bunched batches, their times are unusable.
const BUNCHED: f64 = 0.5;

/// The result in one line.
pub fn headline(input: &Input) -> String {
    let Some(steady) = &input.steady else {
        let came = plural(input.batches, "batch", "batches");
        return format!(
            "{came}, the first after {}: too few to measure the throughput",
            duration_ms(input.first_ms)
        );
    };
    let examples =
        steady.examples_per_second.map_or(String::new(), |rated| format!(" ({} examples/s)", rate(rated)));
    let each_ms = 1e3 / steady.per_second;
    let delivers = format!("delivers {} batches/s{examples}", rate(steady.per_second));
    match input.step_ms {
        None => format!("{delivers}; fast enough for steps of {} or more", duration_ms(each_ms)),
        Some(step) if each_ms <= step => {
            format!(
                "{delivers}: fast enough for a {} step ({} of its time)",
                duration_ms(step),
                percent(each_ms / step)
            )
        }
        Some(step) => format!(
            "{delivers}: too slow for a {} step, which would wait {} for each batch",
            duration_ms(step),
            duration_ms(each_ms - step)
        ),
    }
}

/// Writes the text.
pub fn write_text(input: &Input, style: Style, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}\n", style.bold(&headline(input)))?;
    let mut row = |name: &str, value: String| writeln!(out, "{name:<18} {value}");
    row("first batch", format!("after {}, including program start", duration_ms(input.first_ms)))?;
    if let Some(steady) = &input.steady {
        let gaps = [
            steady.gap_p50_ms.map(|ms| format!("p50 {}", duration_ms(ms))),
            steady.gap_p99_ms.map(|ms| format!("p99 {}", duration_ms(ms))),
            steady.gap_max_ms.map(|ms| format!("max {}", duration_ms(ms))),
        ];
        row("between batches", gaps.into_iter().flatten().collect::<Vec<_>>().join("   "))?;
        if steady.warmup > 0 {
            row("warm-up", format!("{}, excluded", plural(steady.warmup, "batch", "batches")))?;
        }
        let lost =
            format!("{} ({} of the time)", duration_ms(steady.stalled_ms), percent(steady.stalled_fraction));
        let stalls =
            if steady.stalls == 0 { "none".to_owned() } else { format!("{}, {lost}", steady.stalls) };
        row("stalls", stalls)?;
    }
    let examples = input.examples.map_or(String::new(), |all| format!(", {} examples", thousands(all)));
    let batches = plural(input.batches, "batch", "batches");
    row("total", format!("{batches}{examples} in {}", duration_ms(input.wall_ms)))?;
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
    say(input.stopped, "Ended early: these are the results so far.");
    say(
        input.bunched_fraction > BUNCHED,
        "Most batches arrived in groups: the program buffers its output, so gaps and stalls are unreliable. \
         Flush after each line, or write to the pipe that STEPSCOPE_BATCHES names.",
    );
    say(
        input.steady.is_some_and(|steady| !steady.settled),
        "The throughput kept changing until the end: let it run longer for a reliable figure.",
    );
    let cpus_there = input.cpus_there as f64;
    let busy = input.steady.is_some() && input.wall_ms > 0.0;
    say(
        busy && input.cpus > 0.9 * cpus_there,
        "All processors are busy: to go faster, do less work per example or add processors.",
    );
    say(
        busy && cpus_there > 1.0 && (0.9..1.15).contains(&input.cpus),
        "One processor is busy: parallel reading and mapping (num_parallel_calls, num_workers) may help.",
    );
    say(
        busy && input.cpus < 0.5,
        "The processors are mostly idle: the pipeline waits for a disk, a network or a lock. Read larger chunks, and \
         prefetch.",
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
