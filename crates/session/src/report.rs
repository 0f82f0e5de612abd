//! The report: each host is read, analysed and dropped; the partial results are merged and diagnosed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rayon::prelude::*;
use stepscope_analyze::devices::gpu_samples::Wall;
use stepscope_analyze::session::{HostPartial, Results, Session};
use stepscope_analyze::time::summary::Summary;
use stepscope_analyze::time::typical_step::StepPicture;
use stepscope_analyze::vocabulary::names::kernel_short_name;
use stepscope_analyze::work::counters::KernelCounters;
use stepscope_analyze::work::ops::{OpRow as OpResult, Where};
use stepscope_analyze::work::programs::{Origins, Peaks, Programs};
use stepscope_diagnose::facts::{ProfiledKernel, ProfiledKernels};
use stepscope_diagnose::{Facts, diagnose_with_run};
use stepscope_results::report::{HealthRow, OpRow, Profiled, RangeRow, Report, SourceRow, UsageRow};

use stepscope_trace::Delivers;

use crate::event_logs::logged_run;
use crate::load::{HostProfile, PerHost, Profile};
use crate::problem::{Cause, Problem, missed};

/// Number of ops in the report; the view has all of them.
const OPS: usize = 100;

/// What is kept of one host.
pub type HostLook = (SourceRow, HostPartial);

/// Analyses one host.
pub fn look(loaded: &HostProfile) -> HostLook {
    (loaded.source_row(), HostPartial::of(&loaded.context()))
}

/// Merges the analysed hosts and diagnoses them.
pub fn judge(looked: PerHost<HostLook>, targets: Vec<String>) -> Result<(Report, Vec<Problem>), Problem> {
    let (session, sessions) = (looked.session.clone(), looked.sessions.clone());
    let (hosts, problems) = looked.into_parts();
    Ok((with_unread(merge(hosts, session, sessions, targets, &[], None)?, &problems), problems))
}

/// The same report with the hosts that are missing from it among the problems of the recording.
fn with_unread(mut report: Report, problems: &[Problem]) -> Report {
    let unread: Vec<HealthRow> =
        problems.iter().filter_map(Problem::issue).map(|issue| HealthRow::of(&issue)).collect();
    report.health.splice(0..0, unread);
    report
}

/// The same with a picture of one host's typical step: that of the host that limits the run. `peaks` are what the user says
/// that a device can do at best.
pub fn judge_drawn(
    looked: PerHost<(HostLook, Option<StepPicture>)>,
    targets: Vec<String>,
    peaks: Option<Peaks>,
) -> Result<(Report, Vec<Problem>), Problem> {
    let (looked, pictures) = looked.split();
    let (session, sessions) = (looked.session.clone(), looked.sessions.clone());
    let (hosts, problems) = looked.into_parts();
    let report = merge(hosts, session, sessions, targets, &[], peaks)?;
    let mut report = with_unread(report, &problems);
    let bound = report.summary.bound().map(|host| host.host.clone());
    report.picture = pictures.into_iter().flatten().find(|picture| Some(&picture.host) == bound.as_ref());
    Ok((report, problems))
}

/// The report on a profile that stays open.
pub fn report(profile: &Profile, targets: Vec<String>) -> Result<Report, Problem> {
    report_on(profile, profile.hosts.par_iter().map(look).collect(), targets)
}

/// The same for hosts that are already analysed.
pub fn report_on(profile: &Profile, hosts: Vec<HostLook>, targets: Vec<String>) -> Result<Report, Problem> {
    let report = report_of(hosts, (profile.session.clone(), profile.sessions.clone()), targets)?;
    Ok(with_unread(report, &profile.problems()))
}

/// The report on hosts that were analysed and dropped. `names` are the session's own and those of all sessions.
pub fn report_of(
    hosts: Vec<HostLook>,
    names: (String, Arc<[String]>),
    targets: Vec<String>,
) -> Result<Report, Problem> {
    merge(hosts, names.0, names.1, targets, &[], None)
}

/// The report on a profile, from files below the canonical `roots` only: event files beside it may lie elsewhere.
pub fn report_within(profile: &Profile, targets: Vec<String>, roots: &[PathBuf]) -> Result<Report, Problem> {
    let hosts = profile.hosts.par_iter().map(look).collect();
    let report = merge(hosts, profile.session.clone(), profile.sessions.clone(), targets, roots, None)?;
    Ok(with_unread(report, &profile.problems()))
}

