//! The summary of a run as JSON: schema `stepscope.run.v1`. Unknown is `null`; times are milliseconds unless
//! the key says otherwise.

use std::io::{self, Write};

use serde_json::{Value, json};
use stepscope_diagnose::hints::Hint;
use stepscope_diagnose::warnings::Warning;

use stepscope_results::run::{RunPage, RunSteps, StepSource};

/// Writes the summary as JSON.
pub fn write_json(page: &RunPage, out: &mut dyn Write) -> io::Result<()> {
    let value = json!({
        "schema": "stepscope.run.v1",
        "command": page.command,
        "begun_unix_s": page.begun_wall_ns as f64 / 1e9,
        "wall_s": page.wall_s,
        "exit_code": page.exit_code,
        "signal": page.signal,
        "batch_size": page.batch_size,
        "steps": page.steps.as_ref().map(steps),
        "steps_per_s": page.steps_per_s(),
        "examples_per_s": page.examples_per_s(),
        "usage": page.usage,
        "steady_usage": page.steady_usage.map(|usage| json!({
            "cpu_cores": usage.cpu, "io_wait_fraction": usage.io_wait, "gpu_busy_fraction": usage.gpu_busy,
        })),
        "findings": page.warnings.iter().map(finding).collect::<Vec<_>>(),
        "output_held_back": page.held_back,
        "hints": page.hints.iter().map(hint).collect::<Vec<_>>(),
        "verdict": page.verdict.as_ref().map(|verdict| json!({
            "id": verdict.id, "summary": verdict.sentence, "profile": verdict.path, "line": verdict.line,
            "advice": verdict.advice, "memory": verdict.memory,
        })),
    });
    serde_json::to_writer_pretty(&mut *out, &value)?;
    writeln!(out)
}

fn finding((warning, proof, count): &(Warning, String, u64)) -> Value {
    json!({
        "id": warning.id,
        "subject": warning.subject,
        "summary": warning.meaning,
        "fix": warning.fix,
        "line": proof,
        "count": count,
    })
}

fn steps(steps: &RunSteps) -> Value {
    let (origin, tag) = match &steps.source {
        StepSource::Lines => ("lines", None),
        StepSource::Events(tag) => ("events", Some(tag)),
        StepSource::Reported => ("said", None),
        StepSource::Inside => ("inside", None),
    };
    let observed = |&(step, count, end_s, ms, warm_up): &(u64, u64, f64, f64, bool)| json!({ "step": step, "steps": count, "end_s": end_s, "ms": ms, "warm_up": warm_up });
    json!({
        "origin": origin,
        "tag": tag,
        "unit": if steps.examples { "example" } else { "step" },
        "count": steps.count,
        "warm_up": steps.warm_up,
        "profiled": steps.profiled,
        "steady": steps.steady,
        "first_s": steps.first_s,
        "single_steps": !steps.bursty,
        "mean_ms": steps.mean_ms,
        "median_ms": steps.median_ms,
        "p90_ms": steps.p90_ms,
        "p99_ms": steps.p99_ms,
        "stddev_ms": steps.deviation_ms,
        "program_says_ms": steps.own_ms,
        "levels": steps.levels.iter().map(|(count, ms)| json!({ "steps": count, "median_ms": ms })).collect::<Vec<_>>(),
        "observed": steps.observed.iter().map(observed).collect::<Vec<_>>(),
    })
}

/// A hint's public id and its figure.
fn hint(hint: &Hint) -> Value {
    let (id, value) = match *hint {
        Hint::CpuQuota(share) => ("cpu-quota", share),
        Hint::GpuWaitsForOneCore { idle } => ("gpu-waits-for-one-core", idle),
        Hint::GpuWaits { idle } => ("gpu-waits", idle),
        Hint::GpuBusy(busy) => ("gpu-busy", busy),
        Hint::GpuHeld(share) => ("gpu-held-down", share),
        Hint::DiskWait(share) => ("disk-wait", share),
        Hint::OneCore { cores } => ("one-core-busy", cores),
        Hint::AllCores { cores } => ("all-cores-busy", cores),
        Hint::Waits { cpu } => ("mostly-waiting", cpu),
        Hint::MemoryTight(share) => ("memory-tight", share),
    };
    json!({ "id": id, "value": value })
}
