//! A session's timeline: hosts on one clock, with tracks and names numbered across all of them. Where collectives show how
//! the hosts' clocks differ, there are two: on clocks aligned there, and on those that were recorded.

use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use stepscope_analyze::devices::collectives::clock::Clocks;
use stepscope_analyze::devices::collectives::{CollectivesPartial, RankRun};
use stepscope_analyze::states::launches::Launch;
use stepscope_analyze::steps::Origin;
use stepscope_analyze::{Analysis, Context, Shares};
use stepscope_results::words::terms;
use stepscope_session::{HostClock, HostMove, HostProfile, Profile, moved, moves};
use stepscope_trace::{Dur, KindId, ProcessId, ProcessKind, Span, StrId, Time, Trace, Track, TrackKind};

use super::event::Arrows;
use super::look;
use super::overview;
use super::rows::{Layout, Rows};

/// A step as marked on the page.
#[derive(Clone, Debug)]
pub struct Step {
    pub(crate) number: i64,
    /// Where the loop marks it.
    pub(crate) span: Span,
    /// The step as every table shows it: the mark, or the device's own time if the marks do not tell how long steps are.
    pub window: Span,
    pub(crate) counted: bool,
}

/// Where the work that each step launched is on each device.
type DeviceSteps = Vec<(ProcessId, Vec<Span>)>;

/// Analysis results for one host's trace.
#[derive(Debug)]
pub struct Findings {
    categories: Vec<u8>,
    steps: Vec<Step>,
    device_steps: DeviceSteps,
    step_name: String,
    origin: Origin,
    /// The track on which the steps were found: usually the main thread.
    step_track: Option<usize>,
    launches: Vec<Launch>,
    collectives: CollectivesPartial,
    /// Breakdown of each part of the trace.
    pub shares: Vec<Shares>,
}

impl Findings {
    /// Everything that the timeline needs.
    pub fn of(context: &Context) -> Self {
        let (found, breakdown) = (context.steps(), context.breakdown());
        let windows = breakdown.bound().map_or(&[][..], |device| &device.steps[..]);
        let all = breakdown.steps.all.iter().enumerate().filter(|_| !breakdown.steps.whole_capture);
        let steps = all.map(|(place, step)| Step {
            number: step.number,
            span: step.span,
            window: windows.get(place).map_or(step.span, |shares| shares.window),
            counted: step.excluded.is_none(),
        });
        Findings {
            categories: look::categories(context),
            steps: steps.collect(),
            device_steps: breakdown
                .devices
                .iter()
                .filter_map(|device| {
                    Some((device.process?, device.steps.iter().map(|step| step.work).collect()))
                })
                .collect(),
            step_name: terms::step_name(&found.how),
            origin: if breakdown.steps.whole_capture { Origin::None } else { found.origin },
            step_track: found.track.map(|track| track.index()),
            launches: context.launches().all.clone(),
            collectives: CollectivesPartial::of(context),
            shares: overview::fine(context),
        }
    }

    /// If the analyses failed: the trace can still be shown.
    pub fn none(trace: &Trace) -> Self {
        Findings {
            categories: vec![look::NONE; trace.kinds().len()],
            steps: Vec::new(),
            device_steps: Vec::new(),
            step_name: String::new(),
            origin: Origin::None,
            step_track: None,
            launches: Vec::new(),
            collectives: CollectivesPartial::default(),
            shares: Vec::new(),
        }
    }
}

/// Analyses one host for the timeline. If that fails, the trace can still be shown.
fn findings(loaded: &HostProfile) -> Findings {
    let context = loaded.context();
    let findings = catch_unwind(AssertUnwindSafe(|| Findings::of(&context)));
    findings.unwrap_or_else(|_| Findings::none(&loaded.trace))
}

/// One host on the session's clock.
#[derive(Debug)]
pub struct Host {
    /// Offset from the trace's time to the session's.
    pub shift: Dur,
    of: Arc<HostParts>,
}

impl Deref for Host {
    type Target = HostParts;

    fn deref(&self) -> &HostParts {
        &self.of
    }
}

