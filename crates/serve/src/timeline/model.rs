//! A session's timeline: hosts on one clock, with tracks and names numbered across all of them.

use std::sync::Arc;

use rayon::prelude::*;
use rustc_hash::FxHashMap;
use stepscope_analyze::devices::collectives::{CollectivesPartial, RankRun};
use stepscope_analyze::states::launches::Launch;
use stepscope_analyze::steps::Origin;
use stepscope_analyze::{Context, Shares};
use stepscope_render::words::terms;
use stepscope_session::Profile;
use stepscope_trace::{Dur, KindId, ProcessKind, Span, StrId, Time, Trace, Track, TrackKind};

use super::event::Arrows;
use super::look;
use super::overview;
use super::rows::{Layout, Rows};

/// A step as marked on the page.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) number: i64,
    pub(crate) span: Span,
    pub(crate) counted: bool,
}

/// Analysis results for one host's trace.
#[derive(Debug)]
pub(crate) struct Findings {
    categories: Vec<u8>,
    steps: Vec<Step>,
    step_name: String,
    origin: Origin,
    /// The track on which the steps were found: usually the main thread.
    step_track: Option<usize>,
    launches: Vec<Launch>,
    collectives: CollectivesPartial,
    /// Breakdown of each part of the trace.
    pub(crate) shares: Vec<Shares>,
}

impl Findings {
    /// Everything that the timeline needs.
    pub(crate) fn of(context: &Context) -> Self {
        let (found, breakdown) = (context.steps(), context.breakdown());
        let steps = breakdown.steps.all.iter().filter(|_| !breakdown.steps.whole_capture).map(|step| Step {
            number: step.number,
            span: step.span,
            counted: step.excluded.is_none(),
        });
        Findings {
            categories: look::categories(context),
            steps: steps.collect(),
            step_name: terms::step_name(&found.how),
            origin: if breakdown.steps.whole_capture { Origin::None } else { found.origin },
            step_track: found.track.map(|track| track.index()),
            launches: context.launches().all.clone(),
            collectives: CollectivesPartial::of(context),
            shares: overview::fine(context),
        }
    }

    /// If the analyses failed: the trace can still be shown.
    pub(crate) fn none(trace: &Trace) -> Self {
        Findings {
            categories: vec![look::NONE; trace.kinds().len()],
            steps: Vec::new(),
            step_name: String::new(),
            origin: Origin::None,
            step_track: None,
            launches: Vec::new(),
            collectives: CollectivesPartial::default(),
            shares: Vec::new(),
        }
    }
}

/// One host.
#[derive(Debug)]
pub(crate) struct Host {
    /// Offset from the trace's time to the session's.
    pub(crate) shift: Dur,
    /// Name and category of each kind.
    looks: Vec<(u32, u8)>,
    pub(crate) steps: Vec<Step>,
    pub(crate) step_name: String,
    pub(crate) origin: Origin,
    pub(crate) shares: Vec<Shares>,
    pub(crate) arrows: Arrows,
}

impl Host {
    /// The number of a kind's name, and its category.
    #[inline]
    pub(crate) fn look_of(&self, kind: KindId) -> (u32, u8) {
        self.looks.get(kind.index()).copied().unwrap_or((0, look::NONE))
    }

    /// A time of the trace, in nanoseconds of the session.
    pub(crate) fn ns(&self, at: Time) -> f64 {
        ns((at + self.shift) - Time::ZERO)
    }
}

/// A duration in nanoseconds.
pub(crate) fn ns(length: Dur) -> f64 {
    length.ps() as f64 / 1e3
}

/// Nanoseconds of a request, in picoseconds.
pub(crate) fn ps(ns: f64) -> i64 {
    (ns * 1e3).round() as i64
}

/// A group of tracks.
#[derive(Debug)]
pub(crate) struct ProcessEntry {
    pub(crate) host: usize,
    pub(crate) name: String,
    pub(crate) kind: ProcessKind,
}

/// One track.
#[derive(Debug)]
pub(crate) struct TrackEntry {
    pub(crate) host: usize,
    /// Its index in its host's trace.
    place: usize,
    pub(crate) process: usize,
    pub(crate) layout: Layout,
    pub(crate) rows: Rows,
}

impl TrackEntry {
    /// The track itself.
    pub(crate) fn track<'m>(&self, model: &'m Model) -> &'m Track {
        &model.trace(self.host).tracks()[self.place]
    }
}

