//! An open session: its report and every answer that was computed once, and its traces while they are needed.
//!
//! A session of one host keeps its trace, and views are computed from it. Hosts of a larger session are read one after
//! the other and dropped; their traces are opened together for the timeline alone. Under the memory budget traces go
//! first: answers stay, and a view that was not requested before reads the files again.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use axum::body::Bytes;
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use stepscope_analyze::Analysis;
use stepscope_analyze::devices::collectives::CollectivesPartial;
use stepscope_analyze::recording::info::{Info, info};
use stepscope_analyze::session::HostPartial;
use stepscope_diagnose::compare::ComparedRun;
use stepscope_read::Progress;
use stepscope_results::report::Report;
use stepscope_session::report::{HostLook, look, report_of};
use stepscope_session::side::run_of;
use stepscope_session::{
    HostClock, HostProfile, Hosts, Problem, Profile, SAMPLE_HOST, moved, moves, sample, shifts,
};
use stepscope_timeline::model::{Findings, LaidOut, ns};
use stepscope_trace::{Dur, Time};

use super::found::Find;
use super::loading::Loading;
use super::timeline::Timeline;
use crate::answers::LIMIT;
use crate::error::Refusal;
use crate::tfprof::LazyModel;

/// A guess at what the partial results of one host use.
const PARTIAL_BYTES: u64 = 256 << 10;

/// An answer that is computed once.
#[derive(Debug, Default)]
struct Kept {
    /// When somebody started to compute it.
    begun: OnceLock<Instant>,
    /// `Err` if that failed.
    answer: OnceLock<Result<Bytes, Refusal>>,
}

/// The traces of a session.
#[derive(Debug)]
pub(super) enum Traces {
    Closed,
    Loading(Arc<Loading>),
    Open(Arc<Timeline>),
    Failed(Problem, Instant),
}

/// An open session.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(super) find: Find,
    /// The session's own name and those of all sessions.
    names: (String, Arc<[String]>),
    /// Names of the hosts that could be read, with the offset of their time to the session's.
    hosts: Vec<(String, Dur)>,
    problems: Vec<Problem>,
    /// The data for the report; taken by the first request.
    looks: Mutex<Option<Vec<HostLook>>>,
    answers: Mutex<FxHashMap<String, Arc<Kept>>>,
    answered: AtomicU64,
    traces: Mutex<Traces>,
    /// The model behind runs of classic TensorFlow.
    pub(crate) tfprof: LazyModel,
}

/// What is kept of one host.
type Part = (String, HostClock, Option<HostLook>);

impl Opened {
    /// Reads a session and analyses each of its hosts.
    pub(super) fn read(find: Find, loading: &Loading) -> Result<Self, Problem> {
        match &find.chosen {
            Some(chosen) if chosen.files.len() > 1 => {
                let hosts = Hosts::on_disk(chosen, &loading.progress);
                let parts = hosts.visit(part);
                hosts.any()?;
                let (problems, names) = (hosts.problems(), (chosen.session.clone(), chosen.sessions.clone()));
                Ok(Opened::of(find, names, parts, problems, Traces::Closed))
            }
            _ => {
                let profile = profile(&find, &loading.progress)?;
                loading.analyse();
                Ok(Opened::of_profile(find, profile))
            }
        }
    }

    /// Analyses each host of a profile, which stays open.
    fn of_profile(find: Find, profile: Profile) -> Self {
        // A profile with one busy thread leaves cores free in both, so they share them.
        let look_at_all = || profile.hosts.par_iter().map(part_and_findings).collect::<Vec<_>>();
        let (looked, laid_out) = rayon::join(look_at_all, || LaidOut::of(&profile));
        let (parts, findings): (Vec<Part>, Vec<Findings>) = looked.into_iter().unzip();
        let names = (profile.session.clone(), profile.sessions.clone());
        let problems = profile.problems();
        let timeline = Timeline::of(profile, findings, laid_out);
        Opened::of(find, names, parts, problems, Traces::Open(Arc::new(timeline)))
    }