/// What is known of a host whatever its clock.
#[derive(Debug)]
pub struct HostParts {
    /// Name and category of each kind.
    looks: Vec<(u32, u8)>,
    pub(crate) steps: Vec<Step>,
    device_steps: DeviceSteps,
    pub(crate) step_name: String,
    pub(crate) origin: Origin,
    pub(crate) shares: Vec<Shares>,
    pub(crate) arrows: Arrows,
}

impl HostParts {
    /// The number of a kind's name, and its category.
    #[inline]
    pub(crate) fn look_of(&self, kind: KindId) -> (u32, u8) {
        self.looks.get(kind.index()).copied().unwrap_or((0, look::NONE))
    }

    /// The number of the step that an event belongs to: on a device, the step that launched it.
    pub(crate) fn step_of(&self, track: &Track, at: Time) -> Option<i64> {
        let device = self.device_steps.iter().find(|(process, _)| *process == track.process);
        let holds = |place: usize, step: &Step| match device {
            Some((_, work)) => work.get(place).is_some_and(|work| work.contains(at)),
            None => step.span.contains(at),
        };
        let found = self.steps.iter().enumerate().find(|(place, step)| holds(*place, step));
        found.map(|(_, step)| step.number)
    }
}

impl Host {
    /// A time of the trace, in nanoseconds of the session.
    pub fn ns(&self, at: Time) -> f64 {
        ns((at + self.shift) - Time::ZERO)
    }
}

/// A duration in nanoseconds.
pub fn ns(length: Dur) -> f64 {
    length.ps() as f64 / 1e3
}

/// Nanoseconds of a request, in picoseconds.
pub fn ps(ns: f64) -> i64 {
    (ns * 1e3).round() as i64
}

/// A group of tracks.
#[derive(Debug)]
pub struct ProcessEntry {
    pub(crate) host: usize,
    pub(crate) name: String,
    pub(crate) kind: ProcessKind,
}

/// One track.
#[derive(Debug)]
pub struct TrackEntry {
    pub(crate) host: usize,
    /// Its index in its host's trace.
    place: usize,
    pub(crate) process: usize,
    pub(crate) layout: Layout,
    pub(crate) rows: Rows,
}

impl TrackEntry {
    /// The track itself.
    pub fn track<'m>(&self, model: &'m Parts) -> &'m Track {
        &model.trace(self.host).tracks()[self.place]
    }
}

/// The timeline of a session on one clock.
#[derive(Debug)]
pub struct Model {
    parts: Arc<Parts>,
    hosts: Vec<Host>,
    /// Wall-clock time of the session's origin, in nanoseconds since 1970.
    pub origin_unix_ns: Option<i128>,
    /// The end, in picoseconds of the session.
    pub end: i64,
    /// Are the hosts moved to where their collectives end together?
    pub aligned: bool,
}

impl Deref for Model {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.parts
    }
}

/// What the timeline of a session consists of, whatever the clock.
#[derive(Debug)]
pub struct Parts {
    /// Shared with the database that answers queries.
    pub profile: Arc<Profile>,
    pub(crate) processes: Vec<ProcessEntry>,
    tracks: Vec<TrackEntry>,
    /// The non-empty tracks, in display order.
    pub order: Vec<u32>,
    names: Vec<(usize, StrId)>,
    /// Collectives of several ranks; empty if there is one rank.
    pub collectives: Vec<RankRun>,
    /// How the hosts' clocks stand to one another; `None` if there is one clock.
    pub clocks: Option<Clocks>,
    /// How each host has to move to be on one clock, if that is known of any but the reference.
    pub moves: Vec<Option<HostMove>>,
}

