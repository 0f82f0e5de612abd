//! Words about a capture that was just made: what came, whether it is what was wanted, what to do otherwise.

use std::io::{self, Write};

use serde_json::json;
use stepscope_diagnose::Rule;
use stepscope_diagnose::rules::{no_device_trace, no_steps, startup_profiled, too_few_steps};
use stepscope_trace::DeviceKind;

use crate::format::{bytes, decimal, duration_ms, plural};
use crate::report::Report;
use crate::words::share;

/// Steps that are enough to tell a median from.
const ENOUGH_STEPS: f64 = 20.0;

/// What a short window showed that was looked at while waiting for the loop to settle.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Window {
    /// The process did nothing that is traced.
    Nothing,
    /// It did something, and no steps show.
    NoSteps,
    /// Steps.
    Steps {
        /// The middle one's length in milliseconds.
        median_ms: f64,
        /// How many.
        count: usize,
        /// The share of them that was spent tracing and compiling.
        building: f64,
    },
    /// No window could be recorded.
    Gone,
}

impl Window {
    /// How many steps it shows.
    pub fn steps(&self) -> usize {
        if let Window::Steps { count, .. } = self { *count } else { 0 }
    }
}

/// The loop has settled.
pub fn steady(window: &Window) -> String {
    match window {
        Window::Steps { median_ms, .. } => format!("steady at {} a step; recording", duration_ms(*median_ms)),
        _ => "steady; recording".to_owned(),
    }
}

/// It has not settled yet.
pub fn not_steady(window: &Window) -> String {
    let why = match window {
        Window::Nothing => "nothing runs yet".to_owned(),
        Window::NoSteps | Window::Gone => "no steps show yet".to_owned(),
        Window::Steps { median_ms, building, .. } if *building > 0.01 => {
            format!("{} a step, {} of it building graphs", duration_ms(*median_ms), share(*building))
        }
        Window::Steps { median_ms, .. } => format!("{} a step so far", duration_ms(*median_ms)),
    };
    format!("waiting for steady steps: {why}")
}

/// It did not settle in time.
pub fn never_steady(patience_ms: f64, last_ms: Option<f64>) -> String {
    let last = last_ms.map_or("no steps showed".to_owned(), |ms| format!("last {} a step", duration_ms(ms)));
    let patience = duration_ms(patience_ms);
    format!("not steady within {patience} ({last}); recording all the same; --patience waits longer")
}

/// What came: `logs/…/2026_…: 466 kB, 12,345 events, 83 steps, 1 GPU`.
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

/// What to do differently next time, where the recording is not what was wanted.
pub fn what_to_change(report: &Report, duration_ms: f64) -> Vec<String> {
    let found = |rule: &Rule| report.findings.iter().any(|finding| finding.is(rule));
    let mut remarks = Vec::new();
    if found(&startup_profiled::RULE) {
        remarks.push("start-up was recorded; --until-steady waits until the loop has settled".to_owned());
    }
    if found(&no_steps::RULE) {
        remarks.push(format!(
            "no steps show in {}; record longer with --duration, or mark each step in the loop as in docs/capture.md",
            crate::format::duration_ms(duration_ms)
        ));
    } else if found(&too_few_steps::RULE) {
        remarks.push(few_steps(report));
    }
    if found(&no_device_trace::RULE) {
        remarks.push(
            "a device was used and not recorded; is --device-level 1, and may the process profile it?"
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
            format!("few steps fit in; --duration {seconds}s holds about {}", decimal(ENOUGH_STEPS, 0))
        }
        None => "few steps fit in; record longer with --duration".to_owned(),
    }
}

/// One sample of a long watch, in one line.
pub fn line(report: &Report, session: &str, size: u64) -> String {
    let step = report.summary.step_ms.map_or("no steps".to_owned(), |moments| {
        let steps = plural(report.summary.count as u64, "step", "steps");
        format!("{} a step ({steps})", duration_ms(moments.median))
    });
    format!("{session}  {step}  {}  {}", bytes(size as f64), report.verdict())
}

/// The same for programs: one JSON object a line.
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
        "summary": report.verdict(),
    });
    writeln!(out, "{object}")
}

/// The end of a long watch.
pub fn kept(taken: u64, kept: u64, size: u64) -> String {
    let samples = plural(taken, "sample", "samples");
    format!("{samples} taken, {} kept ({})", plural(kept, "session", "sessions"), bytes(size as f64))
}
