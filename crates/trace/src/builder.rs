//! Builds a trace. Readers push events in file order; [`TraceBuilder::finish`] sorts what is not sorted and
//! freezes the result.

use std::sync::OnceLock;

use hashbrown::HashMap;
use rayon::prelude::*;
use rustc_hash::FxBuildHasher;

use crate::args::{ArgArena, ArgRef, ArgSource, Datum};
use crate::columns::EventColumns;
use crate::device::{Device, Environment};
use crate::flow::{FlowDirection, FlowPoint};
use crate::ids::{ArgSourceId, DeviceId, KindId, ProcessId, StrId, TrackId};
use crate::kind::Kind;
use crate::memory::MemoryLog;
use crate::note::{Note, NoteKind};
use crate::strings::StringTableBuilder;
use crate::time::{Clock, Dur, Span, Time};
use crate::trace::{Process, ProcessKind, Trace};
use crate::track::{CounterSamples, Track, TrackKind};

/// Different notes that are kept one by one. A damaged file may name something else in each of its events.
pub(crate) const MOST_NOTES: usize = 2_000;
/// What notes beyond that are about.
const OTHER_NOTES: &str = "others";

struct TrackDraft {
    process: ProcessId,
    name: StrId,
    kind: TrackKind,
    number: i64,
    arg_source: ArgSourceId,
    columns: EventColumns,
    samples: CounterSamples,
}

/// A trace under construction.
pub struct TraceBuilder {
    /// Strings; intern names and keys here.
    pub strings: StringTableBuilder,
    /// The arena for readers without bytes of their own to point to. Its records are positions for tracks whose
    /// source is [`TraceBuilder::ARENA`].
    pub arena: ArgArena,
    /// What is known about the environment of the run.
    pub environment: Environment,
    /// How the trace's time relates to wall-clock time.
    pub clock: Clock,
    /// Blocks of memory, if the file records them as such.
    pub memory: Option<Box<MemoryLog>>,
    kinds: Vec<Kind>,
    kind_lookup: HashMap<Kind, KindId, FxBuildHasher>,
    processes: Vec<Process>,
    tracks: Vec<TrackDraft>,
    flows: Vec<FlowPoint>,
    devices: Vec<Device>,
    notes: Vec<Note>,
    /// Places of notes by kind and detail.
    note_places: HashMap<(NoteKind, String), usize, FxBuildHasher>,
    arg_sources: Vec<Box<dyn ArgSource>>,
    attachments: Vec<(StrId, ArgRef)>,
}

impl Default for TraceBuilder {
    fn default() -> Self {
        Self::new()
    }
}

impl TraceBuilder {
    /// The source of tracks whose arguments are in [`TraceBuilder::arena`].
    pub const ARENA: ArgSourceId = ArgSourceId(0);

    /// An empty trace.
    pub fn new() -> Self {
        TraceBuilder {
            strings: StringTableBuilder::new(),
            arena: ArgArena::new(),
            environment: Environment::default(),
            clock: Clock::default(),
            memory: None,
            kinds: Vec::new(),
            kind_lookup: HashMap::default(),
            processes: Vec::new(),
            tracks: Vec::new(),
            flows: Vec::new(),
            devices: Vec::new(),
            notes: Vec::new(),
            note_places: HashMap::default(),
            // The arena takes this place at the end.
            arg_sources: vec![Box::new(ArgArena::new())],
            attachments: Vec::new(),
        }
    }

    /// Continues a finished trace, to add what another file knows about it; all ids stay. New events of a track have no
    /// arguments of their own, and [`TraceBuilder::arena`] is for new tracks of a trace that has none.
    pub fn reopen(trace: Trace) -> Self {
        let kind_lookup =
            trace.kinds.iter().enumerate().map(|(index, kind)| (*kind, KindId::from_index(index))).collect();
        let drafts = trace.tracks.into_iter().map(|track| TrackDraft {
            process: track.process,
            name: track.name,
            kind: track.kind,
            number: track.number,
            arg_source: track.arg_source,
            columns: track.columns,
            samples: track.samples,
        });
        let note_places = trace.notes.iter().enumerate();
        TraceBuilder {
            strings: StringTableBuilder::of(trace.strings),
            arena: ArgArena::new(),
            environment: trace.environment,
            clock: trace.clock,
            memory: trace.memory,
            kinds: trace.kinds,
            kind_lookup,
            processes: trace.processes,
            tracks: drafts.collect(),
            flows: trace.flows,
            devices: trace.devices,
            note_places: note_places.map(|(at, note)| ((note.kind, note.detail.clone()), at)).collect(),
            notes: trace.notes,
            arg_sources: trace.arg_sources,
            attachments: trace.attachments,
        }
    }

