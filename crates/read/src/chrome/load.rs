//! Loads events into the trace, one after the other.

use rustc_hash::FxHashMap;
use stepscope_trace::{
    Clock, Datum, Dur, FlowDirection, Form, Kind, KindId, NoteKind, StrId, Time, Trace, TraceBuilder,
    TrackId, TrackKind,
};

use super::args::ArgWriter;
use super::category::{Class, Hint, class_of, hint_of};
use super::event::Fields;
use super::header::Header;
use super::pairs::{OpenSlice, Pairs};
use super::repair::{Repair, Repairs};
use super::scan::{Piece, Sort};
use super::text::{self, Micros};
use super::tracks::{Id, PlaceId, Tracks};

/// From here on, a number of microseconds is a date (since 2001), not a time since boot.
const EPOCH_SIZED_NS: i128 = 1_000_000_000_000_000_000;

/// Key of an asynchronous operation: category, id, and the process if the id is local to it.
type AsyncKey = (StrId, u64, Id);

/// The trace as read so far.
#[derive(Default)]
pub(super) struct Loader {
    pub(super) builder: TraceBuilder,
    pub(super) header: Header,
    /// Repairs in the current event.
    pub(super) repairs: Repairs,
    /// True if data was found after the end of the document.
    pub(super) junk: bool,
    tracks: Tracks,
    args: ArgWriter,
    classes: FxHashMap<StrId, Class>,
    /// What names say of events without a known category.
    hints: FxHashMap<StrId, Option<Hint>>,
    threads: Pairs<PlaceId>,
    asyncs: Pairs<AsyncKey>,
    /// The latest time on each track with separate starts and ends.
    ends: FxHashMap<TrackId, Time>,
    /// The origin of the trace: the time of the first event in the file while it is read, of the earliest at the end.
    origin_ps: Option<i128>,
    fractions: bool,
    out_of_range: u64,
    negative: u64,
    unpaired: u64,
    /// Events that started inside the event that ends now, and never ended.
    orphans: Vec<OpenSlice>,
    decoded: Vec<(StrId, Datum)>,
}

impl Loader {
    /// Handles one member of the top-level object, other than the events.
    pub(super) fn header(&mut self, text: &[u8], key: Piece, value: Piece) {
        self.header.take(&mut self.builder, text, key, value, &mut self.repairs);
    }

    /// Handles one event.
    pub(super) fn event(&mut self, text: &[u8], fields: &Fields) {
        if fields.members == 0 {
            return self.repairs.count(Repair::EmptyEvent);
        }
        match fields.phase.of(text) {
            b"X" => self.complete(text, fields),
            b"M" => self.metadata(text, fields),
            b"s" => self.flow(text, fields, FlowDirection::Out),
            b"t" => self.flow(text, fields, FlowDirection::Step),
            b"f" => self.flow(text, fields, FlowDirection::In),
            b"i" | b"I" | b"R" | b"P" => self.instant(text, fields),
            b"C" => self.counter(text, fields),
            b"B" => self.begin(text, fields),
            b"E" => self.end(text, fields),
            b"b" | b"S" => self.async_begin(text, fields),
            b"e" | b"F" => self.async_end(text, fields),
            b"n" | b"T" | b"p" => self.async_instant(text, fields),
            _ => self.unknown_phase(text, fields),
        }
    }

    fn unknown_phase(&mut self, text: &[u8], fields: &Fields) {
        let phase = text::decode(text, fields.phase, &mut self.repairs);
        // A phase is one character; longer text is not a phase, and each such text would create its own note.
        let phase = if phase.chars().count() == 1 { &phase } else { "" };
        self.builder.note(NoteKind::Unknown, phase, 1, None);
    }

    fn complete(&mut self, text: &[u8], fields: &Fields) {
        let start = self.time_or_origin(text, fields);
        let dur = match text::micros(text, fields.dur) {
            Some(dur) => self.duration(dur),
            None => {
                self.repairs.count(Repair::MissingDuration);
                Dur::ZERO
            }
        };
        let (class, kind, name) = self.kind(text, fields, Form::Slice);
        let place = self.place(text, fields);
        let track = self.tracks.track(&mut self.builder, place, class);
        if class == Class::Neutral {
            self.take_hint(place, name);
        }
        let args = self.take_args(text, fields);
        self.builder.event(track, start, dur, kind, args);
        if !self.ends.is_empty() {
            self.reach(track, start + dur);
        }
        if fields.flow_in || fields.flow_out {
            self.bind(text, fields, track, start);
        }
    }