/// The timeline of a session.
#[derive(Debug)]
pub(crate) struct Model {
    /// Shared with the database that answers queries.
    pub(crate) profile: Arc<Profile>,
    hosts: Vec<Host>,
    pub(crate) processes: Vec<ProcessEntry>,
    tracks: Vec<TrackEntry>,
    /// The non-empty tracks, in display order.
    pub(crate) order: Vec<u32>,
    names: Vec<(usize, StrId)>,
    /// Wall-clock time of the session's origin, in nanoseconds since 1970.
    pub(crate) origin_unix_ns: Option<i128>,
    /// The end, in picoseconds of the session.
    pub(crate) end: i64,
    /// Collectives of several ranks; empty if there is one rank.
    pub(crate) collectives: Vec<RankRun>,
}

impl Model {
    /// Numbers everything. `findings` are in the order of the hosts.
    pub(crate) fn of(profile: Profile, findings: Vec<Findings>, laid_out: LaidOut) -> Self {
        let (shifts, origin_unix_ns) = profile.shifts();
        let mut names = Names::default();
        let mut findings = findings;
        let mut collectives = CollectivesPartial::default();
        findings.iter_mut().for_each(|found| collectives.merge(std::mem::take(&mut found.collectives)));
        let main: Vec<Option<usize>> = findings.iter().map(|found| found.step_track).collect();
        let hosts: Vec<Host> = profile
            .hosts
            .iter()
            .zip(findings)
            .zip(&shifts)
            .enumerate()
            .map(|(host, ((loaded, found), &shift))| Host {
                shift,
                looks: names.looks(&loaded.trace, host, &found.categories),
                steps: found.steps,
                step_name: found.step_name,
                origin: found.origin,
                shares: found.shares,
                arrows: Arrows::new(found.launches),
            })
            .collect();
        let names = names.all;
        let LaidOut { processes, tracks } = laid_out;
        let spans = profile
            .hosts
            .iter()
            .zip(&shifts)
            .filter_map(|(loaded, &shift)| loaded.trace.span().map(|span| (span.end + shift).ps()));
        let end = spans.max().unwrap_or(0).max(0);
        let mut model = Model {
            profile: Arc::new(profile),
            hosts,
            processes,
            tracks,
            order: Vec::new(),
            names,
            origin_unix_ns,
            end,
            collectives: collectives.runs(),
        };
        model.order = order(&model, &main);
        model
    }

    /// The trace of a host.
    pub(crate) fn trace(&self, host: usize) -> &Trace {
        &self.profile.hosts[host].trace
    }

    /// A host.
    pub(crate) fn host(&self, number: usize) -> &Host {
        &self.hosts[number]
    }

    /// All hosts.
    pub(crate) fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// The track with this number.
    pub(crate) fn track(&self, id: u32) -> Option<&TrackEntry> {
        self.tracks.get(id as usize)
    }

    /// All tracks, with their numbers.
    pub(crate) fn tracks(&self) -> impl Iterator<Item = (u32, &TrackEntry)> {
        (0..).zip(&self.tracks)
    }

    /// The number of a host's track.
    pub(crate) fn number_of(&self, host: usize, place: usize) -> u32 {
        let before: usize = self.profile.hosts[..host].iter().map(|loaded| loaded.trace.tracks().len()).sum();
        u32::try_from(before + place).unwrap_or(u32::MAX)
    }

    /// Number of names.
    pub(crate) fn names(&self) -> usize {
        self.names.len()
    }

    /// The name with this number.
    pub(crate) fn name(&self, number: u32) -> &str {
        self.names.get(number as usize).map_or("", |&(host, id)| self.trace(host).str(id))
    }

    /// Memory of the session, including mapped files, which use memory while they are read.
    pub(crate) fn bytes(&self) -> u64 {
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
pub(crate) struct LaidOut {
    processes: Vec<ProcessEntry>,
    tracks: Vec<TrackEntry>,
}

impl LaidOut {
    /// Lays out all tracks, on all cores.
    pub(crate) fn of(profile: &Profile) -> Self {
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
                let layout = Layout::of(track);
                let rows = Rows::of(track, &layout);
                TrackEntry { host, place, process: first + track.process.index(), layout, rows }
            });
            tracks.par_extend(laid_out);
        }
        LaidOut { processes, tracks }
    }
}

/// Devices and the main thread first, then by activity; tracks of a process stay together.
fn order(model: &Model, main: &[Option<usize>]) -> Vec<u32> {
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
