//! Perfetto's own format: a stream of protobuf packets, which its page and its trace processor open.
//!
//! Slices of a track must nest, so each lane of a track becomes a track of its own, as in the Chrome export. Names, categories
//! and arguments are written into each event. Times are nanoseconds; an event keeps its end, not its rounded duration, so that
//! nested slices stay nested.

use std::collections::HashMap;
use std::io::{self, Write};

use stepscope_trace::{FlowDirection, Form, StrId, Time, Trace, Track, TrackId, TrackKind, Value};

use super::ExportSource;
use super::time::Origins;

/// Numbers of fields in `trace.proto` and the files that it imports.
mod field {
    pub(super) const PACKET: u32 = 1;
    // TracePacket
    pub(super) const TIMESTAMP: u32 = 8;
    pub(super) const SEQUENCE_ID: u32 = 10;
    pub(super) const TRACK_EVENT: u32 = 11;
    pub(super) const SEQUENCE_FLAGS: u32 = 13;
    pub(super) const TRACK_DESCRIPTOR: u32 = 60;
    // TrackDescriptor
    pub(super) const UUID: u32 = 1;
    pub(super) const NAME: u32 = 2;
    pub(super) const PROCESS: u32 = 3;
    pub(super) const PARENT_UUID: u32 = 5;
    pub(super) const COUNTER: u32 = 8;
    // ProcessDescriptor
    pub(super) const PID: u32 = 1;
    pub(super) const PROCESS_NAME: u32 = 6;
    // TrackEvent
    pub(super) const ANNOTATIONS: u32 = 4;
    pub(super) const TYPE: u32 = 9;
    pub(super) const TRACK_UUID: u32 = 11;
    pub(super) const CATEGORIES: u32 = 22;
    pub(super) const EVENT_NAME: u32 = 23;
    pub(super) const DOUBLE_COUNTER: u32 = 44;
    pub(super) const FLOW_IDS: u32 = 47;
    pub(super) const ENDING_FLOW_IDS: u32 = 48;
    // DebugAnnotation
    pub(super) const BOOL: u32 = 2;
    pub(super) const UINT: u32 = 3;
    pub(super) const INT: u32 = 4;
    pub(super) const DOUBLE: u32 = 5;
    pub(super) const TEXT: u32 = 6;
    pub(super) const KEY: u32 = 10;
}

/// `TrackEvent.Type`.
const BEGIN: u64 = 1;
const END: u64 = 2;
const INSTANT: u64 = 3;
const COUNTER: u64 = 4;

/// All packets belong to one sequence, whose state starts with the first of them.
const SEQUENCE: u64 = 1;
const INCREMENTAL_STATE_CLEARED: u64 = 1;

/// Writes all hosts to one trace.
pub fn write_perfetto(sources: &[ExportSource<'_>], out: &mut dyn Write) -> io::Result<()> {
    let origins = Origins::of(sources);
    let mut writer = Writer { out, packet: Message::default(), first: true };
    let mut ids = Ids::default();
    for (host, source) in sources.iter().enumerate() {
        let several = sources.len() > 1;
        let host_writer = HostWriter { trace: source.trace, host, origins: &origins };
        host_writer.write(&mut writer, &mut ids, several.then_some(source.host))?;
    }
    Ok(())
}

/// Numbers that are unique in a trace.
#[derive(Default)]
struct Ids {
    uuids: u64,
    pids: u64,
}

impl Ids {
    fn uuid(&mut self) -> u64 {
        self.uuids += 1;
        self.uuids
    }
}

/// A message that is being written.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push((value as u8 & 0x7f) | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn tag(&mut self, number: u32, wire: u32) {
        self.varint(u64::from(number << 3 | wire));
    }

    fn number(&mut self, field: u32, value: u64) {
        self.tag(field, 0);
        self.varint(value);
    }

    fn fixed(&mut self, field: u32, value: u64) {
        self.tag(field, 1);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.tag(field, 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn message(&mut self, field: u32, fill: impl FnOnce(&mut Message)) {
        let mut inner = Message::default();
        fill(&mut inner);
        self.bytes(field, &inner.0);
    }
}

struct Writer<'a> {
    out: &'a mut dyn Write,
    packet: Message,
    first: bool,
}

