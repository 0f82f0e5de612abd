//! What was recorded → the page's plain values, with the verdict of a profile where there is one.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use stepscope_capture::run::{GpuUsage, Recorded, Source, Spread as Measured, Steps, Usage, Window};
use stepscope_diagnose::hints::{Load, hints};
use stepscope_read::Progress;
use stepscope_render::run::{GpuUse, RunPage, RunSteps, Spread, SteadyUse, StepSource, Use, Verdict};
use stepscope_session::report::{judge, look};
use stepscope_session::{Chosen, Looked, Wanted};

/// With fewer samples than this nothing is suggested: a start-up is not a run.
const FEW_SAMPLES: u64 = 20;

/// All of a run.
pub(super) fn page(
    command: &[OsString],
    batch_size: Option<u64>,
    recorded: &Recorded,
    saved: Option<&Path>,
) -> RunPage {
    let captured = recorded.captured.as_ref().map(|captured| &captured.session);
    let profile = captured
        .and_then(|session| session.as_ref().ok().cloned())
        .or_else(|| recorded.profiles.last().map(|file| session_of(file)));
    RunPage {
        command: command.iter().map(|part| part.to_string_lossy().into_owned()).collect(),
        begun_wall_ns: recorded.begun_wall_ns,
        wall_s: recorded.lasted.as_secs_f64(),
        exit_code: recorded.ended.shell_code(),
        signal: super::signal(recorded.ended),
        batch_size,
        steps: recorded.steps.as_ref().and_then(steps),
        usage: usage(&recorded.usage),
        steady_usage: recorded.steady_usage.map(|window| SteadyUse {
            cpu: window.cpu,
            io_wait: window.io_wait,
            gpu_busy: window.gpu_busy,
        }),
        hints: match recorded.usage.samples {
            ..FEW_SAMPLES => Vec::new(),
            _ => hints(&load(&recorded.usage, recorded.steady_usage)),
        },
        verdict: profile.and_then(|path| verdict(&path)),
        no_profile: captured.and_then(|session| session.as_ref().err().map(ToString::to_string)),
        saved: saved.map(|folder| folder.display().to_string()),
    }
}

/// A session's folder holds all its hosts; elsewhere a profile is a file.
fn session_of(file: &Path) -> PathBuf {
    let folder = file
        .parent()
        .filter(|folder| folder.parent().is_some_and(|parent| parent.ends_with("plugins/profile")));
    folder.unwrap_or(file).to_owned()
}

/// What a profile shows; `None` where it cannot be read, which the report then says better.
fn verdict(path: &Path) -> Option<Verdict> {
    let wanted = Wanted { paths: vec![path.to_owned()], ..Wanted::default() };
    let chosen = Chosen::of(&wanted, &|_| {}).ok()?;
    let looked = Looked::at(chosen, &Progress::new(), look).ok()?;
    let (report, _) = judge(looked, vec![path.display().to_string()]).ok()?;
    Some(Verdict {
        sentence: report.verdict(),
        id: report.findings.first().map(|finding| finding.id().to_owned()),
        path: path.display().to_string(),
    })
}

fn steps(steps: &Steps) -> Option<RunSteps> {
    let figures = steps.figures()?;
    let from = steps.steady.from.unwrap_or(0);
    let counted = |range: std::ops::Range<usize>| {
        steps.observed.get(range).unwrap_or_default().iter().map(|one| one.steps).sum::<u64>()
    };
    Some(RunSteps {
        source: match &steps.source {
            Source::Lines => StepSource::Lines,
            Source::Events(tag) => StepSource::Events(tag.clone()),
            Source::Said => StepSource::Said,
        },
        examples: steps.examples,
        count: steps.count(),
        warm_up: counted(0..from),
        profiled: steps.profiled,
        steady: steps.steady.from.is_some(),
        levels: steps
            .steady
            .levels
            .iter()
            .map(|level| (counted(level.from..level.to), level.median))
            .collect(),
        first_s: steps.first_s,
        bursty: steps.bursty,
        mean_ms: figures.mean,
        median_ms: figures.median,
        p90_ms: figures.p90,
        p99_ms: figures.p99,
        deviation_ms: figures.deviation,
        own_ms: steps.own_ms,
        own_examples_per_s: steps.own_examples_per_s,
        observed: steps
            .observed
            .iter()
            .enumerate()
            .map(|(place, one)| (one.step, one.steps, one.end_s, one.ms(), place < from))
            .collect(),
    })
}

