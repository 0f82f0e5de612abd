//! A walk over events: by track and time, by kind, or over one event or the children of one.

use std::sync::Arc;

use rusqlite::Result;
use rusqlite::types::ValueRef;
use rusqlite::vtab::Filters;
use stepscope_export::args_json;
use stepscope_trace::{Form, KindId, ProcessKind, Time};

use super::column;
use super::kinds::{Condition, Wanted};
use super::plan::by;
use crate::cell::Cell;
use crate::postings::{Postings, Run};
use crate::recording::{Place, Recording, id, ns, ns_of_length};
use crate::running::{RunningQuery, Work};
use crate::vtab::Walk;

/// How the walk goes on.
#[derive(Debug)]
enum Way {
    /// No further.
    Ended,
    /// Along tracks, in the order of their numbers, up to this one.
    Tracks { last: u32 },
    /// Along the events of kinds.
    Kinds(ByKind),
}

/// A walk along the events of kinds.
#[derive(Debug)]
struct ByKind {
    /// What is still to be walked, the next last: events of one kind on one track, with their host.
    runs: Vec<(usize, Run)>,
    postings: Arc<Postings>,
    kind: KindId,
    at: usize,
    end: usize,
}

/// A walk.
pub(crate) struct EventWalk {
    query: Arc<RunningQuery>,
    way: Way,
    /// The event: its track's number, its place on it, and where the walk leaves the track.
    track: u32,
    index: usize,
    end: usize,
    /// The wanted times of the session, in picoseconds.
    from_ps: i64,
    until_ps: i64,
    step: Option<i64>,
    conditions: Vec<Condition>,
    /// What the conditions mean for the host that the walk is at.
    wanted: Option<(usize, Wanted)>,
    /// Times that the walk was started, as a join does for each row.
    started: u32,
}

impl EventWalk {
    pub(super) fn new(query: Arc<RunningQuery>) -> Self {
        EventWalk {
            query,
            way: Way::Ended,
            track: 0,
            index: 0,
            end: 0,
            from_ps: i64::MIN,
            until_ps: i64::MAX,
            step: None,
            conditions: Vec::new(),
            wanted: None,
            started: 0,
        }
    }

    fn recording(&self) -> &Recording {
        &self.query.recording
    }

    /// Nothing fits.
    fn stop(&mut self) {
        (self.way, self.index, self.end) = (Way::Ended, 0, 0);
    }

    /// Starts at the first of some tracks.
    fn along(&mut self, first: u32, last: u32) -> Result<()> {
        self.way = Way::Tracks { last };
        self.track = first;
        self.enter()?;
        self.settle()
    }

    /// Takes the wanted part of the track.
    fn enter(&mut self) -> Result<()> {
        let query = self.query.clone();
        let Some(place) = query.recording.place(self.track) else {
            self.stop();
            return Ok(());
        };
        let local = |ps: i64| Time::from_ps(ps.saturating_sub(place.host.shift_ps));
        let track = place.track;
        let (mut from, mut until) = (0, track.len());
        if self.from_ps > i64::MIN {
            from = track.first_from(local(self.from_ps));
        }
        if self.until_ps < i64::MAX {
            until = track.first_from(local(self.until_ps));
        }
        if let Some(number) = self.step {
            // Equal numbers may occur twice, in two epochs: their hull is walked, and SQLite checks each row.
            let spans = query.meaning_of(&place)?.step_spans(track, number);
            let hull = spans.reduce(|a, b| a.hull(b));
            let (start, end) =
                hull.map_or((0, 0), |span| (track.first_from(span.start), track.first_from(span.end)));
            (from, until) = (from.max(start), until.min(end));
        }
        (self.index, self.end) = (from, until.max(from));
        if !self.conditions.is_empty() && self.wanted.as_ref().is_none_or(|(host, _)| *host != place.number) {
            self.wanted = Some((place.number, Wanted::of(&query, place.number, &self.conditions)?));
        }
        Ok(())
    }

    /// Goes on to the next event that fits, if this one does not.
    fn settle(&mut self) -> Result<()> {
        loop {
            if self.index < self.end {
                let Some((_, wanted)) = &self.wanted else { return Ok(()) };
                if let Some(found) = self.first_wanted(wanted) {
                    self.index = found;
                    return Ok(());
                }
            }
            match self.way {
                Way::Tracks { last } if self.track < last => {
                    self.track += 1;
                    self.enter()?;
                }
                _ => {
                    self.stop();
                    return Ok(());
                }
            }
        }
    }