impl Model {
    /// Numbers everything. `findings` are in the order of the hosts. Where hosts can be aligned at their collectives, they
    /// are, and the second model has them on their recorded clocks.
    pub fn of(profile: Profile, mut findings: Vec<Findings>, laid_out: LaidOut) -> (Self, Option<Self>) {
        let recorded = profile.shifts();
        let mut ranks = CollectivesPartial::default();
        findings.iter_mut().for_each(|found| ranks.merge(std::mem::take(&mut found.collectives)));
        let ranks = ranks.align();
        let main: Vec<Option<usize>> = findings.iter().map(|found| found.step_track).collect();
        let mut names = Names::default();
        let mut hosts: Vec<Arc<HostParts>> = Vec::with_capacity(findings.len());
        for (host, (loaded, found)) in profile.hosts.iter().zip(findings).enumerate() {
            hosts.push(Arc::new(HostParts {
                looks: names.looks(&loaded.trace, host, &found.categories),
                steps: found.steps,
                device_steps: found.device_steps,
                step_name: found.step_name,
                origin: found.origin,
                shares: found.shares,
                arrows: Arrows::new(found.launches),
            }));
        }
        let names = names.all;
        let known = ranks.clocks.as_ref().filter(|clocks| clocks.precision().is_some());
        let named = || profile.hosts.iter().map(|loaded| loaded.host.as_str());
        let moves = known.map_or_else(Vec::new, |clocks| moves(named(), &recorded.0, clocks));
        let clocks: Vec<HostClock> =
            profile.hosts.iter().map(|loaded| HostClock::of(&loaded.trace)).collect();
        let aligned = (!moves.is_empty()).then(|| moved(&clocks, recorded.clone(), &moves));
        let LaidOut { processes, tracks } = laid_out;
        let mut parts = Parts {
            profile: Arc::new(profile),
            processes,
            tracks,
            order: Vec::new(),
            names,
            collectives: ranks.runs(),
            clocks: ranks.clocks,
            moves,
        };
        parts.order = order(&parts, &main);
        let parts = Arc::new(parts);
        let on = |clock, aligned| Model::on(&parts, &hosts, clock, aligned);
        match aligned {
            Some(aligned) => (on(aligned, true), Some(on(recorded, false))),
            None => (on(recorded, false), None),
        }
    }

    /// Analyses each host of a profile first.
    pub fn analysed(profile: Profile) -> (Self, Option<Self>) {
        let look_at_all = || profile.hosts.par_iter().map(findings).collect::<Vec<Findings>>();
        let (findings, laid_out) = rayon::join(look_at_all, || LaidOut::of(&profile));
        Model::of(profile, findings, laid_out)
    }

    fn on(
        parts: &Arc<Parts>,
        hosts: &[Arc<HostParts>],
        (shifts, origin_unix_ns): (Vec<Dur>, Option<i128>),
        aligned: bool,
    ) -> Self {
        let ends = parts.profile.hosts.iter().zip(&shifts);
        let ends = ends.filter_map(|(loaded, &shift)| Some((loaded.trace.span()?.end + shift).ps()));
        let end = ends.max().unwrap_or(0).max(0);
        let hosts = hosts.iter().zip(shifts).map(|(of, shift)| Host { shift, of: of.clone() }).collect();
        Model { parts: parts.clone(), hosts, origin_unix_ns, end, aligned }
    }

    /// A host.
    pub fn host(&self, number: usize) -> &Host {
        &self.hosts[number]
    }

    /// All hosts.
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }
}

impl Parts {
    /// The trace of a host.
    pub fn trace(&self, host: usize) -> &Trace {
        &self.profile.hosts[host].trace
    }

    /// The track with this number.
    pub fn track(&self, id: u32) -> Option<&TrackEntry> {
        self.tracks.get(id as usize)
    }

    /// All tracks, with their numbers.
    pub fn tracks(&self) -> impl Iterator<Item = (u32, &TrackEntry)> {
        (0..).zip(&self.tracks)
    }

    /// The number of a host's track.
    pub fn number_of(&self, host: usize, place: usize) -> u32 {
        let before: usize = self.profile.hosts[..host].iter().map(|loaded| loaded.trace.tracks().len()).sum();
        u32::try_from(before + place).unwrap_or(u32::MAX)
    }

    /// Number of names.
    pub fn names(&self) -> usize {
        self.names.len()
    }