    /// The id of a kind, new or known.
    pub fn kind(&mut self, kind: Kind) -> KindId {
        *self.kind_lookup.entry(kind).or_insert_with(|| {
            self.kinds.push(kind);
            KindId::from_index(self.kinds.len() - 1)
        })
    }

    /// What a kind is.
    pub fn kind_of(&self, id: KindId) -> Kind {
        self.kinds[id.index()]
    }

    /// Adds a process.
    pub fn process(&mut self, name: StrId, kind: ProcessKind, number: i64) -> ProcessId {
        let id = ProcessId::from_index(self.processes.len());
        self.processes.push(Process { id, name, kind, number, device: None });
        id
    }

    /// An existing process, to correct what was learnt about it later.
    pub fn process_mut(&mut self, id: ProcessId) -> &mut Process {
        &mut self.processes[id.index()]
    }

    /// Adds a track whose arguments, if any, are in `arg_source`.
    pub fn track(
        &mut self,
        process: ProcessId,
        name: StrId,
        kind: TrackKind,
        number: i64,
        arg_source: ArgSourceId,
    ) -> TrackId {
        let id = TrackId::from_index(self.tracks.len());
        let columns = EventColumns::new(0);
        self.tracks.push(TrackDraft {
            process,
            name,
            kind,
            number,
            arg_source,
            columns,
            samples: CounterSamples::default(),
        });
        id
    }

    /// Sets a track's name and kind, if they are only known after its events.
    pub fn describe_track(&mut self, id: TrackId, name: StrId, kind: TrackKind) {
        let track = &mut self.tracks[id.index()];
        (track.name, track.kind) = (name, kind);
    }

    /// Moves a track to another process, if that is only known after its events.
    pub fn move_track(&mut self, id: TrackId, process: ProcessId) {
        self.tracks[id.index()].process = process;
    }

    /// Adds an event to a track. A negative duration counts as zero.
    #[inline]
    pub fn event(&mut self, track: TrackId, start: Time, dur: Dur, kind: KindId, args: Option<u64>) {
        self.tracks[track.index()].columns.push(start, dur, kind, args);
    }

    /// Adds many events to a track.
    pub fn events(&mut self, track: TrackId, columns: EventColumns) {
        self.tracks[track.index()].columns.append(columns);
    }

    /// Adds a counter's sample to a track. Values that are not finite are dropped: a gap is not a 0.
    pub fn sample(&mut self, track: TrackId, time: Time, value: f64) {
        if value.is_finite() {
            let samples = &mut self.tracks[track.index()].samples;
            samples.times.push(time);
            samples.values.push(value);
        }
    }

    /// Adds one end of an arrow.
    pub fn flow(&mut self, time: Time, track: TrackId, direction: FlowDirection, category: StrId, id: u64) {
        self.flows.push(FlowPoint { time, track, direction, category, id });
    }

    /// Adds a device and links it to the process that holds its tracks.
    pub fn device(&mut self, device: Device) -> DeviceId {
        let id = DeviceId::from_index(self.devices.len());
        if let Some(process) = device.process {
            self.processes[process.index()].device = Some(id);
        }
        self.devices.push(device);
        id
    }

    /// Notes an oddity. Equal ones are counted, not listed; beyond [`MOST_NOTES`] different ones, the rest of a kind is
    /// counted together.
    pub fn note(&mut self, kind: NoteKind, detail: &str, count: u64, offset: Option<u64>) {
        if count == 0 {
            return;
        }
        let known = self.note_places.contains_key(&(kind, detail.to_owned()));
        let detail = if known || self.notes.len() < MOST_NOTES { detail } else { OTHER_NOTES };
        let place = *self.note_places.entry((kind, detail.to_owned())).or_insert(self.notes.len());
        match self.notes.get_mut(place) {
            Some(note) => {
                note.count = note.count.saturating_add(count);
                note.offset = note.offset.or(offset);
            }
            None => self.notes.push(Note { kind, detail: detail.to_owned(), count, offset }),
        }
    }

    /// Adds a source of arguments.
    pub fn arg_source(&mut self, source: Box<dyn ArgSource>) -> ArgSourceId {
        self.arg_sources.push(source);
        ArgSourceId::from_index(self.arg_sources.len() - 1)
    }