    fn first_wanted(&self, wanted: &Wanted) -> Option<usize> {
        let place = self.recording().place(self.track)?;
        let fits = wanted.on(place.trace(), place.track);
        let kinds = place.track.kinds().get(self.index..self.end)?;
        let found = kinds.iter().position(|kind| fits.get(kind.index()).copied().unwrap_or(false))?;
        Some(self.index + found)
    }

    /// All events, kind by kind, in the order of a text that kinds have.
    fn ordered(&mut self, letter: char) -> Result<()> {
        let query = self.query.clone();
        let meaning = if letter == by::ORDERED_BY_OP { query.meanings()? } else { Vec::new() };
        let mut all: Vec<(Option<&str>, usize, KindId)> = Vec::new();
        for (number, (loaded, _)) in query.recording.each_host().enumerate() {
            let trace = &loaded.trace;
            for kind in (0..trace.kinds().len()).map(KindId::from_index) {
                let text = match letter {
                    by::ORDERED_BY_NAME => Some(trace.kind_name(kind)),
                    by::ORDERED_BY_CATEGORY => {
                        Some(trace.str(trace.kind(kind).category)).filter(|category| !category.is_empty())
                    }
                    _ => meaning.get(number).and_then(|meaning| meaning.op(kind)),
                };
                all.push((text, number, kind));
            }
        }
        all.sort_unstable();
        self.by_kinds(all.into_iter().map(|(_, host, kind)| (host, kind)))
    }

    /// The events of some kinds, each with its host.
    fn by_kinds(&mut self, kinds: impl Iterator<Item = (usize, KindId)>) -> Result<()> {
        let query = self.query.clone();
        let mut runs = Vec::new();
        for (host, kind) in kinds {
            let found = query.postings(host)?.map_or(&[][..], |postings| postings.runs(kind));
            runs.extend(found.iter().map(|&run| (host, run)));
        }
        runs.reverse();
        self.follow(runs)
    }

    /// Goes on with the next run.
    #[cold]
    fn follow(&mut self, mut runs: Vec<(usize, Run)>) -> Result<()> {
        let Some((host, run)) = runs.pop() else {
            self.stop();
            return Ok(());
        };
        let query = self.query.clone();
        let (Some(about), Some(postings)) = (query.recording.hosts.get(host), query.postings(host)?) else {
            self.stop();
            return Ok(());
        };
        // A run has at least one event; its walk ends with the run.
        self.track = about.first_track.saturating_add(run.track);
        self.index = postings.event(run.first).map_or(0, |index| index as usize);
        self.end = usize::MAX;
        let (postings, kind) = (postings.clone(), run.kind);
        self.way = Way::Kinds(ByKind { runs, postings, kind, at: run.first, end: run.first + run.len });
        Ok(())
    }

    /// One event.
    fn only(&mut self, event: i64) {
        self.way = Way::Ended;
        match self.recording().event(event) {
            Some((track, index)) => (self.track, self.index, self.end) = (track, index, index + 1),
            None => self.stop(),
        }
    }

    /// Where the children of an event are: behind it, until it ends.
    fn inside(&mut self, parent: i64) -> Result<()> {
        let query = self.query.clone();
        self.stop();
        let Some((track, index)) = query.recording.event(parent) else { return Ok(()) };
        let Some(place) = query.recording.place(track) else { return Ok(()) };
        (self.track, self.index) = (track, index + 1);
        self.end = place.track.first_from(place.track.end(index)).max(index + 1);
        self.settle()
    }