    /// What the name of an event without a known category says about where it ran.
    fn take_hint(&mut self, place: PlaceId, name: StrId) {
        let strings = &self.builder.strings;
        if let Some(hint) = *self.hints.entry(name).or_insert_with(|| hint_of(strings.get(name))) {
            self.tracks.hint(place, hint);
        }
    }

    fn instant(&mut self, text: &[u8], fields: &Fields) {
        let at = self.time_or_origin(text, fields);
        let (class, kind, _) = self.kind(text, fields, Form::Instant);
        let place = self.place(text, fields);
        let track = self.tracks.track(&mut self.builder, place, class);
        let args = self.take_args(text, fields);
        self.builder.event(track, at, Dur::ZERO, kind, args);
    }

    fn metadata(&mut self, text: &[u8], fields: &Fields) {
        let what = fields.name.of(text);
        let wanted: &[u8] = match what {
            b"process_name" | b"thread_name" => b"name",
            b"process_labels" => b"labels",
            b"trace_buffer_overflowed" => {
                return self.builder.note(NoteKind::DroppedByRecorder, "trace_buffer_overflowed", 1, None);
            }
            _ => return,
        };
        let Some(&(_, value)) = fields.args.iter().find(|(key, _)| key.of(text) == wanted) else { return };
        let name = text::decode(text, value, &mut self.repairs);
        let name = self.builder.strings.intern(name.trim_end());
        let pid = self.id(text, fields.pid);
        match what {
            b"process_name" => self.tracks.name_process(pid, name),
            b"process_labels" => self.tracks.label_process(pid, name),
            _ => {
                let tid = self.id(text, fields.tid);
                self.tracks.name_thread(pid, tid, name);
            }
        }
    }

    fn flow(&mut self, text: &[u8], fields: &Fields, direction: FlowDirection) {
        let (Some(at), Some((id, _))) = (self.time(text, fields), self.flow_id(text, fields)) else {
            return self.repairs.count(Repair::UnreadableEvent);
        };
        let category = if fields.category.is_missing() { fields.name } else { fields.category };
        let category = text::intern(&mut self.builder.strings, text, category, &mut self.repairs);
        let place = self.place(text, fields);
        let track = self.tracks.flow_track(&mut self.builder, place);
        self.builder.flow(at, track, direction, category, id);
    }

    /// Flows of the second kind, which are named by the slices themselves.
    fn bind(&mut self, text: &[u8], fields: &Fields, track: TrackId, at: Time) {
        let id = if fields.bind_id.is_missing() { fields.id } else { fields.bind_id };
        let category = text::intern(&mut self.builder.strings, text, fields.category, &mut self.repairs);
        let id = number_or_hash(id.of(text));
        let direction = match (fields.flow_in, fields.flow_out) {
            (true, true) => FlowDirection::Step,
            (true, false) => FlowDirection::In,
            _ => FlowDirection::Out,
        };
        self.builder.flow(at, track, direction, category, id);
    }

    fn counter(&mut self, text: &[u8], fields: &Fields) {
        let Some(at) = self.time(text, fields) else {
            return self.repairs.count(Repair::UnreadableEvent);
        };
        let name = text::intern(&mut self.builder.strings, text, fields.name, &mut self.repairs);
        let pid = self.id(text, fields.pid);
        for &(key, value) in &fields.args {
            let Some(value) = plain_number(text, value) else { continue };
            let series = text::intern(&mut self.builder.strings, text, key, &mut self.repairs);
            let kind = TrackKind::Counter;
            if let Some(track) = self.tracks.loose_track(&mut self.builder, pid, kind, name, series) {
                self.builder.sample(track, at, value);
            }
        }
    }

    fn begin(&mut self, text: &[u8], fields: &Fields) {
        let start = self.time_or_origin(text, fields);
        let (class, kind, name) = self.kind(text, fields, Form::Slice);
        let place = self.place(text, fields);
        let track = self.tracks.track(&mut self.builder, place, class);
        let args = self.begun(text, fields, track, start);
        self.threads.begin(place, OpenSlice { track, start, kind, name, args });
    }

    fn end(&mut self, text: &[u8], fields: &Fields) {
        let at = self.time_or_origin(text, fields);
        let name = text::intern(&mut self.builder.strings, text, fields.name, &mut self.repairs);
        let place = self.place(text, fields);
        let found = self.threads.end(&place, name, &mut self.orphans);
        self.close(text, fields, found, at);
    }

    fn async_begin(&mut self, text: &[u8], fields: &Fields) {
        let start = self.time_or_origin(text, fields);
        let Some((track, kind, name, key)) = self.async_parts(text, fields, Form::Slice) else { return };
        let args = self.begun(text, fields, track, start);
        self.asyncs.begin(key, OpenSlice { track, start, kind, name, args });
    }

