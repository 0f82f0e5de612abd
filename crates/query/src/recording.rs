//! What the tables read: the open recording, numbers for its tracks and events across hosts, and everything that is
//! computed from it once and kept for later queries.
//!
//! Events stay where they are, in the columns of the trace. An event's id is the number of its track, shifted by 32
//! bits, plus its place on the track, so that the page and a query name the same event the same way.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use rayon::prelude::*;
use rustc_hash::FxHashMap;
use stepscope_analyze::Analysis;
use stepscope_analyze::devices::collectives::{Aligned, CollectivesPartial};
use stepscope_analyze::states::launches::{Launch, Launches};
use stepscope_analyze::vocabulary::Vocabulary;
use stepscope_session::{HostMove, HostProfile, Problem, Profile, event_logs_of, moves};
use stepscope_trace::series::RunLog;
use stepscope_trace::{Dur, EventId, KindId, StrId, Trace, Track, TrackId};

use crate::family::Family;
use crate::meaning::Meaning;
use crate::postings::Postings;
use crate::rows::Rows;
use crate::running::{UnderWay, Work};
use crate::schema::TABLES;

/// What holds the recording: the profile itself, or something that contains it.
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
        first.map_or_else(Vec::new, |loaded| event_logs_of(Path::new(&loaded.path), self.roots())).into()
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
    meaning: OnceLock<Meaning>,
    launches: OnceLock<Vec<Launch>>,
    postings: OnceLock<Arc<Postings>>,
    /// Kinds by name, sorted, so that a name is found without looking at all kinds.
    names: OnceLock<Vec<(StrId, KindId)>>,
}

/// Rows of a table in the order of a column, by table and column.
type Orders = FxHashMap<(usize, usize), Arc<Vec<u32>>>;

/// The recording and everything computed from it.
pub(crate) struct Recording {
    holder: Arc<dyn Holder>,
    pub(crate) hosts: Vec<Host>,
    /// Host and place of each track.
    tracks: Vec<(u32, u32)>,
    pub(crate) events: u64,
    sheets: Vec<OnceLock<Box<dyn Rows>>>,
    orders: Mutex<Orders>,
    ranks: OnceLock<Aligned>,
    clocks: OnceLock<Vec<Option<HostMove>>>,
    pub(crate) under_way: UnderWay,
}

