//! Builds a trace. Readers push events in file order; [`TraceBuilder::finish`] sorts what is not sorted and
//! freezes the result.
//!
//! A reader that decodes in parallel knows the number of events of a track before it decodes them: it uses
//! [`EventColumns::with_len`], splits them into [`ColumnsChunk`]s and fills these in parallel, so that nothing
//! is copied or stored twice.

use std::cmp::Reverse;
use std::sync::OnceLock;

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;

use crate::args::{ArgArena, ArgRef, ArgSource, Datum};
use crate::device::{Device, Environment};
use crate::durations::DurationColumn;
use crate::flow::{FlowDirection, FlowPoint};
use crate::ids::{ArgSourceId, DeviceId, KindId, ProcessId, StrId, TrackId};
use crate::kind::Kind;
use crate::note::{Note, NoteKind};
use crate::strings::StringTableBuilder;
use crate::time::{Clock, Dur, Span, Time};
use crate::trace::{Process, ProcessKind, Trace};
use crate::track::{CounterSamples, Track, TrackKind};

/// Positions of arguments: four bytes per event while they are within 4 GB of each other, eight after that.
#[derive(Clone, Debug)]
pub(crate) enum ArgColumn {
    Narrow { base: u64, offsets: Vec<u32> },
    Wide(Vec<u64>),
}

const NO_ARGS: u32 = u32::MAX;
const NO_ARGS_WIDE: u64 = u64::MAX;

impl ArgColumn {
    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<u64> {
        match self {
            ArgColumn::Narrow { base, offsets } => {
                let offset = *offsets.get(index)?;
                (offset != NO_ARGS).then(|| base + u64::from(offset))
            }
            ArgColumn::Wide(positions) => positions.get(index).copied().filter(|&at| at != NO_ARGS_WIDE),
        }
    }

    #[inline]
    fn push(&mut self, at: Option<u64>) {
        if let ArgColumn::Narrow { base, offsets } = self {
            let Some(at) = at else { return offsets.push(NO_ARGS) };
            match at.checked_sub(*base).and_then(|offset| u32::try_from(offset).ok()) {
                Some(offset) if offset != NO_ARGS => return offsets.push(offset),
                _ => self.widen(),
            }
        }
        if let ArgColumn::Wide(positions) = self {
            positions.push(at.unwrap_or(NO_ARGS_WIDE));
        }
    }

    fn widen(&mut self) {
        if let ArgColumn::Narrow { base, offsets } = self {
            let wide =
                |&offset: &u32| if offset == NO_ARGS { NO_ARGS_WIDE } else { *base + u64::from(offset) };
            *self = ArgColumn::Wide(offsets.iter().map(wide).collect());
        }
    }

    fn len(&self) -> usize {
        match self {
            ArgColumn::Narrow { offsets, .. } => offsets.len(),
            ArgColumn::Wide(positions) => positions.len(),
        }
    }

    fn permuted(&self, order: &[u32]) -> Self {
        match self {
            ArgColumn::Narrow { base, offsets } => ArgColumn::Narrow {
                base: *base,
                offsets: order.iter().map(|&i| offsets[i as usize]).collect(),
            },
            ArgColumn::Wide(positions) => {
                ArgColumn::Wide(order.iter().map(|&i| positions[i as usize]).collect())
            }
        }
    }

    fn shrink(&mut self) {
        match self {
            ArgColumn::Narrow { offsets, .. } => offsets.shrink_to_fit(),
            ArgColumn::Wide(positions) => positions.shrink_to_fit(),
        }
    }

    fn heap_bytes(&self) -> usize {
        match self {
            ArgColumn::Narrow { offsets, .. } => offsets.capacity() * 4,
            ArgColumn::Wide(positions) => positions.capacity() * 8,
        }
    }
}

/// The events of one track, as columns of equal length.
#[derive(Clone, Debug)]
pub struct EventColumns {
    pub(crate) start: Vec<Time>,
    pub(crate) dur: DurationColumn,
    pub(crate) kind: Vec<KindId>,
    pub(crate) args: ArgColumn,
}

impl EventColumns {
    /// No events; most argument positions will be at or after `args_base`.
    pub fn new(args_base: u64) -> Self {
        EventColumns {
            start: Vec::new(),
            dur: DurationColumn::default(),
            kind: Vec::new(),
            args: ArgColumn::Narrow { base: args_base, offsets: Vec::new() },
        }
    }