    /// Keeps a named record that belongs to no event.
    pub fn attach(&mut self, name: StrId, at: ArgRef) {
        self.attachments.push((name, at));
    }

    /// A property with a text value.
    pub fn text_property(&mut self, key: &str, value: &str) -> crate::Property {
        let value = Datum::Str(self.strings.intern(value));
        crate::Property { key: self.strings.intern(key), value }
    }

    /// Moves the origin back to the first event, sample or flow point if any lies before it, and returns by how much.
    /// For formats whose files are not in the order of time, so that no time shown to people is negative.
    pub fn start_at_first(&mut self) -> Dur {
        let events =
            self.tracks.iter().flat_map(|track| track.columns.start.iter().chain(&track.samples.times));
        let first =
            events.copied().chain(self.flows.iter().map(|flow| flow.time)).min().unwrap_or(Time::ZERO);
        let by = Time::ZERO - first;
        if by <= Dur::ZERO {
            return Dur::ZERO;
        }
        for track in &mut self.tracks {
            let times = track.columns.start.iter_mut().chain(&mut track.samples.times);
            times.for_each(|time| *time = *time + by);
        }
        self.flows.iter_mut().for_each(|flow| flow.time = flow.time + by);
        by
    }

    /// Sorts what is not sorted and freezes the trace.
    pub fn finish(mut self) -> Trace {
        let resolution = self.clock.resolution;
        let tracks: Vec<Track> = std::mem::take(&mut self.tracks)
            .into_par_iter()
            .enumerate()
            .map(|(index, draft)| finish_track(TrackId::from_index(index), draft, resolution))
            .collect();
        if !self.arena.is_empty() {
            self.arena.shrink();
            self.arg_sources[0] = Box::new(self.arena);
        }
        self.flows.sort_by_key(|flow| (flow.category, flow.id, flow.time));
        self.flows.shrink_to_fit();
        self.notes.sort_by(|a, b| (a.kind, &a.detail).cmp(&(b.kind, &b.detail)));
        let span = tracks.iter().filter_map(Track::span).reduce(Span::hull);
        let events = tracks.iter().map(|track| track.len() as u64).sum();
        Trace {
            strings: self.strings.finish(),
            kinds: self.kinds,
            processes: self.processes,
            tracks,
            flows: self.flows,
            devices: self.devices,
            environment: self.environment,
            notes: self.notes,
            clock: self.clock,
            arg_sources: self.arg_sources,
            attachments: self.attachments,
            memory: self.memory,
            span,
            events,
        }
    }
}

fn finish_track(id: TrackId, draft: TrackDraft, resolution: Dur) -> Track {
    let TrackDraft { process, name, kind, number, arg_source, mut columns, mut samples } = draft;
    let blocks = columns.sort();
    let first = columns.start.first().copied();
    let covered = first.zip(blocks.iter().map(|block| block.latest_end).max());
    let covered = covered.map(|(start, end)| Span::new(start, end));
    columns.shrink();
    sort_samples(&mut samples);
    let sampled = samples.times.first().zip(samples.times.last()).map(|(&a, &b)| Span::new(a, b));
    let span = [covered, sampled].into_iter().flatten().reduce(Span::hull);
    Track {
        id,
        process,
        name,
        kind,
        number,
        samples,
        arg_source,
        blocks,
        columns,
        resolution,
        span,
        nesting: OnceLock::new(),
    }
}

fn sort_samples(samples: &mut CounterSamples) {
    if !samples.times.is_sorted() {
        let mut both: Vec<_> = samples.times.iter().copied().zip(samples.values.iter().copied()).collect();
        both.sort_by_key(|&(time, _)| time);
        (samples.times, samples.values) = both.into_iter().unzip();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_counted_and_their_number_is_bounded() {
        let mut builder = TraceBuilder::new();
        (0..100_000).for_each(|i| builder.note(NoteKind::Unknown, &format!("phase {i}"), 1, Some(i)));
        (0..10).for_each(|_| builder.note(NoteKind::Unknown, "phase 7", 1, None));
        builder.note(NoteKind::Unpaired, "", 3, None);
        let trace = builder.finish();
        assert_eq!(trace.notes().iter().map(|note| note.count).sum::<u64>(), 100_013);
        assert!(trace.notes().len() <= MOST_NOTES + 2, "{}", trace.notes().len());
        let seventh = trace.notes().iter().find(|note| note.detail == "phase 7").unwrap();
        assert_eq!((seventh.count, seventh.offset), (11, Some(7)));
    }
}
