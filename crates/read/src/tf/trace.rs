//! RunMetadata as a profile: each run is a step, each record an event, with the kernel's own name if the label
//! contains it.
//!
//! Runs of one program are in separate files: `run_meta_0.pb`, `run_meta_1.pb`, … are the steps of one
//! recording. The time between them, often thousands of steps, was not recorded, so on the timeline they
//! directly follow each other.

use rustc_hash::FxHashMap;
use stepscope_tfgraph::{NodeRecord, timeline_op};
use stepscope_trace::{
    Datum, Delivers, Device, DeviceKind, Dur, Format, Kind as EventKind, KindId, NoteKind, ProcessId,
    ProcessKind, StrId, Time, Trace, TraceBuilder, TrackKind,
};

use super::calls::Calls;
use super::lanes::{LaneName, place, repeats};
use super::message::Damages;
use super::{Kind, events, kind_of, run};
use crate::{Bytes, Input, Progress, ReadError, Reader};

/// RunMetadata of TensorFlow 1.
static FORMAT: Format = Format::new("run-metadata", "run-metadata", Delivers::Runs);

/// Reads RunMetadata, and event files that contain it.
#[derive(Debug)]
pub struct RunMetadataReader;

impl Reader for RunMetadataReader {
    fn format(&self) -> &'static Format {
        &FORMAT
    }

    fn recognises(&self, head: &[u8]) -> bool {
        kind_of(head) == Some(Kind::Run)
    }

    fn read(&self, input: &Input, progress: &Progress) -> Result<Trace, ReadError> {
        let mut recording = Recording::default();
        let mut damage = Vec::new();
        for file in std::iter::once(input).chain(input.parts()) {
            let (bytes, error) = file.inflated();
            progress.expect(bytes.len() as u64);
            let mut found = Damages::default();
            if let Some(error) = error {
                found.add(bytes.len(), || format!("compression: {error}"));
            }
            recording.add_file(&bytes, &mut found);
            progress.advance(bytes.len() as u64, 0);
            let name = file.path().file_name().map(|name| name.to_string_lossy().into_owned());
            damage.push((name.unwrap_or_default(), found));
        }
        let first = damage.iter().find_map(|(_, found)| found.first());
        if let (true, Some(first)) = (recording.runs.is_empty(), first) {
            let (what, offset) = (first.what.clone(), first.at.unwrap_or(0));
            return Err(ReadError::Damaged { path: input.path().to_owned(), what, offset });
        }
        Ok(recording.trace(&damage, input.parts().is_empty()))
    }
}

/// The reader for an event file, if it contains runs.
pub(crate) fn for_events(input: &Input) -> Option<&'static dyn Reader> {
    if !events::is_event_file(&input.head()) {
        return None;
    }
    let (bytes, _) = input.inflated();
    events::carries_runs(&bytes).then_some(&RunMetadataReader)
}

/// One record in the form that a trace needs. Times are in ns since 1970.
struct Event {
    start: i64,
    end: i64,
    queued: i64,
    bytes: i64,
    name: u32,
}

/// A change of an allocator's memory.
struct Change {
    at: i64,
    bytes: i64,
    allocator: u32,
    name: u32,
}

/// The records of one lane: a device and, on hosts, one of its threads.
#[derive(Default)]
struct Lane {
    device: String,
    thread: u32,
    events: Vec<Event>,
}

/// Start and end of a run, and its number.
pub(super) struct Run {
    pub(super) step: i64,
    pub(super) start: i64,
    pub(super) end: i64,
}

/// Everything in the files.
#[derive(Default)]
pub(super) struct Recording {
    pub(super) runs: Vec<Run>,
    lanes: Vec<Lane>,
    places: FxHashMap<(String, u32), usize>,
    names: Names,
    allocators: Names,
    changes: Vec<Change>,
    untimed: u64,
}

/// Texts by number.
#[derive(Default)]
struct Names {
    ids: FxHashMap<String, u32>,
    all: Vec<String>,
}

impl Names {
    fn id(&mut self, text: &str) -> u32 {
        if let Some(id) = self.ids.get(text) {
            return *id;
        }
        let id = self.all.len() as u32;
        self.all.push(text.to_owned());
        self.ids.insert(text.to_owned(), id);
        id
    }

    fn get(&self, id: u32) -> &str {
        self.all.get(id as usize).map_or("", String::as_str)
    }
}

impl Recording {
    /// Adds the run of a file, or the runs of an event file.
    fn add_file(&mut self, bytes: &Bytes, damage: &mut Damages) {
        if !events::is_event_file(bytes) {
            let step = self.runs.len() as i64;
            self.add_run(bytes, step, damage);
            return;
        }
        let found = events::events_of(bytes.clone(), std::mem::take(damage));
        *damage = found.damage;
        for run in &found.value.runs {
            let bytes = bytes.get(run.place.clone()).unwrap_or_default();
            self.add_run(bytes, run.step, damage);
        }
    }