    /// `len` events at the origin, to be set through [`EventColumns::chunks`]. All argument positions must be
    /// in `args_base..=args_end`.
    pub fn with_len(len: usize, args_base: u64, args_end: u64) -> Self {
        let narrow = args_end.saturating_sub(args_base) < u64::from(NO_ARGS);
        EventColumns {
            // Zeroed integers come untouched from the system and are wrapped in place for free, so that the
            // memory is first touched by the core that fills it.
            start: vec![0; len].into_iter().map(Time::from_ps).collect(),
            dur: DurationColumn::with_len(len),
            kind: vec![0; len].into_iter().map(KindId).collect(),
            args: if narrow {
                ArgColumn::Narrow { base: args_base, offsets: vec![0; len] }
            } else {
                ArgColumn::Wide(vec![0; len])
            },
        }
    }

    /// Adds an event. A negative duration counts as zero.
    #[inline]
    pub fn push(&mut self, start: Time, dur: Dur, kind: KindId, args: Option<u64>) {
        self.start.push(start);
        self.dur.push(dur);
        self.kind.push(kind);
        self.args.push(args);
    }

    /// Number of events.
    #[inline]
    pub fn len(&self) -> usize {
        self.start.len()
    }

    /// Whether there are no events.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.start.is_empty()
    }

    /// Splits the columns into pieces of these lengths, which can be filled in parallel. Pass the result of
    /// [`ColumnsChunk::finish`] to [`EventColumns::set_long_durations`].
    pub fn chunks(&mut self, lens: &[usize]) -> Vec<ColumnsChunk<'_>> {
        let (mut start, mut dur, mut kind) = (&mut self.start[..], self.dur.packed_mut(), &mut self.kind[..]);
        let mut narrow: &mut [u32] = &mut [];
        let mut wide: &mut [u64] = &mut [];
        let mut base = 0;
        match &mut self.args {
            ArgColumn::Narrow { base: from, offsets } => (base, narrow) = (*from, offsets),
            ArgColumn::Wide(positions) => wide = positions,
        }
        let mut chunks = Vec::with_capacity(lens.len());
        let mut first = 0;
        for &len in lens {
            chunks.push(ColumnsChunk {
                first,
                start: take(&mut start, len),
                dur: take(&mut dur, len),
                kind: take(&mut kind, len),
                narrow: take(&mut narrow, len),
                wide: take(&mut wide, len),
                base,
                long: Vec::new(),
            });
            first += len;
        }
        chunks
    }

    /// Sets the durations that did not fit the chunks' columns, as (position, duration).
    pub fn set_long_durations(&mut self, long: impl IntoIterator<Item = (usize, Dur)>) {
        for (index, dur) in long {
            self.dur.set(index, dur);
        }
    }

    /// Appends all events of `other`.
    pub fn append(&mut self, other: EventColumns) {
        if self.is_empty() {
            *self = other;
            return;
        }
        self.start.extend_from_slice(&other.start);
        self.dur.append(&other.dur);
        self.kind.extend_from_slice(&other.kind);
        (0..other.args.len()).for_each(|i| self.args.push(other.args.get(i)));
    }

    /// Sorts by start, longer events first, so that parents precede their children. Costs one pass if the
    /// events are already sorted, which is nearly always the case.
    fn sort(&mut self) {
        let sorted = |i: usize| {
            let (before, this) = (self.start[i - 1], self.start[i]);
            before < this || (before == this && self.dur.get(i - 1) >= self.dur.get(i))
        };
        if (1..self.len()).all(sorted) {
            return;
        }
        let before = |i: usize| (self.start[i], Reverse(self.dur.get(i)));
        let mut order: Vec<u32> = (0..u32::try_from(self.len()).unwrap_or(u32::MAX)).collect();
        order.sort_by_key(|&i| before(i as usize));
        self.start = order.iter().map(|&i| self.start[i as usize]).collect();
        self.kind = order.iter().map(|&i| self.kind[i as usize]).collect();
        self.dur = self.dur.permuted(&order);
        self.args = self.args.permuted(&order);
    }

    fn shrink(&mut self) {
        self.start.shrink_to_fit();
        self.dur.shrink();
        self.kind.shrink_to_fit();
        self.args.shrink();
    }

    fn span(&self) -> Option<Span> {
        let start = *self.start.first()?;
        let end = (0..self.len()).map(|i| self.start[i] + self.dur.get(i)).max()?;
        Some(Span::new(start, end))
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.start.capacity() * 8 + self.dur.heap_bytes() + self.kind.capacity() * 4 + self.args.heap_bytes()
    }
}

