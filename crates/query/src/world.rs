//! What the tables read: the open recording, numbers for its tracks and events across hosts, and everything that is
//! computed from it once and kept for later queries.
//!
//! Events stay where they are, in the columns of the trace. An event's id is the number of its track, shifted by 32
//! bits, plus its place on the track, so that the page and a query name the same event the same way.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rayon::prelude::*;
use rustc_hash::FxHashMap;
use stepscope_analyze::devices::collectives::{Aligned, CollectivesPartial};
use stepscope_analyze::states::launches::{Launch, Launches};
use stepscope_analyze::vocabulary::Vocabulary;
use stepscope_session::{HostMove, HostProfile, Problem, Profile, logs_beside, moves};
use stepscope_trace::series::RunLog;
use stepscope_trace::{Dur, EventId, KindId, StrId, Trace, Track, TrackId};

use crate::family::Family;
use crate::looked::{Looked, NOTHING};
use crate::postings::Postings;
use crate::rows::Rows;
use crate::schema::TABLES;

/// Whoever holds the recording: the profile itself, or something that contains it.
pub trait Holder: Send + Sync {
    /// The recording.
    fn profile(&self) -> &Profile;

    /// Canonical folders that files beside the recording must lie in; empty if they may lie anywhere.
    fn roots(&self) -> &[PathBuf] {
        &[]
    }

    /// What the program logged for TensorBoard.
    fn logs(&self) -> Arc<[RunLog]> {
        let first = self.profile().hosts.first();
        first.map_or_else(Vec::new, |loaded| logs_beside(Path::new(&loaded.path), self.roots())).into()
    }

    /// Problems of its files.
    fn problems(&self) -> Vec<Problem> {
        self.profile().problems()
    }
}

impl Holder for Profile {
    fn profile(&self) -> &Profile {
        self
    }
}

/// One host, with what is computed about it on first use.
pub(crate) struct Host {
    /// Picoseconds from the trace's time to the session's.
    pub(crate) shift_ps: i64,
    /// Numbers of its first track, process and string among those of all hosts.
    pub(crate) first_track: u32,
    pub(crate) first_process: usize,
    pub(crate) first_string: usize,
    families: Vec<OnceLock<Family>>,
    looked: OnceLock<Looked>,
    launches: OnceLock<Vec<Launch>>,
    postings: OnceLock<Postings>,
    /// Kinds by name, sorted, so that a name is found without looking at all kinds.
    names: OnceLock<Vec<(StrId, KindId)>>,
}

/// Rows of a table in the order of a column, by table and column.
type Orders = FxHashMap<(usize, usize), Arc<Vec<u32>>>;

/// The recording and everything computed from it.
pub(crate) struct World {
    holder: Arc<dyn Holder>,
    pub(crate) hosts: Vec<Host>,
    /// Host and place of each track.
    tracks: Vec<(u32, u32)>,
    pub(crate) events: u64,
    sheets: Vec<OnceLock<Box<dyn Rows>>>,
    orders: Mutex<Orders>,
    ranks: OnceLock<Aligned>,
    clocks: OnceLock<Vec<Option<HostMove>>>,
    /// Nanoseconds spent on analyses, which do not count for the time of a query.
    computing: AtomicU64,
}

impl World {
    pub(crate) fn new(holder: Arc<dyn Holder>) -> Self {
        let profile = holder.profile();
        let (shifts, _) = profile.shifts();
        let (mut hosts, mut tracks) = (Vec::new(), Vec::new());
        let (mut first_process, mut first_string) = (0, 0);
        for (number, (loaded, shift)) in (0_u32..).zip(profile.hosts.iter().zip(shifts)) {
            let trace = &loaded.trace;
            let first_track = u32::try_from(tracks.len()).unwrap_or(u32::MAX);
            tracks.extend((0_u32..).zip(trace.tracks()).map(|(place, _)| (number, place)));
            hosts.push(Host {
                shift_ps: shift.ps(),
                first_track,
                first_process,
                first_string,
                families: trace.tracks().iter().map(|_| OnceLock::new()).collect(),
                looked: OnceLock::new(),
                launches: OnceLock::new(),
                postings: OnceLock::new(),
                names: OnceLock::new(),
            });
            first_process += trace.processes().len();
            first_string += trace.strings().len();
        }
        let events = profile.hosts.iter().map(|loaded| loaded.trace.events()).sum();
        let sheets = TABLES.iter().map(|_| OnceLock::new()).collect();
        let (orders, ranks, computing) = (Mutex::default(), OnceLock::new(), AtomicU64::new(0));
        let clocks = OnceLock::new();
        World { holder, hosts, tracks, events, sheets, orders, ranks, clocks, computing }
    }