    /// The name with this number.
    pub fn name(&self, number: u32) -> &str {
        self.names.get(number as usize).map_or("", |&(host, id)| self.trace(host).str(id))
    }

    /// Memory of the session, including mapped files, which use memory while they are read.
    pub fn bytes(&self) -> u64 {
        let hosts = self.profile.hosts.iter().map(|loaded| loaded.trace.heap_bytes() as u64 + loaded.bytes);
        let rows = self.tracks.iter().map(|entry| entry.rows.heap_bytes() as u64);
        hosts.sum::<u64>() + rows.sum::<u64>()
    }
}

/// Numbers for all names of events.
#[derive(Default)]
struct Names<'t> {
    all: Vec<(usize, StrId)>,
    numbers: FxHashMap<&'t str, u32>,
}

impl<'t> Names<'t> {
    fn looks(&mut self, trace: &'t Trace, host: usize, categories: &[u8]) -> Vec<(u32, u8)> {
        let one = |(kind, &category): (&stepscope_trace::Kind, &u8)| {
            let shown = shown_name(trace, kind);
            let number = *self.numbers.entry(trace.str(shown)).or_insert_with(|| {
                self.all.push((host, shown));
                u32::try_from(self.all.len() - 1).unwrap_or(u32::MAX)
            });
            (number, category)
        };
        trace.kinds().iter().zip(categories).map(one).collect()
    }
}

/// The display name, if the profiler provides one.
fn shown_name(trace: &Trace, kind: &stepscope_trace::Kind) -> StrId {
    if trace.str(kind.display_name).is_empty() { kind.name } else { kind.display_name }
}

/// The tracks of a profile in rows, before any analysis.
#[derive(Debug)]
pub struct LaidOut {
    processes: Vec<ProcessEntry>,
    tracks: Vec<TrackEntry>,
}

impl LaidOut {
    /// Lays out all tracks, on all cores.
    pub fn of(profile: &Profile) -> Self {
        let (mut processes, mut tracks) = (Vec::new(), Vec::new());
        for (host, loaded) in profile.hosts.iter().enumerate() {
            let first = processes.len();
            let trace = &loaded.trace;
            processes.extend(trace.processes().iter().map(|process| ProcessEntry {
                host,
                name: trace.str(process.name).to_owned(),
                kind: process.kind,
            }));
            let laid_out = trace.tracks().par_iter().enumerate().map(|(place, track)| {
                let layout = Layout::of(track.nesting());
                let rows = Rows::of(track, &layout);
                TrackEntry { host, place, process: first + track.process.index(), layout, rows }
            });
            tracks.par_extend(laid_out);
        }
        LaidOut { processes, tracks }
    }
}

/// Devices and the main thread first, then by activity; tracks of a process stay together.
fn order(model: &Parts, main: &[Option<usize>]) -> Vec<u32> {
    let mut events_of: FxHashMap<usize, usize> = FxHashMap::default();
    for (_, entry) in model.tracks() {
        *events_of.entry(entry.process).or_default() += entry.track(model).len();
    }
    let mut all: Vec<u32> = model
        .tracks()
        .filter(|(_, entry)| !entry.track(model).is_empty() || !entry.track(model).samples.times.is_empty())
        .map(|(id, _)| id)
        .collect();
    all.sort_by_cached_key(|&id| {
        let Some(entry) = model.track(id) else { return Default::default() };
        let track = entry.track(model);
        let is_main = main.get(entry.host).copied().flatten() == Some(entry.place);
        let sort = match model.processes[entry.process].kind {
            ProcessKind::Device => 0_u8,
            ProcessKind::Host => 1,
            ProcessKind::Other => 2,
        };
        let kind = match track.kind {
            TrackKind::Stream | TrackKind::Thread => 0_u8,
            TrackKind::Async => 1,
            TrackKind::Derived => 2,
            TrackKind::Counter => 3,
        };
        let events = events_of.get(&entry.process).copied().unwrap_or(0);
        let busiest = std::cmp::Reverse;
        (entry.host, sort, busiest(events), entry.process, kind, !is_main, busiest(track.len()), id)
    });
    all
}