    fn add_run(&mut self, bytes: &[u8], step: i64, damage: &mut Damages) {
        let mut span: Option<(i64, i64)> = None;
        let found = run::run(bytes, std::mem::take(damage), &mut |device, record| {
            if let Some((from, to)) = self.add_record(device, record) {
                let (start, end) = span.unwrap_or((from, to));
                span = Some((start.min(from), end.max(to)));
            }
        });
        *damage = found.damage;
        if let Some((start, end)) = span {
            self.runs.push(Run { step, start, end });
        }
    }

    /// Adds a record; it lasts from its scheduling to its end.
    fn add_record(&mut self, device: &str, record: &NodeRecord<'_>) -> Option<(i64, i64)> {
        let in_nanos = record.start_nanos > 0;
        let nanos = |nanos: i64, micros: i64| if in_nanos { nanos } else { micros.saturating_mul(1_000) };
        let start = nanos(record.start_nanos, record.start_micros);
        if start <= 0 {
            self.untimed += 1;
            return None;
        }
        let duration = nanos(record.op_end_nanos, record.op_end_micros).max(0);
        let end = start.saturating_add(duration);
        let last = start.saturating_add(nanos(record.end_nanos, record.end_micros).max(duration));
        let scheduled = nanos(record.scheduled_nanos, record.scheduled_micros);
        let queued = if scheduled > 0 { start.saturating_sub(scheduled).max(0) } else { 0 };
        let name = self.name(record);
        let bytes = record.memory.iter().map(|used| used.total_bytes).fold(0, i64::saturating_add);
        for used in &record.memory {
            let allocator = self.allocators.id(&used.allocator);
            let changes = used.changes.iter();
            self.changes.extend(changes.map(|(at, bytes)| Change {
                at: at.saturating_mul(1_000),
                bytes: *bytes,
                allocator,
                name,
            }));
        }
        let lane = self.lane(device, record.thread);
        self.lanes[lane].events.push(Event { start, end, queued, bytes, name });
        Some((start.saturating_sub(queued), last))
    }

    /// Adds an op that ran from `start` to `end`, under the name that the newer profiler gives it.
    pub(super) fn add_op(&mut self, device: &str, thread: u32, name: &str, (start, end): (i64, i64)) {
        let name = self.names.id(name);
        let lane = self.lane(device, thread);
        self.lanes[lane].events.push(Event { start, end, queued: 0, bytes: 0, name });
    }

    /// Adds a change of an allocator's memory.
    pub(super) fn add_change(&mut self, allocator: &str, at: i64, bytes: i64) {
        let (allocator, name) = (self.allocators.id(allocator), self.names.id(""));
        self.changes.push(Change { at, bytes, allocator, name });
    }

    /// `node:Op`, as in the newer profiler. Without a label, the node's name is used.
    fn name(&mut self, record: &NodeRecord<'_>) -> u32 {
        if let Some(id) = self.names.ids.get(&*record.name) {
            return *id;
        }
        let id = self.names.all.len() as u32;
        let name = record.name.split_once(':').map_or(&*record.name, |(name, _)| name);
        self.names.all.push(match timeline_op(&record.label) {
            Some(op) => format!("{name}:{op}"),
            None => record.name.to_string(),
        });
        self.names.ids.insert(record.name.to_string(), id);
        id
    }

    fn lane(&mut self, device: &str, thread: u32) -> usize {
        // Nearly always the lane of the previous record.
        if let Some(last) = self.lanes.last()
            && last.device == device
            && last.thread == thread
        {
            return self.lanes.len() - 1;
        }
        let lanes = &mut self.lanes;
        *self.places.entry((device.to_owned(), thread)).or_insert_with(|| {
            lanes.push(Lane { device: device.to_owned(), thread, events: Vec::new() });
            lanes.len() - 1
        })
    }

