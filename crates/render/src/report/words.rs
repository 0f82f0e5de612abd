//! The sentences of a report that text, Markdown and HTML share: step times, what was sampled, what limits the step, what to
//! run next.

use stepscope_analyze::breakdown::selection::Range;
use stepscope_analyze::recording::health::Trouble;
use stepscope_analyze::steps::Origin;
use stepscope_diagnose::Finding;
use stepscope_diagnose::rules::{no_device_trace, truncated_trace};
use stepscope_results::gpu_samples;
use stepscope_results::report::{HealthRow, Report};
use stepscope_results::words::{quoted, share, step_times, terms};
use stepscope_trace::Delivers;

use super::place;
use crate::format::{duration_ms, plural};

/// The title of ranges below the breakdown.
pub(super) const RANGES: &str = "in the program's own ranges, without the ranges nested in them:";

/// A longer path is omitted from suggested commands.
const LONGEST_TARGET: usize = 70;

/// A unit that reaches this share of its peak limits a kernel, as in ncu's own rules.
const NEAR_PEAK: f64 = 0.6;

/// Below this many steps, a 90th percentile is no more than the longest step.
pub(super) const STEPS_FOR_P90: usize = 10;

/// Number of GPUs whose samples are shown.
const GPUS: usize = 4;

/// What was sampled or counted, where that is all there is.
pub(super) fn seen(report: &Report) -> Option<String> {
    let kinds = [Delivers::Counters, Delivers::Samples, Delivers::Memory];
    kinds.iter().any(|&kind| report.only(kind)).then(|| nothing_found(report))
}

/// If no rule fires on the counters: how close the longest kernel comes to the device's peaks.
pub(super) fn near_peak(report: &Report) -> String {
    let best = report.profiled.as_ref().and_then(|kernel| {
        let units = [("compute", kernel.compute), ("memory", kernel.memory)];
        let known = units.into_iter().filter_map(|(unit, peak)| Some((unit, peak?)));
        known.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(unit, peak)| (kernel, unit, peak))
    });
    let Some((kernel, unit, peak)) = best else {
        return "The counters of the profiled kernels show no problem.".to_owned();
    };
    let (name, time) = (quoted(&kernel.kernel), share(kernel.fraction));
    let works = format!("{name} ({time} of the profiled time) reaches {} of the peak of {unit}", share(peak));
    let caches = kernel.dram.filter(|dram| unit == "memory" && peak >= NEAR_PEAK && *dram < peak / 2.0);
    if let Some(dram) = caches {
        format!(
            "The collected counters do not show whether the work is needed: {name} ({time} of the profiled time) keeps \
             caches at {} of their peak, and device memory at {}. Record with `ncu --set full` to see wasted accesses.",
            share(peak),
            share(dram)
        )
    } else if peak >= NEAR_PEAK {
        format!("The counters show no problem: {works}.")
    } else {
        format!(
            "The collected counters do not show what limits the kernels: {works}. Record with `ncu --set full` \
             to see stall reasons."
        )
    }
}

/// The profiled kernels without a time, which no share of the profiled time includes.
pub(super) fn untimed(report: &Report) -> Option<String> {
    let names = &report.profiled.as_ref()?.untimed;
    let more = match names.len() {
        0 | 1 => String::new(),
        count => format!(" and {} more", count - 1),
    };
    Some(format!("no time was collected for {}{more}", quoted(names.first()?)))
}

pub(super) fn nothing_found(report: &Report) -> String {
    if report.only(Delivers::Counters) && report.health.iter().any(|row| row.id == Trouble::FewCounters.id())
    {
        return "The profiled kernels have times, but no counters that show their bottleneck.".to_owned();
    }
    if report.only(Delivers::Counters) {
        return near_peak(report);
    }
    if report.only(Delivers::Samples) {
        let seen = gpu_samples::headline(&report.gpu_samples)
            .unwrap_or_else(|| "The GPUs were sampled, but the log does not name its columns".to_owned());
        return format!("{seen}. Samples cannot show why a step is slow.");
    }
    if report.only(Delivers::Memory) {
        let seen = report.memory.clone().unwrap_or_else(|| "No memory is in use".to_owned());
        return format!("{seen}. It shows neither growth nor a failed request.");
    }
    if report.only(Delivers::RunSamples) {
        return "Samples of a run show its resource use, not why a step is slow. Run it again with \
                `--profiler-port`, or record a profile (docs/capture.md)."
            .to_owned();
    }
    let shares = report.by_share();
    let most: Vec<String> = shares
        .iter()
        .take(3)
        .map(|(category, _, part)| format!("{} {}", category.key(), share(*part)))
        .collect();
    match report.summary.step_ms {
        Some(moments) => {
            format!("No problem found: a step takes {} ({}).", duration_ms(moments.mean), most.join(", "))
        }
        None if most.is_empty() => "Nothing to report: the recording is empty.".to_owned(),
        None => format!("No problem found: in the whole capture, {}.", most.join(", ")),
    }
}