impl Writer<'_> {
    /// One packet, written by `fill`.
    fn packet(&mut self, fill: impl FnOnce(&mut Message)) -> io::Result<()> {
        self.packet.0.clear();
        self.packet.number(field::SEQUENCE_ID, SEQUENCE);
        if std::mem::take(&mut self.first) {
            self.packet.number(field::SEQUENCE_FLAGS, INCREMENTAL_STATE_CLEARED);
        }
        fill(&mut self.packet);
        let mut head = Message::default();
        head.tag(field::PACKET, 2);
        head.varint(self.packet.0.len() as u64);
        self.out.write_all(&head.0)?;
        self.out.write_all(&self.packet.0)
    }

    fn track(&mut self, uuid: u64, parent: Option<u64>, name: &str, counter: bool) -> io::Result<()> {
        self.packet(|packet| {
            packet.message(field::TRACK_DESCRIPTOR, |track| {
                track.number(field::UUID, uuid);
                track.bytes(field::NAME, name.as_bytes());
                if let Some(parent) = parent {
                    track.number(field::PARENT_UUID, parent);
                }
                if counter {
                    track.bytes(field::COUNTER, &[]);
                }
            });
        })
    }
}

struct HostWriter<'a> {
    trace: &'a Trace,
    host: usize,
    origins: &'a Origins,
}

impl HostWriter<'_> {
    fn write(&self, writer: &mut Writer<'_>, ids: &mut Ids, host: Option<&str>) -> io::Result<()> {
        let mut processes = Vec::with_capacity(self.trace.processes().len());
        for process in self.trace.processes() {
            let name = self.trace.str(process.name);
            let name = host.map_or(name.to_owned(), |host| format!("{host} {name}"));
            ids.pids += 1;
            let (uuid, pid) = (ids.uuid(), ids.pids);
            writer.packet(|packet| {
                packet.message(field::TRACK_DESCRIPTOR, |track| {
                    track.number(field::UUID, uuid);
                    track.message(field::PROCESS, |process| {
                        process.number(field::PID, pid);
                        process.bytes(field::PROCESS_NAME, name.as_bytes());
                    });
                });
            })?;
            processes.push(uuid);
        }
        let flows = Flows::of(self.trace);
        for track in self.trace.tracks() {
            let parent = processes.get(track.process.index()).copied();
            if track.kind == TrackKind::Counter {
                self.samples(writer, ids, track, parent)?;
            }
            for lane in 0..track.nesting().lanes() {
                if !track.is_empty() {
                    self.lane(writer, ids, track, lane, parent, &flows)?;
                }
            }
        }
        Ok(())
    }

    fn ns(&self, at: Time) -> u64 {
        u64::try_from(self.origins.ps(self.host, at).max(0) / 1000).unwrap_or(u64::MAX)
    }

    fn samples(
        &self,
        writer: &mut Writer<'_>,
        ids: &mut Ids,
        track: &Track,
        parent: Option<u64>,
    ) -> io::Result<()> {
        let uuid = ids.uuid();
        writer.track(uuid, parent, self.trace.str(track.name), true)?;
        for (&time, value) in track.samples.times.iter().zip(&track.samples.values) {
            let ns = self.ns(time);
            writer.packet(|packet| {
                packet.number(field::TIMESTAMP, ns);
                packet.message(field::TRACK_EVENT, |event| {
                    event.number(field::TYPE, COUNTER);
                    event.number(field::TRACK_UUID, uuid);
                    event.fixed(field::DOUBLE_COUNTER, value.to_bits());
                });
            })?;
        }
        Ok(())
    }

    /// The slices of one lane, which nest: begins and ends in the order of time.
    fn lane(
        &self,
        writer: &mut Writer<'_>,
        ids: &mut Ids,
        track: &Track,
        lane: usize,
        parent: Option<u64>,
        flows: &Flows,
    ) -> io::Result<()> {
        let uuid = ids.uuid();
        let name = self.trace.str(track.name);
        let name = if lane == 0 { name.to_owned() } else { format!("{name} (overlapping {lane})") };
        writer.track(uuid, parent, &name, false)?;
        let nesting = track.nesting();
        // The slices that have begun, the innermost last: what ends before the next one begins ends first.
        let mut open: Vec<Time> = Vec::new();
        for index in (0..track.len()).filter(|&index| nesting.lane(index) == lane) {
            let start = track.start(index);
            while let Some(end) = open.pop_if(|end| *end <= start) {
                self.end(writer, uuid, end)?;
            }
            self.begin(writer, uuid, track, index, flows)?;
            if self.trace.kind(track.kind_of(index)).form != Form::Instant {
                open.push(track.end(index));
            }
        }
        open.into_iter().rev().try_for_each(|end| self.end(writer, uuid, end))
    }

    fn end(&self, writer: &mut Writer<'_>, uuid: u64, at: Time) -> io::Result<()> {
        let ns = self.ns(at);
        writer.packet(|packet| {
            packet.number(field::TIMESTAMP, ns);
            packet.message(field::TRACK_EVENT, |event| {
                event.number(field::TYPE, END);
                event.number(field::TRACK_UUID, uuid);
            });
        })
    }

    fn begin(
        &self,
        writer: &mut Writer<'_>,
        uuid: u64,
        track: &Track,
        index: usize,
        flows: &Flows,
    ) -> io::Result<()> {
        let (kind, ns) = (self.trace.kind(track.kind_of(index)), self.ns(track.start(index)));
        writer.packet(|packet| {
            packet.number(field::TIMESTAMP, ns);
            packet.message(field::TRACK_EVENT, |event| {
                event.number(field::TYPE, if kind.form == Form::Instant { INSTANT } else { BEGIN });
                event.number(field::TRACK_UUID, uuid);
                event.bytes(field::EVENT_NAME, self.trace.str(kind.name).as_bytes());
                let category = self.trace.str(kind.category);
                if !category.is_empty() {
                    event.bytes(field::CATEGORIES, category.as_bytes());
                }
                for &(ends, id) in flows.at(track.id, index) {
                    event.fixed(if ends { field::ENDING_FLOW_IDS } else { field::FLOW_IDS }, id);
                }
                let mut seen: Vec<StrId> = Vec::new();
                self.trace.args_at(track, index).visit(|key, value| {
                    if seen.contains(&key) {
                        return;
                    }
                    seen.push(key);
                    event.message(field::ANNOTATIONS, |annotation| {
                        annotation.bytes(field::KEY, self.trace.str(key).as_bytes());
                        push_value(annotation, &value);
                    });
                });
            });
        })
    }
}