    fn async_end(&mut self, text: &[u8], fields: &Fields) {
        let at = self.time_or_origin(text, fields);
        let name = text::intern(&mut self.builder.strings, text, fields.name, &mut self.repairs);
        let key = self.async_key(text, fields);
        let found = self.asyncs.end(&key, name, &mut self.orphans);
        self.close(text, fields, found, at);
    }

    fn async_instant(&mut self, text: &[u8], fields: &Fields) {
        let at = self.time_or_origin(text, fields);
        let Some((track, kind, ..)) = self.async_parts(text, fields, Form::Instant) else { return };
        let args = self.take_args(text, fields);
        self.reach(track, at);
        self.builder.event(track, at, Dur::ZERO, kind, args);
    }

    /// Records the progress of the track up to this start, whose arguments wait with it.
    fn begun(&mut self, text: &[u8], fields: &Fields, track: TrackId, start: Time) -> Vec<(StrId, Datum)> {
        self.decode_args(text, fields);
        self.reach(track, start);
        self.decoded.clone()
    }

    /// Ends an open event, with the arguments of the end after those of the start.
    fn close(&mut self, text: &[u8], fields: &Fields, found: Option<OpenSlice>, at: Time) {
        for orphan in std::mem::take(&mut self.orphans) {
            self.unpaired += 1;
            self.finish_open(orphan, at);
        }
        let Some(mut open) = found else {
            self.unpaired += 1;
            return;
        };
        self.decode_args(text, fields);
        open.args.extend_from_slice(&self.decoded);
        self.reach(open.track, at);
        self.finish_open(open, at);
    }

    fn finish_open(&mut self, open: OpenSlice, at: Time) {
        if at < open.start {
            self.negative += 1;
        }
        let args = self.args.push(&mut self.builder, &open.args);
        self.builder.event(open.track, open.start, (at - open.start).at_least_zero(), open.kind, args);
    }

    fn reach(&mut self, track: TrackId, at: Time) {
        let end = self.ends.entry(track).or_insert(at);
        *end = at.max(*end);
    }

    fn async_parts(
        &mut self,
        text: &[u8],
        fields: &Fields,
        form: Form,
    ) -> Option<(TrackId, KindId, StrId, AsyncKey)> {
        let (_, kind, name) = self.kind(text, fields, form);
        let key = self.async_key(text, fields);
        let pid = self.id(text, fields.pid);
        let (kind_of_track, series) = (TrackKind::Async, StrId::default());
        let track = self.tracks.loose_track(&mut self.builder, pid, kind_of_track, key.0, series);
        if track.is_none() {
            self.repairs.count(Repair::UnreadableEvent);
        }
        Some((track?, kind, name, key))
    }

    fn async_key(&mut self, text: &[u8], fields: &Fields) -> AsyncKey {
        let category = text::intern(&mut self.builder.strings, text, fields.category, &mut self.repairs);
        let (id, local) = self.flow_id(text, fields).unwrap_or_default();
        let owner = if local { self.id(text, fields.pid) } else { Id::Missing };
        (category, id, owner)
    }

    /// The id of an event, and whether it is local to its process; includes the scope if there is one.
    fn flow_id(&mut self, text: &[u8], fields: &Fields) -> Option<(u64, bool)> {
        let local = !fields.local_id.is_missing();
        let piece = if local { fields.local_id } else { fields.id };
        if piece.is_missing() {
            return None;
        }
        let id = number_or_hash(piece.of(text));
        let scope = fields.scope.of(text);
        Some((if scope.is_empty() { id } else { id ^ stable_hash(scope) }, local))
    }

    fn take_args(&mut self, text: &[u8], fields: &Fields) -> Option<u64> {
        if fields.args.is_empty() {
            return None;
        }
        self.decode_args(text, fields);
        self.args.push(&mut self.builder, &self.decoded)
    }

    fn decode_args(&mut self, text: &[u8], fields: &Fields) {
        self.decoded.clear();
        ArgWriter::decode(&mut self.builder, text, &fields.args, &mut self.repairs, &mut self.decoded);
    }

    fn kind(&mut self, text: &[u8], fields: &Fields, form: Form) -> (Class, KindId, StrId) {
        let strings = &mut self.builder.strings;
        let name = text::intern(strings, text, fields.whole_name(text), &mut self.repairs);
        let category = text::intern(strings, text, fields.category, &mut self.repairs);
        let class =
            *self.classes.entry(category).or_insert_with(|| class_of(self.builder.strings.get(category)));
        let kind = self.builder.kind(Kind { category, form, ..Kind::slice(name) });
        (class, kind, name)
    }