    fn of(
        find: Find,
        names: (String, Arc<[String]>),
        parts: Vec<Part>,
        problems: Vec<Problem>,
        traces: Traces,
    ) -> Self {
        let hosts = parts.iter().map(|(host, ..)| host.clone()).zip(shown_shifts(&parts)).collect();
        let looks: Option<Vec<HostLook>> = parts.into_iter().map(|(.., look)| look).collect();
        Opened {
            tfprof: LazyModel::of(find.runs()),
            find,
            names,
            hosts,
            problems,
            looks: Mutex::new(looks),
            answers: Mutex::new(FxHashMap::default()),
            answered: AtomicU64::new(0),
            traces: Mutex::new(traces),
        }
    }

    /// Problems of its files.
    pub(crate) fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Whether part of it could not be read.
    pub(crate) fn is_damaged(&self) -> bool {
        !self.problems.is_empty()
    }

    /// A time of a host, in nanoseconds of the session.
    pub(crate) fn ns(&self, host: &str, at: Time) -> Option<f64> {
        let (_, shift) = self.hosts.iter().find(|(name, _)| name == host)?;
        Some(ns((at + *shift) - Time::ZERO))
    }

    /// The problem of a file that changed since it was read, if arguments would still be decoded from it.
    pub(crate) fn changed(&self) -> Option<Problem> {
        let timeline = self.timeline()?;
        let profile = &timeline.model.profile;
        let changed = profile.hosts.iter().any(|loaded| !loaded.trace.is_intact());
        changed.then(|| profile.problems().into_iter().next()).flatten()
    }

    /// Memory in use.
    pub(super) fn bytes(&self) -> u64 {
        let traces = self.timeline().map_or(0, |timeline| timeline.bytes());
        traces + self.answered.load(Ordering::Relaxed) + PARTIAL_BYTES * self.hosts.len() as u64
    }

    pub(super) fn traces(&self) -> MutexGuard<'_, Traces> {
        self.traces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The traces, if they are open.
    pub(super) fn timeline(&self) -> Option<Arc<Timeline>> {
        match &*self.traces() {
            Traces::Open(timeline) => Some(timeline.clone()),
            _ => None,
        }
    }

    /// Closes the traces; files that are no longer there could not be opened again.
    pub(super) fn close_traces(&self) -> Option<Arc<Timeline>> {
        let mut traces = self.traces();
        let reopens =
            self.find.fingerprint.iter().all(|(path, ..)| stepscope_read::files::data(path).is_ok());
        if self.find.chosen.is_none() || !reopens || !matches!(*traces, Traces::Open(_)) {
            return None;
        }
        match std::mem::replace(&mut *traces, Traces::Closed) {
            Traces::Open(timeline) => Some(timeline),
            _ => None,
        }
    }