fn merge(
    hosts: Vec<HostLook>,
    session: String,
    sessions: Arc<[String]>,
    targets: Vec<String>,
    roots: &[PathBuf],
    peaks: Option<Peaks>,
) -> Result<Report, Problem> {
    let (sources, partials): (Vec<SourceRow>, Vec<HostPartial>) = hosts.into_iter().unzip();
    let window = partials.iter().find_map(|host| host.wall()).map(Wall::seconds);
    let nothing = || Problem::new(Cause::Nothing, "no file could be read");
    let mut finished = Session::finish(partials).ok_or_else(nothing)?;
    finished.results.programs = std::mem::take(&mut finished.results.programs).with_peaks(peaks);
    let facts = Facts::of(finished);
    let about_memory = sources.iter().any(|source| source.format.delivers == Delivers::Memory);
    let memory = about_memory.then(|| stepscope_results::views::memory::summary(&facts.memory));
    if let Some(covers) = facts.summary.bound().map(|host| &host.covers) {
        missed(covers)?;
    }
    let beside = sources.first().and_then(|source| logged_run(Path::new(&source.path), window, roots));
    let (run, of_run) = beside.map_or((None, Vec::new()), |(run, findings)| (Some(run), findings));
    let findings = diagnose_with_run(&facts, of_run);
    let kernels = facts.get::<ProfiledKernels>();
    let profiled = kernels.0.iter().map(|kernel| &kernel.counters);
    let profiled = profiled.max_by(|a, b| a.total_ms.total_cmp(&b.total_ms)).map(|longest| {
        let same = kernels.0.iter().filter(|kernel| kernel.counters.name == longest.name);
        Profiled {
            untimed: untimed(&kernels.0),
            ..profiled_kernel(longest, same.map(|kernel| kernel.counters.fraction).sum())
        }
    });
    let Session { summary, results, .. } = facts.into_session();
    let Results { issues, ops, gpu_samples, collectives, ranges, programs, .. } = results;
    let ranges = RangeRow::of(ranges.ms_per_step(), summary.length_ms());
    let origins = Origins::of(&programs);
    Ok(Report {
        targets,
        session,
        sessions: sessions.to_vec(),
        sources,
        health: issues.iter().map(HealthRow::of).collect(),
        ops: ops
            .rows
            .iter()
            .filter(|row| !row.key.input)
            .take(OPS)
            .map(|row| op_row(row, &origins))
            .collect(),
        usage: usage(&programs, &summary, ops.devices),
        summary,
        ranges,
        findings,
        gpu_samples,
        profiled,
        clocks: collectives.clocks,
        run,
        memory,
        picture: None,
    })
}

/// The summary of the longest kernel, with its share of all launches of that name.
fn profiled_kernel(kernel: &KernelCounters, fraction: f64) -> Profiled {
    Profiled {
        kernel: kernel_short_name(&kernel.name).into_owned(),
        fraction,
        compute: kernel.compute,
        memory: kernel.memory,
        dram: kernel.dram,
        untimed: Vec::new(),
    }
}

/// The kernels that were profiled, but whose time was not collected.
fn untimed(kernels: &[ProfiledKernel]) -> Vec<String> {
    let counters = kernels.iter().map(|kernel| &kernel.counters).filter(|kernel| kernel.total_ms <= 0.0);
    let mut names: Vec<String> =
        counters.map(|kernel| kernel_short_name(&kernel.name).into_owned()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// How much of the peak the mean step reaches.
fn usage(programs: &Programs, summary: &Summary, devices: usize) -> Option<UsageRow> {
    let peaks = programs.peaks.as_ref()?;
    let usage = programs.usage(summary.length_ms(), devices)?;
    let (device, source) = (peaks.device_name().to_owned(), peaks.source.words());
    Some(UsageRow { mfu: usage.model, hfu: usage.hardware, device, source })
}

fn op_row(row: &OpResult, origins: &Origins<'_>) -> OpRow {
    let origin = origins.find(&row.key.name);
    let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    OpRow {
        label: origin.and_then(|origin| some(origin.label)),
        source: origin.and_then(|origin| some(origin.source)),
        name: row.key.name.clone(),
        op_type: row.key.kind.clone(),
        on_device: row.key.side == Where::Device,
        count: row.count,
        total_ms: row.total_ms,
        self_ms: row.self_ms,
        fraction: row.fraction,
    }
}