    pub(crate) fn profile(&self) -> &Profile {
        self.holder.profile()
    }

    /// Canonical folders that files beside the recording must lie in; empty if they may lie anywhere.
    pub(crate) fn roots(&self) -> &[PathBuf] {
        self.holder.roots()
    }

    /// What the program logged for TensorBoard.
    pub(crate) fn logs(&self) -> Arc<[RunLog]> {
        self.holder.logs()
    }

    /// The profiles of the hosts, with what is computed about them.
    pub(crate) fn each_host(&self) -> impl Iterator<Item = (&HostProfile, &Host)> {
        self.profile().hosts.iter().zip(&self.hosts)
    }

    /// Number of tracks of all hosts.
    pub(crate) fn tracks(&self) -> usize {
        self.tracks.len()
    }

    /// A track by its number among those of all hosts.
    pub(crate) fn place(&self, track: u32) -> Option<Place<'_>> {
        let &(host, local) = self.tracks.get(track as usize)?;
        let loaded = self.profile().hosts.get(host as usize)?;
        let about = self.hosts.get(host as usize)?;
        Some(Place {
            loaded,
            host: about,
            number: host as usize,
            track: loaded.trace.tracks().get(local as usize)?,
        })
    }

    /// The event with this id: its track's number, and its place on it.
    pub(crate) fn event(&self, id: i64) -> Option<(u32, usize)> {
        let track = u32::try_from(id >> 32).ok()?;
        let index = (id & 0xffff_ffff) as usize;
        (index < self.place(track)?.track.len()).then_some((track, index))
    }

    /// The rows of a table, computed on first use.
    pub(crate) fn sheet(
        &self,
        table: usize,
        make: impl FnOnce(&World) -> Box<dyn Rows>,
    ) -> Option<&dyn Rows> {
        let kept = self.sheets.get(table)?;
        Some(kept.get_or_init(|| self.computed(|| make(self))).as_ref())
    }

    /// The rows of a table in the order of a column, computed on first use.
    pub(crate) fn order(&self, table: usize, column: usize, rows: &dyn Rows) -> Arc<Vec<u32>> {
        let orders = || self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = orders().get(&(table, column)) {
            return known.clone();
        }
        let mut order: Vec<u32> = (0..u32::try_from(rows.len()).unwrap_or(u32::MAX)).collect();
        let cell = |row: u32| rows.cell(self, row as usize, column);
        self.computed(|| order.sort_by(|&a, &b| cell(a).order(&cell(b))));
        let order = Arc::new(order);
        orders().insert((table, column), order.clone());
        order
    }

    /// Runs an analysis, and adds its time to what does not count for the query.
    pub(crate) fn computed<T>(&self, work: impl FnOnce() -> T) -> T {
        let (start, before) = (Instant::now(), self.computing());
        let made = work();
        // What the work itself ran in here is already counted.
        let within = self.computing().saturating_sub(before);
        let took = start.elapsed().saturating_sub(within);
        self.computing.fetch_add(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
        made
    }

    /// Time spent on analyses so far.
    pub(crate) fn computing(&self) -> Duration {
        Duration::from_nanos(self.computing.load(Ordering::Relaxed))
    }

    /// Steps and meanings of all hosts.
    pub(crate) fn looked(&self) -> Vec<&Looked> {
        self.computed(|| {
            let both: Vec<(&HostProfile, &Host)> = self.each_host().collect();
            both.into_par_iter()
                .map(|(loaded, host)| host.looked.get_or_init(|| Looked::of(loaded)))
                .collect()
        })
    }

    /// Steps and meanings of one host.
    pub(crate) fn looked_at(&self, place: &Place<'_>) -> &Looked {
        match self.hosts.get(place.number).and_then(|host| host.looked.get()) {
            Some(looked) => looked,
            None => self.looked().get(place.number).copied().unwrap_or(&NOTHING),
        }
    }

    /// The ranks of all hosts that exchange data, on one clock.
    pub(crate) fn ranks(&self) -> &Aligned {
        self.ranks.get_or_init(|| {
            self.computed(|| {
                let hosts = self.profile().hosts.par_iter();
                let partials: Vec<CollectivesPartial> =
                    hosts.map(|loaded| CollectivesPartial::of(&loaded.context())).collect();
                let mut all = CollectivesPartial::default();
                partials.into_iter().for_each(|one| all.merge(one));
                all.align()
            })
        })
    }

    /// How each host's clock has to move; empty if there is one clock.
    pub(crate) fn clocks(&self) -> &[Option<HostMove>] {
        self.clocks.get_or_init(|| {
            let hosts = &self.profile().hosts;
            if hosts.len() < 2 {
                return Vec::new();
            }
            let shifts: Vec<Dur> = self.hosts.iter().map(|host| Dur::from_ps(host.shift_ps)).collect();
            let clocks = self.ranks().clocks.as_ref();
            clocks.map_or_else(Vec::new, |clocks| {
                moves(hosts.iter().map(|loaded| loaded.host.as_str()), &shifts, clocks)
            })
        })
    }

    /// Which call launched which work, by host.
    pub(crate) fn launches(&self, number: usize) -> &[Launch] {
        let Some((loaded, host)) = self.each_host().nth(number) else { return &[] };
        let make = || self.computed(|| Launches::of(&loaded.trace, &Vocabulary::of(&loaded.trace)).all);
        host.launches.get_or_init(make)
    }

    /// The events of a host by kind, if they are known.
    pub(crate) fn known_postings(&self, number: usize) -> Option<&Postings> {
        self.hosts.get(number)?.postings.get()
    }

    /// The events of a host by kind.
    pub(crate) fn postings(&self, number: usize) -> Option<&Postings> {
        let (loaded, host) = self.each_host().nth(number)?;
        Some(host.postings.get_or_init(|| self.computed(|| Postings::of(&loaded.trace))))
    }

    /// The parents and own times of a track's events.
    pub(crate) fn family(&self, place: &Place<'_>) -> Option<&Family> {
        let kept = self.hosts.get(place.number)?.families.get(place.track.id.index())?;
        Some(kept.get_or_init(|| self.computed(|| Family::of(&place.loaded.trace, place.track))))
    }

    /// The kinds with this name.
    pub(crate) fn kinds_named(&self, number: usize, name: &str) -> &[(StrId, KindId)] {
        let Some((loaded, host)) = self.each_host().nth(number) else { return &[] };
        let trace = &loaded.trace;
        let names = host.names.get_or_init(|| {
            let mut all: Vec<(StrId, KindId)> =
                (0..).zip(trace.kinds()).map(|(at, kind)| (kind.name, KindId::from_index(at))).collect();
            all.sort_unstable();
            all
        });
        let Some(wanted) = trace.strings().find(name) else { return &[] };
        let from = names.partition_point(|&(name, _)| name < wanted);
        let to = names.partition_point(|&(name, _)| name <= wanted);
        names.get(from..to).unwrap_or_default()
    }

    /// The id of an event of a host.
    pub(crate) fn id_of(&self, number: usize, event: EventId) -> i64 {
        let first = self.hosts.get(number).map_or(0, |host| host.first_track);
        id(first.saturating_add(event.track.0), event.index as usize)
    }
}

/// The id of an event.
pub(crate) fn id(track: u32, index: usize) -> i64 {
    (i64::from(track) << 32) | (index as i64 & 0xffff_ffff)
}

/// A track, where it is, and whose it is.
#[derive(Copy, Clone)]
pub(crate) struct Place<'w> {
    pub(crate) loaded: &'w HostProfile,
    pub(crate) host: &'w Host,
    /// Of the host.
    pub(crate) number: usize,
    pub(crate) track: &'w Track,
}

impl<'w> Place<'w> {
    pub(crate) fn trace(&self) -> &'w Trace {
        &self.loaded.trace
    }

    pub(crate) fn id(&self) -> TrackId {
        self.track.id
    }
}

/// A time of the session in whole nanoseconds.
pub(crate) fn ns(ps: i64) -> i64 {
    ps.div_euclid(1_000)
}

/// A length in nanoseconds, rounded.
pub(crate) fn ns_of_length(ps: i64) -> i64 {
    ps.saturating_add(500).div_euclid(1_000)
}
