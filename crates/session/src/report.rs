//! The report: each host is read, analysed and dropped; the partial results are merged and diagnosed.

use std::path::Path;

use rayon::prelude::*;
use stepscope_analyze::Selection;
use stepscope_analyze::counters::KernelCounters;
use stepscope_analyze::gauges::Wall;
use stepscope_analyze::names::kernel_short_name;
use stepscope_analyze::ops::{OpRow as OpResult, Where};
use stepscope_diagnose::gather::{Gathered, HostPartial};
use stepscope_diagnose::{Severity, diagnose};
use stepscope_render::report::{HealthRow, OpRow, Profiled, Report, SourceRow};

use crate::beside::run_beside;
use crate::load::{Loaded, Looked, Profile};
use crate::problem::{Exit, Problem, missed};

/// Number of ops in the report; the view has all of them.
const OPS: usize = 100;

/// What is kept of one host.
pub type HostLook = (SourceRow, HostPartial);

/// Analyses one host in a process that is about to end.
pub fn look(loaded: &Loaded) -> HostLook {
    look_at(loaded, Selection::default())
}

/// The same for a part of the recording.
pub fn look_at(loaded: &Loaded, selection: Selection) -> HostLook {
    let context = loaded.context().selecting(selection);
    let partial = HostPartial::of(&context);
    // Freeing millions of states takes noticeable time.
    std::mem::forget(context);
    (loaded.source_row(), partial)
}

/// Merges the analysed hosts and diagnoses them.
pub fn judge(looked: Looked<HostLook>, targets: Vec<String>) -> Result<(Report, Vec<Problem>), Problem> {
    let (session, sessions) = (looked.session.clone(), looked.sessions.clone());
    let (hosts, problems) = looked.into_parts();
    Ok((merge(hosts, session, sessions, targets)?, problems))
}

/// The report on a profile that stays open.
pub fn report(profile: &Profile, targets: Vec<String>) -> Result<Report, Problem> {
    let hosts = profile.hosts.par_iter().map(|loaded| {
        let context = loaded.context();
        (loaded.source_row(), HostPartial::of(&context))
    });
    report_on(profile, hosts.collect(), targets)
}

/// The same for hosts that are already analysed.
pub fn report_on(profile: &Profile, hosts: Vec<HostLook>, targets: Vec<String>) -> Result<Report, Problem> {
    merge(hosts, profile.session.clone(), profile.sessions.clone(), targets)
}

fn merge(
    hosts: Vec<HostLook>,
    session: String,
    sessions: Vec<String>,
    targets: Vec<String>,
) -> Result<Report, Problem> {
    let (sources, partials): (Vec<SourceRow>, Vec<HostPartial>) = hosts.into_iter().unzip();
    let window = partials.iter().find_map(|host| host.wall()).map(Wall::seconds);
    let nothing = || Problem::new(Exit::Nothing, "no file could be read");
    let Gathered { facts, issues, ops, gauges } = Gathered::finish(partials).ok_or_else(nothing)?;
    if let Some(covers) = facts.summary.bound().map(|host| &host.covers) {
        missed(covers)?;
    }
    let mut findings = diagnose(&facts);
    let beside = sources.first().and_then(|source| run_beside(Path::new(&source.path), window));
    let (run, of_run) = beside.map_or((None, Vec::new()), |(run, findings)| (Some(run), findings));
    // What the run's curves show comes behind what the profile shows; a remark is no verdict on a profile.
    let alone = findings.is_empty();
    findings.extend(of_run.into_iter().filter(|finding| !alone || finding.severity != Severity::Info));
    let profiled = facts.counters.iter().map(|kernel| &kernel.counters);
    let profiled = profiled.max_by(|a, b| a.total_ms.total_cmp(&b.total_ms)).map(|longest| {
        let same = facts.counters.iter().filter(|kernel| kernel.counters.name == longest.name);
        profiled_kernel(longest, same.map(|kernel| kernel.counters.fraction).sum())
    });
    Ok(Report {
        targets,
        session,
        sessions,
        sources,
        health: issues.iter().map(HealthRow::of).collect(),
        summary: facts.summary,
        ops: ops.rows.iter().filter(|row| !row.key.input).take(OPS).map(op_row).collect(),
        findings,
        gauges,
        profiled,
        run,
    })
}

/// The summary of the longest kernel, with its share of all launches of that name.
fn profiled_kernel(kernel: &KernelCounters, fraction: f64) -> Profiled {
    Profiled {
        kernel: kernel_short_name(&kernel.name).into_owned(),
        fraction,
        compute: kernel.compute,
        memory: kernel.memory,
    }
}

fn op_row(row: &OpResult) -> OpRow {
    OpRow {
        name: row.key.name.clone(),
        op_type: row.key.kind.clone(),
        on_device: row.key.side == Where::Device,
        count: row.count,
        total_ms: row.total_ms,
        self_ms: row.self_ms,
        fraction: row.fraction,
    }
}