/// The parts of the step-time line: `39.8 ms mean`, `41.2 ms p90`, `12 steps marked train`, …
pub(super) fn step_line(report: &Report) -> Vec<String> {
    let Some(host) = report.bound() else { return vec!["nothing was recorded".to_owned()] };
    let Some(moments) = report.summary.step_ms else {
        let length = duration_ms(report.summary.length_ms());
        if report.only(Delivers::Counters) {
            let timed = report.summary.length_ms() > 0.0;
            let time = if timed { format!("{length} of kernels") } else { "not collected".to_owned() };
            let alone = "profiled one at a time, without a timeline".to_owned();
            return [Some(time), Some(alone), untimed(report)].into_iter().flatten().collect();
        }
        if report.only(Delivers::Memory) {
            return vec!["memory, without a timeline".to_owned()];
        }
        if report.only(Delivers::Samples) || report.only(Delivers::RunSamples) {
            return vec!["hardware samples, without a timeline".to_owned()];
        }
        let asked = host.origin != Origin::None;
        let why = match host.whole_capture {
            true if asked => "as one piece".to_owned(),
            true => terms::how(&host.how),
            false => "no counted steps".to_owned(),
        };
        let apart = terms::all_excluded(host).filter(|_| !host.whole_capture);
        let part = matches!(host.covers.selection.range, Range::Time(_) | Range::Piece(_));
        let what = if part { "part of the capture" } else { "whole capture" };
        return [Some(format!("{what}, {length}")), Some(why), apart].into_iter().flatten().collect();
    };
    let (one, many) = terms::step_kind(host.kind);
    let steps = plural(report.summary.count as u64, one, many);
    let mut parts = match report.summary.count {
        1 => vec![duration_ms(moments.mean)],
        count => {
            let (high, name) =
                if count < STEPS_FOR_P90 { (moments.max, "longest") } else { (moments.p90, "p90") };
            let usual =
                step_times::median_if_different(&moments).map(|ms| format!("{} median", duration_ms(ms)));
            let mean = format!("{} mean", duration_ms(moments.mean));
            let high = format!("{} {name}", duration_ms(high));
            [Some(mean), usual, step_times::shape(host), Some(high)].into_iter().flatten().collect()
        }
    };
    parts.push(format!("{steps} {}", terms::how(&host.how)));
    parts
}

/// Which steps and time range it covers, if there is a timeline.
pub(super) fn covers(report: &Report) -> Option<String> {
    let host = report.bound().filter(|_| report.has_timeline())?;
    host.covers.span.map(|_| stepscope_results::covers::words(&host.covers))
}

/// GPU samples, one line per GPU, and a note on utilisation.
pub(super) fn sampled(report: &Report) -> Vec<String> {
    let mut lines: Vec<String> = report.gpu_samples.iter().take(GPUS).map(gpu_samples::words).collect();
    if report.gpu_samples.len() > GPUS {
        lines.push(format!("… and {} more; see `stepscope devices`.", report.gpu_samples.len() - GPUS));
    }
    if report.gpu_samples.iter().any(|gpu| gpu.utilisation.is_some()) {
        lines.push(gpu_samples::UTILISATION.to_owned());
    }
    lines
}

/// Where on the run's curves the profile was recorded, and whether its steps are typical.
pub(super) fn in_run(report: &Report) -> Option<String> {
    report.run.as_ref().map(place::words)
}