    pub(super) fn trace(mut self, damage: &[(String, Damages)], alone: bool) -> Trace {
        let mut builder = TraceBuilder::new();
        let starts = self.runs.iter().map(|run| run.start).chain(self.changes.iter().map(|change| change.at));
        let origin = starts.filter(|at| *at > 0).min().unwrap_or(0);
        builder.clock.wall_ns_at_origin = Some(origin);
        builder.clock.resolution = Dur::from_ns(1);
        self.runs.sort_by_key(|run| run.start);
        let mut writer = Writer::new(Timeline::of(&self.runs, origin), &mut builder);
        writer.steps(&self.runs);
        let kinds: Vec<KindId> = self.names.all.iter().map(|name| writer.kind(name)).collect();
        let streams: Vec<String> = self.lanes.iter().map(|lane| lane.device.to_ascii_lowercase()).collect();
        let mut calls = Calls::default();
        for lane in &self.lanes {
            let started = |event: &Event| Some((*kinds.get(event.name as usize)?, event.start));
            calls.add(&lane.device, lane.events.iter().filter_map(started));
        }
        calls.number();
        for lane in std::mem::take(&mut self.lanes) {
            writer.lane(lane, &kinds, &streams, &calls);
        }
        writer.memory(&mut self.changes, &self.allocators, &self.names);
        for (file, found) in damage {
            for damage in found.listed() {
                let place = if alone { damage.what.clone() } else { format!("{file}: {}", damage.what) };
                builder.note(NoteKind::Damaged, &place, 1, damage.at);
            }
            let more = found.count() - found.listed().len() as u64;
            builder.note(NoteKind::Damaged, "further places", more, None);
        }
        builder.note(NoteKind::TimeOutOfRange, "records without a start", self.untimed, None);
        builder.finish()
    }
}

/// New positions of times after the unrecorded time between runs is removed.
struct Timeline {
    origin: i64,
    /// Start and end of each run, and how far it moves towards the origin.
    runs: Vec<(i64, i64, i64)>,
}

impl Timeline {
    /// `runs` are sorted by start. Overlapping runs stay as they are.
    fn of(runs: &[Run], origin: i64) -> Self {
        let (mut moved, mut last): (i64, Option<i64>) = (0, None);
        let mut placed = Vec::with_capacity(runs.len());
        for run in runs {
            let gap = last.map_or(0, |end| run.start.saturating_sub(end).max(0));
            moved = moved.saturating_add(gap);
            last = Some(last.map_or(run.end, |end| end.max(run.end)));
            placed.push((run.start, run.end, moved));
        }
        Timeline { origin, runs: placed }
    }

    fn at(&self, at: i64) -> Time {
        let after = self.runs.partition_point(|(start, _, _)| *start <= at);
        let at = match after.checked_sub(1).and_then(|index| self.runs.get(index)) {
            Some((_, end, moved)) if after < self.runs.len() => at.min(*end).saturating_sub(*moved),
            Some((_, _, moved)) => at.saturating_sub(*moved),
            None => at,
        };
        Time::from_ns(at.saturating_sub(self.origin).max(0))
    }
}

struct Writer<'b> {
    builder: &'b mut TraceBuilder,
    timeline: Timeline,
    hosts: Vec<(String, ProcessId)>,
    devices: Vec<(String, ProcessId)>,
    step_num: StrId,
    queued: StrId,
    bytes: StrId,
    correlation: StrId,
}

impl<'b> Writer<'b> {
    fn new(timeline: Timeline, builder: &'b mut TraceBuilder) -> Self {
        let step_num = builder.strings.intern("step_num");
        let queued = builder.strings.intern("queued_ns");
        let bytes = builder.strings.intern("requested_bytes");
        let correlation = builder.strings.intern("correlation_id");
        let (hosts, devices) = (Vec::new(), Vec::new());
        Writer { builder, timeline, hosts, devices, step_num, queued, bytes, correlation }
    }

    fn time(&self, at: i64) -> Time {
        self.timeline.at(at)
    }

    fn kind(&mut self, name: &str) -> KindId {
        let name = self.builder.strings.intern(name);
        self.builder.kind(EventKind::slice(name))
    }

    /// Each run is a step, with the call that ran it inside.
    fn steps(&mut self, runs: &[Run]) {
        let host = self.host("");
        let name = self.builder.strings.intern("Session.run");
        let track = self.builder.track(host, name, TrackKind::Thread, -1, TraceBuilder::ARENA);
        let (step, call) = (self.kind("train"), self.kind("SessionRun"));
        for run in runs {
            let (start, dur) = (self.time(run.start), Dur::from_ns(run.end.saturating_sub(run.start)));
            let args = self.builder.arena.push(&[(self.step_num, Datum::Int(run.step))], &[]);
            self.builder.event(track, start, dur, step, args);
            self.builder.event(track, start, dur, call, None);
        }
    }