    /// Takes the values of a plan.
    fn take(&mut self, plan: &str, values: &Filters<'_>) -> Taken {
        let mut taken = Taken::default();
        for (letter, value) in plan.chars().zip(values.iter()) {
            let number = whole(&value);
            match (letter, &value) {
                // Nothing equals NULL, and nothing comes before or after it.
                (_, ValueRef::Null) => taken.nothing = true,
                // A whole number equals nothing else.
                (by::ID | by::PARENT | by::TRACK | by::STEP, _) if number.is_none() => taken.nothing = true,
                (by::ID, _) => taken.id = number,
                (by::PARENT, _) => taken.parent = number,
                (by::TRACK, _) => taken.track = number,
                (by::STEP, _) => self.step = number,
                (by::FROM, _) => self.from_ps = self.from_ps.max(edge_ps(&value, 0).unwrap_or(i64::MIN)),
                // `ts` is rounded down: an event starts at most a nanosecond after it.
                (by::UNTIL, _) => self.until_ps = self.until_ps.min(edge_ps(&value, 2).unwrap_or(i64::MAX)),
                ('=', _) => {
                    self.from_ps = self.from_ps.max(edge_ps(&value, 0).unwrap_or(i64::MIN));
                    self.until_ps = self.until_ps.min(edge_ps(&value, 2).unwrap_or(i64::MAX));
                }
                (_, ValueRef::Text(text)) => {
                    let Ok(text) = std::str::from_utf8(text) else { continue };
                    match letter {
                        by::HOST => taken.host = Some(text.to_owned()),
                        _ => self.conditions.push(Condition { letter, text: text.to_owned() }),
                    }
                }
                _ => {}
            }
        }
        taken
    }

    /// The kinds with a name, if the walk may follow them: a join that asks for name after name gets an index.
    fn kinds_to_follow(&self) -> Option<Vec<(usize, KindId)>> {
        let [Condition { letter: by::NAME, text }] = &self.conditions[..] else { return None };
        if self.from_ps > i64::MIN || self.until_ps < i64::MAX || self.step.is_some() {
            return None;
        }
        let recording = self.recording();
        if !recording.has(Work::Postings) && self.started < 3 {
            return None;
        }
        let kinds = |number| recording.kinds_named(number, text).iter().map(move |&(_, kind)| (number, kind));
        Some((0..recording.hosts.len()).flat_map(kinds).collect())
    }
}

/// What a plan asks besides times and kinds.
#[derive(Default)]
struct Taken {
    nothing: bool,
    id: Option<i64>,
    parent: Option<i64>,
    track: Option<i64>,
    host: Option<String>,
}

/// A whole number, also if it is written as text, as SQLite reads it for a column of whole numbers.
pub(crate) fn whole(value: &ValueRef<'_>) -> Option<i64> {
    let exact = |value: f64| (value.fract() == 0.0 && value.abs() < 9e15).then_some(value as i64);
    match *value {
        ValueRef::Integer(value) => Some(value),
        ValueRef::Real(value) => exact(value),
        ValueRef::Text(text) => {
            let text = std::str::from_utf8(text).ok()?.trim();
            text.parse().ok().or_else(|| text.parse().ok().and_then(exact))
        }
        _ => None,
    }
}

/// A time in picoseconds, so many nanoseconds later; `None` for what is no number.
fn edge_ps(value: &ValueRef<'_>, later_ns: i64) -> Option<i64> {
    let ns = match *value {
        ValueRef::Integer(value) => value,
        ValueRef::Real(value) if value.is_finite() => value.floor() as i64,
        _ => return None,
    };
    Some(ns.saturating_add(later_ns).saturating_mul(1_000))
}

impl Walk for EventWalk {
    fn filter(&mut self, plan: &str, values: &Filters<'_>) -> Result<()> {
        self.started = self.started.saturating_add(1);
        (self.from_ps, self.until_ps, self.step) = (i64::MIN, i64::MAX, None);
        let before = std::mem::take(&mut self.conditions);
        let taken = self.take(plan, values);
        if self.conditions != before || self.conditions.is_empty() {
            self.wanted = None;
        }
        let ordered = plan.chars().next_back().filter(|letter| letter.is_ascii_uppercase());
        let last = u32::try_from(self.recording().tracks()).unwrap_or(u32::MAX).saturating_sub(1);
        if taken.nothing {
            self.stop();
        } else if let Some(event) = taken.id {
            self.only(event);
        } else if let Some(parent) = taken.parent {
            self.conditions.clear();
            self.wanted = None;
            return self.inside(parent);
        } else if let Some(track) = taken.track {
            match u32::try_from(track).ok().filter(|&track| self.recording().place(track).is_some()) {
                Some(track) => return self.along(track, track),
                None => self.stop(),
            }
        } else if let Some(letter) = ordered {
            return self.ordered(letter);
        } else if let Some(host) = taken.host {
            return self.along_host(&host, last);
        } else if let Some(kinds) = self.kinds_to_follow() {
            return self.by_kinds(kinds.into_iter());
        } else {
            return self.along(0, last);
        }
        Ok(())
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        if let Way::Kinds(way) = &mut self.way {
            way.at += 1;
            match way.postings.event(way.at) {
                Some(index) if way.at < way.end => self.index = index as usize,
                _ => {
                    let runs = std::mem::take(&mut way.runs);
                    return self.follow(runs);
                }
            }
            return Ok(());
        }
        self.index += 1;
        if self.index >= self.end || self.wanted.is_some() { self.settle() } else { Ok(()) }
    }