    fn place(&mut self, text: &[u8], fields: &Fields) -> PlaceId {
        let (pid, tid) = (self.id(text, fields.pid), self.id(text, fields.tid));
        self.tracks.place(pid, tid)
    }

    /// A pid or tid. `7`, `"7"` and `7.0` are the same.
    fn id(&mut self, text: &[u8], piece: Piece) -> Id {
        let raw = piece.of(text);
        if let Some(number) = text::integer(raw) {
            return Id::Number(number);
        }
        match piece.sort {
            Sort::Missing => Id::Missing,
            Sort::Number => match text::number(raw) {
                Datum::Float(value) if value.fract() == 0.0 && value.abs() < 9e15 => Id::Number(value as i64),
                _ => Id::Text(self.builder.strings.intern_bytes(raw)),
            },
            _ => Id::Text(text::intern(&mut self.builder.strings, text, piece, &mut self.repairs)),
        }
    }

    fn time_or_origin(&mut self, text: &[u8], fields: &Fields) -> Time {
        self.time(text, fields).unwrap_or_else(|| {
            self.repairs.count(Repair::MissingTime);
            Time::ZERO
        })
    }

    fn time(&mut self, text: &[u8], fields: &Fields) -> Option<Time> {
        let Micros { ps, whole } = text::micros(text, fields.ts)?;
        self.fractions |= !whole;
        let origin = *self.origin_ps.get_or_insert(ps);
        Some(Time::from_ps(self.clamp(ps - origin)))
    }

    fn duration(&mut self, dur: Micros) -> Dur {
        self.fractions |= !dur.whole;
        if dur.ps < 0 {
            self.negative += 1;
            return Dur::ZERO;
        }
        Dur::from_ps(self.clamp(dur.ps))
    }

    fn clamp(&mut self, ps: i128) -> i64 {
        i64::try_from(ps).unwrap_or_else(|_| {
            self.out_of_range += 1;
            if ps < 0 { i64::MIN } else { i64::MAX }
        })
    }

    /// Ends open events, settles the tracks and freezes the trace.
    pub(super) fn finish(mut self) -> Trace {
        let left = std::mem::take(&mut self.threads).drain().into_iter();
        for open in left.chain(std::mem::take(&mut self.asyncs).drain()).collect::<Vec<_>>() {
            self.unpaired += 1;
            let end = self.ends.get(&open.track).copied().unwrap_or(open.start);
            self.finish_open(open, end);
        }
        self.start_at_first();
        self.builder.clock = self.clock();
        let devices = std::mem::take(&mut self.header.devices);
        std::mem::take(&mut self.tracks).finish(&mut self.builder, devices);
        self.builder.note(NoteKind::TimeOutOfRange, "", self.out_of_range, None);
        self.builder.note(NoteKind::NegativeDuration, "", self.negative, None);
        self.builder.note(NoteKind::Unpaired, "", self.unpaired, None);
        self.builder.finish()
    }

    /// Files are rarely in the order of time: the first event in the file is only where reading began. With times out of
    /// range, the first is not the beginning of anything.
    fn start_at_first(&mut self) {
        if self.out_of_range == 0 {
            let by = i128::from(self.builder.start_at_first().ps());
            self.origin_ps = self.origin_ps.map(|ps| ps - by);
        }
    }

    fn clock(&self) -> Clock {
        let resolution = if self.fractions { Dur::from_ns(1) } else { Dur::from_us(1) };
        let origin_ns = self.origin_ps.map(|ps| ps.div_euclid(1_000));
        let wall_ns = match (origin_ns, self.header.base_ns) {
            (Some(origin), Some(base)) => Some(origin.saturating_add(i128::from(base))),
            (Some(origin), None) if origin >= EPOCH_SIZED_NS => Some(origin),
            _ => None,
        };
        let wall_ns_at_origin = wall_ns.and_then(|ns| i64::try_from(ns).ok());
        Clock { wall_ns_at_origin, resolution }
    }
}

/// An id as a number: decimal, hexadecimal after `0x`, or a hash of anything else.
fn number_or_hash(raw: &[u8]) -> u64 {
    let raw = raw.trim_ascii();
    let text = std::str::from_utf8(raw).unwrap_or_default();
    let hex = text.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok());
    hex.or_else(|| text.parse().ok())
        .or_else(|| text::integer(raw).map(|number| number as u64))
        .unwrap_or_else(|| stable_hash(raw))
}

/// FNV-1a: the same on every machine and in every version.
fn stable_hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// A number, quoted or not.
fn plain_number(text: &[u8], piece: Piece) -> Option<f64> {
    match piece.sort {
        Sort::Number | Sort::Text => std::str::from_utf8(piece.of(text)).ok()?.trim().parse().ok(),
        _ => None,
    }
}
