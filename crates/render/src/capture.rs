//! Text about a new capture: what was recorded, whether it is usable, and what to change.

use std::io::{self, Write};

use serde_json::json;
use stepscope_diagnose::Rule;
use stepscope_diagnose::rules::{no_device_trace, no_steps, startup_profiled, too_few_steps};
use stepscope_results::report::Report;
use stepscope_results::words::share;
use stepscope_trace::DeviceKind;

use crate::format::{bytes, decimal, duration_ms, plural};
use crate::report;

/// Number of steps that is enough for a reliable median.
const ENOUGH_STEPS: f64 = 20.0;

/// Content of a short window, sampled while waiting for a steady state.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum SampledWindow {
    /// The process did nothing that is traced.
    Nothing,
    /// There is activity, but no steps.
    NoSteps,
    /// Steps.
    Steps {
        /// Median duration in milliseconds.
        median_ms: f64,
        /// Number of steps.
        count: usize,
        /// Share of the step time spent tracing and compiling.
        building: f64,
    },
    /// No window could be recorded.
    Gone,
}

impl SampledWindow {
    /// Number of steps in the window.
    pub fn steps(&self) -> usize {
        if let SampledWindow::Steps { count, .. } = self { *count } else { 0 }
    }
}

/// Message: the loop is steady.
pub fn steady(window: &SampledWindow) -> String {
    match window {
        SampledWindow::Steps { median_ms, .. } => {
            format!("steady at {} per step; recording", duration_ms(*median_ms))
        }
        _ => "steady; recording".to_owned(),
    }
}

/// Message: the loop is not steady yet.
pub fn not_steady(window: &SampledWindow) -> String {
    let why = match window {
        SampledWindow::Nothing => "no activity yet".to_owned(),
        SampledWindow::NoSteps | SampledWindow::Gone => "no steps yet".to_owned(),
        SampledWindow::Steps { median_ms, building, .. } if *building > 0.01 => {
            format!("{} per step, {} of it tracing and compiling", duration_ms(*median_ms), share(*building))
        }
        SampledWindow::Steps { median_ms, .. } => format!("{} per step so far", duration_ms(*median_ms)),
    };
    format!("waiting for a steady state: {why}")
}

/// Message: the loop did not become steady in time.
pub fn never_steady(patience_ms: f64, last_ms: Option<f64>) -> String {
    let last = last_ms.map_or("no steps seen".to_owned(), |ms| format!("last {} per step", duration_ms(ms)));
    let patience = duration_ms(patience_ms);
    format!("not steady within {patience} ({last}); recording anyway; use --patience to wait longer")
}

/// What was recorded: `logs/…/2026_…: 466 kB, 12,345 events, 83 steps, 1 GPU`.
pub fn what_came(path: &str, size: u64, report: &Report) -> String {
    let events: u64 = report.sources.iter().map(|source| source.events).sum();
    let mut parts = vec![bytes(size as f64), plural(events, "event", "events")];
    if report.sources.len() > 1 {
        parts.push(plural(report.sources.len() as u64, "host", "hosts"));
    }
    parts.push(match report.summary.count {
        0 => "no steps".to_owned(),
        count => plural(count as u64, "step", "steps"),
    });
    parts.push(devices(report));
    format!("recorded {path}: {}", parts.join(", "))
}

fn devices(report: &Report) -> String {
    let all = || report.summary.hosts.iter().flat_map(|host| &host.devices);
    let count = |kind: DeviceKind| all().filter(|device| device.kind == kind).count() as u64;
    let named = [
        (count(DeviceKind::Gpu), "GPU", "GPUs"),
        (count(DeviceKind::Tpu), "TPU core", "TPU cores"),
        (count(DeviceKind::Other), "device", "devices"),
    ];
    let seen: Vec<String> = named
        .iter()
        .filter(|(count, ..)| *count > 0)
        .map(|(count, one, many)| plural(*count, one, many))
        .collect();
    if seen.is_empty() { "host only".to_owned() } else { seen.join(", ") }
}

/// What to change next time if the recording is not good enough.
pub fn what_to_change(report: &Report, duration_ms: f64) -> Vec<String> {
    let found = |rule: &Rule| report.findings.iter().any(|finding| finding.is(rule));
    let mut remarks = Vec::new();
    if found(&startup_profiled::RULE) {
        remarks.push(
            "the recording contains the warm-up; use --until-steady to wait for a steady state".to_owned(),
        );
    }
    if found(&no_steps::RULE) {
        remarks.push(format!(
            "no steps found in {}; record longer with --duration, or mark each step in the loop (see docs/capture.md)",
            crate::format::duration_ms(duration_ms)
        ));
    } else if found(&too_few_steps::RULE) {
        remarks.push(few_steps(report));
    }
    if found(&no_device_trace::RULE) {
        remarks.push(
            "a device was used but not recorded; check --device-level and the process's permission to profile it"
                .to_owned(),
        );
    }
    remarks
}

fn few_steps(report: &Report) -> String {
    let enough = report.summary.step_ms.map(|moments| (moments.median * ENOUGH_STEPS / 1e3).ceil().max(1.0));
    match enough {
        Some(seconds) => {
            let seconds = decimal(seconds, 0).replace(',', "");
            format!(
                "only a few steps were recorded; use --duration {seconds}s for about {}",
                decimal(ENOUGH_STEPS, 0)
            )
        }
        None => "only a few steps were recorded; record longer with --duration".to_owned(),
    }
}

/// One sample of a long job, in one line.
pub fn line(report: &Report, session: &str, size: u64) -> String {
    let step = report.summary.step_ms.map_or("no steps".to_owned(), |moments| {
        let steps = plural(report.summary.count as u64, "step", "steps");
        format!("{} per step ({steps})", duration_ms(moments.median))
    });
    format!("{session}  {step}  {}  {}", bytes(size as f64), report::answer(report))
}

/// The same as JSON, one object per line.
pub fn write_line_json(report: &Report, session: &str, size: u64, out: &mut dyn Write) -> io::Result<()> {
    let finding = report.findings.first();
    let object = json!({
        "schema": "stepscope.capture.v1",
        "session": session,
        "path": report.targets.join(" "),
        "bytes": size,
        "steps": report.summary.count,
        "median_ms": report.summary.step_ms.map(|moments| moments.median),
        "finding": finding.map(|finding| finding.id()),
        "fraction": finding.and_then(|finding| finding.fraction),
        "summary": report::answer(report),
    });
    writeln!(out, "{object}")
}

/// Summary at the end of sampling.
pub fn sampling_summary(taken: u64, kept: u64, size: u64) -> String {
    let samples = plural(taken, "sample", "samples");
    format!("{samples} taken, {} kept ({})", plural(kept, "session", "sessions"), bytes(size as f64))
}