    #[inline]
    fn eof(&self) -> bool {
        self.index >= self.end
    }

    #[inline]
    fn cell<'w>(&self, query: &'w RunningQuery, column: usize) -> Result<Cell<'w>> {
        match query.recording.place(self.track).filter(|place| self.index < place.track.len()) {
            Some(place) => self.cell_at(query, &place, column),
            None => Ok(Cell::Null),
        }
    }

    fn rowid(&self) -> i64 {
        id(self.track, self.index)
    }
}

impl EventWalk {
    /// Along the tracks of the hosts with this name.
    fn along_host(&mut self, name: &str, last: u32) -> Result<()> {
        let recording = self.recording();
        let named = || recording.each_host().enumerate().filter(|(_, (loaded, _))| loaded.host == name);
        let first = named().next().map(|(_, (_, host))| host.first_track);
        let end = named()
            .last()
            .and_then(|(number, _)| recording.hosts.get(number + 1))
            .map(|host| host.first_track);
        match first {
            Some(first) if end != Some(first) => {
                self.along(first, end.map_or(last, |end| end.saturating_sub(1)))
            }
            _ => {
                self.stop();
                Ok(())
            }
        }
    }

    fn cell_at<'w>(&self, query: &'w RunningQuery, place: &Place<'w>, column: usize) -> Result<Cell<'w>> {
        let (track, index, trace) = (place.track, self.index, place.trace());
        // A walk along a kind knows it, and need not look at the event.
        let kind = || match &self.way {
            Way::Kinds(way) => way.kind,
            _ => track.kind_of(index),
        };
        let session_ps = |at: Time| at.ps().saturating_add(place.host.shift_ps);
        let on_device = || trace.process(track.process).kind == ProcessKind::Device;
        Ok(match column {
            column::ID => Cell::Int(id(self.track, index)),
            column::TS => Cell::Int(ns(session_ps(track.start(index)))),
            column::DUR => Cell::Int(ns_of_length(track.dur(index).ps())),
            column::NAME => Cell::from(trace.kind_name(kind())),
            column::CATEGORY => Cell::known(trace.str(trace.kind(kind()).category)),
            column::TRACK => Cell::from(self.track),
            column::DEPTH => Cell::from(track.nesting().depth(index)),
            column::PARENT => {
                let parent = query.family(self.track)?.and_then(|family| family.parent(index));
                parent.map_or(Cell::Null, |parent| Cell::Int(id(self.track, parent)))
            }
            column::STEP => Cell::from(query.meaning_of(place)?.step_at(track, track.start(index))),
            column::STATE => {
                Cell::from(query.meaning_of(place)?.state_of(kind(), on_device()).map(|state| state.key()))
            }
            column::SELF => {
                Cell::from(query.family(self.track)?.map(|family| ns_of_length(family.own_ps(index))))
            }
            column::OP => Cell::from(query.meaning_of(place)?.op(kind())),
            column::HOST => Cell::from(place.loaded.host.as_str()),
            column::ARGS => Cell::from(args_json(trace, trace.args_at(track, index))),
            column::TS_PS => Cell::Int(session_ps(track.start(index))),
            column::DUR_PS => Cell::Int(track.dur(index).ps()),
            column::NAME_ID => Cell::from((place.host.first_string + trace.kind(kind()).name.index()) * 2),
            column::FORM => Cell::from(match trace.kind(kind()).form {
                Form::Slice => "slice",
                Form::Instant => "instant",
                Form::Aggregate => "aggregate",
            }),
            column::ROLE => Cell::from(query.meaning_of(place)?.role_of(kind(), on_device())),
            _ => Cell::Null,
        })
    }
}