/// A value of an argument.
fn push_value(annotation: &mut Message, value: &Value<'_>) {
    match value {
        Value::Int(value) => annotation.number(field::INT, value.cast_unsigned()),
        Value::UInt(value) => annotation.number(field::UINT, *value),
        Value::Float(value) => annotation.fixed(field::DOUBLE, value.to_bits()),
        Value::Bool(value) => annotation.number(field::BOOL, u64::from(*value)),
        Value::Null => annotation.bytes(field::TEXT, b"null"),
        Value::Str(text) => annotation.bytes(field::TEXT, text.as_bytes()),
        // Bytes are nested messages, which no viewer can show.
        Value::Bytes(bytes) => annotation.bytes(field::TEXT, format!("{} bytes", bytes.len()).as_bytes()),
        Value::Json(text) => annotation.bytes(field::TEXT, text.as_bytes()),
    }
}

/// The ends of arrows by event: whether the arrow ends there, and its number.
struct Flows(HashMap<(TrackId, usize), Vec<(bool, u64)>>);

impl Flows {
    fn of(trace: &Trace) -> Self {
        let mut all: HashMap<(TrackId, usize), Vec<(bool, u64)>> = HashMap::new();
        for flow in trace.flows() {
            let track = trace.track(flow.track);
            let Some(index) = event_at(track, flow.time) else { continue };
            // Ids are unique within a kind of arrows only.
            let kind = (flow.category.index() as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let ends = flow.direction == FlowDirection::In;
            all.entry((track.id, index)).or_default().push((ends, flow.id ^ kind));
        }
        Flows(all)
    }

    fn at(&self, track: TrackId, index: usize) -> &[(bool, u64)] {
        self.0.get(&(track, index)).map_or(&[], Vec::as_slice)
    }
}

/// Maximum number of events to search for the one where an arrow ends.
const LOOK_BACK: usize = 64;

/// The innermost event around `time`.
fn event_at(track: &Track, time: Time) -> Option<usize> {
    let after = track.starts().partition_point(|&start| start <= time);
    (after.saturating_sub(LOOK_BACK)..after).rev().find(|&index| track.end(index) >= time)
}