    fn lane(&mut self, mut lane: Lane, kinds: &[KindId], all: &[String], calls: &Calls) {
        let calls = calls.on(&lane.device);
        let (process, name, kind) = match place(&lane.device) {
            LaneName::Host(task, None) => {
                let name = format!("executor {}", lane.thread);
                (self.host(task), name, TrackKind::Thread)
            }
            LaneName::Host(task, Some(unit)) => {
                let name = format!("{unit} launches {}", lane.thread);
                (self.host(task), name, TrackKind::Thread)
            }
            LaneName::Stream(device, stream) => {
                let kind = if repeats(&lane.device, all) { TrackKind::Derived } else { TrackKind::Stream };
                (self.device(device), stream.to_owned(), kind)
            }
            LaneName::Other(device) => (self.device(device), device.to_owned(), TrackKind::Stream),
        };
        lane.events.sort_by_key(|event| (event.start, std::cmp::Reverse(event.end)));
        let name = self.builder.strings.intern(&name);
        // Events that overlap belong to different threads, whatever the record says.
        let mut ends: Vec<(i64, stepscope_trace::TrackId)> = Vec::new();
        for event in &lane.events {
            let free = ends.iter().position(|(end, _)| *end <= event.start);
            let at = free.unwrap_or_else(|| {
                let number = i64::from(lane.thread);
                let track = self.builder.track(process, name, kind, number, TraceBuilder::ARENA);
                ends.push((i64::MIN, track));
                ends.len() - 1
            });
            ends[at].0 = event.end;
            let Some(&kind) = kinds.get(event.name as usize) else { continue };
            let call = calls.and_then(|runs| runs.of_event(kind, event.start));
            let mut own = vec![(self.queued, Datum::Int(event.queued))];
            own.extend((event.bytes != 0).then_some((self.bytes, Datum::Int(event.bytes))));
            own.extend(call.map(|call| (self.correlation, Datum::UInt(call))));
            let args = self.builder.arena.push(&own, &[]);
            let (start, dur) = (self.time(event.start), Dur::from_ns(event.end.saturating_sub(event.start)));
            self.builder.event(ends[at].1, start, dur, kind, args);
        }
    }

    /// Allocations and deallocations, as the newer profiler records them.
    fn memory(&mut self, changes: &mut [Change], allocators: &Names, names: &Names) {
        if changes.is_empty() {
            return;
        }
        changes.sort_by_key(|change| change.at);
        let host = self.host("");
        let name = self.builder.strings.intern("allocators");
        let track = self.builder.track(host, name, TrackKind::Thread, -2, TraceBuilder::ARENA);
        let (take, give) = (self.kind("MemoryAllocation"), self.kind("MemoryDeallocation"));
        let intern = |builder: &mut TraceBuilder, text: &str| builder.strings.intern(text);
        let allocator_key = intern(self.builder, "allocator_name");
        let (size_key, op_key) = (intern(self.builder, "allocation_bytes"), intern(self.builder, "tf_op"));
        for change in changes.iter() {
            let allocator = intern(self.builder, allocators.get(change.allocator));
            let op = intern(self.builder, names.get(change.name));
            let own = [(size_key, Datum::Int(change.bytes.saturating_abs()))];
            let shared = [(allocator_key, Datum::Str(allocator)), (op_key, Datum::Str(op))];
            let args = self.builder.arena.push(&own, &shared);
            let kind = if change.bytes >= 0 { take } else { give };
            self.builder.event(track, self.time(change.at), Dur::from_ns(0), kind, args);
        }
    }

    fn host(&mut self, task: &str) -> ProcessId {
        // Steps and memory belong to the first host.
        let known =
            self.hosts.iter().position(|(name, _)| name == task || name.is_empty() || task.is_empty());
        if let Some(at) = known {
            let (name, id) = &mut self.hosts[at];
            if name.is_empty() && !task.is_empty() {
                task.clone_into(name);
            }
            return *id;
        }
        let name = self.builder.strings.intern("host");
        let id = self.builder.process(name, ProcessKind::Host, self.hosts.len() as i64);
        self.hosts.push((task.to_owned(), id));
        id
    }

    fn device(&mut self, name: &str) -> ProcessId {
        if let Some((_, id)) = self.devices.iter().find(|(known, _)| known == name) {
            return *id;
        }
        let text = self.builder.strings.intern(name);
        let number = name.rsplit(':').next().and_then(|number| number.parse().ok()).unwrap_or(0);
        let id = self.builder.process(text, ProcessKind::Device, number);
        let lower = name.to_ascii_lowercase();
        let kinds = [("gpu", DeviceKind::Gpu), ("tpu", DeviceKind::Tpu)];
        let kind = kinds
            .into_iter()
            .find(|(part, _)| lower.contains(part))
            .map_or(DeviceKind::Other, |(_, kind)| kind);
        self.builder.device(Device { process: Some(id), ..Device::new(kind, number) });
        self.devices.push((name.to_owned(), id));
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unrecorded_time_between_runs_is_taken_out() {
        let run = |start, end| Run { step: 0, start, end };
        let timeline = Timeline::of(&[run(1_000, 1_100), run(9_000, 9_200), run(9_100, 9_300)], 1_000);
        let at = |at| timeline.at(at).ns();
        assert_eq!([at(1_000), at(1_100), at(5_000), at(9_000), at(9_100)], [0, 100, 100, 100, 200]);
        assert_eq!(at(9_300), 400, "the last run is the longest of those that overlap");
    }
}