/// The device and host that the figures are about, if there is a choice: how busy it is shows by itself whether the device
/// is the bottleneck.
pub(super) fn slowest(report: &Report) -> Option<(&'static str, String)> {
    let host = report.bound().filter(|_| report.has_timeline())?;
    let device = host.bottleneck_device.and_then(|place| host.devices.get(place));
    let among = |count: usize, what: &str| {
        if count > 1 { format!(", the busiest of {count} {what}") } else { String::new() }
    };
    let device = device.map(|device| {
        let busy = device.busy_fraction.map_or(String::new(), |busy| format!(", busy {}", share(busy)));
        format!("{}{busy}{}", quoted(&device.name), among(host.devices.len(), "devices"))
    });
    let hosts = report.summary.hosts.len();
    let named = (hosts > 1).then(|| format!("{}, the slowest of {hosts} hosts", quoted(&host.host)));
    match (device, named) {
        (None, None) => None,
        (Some(device), None) => Some(("device", device)),
        (None, Some(host)) => Some(("host", host)),
        (Some(device), Some(host)) => Some(("device", format!("{device}; on {host}"))),
    }
}

/// `MFU 41 %, HFU 52 % of TPU v5 (stated by the profile)`.
pub(super) fn usage(report: &Report) -> Option<String> {
    let usage = report.usage.as_ref()?;
    let hardware = if usage.hfu > usage.mfu { format!(", HFU {}", share(usage.hfu)) } else { String::new() };
    Some(format!("MFU {}{hardware} of {} ({})", share(usage.mfu), quoted(&usage.device), usage.source))
}

/// Sessions that were not used.
pub(super) fn other_sessions(report: &Report) -> Option<String> {
    let others = report.sessions.iter().filter(|name| **name != report.session).count() as u64;
    (others > 0).then(|| {
        format!(
            "{}; {} available, see `--session`",
            quoted(&report.session),
            plural(others, "other session", "other sessions")
        )
    })
}

/// True if a finding about trust already says what this row says.
pub(super) fn said_above(report: &Report, row: &HealthRow) -> bool {
    let found = |rule| report.findings.iter().any(|finding| finding.is(rule));
    match row.id {
        "no-device-trace" | "collection-error" => found(&no_device_trace::RULE),
        "damaged" | "dropped-events" | "event-cap" => found(&truncated_trace::RULE),
        _ => false,
    }
}

/// Commands to run next.
pub(super) fn next_commands(report: &Report) -> Vec<String> {
    // The sample is no file that another command could read.
    if report.targets.is_empty() {
        return ["demo --serve", "report LOGDIR", "run -- python train.py"]
            .map(|next| format!("stepscope {next}"))
            .to_vec();
    }
    let cause = report.findings.iter().find(|finding| !finding.is_about_trust());
    let view = cause.map(|finding| finding.rule.command());
    let words: Vec<String> = report.targets.iter().map(|path| crate::format::shell_word(path)).collect();
    let words = words.join(" ");
    let target = if words.chars().count() <= LONGEST_TARGET { words.as_str() } else { "PATH" };
    let views =
        [(Delivers::Counters, "kernels"), (Delivers::Samples, "devices"), (Delivers::Memory, "memory")];
    for (delivers, view) in views {
        if report.only(delivers) {
            return vec![format!("stepscope {view} {target}")];
        }
    }
    if report.only(Delivers::RunSamples) {
        return vec![format!("stepscope compare {target} AFTER")];
    }
    if view.is_none() && !report.findings.is_empty() {
        return ["health", "info"].map(|view| format!("stepscope {view} {target}")).to_vec();
    }
    let first = view.unwrap_or_else(|| "steps".to_owned());
    let mut commands = vec![format!("stepscope {first} {target}")];
    if first != "ops" {
        commands.push(format!("stepscope ops {target}"));
    }
    // With several paths, it would be unclear where one side of a comparison ends.
    if report.targets.len() == 1 {
        commands.push(format!("stepscope compare {target} AFTER"));
    }
    commands
}

/// What fixing a finding saves: `saves at most 34.9 ms per step`.
pub(super) fn promise(finding: &Finding) -> Option<String> {
    let gain = finding.gain_ms.filter(|gain| *gain > 0.0)?;
    Some(format!("saves at most {} {}", duration_ms(gain), finding.per()))
}