impl Recording {
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
                meaning: OnceLock::new(),
                launches: OnceLock::new(),
                postings: OnceLock::new(),
                names: OnceLock::new(),
            });
            first_process += trace.processes().len();
            first_string += trace.strings().len();
        }
        let events = profile.hosts.iter().map(|loaded| loaded.trace.events()).sum();
        let sheets = TABLES.iter().map(|_| OnceLock::new()).collect();
        let (orders, under_way) = (Mutex::default(), UnderWay::default());
        let (ranks, clocks) = (OnceLock::new(), OnceLock::new());
        Recording { holder, hosts, tracks, events, sheets, orders, ranks, clocks, under_way }
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

    /// Whether something was computed.
    pub(crate) fn has(&self, work: Work) -> bool {
        match work {
            Work::Rows(table) => self.sheets.get(table).is_some_and(|kept| kept.get().is_some()),
            Work::Order(table, column) => self.orders().contains_key(&(table, column)),
            Work::Meanings => self.hosts.iter().all(|host| host.meaning.get().is_some()),
            Work::Postings => self.hosts.iter().all(|host| host.postings.get().is_some()),
            Work::Family(track) => self.known_family(track).is_some(),
        }
    }

    /// Computes something, or waits until another thread has computed it.
    pub(crate) fn compute(&self, work: Work) {
        // What is computed is kept here, so that nobody needs what these return.
        match work {
            Work::Rows(table) => {
                let _ = self.rows(table);
            }
            Work::Order(table, column) => drop(self.order(table, column)),
            Work::Meanings => drop(self.meanings()),
            Work::Postings => {
                let _ = (0..self.hosts.len()).filter_map(|number| self.postings(number)).count();
            }
            Work::Family(track) => {
                let _ = self.family(track);
            }
        }
    }

    /// The rows of a table, computed on first use.
    pub(crate) fn rows(&self, table: usize) -> Option<&dyn Rows> {
        let kept = self.sheets.get(table)?;
        let from = TABLES.get(table).map(|table| table.from).filter(|from| from.is_kept())?;
        Some(kept.get_or_init(|| from.rows(self)).as_ref())
    }

    fn orders(&self) -> MutexGuard<'_, Orders> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The rows of a table in the order of a column, computed on first use.
    pub(crate) fn order(&self, table: usize, column: usize) -> Option<Arc<Vec<u32>>> {
        let known = self.orders().get(&(table, column)).cloned();
        if known.is_some() {
            return known;
        }
        let rows = self.rows(table)?;
        let mut order: Vec<u32> = (0..u32::try_from(rows.len()).unwrap_or(u32::MAX)).collect();
        let cell = |row: u32| rows.cell(self, row as usize, column);
        order.sort_by(|&a, &b| cell(a).order(&cell(b)));
        let order = Arc::new(order);
        self.orders().insert((table, column), order.clone());
        Some(order)
    }

    /// Steps and meanings of all hosts.
    pub(crate) fn meanings(&self) -> Vec<&Meaning> {
        let both: Vec<(&HostProfile, &Host)> = self.each_host().collect();
        both.into_par_iter().map(|(loaded, host)| host.meaning.get_or_init(|| Meaning::of(loaded))).collect()
    }

    /// Steps and meanings of one host, if they are known.
    pub(crate) fn known_meaning(&self, number: usize) -> Option<&Meaning> {
        self.hosts.get(number)?.meaning.get()
    }

    /// The ranks of all hosts that exchange data, on one clock.
    pub(crate) fn ranks(&self) -> &Aligned {
        self.ranks.get_or_init(|| {
            let hosts = self.profile().hosts.par_iter();
            let partials: Vec<CollectivesPartial> =
                hosts.map(|loaded| CollectivesPartial::of(&loaded.context())).collect();
            let mut all = CollectivesPartial::default();
            partials.into_iter().for_each(|one| all.merge(one));
            all.align()
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
        let make = || Launches::of(&loaded.trace, &Vocabulary::of(&loaded.trace)).all;
        host.launches.get_or_init(make)
    }

    /// The events of a host by kind.
    pub(crate) fn postings(&self, number: usize) -> Option<&Arc<Postings>> {
        let (loaded, host) = self.each_host().nth(number)?;
        Some(host.postings.get_or_init(|| Arc::new(Postings::of(&loaded.trace))))
    }

    /// The parents and own times of a track's events.
    pub(crate) fn family(&self, track: u32) -> Option<&Family> {
        let (kept, place) = self.kept_family(track)?;
        Some(kept.get_or_init(|| Family::of(&place.loaded.trace, place.track)))
    }

    /// The parents and own times of a track's events, if they are known.
    pub(crate) fn known_family(&self, track: u32) -> Option<&Family> {
        self.kept_family(track)?.0.get()
    }

    fn kept_family(&self, track: u32) -> Option<(&OnceLock<Family>, Place<'_>)> {
        let place = self.place(track)?;
        Some((place.host.families.get(place.track.id.index())?, place))
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

#[cfg(test)]
pub(crate) mod tests {
    use stepscope_read::Progress;
    use stepscope_session::{SAMPLE_HOST, sample};

    use super::*;

    /// The sample.
    pub(crate) fn recording() -> Arc<Recording> {
        let inputs = vec![(SAMPLE_HOST.to_owned(), Ok(sample()))];
        let profile = Profile::read("sample".to_owned(), Vec::new(), inputs, &Progress::new());
        Arc::new(Recording::new(Arc::new(profile.expect("the sample can be read"))))
    }
}