fn take<'a, T>(from: &mut &'a mut [T], len: usize) -> &'a mut [T] {
    let len = len.min(from.len());
    let (head, rest) = std::mem::take(from).split_at_mut(len);
    *from = rest;
    head
}

/// A piece of a track's columns, to be filled on a separate core.
#[derive(Debug)]
pub struct ColumnsChunk<'a> {
    first: usize,
    start: &'a mut [Time],
    dur: &'a mut [u32],
    kind: &'a mut [KindId],
    narrow: &'a mut [u32],
    wide: &'a mut [u64],
    base: u64,
    long: Vec<(usize, Dur)>,
}

impl ColumnsChunk<'_> {
    /// Sets the `index`th event of this piece. A negative duration counts as zero.
    #[inline]
    pub fn set(&mut self, index: usize, start: Time, dur: Dur, kind: KindId, args: Option<u64>) {
        self.start[index] = start;
        self.kind[index] = kind;
        match DurationColumn::pack_short(dur) {
            Some(packed) => self.dur[index] = packed,
            None => self.long.push((self.first + index, dur)),
        }
        if let Some(slot) = self.narrow.get_mut(index) {
            let offset = args.map(|at| at.wrapping_sub(self.base));
            *slot = offset.and_then(|offset| u32::try_from(offset).ok()).unwrap_or(NO_ARGS);
        } else if let Some(slot) = self.wide.get_mut(index) {
            *slot = args.unwrap_or(NO_ARGS_WIDE);
        }
    }

    /// Ends the filling and returns the durations that did not fit.
    pub fn finish(self) -> Vec<(usize, Dur)> {
        self.long
    }
}

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
    kinds: Vec<Kind>,
    kind_lookup: HashMap<Kind, KindId, FxBuildHasher>,
    processes: Vec<Process>,
    tracks: Vec<TrackDraft>,
    flows: Vec<FlowPoint>,
    devices: Vec<Device>,
    notes: Vec<Note>,
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
            kinds: Vec::new(),
            kind_lookup: HashMap::default(),
            processes: Vec::new(),
            tracks: Vec::new(),
            flows: Vec::new(),
            devices: Vec::new(),
            notes: Vec::new(),
            // The arena takes this place at the end.
            arg_sources: vec![Box::new(ArgArena::new())],
            attachments: Vec::new(),
        }
    }

    /// The id of a kind, new or known.
    pub fn kind(&mut self, kind: Kind) -> KindId {
        *self.kind_lookup.entry(kind).or_insert_with(|| {
            self.kinds.push(kind);
            KindId::from_index(self.kinds.len() - 1)
        })
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

    /// Notes an oddity. Equal ones are counted, not listed.
    pub fn note(&mut self, kind: NoteKind, detail: &str, count: u64, offset: Option<u64>) {
        if count == 0 {
            return;
        }
        match self.notes.iter_mut().find(|note| note.kind == kind && note.detail == detail) {
            Some(note) => {
                note.count += count;
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

    /// Sorts what is not sorted and freezes the trace.
    pub fn finish(mut self) -> Trace {
        let resolution = self.clock.resolution;
        let tracks: Vec<Track> = std::mem::take(&mut self.tracks)
            .into_iter()
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
            span,
            events,
        }
    }
}

fn finish_track(id: TrackId, draft: TrackDraft, resolution: Dur) -> Track {
    let TrackDraft { process, name, kind, number, arg_source, mut columns, mut samples } = draft;
    columns.sort();
    columns.shrink();
    sort_samples(&mut samples);
    let sampled = samples.times.first().zip(samples.times.last()).map(|(&a, &b)| Span::new(a, b));
    let span = [columns.span(), sampled].into_iter().flatten().reduce(Span::hull);
    Track {
        id,
        process,
        name,
        kind,
        number,
        samples,
        arg_source,
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