/// How busy the machine was while steps were steady, or else all the while.
fn load(usage: &Usage, window: Option<Window>) -> Load {
    let mean = |spread: Option<Measured>| spread.map(|spread| spread.mean);
    let window = window.unwrap_or_default();
    let busiest = usage.gpus.iter().filter_map(|gpu| mean(gpu.busy)).reduce(f64::max);
    let cores = Some(usage.cores as f64).filter(|&cores| cores > 0.0);
    let memory_limit = usage.memory_limit.or(usage.memory_total);
    Load {
        cores: usage.cpu_limit.into_iter().chain(cores).reduce(f64::min),
        cpu: window.cpu.or(mean(usage.cpu)),
        throttled: mean(usage.throttled),
        io_wait: window.io_wait.or(mean(usage.io_wait)),
        gpu_busy: window.gpu_busy.or(busiest),
        gpu_held: usage.gpus.iter().filter_map(|gpu| Some(gpu.throttled.as_ref()?.0)).reduce(f64::max),
        memory: usage.rss_peak.zip(memory_limit).map(|(peak, limit)| peak as f64 / limit.max(1) as f64),
    }
}

/// The use of the hardware as the page takes it.
pub(in crate::commands) fn usage(usage: &Usage) -> Use {
    Use {
        samples: usage.samples,
        cores: Some(usage.cores as u64).filter(|&cores| cores > 0),
        cpu_limit_cores: usage.cpu_limit,
        cpu_seconds: usage.cpu_seconds,
        cpu_cores: usage.cpu.map(spread),
        machine_cpu_fraction: usage.machine_cpu.map(spread),
        io_wait_fraction: usage.io_wait.map(spread),
        steal_fraction: usage.steal.map(spread),
        throttled_fraction: usage.throttled.map(spread),
        rss_peak_bytes: usage.rss_peak,
        pss_peak_bytes: usage.pss_peak,
        process_peak_bytes: usage.process_peak,
        memory_total_bytes: usage.memory_total,
        memory_available_least_bytes: usage.memory_available_least,
        memory_limit_bytes: usage.memory_limit,
        memory_used_most_bytes: usage.memory_used_most,
        swap_peak_bytes: usage.swap_peak,
        disk_read_bytes_per_s: usage.disk_read.map(spread),
        disk_write_bytes_per_s: usage.disk_write.map(spread),
        net_receive_bytes_per_s: usage.net_receive.map(spread),
        net_send_bytes_per_s: usage.net_send.map(spread),
        switches_per_s: usage.switches.map(spread),
        processes: usage.processes,
        threads: usage.threads,
        gpus: usage.gpus.iter().map(gpu).collect(),
    }
}

fn gpu(gpu: &GpuUsage) -> GpuUse {
    GpuUse {
        index: gpu.index,
        name: gpu.name.clone(),
        busy_fraction: gpu.busy.map(spread),
        memory_used_bytes: gpu.memory.map(spread),
        memory_total_bytes: gpu.memory_total,
        memory_of_tree_bytes: gpu.memory_of_tree,
        power_watts: gpu.power.map(spread),
        power_limit_watts: gpu.power_limit,
        clock_mhz: gpu.clock.map(spread),
        temperature_celsius: gpu.temperature.map(spread),
        throttled_fraction: gpu.throttled.as_ref().map(|(share, _)| *share),
        throttled_by: gpu.throttled.iter().flat_map(|(_, why)| why).map(|why| why.key().to_owned()).collect(),
        bus_receive_bytes_per_s: gpu.bus_receive.map(spread),
        bus_send_bytes_per_s: gpu.bus_send.map(spread),
    }
}

fn spread(measured: Measured) -> Spread {
    Spread { mean: measured.mean, max: measured.max }
}
