//! Turns what was recorded into the plain values of the summary, with the verdict of a profile if there is one.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use stepscope_capture::run::{Following, Recorded, Remark, Steps, UsageWindow, closing_option};
use stepscope_diagnose::hints::{Load, hints};
use stepscope_diagnose::warnings::{Warning, warning};
use stepscope_read::Progress;
use stepscope_results::run::{NotRecorded, RunPage, RunSteps, SteadyUse, Verdict};
use stepscope_results::usage::{Spread, Usage};
use stepscope_session::report::{judge, look};
use stepscope_session::{PerHost, Query, ResolvedSession};

/// With fewer samples than this, no hint is given: a start-up is not a run.
const FEW_SAMPLES: u64 = 20;

/// Builds the summary of a run.
pub(super) fn page(
    command: &[OsString],
    batch_size: Option<u64>,
    recorded: &Recorded,
    saved: Option<&Path>,
) -> RunPage {
    let captured = recorded.captured.as_ref().map(|captured| &captured.session);
    let unasked = recorded.followed.as_ref().and_then(Following::trained).and_then(|it| it.session.clone());
    let unasked = unasked.or_else(|| recorded.on_demand.clone());
    let profile = captured
        .and_then(|session| session.as_ref().ok().cloned())
        .or_else(|| unasked.clone())
        .or_else(|| recorded.profiles.last().map(|file| session_of(file)));
    let warnings = warnings(&recorded.remarks);
    let ran_out = warnings.iter().any(|(warning, ..)| warning.id == "out-of-memory");
    RunPage {
        command: command.iter().map(|part| part.to_string_lossy().into_owned()).collect(),
        begun_wall_ns: recorded.begun_wall_ns,
        wall_s: recorded.lasted.as_secs_f64(),
        exit_code: recorded.ended.shell_code(),
        signal: super::signal(recorded.ended),
        batch_size,
        steps: recorded.steps.as_ref().and_then(steps),
        usage: recorded.usage.clone(),
        steady_usage: recorded.steady_usage.map(|window| SteadyUse {
            cpu: window.cpu,
            io_wait: window.io_wait,
            gpu_busy: window.gpu_busy,
        }),
        hints: match recorded.usage.samples {
            ..FEW_SAMPLES => Vec::new(),
            _ => hints(&load(&recorded.usage, recorded.steady_usage)),
        },
        warnings,
        held_back: recorded.held_back,
        verdict: profile.and_then(|path| verdict(&path, unasked.as_ref() == Some(&path), ran_out)),
        not_recorded: recorded.followed.as_ref().and_then(|it| not_recorded(command, it)),
        no_profile: captured.and_then(|session| session.as_ref().err().map(ToString::to_string)),
        saved: saved.map(|folder| folder.display().to_string()),
    }
}

/// What frameworks warned of, each once.
fn warnings(remarks: &[Remark]) -> Vec<(Warning, String, u64)> {
    let mut all: Vec<(Warning, String, u64)> = Vec::new();
    for remark in remarks {
        let Some(found) = warning(&remark.text) else { continue };
        match all.iter_mut().find(|(known, ..)| (known.id, &known.subject) == (found.id, &found.subject)) {
            // Other words for the same trouble are not the line that is shown.
            Some((known, _, count)) if known.rank == found.rank => *count += remark.count,
            Some(_) => {}
            None => all.push((found, remark.text.clone(), remark.count)),
        }
    }
    all.sort_by_key(|(warning, ..)| warning.rank);
    all
}

/// The folder of a session contains all its hosts; otherwise a profile is a single file.
fn session_of(file: &Path) -> PathBuf {
    let folder = file
        .parent()
        .filter(|folder| folder.parent().is_some_and(|parent| parent.ends_with("plugins/profile")));
    folder.unwrap_or(file).to_owned()
}

/// The verdict of a profile; `None` if it cannot be read, which the report explains better. If memory ran out and only memory
/// was recorded, that is the verdict, even where the recording does not know of the failure.
fn verdict(path: &Path, unasked: bool, ran_out: bool) -> Option<Verdict> {
    let wanted = Query { paths: vec![path.to_owned()], ..Query::default() };
    let chosen = ResolvedSession::of(&wanted, &|_| {}).ok()?;
    let looked = PerHost::at(chosen, &Progress::new(), |profile| look(&profile)).ok()?;
    let (report, _) = judge(looked, vec![path.display().to_string()]).ok()?;
    let first = report.findings.first();
    let memory = report.memory.clone();
    let sentence = match memory.as_ref().filter(|_| ran_out && first.is_none() && !report.has_timeline()) {
        Some(memory) => format!("Out of memory, while {memory}."),
        None => stepscope_render::report::answer(&report),
    };
    Some(Verdict {
        sentence,
        id: report.findings.first().map(|finding| finding.id().to_owned()),
        path: path.display().to_string(),
        line: first.and_then(|finding| finding.line.clone()),
        advice: first.and_then(|finding| finding.words().advice.into_iter().next()),
        memory: memory.filter(|_| report.has_timeline()),
        unasked,
    })
}

/// Why a Python program has no recording; `None` if it has one, or if it is no such program.
fn not_recorded(command: &[OsString], following: &Following) -> Option<NotRecorded> {
    let Some(program) = following.trained() else {
        let closed = || closing_option(command).map(NotRecorded::Closed);
        return (following.interpreters == 0).then(closed).flatten();
    };
    if program.session.is_some() {
        return None;
    }
    Some(match program.problems.last() {
        Some(problem) => NotRecorded::Failed(problem.clone()),
        None => NotRecorded::TooShort,
    })
}

fn steps(steps: &Steps) -> Option<RunSteps> {
    let figures = steps.figures()?;
    let from = steps.steady.from.unwrap_or(0);
    let counted = |range: std::ops::Range<usize>| {
        steps.observed.get(range).unwrap_or_default().iter().map(|one| one.steps).sum::<u64>()
    };
    Some(RunSteps {
        source: steps.source.clone(),
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

/// How busy the machine was while steps were steady, or else during the whole run.
fn load(usage: &Usage, window: Option<UsageWindow>) -> Load {
    let mean = |spread: Option<Spread>| spread.map(|spread| spread.mean);
    let window = window.unwrap_or_default();
    let busiest = usage.gpus.iter().filter_map(|gpu| mean(gpu.busy_fraction)).reduce(f64::max);
    let cores = usage.cores.map(|cores| cores as f64);
    let memory_limit = usage.memory_limit_bytes.or(usage.memory_total_bytes);
    Load {
        cores: usage.cpu_limit_cores.into_iter().chain(cores).reduce(f64::min),
        cpu: window.cpu.or(mean(usage.cpu_cores)),
        throttled: mean(usage.throttled_fraction),
        io_wait: window.io_wait.or(mean(usage.io_wait_fraction)),
        gpu_busy: window.gpu_busy.or(busiest),
        gpu_held: usage.gpus.iter().filter_map(|gpu| gpu.throttled_fraction).reduce(f64::max),
        memory: usage.rss_peak_bytes.zip(memory_limit).map(|(peak, limit)| peak as f64 / limit.max(1) as f64),
    }
}