    /// The hosts, for an analysis that visits each once.
    fn with_hosts<T>(&self, work: impl FnOnce(&Hosts<'_>) -> Result<T, Problem>) -> Result<T, Refusal> {
        let done = match (self.timeline(), &self.find.chosen) {
            (Some(timeline), _) => work(&Hosts::of(&timeline.model.profile)),
            (None, Some(chosen)) => work(&Hosts::on_disk(chosen, &Progress::new())),
            (None, None) => return Err(Refusal::Broken),
        };
        done.map_err(|problem| Refusal::Unreadable(Box::new(problem)))
    }

    /// The answer with this name, computed by the first request. Failures stay isolated. A request for one that already
    /// took too long is not made to wait again.
    pub(crate) fn answer(
        &self,
        name: &str,
        work: impl FnOnce(&Opened) -> Result<Vec<u8>, Refusal>,
    ) -> Result<Bytes, Refusal> {
        let kept = {
            let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
            answers.entry(name.to_owned()).or_default().clone()
        };
        if kept.answer.get().is_none() && kept.begun.get_or_init(Instant::now).elapsed() > LIMIT {
            return Err(Refusal::Overran);
        }
        let answer = kept.answer.get_or_init(|| {
            let worked = catch_unwind(AssertUnwindSafe(|| work(self)));
            let answer = worked.unwrap_or(Err(Refusal::Broken)).map(Bytes::from);
            let bytes = answer.as_ref().map_or(0, |bytes| bytes.len() as u64);
            self.answered.fetch_add(bytes, Ordering::Relaxed);
            answer
        });
        answer.clone()
    }

    /// The report.
    pub(crate) fn report(&self) -> Result<Report, Refusal> {
        let looks = self.looks.lock().unwrap_or_else(PoisonError::into_inner).take();
        let looks = looks.ok_or(Refusal::Broken)?;
        let made = report_of(looks, self.names.clone(), vec![self.find.path.clone()]);
        made.map_err(|problem| Refusal::Unreadable(Box::new(problem)))
    }

    /// Data for a comparison.
    pub(crate) fn run(&self) -> Result<ComparedRun, Refusal> {
        self.with_hosts(|hosts| run_of(hosts, &self.names.0))
    }

    /// What the recording contains, with the session's own name and those of all sessions.
    pub(crate) fn info(&self) -> Result<(Info, &str, &[String]), Refusal> {
        let all = self.with_hosts(|hosts| {
            let each = hosts.visit(|loaded| info(&[loaded.source()]).hosts);
            hosts.any()?;
            Ok(Info { hosts: each.into_iter().flatten().collect() })
        })?;
        Ok((all, &self.names.0, &self.names.1))
    }

    /// A table of its hosts.
    pub(crate) fn table<T>(&self, make: impl FnOnce(&Hosts<'_>) -> Result<T, Problem>) -> Result<T, Refusal> {
        self.with_hosts(make)
    }
}

/// The offset of each host's time to that of the timeline: where collectives allow, on aligned clocks.
fn shown_shifts(parts: &[Part]) -> Vec<Dur> {
    let clocks: Vec<HostClock> = parts.iter().map(|(_, clock, _)| *clock).collect();
    let recorded = shifts(&clocks);
    let mut ranks = CollectivesPartial::default();
    for (.., look) in parts.iter().filter(|_| parts.len() > 1) {
        look.iter().for_each(|(_, partial)| ranks.merge(partial.collectives().clone()));
    }
    let known = ranks.align().clocks.filter(|clocks| clocks.precision().is_some());
    let Some(known) = known else { return recorded.0 };
    let moves = moves(parts.iter().map(|(host, ..)| host.as_str()), &recorded.0, &known);
    moved(&clocks, recorded, &moves).0
}

/// Reads all hosts of a session.
pub(super) fn profile(find: &Find, progress: &Progress) -> Result<Profile, Problem> {
    match &find.chosen {
        Some(chosen) => Profile::load(chosen.clone(), progress),
        None => {
            let inputs = vec![(SAMPLE_HOST.to_owned(), Ok(sample()))];
            Profile::read(find.name.clone(), vec![find.name.clone()], inputs, progress)
        }
    }
}

/// Analyses one host for the report. If that fails, only the report is missing.
fn part(loaded: &HostProfile) -> Part {
    let looked = catch_unwind(AssertUnwindSafe(|| look(loaded)));
    (loaded.host.clone(), HostClock::of(&loaded.trace), looked.ok())
}

/// Analyses one host for the report and the timeline together, because both need the same states and steps.
fn part_and_findings(loaded: &HostProfile) -> (Part, Findings) {
    let context = loaded.context();
    let findings = catch_unwind(AssertUnwindSafe(|| Findings::of(&context)));
    let look = catch_unwind(AssertUnwindSafe(|| (loaded.source_row(), HostPartial::of(&context))));
    let part = (loaded.host.clone(), HostClock::of(&loaded.trace), look.ok());
    (part, findings.unwrap_or_else(|_| Findings::none(&loaded.trace)))
}
